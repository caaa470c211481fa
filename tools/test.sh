#!/usr/bin/env bash
# Usage: test.sh BUILD_FOLDER
# Runs the C++ tests, once more without the machine's wider instruction sets, the JavaScript tests and the Python tests, then
# says how many passed, failed and were skipped. Each part leaves its results under BUILD_FOLDER/results, where
# test_summary.py reads them and fails the run for a skip that `make` could have cured.
set -uo pipefail
cd "$(dirname "$0")/.."
build=$(realpath "$1")
results=$build/results
rm -rf "$results"
mkdir -p "$results"
failed=0

# For tests in other languages; and no test sees kernels of an earlier build.
export TRIREME_LIBRARY=$build/libtrireme.so TRIREME_TOOL=$build/trireme TRIREME_CACHE=$results/cache
# What PyPI gave: wasmtime and NVRTC are looked for in an active virtual environment; ptxas is a command.
export VIRTUAL_ENV=$PWD/.venv
command -v ptxas >/dev/null || for folder in .venv/lib/python3*/site-packages/nvidia/*/bin; do PATH=$PATH:$PWD/$folder; done

# run_ctest NAME ARGUMENT...: GoogleTest programs write NAME/gtest/PROGRAM.xml by themselves.
run_ctest() {
  local name=$1 began=$SECONDS
  shift
  GTEST_OUTPUT=xml:$results/$name/gtest/ ctest --test-dir "$build" --parallel "$(nproc)" --output-on-failure \
    --no-tests=error --output-junit "$results/$name/ctest.xml" "$@" || failed=1
  echo "ctest ($name): $((SECONDS - began)) s"
}
run_ctest native
# As on machines with AVX2 alone; then as on those with neither, where the reference serves.
TRIREME_HIDE=avx512 run_ctest without_avx512 --label-regex machine
TRIREME_HIDE=avx2 run_ctest without_avx2 --label-regex machine

mapfile -t js_tests < <(find js -not -path '*/node_modules/*' -regex '.*[._]test\.[cm]?js' | sort)
node --test --test-reporter=tap "${js_tests[@]}" >"$results/node.tap" || failed=1
grep -qE '^ *not ok' "$results/node.tap" && cat "$results/node.tap"

if grep -q '^CMAKE_CXX_FLAGS:.*-fsanitize' "$build/CMakeCache.txt"; then
  echo "no Python tests: a sanitizer's library does not load into a plain python"
else
  export TRIREME_PACKAGE=$build/python
  .venv/bin/python -m pytest -q python/tests --junitxml "$results/pytest.xml" || failed=1
  TRIREME_HIDE=avx2 .venv/bin/python -m pytest -q python/tests/test_core.py --junitxml "$results/without_avx2/pytest.xml" ||
    failed=1
fi

python3 tools/test_summary.py "$results" || failed=1
exit $failed

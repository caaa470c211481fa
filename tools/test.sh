#!/usr/bin/env bash
# Usage: test.sh BUILD_FOLDER
# Runs the C++ tests, the JavaScript tests and the Python tests, then says how many passed, failed and were skipped.
# Each part leaves its results under BUILD_FOLDER/results, where test_summary.py reads them.
set -uo pipefail
cd "$(dirname "$0")/.."
build=$(realpath "$1")
results=$build/results
rm -rf "$results"
mkdir -p "$results"

failed=0
skip_part() { echo "$1" | tee -a "$results/skipped.txt"; }

# For tests in other languages; and no test sees kernels of an earlier build.
export TRIREME_LIBRARY=$build/libtrireme.so TRIREME_TOOL=$build/trireme TRIREME_CACHE=$results/cache

# The venv is made once, and again when what it should hold changes.
make_venv() {
  local wanted
  wanted=$(grep -v '^#' tests/requirements.txt)
  [[ -f .venv/holds && $(<.venv/holds) == "$wanted" ]] && return
  python3 -m venv --clear .venv && .venv/bin/pip install --quiet --requirement tests/requirements.txt &&
    echo "$wanted" >.venv/holds
}
venv_made=yes
make_venv || { venv_made=no && skip_part "no .venv with what tests/requirements.txt lists could be made"; }

# GoogleTest programs write results/gtest/PROGRAM.xml by themselves.
GTEST_OUTPUT=xml:$results/gtest/ ctest --test-dir "$build" --parallel "$(nproc)" --output-on-failure --no-tests=error \
  --output-junit "$results/ctest.xml" || failed=1

mapfile -t js_tests < <(find js -not -path '*/node_modules/*' -regex '.*[._]test\.[cm]?js' 2>/dev/null | sort)
if ((${#js_tests[@]})); then
  if command -v node >/dev/null; then
    node --test --test-reporter=tap "${js_tests[@]}" >"$results/node.tap" || failed=1
    grep -qE '^ *not ok' "$results/node.tap" && cat "$results/node.tap"
  else
    skip_part "js/: node is not installed"
  fi
fi

if [[ -d python/tests ]]; then
  if grep -q '^CMAKE_CXX_FLAGS:.*-fsanitize' "$build/CMakeCache.txt"; then
    skip_part "python/: a sanitizer's library does not load into a plain python"
  elif [[ ! -f $build/python/trireme/_core.abi3.so ]]; then
    skip_part "python/: no Python headers when it was built (python3-dev)"
  elif [[ $venv_made == yes ]]; then
    TRIREME_PACKAGE=$build/python .venv/bin/python -m pytest -q python/tests --junitxml "$results/pytest.xml" || failed=1
  else
    skip_part "python/: no .venv"
  fi
fi

python3 tools/test_summary.py "$results" || failed=1
exit $failed

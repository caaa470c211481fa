#!/usr/bin/env bash
# Usage: test_all.sh [clang|web|asan|tsan|models|wheels|benches|aarch64 ...]
# What `make test-all` adds to `make test`: clang's build, file by file, whose kernels must be g++'s to the byte; the compiler
# in browsers; tests of memory and threads under sanitizers; every model that transformers can build, and eight processes; a
# longer run of the Python fuzzer; a manylinux wheel made from nothing; AArch64's code under emulation.
# With BEGIN_WITHIN=SECONDS, a part that would begin later is left out, and named.
set -uo pipefail
cd "$(dirname "$0")/.."
export VIRTUAL_ENV=$PWD/.venv
failed=0

part() {
  local name=$1 began=$SECONDS
  shift
  if ((SECONDS > ${BEGIN_WITHIN:-SECONDS})); then
    echo "test-all: $name NOT RUN, $SECONDS s are over"
    return
  fi
  echo "test-all: $name"
  if "$@"; then
    echo "test-all: $name passed, $((SECONDS - began)) s"
  else
    echo "test-all: $name FAILED, $((SECONDS - began)) s"
    failed=1
  fi
}

# build PRESET TARGET...: prints what the compiler says only if it fails.
build() {
  local preset=$1
  local log=build/$preset/build.log
  shift
  mkdir -p "build/$preset"
  { cmake --preset "$preset" && ninja -C "build/$preset" "$@"; } >"$log" 2>&1 || { tail -n 60 "$log"; return 1; }
}

# run PRESET FILTER PROGRAM...: prints a program's output only if it fails.
run() {
  local preset=$1 filter=$2 program
  shift 2
  for program in "$@"; do
    GTEST_BRIEF=1 "build/$preset/$program" --gtest_filter="$filter" >"build/$preset/$program.log" 2>&1 ||
      { tail -n 60 "build/$preset/$program.log"; return 1; }
    echo "$preset $program: $(grep -E '^\[  PASSED' "build/$preset/$program.log")"
  done
}

by_clang() {
  build clang trireme test_math test_language test_passes test_schedule test_targets test_plan test_conformance || return
  run clang '*' test_math test_language test_passes test_schedule test_targets &&
    run clang 'PinnedKernels.*:Operators*:Plan*' test_plan && run clang 'Conformance*' test_conformance
}
# Left out: tests of seconds and of memory, which a sanitizer multiplies, and forks of a process with threads, whose child
# may find the sanitizer's own locks taken. `make test` runs them.
under_asan() {
  build asan test_language test_passes test_layout test_devices test_c_api test_plan test_conformance || return
  run asan '-*Exhaustive*:*take_seconds*:*AThousandTimes*' test_language test_passes test_layout test_devices test_c_api &&
    run asan 'Plan*:CpuFaults*:Preferences*:Builder*:-*ForkedChild*' test_plan && run asan 'Conformance*' test_conformance
}
under_tsan() {
  export TSAN_OPTIONS="suppressions=$PWD/tests/tsan.supp"
  build tsan test_devices test_plan || return
  run tsan 'Parallel*:KernelCache*:WasmHost*' test_devices && run tsan 'Plan.*:PlanCache*:CpuFaults*' test_plan
}
every_model() {
  TRIREME_ALL_MODELS=1 TRIREME_PACKAGE=$PWD/build/release/python TRIREME_TOOL=$PWD/build/release/trireme \
    .venv/bin/python -m pytest -q python/tests/test_torch_models.py python/tests/test_torch_parallel.py \
    python/tests/test_train_step.py
}

# The wheel of this machine's processor, as tools/wheels.sh makes it from nothing: installed beside no other package, its tool
# runs.
wheels() {
  local folder=build/wheels made
  rm -rf "$folder" "build/wheel_$(uname -m)"
  made=$(PIP_OPTIONS=--no-build-isolation PYTHON=.venv/bin/python tools/wheels.sh "$(uname -m)" | tail -n 1) || return
  python3 -m venv "$folder" && "$folder/bin/pip" install --quiet --no-deps --no-index "$made" || return
  "$folder/bin/trireme" verify "rms_norm 33x4097 x=bf16 backward" --device cpu || return
  echo "wheels: $made, $(du -h "$made" | cut -f1)"
}

# The compiler in browsers: its kernels are those of g++ and, where it was built, of clang.
in_browsers() {
  local hashes=build/release/kernel_hashes log=build/web.log
  build release trireme kernel_hashes python_package || return
  if [[ -d build/clang ]]; then
    build clang kernel_hashes || return
    hashes+=:build/clang/kernel_hashes
  fi
  tools/web.sh >"$log" 2>&1 || { tail -n 60 "$log"; return 1; }
  tail -n 1 "$log"
  TRIREME_KERNEL_HASHES=$hashes node --test --test-concurrency=1 web/tests/*.test.mjs >build/web_tests.log ||
    { tail -n 200 build/web_tests.log; return 1; }
  grep -E '^# (tests|pass|fail|duration|NOT compared)' build/web_tests.log
  echo "screenshots: $PWD/build/web/screenshots"
}

# AArch64, cross-built and emulated (qemu-user): its device alone, held to the reference there, and the digests of every
# operator's problems to those that this machine's processor gives.
emulated() {
  local device=cpu:neon
  build aarch64 trireme_tool trireme_shared python_package test_plan test_conformance || return
  build release trireme_tool || return
  printf '#!/bin/sh\nexec qemu-aarch64 -cpu max -L /usr/aarch64-linux-gnu "${0%%/*}/trireme" "$@"\n' >build/aarch64/emulated
  chmod +x build/aarch64/emulated
  digests_of build/release/trireme cpu >build/aarch64/wanted.txt || return
  for hidden in "" neon_bf16; do
    TRIREME_HIDE=$hidden digests_of build/aarch64/emulated $device >build/aarch64/got.txt || return
    diff build/aarch64/wanted.txt build/aarch64/got.txt || return
    echo "aarch64: $(wc -l <build/aarch64/got.txt) digests are this machine's${hidden:+, without $hidden}"
  done
  export TRIREME_TEST_DEVICES=$device QEMU_CPU=max QEMU_LD_PREFIX=/usr/aarch64-linux-gnu
  for program in test_conformance test_plan; do
    GTEST_BRIEF=1 qemu-aarch64 "build/aarch64/$program" \
      --gtest_filter='Conformance*:CrossTarget*:Across*:ColumnSums*:CpuFaults*:-*ForkedChild*' \
      >"build/aarch64/$program.log" 2>&1 || { tail -n 60 "build/aarch64/$program.log"; return 1; }
    echo "aarch64 $program: $(grep -E '^\[  PASSED' "build/aarch64/$program.log")"
  done
  .venv/bin/python tests/fuzz --tool build/aarch64/emulated --device $device --count 20 --patience 30 \
    --failures build/aarch64/fuzz_failures
}
# digests_of TOOL DEVICE: each problem of every operator with the digest of its results.
digests_of() {
  "$1" verify --all --device "$2" >build/digests.log || { tail -n 20 build/digests.log; return 1; }
  awk '/same bits/ && !seen[problem]++ { print problem, $2 } !/^ / { problem = $0 }' build/digests.log
}

[[ $# -gt 0 ]] || set -- clang web asan tsan models wheels benches aarch64
for name in "$@"; do
  case $name in
    clang) part "clang's build and kernels" by_clang ;;
    web) part "the compiler in browsers" in_browsers ;;
    asan) part "address and undefined-behaviour sanitizers" under_asan ;;
    tsan) part "thread sanitizer" under_tsan ;;
    models) part "every model" every_model ;;
    wheels) part "manylinux wheel" wheels ;;
    benches) part "benches compile" build release benches ;;
    aarch64) part "AArch64, emulated" emulated ;;
    *) echo "test-all: there is no part '$name'"; failed=1 ;;
  esac
done
exit $failed

#!/usr/bin/env bash
# Checks and measures on a machine with an NVIDIA GPU and nothing else of ours: bits first, then races, then speed.
# Takes the folder of statically linked programs (`cmake --preset static && ninja -C build/static gpu_programs`) and, for the
# parts python and peers, the folder of the Python package (`ninja -C build/release python_package`), which want torch.
#   bench/gpu.sh FOLDER OUTPUT_FOLDER PACKAGE_FOLDER [PART ...]
# Parts, all of them unless some are named: bits canaries races table bench small tune counters textbook first python peers;
# and, when named: digests (of web/page/digests.json's problems, for web/record_digests.mjs; by another device if DEVICE names one), lines (times the problem lines of
# the file LINES).
set -uo pipefail
programs=${1:-build/static} out=${2:-.} package=${3:-build/release/python}
shift $(($# < 3 ? $# : 3))
here=$(dirname "$0")
status=0

# run LOG COMMAND...: the end of what it says, and whether it failed.
run() {
  local log=$out/$1
  shift
  "$@" >>"$log" 2>&1 || { echo "FAILED: $*"; status=1; }
  tail -n 3 "$log"
}
check() { "$programs/trireme" verify "$@" --device cuda | grep -v oracle || status=1; }

bits() {  # every digest is the reference's
  run conformance.txt "$programs/test_conformance" --gtest_filter='Conformance*'
  run contract.txt "$programs/test_contract"
  run driver.txt "$programs/test_devices" --gtest_filter='Real*:JitOnAGpu.*'
  run examples.txt "$programs/test_examples" --gtest_filter='PerHeadRmsnorm.*'
  run operators.txt "$programs/trireme" verify --all --device cuda
  check "rms_norm 33x4097 x=bf16 backward" "rms_norm 65x65536 x=bf16" "rms_norm 65x65536 x=bf16 backward" \
    "rms_norm 1000x128 x=bf16 backward" "rms_norm 3x20000 x=f32 backward" "layer_norm 17x131072 x=bf16 backward"
}

# Operators, types, shapes, layouts and schedules on a stream of their own, canaries around every buffer; graphs, threads,
# forks, beyond 2^32 elements.
canaries() {
  for program in test_conformance test_plan; do
    LONG=1 "$programs/$program" --gtest_filter='OnGpu.*' >>"$out/on_gpu.txt" 2>&1 || status=1
  done
  grep -E '^\[ +(OK|FAILED|SKIPPED) +\]|problems$|schedules$|host time' "$out/on_gpu.txt"
}

races() {
  command -v compute-sanitizer >/dev/null || return
  for tool in memcheck racecheck initcheck; do
    for line in "rms_norm 9x257 x=bf16 backward" "rms_norm 40x4096 x=bf16 backward" "rms_norm 5x33000 backward" \
                "rms_norm_heads 9x64 heads=3 backward" "dynamic_tanh 7x300 backward"; do
      if compute-sanitizer --tool $tool --error-exitcode 9 "$programs/trireme" verify "$line" --device cuda \
          >"$out/$tool.txt" 2>&1; then echo "$tool  $line  clean"; else echo "$tool  $line  FAILED"; status=1; fi
    done
  done
}

table() {  # share of a device copy of the same bytes in the same run
  timeout 400 "$programs/gpu_table" --seconds "${SECONDS_FOR_TABLE:-240}" | tee "$out/table.txt" | grep "^#"
  local then
  for then in h200_bar h200; do  # the first table that was recorded, and the last
    [[ ! -f $here/tables/$then.txt ]] || { echo "now against $then"; python3 "$here/against.py" "$here/tables/$then.txt" "$out/table.txt"; }
  done
}

time_lines() { for line in "$@"; do timeout 60 "$programs/trireme" bench "$line" --device cuda --seconds 0.5; done 2>&1; }
bench() {  # device time by graphs and events, the host's apart
  time_lines "rms_norm 16384x4096 x=bf16" "rms_norm 16384x4096 x=bf16 backward" "softmax 8192x8192 x=bf16" \
    "rms_norm_heads 65536x128 x=bf16 heads=32 backward" "rms_norm 8x4096 x=bf16" | tee "$out/bench.txt"
}
lines() {
  local wanted
  mapfile -t wanted <"$LINES"
  time_lines "${wanted[@]}" | tee "$out/lines.txt"
}

small() { timeout 60 "$programs/small_batches" | tee "$out/small_batches.txt" || status=1; }

tune() {  # the winner is kept, and a plan takes it
  local tuned line="rms_norm 2048x5120 backward"
  tuned=$(mktemp -d)
  TRIREME_CACHE=$tuned timeout 60 "$programs/trireme" tune "$line" --device cuda || status=1
  TRIREME_CACHE=$tuned check "$line"
  rm -rf "$tuned"
}

counters() {  # what bounds what
  command -v ncu >/dev/null || return
  python3 "$here/gpu_counters.py" "$programs" rms_norm:4096 rms_norm:65536 rms_norm:backward:4096 \
    rms_norm:backward:18432 rms_norm:backward:f32:5120 layer_norm:16384 layer_norm:65536 layer_norm:backward:4096 \
    layer_norm:backward:131072 softmax:128 softmax:65536 add_rms_norm:8192 geglu:backward:8192 \
    rms_norm_columns:backward:128 rms_norm_columns:backward:4096 | tee "$out/counters.md"
}

textbook() {  # examples/jit's norms, held to the oracle: the baseline of the table
  timeout 200 "$programs/textbook" "$here/../examples/jit/normalization.cu" 256 >"$out/textbook.txt" 2>&1 || status=1
  grep -E '^(FAIL|skipped|NVRTC|share|rms_norm|layer_norm)' "$out/textbook.txt"
}

first() {  # from text to the first result: compiled, from our disk cache, by the driver's own cache, by no cache
  local kept
  kept=$(mktemp -d)
  for setting in "TRIREME_CACHE=$kept CUDA_CACHE_DISABLE=1" "TRIREME_CACHE=$kept CUDA_CACHE_DISABLE=1" \
                 "TRIREME_CACHE=off" "TRIREME_CACHE=off" "TRIREME_CACHE=off CUDA_CACHE_DISABLE=1"; do
    echo "-- $setting"
    env $setting timeout 60 "$programs/first_result" rms_norm layer_norm softmax
  done 2>&1 | tee "$out/first_result.txt"
  TRIREME_CACHE=$kept "$programs/trireme" cache verify || status=1
  rm -rf "$kept"
}

digests() {
  local recorded=$here/../web/page/digests.json
  python3 -c 'import json, sys; print(*json.load(open(sys.argv[1]))["problems"], sep="\0", end="\0")' "$recorded" |
    xargs -0 -r "$programs/trireme" verify --json --device "${DEVICE:-cuda}" >"$out/digests.json" || status=1
  python3 - "$recorded" "$out/digests.json" <<'END' || status=1
import json, sys
asked, found = (json.load(open(file))["problems"] for file in sys.argv[1:])
runs = {each["problem"]: each["devices"] for each in found}
failed = 0
for line in asked:
    said = {run["outcome"]: run["reason"] for run in runs.get(line, []) if run["outcome"] != "missing"} or {"not run": None}
    if said.keys() != {"same"}:
        failed += 1
        print(f"FAILED: {line}: {said}")
print(f"{len(asked) - failed} of {len(asked)} digests are the reference's")
sys.exit(failed > 0)
END
}

python() { bash "$here/gpu_python.sh" "$package" "$out" tests || status=1; }
peers() { bash "$here/gpu_python.sh" "$package" "$out" speed || status=1; }  # torch, torch.compile, Liger where importable

[[ $# -gt 0 ]] || set -- bits canaries races table bench small tune counters textbook first python peers
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
for part in "$@"; do
  began=$SECONDS
  echo "== $part"
  "$part"
  echo "== $part took $((SECONDS - began)) s"
done
exit $status

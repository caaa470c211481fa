#!/usr/bin/env bash
# Checks and measures on a machine with an NVIDIA GPU and nothing else of ours: bits first, then races, then speed.
# Takes the folder of statically linked programs (`cmake --preset static && ninja -C build/static gpu_programs`).
# With the folder of the Python package (`ninja -C build/release python_package`) and torch, also its tests and its peers.
#   bench/gpu.sh [FOLDER [OUTPUT FOLDER [PACKAGE FOLDER]]]
set -uo pipefail
programs=${1:-build/static}
out=${2:-.}
status=0

echo "== $(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader)"
echo "== bits: every digest is the reference's"
"$programs/test_plan" --gtest_filter='Conformance*' >"$out/conformance.txt" 2>&1 || status=1
tail -n 3 "$out/conformance.txt"
"$programs/test_devices" --gtest_filter='Real*:JitOnAGpu.*' >"$out/driver.txt" 2>&1 || status=1
tail -n 3 "$out/driver.txt"
# Operators, types, shapes, layouts and schedules on a stream of their own, canaries around every buffer; graphs,
# threads, forks, beyond 2^32 elements; the example's kernel.
LONG=1 "$programs/test_plan" --gtest_filter='OnGpu.*' >"$out/on_gpu.txt" 2>&1 || status=1
grep -E '^\[ +(OK|FAILED|SKIPPED) +\]|problems$|schedules$|host time' "$out/on_gpu.txt"
"$programs/test_examples" --gtest_filter='PerHeadRmsnorm.*' >"$out/examples.txt" 2>&1 || status=1
tail -n 3 "$out/examples.txt"
"$programs/trireme" verify --all --device cuda >"$out/operators.txt" 2>&1 || status=1
tail -n 1 "$out/operators.txt"
for line in "rms_norm 33x4097 x=bf16 backward" "rms_norm 65x65536 x=bf16" "rms_norm 65x65536 x=bf16 backward" \
            "rms_norm 1000x128 x=bf16 backward" "rms_norm 3x20000 x=f32 backward" "layer_norm 17x131072 x=bf16 backward"; do
  "$programs/trireme" verify "$line" --device cuda | grep -v oracle || status=1
done

if command -v compute-sanitizer >/dev/null; then
  echo "== compute-sanitizer"
  for tool in memcheck racecheck initcheck; do
    for line in "rms_norm 9x257 x=bf16 backward" "rms_norm 40x4096 x=bf16 backward" "rms_norm 5x33000 backward" \
                "rms_norm_heads 9x64 heads=3 backward" "dynamic_tanh 7x300 backward"; do
      if compute-sanitizer --tool $tool --error-exitcode 9 "$programs/trireme" verify "$line" --device cuda \
          >"$out/$tool.txt" 2>&1; then echo "$tool  $line  clean"; else echo "$tool  $line  FAILED"; status=1; fi
    done
  done
fi

echo "== speed: share of a device copy of the same bytes in the same run"
timeout 400 "$programs/gpu_table" --seconds 240 | tee "$out/table.txt" | grep "^#"
bar=$(dirname "$0")/tables/h200.txt
[[ ! -f $bar ]] || python3 "$(dirname "$0")/against.py" "$bar" "$out/table.txt"
echo "== bench: device time by graphs and events, the host's apart"
for line in "rms_norm 16384x4096 x=bf16" "rms_norm 16384x4096 x=bf16 backward" "softmax 8192x8192 x=bf16" \
            "rms_norm_heads 65536x128 x=bf16 heads=32 backward" "rms_norm 8x4096 x=bf16"; do
  timeout 60 "$programs/trireme" bench "$line" --device cuda --seconds 0.5
done 2>&1 | tee "$out/bench.txt"
echo "== small batches"
timeout 60 "$programs/small_batches" | tee "$out/small_batches.txt" || status=1

echo "== tune: the winner is kept, and a plan takes it"
tuned=$(mktemp -d)
for line in "rms_norm 2048x5120 backward"; do
  TRIREME_CACHE=$tuned timeout 60 "$programs/trireme" tune "$line" --device cuda || status=1
  TRIREME_CACHE=$tuned timeout 60 "$programs/trireme" verify "$line" --device cuda | grep -v oracle || status=1
done 2>&1 | tee "$out/tune.txt"
rm -rf "$tuned"
if command -v ncu >/dev/null; then
  echo "== counters: what bounds what"
  python3 "$(dirname "$0")/gpu_counters.py" "$programs" rms_norm:4096 rms_norm:65536 rms_norm:backward:4096 \
    rms_norm:backward:18432 rms_norm:backward:f32:5120 layer_norm:16384 layer_norm:65536 layer_norm:backward:4096 \
    layer_norm:backward:131072 softmax:128 softmax:65536 add_rms_norm:8192 geglu:backward:8192 \
    rms_norm_columns:backward:128 rms_norm_columns:backward:4096 | tee "$out/counters.md"
fi

echo "== the textbook's norms (examples/jit): held to the oracle, and the baseline of the table"
timeout 200 "$programs/textbook" "$(dirname "$0")/../examples/jit/normalization.cu" 256 >"$out/textbook.txt" 2>&1 || status=1
grep -E '^(FAIL|skipped|NVRTC|share|rms_norm|layer_norm)' "$out/textbook.txt"

echo "== from text to the first result: compiled, from our disk cache, by the driver's own cache, by no cache"
kept=$(mktemp -d)
for setting in "TRIREME_CACHE=$kept CUDA_CACHE_DISABLE=1" "TRIREME_CACHE=$kept CUDA_CACHE_DISABLE=1" \
               "TRIREME_CACHE=off" "TRIREME_CACHE=off" "TRIREME_CACHE=off CUDA_CACHE_DISABLE=1"; do
  echo "-- $setting"
  env $setting timeout 60 "$programs/first_result" rms_norm layer_norm softmax
done 2>&1 | tee "$out/first_result.txt"
TRIREME_CACHE=$kept "$programs/trireme" cache verify || status=1
rm -rf "$kept"
if [[ -n ${3:-} ]] && python3 -c 'import torch' 2>/dev/null; then
  echo "== peers: torch, torch.compile, Liger where it can be imported"
  bash "$(dirname "$0")/gpu_python.sh" "$3" "$out" || status=1
fi
exit $status

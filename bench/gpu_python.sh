#!/usr/bin/env bash
# The Python package on a machine with an NVIDIA GPU, Python and torch, and nothing else of ours: its tests, then its speed
# beside torch's, torch.compile's and Liger's. Takes the folder that holds the package (`ninja -C build/release
# python_package`; the one binary in it needs libc alone, so the folder may be carried there).
#   bench/gpu_python.sh [build/release/python [OUTPUT FOLDER [tests|speed]]]
set -uo pipefail
export TRIREME_PACKAGE=${1:-build/release/python}
out=${2:-.} part=${3:-}
python=${PYTHON:-python3}
status=0
export PYTHONPATH=$TRIREME_PACKAGE:python/tests${PYTHONPATH:+:$PYTHONPATH}

echo "== $(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader)"
"$python" -c "import sys, torch, trireme; print('== python', sys.version.split()[0], 'torch', torch.__version__, 'trireme', trireme.__version__)" || exit 1

tests() {  # those that have cases for a GPU
  if "$python" -c 'import pytest' 2>/dev/null; then
    "$python" -m pytest -q -rs python/tests/test_cuda.py python/tests/test_torch_faults.py python/tests/test_parity.py \
      python/tests/test_trace.py python/tests/test_one_digest.py 2>&1 | tee "$out/python_tests.txt" | tail -n 15
  else
    "$python" python/tests/test_cuda.py 2>&1 | tee "$out/python_tests.txt" | tail -n 40
  fi
  [[ ${PIPESTATUS[0]} == 0 ]] || status=1
}

speed() {  # share of a copy of the same bytes in the same run
  timeout "${SECONDS_FOR_PEERS:-420}" "$python" bench/peers_gpu.py --json "$out/peers_gpu.json" 2>"$out/peers_gpu.err" | tee "$out/peers_gpu.md" || { status=1; tail -n 5 "$out/peers_gpu.err"; }
}

if [[ -n $part ]]; then "$part"; else tests; speed; fi
exit $status

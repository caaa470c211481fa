#!/usr/bin/env python3
"""Trireme beside its peers on a CPU, best times in ms: PyTorch eager and compiled (written for 2.13.0) and oneDNN
(Debian's libdnnl-dev), each in its own process, one after the other for each operator. What is not installed is skipped,
with the reason."""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--build", default="build/release", type=pathlib.Path)
parser.add_argument("--rows", default=4096, type=int)
parser.add_argument("--columns", default=4096, type=int)
parser.add_argument("--threads", default=1, type=int)
parser.add_argument("--seconds", default=0.5, type=float)
options = parser.parse_args()

# Peers allocate results in every call: without this they would be timed on fresh pages of the system each time.
os.environ["OMP_NUM_THREADS"] = str(options.threads)
if "MALLOC_TRIM_THRESHOLD_" not in os.environ:
    os.environ.update(MALLOC_MMAP_THRESHOLD_=str(1 << 36), MALLOC_TRIM_THRESHOLD_=str(1 << 36))
    os.execv(sys.executable, [sys.executable, *sys.argv])


def ours(name, kind, backward):
    line = f"{name} {options.rows}x{options.columns}" + " x=bf16" * (kind == "bf16") + " backward" * backward
    command = [options.build / "trireme", "bench", line, "--threads", str(options.threads), "--json", "--device"]
    command += ["cpu:avx512", "--seconds", str(2 * options.seconds)]
    own = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")}
    measured = json.loads(subprocess.run(command, check=True, capture_output=True, text=True, env=own).stdout)[0]
    return measured["run"]["best_seconds"], measured["copies"]["streaming copy"]["best_seconds"]


def onednn():
    """(operator, type, direction) -> seconds."""
    source = pathlib.Path(__file__).parent / "peers" / "onednn.cpp"
    with tempfile.TemporaryDirectory() as folder:
        program = pathlib.Path(folder) / "onednn"
        built = subprocess.run(["g++", "-std=c++17", "-O2", source, "-o", program, "-ldnnl"], capture_output=True, text=True)
        if built.returncode:
            return print("oneDNN skipped:", built.stderr.splitlines()[0] if built.stderr else "does not build") or {}
        run = [program, str(options.rows), str(options.columns), str(options.seconds)]
        lines = subprocess.run(run, check=True, capture_output=True, text=True).stdout.splitlines()
    return {tuple(words[:3]): float(words[3]) for words in map(str.split, lines)}


def best(work):
    work()
    found, start = [], time.perf_counter()
    while len(found) < 3 or time.perf_counter() - start < options.seconds:
        before = time.perf_counter()
        work()
        found.append(time.perf_counter() - before)
    return min(found)


try:
    import torch
    import torch.nn.functional as F

    torch.set_num_threads(options.threads)
    shape = (options.columns,)
    FUNCTIONS = {
        "rms_norm": (lambda x, g: F.rms_norm(x, shape, g, 1e-6), 1),
        "layer_norm": (lambda x, g, b: F.layer_norm(x, shape, g, b), 2),
        "softmax": (lambda x: torch.softmax(x, -1), 0),
        "swiglu": (lambda x, gate: F.silu(gate) * x, -1),
    }
except ImportError as missing:
    print(f"torch skipped: {missing}")
    torch, FUNCTIONS = None, dict.fromkeys(["rms_norm", "layer_norm", "softmax", "swiglu"])


def of_torch(name, kind):
    """[(forward, backward) of eager, of compiled] in seconds."""
    if not torch:
        return [("–", "–")] * 2
    function, weights = FUNCTIONS[name]
    dtype = torch.float32 if kind == "f32" else torch.bfloat16
    arguments = [torch.randn(options.rows, options.columns, dtype=dtype)]
    if weights < 0:
        arguments.append(torch.randn(options.rows, options.columns, dtype=dtype))
    arguments += [torch.randn(options.columns, dtype=dtype) for _ in range(max(weights, 0))]
    times = []
    for called in [function, torch.compile(function)]:
        with torch.no_grad():
            forward = best(lambda: called(*arguments))
        wanted = [each.clone().requires_grad_() for each in arguments]
        result = called(*wanted)
        gradient = torch.randn_like(result)
        times.append((forward, best(lambda: torch.autograd.grad(result, wanted, gradient, retain_graph=True))))
    return times


peers = onednn()
shown = lambda seconds: f"{seconds * 1e3:.2f}" if isinstance(seconds, float) else "–"
print(f"\n{options.rows}x{options.columns}, {options.threads} thread(s), torch {torch.__version__ if torch else 'missing'}; ms\n")
print("| | copy | trireme | torch eager | torch.compile | oneDNN |\n| --- |" + " --- |" * 5)
for kind in ["f32", "bf16"]:
    for name in FUNCTIONS:
        eager, compiled = of_torch(name, kind)
        for backward, direction in enumerate(["forward", "backward"]):
            run, copy = ours(name, kind, backward)
            row = [copy, run, eager[backward], compiled[backward], peers.get((name, kind, direction))]
            print(f"| {name} {kind} {direction} | " + " | ".join(map(shown, row)) + " |", flush=True)

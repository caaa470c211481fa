#!/usr/bin/env python3
"""The CPU table of docs/performance.md: the best time of a run by the best time of a streaming copy of the same bytes,
which take turns. --free: RMSNorm in cache beside plain C++ (ninja -C BUILD free_rms first)."""

import argparse
import json
import pathlib
import subprocess

OPERATORS = ["rms_norm", "layer_norm", "add_rms_norm", "softmax", "swiglu"]
BACKWARD = ["rms_norm", "layer_norm", "softmax", "swiglu"]
SHAPES = ["4096x4096", "3200x5120", "65536x128", "256x65536"]

options = argparse.ArgumentParser(description=__doc__)
options.add_argument("--build", default="build/release", type=pathlib.Path)
options.add_argument("--device", default="cpu:avx512")
options.add_argument("--seconds", default="0.5")
options.add_argument("--rounds", default=2, type=int, help="the best of so many processes")
options.add_argument("--shapes", nargs="*", default=SHAPES)
options.add_argument("--threads", nargs="*", default=["1", "2"])
options.add_argument("--free", action="store_true")
options = options.parse_args()


def ratio(line, threads):
    command = [options.build / "trireme", "bench", line, "--device", options.device, "--threads", threads]
    command += ["--seconds", options.seconds, "--json"]
    runs, copies = [], []
    for _ in range(options.rounds):
        measured = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)[0]
        runs.append(measured["run"]["best_seconds"])
        copies.append(measured["copies"]["streaming copy"]["best_seconds"])
    return f"{min(runs) / min(copies):.2f}"



if options.free:
    raise SystemExit(subprocess.run([options.build / "free_rms"]).returncode)
columns = [(kind, threads) for kind in ["f32", "bf16"] for threads in options.threads]
for shape in options.shapes:
    print(f"\n| {shape} | " + " | ".join(f"{kind}, {threads} thr" for kind, threads in columns) + " |")
    print("| --- |" + " --- |" * len(columns))
    for line in [f"{name} {shape}" for name in OPERATORS] + [f"{name} {shape} backward" for name in BACKWARD]:
        cells = []
        for kind, threads in columns:
            cells.append(ratio(line if kind == "f32" else f"{line} x={kind}", threads))
        print(f"| {line.replace(' ' + shape, '')} | " + " | ".join(cells) + " |", flush=True)

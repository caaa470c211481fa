#!/usr/bin/env python3
"""What a call costs the host: layer_norm of one row of 16 columns (on a GPU too: the host alone is timed, the device has next to
nothing to do), by Trireme and by torch itself. Without gradients, forward and backward, and both inside torch.compile; the least
of many rounds, Trireme's and torch's in turn.

    PYTHONPATH=build/release/python python3 bench/host_time.py [--device cuda] [--rounds 60] [--json host.json]

The goals: without gradients torch's + 2 us; with them torch's + 20 %; compiled 1.2 times what Inductor's own code takes.
"""
import argparse
import json
import time

import torch
import torch.nn.functional as F

import trireme
import trireme.torch as tt

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
parser.add_argument("--rounds", type=int, default=60)
parser.add_argument("--calls", type=int, default=200, help="in a round")
parser.add_argument("--json", help="write all numbers to this file")
options = parser.parse_args()

COLUMNS = 16


def microseconds(works):
    """Of each, in turn, so that all see the same machine."""
    best = [float("inf")] * len(works)
    for _ in range(options.rounds):
        for k, work in enumerate(works):
            start = time.perf_counter()
            for _ in range(options.calls):
                work()
            best[k] = min(best[k], (time.perf_counter() - start) / options.calls)
            if options.device != "cpu":
                torch.cuda.synchronize()
    return [each * 1e6 for each in best]


def norm_of(module):
    return lambda x, w, b: module.layer_norm(x, (COLUMNS,), w, b, 1e-5)


def compiled(function, *operands):
    made = torch.compile(lambda *each: function(*each))  # a function of its own: compiled once for each use
    made(*operands)
    return made


def main():
    torch.set_num_threads(1)
    x, w, b, dy = (torch.ones(*shape, device=options.device) for shape in ((1, COLUMNS), (COLUMNS,), (COLUMNS,), (1, COLUMNS)))
    leaves = [each.clone().requires_grad_() for each in (x, w, b)]
    ours, theirs = norm_of(tt), norm_of(F)
    rows = {}

    def both(function):
        return lambda: torch.autograd.grad(function(*leaves), leaves, dy)

    with torch.no_grad():
        rows["no gradients"] = microseconds([lambda: ours(x, w, b), lambda: theirs(x, w, b)])
        rows["no gradients, compiled"] = microseconds([
            (lambda made=compiled(each, x, w, b): made(x, w, b)) for each in (ours, theirs)])
        overload = torch.ops.trireme.layer_norm.default
        raw = microseconds([lambda: trireme.layer_norm(x, w, b, eps=1e-5), lambda: overload(x, w, b, 1e-5, 1, "", 1)])
    rows["forward"] = microseconds([lambda: ours(*leaves), lambda: theirs(*leaves)])
    rows["forward and backward"] = microseconds([both(ours), both(theirs)])
    rows["forward and backward, compiled"] = microseconds([both(compiled(each, *leaves)) for each in (ours, theirs)])

    where = torch.cuda.get_device_name() if options.device != "cpu" else "CPU"
    print(f"{where}, torch {torch.__version__}: layer_norm of 1 x {COLUMNS}, us of the host\n")
    print("| call | Trireme | torch | ratio |\n| --- | --- | --- | --- |")
    for name, (mine, other) in rows.items():
        print(f"| {name} | {mine:.1f} | {other:.1f} | {mine / other:.2f} |")
    print(f"\ntrireme.layer_norm, the raw path: {raw[0]:.1f} us; torch.ops.trireme.layer_norm: {raw[1]:.1f} us")
    if options.json:
        with open(options.json, "w") as file:
            json.dump(dict(rows=rows, raw=raw, device=where, torch=torch.__version__), file, indent=1)


main()

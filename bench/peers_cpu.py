#!/usr/bin/env python3
"""PyTorch's CPU kernels, eager and compiled, beside a copy of the same bytes in the same process: the peers' rows of
docs/performance.md. Written for torch 2.13.0; without torch it says so and ends well."""

import argparse
import time

options = argparse.ArgumentParser(description=__doc__)
options.add_argument("--rows", default=4096, type=int)
options.add_argument("--columns", default=4096, type=int)
options.add_argument("--threads", default=1, type=int)
options.add_argument("--seconds", default=1.0, type=float)
options = options.parse_args()

try:
    import torch
    import torch.nn.functional as F
except ImportError as missing:
    raise SystemExit(print(f"skipped: {missing}"))

torch.set_num_threads(options.threads)
shape = (options.columns,)


def swiglu(x, gate):
    return F.silu(gate) * x


FORWARD = {
    "rms_norm": (lambda x, g: F.rms_norm(x, shape, g, 1e-6), "row+weight"),
    "layer_norm": (lambda x, g: F.layer_norm(x, shape, g), "row+weight"),
    "softmax": (lambda x: torch.softmax(x, -1), "row"),
    "swiglu": (swiglu, "row+row"),
}


def best(work, seconds=options.seconds):
    work()
    found, start = [], time.perf_counter()
    while len(found) < 3 or time.perf_counter() - start < seconds:
        before = time.perf_counter()
        work()
        found.append(time.perf_counter() - before)
    return min(found)


print(f"torch {torch.__version__}, {options.threads} threads, {options.rows}x{options.columns}: times of a copy")
for kind in [torch.float32, torch.bfloat16]:
    for name, (function, takes) in FORWARD.items():
        arguments = [torch.randn(options.rows, options.columns, dtype=kind)]
        if takes != "row":
            arguments.append(torch.randn(*((options.rows,) if takes == "row+row" else ()), options.columns, dtype=kind))
        moved = sum(each.nbytes for each in arguments) + arguments[0].nbytes
        source = torch.ones(moved // 8, dtype=torch.float32)
        target = torch.empty_like(source)
        copy = best(lambda: target.copy_(source))
        for way, called in [("eager", function), ("compiled", torch.compile(function))]:
            with torch.no_grad():
                forward = best(lambda: called(*arguments))
            wanted = [each.clone().requires_grad_() for each in arguments]
            result = called(*wanted)
            gradient = torch.randn_like(result)
            backward = best(lambda: torch.autograd.grad(result, wanted, gradient, retain_graph=True))
            print(f"{name:12} {str(kind)[6:]:9} {way:9} forward {forward / copy:5.2f}  backward {backward / copy / 1.5:5.2f}")

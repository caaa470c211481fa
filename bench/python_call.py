#!/usr/bin/env python3
"""What a cached call from Python costs: rms_norm of one row of 16 columns, whose kernel takes some 20 ns. PYTHONPATH must name
the package (build/release/python)."""
import time

import numpy

import trireme


def microseconds(work, rounds=200, calls=500):
    best = float("inf")
    for _ in range(rounds):
        start = time.perf_counter()
        for _ in range(calls):
            work()
        best = min(best, (time.perf_counter() - start) / calls)
    return best * 1e6


def report(what, x, gamma, out):
    print(f"{what:6} result made {microseconds(lambda: trireme.rms_norm(x, gamma)):.2f} us, "
          f"given {microseconds(lambda: trireme.rms_norm(x, gamma, out=out)):.2f} us")


x = numpy.ones((1, 16), numpy.float32)
report("numpy", x, x[0].copy(), numpy.empty_like(x))
try:
    import torch
except ImportError as missing:
    raise SystemExit(print(f"torch  skipped: {missing}"))
report("torch", torch.from_numpy(x), torch.ones(16), torch.empty(1, 16))

import trireme.torch as tt

x, w, dy = torch.ones(1, 16, requires_grad=True), torch.ones(16, requires_grad=True), torch.ones(1, 16)
for what, function in [("trireme.torch", tt.rms_norm), ("torch itself", torch.nn.functional.rms_norm)]:
    with torch.no_grad():
        forward = microseconds(lambda: function(x, (16,), w, 1e-6), calls=100)
    both = microseconds(lambda: torch.autograd.grad(function(x, (16,), w, 1e-6), (x, w), dy), 50, 100)
    print(f"{what}: forward {forward:.1f} us, with backward {both:.1f} us")

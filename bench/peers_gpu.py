#!/usr/bin/env python3
"""Trireme, torch eager, torch.compile and Liger on one GPU, in one run, beside copies of the same bytes.

Device time: events around calls on arrays that outgrow the caches, so that the host runs ahead. A share is the copy's time
by the kernel's: 1.00 is what memory gives. Every result is compared with torch's in f32 before it is timed. Host time:
calls on tiny arrays without waiting. The tables are Markdown; --json keeps all numbers.
"""
import argparse
import json
import math
import sys
import time

import torch
import torch.nn.functional as F

import trireme
import trireme.torch as tt

try:
    from liger_kernel.ops.layer_norm import LigerLayerNormFunction
    from liger_kernel.ops.rms_norm import LigerRMSNormFunction
    from liger_kernel.ops.softmax import LigerSoftmaxFunction
    from liger_kernel.ops.swiglu import LigerSiLUMulFunction
    liger_missing = ""
except ImportError as error:
    liger_missing = str(error)

options = argparse.ArgumentParser(description=__doc__)
options.add_argument("--mebibytes", type=int, default=256, help="of an [i,j] array")
options.add_argument("--columns", type=int, nargs="*", default=[2**k for k in range(7, 18)])
options.add_argument("--compiled", type=int, nargs="*", default=[1024, 4096, 16384],
                     help="columns at which torch.compile takes part: it compiles each anew")
options.add_argument("--type", default="bfloat16", choices=["bfloat16", "float16", "float32"])
options.add_argument("--json")
options = options.parse_args()
if not torch.cuda.is_available():
    raise SystemExit(print("skipped: no CUDA device"))
kind = getattr(torch, options.type)


def contenders(name, columns, compiled=None):
    """Name -> (function of the operands)."""
    shape = (columns,)
    torchs = {
        "rms_norm": lambda x, w: F.rms_norm(x, shape, w, 1e-6),
        "layer_norm": lambda x, w, b: F.layer_norm(x, shape, w, b, 1e-5),
        "softmax": lambda x: torch.softmax(x, -1),
        "swiglu": lambda x, gate: F.silu(gate) * x,
    }[name]
    found = {
        "trireme": {
            "rms_norm": lambda x, w: tt.rms_norm(x, shape, w, 1e-6),
            "layer_norm": lambda x, w, b: tt.layer_norm(x, shape, w, b, 1e-5),
            "softmax": lambda x: tt.softmax(x, -1),
            "swiglu": lambda x, gate: tt.swiglu(x, gate),
        }[name],
        "torch": torchs,
    }
    if columns in options.compiled if compiled is None else compiled:
        torch._dynamo.reset()
        found["torch.compile"] = torch.compile(torchs, dynamic=False)
    if not liger_missing:
        found["liger"] = {
            "rms_norm": lambda x, w: LigerRMSNormFunction.apply(x, w, 1e-6),
            "layer_norm": lambda x, w, b: LigerLayerNormFunction.apply(x, w, b, 1e-5),
            "softmax": lambda x: LigerSoftmaxFunction.apply(x),
            "swiglu": lambda x, gate: LigerSiLUMulFunction.apply(gate, x),
        }[name]
    return found


ARRAYS = {"rms_norm": (2, 3), "layer_norm": (2, 3), "softmax": (2, 3), "swiglu": (3, 5)}  # moved forward, backward


def operands_of(name, rows, columns):
    x = torch.randn(rows, columns, device="cuda").to(kind)
    weights = {"rms_norm": 1, "layer_norm": 2}.get(name, 0)
    others = [torch.randn(columns, device="cuda").to(kind) for _ in range(weights)]
    if name == "swiglu":
        others = [torch.randn(rows, columns, device="cuda").to(kind)]
    return [each.requires_grad_() for each in (x, *others)]


def seconds(work, least=0.02):
    """The best of a few rounds of calls that the host gives ahead of the device."""
    work()
    torch.cuda.synchronize()
    best, spent, repeats = math.inf, 0.0, 5
    while spent < least:
        first, last = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        torch.cuda._sleep(2_000_000)  # the device waits while the host queues
        first.record()
        for _ in range(repeats):
            work()
        last.record()
        last.synchronize()
        each = first.elapsed_time(last) * 1e-3
        best, spent = min(best, each / repeats), spent + each
    return best


def copy_seconds(bytes_moved):
    source = torch.ones(bytes_moved // 2, dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    return seconds(lambda: target.copy_(source))


def check(made, wanted, what):
    scale = float(wanted.abs().max())
    error = float((made.float() - wanted).abs().max()) / max(scale, 1e-30)
    if not error < (2e-2 if kind != torch.float32 else 1e-4):
        raise SystemExit(f"FAIL {what}: differs from torch in f32 by {error:.2e} of the largest value")


def measure(name, columns):
    rows = max(options.mebibytes * 2**20 // kind.itemsize // columns, 1)
    operands = operands_of(name, rows, columns)
    dy = torch.randn(rows, columns, device="cuda").to(kind)
    array_bytes = rows * columns * kind.itemsize
    copies = [copy_seconds(count * array_bytes) for count in ARRAYS[name]]
    few = [each[:64] if each.dim() == 2 else each for each in operands]
    wanted = contenders(name, columns, compiled=False)["torch"](*[each.float() for each in few]).detach()
    found = {}
    for who, function in contenders(name, columns).items():
        try:
            check(function(*operands).detach()[:64], wanted, f"{who} {name} {rows}x{columns}")
            with torch.no_grad():
                forward = seconds(lambda: function(*operands))
            made = function(*operands)
            backward = seconds(lambda: torch.autograd.grad(made, operands, dy, retain_graph=True))
            found[who] = {"forward_seconds": forward, "backward_seconds": backward,
                          "forward_share": copies[0] / forward, "backward_share": copies[1] / backward}
            del made
        except Exception as error:  # some kernels of others end at 65536 columns
            if who == "trireme":
                raise
            found[who] = {"error": f"{type(error).__name__}: {str(error)[:200]}"}
    return {"operator": name, "rows": rows, "columns": columns, "type": options.type,
            "copy_gigabytes_per_second": ARRAYS[name][0] * array_bytes / copies[0] * 1e-9, "found": found}


def host_microseconds(name, columns=128, rows=8, calls=500):
    operands = operands_of(name, rows, columns)
    dy = torch.ones(rows, columns, device="cuda", dtype=kind)
    found = {}
    for who, function in contenders(name, columns, compiled=True).items():
        def both():
            torch.autograd.grad(function(*operands), operands, dy)

        def forward():
            with torch.no_grad():
                function(*operands)

        for what, work in (("forward", forward), ("forward_backward", both)):
            work()
            best = math.inf
            for _ in range(5):
                torch.cuda.synchronize()
                start = time.perf_counter()
                for _ in range(calls // 5):
                    work()
                best = min(best, (time.perf_counter() - start) / (calls // 5))
                torch.cuda.synchronize()
            found.setdefault(who, {})[what] = best * 1e6
    return found


def main():
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, trireme {trireme.__version__}, {options.type}, arrays "
          f"of {options.mebibytes} MiB; share of a copy. Liger: {liger_missing or 'there'}.\n")
    results, names = [], ["trireme", "torch", "torch.compile"] + ([] if liger_missing else ["liger"])
    for operator in ARRAYS:
        measured = []
        for columns in options.columns:
            measured.append(measure(operator, columns))
            print(f"{operator} {columns}", file=sys.stderr, flush=True)
        results += measured
        for direction in ("forward", "backward"):
            print(f"| {operator} {direction} | " + " | ".join(str(each["columns"]) for each in measured) + " |")
            print("| --- |" + " --- |" * len(measured))
            for who in names:
                cells = [each["found"].get(who, {}).get(f"{direction}_share") for each in measured]
                print(f"| {who} | " + " | ".join("–" if cell is None else f"{cell:.2f}" for cell in cells) + " |")
            print(flush=True)
    host = {name: host_microseconds(name) for name in ARRAYS}
    print("| host time, us | " + " | ".join(f"{name} forward | with backward" for name in ARRAYS) + " |")
    print("| --- |" + " --- | --- |" * len(ARRAYS))
    for who in names:
        if all(who in host[name] for name in ARRAYS):
            print(f"| {who} | " + " | ".join(f"{host[name][who]['forward']:.1f} | {host[name][who]['forward_backward']:.1f}"
                                             for name in ARRAYS) + " |")
    if options.json:
        with open(options.json, "w") as file:
            json.dump({"device": torch.cuda.get_device_name(), "torch": torch.__version__,
                       "trireme": trireme.__version__, "liger": liger_missing or "there", "results": results,
                       "host_microseconds": host}, file, indent=1)


main()

#!/usr/bin/env python3
"""Times torch at points of a table, for bench/cpu.py: a line `OPERATOR TYPE DIRECTION ROWS COLUMNS SECONDS` on the standard
input is answered by one, JSON: the best seconds of torch eager and compiled, or why there are none. Where torch has a function
of its own for what an operator does, that and the program in torch's operations are both tried."""
import json
import os
import pathlib
import sys
import time

# Results are allocated in every call: without this they would be timed on fresh pages of the system each time.
if "MALLOC_TRIM_THRESHOLD_" not in os.environ:
    os.environ.update(MALLOC_MMAP_THRESHOLD_=str(1 << 36), MALLOC_TRIM_THRESHOLD_=str(1 << 36))
    os.execv(sys.executable, [sys.executable, *sys.argv])
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "python" / "tests"))

import torch
import torch.nn.functional as F

import trireme.torch as tt
from row_in_torch import Problem
from trireme.torch import _inline

TYPES = {"f64": torch.float64, "f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}


def norm(x, gamma, eps, beta=None):
    return F.layer_norm(x, x.shape[1:], gamma, beta, eps)


def rms(x, gamma, eps):
    return F.rms_norm(x, x.shape[1:], gamma, eps)


def group_norm(x, gamma, beta, groups, pixels, eps):
    channels = x.shape[1] // int(pixels)
    whole = x.reshape(-1, int(groups) * channels, int(pixels))
    return F.group_norm(whole, int(groups), gamma.reshape(-1), beta.reshape(-1), eps)


# Operands and constants by name -> what torch has for it.
TORCHS = {
    "add_layer_norm": lambda x, residual, gamma, beta, eps: norm(x + residual, gamma, eps, beta),
    "add_rms_norm": lambda x, residual, gamma, eps, offset: rms(x + residual, gamma, eps),
    "cross_entropy": lambda x, target, ignore: F.cross_entropy(x, target.long(), ignore_index=-100, reduction="none"),
    "dropout": lambda x, seed, p: F.dropout(x, p),
    "dropout_add_layer_norm": lambda x, residual, seed, gamma, beta, p, eps: norm(F.dropout(x, p) + residual, gamma, eps, beta),
    "embedding": lambda token, table, scale: F.embedding(token.long(), table) * scale,
    "gated_rms_norm": lambda x, gate, gamma, eps: rms(x, gamma, eps) * F.silu(gate),
    "geglu": lambda x, gate: F.gelu(gate, approximate="tanh") * x,
    "geglu_erf": lambda x, gate: F.gelu(gate) * x,
    "group_norm": group_norm,
    "grouped_rms_norm": lambda x, gamma, eps, group: rms(x.reshape(-1, int(group)), None, eps).reshape(x.shape) * gamma,
    "l2_norm": lambda x, eps: F.normalize(x, dim=1),
    "layer_norm": lambda x, gamma, beta, eps: norm(x, gamma, eps, beta),
    "log_softmax": lambda x: F.log_softmax(x, 1),
    "matmul": lambda x, w, m: F.linear(x, w),
    "moe_sum": lambda x, weight, experts: (x * weight.reshape(-1, 1)).reshape(-1, int(experts), x.shape[1]).sum(1),
    "reglu": lambda x, gate: F.relu(gate) * x,
    "relu_squared": lambda x: F.relu(x).square(),
    "rms_norm": lambda x, gamma, eps, offset: rms(x, gamma, eps),
    "rms_norm_llama": lambda x, gamma, eps: rms(x, gamma, eps),
    "softmax": lambda x: torch.softmax(x, 1),
    "swiglu": lambda x, gate, beta: F.silu(gate) * x,
    "swiglu_llama": lambda x, gate: F.silu(gate) * x,
}


def in_torchs_operations(operator, problem, dtype):
    """The program as a function of its operands and constants by name; of what its users are given."""
    operator.inlined = _inline.write(operator.operator)
    wanted = sum(1 << k for k in operator.returned)
    kinds = {each[0]: dtype if each[1] == "[i,j]" else torch.float32 for each in operator.operator.results}
    kinds.update({name: value.dtype for name, value in problem.operands.items()})

    def run(**given):
        found = _inline.run(operator, [given.get(name) for name in operator.operands],
                            [given.get(name) for name in operator.constants], 1, kinds, (problem.rows, problem.columns), wanted)
        return tuple(each for each in found if each is not None)

    return run


def best(work, seconds):
    work()
    found, start = [], time.perf_counter()
    while len(found) < 3 or time.perf_counter() - start < seconds:
        before = time.perf_counter()
        work()
        found.append(time.perf_counter() - before)
    return min(found)


def time_of(function, problem, backward, seconds):
    constants = {**{each[0]: each[3] for each in problem.operator.constants}, **problem.constants}
    if not backward:
        with torch.no_grad():
            return best(lambda: function(**problem.operands, **constants), seconds)
    leaves = {name: value.clone().requires_grad_() for name, value in problem.differentiable().items()}
    made = function(**{**problem.operands, **leaves}, **constants)
    made = [each for each in (made if isinstance(made, tuple) else (made,)) if each.requires_grad]
    gradients = [torch.randn_like(each) for each in made]
    return best(lambda: torch.autograd.grad(made, list(leaves.values()), gradients, retain_graph=True, allow_unused=True), seconds)


def answer(name, kind, direction, rows, columns, seconds):
    problem = Problem(name, dtype=TYPES[kind], shape=(int(rows), int(columns)))
    candidates, why = [], "torch has no function of it"
    if name in TORCHS:
        candidates.append(TORCHS[name])
    try:
        candidates.append(in_torchs_operations(tt.op(name), problem, TYPES[kind]))
    except _inline.Unsuited as reason:
        why = str(reason)
    times = {}
    for function in candidates:
        for way, call in (("eager", function), ("compiled", torch.compile(function, dynamic=False))):
            try:
                seconds_taken = time_of(call, problem, direction == "backward", float(seconds))
                times[way] = min(times.get(way, seconds_taken), seconds_taken)
            except Exception as error:  # of Inductor, say: a peer that cannot is no peer
                why = f"{way}: {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
        torch._dynamo.reset()
    return times or {"none": why}


torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
if os.environ.get("ATEN_CPU_CAPABILITY") == "avx2":
    import torch._inductor.config
    torch._inductor.config.cpp.simdlen = 256
for line in sys.stdin:
    try:
        answered = answer(*line.split())
    except Exception as error:  # a shape that the operator does not take
        answered = {"none": f"{type(error).__name__}: {error}"}
    print(json.dumps(answered), flush=True)

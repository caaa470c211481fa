"""What machines do with operators, shapes, cuts and placements that are drawn; run by parallel_cases.

    FUZZ_SEED=7 ROUNDS=200 ...    # other draws; FUZZ_ROUND=31 one of them alone
"""
import math
import os
import random
import zlib

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor

import trireme
import trireme.torch as tt
from trireme.torch import parallel

from row_in_torch import NAMED
from parallel_compare import Machine, by_columns, by_rows, compare, sample, sums_are_exact

SEED = int(os.environ.get("FUZZ_SEED", "1"))
ROUNDS = int(os.environ.get("ROUNDS") or (150 if os.environ.get("LONG") else 15))
# But for those whose results are whole numbers of a quantum: one more or less is not close.
OPERATORS = [name for name in NAMED if not name.endswith("quant") and "mxfp" not in name and "nvfp" not in name and name != "matmul"]
TEXTS = ["groups(x[i,j], w[j / 8], b[i]) -> (y[i,j], g[i, j / 8], c[j / 8], t[])\n    g = mean(x, j / 8)\n    y = (x - g) * w * b\n"
         "    c = colsum(x * b)\n    t = colmax(g)",
         "waits(x[i,j], z[i]) -> (y[i,j], q[i], s[i])\n    q = sum(x * z)\n    s = logsumexp(x - q)\n    y = exp(x - s) + variance(x * z)",
         "steps(x[i,j], k[i]) -> (y[i,j], s[i])\n    y = cast(x * 2, x) + stop_gradient(mean(x))\n    s = amin(y) + amax(y) + sum(y) - k",
         "numbers(x[i,j], p[i]) -> (y[i,j], m[])\n    y = select(i < 3, x, x * i) * p + select(j < i, 1, 0)\n    m = colmax(y * i)",
         "totals(x[i,j]) -> (m[], s[], r[i])\n    m = colmax(sum(x))\n    s = colsum(sum(x) * amax(x))\n    r = mean(x) * 2 - sum(x)",
         "outer(w[j], b[i]) -> (y[i,j], s[i])\n    y = w * b\n    s = sum(w * b)",
         "wraps(x[i,j], h[i % 2, j], p[(i / 4) % 3]) -> (y[i,j], d[i % 2, j], f[(i / 4) % 3])\n"
         "    y = x * h * p * rsqrt(mean(x * x) + 1)\n    d = colsum(x)\n    f = colsum(x * x)"]


def drawn(what):
    """Each round's dice, and what to say of it."""
    only = os.environ.get("FUZZ_ROUND")
    for k in range(ROUNDS) if only is None else [int(only)]:
        torch.manual_seed(k)
        yield random.Random(f"{what} {SEED} {k}"), f"FUZZ_SEED={SEED} FUZZ_ROUND={k}"


def operator_of(dice):
    return tt.op(dice.choice(TEXTS)) if dice.random() < 0.3 else tt.named(dice.choice(OPERATORS))


def near(made, wanted, what):
    bound = 2e-3 * max(1.0, float(wanted.detach().abs().nan_to_num(0, 0, 0).max()) if wanted.numel() else 0)
    torch.testing.assert_close(made.float(), wanted.float(), rtol=1e-3, atol=bound, equal_nan=True, msg=lambda text: f"{what}: {text}")


def alike(tensor, what):
    """What all machines have, they have with the same bits."""
    number = zlib.crc32(tensor.detach().contiguous().view(-1).view(torch.uint8).numpy().tobytes())
    said = [None] * dist.get_world_size()
    dist.all_gather_object(said, number)
    assert len(set(said)) == 1, f"{what}: bits differ between machines"


def placed(tensor, mesh, places):
    whole = distribute_tensor(tensor.detach(), mesh, [Replicate() if each.is_partial() else each for each in places])
    if any(each.is_partial() for each in places):  # each machine has a share of the value
        shares = math.prod(mesh.size(axis) for axis, each in enumerate(places) if each.is_partial())
        whole = DTensor.from_local(whole.to_local() / shares, mesh, places, run_check=False, shape=whole.shape, stride=whole.stride())
    return whole.requires_grad_(tensor.requires_grad)


def case_placements(rank, size):
    """DTensors of drawn placements, over a mesh of one axis or two: results and gradients of one process."""
    mesh = init_device_mesh("cpu", (2, size // 2) if size % 2 == 0 and size > 2 else (size,))
    fine = 0
    for dice, round in drawn("placements"):
        operator = operator_of(dice)
        rows, columns = dice.choice([12, 24, 48, 10, 0]), dice.choice([64, 512, 1024, 96, 70])
        try:
            operands, constants = sample(operator, rows, columns)
        except (RuntimeError, ValueError, trireme.TriremeError):
            continue  # no such problem
        if "types" in constants:
            continue
        outer = dice.choice([(rows,), (2, rows // 2), (rows // 2, 2), (1, rows)])
        leaves = [each.reshape(*outer, *each.shape[1:]) if where in ("[i,j]", "[i]") else each
                  for each, (_, where, *_) in zip(operands, operator.operator.operands)]
        leaves = [each.clone().requires_grad_(each.is_floating_point() and name not in operator.held)
                  for each, name in zip(leaves, operator.operands)]
        places = [[dice.choice([Replicate()] * 2 + ([Shard(dice.randrange(each.dim()))] * 4 if each.dim() else []) +
                               ([Partial()] if each.requires_grad else [])) for _ in range(mesh.ndim)] for each in leaves]
        what = f"{round}: {operator.name} {outer} x {columns}, {dict(zip(operator.operands, places))}"
        try:
            wanted = operator(*leaves, **constants)
        except (RuntimeError, ValueError, trireme.TriremeError):
            continue
        wanted = wanted if isinstance(wanted, tuple) else (wanted,)
        grads = [torch.randn_like(each) if each.requires_grad and each.is_floating_point() else None for each in wanted]
        grads = [None if k in operator.maxima else each for k, each in zip(operator.returned, grads)]
        chosen = [k for k, each in enumerate(grads) if each is not None]
        needed = [k for k, each in enumerate(leaves) if each.requires_grad]
        one = torch.autograd.grad([wanted[k] for k in chosen], [leaves[k] for k in needed], [grads[k] for k in chosen],
                                  allow_unused=True) if chosen and needed else []
        given = [placed(each, mesh, where) for each, where in zip(leaves, places)]
        try:
            with parallel.compose_dtensors(dice.random() < 0.3):
                made = operator(*given, **constants)
                made = made if isinstance(made, tuple) else (made,)
                found = torch.autograd.grad([made[k] for k in chosen], [given[k] for k in needed],
                                            [distribute_tensor(grads[k], mesh, [Replicate()] * mesh.ndim) for k in chosen],
                                            allow_unused=True) if one else []
            for u, v in zip(wanted, made):
                near(v.full_tensor(), u, what)
                alike(v.full_tensor(), what)
            for k, u, v in zip(needed, one, found):
                assert (u is None) == (v is None), f"{what}: the gradient of {operator.operands[k]}"
                if u is not None:
                    near(v.full_tensor(), u, f"{what}: d{operator.operands[k]}")
                    alike(v.full_tensor(), f"{what}: d{operator.operands[k]}")
            fine += 1
        except trireme.Unsupported:  # on every machine, or others would wait
            continue
        except Exception as error:
            raise AssertionError(what) from error
    print(f"{fine} of {ROUNDS} rounds compared", flush=True)
    assert fine or ROUNDS < 10


def widths_of(dice, size, total, unit):
    """How many of `total` units each machine has."""
    cuts = sorted(dice.randint(0, total) for _ in range(size - 1))
    return tuple((b - a) * unit for a, b in zip([0, *cuts], [*cuts, total]))


def case_cuts(rank, size):
    """parallel.columns and parallel.rows of drawn cuts, some parts without rows; bits of one process where they are promised."""
    fine = 0
    for dice, round in drawn("cuts"):
        operator, by = operator_of(dice), dice.choice(["columns", "rows"])
        if by == "columns":
            unit = dice.choice([256, 256, 8, 1])
            widths = tuple(each + unit for each in widths_of(dice, size, dice.choice([0, 3, 6]) if unit == 256 else 30, unit))
            rows, columns, exact = dice.choice([0, 1, 7, 12, 24]), sum(widths), lambda where: unit == 256
            spread = lambda: parallel.columns(operator, cut=widths, compose=composed)
        else:
            unit = dice.choice([24, 12, 8, 1])
            widths = widths_of(dice, size, dice.choice([2, 9, 40]), unit)
            rows, columns = sum(widths), dice.choice([8, 64, 300, 512])
            exact = lambda where: where in ("[i,j]", "[i]") or (
                where == "[j]" and sums_are_exact(where, widths, columns, {}) and "/" not in str(operator.operator.operands))
            spread = lambda: parallel.rows(operator, cut=widths)
        composed = by == "columns" and dice.random() < 0.3
        what = f"{round}: {operator.name} by {by} {widths}, {rows} x {columns}{', composed' * composed}"
        try:
            operands, constants = sample(operator, rows, columns)
            operator(*operands, **constants)
            tt._cut.phases_of(operator, by == "columns")
        except (RuntimeError, ValueError, trireme.TriremeError):
            continue  # no such problem, or no such cut
        values = {**operator.constants, **constants}
        cuts = (by_columns if by == "columns" else by_rows)(Machine(widths, rank), values)
        one = tt._spread.Spread(composed=True).of(operator) if composed else None
        try:
            compare(operator, spread(), operands, constants, cuts, exact, one)
            fine += 1
        except trireme.Unsupported:
            continue
        except Exception as error:
            raise AssertionError(what) from error
    print(f"{fine} of {ROUNDS} rounds compared", flush=True)
    assert fine or ROUNDS < 10

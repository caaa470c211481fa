"""Row programs in torch's own operations, for compilers that fuse them with what stands around.

A kernel of ours is one call to Inductor, which fuses nothing with it. Where the neighbours would have been fused that may cost
more than the kernel saves; then the program itself can be given to Inductor. Values are computed in f32 (f64), casts and
results are rounded as the program says; sums are in torch's order.
"""
import ast
import re

import torch
from torch.nn import functional as F

import trireme

from . import _programs


def _wide(value, like):
    return value if isinstance(value, torch.Tensor) else torch.full((), float(value), dtype=like.dtype, device=like.device)


def _select(condition, a, b):
    return torch.where(condition, a, b) if isinstance(condition, torch.Tensor) else a if condition else b


def _pick(table, row, column):
    """Rows of a table, 0 outside of it."""
    inside = (row >= 0) & (row < table.shape[0])
    return torch.where(inside, table[row.long().clamp(0, table.shape[0] - 1), column], 0)


def _of_two(function):
    def call(a, b):
        if not isinstance(a, torch.Tensor) and not isinstance(b, torch.Tensor):
            return function(torch.tensor(float(a)), torch.tensor(float(b))).item()
        like = a if isinstance(a, torch.Tensor) else b
        return function(_wide(a, like), _wide(b, like))

    return call


def _of_one(function):
    def call(a):
        return function(a) if isinstance(a, torch.Tensor) else function(torch.tensor(float(a))).item()

    return call


REDUCTIONS = ("sum", "mean", "amax", "amin")


def _reduced(kind):
    """Of rows, or of groups of columns: `group` says which one each column is in."""
    whole = {"sum": torch.sum, "mean": torch.mean, "amax": torch.amax, "amin": torch.amin}[kind]

    def reduce(e, group=None):
        if group is None:
            return whole(e, 1, keepdim=True)
        if not isinstance(e, torch.Tensor):
            e = torch.full(group.shape, float(e), device=group.device)
        e = e.expand(e.shape[0], group.shape[1])
        group = group.expand(e.shape)
        return torch.zeros_like(e).scatter_reduce(1, group, e, kind, include_self=False).gather(1, group)

    return reduce


FUNCTIONS = {
    **{kind: _reduced(kind) for kind in REDUCTIONS},
    "min": _of_two(torch.minimum), "max": _of_two(torch.maximum), "select": _select, "square": lambda e: e * e,
    "and_": torch.logical_and, "or_": torch.logical_or, "not_": torch.logical_not, "fma": lambda a, b, c: a * b + c,
    "variance": lambda e: e.var(1, correction=0, keepdim=True), "logsumexp": lambda e: e.logsumexp(1, keepdim=True),
    "softmax": lambda e: e.softmax(1), "stop_gradient": lambda e: e.detach(), "rotate": lambda e, k: torch.roll(e, -int(k), 1),
    "clamp": lambda e, low, high: torch.clamp(e, low, high), "gelu_tanh": lambda e: F.gelu(e, approximate="tanh"),
    **{name: _of_one(function) for name, function in dict(
        rsqrt=torch.rsqrt, sqrt=torch.sqrt, exp=torch.exp, log=torch.log, expm1=torch.expm1, log1p=torch.log1p,
        tanh=torch.tanh, abs=torch.abs, sigmoid=torch.sigmoid, erf=torch.erf, floor=torch.floor, round=torch.round,
        silu=F.silu, gelu=F.gelu, relu=torch.relu, softplus=F.softplus, sign=torch.sign).items()},
}


class Unsuited(trireme.Unsupported):
    """Why a program is not written in torch's operations."""


def _index(part):
    """`(i / heads) % positions` in torch's whole numbers."""
    return re.sub(_programs.NAME, lambda name: name.group() if name.group() in ("i", "j", "n") else f"int({name.group()})",
                  part.replace("/", "//"))


def _as_matrix(name, spread, operands):
    """The text that makes an operand a matrix that broadcasts against (rows, columns)."""
    parts = [part.strip() for part in spread.strip("[]").split(",") if part.strip()]
    plain = {(): "1, 1", ("i", "j"): "_rows, _columns", ("i",): "_rows, 1", ("j",): "1, _columns"}.get(tuple(parts))
    if plain:
        return f"{name}.reshape({plain})"
    if parts[0] in operands:
        return f"_pick({name}.reshape(-1, {name}.shape[-1]), {parts[0]}, {_index(parts[1])})"
    if len(parts) == 1:
        return f"{name}.reshape(-1)[{_index(parts[0])}]"
    return f"{name}.reshape(-1, {name}.shape[-1])[{', '.join(map(_index, parts))}]"


def _lines(operator):
    body = _programs.take_apart(operator.text).body
    for line in re.sub(r"\n {6,}", " ", body).splitlines():
        if "=" in line:
            name, expression = line.split("=", 1)
            yield name.strip(), re.sub(r"\b(and|or|not)\(", r"\1_(", expression.strip())


def write(operator):
    """A function (operands by name, constants by name, rows, columns, types of names) -> results by name, as matrices."""
    results = {name: spread for name, spread, *_ in operator.results}
    spreads = {name: spread for name, spread, *_ in operator.operands}
    defaults = {name: default for name, _, default in _programs.take_apart(operator.text).operands}
    known = set(FUNCTIONS) | {"cast", "i", "j", "n", "inf", "nan", *spreads, *results,
                              *(name for name, *_ in operator.constants)}
    text = ["def run(_given, _numbers, _rows, _columns, _kinds, _wide, _device):",
            "    i, j = torch.arange(_rows, device=_device)[:, None], torch.arange(_columns, device=_device)[None, :]",
            "    n = _columns"]
    text += [f"    {name} = _numbers[{name!r}]" for name, *_ in operator.constants]
    for name, _, optional, fallback in operator.operands:
        if optional and fallback is None and defaults[name] != "n":
            raise Unsuited(f"{operator.name}: the default of {name} is a formula")
        text.append(f"    {name} = _given[{name!r}]")
        otherwise = f" if {name} is not None else {'n' if fallback is None else repr(float(fallback))}" if optional else ""
        text.append(f"    {name} = _widen({_as_matrix(name, spreads[name], spreads)}, _wide){otherwise}")
    if any(spread not in ("[i,j]", "[i]") for spread in results.values()):
        raise Unsuited(f"{operator.name}: results other than [i,j] and [i] are left to kernels")
    for name, expression in _lines(operator):
        tree = ast.parse(expression, mode="eval")
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and node.func.id == "cast":
                node.args[1] = ast.parse(f"_kinds[{node.args[1].id!r}]", mode="eval").body
            if isinstance(node, ast.Call) and node.func.id in REDUCTIONS and len(node.args) == 2:
                node.args[1] = ast.parse(_index(ast.unparse(node.args[1])), mode="eval").body
        unknown = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} - known - {"_kinds", "int"}
        if unknown:
            raise Unsuited(f"{operator.name}: {', '.join(sorted(unknown))} has no counterpart in torch's operations")
        known.add(name)
        text.append(f"    {name} = {ast.unparse(tree)}")
    text.append(f"    return {{{', '.join(f'{name!r}: {name}' for name in results)}}}")
    scope = {**FUNCTIONS, "torch": torch, "inf": float("inf"), "nan": float("nan"), "_widen": _widen, "_pick": _pick,
             "cast": lambda e, kind: e.to(kind).to(e.dtype)}
    exec(compile("\n".join(text), f"<{operator.name} in torch's operations>", "exec"), scope)
    return scope["run"]


def _widen(value, wide):
    return value.to(wide) if value.is_floating_point() else value


def run(operator, operands, constants, axes, kinds, shape, wanted):
    """All results as a tuple, None for those that are not wanted. `kinds`: types by name; `shape`: the problem's."""
    outer, rows, columns = shape[:len(shape) - axes], 1, 1
    for extent in outer:
        rows = rows * extent
    for extent in shape[len(shape) - axes:]:
        columns = columns * extent
    wide = torch.float64 if torch.float64 in kinds.values() else torch.float32
    device = next(each.device for each in operands if each is not None)
    made = operator.inlined(dict(zip(operator.operands, operands)), dict(zip(operator.constants, constants)), rows, columns,
                            kinds, wide, device)
    found = []
    for k, (name, spread, *_) in enumerate(operator.operator.results):
        if wanted >> k & 1:
            is_whole = spread == "[i,j]"
            value = made[name].expand(rows, columns if is_whole else 1)
            found.append(value.to(kinds[name]).reshape(shape if is_whole else outer))
        else:
            found.append(None)
    return tuple(found)

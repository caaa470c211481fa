"""Sharding rules of torch.ops.trireme for DTensors that arrive below autograd: in inference mode, in graphs of others.

Calls by `trireme.torch`, and of torch.ops.trireme with gradients, never come here: _distributed spreads them over the machines,
columns too. What DTensor itself runs knows no exchange, so its rules are local: rows are cut anywhere, and what sums over them is
Partial; columns are cut where no value of a row depends on another column; all else DTensor gathers first.
"""
import sys

import trireme

from ._made import MADE
from ._programs import counts_rows, take_apart
from ._register import extents
from ._rows import has_columns, sums_over_rows

_registered = set()


def register_rules():
    """For every operator that was made so far, where DTensor is imported; later ones when this is called again."""
    if "torch.distributed.tensor" not in sys.modules or len(_registered) == len(MADE):
        return
    from torch.distributed.tensor.experimental import register_sharding

    for name, operator in list(MADE.items()):
        if name not in _registered:
            _registered.add(name)
            if not counting(operator):
                register_sharding(operator.overload)(rule_of(operator))


def counting(operator):
    """Whether rows or columns are divided, wrapped or picked: shapes then depend on numbers that DTensor does not look at."""
    spreads = [each[1] for each in operator.operator.operands + operator.operator.results]
    return any(spread not in ("[i,j]", "[i]", "[j]", "[]") for spread in spreads)


def rule_of(operator):
    spreads = [each[1] for each in operator.operator.operands]
    results = [(each[0], each[1]) for each in operator.operator.results]
    parts = take_apart(operator.operator.text)

    def rule(*values):
        from torch.distributed.tensor import Partial, Replicate, Shard

        count, last = len(spreads), len(spreads) + len(operator.constants)
        operands, rest = values[:count], len(values) - count
        axes, wanted = values[last], values[last + 2] if len(values) > last + 2 else -1
        first = operands[operator.first_element(operands)]
        outer = len(first.shape) - axes

        def place(spread, axis):  # of an array whose matrix is cut along that axis
            if axis is None:
                return Replicate()
            if axis < outer:
                return Shard(axis) if "i" in spread else Replicate()
            return Shard(len(extents(spread, first.shape, axes, {})) - axes + axis - outer) if has_columns(spread) else Replicate()

        def of_result(name, spread, axis):
            if axis is not None and not (axis < outer and "i" in spread) and not (axis >= outer and has_columns(spread)):
                return Partial("sum" if sums_over_rows(parts, name, spread) else "max")
            return place(spread, axis)

        allowed = [None]
        if not counts_rows(operator.operator.text):
            allowed += range(outer)
        if is_local(operator):
            allowed += range(outer, outer + axes)
        return [([of_result(name, spread, axis) if wanted >> k & 1 else Replicate() for k, (name, spread) in enumerate(results)],
                 [None if each is None else place(spread, axis) for each, spread in zip(operands, spreads)] + [None] * rest)
                for axis in allowed]

    return rule


def is_local(operator):
    """Whether columns do not look at each other, nor at where they are."""
    try:
        phases = operator.operator.split()
    except trireme.TriremeError:
        return False
    counted = {name.rstrip("_") for name, *_ in phases[0].program.constants} & {"columns", "first_column"}
    return len(phases) == 1 and not phases[0].exchanges and not phases[0].groups and not counted

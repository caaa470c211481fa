"""Sharding rules of torch.ops.trireme for DTensors that arrive below autograd: in inference mode, in graphs of others.

Calls by `trireme.torch`, and of torch.ops.trireme with gradients, never come here: _distributed spreads them over the machines,
columns too. What DTensor itself runs knows no exchange, so its rules are local: rows are cut anywhere, and what sums over them is
Partial; columns are cut where no value of a row depends on another column; all else DTensor gathers first. Where indices are
divided or wrapped, parts are cut only where all of them begin anew.
"""
import math

import trireme

from ._cut import Whole, group_size
from ._programs import counts_rows, take_apart
from ._register import extents, problem_shape, shape_sources
from ._rows import Row, has_columns, is_picked, row_of, sums_over_rows


def register_rule(operator):
    from torch.distributed.tensor import DTensor
    from torch.distributed.tensor._op_schema import RuntimeSchemaInfo
    from torch.distributed.tensor.experimental import register_sharding

    register_sharding(operator.overload)(rule_of(operator))
    # DTensor keeps shapes and a rule's answers by shapes and whole numbers; here also by what divides i and j.
    DTensor._op_dispatcher.sharding_propagator.op_to_schema_info[operator.overload] = RuntimeSchemaInfo(
        len(operator.operands), needs_pytree=True)


def rule_of(operator):
    operands = [each[1] for each in operator.operator.operands]
    results = [(each[0], each[1]) for each in operator.operator.results]
    parts = take_apart(operator.operator.text)

    def rule(*values):
        from torch.distributed.tensor import Partial, Replicate, Shard

        last = len(operands) + len(operator.constants)
        given, rest = values[:len(operands)], len(values) - len(operands)
        axes, wanted = values[last], values[last + 2] if len(values) > last + 2 else -1
        shape = problem_shape(operator, given, axes, values[len(operands):last])
        outer = len(shape) - axes
        constants = Whole(zip(operator.constants, values[len(operands):last]), math.prod(shape[outer:]))

        def place(spread, axis):  # of an array whose matrix is cut along that axis; None where it has no such axis
            if axis < outer:
                row = row_of(spread, constants)
                return None if row is None or row.wrap else Shard(axis if row == Row() else 0)
            if not has_columns(spread):
                return None
            rank = 1 + axes if is_picked(spread) else len(extents(spread, shape, axes, constants))
            return Shard(rank - axes + axis - outer)

        def of_result(name, spread, axis):
            if axis < outer and place(spread, axis) is None:
                return Partial("sum" if sums_over_rows(parts, name, spread) else "max")
            return place(spread, axis) or Replicate()

        def cut(axis):
            return ([of_result(name, spread, axis) if wanted >> k & 1 else Replicate() for k, (name, spread) in enumerate(results)],
                    [None if each is None else place(spread, axis) or Replicate() for each, spread in zip(given, operands)]
                    + [None] * rest)

        machines = given[shape_sources(operator, given)[0]].mesh.size()
        axes_cut = rows_cut(operator, shape[:outer], machines, constants) + columns_cut(operator, outer, shape[outer:], machines, constants)
        everywhere = [Replicate()] * len(results), [None if each is None else Replicate() for each in given] + [None] * rest
        return [everywhere, *map(cut, axes_cut)]

    return rule


def rows_cut(operator, outer, machines, constants):
    """The axes of rows that may be cut."""
    spreads = [each[1] for each in operator.operator.operands + operator.operator.results]
    if counts_rows(operator.operator.text) or any(is_picked(each[1]) for each in operator.operator.results):
        return []
    rows = [row for row in (row_of(spread, constants) for spread in spreads) if row not in (None, Row())]
    if not rows:
        return list(range(len(outer)))
    # Over all machines, or those of one axis of their mesh: a part is a multiple of this.
    share = math.prod(outer[1:]) * (outer[0] // machines)
    whole = outer[0] % machines == 0 and all(share % (row.divide * max(row.wrap, 1)) == 0 for row in rows)
    return [0] if whole else []


def columns_cut(operator, outer, inner, machines, constants):
    """The axes of columns that may be cut: where they do not look at each other, nor at where they are."""
    try:
        phases = operator.operator.split()
    except trireme.TriremeError:
        return []
    counted = {name.rstrip("_") for name, *_ in phases[0].program.constants} & {"columns", "first_column"}
    if len(phases) > 1 or phases[0].exchanges or counted:
        return []
    sizes = [group_size(group, constants) for group in phases[0].groups]
    if sizes and (len(inner) > 1 or inner[0] % (machines * math.lcm(*sizes))):
        return []
    return list(range(outer, outer + len(inner)))

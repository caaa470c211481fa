"""Operators on DTensors: what is cut stays cut, and results are DTensors.

The first [i,j] operand says where rows and columns are, mesh axis by mesh axis; without one (embedding) the first that has each
row says where rows are, and the first that has each column where columns are. All others are brought there (a weight is cut as
the columns are, and is on every machine where rows are cut). Then each machine calls the operator on its part: rows that are
cut along a mesh axis are the rows of `_spread`, columns its columns, and gradients that sum over rows come out complete.
"""
import functools
import math

import torch

import trireme

from ._made import MADE
from ._register import PAIRS, extents, problem_shape, shape_sources
from ._rows import Row, has_columns, is_picked, row_of

composed = False  # parallel.compose_dtensors says it


def call(operator, operands, constants, axes, types, wanted):
    """All results, as the operator's own call gives them."""
    from torch.distributed.tensor import DTensor, Replicate, Shard

    from ._sharding import register_rules
    from ._spread import Spread, SpreadOperator

    if not torch.compiler.is_compiling():
        register_rules()
    for name, each in zip(operator.operands, operands):
        if each is not None and not isinstance(each, DTensor):
            raise RuntimeError(f"{operator.name}: {name} is a plain tensor, and others are DTensors; distribute_tensor({name}, mesh, "
                               "[Replicate()]) makes it one that is the same on every machine")
    sources = shape_sources(operator, operands)
    mesh, shape = operands[sources[0]].device_mesh, tuple(problem_shape(operator, operands, axes))
    found = places_of(operator.name, sources, tuple(tuple(operands[k].placements) for k in sources),
                      tuple(operands[k].dim() for k in sources), shape, axes, tuple(float(each) for each in constants),
                      tuple(mesh.shape))

    def places(axes_of_array):
        return [Replicate() if axis is None else Shard(axis) for axis in axes_of_array]

    local = [None if each is None else each.redistribute(mesh, places(where)).to_local()
             for each, where in zip(operands, found[0])]
    by_columns, by_rows, in_order, axes_cut = found[2]
    columns = None if by_columns is None else mesh.get_group(by_columns)
    column_cut = None if by_columns is None else _widths(shape[-1], mesh.size(by_columns))
    row_cut = _widths(shape[axes_cut], mesh.size(by_rows[0])) if in_order else None
    spread = Spread(columns, [mesh.get_group(k) for k in by_rows], in_order, column_cut,
                    None if row_cut is None else [each * math.prod(shape[axes_cut + 1:len(shape) - axes]) for each in row_cut],
                    composed and by_columns is not None)
    made = SpreadOperator(operator, spread).call(local, constants, axes, types, wanted)

    def whole(each, where, shape):
        shape = (*shape[:-1], shape[-1] // 2) if each.dtype == PAIRS else shape
        strides = tuple(math.prod(shape[k + 1:]) for k in range(len(shape)))
        return DTensor.from_local(each, mesh, places(where), run_check=False, shape=torch.Size(shape), stride=strides)

    return tuple(whole(each, where, shape) if wanted >> k & 1 else each for k, (each, (where, shape)) in enumerate(zip(made, found[1])))


@functools.lru_cache(maxsize=4096)
def _places_of(name, sources, placements, ranks, shape, axes, constants, parts):
    operator = MADE[name]
    values = dict(zip(operator.constants, constants))
    outer = len(shape) - axes
    rows = ", ".join(f"Shard({k})" for k in range(outer))
    accepted = f"accepted are Replicate(){', ' + rows if rows else ''}"
    cut = _cut_of(operator, sources, placements, ranks, outer, axes, accepted)
    _check(operator, cut, axes, outer, shape, values, accepted, parts)
    by_rows = [k for k, axis in enumerate(cut) if axis is not None and axis >= 0]
    by_columns = cut.index(-1) if -1 in cut else None
    in_order = len(by_rows) == 1 and all(extent == 1 for extent in shape[:cut[by_rows[0]]])

    def places(where):
        """Of an array with that spread: the axis that is cut along each axis of the mesh."""
        row = row_of(where, values)
        rank = where.count(",") + 1 if is_picked(where) else len(extents(where, shape, axes, values))
        found = []
        for axis in cut:
            if axis == -1:
                found.append(rank - 1 if has_columns(where) else None)
            else:
                found.append(None if axis is None or row is None or row.wrap else axis if row == Row() else 0)
        return tuple(found)

    results = tuple((places(where), tuple(extents(where, shape, axes, values))) for _, where, *_ in operator.operator.results)
    return tuple(places(where) for _, where, *_ in operator.operator.operands), results, (
        by_columns, tuple(reversed(by_rows)), in_order, cut[by_rows[0]] if in_order else 0)


def _widths(extent, parts):
    """As DTensor cuts: all the same, but for the last ones."""
    share = -(-extent // parts)
    return [max(min(share, extent - k * share), 0) for k in range(parts)]


def places_of(name, sources, placements, ranks, shape, axes, constants, parts):
    """Where an operator's tensors are: (of each operand the cut axis by mesh axis, of each result that and its shape,
    (the mesh axis of columns, those of rows, innermost first, whether rows are in order, and their axis)). `sources`: places of
    the operands that say where rows and where columns are, with their `placements` and numbers of axes; `parts`: the mesh's extents."""
    return _places_of(name, sources, placements, ranks, shape, axes, constants, parts)


places_of._dynamo_marked_constant = True  # compiled code takes what comes out as it is


def _cut_of(operator, sources, placements, ranks, outer, axes, accepted):
    """Of each axis of the mesh: the axis of rows that is cut along it, -1 for columns, None for neither. Where the operand of the
    rows says one thing and that of the columns another, rows stay where they are, and columns are brought to them."""
    from torch.distributed.tensor import Shard

    def said(source, rank, places, first):
        strange = [each for each in places if each.is_shard() and type(each) is not Shard]
        if strange:
            raise trireme.Unsupported(f"{operator.name}: {strange[0]} is not taken; {accepted}")
        found = []
        for each in places:
            axis = each.dim % rank - first if each.is_shard() else None
            if axis is not None and axis < 0:  # rows of a table: whoever picks may pick any of them
                raise trireme.Unsupported(f"{operator.name}: the rows of {operator.operands[source]} are picked, and every machine needs "
                                          f"all of them, not Shard({each.dim % rank}); accepted are Replicate() and Shard({rank - 1})")
            found.append(axis if axis is None or axis < outer else -1)
        return found

    rows = said(sources[0], ranks[0], placements[0], 0)
    if sources[0] == sources[1]:
        return rows
    columns = said(sources[1], ranks[1], placements[1], ranks[1] - axes)
    return [theirs if mine is None else mine for mine, theirs in zip(rows, [None if each is None else -1 for each in columns])]


def _check(operator, cut, axes, outer, shape, constants, accepted, parts):
    """Refuses what cannot be, and says what can."""
    if cut.count(-1) > 1:
        raise trireme.Unsupported(f"{operator.name}: columns are cut along one axis of a mesh, not {cut.count(-1)}; {accepted}, and "
                                  f"Shard({len(shape) - 1}) once")
    if -1 in cut:
        if axes != 1:
            raise trireme.Unsupported(f"{operator.name}: rows of {axes} axes are not cut by columns; {accepted}")
        from ._cut import cut_inside_groups

        try:
            operator.operator.split()
        except trireme.Unsupported as error:
            raise trireme.Unsupported(f"{error}; {accepted}") from None
        machines = parts[cut.index(-1)]
        wrong, least = cut_inside_groups(operator, tuple(constants.values()), tuple(_widths(shape[-1], machines)))
        if wrong:
            raise trireme.Unsupported(f"{wrong}; {accepted}, and Shard({len(shape) - 1}) of columns that are a multiple of "
                                      f"{machines} * {least}")
    strange = [where for _, where, *_ in operator.operator.operands + operator.operator.results
               if row_of(where, constants) not in (None, Row())]
    if strange and any(axis not in (None, -1, 0) for axis in cut):
        raise trireme.Unsupported(f"{operator.name}: {strange[0]} counts rows over all machines, which have to follow each other; "
                                  "accepted are Replicate() and Shard(0)")

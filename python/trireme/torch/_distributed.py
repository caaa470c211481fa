"""Operators on DTensors: what is cut stays cut, and results are DTensors.

The first [i,j] operand says where rows and columns are, mesh axis by mesh axis; without one (embedding) the first that has each
row says where rows are, and the first that has each column where columns are. All others are brought there (a weight is cut as
the columns are, and is on every machine where rows are cut). Then each machine calls the operator on its part: rows that are
cut along a mesh axis are the rows of `_spread`, columns its columns, and gradients that sum over rows come out complete. Rows that
are counted are brought to where machines can count them, and results back.
"""
import functools
import math

import torch

import trireme

from ._made import MADE
from ._programs import names_in, take_apart
from ._register import PAIRS, extents, problem_shape, shape_sources
from ._rows import Row, has_columns, is_picked, row_of

composed = False  # parallel.compose_dtensors says it


def call(operator, operands, constants, axes, types, wanted):
    """All results, as the operator's own call gives them."""
    from torch.distributed.tensor import DTensor, Replicate, Shard

    from ._spread import Spread, SpreadOperator

    for name, each in zip(operator.operands, operands):
        if each is not None and not isinstance(each, DTensor):
            raise RuntimeError(f"{operator.name}: {name} is a plain tensor, and others are DTensors; distribute_tensor({name}, mesh, "
                               "[Replicate()]) makes it one that is the same on every machine")
    sources = shape_sources(operator, operands)
    mesh, shape = operands[sources[0]].device_mesh, tuple(problem_shape(operator, operands, axes, constants))
    if not torch.compiler.is_compiling() and mesh.get_coordinate() is None:
        raise ValueError(f"{operator.name}: this process is not in the mesh of its DTensors, {mesh}; those that are in it call it alone")
    if torch.compiler.is_compiling():  # each shape and each constant has a graph of its own
        from torch.fx.experimental.symbolic_shapes import guard_scalar
        shape, constants = tuple(guard_scalar(each) for each in shape), [guard_scalar(each) for each in constants]
    found = places_of(operator.name, sources, tuple(tuple(operands[k].placements) for k in sources),
                      tuple(operands[k].dim() for k in sources), shape, axes, tuple(float(each) for each in constants),
                      tuple(mesh.shape))

    def places(axes_of_array):
        return [Replicate() if axis is None else Shard(axis) for axis in axes_of_array]

    local = [None if each is None else each.redistribute(mesh, places(where)).to_local()
             for each, where in zip(operands, found[0])]
    by_columns, by_rows, in_order, axes_cut, anew = found[2]
    columns = None if by_columns is None else mesh.get_group(by_columns)
    column_cut = None if by_columns is None else _widths(shape[-1], mesh.size(by_columns))
    row_cut = _widths(shape[axes_cut], mesh.size(by_rows[0])) if in_order else None
    spread = Spread(columns, [mesh.get_group(k) for k in by_rows], in_order, column_cut,
                    None if row_cut is None else [each * math.prod(shape[axes_cut + 1:len(shape) - axes]) for each in row_cut],
                    composed and by_columns is not None, anew)
    made = SpreadOperator(operator, spread).call(local, constants, axes, types, wanted)

    def whole(each, where, shape, asked):
        shape = (*shape[:-1], shape[-1] // 2) if each.dtype == PAIRS else shape
        strides = tuple(math.prod(shape[k + 1:]) for k in range(len(shape)))
        array = DTensor.from_local(each, mesh, places(where), run_check=False, shape=torch.Size(shape), stride=strides)
        return array if asked == where else array.redistribute(mesh, places(asked))

    return tuple(whole(each, *of_result) if wanted >> k & 1 else each for k, (each, of_result) in enumerate(zip(made, found[1])))


@functools.lru_cache(maxsize=4096)
def _places_of(name, sources, placements, ranks, shape, axes, constants, parts):
    operator = MADE[name]
    values = dict(zip(operator.constants, constants))
    outer = len(shape) - axes
    counted = names_in(take_apart(operator.operator.text).body) & {"i", "random"}
    rows = ", ".join(f"Shard({k})" for k in range(outer))
    accepted = f"accepted are Replicate(){', ' + rows if rows else ''}"
    asked = _cut_of(operator, sources, placements, ranks, outer, axes)
    _check(operator, asked, axes, shape, values, accepted, parts)
    cut, anew = _where_rows_count(operator, asked, shape[:outer], values, parts, counted)
    by_rows = [k for k, axis in enumerate(cut) if axis is not None and axis >= 0]
    by_columns = cut.index(-1) if -1 in cut else None
    in_order = len(by_rows) == 1 and all(extent == 1 for extent in shape[:cut[by_rows[0]]])

    def places(where, cut=cut):
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

    results = tuple((places(where), tuple(extents(where, shape, axes, values)),
                     places(where, asked if row_of(where, values) == Row() else cut)) for _, where, *_ in operator.operator.results)
    return tuple(places(where) for _, where, *_ in operator.operator.operands), results, (
        by_columns, tuple(reversed(by_rows)), in_order, cut[by_rows[0]] if in_order else 0, anew)


def _widths(extent, parts):
    """As DTensor cuts: all the same, but for the last ones."""
    share = -(-extent // parts)
    return [max(min(share, extent - k * share), 0) for k in range(parts)]


def places_of(name, sources, placements, ranks, shape, axes, constants, parts):
    """Where an operator's tensors are: (of each operand the cut axis by mesh axis, of each result that, its shape and where it is
    asked for, (the mesh axis of columns, those of rows, innermost first, whether rows are in order, their axis, and whether each
    machine counts rows anew)). `sources`: places of the operands that say where rows and where columns are, with their
    `placements` and numbers of axes; `parts`: the mesh's extents."""
    return _places_of(name, sources, placements, ranks, shape, axes, constants, parts)


places_of._dynamo_marked_constant = True  # compiled code takes what comes out as it is


def _cut_of(operator, sources, placements, ranks, outer, axes):
    """Of each axis of the mesh: the axis of rows that is cut along it, -1 for columns, None for neither. Where the operand of the
    rows says one thing and that of the columns another, rows stay where they are, and columns are brought to them."""
    from torch.distributed.tensor import Shard

    def said(source, rank, places, first):
        found = []
        for each in places:
            axis = each.dim % rank - first if type(each) is Shard else None  # of strides (_StridedShard): gathered
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


def _check(operator, cut, axes, shape, constants, accepted, parts):
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


def _where_rows_count(operator, cut, outer, constants, parts, counted):
    """The cut, with rows where machines can count them, and whether each counts them anew. Rows of one machine after those of
    another are counted on, where all begin with whole entries of what divides rows. Indices that wrap inside each machine's rows
    are what they are there. Otherwise rows are brought to the first axis, or where that would divide entries to every machine."""
    rows = {row_of(where, constants) for _, where, *_ in operator.operator.operands + operator.operator.results} - {None, Row()}
    meshes = [k for k, axis in enumerate(cut) if axis is not None and axis >= 0]
    if not meshes or not (rows or counted):
        return cut, False

    def widths(axis, mesh):
        return [each * math.prod(outer[axis + 1:]) for each in _widths(outer[axis], parts[mesh])]

    def counts_on(axis, mesh):  # and entries of [i / a] are cut as DTensor cuts them
        own = widths(axis, mesh)
        return all(all(width % row.divide == 0 for width in own[:-1]) and
                   (row.wrap or [-(-width // row.divide) for width in own] == _widths(-(-sum(own) // row.divide), len(own))) for row in rows)

    first, lead = meshes[0], next((k for k, extent in enumerate(outer) if extent > 1), 0)
    if len(meshes) == 1 and cut[first] <= lead and counts_on(cut[first], first):
        return cut, False
    if len(meshes) == 1 and not counted and all(row.wrap and width % (row.divide * row.wrap) == 0
                                                for width in widths(cut[first], first) for row in rows):
        return cut, True
    moved = lead if counts_on(lead, first) else None
    return [moved if k == first else None if k in meshes else axis for k, axis in enumerate(cut)], False

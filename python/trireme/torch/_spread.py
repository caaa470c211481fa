"""One operator over several machines: rows cut by columns over one group, rows themselves spread over others."""
import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

import trireme

from ._autograd import Call, Function, needs_graph
from ._cut import SAID, Whole, check_columns, check_rows, cuts_of, meetings_of, phases_of
from ._machine import Machine
from ._made import MADE
from ._meeting import asks_each_time, is_traced, meet_all, of_member, refuse_transforms
from ._register import LIBRARY, extents, fill, is_pairs, problem_shape, shape_sources, storage_types, types_dict, types_text
from ._rows import is_picked


class Spread:
    """Where the columns and the rows of an operator's tensors are: a process group, or none for one place; of rows several,
    the innermost first. Cuts: how many each machine has; none where all have as many. Composed: by the fewest exchanges. Anew:
    on every machine the indices of rows begin as on the first."""

    def __init__(self, columns=None, rows=(), in_order=True, column_cut=None, row_cut=None, composed=False, anew=False):
        self.columns = columns if columns is not None and of_member(columns).size() > 1 else None
        self.rows = tuple(each for each in rows if of_member(each).size() > 1)
        # Machine by machine, rows follow each other: those of one before those of the next, in known numbers.
        self.in_order = in_order and len(self.rows) < 2
        self.column_cut = tuple(column_cut) if column_cut and self.columns is not None else None
        self.row_cut = tuple(row_cut) if row_cut and len(self.rows) == 1 else None
        self.composed, self.anew = composed, anew

    def of(self, operator):
        return SpreadOperator(operator, self)

    @property
    def groups(self):
        return self.rows if self.columns is None else (self.columns, *self.rows)

    @property
    def words(self):
        rows = ",".join(each.group_name for each in self.rows)
        return ("" if self.columns is None else self.columns.group_name, rows, self.in_order, list(self.column_cut or ()),
                list(self.row_cut or ()), self.composed, self.anew)


class SpreadOperator:
    """A torch operator on each machine's part of the tensors; called as the operator is."""

    def __init__(self, operator: Any, spread: "Spread") -> None:
        self.operator, self.spread = operator, spread
        self.__name__, self.__doc__ = operator.__name__, operator.__doc__

    def __repr__(self):
        return f"<{self.operator.__name__} over machines>"

    def __call__(self, *operands: Tensor | None, axes: int = 1, types: Mapping[str, Any] | None = None,
                 results: str | Sequence[str] | None = None, **named: Any) -> Any:
        of = self.operator
        operands, constants, chosen = of.arguments(operands, results, named)
        made = self.call(operands, constants, axes, types_text(types), sum(1 << k for k in set(chosen)))
        return made[chosen[0]] if len(chosen) == 1 else tuple(made[k] for k in chosen)

    def call(self, operands: Sequence[Tensor | None], constants: Sequence[float], axes: int = 1, types: str = "",
             wanted: int = -1) -> tuple[Any, ...]:
        if self.spread.columns is None and not self.spread.rows and not self.spread.composed:
            return self.operator.call(operands, constants, axes, types, wanted)
        if wanted == -1:
            wanted = (1 << len(self.operator.results)) - 1
        if torch.compiler.is_compiling():
            given = [None if each is None else traced(each) for each in operands]
            return tuple(torch.ops.trireme.spread(given, [float(each) for each in constants], axes, types, wanted,
                                                  self.operator.name, *self.spread.words))
        return call_spread(self.operator, self.spread, operands, constants, axes, types, wanted)


def call_spread(operator, spread, operands, constants, axes, types, wanted):
    refuse_transforms(operands, operator.name)
    operator, operands, types = operator.as_called(operands, types)

    def run(operands, wanted):
        return fill(run_spread(operator, spread, operands, constants, axes, types, wanted), operands)

    if not needs_graph(operands):
        return run(operands, wanted)
    return Function.apply(Call(operator, constants, axes, types, wanted, run, spread), *operands)


@torch.compiler.allow_in_graph
def traced(tensor):
    """The tensor. Torch keeps what it made of a graph for other processes, unless there is a Python function in it. What `spread`
    is traced to differs between machines, and registers its phases as operators: every process traces it."""
    return tensor


# What compiled code calls. Dynamo takes it as it is; when the graph is traced it is its phases and the collectives between.
LIBRARY.define("spread(Tensor?[] operands, float[] constants, int axes, str types, int wanted, str operator, str columns, "
               "str rows, bool in_order, int[] column_cut, int[] row_cut, bool composed, bool anew) -> Tensor[]")


def _spread(operands, constants, axes, types, wanted, operator, columns, rows, in_order, column_cut, row_cut, composed, anew):
    from torch._functorch.utils import enable_single_level_autograd_function

    find = dist.distributed_c10d._resolve_process_group
    spread = Spread(find(columns) if columns else None, [find(each) for each in rows.split(",") if each], in_order,
                    column_cut, row_cut, composed, anew)
    with enable_single_level_autograd_function():
        return list(call_spread(MADE[operator], spread, operands, constants, axes, types, wanted))


for _key in ("Autograd", "CompositeExplicitAutograd"):
    LIBRARY.impl("spread", _spread, _key)


# ---- one call ----

def run_spread(operator, spread, operands, constants, axes, types, wanted):
    """The results on this machine; None where they are not wanted."""
    device = next((each.device for each in operands if each is not None), None)
    now = None if device is None or is_traced(operands) else device
    part, error, meetings = None, None, [(group, None, ()) for group in spread.groups]
    try:
        part = Part(operator, spread, operands, constants, axes, types, wanted)
        meetings = part.meetings()
    except Exception as found:
        error = found
    meet_all(meetings, [operator.name, *SAID], now, error)
    return part.run(has_agreed=now is not None and asks_each_time(now))


class Part:
    """What one machine has of a call, and finds wrong with it by itself."""

    def __init__(self, operator, spread, operands, constants, axes, types, wanted):
        self.operator, self.spread, self.axes, self.wanted = operator, spread, axes, wanted
        spreads = [each[1] for each in operator.operator.operands]
        source = shape_sources(operator, operands)[1]
        if spread.columns is not None and axes != 1:
            raise trireme.Unsupported(f"{operator.name}: rows of one axis are cut by columns; give axes=1, and tensors whose last "
                                      "axis is the row")
        said = types_dict(types) or {}
        self.storage = storage_types(operator, operands, said)
        self.pairs = {name for name in self.storage if is_pairs(name, self.storage, said)}  # two columns an element
        self.device = operands[source].device
        # What all machines have alike: which operands, and their types.
        self.kind = f"{[None if each is None else each.dtype for each in operands]}{types}"
        # Cuts and trees are made for numbers: compiled code is, too.
        whole = tuple(int(extent) for extent in problem_shape(operator, operands, axes, constants))
        self.whole = (*whole[:-1], 2 * whole[-1]) if operator.operands[source] in self.pairs else whole
        self.rows, self.columns = math.prod(self.whole[:len(whole) - axes]), math.prod(self.whole[len(whole) - axes:])
        self.by_columns, self.by_rows = cuts_of(operator, spread, self.rows, self.columns)
        self.values = Whole(zip(operator.constants, constants), self.by_columns.total if self.by_columns else self.columns)
        self.known = {name: each if each is None or is_picked(where) else self.as_matrix(name, each, where)
                      for name, each, where in zip(operator.operands, operands, spreads)}

    def as_matrix(self, name, each, where):
        shape = elements(extents(where, (self.rows, self.columns), 1, self.values), name in self.pairs)
        if each.numel() != math.prod(shape):
            raise trireme.InvalidArgument(f"{self.operator.name}: {name}{where} has the shape {tuple(each.shape)}, and {shape} is its "
                                          f"part of {self.rows} rows and {self.columns} columns")
        return each.reshape(shape)

    def meetings(self):
        constants = {name: self.values[name] for name in self.operator.constants}
        return meetings_of(self.operator, self.spread, self.kind, self.rows, self.columns, self.wanted, constants)

    def run(self, has_agreed):
        operator, spread, values = self.operator, self.spread, self.values
        compute = torch.float64 if torch.float64 in self.storage.values() else torch.float32
        if self.by_columns:
            check_columns(operator, self.by_columns, tuple(values[name] for name in operator.constants))
        if self.by_rows and not spread.anew:
            check_rows(operator, self.by_rows[0], values, spread.in_order)
        counted = set().union(*(phase.computes_with for phase in phases_of(operator, self.by_columns is not None, spread.composed)))
        for cut, name, what in ((self.by_columns, "first_column", "j, and columns"),
                                (self.by_rows[0] if self.by_rows else None, "first_row", "i, and rows")):
            if cut is not None and compute == torch.float32 and cut.total > 1 << 24 and name in counted:
                raise trireme.Unsupported(f"{operator.name}: the program computes with {what} beyond 2^24 are no numbers of f32")
        machine = Machine(operator, spread, self.by_columns, self.by_rows, values, self.storage, compute, self.rows, self.columns,
                          self.wanted, self.device, self.pairs, has_agreed)
        made = machine.run(self.known)
        return tuple(made[name].reshape(elements(extents(where, self.whole, self.axes, values), name in self.pairs))
                     if self.wanted >> k & 1 else None for k, (name, where, *_) in enumerate(operator.operator.results))


def elements(shape, in_pairs):
    """Of a tensor whose elements are two columns each, or one."""
    return [*shape[:-1], shape[-1] // 2] if in_pairs else shape

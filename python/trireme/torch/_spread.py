"""One operator over several machines: rows cut by columns over one group, rows themselves spread over others."""
import functools
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch
import torch.distributed as dist
from torch import Tensor

import trireme

from . import _programs
from ._autograd import Call, Function, needs_graph
from ._exchange import STRIPE, SUM, Piece, Reduction, exchange, meet, number_of, one_each, one_run, stage, tree_of
from ._made import MADE
from ._register import LIBRARY, NAMES, extents, fill, is_pairs, storage_types, types_dict, types_text
from ._rows import Row, group_of, has_columns, is_picked, row_of, sums_over_rows


class Phase:
    """A phase of a split program as torch operators, or the whole program where its columns are in one place."""

    def __init__(self, text, exchanges=(), groups=()):
        parts = _programs.take_apart(text)
        self.like = not any(spread == "[i,j]" for _, spread, _ in parts.operands)
        if self.like:  # somebody has to say how many rows and columns there are
            name = "like"
            while name in _programs.names_in(text):
                name += "_"
            text = parts._replace(operands=[(name, "[i,j]", ""), *parts.operands]).text()
        self.operator = stage(text)
        self.operands = self.operator.operands[self.like:]
        self.results = {name: spread for name, spread, *_ in self.operator.operator.results}
        self.row_sums = {name for name, spread in self.results.items() if sums_over_rows(parts, name, spread)}
        self.exchanges = exchanges
        self.exchanged = {name for _, names in exchanges for name in names}
        self.groups = groups  # "[j / group]": what it divides j by
        self.counts = {name.rstrip("_") for name, *_ in self.operator.operator.constants} & {"columns", "first_column"}


def phases_of(operator, by_columns, composed=False):
    """Of a torch operator, in order. Raises Unsupported with the reason."""
    kept = operator.__dict__.setdefault("_phases_by", {})
    if (by_columns, composed) not in kept:
        program = operator.operator.compose() if composed else operator.operator
        if not by_columns:
            kept[by_columns, composed] = [Phase(_programs.require_saved(program))]
        else:
            kept[by_columns, composed] = [
                Phase(phase.program.text, [(Reduction(each.reduction, each.combine.text), each.names) for each in phase.exchanges],
                      phase.groups)
                for phase in program.split()]
    return kept[by_columns, composed]


@functools.lru_cache(maxsize=None)
def counting_constants(operator, by_columns):
    """Names of the constants that say how an operator counts rows and columns."""
    spreads = [each[1] for each in operator.operator.operands + operator.operator.results]
    if by_columns:
        spreads += [group for phase in phases_of(operator, True) for group in phase.groups]
    return {name for spread in spreads for name in _programs.names_in(spread)} & set(operator.constants)


class _Whole(dict):
    """Constants, and the number of columns of whole rows: `n`, or the name that a phase has for it."""

    def __init__(self, constants, columns):
        super().__init__(constants, n=columns)

    def __missing__(self, name):
        return self["n"]


def group_size(spread, constants):
    """g of `[i, j / g]`; a plan refuses one that is no positive number."""
    return max(group_of(spread, constants), 1)


@functools.lru_cache(maxsize=4096)
def cut_inside_groups(operator, constants, widths):
    """("", 1), or what is wrong with parts that end inside a group of neighbouring columns, and a multiple of all groups that
    columns may be cut at. `constants`: all of the operator's."""
    constants = _Whole(zip(operator.constants, constants), sum(widths))
    sizes = {group: group_size(group, constants) for phase in phases_of(operator, True) for group in phase.groups}
    least = math.lcm(*sizes.values())
    begins = [sum(widths[:k]) for k in range(1, len(widths))]
    if all(first % least == 0 for first in begins):
        return "", 1
    named = " and ".join(f"{group} of {size}" for group, size in sizes.items())
    return f"{operator.name}: columns in groups {named} are not cut inside a group, at {begins}", least


def check_groups(operator, constants, widths):
    """Refuses such parts, and says which cut would do."""
    wrong, least = cut_inside_groups(operator, constants, widths)
    if not wrong:
        return
    parts, total = len(widths), sum(widths)
    groups = -(-total // least)
    if groups < parts:
        raise trireme.Unsupported(f"{wrong}; cut {total} columns over at most {groups} machines")
    shares = [(groups // parts + (k < groups % parts)) * least for k in range(parts - 1)]
    raise trireme.Unsupported(f"{wrong}; cut at multiples of {least}, such as cut={(*shares, total - sum(shares))}")


class Cut(NamedTuple):
    """Of an axis over a group: how much each machine has."""
    widths: tuple
    rank: int

    @property
    def first(self):
        return sum(self.widths[:self.rank])

    @property
    def total(self):
        return sum(self.widths)


class Spread:
    """Where the columns and the rows of an operator's tensors are: a process group, or none for one place; of rows several,
    the innermost first. Cuts: how many each machine has; none where all have as many. Composed: by the fewest exchanges."""

    def __init__(self, columns=None, rows=(), in_order=True, column_cut=None, row_cut=None, composed=False):
        self.columns = columns if columns is not None and columns.size() > 1 else None
        self.rows = tuple(each for each in rows if each.size() > 1)
        # Machine by machine, rows follow each other: those of one before those of the next, in known numbers.
        self.in_order = in_order and len(self.rows) < 2
        self.column_cut = tuple(column_cut) if column_cut and self.columns is not None else None
        self.row_cut = tuple(row_cut) if row_cut and len(self.rows) == 1 else None
        self.composed = composed

    def of(self, operator):
        return SpreadOperator(operator, self)

    @property
    def words(self):
        rows = ",".join(each.group_name for each in self.rows)
        return ("" if self.columns is None else self.columns.group_name, rows, self.in_order, list(self.column_cut or ()),
                list(self.row_cut or ()), self.composed)


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
            return tuple(torch.ops.trireme.spread(list(operands), [float(each) for each in constants], axes, types, wanted,
                                                  self.operator.name, *self.spread.words))
        return call_spread(self.operator, self.spread, operands, constants, axes, types, wanted)


def call_spread(operator, spread, operands, constants, axes, types, wanted):
    def run(operands, wanted):
        return fill(run_spread(operator, spread, operands, constants, axes, types, wanted), operands)

    if not needs_graph(operands):
        return run(operands, wanted)
    return Function.apply(Call(operator, constants, axes, types, wanted, run, spread), *operands)


# What compiled code calls. Dynamo takes it as it is; when the graph is traced it is its phases and the collectives between.
LIBRARY.define("spread(Tensor?[] operands, float[] constants, int axes, str types, int wanted, str operator, str columns, "
               "str rows, bool in_order, int[] column_cut, int[] row_cut, bool composed) -> Tensor[]")


def _spread(operands, constants, axes, types, wanted, operator, columns, rows, in_order, column_cut, row_cut, composed):
    from torch._functorch.utils import enable_single_level_autograd_function

    find = dist.distributed_c10d._resolve_process_group
    spread = Spread(find(columns) if columns else None, [find(each) for each in rows.split(",") if each], in_order,
                    column_cut, row_cut, composed)
    with enable_single_level_autograd_function():
        return list(call_spread(MADE[operator], spread, operands, constants, axes, types, wanted))


for _key in ("Autograd", "CompositeExplicitAutograd"):
    LIBRARY.impl("spread", _spread, _key)


# ---- one call ----

def cuts_of(operator, spread, first, rows, columns, wanted, constants):
    """How columns and rows are cut. That all machines see it so is asked once for each shape."""
    counting = {name: constants[name] for name in sorted(counting_constants(operator, spread.columns is not None))}
    kind = number_of(f"{operator.operator.text}{first.dtype}{counting or ''}{'composed' * spread.composed}")
    what = [operator.name, "the operator, its types and what it divides i and j by", "which results are asked for", "the number of rows",
            "the number of columns", "the cut"]
    by_columns, by_rows = None, []
    if spread.columns is not None:
        by_columns = _cut(operator, spread.columns, spread.column_cut, columns, "columns")
        even = (3,) if spread.column_cut is None else ()
        meet(spread.columns, (kind, wanted, rows, columns, number_of(str(spread.column_cut))), what, (0, 1, 2, *even, 4))
        if 0 in by_columns.widths:
            raise ValueError(f"{operator.name}: machine {by_columns.widths.index(0)} of the group has no columns; cut "
                             f"{by_columns.total} columns over at most {by_columns.total} machines, each with at least one")
        check_groups(operator, tuple(constants.values()), by_columns.widths)
    for group in spread.rows:
        by_rows.append(_cut(operator, group, spread.row_cut, rows, "rows"))
        even = (2,) if spread.row_cut is None and spread.in_order else ()
        meet(group, (kind, wanted, rows if spread.in_order else 0, columns, number_of(str(spread.row_cut))), what,
             (0, 1, *even, 3, 4))
    return by_columns, by_rows


def _cut(operator, group, widths, mine, what):
    rank = dist.get_rank(group)
    if widths is None:
        return Cut((mine,) * group.size(), rank)
    if len(widths) != group.size() or widths[rank] != mine:
        raise ValueError(f"{operator.name}: machine {rank} of {group.size()} has {mine} {what}, and the cut says {widths}")
    return Cut(widths, rank)


def check_rows(operator, cut, constants, in_order):
    """Rows that know their number cannot be anywhere."""
    parts = _programs.take_apart(operator.operator.text)
    if found := {"i", "random"} & _programs.names_in(parts.body):
        raise trireme.Unsupported(f"{operator.name}: the program computes with {found.pop()}, which counts rows over all machines; spread "
                                  "its columns, or give it all rows")
    if "colmax(" in parts.body:
        raise trireme.Unsupported(f"{operator.name}: colmax over machines is not combined; give it all rows")
    for name, spread, *_ in operator.operator.operands + operator.operator.results:
        row = row_of(spread, constants)
        if row is None or row == Row():
            continue
        if not in_order:
            raise trireme.Unsupported(f"{operator.name}: '{name}{spread}' counts rows over all machines; spread them in order: "
                                      "those of one machine before those of the next, over one group")
        period = row.divide * max(row.wrap, 1)
        begins = [sum(cut.widths[:k]) for k in range(len(cut.widths))]
        if any(first % period for first in begins):
            raise trireme.Unsupported(f"{operator.name}: '{name}{spread}' counts rows over all machines; cut rows at multiples "
                                      f"of {period}, not at {begins[1:]}")


def sum_class(spread, constants, rows, by_rows, columns, in_order):
    """(unit, row_block): of how many rows the blocks of a sum over rows are, 0 for the part's own; and of how many rows the
    units are that parts are cut at."""
    row = row_of(spread, constants)
    total = by_rows[0].total if by_rows else rows
    if spread == "[]":
        return STRIPE, 0
    share, period = (total, 1) if row is None else (total // row.wrap, row.divide * row.wrap) if row.wrap else (row.divide, 1)
    if row is not None and not row.wrap:  # each machine's own entries
        return 0, 0
    if total % period or not in_order:
        return 0, 0
    entries = math.prod(extents(spread, (total, columns), 1, constants))
    block = trireme._core.row_block(share, entries)
    return period * (block // math.gcd(block, row.divide if row else 1)), block


def run_spread(operator, spread, operands, constants, axes, types, wanted):
    """The results on this machine; None where they are not wanted."""
    spreads = [each[1] for each in operator.operator.operands]
    first = operands[operator.first_element(operands)]
    if spread.columns is not None and axes != 1:
        raise trireme.Unsupported(f"{operator.name}: rows of one axis are cut by columns; give axes=1, and tensors whose last "
                                  "axis is the row")
    storage = storage_types(operator, operands, types_dict(types) or {})
    compute = torch.float64 if torch.float64 in storage.values() else torch.float32
    whole = tuple(int(extent) for extent in first.shape)  # cuts and trees are made for numbers: compiled code is, too
    said = types_dict(types) or {}
    pairs = {name for name in storage if is_pairs(name, storage, said)}  # two columns an element
    if operator.operands[operator.first_element(operands)] in pairs:
        whole = (*whole[:-1], 2 * whole[-1])
    outer, inner = whole[:len(whole) - axes], whole[len(whole) - axes:]
    rows, columns = math.prod(outer), math.prod(inner)
    values = dict(zip(operator.constants, constants))
    by_columns, by_rows = cuts_of(operator, spread, first, rows, columns, wanted, values)
    values = _Whole(values, by_columns.total if by_columns else columns)
    if by_rows:
        check_rows(operator, by_rows[0], values, spread.in_order)
    if by_columns is not None and compute == torch.float32 and by_columns.total > 1 << 24 and \
            any("first_column" in phase.counts for phase in phases_of(operator, True, spread.composed)):
        raise trireme.Unsupported(f"{operator.name}: the program computes with j, and columns beyond 2^24 are no numbers of f32")
    machine = _Machine(operator, spread, by_columns, by_rows, values, storage, compute, rows, columns, wanted,
                       first.device, pairs)
    known = {}
    for name, each, where in zip(operator.operands, operands, spreads):
        if each is not None and not is_picked(where):  # picked: as many rows as the caller has
            each = each.reshape(elements(extents(where, (rows, columns), 1, values), name in pairs))
        known[name] = each
    made = machine.run(known)
    return tuple(made[name].reshape(elements(extents(where, whole, axes, values), name in pairs)) if wanted >> k & 1 else None
                 for k, (name, where, *_) in enumerate(operator.operator.results))


def elements(shape, in_pairs):
    """Of a tensor whose elements are two columns each, or one."""
    return [*shape[:-1], shape[-1] // 2] if in_pairs else shape


class _Machine:
    """What one call does on one machine."""

    def __init__(self, operator, spread, by_columns, by_rows, constants, storage, compute, rows, columns, wanted, device, pairs):
        self.operator, self.spread, self.by_columns, self.by_rows = operator, spread, by_columns, by_rows
        self.constants, self.storage, self.compute = constants, storage, compute
        self.rows, self.columns, self.device, self.pairs = rows, columns, device, pairs
        self.wanted = {name for k, name in enumerate(operator.results) if wanted >> k & 1}
        self.phases = phases_of(operator, by_columns is not None, spread.composed)
        self.sums = {}  # of results that sum over rows: (unit, row block)

    def run(self, known):
        live, needed = set(self.wanted), []
        for phase in reversed(self.phases):  # what later phases read of earlier ones
            results = {name for name in phase.results if name in live}
            needed.insert(0, results)
            if results:
                live |= set(phase.operands)
                for _, names in phase.exchanges:
                    if results & set(names):
                        results |= set(names)
        for phase, results in zip(self.phases, needed):
            if results:
                known.update(self.run_phase(phase, results, known))
        made = {name: known[name] for name in self.wanted}
        for group, cut in zip(self.spread.rows, self.by_rows):
            made.update(self.over_rows(made, group, cut))
        return {name: self.stored(name, each) for name, each in made.items()}

    def stored(self, name, each):
        if isinstance(each, list):
            each = each[0]
        return each if each.dtype == self.storage[name] else each.to(self.storage[name])

    # ---- one phase ----

    def run_phase(self, phase, results, known):
        runs = self.column_tree(phase).runs[self.by_columns.rank] if self.by_columns else ((0, self.columns),)
        totals = {name for name in results if name in phase.exchanged and name not in phase.row_sums}
        sums = {name for name in results if name in phase.row_sums}
        classes = {}
        for name in sorted(sums):
            classes.setdefault(self.class_of(name, phase.results[name]), set()).add(name)
        together = set(results)
        made = {}
        if len(runs) > 1 and totals:
            together -= totals
            made.update({name: [] for name in totals})
            for begin, count in runs:
                found = self.call(phase, totals, self.columns_of(phase, known, begin, count), 0, begin)
                for name in totals:
                    made[name].append(found[name])
        block = 0
        for (unit, row_block), names in classes.items():
            pieces = self.row_runs(unit)
            if pieces == ((0, self.rows),) and (len(classes) == 1 or not row_block):
                block = max(block, row_block)
                continue
            together -= names
            made.update({name: [] for name in names})
            for begin, count in pieces:
                found = self.call(phase, names, self.rows_of(phase, known, begin, count), row_block, 0)
                for name in names:
                    made[name].append(found[name])
        if together:
            found = self.call(phase, together, known, block if together & sums else 0, 0)
            made.update({name: [each] if name in totals or name in sums else each for name, each in found.items()})
        if self.by_columns is not None and any(set(names) & results for _, names in phase.exchanges):
            made.update(self.over_columns(phase, results, made))
        return made

    def column_tree(self, phase):
        """Of the columns' sums. Runs that would begin inside a group are one run a part, and have not the whole row's bits."""
        tree = tree_of(self.by_columns.widths, STRIPE)
        sizes = [group_size(group, self.constants) for group in phase.groups]
        inside = any(begin % size for size in sizes for runs in tree.runs for begin, _ in runs)
        return one_run(self.by_columns.widths) if inside else tree

    def class_of(self, name, where):
        if name not in self.sums:
            entries = self.by_columns.total if self.by_columns else self.columns
            found = sum_class(where, self.constants, self.rows, self.by_rows, entries, self.spread.in_order)
            self.sums[name] = found if self.fits(found[0]) else (0, 0)
        return self.sums[name]

    def fits(self, unit):
        """Whether runs of rows of such units begin where every array that counts rows begins anew."""
        if not unit or not self.by_rows or not self.spread.in_order:
            return True
        rows = [row_of(where, self.constants) for _, where, *_ in self.operator.operator.operands]
        period = math.lcm(*(row.divide * max(row.wrap, 1) for row in rows if row is not None))
        return all(begin % period == 0 for runs in self.row_tree(unit, self.by_rows[0]).runs for begin, _ in runs)

    def row_tree(self, unit, cut):
        return tree_of(cut.widths, unit) if unit and self.spread.in_order else one_each(len(cut.widths))

    def row_runs(self, unit):
        if not self.by_rows or not unit or not self.spread.in_order:
            return ((0, self.rows),)
        return self.row_tree(unit, self.by_rows[0]).runs[self.by_rows[0].rank]

    def columns_of(self, phase, known, begin, count):
        spreads = {name: where for name, where, *_ in phase.operator.operator.operands}
        found = dict(known)
        for name in phase.operands:
            if known.get(name) is not None and has_columns(spreads[name]):
                size = group_size(spreads[name], self.constants) * (2 if name in self.pairs else 1)
                found[name] = known[name].narrow(-1, begin // size, -(-count // size))
        like = self.like(known)
        size = self.columns // like.shape[-1]  # 2 of pairs
        found["like"] = like.narrow(-1, begin // size, count // size)
        return found

    def rows_of(self, phase, known, begin, count):
        spreads = {name: where for name, where, *_ in phase.operator.operator.operands}
        found = dict(known)
        for name in phase.operands:
            row = None if known.get(name) is None else row_of(spreads[name], self.constants)
            if row is not None and not row.wrap:
                found[name] = known[name].narrow(0, begin // row.divide, -(-count // row.divide))
        found["like"] = self.like(known).narrow(0, begin, count)
        return found

    def like(self, known):
        return next(known[name] for name, where, *_ in self.operator.operator.operands
                    if where == "[i,j]" and known[name] is not None)

    def call(self, phase, results, known, row_block, begin):
        operator = phase.operator
        operands = [known.get(name) for name in phase.operands]
        if phase.like:
            operands.insert(0, known["like"] if "like" in known else self.like(known))
        said = dict(self.constants)
        for name, _, optional, fallback in operator.operator.constants:
            if name in said:
                continue
            if name.rstrip("_") == "columns":
                said[name] = float(self.by_columns.total)
            elif name.rstrip("_") == "first_column":
                said[name] = float(self.by_columns.first + begin)
            else:
                said[name] = fallback
        kinds = {}
        for name in results:
            partial = name in phase.exchanged or (name in phase.row_sums and self.by_rows and not self.own_entries(name))
            kinds[name] = self.compute if partial or name not in self.storage else self.storage[name]
        places = {name: k for k, name in enumerate(operator.results)}
        made = operator.call(operands, [said[name] for name in operator.constants], 1,
                             ",".join(f"{name}={NAMES[kinds[name]]}" for name in sorted(kinds)),
                             sum(1 << places[name] for name in results), row_block=row_block)
        return {name: made[places[name]] for name in results}

    # ---- exchanges ----

    def over_columns(self, phase, results, made):
        """Totals of what the machines that share the rows have."""
        groups = {}
        for reduction, names in phase.exchanges:
            if set(names) & results:
                is_sum = names[0] in phase.row_sums
                groups.setdefault((reduction, is_sum), []).append(names)
        pieces, tree = [], self.column_tree(phase)
        for (reduction, is_sum), lists in groups.items():
            if is_sum:  # [] and its like: one value a machine, of each run of rows
                flat = torch.cat([each.reshape(-1) for names in lists for each in made[names[0]]])
                pieces.append(Piece(reduction, one_each(len(self.by_columns.widths)), [(flat,)], flat.numel()))
            else:
                runs = [tuple(torch.cat([made[names[k]][run].reshape(-1) for names in lists])
                              for k in range(reduction.arity)) for run in range(len(made[lists[0][0]]))]
                counts = tuple(tuple(count for _, count in each) for each in tree.runs) if reduction.arity > 1 else ()
                pieces.append(Piece(reduction, tree, runs, len(lists) * self.rows, counts))
        found = {}
        made_of_all = exchange(self.spread.columns, pieces, self.compute, self.device, self.what(phase))
        for ((reduction, is_sum), lists), totals in zip(groups.items(), made_of_all):
            begin = 0
            for names in lists:
                if is_sum:
                    kept = []
                    for each in made[names[0]]:
                        kept.append(totals[0][begin:begin + each.numel()].view(each.shape))
                        begin += each.numel()
                    found[names[0]] = kept
                else:
                    for k, name in enumerate(names):
                        found[name] = totals[k][begin:begin + self.rows]
                    begin += self.rows
        return found

    def what(self, phase):
        """What is exchanged after a phase, but for how many rows there are."""
        return f"{phase.operator.operator.name} of {self.columns} columns"

    def over_rows(self, made, group, cut):
        """Totals of results that sum over rows, which machines share; those of machines' own entries are theirs."""
        names = [name for name in sorted(made) if name in self.sums and not self.own_entries(name)]
        if not names:
            return {}
        pieces = []
        for name in names:
            length = math.prod(self.result_shape(name))
            pieces.append(Piece(SUM, self.row_tree(self.sums[name][0], cut), [(each.reshape(-1),) for each in made[name]], length))
        if self.spread.in_order and cut.total == 0:
            return {name: [torch.zeros(self.result_shape(name), dtype=self.compute, device=self.device)] for name in names}
        totals = exchange(group, pieces, self.compute, self.device, self.what(self.phases[-1]))
        return {name: [each[0].view(self.result_shape(name))] for name, each in zip(names, totals)}

    def own_entries(self, name):
        row = row_of(dict((each[0], each[1]) for each in self.operator.operator.results)[name], self.constants)
        return row is not None and not row.wrap

    def result_shape(self, name):
        where = next(spread for each, spread, *_ in self.operator.operator.results if each == name)
        return extents(where, (self.rows, self.columns), 1, self.constants)

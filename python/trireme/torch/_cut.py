"""What an operator's cut over machines is, and whether it may be: phases, groups of columns, rows that are counted."""
import functools
import math
from typing import NamedTuple

import torch.distributed as dist

import trireme

from . import _programs
from ._exchange import STRIPE, Reduction, stage
from ._meeting import number_of
from ._register import extents
from ._rows import Row, group_of, has_columns, row_of, sums_over_rows, takes_largest_of_rows


class Phase:
    """A phase of a split program as torch operators, or the whole program where its columns are in one place."""

    def __init__(self, text, exchanges=(), groups=()):
        plain, text = text, _programs.with_first_row(text)
        parts = _programs.take_apart(text)
        # Its name is none of this phase's, and may be that of a constant that other phases have.
        self.first_row = parts.operands[-1][0] if text != plain else None
        given = [spread.strip("[]").split(",") for _, spread, fallback in parts.operands if not fallback]
        self.like = not any(spread == "[i,j]" for _, spread, _ in parts.operands) and not (
            any(each[0] == "i" for each in given) and any(each[-1].strip() == "j" for each in given))
        if self.like:  # somebody has to say how many rows and columns there are
            name = "like"
            while name in _programs.names_in(text):
                name += "_"
            text = parts._replace(operands=[(name, "[i,j]", ""), *parts.operands]).text()
        self.operator = stage(text)
        self.operands = self.operator.operands[self.like:]
        self.results = {name: spread for name, spread, *_ in self.operator.operator.results}
        self.row_sums = {name for name, spread in self.results.items() if sums_over_rows(parts, name, spread)}
        self.maxima = {name for name, spread in self.results.items() if takes_largest_of_rows(parts, name, spread)}
        self.over_rows = self.row_sums | self.maxima
        self.exchanges = exchanges
        self.exchanged = {name for _, names in exchanges for name in names}
        self.groups = groups  # "[j / group]": what it divides j by
        # Of rows alone: columns are asked for nothing, and one is enough to say how many rows there are.
        self.of_rows = self.like and not exchanges and not any(
            has_columns(spread) for spread in [*self.results.values(), *(each[1] for each in parts.operands)])
        self.computes_with = {"first_row" if name == self.first_row else name.rstrip("_") for name, *_ in self.operator.operator.constants
                              if name in _programs.computed_with(text)} & {"columns", "first_column", "first_row"}


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
                for phase in _split(program)]
    return kept[by_columns, composed]


def _split(program):
    try:
        return program.split()
    except trireme.Unsupported as error:
        raise trireme.Unsupported(f"{error}, by parallel.rows") from None


@functools.lru_cache(maxsize=None)
def counting_constants(operator, by_columns):
    """Names of the constants that say how an operator counts rows and columns."""
    spreads = [each[1] for each in operator.operator.operands + operator.operator.results]
    if by_columns:
        spreads += [group for phase in phases_of(operator, True) for group in phase.groups]
    return {name for spread in spreads for name in _programs.names_in(spread)} & set(operator.constants)


class Whole(dict):
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
    constants = Whole(zip(operator.constants, constants), sum(widths))
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


def cuts_of(operator, spread, rows, columns):
    """How columns and rows are cut, as this machine sees it."""
    by_columns = None if spread.columns is None else _cut(operator, spread.columns, spread.column_cut, columns, "columns")
    return by_columns, [_cut(operator, group, spread.row_cut, rows, "rows") for group in spread.rows]


def _cut(operator, group, widths, mine, what):
    rank = dist.get_rank(group)
    if widths is None:
        return Cut((mine,) * group.size(), rank)
    if len(widths) != group.size() or widths[rank] != mine:
        raise ValueError(f"{operator.name}: machine {rank} of {group.size()} has {mine} {what}, and the cut says {widths}")
    return Cut(widths, rank)


SAID = ["the operator, its types and what it divides i and j by", "which results are asked for", "the number of rows",
        "the number of columns", "the cut"]


def meetings_of(operator, spread, kind, rows, columns, wanted, constants):
    """Of each group what its machines say, as SAID, and what must be the same: then they exchange the same numbers. `kind`: what
    else tells calls apart."""
    counting = {name: constants[name] for name in sorted(counting_constants(operator, spread.columns is not None))}
    kind = number_of(f"{operator.operator.text}{kind}{counting or ''}{spread.composed}{spread.in_order}{spread.anew}")
    found = []
    if spread.columns is not None:
        even = (3,) if spread.column_cut is None else ()
        found.append((spread.columns, (kind, wanted, rows, columns, number_of(str(spread.column_cut))), (0, 1, 2, *even, 4)))
    for group in spread.rows:
        even = (2,) if spread.row_cut is None and spread.in_order else ()
        found.append((group, (kind, wanted, rows if spread.in_order else 0, columns, number_of(str(spread.row_cut))), (0, 1, *even, 3, 4)))
    return found


def check_columns(operator, cut, constants):
    """Each part has columns, and whole groups of them."""
    if 0 in cut.widths:
        raise ValueError(f"{operator.name}: machine {cut.widths.index(0)} of the group has no columns; cut "
                         f"{cut.total} columns over at most {cut.total} machines, each with at least one")
    check_groups(operator, constants, cut.widths)


def check_rows(operator, cut, constants, in_order):
    """Rows that are counted have to follow each other, and to be cut where what divides them has a new entry."""
    body = _programs.names_in(_programs.take_apart(operator.operator.text).body)
    counts = next((name for name in ("i", "random") if name in body), None)
    if counts and not in_order:
        raise trireme.Unsupported(f"{operator.name}: the program computes with {counts}, which counts rows over all machines; spread "
                                  "them in order: those of one machine before those of the next, over one group")
    for name, spread, *_ in operator.operator.operands + operator.operator.results:
        row = row_of(spread, constants)
        if row is None or row == Row():
            continue
        if not in_order:
            raise trireme.Unsupported(f"{operator.name}: '{name}{spread}' counts rows over all machines; spread them in order: "
                                      "those of one machine before those of the next, over one group")
        begins = [sum(cut.widths[:k]) for k in range(len(cut.widths))]
        if any(first % row.divide for first in begins):
            raise trireme.Unsupported(f"{operator.name}: '{name}{spread}' counts rows over all machines; cut rows at multiples "
                                      f"of {row.divide}, not at {begins[1:]}")


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

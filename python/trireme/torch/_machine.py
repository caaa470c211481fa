"""What one call of an operator does on one machine: its phases on the machine's part, and the exchanges between."""
import math

import torch

from ._cut import group_size, phases_of, sum_class
from ._exchange import AMAX, STRIPE, SUM, Piece, exchange, joined, one_each, one_run, tree_of
from ._register import NAMES, extents
from ._rows import has_columns, row_of

_LIKE = "[i,j]"  # among arrays by name: one that says how many rows and columns there are; no operand has that name


class Machine:
    """What one call does on one machine."""

    def __init__(self, operator, spread, by_columns, by_rows, constants, storage, compute, rows, columns, wanted, device, pairs,
                 has_agreed):
        self.operator, self.spread, self.by_columns, self.by_rows = operator, spread, by_columns, by_rows
        self.constants, self.storage, self.compute = constants, storage, compute
        self.rows, self.columns, self.device, self.pairs = rows, columns, device, pairs
        self.has_agreed = has_agreed  # the machines have said that they are in the same call
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
                found = self.call(phase, totals, self.columns_of(phase, known, begin, count), 0, begin_column=begin)
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
                found = self.call(phase, names, self.rows_of(phase, known, begin, count), row_block, begin_row=begin)
                for name in names:
                    made[name].append(found[name])
        if together:
            found = self.call(phase, together, known, block if together & sums else 0)
            made.update({name: [each] if name in totals or name in phase.over_rows else each for name, each in found.items()})
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
        """Whether runs of rows of such units begin where every array that divides rows has a new entry."""
        if not unit or not self.by_rows or not self.spread.in_order:
            return True
        rows = [row_of(where, self.constants) for _, where, *_ in self.operator.operator.operands]
        least = math.lcm(*(row.divide for row in rows if row is not None))
        return all(begin % least == 0 for runs in self.row_tree(unit, self.by_rows[0]).runs for begin, _ in runs)

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
        found[_LIKE] = like.narrow(-1, begin // size, count // size)
        return found

    def rows_of(self, phase, known, begin, count):
        spreads = {name: where for name, where, *_ in phase.operator.operator.operands}
        found = dict(known)
        for name in phase.operands:
            row = None if known.get(name) is None else row_of(spreads[name], self.constants)
            if row is not None and not row.wrap:
                found[name] = known[name].narrow(0, begin // row.divide, -(-count // row.divide))
        found[_LIKE] = self.like(known).narrow(0, begin, count)
        return found

    def like(self, known):
        given = [known[name] for name, where, *_ in self.operator.operator.operands if where == "[i,j]" and known[name] is not None]
        # Of an operator without one (a table's picked rows): nobody reads it, and it takes no memory.
        return given[0] if given else torch.empty((), dtype=self.compute, device=self.device).expand(self.rows, self.columns)

    def turned(self, where, each, begin_row, back=False):
        """An array whose rows wrap, from the entry of that row of this machine on; or a result of such a call, as all have it."""
        row = None if each is None else row_of(where, self.constants)
        if row is None or not row.wrap:
            return each
        entry = (self.first_row + begin_row) // row.divide % row.wrap
        return each.roll(entry if back else -entry, 0) if entry else each

    @property
    def first_row(self):
        return self.by_rows[0].first if self.by_rows and self.spread.in_order else 0

    def call(self, phase, results, known, row_block, begin_row=0, begin_column=0):
        operator = phase.operator
        spreads = {name: where for name, where, *_ in operator.operator.operands}
        operands = [self.turned(spreads[name], known.get(name), begin_row) for name in phase.operands]
        if phase.like:
            like = known[_LIKE] if _LIKE in known else self.like(known)
            operands.insert(0, like.narrow(-1, 0, 1) if phase.of_rows else like)
        said = dict(self.constants)
        for name, _, optional, fallback in operator.operator.constants:
            if name == phase.first_row:
                said[name] = float(self.first_row + begin_row)
            elif name in said:
                continue
            elif name.rstrip("_") == "columns":
                said[name] = float(self.by_columns.total)
            elif name.rstrip("_") == "first_column":
                said[name] = float(self.by_columns.first + begin_column)
            else:
                said[name] = fallback
        kinds = {}
        for name in results:
            partial = name in phase.exchanged or (name in phase.over_rows and self.by_rows and not self.own_entries(name))
            kinds[name] = self.compute if partial or name not in self.storage else self.storage[name]
        places = {name: k for k, name in enumerate(operator.results)}
        for name in operator.types_read - results:  # not there, and its type is asked for
            if known.get(name) is None and name in self.storage:
                kinds[name] = self.storage[name]
        types = ",".join(f"{name}={NAMES[kinds[name]]}" for name in sorted(kinds))
        made = operator.call(operands, [said[name] for name in operator.constants], 1, types,
                             sum(1 << places[name] for name in results), row_block=row_block)
        return {name: self.turned(phase.results[name], made[places[name]], begin_row, back=True) for name in results}

    # ---- exchanges ----

    def over_columns(self, phase, results, made):
        """Totals of what the machines that share the rows have."""
        groups = {}
        for reduction, names in phase.exchanges:
            if set(names) & results:
                groups.setdefault(reduction, []).append(names)
        pieces, tree = [], self.column_tree(phase)
        for reduction, lists in groups.items():
            runs = [tuple(joined([made[names[k]][run].reshape(-1) for names in lists])
                          for k in range(reduction.arity)) for run in range(len(made[lists[0][0]]))]
            counts = tuple(tuple(count for _, count in each) for each in tree.runs) if reduction.arity > 1 else ()
            pieces.append(Piece(reduction, tree, runs, runs[0][0].numel(), counts))
        found = {}
        made_of_all = exchange(self.spread.columns, pieces, self.compute, self.device, self.what(phase), self.has_agreed)
        for lists, totals in zip(groups.values(), made_of_all):
            begin = 0
            for names in lists:
                of_run = made[names[0]][0]
                for k, name in enumerate(names):
                    total = totals[k][begin:begin + of_run.numel()].view(of_run.shape)
                    found[name] = [total] if name in phase.over_rows else total
                begin += of_run.numel()
        return found

    def what(self, phase):
        """What is exchanged after a phase, but for how many rows there are; in the same words on every machine."""
        columns = self.by_columns.total if self.by_columns else self.columns
        return f"{phase.operator.operator.name} of {columns} columns"

    def over_rows(self, made, group, cut):
        """Totals of results that sum over rows, which machines share; those of machines' own entries are theirs."""
        largest = {name for phase in self.phases for name in phase.maxima}
        names = [name for name in sorted(made) if name in largest | self.sums.keys() and not self.own_entries(name)]
        if not names:
            return {}
        pieces = []
        for name in names:
            length, runs = math.prod(self.result_shape(name)), [(each.reshape(-1),) for each in made[name]]
            tree = one_each(len(cut.widths)) if name in largest else self.row_tree(self.sums[name][0], cut)
            pieces.append(Piece(AMAX if name in largest else SUM, tree, runs, length))
        if self.spread.in_order and cut.total == 0:
            return {name: [torch.full(self.result_shape(name), -math.inf if name in largest else 0, dtype=self.compute, device=self.device)]
                    for name in names}
        totals = exchange(group, pieces, self.compute, self.device, self.what(self.phases[-1]), self.has_agreed)
        return {name: [each[0].view(self.result_shape(name))] for name, each in zip(names, totals)}

    def own_entries(self, name):
        row = row_of(dict((each[0], each[1]) for each in self.operator.operator.results)[name], self.constants)
        return row is not None and not row.wrap

    def result_shape(self, name):
        where = next(spread for each, spread, *_ in self.operator.operator.results if each == name)
        return extents(where, (self.rows, self.columns), 1, self.constants)

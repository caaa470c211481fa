"""Runs a program of syntax.py over NumPy arrays, in an arithmetic of arithmetic.py.

A value is an array of (rows or 1) x (columns or 1): what does not differ along an axis is kept once.
"""
import math
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from formulas import FORMULAS
from philox import uniform
from storage import largest
from syntax import (
    COLUMN_REDUCTIONS, COMPARISONS, COMPOSED, LEFT_TO_A_LINE, REDUCTIONS, TOTALS, VALUES_OF_INTEGERS, Program, apply, name,
)  # fmt: skip


class Invalid(Exception):
    """The program means nothing for this shape and these constants: a divisor that is no positive integer, say."""


def number_of(text):
    return float.fromhex(text) if "x" in text.lower() else float(text)


def scalar(expr, constants, columns, lines=None):
    """Whole-number arithmetic: an index's divisor, a rotation's amount, which lines may name. Every step is whole."""
    if expr.op == "number":
        value = number_of(expr.leaf)
    elif expr.op == "name":
        if lines and expr.leaf in lines:
            return scalar(lines[expr.leaf], constants, columns, lines)
        value = float(columns) if expr.leaf == "n" else constants[expr.leaf]
    else:
        args = [Fraction(scalar(arg, constants, columns, lines)) for arg in expr.args]
        try:
            value = {
                "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b, "/": lambda a, b: a / b,
                "neg": lambda a: -a,
            }[expr.op](*args)  # fmt: skip
        except (KeyError, ZeroDivisionError) as error:
            raise Invalid(f"{expr.op} in an index or a rotation: {error}") from None
    if not (abs(value) <= 2**53 and value == math.floor(value)):
        raise Invalid(f"{value} in an index or a rotation")
    return int(value)


def divisor(expr, constants, columns):
    value = scalar(expr, constants, columns)
    if value < 1:
        raise Invalid(f"divided or wrapped by {value}")
    return value


def axis_index(axis, extent, constants, columns):
    """The entry of each of `extent` rows or columns, and how many entries there are."""
    if axis is None:
        return np.zeros(extent, np.int64), 1
    index, entries = np.arange(extent), extent
    if axis.divide is not None:
        by = divisor(axis.divide, constants, columns)
        index, entries = index // by, -(-extent // by)
    if axis.wrap is not None:
        entries = divisor(axis.wrap, constants, columns)
        index = index % entries
    return index, entries


@dataclass
class Inputs:
    rows: int
    columns: int
    constants: dict
    operands: dict  # name -> f64 array of its entries, two axes; absent ones are not there
    types: dict = field(default_factory=dict)  # name -> storage type, of what casts and largest() name
    tangents: dict = field(default_factory=dict)
    tables: dict = field(default_factory=dict)  # name -> rows, of arrays whose rows are picked; else as many as there are


class Evaluation:
    def __init__(self, program, inputs, arithmetic):
        self.program, self.inputs, self.math = program, inputs, arithmetic
        self.lines = dict(program.lines)
        self.values, self.memo = {}, {}  # of names; of expressions, by identity

    def table_rows(self, value):
        return self.inputs.tables.get(value.name, max(self.inputs.rows, 1))

    def extents(self, value):
        if value.picked:
            column = axis_index(value.column, self.inputs.columns, self.inputs.constants, self.inputs.columns)[1]
            return self.table_rows(value), column
        return tuple(
            axis_index(axis, extent, self.inputs.constants, self.inputs.columns)[1]
            for axis, extent in ((value.row, self.inputs.rows), (value.column, self.inputs.columns))
        )

    def results(self):
        """Name -> value: [i,j] and [i] as they spread, column sums as entries."""
        with np.errstate(all="ignore"):
            return self._results()

    def _results(self):
        out = {}
        for result in self.program.results:
            expr = self.lines[result.name]
            if expr.op in COLUMN_REDUCTIONS:
                out[result.name] = self._over_rows(expr.op, result, self.run(expr.args[0]))
            elif result.picked:
                out[result.name] = self._written(result, self.value(result.name))
            elif result.column is not None and not result.column.plain:
                out[result.name] = self._entries(result, self.value(result.name))
            else:
                shape = (self.inputs.rows, self.inputs.columns if result.column else 1)
                out[result.name] = self.math.each(lambda v: np.broadcast_to(v, shape), self.value(result.name))
        return out

    def value(self, wanted):
        """What a name stands for."""
        if wanted not in self.values:
            operand = self.program.value(wanted)
            is_operand = operand is not None and operand in self.program.operands
            self.values[wanted] = self._operand(operand) if is_operand else self.run(self.lines[wanted])
        return self.values[wanted]

    def _operand(self, operand):
        if operand.constant:
            return self.math.leaf(np.full((1, 1), self.inputs.constants[operand.name]))
        if operand.name not in self.inputs.operands:
            return self.run(self.lines[operand.name] if operand.default == LEFT_TO_A_LINE else operand.default)
        tangent = self.inputs.tangents.get(operand.name)
        return self.math.leaf(
            self._spread(operand, self.inputs.operands[operand.name]),
            None if tangent is None else self._spread(operand, tangent),
        )

    def _picks(self, value):
        """The row that each row picks, and whether the table has it."""
        picker = self.program.value(value.row.pick)
        rows = np.broadcast_to(self._spread(picker, self.inputs.operands[picker.name]), (self.inputs.rows, 1))[:, 0]
        return rows.astype(np.int64), (rows >= 0) & (rows < self.table_rows(value))

    def _written(self, result, value):
        rows, there = self._picks(result)
        shape = (self.inputs.rows, self.inputs.columns if result.column else 1)

        def written(v):
            out = np.full((self.table_rows(result), shape[1]), self.math.unwritten)
            out[rows[there]] = np.broadcast_to(v, shape)[there]
            return out

        return self.math.each(written, value)

    def _spread(self, operand, array):
        inputs = self.inputs
        if operand.picked:
            rows, there = self._picks(operand)
            column = axis_index(operand.column, inputs.columns, inputs.constants, inputs.columns)[0]
            found = array[np.ix_(np.where(there, rows, 0), column if operand.column else column[:1])]
            return np.where(there[:, None], found, 0.0)
        index = [
            axis_index(axis, extent, inputs.constants, inputs.columns)[0] if axis else np.zeros(1, np.int64)
            for axis, extent in ((operand.row, inputs.rows), (operand.column, inputs.columns))
        ]
        return array[np.ix_(index[0], index[1])]

    def _over_rows(self, op, result, value):
        inputs = self.inputs
        value = self._full(value, rows=True)
        row, row_entries = axis_index(result.row, inputs.rows, inputs.constants, inputs.columns)
        column, column_entries = axis_index(result.column, inputs.columns, inputs.constants, inputs.columns)
        entry = (row[:, None] * column_entries + column[None, :]).ravel()
        total = getattr(self.math, op)(value, entry, row_entries * column_entries)
        return self.math.each(lambda v: v.reshape(row_entries, column_entries), total)

    def _entries(self, result, value):
        """A result that is one value a group: found in the group's first column, 0 where it has none."""
        entry, count = axis_index(result.column, self.inputs.columns, self.inputs.constants, self.inputs.columns)
        first = [np.flatnonzero(entry == k)[:1] for k in range(count)]
        full = self._full(value, rows=True)
        return self.math.each(lambda v: np.stack([v[:, at[0]] if len(at) else 0 * v[:, 0] for at in first], axis=1), full)

    def _full(self, value, rows=False):
        """Spread over the columns, as reductions want it."""
        count = self.inputs.rows if rows else value[0].shape[0]
        return self.math.each(lambda v: np.broadcast_to(v, (count, self.inputs.columns)), value)

    def _exact(self, expr):
        """The integers of an expression that is compared in integers, or None."""
        if expr.op == "neg" and expr.args[0].op == "number":
            inner = self._exact(expr.args[0])
            return None if inner is None else -inner
        if expr.op == "number":
            value = number_of(expr.leaf)
            return np.full((1, 1), value) if math.isfinite(value) and value == math.floor(value) else None
        if expr.op == "rotate":
            inner = self._exact(expr.args[0])
            return None if inner is None else self._rotated(inner, expr)
        if expr.op != "name":
            return None
        if expr.leaf in VALUES_OF_INTEGERS:
            return self._index(expr.leaf)
        operand = self.program.value(expr.leaf)
        there = operand is not None and expr.leaf in self.inputs.operands
        if there and self.inputs.types.get(expr.leaf) in ("i32", "i64", "u8"):
            return self._spread(operand, self.inputs.operands[expr.leaf])
        return None

    def _rotated(self, value, expr):
        by = scalar(expr.args[1], self.inputs.constants, self.inputs.columns, self.lines)
        return value if value.shape[1] == 1 else np.roll(value, -(by % self.inputs.columns), axis=1)

    def _reduction(self, op, expr):
        inner = expr.args[0]
        if inner.op == "entries":  # once over each group's value
            group = inner.args[1] if len(inner.args) == 2 else self._group_of(inner.args[0])
            value = self._full(self.run(inner.args[0]))
            entry = self._entry(group)
            first = np.unique(entry, return_index=True)[1]
            return self._reduced(op, self.math.each(lambda v: v[:, first], value))
        value = self._full(self.run(inner))
        if len(expr.args) == 1:
            return self._reduced(op, value)
        entry = self._entry(expr.args[1])
        parts = [self._reduced(op, self.math.each(lambda v: v[:, entry == k], value)) for k in range(entry.max() + 1)]
        return tuple(np.concatenate([part[side] for part in parts], axis=1)[:, entry] for side in (0, 1))

    def _composed(self, op, value, weight=None):
        """docs/numerics.md: two numbers of every stripe of 256 columns, merged in neighbouring pairs."""
        full, weights = self._full(value), weight and self._full(weight)
        columns, stripe = self.inputs.columns, 256
        leaf = lambda number: self.math.leaf(np.full((1, 1), float(number)))  # noqa: E731
        stripes = []
        for begin in range(0, columns, stripe):
            part, by = (each and self.math.each(lambda v: v[:, begin : begin + stripe], each) for each in (full, weights))
            stripes.append((self._stripe(op, part, by, leaf), part[0].shape[1]))
        while len(stripes) > 1:
            pairs = [(self._merged(op, a, b, leaf), a[1] + b[1]) for a, b in zip(stripes[::2], stripes[1::2])]
            stripes = pairs + stripes[2 * len(pairs) :]
        first, second = stripes[0][0]
        if op in TOTALS:
            return first if op in ("variance_sum", "logsumexp_top", "logsumexp_weighted_top") else second
        if op == "variance":
            return self.math.div(second, leaf(columns))
        if op == "logsumexp":
            join = getattr(self.math, "add_logarithm", self.math.add)
            return join(self._finite(first), self.math.call("log", second))
        return self.math.mul(self.math.call("exp", self.math.sub(value, first)), self.math.div(leaf(1), second))

    def _finite(self, m):
        is_finite = self.math.compare("<", self.math.call("abs", m), self.math.leaf(np.full((1, 1), np.inf)))
        return self.math.select(is_finite, m, self.math.leaf(np.zeros((1, 1))))

    def _stripe(self, op, part, weights, leaf):
        math = self.math
        if op.startswith("variance"):
            total = math.sum(part)
            off = math.sub(part, math.div(total, leaf(part[0].shape[1])))
            return total, math.sum(math.call("square", off))
        top = math.amax(part)
        terms = math.call("exp", math.sub(part, self._finite(top)))
        return top, math.sum(math.mul(terms, weights) if weights else terms)

    def _merged(self, op, a, b, leaf):
        math = self.math
        ((a_first, a_second), a_count), ((b_first, b_second), b_count) = a, b
        if op.startswith("variance"):
            delta = math.sub(math.div(b_first, leaf(b_count)), math.div(a_first, leaf(a_count)))
            weight = math.mul(leaf(a_count), math.div(leaf(b_count), leaf(a_count + b_count)))
            apart = math.mul(math.call("square", delta), weight)
            return math.add(a_first, b_first), math.add(math.add(a_second, b_second), apart)
        top = math.max(a_first, b_first)
        shares = [math.mul(second, math.call("exp", math.sub(first, self._finite(top))))
                  for first, second in ((a_first, a_second), (b_first, b_second))]  # fmt: skip
        return top, math.add(*shares)

    def _entry(self, group):
        by = divisor(group.args[1], self.inputs.constants, self.inputs.columns)
        columns = np.arange(self.inputs.columns)
        return columns // by if group.op == "/" else columns % by

    def _reduced(self, op, value):
        if op != "mean":
            return getattr(self.math, op)(value)
        return self.math.div(self.math.sum(value), self.math.leaf(np.full((1, 1), float(value[0].shape[1]))))

    def _group_of(self, expr):
        """The groups that a value is one each of: where expressions that differ along the row agree."""
        if expr.op == "name" and expr.leaf in self.lines and self.program.value(expr.leaf) not in self.program.operands:
            return self._group_of(self.lines[expr.leaf])
        if expr.op == "name":
            axis = getattr(self.program.value(expr.leaf), "column", None)
            if axis is None or (axis.divide is None and axis.wrap is None):
                return None
            return apply("%" if axis.divide is None else "/", name("j"), axis.wrap if axis.divide is None else axis.divide)
        if expr.op in COMPOSED or expr.op in TOTALS:
            return None
        if expr.op in REDUCTIONS:
            return expr.args[1] if len(expr.args) == 2 else None
        return next((found for found in map(self._group_of, expr.args) if found is not None), None)

    def _index(self, letter):
        if letter == "i":
            return np.arange(self.inputs.rows, dtype=np.float64)[:, None]
        if letter == "j":
            return np.arange(self.inputs.columns, dtype=np.float64)[None, :]
        return np.full((1, 1), float(self.inputs.columns))

    def run(self, expr):
        if id(expr) not in self.memo:
            self.memo[id(expr)] = (expr, self._run(expr))
        return self.memo[id(expr)][1]

    def _run(self, expr):
        op, arithmetic = expr.op, self.math
        if op == "number":
            return arithmetic.leaf(np.full((1, 1), number_of(expr.leaf)))
        if op == "name":
            return arithmetic.leaf(self._index(expr.leaf)) if expr.leaf in VALUES_OF_INTEGERS else self.value(expr.leaf)
        if op in COMPARISONS:
            exact = [self._exact(arg) for arg in expr.args]
            if all(each is not None for each in exact):
                return arithmetic.compare(op, *((each, each) for each in exact))
            return arithmetic.compare(op, self.run(expr.args[0]), self.run(expr.args[1]))
        if op == "rotate":
            return arithmetic.each(lambda v: self._rotated(v, expr), self.run(expr.args[0]))
        if op == "cast":
            return arithmetic.cast(self.inputs.types[expr.args[1].leaf], self.run(expr.args[0]))
        if op == "cast_stochastic":
            kind = self.inputs.types[expr.args[1].leaf]
            return arithmetic.cast_stochastic(kind, self.run(expr.args[0]), self.run(expr.args[2]))
        if op == "random":
            seed = int(self.inputs.operands[expr.args[0].leaf].item())
            first = [scalar(each, self.inputs.constants, self.inputs.columns, self.lines) for each in expr.args[2:]]
            return arithmetic.leaf(uniform(seed, int(number_of(expr.args[1].leaf)), self.inputs.rows, self.inputs.columns, *first))
        if op in COMPOSED or op in TOTALS:
            return self._composed(op, *map(self.run, expr.args))
        if op == "largest":
            return arithmetic.leaf(np.full((1, 1), largest(self.inputs.types[expr.args[0].leaf])))
        if op in REDUCTIONS:
            return self._reduction(op, expr)
        args = [self.run(arg) for arg in expr.args]
        if op == "clamp":
            return arithmetic.min(arithmetic.max(args[0], args[1]), args[2])
        if op == "or":
            negated = arithmetic.negated
            return negated(arithmetic.both(negated(args[0]), negated(args[1])))
        methods = {"+": "add", "-": "sub", "*": "mul", "/": "div", "and": "both", "not": "negated", "stop_gradient": "stop"}
        method = methods.get(op, op)
        if method in ("add", "sub", "mul", "div", "neg", "both", "negated", "stop", "select", "fma", "min", "max"):
            return getattr(arithmetic, method)(*args)
        if op in FORMULAS:
            return formula_value(FORMULAS[op], args, arithmetic)
        return arithmetic.call(op, args[0])


def formula_value(formula, args, arithmetic):
    def run(inner):
        evaluation = Evaluation(Program("formula", (), (), ()), Inputs(1, 1, {}, {}), inner)
        evaluation.values = dict(zip(formula.arguments, args))
        return evaluation.run(formula.expression)

    return arithmetic.defined(run, formula.bound, args)


def evaluate(program, inputs, arithmetic):
    return Evaluation(program, inputs, arithmetic).results()

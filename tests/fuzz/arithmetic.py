"""Two arithmetics in which evaluate.py runs a program: intervals and dual numbers.

Intervals hold every result that the contract (docs/numerics.md) allows. Rounding is monotone, so the ends of an interval
are rounded as the contract says, and a program of + - * / sqrt, comparisons and row sums has intervals of one point: its
bits. Only functions, whose bounds docs/language.md promises, fma and column sums widen them. NaN as both ends says that
nothing is known (also: that the value may be NaN).

Dual numbers carry the derivative along one direction, forward, in f64: what the derived backward is compared with.
"""
import math

import numpy as np

from functions import UNARY
from storage import round_by_chance, round_to


class Intervals:
    """Values are pairs (low, high), conditions pairs (may be true, may be false)."""

    unwritten = np.nan  # rows of a table that nobody picked

    def __init__(self, compute):
        self.compute = compute
        self.ulp, self.tiny = (2.0**-23, 2.0**-125) if compute == "f32" else (2.0**-52, 2.0**-1021)

    def rounded(self, values):
        return round_to(self.compute, values)

    def leaf(self, exact, tangent=None):
        value = self.rounded(exact)
        return value, value

    def known(self, low, high, wild=False):
        wild = np.isnan(low) | np.isnan(high) | wild
        return np.where(wild, np.nan, low), np.where(wild, np.nan, high)

    def widened(self, value, error):
        return self.known(value[0] - error, value[1] + error)

    def neg(self, a):
        return -a[1], -a[0]

    def add(self, a, b):
        apart = ((a[1] == np.inf) & (b[0] == -np.inf)) | ((a[0] == -np.inf) & (b[1] == np.inf))
        return self.known(self.rounded(a[0] + b[0]), self.rounded(a[1] + b[1]), apart)

    def sub(self, a, b):
        return self.add(a, self.neg(b))

    def _corners(self, operation, a, b, wild):
        ends = [operation(x, y) for x in a for y in b]
        return self.known(np.minimum.reduce(ends), np.maximum.reduce(ends), wild)

    def exact_mul(self, a, b):
        zero, infinite = [(v[0] <= 0) & (v[1] >= 0) for v in (a, b)], [np.isinf(v[0]) | np.isinf(v[1]) for v in (a, b)]
        return self._corners(np.multiply, a, b, (zero[0] & infinite[1]) | (zero[1] & infinite[0]))

    def mul(self, a, b):
        low, high = self.exact_mul(a, b)
        return self.rounded(low), self.rounded(high)

    def div(self, a, b):
        wild = ((b[0] <= 0) & (b[1] >= 0)) | ((np.isinf(a[0]) | np.isinf(a[1])) & (np.isinf(b[0]) | np.isinf(b[1])))
        low, high = self._corners(np.divide, a, b, wild)
        return self.rounded(low), self.rounded(high)

    def fma(self, a, b, c):
        product = self.exact_mul(a, b)
        total = self.add(product, c)  # rounded once more than the tool rounds
        error = 2.0**-51 * np.maximum(np.abs(product[0]), np.abs(product[1])) + self.tiny * self.ulp
        low, high = self.widened(total, error + self.ulp * np.maximum(np.abs(total[0]), np.abs(total[1])))
        return self.rounded(low), self.rounded(high)

    def min(self, a, b):
        return np.minimum(a[0], b[0]), np.minimum(a[1], b[1])

    def max(self, a, b):
        return np.maximum(a[0], b[0]), np.maximum(a[1], b[1])

    def call(self, function, a):
        if function == "rsqrt":
            return self.div(self.leaf(1.0), self.call("sqrt", a))
        record = UNARY[function]
        wild = a[0] < record.lowest
        ends = [record.value(a[0]), record.value(a[1])]
        for turn in record.turns:
            ends.append(np.where((a[0] < turn) & (turn < a[1]), record.value(np.float64(turn)), ends[0]))
        low, high = self.known(np.minimum.reduce(ends), np.maximum.reduce(ends), wild)
        low, high = self.promised(record.bound, a, low, high)
        if function in ("exp", "sigmoid", "softplus"):
            low = np.maximum(low, 0)
        return low, high

    def defined(self, run, bound, args):
        """A function that is what `run` computes of `args` in an arithmetic, within its bound."""
        return self.promised(bound, args[0], *run(Intervals("f64")))

    def promised(self, promise, a, low, high):
        """What lies within a function's promise of values that are nearly exact."""
        if promise is None:
            return self.rounded(low), self.rounded(high)
        kind, bound, bound64 = promise
        bound = bound if self.compute == "f32" else bound64
        size = np.maximum(np.abs(low), np.abs(high))
        ours = 2.0**-49 * size  # NumPy's own errors
        if kind == "ulp":
            error = bound * self.ulp * size + self.tiny
        else:
            error = bound * (np.maximum(np.abs(a[0]), np.abs(a[1])) if kind == "of x" else 1.0) + self.tiny
            error = np.where(np.isfinite(error), error, bound * self.ulp)  # silu(-inf) is 0
            ours = ours + 2.0**-49 * (bound > 0) * np.where(np.isfinite(a[0]), np.abs(a[0]), 0)
        low, high = self.widened((low, high), error + ours)
        return self.rounded(low), self.rounded(high)  # what is beyond the compute type is infinite

    def compare(self, sign, a, b):
        if sign in (">", ">="):
            return self.compare({">": "<", ">=": "<="}[sign], b, a)
        unknown = np.isnan(a[0]) | np.isnan(b[0])
        if sign == "<":
            yes, no = a[0] < b[1], a[1] >= b[0]
        elif sign == "<=":
            yes, no = a[0] <= b[1], a[1] > b[0]
        else:
            meet = (a[0] <= b[1]) & (b[0] <= a[1])
            differ = ~((a[0] == a[1]) & (b[0] == b[1]) & (a[0] == b[0]))
            yes, no = (meet, differ) if sign == "==" else (differ, meet)
        return yes | unknown, no | unknown

    def both(self, a, b):
        return a[0] & b[0], a[1] | b[1]

    def negated(self, a):
        return a[1], a[0]

    def select(self, c, a, b):
        either = c[0] & c[1]
        low = np.where(either, np.minimum(a[0], b[0]), np.where(c[0], a[0], b[0]))
        high = np.where(either, np.maximum(a[1], b[1]), np.where(c[0], a[1], b[1]))
        return low, high

    def stop(self, a):
        return a

    def cast(self, kind, a):
        wild = np.isnan(a[0])
        # What was rounded to i32 may not fit an f32, and is rounded once more.
        low, high = (np.where(wild, np.nan, self.rounded(round_to(kind, end))) for end in a)
        return low, high

    def cast_stochastic(self, kind, a, r):
        """Monotone in the value and, on each side of 0, in the random number."""
        wild = np.isnan(a[0]) | np.isnan(r[0])
        ends = [self.rounded(round_by_chance(kind, self.compute, x, by)) for x in a for by in r]
        low, high = np.minimum.reduce(ends), np.maximum.reduce(ends)
        return np.where(wild, np.nan, low), np.where(wild, np.nan, high)

    def each(self, operation, a):
        """An operation that only moves elements."""
        return operation(a[0]), operation(a[1])

    def sum(self, a):
        """docs/numerics.md: a tree inside stripes of 256 columns, then neighbouring pairs of stripes."""
        rows, columns = a[0].shape
        stripes = -(-columns // 256)
        padded = self.each(lambda v: np.pad(v, ((0, 0), (0, stripes * 256 - columns)), constant_values=-0.0), a)
        value = self.each(lambda v: v.reshape(rows, stripes, 256), padded)
        half = 128
        while half:
            value = self.add(*(self.each(lambda v: v[:, :, part], value) for part in (slice(half), slice(half, 2 * half))))
            half //= 2
        value = self.each(lambda v: v[:, :, 0], value)
        while value[0].shape[1] > 1:
            paired = value[0].shape[1] // 2 * 2
            pairs = self.add(self.each(lambda v: v[:, 0:paired:2], value), self.each(lambda v: v[:, 1:paired:2], value))
            value = tuple(np.concatenate([p, v[:, paired:]], axis=1) for p, v in zip(pairs, value))
        return value

    def amax(self, a):
        return self.each(lambda v: v.max(axis=1, keepdims=True), a)

    def amin(self, a):
        return self.each(lambda v: v.min(axis=1, keepdims=True), a)

    def colsum(self, a, entry, entries):
        """Rows are added in an order that the shape fixes; the bound holds for any such order."""
        rows, columns = a[0].shape
        total = [np.bincount(entry, weights=end.ravel(), minlength=entries) for end in a]
        size = np.bincount(entry, weights=np.maximum(np.abs(a[0]), np.abs(a[1])).ravel(), minlength=entries)
        depth = rows + math.log2(columns + 1) + 24
        ours = (rows * columns + 8) * 2.0**-52
        value = self.known(total[0], total[1], ~np.isfinite(size))
        low, high = self.widened(value, (depth * self.ulp + ours) * size)
        overflow = size * 2 > np.finfo(np.float32).max if self.compute == "f32" else ~np.isfinite(size * 2)
        return self.known(low, high, overflow)

    def colmax(self, a, entry, entries):
        return tuple(largest_of(end, entry, entries) for end in a)


def largest_of(values, entry, entries):
    """NaN where one is; -inf where nothing lands."""
    out = np.full(entries, -np.inf)
    np.maximum.at(out, entry, values.ravel())
    return out


class Duals:
    """Values are pairs (value, slope) in f64, conditions arrays. Casts round nothing: a slope has no storage type."""

    compute = "f64"
    unwritten = 0.0

    def leaf(self, exact, tangent=None):
        exact = np.asarray(exact, np.float64)
        return exact, np.zeros_like(exact) if tangent is None else tangent

    def neg(self, a):
        return -a[0], -a[1]

    def add(self, a, b):
        return a[0] + b[0], a[1] + b[1]

    def add_logarithm(self, top, logarithm):
        """For logsumexp, whose backward takes exp(x - lse): beyond 1e9 the sum loses the logarithm's sixth digit, and its
        slope is nobody's."""
        value, slope = self.add(top, logarithm)
        return value, np.where(np.abs(value) > 1e9, np.nan, slope)

    def sub(self, a, b):
        return a[0] - b[0], a[1] - b[1]

    def mul(self, a, b):
        return a[0] * b[0], a[1] * b[0] + a[0] * b[1]

    def div(self, a, b):
        value = a[0] / b[0]
        return value, (a[1] - value * b[1]) / b[0]

    def fma(self, a, b, c):
        return self.add(self.mul(a, b), c)

    def min(self, a, b):
        first = a[0] <= b[0]
        return np.minimum(a[0], b[0]), np.where(first, a[1], b[1])

    def max(self, a, b):
        first = a[0] >= b[0]
        return np.maximum(a[0], b[0]), np.where(first, a[1], b[1])

    def call(self, function, a):
        record = UNARY[function]
        value = record.value(a[0])
        return value, np.where(a[1] == 0, 0, a[1] * record.slope(a[0], value))

    def defined(self, run, bound, args):
        return run(self)

    def compare(self, sign, a, b):
        compared = {"<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal, "==": np.equal}
        return compared[sign](a[0], b[0]) if sign != "!=" else ~np.equal(a[0], b[0])

    def both(self, a, b):
        return a & b

    def negated(self, a):
        return ~a

    def select(self, c, a, b):
        return np.where(c, a[0], b[0]), np.where(c, a[1], b[1])

    def stop(self, a):
        return a[0], np.zeros_like(a[0])

    def cast(self, kind, a):
        return a

    def cast_stochastic(self, kind, a, r):
        return a

    def each(self, operation, a):
        return operation(a[0]), operation(a[1])

    def sum(self, a):
        return self.each(lambda v: v.sum(axis=1, keepdims=True), a)

    def _extreme(self, a, value):
        at = a[0] == value
        return value, np.where(at, a[1], 0).sum(axis=1, keepdims=True) / at.sum(axis=1, keepdims=True)

    def amax(self, a):
        return self._extreme(a, a[0].max(axis=1, keepdims=True))

    def amin(self, a):
        return self._extreme(a, a[0].min(axis=1, keepdims=True))

    def colsum(self, a, entry, entries):
        return tuple(np.bincount(entry, weights=part.ravel(), minlength=entries) for part in a)

    def colmax(self, a, entry, entries):
        value = largest_of(a[0], entry, entries)
        return value, np.full_like(value, np.nan)  # no gradient arrives for it

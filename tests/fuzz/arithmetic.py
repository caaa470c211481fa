"""Two arithmetics in which evaluate.py runs a program: intervals and dual numbers.

Intervals hold every result that the contract (docs/numerics.md) allows. Rounding is monotone, so the ends of an interval
are rounded as the contract says, and a program of + - * / sqrt, comparisons and row sums has intervals of one point: its
bits. Only functions, whose bounds docs/language.md promises, fma and column sums widen them. NaN as both ends says that
nothing is known (also: that the value may be NaN).

Dual numbers carry the derivative along one direction, forward, in f64: what the derived backward is compared with.
"""
import math

import numpy as np

from storage import round_to


def _each(function):
    def mapped(x):
        x = np.asarray(x, np.float64)
        return np.array([function(each) for each in x.ravel().tolist()]).reshape(x.shape)

    return mapped


erf, erfc = _each(math.erf), _each(math.erfc)


def sigmoid(x):
    e = np.exp(-np.abs(x))
    return np.where(x >= 0, 1, e) / (1 + e)


def normal_density(x):
    return np.exp(-0.5 * x * x) / math.sqrt(2 * math.pi)


def gelu_tanh_inner(x):
    return math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)


VALUES = {
    "exp": np.exp, "log": np.log, "expm1": np.expm1, "log1p": np.log1p, "tanh": np.tanh, "erf": erf, "sqrt": np.sqrt,
    "sigmoid": sigmoid,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "silu": lambda x: np.where(x == -np.inf, 0, x * sigmoid(x)),
    "gelu": lambda x: np.where(x == -np.inf, 0, 0.5 * x * erfc(-x / math.sqrt(2))),
    "gelu_tanh": lambda x: np.where(x == -np.inf, 0, x * sigmoid(2 * gelu_tanh_inner(x))),
    "gelu_slope": lambda x: 0.5 * erfc(-x / math.sqrt(2)) + np.where(np.isinf(x), 0, x * normal_density(x)),
    "relu": lambda x: np.maximum(x, 0),
    "softplus": lambda x: np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x))),
    "square": lambda x: x * x,
    "sign": np.sign, "abs": np.abs, "floor": np.floor, "round": np.rint,
}  # fmt: skip

# What docs/language.md promises, in f32 and f64: ulps of the value, or a share of |x|, or an error.
BOUNDS = {
    "exp": ("ulp", 1.1, 1.5), "log": ("ulp", 1.1, 1.5), "expm1": ("ulp", 1.5, 3), "log1p": ("ulp", 1.5, 3),
    "tanh": ("ulp", 1.5, 3), "sigmoid": ("ulp", 2.5, 3), "erf": ("ulp", 1.5, 3), "softplus": ("ulp", 2.5, 3),
    "silu": ("of x", 2**-22, 2**-50), "gelu": ("of x", 2**-22, 2**-50), "gelu_tanh": ("of x", 2**-22, 2**-50),
    "gelu_slope": ("error", 2**-22, 2**-51),
}  # fmt: skip
# Where a function turns; between those points it is monotone.
TURNS = {
    "silu": (-1.2784645427610738,), "gelu": (-0.7517915246935645,), "gelu_tanh": (-0.7524614220710162,),
    "gelu_slope": (-math.sqrt(2), math.sqrt(2)), "square": (0.0,), "abs": (0.0,),
}  # fmt: skip
LOWEST = {"log": 0.0, "log1p": -1.0, "sqrt": 0.0, "rsqrt": 0.0}


class Intervals:
    """Values are pairs (low, high), conditions pairs (may be true, may be false)."""

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
        values = VALUES[function]
        if function == "rsqrt":
            root = self.call("sqrt", a)
            return self.div(self.leaf(1.0), root)
        wild = a[0] < LOWEST.get(function, -np.inf)
        ends = [values(a[0]), values(a[1])]
        for turn in TURNS.get(function, ()):
            ends.append(np.where((a[0] < turn) & (turn < a[1]), values(np.float64(turn)), ends[0]))
        low, high = self.known(np.minimum.reduce(ends), np.maximum.reduce(ends), wild)
        if function not in BOUNDS:
            return self.rounded(low), self.rounded(high)
        kind, bound, bound64 = BOUNDS[function]
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
        if function in ("exp", "sigmoid", "softplus"):
            low = np.maximum(low, 0)
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
        low, high = (np.where(wild, np.nan, round_to(kind, end)) for end in a)
        return low, high

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


SLOPES = {  # of the function at x, where its value is y
    "exp": lambda x, y: y,
    "log": lambda x, y: 1 / x,
    "expm1": lambda x, y: np.exp(x),
    "log1p": lambda x, y: 1 / (1 + x),
    "tanh": lambda x, y: 1 / np.cosh(np.minimum(np.abs(x), 300)) ** 2,
    "sigmoid": lambda x, y: sigmoid(x) * sigmoid(-x),
    "erf": lambda x, y: 2 / math.sqrt(math.pi) * np.exp(-x * x),
    "rsqrt": lambda x, y: -0.5 * y / x,
    "sqrt": lambda x, y: 0.5 / y,
    "silu": lambda x, y: sigmoid(x) * (1 + x * sigmoid(-x)),
    "gelu": lambda x, y: VALUES["gelu_slope"](x),
    "gelu_tanh": lambda x, y: _gelu_tanh_slope(x),
    "gelu_slope": lambda x, y: normal_density(x) * (2 - x * x),
    "relu": lambda x, y: np.where(x > 0, 1.0, 0.0),
    "softplus": lambda x, y: sigmoid(x),
    "square": lambda x, y: 2 * x,
    "sign": lambda x, y: np.zeros_like(x),
    "abs": lambda x, y: np.sign(x),
    "floor": lambda x, y: np.zeros_like(x),
    "round": lambda x, y: np.zeros_like(x),
}


def _gelu_tanh_slope(x):
    s = sigmoid(2 * gelu_tanh_inner(x))
    inner = math.sqrt(2 / math.pi) * (1 + 3 * 0.044715 * x * x)
    return s + x * s * sigmoid(-2 * gelu_tanh_inner(x)) * 2 * inner


class Duals:
    """Values are pairs (value, slope) in f64, conditions arrays. Casts round nothing: a slope has no storage type."""

    compute = "f64"

    def leaf(self, exact, tangent=None):
        exact = np.asarray(exact, np.float64)
        return exact, np.zeros_like(exact) if tangent is None else tangent

    def neg(self, a):
        return -a[0], -a[1]

    def add(self, a, b):
        return a[0] + b[0], a[1] + b[1]

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
        value = VALUES[function](a[0])
        return value, np.where(a[1] == 0, 0, a[1] * SLOPES[function](a[0], value))

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

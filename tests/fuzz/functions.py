"""What each function of one value means, said a second time: docs/language.md has the formulas and the bounds."""
import math
from dataclasses import dataclass
from typing import Callable

import numpy as np


@dataclass(frozen=True)
class Function:
    value: Callable  # of f64 arrays
    slope: Callable  # of x and the value there; 0 or the page's choice at corners
    # What docs/language.md promises, in f32 and f64: ("ulp", of the value), ("of x", a share of |x|), ("error", absolute).
    # None: the value, correctly rounded.
    bound: tuple | None = None
    turns: tuple = ()  # where it turns; between those points it is monotone
    lowest: float = -math.inf  # of its domain


def _each(function):
    def mapped(x):
        x = np.asarray(x, np.float64)
        return np.array([function(each) for each in x.ravel().tolist()]).reshape(x.shape)

    return mapped


erf, erfc = _each(math.erf), _each(math.erfc)


def sigmoid(x):
    e = np.exp(-np.abs(x))
    return np.where(x >= 0, 1, e) / (1 + e)


def density(x):
    """Of the normal distribution."""
    return np.exp(-0.5 * x * x) / math.sqrt(2 * math.pi)


def gelu_slope(x):
    return 0.5 * erfc(-x / math.sqrt(2)) + np.where(np.isinf(x), 0, x * density(x))


def tanh_argument(x):
    return math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)


def gelu_tanh_slope(x):
    s = sigmoid(2 * tanh_argument(x))
    return s + 2 * x * s * sigmoid(-2 * tanh_argument(x)) * math.sqrt(2 / math.pi) * (1 + 3 * 0.044715 * x * x)


def flat(x, y):
    return np.zeros_like(x)


def power_of_two(x, up):
    """Not below, or not above, |x|, and at least 2^-127; of finite numbers."""
    share, exponent = np.frexp(np.abs(x))  # x = share * 2^exponent, share from 1/2 on
    found = np.ldexp(1.0, exponent - (share == 0.5) if up else exponent - 1)
    return np.where(np.isfinite(x), np.maximum(np.where(x == 0, 0, found), 2.0**-127), np.nan)


UNARY = {
    "exp": Function(np.exp, lambda x, y: y, ("ulp", 1.1, 1.5)),
    "log": Function(np.log, lambda x, y: 1 / x, ("ulp", 1.1, 1.5), lowest=0),
    "expm1": Function(np.expm1, lambda x, y: np.exp(x), ("ulp", 1.5, 3)),
    "log1p": Function(np.log1p, lambda x, y: 1 / (1 + x), ("ulp", 1.5, 3), lowest=-1),
    "tanh": Function(np.tanh, lambda x, y: 1 / np.cosh(np.minimum(np.abs(x), 300)) ** 2, ("ulp", 1.5, 3)),
    "sigmoid": Function(sigmoid, lambda x, y: sigmoid(x) * sigmoid(-x), ("ulp", 2.5, 3)),
    "erf": Function(erf, lambda x, y: 2 / math.sqrt(math.pi) * np.exp(-x * x), ("ulp", 1.5, 3)),
    "sqrt": Function(np.sqrt, lambda x, y: 0.5 / y, lowest=0),
    # The contract makes it of two operations; arithmetic.py does so, too.
    "rsqrt": Function(lambda x: 1 / np.sqrt(x), lambda x, y: -0.5 * y / x, lowest=0),
    "silu": Function(
        lambda x: np.where(x == -np.inf, 0, x * sigmoid(x)),
        lambda x, y: sigmoid(x) * (1 + x * sigmoid(-x)),
        ("of x", 2**-22, 2**-50),
        turns=(-1.2784645427610738,),
    ),
    "gelu": Function(
        lambda x: np.where(x == -np.inf, 0, 0.5 * x * erfc(-x / math.sqrt(2))),
        lambda x, y: gelu_slope(x),
        ("of x", 2**-22, 2**-50),
        turns=(-0.7517915246935645,),
    ),
    "gelu_tanh": Function(
        lambda x: np.where(x == -np.inf, 0, x * sigmoid(2 * tanh_argument(x))),
        lambda x, y: gelu_tanh_slope(x),
        ("of x", 2**-22, 2**-50),
        turns=(-0.7524614220710162,),
    ),
    "gelu_slope": Function(
        gelu_slope,
        lambda x, y: density(x) * (2 - x * x),
        ("error", 2**-22, 2**-51),
        turns=(-math.sqrt(2), math.sqrt(2)),
    ),
    "relu": Function(lambda x: np.maximum(x, 0), lambda x, y: np.where(x > 0, 1.0, 0.0)),
    "softplus": Function(
        lambda x: np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x))), lambda x, y: sigmoid(x), ("ulp", 2.5, 3)
    ),
    "square": Function(lambda x: x * x, lambda x, y: 2 * x, turns=(0.0,)),
    "sign": Function(np.sign, flat),
    "abs": Function(np.abs, lambda x, y: np.sign(x), turns=(0.0,)),
    "exponent_ceil": Function(lambda x: power_of_two(x, True), flat, turns=(0.0,)),
    "exponent_floor": Function(lambda x: power_of_two(x, False), flat, turns=(0.0,)),
    "floor": Function(np.floor, flat),
    "round": Function(np.rint, flat),
}

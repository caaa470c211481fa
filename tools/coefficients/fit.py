"""Prints the coefficients of src/math/records, in the order of its files: python3 fit.py [name]. Needs mpmath."""
import sys

from minimax import fit, mp, show

ln2 = mp.log(2)
half = ln2 / 2 * mp.mpf("1.0001")  # the remainder after taking out a multiple of ln 2, with room for rounding
tiny = mp.mpf("1e-9")
below = lambda y: mp.erfc(y / mp.sqrt(2)) / 2  # the normal distribution below -y
density = lambda y: mp.exp(-y * y / 2) / mp.sqrt(2 * mp.pi)


def exp_tail(r, k):
    """(e^r - its first k terms) / r^k."""
    return mp.fsum(r**i / mp.factorial(i + k) for i in range(40))


def log_tail(f):
    """(log(1 + f) - f) / f^2."""
    return (mp.log1p(f) - f) / f**2 if abs(f) > tiny else f / 3 - mp.mpf(1) / 2


def tanh_tail(s):
    """(tanh(x) - x) / x^3 with s = x^2."""
    x = mp.sqrt(s)
    return (mp.tanh(x) / x - 1) / s


def erf_tail(s):
    """erf(x) / x - 1 with s = x^2."""
    return mp.erf(mp.sqrt(s)) / mp.sqrt(s) - 1


def exp_polynomials(bits, degree):
    # exp(r) = 1 + r + r^2 h(r), relative to exp(r)
    return fit(lambda r: exp_tail(r, 2), -half, half, degree, bits, lambda r: r**2 / mp.exp(r), refit=bits == 24)


def expm1_polynomials(bits, degree):
    # expm1(r) = r + r^2 h(r), relative to expm1(r)
    weight = lambda r: abs(r) / exp_tail(r, 1)
    return fit(lambda r: exp_tail(r, 2), mp.log(0.75), mp.log(1.5), degree, bits, weight, refit=bits == 24)


def one_minus_exp_polynomials(bits, degree):
    # 1 - exp(-v) = v - v^2 h(v), relative to it
    weight = lambda v: abs(v) / exp_tail(-v, 1)
    return fit(lambda v: exp_tail(-v, 2), -half, half, degree, bits, weight, refit=bits == 24)


def log_polynomials(bits, degree):
    # log(1 + f) = f + f^2 p(f), relative to it
    return fit(log_tail, -0.25, 0.5, degree, bits, lambda f: f**2 / abs(mp.log1p(f)), refit=bits == 24, points=400)


tables = {
    "exp": lambda: show("exp", exp_polynomials(24, 4), 24) or show("exp", exp_polynomials(53, 9), 53),
    "expm1": lambda: show("expm1", expm1_polynomials(24, 5), 24) or show("expm1", expm1_polynomials(53, 10), 53),
    "one_minus_exp": lambda: show("one_minus_exp", one_minus_exp_polynomials(24, 4), 24)
    or show("one_minus_exp", one_minus_exp_polynomials(53, 10), 53),
    "log": lambda: show("log", log_polynomials(24, 8), 24) or show("log", log_polynomials(53, 19), 53),
    # 2^f, relative
    "exp2": lambda: show("exp2", fit(lambda f: mp.mpf(2) ** f, -0.5, 0.5, 5, 24, lambda f: mp.mpf(2) ** -f), 24),
    # 2^f of degree 6 for tanh, relative
    "exp2_6": lambda: show("exp2_6", fit(lambda f: mp.mpf(2) ** f, -0.5, 0.5, 6, 24, lambda f: mp.mpf(2) ** -f), 24),
    # tanh(x) = x + x^3 p(x^2) below 0.65, relative
    "tanh": lambda: show("tanh", fit(tanh_tail, tiny, mp.mpf("0.65") ** 2, 4, 24,
                                     lambda s: s * mp.sqrt(s) / mp.tanh(mp.sqrt(s))), 24),
    # log1p(e) = e (1 + e p(e)) on [0, 1], relative
    "softplus": lambda: show("softplus", fit(lambda e: mp.log1p(e) / e - 1, tiny, 1, 8, 24,
                                             lambda e: e / mp.log1p(e), first=1), 24),
    # erf(y) = 1 - exp(-y (1 + q(y))), relative to erf(y)
    "erf": lambda: show("erf", fit(lambda y: -mp.log(mp.erfc(y)) / y - 1, mp.mpf("1e-6"), 4, 8, 24,
                                   lambda y: mp.erfc(y) * y / mp.erf(y), points=300), 24),
    # f64: erf(x) = x + x p(x^2) below 1; 1 - exp(-u(y - 2.5)) above, both relative
    "erf64": lambda: show("erf below 1", fit(erf_tail, tiny, 1, 12, 53, lambda s: mp.sqrt(s) / mp.erf(mp.sqrt(s)),
                                             refit=False), 53)
    or show("erf above 1", fit(lambda v: -mp.log(mp.erfc(v + 2.5)), -1.5, 3.45, 20, 53,
                               lambda v: mp.erfc(v + 2.5) / mp.erf(v + 2.5), refit=False, points=400), 53),
    # below(y) = 2^(-1 - y q(y)), error relative to |x|; beyond 5.6 the odd degree lets it fall faster than it should
    "gelu": lambda: show("gelu", fit(lambda y: -mp.log(2 * below(y), 2) / y, mp.mpf("1e-6"), 5.6, 7, 24,
                                     lambda y: below(y) * y * ln2, points=300), 24),
    # below(y) - y density(y) = density(y) m(y), absolute
    "gelu_slope": lambda: show("gelu_slope", fit(lambda y: (below(y) / density(y) - y) / mp.sqrt(2 * mp.pi), 0, 5.8, 10, 24,
                                                 lambda y: mp.exp(-y * y / 2), points=300), 24),
}

for name in sys.argv[1:] or tables:
    tables[name]()

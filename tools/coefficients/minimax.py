"""Weighted minimax polynomials with rounded coefficients.

fit() finds c so that max |weight(x) * (f(x) - sum c[k] x^k)| over an interval is smallest (Remez exchange on a grid),
then rounds the coefficients to the compute type one after the other, lowest first, and fits the rest anew: what an
early rounding spoils, the later coefficients repair.
"""
import mpmath as mp

mp.mp.dps = 50


def rounded(value, bits):
    """`value` to nearest even in `bits` bits of mantissa."""
    if value == 0:
        return mp.mpf(0)
    scale = mp.mpf(2) ** (bits - 1 - mp.floor(mp.log(abs(value), 2)))
    return mp.nint(value * scale) / scale


def remez(values, weights, xs, powers):
    """Coefficients of x^powers and the levelled error, from samples of f and the weight on the grid xs."""
    n = len(powers)
    picks = [round((1 - mp.cos(mp.pi * k / n)) / 2 * (len(xs) - 1)) for k in range(n + 1)]
    best = None
    for _ in range(40):
        rows = [[xs[i] ** p for p in powers] + [(-1) ** k / weights[i]] for k, i in enumerate(picks)]
        try:
            solved = mp.lu_solve(mp.matrix(rows), mp.matrix([values[i] for i in picks]))
        except ZeroDivisionError:
            break
        coefficients = [solved[k] for k in range(n)]
        errors = []
        for x, value, weight in zip(xs, values, weights):
            sum_ = mp.mpf(0)
            for c, p in zip(reversed(coefficients), reversed(powers)):
                sum_ += c * x**p
            errors.append(weight * (value - sum_))
        worst = max(abs(e) for e in errors)
        if best is None or worst < best[1]:
            best = (coefficients, worst)
        if worst <= abs(solved[n]) * mp.mpf("1.001"):
            break
        # The largest error of each run of equal sign, then the n + 1 neighbours that hold the largest of all.
        runs = []
        for i, e in enumerate(errors):
            if runs and (errors[runs[-1]] < 0) == (e < 0):
                if abs(e) > abs(errors[runs[-1]]):
                    runs[-1] = i
            else:
                runs.append(i)
        if len(runs) < n + 1:
            break
        while len(runs) > n + 1:
            runs.pop(0 if abs(errors[runs[0]]) < abs(errors[runs[-1]]) else -1)
        picks = runs
    return best or ([mp.mpf(0)] * n, mp.inf)


def fit(f, low, high, degree, bits, weight=lambda x: 1, first=0, points=600, refit=True):
    """Coefficients of x^first .. x^degree, rounded to `bits`, and the largest weighted error they leave."""
    middle, half = (mp.mpf(low) + high) / 2, (mp.mpf(high) - low) / 2
    xs = [middle - half * mp.cos(mp.pi * (k + mp.mpf("0.5")) / points) for k in range(points)]
    target = [f(x) for x in xs]
    weights = [weight(x) for x in xs]
    rest, chosen = list(target), []
    powers = list(range(first, degree + 1))
    worst_of = lambda free: max(abs(w * (r - mp.fsum(c * x**p for c, p in zip(free, powers))))
                                for x, r, w in zip(xs, rest, weights))
    free = None
    while powers:
        if free is None or (refit and chosen):
            # With x = 0 inside, the powers left over share a zero and the exchange may fail: keep what is better.
            tried = remez(rest, weights, xs, powers)
            free = tried[0] if free is None or tried[1] < worst_of(free) else free
        c = rounded(free.pop(0), bits)
        chosen.append(c)
        rest = [r - c * x ** powers[0] for r, x in zip(rest, xs)]
        powers.pop(0)
    return chosen, max(abs(w * r) for w, r in zip(weights, rest))


def show(name, result, bits):
    coefficients, error = result
    text = ", ".join(float(c).hex() for c in coefficients)
    print(f"{name} f{32 if bits == 24 else 64}: error 2^{mp.nstr(mp.log(error, 2), 5)}\n  {text}")

"""Composed reductions (variance, logsumexp, softmax) beside the plain forms they could replace: errors in units in the last
place of f32, against the same formula in long doubles.

    PYTHONPATH=build/release/python python3 bench/composed.py [--rows 256] [--columns 4096]
"""
import argparse

import numpy as np
import trireme

EPS = np.longdouble(np.float32(1e-5))
PROGRAMS = {  # what is computed: by plain reductions, by composed ones
    "1 / sqrt(variance + eps)": ("a = mean(x)\n  y = rsqrt(mean((x - a) * (x - a)) + 1e-5)", "y = rsqrt(variance(x) + 1e-5)"),
    "logsumexp": ("m = amax(x)\n  y = m + log(sum(exp(x - m)))", "y = logsumexp(x)"),
    "softmax": ("e = exp(x - amax(x))\n  y = e * (1 / sum(e))", "y = softmax(x)"),
    "log softmax": ("s = x - amax(x)\n  y = s - log(sum(exp(s)))", "y = x - logsumexp(x)"),
}


def exact(x):
    x = x.astype(np.longdouble)
    top = x.max(1, keepdims=True)
    powers = np.exp(x - top)
    total = powers.sum(1, keepdims=True)
    return {"1 / sqrt(variance + eps)": 1 / np.sqrt(x.var(1) + EPS), "logsumexp": (top + np.log(total))[:, 0],
            "softmax": powers / total, "log softmax": x - top - np.log(total)}


def errors(lines, x, wanted):
    spread = "i,j" if wanted.ndim == 2 else "i"
    got = trireme.Operator(f"f(x[i,j]) -> (y[{spread}])\n  {lines}\n")(x)
    error = np.abs(np.asarray(got).astype(np.longdouble) - wanted) / np.spacing(np.abs(wanted).astype(np.float32))
    return f"{float(error.mean()):.2f} / {float(error.max()):.1f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=256)
    parser.add_argument("--columns", type=int, default=4096)
    options = parser.parse_args()
    random = np.random.default_rng(1)
    for mean in (0, 100):
        x = (random.standard_normal((options.rows, options.columns)) + mean).astype(np.float32)
        wanted = exact(x)
        print(f"normal values around {mean}: mean / largest error, plain and composed")
        for name, forms in PROGRAMS.items():
            print(f"  {name:26}" + "".join(f"{errors(form, x, wanted[name]):>16}" for form in forms))


if __name__ == "__main__":
    main()

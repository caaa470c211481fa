"""Row programs of losses over logits, written for what a call asks for: nobody pays for weights that are not there.

Operands beside the logits `x`: `target[i]` (i32, negative where a row does not count), `chosen[i]` (the weight of the row's
class), `w[j]` (the weights of all classes), `share[]` and `z[]` (what a row's cross entropy and the square of its lse count
for in the result). Each program comes with its derived backward; `with_gradient` has loss and gradient in one kernel, which
may write the gradient over the logits. That one takes the target's logit as `at[i]`, which costs less to gather than to pick
out of the row, and has its row's factors in one (256 x 32000 bf16 in place, one AVX-512 thread: 5.2 ms -> 3.8).
"""
from . import _programs
from ._operator import constant_text, op


def cross_entropy(**flags):
    """The torch operator, whose results are loss[i] and lse[i] (or loss[i] and dx[i,j])."""
    return op(_cross_entropy(**flags))


def soft_cross_entropy(**flags):
    """The same for targets that are probabilities of all classes."""
    return op(_soft_cross_entropy(**flags))


def log_probability():
    """Of the target, and the entropy of the row; logits of -inf have no probability and no share in it."""
    return op(_LOG_PROBABILITY)


@constant_text
def _cross_entropy(weighted=False, smoothed=False, capped=False, scaled=False, squared=False, with_gradient=False):
    name = "_".join(["cross_entropy", *(word for word, has in [
        ("weighted", weighted), ("smoothed", smoothed), ("capped", capped), ("scaled", scaled), ("squared", squared),
        ("with_gradient", with_gradient)] if has)])
    operands = ["x[i,j]", "target[i]", *["at[i]"] * with_gradient, *["chosen[i]"] * weighted,
                *["w[j]"] * (weighted and smoothed), *["share[]"] * scaled, *["z[]"] * squared, *["smoothing = 0.1"] * smoothed, *["softcap = 30"] * capped]
    lines = ["t = tanh(x * (1 / softcap))", "v = softcap * t"] if capped else []
    picked = "sum(select(j == target, v, 0))" if not with_gradient else "softcap * tanh(at * (1 / softcap))" if capped else "at"
    lines += ["top = amax(v)", "e = exp(v - top)", "s = sum(e)", "lse = top + log(s)", f"nll = lse - {picked}"]
    hard = "chosen" if weighted else "1"
    if smoothed:
        lines += ["rest = smoothing / n", f"hard = (1 - smoothing) * {hard}"]
        lines += ["all = sum(w)", "entropy = nll * hard + rest * (all * lse - sum(w * v))"] if weighted else [
            "entropy = nll * hard + rest * (n * lse - sum(v))"]
    else:
        lines += [f"hard = {hard} * 1", "entropy = nll * hard"]
    total = "entropy * share" if scaled else "entropy"
    lines += [f"total = {total}" + (" + z * lse * lse" if squared else "" if scaled else " * 1"),
              "loss = select(target < 0, 0, total)"]
    if with_gradient:  # of rows that do not count every factor is 0
        share = " * share" if scaled else ""
        mass = "hard + rest * all" if smoothed and weighted else "hard + smoothing" if smoothed else "hard"
        lines += [f"mass = ({mass}){share}" + (" + 2 * z * lse" if squared else ""),
                  "factor = select(target < 0, 0, mass * (1 / s))", f"one = select(target < 0, 0, hard{share})",
                  *[f"spread = select(target < 0, 0, rest{share})"] * smoothed,
                  "g = e * factor - select(j == target, one, 0)" + (
                      "" if not smoothed else " - spread * w" if weighted else " - spread"),
                  "dx = g" + (" * (1 - t * t)" if capped else " * 1")]
    return _text(name, operands, "dx[i,j]" if with_gradient else "lse[i]", lines, capped)


@constant_text
def _soft_cross_entropy(weighted=False, smoothed=False, capped=False):
    name = "_".join(["soft_cross_entropy", *(word for word, has in [
        ("weighted", weighted), ("smoothed", smoothed), ("capped", capped)] if has)])
    operands = ["x[i,j]", "target[i,j]", *["w[j]"] * weighted, *["smoothing = 0.1"] * smoothed, *["softcap = 30"] * capped]
    lines = ["v = softcap * tanh(x * (1 / softcap))"] if capped else []
    lines += ["top = amax(v)", "lse = top + log(sum(exp(v - top)))",
              "q = target * (1 - smoothing) + smoothing / n" if smoothed else "q = target * 1",
              f"loss = sum(q{' * w' if weighted else ''} * (lse - v))"]
    return _text(name, operands, "lse[i]", lines, capped)


def _text(name, operands, second, lines, capped):
    body = "".join(f"    {line}\n" for line in lines)
    return f"{name}({', '.join(operands)}) -> (loss[i], {second})\n" + (body if capped else _programs.rename(body, {"v": "x"}))


_LOG_PROBABILITY = """log_probability(x[i,j], target[i], inverse_temperature = 1) -> (logprob[i], entropy[i], lse[i])
    v       = x * inverse_temperature
    top     = amax(v)
    lse     = top + log(sum(exp(v - top)))
    inside  = sum(select(v > -inf, exp(v - lse) * v, 0))
    logprob = select(target < 0, 0, sum(select(j == target, v, 0)) - lse)
    entropy = select(target < 0, 0, lse - inside)
"""

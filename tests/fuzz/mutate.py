"""Malformed texts: valid ones, broken."""
import re

PIECES = ["(", ")", "[", "]", ",", "=", "->", "...", "i", "j", "n", "inf", "nan", "-", "+", "*", "/", "%", "<", "==", "!",
          "!=", ":", "#", "#:", "\n", "\r\n", "\t", "\0", "\x7f", "é", "∞", "\ufeff", "'", '"', "\\", "0x", "0x1p", "1e",
          "1e999", "1e-999", "0x1p99999", ".", "..", "1.2.3", "99999999999999999999", "sum", "colsum", "colmax", "cast", "largest",
          "rotate", "select", "and", "not", "x", "y", "in f32", ": bf16", ";", "@", "_", "a" * 129, "0", "-0", "[i,j]",
          "[j,i]", "[i / 0]", "[i % n / 2]", "[]", "exp(", "sum(sum(", "clamp(1)", "stop_gradient()"]  # fmt: skip
TOKEN = re.compile(r"\s+|[A-Za-z_]\w*|[0-9.][\w.]*|->|[<>=!]=|.", re.S)


def mutate(text, dice):
    """Text or bytes with one to three flaws; what comes out may happen to be fine."""
    for _ in range(dice.choice((1, 1, 1, 2, 3))):
        text = dice.choice((drop, double, swap, put, put, put, replaced, cut, lines, nested, long))(text, dice)
    out = text.encode()
    if dice.random() < 0.05 and out:
        at = dice.randrange(len(out))
        out = out[:at] + bytes([dice.randrange(256)]) + out[at + 1 :]
    return out


def tokens(text):
    return TOKEN.findall(text) or [""]


def drop(text, dice):
    parts = tokens(text)
    del parts[dice.randrange(len(parts))]
    return "".join(parts)


def double(text, dice):
    parts = tokens(text)
    at = dice.randrange(len(parts))
    return "".join(parts[:at] + [parts[at]] * dice.choice((2, 3)) + parts[at + 1 :])


def swap(text, dice):
    parts = tokens(text)
    a, b = dice.randrange(len(parts)), dice.randrange(len(parts))
    parts[a], parts[b] = parts[b], parts[a]
    return "".join(parts)


def put(text, dice):
    parts = tokens(text)
    parts.insert(dice.randrange(len(parts) + 1), dice.choice(PIECES))
    return "".join(parts)


def replaced(text, dice):
    parts = tokens(text)
    parts[dice.randrange(len(parts))] = dice.choice(PIECES + parts)
    return "".join(parts)


def cut(text, dice):
    at = dice.randrange(len(text) + 1)
    return text[:at] if dice.random() < 0.7 else text[at:]


def lines(text, dice):
    parts = text.split("\n")
    dice.shuffle(parts)
    return "\n".join(parts)


def nested(text, dice):
    """Deep expressions, about the limit of 256 and far beyond it."""
    depth = dice.choice((250, 255, 256, 257, 258, 300, 20000))
    opening, closing = dice.choice((("(", ")"), ("exp(", ")"), ("-", ""), ("not(", ")"), ("x + (", ")"), ("[", "]")))
    at = text.rfind("=") + 1
    return text[:at] + " " + opening * depth + text[at:].rstrip("\n") + closing * depth + "\n"


def long(text, dice):
    """Many lines, long names, long numbers, chains that are wide but not deep."""
    kind = dice.randrange(5)
    if kind == 0:
        return text + "".join(f"    v{k} = {k}\n" for k in range(dice.choice((100, 5000))))
    if kind == 1:
        return re.sub(r"\b(x|y|a)\b", "n" * dice.choice((127, 128, 129, 100000)), text)
    if kind == 2:
        return text.rstrip("\n") + " + 1" * dice.choice((200, 20000)) + "\n"
    if kind == 3:
        return text.rstrip("\n") + " + 0." + "3" * dice.choice((400, 100000)) + "\n"
    return text + "#" * dice.choice((10, 1 << 20)) + "\n"


WORDS = ["axes=2", "axes=0", "axes=9", "seed=1", "seed=-1", "seed=4294967296", "backward", "backward=1", "x", "=", "x=", "=f32",
         "x=f31", "none", "x=none", "y=none", "x=f32+", "x=f32:", "x=f32+-1", "x=f32:1,2,3,4,5,6,7,8,9", "x=f32:0", "y=:0",
         "x=+9223372036854775807", "x=:9223372036854775807", "y=:-9223372036854775808", "n=1", "i=1", "eps=nan", "eps=1e999",
         "0x5", "5x0", "1x1x1x1x1x1x1x1x1", "3x-2", "5", "x5", "5xx5", "é"]  # fmt: skip


def mutate_line(line, dice):
    """A problem line with a word changed, dropped, doubled or added. It never becomes large."""
    file, *words = line.split(" ")
    at = dice.randrange(len(words))
    change = dice.randrange(5)
    if change == 0:
        del words[at]
    elif change == 1:
        words.insert(at, words[at])
    elif change == 2:
        words[at] = dice.choice(WORDS)
    elif change == 3:
        words.insert(at + 1, dice.choice(WORDS))
    else:
        cut_at = dice.randrange(len(words[at]) + 1)
        words[at] = words[at][:cut_at] + dice.choice(("", "=", "+", ":", ",", "-", "none")) + words[at][cut_at + 1 :]
    return " ".join([file, *words])

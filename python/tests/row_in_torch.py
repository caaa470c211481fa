"""Row programs executed by torch in f64: an answer that owes nothing to Trireme's compiler.

The expressions of the language are Python's too, so Python parses them. Arrays are matrices that broadcast.
"""
import ast
import re

import torch

import trireme
from trireme import _core


def _select(condition, a, b):
    a, b = (each if isinstance(each, torch.Tensor) else torch.tensor(float(each), dtype=torch.float64) for each in (a, b))
    return torch.where(torch.as_tensor(condition), a, b)


def _tensor(value):
    return value if isinstance(value, torch.Tensor) else torch.tensor(float(value), dtype=torch.float64)


def _reduced(kind):
    """Over the row, or inside the groups of columns that share an index, spread to columns again."""
    def reduce(e, index=None):
        e = _tensor(e)
        if index is None:
            return getattr(e, kind)(1, keepdim=True)
        group = torch.floor(_tensor(index)).long().reshape(1, -1).expand(e.shape[0], -1)
        e = e.expand(group.shape)
        made = torch.zeros(e.shape[0], int(group.max()) + 1, dtype=e.dtype)
        return made.scatter_reduce(1, group, e, kind, include_self=False).gather(1, group)
    return reduce


def _exponent_floor(e):
    exponent = torch.exp2((torch.frexp(_tensor(e).detach())[1] - 1).double())
    return torch.where(_tensor(e) == 0, torch.tensor(2.0 ** -127, dtype=torch.float64), exponent)


FUNCTIONS = {
    "sum": _reduced("sum"), "mean": _reduced("mean"), "amax": _reduced("amax"), "amin": _reduced("amin"),
    "exponent_floor": _exponent_floor,
    "variance": lambda e: e.var(1, correction=0, keepdim=True), "logsumexp": lambda e: e.logsumexp(1, keepdim=True),
    "softmax": lambda e: e.softmax(1), "colsum": _tensor,
    "rsqrt": torch.rsqrt, "sqrt": torch.sqrt, "exp": torch.exp, "log": torch.log, "tanh": torch.tanh, "abs": torch.abs,
    "sigmoid": torch.sigmoid, "silu": torch.nn.functional.silu, "relu": torch.relu,
    "gelu": torch.nn.functional.gelu, "gelu_tanh": lambda e: torch.nn.functional.gelu(e, approximate="tanh"),
    "max": lambda a, b: torch.maximum(_tensor(a), _tensor(b)), "min": lambda a, b: torch.minimum(_tensor(a), _tensor(b)),
    "select": _select, "cast": lambda e, _: e, "stop_gradient": lambda e: e.detach(),
    "rotate": lambda e, k: torch.roll(e, -int(k), 1), "floor": lambda e: torch.floor(e.double()), "inf": float("inf"),
    "clamp": lambda e, low, high: torch.minimum(torch.maximum(e, _tensor(low)), _tensor(high)),
}


# Those whose operands a problem's rows and columns draw: a table has rows of its own.
NAMED = [name for name in trireme.operators() if name != "embedding"]


def drawn(seed, stream, rows, columns):
    """random(seed, stream): Philox4x32-10 of counters (j / 4, low i, high i, stream), in 64-bit integers that wrap."""
    low, i, j = 0xFFFFFFFF, torch.arange(rows)[:, None], torch.arange(columns)[None, :]
    seed = int(seed.reshape(()))
    c = [torch.broadcast_to(each, (rows, columns)) for each in (j // 4, i & low, i >> 32, torch.tensor(int(stream)))]
    key = [seed & low, seed >> 32 & low]
    for _ in range(10):
        a, b = c[0] * 0xD2511F53, c[2] * 0xCD9E8D57
        c = [b >> 32 & low ^ c[1] ^ key[0], b & low, a >> 32 & low ^ c[3] ^ key[1], a & low]
        key = [key[0] + 0x9E3779B9 & low, key[1] + 0xBB67AE85 & low]
    words = torch.stack(c).gather(0, (j % 4).expand(rows, columns)[None])[0]
    return (words >> 9).double() / 2 ** 23


def indices_of(spread, rows, columns, constants):
    """The numbers that the indices of a spread are, by row and by column."""
    names = {**{name: int(value) for name, value in constants.items() if isinstance(value, float)}, "n": columns,
             "i": torch.arange(rows), "j": torch.arange(columns), **{name: value.expand(rows, 1)[:, 0].long() for name, value in
             constants.items() if isinstance(value, torch.Tensor) and value.dim() == 2 and value.shape[1] == 1}}  # pickers
    return [eval(part.replace("/", "//"), {}, names) for part in map(str.strip, spread.strip("[]").split(",")) if part]


def spread_out(array, spread, rows, columns, constants):
    """An operand as a matrix that broadcasts against (rows, columns)."""
    index = indices_of(spread, rows, columns, constants)
    if spread == "[]":
        return array.reshape(1, 1)
    if spread.startswith("[j"):
        return array.reshape(-1)[index[0]].reshape(1, columns)
    if len(index) == 1:
        return array.reshape(-1)[index[0]].reshape(rows, 1)
    if spread == "[i,j]":
        return array.reshape(rows, columns)
    return array[index[0][:, None], index[1][None, :]]


def gathered(terms, spread, rows, columns, constants):
    """Their sums by entry of a result."""
    terms = terms.expand(rows, columns)
    if not spread.startswith("[i"):
        terms = terms.sum(0, keepdim=True)
    if "j" not in spread:
        terms = terms.sum(1, keepdim=True)
    index = indices_of(spread, rows, columns, constants)
    row = index[0] if spread.startswith("[i") else torch.zeros(1, dtype=torch.long)
    column = index[-1] if "j" in spread else torch.zeros(1, dtype=torch.long)
    sums = torch.zeros(int(row.max()) + 1, int(column.max()) + 1, dtype=terms.dtype)
    return sums.index_put((row[:, None], column[None, :]), terms, accumulate=True)


def execute(operator, operands, constants, rows, columns, largest=None):
    """Results by name, as matrices. `operands`: f64 tensors by name; those with a default may be missing."""
    names = {"n": columns, "i": torch.arange(rows)[:, None], "j": torch.arange(columns)[None, :],
             **{name: constants.get(name, fallback) for name, _, _, fallback in operator.constants}}
    for name, spread, _, fallback in operator.operands:
        given = operands.get(name)
        names[name] = _tensor(columns if fallback is None else fallback) if given is None else spread_out(given, spread, rows, columns, names)
    body = operator.text[operator.text.index(")", operator.text.index("-> (")) + 1:]
    scope = {**FUNCTIONS, "largest": lambda _: largest,
             "random": lambda seed, stream: drawn(seed, stream, rows, columns), **{name: None for name, *_ in operator.results}}  # of cast()
    spreads = {each[0]: each[1] for each in operator.results}
    for line in re.sub(r"\n {6,}", " ", body).splitlines():
        if "=" in line:
            name, expression = line.split("=", 1)
            expression = re.sub(r"0x[0-9a-f.]+p[+-]?\d+", lambda number: repr(float.fromhex(number[0])), expression)
            names[name.strip()] = eval(compile(ast.parse(expression.strip(), mode="eval"), "row", "eval"), scope,
                                       dict(names))
            if "colsum(" in line:
                names[name.strip()] = gathered(names[name.strip()], spreads[name.strip()], rows, columns, names)
    return {name: entries(names[name], spread, rows, columns, names) for name, spread, *_ in operator.results}


def entries(value, spread, rows, columns, names):
    """One of each group, of what was spread to columns."""
    if not re.match(r"\[i, *j *[/%]", spread) or value.shape[-1] != columns:
        return value
    index = indices_of(spread, rows, columns, names)[1]
    first = torch.stack([torch.nonzero(index == k)[0, 0] for k in range(int(index.max()) + 1)])
    return value.expand(rows, columns)[:, first]


class Problem:
    """A small problem of an operator's first `#: try` line, in f64. `constants`: others than the line's."""

    def __init__(self, name, which=0, dtype=torch.float64, shape=None, **constants):
        self.operator = trireme.operator(name)
        text = _core.operator_texts()[name]
        words = re.findall(r"#:\s*try\s+([^#\n]*)", text)[which].split()
        self.rows, self.columns = shape or (int(extent) for extent in words[0].split("x"))
        known = {each[0] for each in self.operator.constants}
        self.constants = {key: float(value) for key, value in (word.split("=") for word in words[1:]) if key in known}
        self.constants |= constants
        of_rows = [each[1].strip("[]").split(",")[0].strip() for each in self.operator.operands]
        for each in of_rows if "i" not in of_rows else ():  # who divides them says as many rows as fill its entries
            if each.startswith("i / "):
                share = each[len("i / "):]
                self.constants[share] = max(k for k in range(1, int(self.constants[share]) + 1) if self.rows % k == 0) * 1.0
        self.types = {"q": "i8"} if "q" in [each[0] for each in self.operator.results] else {}
        spreads = " ".join(each[1] for each in self.operator.operands + self.operator.results)
        given = dict(word.split("=") for word in words[1:])
        ranges = {key: (eval(low, {"n": self.columns}), eval(high, {"n": self.columns}), kind) for key, low, high, kind in
                  re.findall(r"#:\s*range\s+(\w+)\s+(\S+?)\.\.(\S+)( *integer)?", text)}
        seeds = {each[0] for each in self.operator.operands if f"random({each[0]}," in text}
        picks = {each[0] for each in self.operator.operands if f"[{each[0]}," in spreads}  # rows of a table
        integers = {key: given[key] if given.get(key, "none") != "none" else "i64" for key, (_, _, kind) in ranges.items() if kind} | {key: "i64" for key in picks | seeds}
        kind = {torch.float64: "f64", torch.float32: "f32", torch.bfloat16: "bf16", torch.float16: "f16"}[dtype]
        plan = self.operator.plan((self.rows, self.columns), types={**{each[0]: kind for each in self.operator.operands},
                                                                    **self.types, **integers}, **self.constants)
        generator = torch.Generator().manual_seed(len(name))
        self.operands = {}
        for array, role, shape, _, _ in plan.arrays:
            if role != "operand":
                continue
            if array in integers:
                low, high, _ = ranges.get(array, (0, self.rows - 1, None))
                drawn = torch.randint(int(low), int(high) + 1, tuple(shape), generator=generator)
                self.operands[array] = drawn.to({"i64": torch.int64, "i32": torch.int32, "u8": torch.uint8}[integers[array]])
                continue
            drawn = torch.randn(shape, generator=generator, dtype=torch.float64)
            if array in ranges:
                low, high, _ = ranges[array]
                drawn = low + (high - low) * torch.rand(shape, generator=generator, dtype=torch.float64)
            self.operands[array] = drawn.to(dtype)

    def differentiable(self):
        return {name: value for name, value in self.operands.items() if value.is_floating_point()}

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
    return torch.where(condition, a, b)


def _tensor(value):
    return value if isinstance(value, torch.Tensor) else torch.tensor(float(value), dtype=torch.float64)


FUNCTIONS = {
    "sum": lambda e: e.sum(1, keepdim=True), "mean": lambda e: e.mean(1, keepdim=True),
    "amax": lambda e: e.amax(1, keepdim=True), "amin": lambda e: e.amin(1, keepdim=True),
    "rsqrt": torch.rsqrt, "sqrt": torch.sqrt, "exp": torch.exp, "log": torch.log, "tanh": torch.tanh, "abs": torch.abs,
    "sigmoid": torch.sigmoid, "silu": torch.nn.functional.silu, "relu": torch.relu,
    "gelu": torch.nn.functional.gelu, "gelu_tanh": lambda e: torch.nn.functional.gelu(e, approximate="tanh"),
    "max": lambda a, b: torch.maximum(_tensor(a), _tensor(b)), "min": lambda a, b: torch.minimum(_tensor(a), _tensor(b)),
    "select": _select, "cast": lambda e, _: e, "stop_gradient": lambda e: e.detach(),
    "rotate": lambda e, k: torch.roll(e, -int(k), 1),
}


def spread_out(array, spread, rows, columns, constants):
    """An operand as a matrix that broadcasts against (rows, columns)."""
    parts = [part.strip() for part in spread.strip("[]").split(",") if part.strip()]
    names = {**{name: int(value) for name, value in constants.items() if isinstance(value, float)}, "n": columns,
             "i": torch.arange(rows), "j": torch.arange(columns)}
    index = [eval(part.replace("/", "//"), {}, names) for part in parts]
    if spread == "[]":
        return array.reshape(1, 1)
    if spread.startswith("[j"):
        return array.reshape(-1)[index[0]].reshape(1, columns)
    if len(parts) == 1:
        return array.reshape(-1)[index[0]].reshape(rows, 1)
    if spread == "[i,j]":
        return array.reshape(rows, columns)
    return array[index[0][:, None], index[1][None, :]]


def execute(operator, operands, constants, rows, columns, largest=None):
    """Results by name, as matrices. `operands`: f64 tensors by name; those with a default may be missing."""
    names = {"n": columns, "i": torch.arange(rows)[:, None], "j": torch.arange(columns)[None, :],
             **{name: constants.get(name, fallback) for name, _, _, fallback in operator.constants}}
    for name, spread, _, fallback in operator.operands:
        given = operands.get(name)
        names[name] = _tensor(fallback) if given is None else spread_out(given, spread, rows, columns, names)
    body = operator.text[operator.text.index(")", operator.text.index("-> (")) + 1:]
    scope = {**FUNCTIONS, "largest": lambda _: largest, **{name: None for name, *_ in operator.results}}  # of cast()
    for line in re.sub(r"\n {6,}", " ", body).splitlines():
        if "=" in line:
            name, expression = line.split("=", 1)
            names[name.strip()] = eval(compile(ast.parse(expression.strip(), mode="eval"), "row", "eval"), scope,
                                       dict(names))
    return {name: names[name] for name, *_ in operator.results}


class Problem:
    """A small problem of an operator's first `#: try` line, in f64."""

    def __init__(self, name, which=0, dtype=torch.float64, shape=None):
        self.operator = trireme.operator(name)
        text = _core.operator_texts()[name]
        words = re.findall(r"#:\s*try\s+([^#\n]*)", text)[which].split()
        self.rows, self.columns = shape or (int(extent) for extent in words[0].split("x"))
        constants = {each[0] for each in self.operator.constants}
        self.constants = {key: float(value) for key, value in (word.split("=") for word in words[1:]) if key in constants}
        self.types = {"q": "i8"} if "q" in [each[0] for each in self.operator.results] else {}
        kind = {torch.float64: "f64", torch.float32: "f32", torch.bfloat16: "bf16", torch.float16: "f16"}[dtype]
        plan = self.operator.plan((self.rows, self.columns), types={**{each[0]: kind for each in self.operator.operands},
                                                                    **self.types}, **self.constants)
        generator = torch.Generator().manual_seed(len(name))
        self.operands = {}
        for array, role, shape, _, _ in plan.arrays:
            if role == "operand":
                self.operands[array] = torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype)
        if "target" in self.operands:
            self.operands["target"] = torch.randint(self.columns, (self.rows,), generator=generator, dtype=torch.int32)

    def differentiable(self):
        return {name: value for name, value in self.operands.items() if value.is_floating_point()}

#!/usr/bin/env python3
"""Writes tape.json: a small transformer and its training step as a list of calls of row programs on slices of named buffers.

Every forward call is followed, in reverse order, by its derived backward: the gradient of a slice of `b` is the same slice of
`db`. A value has one reader, so no gradient is ever added to another outside of a program; `fork` is a program with two readers.

    python3 examples/one_digest/model.py          # needs the package: PYTHONPATH=build/release/python without pip
"""
import json
import math
import pathlib
from dataclasses import dataclass
from typing import Any

import trireme

HERE = pathlib.Path(__file__).parent
RHYME = ("row, row, row your boat,\ngently down the stream.\nmerrily, merrily, merrily, merrily,\nlife is but a dream.\n")

STEPS = 64
SEQUENCES, LENGTH = 4, 16
TOKENS = SEQUENCES * LENGTH
SIZE, HEADS, HIDDEN, LAYERS = 32, 2, 64, 2
HEAD = SIZE // HEADS
EPS, RATE, BETA1, BETA2 = 1e-6, 1e-2, 0.9, 0.99


@dataclass(frozen=True)
class Slice:
    """Rows of a buffer, `stride` elements apart, from element `at`, and in step s from what `each` says further on."""
    of: str
    shape: tuple[int, ...]
    at: int = 0
    stride: int = 0
    each: str = ""

    def columns(self, first: int, count: int) -> "Slice":
        rows, columns = self.shape
        return Slice(self.of, (rows, count), self.at + first, self.stride or columns)

    def flat(self) -> "Slice":
        return Slice(self.of, (math.prod(self.shape),), self.at)

    def gradient(self) -> "Slice":
        return Slice("d" + self.of, self.shape, self.at, self.stride)

    def json(self) -> dict[str, Any]:
        fields = {"of": self.of, "at": self.at, "shape": list(self.shape), "stride": self.stride, "each": self.each}
        return {name: value for name, value in fields.items() if value not in (0, "")}


class Tape:
    def __init__(self) -> None:
        self.buffers: dict[str, dict[str, Any]] = {}
        self.texts: dict[str, str] = {}
        self.operators: dict[str, trireme.Operator] = {}
        self.start: list[dict[str, Any]] = []
        self.forwards: list[dict[str, Any]] = []
        self.backwards: list[dict[str, Any]] = []
        self.weights = 0

    def data(self, name: str, type: str, values: list[Any], *shape: int) -> Slice:
        self.buffers[name] = {"type": type, "values": values}
        return Slice(name, shape or (len(values),))

    def buffer(self, name: str, *shape: int) -> Slice:
        self.buffers[name] = {"type": "f32", "length": math.prod(shape)}
        return Slice(name, shape)

    def value(self, name: str, *shape: int) -> Slice:
        """One with a gradient."""
        self.buffer("d" + name, *shape)
        return self.buffer(name, *shape)

    def uniform(self, to: Slice, low: float, high: float) -> None:
        seed, shape = Slice("seeds", (1,), len(self.start)), (math.prod(to.shape[:-1]), to.shape[-1])
        self.start.append(self.call("uniform", shape, {"seed": seed, "y": Slice(to.of, shape, to.at)}, low=low, high=high))

    def weight(self, *shape: int, value: float | None = None) -> Slice:
        """The next part of the one buffer of weights."""
        made = Slice("weights", shape, self.weights)
        self.weights += math.prod(shape)
        bound = 1 / math.sqrt(shape[-1])
        self.uniform(made, *((-bound, bound) if value is None else (value, value)))
        return made

    def operator(self, name: str) -> trireme.Operator:
        if name not in self.operators:
            own = HERE / "programs" / f"{name}.row"
            lines = (own if own.exists() else HERE.parents[1] / "ops" / f"{name}.row").read_text().splitlines(keepends=True)
            self.texts[name] = "".join(line for line in lines if not line.startswith("#"))
            self.operators[name] = trireme.op(self.texts[name])
        return self.operators[name]

    def call(self, name: str, shape: tuple[int, int], arrays: dict[str, Slice], backward: bool = False,
             in_place: dict[str, str] | None = None, **constants: Any) -> dict[str, Any]:
        operator = self.operator(name).gradient() if backward else self.operator(name)

        def given(parameters: list[Any]) -> dict[str, Any]:
            return {each: arrays[each].json() for each, *_ in parameters if each in arrays}

        absent = [each for each, *_ in (*operator.operands, *operator.results) if each not in arrays]
        made = {"program": name, "backward": backward, "shape": list(shape), "constants": constants, "absent": absent,
                "in_place": in_place or {}, "operands": given(operator.operands), "results": given(operator.results)}
        return {field: value for field, value in made.items() if value}

    def forward(self, name: str, shape: tuple[int, int], arrays: dict[str, Slice], **constants: Any) -> None:
        self.forwards.append(self.call(name, shape, arrays, **constants))
        derived = self.operator(name).gradient()
        arrays = arrays | {"d" + each: slice.gradient() for each, slice in arrays.items()
                           if slice.of == "weights" or "d" + slice.of in self.buffers}
        constants = {each: constants[each] for each, *_ in derived.constants if each in constants}
        self.backwards.insert(0, self.call(name, shape, arrays, backward=True, **constants))

    def finish(self, loss: Slice) -> dict[str, Any]:
        """With the mean of the losses, AdamW over all weights at once, and what changes from step to step."""
        tokens, = loss.shape
        self.uniform(loss.gradient(), 1 / tokens, 1 / tokens)
        self.buffers["seeds"]["values"] = list(range(len(self.start)))
        average = self.call("average", (1, tokens), {"x": Slice("loss", (1, tokens)), "y": self.buffer("average", 1)})
        shape = (self.weights // SIZE, SIZE)
        p, g, m, v = (self.buffer(name, *shape) for name in ("weights", "dweights", "mean", "square"))
        adamw = self.call("adamw", shape, {"p": p, "g": g, "m": m, "v": v, "new_p": p, "new_m": m, "new_v": v},
                          in_place={"new_p": "p", "new_m": "m", "new_v": "v"}, lr=RATE, beta1=BETA1, beta2=BETA2,
                          unbias1="unbias1", unbias2="unbias2")
        each_step = {"window": [step * TOKENS % len(RHYME) for step in range(STEPS)],
                     "unbias1": [float(f"{1 / (1 - BETA1 ** (step + 1)):.9g}") for step in range(STEPS)],
                     "unbias2": [float(f"{1 / (1 - BETA2 ** (step + 1)):.9g}") for step in range(STEPS)]}
        return {"programs": dict(sorted(self.texts.items())), "buffers": self.buffers,
                "each_step": each_step, "start": self.start, "step": [*self.forwards, average, *self.backwards, adamw],
                "loss": "average", "digest": "weights"}


def describe() -> dict[str, Any]:
    tape = Tape()
    letters = sorted(set(RHYME))
    entries = len(letters)
    text = (RHYME * (2 + (TOKENS + 1) // len(RHYME)))[:len(RHYME) + TOKENS + 1]
    tape.data("text", "i32", [letters.index(letter) for letter in text])
    token = Slice("text", (TOKENS,), each="window")
    target = Slice("text", (TOKENS,), at=1, each="window")
    entry = tape.data("entry", "i32", list(range(entries)))
    position = tape.data("position", "i32", [row % LENGTH for row in range(TOKENS)])
    seen = tape.data("seen", "i32", [row + 1 for row in range(LENGTH)])
    angles = [row / 1000 ** (2 * column / HEAD) for row in range(LENGTH) for column in range(HEAD // 2)]
    cos, sin = (tape.data(function.__name__, "f32", [round(function(angle), 6) for angle in angles], LENGTH, HEAD // 2)
                for function in (math.cos, math.sin))
    tape.data("seeds", "i64", [])

    def product(x: Slice, rows: int, name: str) -> Slice:
        """x times the transpose of a new weight of so many rows."""
        y = tape.value(name, x.shape[0], rows)
        tape.forward("matmul", (x.shape[0] * rows, x.shape[1]), {"x": x, "w": tape.weight(rows, x.shape[1]), "y": y.flat()},
                     m=rows)
        return y

    def like(x: Slice, name: str) -> Slice:
        return tape.value(name, *x.shape)

    def add_norm(x: Slice, residual: Slice, name: str) -> tuple[Slice, Slice]:
        y, h, rstd = like(x, name), like(x, name + "_sum"), tape.buffer(name + "_rstd", TOKENS)
        tape.forward("add_rms_norm", (TOKENS, SIZE), {"x": x, "residual": residual,
                     "gamma": tape.weight(SIZE, value=1), "y": y, "h": h, "rstd": rstd}, eps=EPS)
        return y, h

    embedded, x, residual = (tape.value(name, TOKENS, SIZE) for name in ("embedded", "first", "stream"))
    tape.forward("embed", (TOKENS * entries, SIZE), {"token": token, "entry": entry, "table": tape.weight(entries, SIZE),
                 "y": embedded}, m=entries)
    tape.forward("fork", (TOKENS, SIZE), {"x": embedded, "a": x, "b": residual})
    y, rstd = like(x, "normed"), tape.buffer("rstd", TOKENS)
    tape.forward("rms_norm", (TOKENS, SIZE), {"x": x, "gamma": tape.weight(SIZE, value=1), "y": y, "rstd": rstd}, eps=EPS)
    for layer in range(LAYERS):
        at = f"{layer}_"
        qkv = product(y, 3 * SIZE, at + "qkv")
        attended = tape.value(at + "attended", TOKENS, SIZE)
        for head in range(HEADS):
            of = f"{at}{head}_"
            q, k, v = (tape.value(of + name, TOKENS, HEAD) for name in "qkv")
            for index, turned in enumerate((q, k)):
                tape.forward("rope", (TOKENS, HEAD), {"x": qkv.columns(index * SIZE + head * HEAD, HEAD), "position": position,
                             "cos": cos, "sin": sin, "y": turned})
            tape.forward("copy", (TOKENS, HEAD), {"x": qkv.columns(2 * SIZE + head * HEAD, HEAD), "y": v})
            keys, values = (Slice(each.of, (SEQUENCES, LENGTH * HEAD)) for each in (k, v))
            shape, sizes = (TOKENS, LENGTH * HEAD), {"keys": LENGTH, "size": HEAD}
            s, p = (tape.value(of + name, TOKENS, LENGTH) for name in ("scores", "p"))
            tape.forward("scores", shape, {"q": q, "k": keys, "s": s}, **sizes)
            tape.forward("causal_softmax", (TOKENS, LENGTH), {"x": s, "last": seen, "y": p}, queries=LENGTH,
                         scale=1 / math.sqrt(HEAD))
            tape.forward("weigh", shape, {"p": p, "v": values, "y": attended.columns(head * HEAD, HEAD)}, **sizes)
        y, residual = add_norm(product(attended, SIZE, at + "mixed"), residual, at + "norm")
        gated = product(y, 2 * HIDDEN, at + "gated")
        act = tape.value(at + "act", TOKENS, HIDDEN)
        tape.forward("swiglu", (TOKENS, HIDDEN), {"x": gated.columns(0, HIDDEN), "gate": gated.columns(HIDDEN, HIDDEN), "y": act})
        y, residual = add_norm(product(act, SIZE, at + "down"), residual, at + "last")
    logits = product(y, entries, "logits")
    loss, lse = tape.value("loss", TOKENS), tape.buffer("lse", TOKENS)
    tape.forward("cross_entropy", (TOKENS, entries), {"x": logits, "target": target, "loss": loss, "lse": lse})
    return tape.finish(loss)


def printed(tape: dict[str, Any]) -> str:
    """JSON with a line for each program, buffer and call."""
    def lines(value: Any) -> str:
        if isinstance(value, dict):
            return "{\n" + ",\n".join(f"    {json.dumps(name)}: {json.dumps(each)}" for name, each in value.items()) + "\n  }"
        if isinstance(value, list):
            return "[\n" + ",\n".join(f"    {json.dumps(each)}" for each in value) + "\n  ]"
        return json.dumps(value)
    return "{\n" + ",\n".join(f"  {json.dumps(name)}: {lines(value)}" for name, value in tape.items()) + "\n}\n"


def write() -> None:
    (HERE / "tape.json").write_text(printed(describe()))


if __name__ == "__main__":
    write()

"""Problems: what a line for `trireme verify` says beside the program, and random ones."""
import math
from dataclasses import dataclass, field

from storage import PACKED, TYPES

COLUMNS = (1, 2, 3, 7, 8, 16, 31, 33, 64, 96, 128, 255, 256, 257, 300, 512, 1000, 1023, 4097)
ROWS = (0, 1, 1, 2, 3, 5, 7, 16, 33, 65, 130)


@dataclass(frozen=True)
class Problem:
    """What a problem line says."""

    shape: tuple
    axes: int = 1
    constants: dict = field(default_factory=dict)
    types: dict = field(default_factory=dict)
    absent: frozenset = frozenset()
    places: dict = field(default_factory=dict)  # name -> text such as "+3:5000"
    backward: bool = False
    left_out: frozenset = frozenset()  # operands of the forward without which the backward is another program
    seed: int = 0
    tables: dict = field(default_factory=dict)  # name -> rows of an array whose rows are picked

    @property
    def rows(self):
        return math.prod(self.shape[: len(self.shape) - self.axes])

    @property
    def columns(self):
        return math.prod(self.shape[len(self.shape) - self.axes :])

    def line(self, file):
        words = [file, "x".join(map(str, self.shape))]
        for each in sorted({*self.types, *self.places} - self.absent):
            words.append(f"{each}={self.types.get(each, '')}{self.places.get(each, '')}")
        words += [f"{each}=none" for each in sorted(self.absent | self.left_out)]
        words += [f"{each}={value!r}".removesuffix(".0") for each, value in sorted(self.constants.items())]
        words += [f"{each}.rows={count}" for each, count in sorted(self.tables.items()) if each not in self.absent]
        words += ["backward"] * self.backward + [f"axes={self.axes}"] * (self.axes != 1)
        return " ".join(words + [f"seed={self.seed}"] * (self.seed != 0))


def draw_shape(dice):
    """The shape, and how many of its axes make a row."""
    columns = dice.choice(COLUMNS) if dice.random() < 0.8 else dice.randint(1, 600)
    rows = dice.choice(ROWS)
    if columns * rows > 40000:
        rows = dice.choice((0, 1, 2, 5))
    if dice.random() < 0.04:
        rows, columns = dice.choice(((1, 20000), (2, 16384), (1, 65537), (3, 8195), (4099, 3), (1500, 17), (2600, 8)))
    outer, inner = [rows], [columns]
    if dice.random() < 0.2:
        outer = dice.choice(([rows, 1], [2, rows], [1, rows], [3, 2], [], [2, 1, 3]))
    if dice.random() < 0.15:
        inner = dice.choice(([2, columns], [columns, 1], [3, 5], [2, 2, 7], [1, columns]))
    return tuple(outer + inner), len(inner)


def draw_problem(generator, program, backward_program=None):
    """A problem for a program just drawn, or for the backward that was derived from it."""
    dice = generator.dice
    backward = backward_program is not None
    signature = backward_program or program
    constants = dict(generator.values)
    for each in program.operands:
        if each.constant and each.default is not None and same_number(each.default, constants[each.name]):
            if dice.random() < 0.5:
                del constants[each.name]
    common = dice.choice(("f32", "f32", "f32", "bf16", "f16", "f64") + TYPES)
    mixed = dice.random() < 0.5
    arrays = [each for each in signature.operands + signature.results if not each.constant]
    types = {}
    for each in arrays:
        types[each.name] = dice.choice(TYPES) if mixed and dice.random() < 0.6 else common
        if each.name in generator.ints:
            types[each.name] = dice.choice(("i32", "i32", "i8", "i64", "u8", "f32"))
        if each.name in generator.pickers:
            types[each.name] = dice.choice(("i32", "i64"))
        if each.name == generator.seed:
            types[each.name] = "i64"
        if types[each.name] in PACKED and not takes_pairs(each, each in signature.results, generator):
            types[each.name] = "f32"
    named = {arg.leaf for expr in signature.expressions() for node in expr.nodes() for arg in node.args
             if node.op in ("cast", "cast_stochastic", "largest")}  # fmt: skip
    absent = {e.name for e in signature.operands if e.default is not None and not e.constant and dice.random() < 0.4}
    if len(signature.results) > 1:
        absent |= {e.name for e in dice.sample(signature.results, len(signature.results) - 1) if dice.random() < 0.15}
    absent -= named | generator.typed
    if backward:
        absent -= formulas(program)
    placed = [e for e in arrays if e.name not in absent and dice.random() < 0.2]
    places = {e.name: draw_place(dice, generator.shape, generator.axes, e, e in signature.operands) for e in placed
              if types[e.name] not in PACKED}  # fmt: skip
    return Problem(generator.shape, generator.axes, constants, {k: v for k, v in types.items() if k not in absent},
                   frozenset(absent), places, backward, seed=dice.choice((0, dice.randrange(2**32))),
                   tables={e.name: dice.choice((1, 3, generator.rows + 2)) for e in arrays
                           if e.picked and e.name not in absent and dice.random() < 0.6})  # fmt: skip


def takes_pairs(value, is_result, generator):
    """Whether it has pairs of columns; results that are sums over rows, or have rows of their own, are none."""
    by_row = value.row is not None and value.row.plain and not value.picked
    return generator.shape[-1] % 2 == 0 and value.column is not None and value.column.plain and (by_row or not is_result)


def formulas(program):
    """Operands whose default is an expression: without one the backward is another program."""
    return {e.name for e in program.operands if not e.constant and e.default is not None and not is_number(e)}


def is_number(operand):
    return operand.default is None or all(node.op in ("number", "neg") for node in operand.default.nodes())


def draw_left_out(generator, program):
    """Some of those, of which no cast needs the type."""
    named = {arg.leaf for expr in program.expressions() for node in expr.nodes() for arg in node.args
             if node.op in ("cast", "cast_stochastic", "largest")}  # fmt: skip
    free = sorted(formulas(program) - named - generator.typed)
    return frozenset(each for each in free if generator.dice.random() < 0.5)


def draw_place(dice, shape, axes, value, shared):
    """An offset, strides or both. Entries may share memory where `shared`: in operands, not in results."""
    offset = f"+{dice.choice((1, 2, 3, 5, 8, 33))}" if dice.random() < 0.6 else ""
    outer, inner = shape[: len(shape) - axes], shape[len(shape) - axes :]
    if not value.plain:
        return offset or "+1"
    rows, columns = outer if value.row else (), inner if value.column else ()
    extents = list(rows + columns)
    if not extents or dice.random() < 0.3:
        return offset or "+1"
    if rows and dice.random() < 0.5:  # rows further apart, columns side by side
        gap = math.prod(columns) + dice.choice((0, 1, 3, 16, 100))
        if dice.random() < 0.2:
            gap = -gap
        if shared and dice.random() < 0.3:
            gap = dice.choice((0, 1, math.prod(columns) // 2))
        return f"{offset}:{gap}"
    order = dice.sample(range(len(extents)), len(extents)) if dice.random() < 0.4 else range(len(extents))
    strides, step = [0] * len(extents), dice.choice((1, 1, 2, 3))
    for k in reversed(order):
        strides[k] = step if dice.random() < 0.8 else -step
        step *= max(extents[k], 1)
        step += dice.choice((0, 0, 1, 7))
    return f"{offset}:{','.join(map(str, strides))}"


def same_number(default, value):
    sign = -1 if default.op == "neg" else 1
    text = default.args[0].leaf if default.op == "neg" else default.leaf
    return sign * float(text) == value

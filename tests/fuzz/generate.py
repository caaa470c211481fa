"""Random programs, drawn from the grammar of docs/language.md.

A program is drawn for one shape, so that its divisors and rotations are whole there.
"""
import math
import random
from dataclasses import dataclass, replace

from functions import UNARY
from problem import draw_shape
from syntax import (
    COMPARISONS, COMPOSED, FUNCTIONS, LEFT_TO_A_LINE, REDUCTIONS, RESERVED, TOTALS, Axis, Expr, Program, Value, apply, name, number,
)  # fmt: skip

NAMES = """x y z w gamma beta a b c e g h s t u v q r t1 t2 t3 t4 x_hat rstd mean_ sums expx _ _1 __ A Z9 max_ i_ j2 n1
    ii inf_ nan0 select_ row column in f32 bf16 out value dz dw total scale variance softmax the_longest_name_of_them_all""".split()
NUMBERS = ("0", "1", "2", "3", "0.5", "1.5", "0.1", "1e-6", "0.25", "7", "1e3", "0x1.8p-3", "0x1p-2", "0xA", "1.e0",
           "1e-20", "100", "0.333", "2.5E-1")  # fmt: skip
PLAIN = Axis()


@dataclass(frozen=True)
class Known:
    """A name that expressions may use."""

    expr: Expr
    rows: bool  # it differs from row to row
    columns: bool
    condition: bool = False
    line: bool = False  # it is a line's, which defaults in the signature do not see


class Generator:
    def __init__(self, dice):
        self.dice = dice
        self.shape, self.axes = draw_shape(dice)
        self.rows = math.prod(self.shape[: len(self.shape) - self.axes])
        self.columns = math.prod(self.shape[len(self.shape) - self.axes :])
        self.names = dice.sample(NAMES, len(NAMES))
        self.constants, self.values = {}, {}  # signatures and values by name
        self.known, self.unused = [], []
        self.lines, self.in_body = [], False
        self.typed = set()  # names that a cast or largest() needs the type of
        self.functions = dice.random() < 0.75
        self.tame = dice.random() < 0.8
        self.seed = None  # the name of a seed
        self.pickers = {}  # name -> Value: operands that say which row of a table is meant

    def fresh(self):
        return self.names.pop() if self.names else f"v{self.dice.randrange(10**6)}"

    # ---- constants, divisors, rotations ----

    def constant(self, value):
        same = [each for each, had in self.values.items() if had == value]
        if same and self.dice.random() < 0.7:
            return name(self.dice.choice(same))
        added = self.fresh()
        default = None
        if self.dice.random() < 0.6:
            # What is given may differ from the default, which must not matter then.
            shown = value if self.dice.random() < 0.7 else float(self.dice.randint(1, 9))
            default = signed(shown)
        self.constants[added] = Value(added, constant=True, default=default)
        self.values[added] = value
        return name(added)

    def whole(self, value, allowed=("number", "constant", "n")):
        """An expression of numbers, constants and n that has this value."""
        choices = [each for each in allowed if each != "n" or value == self.columns]
        choice = self.dice.choice(choices or ["number"])
        if choice == "n":
            return name("n")
        return self.constant(float(value)) if choice == "constant" else number(str(value))

    def quotient(self, value, depth=0):
        """value as a quotient."""
        if self.columns % value == 0 and self.dice.random() < 0.7:
            top = name("n")
            by = self.columns // value
        else:
            by = self.dice.choice((1, 2, 3, 4))
            top = self.whole(value * by, ("number", "constant"))
        factors = [each for each in (2, 3, 5, 7) if by % each == 0 and by > each]
        if factors and self.dice.random() < 0.3:
            first = self.dice.choice(factors)
            return apply("/", apply("/", top, self.whole(first)), self.whole(by // first))
        return apply("/", top, self.whole(by))

    def divisor(self, extent):
        dice = self.dice
        divisors = [each for each in (1, 2, 3, 4, 5, 8, 16) if self.columns % each == 0]
        # An array has as many entries as its axes wrap at: rows that wrapped at a long row's columns would have billions.
        wide = self.columns if extent == self.columns or self.columns <= 4096 else max(extent, 1)
        value = dice.choice([1, 2, 3, 4, 7, max(extent, 1), wide, max(wide // dice.choice(divisors), 1), extent + 3])
        form = dice.random()
        return self.quotient(value) if form < 0.25 else self.arithmetic(value) if form < 0.45 else self.whole(value)

    def arithmetic(self, value):
        """The value as a sum, a difference or a product."""
        part = self.dice.choice((1, 2, 3, 5))
        if value % part == 0 and self.dice.random() < 0.4:
            return apply("*", *self.dice.sample((self.whole(value // part), self.whole(part)), 2))
        if value > part and self.dice.random() < 0.5:
            return apply("+", self.whole(value - part), self.whole(part))
        if self.dice.random() < 0.3:
            return apply("neg", apply("-", self.whole(part), self.whole(value + part)))
        return apply("-", self.whole(value + part), self.whole(part))

    def axis(self, extent):
        if self.dice.random() < 0.6:
            return PLAIN
        form = self.dice.choice(("divide", "wrap", "both"))
        return Axis(
            self.divisor(extent) if form != "wrap" else None,
            self.divisor(extent) if form != "divide" else None,
        )

    def group(self):
        """The columns that share j / g, or j % g. The evaluator takes groups one by one: long rows have few."""
        if self.columns > 4096:
            few = self.dice.choice((2, 7, 96, 128))
            kind, by = self.dice.choice((("/", -(-self.columns // few)), ("%", few)))
            return apply(kind, name("j"), self.whole(by))
        sizes = (2, 4, 8, 16, 24, 32, 40, 64, 96, 100, 128, 200, 250, 256)
        by = self.whole(self.dice.choice(sizes)) if self.dice.random() < 0.5 else self.divisor(self.columns)
        return apply(self.dice.choice("//%"), name("j"), by)

    def rotation(self):
        dice, n = self.dice, self.columns
        k = dice.choice((0, 1, 2, 3, n - 1, n, n, n + 1, n // 2, 5 * n + 1))
        amount = self.whole(k)
        form = dice.randrange(10)
        divisors = [each for each in (1, 2, 3, 4, 8) if n % each == 0]
        if form < 3:
            by = dice.choice(divisors)
            amount = name("n") if form == 0 and by == 1 else apply("/", name("n"), self.whole(by))
        elif form == 3:
            amount = apply("neg", amount)
        elif form == 4:
            amount = apply(dice.choice("+-"), amount, self.whole(dice.choice((1, 2, 5))))
        elif form == 5:
            amount = apply(dice.choice("+-"), name("n"), self.whole(dice.randint(0, 9)))
        elif form == 6:
            amount = apply("*", *dice.sample((name("n"), self.whole(dice.randint(0, 4))), 2))
        elif form == 7:
            amount = apply("/", apply("*", self.whole(3), name("n")), self.whole(dice.choice(divisors)))
        elif form == 8:
            amount = apply("/", apply("neg", name("n")), self.whole(dice.choice(divisors)))
        if self.in_body and dice.random() < 0.1:  # a line may name it
            self.lines.append((self.fresh(), amount))
            amount = name(self.lines[-1][0])
        return amount

    # ---- expressions ----

    def value(self, depth, rows=True, columns=True):
        """An expression that differs along rows and columns at most as said."""
        dice = self.dice
        if depth <= 0 or dice.random() < 0.12:
            return self.leaf(rows, columns)
        again = lambda: self.value(depth - 1, rows, columns)  # noqa: E731
        draw = dice.random()
        if draw < 0.36:
            return self.binary(dice.choice("++--**/"), again)
        if draw < 0.40:
            return apply("neg", again())
        if draw < 0.58 and self.functions:
            return self.function(again)
        if draw < 0.66:
            return apply("select", self.condition(depth - 1, rows, columns), again(), again())
        if draw < 0.80:
            inside = self.value(depth - 1, rows, True)
            kind = dice.random()
            if kind < 0.25:
                return apply(dice.choice(COMPOSED if columns else COMPOSED[:2]), inside)
            if kind < 0.31:  # few, because a program that has one has no backward
                total = dice.choice(list(TOTALS))
                return apply(total, inside, *(self.value(depth - 1, rows, True) for _ in range(TOTALS[total] - 1)))
            group = (self.group(),) if columns and dice.random() < 0.3 else ()
            return apply(dice.choice(REDUCTIONS), inside, *group)
        if draw < 0.86 and columns:
            return apply("rotate", again(), self.rotation())
        if draw < 0.90:
            return apply("stop_gradient", again())
        if draw < 0.94:
            if self.seed and dice.random() < 0.4:
                by = self.random() if rows and columns and dice.random() < 0.8 else again()
                return apply("cast_stochastic", again(), self.typed_name(), by)
            return apply("cast", again(), self.typed_name())
        if draw < 0.96:
            return apply("largest", self.typed_name())
        return self.leaf(rows, columns)

    def random(self):
        drawn = (name(self.seed), number(self.dice.choice(("0", "1", "77", "4294967295"))))
        if self.dice.random() < 0.6:
            return apply("random", *drawn)
        row, column = self.dice.choice((0, 1, 37, 2**32 - 1, 2**40 + 3)), self.dice.choice((0, 1, 2, 4, 7, 256, 2**30))
        return apply("random", *drawn, *(self.whole(each, ("number", "constant")) for each in (row, column)))

    def binary(self, sign, again):
        left, right = again(), again()
        if sign == "/" and self.tame:
            right = apply("+", apply("abs", right), self.positive())
        return apply(sign, left, right)

    def function(self, again):
        which = self.dice.choice(list(FUNCTIONS))
        args = [again() for _ in range(FUNCTIONS[which])]
        if self.tame and which in UNARY and UNARY[which].lowest > -math.inf:
            args[0] = apply("+", apply(self.dice.choice(("abs", "square")), args[0]), self.positive())
        if self.tame and which in ("exp", "expm1"):
            args[0] = apply("min", args[0], number("2"))
        if which == "clamp" and self.dice.random() < 0.7:
            args[1:] = [apply("neg", number("1")), number("1.5")]
        return apply(which, *args)

    def positive(self):
        return self.dice.choice((number("1"), number("0.5"), number("1e-3"), self.constant(0.01)))

    def leaf(self, rows, columns):
        dice = self.dice

        fresh = [k for k in self.unused if self.fits(k, rows, columns)]
        usable = [k for k in self.known if self.fits(k, rows, columns)]
        draw = dice.random()
        if self.seed and rows and columns and dice.random() < 0.15:
            return self.random()
        if fresh and draw < 0.6:
            chosen = dice.choice(fresh)
            self.unused.remove(chosen)
            return chosen.expr
        if usable and draw < 0.8:
            return dice.choice(usable).expr
        if draw < 0.88:
            return number(dice.choice(NUMBERS))
        if draw < 0.94:
            return self.constant(dice.choice((0.0, 1.0, -1.0, 0.5, 1e-6, -2.25, 3.0, 1e-30)))
        if draw < 0.95:
            return self.special()
        letters = ["n"] + ["i"] * rows + ["j"] * columns
        return name(dice.choice(letters))

    def fits(self, each, rows, columns, condition=False):
        seen = self.in_body or not each.line
        return seen and each.condition == condition and (rows or not each.rows) and (columns or not each.columns)

    def special(self):
        out = number(self.dice.choice(("inf", "1e30", "1e-40") if self.tame else ("inf", "nan", "nan", "1e30")))
        return apply("neg", out) if self.dice.random() < 0.4 else out

    def typed_name(self):
        chosen = self.dice.choice(self.nameable)
        self.typed.add(chosen)
        return name(chosen)

    def condition(self, depth, rows, columns):
        dice = self.dice
        named = [k for k in self.known if self.fits(k, rows, columns, condition=True)]
        draw = dice.random()
        if named and draw < 0.15:
            return dice.choice(named).expr
        if depth > 0 and draw < 0.35:
            return apply(dice.choice(("and", "or")), *(self.condition(depth - 1, rows, columns) for _ in "ab"))
        if depth > 0 and draw < 0.42:
            return apply("not", self.condition(depth - 1, rows, columns))
        sign = dice.choice(COMPARISONS)
        if draw < 0.62:
            return apply(sign, self.integer(rows, columns), self.integer(rows, columns))
        return apply(sign, self.value(depth - 1, rows, columns), self.value(depth - 1, rows, columns))

    def integer(self, rows, columns):
        """A side of a comparison that is made in integers."""
        choices = ["n", "number", "number"] + ["i"] * rows * 2 + ["j"] * columns * 3
        choices += [k for k in self.integers if (rows or not k.rows) and (columns or not k.columns)]
        chosen = self.dice.choice(choices)
        if chosen == "number":
            out = number(str(self.dice.choice((0, 1, 2, 5, self.columns - 1, self.columns // 2, 127))))
            return apply("neg", out) if self.dice.random() < 0.15 else out
        return name(chosen) if isinstance(chosen, str) else chosen.expr

    # ---- programs ----

    def operand(self, first):
        dice = self.dice
        draw = dice.random()
        row, column = PLAIN, PLAIN
        if first and draw < 0.9:
            pass
        elif draw < 0.45:
            row, column = dice.choice(((PLAIN, PLAIN), (PLAIN, None), (None, PLAIN), (None, None)))
        elif draw < 0.9:
            row, column = self.axis(self.rows), self.axis(self.columns)
            row, column = dice.choice(((row, column), (row, column), (row, None), (None, column)))
        if self.pickers and not first and dice.random() < 0.5:
            row = Axis(pick=dice.choice(list(self.pickers)))
        default = None
        added = self.fresh()
        if dice.random() < 0.3:
            draw = dice.random()
            if draw < 0.5:
                default = signed(dice.choice((0.0, 1.0, -1.0, 2.5)))
            elif draw < 0.8:
                default = self.value(2, *default_spread(row, column))
            else:
                default = LEFT_TO_A_LINE
        return Value(added, row, column, default=default)

    def program(self):
        dice = self.dice
        self.nameable, self.integers, self.ints = [], [], set()
        seed = self.fresh() if dice.random() < 0.15 else None
        for _ in range(dice.choice((0, 0, 0, 1, 2))):
            row = dice.choice((PLAIN, PLAIN, None, self.axis(self.rows)))
            added = self.fresh()
            self.pickers[added] = Value(added, row)
        results = self.draw_results()
        self.nameable = [each.name for each in results if dice.random() < 0.3]
        operands = []
        for k in range(dice.choice((1, 1, 2, 2, 3, 3, 4, 5))):
            # A default, also one that is left to a line, sees what stands before it.
            self.nameable += [each.name for each in operands
                              if each.default is None and each.name not in self.nameable + [self.seed]]
            self.nameable = self.nameable or [results[0].name]
            operand = self.operand(k == 0)
            operands.append(operand)
            if operand.default == LEFT_TO_A_LINE:
                self.helper_lines(dice.choice((0, 0, 1)))
                self.line(operand.name, 3, *default_spread(operand.row, operand.column))
            self.learn(operand.name, operand.row is not None, operand.column is not None)
            if dice.random() < 0.15:
                self.ints.add(operand.name)
                self.integers.append(self.known[-1])
            if k == 0:  # pickers stand before what they pick
                if seed:
                    self.seed = seed
                    operands.append(Value(seed))
                for each in self.pickers.values():
                    operands.append(each)
                    self.learn(each.name, each.row is not None, False)
                    self.integers.append(self.known[-1])
        for result in results:
            self.helper_lines(dice.choice((0, 0, 1, 1, 2)) if dice.random() < 0.98 else 20)
            if result.summed:
                self.line(result.name, 3, wrapper=dice.choice(("colsum", "colsum", "colmax")))
            else:
                self.line(result.name, dice.choice((2, 3, 3, 4)), True, result.column is not None)
                self.learn(result.name, True, result.column is not None, line=True)
        signature = operands + list(self.constants.values())
        if dice.random() < 0.3:  # constants may stand anywhere before their use in a default; indices see them all
            signature = list(self.constants.values()) + operands
        out = Program(dice.choice(("f", "g_1", "exp", "softmax2", "Main")), tuple(signature), tuple(results), tuple(self.lines))
        return replace(out, remarks=tuple(self.remarks(operands)))

    def draw_results(self):
        out = []
        for k in range(self.dice.choice((1, 1, 1, 2, 2, 3, 4))):
            draw = self.dice.random()
            row, column = PLAIN, PLAIN
            if draw < 0.5:
                pass
            elif draw < 0.65:
                column = None
            elif draw < 0.8:
                row, column = self.dice.choice(((None, PLAIN), (None, None)))
            else:
                row, column = self.axis(self.rows), self.axis(self.columns)
                row, column = self.dice.choice(((row, column), (row, column), (row, None), (None, column)))
            own = [each for each, value in self.pickers.items() if value.row == PLAIN]
            if own and row == PLAIN and column in (PLAIN, None) and self.dice.random() < 0.3:
                row = Axis(pick=self.dice.choice(own))
            out.append(Value(self.fresh(), row, column))
        return out

    def learn(self, added, rows, columns, condition=False, line=False):
        self.known.append(Known(name(added), rows, columns, condition, line))
        self.unused.append(self.known[-1])

    def line(self, added, depth, rows=True, columns=True, wrapper=None):
        self.in_body = True
        expr = self.value(depth, rows, columns)
        self.in_body = False
        self.lines.append((added, apply(wrapper, expr) if wrapper else expr))

    def helper_lines(self, count):
        for _ in range(count):
            added = self.fresh()
            if self.dice.random() < 0.12:
                self.in_body = True
                self.lines.append((added, self.condition(2, True, True)))
                self.in_body = False
                self.learn(added, True, True, condition=True, line=True)
                continue
            rows, columns = self.dice.choice(((True, True), (True, True), (True, False), (False, True), (False, False)))
            self.line(added, self.dice.choice((2, 3)), rows, columns)
            self.learn(added, rows, columns, line=True)

    def remarks(self, operands):
        for operand in operands:
            if operand.name in self.pickers or operand.name == self.seed:
                continue
            if operand.name in self.ints:
                low, high = self.dice.choice((("0", "n-1"), ("-1", "n+2"), ("0", "5")))
                yield f"range {operand.name} {low}..{high} integer"
            elif self.dice.random() < 0.1:
                yield f"range {operand.name} " + self.dice.choice(("-1..1", "0..1", "-30..30", "1..1", "0..0", "-1e20..1e20"))


def default_spread(row, column):
    """What a default may differ along: whole axes alone."""
    return [axis is not None and axis.plain for axis in (row, column)]


def signed(value):
    text = number(repr(abs(value)).removesuffix(".0"))
    return apply("neg", text) if value < 0 else text


def draw(seed, index):
    """The generator and program of an index: the same on every machine."""
    generator = Generator(random.Random(f"{seed}:{index}"))
    return generator, generator.program()


assert not set(NAMES) & RESERVED

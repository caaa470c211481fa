"""Row programs as Python values, and their text, written from docs/language.md alone."""
from dataclasses import dataclass, field, replace

from formulas import FORMULAS
from functions import UNARY

COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")
REDUCTIONS = ("sum", "mean", "amax", "amin")
COMPOSED = ("variance", "logsumexp", "softmax")  # names that values may have, too
TOTALS = {"variance_sum": 1, "variance_squares": 1, "logsumexp_top": 1, "logsumexp_sum": 1, "logsumexp_weighted_top": 2,
          "logsumexp_weighted": 2}  # likewise; what the composed are made of, with their numbers of arguments
FUNCTIONS = {**dict.fromkeys(UNARY, 1), "min": 2, "max": 2, "fma": 3, "clamp": 3,  # name -> arguments
             **{name: len(each.arguments) for name, each in FORMULAS.items()}}  # fmt: skip
CONDITIONS = {"and": 2, "or": 2, "not": 1}
COLUMN_REDUCTIONS = ("colsum", "colmax")  # a result's whole right side
OTHERS = {"select": 3, "rotate": 2, **dict.fromkeys(COLUMN_REDUCTIONS, 1), "stop_gradient": 1, "cast": 2, "largest": 1,
          "random": 2, "cast_stochastic": 3}
ARITY = {**FUNCTIONS, **CONDITIONS, **OTHERS, **TOTALS, **dict.fromkeys(REDUCTIONS + COMPOSED, 1)}
# Arguments that are names, numbers or groups of columns, not expressions. Not drawn: entries(e), which backwards have.
LITERAL = {"cast": (1,), "cast_stochastic": (1,), "largest": (0,), "random": (0, 1, 2, 3), **dict.fromkeys(REDUCTIONS, (1,))}
VALUES_OF_INTEGERS = ("i", "j", "n")
RESERVED = {"i", "j", "n", "inf", "nan"} | set(ARITY) - set(COMPOSED) - set(TOTALS)


@dataclass(frozen=True)
class Expr:
    """`op` is "number" (its text in `leaf`), "name" (also i, j, n), "neg", an operator's sign, or a function's name."""

    op: str
    args: tuple = ()
    leaf: str = ""

    def nodes(self):
        yield self
        for arg in self.args:
            yield from arg.nodes()

    def names(self):
        return {each.leaf for each in self.nodes() if each.op == "name"}

    def is_condition(self):
        return self.op in COMPARISONS or self.op in CONDITIONS


def number(value):
    return Expr("number", leaf=value if isinstance(value, str) else format(value, "g"))


def name(text):
    return Expr("name", leaf=text)


def apply(op, *args):
    return Expr(op, tuple(args))


@dataclass(frozen=True)
class Axis:
    """An index i or j, divided and then wrapped by expressions of numbers, constants and n; or rows that an operand picks."""

    divide: Expr | None = None
    wrap: Expr | None = None
    pick: str | None = None

    @property
    def plain(self):
        return self.divide is None and self.wrap is None and self.pick is None


LEFT_TO_A_LINE = Expr("...")


@dataclass(frozen=True)
class Value:
    """An operand, constant or result of the signature."""

    name: str
    row: Axis | None = None
    column: Axis | None = None
    constant: bool = False
    default: Expr | None = None

    @property
    def plain(self):
        return all(axis is None or axis.plain for axis in (self.row, self.column))

    @property
    def summed(self):
        """As a result: several elements land on one of its entries, so that it takes a colsum or colmax."""
        return not self.picked and (self.row is None or not self.plain)

    @property
    def picked(self):
        return self.row is not None and self.row.pick is not None


@dataclass(frozen=True)
class Program:
    name: str
    operands: tuple
    results: tuple
    lines: tuple  # (name, Expr)
    remarks: tuple = ()

    def value(self, wanted):
        return next((each for each in self.operands + self.results if each.name == wanted), None)

    def expressions(self):
        yield from (each.default for each in self.operands if each.default is not None)
        yield from (expr for _, expr in self.lines)


# ---- text ----


@dataclass
class Style:
    """What a text may look like without meaning anything else. `dice` is a random.Random, or None for the plain form."""

    dice: object = None
    depth: int = field(default=0)

    def chance(self, odds):
        return self.dice is not None and self.dice.random() < odds

    def blank(self, usual):
        if not self.chance(0.04):
            return usual
        choices = [" ", "  ", "\t"] if usual else ["", " ", "\t"]
        if self.depth:  # inside parentheses, where a new line is a blank
            choices += ["\n", " # a comment (with + signs\n  "]
        return self.dice.choice(choices)


LEVELS = {**dict.fromkeys(COMPARISONS, 1), "+": 2, "-": 2, "*": 3, "/": 3, "%": 3, "neg": 4}


def text_of(expr, style=Style(), level=0):
    if expr.op == "...":
        return "..."
    if style.chance(0.03) and expr.op not in COLUMN_REDUCTIONS:
        style.depth += 1
        inside = f"({style.blank('')}{text_of(expr, style)}{style.blank('')})"
        style.depth -= 1
        return inside
    if expr.op in ("number", "name"):
        return expr.leaf
    own = LEVELS.get(expr.op, 5)
    if own == 5:
        style.depth += 1
        literal = LITERAL.get(expr.op, ())
        args = [group_text(arg) if k in literal and expr.op in REDUCTIONS else text_of(arg, Style() if k in literal else style)
                for k, arg in enumerate(expr.args)]
        inner = ("," + style.blank(" ")).join(args)
        style.depth -= 1
        return f"{expr.op}{style.blank('')}({inner})"
    style.depth += own < level
    if expr.op == "neg":
        out = "-" + style.blank("") + text_of(expr.args[0], style, 4)
    else:  # left to right; comparisons do not chain
        left = text_of(expr.args[0], style, own + (own == 1))
        out = f"{left}{style.blank(' ')}{expr.op}{style.blank(' ')}{text_of(expr.args[1], style, own + 1)}"
    style.depth -= own < level
    return f"({out})" if own < level else out


def divisor(expr):
    return text_of(expr) if expr.op in ("number", "name") else f"({text_of(expr)})"


def group_text(group):
    return f"{text_of(group.args[0])} {group.op} {divisor(group.args[1])}"


def axis_text(letter, axis, style):
    out = axis.pick or letter
    if axis.divide is not None:
        out += f"{style.blank(' ')}/{style.blank(' ')}{divisor(axis.divide)}"
    if axis.wrap is not None:
        if axis.divide is not None and not style.chance(0.2):
            out = f"({out})"
        out += f"{style.blank(' ')}%{style.blank(' ')}{divisor(axis.wrap)}"
    return out


def value_text(value, style):
    out = value.name
    if not value.constant:
        axes = [axis_text(letter, axis, style) for letter, axis in (("i", value.row), ("j", value.column)) if axis]
        out += "[" + ",".join(axes) + "]"
    if value.default is not None:
        out += f"{style.blank(' ')}={style.blank(' ')}{text_of(value.default, Style() if value.constant else style)}"
    return out


def program_text(program, dice=None):
    style = Style(dice, depth=1)
    operands = f",{style.blank(' ')}".join(value_text(each, style) for each in program.operands)
    results = f",{style.blank(' ')}".join(value_text(each, style) for each in program.results)
    style.depth = 0
    out = [f"#: {each}" for each in program.remarks]
    out.append(f"{program.name}({operands}){style.blank(' ')}->{style.blank(' ')}({results})")
    for line, expr in program.lines:
        if style.chance(0.05):
            out.append(style.dice.choice(["", "# nothing", "   ", "\t# x[i,j] = 1"]))
        indent = style.dice.choice(["", " ", "\t", "        "]) if style.chance(0.1) else "    "
        end = " # said" if style.chance(0.05) else ""
        out.append(f"{indent}{line}{style.blank(' ')}={style.blank(' ')}{text_of(expr, style)}{end}")
    return "\n".join(out) + "\n"

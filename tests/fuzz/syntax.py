"""Row programs as Python values, their text, and a parser of that text, written from docs/language.md alone.

The parser is the second reader of the language: what `trireme show` prints is read here, and must mean the same.
"""
import re
from dataclasses import dataclass, field, replace

COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")
REDUCTIONS = ("sum", "mean", "amax", "amin")
FUNCTIONS = {  # the page's table of functions, and those of one value that stand before it: name -> arguments
    **dict.fromkeys(("exp", "log", "expm1", "log1p", "tanh", "sigmoid", "erf", "rsqrt", "silu", "gelu", "gelu_tanh",
                     "gelu_slope", "relu", "softplus", "square", "sign", "abs", "sqrt", "floor", "round"), 1),
    "min": 2, "max": 2, "fma": 3, "clamp": 3,
}  # fmt: skip
CONDITIONS = {"and": 2, "or": 2, "not": 1}
OTHERS = {"select": 3, "rotate": 2, "colsum": 1, "stop_gradient": 1, "cast": 2, "largest": 1}
ARITY = {**FUNCTIONS, **CONDITIONS, **OTHERS, **dict.fromkeys(REDUCTIONS, 1)}
VALUES_OF_INTEGERS = ("i", "j", "n")
RESERVED = {"i", "j", "n", "inf", "nan"} | set(ARITY)


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
    """An index i or j, divided and then wrapped by expressions of numbers, constants and n."""

    divide: Expr | None = None
    wrap: Expr | None = None

    @property
    def plain(self):
        return self.divide is None and self.wrap is None


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
        """As a result: several elements land on one of its entries, so that it takes a colsum."""
        return self.row is None or not self.plain


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


LEVELS = {**dict.fromkeys(COMPARISONS, 1), "+": 2, "-": 2, "*": 3, "/": 3, "neg": 4}


def text_of(expr, style=Style(), level=0):
    if expr.op == "...":
        return "..."
    if style.chance(0.03) and expr.op != "colsum":
        style.depth += 1
        inside = f"({style.blank('')}{text_of(expr, style)}{style.blank('')})"
        style.depth -= 1
        return inside
    if expr.op in ("number", "name"):
        return expr.leaf
    own = LEVELS.get(expr.op, 5)
    if own == 5:
        style.depth += 1
        names = {"cast": 1, "largest": 0}.get(expr.op)  # the argument that is a name, not an expression
        args = [text_of(arg, Style() if k == names else style) for k, arg in enumerate(expr.args)]
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


def axis_text(letter, axis, style):
    def divisor(expr):
        return f"({text_of(expr)})" if expr.op == "/" else text_of(expr)

    out = letter
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


# ---- parser ----

TOKEN = re.compile(
    r"(?P<blank>[ \t\r]+|#[^\n]*)|(?P<line>\n)"
    r"|(?P<number>0[xX][0-9a-fA-F]+(?:\.[0-9a-fA-F]*)?(?:[pP][-+]?\d+)?|(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)"
    r"|(?P<name>[A-Za-z_][A-Za-z0-9_]*)|(?P<sign>\.\.\.|->|<=|>=|==|!=|[-+*/%<>=(),\[\]:])"
)


class ParseError(Exception):
    pass


class Parser:
    def __init__(self, text):
        self.tokens, self.at = [], 0
        depth = 0
        position = 0
        while position < len(text):
            match = TOKEN.match(text, position)
            if not match:
                raise ParseError(f"character {text[position]!r}")
            position = match.end()
            if match.lastgroup == "blank" or (match.lastgroup == "line" and depth):
                continue
            depth += (match.group() in ("(", "[")) - (match.group() in (")", "]"))
            self.tokens.append((match.lastgroup, match.group()))
        self.tokens.append(("line", "\n"))

    def peek(self, *signs):
        return self.at < len(self.tokens) and self.tokens[self.at][1] in signs

    def take(self, kind=None, sign=None):
        if self.at == len(self.tokens):
            raise ParseError(f"the text ends where {sign or kind} should stand")
        token = self.tokens[self.at]
        if (kind and token[0] != kind) or (sign and token[1] != sign):
            raise ParseError(f"{sign or kind} expected, not {token[1]!r}, at token {self.at}")
        self.at += 1
        return token[1]

    def skip(self, sign):
        found = self.peek(sign)
        self.at += found
        return found

    def list_of(self, item):
        self.take(sign="(")
        items = []
        while not self.skip(")"):
            if items:
                self.take(sign=",")
            items.append(item())
        return tuple(items)

    def signature(self):
        while self.skip("\n"):
            pass
        title = self.take("name")
        operands = self.list_of(lambda: self.value(False))
        self.take(sign="->")
        return Program(title, operands, self.list_of(lambda: self.value(True)), ())

    def program(self):
        out = self.signature()
        lines = []
        while self.at < len(self.tokens):
            if self.skip("\n"):
                continue
            target = self.take("name")
            self.take(sign="=")
            lines.append((target, self.expression()))
            self.take("line")
        return replace(out, lines=tuple(lines))

    def value(self, result):
        out = Value(self.take("name"), constant=True)
        if self.skip("["):
            row = self.axis("i")
            if row and not self.peek("]"):
                self.take(sign=",")
            out = replace(out, constant=False, row=row, column=self.axis("j"))
            self.take(sign="]")
        if self.skip(":"):  # the type of a bound program's
            self.take("name")
        if not result and self.skip("="):
            out = replace(out, default=LEFT_TO_A_LINE if self.skip("...") else self.expression())
        return out

    def axis(self, letter):
        start = self.at
        if self.skip("("):
            inner = self.axis(letter)
            if inner is None:  # the other letter's
                self.at = start
                return None
            self.take(sign=")")
        elif self.skip(letter):
            inner = Axis()
        else:
            return None
        if self.skip("/"):
            inner = replace(inner, divide=self.divisor())
        if self.skip("%"):
            inner = replace(inner, wrap=self.divisor())
        return inner

    def divisor(self):
        if self.skip("("):
            out = self.divisor()
            while self.skip("/"):
                out = apply("/", out, self.divisor())
            self.take(sign=")")
            return out
        kind, text = self.tokens[self.at]
        self.at += 1
        return Expr(kind, leaf=text)

    def expression(self):
        left = self.binary(("+", "-"), lambda: self.binary(("*", "/"), self.unary))
        if self.peek(*COMPARISONS):
            sign = self.take()
            return apply(sign, left, self.binary(("+", "-"), lambda: self.binary(("*", "/"), self.unary)))
        return left

    def binary(self, signs, inner):
        out = inner()
        while self.peek(*signs):
            out = apply(self.take(), out, inner())
        return out

    def unary(self):
        if self.skip("-"):
            return apply("neg", self.unary())
        if self.skip("("):
            out = self.expression()
            self.take(sign=")")
            return out
        kind, text = self.tokens[self.at]
        self.at += 1
        if kind == "number" or text in ("inf", "nan"):
            return Expr("number", leaf=text)
        if kind != "name":
            raise ParseError(f"a value expected, not {text!r}")
        if self.peek("("):
            args = self.list_of(self.expression)
            if len(args) != ARITY.get(text):
                raise ParseError(f"{text} with {len(args)} arguments")
            return Expr(text, args)
        return Expr("name", leaf=text)


def parse(text):
    return Parser(text).program()

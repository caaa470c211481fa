"""A second reader of the language, written from docs/language.md: what `trireme show` prints is read here, and must mean
the same. It takes what is right, and is not particular about what is wrong."""
import re
from dataclasses import replace

from syntax import ARITY, COMPARISONS, LEFT_TO_A_LINE, REDUCTIONS, Axis, Expr, Program, Value, apply

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
            row = self.picked() or self.axis("i")
            if row and not self.peek("]"):
                self.take(sign=",")
            out = replace(out, constant=False, row=row, column=self.axis("j"))
            self.take(sign="]")
        if self.skip(":"):  # the type of a bound program's
            self.take("name")
        if not result and self.skip("="):
            out = replace(out, default=LEFT_TO_A_LINE if self.skip("...") else self.expression())
        return out

    def picked(self):
        if self.tokens[self.at][0] != "name" or self.peek("i", "j"):
            return None
        return Axis(pick=self.take("name"))

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
            out = self.binary(("+", "-"), lambda: self.binary(("*", "/"), self.unary))
            self.take(sign=")")
            return out
        kind, text = self.tokens[self.at]
        self.at += 1
        return Expr(kind, leaf=text)

    def expression(self):
        left = self.binary(("+", "-"), lambda: self.binary(("*", "/", "%"), self.unary))
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
            grouped = len(args) == 2 and text in REDUCTIONS or text == "entries"
            placed = len(args) == 4 and text == "random"  # with a first row and column
            if len(args) != ARITY.get(text) and not grouped and not placed:
                raise ParseError(f"{text} with {len(args)} arguments")
            return Expr(text, args)
        return Expr("name", leaf=text)


def parse(text):
    return Parser(text).program()

#!/usr/bin/env python3
"""Computes the vectors of contract/vectors again and compares digests: python3 contract/check.py [FILE.json ...]

This is a second implementation of the contract, written from docs/contract.md and nothing else; section numbers are that
page's. It shares no code and no table with the compiler: the expansions of functions, the folds and the secret of the digest
are read out of the page. Of arithmetic it needs integers, binary64 (Python's float, whose + - * / and square root round to
nearest even) and struct, which rounds binary64 to binary32. A row's values are lists with one entry for each column, of the
compute type as floats; in f32 the results of each operation are rounded.
"""
import collections, functools, itertools, json, math, operator, pathlib, re, struct, sys, time

HERE = pathlib.Path(__file__).resolve().parent
PAGE = (HERE.parent / "docs" / "contract.md").read_text(encoding="utf-8")
INF, NAN = math.inf, math.nan

def refuse(reason):
    raise ValueError(reason)

# ---- Section 1: texts
TOKEN = re.compile(r"""(?P<blank>[ \t\r]+|\#[^\n]*) | (?P<line>\n) | (?P<name>[A-Za-z_][A-Za-z0-9_]*) | (?P<number>
    0[xX][0-9a-fA-F]*\.?[0-9a-fA-F]*(?:[pP][+-]?[0-9]+)? | (?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)
    | (?P<symbol>\.\.\.|->|<=|>=|==|!=|[-+*/%<>=()\[\],]) | (?P<wrong>.)""", re.VERBOSE)
LEVELS = (("<", "<=", ">", ">=", "==", "!="), ("+", "-"), ("*", "/", "%"))      # % stands in indices only

def number_of(text):
    """The f64 nearest to a number, which may have a sign."""
    return float.fromhex(text) if "0x" in text.lower() else float(text)

class Parser:
    """Reads texts into tuples: ("number", f64), ("name", text), ("call", function, arguments), ("negate", value) and
    (operator, side, side). Indices and divisors are read as expressions."""
    def __init__(self, text):
        self.kinds, self.words, self.at, depth = ["line"], ["\n"], 1, 0
        for match in TOKEN.finditer(text):
            kind, word = match.lastgroup, match.group()
            depth += (word in ("(", "[")) - (word in (")", "]"))
            if kind != "blank" and (kind != "line" or not depth and self.kinds[-1] != "line"):
                self.kinds.append(kind)
                self.words.append(word)
        self.kinds += ["line", "end"] if self.kinds[-1] != "line" else ["end"]
        self.words += ["\n", ""]

    def take(self, *words):
        taken = self.words[self.at] if self.words[self.at] in words else None
        self.at += taken is not None
        return taken

    def expect(self, *words):
        return self.take(*words) or refuse(f"expected {' or '.join(words)} before {self.words[self.at]!r}")

    def name(self):
        return self.expect(self.words[self.at] if self.kinds[self.at] == "name" else "a name")

    def items(self, item):
        found = []
        while not self.take(")"):
            found.append((found and self.expect(","), item())[1])
        return found

    def program(self):
        """Operands (name, spread or None, default or None), results (name, spread) and lines (name, expression)."""
        self.name(), self.expect("(")
        operands = self.items(lambda: (self.name(), self.spread(), self.take("=") and (self.take("...") or self.expression())))
        self.expect("->"), self.expect("(")
        results, _ = self.items(lambda: (self.name(), self.spread())), self.expect("\n")
        return operands, results, self.lines()

    def lines(self):
        found = []
        while self.kinds[self.at] != "end":
            name, _, value, _ = self.name(), self.expect("="), self.expression(), self.expect("\n")
            found.append((name, value))
        return found

    def spread(self):
        """(row, column), each an index or None where there is none; a row may be the name of a picking operand."""
        if not self.take("["):
            return None
        row = None if self.words[self.at] == "]" else self.expression()
        column = self.expression() if self.take(",") else None
        self.expect("]")
        return (None, row) if "'j'" in str(row) else (row, column)

    def expression(self, level=0):
        if level == len(LEVELS):
            return self.unary()
        left = self.expression(level + 1)
        while sign := self.take(*LEVELS[level]):
            right = self.expression(level + 1)
            left = {">": ("<", right, left), ">=": ("<=", right, left), "!=": ("call", "not", [("==", left, right)])}.get(
                sign, (sign, left, right))
            if level == 0:
                break
        return left

    def unary(self):
        for sign in (0, self.words[self.at] == "-"):         # a number takes its sign: -2 is one, -x an operation
            if self.kinds[self.at + sign] == "number" or self.words[self.at + sign] in ("inf", "nan"):
                self.at += 1 + sign
                return ("number", number_of("".join(self.words[self.at - 1 - sign:self.at])))
        if self.take("-"):
            return ("negate", self.unary())
        if self.take("("):
            return (self.expression(), self.expect(")"))[0]
        name = self.name()
        return ("call", name, self.items(self.expression)) if self.take("(") else ("name", name)

# ---- The page's tables: (function, compute type) or (fold, "term" or "merge") to parameters and lines
def sections_of(heading):
    return re.findall(heading + r"\n(.*?)(?=^### |^<!-- end)", PAGE, re.S | re.M)

def blocks_of(text, heading):
    return [(*said, Parser(block).lines()) for *said, block in
            re.findall(heading + r"\n\n```text\n(.*?)```", text, re.S | re.M)]

EXPANSIONS = {(name, compute): (parameters.split(", "), lines)
              for name, parameters, section in sections_of(r"^### (\w+)\((.*?)\)")
              for types, lines in blocks_of(section, "^In (.*?):") for compute in types.split(" and ")}
FOLDS = {(name, part): (parameters.split(", "), lines) for name, section in sections_of(r"^### The fold of (\w+)")
         for part, parameters, lines in blocks_of(section, r"^`(\w+)\((.*?)\)`:")}
REDUCTIONS = {name: made for name, *made in re.findall(r"^\| `(\w+)\(.*?\| (\w+) \| `(.*?)` \|$", PAGE, re.M)}  # fold, formula

# ---- Section 3: storage types
# Of integers `exponent` is 0. `infinities` says where the type has them.
Type = collections.namedtuple("Type", "bits sign exponent mantissa bias nan largest infinities")
TYPES = {
    "f64": Type(64, 1, 11, 52, 1023, 0x7ff8000000000000, float.fromhex("0x1.fffffffffffffp+1023"), "loaded, stored"),
    "f32": Type(32, 1, 8, 23, 127, 0x7fc00000, float.fromhex("0x1.fffffep+127"), "loaded, stored"),
    "f16": Type(16, 1, 5, 10, 15, 0x7e00, 65504.0, "loaded, stored"),
    "bf16": Type(16, 1, 8, 7, 127, 0x7fc0, float.fromhex("0x1.fep+127"), "loaded, stored"),
    "f8e4m3": Type(8, 1, 4, 3, 7, 0x7f, 448.0, ""), "f8e5m2": Type(8, 1, 5, 2, 15, 0x7e, 57344.0, "loaded"),
    "f8e8m0": Type(8, 0, 8, 0, 127, 0xff, 2.0**127, ""), "f4e2m1": Type(4, 1, 2, 1, 1, 7, 6.0, ""),
    "i8": Type(8, 1, 0, 0, 0, 0, 127.0, ""), "i32": Type(32, 1, 0, 0, 0, 0, 2.0**31 - 1, ""),
    "i64": Type(64, 1, 0, 0, 0, 0, 2.0**63, ""), "u8": Type(8, 0, 0, 0, 0, 0, 255.0, "")}

def store(value, name):
    """The bits of a value of the compute type, stored."""
    t, p, least = TYPES[name], TYPES[name].mantissa, 1 - TYPES[name].bias
    if value != value:
        return t.nan
    if not t.exponent:
        low = -(1 << (t.bits - 1)) if t.sign else 0
        return int(min(max(value if abs(value) == INF else round(value), low), low + (1 << t.bits) - 1)) % (1 << t.bits)
    if name == "f8e8m0":
        fraction, exponent = math.frexp(min(max(value, 2.0**-127), 2.0**127))        # fraction in [0.5, 1)
        return exponent - 1 + (fraction >= 0.75) + t.bias
    sign, value = (math.copysign(1, value) < 0) << (t.bits - 1), abs(value)
    if value < INF and p < 52:
        step = max(math.frexp(value)[1] - 1, least) - p
        value = round(math.ldexp(value, -step)) * 2.0**step                          # scaled exactly
    if value > t.largest and "stored" in t.infinities:
        return sign | (((1 << t.exponent) - 1) << p)
    value = min(value, t.largest)
    exponent = max(math.frexp(value)[1] - 1, least) if value else least
    mantissa = int(math.ldexp(value, p - exponent))
    return sign | (mantissa if mantissa < 1 << p else ((exponent + t.bias) << p) + mantissa - (1 << p))

def load(bits, name):
    """The number that bits say: an int of integer types, else a float."""
    t = TYPES[name]
    if not t.exponent:
        return bits - (1 << t.bits) if t.sign and bits >> (t.bits - 1) else bits
    if name == "f8e8m0":
        return NAN if bits == t.nan else math.ldexp(1.0, bits - t.bias)
    sign, bits = -1.0 if bits >> (t.bits - 1) else 1.0, bits & ((1 << (t.bits - 1)) - 1)
    exponent, mantissa = bits >> t.mantissa, bits & ((1 << t.mantissa) - 1)
    if exponent == (1 << t.exponent) - 1 and (t.infinities or name == "f8e4m3" and bits == t.nan):
        return NAN if mantissa else sign * INF
    return sign * math.ldexp(mantissa + (exponent > 0) * (1 << t.mantissa), max(exponent, 1) - t.bias - t.mantissa)

# ---- Section 4: operations
def to_f32(values):
    """Binary64 rounded to binary32. After + - * / sqrt of binary32 it is as if rounded once, for 53 >= 2 * 24 + 2."""
    form = f"<{len(values)}f"
    try:
        return list(struct.unpack(form, struct.pack(form, *values)))
    except OverflowError:
        return [load(store(value, "f32"), "f32") for value in values]

def to_odd(total, error):
    """Binary64 whose last bit tells of an error that was rounded off: rounded to binary32 it is as if rounded once."""
    even = math.frexp(total)[0] * 2.0**53 % 2 == 0
    return math.nextafter(total, math.copysign(INF, error)) if error and even else total

def widen(value, compute):
    """What was loaded as a value of the compute type: a whole number is rounded once."""
    exact = isinstance(value, float) or compute == "f64"
    return float(value) if exact else to_f32([to_odd(float(value), value - int(float(value)))])[0]

def divide(a, b):
    return a / b if b else NAN if a == 0 or a != a else math.copysign(INF, a) * math.copysign(1, b)

def smaller(a, b):
    return min(a, b, key=lambda v: (v, math.copysign(1, v))) if a == a and b == b else NAN

def larger(a, b):
    return -smaller(-a, -b)

def fma_f32(a, b, c):
    product = a * b                                          # exact: 48 bits
    total = product + c
    part = total - product
    return to_odd(total, (product - (total - part)) + (c - part)) if math.isfinite(total) else total

def fma_f64(a, b, c):
    if not (math.isfinite(a) and math.isfinite(b) and math.isfinite(c)) or a == 0 or b == 0:
        return c if math.isfinite(a) and math.isfinite(b) and c else a * b + c
    (a, below_a), (b, below_b), (c, below_c) = a.as_integer_ratio(), b.as_integer_ratio(), c.as_integer_ratio()
    total, below = a * b * below_c + c * below_a * below_b, below_a * below_b * below_c
    try:
        return total / below                                 # of ints: rounded once, to nearest even
    except OverflowError:
        return INF if total > 0 else -INF

def to_whole(function, a):
    return math.copysign(function(a), a) if math.isfinite(a) else a

def random_row(row, seed, use, first_row=0, first_column=0):
    values, i = [], first_row + row.i
    for quarter in range(first_column // 4, -(-(first_column + row.columns) // 4)):
        (c0, c1, c2, c3), (k0, k1) = (quarter, i % 2**32, i >> 32, use), (seed % 2**32, (seed >> 32) % 2**32)
        for _ in range(10):
            a, b = 0xd2511f53 * c0, 0xcd9e8d57 * c2
            c0, c1, c2, c3 = (b >> 32) ^ c1 ^ k0, b % 2**32, (a >> 32) ^ c3 ^ k1, a % 2**32
            k0, k1 = (k0 + 0x9e3779b9) % 2**32, (k1 + 0xbb67ae85) % 2**32
        values += [(word >> 9) * 2.0**-23 for word in (c0, c1, c2, c3)]
    return values[first_column % 4:][:row.columns]

ROUNDED = ("+", "-", "*", "/", "sqrt", "fma")
OPERATIONS = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": divide, "sqrt": lambda a: math.sqrt(a) if a >= 0 else NAN,
    "negate": operator.neg, "abs": abs, "min": smaller, "max": larger, "floor": functools.partial(to_whole, math.floor),
    "round": functools.partial(to_whole, round), "select": lambda c, a, b: a if c else b, "and": operator.and_,
    "or": operator.or_, "not": operator.not_}
COMPARISONS = {"<": operator.lt, "<=": operator.le, "==": operator.eq}
BITS = {"bits_add": operator.add, "bits_and": operator.and_, "bits_or": operator.or_,
        "bits_shift_left": operator.lshift, "bits_shift_right": operator.rshift}

# ---- Sections 6 and 7: orders
def pairs(parts, merge):
    """Neighbouring pairs, level by level; of an odd number the last moves up."""
    while len(parts) > 1:
        parts = [merge(*parts[k:k + 2]) if k + 1 < len(parts) else parts[k] for k in range(0, len(parts), 2)]
    return parts[0]

def grouped(places, values):
    groups = {}
    for place, value in zip(places, values):
        groups.setdefault(place, []).append(value)
    return groups

def row_block(rows, entries):
    e = max(entries, 1)
    blocks = max(8, min(120, 15 * 2**17 // e)) if e > 8192 else 1 << min(8192, 2**20 // e).bit_length() - 1
    return max(1, -(-rows // blocks), min(16, -(-rows // 128)))

# ---- Section 2: plans
class Node:
    """An expression. `values(row)` are numbers of the compute type, or conditions; `integers(row)` whole numbers, or None
    where comparisons are not made in them; `bits(row)` what an operation on bits gives to the next. `number` is the f64 of
    what is a number. `each` is the index of the groups that have a value each, "j" of columns, None of a row."""

    def __init__(self, values=None, arguments=(), each=None, integers=lambda row: None, number=None, bits=None):
        several = {a.each for a in arguments if a.each}
        self.values, self.integers, self.number, self.bits = values, integers, number, bits
        self.each = each or (several.pop() if len(several) == 1 else "j" if several else None)

class Row:
    """What is known in row i, which has so many columns."""
    def __init__(self, i, columns):
        self.i, self.columns, self.known = i, columns, {}

    def __call__(self, node):
        if node not in self.known:
            self.known[node] = node.values(self)
        return self.known[node]

class Plan:
    def __init__(self, case):
        self.rows, self.columns, self.row_block, given = case["rows"], case["columns"], case.get("row_block"), case["constants"]
        self.given, self.stored = ({v["name"]: v for v in case[part]} for part in ("operands", "results"))
        self.types = {name: value["type"] for name, value in (self.given | self.stored).items()}
        self.compute = "f64" if "f64" in self.types.values() else "f32"
        self.rounded = to_f32 if self.compute == "f32" else list
        operands, self.results, lines = Parser(case["program"]).program()
        self.spreads = {name: spread for name, spread, *_ in operands + self.results}
        self.lines, self.arrays, self.sums, self.absent = dict(lines), {}, {}, set()
        self.nodes = {"i": self.whole_node(lambda row: [row.i] * row.columns),
                      "j": self.whole_node(lambda row: list(range(row.columns)), "j"),
                      "n": self.whole_node(lambda row: [self.columns] * row.columns)}
        self.constants = {name: number_of(given[name]) if name in given else default[1]
                          for name, spread, default in operands if spread is None}
        self.nodes |= {name: self.number_node(c, known=c in (0, 1, -1)) for name, c in self.constants.items()}
        for name, spread, default in operands:
            if name in self.given:
                self.nodes[name], self.arrays[name] = self.load_node(name), self.array(self.given[name])
            elif spread is not None:
                self.absent.add(name)
                self.nodes[name] = self.build(default) if default != "..." else None
        for name, text in lines:
            if text[:2] in (("call", "colsum"), ("call", "colmax")):
                self.sums[name] = (text[1], self.build(text[2][0]))
            elif name not in self.given:
                self.nodes[name] = self.build(text)

    def whole_node(self, integers, each=None, exact=True):
        return Node(lambda row: [widen(k, self.compute) for k in integers(row)], each=each,
                    integers=integers if exact else lambda row: None)

    def number_node(self, value, known=True):
        node = Node(lambda row: self.rounded([value] * row.columns), number=value if known else None)
        whole = value.is_integer() and abs(value) <= 2**53
        node.integers = lambda row: [int(value)] * row.columns if whole and node.number is not None else None
        return node

    def load_node(self, name):
        def loaded(row):
            (height, width), _, columns = self.entries(name)
            at, zero = self.row_of(name, row), 0 if whole else 0.0
            return [self.arrays[name][at * width + c] if 0 <= at < height else zero for c in columns]
        column = self.spreads[name][1]
        each = column if column is None or column[0] != "name" and column[1] == ("name", "j") else "j"
        whole = not TYPES[self.types[name]].exponent
        return self.whole_node(loaded, each, self.types[name] != "i8") if whole else Node(loaded, each=each)

    def build(self, text, names=None):
        """An expression's node. With `names` it is of an expansion: they are its names, sums with zero are carried out and
        comparisons are of values."""
        kind, *rest = text
        if kind == "number":
            return self.number_node(*rest)
        if kind == "name":
            return (names or {}).get(*rest) or self.nodes.get(*rest) or refuse(f"unknown name {rest[0]}")
        if kind == "call":
            return self.call(*rest, names)
        sides = [self.build(side, names) for side in rest]
        if kind in ("+", "-") and names is None:
            zeros = [side.number == 0 for side in sides]
            if all(zeros):
                return self.number_node(OPERATIONS[kind](sides[0].number, sides[1].number))
            if zeros[1] or zeros[0] and kind == "+":
                return sides[zeros[0]]
        return self.compare(kind, sides, names) if kind in COMPARISONS else self.operation(kind, sides)

    def operation(self, name, sides):
        fma = fma_f32 if self.compute == "f32" else fma_f64
        function = fma if name == "fma" else OPERATIONS.get(name) or refuse(f"no function {name}")
        end = self.rounded if name in ROUNDED else list
        return Node(lambda row: end(list(map(function, *map(row, sides)))), sides)

    def compare(self, kind, sides, names):
        def values(row):
            exact = [side.integers(row) for side in sides]
            return list(map(COMPARISONS[kind], *(map(row, sides) if names is not None or None in exact else exact)))
        return Node(values, sides)

    def bits_node(self, name, sides):
        """Bits that an operation gives are taken by the next as they are, also where they are a NaN's."""
        word, number, mask = ("I", "f", 2**32 - 1) if self.compute == "f32" else ("Q", "d", 2**64 - 1)
        def seen(values, row, source, target):
            return struct.unpack(f"<{row.columns}{target}", struct.pack(f"<{row.columns}{source}", *values))
        def bits(row):
            taken = [side.bits(row) if side.bits else seen(row(side), row, number, word) for side in sides]
            if "shift" in name:
                taken[1] = [int(sides[1].number)] * row.columns
            return [BITS[name](a, b) & mask for a, b in zip(*taken)]
        return Node(lambda row: list(seen(bits(row), row, word, number)), sides, bits=bits)

    def call(self, name, arguments, names):
        if name in ("sum", "mean", "amax", "amin"):
            return self.reduction(name, *arguments, names=names)
        if name == "largest":
            return self.number_node(TYPES[self.type_of(arguments[0][1]) or refuse("no type")].largest)
        e, *others = [self.build(a, names) for k, a in enumerate(arguments) if k != 1 or not name.startswith("cast")]
        if name in REDUCTIONS:
            return self.fold(name, e, *others)
        if name in ("cast", "cast_stochastic", "stop_gradient"):
            storage = self.type_of(arguments[1][1]) if name != "stop_gradient" else None
            return e if storage is None else getattr(self, name)(e, storage, *others)
        if name == "rotate":
            k = self.whole(arguments[1]) % self.columns
            turned = (lambda values: values and values[k:] + values[:k])
            return Node(lambda row: turned(row(e)), each=e.each and "j", integers=lambda row: turned(e.integers(row)))
        if name == "random":
            use_and_place = [self.whole(each) for each in arguments[1:]]
            return Node(lambda row: random_row(row, e.integers(row)[0], *use_and_place), each="j")
        if name in BITS and names is not None:
            return self.bits_node(name, [e, *others])
        if (name, self.compute) in EXPANSIONS:
            parameters, lines = EXPANSIONS[name, self.compute]
            return self.expand(lines, dict(zip(parameters, [e, *others], strict=True)))["y"]
        return self.operation(name, [e, *others])

    def expand(self, lines, names):
        for name, text in Parser(lines).lines() if isinstance(lines, str) else lines:
            names[name] = self.build(text, names)
        return names

    def type_of(self, name):
        return self.types.get("d" + name if name in self.absent else name)

    def cast(self, e, storage):
        return Node(lambda row: [widen(load(store(value, storage), storage), self.compute) for value in row(e)], [e])

    def cast_stochastic(self, e, storage, r):
        t = TYPES[storage]
        if t.exponent and t.mantissa >= TYPES[self.compute].mantissa:
            return e
        names = {"m": 2.0**(-127 if storage == "f8e8m0" else 1 - t.bias), "p": 2.0**-t.mantissa}
        names = {name: self.number_node(value) for name, value in names.items()} | {"e": e, "r": r}
        lines = (f"s = {'max(exponent_floor(e), m) * p' if t.exponent else '1'}", "q = abs(e) / s", "w = floor(q)",
                 "u = select(r < q - w, 1, 0)", "z = (w + u) * s", "y = select(abs(e) < inf, select(e < 0, -z, z), e)")
        return self.cast(self.expand("\n".join(lines), names)["y"], storage)

    def add(self, a, b):
        return self.rounded(list(map(operator.add, a, b)))

    def stripe_sum(self, values):
        for s in (128, 64, 32, 16, 8, 4, 2, 1):              # x + -0 is x: what has no partner stays as it is
            if len(values) > s:
                values = self.add(values[:len(values) - s], values[s:]) + values[len(values) - s:s]
        return values[0]

    def row_sum(self, values):
        stripes = [[self.stripe_sum(values[k:k + 256])] for k in range(0, len(values), 256)]
        return pairs(stripes, self.add)[0] if stripes else 0.0

    def total(self, kind, values):
        if kind in ("sum", "mean", "colsum"):
            return self.row_sum(values)
        return functools.reduce(smaller, values, INF) if kind == "amin" else functools.reduce(larger, values, -INF)

    def reduction(self, name, text, group=None, names=None):
        entries = text[:2] == ("call", "entries")
        if entries:
            text, group = (*text[2], None)[:2]
        e = self.build(text, names)
        if entries and group is None:
            group = refuse("entries of what has no groups") if e.each in (None, "j") else e.each
        def reduced(e):
            def values(row):
                groups = grouped(places := self.axis(group, row.columns)[1], row(e))
                if entries:
                    return [self.total(name, [groups[place][0] for place in sorted(groups)])] * row.columns
                totals = {place: self.total(name, members) for place, members in groups.items()}
                return [totals[place] for place in places]
            return Node(values, each=None if entries else group)
        count = reduced(self.number_node(1.0)) if group else self.nodes["n"]
        return self.operation("/", [reduced(e), count]) if name == "mean" else reduced(e)

    def fold(self, name, e, *weight):
        fold, formula = REDUCTIONS[name]
        def stripe(x, *w):
            a = self.stripe_sum(x) if fold == "variance" else self.total("amax", x)
            return a, self.stripe_sum(self.step(fold, "term", x, a, len(x), *w)["term"]), len(x)
        def merge(left, right):
            total = self.step(fold, "merge", *left, *right)
            return total["a"][0], total["b"][0], left[2] + right[2]
        totals = Node(lambda row: pairs([stripe(*(row(side)[k:k + 256] for side in (e, *weight)))
                                         for k in range(0, row.columns, 256)], merge))
        names = {part: Node(lambda row, k=k: [row(totals)[k]] * row.columns) for k, part in enumerate("ab")}
        y = self.expand("y = " + formula, names | {"e": e})["y"]
        return Node(y.values, each="j" if name == "softmax" else None)

    def step(self, fold, part, *arguments):
        """A term or a merge, whose parameters are values. Numbers of columns are ints."""
        parameters, lines = FOLDS[fold, part]
        row = Row(0, len(arguments[0]) if part == "term" else 1)
        values = [a if isinstance(a, list) else [widen(a, self.compute)] * row.columns for a in arguments]
        names = {name: Node(lambda _, value=value: value) for name, value in zip(parameters, values, strict=True)}
        self.expand(lines, names)
        return {name: row(names[name]) for name in ("term", "a", "b") if name in names}

    def whole(self, text):
        """Whole-number arithmetic; constants that stand in it are numbers."""
        kind, *rest = text
        if kind == "name" and rest[0] in self.lines:
            return self.whole(self.lines[rest[0]])
        if kind == "name" and rest[0] in self.constants:
            kind, rest = "number", [self.constants[rest[0]]]
            self.nodes[text[1]].number = rest[0]
        if kind == "number" and rest[0].is_integer() or text == ("name", "n"):
            return self.columns if kind == "name" else int(rest[0])
        sides = [self.whole(side) for side in rest] if kind in ("negate", "+", "-", "*", "/") else []
        if not sides or kind == "/" and (sides[1] == 0 or sides[0] % sides[1]):
            refuse(f"not a whole number: {text}")
        return sides[0] // sides[1] if kind == "/" else OPERATIONS[kind](*sides)

    def axis(self, index, count):
        """The number of entries along an axis, and the entry on which each of `count` places stands."""
        if index is None or index[0] == "name":
            return (count, list(range(count))) if index else (1, [0] * count)
        (length, places), g = self.axis(index[1], count), self.whole(index[2])
        return (-(-length // g), [k // g for k in places]) if index[0] == "/" else (g, [k % g for k in places])

    @functools.lru_cache(maxsize=None)
    def entries(self, name):
        """(rows, columns) of the array, the entry's row of each row or None where an operand picks it, the column of each."""
        row, column = self.spreads[name]
        said = (self.given.get(name) or self.stored[name])["entries"]
        width, columns = self.axis(column, self.columns)
        height, rows = (said[0], None) if row and row[1] in self.spreads else self.axis(row, self.rows)
        return ((height, width), rows, columns) if said == [height, width] else refuse(f"{name} has {height} x {width} entries")

    def row_of(self, name, row):
        rows = self.entries(name)[1]
        return rows[row.i] if rows is not None else self.nodes[self.spreads[name][0][1]].integers(row)[0]

    def array(self, operand):
        """Loaded numbers of an operand, row-major, or of a result before the run: none where no rule says them."""
        name, storage = operand["name"], operand["type"]
        places = range(math.prod(self.entries(name)[0]))
        if "samples" in operand:
            return [load(bits, storage) for bits in samples(name, storage, places, *operand["samples"])]
        said, size = [int(text, 16) for text in operand.get("bits") or operand.get("count", ())], 1 << TYPES[storage].bits
        bits = (lambda k: said[k % len(said)]) if "bits" in operand else lambda k: (said[0] + k * said[1]) % size
        return said and [load(bits(k), storage) for k in places]

    def run(self):
        """Stored results in the order of the signature: name to the bytes of each row of entries."""
        results = {name: {} for name, _ in self.results if name in self.stored}
        for row in (Row(i, self.columns) for i in range(self.rows)):
            for name, found in results.items():
                if name in self.sums:
                    found[row.i] = self.share(name, row)
                else:
                    found.setdefault(self.row_of(name, row), {}).update(zip(self.entries(name)[2], row(self.nodes[name])))
        return {name: self.pack(name, self.sum_rows(name, found) if name in self.sums else found)
                for name, found in results.items()}

    def share(self, name, row):
        """What a row gives to each column of entries of a sum over rows."""
        (kind, node), ((_, width), _, columns) = self.sums[name], self.entries(name)
        groups = grouped(columns, row(node))
        return [self.total(kind, groups.get(column, [])) for column in range(width)]

    def sum_rows(self, name, shares):
        """Section 7: entries of the shares of rows."""
        is_sum, ((height, width), rows, _) = self.sums[name][0] == "colsum", self.entries(name)
        add = self.add if is_sum else lambda a, b: list(map(larger, a, b))
        before = [widen(value, self.compute) for value in self.array(self.stored[name])]
        standing, found = grouped(rows, shares.values()), {}
        for at in range(height):
            parts = standing.get(at) or [[0.0 if is_sum else -INF] * width]
            size = self.row_block or row_block(len(parts), height * width)
            blocks = [functools.reduce(add, parts[k:k + size]) for k in range(0, len(parts), size)]
            whole = is_sum and self.spreads[name] == (None, None)
            total = [self.row_sum([share[0] for share in parts])] if whole else pairs(blocks, add)
            found[at] = dict(enumerate(add(before[at * width:(at + 1) * width], total) if before else total))
        return found

    def pack(self, name, found):
        ((height, width), *_), storage = self.entries(name), self.types[name]
        size, rows = TYPES[storage].bits, [found.get(at, {}).items() for at in range(height)]
        return [sum(store(v, storage) << c * size for c, v in row).to_bytes(width * size // 8, "little") for row in rows]

# ---- Section 8: digests
M32, M64 = 0xffffffff, 0xffffffffffffffff
SECRET = bytes.fromhex("".join(re.search(r"secret \(192 bytes\)\n((?:[0-9a-f]+\n)+)", PAGE).group(1).split()))
A1, A2, A3 = 0x9e3779b1, 0x85ebca77, 0xc2b2ae3d
B1, B2, B3, B4, B5 = 0x9e3779b185ebca87, 0xc2b2ae3d27d4eb4f, 0x165667b19e3779f9, 0x85ebca77c2b2ae63, 0x27d4eb2f165667c5

def words_of(data):
    return lambda p: int.from_bytes(data[p:p + 8], "little")
k64 = words_of(SECRET)

def end(h):
    h = ((h & M64) ^ (h & M64) >> 37) * 0x165667919e3779f9 & M64
    return h ^ h >> 32

def end64(h):
    h = (h ^ h >> 33) * B2 & M64
    h = (h ^ h >> 29) * B3 & M64
    return h ^ h >> 32

def fold(a, b):
    return (a * b & M64) ^ (a * b >> 64)

def swapped(word, size):
    return int.from_bytes(word.to_bytes(size, "little"), "big")

def xxh3_128(data):                                          # (low, high)
    b, r64 = len(data), words_of(data)
    if b == 0:
        return end64(k64(64) ^ k64(72)), end64(k64(80) ^ k64(88))
    if b <= 3:
        l = data[0] << 16 | data[b // 2] << 24 | data[b - 1] | b << 8
        h = (swapped(l, 4) << 13 | swapped(l, 4) >> 19) & M32
        return end64(l ^ (k64(0) ^ k64(4)) & M32), end64(h ^ (k64(8) ^ k64(12)) & M32)
    if b <= 8:
        p = (r64(0) & M32 ^ r64(b - 4) << 32 ^ k64(16) ^ k64(24)) * (B1 + (b << 2))
        h = (p >> 64) + ((p & M64) << 1) & M64
        l = (p & M64) ^ h >> 3
        l = (l ^ l >> 35) * 0x9fb21c651e98df25 & M64
        return l ^ l >> 28, end(h)
    if b <= 16:
        p = (r64(0) ^ r64(b - 8) ^ k64(32) ^ k64(40)) * B1
        g = r64(b - 8) ^ k64(48) ^ k64(56)
        h = (p >> 64) + g + (g & M32) * (A2 - 1) & M64
        q = (p + ((b - 1) << 54) & M64 ^ swapped(h, 8)) * B2
        return end(q), end((q >> 64) + h * B2)
    return xxh3_to_240(b, r64) if b <= 240 else xxh3_beyond_240(data, b)

def xxh3_to_240(b, r64):
    low, high = b * B1 & M64, 0
    def take(p, q, k):
        nonlocal low, high
        (p0, p1), (q0, q1) = (r64(p), r64(p + 8)), (r64(q), r64(q + 8))
        low = (low + fold(p0 ^ k64(k), p1 ^ k64(k + 8)) & M64) ^ (q0 + q1 & M64)
        high = (high + fold(q0 ^ k64(k + 16), q1 ^ k64(k + 24)) & M64) ^ (p0 + p1 & M64)
    if b <= 128:
        for t in range((b - 1) // 32, -1, -1):
            take(16 * t, b - 16 * (t + 1), 32 * t)
    else:
        for t in range(b // 32):
            take(32 * t, 32 * t + 16, 32 * t if t < 4 else 3 + 32 * (t - 4))
            low, high = (end(low), end(high)) if t == 3 else (low, high)
        take(b - 16, b - 32, 103)
    return end(low + high), -end(low * B1 + high * B4 + b * B2) & M64

def xxh3_beyond_240(data, b):
    s = [A3, B1, B2, B3, B4, A2, B5, A1]
    def add(p, k):
        for t, (v, key) in enumerate(zip(struct.unpack_from("<8Q", data, p), struct.unpack_from("<8Q", SECRET, k))):
            s[t ^ 1] = s[t ^ 1] + v & M64
            s[t] = s[t] + ((v ^ key) & M32) * ((v ^ key) >> 32) & M64
    last = (b - 1) // 1024 * 1024
    for p in range(0, last, 1024):
        for t in range(16):
            add(p + 64 * t, 8 * t)
        s[:] = [(s[t] ^ s[t] >> 47 ^ k64(128 + 8 * t)) * A1 & M64 for t in range(8)]
    for t in range((b - last - 1) // 64):
        add(last + 64 * t, 8 * t)
    add(b - 64, 121)
    def merge(k, h):
        return end(h + sum(fold(s[t] ^ k64(k + 8 * t), s[t + 1] ^ k64(k + 8 * t + 8)) for t in (0, 2, 4, 6)))
    return merge(11, b * B1), merge(117, ~(b * B2) & M64)

def digest(data):
    return "{1:016x}{0:016x}".format(*xxh3_128(data))

# ---- Section 9: samples
def mix(h):
    h = (h ^ h >> 16) * 0x85ebca6b & M32
    h = (h ^ h >> 13) * 0xc2b2ae35 & M32
    return h ^ h >> 16

def samples(name, storage, places, seed, low, high, whole):
    """Bits of samples, stored."""
    fnv = functools.reduce(lambda fnv, byte: (fnv ^ byte) * 0x01000193 & M32, name.encode(), 0x811c9dc5)
    key, low, high, bits = mix(fnv ^ mix(seed)), number_of(low), number_of(high), []
    for k in places:
        h = mix(mix((k & M32) ^ key) + (k >> 32) * 0x9e3779b9 + key & M32)
        part = ((h >> 8) * 2**29 + (mix(h) >> 3)) * 2.0**-53 if storage == "f64" else (h >> 8) * 2.0**-24
        value = low + (h % int(high - low + 1) if whole else part * (high - low))
        bits.append(store(value if whole or storage == "f64" else to_f32([value])[0], storage))
    return bits

# ---- Section 10: vectors
def difference(case):
    """What differs, in words, or None."""
    results = Plan(case).run()
    for said in case["results"]:
        name, rows = said["name"], results[said["name"]]
        pieces = itertools.zip_longest((digest(row)[:8] for row in rows), re.findall("." * 8, said["rows"]))
        for at, (got, want) in enumerate(pieces):
            if got != want:
                return f"{name} row {at}: got {got}, want {want}"
        if digest(b"".join(rows)) != said["digest"]:
            return f"{name}: got {digest(b''.join(rows))}, want {said['digest']}, though no row differs"
    whole = digest(b"".join(b"".join(rows) for rows in results.values()))
    return None if whole == case["digest"] else f"got {whole}, want {case['digest']}, though no result differs"

def check(path):
    """(number of cases, what differs)."""
    content = json.loads(path.read_text(encoding="utf-8"))
    if content["contract"] != 1:
        return 1, [f"contract {content['contract']}; the page's version is 1"]
    blocks, cases = (content.get(part, []) for part in ("row_block", "cases"))
    failures = [f"row_block({r}, {e}): got {row_block(r, e)}, want {b}" for r, e, b in blocks if row_block(r, e) != b]
    for case in cases:
        try:
            found = difference(case)
        except ValueError as reason:
            found = f"refused: {reason}"
        failures += [f"'{case['name']}': {found}"] if found else []
    return len(cases) + len(blocks), failures

def main(paths):
    sys.setrecursionlimit(100000)
    failed = not paths
    for path in paths:
        began, (count, failures) = time.process_time(), check(path)
        print(*(f"FAIL {path.name} {failure}\n" for failure in failures), sep="", end="")
        print(f"{path.name}: {count - len(failures)} of {count} agree, {time.process_time() - began:.1f} s", flush=True)
        failed |= bool(failures)
    return int(failed)

if __name__ == "__main__":
    sys.exit(main([pathlib.Path(name) for name in sys.argv[1:]] or sorted(HERE.glob("vectors/*.json"))))

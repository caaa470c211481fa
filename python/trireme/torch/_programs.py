"""Programs as texts, rewritten so that they can be differentiated again.

A backward is a program and has a backward of its own: that is the second derivative. The backward is linear in the
gradients that arrive, and its derivative by them, applied to tangents of the operands, gives tangents of the results: that
is forward mode. What stands in the way is names (`dx` would be both a result and a gradient), saved results (a statistic
depends on the operands, so its formula must stand in the program), and statistics that take no gradient.
"""
import functools
import re
from typing import NamedTuple

NAME = r"[A-Za-z_]\w*"


class Parts(NamedTuple):
    """A program's text, taken apart."""
    name: str
    operands: list[tuple[str, str, str]]  # name, "[i,j]" ("" of a constant), default ("" if there is none)
    results: list[str]  # as written: "y[i,j]"
    body: str

    def text(self):
        operands = ", ".join(f"{name}{spread}" + (f" = {default}" if default else "")
                             for name, spread, default in self.operands)
        return f"{self.name}({operands}) -> ({', '.join(self.results)})\n{self.body}"


def take_apart(text):
    name, start = re.match(rf"\s*({NAME})\(", text).group(1), text.index("(")
    operands, end = _in_parentheses(text, start)
    results, end = _in_parentheses(text, text.index("(", end))
    matched = [re.fullmatch(rf"({NAME})\s*(\[[^\]]*\])?\s*(?:=\s*(.*))?", each, re.S).groups("") for each in operands]
    return Parts(name, matched, results, text[end + 1:].strip("\n") + "\n")


def _in_parentheses(text, start):
    """What stands between commas in the parentheses that open at `start`, and where they close."""
    depth, parts, begin = 0, [], start + 1
    for k in range(start, len(text)):
        depth += (text[k] in "([") - (text[k] in ")]")
        if depth == 0 or (depth == 1 and text[k] == ","):
            parts.append(" ".join(text[begin:k].split()))
            begin = k + 1
        if depth == 0:
            return [part for part in parts if part], k


def _lines(body):
    """(name, text) of each line; one in parentheses goes on."""
    lines, depth = [], 0
    for each in body.split("\n"):
        if depth:
            lines[-1] += "\n" + each
        elif each.strip():
            lines.append(each)
        depth += sum((letter in "([") - (letter in ")]") for letter in each)
    return [(re.match(rf"\s*({NAME})\s*=", each)[1], each) for each in lines]


def with_operands(text):
    """A program's parts where every operand is given: without lines that only make what its defaults stand for ("...")."""
    parts = take_apart(text)
    made = {name for name, _, default in parts.operands if default == "..."}
    if not made:
        return parts
    kept, wanted = [], {re.match(NAME, each)[0] for each in parts.results}
    for name, line in reversed(_lines(parts.body)):
        if name in wanted - made:
            kept.append(line)
            wanted |= names_in(line)
    return parts._replace(body="\n".join(reversed(kept)) + "\n")


def with_first_row(text):
    """The program of rows that others stand before: where it counts rows, by `i` or by what is drawn there, how many is a constant."""
    parts = take_apart(text)
    if not names_in(parts.body) & {"i", "random"}:
        return text
    name = "first_row"
    while name in names_in(text):
        name += "_"
    body = re.sub(NAME, lambda found: f"(i + {name})" if found.group() == "i" else found.group(), parts.body)
    for start, stop in reversed(_draws(body)):
        drawn, _ = _in_parentheses(body, start)
        seed, stream, row, column = drawn if len(drawn) == 4 else (*drawn, "0", "0")
        row = name if row == "0" else f"{row} + {name}"
        body = f"{body[:start]}({seed}, {stream}, {row}, {column}){body[stop:]}"
    return parts._replace(operands=[*parts.operands, (name, "", "0")], body=body).text()


def _draws(body):
    """Where the parentheses of random(...) stand, as (first, beyond the last) character."""
    opened = [found.end() - 1 for found in re.finditer(r"\brandom\(", body)]
    return [(start, _in_parentheses(body, start)[1] + 1) for start in opened]


def computed_with(text):
    """The names that a program's lines compute with. What says where random numbers begin is whole, and no number of theirs."""
    body = take_apart(text).body
    for start, stop in reversed(_draws(body)):
        body = body[:start] + body[stop:]
    return names_in(body)


def names_in(text):
    return set(re.findall(NAME, text))


@functools.cache
def counts_rows(text):
    """Whether values depend on which row they stand in: by `i` as a number, or by what is drawn there."""
    return bool(names_in(take_apart(text).body) & {"i", "random"})


def read_by(operator):
    """The names that a program reads where every operand is given: those in its lines, below the signature, and the operands
    that pick rows of what it reads and writes."""
    parts = with_operands(operator.text)
    read = names_in(parts.body)
    for name, spread, _ in parts.operands:
        read |= names_in(spread) if name in read else set()
    for result in parts.results:
        read |= names_in(result[result.index("["):])
    return read


def values_read_by(operator):
    """The names whose values stand in its lines: not those that stand for their types alone."""
    body, end, rest = take_apart(operator.text).body, 0, ""
    for start, stop in sorted(_type_names(body)):
        rest += body[end:start]
        end = stop
    return names_in(rest + body[end:])


def types_read_by(operator):
    """The names of which a program asks the type, present or not: those of largest(v)."""
    return set(re.findall(rf"\blargest\(({NAME})\)", operator.text))


def rename(text, names):
    return re.sub(NAME, lambda found: names.get(found.group(), found.group()), text)


def rename_values(text, names):
    """The same, but for names that stand for their types: those of largest(v) and cast(e, v)."""
    made, end = "", 0
    for start, stop in sorted(_type_names(text)):
        made += rename(text[end:start], names) + text[start:stop]
        end = stop
    return made + rename(text[end:], names)


def _type_names(text):
    """Where they stand, as (first, beyond the last) character."""
    for found in re.finditer(r"\b(cast|cast_stochastic|largest)\(", text):
        depth, k, cuts = 1, found.end(), [found.end() - 1]  # between arguments
        while depth:
            depth += (text[k] in "([") - (text[k] in ")]")
            if depth == 0 or (depth == 1 and text[k] == ","):
                cuts.append(k)
            k += 1
        which = 0 if found.group(1) == "largest" else 1
        yield cuts[which] + 1, cuts[which + 1]


def give_all_gradients(text, without):
    """The program whose results all take gradients. `without`: those that take none because another result uses them. Each
    becomes a product by one of a value that is used in its place; one is exact, and a product is a value of its own."""
    parts = take_apart(text)
    taken, body = names_in(text), parts.body
    for name in without:
        inner = name + "_inside"
        while inner in taken:
            inner += "_"
        body = rename_values(body, {name: inner}) + f"    {name} = {inner} * 1\n"
    return parts._replace(body=body).text()


def require_saved(operator):
    """The program's text without defaults that are formulas: what they stand for is an operand like any other."""
    formulas = {name for name, _, optional, fallback in operator.operands if optional and fallback is None}
    parts = with_operands(operator.text)
    return parts._replace(operands=[(name, spread, "" if name in formulas else default)
                                    for name, spread, default in parts.operands]).text()


def is_stopped(text):
    """Whether a second derivative would pass where stop_gradient lets none through: the backward reads the value, and does
    not say that it is held. Operands that stand in stop_gradient alone are harmless: they have no gradient at all."""
    parts = take_apart(text)
    operands = {name for name, *_ in parts.operands}
    held = re.findall(rf"stop_gradient\(({NAME})\)", parts.body)
    rest = re.sub(rf"stop_gradient\({NAME}\)", "", parts.body)
    return "stop_gradient" in rest or any(name not in operands or name in names_in(rest) for name in held)

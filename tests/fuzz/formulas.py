"""What docs/language.md prints of the functions: formula and bounds. Functions that functions.py does not say in NumPy mean
their formula, where it is one of the language.

Their values are the formula's in f64, their slopes its dual numbers. A formula that cancels, or a bound below what its
steps round in f64, wants a record in functions.py."""
import pathlib
import re
from dataclasses import dataclass
from functools import cached_property

from functions import UNARY

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs/language.md"
ELSEWHERE = ("clamp",)  # evaluate.py has it, as primitives


@dataclass(frozen=True)
class Formula:
    text: str
    bound: tuple | None  # as functions.py has them

    @property
    def arguments(self):
        """The names in the order in which they stand there."""
        return tuple(dict.fromkeys(re.findall(r"\b(?!inf\b|nan\b)[A-Za-z_]\w*\b(?!\()", self.text)))

    @cached_property
    def expression(self):
        from parse import Parser  # which reads calls of these functions, too

        parser = Parser(self.text)
        out = parser.expression()
        parser.take("line")
        return out


def bound_of(cells):
    """Of the table's texts: `1.5 ulp`, `2^-22 |x|`, `2^-22`, `exact`; half an ulp is the value, correctly rounded."""
    if cells[0] in ("exact", "0.5 ulp"):
        return None
    kind = "ulp" if "ulp" in cells[0] else "of x" if "|x|" in cells[0] else "error"
    return kind, *(2.0 ** float(cell[2:].split()[0]) if cell.startswith("2^") else float(cell.split()[0]) for cell in cells)


def read_formulas(page):
    table = page.split("<!-- generated: functions -->")[1].split("<!-- end -->")[0]
    out = {}
    for line in table.strip().splitlines()[2:]:
        cells = [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        out[cells[0].strip("`")] = Formula(cells[1], bound_of((cells[3], cells[5])))
    return out


ON_THE_PAGE = read_formulas(PAGE.read_text())
FORMULAS = {name: each for name, each in ON_THE_PAGE.items() if name not in UNARY and name not in ELSEWHERE}

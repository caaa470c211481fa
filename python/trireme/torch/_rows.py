"""How the indices of an array count rows and columns."""
import ast
import operator
from typing import NamedTuple

import trireme

from . import _programs

_ARITHMETIC = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.floordiv}


class Row(NamedTuple):
    """How an index of a spread counts rows: (i / divide) % wrap."""
    divide: int = 1
    wrap: int = 0


def row_of(spread, constants):
    """The Row of `[(i / heads) % positions, j]`; None where there are no rows, and where an operand picks them."""
    first = spread.strip("[]").split(",")[0].strip()
    if not first or "j" in _programs.names_in(first):
        return None
    if "n" in _programs.names_in(first) and "n" not in constants:
        raise trireme.Unsupported(f"{spread}: rows that are counted by n are not spread over machines")
    node, divide, wrap = ast.parse(first, mode="eval").body, 1, 0
    while isinstance(node, ast.BinOp):
        if isinstance(node.op, ast.Mod):
            wrap = _number(node.right, constants)
        else:
            divide *= _number(node.right, constants)
        node = node.left
    return Row(divide, wrap) if isinstance(node, ast.Name) and node.id == "i" else None


def divides_rows(spread):
    """Whether an array has one entry for several rows that follow each other: [i / m, j]."""
    first = spread.strip("[]").split(",")[0]
    return first.lstrip("( ").startswith("i /") and "%" not in first


def rows_to_an_entry(spread, constants):
    """m of [i / m, j]. `constants`: pairs of names and values."""
    return row_of(spread, dict(constants)).divide


rows_to_an_entry._dynamo_marked_constant = True  # compiled code takes what comes out as it is


def has_columns(spread):
    """Whether an array has an axis of columns, or of groups of them."""
    return "j" in _programs.names_in(spread)


def group_of(spread, constants):
    """How many neighbouring columns share an entry: g of `[i, j / g]`."""
    node, divide = ast.parse(spread.strip("[]").split(",")[-1].strip(), mode="eval").body, 1
    while isinstance(node, ast.BinOp):
        divide *= _number(node.right, constants)
        node = node.left
    return divide


def _number(node, constants):
    if isinstance(node, ast.BinOp):
        return _ARITHMETIC[type(node.op)](_number(node.left, constants), _number(node.right, constants))
    if isinstance(node, ast.UnaryOp):
        return -_number(node.operand, constants)
    return int(constants[node.id] if isinstance(node, ast.Name) else node.value)


def is_picked(spread):
    """Whether an operand says which rows: [slot, j]."""
    first = spread.strip("[]").split(",")[0].strip()
    return first.isidentifier() and first not in ("i", "j")


def sums_over_rows(parts, name, spread):
    """Whether a result of a program, taken apart, is a sum over rows: whose spread has not each row in a place of its own is a
    colsum, or a colmax."""
    return _is_over_rows(spread) and not _is_largest(parts, name)


def takes_largest_of_rows(parts, name, spread):
    return _is_over_rows(spread) and _is_largest(parts, name)


def _is_over_rows(spread):
    return not is_picked(spread) and row_of(spread, _Twos()) != Row()


def _is_largest(parts, name):
    line = next(line for line in parts.body.splitlines() if line.split("=")[0].strip() == name)
    return line.split("=", 1)[1].strip().startswith("colmax(")


class _Twos(dict):
    """Constants whose values do not matter."""

    def __missing__(self, name):
        return 2

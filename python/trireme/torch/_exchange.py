"""What machines that share a sum exchange: parts, the tree that their sums are nodes of, and one collective for all of them.

The contract's sums are trees over units (stripes of 256 columns, blocks of rows): neighbouring pairs, level by level, an odd
last one moving up unchanged. A part that begins and ends at units is made of a few whole subtrees, its runs. Each machine
computes its runs' sums, all are gathered, and every machine combines them as the tree does: the bits are those of one machine.
A cut elsewhere has one run a part, combined in neighbouring pairs of parts: the same bits on every machine, for that cut.
"""
import functools
import hashlib
from typing import NamedTuple

import torch
from torch.distributed import _functional_collectives as collectives

import trireme

from . import _programs
from ._meeting import all_of, arrived, came, checked
from ._operator import TorchOperator, _lock
from ._register import NAMES

STRIPE = 256  # columns; rows where a sum over everything is the sum of the rows' sums
_MOST_ARRAYS = 40  # of a combining program; Python calls programs of up to 63


# ---- parts and their trees ----

class Tree(NamedTuple):
    runs: tuple  # of each part: ((first, count), ...) inside the part
    shape: object  # nested pairs of leaves; a leaf is (part, run); None where there is nothing
    exact: bool  # the runs are nodes of the whole sum's tree

    @property
    def slots(self):
        return max(len(each) for each in self.runs)


@functools.lru_cache(maxsize=4096)
def tree_of(widths, unit):
    """How parts of so many elements, side by side, are nodes of one sum over units of so many elements."""
    begins = [sum(widths[:k]) for k in range(len(widths) + 1)]
    total = begins[-1]
    exact = all(first % unit == 0 for first, width in zip(begins, widths) if width)
    if not exact:
        return one_run(widths)
    runs = [[] for _ in widths]

    def build(first, count):  # units first .. first + count, a power of two
        last = min((first + count) * unit, total)
        part = next(k for k in range(len(widths)) if begins[k] <= first * unit < begins[k + 1])
        if last <= begins[part + 1]:
            runs[part].append((first * unit - begins[part], last - first * unit))
            return part, len(runs[part]) - 1
        left = build(first, count // 2)
        return (left, build(first + count // 2, count // 2)) if (first + count // 2) * unit < total else left

    units = -(-total // unit)
    shape = build(0, 1 << (units - 1).bit_length()) if units else None
    return Tree(tuple(map(tuple, runs)), shape, True)


def one_run(widths):
    """Parts that are one run each, in neighbouring pairs."""
    leaves = [(part, 0) for part, width in enumerate(widths) if width]
    return Tree(tuple(((0, width),) if width else () for width in widths), _pairs(leaves), False)


def _pairs(nodes):
    while len(nodes) > 1:
        nodes = [tuple(nodes[k:k + 2]) if k + 1 < len(nodes) else nodes[k] for k in range(0, len(nodes), 2)]
    return nodes[0] if nodes else None


def one_each(parts):
    """The tree of one value a part."""
    return Tree(tuple(((0, 1),) for _ in range(parts)), _pairs([(part, 0) for part in range(parts)]), False)


def _is_leaf(node):
    return isinstance(node[0], int)


def leaves_of(node):
    return [node] if _is_leaf(node) else leaves_of(node[0]) + leaves_of(node[1])


# ---- programs of our own ----

_stages = {}


def stage(text):
    """The torch operator of a text that needs no derivatives of its own: what it is a part of has them."""
    if text not in _stages:
        with _lock:
            if text not in _stages:
                operator = trireme.Operator(text)
                _stages[text] = TorchOperator(operator, f"{operator.name}_of_{hashlib.sha256(text.encode()).hexdigest()[:12]}")
    return _stages[text]


# ---- the exchange ----

class Reduction(NamedTuple):
    name: str
    combine: str  # the program's text

    @property
    def arity(self):
        return 2 if "left_first" in self.combine else 1


SUM = Reduction("sum", "combine_sum(left[i,j], right[i,j]) -> (both[i,j])\n    both = left + right\n")
AMAX = Reduction("amax", "combine_amax(left[i,j], right[i,j]) -> (both[i,j])\n    both = max(left, right)\n")


class Piece(NamedTuple):
    """Values that are combined in the same way: of each run of mine the reduction's one or two flat tensors."""
    reduction: Reduction
    tree: Tree
    runs: list  # [run][which]
    length: int
    counts: tuple = ()  # of each part's runs: the columns they stand for


_gather = all_of  # tests count the collectives of results


def gather(tensor, group):
    """Of all machines, one after the other along the first axis. Compiled code sees the collective."""
    return arrived(_gather(tensor, 0, group))


def trade(tensor, group):
    """Piece k of each machine's, one after the other, on machine k."""
    return arrived(collectives.all_to_all_single(tensor, None, None, group))


def joined(tensors, axis=0):
    return torch.cat(tensors, axis) if len(tensors) > 1 else tensors[0]


# Bytes that a collective more has to save: what links carry while its latency passes, on paper 1.5 to 7 MB (docs/distributed.md).
_LATENCY = 2 << 20


def in_shares(pieces, machines, element):
    """Whether each machine combines a share of the numbers, and all gather totals: two collectives, of (P - 1) / P of what each
    machine has and of the totals. One, of all machines' numbers on each, is P - 1 times what each has."""
    totals = element * sum(piece.reduction.arity * piece.length for piece in pieces)
    mine = element * sum(piece.tree.slots * piece.reduction.arity * piece.length for piece in pieces)
    return (machines - 1) * (mine - (mine + totals) / machines) > _LATENCY


def exchange(group, pieces, dtype, device, what, agreed=False):
    """Of each piece the totals, flat: one collective for all, or two where that moves much less. `what`: in the same words on every
    machine, which say it first unless all have `agreed`. Numbers of 16 bits are combined in f32, and rounded once. Of no values (no
    rows) there are no totals, and no machine of the group has any: none asks."""
    if not any(piece.length for piece in pieces):
        return [[torch.empty(0, dtype=dtype, device=device)] * piece.reduction.arity for piece in pieces]
    machines = group.size()
    shares = machines if in_shares(pieces, machines, dtype.itemsize) else 1
    flat, count = [], 0  # rows: for each share what is combined there
    for piece in pieces:
        rows = [each.reshape(-1) for run in piece.runs for each in run]
        rows += [torch.zeros(piece.length, dtype=dtype, device=device)] * (piece.tree.slots * piece.reduction.arity - len(rows))
        missing = -piece.length % shares
        flat += [(torch.nn.functional.pad(row, (0, missing)) if missing else row).view(shares, -1) for row in rows]
        count += len(rows) * piece.length
    mine = joined(flat, 1).contiguous().view(-1)
    if not agreed:
        mine = checked(mine, group, what, [(piece.reduction.name, piece.length, piece.tree.runs) for piece in pieces], count)
    found = came(lambda: gather(mine, group) if shares == 1 else trade(mine, group), what).view(machines, -1)
    totals, begin = [], 0
    for piece in pieces:
        arity, size = piece.reduction.arity, -(-piece.length // shares)
        values = {}
        for part, run in leaves_of(piece.tree.shape):
            first = begin + run * arity * size
            row = found[part]
            values[part, run] = tuple(row[first + k * size:first + (k + 1) * size].unsqueeze(0) for k in range(arity))
        begin += piece.tree.slots * arity * size
        totals.append([each.view(-1) for each in _combined(piece, piece.tree.shape, values, dtype)[0]])
    return totals if shares == 1 else _whole(group, pieces, totals, what)


def _whole(group, pieces, shares, what):
    """Totals, of the shares of them that are on each machine."""
    flat = [each for totals in shares for each in totals]
    found = came(lambda: gather(joined(flat), group), what).view(group.size(), -1).split([each.numel() for each in flat], 1)
    lengths = [piece.length for piece in pieces for _ in range(piece.reduction.arity)]
    made = iter([each.reshape(-1)[:length] for each, length in zip(found, lengths)])
    return [[next(made) for _ in range(piece.reduction.arity)] for piece in pieces]


def _combined(piece, node, values, dtype):
    """The node's values, and how many columns it stands for."""
    if not piece.length:
        return [next(iter(values.values()))[0]] * piece.reduction.arity, 0
    if _is_leaf(node):
        return values[node], piece.counts[node[0]][node[1]] if piece.counts else 0
    types = ",".join(f"{name}={NAMES[dtype]}" for name in totals_of(piece.reduction))
    leaves = leaves_of(node)
    if (len(leaves) + 1) * piece.reduction.arity <= _MOST_ARRAYS:
        counts = tuple(piece.counts[part][run] for part, run in leaves) if piece.counts else None
        text = _combining_text(piece.reduction, _numbered(node, iter(range(len(leaves)))), counts)
        operator = stage(text)
        made = operator.call([each for leaf in leaves for each in values[leaf]], [], 1, types)
        return made, sum(counts) if counts else 0
    left, right = (_combined(piece, each, values, torch.promote_types(dtype, torch.float32)) for each in node)
    counts = (left[1], right[1]) if piece.counts else None
    made = stage(_combining_text(piece.reduction, (0, 1), counts)).call([*left[0], *right[0]], [], 1, types)
    return made, left[1] + right[1]


def totals_of(reduction):
    return ["total"] if reduction.arity == 1 else ["total_first", "total_second"]


def _numbered(node, numbers):
    return next(numbers) if _is_leaf(node) else (_numbered(node[0], numbers), _numbered(node[1], numbers))


@functools.lru_cache(maxsize=None)
def _combining_text(reduction, shape, counts):
    """The program that combines leaves as `shape`, nested pairs of their numbers, says."""
    parts = _programs.take_apart(reduction.combine)
    suffixes = [""] if reduction.arity == 1 else ["_first", "_second"]
    lines, operands, made = [], [], iter(range(1 << 20))

    def write(node):
        if isinstance(node, int):
            operands.extend(f"leaf{node}{each}[i,j]" for each in suffixes)
            return f"leaf{node}", counts[node] if counts else 0
        (left, left_count), (right, right_count) = write(node[0]), write(node[1])
        both = f"both{next(made)}"
        known = {f"{side}{suffix}": f"{name}{suffix}" for side, name in [("left", left), ("right", right), ("both", both)]
                 for suffix in suffixes}
        known |= {"left_columns": str(left_count), "right_columns": str(right_count)}
        inner = _programs.names_in(parts.body) - known.keys()
        known |= {name: f"{both}_{name}" for name in inner if name.startswith("t") and name[1:].isdigit()}
        lines.append(_programs.rename(parts.body, known))
        return both, left_count + right_count

    last, _ = write(shape)
    results = totals_of(reduction)
    body = _programs.rename("".join(lines), {f"{last}{suffix}": f"total{suffix}" for suffix in suffixes})
    return f"{parts.name}({', '.join(operands)}) -> ({', '.join(f'{each}[i,j]' for each in results)})\n{body}"


"""What machines that share a sum exchange: parts, the tree that their sums are nodes of, and one collective for all of them.

The contract's sums are trees over units (stripes of 256 columns, blocks of rows): neighbouring pairs, level by level, an odd
last one moving up unchanged. A part that begins and ends at units is made of a few whole subtrees, its runs. Each machine
computes its runs' sums, all are gathered, and every machine combines them as the tree does: the bits are those of one machine.
A cut elsewhere has one run a part, combined in neighbouring pairs of parts: the same bits on every machine, for that cut.
"""
import functools
import hashlib
import zlib
from typing import NamedTuple

import torch
import torch.distributed as dist
from torch.distributed import _functional_collectives as collectives

import trireme

from . import _programs
from ._autograd import is_wrapped
from ._operator import TorchOperator, _lock
from ._register import LIBRARY

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


# ---- groups and what may be exchanged ----

def of_member(group):
    """The group. Who is not in it has something else in its place, of torch.distributed.new_group."""
    if not isinstance(group, dist.ProcessGroup):
        raise ValueError(f"this process is no member of the group ({group!r} is what torch.distributed.new_group gives those that are "
                         "not); members alone call what is spread over it")
    return group


def refuse_transforms(tensors, what):
    """Collectives have no rules for torch.func: vmap's would be other machines' rows, and derivatives would be left out."""
    if is_wrapped(tensors):
        raise NotImplementedError(f"{what}: what is spread over machines is not transformed by torch.func (grad, vjp, jvp, vmap) nor by "
                                  "is_grads_batched. torch.autograd derives it, backward to any order and forward, and torch.func.grad "
                                  "derives operators on DTensors")


# ---- meetings ----

_met = {}  # by group and what was said here
_meetings = {}  # of each group, so far


def meet(group, numbers, what, equal):
    """The numbers that each machine of a group says, asked once for each set of numbers said here. Those of the places
    `equal` must agree; all machines raise the same error where they do not. By the group's store, not by tensors: compilers
    know shapes before there is a tensor, and a GPU need not wait. Who does not come is waited for as long as the group says."""
    key = group.group_name, numbers
    if key not in _met:
        found = ask(group, numbers, what[0])
        for place in equal:
            said = [each[place] if place < len(each) else None for each in found]
            if len(set(said)) > 1:
                raise ValueError(f"{what[0]}: {what[1 + place]} must be the same on all {group.size()} machines of the group, and "
                                 f"machine by machine there are {said}; where parts differ in size, `cut` says all sizes")
        _met[key] = found
    return _met[key]


def ask(group, numbers, what):
    """The numbers that each machine of the group says, now."""
    count = _meetings[group.group_name] = _meetings.get(group.group_name, 0) + 1
    store = dist.distributed_c10d._get_process_group_store(group)
    begin = f"trireme/{group.group_name}/{count}/"
    store.set(f"{begin}{dist.get_rank(group)}", ",".join(map(str, numbers)))
    names = [f"{begin}{rank}" for rank in range(group.size())]
    try:
        store.wait(names, _timeout(group))
    except RuntimeError as error:  # torch's DistStoreError is one
        missing = [rank for rank, name in enumerate(names) if not store.check([name])]
        raise RuntimeError(f"{what}: of the {group.size()} machines of the group, {missing} did not come within "
                           f"{_timeout(group).total_seconds():g} s") from error
    return tuple(tuple(map(int, each.split(b","))) for each in store.multi_get(names))


def asks_each_time(device):
    """Whether machines say before each exchange what it is: gloo ends a process that is sent more than it asked for. NCCL's
    timeout ends machines that differ, unless torch is asked for more."""
    return device.type == "cpu" or dist.get_debug_level() == dist.DebugLevel.DETAIL


def agreed(numbers, found, machines, what):
    """The numbers that are to be exchanged, a copy, where all machines have said the same of them."""
    said = found.view(machines, -1).tolist()
    if any(each != said[0] for each in said):
        sizes = [size for size, _ in said]
        raise ValueError(f"{what}: shapes must be those of the other machines of the group, and machine by machine there are {sizes} "
                         f"numbers to exchange{', not of the same thing' if len(set(sizes)) == 1 else ''}")
    return numbers.clone()


LIBRARY.define("agreed(Tensor numbers, Tensor found, int machines, str what) -> Tensor")
LIBRARY.impl("agreed", agreed, "CompositeExplicitAutograd")
torch.library.register_fake("trireme::agreed", lambda numbers, *_: torch.empty_like(numbers), lib=LIBRARY)


def checked(numbers, group, what, kind=""):
    """The numbers, once all machines have said that they exchange as many, of the same thing, and cut alike."""
    if not asks_each_time(numbers.device):
        return numbers
    mine = torch.tensor([numbers.numel(), number_of(f"{what} {kind}")], device=numbers.device)
    return torch.ops.trireme.agreed(numbers, _arrived(_gather_all(mine, 0, group)), group.size(), what)


def _timeout(group):
    for device in ("cpu", "cuda"):
        try:
            return group._get_backend(torch.device(device)).options._timeout
        except (AttributeError, RuntimeError):  # the group has none for that device
            continue
    return dist.constants.default_pg_timeout


def number_of(text):
    return zlib.crc32(text.encode())


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


_gather_all = getattr(collectives, "all_gather_single", None) or collectives.all_gather_tensor  # its name before torch 2.13
_gather = _gather_all  # tests count the collectives of results


def _arrived(tensor):
    return tensor.wait() if isinstance(tensor, collectives.AsyncCollectiveTensor) else tensor


def gather(tensor, group):
    """Of all machines, one after the other along the first axis. Compiled code sees the collective."""
    return _arrived(_gather(tensor, 0, group))


def trade(tensor, group):
    """Piece k of each machine's, one after the other, on machine k."""
    return _arrived(collectives.all_to_all_single(tensor, None, None, group))


def exchange(group, pieces, dtype, device, what):
    """Of each piece the totals, flat: one collective for all. `what`: in the same words on every machine. Of no values (no rows)
    there are no totals, and no machine of the group has any: none asks."""
    if not any(piece.length for piece in pieces):
        return [[torch.empty(0, dtype=dtype, device=device)] * piece.reduction.arity for piece in pieces]
    flat = []
    for piece in pieces:
        for run in piece.runs:
            flat += [each.reshape(-1) for each in run]
        missing = piece.tree.slots - len(piece.runs)
        if missing:
            flat.append(torch.zeros(missing * piece.length * piece.reduction.arity, dtype=dtype, device=device))
    mine = torch.cat(flat) if len(flat) > 1 else flat[0].contiguous()
    mine = checked(mine, group, what, [(piece.reduction.name, piece.length, piece.tree.runs) for piece in pieces])
    gathered = gather(mine, group).view(group.size(), -1)
    totals, begin = [], 0
    for piece in pieces:
        arity, size = piece.reduction.arity, piece.length
        values = {}
        for part, run in leaves_of(piece.tree.shape):
            first = begin + run * arity * size
            row = gathered[part]
            values[part, run] = tuple(row[first + k * size:first + (k + 1) * size].unsqueeze(0) for k in range(arity))
        begin += piece.tree.slots * arity * size
        totals.append([each.view(-1) for each in _combined(piece, piece.tree.shape, values)[0]])
    return totals


def _combined(piece, node, values):
    """The node's values, and how many columns it stands for."""
    if not piece.length:
        return [next(iter(values.values()))[0]] * piece.reduction.arity, 0
    if _is_leaf(node):
        return values[node], piece.counts[node[0]][node[1]] if piece.counts else 0
    leaves = leaves_of(node)
    if (len(leaves) + 1) * piece.reduction.arity <= _MOST_ARRAYS:
        counts = tuple(piece.counts[part][run] for part, run in leaves) if piece.counts else None
        text = _combining_text(piece.reduction, _numbered(node, iter(range(len(leaves)))), counts)
        operator = stage(text)
        made = operator.call([each for leaf in leaves for each in values[leaf]], [])
        return made, sum(counts) if counts else 0
    left, right = (_combined(piece, each, values) for each in node)
    counts = (left[1], right[1]) if piece.counts else None
    made = stage(_combining_text(piece.reduction, (0, 1), counts)).call([*left[0], *right[0]], [])
    return made, left[1] + right[1]


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
    results = [f"total{each}" for each in suffixes]
    body = _programs.rename("".join(lines), {f"{last}{suffix}": f"total{suffix}" for suffix in suffixes})
    return f"{parts.name}({', '.join(operands)}) -> ({', '.join(f'{each}[i,j]' for each in results)})\n{body}"


"""torch.ops.trireme.NAME: schema, kernel, fake implementation, autograd and vmap of one operator.

Every operator has the same schema: its operands, its constants, `axes`, `types`, `wanted`, a bit for each result, and
`row_block`. The number of results is fixed, as compilers want it; those that are not wanted are tensors of no elements.
"""
import ast
import functools
import math
import sys

import torch
from torch import _C
from torch.autograd import forward_ad

import trireme

from ._autograd import Call, Function, is_distributed, is_plain, is_wrapped, needs_graph
from ._programs import counts_rows
from ._rows import divides_rows, rows_to_an_entry

LIBRARY = torch.library.Library("trireme", "FRAGMENT")
DTYPES = {"f64": torch.float64, "f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16,
          "f8e4m3": torch.float8_e4m3fn, "f8e5m2": torch.float8_e5m2, "i8": torch.int8, "i32": torch.int32, "i64": torch.int64,
          "u8": torch.uint8}
if hasattr(torch, "float8_e8m0fnu"):
    DTYPES["f8e8m0"] = torch.float8_e8m0fnu
NAMES = {dtype: name for name, dtype in DTYPES.items()} | {torch.bool: "u8"}
PAIRS = getattr(torch, "float4_e2m1fn_x2", None)  # two columns an element
if PAIRS is not None:
    NAMES[PAIRS] = "f4e2m1"
DTYPES["f4e2m1"] = PAIRS or torch.uint8


def register(self):
    """Defines torch.ops.trireme.NAME for an operator, and gives the overload."""
    operands = ", ".join(f"Tensor{'?' if each[2] or self.level else ''} {each[0]}" for each in self.operator.operands)
    constants = "".join(f", float {name}" for name in self.constants)
    returned = ", ".join("Tensor" for _ in self.results)
    LIBRARY.define(f"{self.name}({operands}{constants}, int axes, str types, int wanted=-1, int row_block=0) -> "
                   f"{returned if len(self.results) == 1 else f'({returned})'}", tags=torch.Tag.needs_fixed_stride_order)
    overload = getattr(torch.ops.trireme, self.name).default
    count, last = len(self.operands), len(self.operands) + len(self.constants)

    def split(values):  # arguments that have their default's value do not come
        return values[:count], values[count:last], *values[last:], *(-1, 0)[len(values) - last - 2:]

    def give(made):
        return made[0] if len(made) == 1 else tuple(made)

    def kernel(*values):
        operands, *rest = split(values)
        return give(fill(self.forward(operands, *rest), operands))

    def fake(*values):
        show_to_inductor(self.name)
        return give(fake_results(self, *split(values)[:-1]))

    def autograd(keyset, *values):
        operands, constants, axes, types, wanted, row_block = split(values)
        graph = needs_graph(operands)
        if not graph and is_plain(operands) and not is_wrapped(operands):  # as compiled code calls
            return give(fill(self.forward(operands, constants, axes, types, wanted, row_block), operands))
        if self.formulas:
            called, operands, types = self.as_called(operands, types)
            if called is not self:
                return called.autograd(keyset, *operands, *constants, axes, types, wanted, row_block)

        if is_distributed(*operands):
            from . import _distributed
            return give(fill(_distributed.call(self, operands, constants, axes, types, wanted), operands))

        grad_enabled, forward_enabled = torch.is_grad_enabled(), _C._is_fwd_grad_enabled()

        def below(operands, wanted):
            # A Function's forward runs without gradients, but under transforms of torch.func the outer ones want theirs.
            with torch.set_grad_enabled(grad_enabled), forward_ad._set_fwd_grad_enabled(forward_enabled), \
                    _C._AutoDispatchBelowAutograd():
                made = overload.redispatch(keyset & _C._after_autograd_keyset, *operands, *constants, axes, types, wanted, row_block)
            return made if isinstance(made, tuple) else (made,)

        if not graph:
            return give(below(operands, wanted))
        with _single_level():  # a transform of torch.func calls this once for each of its levels
            return give(Function.apply(Call(self, constants, axes, types, wanted, below), *operands))

    def vmap(info, in_dims, *values):
        operands, constants, axes, types, wanted, row_block = split(values)
        made, out_dims = batched(self, info.batch_size, in_dims[:count], operands, (*constants, axes, types, wanted, row_block),
                                 wanted)
        return give(made), give(out_dims)

    self.autograd = autograd
    # What compiled code calls: the overload, on plain tensors.
    self.dispatched = dispatched = overload._op
    quick = self.operator._quick_overload

    def called(*values, **named):
        made = NotImplemented if named else quick(*values)
        return dispatched(*values, **named) if made is NotImplemented else made

    overload._op = called
    LIBRARY.impl(self.name, kernel, "CompositeExplicitAutograd")
    LIBRARY.impl(self.name, autograd, "Autograd", with_keyset=True)
    torch.library.register_fake(f"trireme::{self.name}", fake, lib=LIBRARY)
    torch.library.register_vmap(f"trireme::{self.name}", vmap, lib=LIBRARY)
    return overload


def _single_level():
    from torch._functorch.utils import enable_single_level_autograd_function
    return enable_single_level_autograd_function()


def fill(made, operands):
    """Tensors of no elements in the place of results that were not wanted."""
    if all(each is not None for each in made):
        return made
    like = next(each for each in operands if each is not None)
    return tuple(like.new_empty(0) if each is None else each for each in made)


def show_to_inductor(name):
    """Inductor of torch 2.11 writes a text of all that led to an operator that it meets for the first time, each value as
    often as it is used: two residual branches a layer make it four times longer each layer. An operator that it is told of
    is spared that. Fakes run when Inductor is there, before it lowers anything."""
    lowering = sys.modules.get("torch._inductor.lowering")
    if lowering is not None:
        getattr(lowering, "FALLBACK_ALLOW_LIST", set()).add(f"trireme::{name}")


# ---- vmap ----

def batched(self, size, in_dims, operands, rest, wanted):
    """Results for operands with an axis more: as rows of one call where rows alone are batched, else one call each."""
    spreads = [each[1] for each in self.operator.operands]
    by_rows = all(each is None or (spread in ("[i,j]", "[i]") if dim is not None else "i" not in spread or
                                   spread in ("[i,j]", "[i]")) for each, dim, spread in zip(operands, in_dims, spreads))
    is_wanted = [wanted >> k & 1 for k in range(len(self.results))]
    by_rows = by_rows and not counts_rows(self.operator.text) and all(
        spread in ("[i,j]", "[i]") for (_, spread, *_), has in zip(self.operator.results, is_wanted) if has)
    if by_rows:
        given = [each if each is None or "i" not in spread else
                 each.expand(size, *each.shape) if dim is None else each.movedim(dim, 0)
                 for each, dim, spread in zip(operands, in_dims, spreads)]
        made = self.overload(*given, *rest)
        made = made if isinstance(made, tuple) else (made,)
    else:
        each_made = []
        for k in range(size):
            given = [each if dim is None else each.select(dim, k) for each, dim in zip(operands, in_dims)]
            each_made.append(self.overload(*given, *rest))
        each_made = [each if isinstance(each, tuple) else (each,) for each in each_made]
        made = tuple(torch.stack(each) if has else each[0] for each, has in zip(zip(*each_made), is_wanted))
    return made, tuple(0 if has else None for has in is_wanted)


# ---- shapes ----

def shape_sources(self, operands):
    """Places of the operands that say the problem's outer and normalised axes (trireme::shape_sources): the first that is
    [i,j], else the first that has each row, or divides them, and the first that has each column."""
    spreads = [[part.strip() for part in spread.strip("[]").split(",")] for _, spread, *_ in self.operator.operands]
    rows = [k for k, parts in enumerate(spreads) if operands[k] is not None and parts[0] == "i"]
    rows = rows or [k for k, (_, spread, *_) in enumerate(self.operator.operands) if operands[k] is not None and divides_rows(spread)]
    columns = [k for k, parts in enumerate(spreads) if operands[k] is not None and parts[-1] == "j"]
    whole = [k for k in rows if k in columns]
    if whole:
        return whole[0], whole[0]
    if rows and columns:
        return rows[0], columns[0]
    missing, place, what = ("rows", 0, "i") if not rows else ("columns", -1, "j")
    needed = [name for name, parts, (_, spread, *_) in zip(self.operands, spreads, self.operator.operands)
              if parts[place] == what or (not rows and divides_rows(spread))]
    raise TypeError(f"{self.__name__}{self.__signature__} needs an array for {', or '.join(needed) or 'out'}: nothing else says how "
                    f"many {missing} there are")


def problem_shape(self, operands, axes, constants):
    """What all [i,j] arrays have, in elements of tensors: two columns of f4e2m1 are one."""
    rows, columns = shape_sources(self, operands)
    outer, inner = list(operands[rows].shape), list(operands[columns].shape)
    spread = self.operator.operands[rows][1]
    if spread == "[i,j]":
        return outer
    inner = inner[len(inner) - axes:]
    if divides_rows(spread):  # as many as fill its entries
        values = (*zip(self.constants, constants), ("n", math.prod(inner)))
        return [outer[0] * rows_to_an_entry(spread, values), *inner]
    has_groups = "," in spread  # an axis more: [i, j / 32]
    return outer[:len(outer) - has_groups] + inner


def fake_results(self, operands, constants, axes, types, wanted):
    types = types_dict(types) or {}
    columns = shape_sources(self, operands)[1]
    like = operands[columns]
    for name, each in zip(self.operands, operands):
        if each is not None and each.device != like.device:
            raise RuntimeError("Expected all tensors to be on the same device, but found at least two devices, "
                               f"{like.device} and {each.device} ({name})!")
    storage = storage_types(self, operands, types)
    values = dict(zip(self.constants, constants))
    shape = problem_shape(self, operands, axes, constants)
    if is_pairs(self.operands[columns], storage, types):
        shape[-1] *= 2

    def made(name, spread):
        of_result = list(extents(spread, shape, axes, values))
        if is_pairs(name, storage, types):
            of_result[-1] //= 2
        return like.new_empty(of_result, dtype=storage[name])
    return [made(name, spread) if wanted >> k & 1 else like.new_empty(0)
            for k, (name, spread, *_) in enumerate(self.operator.results)]


def is_pairs(name, storage, types):
    return types.get(name) == "f4e2m1" or (PAIRS is not None and storage[name] is PAIRS)


def storage_types(self, operands, types):
    """Types of operands and results by name. `types`: those that were said."""
    storage = {name: each.dtype for name, each in zip(self.operands, operands) if each is not None}
    like = operands[shape_sources(self, operands)[1]]
    for name, spread, *_ in self.operator.results:
        if spread == "[i,j]":
            storage[name] = like.dtype
    storage.update({name: DTYPES[kind] for name, kind in types.items()})
    compute = torch.float64 if torch.float64 in storage.values() else torch.float32
    for name, *_ in self.operator.results:
        storage.setdefault(name, compute)
    return storage


def extents(spread, shape, axes, constants):
    """The shape of an array with that spread: `[i % heads, j]`, `[i]`, ... `n` among the constants: the columns of whole rows,
    where these are a part."""
    rows, columns = shape[:len(shape) - axes], shape[len(shape) - axes:]
    plain = {"i": rows, "j": columns}
    parts = [part.strip() for part in spread.strip("[]").split(",") if part.strip()]
    return [extent for part in parts for extent in (plain[part] if part in plain else
                                                    [_extent(part, rows, columns, constants)])]


def _extent(text, rows, columns, constants):
    """`(i / heads) % positions`: a divided index counts rounded up, a wrapped one as far as it wraps."""
    def number(node):
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.Name):
            return math.prod(columns) if node.id == "n" and "n" not in constants else int(constants[node.id])
        if isinstance(node, ast.UnaryOp):
            return -number(node.operand)
        left, right = number(node.left), number(node.right)
        return {ast.Add: lambda: left + right, ast.Sub: lambda: left - right, ast.Mult: lambda: left * right,
                ast.Div: lambda: left // right}[type(node.op)]()

    def extent(node):
        if isinstance(node, ast.Name):
            return math.prod(rows if node.id == "i" else columns)
        if isinstance(node.op, ast.Mod):
            return number(node.right)
        divisor = number(node.right)
        return (extent(node.left) + divisor - 1) // divisor

    return extent(ast.parse(text, mode="eval").body)


# ---- types ----

def types_text(types):
    if not types:
        return ""
    return types if isinstance(types, str) else ",".join(f"{name}={NAMES.get(kind, kind)}" for name, kind in
                                                         types.items())


@functools.lru_cache(maxsize=None)
def types_dict(types):
    return dict(each.split("=") for each in types.split(",")) if types else None


trireme._core.use_torch(torch.Tensor, torch.nn.Parameter, forward_ad, types_dict, torch.is_grad_enabled,
                        (_C._len_torch_dispatch_stack, _C._are_functorch_transforms_active, _C._get_tracing_state),
                        (_C._functorch.is_legacy_batchedtensor, _C._functorch.is_functorch_wrapped_tensor))

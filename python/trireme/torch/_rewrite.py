"""Forwards of others' modules with a function replaced, or with two of their lines fused.

A forward that calls a function called after rotary embeddings, as apply_rotary_pos_emb, runs with a kernel in its place, if
trying that function shows what it does. One that adds to the residual stream and normalises the sum in its next lines

    hidden = residual + hidden
    residual = hidden
    hidden = self.norm(hidden)

does both in one kernel. The code around stays the module's own; it is a copy, and nothing outside the module changes.
"""
import ast
import functools
import inspect
import linecache
import re
import textwrap
import types

import torch

from . import functional, rotary
from ._autograd import is_distributed
from ._kernels import NORMS
from ._recognise import SHAPES_ONLY, TYPES, Unknown, _gradients, _quietly, _Recorder, _same, _same_gradients

ROTARY = re.compile("rotary|(^|_)rope(_|$)")  # what such a function is called after
ROTARY_OPERATIONS = SHAPES_ONLY | {"mul", "add", "sub", "neg", "cat", "stack", "_to_copy", "flatten", "repeat_interleave", "index",
                                   "arange", "index_select", "floor_divide", "copy", "empty_like", "lift_fresh"}


def _own_forward(kind):
    """The function that a class's forward is."""
    forward = kind.forward
    if not isinstance(forward, types.FunctionType) or hasattr(forward, "__wrapped__"):
        raise Unknown("its forward is decorated")
    return forward


def _with_globals(function, code, values):
    values = {**function.__globals__, **values}
    values.pop("__name__", None)  # by which torch.compile would look names up in the module instead
    made = types.FunctionType(code, values, function.__name__, function.__defaults__, function.__closure__)
    made.__kwdefaults__ = function.__kwdefaults__
    functools.update_wrapper(made, function)
    del made.__wrapped__  # it is no wrapper, and its own signature is the same
    return made


# ---- rope ----

def called_rotary(kind):
    """Names of the functions for rotary embeddings that a class's forward calls."""
    forward = inspect.unwrap(kind.forward)
    if not isinstance(forward, types.FunctionType):
        return ()
    return tuple(name for name in forward.__code__.co_names if ROTARY.search(name) and callable(forward.__globals__.get(name)) and
                 not isinstance(forward.__globals__[name], type))


def rotary_attributes(kind, names):
    forward = _own_forward(kind)
    return {"forward": _with_globals(forward, forward.__code__, {name: rotary_function(forward.__globals__[name]) for name in names})}


def known_rotary(kind):
    """Of those functions the names of which kernels take the place, and why others are left: {name: reason}."""
    forward, taken, left = inspect.unwrap(kind.forward), [], {}
    for name in called_rotary(kind):
        try:
            rotary_function(forward.__globals__[name])
            taken.append(name)
        except Unknown as why:
            left[name] = str(why)
    return tuple(taken), left


@functools.lru_cache(maxsize=None)
def rotary_function(theirs):
    """The kernel in the place of a function that rotates queries and keys, or one of them. Raises Unknown."""
    count, interleaved, rounded, tables, pairs = _recognise_rotary(theirs)

    def fits(given, cos, sin, axis):
        first = given[0]
        return axis in (1, 2) and not is_distributed(*given, cos, sin) and all(each.dim() == 4 and each.dtype == first.dtype and each.shape[0] == first.shape[0] and
                                      each.shape[3 - axis] == cos.shape[1] and
                                      each.shape[-1] == cos.shape[-1] * (2 if tables == "half" else 1)
                                      for each in given) and cos.dim() == 3 and cos.shape == sin.shape and \
            cos.shape[0] in (1, first.shape[0]) and cos.dtype == sin.dtype and (first.dtype, cos.dtype) in pairs and \
            first.device == cos.device

    if count == 2:
        @functools.wraps(theirs)
        def apply(q, k, cos, sin, *more, **named):
            axis = named.get("unsqueeze_dim", 1)
            if more or not named.keys() <= {"unsqueeze_dim"} or not fits((q, k), cos, sin, axis):
                return theirs(q, k, cos, sin, *more, **named)
            return _run_rotary((q, k), cos, sin, axis, interleaved, rounded, tables)
    else:
        @functools.wraps(theirs)
        def apply(x, cos, sin, *more, **named):
            axis = named.get("unsqueeze_dim", 1)
            if more or not named.keys() <= {"unsqueeze_dim"} or not fits((x,), cos, sin, axis):
                return theirs(x, cos, sin, *more, **named)
            return _run_rotary((x,), cos, sin, axis, interleaved, rounded, tables)[0]

    return apply


def _run_rotary(given, cos, sin, axis, interleaved, rounded, tables):
    if tables == "left half":
        cos, sin = (each[..., :each.shape[-1] // 2] for each in (cos, sin))
    return rotary.rope(*given, *[None] * (2 - len(given)), cos, sin, None, axis, interleaved=interleaved,
                       rounded=rounded)[:len(given)]


def _recognise_rotary(theirs):
    """How many arrays it rotates, how, and for which pairs of types (theirs, the tables')."""
    names = list(inspect.signature(theirs).parameters)
    count = 2 if names[:4] == ["q", "k", "cos", "sin"] else 1 if names[1:3] == ["cos", "sin"] else 0
    if count == 0:
        raise Unknown(f"{_name(theirs)} takes {', '.join(names)}")
    axes = (1, 2) if "unsqueeze_dim" in names else (1,)
    pairs = [(x, table) for x in TYPES for table in {x, torch.float32}]
    # Tables of all columns, of which all or the left half is used, or of half the columns.
    ways = [(interleaved, rounded, tables) for interleaved in (False, True) for rounded in (True, False)
            for tables in ("all", "left half", "half")]
    with _quietly():
        found = {way: tuple(pair for pair in pairs if all(_is_rotary(theirs, count, axis, *pair, *way) for axis in axes))
                 for way in ways}
    best = max(found, key=lambda each: len(found[each]))
    if (torch.float32, torch.float32) not in found[best]:
        raise Unknown(f"no kernel gives the results of {_name(theirs)}")
    return count, *best, found[best]


def _name(function):
    return getattr(function, "__name__", type(function).__name__)


def _is_rotary(theirs, count, axis, kind, table_kind, interleaved, rounded, tables):
    generator = torch.Generator().manual_seed(3)

    def draw(*shape):
        return torch.randn(shape, generator=generator)

    is_wide = kind == torch.float32
    for samples in (1, 3):
        given = [(30 * draw(3, 5, heads, 8)).to(kind) for heads in (4, 2)[:count]]
        given = [(each.transpose(1, 2) if axis == 1 else each).requires_grad_(is_wide) for each in given]
        cos, sin = (draw(samples, 5, 4 if tables == "half" else 8).to(table_kind) for _ in range(2))
        recorder = _Recorder()
        try:
            with recorder:
                wanted = theirs(*given, cos, sin, **({"unsqueeze_dim": axis} if axis != 1 else {}))
        except RuntimeError:  # it takes other tables
            return False
        strange = [name for name in recorder.seen if name not in ROTARY_OPERATIONS]
        if strange:
            raise Unknown(f"{_name(theirs)} has {', '.join(strange)}")
        wanted = wanted if isinstance(wanted, (tuple, list)) else (wanted,)
        made = _run_rotary(given, cos, sin, axis, interleaved, rounded, tables)
        if len(wanted) != count or not all(_same(a, b, kind) for a, b in zip(made, wanted)):
            return False
        if is_wide and not all(_same_gradients(_gradients(a, [x]), _gradients(b, [x]))
                               for a, b, x in zip(made, wanted, given)):
            return False
    return True


# ---- residual streams ----

class _Fuse(ast.NodeTransformer):
    """Three lines by one. `norms`: attributes that are norms with a kernel that adds first."""

    def __init__(self, norms):
        self.norms, self.fused = norms, []

    def visit_FunctionDef(self, node):
        body = node.body
        k = 0
        while k + 2 < len(body):
            line = self._fused(*body[k:k + 3])
            if line is not None:
                body[k:k + 3] = [line]
            k += 1
        return node  # what stands in branches or inner functions is left alone

    def _fused(self, first, second, third):
        match = ast.unparse(first), ast.unparse(second), ast.unparse(third)
        for norm in self.norms:
            if not (isinstance(first, ast.Assign) and len(first.targets) == 1 and isinstance(first.targets[0], ast.Name) and
                    isinstance(second, ast.Assign) and len(second.targets) == 1 and isinstance(second.targets[0], ast.Name)):
                return None
            hidden, residual = first.targets[0].id, second.targets[0].id
            sums = f"{hidden} = {residual} + {hidden}", f"{hidden} = {hidden} + {residual}"
            if hidden != residual and match[0] in sums and \
                    match[1:] == (f"{residual} = {hidden}", f"{hidden} = self.{norm}({hidden})"):
                self.fused.append(norm)
                return ast.parse(f"{hidden}, {residual} = _trireme_add_norm(self.{norm}, {hidden}, {residual})").body[0]
        return None


@functools.lru_cache(maxsize=None)
def _source(function):
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError, IndentationError):
        return None
    return tree if len(tree.body) == 1 and isinstance(tree.body[0], ast.FunctionDef) else None


def fused_norms(kind, norms):
    """Those of the attributes `norms` that the forward of a class applies to a sum with the residual stream; and of those whose
    sum has another form, the line that makes it."""
    forward = inspect.unwrap(kind.forward)
    tree = _source(forward) if isinstance(forward, types.FunctionType) else None
    if tree is None:
        return (), {}
    fuse = _Fuse(norms)
    fuse.visit(ast.parse(ast.unparse(tree)).body[0])
    sums = {norm: line for norm, line in _summed_norms(tree, norms).items() if norm not in fuse.fused}
    return tuple(fuse.fused), sums


def _summed_norms(tree, norms):
    """Norms of what was a sum two lines before, or in the line before, with the line of that sum."""
    found = {}
    bodies = [getattr(node, name) for node in ast.walk(tree) for name in ("body", "orelse") if isinstance(getattr(node, name, None), list)]
    for body in bodies:
        for k, line in enumerate(body):
            for call in ast.walk(line) if isinstance(line, ast.Assign) else ():
                norm = isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and \
                    ast.unparse(call.func.value) == "self" and call.func.attr
                value = call.args[0].id if norm in norms and call.args and isinstance(call.args[0], ast.Name) else None
                for before in body[max(k - 2, 0):k] if value else ():
                    if isinstance(before, ast.Assign) and isinstance(before.value, ast.BinOp) and isinstance(before.value.op, ast.Add) \
                            and [ast.unparse(each) for each in before.targets] == [value]:
                        found[norm] = ast.unparse(before)
    return found


def residual_attributes(kind, norms):
    """A forward in which those norms add first. Raises Unknown."""
    forward = _own_forward(kind)
    if forward.__closure__ or _source(forward).body[0].decorator_list:
        raise Unknown("its forward is decorated, or a closure")
    tree = ast.parse(ast.unparse(_source(forward)))
    _Fuse(norms).visit(tree.body[0])
    # Annotations and defaults are the function's own: what they name may not be there any more.
    function = tree.body[0]
    function.returns = None
    arguments = function.args
    for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg):
        if each is not None:
            each.annotation = None
    arguments.defaults = [ast.Constant(None) for _ in arguments.defaults]
    arguments.kw_defaults = [None if each is None else ast.Constant(None) for each in arguments.kw_defaults]
    text = ast.unparse(ast.fix_missing_locations(tree))
    name = f"<{forward.__module__}.{forward.__qualname__}, norms fused>"
    linecache.cache[name] = len(text), None, text.splitlines(True), name  # for tracebacks
    code = compile(text, name, "exec")
    (inner,) = (each for each in code.co_consts if isinstance(each, types.CodeType))
    return {"forward": _with_globals(forward, inner, {"_trireme_add_norm": add_norm})}


def add_norm(norm, hidden, residual):
    """(norm(hidden + residual), hidden + residual), in one kernel where that is the same."""
    if _may_fuse(norm, hidden, residual):
        forward = type(norm)._trireme_forward
        if forward == "_norm" and _was_tried(norm, hidden):
            kernel = NORMS[norm.__dict__["_trireme_norm"]]
            return kernel.run_added(norm, hidden, residual, getattr(norm, norm.__dict__["_trireme_eps"]))
        if forward == "_torch_layer_norm":
            return functional.add_layer_norm(hidden, residual, norm.weight, norm.bias, norm.eps, len(norm.normalized_shape))
        if forward == "_torch_rms_norm":
            eps = functional.eps_of(norm.eps, hidden.dtype)
            return functional.add_rms_norm(hidden, residual, norm.weight, eps, axes=len(norm.normalized_shape))
    total = residual + hidden
    return norm(total), total


def is_cast(norm, x):
    """Whether a patched norm would compute in other types now than when it was tried."""
    return (norm.__dict__.get("_trireme_widened", True) and autocasts(x)) or (
        norm.__dict__.get("_trireme_recast", False) and (torch.is_autocast_enabled("cuda") or torch.is_autocast_enabled(x.device.type)))


def autocasts(x):
    """Whether torch would compute its own norms in another type than the input's."""
    return x.is_cuda and x.dtype != torch.float32 and torch.is_autocast_enabled("cuda")


def _may_fuse(norm, hidden, residual):
    """Whether the norm is a patched one that nobody watches, and the two are arrays to be added element by element."""
    if getattr(type(norm), "_trireme_forward", None) is None or "forward" in norm.__dict__ or norm._forward_hooks or \
            norm._forward_pre_hooks or norm._backward_hooks or norm._backward_pre_hooks:
        return False
    return (hidden.dtype == residual.dtype and hidden.shape == residual.shape and hidden.device == residual.device and
            not is_distributed(hidden, residual, norm._parameters.get("weight")) and not is_cast(norm, hidden))


def _was_tried(norm, hidden):
    weight = norm._parameters.get("weight")
    pair = hidden.dtype, torch.float32 if weight is None else weight.dtype
    return pair in norm.__dict__["_trireme_types"] and (weight is None or hidden.shape[-1] == weight.shape[0])

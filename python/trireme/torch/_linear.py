"""A linear layer, then a row program over its outputs, a chunk of tokens at a time: the logits of all tokens never exist.

Matrix products are torch's. The program's first operand `x` is the chunk of logits, `[i]` operands are cut like the tokens,
all others are given whole; its results are `[i]`. Two ways to gradients:

`rows`: for results that anything may follow. The backward makes each chunk's logits again, and the derived backward writes
their gradient over them.

`summed`: for a loss that is summed. Its program gives the gradient at once, over the logits, and all that is left to the
backward is a factor. Three products a chunk, as many as without chunks.

Where the backward is to be differentiated again (create_graph=True), linear layer and program are called apart in it, with all
logits: of those autograd derives the rest.
"""
import functools
import math

import torch

from ._autograd import autocast_type, is_plain
from ._operator import op
from ._register import LIBRARY, show_to_inductor

CHUNK_BYTES = 1 << 29  # of logits: 2048 tokens of 128256 classes in bf16, enough for products at full speed
OPERANDS = ("target", "chosen", "w", "share", "z")  # that programs may have beside x
MOST_RESULTS = 3
_operator = functools.lru_cache(maxsize=None)(op)


def tokens_of(input, weight, chunk):
    """Tokens in a chunk."""
    if chunk is not None:
        if chunk < 1:
            raise ValueError(f"a chunk has at least one token, not {chunk}")
        return int(chunk)
    return max(CHUNK_BYTES // (weight.shape[0] * input.element_size()) // 256 * 256, 256)


def chunk_of(options, input, weight):
    """Tokens in a chunk as torch.nn.LinearCrossEntropyOptions say it; None where they leave it to us."""
    tokens, (classes, hidden) = math.prod(input.shape[:-1]), weight.shape
    if options.batch_chunk_size is not None or options.chunking_method == "auto":
        return options.batch_chunk_size
    if options.chunking_method is None:
        return max(tokens, 1)
    pieces = -(-classes // hidden)  # "aspect_ratio:2": logits half as large as the input, tokens a power of two
    power = 1 << (max(-(-tokens // pieces), 1) - 1).bit_length()
    return max(power // int(options.chunking_method.partition(":")[2] or 1), 1)


def _pieces(input, weight, bias, chunk):
    """Each piece of the tokens with its logits, all in one buffer."""
    tokens = len(input)
    logits = input.new_empty(min(chunk, tokens), weight.shape[0])
    for start in range(0, tokens, chunk):
        piece = slice(start, min(start + chunk, tokens))
        part = logits[:piece.stop - start]
        if bias is None:
            torch.mm(input[piece], weight.t(), out=part)
        else:
            torch.addmm(bias, input[piece], weight.t(), out=part)
        yield piece, part


def _run(operator, known, piece, constants, results, out):
    """A program of a piece of the tokens. What is `[i]` is cut, but `at`: it comes from the piece."""
    given = {}
    for name, spread, *_ in operator.operands:
        each = known.get(name)
        given[name] = each[piece] if each is not None and name != "at" and spread == "[i]" else each
    names = [name for name, *_ in operator.constants]
    operator(**given, **{name: constants[name] for name in names}, results=results, out=out)


def at_target(logits, target):
    """Each row's logit of its class; any of a row that does not count."""
    return logits.gather(-1, target.clamp(min=0).long()[..., None])[..., 0]


_SCALED = "scaled(x[i,j], by[]) -> (y[i,j])\n    y = x * by\n"


def scale(values, by):
    """values.mul_(by), a number of another type on their device: torch's kernel for two types takes element by element (525 MB
    of bf16 by an f32 number, H200: 1.1 ms, where memory takes 0.26)."""
    if values.numel():
        _operator(_SCALED).operator(x=values, by=by, out={"y": values})
    return values


class _Gradients:
    """Of input, weight and bias; a piece's gradient of logits at a time. Those of weight and bias are added up in their own
    type, as torch adds those of several batches; a product is rounded to it once. `wide`: in f32, and rounded in the end."""

    def __init__(self, input, weight, bias, wide, wanted):
        self.input, self.weight = input, weight
        self.found = [like.new_empty(like.shape) if wanted >> k & 1 else input.new_empty(0)
                      for k, like in enumerate((input, weight, bias))]
        self.wanted = wanted
        self.sums = [torch.empty_like(each, dtype=torch.float32) if wide else each for each in self.found[1:]]
        if not len(input):
            for each in (*self.found, *self.sums):
                each.zero_()

    def add(self, piece, part):
        of_weight, of_bias = self.sums
        if self.wanted & 1:
            torch.mm(part, self.weight, out=self.found[0][piece])
        if self.wanted & 2:
            _add_product(of_weight, part.t(), self.input[piece], piece.start == 0)
        if self.wanted & 4:
            total = part.sum(0, dtype=of_bias.dtype)
            of_bias.copy_(total) if piece.start == 0 else of_bias.add_(total)

    def all(self):
        for total, found in zip(self.sums, self.found[1:]):
            if total is not found:
                found.copy_(total)
        return tuple(self.found)


def _add_product(total, a, b, is_first):
    """total + a @ b in the type of `total`, or the product alone."""
    if total.dtype == a.dtype:
        torch.mm(a, b, out=total) if is_first else total.addmm_(a, b)
    elif total.is_cuda:
        torch.mm(a, b, out_dtype=total.dtype, out=total) if is_first else \
            torch.addmm(total, a, b, out_dtype=total.dtype, out=total)
    else:
        _add_product(total, a.to(total.dtype), b.to(total.dtype), is_first)


# ---- kernels ----

def _wide(input):
    return torch.promote_types(input.dtype, torch.float32)


def _names(program, constants):
    return dict(zip(_operator(program).constants, constants))


@torch.no_grad()
def _rows(input, weight, bias, *rest):
    *operands, constants, program, chunk, _ = rest
    operator, known = _operator(program).operator, dict(zip(OPERANDS, operands))
    found = {name: input.new_empty(len(input), dtype=_wide(input)) for name, *_ in operator.results}
    for piece, part in _pieces(input, weight, bias, chunk):
        _run(operator, {**known, "x": part}, piece, _names(program, constants), list(found),
             {name: each[piece] for name, each in found.items()})
    return (*found.values(), *(input.new_empty(0) for _ in range(MOST_RESULTS - len(found))))


def _rows_fake(input, weight, bias, *rest):
    count = len(_operator(rest[-3]).results)
    return tuple(input.new_empty(len(input) if k < count else 0, dtype=_wide(input) if k < count else input.dtype)
                 for k in range(MOST_RESULTS))


@torch.no_grad()
def _rows_backward(*values):
    grads, made, (input, weight, bias, *rest) = values[:MOST_RESULTS], values[MOST_RESULTS:2 * MOST_RESULTS], \
        values[2 * MOST_RESULTS:]
    *operands, constants, program, chunk, wide, wanted = rest
    operator = _operator(program)
    known = {**dict(zip(OPERANDS, operands)), **dict(zip(operator.results, made)),
             **{f"d{name}": grad for name, grad in zip(operator.results, grads)}}
    by, gradients = operator.backward.operator, _Gradients(input, weight, bias, wide, wanted)
    for piece, part in _pieces(input, weight, bias, chunk):
        _run(by, {**known, "x": part}, piece, _names(program, constants), "dx", {"dx": part})
        gradients.add(piece, part)
    return gradients.all()


@torch.no_grad()
def _summed(input, weight, bias, *rest):
    *operands, constants, program, chunk, wide, wanted = rest
    operator, known = _operator(program).operator, dict(zip(OPERANDS, operands))
    loss, gradients = input.new_empty(len(input), dtype=_wide(input)), _Gradients(input, weight, bias, wide, wanted)
    for piece, part in _pieces(input, weight, bias, chunk):
        _run(operator, {**known, "x": part, "at": at_target(part, known["target"][piece])}, piece,
             _names(program, constants), ["loss", "dx"], {"loss": loss[piece], "dx": part})
        gradients.add(piece, part)
    return loss.sum(), *gradients.all()


def _gradients_fake(input, weight, bias, wanted):
    return tuple(like.new_empty(like.shape) if wanted >> k & 1 else input.new_empty(0)
                 for k, like in enumerate((input, weight, bias)))


# ---- torch.ops.trireme: what compilers see. Everything has a fixed number of operands and results. ----

_TAKEN = (f"Tensor input, Tensor weight, Tensor? bias, {', '.join(f'Tensor? {name}' for name in OPERANDS)}, float[] constants, "
          "str program, int chunk, bool wide")
_MADE = ", ".join(f"Tensor made{k}" for k in range(MOST_RESULTS))
_GRADS = ", ".join(f"Tensor? grad{k}" for k in range(MOST_RESULTS))
_GIVEN = f"({', '.join(['Tensor'] * MOST_RESULTS)})"


def _register(name, schema, kernel, fake):
    LIBRARY.define(f"{name}{schema}", tags=torch.Tag.needs_fixed_stride_order)
    LIBRARY.impl(name, kernel, "CompositeExplicitAutograd")

    def shown(*values):
        show_to_inductor(name)
        return fake(*values)

    torch.library.register_fake(f"trireme::{name}", shown, lib=LIBRARY)
    return getattr(torch.ops.trireme, name).default


_rows_op = _register("linear_rows", f"({_TAKEN}) -> {_GIVEN}", _rows, _rows_fake)
_rows_backward_op = _register(
    "linear_rows_backward", f"({_GRADS}, {_MADE}, {_TAKEN}, int wanted) -> (Tensor, Tensor, Tensor)", _rows_backward,
    lambda *values: _gradients_fake(*values[2 * MOST_RESULTS:2 * MOST_RESULTS + 3], values[-1]))
_summed_op = _register(
    "linear_summed", f"({_TAKEN}, int wanted) -> (Tensor, Tensor, Tensor, Tensor)", _summed,
    lambda input, weight, bias, *rest: (input.new_empty((), dtype=_wide(input)),
                                        *_gradients_fake(input, weight, bias, rest[-1])))


def _differentiable_gradients(values, operator, constants, grads, wanted):
    """Of input, weight and bias, each None where it is not wanted: of the linear layer and the program, called apart. `grads`:
    of the program's first results. Leaves are views: hooks on the arrays themselves see their gradients once, when they arrive."""
    leaves = [each if each is None else each.view_as(each) for each in values[:3]]
    known = dict(zip(OPERANDS, values[3:]))
    arrived = {k: each for k, each in enumerate(grads) if each is not None}
    with torch.autocast(leaves[0].device.type, enabled=False):
        known["x"] = torch.nn.functional.linear(*leaves)
        made = operator.call([known[name] for name in operator.operands], constants, wanted=sum(1 << k for k in arrived))
        found = iter(torch.autograd.grad([made[k] for k in arrived], [each for k, each in enumerate(leaves) if wanted >> k & 1],
                                         list(arrived.values()), create_graph=True))
    return [next(found) if wanted >> k & 1 else None for k in range(3)]


def _save_rows(ctx, inputs, output):
    ctx.rest = inputs[3 + len(OPERANDS):]
    ctx.save_for_backward(*output, *inputs[:3 + len(OPERANDS)])
    ctx.set_materialize_grads(False)


def _rows_gradients(ctx, *grads):
    values = ctx.saved_tensors
    count = len(_operator(ctx.rest[1]).results)
    if all(each is None for each in grads[:count]):
        return (None,) * (7 + len(OPERANDS))
    wanted = sum(1 << k for k in range(3) if ctx.needs_input_grad[k])
    if torch.is_grad_enabled():
        found = _differentiable_gradients(values[MOST_RESULTS:], _operator(ctx.rest[1]), ctx.rest[0], grads[:count], wanted)
        return *found, *(None,) * (4 + len(OPERANDS))
    found = _rows_backward_op(*(grad if k < count else None for k, grad in enumerate(grads)), *values, *ctx.rest, wanted)
    return *(each if wanted >> k & 1 else None for k, each in enumerate(found)), *(None,) * (4 + len(OPERANDS))


def _refuse(ctx, *grads):
    raise NotImplementedError("a linear layer and its loss in one, through torch's dispatcher: second derivatives are not derived; "
                              "call the two apart, tt.cross_entropy(torch.nn.functional.linear(...), ...)")


def _save_nothing(ctx, inputs, output):
    pass


def _save_summed(ctx, inputs, output):
    ctx.wanted = inputs[-1]
    ctx.save_for_backward(*output[1:])
    ctx.set_materialize_grads(False)


def _summed_gradients(ctx, grad, *others):
    if any(each is not None for each in others):
        _refuse(ctx)
    found = [each * grad if grad is not None and ctx.wanted >> k & 1 else None for k, each in enumerate(ctx.saved_tensors)]
    return *found, *(None,) * (5 + len(OPERANDS))


torch.library.register_autograd("trireme::linear_rows", _rows_gradients, setup_context=_save_rows, lib=LIBRARY)
torch.library.register_autograd("trireme::linear_rows_backward", _refuse, setup_context=_save_nothing, lib=LIBRARY)
torch.library.register_autograd("trireme::linear_summed", _summed_gradients, setup_context=_save_summed, lib=LIBRARY)


class _Summed(torch.autograd.Function):
    """The same for eager calls: the first backward scales the gradients where they are and gives them away; another one
    makes them again."""

    @staticmethod
    def forward(ctx, find_loss, *values):
        loss, *ctx.gradients = _summed(*values)
        ctx.find_loss = find_loss
        ctx.save_for_backward(*values[:3 + len(OPERANDS)])
        ctx.rest = values[3 + len(OPERANDS):]
        return loss

    @staticmethod
    def backward(ctx, grad):
        values = ctx.saved_tensors  # also where they are not needed: torch's checks of what was changed or freed
        wanted = ctx.rest[-1]
        if torch.is_grad_enabled():
            operator, grads = ctx.find_loss(), [grad.expand(len(values[0]))]  # one for each row's loss
            constants = [_names(ctx.rest[1], ctx.rest[0])[name] for name in operator.constants]
            found = _differentiable_gradients(values, operator, constants, grads, wanted)
            return None, *found, *(None,) * (5 + len(OPERANDS))
        found, ctx.gradients = ctx.gradients, None
        if found is None:
            _, *found = _summed(*values, *ctx.rest)
        found = [scale(each, grad) if wanted >> k & 1 else None for k, each in enumerate(found)]
        return None, *found, *(None,) * (5 + len(OPERANDS))


# ---- calls ----

def _arguments(input, weight, bias, operator, operands, constants, chunk, acc_dtype):
    kind = autocast_type(input.device)
    if kind is not None:  # as torch.nn.functional.linear
        input, weight, bias = (each if each is None or not each.is_floating_point() else each.to(kind)
                               for each in (input, weight, bias))
    if input.shape[-1] != weight.shape[-1] or weight.dim() != 2:
        raise RuntimeError(f"an input of shape {list(input.shape)} and a weight of shape {list(weight.shape)} do not multiply")
    return (input.reshape(-1, input.shape[-1]), weight, bias, *(operands.get(name) for name in OPERANDS),
            [float(constants[name]) for name in operator.constants], operator.operator.text, tokens_of(input, weight, chunk),
            _is_wide(acc_dtype, weight))


def _is_wide(acc_dtype, weight):
    if acc_dtype not in (None, weight.dtype, _wide(weight)):
        raise RuntimeError(f"gradients of {weight.dtype} weights are added up in that type or in {_wide(weight)}, not in {acc_dtype}")
    return acc_dtype not in (None, weight.dtype)


def rows(input, weight, bias, operator, operands, constants, chunk=None, acc_dtype=None):
    """The program's results for each token, in the input's outer shape."""
    found = _rows_op(*_arguments(input, weight, bias, operator, operands, constants, chunk, acc_dtype))
    return tuple(each.view(input.shape[:-1]) for each in found[:len(operator.results)])


def summed(input, weight, bias, operator, find_loss, operands, constants, chunk=None, acc_dtype=None):
    """The sum of the loss over all tokens. `operator` gives the loss and its gradient by x; `find_loss()` the one that gives the
    loss alone, of which second derivatives are derived."""
    arguments = _arguments(input, weight, bias, operator, operands, constants, chunk, acc_dtype)
    wanted = sum(1 << k for k, each in enumerate(arguments[:3]) if each is not None and each.requires_grad)
    if torch.compiler.is_compiling() or not is_plain(arguments[:3 + len(OPERANDS)]):
        return _summed_op(*arguments, wanted)[0]
    return _Summed.apply(find_loss, *arguments, wanted)

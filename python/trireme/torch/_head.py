"""The head of a language model and its loss in one, without changing the model's own forward.

While a forward with labels trains, the head gives logits that are not computed yet. The model's loss function, where it is the
causal or the masked one of transformers, takes the head's input from them and needs no logits; for everything else that
touches them they are computed first, and are what they always were.
"""
import functools
import sys

import torch
from torch.nn import functional as F

from . import losses
from ._autograd import autocast_type
from ._recognise import Unknown

_METADATA = {torch.Tensor.size, torch.Tensor.dim, torch.Tensor.numel, torch.Tensor.is_floating_point,
             torch.Tensor.element_size, torch.Tensor.get_device, torch.numel, torch.is_floating_point,
             *(getattr(torch.Tensor, name).__get__ for name in ("shape", "dtype", "device", "ndim", "layout", "is_cuda",
                                                                "is_cpu", "is_meta", "is_sparse", "is_quantized"))}


# Asked of the node of autograd's graph that logits are, computed or not.
_OF_THE_NODE = {torch.Tensor.register_hook, torch.Tensor.retain_grad, torch.autograd.grad,
                *(getattr(torch.Tensor, name).__get__ for name in ("requires_grad", "grad_fn", "grad", "is_leaf", "retains_grad",
                                                                   "_base"))}


class Logits(torch.Tensor):
    """linear(hidden, weight, bias), computed when it is first used. A node of the graph from the start: what reads it without
    saying so, as a function of torch.autograd does, has its gradient too."""

    @staticmethod
    def __new__(cls, source, cast, versions, wide=False):
        hidden, weight, _ = source
        made = torch.Tensor._make_wrapper_subclass(cls, (*hidden.shape[:-1], weight.shape[0]), device=hidden.device,
                                                   dtype=torch.float32 if wide else cast or hidden.dtype)
        made.__dict__.update(source=source, cast=cast, versions=versions, wide=wide, value=None)
        return made

    @staticmethod
    def of(hidden, weight, bias):
        versions = [each if each is None else each._version for each in (hidden, weight, bias)]
        return _Waiting.apply(hidden, weight, bias, autocast_type(hidden.device), versions)

    def linear(self):
        source, versions, cast = (self.__dict__[name] for name in ("source", "versions", "cast"))
        for each, version in zip(source, versions):
            if each is not None and (each._version != version or each.numel() and not each.untyped_storage().nbytes()):
                raise RuntimeError("logits beside a loss are computed when they are first used, and what they are computed from, "
                                   "the head's weight or its input, has changed since, as by an optimizer's step: use them "
                                   "before it, or train without this part, tt.patch(model, loss=False)")
        with torch.autocast(source[0].device.type, cast, enabled=cast is not None):
            value = F.linear(*source)
        return value.float() if self.__dict__["wide"] else value

    def compute(self):
        if self.__dict__["value"] is None:
            with torch.enable_grad():
                self.__dict__["value"] = _Value.apply(self)
        return self.__dict__["value"]

    @classmethod
    def __torch_function__(cls, function, types, arguments=(), named=None):
        if function in _METADATA or function in _OF_THE_NODE:
            with torch._C.DisableTorchFunctionSubclass():
                return function(*arguments, **(named or {}))
        if function is torch.Tensor.float and arguments[0].__dict__["value"] is None:
            return arguments[0] if arguments[0].dtype == torch.float32 else _Wide.apply(arguments[0])
        return function(*_computed(arguments), **_computed(named or {}))

    @classmethod
    def __torch_dispatch__(cls, function, types, arguments=(), named=None):
        return function(*_computed(arguments), **_computed(named or {}))


class _Waiting(torch.autograd.Function):
    """The logits' node: nothing but a linear layer's backward."""

    @staticmethod
    def forward(ctx, hidden, weight, bias, cast, versions):
        ctx.save_for_backward(hidden, weight)
        ctx.kinds = cast or hidden.dtype, hidden.dtype, weight.dtype, bias if bias is None else bias.dtype
        return Logits((hidden, weight, bias), cast, versions)

    @staticmethod
    def backward(ctx, grad):
        hidden, weight = ctx.saved_tensors
        kind, *kinds = ctx.kinds
        needs = ctx.needs_input_grad
        with torch.autocast(grad.device.type, enabled=False):
            rows = grad.to(kind).reshape(-1, grad.shape[-1])
            found = ((rows @ weight.to(kind)).view(hidden.shape) if needs[0] else None,
                     rows.t() @ hidden.to(kind).reshape(-1, hidden.shape[-1]) if needs[1] else None,
                     rows.sum(0) if needs[2] else None)
        return *(each if each is None else each.to(like) for each, like in zip(found, kinds)), None, None


class _Wide(torch.autograd.Function):
    """Logits in f32, which wait on."""

    @staticmethod
    def forward(ctx, logits):
        ctx.kind = logits.dtype
        return Logits(*(logits.__dict__[name] for name in ("source", "cast", "versions")), True)

    @staticmethod
    def backward(ctx, grad):
        return grad.to(ctx.kind)


class _Value(torch.autograd.Function):
    """What logits are, by the node that they are."""

    @staticmethod
    def forward(ctx, logits):
        return logits.linear()

    @staticmethod
    def backward(ctx, grad):
        return grad


class Unmade:
    """The same for models that give no logits in training, and no tensor: compiled code may make one."""

    def __init__(self, hidden, weight, bias):
        self.source, self.value = (hidden, weight, bias), None
        self.shape = (*hidden.shape[:-1], weight.shape[0])

    def compute(self):
        if self.value is None:
            self.value = F.linear(*self.source)
        return self.value

    def __getattr__(self, name):
        return getattr(self.compute(), name)

    def __getitem__(self, index):
        return self.compute()[index]

    def __mul__(self, other):
        return self.compute() * other

    def __truediv__(self, other):
        return self.compute() / other

    def __add__(self, other):
        return self.compute() + other

    def __sub__(self, other):
        return self.compute() - other

    __rmul__, __radd__ = __mul__, __add__

    @classmethod
    def __torch_function__(cls, function, types, arguments=(), named=None):
        arguments, named = torch.utils._pytree.tree_map_only(Unmade, Unmade.compute, (arguments, named or {}))
        return function(*arguments, **named)


def _without_logits(out):
    """What a model gives, without logits that nobody made."""
    if isinstance(out, tuple):
        return tuple(each for each in out if not isinstance(each, Unmade))
    if isinstance(out.get("logits"), Unmade):
        return type(out)(**{name: each for name, each in out.items() if name != "logits"})
    return out


def _computed(values):
    return torch.utils._pytree.tree_map_only(Logits, Logits.compute, values)


def _is_known(loss):
    module = sys.modules.get("transformers.loss.loss_utils")
    return module is not None and loss in (module.ForCausalLMLoss, module.ForMaskedLMLoss)


def _loss(theirs, logits, labels, vocab_size, num_items_in_batch=None, ignore_index=-100, shift_labels=None, **more):
    """ForCausalLMLoss or ForMaskedLMLoss, of logits that may not be there."""
    if type(logits) not in (Logits, Unmade) or logits.__dict__["value"] is not None or vocab_size != logits.shape[-1]:
        if shift_labels is not None:
            more["shift_labels"] = shift_labels
        return theirs(logits, labels, vocab_size, num_items_in_batch=num_items_in_batch, ignore_index=ignore_index, **more)
    if theirs.__name__ == "ForMaskedLMLoss":
        shift_labels = labels
    elif shift_labels is None:
        shift_labels = F.pad(labels, (0, 1), value=ignore_index)[..., 1:]
    hidden, weight, bias = logits.__dict__["source"]
    loss = losses.linear_cross_entropy(hidden, weight, shift_labels.reshape(hidden.shape[:-1]).to(hidden.device),
                                       linear_bias=bias, ignore_index=ignore_index,
                                       reduction="mean" if num_items_in_batch is None else "sum")
    if num_items_in_batch is None:
        return loss
    return loss / (num_items_in_batch.to(loss.device) if torch.is_tensor(num_items_in_batch) else num_items_in_batch)


def recognise(module):
    """The head of a model that trains by a loss of transformers' language models; None for what has no such loss."""
    if not isinstance(getattr(type(module), "loss_function", None), property) or not hasattr(module, "get_output_embeddings"):
        return None
    try:
        head = module.get_output_embeddings()
        if head is None or not any(each is head for each in module.modules()):
            return None
        loss = module.loss_function
    except Exception as error:  # whatever a stranger's code may raise
        raise Unknown(f"its head could not be found: {type(error).__name__}") from error
    if not _is_known(loss):
        raise Unknown(f"its loss is {getattr(loss, '__name__', loss)}")
    if getattr(type(head), "_trireme_base", type(head)) is not torch.nn.Linear:
        name = type(head).__name__  # others call theirs Linear too
        raise Unknown(f"its head is {name if name != 'Linear' else f'{type(head).__module__}.{name}'}")
    return head


def _can_wait(model, head, labels):
    """Whether the head's weight is still there when the loss is computed, and nobody else wants to see its result."""
    return (labels is not None and model.training and torch.is_grad_enabled() and hasattr(head, "_trireme_waits") and
            isinstance(head, torch.nn.Linear) and "forward" not in head.__dict__ and
            not (head._forward_hooks or head._forward_pre_hooks or head._backward_hooks) and
            type(head.weight) is torch.nn.Parameter and head.weight.numel() > 0)


def model_attributes(base):
    """What the class of such a model has in place of `base`'s."""
    find_loss = base.loss_function.fget

    @functools.wraps(base.forward)
    def forward(self, *inputs, **more):
        keeps = self._trireme_logits
        if keeps and torch.compiler.is_compiling():
            return base.forward(self, *inputs, **more)
        head = self.get_output_embeddings()
        if not _can_wait(self, head, more.get("labels")):
            return base.forward(self, *inputs, **more)
        head._trireme_waits = Logits if keeps else Unmade
        try:
            out = base.forward(self, *inputs, **more)
        finally:
            head._trireme_waits = None
        return out if keeps else _without_logits(out)

    def loss_function(self):
        theirs = find_loss(self)
        if self._trireme_logits and torch.compiler.is_compiling() or not _is_known(theirs):
            return theirs
        return functools.partial(_loss, theirs)

    return {"forward": forward, "loss_function": property(loss_function, base.loss_function.fset)}


def head_attributes(base):
    @functools.wraps(base.forward)
    def forward(self, input):
        kind = self._trireme_waits
        if kind is None or type(input) is not torch.Tensor:
            return base.forward(self, input)
        if kind is Unmade:
            return Unmade(input, self.weight, self.bias)
        if torch.compiler.is_compiling() or losses.is_transformed():
            return base.forward(self, input)
        return Logits.of(input, self.weight, self.bias)

    return {"forward": forward}

"""One autograd.Function for every operator: backward by its derived backward, forward mode by that one's backward."""
import torch
from torch import _C
from torch.autograd import forward_ad


class Call:
    """One call of an operator: all but its operands."""
    __slots__ = ("operator", "constants", "axes", "types", "wanted", "run", "spread", "row_block")

    def __init__(self, operator, constants, axes, types, wanted, run, spread=None, row_block=0):
        self.operator, self.constants, self.axes, self.types, self.wanted = operator, constants, axes, types, wanted
        self.run = run  # (operands, wanted) -> results; None: the kernel, on memory
        self.spread = spread  # over machines: derivatives are where their operator is
        self.row_block = row_block

    def where(self, operator):
        return operator if self.spread is None else self.spread.of(operator)


def needs_graph(operands):
    """Whether derivatives may be asked for later."""
    if forward_ad._current_level >= 0 and _C._is_fwd_grad_enabled():
        return True
    return torch.is_grad_enabled() and any(each is not None and each.requires_grad for each in operands)


def autocast_type(device):
    """The type to which torch casts what it multiplies now, None where it does not."""
    if torch.amp.is_autocast_available(device.type) and torch.is_autocast_enabled(device.type):
        return torch.get_autocast_dtype(device.type)
    return None


_PLAIN = (torch.Tensor, torch.nn.Parameter)


def is_plain(operands):
    """Whether memory may be touched at once: no subclass, no mode, no transform, no tracer has a say."""
    for each in operands:
        if each is not None and (type(each) not in _PLAIN or each.is_meta):
            return False
    return not (_C._len_torch_dispatch_stack() or _C._are_functorch_transforms_active() or _C._get_tracing_state())


def is_distributed(*arrays):
    return any(type(each).__name__ == "DTensor" for each in arrays)


def is_wrapped(operands):
    """Whether a gradient or a tangent is a batch (of torch.autograd.grad(is_grads_batched=True) and its kin), or was saved
    by a transform of torch.func that is over."""
    return any(each is not None and (_C._functorch.is_legacy_batchedtensor(each) or
                                     _C._functorch.is_functorch_wrapped_tensor(each)) for each in operands)


class Function(torch.autograd.function._SingleLevelFunction):
    """`apply(call, *operands)` gives all results. Of a single level: transforms of torch.func are seen to by the dispatcher
    (_register.autograd), and eager calls have none."""

    @staticmethod
    def forward(ctx, call, *operands):
        operator = call.operator
        wanted = call.wanted | operator.saved_results
        if call.run is not None:
            made = call.run(operands, wanted)
        else:
            made = operator.operator._run(operands, call.constants, call.axes, call.types, wanted, call.row_block)
        values = (*operands, *made)
        ctx.save_for_backward(*[values[k] for k in operator.saved])
        if call.run is None and wanted != call.wanted:  # what is saved alone is no result, and costs nothing in the graph
            wanted = call.wanted
            made = tuple([each if wanted >> k & 1 else None for k, each in enumerate(made)])
        ctx.wanted = wanted
        if forward_ad._current_level >= 0:
            ctx.save_for_forward(*values)
        ctx.call = call
        ctx.kinds = operator.kinds(operands, call.types) if operator.types_read else {}
        ctx.likes = [None if each is None else (each.dtype, each.shape) for each in operands]
        # A trace has a gradient for every result, used or not: there a maximum over rows takes no part, elsewhere its gradient
        # is refused when it arrives.
        left_out = operator.maxima if operator.maxima and _C._len_torch_dispatch_stack() else ()
        without = [each for k, each in enumerate(made)
                   if each is not None and not (wanted >> k & 1 and each.is_floating_point() and k not in left_out)]
        if without:
            ctx.mark_non_differentiable(*without)
        ctx.set_materialize_grads(False)
        return made

    @staticmethod
    def backward(ctx, *grads):
        call = ctx.call
        return None, *gradients(call.operator, call, ctx.saved_tensors, grads, ctx.needs_input_grad[1:], ctx.likes,
                                ctx.kinds)

    @staticmethod
    def jvp(ctx, _, *tangents):
        operator = ctx.call.operator
        # Primals without the tangents of this level, which would ask for forward mode again. Those of outer ones go on.
        values = [None if each is None else forward_ad.unpack_dual(each).primal for each in ctx.saved_for_forward]
        with forward_ad._set_fwd_grad_enabled(True):
            return tangents_of_results(operator, ctx.call, ctx.wanted, values, tangents, ctx.kinds)


def gradients(self, call, saved, grads, needed, likes, kinds):
    """Gradients of all operands from those of all results; None where there is none. `saved`: tensors, as self.saved says;
    `likes`: the operands' types and shapes; `kinds`: names of all types by key, where a backward may ask for one."""
    found = [None] * len(self.operands)
    for grad in grads:
        if grad is not None:
            break
    else:
        return found
    for k in self.maxima:
        if grads[k] is not None:
            raise NotImplementedError(f"{self.name}: no gradient arrives for '{self.results[k]}', a colmax: it would be shared by "
                                      "the elements that equal the maximum, and how many they are is known when all rows are "
                                      "done; detach it")
    for k in self.tables:
        if needed[k]:
            raise RuntimeError(f"{self.name}: the rows of {self.operands[k]} are picked, and there is no gradient to a picked "
                               "table; detach it")
    links = self.links
    link = links[0]
    for k in self.statistics:
        if grads[k] is not None:
            link = links[1]
    wanted, types = link.wanted(needed, tuple([like and like[0] for like in likes]))
    if not wanted:
        return found
    given = [grads[k] if is_grad else saved[k] if k >= 0 else None for is_grad, k in link.sources]
    arrives = False
    for k in link.arriving:  # no any(): a generator costs more than what it looks at
        if grads[k] is not None:
            arrives = True
    if not arrives and not link.by.has_shape(given):
        # Of results that depend on operands by steps alone, as powers of two do.
        arrived = next(grad for grad in grads if grad is not None)
        return [arrived.new_zeros(like[1], dtype=like[0]) if like and needs else None for like, needs in zip(likes, needed)]
    if link.by.types_read:
        types += link.by.types_of_absent(given, kinds)
    by = link.by if call.spread is None else call.spread.of(link.by)
    made = by.call(given, [call.constants[k] for k in link.constants], call.axes, types, wanted)
    for k, place in enumerate(link.targets):
        if wanted >> k & 1:  # a weight may have come with ones for the axes it lacks
            one = made[k]
            found[place] = one if one.shape == likes[place][1] else one.view(likes[place][1])
    return found


def tangents_of_results(self, call, given_results, values, tangents, kinds):
    """Forward mode. The backward of all results is linear in their gradients: its own backward, given the operands' tangents
    as gradients of what it gives, gives the results' tangents as gradients of what it takes. `values`: operands, results."""
    for k in self.maxima:
        if given_results >> k & 1:
            raise NotImplementedError(f"{self.name}: '{self.results[k]}' is a colmax, and has no tangent; leave it out of the "
                                      "results")
    full = self.root.full_backward

    def twice(key):
        return gradient_key(gradient_key(key, full.level), full.level + 1)

    given = {twice(key): tangent for key, tangent in zip(self.operand_keys, tangents)
             if tangent is not None and not tangent._is_zerotensor()}
    second = full.backward if given.keys() <= set(full.backward.operand_keys) else full.full_backward
    known = {**dict(zip(self.operand_keys + self.result_keys, values)), **given}
    made = values[len(self.operands):]
    differentiable = [given_results >> k & 1 and self.has_derivative(k, each) for k, each in enumerate(made)]
    places = [second.result_keys.index(twice(key)) if has and twice(key) in second.result_keys else -1
              for key, has in zip(self.result_keys, differentiable)]
    wanted = sum(1 << place for place in places if place >= 0)
    if wanted and not given.keys().isdisjoint(second.operand_keys):  # else no result depends on what has a tangent
        types = second.types_of({place: each.dtype for place, each in zip(places, made) if place >= 0})
        constants = [call.constants[list(self.constants).index(name)] for name in second.constants]
        operands = [known.get(key) for key in second.operand_keys]
        types += second.types_of_absent(operands, kinds)
        found = call.where(second).call(operands, constants, call.axes, types, wanted)
    else:
        places = [-1] * len(made)
    return tuple(found[place].view(each.shape) if place >= 0 else torch.zeros_like(each) if has else None
                 for place, each, has in zip(places, made, differentiable))


def gradient_key(key, level):
    """What the gradient of a value is called among an operator of that level's operands and results."""
    return f"{key}__d{level}"


def value_of(key, values):
    """The one among `values` that a key is a gradient of, of whichever order; None if there is none."""
    while key and key not in values:
        key = key.rpartition("__d")[0]
    return key or None

"""Puts Trireme's kernels into a model that others wrote: its norms, gated units, rotary embeddings, sums with the residual
stream that are normalised next, and its loss, each with its own semantics.

Nothing is taken for granted by name or by class. _recognise tries each module; what it does not know is left alone, and the
report says why.
"""
import collections
import functools

import torch

from . import _head, _rewrite, functional
from ._autograd import is_distributed
from ._kernels import CLAMPED, GATED, GATED_NORMS, NORMS
from ._recognise import HOOKS, Unknown, fingerprint, has_experts, looks_like_norm, projections, recognise_gated, recognise_norm

_SETTINGS = ("_trireme_waits", "_trireme_logits", "_trireme_norm", "_trireme_eps", "_trireme_types", "_trireme_widened", "_trireme_recast",
             "_trireme_gate", "_trireme_group", "_trireme_unit", "_trireme_order", "_trireme_limits")


class Report(dict[str, str]):
    """Module's name -> kernel's name ("a, b" where there are two; "" is the model itself). `left`: those that look as if there
    were a kernel and were left alone -> why."""

    def __init__(self) -> None:
        super().__init__()
        self.left: dict[str, str] = {}

    def __str__(self) -> str:
        counts = collections.Counter(self.values())
        lines = [f"{kernel}: {count} modules" for kernel, count in counts.items()]
        reasons = collections.defaultdict(list)
        for name, why in self.left.items():
            reasons[why].append(name)
        lines += [f"left alone, {why}: {names[0]}" + (f" and {len(names) - 1} more" if len(names) > 1 else "")
                  for why, names in reasons.items()]
        return "\n".join(lines) or "nothing to patch"


# ---- forwards: None where a call is none of those that were tried ----

def _norm(self, x):
    weight = self._parameters.get("weight")
    pair = x.dtype, torch.float32 if weight is None else weight.dtype
    if pair not in self._trireme_types or (weight is not None and x.shape[-1] != weight.shape[0]) or _rewrite.is_cast(self, x):
        return None
    return NORMS[self._trireme_norm].run(self, x, getattr(self, self._trireme_eps))


def _gated_norm(self, x, gate):
    weight = self._parameters["weight"]
    if gate is None or (x.dtype, gate.dtype, weight.dtype) not in self._trireme_types or x.shape != gate.shape or \
            x.shape[-1] != weight.shape[0] or x.device != gate.device or _rewrite.is_cast(self, x):
        return None
    return GATED_NORMS[self._trireme_norm].run(self, x, gate, getattr(self, self._trireme_eps), self._trireme_group)


def _is_watched(module):
    """Whether somebody has hooks on its calls or those inside. A trace's want to see what runs, and change nothing."""
    return any(not getattr(hook, "is_trace", False) for name in HOOKS for hook in module.__dict__[name].values()) or \
        any(child is not None and _is_watched(child) for child in module._modules.values())


def _gated(self, x):
    if any(name not in self._trireme_order and child is not None and _is_watched(child) for name, child in self._modules.items()):
        return None  # an activation that the kernel would not call
    kernel = GATED.get(self._trireme_unit) or CLAMPED[self._trireme_unit]
    if self._trireme_order[0] == "gate_up_proj":
        gate, up = self.gate_up_proj(x).chunk(2, dim=-1)
    elif self._trireme_order[0] == "gate_proj":
        gate = self.gate_proj(x)
        up = self.up_proj(x)
    else:
        up = self.up_proj(x)
        gate = self.gate_proj(x)
    types = {"y": torch.promote_types(up.dtype, gate.dtype)} if up.dtype != gate.dtype else None
    return self.down_proj(kernel(up, gate, types=types, **self._trireme_limits))


def _torch_rms_norm(self, x):
    return None if _rewrite.autocasts(x) else functional.rms_norm(x, self.normalized_shape, self.weight, self.eps)


def _torch_layer_norm(self, x):
    return None if _rewrite.autocasts(x) else functional.layer_norm(x, self.normalized_shape, self.weight, self.bias, self.eps)


FORWARDS = {forward.__name__: forward for forward in (_norm, _gated_norm, _gated, _torch_rms_norm, _torch_layer_norm)}
TORCHS = {torch.nn.RMSNorm: ("rms_norm", "_torch_rms_norm"), torch.nn.LayerNorm: ("layer_norm", "_torch_layer_norm")}


# ---- models ----

def _kernel_attributes(base, name):
    ours = FORWARDS[name]

    @functools.wraps(base.forward)
    def forward(self, *inputs, **more):
        fits = len(inputs) == 1 and not more and not is_distributed(inputs[0], self._parameters.get("weight"))
        made = ours(self, inputs[0]) if fits else None
        return base.forward(self, *inputs, **more) if made is None else made

    @functools.wraps(base.forward)
    def forward_with_gate(self, *inputs, **more):
        given = *inputs, *(more[name] for name in more if name == self._trireme_gate)
        fits = inputs and len(given) == 2 == len(inputs) + len(more) and not is_distributed(*given, self._parameters["weight"])
        made = ours(self, *given) if fits else None
        return base.forward(self, *inputs, **more) if made is None else made

    return {"forward": forward_with_gate if ours is _gated_norm else forward}


_OTHERS = {"_rope": _rewrite.rotary_attributes, "_residual": _rewrite.residual_attributes,
           "_loss": _head.model_attributes, "_head": _head.head_attributes}


@functools.lru_cache(maxsize=None)
def _patched_class(base, name, *details):
    """A class that differs from `base` in its forward alone. It pickles as `base` and the forward's name."""
    attributes = _kernel_attributes(base, name) if name in FORWARDS else _OTHERS[name](base, *details)

    def reduce(self, protocol):
        steps, kind = [], type(self)
        while hasattr(kind, "_trireme_base"):
            steps.append(kind._trireme_step)
            kind = kind._trireme_base
        return _restore, (kind, tuple(reversed(steps))), self.__dict__

    return type(base)(base.__name__, (base,), {
        **attributes, "_trireme_base": base, "_trireme_forward": name, "_trireme_step": (name, *details),
        "__reduce_ex__": reduce, "__module__": base.__module__, "__qualname__": base.__qualname__})


def _restore(base, steps):
    for step in steps:
        base = _patched_class(base, *step)
    return base.__new__(base)


def _recognise(module, norms, gated):
    """(kernel's name, forward's name, settings), None for what is neither, or an Unknown."""
    kind = type(module)
    if kind in TORCHS:
        found = (lambda: (*TORCHS[kind], {})) if norms else None
    elif projections(module):
        found = (lambda: _with_forward("_gated", recognise_gated(module))) if gated else None
    else:
        found = (lambda: _with_norm(recognise_norm(module))) if norms and looks_like_norm(module) else None
    if found is None:
        return None
    if "forward" in module.__dict__:
        return Unknown("its forward was replaced")
    try:
        return found()
    except Unknown as why:
        return why


def _with_norm(found):
    return _with_forward("_gated_norm" if "_trireme_gate" in found[1] else "_norm", found)


def _with_forward(forward, found):
    kernel, settings = found
    return kernel, forward, settings


def patch(model: torch.nn.Module, norms: bool = True, gated: bool = True, rope: bool = True, residual: bool = True,
          loss: bool = True, logits: bool = True, verbose: bool = False) -> Report:
    """Patches a model in place: norms, gated units, rotary embeddings, sums with the residual stream that are normalised in the
    next line, and the loss of `forward(labels=...)`. Gives a dict: module's name -> kernel's name, whose `left` says why
    others were left alone; `verbose` prints it. With `logits=False` a forward that trains with labels gives no logits beside its
    loss, also where torch.compile compiles it; else they are computed when they are first used, and compiled code has them.

    Weights and state_dict stay, and so does what isinstance says; eps is read from the module at every call. A call that is
    unlike those that were tried (more arguments, other types) goes to the module's own forward. `unpatch` undoes it.
    """
    report = Report()
    decided = {}
    modules = []
    for path, module in model.named_modules():
        if isinstance(module, torch.jit.ScriptModule):
            report.left[path] = "it is compiled by torch.jit"
        else:
            modules.append((path, module))
    for path, module in modules:
        if hasattr(type(module), "_trireme_base"):
            continue
        if gated and has_experts(module):
            report.left[path] = "its experts are in one array, and their gated units in a loop of its own"
            continue
        key = fingerprint(module) if not module._modules or projections(module) else None
        if key is None:
            continue
        if key not in decided:
            decided[key] = _recognise(module, norms, gated)
        found = decided[key]
        if isinstance(found, Unknown):
            report.left[path] = str(found)
        elif found is not None:
            kernel, forward, settings = found
            module.__dict__.update(settings)
            module.__class__ = _patched_class(type(module), forward)
            report[path] = kernel
    change_loss = functools.partial(_patch_loss, logits=logits, heads=set())
    for wanted, change in ((rope, _patch_rope), (residual, _patch_residual), (loss, change_loss)):
        for path, module in modules if wanted else ():
            try:
                kernel, why = change(module)
            except Unknown as unknown:
                kernel, why = None, str(unknown)
            if kernel is not None:
                report[path] = f"{report[path]}, {kernel}" if path in report else kernel
            if why is not None:
                report.left[path] = f"{report.left[path]}; {why}" if path in report.left else why
    if verbose:
        print(report)
    return report


def _steps(module):
    """What was done to a module already."""
    kind, found = type(module), set()
    while hasattr(kind, "_trireme_base"):
        found.add(kind._trireme_forward)
        kind = kind._trireme_base
    return found


def _exchange(module, *step):
    if "forward" in module.__dict__:
        raise Unknown("its forward was replaced")
    module.__class__ = _patched_class(type(module), *step)


def _patch_rope(module):
    """The kernel's name, and why something beside it was left; each None where there is none."""
    if "_rope" in _steps(module) or not _rewrite.called_rotary(type(module)):
        return None, None
    taken, left = _rewrite.known_rotary(type(module))
    if taken:
        _exchange(module, "_rope", taken)
    return "rope" if taken else None, ", ".join(dict.fromkeys(left.values())) or None


def _patch_residual(module):
    names = [name for name, child in module._modules.items() if child is not None and
             _steps(child) & {"_norm", "_torch_layer_norm", "_torch_rms_norm"}]
    if not names or "_residual" in _steps(module):
        return None, None
    fused, sums = _rewrite.fused_norms(type(module), tuple(names))
    if fused:
        _exchange(module, "_residual", fused)
    return f"residual sum with {', '.join(fused)}" if fused else None, \
        ", ".join(f"the sum before {name} has another form: {line}" for name, line in sums.items()) or None


def _patch_loss(module, logits, heads):
    """`heads`: those of models that stand around this one."""
    if "_loss" in _steps(module):
        heads.add(module.get_output_embeddings())
        return None, None
    head = _head.recognise(module)
    if head is None:
        return None, None
    if head in heads:
        raise Unknown("its head is that of the model around it, whose forward has the loss")
    heads.add(head)
    _exchange(module, "_loss")
    if "_head" not in _steps(head):
        _exchange(head, "_head")
    module.__dict__["_trireme_logits"] = logits
    head.__dict__["_trireme_waits"] = None
    return "linear_cross_entropy", None


def unpatch(model: torch.nn.Module) -> None:
    """Gives a patched model its own forwards back."""
    for module in model.modules():
        while hasattr(type(module), "_trireme_base"):
            module.__class__ = type(module)._trireme_base
            for setting in _SETTINGS:
                module.__dict__.pop(setting, None)

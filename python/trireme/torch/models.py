"""Puts Trireme's kernels into a model that others wrote: its norms and gated units, each with its own semantics.

Nothing is taken for granted by name. A module that looks like a norm or a gated unit is run on a few samples, in bf16 too,
where roundings show; it is patched if a kernel gives the same, and left alone otherwise.
"""
import copy
import functools

import torch
from torch.nn import functional as F

from . import functional
from ._operator import named, op

EPS_NAMES = ("variance_epsilon", "eps", "epsilon", "norm_eps")

# The activation rounded to storage before the product, as modules that call one after the other do.
_GATED = "{}(x[i,j], gate[i,j]) -> (y[i,j])\n    y = cast({}(gate), gate) * x\n"
ACTIVATIONS = {
    "silu": (F.silu, named("swiglu_llama")),
    "gelu_tanh": (lambda x: F.gelu(x, approximate="tanh"), op(_GATED.format("geglu_rounded", "gelu_tanh"))),
    "gelu": (F.gelu, op(_GATED.format("geglu_erf_rounded", "gelu"))),
    "relu": (F.relu, op(_GATED.format("reglu_rounded", "relu"))),
}


# ---- norms ----

def _eps(module):
    return getattr(module, module._trireme_eps)


def _llama_norm(self, hidden_states):
    """weight * (x * rstd rounded to x's type)."""
    promoted = torch.promote_types(self.weight.dtype, hidden_states.dtype)
    types = {"y": promoted} if promoted != hidden_states.dtype else None
    return named("rms_norm_llama")(hidden_states, self.weight, eps=_eps(self), types=types)


def _gemma_norm(self, x):
    """(1 + weight), all in f32, rounded once."""
    return named("rms_norm")(x, self.weight, eps=_eps(self), offset=1.0)


def _plain_norm(self, x):
    return named("rms_norm")(x, self.weight, eps=_eps(self))


def _torch_rms_norm(self, x):
    return functional.rms_norm(x, self.normalized_shape, self.weight, self.eps)


def _torch_layer_norm(self, input):
    return functional.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)


NORMS = {"rms_norm_llama": _llama_norm, "rms_norm, offset 1": _gemma_norm, "rms_norm": _plain_norm}
TORCHS = {torch.nn.RMSNorm: ("rms_norm", _torch_rms_norm), torch.nn.LayerNorm: ("layer_norm", _torch_layer_norm)}


@torch.no_grad()
def _norm_like(module):
    """The kernel that does what a norm of one's own does, or None."""
    weight = getattr(module, "weight", None)
    eps = next((name for name in EPS_NAMES if isinstance(getattr(module, name, None), float)), None)
    if not isinstance(weight, torch.Tensor) or weight.dim() != 1 or eps is None or len(list(module.children())):
        return None
    generator = torch.Generator().manual_seed(0)
    probe = copy.deepcopy(module).to("cpu", torch.bfloat16)
    probe.weight.copy_(torch.randn(weight.shape, generator=generator))
    probe._trireme_eps = eps
    x = torch.randn((64, weight.numel()), generator=generator).to(torch.bfloat16) * 3
    try:
        wanted = probe(x)
        wide = probe.float()(x.float())
    except Exception:  # it wants other arguments: no norm of this kind
        return None
    if not isinstance(wanted, torch.Tensor) or wanted.shape != x.shape:
        return None
    best = None
    for name, forward in NORMS.items():
        made = forward(probe.to(torch.bfloat16), x)
        close = torch.allclose(forward(probe.float(), x.float()), wide, rtol=1e-4, atol=1e-5)
        # Sums in another order move a few values by a rounding; a rounding more or less moves a third of them.
        differing = (made != wanted).float().mean().item() if made.dtype == wanted.dtype else 1.0
        if close and differing < 0.02 and (best is None or differing < best[0]):
            best = (differing, name, forward)
    if best is None:
        return None
    return best[1], best[2], {"_trireme_eps": eps}


# ---- gated units ----

def _separate(self, x):
    return self.down_proj(ACTIVATIONS[self._trireme_activation][1](self.up_proj(x), self.gate_proj(x)))


def _packed(self, x):
    gate, up = self.gate_up_proj(x).chunk(2, dim=-1)
    return self.down_proj(ACTIVATIONS[self._trireme_activation][1](up, gate))


def _has(module, *names):
    return all(isinstance(getattr(module, name, None), torch.nn.Module) for name in names)


@torch.no_grad()
def _gated_like(module):
    """The kernel of an MLP with a gate, or None."""
    forward = _separate if _has(module, "gate_proj", "up_proj", "down_proj") else \
        _packed if _has(module, "gate_up_proj", "down_proj") else None
    activation = next((each for each in (getattr(module, name, None) for name in ("act_fn", "activation_fn", "act"))
                       if callable(each)), None)
    if forward is None or activation is None:
        return None
    sample = torch.linspace(-6, 6, 513)
    try:
        found = next((name for name, (function, _) in ACTIVATIONS.items()
                      if torch.allclose(activation(sample), function(sample), rtol=1e-6, atol=1e-7)), None)
        first = module.gate_proj if forward is _separate else module.gate_up_proj
        x = torch.randn((3, first.in_features), generator=torch.Generator().manual_seed(0)).to(first.weight)
        wanted = module(x)
    except Exception:
        return None
    if found is None:
        return None
    module.__dict__["_trireme_activation"] = found
    close = torch.allclose(forward(module, x).float(), wanted.float(), rtol=2e-2, atol=1e-3 * float(wanted.abs().max()))
    del module.__dict__["_trireme_activation"]
    return (ACTIVATIONS[found][1].__name__, forward, {"_trireme_activation": found}) if close else None


# ---- models ----

FORWARDS = {forward.__name__: forward for forward in
            [*NORMS.values(), *(forward for _, forward in TORCHS.values()), _separate, _packed]}


@functools.lru_cache(maxsize=None)
def _patched_class(base, forward):
    """A class that differs from `base` in its forward alone. It pickles as `base` and the forward's name."""
    def reduce(self, protocol):
        return _restore, (base, forward), self.__dict__

    return type(base.__name__, (base,), {"forward": FORWARDS[forward], "_trireme_base": base, "__reduce_ex__": reduce,
                                         "__module__": base.__module__, "__qualname__": base.__qualname__})


def _restore(base, forward):
    return torch.nn.Module.__new__(_patched_class(base, forward))


def patch(model: torch.nn.Module, norms: bool = True, gated: bool = True) -> dict[str, str]:
    """Patches the norms and gated units of a model in place, and gives a dict: module's name -> kernel's name.

    Weights and state_dict stay, and so does what isinstance says; eps is read from the module at every call. `unpatch`
    undoes it.
    """
    patched = {}
    decided = {}  # modules of one class and one activation are asked once
    for path, module in model.named_modules():
        kind = type(module)
        if hasattr(kind, "_trireme_base"):
            continue
        if kind in TORCHS:
            found = (*TORCHS[kind], {}) if norms else None
        else:
            key = (kind, type(getattr(module, "act_fn", None)))
            if key not in decided:
                decided[key] = (_norm_like(module) if norms else None) or (_gated_like(module) if gated else None)
            found = decided[key]
        if found is None:
            continue
        name, forward, settings = found
        module.__dict__.update(settings)
        module.__class__ = _patched_class(kind, forward.__name__)
        patched[path] = name
    return patched


def unpatch(model: torch.nn.Module) -> None:
    """Gives a patched model its own forwards back."""
    for module in model.modules():
        base = getattr(type(module), "_trireme_base", None)
        if base is not None:
            module.__class__ = base
            for setting in ("_trireme_eps", "_trireme_activation"):
                module.__dict__.pop(setting, None)

"""The norms and gated units of others' models that there are kernels for."""
import dataclasses

import torch

from ._operator import named, op


@dataclasses.dataclass(frozen=True)
class Norm:
    name: str
    operator: str
    parameters: tuple[str, ...]
    offset: float = 0.0
    promotes: bool = False  # the result has the wider type of input and weight, else the input's

    def run(self, module, x, eps):
        names = ("weight", "bias") if self.operator == "layer_norm" else ("weight",)
        given = [getattr(module, name, None) for name in names]
        types = None
        if self.promotes and given[0].dtype != x.dtype:
            types = {"y": torch.promote_types(given[0].dtype, x.dtype)}
        constants = {"offset": self.offset} if self.offset else {}
        return named(self.operator)(x, *given, eps=eps, types=types, **constants)

    def run_added(self, module, x, residual, eps):
        """(norm(x + residual), x + residual), the sum rounded before it is normalised."""
        names = ("weight", "bias") if self.operator == "layer_norm" else ("weight",)
        given = [getattr(module, name, None) for name in names]
        types = {}
        if self.promotes and given[0].dtype != x.dtype:
            types = {"y": torch.promote_types(given[0].dtype, x.dtype)}
        constants = {"offset": self.offset} if self.offset else {}
        return _ADDED[self.operator](x, residual, *given, eps=eps, types=types, results=("y", "h"), **constants)


_ADDED = {"rms_norm": named("add_rms_norm"), "layer_norm": named("add_layer_norm"), "rms_norm_llama": op("""\
add_rms_norm_llama(x[i,j], residual[i,j], gamma[j] = 1, eps = 1e-6) -> (y[i,j], h[i,j], rstd[i])
    h    = cast(x + residual, h)
    rstd = rsqrt(mean(h * h) + eps)
    y    = cast(h * rstd, h) * gamma
""")}


NORMS = {each.name: each for each in [
    Norm("rms_norm_llama", "rms_norm_llama", ("weight",), promotes=True),
    Norm("rms_norm", "rms_norm", ("weight",)),
    Norm("rms_norm, offset 1", "rms_norm", ("weight",), offset=1.0),
    Norm("rms_norm, promoted", "rms_norm", ("weight",), promotes=True),
    Norm("rms_norm, no weight", "rms_norm", ()),
    Norm("layer_norm", "layer_norm", ("weight", "bias")),
    Norm("layer_norm, no bias", "layer_norm", ("weight",)),
    Norm("layer_norm, no weight", "layer_norm", ()),
]}

# The activation rounded to storage before the product, as modules that call one after the other do.
_GATED = "{}(x[i,j], gate[i,j]) -> (y[i,j])\n    y = cast({}(gate), gate) * x\n"
GATED = {each.__name__: each for each in [
    named("swiglu_llama"), op(_GATED.format("geglu_rounded", "gelu_tanh")), op(_GATED.format("geglu_erf_rounded", "gelu")),
    op(_GATED.format("reglu_rounded", "relu")), op(_GATED.format("sigmoid_gate_rounded", "sigmoid"))]}
# Those of gates and values that were clamped before; a limit has its storage type's value.
CLAMPED = {each.__name__: each for each in [op("""clamped_swiglu_rounded(x[i,j], gate[i,j], limit) -> (y[i,j])
    g = cast(min(gate, limit), gate)
    y = cast(silu(g), gate) * cast(clamp(x, -limit, limit), x)
""")]}

"""The norms and gated units of others' models that there are kernels for."""
import dataclasses
import itertools

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
        return _OPERATORS[self.operator](x, *self._parameters(module), eps=eps, types=self._types(module, x) or None,
                                         **self._constants())

    def run_added(self, module, x, residual, eps):
        """(norm(x + residual), x + residual), the sum rounded before it is normalised."""
        return _ADDED[self.operator](x, residual, *self._parameters(module), eps=eps, types=self._types(module, x),
                                     results=("y", "h"), **self._constants())

    def _parameters(self, module):
        names = ("weight", "bias") if self.operator.startswith("layer_norm") else ("weight",)
        return [getattr(module, name, None) for name in names]

    def _types(self, module, x):
        weight = getattr(module, "weight", None)
        return {"y": torch.promote_types(weight.dtype, x.dtype)} if self.promotes and weight.dtype != x.dtype else {}

    def _constants(self):
        return {"offset": self.offset} if self.offset else {}


# Weights that stand for one more than they are: the sum is rounded to their storage, as torch's addition does.
_ONE_PLUS = """\
    average = mean({x})
    rstd    = rsqrt(mean(({x} - average) * ({x} - average)) + eps)
    y       = ({x} - average) * rstd * cast(gamma + 1, gamma) + beta
"""
_OPERATORS = {"rms_norm": named("rms_norm"), "layer_norm": named("layer_norm"), "rms_norm_llama": named("rms_norm_llama"),
              "layer_norm_one_plus": op("layer_norm_one_plus(x[i,j], gamma[j], beta[j] = 0, eps = 1e-5) -> (y[i,j], average[i], "
                                        "rstd[i])\n" + _ONE_PLUS.format(x="x"))}
_ADDED = {"rms_norm": named("add_rms_norm"), "layer_norm": named("add_layer_norm"), "rms_norm_llama": op("""\
add_rms_norm_llama(x[i,j], residual[i,j], gamma[j] = 1, eps = 1e-6) -> (y[i,j], h[i,j], rstd[i])
    h    = cast(x + residual, h)
    rstd = rsqrt(mean(h * h) + eps)
    y    = cast(h * rstd, h) * gamma
"""), "layer_norm_one_plus": op("""\
add_layer_norm_one_plus(x[i,j], residual[i,j], gamma[j], beta[j] = 0, eps = 1e-5) -> (y[i,j], h[i,j], average[i], rstd[i])
    h       = cast(x + residual, h)
""" + _ONE_PLUS.format(x="h"))}


NORMS = {each.name: each for each in [
    Norm("rms_norm_llama", "rms_norm_llama", ("weight",), promotes=True),
    Norm("rms_norm", "rms_norm", ("weight",)),
    Norm("rms_norm, offset 1", "rms_norm", ("weight",), offset=1.0),
    Norm("rms_norm, promoted", "rms_norm", ("weight",), promotes=True),
    Norm("rms_norm, no weight", "rms_norm", ()),
    Norm("layer_norm", "layer_norm", ("weight", "bias")),
    Norm("layer_norm, no bias", "layer_norm", ("weight",)),
    Norm("layer_norm, no weight", "layer_norm", ()),
    Norm("layer_norm, one plus", "layer_norm_one_plus", ("weight", "bias")),
    Norm("layer_norm, one plus, no bias", "layer_norm_one_plus", ("weight",)),
]}


@dataclasses.dataclass(frozen=True)
class GatedNorm:
    """A norm whose forward takes a gate beside the input. `rounds`: to storage wherever modules that compute by torch's
    operations do; `grouped`: each group of columns is normalised by itself."""
    gate_first: bool
    rounds: bool
    activation: str
    grouped: bool

    @property
    def name(self):
        return ", ".join(["gated_rms_norm", *(word for word, has in [
            ("gate first", self.gate_first), ("rounded", self.rounds), (self.activation, self.activation != "silu"),
            ("in groups", self.grouped)] if has)])

    @property
    def operator(self):
        """Written when it is first asked for: a model has one of them, if any."""
        if self == GatedNorm(False, False, "silu", False):
            return named("gated_rms_norm")
        group, constant = (", j / group", ", group = 64") if self.grouped else ("", "")
        gate = f"{self.activation}(gate)"
        value = "v" if self.gate_first else "x"
        normed = f"cast({value} * rstd, x)" if self.rounds else f"{value} * rstd"
        scaled = f"cast({normed} * gamma, gamma)" if self.rounds and not self.gate_first else f"{normed} * gamma"
        lines = [*[f"v    = x * {gate}"] * self.gate_first, f"rstd = rsqrt(mean({value} * {value}{group}) + eps)",
                 f"y    = {scaled}" if self.gate_first else f"y    = {scaled} * {gate}"]
        return op(f"{self.name.replace(', ', '_').replace(' ', '_')}(x[i,j], gate[i,j], gamma[j], eps = 1e-6{constant}) -> "
                  f"(y[i,j], rstd[i{group}])\n" + "".join(f"    {line}\n" for line in lines))

    def run(self, module, x, gate, eps, group=None):
        weight = module.weight
        promotes = self.gate_first and self.rounds and weight.dtype != x.dtype
        return self.operator(x, gate, weight, eps=eps, **({"group": group} if self.grouped else {}),
                             types={"y": torch.promote_types(weight.dtype, x.dtype)} if promotes else None)


GATED_NORMS = {each.name: each for each in (GatedNorm(*each) for each in itertools.product(
    (False, True), (False, True), ("silu", "sigmoid"), (False, True)))}

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

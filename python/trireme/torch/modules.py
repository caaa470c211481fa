"""Modules with torch.nn's names, constructor arguments and state_dict keys, and those of fusions."""
import math

import torch
from torch import Tensor

from . import functional, losses


class RMSNorm(torch.nn.RMSNorm):
    def forward(self, x: Tensor) -> Tensor:
        return functional.rms_norm(x, self.normalized_shape, self.weight, self.eps)


class LayerNorm(torch.nn.LayerNorm):
    def forward(self, input: Tensor) -> Tensor:
        return functional.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)


class GroupNorm(torch.nn.GroupNorm):
    def forward(self, input: Tensor) -> Tensor:
        return functional.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)


def _dim(name, dim, input):
    """torch's own choice, and warning, where none was made."""
    return torch.nn.functional._get_softmax_dim(name, input.dim(), 3) if dim is None else dim


class Softmax(torch.nn.Softmax):
    def forward(self, input: Tensor) -> Tensor:
        return functional.softmax(input, _dim("softmax", self.dim, input))


class LogSoftmax(torch.nn.LogSoftmax):
    def forward(self, input: Tensor) -> Tensor:
        return functional.log_softmax(input, _dim("log_softmax", self.dim, input))


class CrossEntropyLoss(torch.nn.CrossEntropyLoss):
    """softcap, z_loss, in_place: as of cross_entropy."""

    def __init__(self, weight: Tensor | None = None, size_average: bool | None = None, ignore_index: int = -100,
                 reduce: bool | None = None, reduction: str = "mean", label_smoothing: float = 0.0, *,
                 softcap: float | None = None, z_loss: float = 0.0, in_place: bool = False) -> None:
        super().__init__(weight, size_average, ignore_index, reduce, reduction, label_smoothing)
        self.softcap, self.z_loss, self.in_place = softcap, z_loss, in_place

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return losses.cross_entropy(input, target, self.weight, ignore_index=self.ignore_index, reduction=self.reduction,
                                    label_smoothing=self.label_smoothing, softcap=self.softcap, z_loss=self.z_loss,
                                    in_place=self.in_place)


class LinearCrossEntropyLoss(torch.nn.modules.loss._WeightedLoss):
    """torch.nn.LinearCrossEntropyLoss, of torch before 2.13 too: a linear layer, `linear`, and its cross entropy. softcap,
    z_loss, chunk, acc_dtype: as of linear_cross_entropy."""

    def __init__(self, in_features: int, num_classes: int, *, out_features: tuple[int, ...] = (), bias: bool = False,
                 device: torch.device | str | int | None = None, dtype: torch.dtype | None = None, reduction: str = "mean",
                 weight: Tensor | None = None, ignore_index: int | None = None, label_smoothing: float = 0.0,
                 options: "torch.nn.LinearCrossEntropyOptions | None" = None, softcap: float | None = None,
                 z_loss: float = 0.0, chunk: int | None = None, acc_dtype: torch.dtype | None = None) -> None:
        if weight is not None and weight.shape != (num_classes,):
            raise RuntimeError(f"expected weight shape to be {(num_classes,)}, got {tuple(weight.shape)}")
        if not 0.0 <= label_smoothing <= 1.0:
            raise RuntimeError(f"expected label_smoothing to be in range [0, 1], got {label_smoothing}")
        super().__init__(weight, reduction=reduction)
        self.num_classes, self.out_features, self.options = num_classes, out_features, options
        self.ignore_index, self.label_smoothing = ignore_index, label_smoothing
        self.softcap, self.z_loss, self.chunk, self.acc_dtype = softcap, z_loss, chunk, acc_dtype
        self.linear = torch.nn.Linear(in_features, math.prod(out_features, start=num_classes), bias, device, dtype)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        shape, bias = (self.num_classes, *self.out_features), self.linear.bias
        return losses.linear_cross_entropy(
            input, self.linear.weight.view(*shape, -1), target, linear_bias=None if bias is None else bias.view(shape),
            weight=self.weight, reduction=self.reduction, ignore_index=self.ignore_index,
            label_smoothing=self.label_smoothing, options=self.options, softcap=self.softcap, z_loss=self.z_loss,
            chunk=self.chunk, acc_dtype=self.acc_dtype)

    def extra_repr(self) -> str:
        return (f"in_features={self.linear.in_features}, num_classes={self.num_classes}, out_features={self.out_features}, "
                f"bias={self.linear.bias is not None}, reduction={self.reduction}, ignore_index={self.ignore_index}, "
                f"label_smoothing={self.label_smoothing}, options={self.options}")


class _Gated(torch.nn.Module):
    """Takes value and gate, or both in one: the value's half first, as torch.nn.GLU."""

    def forward(self, x: Tensor, gate: Tensor | None = None) -> Tensor:
        if gate is None:
            x, gate = x.chunk(2, dim=-1)
        return self.unit(x, gate)


class SwiGLU(_Gated):
    """silu(gate) * x, with gate * sigmoid(beta * gate) for silu."""

    def __init__(self, beta: float = 1.0) -> None:
        super().__init__()
        self.beta = beta

    def unit(self, x: Tensor, gate: Tensor) -> Tensor:
        return functional.swiglu(x, gate, self.beta)

    def extra_repr(self) -> str:
        return f"beta={self.beta}"


class GeGLU(_Gated):
    """gelu(gate) * x."""

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def unit(self, x: Tensor, gate: Tensor) -> Tensor:
        return functional.geglu(x, gate, self.approximate)

    def extra_repr(self) -> str:
        return f"approximate={self.approximate!r}"


class AddRMSNorm(torch.nn.RMSNorm):
    """(x, residual) -> (y, h): h = x + residual, y = rms_norm(h)."""

    def forward(self, x: Tensor, residual: Tensor) -> tuple[Tensor, Tensor]:  # type: ignore[override]
        eps = functional.eps_of(self.eps, x.dtype)
        return functional.add_rms_norm(x, residual, self.weight, eps, axes=functional.axes_of(x, self.normalized_shape))


class AddLayerNorm(torch.nn.LayerNorm):
    """(x, residual) -> (y, h): h = x + residual, y = layer_norm(h)."""

    def forward(self, x: Tensor, residual: Tensor) -> tuple[Tensor, Tensor]:  # type: ignore[override]
        return functional.add_layer_norm(x, residual, self.weight, self.bias, self.eps,
                                         axes=functional.axes_of(x, self.normalized_shape))

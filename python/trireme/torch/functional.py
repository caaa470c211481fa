"""Functions with torch.nn.functional's names and parameters, and those of fusions that torch does not have."""
import math
from collections.abc import Sequence

import torch
from torch import Tensor

from ._operator import named, op
from ._register import NAMES


def axes_of(input, normalized_shape):
    """How many of the last axes make a row."""
    shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
    if len(shape) == 1 and input.shape[-1:] == shape:  # as most are
        return 1
    if not shape or tuple(input.shape[-len(shape):]) != shape:
        raise RuntimeError(f"Given normalized_shape={list(shape)}, expected input with shape [*, "
                           f"{', '.join(map(str, shape))}], but got input of size {list(input.shape)}")
    return len(shape)


def eps_of(eps, dtype):
    """torch's choice where there is none: the epsilon of the type it computes in, which for 16-bit inputs is f32."""
    return torch.finfo(torch.promote_types(dtype, torch.float32)).eps if eps is None else eps


def rms_norm(input: Tensor, normalized_shape: int | Sequence[int], weight: Tensor | None = None,
             eps: float | None = None) -> Tensor:
    """torch.nn.functional.rms_norm. The result has the input's type, whatever the weight's."""
    constants = [eps_of(eps, input.dtype), 0.0]
    return named("rms_norm").call([input, weight], constants, axes_of(input, normalized_shape), wanted=1)[0]


def layer_norm(input: Tensor, normalized_shape: int | Sequence[int], weight: Tensor | None = None,
               bias: Tensor | None = None, eps: float = 1e-5) -> Tensor:
    """torch.nn.functional.layer_norm."""
    return named("layer_norm").call([input, weight, bias], [eps], axes_of(input, normalized_shape), wanted=1)[0]


def group_norm(input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None,
               eps: float = 1e-5) -> Tensor:
    """torch.nn.functional.group_norm."""
    samples, channels, *spatial = input.shape
    if channels % num_groups:
        raise RuntimeError(f"{channels} channels do not make {num_groups} groups")
    pixels, share = math.prod(spatial), channels // num_groups
    rows = input.reshape(samples * num_groups, share * pixels)
    weight, bias = (None if each is None else each.view(num_groups, share) for each in (weight, bias))
    y = named("group_norm").call([rows, weight, bias], [float(num_groups), float(pixels), eps], wanted=1)[0]
    return y.view(input.shape)


def _along(function, input, dim, dtype):
    types = "" if dtype is None else f"y={NAMES[dtype]}"
    if input.dim() == 0:
        return _along(function, input.view(1), dim, dtype).view(())
    if dim in (-1, input.dim() - 1):
        return named(function).call([input], [], 1, types, wanted=1)[0]
    return named(function).call([input.movedim(dim, -1)], [], 1, types, wanted=1, dim=dim)[0].movedim(-1, dim).contiguous()


def softmax(input: Tensor, dim: int = -1, dtype: torch.dtype | None = None) -> Tensor:
    """torch.nn.functional.softmax. `dtype` is the result's; the input is read as it is."""
    return _along("softmax", input, dim, dtype)


def log_softmax(input: Tensor, dim: int = -1, dtype: torch.dtype | None = None) -> Tensor:
    """torch.nn.functional.log_softmax."""
    return _along("log_softmax", input, dim, dtype)


def l2_norm(input: Tensor, eps: float = 1e-6) -> Tensor:
    """Each row to length 1: x * rsqrt(sum(x * x) + eps)."""
    return named("l2_norm").call([input], [eps], wanted=1)[0]


def swiglu(x: Tensor, gate: Tensor, beta: float = 1.0) -> Tensor:
    """gate * sigmoid(beta * gate) * x; F.silu(gate) * x where beta is 1."""
    return named("swiglu").call([x, gate], [float(beta)], wanted=1)[0]


_CLAMPED = """clamped_swiglu(x[i,j], gate[i,j], limit, beta = 1, offset = 0) -> (y[i,j])
    g = min(gate, limit)
    y = g * sigmoid(beta * g) * (clamp(x, -limit, limit) + offset)
"""


def clamped_swiglu(x: Tensor, gate: Tensor, limit: float = 7.0, beta: float = 1.702, offset: float = 1.0) -> Tensor:
    """(clamp(x, -limit, limit) + offset) * g * sigmoid(beta * g) with g = min(gate, limit). The defaults are gpt-oss's;
    DeepSeek-V4's unit is limit=10, beta=1, offset=0."""
    return op(_CLAMPED).call([x, gate], [float(limit), float(beta), float(offset)], wanted=1)[0]


def geglu(x: Tensor, gate: Tensor, approximate: str = "none") -> Tensor:
    """F.gelu(gate, approximate=approximate) * x."""
    if approximate not in ("none", "tanh"):
        raise RuntimeError("approximate argument must be either none or tanh.")
    return named("geglu" if approximate == "tanh" else "geglu_erf").call([x, gate], [], wanted=1)[0]


def add_rms_norm(x: Tensor, residual: Tensor, weight: Tensor | None = None, eps: float = 1e-6,
                 offset: float = 0.0, axes: int = 1) -> tuple[Tensor, Tensor]:
    """h = x + residual and y = rms_norm(h) in one pass over memory, over the last `axes` axes. Gives (y, h)."""
    return named("add_rms_norm").call([x, residual, weight], [eps, float(offset)], axes, wanted=3)[:2]


def add_layer_norm(x: Tensor, residual: Tensor, weight: Tensor | None = None, bias: Tensor | None = None,
                   eps: float = 1e-5, axes: int = 1) -> tuple[Tensor, Tensor]:
    """h = x + residual and y = layer_norm(h) in one pass over memory, over the last `axes` axes. Gives (y, h)."""
    return named("add_layer_norm").call([x, residual, weight, bias], [eps], axes, wanted=3)[:2]

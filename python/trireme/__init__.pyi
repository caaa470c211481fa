# Written by tools/python_stubs.py from the operators' list; BLESS=1 rewrites it.
from typing import Any, Mapping, Sequence

from ._bench import Timing as Timing
from ._emit import Emission as Emission, emit as emit
from ._operator import Exchange as Exchange, Operator as Operator, Phase as Phase, Plan as Plan, op as op
from ._operators import operator as operator, operators as operators
from ._verify import devices as devices, verify as verify

__version__: str
contract_version: int

class TriremeError(Exception): ...
class InvalidProgram(TriremeError, ValueError): ...
class InvalidArgument(TriremeError, ValueError): ...
class Unsupported(TriremeError, NotImplementedError): ...
class BufferTooSmall(TriremeError, ValueError):
    needed: int
    got: int
class NoDevice(TriremeError, RuntimeError): ...
class DriverError(TriremeError, RuntimeError): ...
class OutOfMemory(TriremeError, MemoryError): ...
class InternalError(TriremeError, RuntimeError): ...
class WrongType(TriremeError, TypeError): ...

class _AddLayerNorm(Operator):
    def __call__(self, x: Any, residual: Any, gamma: Any = None, beta: Any = None, *, eps: float = 1e-05, out: Any = None, results: str | Sequence[str] | None = None, types: Mapping[str, Any] | None = None, axes: int = 1, threads: int | None = None, stream: Any = None, workspace: Any = None, row_block: int | None = None, device: str | None = None) -> Any: ...
add_layer_norm: _AddLayerNorm

class _AddRmsNorm(Operator):
    def __call__(self, x: Any, residual: Any, gamma: Any = None, *, eps: float = 1e-06, offset: float = 0.0, out: Any = None, results: str | Sequence[str] | None = None, types: Mapping[str, Any] | None = None, axes: int = 1, threads: int | None = None, stream: Any = None, workspace: Any = None, row_block: int | None = None, device: str | None = None) -> Any: ...
add_rms_norm: _AddRmsNorm

class _AddRmsNormQuant(Operator):
    def __call__(self, x: Any, residual: Any, gamma: Any = None, *, eps: float = 1e-06, offset: float = 0.0, least: float = 1e-10, out: Any = None, results: str | Sequence[str] | None = None, types: Mapping[str, Any] | None = None, axes: int = 1, threads: int | None = None, stream: Any = None, workspace: Any = None, row_block: int | None = None, device: str | None = None) -> Any: ...
add_rms_norm_quant: _AddRmsNormQuant

class _CrossEntropy(Operator):
    def __call__(self, x: Any, target: Any, *, ignore: float = -100.0, out: Any = None, results: str | Sequence[str] | None = None, types: Mapping[str, Any] | None = None, axes: int = 1, threads: int | None = None, stream: Any = None, workspace: Any = None, row_block: int | None = None, device: str | None = None) -> Any: ...
cross_entropy: _CrossEntropy

class _DynamicTanh(Operator):
    def __call__(self, x: Any, alpha: Any, gamma: Any = None, beta: Any = None, *, out: Any = None, results: str | Sequence[str] | None = None, types: Mapping[str, Any] | None = None, axes: int = 1, threads: int | None = None, stream: Any = None, workspace: Any = None, row_block: int | None = None, device: str | None = None) -> Any: ...
dynamic_tanh: _DynamicTanh

class _GatedRmsNorm(Operator):
    def __call__(self, x: Any, gate: Any, gamma: Any = None, *, eps: float = 1e-06, out: Any = None, results: str | Sequence[str] | None = None, types: Mapping[str, Any] | None = None, axes: int = 1, threads: int | None = None, stream: Any = None, workspace: Any = None, row_block: int | None = None, device: str | None = None) -> Any: ...
gated_rms_norm: _GatedRmsNorm

class _Geglu(Operator):
    def __call__(self, x: Any, gate: Any, *, out: Any = None, results: str | Sequence[str] | None = None, types: Mapping[str, Any] | None = None, axes: int = 1, threads: int | None = None, stream: Any = None, workspace: Any = None, row_block: int | None = None, device: str | None = None) -> Any: ...
geglu: _Geglu

class _GegluErf(Operator):
    def __call__(self, x: Any, gate: Any, *, out: Any = None, results: str | Sequence[str] | None = None, types: Mapping[str, Any] | None = None, axes: int = 1, threads: int | None = None, stream: Any = None, workspace: Any = None, row_block: int | None = None, device: str | None = None) -> Any: ...
geglu_erf: _GegluErf

class _GroupNorm(Operator):
    def __call__(self, x: Any, gamma: Any = None, beta: Any = None, *, groups: float, pixels: float, eps: float = 1e-05, out: Any = None, results: str | Sequence[str] | None = None, types: Mapping[str, Any] | None = None, axes: int = 1, threads: int | None = None, stream: Any = None, workspace: Any = None, row_block: int | None = None, device: str | None = None) -> Any: ...
group_norm: _GroupNorm

class _L2Norm(Operator):
    def __call__(self, x: Any, *, eps: float = 1e-06, out: Any = None, results: str | Sequence[str] | None = None, types: Mapping[str, Any] | None = None, axes: int = 1, threads: int | None = None, stream: Any = None, workspace: Any = None, row_block: int | None = None, device: str | None = None) -> Any: ...
l2_norm: _L2Norm

class _LayerNorm(Operator):
    def __call__(self, x: Any, gamma: Any = None, beta: Any = None, *, eps: float = 1e-05, out: Any = None, results: str | Sequence[str] | None = None, types: Mapping[str, Any] | None = None, axes: int = 1, threads: int | None = None, stream: Any = None, workspace: Any = None, row_block: int | None = None, device: str | None = None) -> Any: ...
layer_norm: _LayerNorm

class _LogSoftmax(Operator):
    def __call__(self, x: Any, *, out: Any = None, results: str | Sequence[str] | None = None, types: Mapping[str, Any] | None = None, axes: int = 1, threads: int | None = None, stream: Any = None, workspace: Any = None, row_block: int | None = None, device: str | None = None) -> Any: ...
log_softmax: _LogSoftmax

class _ModulatedLayerNorm(Operator):
    def __call__(self, x: Any, scale: Any = None, shift: Any = None, *, tokens: float, eps: float = 1e-06, out: Any = None, results: str | Sequence[str] | None = None, types: Mapping[str, Any] | None = None, axes: int = 1, threads: int | None = None, stream: Any = None, workspace: Any = None, row_block: int | None = None, device: str | None = None) -> Any: ...
modulated_layer_norm: _ModulatedLayerNorm

class _Reglu(Operator):
    def __call__(self, x: Any, gate: Any, *, out: Any = None, results: str | Sequence[str] | None = None, types: Mapping[str, Any] | None = None, axes: int = 1, threads: int | None = None, stream: Any = None, workspace: Any = None, row_block: int | None = None, device: str | None = None) -> Any: ...
reglu: _Reglu

class _RmsNorm(Operator):
    def __call__(self, x: Any, gamma: Any = None, *, eps: float = 1e-06, offset: float = 0.0, out: Any = None, results: str | Sequence[str] | None = None, types: Mapping[str, Any] | None = None, axes: int = 1, threads: int | None = None, stream: Any = None, workspace: Any = None, row_block: int | None = None, device: str | None = None) -> Any: ...
rms_norm: _RmsNorm

class _RmsNormHeads(Operator):
    def __call__(self, x: Any, w: Any = None, *, heads: float, eps: float = 1e-06, offset: float = 0.0, out: Any = None, results: str | Sequence[str] | None = None, types: Mapping[str, Any] | None = None, axes: int = 1, threads: int | None = None, stream: Any = None, workspace: Any = None, row_block: int | None = None, device: str | None = None) -> Any: ...
rms_norm_heads: _RmsNormHeads

class _RmsNormLlama(Operator):
    def __call__(self, x: Any, gamma: Any = None, *, eps: float = 1e-06, out: Any = None, results: str | Sequence[str] | None = None, types: Mapping[str, Any] | None = None, axes: int = 1, threads: int | None = None, stream: Any = None, workspace: Any = None, row_block: int | None = None, device: str | None = None) -> Any: ...
rms_norm_llama: _RmsNormLlama

class _RmsNormQuant(Operator):
    def __call__(self, x: Any, gamma: Any = None, *, eps: float = 1e-06, offset: float = 0.0, least: float = 1e-10, out: Any = None, results: str | Sequence[str] | None = None, types: Mapping[str, Any] | None = None, axes: int = 1, threads: int | None = None, stream: Any = None, workspace: Any = None, row_block: int | None = None, device: str | None = None) -> Any: ...
rms_norm_quant: _RmsNormQuant

class _RmsNormRope(Operator):
    def __call__(self, x: Any, gamma: Any, cos: Any, sin: Any, *, heads: float, positions: float, eps: float = 1e-06, offset: float = 0.0, out: Any = None, results: str | Sequence[str] | None = None, types: Mapping[str, Any] | None = None, axes: int = 1, threads: int | None = None, stream: Any = None, workspace: Any = None, row_block: int | None = None, device: str | None = None) -> Any: ...
rms_norm_rope: _RmsNormRope

class _Softmax(Operator):
    def __call__(self, x: Any, *, out: Any = None, results: str | Sequence[str] | None = None, types: Mapping[str, Any] | None = None, axes: int = 1, threads: int | None = None, stream: Any = None, workspace: Any = None, row_block: int | None = None, device: str | None = None) -> Any: ...
softmax: _Softmax

class _Swiglu(Operator):
    def __call__(self, x: Any, gate: Any, *, beta: float = 1.0, out: Any = None, results: str | Sequence[str] | None = None, types: Mapping[str, Any] | None = None, axes: int = 1, threads: int | None = None, stream: Any = None, workspace: Any = None, row_block: int | None = None, device: str | None = None) -> Any: ...
swiglu: _Swiglu

class _SwigluLlama(Operator):
    def __call__(self, x: Any, gate: Any, *, out: Any = None, results: str | Sequence[str] | None = None, types: Mapping[str, Any] | None = None, axes: int = 1, threads: int | None = None, stream: Any = None, workspace: Any = None, row_block: int | None = None, device: str | None = None) -> Any: ...
swiglu_llama: _SwigluLlama

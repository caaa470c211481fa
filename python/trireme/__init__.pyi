# Written by tools/python_stubs.py from the operators' list; BLESS=1 rewrites it.
from typing import Any, Mapping, Sequence

from ._bench import Timing as Timing
from ._core import (
    BufferTooSmall as BufferTooSmall, DriverError as DriverError, InternalError as InternalError,
    InvalidArgument as InvalidArgument, InvalidProgram as InvalidProgram, NoDevice as NoDevice, OutOfMemory as OutOfMemory,
    TriremeError as TriremeError, Unsupported as Unsupported, WrongType as WrongType,
)
from ._emit import Emission as Emission, emit as emit
from ._operator import Exchange as Exchange, Operator as Operator, Phase as Phase, Plan as Plan, op as op
from ._operators import operator as operator, operators as operators
from ._receipt import BlockDigests as BlockDigests, CheckReport as CheckReport, Receipt as Receipt, block_digests as block_digests
from ._verify import devices as devices, verify as verify

__version__: str
contract_version: int

class _Adamw(Operator):
    def __call__(self, p: Any, g: Any, m: Any, v: Any, *, lr: float = 0.001, beta1: float = 0.9, beta2: float = 0.999, eps: float = 1e-08, decay: float = 0.01, unbias1: float = 1.0, unbias2: float = 1.0, out: Any = None, results: str | Sequence[str] | None = None, types: Mapping[str, Any] | None = None, axes: int = 1, threads: int | None = None, stream: Any = None, workspace: Any = None, row_block: int | None = None, device: str | None = None) -> Any: ...
adamw: _Adamw

class _AddLayerNorm(Operator):
    def __call__(self, x: Any, residual: Any, gamma: Any = None, beta: Any = None, *, eps: float = 1e-05, out: Any = None, results: str | Sequence[str] | None = None, types: Mapping[str, Any] | None = None, axes: int = 1, threads: int | None = None, stream: Any = None, workspace: Any = None, row_block: int | None = None, device: str | None = None) -> Any: ...
add_layer_norm: _AddLayerNorm

class _AddRmsNorm(Operator):
    def __call__(self, x: Any, residual: Any, gamma: Any = None, *, eps: float = 1e-06, offset: float = 0.0, out: Any = None, results: str | Sequence[str] | None = None, types: Mapping[str, Any] | None = None, axes: int = 1, threads: int | None = None, stream: Any = None, workspace: Any = None, row_block: int | None = None, device: str | None = None) -> Any: ...
add_rms_norm: _AddRmsNorm

class _AddRmsNormBlockQuant(Operator):
    def __call__(self, x: Any, residual: Any, gamma: Any = None, *, eps: float = 1e-06, offset: float = 0.0, least: float = 1e-10, block: float = 128.0, out: Any = None, results: str | Sequence[str] | None = None, types: Mapping[str, Any] | None = None, axes: int = 1, threads: int | None = None, stream: Any = None, workspace: Any = None, row_block: int | None = None, device: str | None = None) -> Any: ...
add_rms_norm_block_quant: _AddRmsNormBlockQuant

class _AddRmsNormQuant(Operator):
    def __call__(self, x: Any, residual: Any, gamma: Any = None, *, eps: float = 1e-06, offset: float = 0.0, least: float = 1e-10, out: Any = None, results: str | Sequence[str] | None = None, types: Mapping[str, Any] | None = None, axes: int = 1, threads: int | None = None, stream: Any = None, workspace: Any = None, row_block: int | None = None, device: str | None = None) -> Any: ...
add_rms_norm_quant: _AddRmsNormQuant

class _CausalSoftmax(Operator):
    def __call__(self, x: Any, first: Any = None, last: Any = None, *, queries: float, scale: float = 1.0, out: Any = None, results: str | Sequence[str] | None = None, types: Mapping[str, Any] | None = None, axes: int = 1, threads: int | None = None, stream: Any = None, workspace: Any = None, row_block: int | None = None, device: str | None = None) -> Any: ...
causal_softmax: _CausalSoftmax

class _CrossEntropy(Operator):
    def __call__(self, x: Any, target: Any, *, ignore: float = -100.0, out: Any = None, results: str | Sequence[str] | None = None, types: Mapping[str, Any] | None = None, axes: int = 1, threads: int | None = None, stream: Any = None, workspace: Any = None, row_block: int | None = None, device: str | None = None) -> Any: ...
cross_entropy: _CrossEntropy

class _CrossEntropySmooth(Operator):
    def __call__(self, x: Any, target: Any, weight: Any = None, *, smoothing: float = 0.0, softcap: float = 0.0, z_loss: float = 0.0, ignore: float = -100.0, out: Any = None, results: str | Sequence[str] | None = None, types: Mapping[str, Any] | None = None, axes: int = 1, threads: int | None = None, stream: Any = None, workspace: Any = None, row_block: int | None = None, device: str | None = None) -> Any: ...
cross_entropy_smooth: _CrossEntropySmooth

class _Dropout(Operator):
    def __call__(self, x: Any, seed: Any, *, p: float = 0.5, out: Any = None, results: str | Sequence[str] | None = None, types: Mapping[str, Any] | None = None, axes: int = 1, threads: int | None = None, stream: Any = None, workspace: Any = None, row_block: int | None = None, device: str | None = None) -> Any: ...
dropout: _Dropout

class _DropoutAddLayerNorm(Operator):
    def __call__(self, x: Any, residual: Any, seed: Any, gamma: Any = None, beta: Any = None, *, p: float = 0.5, eps: float = 1e-05, out: Any = None, results: str | Sequence[str] | None = None, types: Mapping[str, Any] | None = None, axes: int = 1, threads: int | None = None, stream: Any = None, workspace: Any = None, row_block: int | None = None, device: str | None = None) -> Any: ...
dropout_add_layer_norm: _DropoutAddLayerNorm

class _DynamicTanh(Operator):
    def __call__(self, x: Any, alpha: Any, gamma: Any = None, beta: Any = None, *, out: Any = None, results: str | Sequence[str] | None = None, types: Mapping[str, Any] | None = None, axes: int = 1, threads: int | None = None, stream: Any = None, workspace: Any = None, row_block: int | None = None, device: str | None = None) -> Any: ...
dynamic_tanh: _DynamicTanh

class _Embedding(Operator):
    def __call__(self, token: Any, table: Any, scale: Any = None, *, out: Any = None, results: str | Sequence[str] | None = None, types: Mapping[str, Any] | None = None, axes: int = 1, threads: int | None = None, stream: Any = None, workspace: Any = None, row_block: int | None = None, device: str | None = None) -> Any: ...
embedding: _Embedding

class _GatedGroupNorm(Operator):
    def __call__(self, x: Any, gate: Any, gamma: Any = None, *, eps: float = 1e-06, group: float = 64.0, out: Any = None, results: str | Sequence[str] | None = None, types: Mapping[str, Any] | None = None, axes: int = 1, threads: int | None = None, stream: Any = None, workspace: Any = None, row_block: int | None = None, device: str | None = None) -> Any: ...
gated_group_norm: _GatedGroupNorm

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

class _GroupedRmsNorm(Operator):
    def __call__(self, x: Any, gamma: Any = None, *, eps: float = 1e-06, group: float = 64.0, out: Any = None, results: str | Sequence[str] | None = None, types: Mapping[str, Any] | None = None, axes: int = 1, threads: int | None = None, stream: Any = None, workspace: Any = None, row_block: int | None = None, device: str | None = None) -> Any: ...
grouped_rms_norm: _GroupedRmsNorm

class _GrpoLoss(Operator):
    def __call__(self, x: Any, target: Any, advantage: Any, old: Any, reference: Any, *, temperature: float = 1.0, clip_low: float = 0.2, clip_high: float = 0.2, beta: float = 0.04, ignore: float = -100.0, out: Any = None, results: str | Sequence[str] | None = None, types: Mapping[str, Any] | None = None, axes: int = 1, threads: int | None = None, stream: Any = None, workspace: Any = None, row_block: int | None = None, device: str | None = None) -> Any: ...
grpo_loss: _GrpoLoss

class _JsDiv(Operator):
    def __call__(self, log_q: Any, log_p: Any, *, beta: float = 0.5, out: Any = None, results: str | Sequence[str] | None = None, types: Mapping[str, Any] | None = None, axes: int = 1, threads: int | None = None, stream: Any = None, workspace: Any = None, row_block: int | None = None, device: str | None = None) -> Any: ...
js_div: _JsDiv

class _KlDiv(Operator):
    def __call__(self, log_q: Any, p: Any, *, out: Any = None, results: str | Sequence[str] | None = None, types: Mapping[str, Any] | None = None, axes: int = 1, threads: int | None = None, stream: Any = None, workspace: Any = None, row_block: int | None = None, device: str | None = None) -> Any: ...
kl_div: _KlDiv

class _L2Norm(Operator):
    def __call__(self, x: Any, *, eps: float = 1e-06, out: Any = None, results: str | Sequence[str] | None = None, types: Mapping[str, Any] | None = None, axes: int = 1, threads: int | None = None, stream: Any = None, workspace: Any = None, row_block: int | None = None, device: str | None = None) -> Any: ...
l2_norm: _L2Norm

class _LayerNorm(Operator):
    def __call__(self, x: Any, gamma: Any = None, beta: Any = None, *, eps: float = 1e-05, out: Any = None, results: str | Sequence[str] | None = None, types: Mapping[str, Any] | None = None, axes: int = 1, threads: int | None = None, stream: Any = None, workspace: Any = None, row_block: int | None = None, device: str | None = None) -> Any: ...
layer_norm: _LayerNorm

class _LogSoftmax(Operator):
    def __call__(self, x: Any, *, out: Any = None, results: str | Sequence[str] | None = None, types: Mapping[str, Any] | None = None, axes: int = 1, threads: int | None = None, stream: Any = None, workspace: Any = None, row_block: int | None = None, device: str | None = None) -> Any: ...
log_softmax: _LogSoftmax

class _LogprobEntropy(Operator):
    def __call__(self, x: Any, target: Any, *, temperature: float = 1.0, out: Any = None, results: str | Sequence[str] | None = None, types: Mapping[str, Any] | None = None, axes: int = 1, threads: int | None = None, stream: Any = None, workspace: Any = None, row_block: int | None = None, device: str | None = None) -> Any: ...
logprob_entropy: _LogprobEntropy

class _MaskedSoftmax(Operator):
    def __call__(self, x: Any, mask: Any = None, length: Any = None, *, scale: float = 1.0, out: Any = None, results: str | Sequence[str] | None = None, types: Mapping[str, Any] | None = None, axes: int = 1, threads: int | None = None, stream: Any = None, workspace: Any = None, row_block: int | None = None, device: str | None = None) -> Any: ...
masked_softmax: _MaskedSoftmax

class _Matmul(Operator):
    def __call__(self, x: Any, w: Any, *, m: float = 1.0, out: Any = None, results: str | Sequence[str] | None = None, types: Mapping[str, Any] | None = None, axes: int = 1, threads: int | None = None, stream: Any = None, workspace: Any = None, row_block: int | None = None, device: str | None = None) -> Any: ...
matmul: _Matmul

class _MergeAttentionStates(Operator):
    def __call__(self, a: Any, lse_a: Any, b: Any, lse_b: Any, *, out: Any = None, results: str | Sequence[str] | None = None, types: Mapping[str, Any] | None = None, axes: int = 1, threads: int | None = None, stream: Any = None, workspace: Any = None, row_block: int | None = None, device: str | None = None) -> Any: ...
merge_attention_states: _MergeAttentionStates

class _ModulatedLayerNorm(Operator):
    def __call__(self, x: Any, scale: Any = None, shift: Any = None, *, tokens: float, eps: float = 1e-06, out: Any = None, results: str | Sequence[str] | None = None, types: Mapping[str, Any] | None = None, axes: int = 1, threads: int | None = None, stream: Any = None, workspace: Any = None, row_block: int | None = None, device: str | None = None) -> Any: ...
modulated_layer_norm: _ModulatedLayerNorm

class _MoeSum(Operator):
    def __call__(self, x: Any, weight: Any = None, *, experts: float = 1.0, out: Any = None, results: str | Sequence[str] | None = None, types: Mapping[str, Any] | None = None, axes: int = 1, threads: int | None = None, stream: Any = None, workspace: Any = None, row_block: int | None = None, device: str | None = None) -> Any: ...
moe_sum: _MoeSum

class _PolyNorm(Operator):
    def __call__(self, x: Any, w1: Any, w2: Any, w3: Any, b: Any = None, *, eps: float = 1e-06, out: Any = None, results: str | Sequence[str] | None = None, types: Mapping[str, Any] | None = None, axes: int = 1, threads: int | None = None, stream: Any = None, workspace: Any = None, row_block: int | None = None, device: str | None = None) -> Any: ...
poly_norm: _PolyNorm

class _QuantiseMxfp4(Operator):
    def __call__(self, x: Any, *, block: float = 32.0, out: Any = None, results: str | Sequence[str] | None = None, types: Mapping[str, Any] | None = None, axes: int = 1, threads: int | None = None, stream: Any = None, workspace: Any = None, row_block: int | None = None, device: str | None = None) -> Any: ...
quantise_mxfp4: _QuantiseMxfp4

class _QuantiseMxfp8(Operator):
    def __call__(self, x: Any, *, block: float = 32.0, out: Any = None, results: str | Sequence[str] | None = None, types: Mapping[str, Any] | None = None, axes: int = 1, threads: int | None = None, stream: Any = None, workspace: Any = None, row_block: int | None = None, device: str | None = None) -> Any: ...
quantise_mxfp8: _QuantiseMxfp8

class _QuantiseNvfp4(Operator):
    def __call__(self, x: Any, tensor_scale: Any = None, *, block: float = 16.0, out: Any = None, results: str | Sequence[str] | None = None, types: Mapping[str, Any] | None = None, axes: int = 1, threads: int | None = None, stream: Any = None, workspace: Any = None, row_block: int | None = None, device: str | None = None) -> Any: ...
quantise_nvfp4: _QuantiseNvfp4

class _Reglu(Operator):
    def __call__(self, x: Any, gate: Any, *, out: Any = None, results: str | Sequence[str] | None = None, types: Mapping[str, Any] | None = None, axes: int = 1, threads: int | None = None, stream: Any = None, workspace: Any = None, row_block: int | None = None, device: str | None = None) -> Any: ...
reglu: _Reglu

class _ReluSquared(Operator):
    def __call__(self, x: Any, *, out: Any = None, results: str | Sequence[str] | None = None, types: Mapping[str, Any] | None = None, axes: int = 1, threads: int | None = None, stream: Any = None, workspace: Any = None, row_block: int | None = None, device: str | None = None) -> Any: ...
relu_squared: _ReluSquared

class _RmsNorm(Operator):
    def __call__(self, x: Any, gamma: Any = None, *, eps: float = 1e-06, offset: float = 0.0, out: Any = None, results: str | Sequence[str] | None = None, types: Mapping[str, Any] | None = None, axes: int = 1, threads: int | None = None, stream: Any = None, workspace: Any = None, row_block: int | None = None, device: str | None = None) -> Any: ...
rms_norm: _RmsNorm

class _RmsNormHeads(Operator):
    def __call__(self, x: Any, w: Any = None, *, heads: float, eps: float = 1e-06, offset: float = 0.0, out: Any = None, results: str | Sequence[str] | None = None, types: Mapping[str, Any] | None = None, axes: int = 1, threads: int | None = None, stream: Any = None, workspace: Any = None, row_block: int | None = None, device: str | None = None) -> Any: ...
rms_norm_heads: _RmsNormHeads

class _RmsNormLlama(Operator):
    def __call__(self, x: Any, gamma: Any = None, *, eps: float = 1e-06, out: Any = None, results: str | Sequence[str] | None = None, types: Mapping[str, Any] | None = None, axes: int = 1, threads: int | None = None, stream: Any = None, workspace: Any = None, row_block: int | None = None, device: str | None = None) -> Any: ...
rms_norm_llama: _RmsNormLlama

class _RmsNormMxfp8(Operator):
    def __call__(self, x: Any, gamma: Any = None, *, eps: float = 1e-06, offset: float = 0.0, block: float = 32.0, out: Any = None, results: str | Sequence[str] | None = None, types: Mapping[str, Any] | None = None, axes: int = 1, threads: int | None = None, stream: Any = None, workspace: Any = None, row_block: int | None = None, device: str | None = None) -> Any: ...
rms_norm_mxfp8: _RmsNormMxfp8

class _RmsNormQuant(Operator):
    def __call__(self, x: Any, gamma: Any = None, *, eps: float = 1e-06, offset: float = 0.0, least: float = 1e-10, out: Any = None, results: str | Sequence[str] | None = None, types: Mapping[str, Any] | None = None, axes: int = 1, threads: int | None = None, stream: Any = None, workspace: Any = None, row_block: int | None = None, device: str | None = None) -> Any: ...
rms_norm_quant: _RmsNormQuant

class _RmsNormRope(Operator):
    def __call__(self, x: Any, gamma: Any, cos: Any, sin: Any, *, heads: float, positions: float, eps: float = 1e-06, offset: float = 0.0, out: Any = None, results: str | Sequence[str] | None = None, types: Mapping[str, Any] | None = None, axes: int = 1, threads: int | None = None, stream: Any = None, workspace: Any = None, row_block: int | None = None, device: str | None = None) -> Any: ...
rms_norm_rope: _RmsNormRope

class _RmsNormRopePositions(Operator):
    def __call__(self, x: Any, gamma: Any, position: Any, cos: Any, sin: Any, *, heads: float = 1.0, eps: float = 1e-06, offset: float = 0.0, out: Any = None, results: str | Sequence[str] | None = None, types: Mapping[str, Any] | None = None, axes: int = 1, threads: int | None = None, stream: Any = None, workspace: Any = None, row_block: int | None = None, device: str | None = None) -> Any: ...
rms_norm_rope_positions: _RmsNormRopePositions

class _Rope(Operator):
    def __call__(self, x: Any, position: Any, cos: Any, sin: Any, *, heads: float = 1.0, out: Any = None, results: str | Sequence[str] | None = None, types: Mapping[str, Any] | None = None, axes: int = 1, threads: int | None = None, stream: Any = None, workspace: Any = None, row_block: int | None = None, device: str | None = None) -> Any: ...
rope: _Rope

class _RopeInterleaved(Operator):
    def __call__(self, x: Any, position: Any, cos: Any, sin: Any, *, heads: float = 1.0, out: Any = None, results: str | Sequence[str] | None = None, types: Mapping[str, Any] | None = None, axes: int = 1, threads: int | None = None, stream: Any = None, workspace: Any = None, row_block: int | None = None, device: str | None = None) -> Any: ...
rope_interleaved: _RopeInterleaved

class _Sinkhorn(Operator):
    def __call__(self, x: Any, *, side: float = 4.0, out: Any = None, results: str | Sequence[str] | None = None, types: Mapping[str, Any] | None = None, axes: int = 1, threads: int | None = None, stream: Any = None, workspace: Any = None, row_block: int | None = None, device: str | None = None) -> Any: ...
sinkhorn: _Sinkhorn

class _Softmax(Operator):
    def __call__(self, x: Any, *, out: Any = None, results: str | Sequence[str] | None = None, types: Mapping[str, Any] | None = None, axes: int = 1, threads: int | None = None, stream: Any = None, workspace: Any = None, row_block: int | None = None, device: str | None = None) -> Any: ...
softmax: _Softmax

class _SoftmaxSink(Operator):
    def __call__(self, x: Any, sink: Any, *, queries: float, heads: float, out: Any = None, results: str | Sequence[str] | None = None, types: Mapping[str, Any] | None = None, axes: int = 1, threads: int | None = None, stream: Any = None, workspace: Any = None, row_block: int | None = None, device: str | None = None) -> Any: ...
softmax_sink: _SoftmaxSink

class _Swiglu(Operator):
    def __call__(self, x: Any, gate: Any, *, beta: float = 1.0, out: Any = None, results: str | Sequence[str] | None = None, types: Mapping[str, Any] | None = None, axes: int = 1, threads: int | None = None, stream: Any = None, workspace: Any = None, row_block: int | None = None, device: str | None = None) -> Any: ...
swiglu: _Swiglu

class _SwigluBlockQuant(Operator):
    def __call__(self, x: Any, gate: Any, *, beta: float = 1.0, least: float = 1e-10, block: float = 128.0, out: Any = None, results: str | Sequence[str] | None = None, types: Mapping[str, Any] | None = None, axes: int = 1, threads: int | None = None, stream: Any = None, workspace: Any = None, row_block: int | None = None, device: str | None = None) -> Any: ...
swiglu_block_quant: _SwigluBlockQuant

class _SwigluLlama(Operator):
    def __call__(self, x: Any, gate: Any, *, out: Any = None, results: str | Sequence[str] | None = None, types: Mapping[str, Any] | None = None, axes: int = 1, threads: int | None = None, stream: Any = None, workspace: Any = None, row_block: int | None = None, device: str | None = None) -> Any: ...
swiglu_llama: _SwigluLlama

class _SwigluOai(Operator):
    def __call__(self, gate: Any, up: Any, *, alpha: float = 1.702, limit: float = 7.0, out: Any = None, results: str | Sequence[str] | None = None, types: Mapping[str, Any] | None = None, axes: int = 1, threads: int | None = None, stream: Any = None, workspace: Any = None, row_block: int | None = None, device: str | None = None) -> Any: ...
swiglu_oai: _SwigluOai

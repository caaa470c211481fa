"""Trireme for PyTorch: functions and modules that take the place of torch's, with gradients by derived backwards.

    import trireme.torch as tt
    y = tt.rms_norm(x, (4096,), weight, eps=1e-5)        # as torch.nn.functional.rms_norm
    norm = tt.RMSNorm(4096)                              # as torch.nn.RMSNorm, same state_dict
    mine = tt.op("scaled(x[i,j], s = 2) -> (y[i,j])\\n y = x * s")
    loss = tt.linear_cross_entropy(x, head, labels)      # head and loss, without the logits of all tokens
    tt.patch(model)                                      # a Hugging Face model's norms, gated units, rope and loss
    with tt.trace(model, "a"): model(x)                  # digests of all that runs, for `trireme drift a b`
    from trireme.torch import parallel                   # rows or columns over a process group; DTensors are taken as they are

Everything works under torch.compile(fullgraph=True), autocast, checkpointing and CUDA graphs. `trireme.rms_norm` itself
also takes tensors: the raw path, without dispatcher and gradients.
"""
from ._operator import TorchOperator, leave_to_inductor, named, op
from ._trace import Trace, trace
from .functional import (add_layer_norm, add_rms_norm, clamped_swiglu, geglu, group_norm, l2_norm, layer_norm, log_softmax,
                         rms_norm, softmax, swiglu)
from .losses import (cross_entropy, dpo_loss, grpo_loss, jsd, kl_div, linear_cross_entropy, linear_dpo_loss,
                     linear_grpo_loss, linear_log_probability)
from .models import patch, unpatch
from .modules import (AddLayerNorm, AddRMSNorm, CrossEntropyLoss, GeGLU, GroupNorm, LayerNorm, LinearCrossEntropyLoss,
                      LogSoftmax, RMSNorm, Softmax, SwiGLU)
from .rotary import rope

__all__ = ["AddLayerNorm", "AddRMSNorm", "CrossEntropyLoss", "GeGLU", "GroupNorm", "LayerNorm", "LinearCrossEntropyLoss",
           "LogSoftmax", "RMSNorm", "Softmax", "SwiGLU", "TorchOperator", "Trace", "add_layer_norm", "add_rms_norm", "clamped_swiglu",
           "cross_entropy", "dpo_loss", "geglu", "group_norm", "grpo_loss", "jsd", "kl_div", "l2_norm", "layer_norm",
           "leave_to_inductor", "linear_cross_entropy", "linear_dpo_loss", "linear_grpo_loss", "linear_log_probability",
           "log_softmax", "named", "op", "patch", "rms_norm", "rope", "softmax", "swiglu", "trace", "unpatch"]

"""Row-wise kernels with one answer everywhere: RMSNorm, LayerNorm, SwiGLU, softmax, fusions of your own.

    import numpy as np, trireme
    y = trireme.rms_norm(x, gamma, eps=1e-5)             # NumPy, torch, CuPy, anything with __dlpack__
    dx, dgamma = trireme.rms_norm.gradient()(dy, x, gamma)
    scaled = trireme.op("scaled(x[i,j], s = 2) -> (y[i,j])\\n y = x * s")

`trireme.operators()` lists what there is; `help(trireme.rms_norm)` says more. docs/python.md is the guide.
"""
from . import _core
from ._core import (BufferTooSmall, DriverError, InternalError, InvalidArgument, InvalidProgram, NoDevice, OutOfMemory,
                    TriremeError, Unsupported, WrongType)
from ._emit import Emission, emit
from ._operator import Exchange, Operator, Phase, Plan, op
from ._operators import operator, operators
from ._receipt import BlockDigests, CheckReport, Receipt, block_digests
from ._verify import devices, verify

__version__ = _core.version
contract_version = _core.contract_version

__all__ = ["BlockDigests", "BufferTooSmall", "CheckReport", "DriverError", "Emission", "Exchange", "InternalError", "InvalidArgument", "InvalidProgram", "NoDevice",
           "Operator", "OutOfMemory", "Phase", "Plan", "Receipt", "TriremeError", "Unsupported", "WrongType", "block_digests", "contract_version", "devices", "emit",
           "op", "operator", "operators", "verify", *operators()]


def __getattr__(name):
    if name in operators():
        return globals().setdefault(name, operator(name))
    raise AttributeError(f"module 'trireme' has no attribute {name!r}")


def __dir__():
    return sorted(set(globals()) | set(__all__))

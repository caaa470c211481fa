"""Times a call beside copies of the same bytes, on the machine that holds the arrays."""
import dataclasses
import math
import time

from . import _core

BYTES = {"f64": 8, "f32": 4, "f16": 2, "bf16": 2, "f8e4m3": 1, "f8e5m2": 1, "i8": 1, "i32": 4, "i64": 8, "u8": 1, "f8e8m0": 1, "f4e2m1": 0.5, "uint8": 1, "uint16": 2}


@dataclasses.dataclass(frozen=True)
class Timing:
    seconds: float       # the best call's
    copy_seconds: float  # the best copy's, of as many bytes in all
    bytes: int           # every array, read or written once
    calls: int

    @property
    def gigabytes_per_second(self) -> float:
        return self.bytes / self.seconds * 1e-9

    @property
    def share_of_copy(self) -> float:
        return self.copy_seconds / self.seconds

    def __str__(self) -> str:
        return (f"{self.seconds * 1e6:.1f} us, {self.gigabytes_per_second:.1f} GB/s, {self.share_of_copy:.2f} of a copy "
                f"(best of {self.calls})")


def _bytes(array):
    shape, _, kind, _, _ = _core.layout(array)
    return math.prod(shape) * BYTES[kind]


def bench(op, arrays, named, seconds):
    results = op(*arrays, **named)
    results = results if isinstance(results, tuple) else (results,)
    by_name = {name for name, *_ in op.operands}
    operands = [each for each in [*arrays, *(value for name, value in named.items() if name in by_name)]
                if each is not None]
    moved = sum(map(_bytes, [*operands, *results]))
    named = {**named, "out": results if len(results) > 1 else results[0]}
    on_cuda = _core.layout(operands[0])[3] != "cpu"
    call = lambda: op(*arrays, **named)
    copy = _copier(max(moved // 2, 1), on_cuda)
    timed = _time_on_cuda if on_cuda else _time_on_host
    best_call = best_copy = math.inf
    calls, start = 0, time.perf_counter()
    while calls < 3 or time.perf_counter() - start < seconds:  # in turn: both see the same machine
        best_call = min(best_call, timed(call))
        best_copy = min(best_copy, timed(copy))
        calls += 1
    return Timing(best_call, best_copy, moved, calls)


def _copier(count, on_cuda):
    if on_cuda:
        import torch
        source = torch.zeros(count, dtype=torch.uint8, device="cuda")
        target = torch.empty_like(source)
        return lambda: target.copy_(source)
    import numpy
    source, target = numpy.ones(count, numpy.uint8), numpy.empty(count, numpy.uint8)
    return lambda: numpy.copyto(target, source)


def _time_on_host(work):
    before = time.perf_counter()
    work()
    return time.perf_counter() - before


def _time_on_cuda(work, repeats=10):
    import torch
    first, last = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    first.record()
    for _ in range(repeats):
        work()
    last.record()
    last.synchronize()
    return first.elapsed_time(last) * 1e-3 / repeats

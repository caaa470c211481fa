"""The files of a trace: `trace.jsonl`, a line an event; `rows.bin`, 8 bytes of digest a block of rows; `arrays.bin`, elements
that are kept. docs/drift.md is their specification.
"""
import collections
import json
import math
import pathlib
import threading
import time

import torch

from .. import _core

BLOCKS = 1024  # of rows, that an array has at most
CHUNK_BYTES = 64 << 20  # of an array, that are on the host at a time

_OURS = {torch.float64: "f64", torch.float32: "f32", torch.float16: "f16", torch.bfloat16: "bf16", torch.float8_e4m3fn: "f8e4m3",
         torch.float8_e5m2: "f8e5m2", torch.float8_e8m0fnu: "f8e8m0", torch.int8: "i8", torch.int32: "i32", torch.int64: "i64",
         torch.uint8: "u8"}
_OTHERS = {torch.bool: "bool", torch.int16: "i16", torch.uint16: "u16", torch.uint32: "u32", torch.uint64: "u64",
           torch.complex64: "c64", torch.complex128: "c128"}


def _as_rows(tensor):
    """The array as [rows, columns], complex numbers as pairs."""
    tensor = tensor.detach().resolve_conj().resolve_neg()
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor.reshape(*tensor.shape, 1) if not tensor.dim() else tensor).flatten(-2)
    if not tensor.numel():
        return None
    return tensor.reshape(-1, tensor.shape[-1] if tensor.dim() else 1)


def _on_host(rows):
    """Without gaps; strides of axes of one element are anything unless said. Types that digests do not know as bytes."""
    rows = rows.contiguous().cpu()
    rows = rows.as_strided(rows.shape, (rows.shape[1], 1))
    return rows if rows.dtype in _OURS else rows.view(torch.uint8)


def _digests(rows):
    """8 bytes of the digest of each of at most 1024 rows."""
    _, _, _, _, digests = _core.block_digests(rows, 1, None, "xxh3-128")
    return bytes.fromhex("".join(digest[:16] for digest in digests.split()[1:]))


def is_plain(kind):
    """Whether operators on tensors of this class are torch's own."""
    return kind.__torch_dispatch__ is torch.Tensor.__torch_dispatch__


def is_readable(tensor):
    """Whether its elements can be looked at now."""
    return (is_plain(type(tensor)) and tensor.layout == torch.strided and not tensor.is_meta and not tensor.is_quantized
            and not torch._C._functorch.is_functorch_wrapped_tensor(tensor)
            and not (tensor.is_cuda and torch.cuda.is_current_stream_capturing()))


class TraceFiles:
    """Appends events. What has been written stays readable however the process ends: a line follows its digests."""

    def __init__(self, folder, progress):
        self.folder, self.progress = pathlib.Path(folder), progress
        self.folder.mkdir(parents=True, exist_ok=True)
        if (self.folder / "trace.jsonl").exists():
            raise FileExistsError(f"{self.folder} holds a trace; name another folder or remove it")
        self._lines = open(self.folder / "trace.jsonl", "x", encoding="utf-8")
        self._rows = open(self.folder / "rows.bin", "wb")
        self._arrays = open(self.folder / "arrays.bin", "wb")
        self._recent = collections.OrderedDict()  # digests that were written lately -> their place
        self._lock = threading.Lock()
        self.events = self.bytes = 0
        self._shown = self._began = time.monotonic()
        self._line({"trace": 1, "hash": "xxh3-128", "torch": torch.__version__, "threads": torch.get_num_threads()})

    def array(self, tensor, keep, digest=True):
        """Digests of an array, and its elements where they are kept, as a line says them."""
        said = {"type": (_OURS | _OTHERS).get(tensor.dtype, str(tensor.dtype).removeprefix("torch.")), "shape": list(tensor.shape)}
        if not digest or not is_readable(tensor):
            return said
        rows = _as_rows(tensor)
        if rows is None:
            return {**said, "rows": 0}
        # What is digested has a block in each row: the digests' own division into blocks does not matter.
        block = 1 << max(0, math.ceil(rows.shape[0] / BLOCKS) - 1).bit_length()
        row_bytes = rows.shape[1] * rows.element_size()
        step = block * max(1, CHUNK_BYTES // (block * row_bytes))
        digests = []
        keep = keep and tensor.dtype in _OURS | _OTHERS
        with self._lock:
            if keep:
                said["at"] = self._arrays.tell()
            for first in range(0, rows.shape[0], step):
                part = _on_host(rows[first:first + step])
                whole = part.shape[0] // block * block
                for some in (part[:whole].view(-1, block * part.shape[1]), part[whole:].view(1, -1)):
                    if some.numel():
                        digests.append(_digests(some))
                if keep:
                    self._arrays.write(part.view(torch.uint8).numpy().data)
            said["rows"] = self._place(b"".join(digests))
            self.bytes += rows.shape[0] * row_bytes
        return said

    def _place(self, digests):
        place = self._recent.pop(digests, None)
        if place is None:
            place = self._rows.tell() // 8
            self._rows.write(digests)
            if len(self._recent) == 256:
                self._recent.popitem(last=False)
        self._recent[digests] = place
        return place

    def event(self, **said):
        with self._lock:
            number = self.events
            self.events += 1
            self._line({"event": number, **{key: value for key, value in said.items() if value != ""}})
            now = time.monotonic()
            if self.progress and now - self._shown > 2:
                self._shown = now
                print(f"trireme: {self.events} events, {self.bytes / 1e9:.1f} GB digested, {now - self._began:.0f} s: "
                      f"{said['path']} {said['name']}", file=self.progress, flush=True)
        return number

    def _line(self, said):
        self._arrays.flush()
        self._rows.flush()
        self._lines.write(json.dumps(said, separators=(",", ":"), allow_nan=False) + "\n")
        self._lines.flush()

    def close(self, failure):
        with self._lock:
            self._line({"end": self.events, **({"failed": failure} if failure else {})})
            for file in (self._arrays, self._rows, self._lines):
                file.close()

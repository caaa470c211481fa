#!/usr/bin/env python3
"""Walks tape.json on a device and prints the loss of each step and the SHA-256 of all weights, the same on every device.

    python3 examples/one_digest/train.py --device reference          # or cpu, cpu:avx2, cuda (needs torch)
    PYTHONPATH=build/release/python                                  # without pip

In WebAssembly: train.mjs.
"""
import argparse
import hashlib
import json
import math
import pathlib
import sys
import time
from typing import Any

import numpy as np

import trireme

HERE = pathlib.Path(__file__).parent
DTYPES = {"f32": np.float32, "i32": np.int32, "i64": np.int64}


class Walk:
    def __init__(self, tape: dict[str, Any], device: str) -> None:
        self.tape, self.device, self.step = tape, device, 0
        self.operators = {name: trireme.op(text) for name, text in tape["programs"].items()}
        self.plans: dict[str, trireme.Plan] = {}
        self.buffers = {name: self.on_device(np.array(of.get("values", [0] * of.get("length", 0)), DTYPES[of["type"]]))
                        for name, of in tape["buffers"].items()}
        self.walk("start")

    def on_device(self, array: Any) -> Any:
        if not self.device.startswith("cuda"):
            return array
        import torch
        return torch.from_numpy(array).to(self.device)

    def walk(self, part: str) -> None:
        for index, call in enumerate(self.tape[part]):
            arrays = {**call["operands"], **call["results"]}
            constants = {name: self.now(value) for name, value in call.get("constants", {}).items()}
            plan = self.plan(f"{part} {index} {constants}", call, arrays, constants)
            plan.run({name: self.slice(slice) for name, slice in arrays.items()})

    def now(self, value: Any) -> Any:
        """What stands for a name in this step."""
        return self.tape["each_step"][value][self.step] if isinstance(value, str) else value

    def plan(self, key: str, call: dict[str, Any], arrays: dict[str, Any], constants: dict[str, Any]) -> trireme.Plan:
        if key not in self.plans:
            operator, absent = self.operators[call["program"]], call.get("absent", [])
            operator = operator.gradient() if call.get("backward") else operator
            self.plans[key] = operator.plan(
                call["shape"], device=self.device, types={name: self.tape["buffers"][of["of"]]["type"] for name, of in arrays.items()},
                absent=[name for name, *_ in operator.operands if name in absent], results=list(call["results"]),
                strides={name: (of["stride"], 1) for name, of in arrays.items() if "stride" in of},
                in_place=call.get("in_place"), **constants)
        return self.plans[key]

    def slice(self, slice: dict[str, Any]) -> Any:
        """A view of a buffer: rows that lie side by side, or `stride` elements apart."""
        shape, first = slice["shape"], slice.get("at", 0) + (self.now(slice["each"]) if "each" in slice else 0)
        flat = self.buffers[slice["of"]][first:]
        if "stride" not in slice:
            return flat[:math.prod(shape)].reshape(shape)
        if isinstance(flat, np.ndarray):
            return np.lib.stride_tricks.as_strided(flat, shape, (slice["stride"] * flat.itemsize, flat.itemsize))
        return flat.as_strided(shape, (slice["stride"], 1), flat.storage_offset())

    def bytes_of(self, name: str) -> bytes:
        array = self.buffers[name]
        return (array if isinstance(array, np.ndarray) else array.cpu().numpy()).tobytes()

    def digest(self) -> str:
        return hashlib.sha256(self.bytes_of(self.tape["digest"])).hexdigest()

    def train_step(self) -> float:
        """Its loss."""
        self.walk("step")
        self.step += 1
        return float(np.frombuffer(self.bytes_of(self.tape["loss"]), np.float32)[0])


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--steps", type=int, help="all of them unless said")
    options = parser.parse_args()
    tape, published = (json.loads((HERE / name).read_text()) for name in ("tape.json", "published.json"))
    if trireme.contract_version != published["contract"]:
        parser.error(f"the weights are of the contract's version {published['contract']}, and this is {trireme.contract_version}")
    steps = published["steps"] if options.steps is None else options.steps
    if missing := trireme.devices().get(options.device):
        sys.exit(f"{options.device}: {missing}")
    began = time.perf_counter()
    try:
        walk = Walk(tape, options.device)
    except (trireme.TriremeError, ImportError) as error:
        sys.exit(str(error))
    for step in range(steps):
        print(f"step {step + 1:3} loss {walk.train_step():.6f} weights {walk.digest()}")
    print(f"{options.device}: {steps} steps in {time.perf_counter() - began:.1f} s")
    if steps != published["steps"]:
        return 0
    same = walk.digest() == published["sha256"]
    print("the published weights" if same else f"other weights than those published, {published['sha256']}")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Trains a small transformer in one process, then in four: tensor parallel by two times data parallel by two. With --reference
the matrix products are a row program too, and the four must have the one's losses and weights, bit for bit; exits 1 if not.

    python3 examples/train_parallel.py --reference           # needs torch; PYTHONPATH=build/release/python without pip
    torchrun --nproc-per-node 4 examples/train_parallel.py --reference

Attention's heads, the gated unit's columns and the vocabulary are cut over two machines, the batch over the other two.
"""
import argparse
import datetime
import hashlib
import os
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

import trireme
import trireme.torch as tt
from trireme.torch import parallel

SIZE, HEADS, INSIDE, VOCABULARY = 512, 4, 512, 512  # halves of each are whole stripes of 256 columns
BATCH, CONTEXT = 4, 128  # so are halves of the 512 tokens, which weights' gradients are summed over
# Products of torch are summed in an order of their own, which depends on their shape: 6 steps carry that into the loss.
BOUND = 1e-4
PATIENCE = datetime.timedelta(minutes=5)  # of a process that waits for the others; the first trains alone while they wait at the end


def product(x: Tensor, w: Tensor) -> Tensor:
    """x @ w.t(), each element the contract's row sum: the same bits wherever and however it is computed."""
    made: Tensor = trireme.matmul(x, w, m=float(w.shape[0]))
    return made.view(x.shape[0], w.shape[0])


class Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, w: Tensor) -> Tensor:
        ctx.save_for_backward(x, w)
        return product(x, w)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor]:
        x, w = ctx.saved_tensors
        grad = grad.contiguous()
        return product(grad, w.t().contiguous()), product(grad.t().contiguous(), x.t().contiguous())


class Places:
    """Which part of the model and of the batch this process has."""

    def __init__(self, rank: int = 0, size: int = 1) -> None:
        self.tensor: dist.ProcessGroup | None = None
        self.data: dist.ProcessGroup | None = None
        self.model_part = self.batch_part = 0
        self.parts = 1
        if size == 4:
            mesh = dist.device_mesh.init_device_mesh("cpu", (2, 2), mesh_dim_names=("data", "tensor"))
            self.tensor, self.data = mesh.get_group("tensor"), mesh.get_group("data")
            self.batch_part, self.model_part = divmod(rank, 2)
            self.parts = 2

    def cut(self, tensor: Tensor, axis: int) -> Tensor:
        return tensor.chunk(self.parts, axis)[self.model_part].contiguous()

    def whole(self, tensor: Tensor, axis: int | None) -> Tensor:
        """The parts of all machines that share the batch."""
        if self.tensor is None or axis is None:
            return tensor
        parts = [torch.empty_like(tensor) for _ in range(2)]
        dist.all_gather(parts, tensor.contiguous(), group=self.tensor)
        return torch.cat(parts, axis)


class Model:
    # name: shape, and the axis that is cut over machines (None: all have it)
    SHAPES: dict[str, tuple[tuple[int, ...], int | None]] = {"embedding": ((SIZE, VOCABULARY), None), "first.weight": ((SIZE,), None), "q": ((SIZE, SIZE), 0), "k": ((SIZE, SIZE), 0),
              "v": ((SIZE, SIZE), 0), "o": ((SIZE, SIZE), 1), "second.weight": ((SIZE,), None), "up": ((INSIDE, SIZE), 0),
              "gate": ((INSIDE, SIZE), 0), "down": ((SIZE, INSIDE), 1), "last.weight": ((SIZE,), None),
              "head": ((VOCABULARY, SIZE), 0)}

    def __init__(self, places: Places, multiply: Callable[[Tensor, Tensor], Tensor]) -> None:
        self.places, self.multiply = places, multiply
        generator = torch.Generator().manual_seed(1)
        self.weights: dict[str, Tensor] = {}
        for name, (shape, axis) in self.SHAPES.items():
            value = torch.randn(shape, generator=generator) * shape[-1] ** -0.5 if len(shape) == 2 else torch.ones(shape)
            self.weights[name] = (value if axis is None else places.cut(value, axis)).requires_grad_()
        self.norm = parallel.over("rms_norm", rows=places.data)  # its weight's gradient is that of the whole batch
        self.total = parallel.over("total(x[i,j]) -> (s[])\n    s = colsum(x)", rows=places.data)

    def to_parts(self, x: Tensor) -> Tensor:
        return x if self.places.tensor is None else parallel.copy_to(x, self.places.tensor)

    def from_parts(self, x: Tensor) -> Tensor:
        return x if self.places.tensor is None else parallel.reduce_from(x, self.places.tensor)

    def attention(self, x: Tensor) -> Tensor:
        w, multiply = self.weights, self.multiply
        # Each product has its gradient summed by itself, as one process does; one to_parts for all three would add them up
        # in another order, and exchange a third.
        q, k, v = (multiply(self.to_parts(x), w[name]) for name in "qkv")
        width, mask = SIZE // HEADS, torch.full((CONTEXT, CONTEXT), -torch.inf).triu(1)
        rows = []
        for first in range(0, x.shape[0], CONTEXT):  # a sequence and a head at a time
            heads = []
            for begin in range(0, q.shape[1], width):
                here = slice(first, first + CONTEXT), slice(begin, begin + width)
                scores = multiply(q[here].contiguous(), k[here].contiguous()) * width ** -0.5 + mask
                heads.append(multiply(tt.softmax(scores), v[here].t().contiguous()))
            rows.append(torch.cat(heads, 1))
        return self.from_parts(multiply(torch.cat(rows), w["o"]))

    def unit(self, x: Tensor) -> Tensor:
        up, gate = (self.multiply(self.to_parts(x), self.weights[name]) for name in ("up", "gate"))
        return self.from_parts(self.multiply(tt.swiglu(up, gate), self.weights["down"]))

    def losses(self, tokens: Tensor, labels: Tensor) -> Tensor:
        """Of each token of this machine's part of the batch."""
        w = self.weights
        x = self.multiply(torch.nn.functional.one_hot(tokens, VOCABULARY).float(), w["embedding"])
        x = x + self.attention(self.norm(x, w["first.weight"]))
        x = x + self.unit(self.norm(x, w["second.weight"]))
        logits = self.multiply(self.to_parts(self.norm(x, w["last.weight"])), w["head"])
        if self.places.tensor is None:
            return tt.cross_entropy(logits, labels, reduction="none")
        return parallel.cross_entropy(logits, labels, reduction="none", group=self.places.tensor)

    def step(self, tokens: Tensor, labels: Tensor, state: dict[str, tuple[Tensor, ...]], count: int) -> float:
        losses = self.losses(tokens, labels)
        torch.autograd.backward(losses, torch.full_like(losses, 1 / (BATCH * CONTEXT)))
        loss: float = self.total(losses.detach().unsqueeze(1)).item() / (BATCH * CONTEXT)
        for name, weight in self.weights.items():
            grad = weight.grad
            assert grad is not None
            if self.places.data is not None and not name.endswith(".weight"):
                grad = parallel.sum_over(grad, self.places.data)
            flat = [each.view(-1, each.shape[-1]) for each in (weight.detach(), grad, *state.setdefault(
                name, (torch.zeros_like(weight), torch.zeros_like(weight))))]
            made = trireme.adamw(*flat, lr=1e-3, unbias1=1 / (1 - 0.9 ** count), unbias2=1 / (1 - 0.999 ** count), results="all")
            with torch.no_grad():
                weight.copy_(made[0].view(weight.shape))
            state[name] = tuple(each.view(weight.shape) for each in made[1:])
            weight.grad = None
        return loss


def train(places: Places, options: argparse.Namespace) -> tuple[list[float], dict[str, str]]:
    """Loss of each step, and a digest of each weight, whole."""
    multiply = Product.apply if options.reference else torch.nn.functional.linear
    model = Model(places, multiply)
    state: dict[str, tuple[Tensor, ...]] = {}
    losses = []
    generator = torch.Generator().manual_seed(2)
    text = torch.randint(0, VOCABULARY, (BATCH, CONTEXT + 1), generator=generator)  # to be learnt by heart
    mine = slice(places.batch_part * BATCH // places.parts, (places.batch_part + 1) * BATCH // places.parts)
    tokens, labels = text[mine, :-1].reshape(-1), text[mine, 1:].reshape(-1)
    for count in range(1, options.steps + 1):
        losses.append(model.step(tokens, labels, state, count))
    weights = {name: places.whole(weight.detach(), model.SHAPES[name][1]) for name, weight in model.weights.items()}
    return losses, {name: hashlib.sha256(each.contiguous().numpy().tobytes()).hexdigest()[:16] for name, each in weights.items()}


def compare(one: tuple[list[float], dict[str, str]], many: tuple[list[float], dict[str, str]],
            options: argparse.Namespace) -> list[str]:
    """What differs."""
    if not options.reference:
        return [f"step {k}: {a} and {b}" for k, (a, b) in enumerate(zip(one[0], many[0])) if not abs(a - b) < BOUND]
    found = [f"step {k}: {a.hex()} and {b.hex()}" for k, (a, b) in enumerate(zip(one[0], many[0])) if a != b]
    return found + [f"{name}: {one[1][name]} and {many[1][name]}" for name in one[1] if one[1][name] != many[1][name]]


def work(rank: int, size: int, options: argparse.Namespace, where: str) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=where, rank=rank, world_size=size, timeout=PATIENCE)
    begin, failed = time.time(), False
    many = train(Places(rank, size), options)
    if rank == 0:
        print(f"four processes: {' '.join(f'{each:.6f}' for each in many[0])}  ({time.time() - begin:.1f} s)")
        begin = time.time()
        one = train(Places(), options)
        print(f"one process:    {' '.join(f'{each:.6f}' for each in one[0])}  ({time.time() - begin:.1f} s)")
        differences = compare(one, many, options)
        print("\n".join(differences) or f"the same {'bits' if options.reference else 'but for roundings'}: {len(one[0])} losses"
              + (f", {len(one[1])} weights" if options.reference else ""))
        sys.stdout.flush()
        failed = bool(differences) or not one[0][-1] < one[0][0]
    dist.barrier()  # nobody takes its end of a connection away while another still uses it
    dist.destroy_process_group()
    sys.stdout.flush()
    os._exit(int(failed))  # past the interpreter's end, where threads of a mesh's group can abort it (PyTorch's issue 190489)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--reference", action="store_true", help="matrix products by a row program: all bits are equal")
    options = parser.parse_args()
    if "RANK" in os.environ:  # torchrun's
        if os.environ["WORLD_SIZE"] != "4":
            parser.error(f"{os.environ['WORLD_SIZE']} processes: tensor parallel by two times data parallel by two is four; "
                         "torchrun --nproc-per-node 4")
        work(int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]), options, "env://")
        return 0
    context = torch.multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder:
        processes = [context.Process(target=work, args=(rank, 4, options, f"file://{folder}/meeting")) for rank in range(4)]
        for each in processes:
            each.start()
        for each in processes:
            each.join()
    return int(any(each.exitcode for each in processes))


if __name__ == "__main__":
    sys.exit(main())

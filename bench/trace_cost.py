#!/usr/bin/env python3
"""What tracing costs: a training step (forward, backward, AdamW) and a decoding call of a transformer, plain and traced. The least
of some rounds, in turn.

    PYTHONPATH=build/release/python python3 bench/trace_cost.py [--device cuda] [--width 512] [--layers 4] [--rounds 5]
"""
import argparse
import pathlib
import tempfile
import time

import torch

import trireme.torch as tt

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
parser.add_argument("--width", type=int, default=512)
parser.add_argument("--layers", type=int, default=4)
parser.add_argument("--tokens", type=int, default=256)
parser.add_argument("--type", default="float32")
parser.add_argument("--rounds", type=int, default=5)
options = parser.parse_args()


class Layer(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.first, self.second = tt.RMSNorm(width), tt.RMSNorm(width)
        self.qkv, self.out = torch.nn.Linear(width, 3 * width, bias=False), torch.nn.Linear(width, width, bias=False)
        self.up, self.down = torch.nn.Linear(width, 8 * width, bias=False), torch.nn.Linear(4 * width, width, bias=False)

    def forward(self, x):
        q, k, v = (each.unflatten(-1, (-1, 64)).transpose(1, 2) for each in self.qkv(self.first(x)).chunk(3, -1))
        x = x + self.out(torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
        return x + self.down(tt.swiglu(*self.up(self.second(x)).chunk(2, -1)))


model = torch.nn.Sequential(*(Layer(options.width) for _ in range(options.layers))).to(options.device, getattr(torch, options.type))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)


def batch(tokens):
    return torch.randn(1, tokens, options.width, device=options.device, dtype=getattr(torch, options.type))


def step(x):
    model(x).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()


@torch.no_grad()
def decode(x):
    model(x)


def seconds(work, x, how):
    """And the trace's size, without its first digests of the parameters: they are made once a trace."""
    with tempfile.TemporaryDirectory() as folder:
        traced = None if how is None else tt.trace(model, pathlib.Path(folder) / "trace", **how)
        if traced:
            traced.__enter__()
        began = time.perf_counter()
        work(x)
        if options.device == "cuda":
            torch.cuda.synchronize()
        took = time.perf_counter() - began
        if traced:
            traced.__exit__(None, None, None)
        return took, sum(each.stat().st_size for each in pathlib.Path(folder).rglob("*") if each.is_file()), traced and traced.events


ways = {"plain": None, "modules alone": {"operators": False}, "digests": {}, "elements too": {"arrays": True}}
for name, work, tokens in (("training step", step, options.tokens), ("decoding call", decode, 1)):
    x, best = batch(tokens), {}
    work(x)
    for _ in range(options.rounds):
        for way, how in ways.items():
            best[way] = min(best.get(way, (float("inf"),)), seconds(work, x, how))
    for way, (took, size, events) in best.items():
        print(f"{name}, {way}: {took * 1e3:.1f} ms, {took / best['plain'][0]:.1f} times plain"
              + (f", {events} events, {size / 1e6:.2f} MB" if events else ""))

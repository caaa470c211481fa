#!/usr/bin/env python3
"""Seconds that torch.compile takes, forward and backward, for 1, 2, 4 and 8 layers of a transformer's shape, with Trireme's
operators and with torch's own. Each in a process of its own, without caches: Inductor remembers operators. The time must
grow with the number of layers, and no faster.

    PYTHONPATH=build/release/python python3 bench/compile_layers.py [--device cuda] [--layers 1,2,4,8] [--most 240]
"""
import argparse
import os
import subprocess
import sys
import time

options = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
options.add_argument("--device", help="cuda where there is one, else cpu")
options.add_argument("--layers", default="1,2,4,8")
options.add_argument("--most", type=float, default=240, help="seconds for one process, the import of torch included")
options.add_argument("--one", nargs=2, metavar=("LAYERS", "KIND"), help="compile this one, here")
options = options.parse_args()


def measure(layers, kind, device):
    import torch
    from torch import nn
    from torch.nn import functional as F

    import trireme.torch as tt

    def torchs_add_rms_norm(x, residual, weight, eps):
        h = x + residual
        return F.rms_norm(h, (64,), weight, eps), h

    def half(x):
        left, right = x.chunk(2, -1)
        return torch.cat((-right, left), -1)

    def torchs_rope(q, k, cos, sin):
        cos, sin = cos[:, None], sin[:, None]
        return q * cos + half(q) * sin, k * cos + half(k) * sin

    names = ("add_rms_norm", "rms_norm", "swiglu", "rope", "linear_cross_entropy")
    add_rms_norm, rms_norm, swiglu, rope, loss_of = [getattr(tt, name) for name in names] if kind == "trireme" else [
        torchs_add_rms_norm, F.rms_norm, lambda x, gate: F.silu(gate) * x, torchs_rope,
        lambda x, weight, target: F.cross_entropy(F.linear(x, weight), target)]

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = (nn.Parameter(torch.ones(64)) for _ in range(2))
            self.qkv, self.out = nn.Linear(64, 192), nn.Linear(64, 64)
            self.gate, self.up, self.down = nn.Linear(64, 128), nn.Linear(64, 128), nn.Linear(128, 64)

        def forward(self, x, residual, cos, sin):
            y, residual = add_rms_norm(x, residual, self.first, 1e-6)
            q, k, v = (each.unflatten(-1, (2, 32)).transpose(1, 2) for each in self.qkv(y).chunk(3, -1))
            q, k = rope(q, k, cos, sin)
            x = self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
            y, residual = add_rms_norm(x, residual, self.second, 1e-6)
            return self.down(swiglu(self.up(y), self.gate(y))), residual

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.head = nn.Embedding(128, 64), nn.Linear(64, 128)
            self.layers, self.norm = nn.ModuleList(Layer() for _ in range(layers)), nn.Parameter(torch.ones(64))
            self.register_buffer("cos", torch.randn(1, 16, 32))
            self.register_buffer("sin", torch.randn(1, 16, 32))

        def forward(self, tokens):
            x = self.embed(tokens)
            residual = torch.zeros_like(x)
            for layer in self.layers:
                x, residual = layer(x, residual, self.cos, self.sin)
            y, _ = add_rms_norm(x, residual, self.norm, 1e-6)
            return loss_of(rms_norm(y, (64,), None, 1e-6).flatten(0, 1), self.head.weight, tokens.flatten())

    torch.compile(lambda x: torch.tanh(x) + 1)(torch.ones(3, device=device))  # what Inductor does once
    model = Model().to(device)
    tokens = torch.randint(128, (2, 16), device=device)
    start = time.perf_counter()
    torch.compile(model)(tokens).backward()
    return time.perf_counter() - start


def main():
    import torch

    device = options.device or ("cuda" if torch.cuda.is_available() else "cpu")
    if options.one:
        print(f"{measure(int(options.one[0]), options.one[1], device):.2f}")
        return
    print(f"torch {torch.__version__}, {torch.cuda.get_device_name() if device == 'cuda' else 'CPU'}: seconds to compile")
    print("| layers | trireme | torch | ratio |\n| --- | --- | --- | --- |")
    environment = {**os.environ, "TORCHINDUCTOR_FORCE_DISABLE_CACHES": "1"}
    for layers in options.layers.split(","):
        found = []
        for kind in ("trireme", "torch"):
            command = [sys.executable, __file__, "--device", device, "--one", layers, kind]
            try:
                done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=options.most)
                found.append(float(done.stdout.split()[-1]) if not done.returncode else done.stderr.strip()[-200:])
            except subprocess.TimeoutExpired:
                found.append(float("inf"))
        ratio = f"{found[0] / found[1]:.2f}" if all(isinstance(each, float) for each in found) else "failed"
        print(f"| {layers} | {found[0]} | {found[1]} | {ratio} |", flush=True)


main()

#!/usr/bin/env python3
"""A whole training step (forward, backward, AdamW) of a LLaMA with its row-wise operators by torch, torch.compile, Liger and
Trireme, in one run: milliseconds and peak memory. The floor is the same step with every row-wise operator taken out.

    PYTHONPATH=build/release/python[:LIGER/src] python3 bench/train_step.py --presets llama,long,bert --json step.json
    ... bench/train_step.py                                         # llama alone: 8 layers, 2 x 4096 tokens, bf16
    ... bench/train_step.py --presets long                          # long context: the same model, 1 x 32768 tokens
    ... bench/train_step.py --presets bert                          # a classifier: 12 layers of LayerNorm and GELU, 64 x 512 tokens
    ... bench/train_step.py --presets bert --samples 16             # sizes that are said win over the preset's
    ... bench/train_step.py --variants trireme,floor --profile      # which kernels take the time
    ... bench/train_step.py --presets llama,long,bert --tiny        # seconds on a CPU, in f32

Each variant runs in a process of its own, from the same weights on the same tokens; the loss and the length of the gradient
after the first step must be eager torch's. The time is the median of steps, by CUDA events. One table a preset.
"""
import argparse
import json
import math
import os
import re
import statistics
import subprocess
import sys
import time

VARIANTS = ("eager", "compile", "liger", "liger-linear", "trireme", "trireme-logits", "trireme-compile", "floor")
WORDS = {"eager": "torch, eager", "compile": "torch.compile", "liger": "Liger", "liger-linear": "Liger, fused linear loss",
         "trireme": "Trireme", "trireme-logits": "Trireme, loss over logits in place",
         "trireme-compile": "Trireme under torch.compile", "floor": "floor: no row-wise operators"}

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--variants", default=",".join(VARIANTS), help="of " + ", ".join(VARIANTS))
LLAMA = dict(model="llama", layers=8, hidden=2048, intermediate=8192, heads=32, kv_heads=8, vocabulary=128256, samples=2,
             tokens=4096, steps=10, warm_up=4, type="bfloat16")
PRESETS = {"llama": LLAMA, "long": {**LLAMA, "samples": 1, "tokens": 32768},
           "bert": {**LLAMA, "model": "classifier", "layers": 12, "hidden": 768, "intermediate": 3072, "heads": 12,
                    "vocabulary": 30522, "samples": 64, "tokens": 512}}
TINY = dict(layers=2, hidden=64, intermediate=96, heads=4, kv_heads=2, vocabulary=160, steps=2, warm_up=1, type="float32")
TINY_TOKENS = {"llama": (2, 24), "long": (1, 200), "bert": (4, 24)}

parser.add_argument("--presets", "--preset", default="llama", help="one or several of " + ", ".join(PRESETS))
parser.add_argument("--model", choices=["llama", "classifier"],
                    help="classifier: as BERT, LayerNorm after each block, GELU, one label a sample")
for name, size in LLAMA.items():
    if name not in ("model", "type"):
        parser.add_argument(f"--{name.replace('_', '-')}", type=int, help=f"the preset's unless said; llama has {size}")
parser.add_argument("--chunk", type=int, help="tokens in a chunk of Trireme's linear loss")
parser.add_argument("--left-to-inductor", default="", help="programs that trireme-compile leaves to Inductor: swiglu,rope")
parser.add_argument("--type", choices=["bfloat16", "float16", "float32"])
parser.add_argument("--device", help="cuda where there is one, else cpu")
parser.add_argument("--profile", action="store_true", help="also list the kernels of a step, and where the device waits")
parser.add_argument("--json", help="write all numbers to this file")
parser.add_argument("--most", type=float, default=240, help="seconds for one variant")
parser.add_argument("--tiny", action="store_true", help="sizes that a CPU runs in seconds, in f32")
parser.add_argument("--one", choices=VARIANTS, help="run this one, here, and print JSON")
options = parser.parse_args()
SAID = {name: value for name, value in vars(options).items() if name in LLAMA and value is not None}
EPS = 1e-5


def take(preset):
    """Gives the options a preset's sizes, but for those that were said."""
    sizes = PRESETS[preset]
    if options.tiny:
        samples, tokens = TINY_TOKENS[preset]
        sizes = {**sizes, **TINY, "samples": samples, "tokens": tokens}
    vars(options).update({**sizes, **SAID})


# ---- row-wise operators, by variant: norm, add_norm, layer_norm, rope, glu, gelu, loss(hidden, head, labels) ----

def torch_operators():
    """As Hugging Face writes them."""
    import torch
    import torch.nn.functional as F

    def norm(x, weight):
        wide = x.float()
        return weight * (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + EPS)).to(x.dtype)

    def half(x):
        left, right = x.chunk(2, -1)
        return torch.cat((-right, left), -1)

    def rope(q, k, cos, sin):
        cos, sin = cos[:, None], sin[:, None]
        return q * cos + half(q) * sin, k * cos + half(k) * sin

    return dict(norm=norm, add_norm=lambda x, residual, weight: (norm(x + residual, weight), x + residual),
                layer_norm=lambda x, residual, weight, bias: F.layer_norm(x + residual, (len(weight),), weight, bias, EPS),
                rope=rope, glu=lambda up, gate: F.silu(gate) * up, gelu=F.gelu,
                loss=lambda hidden, head, labels: F.cross_entropy(F.linear(hidden, head).float(), labels))


def liger_operators(is_linear):
    from liger_kernel.ops.cross_entropy import LigerCrossEntropyFunction
    from liger_kernel.ops.fused_linear_cross_entropy import LigerFusedLinearCrossEntropyFunction
    from liger_kernel.ops.layer_norm import LigerLayerNormFunction
    from liger_kernel.ops.rms_norm import LigerRMSNormFunction
    from liger_kernel.ops.rope import LigerRopeFunction
    from liger_kernel.ops.swiglu import LigerSiLUMulFunction
    import torch.nn.functional as F

    def norm(x, weight):
        return LigerRMSNormFunction.apply(x, weight, EPS, 0.0, "llama", False)

    def add_norm(x, residual, weight):  # its own patches do so
        h = x + residual
        return norm(h, weight), h

    def loss(hidden, head, labels):
        if is_linear:
            return LigerFusedLinearCrossEntropyFunction.apply(hidden, head, labels)[0]
        return LigerCrossEntropyFunction.apply(F.linear(hidden, head), labels, None)[0]

    return dict(norm=norm, add_norm=add_norm, rope=LigerRopeFunction.apply,
                layer_norm=lambda x, residual, weight, bias: LigerLayerNormFunction.apply(x + residual, weight, bias, EPS),
                glu=lambda up, gate: LigerSiLUMulFunction.apply(gate, up), gelu=F.gelu, loss=loss)


def trireme_operators(is_linear):
    import torch.nn.functional as F
    import trireme.torch as tt

    if options.left_to_inductor:
        tt.leave_to_inductor(*options.left_to_inductor.split(","))
    gelu = tt.op("gelu(x[i,j]) -> (y[i,j])\n    y = gelu(x)\n")

    def loss(hidden, head, labels):
        if is_linear:
            return tt.linear_cross_entropy(hidden, head, labels, chunk=options.chunk)
        return tt.cross_entropy(F.linear(hidden, head), labels, in_place=True)

    return dict(norm=lambda x, weight: tt.rms_norm(x, (len(weight),), weight, EPS),
                add_norm=lambda x, residual, weight: tt.add_rms_norm(x, residual, weight, EPS), rope=tt.rope,
                layer_norm=lambda x, residual, weight, bias: tt.add_layer_norm(x, residual, weight, bias, EPS)[0],
                glu=tt.swiglu, gelu=gelu, loss=loss)


def no_operators():
    """Their inputs for their results, their gradients for their inputs': no memory is touched."""
    import torch
    import torch.nn.functional as F

    class First(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, other):
            return x.view_as(x)

        @staticmethod
        def backward(ctx, dy):
            return dy, dy

    class Loss(torch.autograd.Function):
        """Every logit is its own gradient."""

        @staticmethod
        def forward(ctx, logits):
            ctx.logits = logits.detach()
            return logits.new_zeros((), dtype=torch.float32)

        @staticmethod
        def backward(ctx, grad):
            found, ctx.logits = ctx.logits, None
            return found

    return dict(norm=lambda x, weight: x, add_norm=lambda x, residual, weight: (x, residual), gelu=lambda x: x,
                layer_norm=lambda x, residual, weight, bias: x, rope=lambda q, k, cos, sin: (q, k), glu=First.apply,
                loss=lambda hidden, head, labels: Loss.apply(F.linear(hidden, head)))


# ---- models ----

def make_model(operators):
    import torch
    import torch.nn.functional as F
    from torch import nn

    norm, add_norm, layer_norm, rope, glu, gelu, loss_of = (operators[name] for name in (
        "norm", "add_norm", "layer_norm", "rope", "glu", "gelu", "loss"))
    hidden, heads, kv_heads = options.hidden, options.heads, options.kv_heads
    columns = hidden // heads

    def linear(inputs, outputs):
        return nn.Linear(inputs, outputs, bias=False)

    class Attention(nn.Module):
        def __init__(self, kv_heads):
            super().__init__()
            self.kv_heads = kv_heads
            self.q, self.k, self.v = linear(hidden, hidden), *(linear(hidden, kv_heads * columns) for _ in range(2))
            self.out = linear(hidden, hidden)

        def forward(self, x, tables=None):
            q, k, v = (each(x).unflatten(-1, (-1, columns)).transpose(1, 2) for each in (self.q, self.k, self.v))
            if tables is not None:
                q, k = rope(q, k, *tables)
            y = F.scaled_dot_product_attention(q, k, v, is_causal=tables is not None, enable_gqa=self.kv_heads != heads)
            return self.out(y.transpose(1, 2).flatten(2))

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = (nn.Parameter(torch.ones(hidden)) for _ in range(2))
            self.attention = Attention(kv_heads)
            self.gate, self.up = (linear(hidden, options.intermediate) for _ in range(2))
            self.down = linear(options.intermediate, hidden)

        def forward(self, x, residual, tables):
            y, residual = (norm(x, self.first), x) if residual is None else add_norm(x, residual, self.first)
            y, residual = add_norm(self.attention(y, tables), residual, self.second)
            return self.down(glu(self.up(y), self.gate(y))), residual

    class Llama(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.head = nn.Embedding(options.vocabulary, hidden), linear(hidden, options.vocabulary)
            self.layers, self.last = nn.ModuleList(Layer() for _ in range(options.layers)), nn.Parameter(torch.ones(hidden))
            angles = torch.outer(torch.arange(options.tokens), 1e4 ** -(torch.arange(0, columns, 2) / columns))
            angles = torch.cat([angles, angles], -1)[None]
            self.register_buffer("cos", angles.cos())
            self.register_buffer("sin", angles.sin())

        def forward(self, tokens, labels):
            x, residual, tables = self.embed(tokens), None, (self.cos, self.sin)
            for layer in self.layers:
                x, residual = layer(x, residual, tables)
            y, _ = add_norm(x, residual, self.last)
            return loss_of(y.flatten(0, 1), self.head.weight, labels.flatten())

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.attention, self.up = Attention(heads), linear(hidden, options.intermediate)
            self.down = linear(options.intermediate, hidden)
            self.weights = nn.ParameterList(nn.Parameter(fill(hidden)) for fill in (torch.ones, torch.zeros) * 2)

        def forward(self, x):
            weights = self.weights  # by number: Dynamo of torch 2.11 takes no slices of them
            x = layer_norm(self.attention(x), x, weights[0], weights[1])
            return layer_norm(self.down(gelu(self.up(x))), x, weights[2], weights[3])

    class Classifier(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.head = nn.Embedding(options.vocabulary, hidden), linear(hidden, 128)
            self.place = nn.Parameter(torch.randn(options.tokens, hidden))
            self.blocks = nn.ModuleList(Block() for _ in range(options.layers))

        def forward(self, tokens, labels):
            x = self.embed(tokens) + self.place
            for block in self.blocks:
                x = block(x)
            return loss_of(x[:, 0], self.head.weight, labels[:, 0] % 128)

    torch.manual_seed(1)
    model = Llama() if options.model == "llama" else Classifier()
    for name, parameter in model.named_parameters():
        if parameter.dim() == 2:
            nn.init.normal_(parameter, std=0.02)
    return model


# ---- one variant ----

def error_of(text):
    """What a process that failed said: the exception's line, which advice may follow."""
    lines = text.strip().splitlines() or ["failed"]
    return next((each for each in reversed(lines) if re.match(r"[\w.]*(Error|Exception|Unsupported)\b", each)), lines[-1])


def waits_of(events):
    """Milliseconds in which the device did nothing, and the longest of its waits: after and before which kernels."""
    waits, end, last = [], events[0][1], events[0][2]
    for start, stop, name in events[1:]:
        if start > end:
            waits.append(((start - end) / 1e3, last, name))
        if stop > end:
            end, last = stop, name
    waits.sort(reverse=True)
    return dict(milliseconds=sum(each for each, *_ in waits), count=len(waits), busy=(end - events[0][0]) / 1e3,
                longest=[(each, after[:60], before[:60]) for each, after, before in waits[:10]])


def run(variant):
    import torch

    device = options.device or ("cuda" if torch.cuda.is_available() else "cpu")
    is_gpu = device.startswith("cuda")
    operators = {"liger": lambda: liger_operators(False), "liger-linear": lambda: liger_operators(True),
                 "trireme": lambda: trireme_operators(True), "trireme-logits": lambda: trireme_operators(False),
                 "trireme-compile": lambda: trireme_operators(True), "floor": no_operators}.get(variant, torch_operators)()
    with torch.device(device):
        model = make_model(operators).to(getattr(torch, options.type))
        generator = torch.Generator(device).manual_seed(2)
        shape = options.samples, options.tokens
        tokens, labels = (torch.randint(options.vocabulary, shape, generator=generator) for _ in range(2))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)
    work = torch.compile(model) if variant.endswith("compile") else model

    def step(look=None):
        optimizer.zero_grad(set_to_none=True)
        loss = work(tokens, labels)
        loss.backward()
        found = look(loss) if look else None
        optimizer.step()
        return found

    def look(loss):
        grads = [each.grad.detach().float() for each in model.parameters() if each.grad is not None]
        return float(loss.detach()), math.sqrt(sum(float(each.square().sum()) for each in grads))

    start = time.perf_counter()
    first_loss, first_gradient = step(look)
    first = time.perf_counter() - start
    for _ in range(options.warm_up):
        step()
    times = []
    if is_gpu:
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        for _ in range(options.steps):
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            begin.record()
            step()
            end.record()
            times.append((begin, end))
        torch.cuda.synchronize()
        times = [begin.elapsed_time(end) for begin, end in times]
    else:
        for _ in range(options.steps):
            start = time.perf_counter()
            step()
            times.append((time.perf_counter() - start) * 1e3)
    found = dict(variant=variant, milliseconds=statistics.median(times), times=times, first_seconds=first,
                 gibibytes=torch.cuda.max_memory_allocated() / 2**30 if is_gpu else None, loss=first_loss,
                 gradient=first_gradient, torch=torch.__version__,
                 device=torch.cuda.get_device_name() if is_gpu else "CPU")
    if options.profile:
        from torch.profiler import ProfilerActivity, profile
        with profile(activities=[ProfilerActivity.CUDA if is_gpu else ProfilerActivity.CPU]) as profiled:
            step()
            if is_gpu:
                torch.cuda.synchronize()
        key = "self_device_time_total" if is_gpu else "self_cpu_time_total"
        rows = sorted(profiled.key_averages(), key=lambda each: -getattr(each, key))[:24]
        found["profile"] = [(each.key[:110], each.count, getattr(each, key) / 1e3) for each in rows]
        if is_gpu:
            found["waits"] = waits_of(sorted((each.time_range.start, each.time_range.end, each.name)
                                             for each in profiled.events() if each.device_type.name == "CUDA"))
    return found


# ---- all of them ----

def main():
    presets = options.presets.split(",")
    unknown = [each for each in presets if each not in PRESETS]
    if unknown:
        parser.error(f"there is no preset {', '.join(unknown)}; there are {', '.join(PRESETS)}")
    if options.one:
        take(presets[0])
        print(json.dumps(run(options.one)))
        return 0
    all_found, bad = {}, []
    for preset in presets:
        take(preset)
        print(f"{'' if not all_found else chr(10)}## {preset}\n")
        all_found[preset] = dict(options=dict(vars(options)), found=table(preset, bad))
    if options.json:
        with open(options.json, "w") as file:
            json.dump(all_found, file, indent=1)
    for line in bad:
        print(f"FAIL {line}", file=sys.stderr)
    return 1 if bad else 0


def table(preset, bad):
    """Runs and prints the variants of a preset; what failed is added to `bad`."""
    command = [sys.executable, os.path.abspath(__file__), *sys.argv[1:], "--presets", preset, "--one"]
    found = {}
    for variant in options.variants.split(","):
        try:
            done = subprocess.run([*command, variant], capture_output=True, text=True, timeout=options.most)
            text = done.stdout.strip().splitlines()[-1] if done.returncode == 0 else ""
            found[variant] = json.loads(text) if text else dict(error=error_of(done.stderr))
        except subprocess.TimeoutExpired:
            found[variant] = dict(error=f"not done in {options.most:.0f} s")
        one = found[variant]
        if len(found) == 1 and "error" not in one:
            print(f"{one['device']}, torch {one['torch']}: {options.model} of {options.layers} layers, hidden {options.hidden}, "
                  f"vocabulary {options.vocabulary}, {options.samples} x {options.tokens} tokens, {options.type}; forward, "
                  f"backward, AdamW\n")
        if len(found) == 1:
            print("| variant | ms a step | GiB | loss | gradient | first step, s |\n| --- | --- | --- | --- | --- | --- |")
        if "error" in one:
            print(f"| {WORDS[variant]} | {one['error'][:160]} | | | | |", flush=True)
            if not (variant.startswith("liger") and ("liger_kernel" in one["error"] or "triton" in one["error"].lower())):
                bad.append(f"{preset}, {variant}: {one['error']}")
            continue
        memory = "" if one["gibibytes"] is None else f"{one['gibibytes']:.2f}"
        print(f"| {WORDS[variant]} | {one['milliseconds']:.2f} | {memory} | {one['loss']:.5f} | {one['gradient']:.4f} | "
              f"{one['first_seconds']:.1f} |", flush=True)
        reference = found.get("eager", {})
        if variant not in ("eager", "floor") and "loss" in reference:
            bound = 1e-4 if options.type == "float32" else 2e-2
            for what in ("loss", "gradient"):
                if not abs(one[what] - reference[what]) <= bound * abs(reference[what]):
                    bad.append(f"{preset}, {variant}: {what} {one[what]} is not eager torch's {reference[what]}")
    for variant, one in found.items():
        if one.get("profile"):
            print(f"\n{WORDS[variant]}: kernels of a step\n\n| kernel | calls | ms |\n| --- | --- | --- |")
            print("\n".join(f"| {name} | {count} | {milliseconds:.3f} |" for name, count, milliseconds in one["profile"]))
        if one.get("waits"):
            waits = one["waits"]
            print(f"\nThe device waits {waits['milliseconds']:.2f} of {waits['busy']:.2f} ms, {waits['count']} times; longest:\n")
            print("| ms | after | before |\n| --- | --- | --- |")
            print("\n".join(f"| {each:.3f} | {after} | {before} |" for each, after, before in waits["longest"]))
    return found


sys.exit(main())

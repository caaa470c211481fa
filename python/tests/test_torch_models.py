"""patch(): a small Llama written here, a small Gemma, and transformers' own where it is installed."""
import copy
import pickle

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
from torch import nn
from torch.nn import functional as F

import trireme.torch as tt


class LlamaNorm(nn.Module):
    def __init__(self, size, eps):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.variance_epsilon = eps

    def forward(self, hidden):
        kind = hidden.dtype
        hidden = hidden.to(torch.float32)
        hidden = hidden * torch.rsqrt(hidden.pow(2).mean(-1, keepdim=True) + self.variance_epsilon)
        return self.weight * hidden.to(kind)


class GemmaNorm(nn.Module):
    def __init__(self, size, eps):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(size))
        self.eps = eps

    def forward(self, x):
        y = x.float() * torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + self.eps)
        return (y * (1.0 + self.weight.float())).type_as(x)


class OddNorm(nn.Module):
    """Nothing of Trireme's: it must be left alone."""

    def __init__(self, size, eps):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.eps = eps

    def forward(self, x):
        return self.weight * x / (x.abs().mean(-1, keepdim=True) + self.eps)


class Mlp(nn.Module):
    def __init__(self, size, act_fn):
        super().__init__()
        self.gate_proj, self.up_proj = nn.Linear(size, 3 * size, bias=False), nn.Linear(size, 3 * size, bias=False)
        self.down_proj = nn.Linear(3 * size, size, bias=False)
        self.act_fn = act_fn

    def forward(self, x):
        return self.down_proj(self.act_fn(self.gate_proj(x)) * self.up_proj(x))


class Block(nn.Module):
    def __init__(self, size, norm, act_fn):
        super().__init__()
        self.input_layernorm, self.post_attention_layernorm = norm(size, 1e-5), norm(size, 1e-5)
        self.qkv, self.out = nn.Linear(size, 3 * size, bias=False), nn.Linear(size, size, bias=False)
        self.mlp = Mlp(size, act_fn)

    def forward(self, x):
        q, k, v = (each.unflatten(-1, (4, -1)).transpose(1, 2) for each in
                   self.qkv(self.input_layernorm(x)).chunk(3, -1))
        x = x + self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
        return x + self.mlp(self.post_attention_layernorm(x))


class Model(nn.Module):
    def __init__(self, norm=LlamaNorm, act_fn=None, size=64):
        super().__init__()
        torch.manual_seed(5)
        self.embed = nn.Embedding(50, size)
        self.layers = nn.ModuleList(Block(size, norm, act_fn or nn.SiLU()) for _ in range(2))
        self.norm = norm(size, 1e-6)
        self.head = nn.Linear(size, 50, bias=False)
        for parameter in self.parameters():
            if parameter.dim() == 1:
                nn.init.normal_(parameter, 1 if norm is not GemmaNorm else 0, 0.2)

    def forward(self, tokens):
        x = self.embed(tokens)
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x))


def compare(model, tokens, bound):
    patched = copy.deepcopy(model)
    report = tt.patch(patched)
    outputs = [each(tokens) for each in (model, patched)]
    torch.testing.assert_close(outputs[1], outputs[0], rtol=bound, atol=bound)
    for each, output in zip((model, patched), outputs):
        F.cross_entropy(output.flatten(0, -2).float(), tokens.flatten()).backward()
    for (name, a), b in zip(model.named_parameters(), patched.parameters()):
        scale = max(float(a.grad.abs().max()), 1e-6)
        torch.testing.assert_close(b.grad / scale, a.grad / scale, rtol=bound, atol=bound, msg=lambda text: f"{name} {text}")
    return patched, report


@pytest.mark.parametrize("norm, act_fn, norm_kernel, unit", [
    (LlamaNorm, nn.SiLU(), "rms_norm_llama", "swiglu_llama"),
    (GemmaNorm, nn.GELU(approximate="tanh"), "rms_norm, offset 1", "geglu_rounded"),
    (nn.LayerNorm, nn.GELU(), "layer_norm", "geglu_erf_rounded"),
    (nn.RMSNorm, F.relu, "rms_norm", "reglu_rounded"),
])
def test_small_models(norm, act_fn, norm_kernel, unit):
    made = (lambda size, eps: norm(size, eps=eps)) if norm in (nn.LayerNorm, nn.RMSNorm) else norm
    model = Model(made, act_fn)
    tokens = torch.randint(50, (2, 9))
    patched, report = compare(model, tokens, 1e-4)
    assert report == {**{f"layers.{k}.{name}": norm_kernel for k in (0, 1)
                         for name in ("input_layernorm", "post_attention_layernorm")},
                      **{f"layers.{k}.mlp": unit for k in (0, 1)}, "norm": norm_kernel}
    assert list(patched.state_dict()) == list(model.state_dict())
    assert tt.patch(patched) == {}  # twice changes nothing


def test_eps_is_the_modules_own():
    norm = LlamaNorm(64, 1e-6)
    holder = nn.ModuleList([norm])
    tt.patch(holder)
    x = torch.full((1, 64), 1e-3)
    before = norm(x)
    norm.variance_epsilon = 1.0
    assert torch.allclose(norm(x), LlamaNorm(64, 1.0)(x)) and not torch.allclose(norm(x), before)


def test_roundings_are_the_models():
    """In bf16 nearly every value is the unpatched norm's; the sums' order moves a few."""
    x = torch.randn(64, 64).bfloat16()
    for norm in (LlamaNorm, GemmaNorm):
        module = norm(64, 1e-6).bfloat16()
        nn.init.normal_(module.weight)
        wanted = module(x)
        tt.patch(nn.ModuleList([module]))
        assert module(x).dtype == wanted.dtype and (module(x) != wanted).float().mean() < 0.01
    mixed = LlamaNorm(64, 1e-6)  # f32 weights, bf16 activations: f32 comes out, as from the module itself
    wanted = mixed(x)
    tt.patch(nn.ModuleList([mixed]))
    assert mixed(x).dtype == wanted.dtype == torch.float32


def test_what_is_something_else_is_left_alone():
    model = Model(OddNorm, nn.Tanh())
    forward = model.norm.forward
    assert tt.patch(model) == {} and model.norm.forward == forward


def test_unpatch_pickle_and_compile():
    model = Model()
    tokens = torch.randint(50, (2, 9))
    wanted = model(tokens)
    tt.patch(model)
    patched = model(tokens)
    assert torch.equal(pickle.loads(pickle.dumps(model))(tokens), patched)
    compiled = torch.compile(copy.deepcopy(model), fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(tokens), patched, rtol=1e-5, atol=1e-5)
    tt.unpatch(model)
    assert torch.equal(model(tokens), wanted) and type(model.norm) is LlamaNorm and "_trireme_eps" not in model.norm.__dict__
    only = tt.patch(model, gated=False)
    assert set(only.values()) == {"rms_norm_llama"}


@pytest.mark.parametrize("family", ["llama", "gemma", "qwen3", "mistral", "phi3"])
def test_transformers(family):
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    config = transformers.AutoConfig.for_model(
        family, vocab_size=50, hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, head_dim=16, max_position_embeddings=64, pad_token_id=0)
    torch.manual_seed(5)
    model = transformers.AutoModelForCausalLM.from_config(config).float().eval()
    tokens = torch.randint(50, (2, 9))
    patched = copy.deepcopy(model)
    report = tt.patch(patched)
    norms = [name for name, module in model.named_modules() if type(module).__name__.endswith("RMSNorm")]
    mlps = [name for name, module in model.named_modules() if type(module).__name__.endswith("MLP")]
    assert norms and mlps and set(report) == {*norms, *mlps}
    outputs = [each(tokens, labels=tokens) for each in (model, patched)]
    torch.testing.assert_close(outputs[1].logits, outputs[0].logits, rtol=1e-4, atol=1e-4)
    for each in outputs:
        each.loss.backward()
    for a, b in zip(model.parameters(), patched.parameters()):
        torch.testing.assert_close(b.grad, a.grad, rtol=1e-3, atol=1e-5)


def test_the_example_trains_alike_with_and_without(tmp_path):
    import os
    import pathlib
    import subprocess
    import sys

    example = pathlib.Path(__file__).resolve().parents[2] / "examples/train_tiny.py"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    drawn = tmp_path / "curves.svg"
    done = subprocess.run([sys.executable, example, "--steps", "15", "--device", "cpu", "--svg", drawn], env=environment,
                          capture_output=True, text=True)
    assert done.returncode == 0 and "within the bound" in done.stdout, done.stdout + done.stderr
    assert drawn.read_text().count("<polyline") == 2
    strict = subprocess.run([sys.executable, example, "--steps", "5", "--device", "cpu", "--bound", "-1"], env=environment,
                            capture_output=True, text=True)
    assert strict.returncode == 1 and "beyond the bound" in strict.stdout

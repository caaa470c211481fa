"""patch(): small models written here, and transformers' own."""
import copy
import pickle
import re

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


# ---- fault 53: what small samples, one mode or one instance do not show ----

class ClampedMlp(Mlp):
    """DeepSeek-V4's has (None, 10) and (-10, 10): beyond 10 it is another function."""

    def __init__(self, size, act_fn, gate=(-10, 10), up=(-10, 10)):
        super().__init__(size, act_fn)
        self.limits = gate, up

    def forward(self, x):
        (low, high), (least, most) = self.limits
        gate, up = self.gate_proj(x).clamp(min=low, max=high), self.up_proj(x).clamp(least, most)
        return self.down_proj(self.act_fn(gate) * up)


class DroppedMlp(Mlp):
    """Seed-OSS's and T5Gemma's: in evaluation it is a gated unit."""

    def forward(self, x):
        return self.down_proj(F.dropout(self.act_fn(self.gate_proj(x)) * self.up_proj(x), 0.5, self.training))


class SparseMlp(Mlp):
    """Gemma3n's: some layers cut small activations off."""

    def __init__(self, size, act_fn, cut):
        super().__init__(size, act_fn)
        self.cut = cut

    def forward(self, x):
        gate = self.gate_proj(x)
        if self.cut:
            gate = F.relu(gate - gate.mean(-1, keepdim=True) - self.cut * gate.std(-1, keepdim=True))
        return self.down_proj(self.act_fn(gate) * self.up_proj(x))


class ResidualMlp(Mlp):
    def forward(self, x):
        return x + self.down_proj(self.act_fn(self.gate_proj(x)) * self.up_proj(x))


class BiasedNorm(LlamaNorm):
    """A bias that is zero when the model is made."""

    def __init__(self, size, eps):
        super().__init__(size, eps)
        self.bias = nn.Parameter(torch.zeros(size))

    def forward(self, hidden):
        return super().forward(hidden) + self.bias


class OffsetNorm(GemmaNorm):
    """An offset of each instance's own."""

    def __init__(self, size, eps, offset):
        super().__init__(size, eps)
        self.offset = offset

    def forward(self, x):
        y = x.float() * torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + self.eps)
        return (y * (self.offset + self.weight.float())).type_as(x)


class HeldNorm(GemmaNorm):
    """Another gradient than its formula's."""

    def forward(self, x):
        y = x.float() * torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + self.eps).detach()
        return (y * (1.0 + self.weight.float())).type_as(x)


class BranchingNorm(LlamaNorm):
    def forward(self, hidden):
        return hidden if hidden.abs().max() > 1e3 else super().forward(hidden)


class CountingNorm(LlamaNorm):
    calls = 0

    def forward(self, hidden):
        self.calls += 1
        return super().forward(hidden) if self.calls < 100 else hidden


class FixedNorm(LlamaNorm):
    """Its eps is not the one it shows."""

    def forward(self, hidden):
        wide = hidden.float()
        return self.weight * (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)).to(hidden.dtype)


class ChannelsNorm(nn.LayerNorm):
    """ConvNext's: of images the second axis."""

    def forward(self, x):
        return super().forward(x.movedim(1, -1)).movedim(-1, 1) if x.dim() == 4 else super().forward(x)


class DroppedNorm(LlamaNorm):
    def forward(self, hidden):
        return F.dropout(super().forward(hidden), 0.1, self.training)


@pytest.mark.parametrize("module, why", [
    (ClampedMlp(16, nn.SiLU()), "clamp"), (ClampedMlp(16, nn.SiLU(), (None, 10), (-9, 10)), "clamp"),
    (ClampedMlp(16, nn.SiLU(), (None, 1e4), (-1e4, 1e4)), "clamp"), (ClampedMlp(16, nn.ReLU(), (None, 7), (-7, 7)), "no kernel"),
    (DroppedMlp(16, nn.SiLU()), "dropout|bernoulli"),
    (SparseMlp(16, nn.SiLU(), 1.5), "std|var"), (ResidualMlp(16, nn.SiLU()), "add"),
    (Mlp(16, nn.Hardswish()), "hardswish"), (Mlp(16, nn.Tanh()), "no kernel"),
    (Mlp(16, lambda x: F.silu(x) * 1.0001), "no kernel"), (BiasedNorm(16, 1e-6), "no kernel"),
    (HeldNorm(16, 1e-6), "no kernel"), (BranchingNorm(16, 1e-6), "abs|max"), (CountingNorm(16, 1e-6), "changes it"),
    (FixedNorm(16, 1e-6), "no kernel"), (ChannelsNorm(4), "no kernel|could not be tried"),
    (DroppedNorm(16, 1e-6), "dropout|bernoulli"), (OffsetNorm(16, 1e-6, 0.5), "no kernel"),
    (nn.BatchNorm1d(16), "it has num_batches_tracked, running"),
], ids=lambda each: type(each).__name__ if isinstance(each, nn.Module) else "")
@pytest.mark.parametrize("training", [False, True])
def test_fault_53_what_samples_do_not_show_is_left_alone_and_said(module, why, training):
    holder = nn.ModuleList([module]).train(training)
    state = {name: value.clone() for name, value in holder.state_dict().items()}
    torch.manual_seed(1)
    following = torch.get_rng_state()
    report = tt.patch(holder)
    assert report == {} and list(report.left) == ["0"]
    assert re.search(why, report.left["0"]), report.left
    assert report.left["0"] in str(report)
    assert torch.equal(torch.get_rng_state(), following) and module.training == training
    assert all(each.training == training for each in module.modules())
    assert all(torch.equal(value, state[name]) for name, value in holder.state_dict().items())


def test_fault_53_decided_by_instance():
    """One class, and others' activation, offset, sparsity."""
    holder = nn.ModuleList([Mlp(16, nn.SiLU()), Mlp(16, nn.ReLU()), Mlp(16, lambda x: F.gelu(x)),
                            SparseMlp(16, nn.SiLU(), 0.0), SparseMlp(16, nn.SiLU(), 1.5),
                            OffsetNorm(16, 1e-6, 0.0), OffsetNorm(16, 1e-6, 1.0),
                            OffsetNorm(16, 1e-6, 2.0), Mlp(16, nn.SiLU())])
    before = copy.deepcopy(holder)
    report = tt.patch(holder)
    assert report == {"0": "swiglu_llama", "1": "reglu_rounded", "2": "geglu_erf_rounded", "3": "swiglu_llama",
                      "5": "rms_norm", "6": "rms_norm, offset 1", "8": "swiglu_llama"}
    assert set(report.left) == {"4", "7"}
    x = torch.randn(5, 16) * 20
    for mine, theirs in zip(holder, before):
        torch.testing.assert_close(mine(x), theirs(x), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16, torch.float16])
def test_clamped_gates_of_their_own_limits(kind):
    modules = [ClampedMlp(16, nn.SiLU(), (None, limit), (-limit, limit)).to(kind) for limit in (10, 7.3, 0.5)]
    holder = nn.ModuleList(copy.deepcopy(modules))
    assert set(tt.patch(holder).values()) == {"clamped_swiglu_rounded"}
    x = (torch.randn(5, 16) * 60).to(kind)
    for mine, theirs in zip(holder, modules):
        torch.testing.assert_close(mine(x), theirs(x), rtol=1e-5 if kind == torch.float32 else 2e-2, atol=1e-2)
    assert not torch.allclose(holder[0](x), holder[2](x))


class Counted(nn.SiLU):
    calls = 0

    def forward(self, x):
        Counted.calls += 1
        return super().forward(x)


@pytest.mark.parametrize("when", ["before", "after"])
def test_hooks_of_an_activation_are_called(when):
    """Also those that the kernel would pass by; and none of our samples is shown to them."""
    torch.manual_seed(3)
    plain, seen = Mlp(16, Counted()), []
    patched = copy.deepcopy(plain)

    def hook():
        return [each.act_fn.register_forward_hook(lambda module, inputs, result: seen.append(module) or result / 2)
                for each in (patched, plain)]

    handles = hook() if when == "before" else []
    assert tt.patch(patched)
    handles = handles or hook()
    x = torch.randn(3, 16)
    assert not seen and torch.equal(patched(x), plain(x)) and seen == [patched.act_fn, plain.act_fn]
    for handle in handles:
        handle.remove()
    before = Counted.calls
    assert patched(x).shape == x.shape and Counted.calls == before, "the kernel serves again"


@pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning")
def test_what_torch_jit_compiled_is_left_alone():
    model = nn.Sequential(nn.LayerNorm(16), torch.jit.script(nn.Sequential(nn.LayerNorm(16))),
                          torch.jit.trace(nn.LayerNorm(16), torch.randn(2, 16)))
    x = torch.randn(3, 16)
    wanted = model(x)
    report = tt.patch(model)
    assert list(report) == ["0"] and report.left == dict.fromkeys(("1", "1.0", "2"), "it is compiled by torch.jit")
    torch.testing.assert_close(model(x), wanted)
    assert not tt.patch(torch.jit.script(nn.LayerNorm(16)))
    tt.unpatch(model)
    unit = Mlp(16, torch.jit.script(nn.SiLU()))
    wanted = unit(x)
    tt.patch(unit)
    torch.testing.assert_close(unit(x), wanted)


def test_fault_53_a_replaced_forward_stays():
    norm = LlamaNorm(16, 1e-6)
    norm.forward = lambda hidden: hidden * 2
    report = tt.patch(nn.ModuleList([norm]))
    assert report == {} and "replaced" in report.left["0"] and torch.equal(norm(torch.ones(2, 16)), torch.full((2, 16), 2.0))


def test_fault_53_models_without_memory_and_under_modes():
    """Loading code patches models on the meta device, with other default types, under autocast."""
    with torch.device("meta"):
        model = Model()
    with torch.device("meta"), torch.autocast("cpu", dtype=torch.bfloat16), torch.no_grad():
        report = tt.patch(model)
    assert len(report) == 7 and not report.left
    model.to_empty(device="cpu").load_state_dict(Model().state_dict())
    torch.testing.assert_close(model(torch.arange(9)[None]), Model()(torch.arange(9)[None]), rtol=1e-4, atol=1e-4)


def test_fault_53_types_that_were_not_tried_are_the_modules_own():
    class T5Norm(LlamaNorm):
        def forward(self, hidden):
            variance = hidden.float().pow(2).mean(-1, keepdim=True)
            hidden = hidden * torch.rsqrt(variance + self.variance_epsilon)
            return self.weight * (hidden if self.weight.dtype == torch.float32 else hidden.to(self.weight.dtype))

    for weight in (torch.float32, torch.bfloat16, torch.float64):
        norm = T5Norm(64, 1e-6).to(weight)
        nn.init.normal_(norm.weight)
        same = copy.deepcopy(norm)
        assert tt.patch(nn.ModuleList([norm])) == {"0": "rms_norm_llama"}
        for kind in (torch.float32, torch.bfloat16, torch.float16, torch.float64):
            x = torch.randn(16, 64).to(kind)
            mine, theirs = norm(x), same(x)
            assert mine.dtype == theirs.dtype, (kind, weight)
            torch.testing.assert_close(mine, theirs, rtol=2e-2 if torch.float32 not in (kind, weight) else 1e-2, atol=1e-2)


def test_fault_53_autocast_gives_the_same_types():
    for norm in (nn.LayerNorm(16), nn.RMSNorm(16, eps=1e-6), LlamaNorm(16, 1e-6), GemmaNorm(16, 1e-6)):
        patched = copy.deepcopy(norm)
        assert len(tt.patch(nn.ModuleList([patched]))) == 1
        for x in (torch.randn(5, 16), torch.randn(5, 16).bfloat16()):
            with torch.autocast("cpu", dtype=torch.bfloat16):
                mine, theirs = patched(x), norm(x)
            assert mine.dtype == theirs.dtype
            torch.testing.assert_close(mine, theirs, rtol=2e-2, atol=2e-2)


def test_fault_54_calls_that_were_not_tried_go_to_the_module_itself():
    """A sum with a residual stream may come first, Gemma's may have no weight; arguments go by name as well."""
    class AddingNorm(LlamaNorm):
        def forward(self, hidden, residual=None):
            return super().forward(hidden if residual is None else hidden + residual)

    class BareNorm(GemmaNorm):
        def __init__(self, size, eps):
            super().__init__(size, eps)
            del self.weight

        def forward(self, x):
            return (x.float() * torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + self.eps)).type_as(x)

    import inspect
    adding, bare, llama = AddingNorm(16, 1e-6), BareNorm(16, 1e-6), LlamaNorm(16, 1e-6)
    before = copy.deepcopy([adding, bare, llama])
    assert tt.patch(nn.ModuleList([adding, bare, llama])) == {"0": "rms_norm_llama", "1": "rms_norm, no weight",
                                                             "2": "rms_norm_llama"}
    x, other = torch.randn(5, 16), torch.randn(5, 16)
    for mine, theirs in [(adding(x, other), before[0](x, other)), (adding(x, residual=other), before[0](x, other)),
                         (adding(x), before[0](x)), (bare(x), before[1](x)), (llama(hidden=x), before[2](x)),
                         (bare(torch.randn(3, 7)[:, :0].new_ones(3, 5)), torch.ones(3, 5))]:
        torch.testing.assert_close(mine, theirs, rtol=1e-5, atol=1e-5)
    assert inspect.signature(adding.forward) == inspect.signature(before[0].forward)
    assert torch.equal(pickle.loads(pickle.dumps(llama))(x), llama(x))


# ---- transformers' models: tiny, random, patched in evaluation and trained ----

# What each must leave alone, and why; all else that looks like a norm, a gated unit or a rotation is patched.
EXPERTS = {"experts": "its experts are in one array"}
ARCHITECTURES = {
    "llama": {}, "mistral": {}, "qwen3": {}, "phi3": {"layers.0": "sum before .* self.resid_attn_dropout"}, "gemma": {}, "glm4": {},
    "deepseek_v3": {**EXPERTS, "self_attn": "no kernel gives the results of apply_rotary_pos_emb_interleave"}, "gemma4_text": {},
    "mamba2": {}, "bamba": {}, "granitemoehybrid": {**EXPERTS, "layers.1": "sum before .* self.residual_multiplier"},
    "qwen3_next": EXPERTS, "qwen3_5_text": {}, "nemotron_h": {}, "nemotron": {}, "deepseek_v4": EXPERTS, "glm5_next_text": EXPERTS,
    "seed_oss": {"mlp": "dropout|bernoulli"}, "t5gemma": {"mlp": "dropout|bernoulli", "": "its head is T5GemmaLMHead|dropout|bernoulli"},
    "gemma3n_text": {"layers.0.mlp": "std|mean"}, "zamba2": {"feed_forward": "could not be tried"},
}


WITH_GATED_NORMS = {"mamba2", "bamba", "granitemoehybrid", "qwen3_next", "qwen3_5_text", "nemotron_h", "glm5_next_text", "zamba2"}


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_fault_53_and_54_transformers(name, monkeypatch):
    """Logits, loss and gradients of a patched model are the unpatched one's, in evaluation and in training. Of norms with a gate
    the kernel runs."""
    import tiny_models
    from trireme.torch import _kernels
    ran, original = set(), _kernels.GatedNorm.run
    monkeypatch.setattr(_kernels.GatedNorm, "run", lambda self, module, *given, **more: ran.add(module) or original(
        self, module, *given, **more))
    model, inputs = tiny_models.tiny(name)
    patched = copy.deepcopy(model)
    report = tt.patch(patched)
    assert report, "nothing was patched"
    ran.clear()
    for ending, why in ARCHITECTURES[name].items():
        reasons = [said for path, said in report.left.items() if path.endswith(ending)]
        assert reasons and all(re.search(why, said) for said in reasons), report.left
    for path, said in report.left.items():
        assert any(re.search(why, said) for why in ARCHITECTURES[name].values()), (path, said)
    tiny_models.grow(model)
    tiny_models.grow(patched)
    worst, what = tiny_models.compare(model, patched, inputs)
    assert worst <= 5e-4, (worst, what)
    gated = {patched.get_submodule(path) for path, kernel in report.items() if kernel.startswith("gated_rms_norm")}
    assert ran == gated and bool(gated) == (name in WITH_GATED_NORMS)
    tt.unpatch(patched)
    assert tiny_models.compare(model, patched, inputs)[0] == 0


def test_fault_53_and_54_every_architecture(capsys):
    """All that transformers can make small; `make test-all` asks for it. About five minutes on two cores."""
    import os
    import pathlib
    import subprocess
    import sys

    if not os.environ.get("TRIREME_ALL_MODELS") and not os.environ.get("LONG"):
        pytest.skip("LONG=1 or TRIREME_ALL_MODELS=1 tries every architecture of transformers")
    program = pathlib.Path(__file__).with_name("tiny_models.py")
    done = subprocess.run([sys.executable, program], env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
                          capture_output=True, text=True)
    with capsys.disabled():
        print("\n".join(line for line in done.stdout.splitlines() if re.search("BROKEN|DIFFERS", line) or line[:1] != "["))
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


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

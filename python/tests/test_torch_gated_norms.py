"""patch(): norms whose forward takes a gate, and those of weights that stand for one more than they are."""
import copy
import itertools
import pickle

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
from torch import nn
from torch.nn import functional as F

import trireme.torch as tt
from trireme.torch import _kernels

TYPES = torch.float32, torch.bfloat16, torch.float16


class Gated(nn.Module):
    def __init__(self, size=32):
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.randn(size)), 1e-6

    def normed(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)


class GateFirst(Gated):  # Mamba2's
    def forward(self, hidden, gate=None):
        wide = hidden.float() if gate is None else hidden.float() * F.silu(gate.float())
        return self.weight * self.normed(wide).to(hidden.dtype)


class InGroups(Gated):  # Zamba2's
    def __init__(self):
        super().__init__()
        self.group_size = 8

    def forward(self, hidden, gate=None):
        wide = hidden.float() if gate is None else hidden.float() * F.silu(gate.float())
        return self.weight * self.normed(wide.unflatten(-1, (-1, self.group_size))).flatten(-2).to(hidden.dtype)


class NormFirst(Gated):  # Qwen3-Next's
    def forward(self, hidden, gate):
        y = self.weight * self.normed(hidden.float()).to(hidden.dtype)
        return (y * F.silu(gate.float())).to(hidden.dtype)


class Once(Gated):  # Kimi's
    def forward(self, hidden, z):
        return (self.weight.float() * self.normed(hidden.float()) * torch.sigmoid(z.float())).to(hidden.dtype)


class Silu(Gated):
    def forward(self, hidden, gate):
        return (self.weight.float() * self.normed(hidden.float()) * F.silu(gate.float())).to(hidden.dtype)


KERNELS = {GateFirst: "gated_rms_norm, gate first, rounded", InGroups: "gated_rms_norm, gate first, rounded, in groups",
           NormFirst: "gated_rms_norm, rounded", Once: "gated_rms_norm, sigmoid", Silu: "gated_rms_norm"}


def count_runs(monkeypatch):
    ran, original = [], _kernels.GatedNorm.run
    monkeypatch.setattr(_kernels.GatedNorm, "run", lambda *given: ran.append(given[1]) or original(*given))
    return ran


@pytest.mark.parametrize("kind", KERNELS)
def test_norms_with_a_gate(kind, monkeypatch):
    """Each with its own order and roundings; the kernel is what runs, also with the gate by name and after a pickle."""
    torch.manual_seed(4)
    plain = kind()
    patched = copy.deepcopy(plain)
    assert tt.patch(nn.ModuleList([patched])) == {"0": KERNELS[kind]}
    ran = count_runs(monkeypatch)
    name = "z" if kind is Once else "gate"
    for x_kind, weight_kind, gate_kind in itertools.product(TYPES, TYPES[:2], TYPES[:2]):
        x, gate = (3 * torch.randn(2, 40, 32)).to(x_kind), (3 * torch.randn(2, 40, 32)).to(gate_kind)
        mine, theirs = (copy.deepcopy(each).to(weight_kind) for each in (patched, plain))
        wanted, made = theirs(x, gate), mine(x, **{name: gate})
        assert made.dtype == wanted.dtype
        torch.testing.assert_close(made.float(), wanted.float(), rtol=1e-5 if made.dtype == torch.float32 else 2e-2, atol=1e-2)
        if made.dtype != torch.float32:  # of one rounding more or less a third would differ
            assert (made != wanted).float().mean() < 0.02
    assert len(ran) >= 7, "f32, bf16 and the pairs of the two"
    x, gate = (torch.randn(5, 32, requires_grad=True) for _ in range(2))
    patched.eps = plain.eps = 0.5  # read at every call
    for mine, theirs in zip(*(torch.autograd.grad(each(x, gate).square().sum(), [x, gate, each.weight]) for each in (patched, plain))):
        torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-5)
    ran.clear()
    assert torch.equal(pickle.loads(pickle.dumps(patched))(x, gate), patched(x, gate)) and len(ran) == 2
    torch.testing.assert_close(patched(x, gate[:1]), plain(x, gate[:1]))
    if kind in (GateFirst, InGroups):
        torch.testing.assert_close(patched(x), plain(x))
    assert len(ran) == 2, "calls that were not tried are the module's own"
    tt.unpatch(patched)
    assert type(patched) is kind and patched.__dict__.keys() == plain.__dict__.keys()


class Tanh(Gated):
    def forward(self, hidden, gate=None):
        wide = self.normed(hidden.float())
        return (self.weight * (wide if gate is None else wide * torch.tanh(gate.float()).clamp(min=0))).to(hidden.dtype)


class SigmoidFirst(Gated):
    def forward(self, hidden, gate=None):
        wide = self.normed(hidden.float())
        return (self.weight * (wide if gate is None else wide * torch.sigmoid(1.5 * gate.float()))).to(hidden.dtype)


class Scale(Gated):
    def forward(self, hidden, scale):
        return self.normed(hidden.float()) * self.weight + scale


@pytest.mark.parametrize("module, why", [(Tanh(), "tanh|clamp"), (SigmoidFirst(), "no kernel"), (Scale(), "wants scale, which is no gate")],
                         ids=lambda each: type(each).__name__)
def test_norms_whose_gate_is_another_are_left_alone(module, why):
    """Nor are they taken for calls without a gate, which nobody may make."""
    import re
    report = tt.patch(nn.ModuleList([module]))
    assert report == {} and re.search(why, report.left["0"]), report.left


class OnePlus(nn.LayerNorm):
    """Nemotron's: it takes one type of input and weight, and asks for autocast itself."""

    def forward(self, x):
        given = x, self.weight + 1.0, self.bias
        if torch.is_autocast_enabled():  # of a GPU, whatever the device
            given = [each.to(torch.bfloat16) for each in given]
        if given[0].dtype != given[1].dtype:
            raise RuntimeError("mixed types")
        return F.layer_norm(given[0], self.normalized_shape, *given[1:], self.eps)


def test_layer_norms_of_one_plus_a_weight():
    torch.manual_seed(4)
    plain = OnePlus(48)
    for each in plain.parameters():
        nn.init.normal_(each, 0, 0.3)
    patched = copy.deepcopy(plain)
    assert tt.patch(nn.ModuleList([patched])) == {"0": "layer_norm, one plus"}
    for kind in TYPES:
        mine, theirs, x = copy.deepcopy(patched).to(kind), copy.deepcopy(plain).to(kind), (3 * torch.randn(40, 48)).to(kind)
        torch.testing.assert_close(mine(x), theirs(x), rtol=1e-5 if kind == torch.float32 else 2e-2, atol=1e-2)
        assert "LayerNorm" not in str(mine(x.requires_grad_()).grad_fn)
    with pytest.raises(RuntimeError, match="mixed types"):
        patched(torch.randn(3, 48).bfloat16())
    x = torch.randn(3, 48)
    torch.set_autocast_enabled("cuda", True)
    try:
        assert torch.equal(patched(x), plain(x)) and patched(x).dtype == torch.bfloat16
    finally:
        torch.set_autocast_enabled("cuda", False)

"""Functions and modules in the place of torch's."""
import copy

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
from torch.nn import functional as F

import trireme.torch as tt


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(7)


def same(mine, theirs, bound=1e-10):
    torch.testing.assert_close(mine, theirs, rtol=bound, atol=bound)


FUNCTIONS = {
    "rms_norm": (lambda f, x, w, b: f.rms_norm(x, (33,), w, 1e-5)),
    "rms_norm, eps of the type": (lambda f, x, w, b: f.rms_norm(x, (33,), w)),
    "rms_norm, two axes": (lambda f, x, w, b: f.rms_norm(x, (6, 33))),
    "layer_norm": (lambda f, x, w, b: f.layer_norm(x, (33,), w, b)),
    "layer_norm, bare": (lambda f, x, w, b: f.layer_norm(x, (33,))),
    "softmax": (lambda f, x, w, b: f.softmax(x, -1)),
    "softmax, first axis": (lambda f, x, w, b: f.softmax(x, 0)),
    "log_softmax": (lambda f, x, w, b: f.log_softmax(x, dim=1)),
    "group_norm": (lambda f, x, w, b: f.group_norm(x, 3, w[:6], b[:6])),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name):
    x = torch.randn(4, 6, 33, dtype=torch.float64, requires_grad=True)
    w, b = (torch.randn(33, dtype=torch.float64, requires_grad=True) for _ in range(2))
    mine, theirs = FUNCTIONS[name](tt, x, w, b), FUNCTIONS[name](F, x, w, b)
    same(mine, theirs)
    dy = torch.randn_like(mine)
    for a, b in zip(torch.autograd.grad(mine, (x, w, b), dy, allow_unused=True),
                    torch.autograd.grad(theirs, (x, w, b), dy, allow_unused=True)):
        assert (a is None) == (b is None)
        if a is not None:
            same(a, b)


def test_gated_units():
    x, gate = (torch.randn(5, 33, dtype=torch.float64, requires_grad=True) for _ in range(2))
    for mine, theirs in [(tt.swiglu(x, gate), F.silu(gate) * x), (tt.geglu(x, gate), F.gelu(gate) * x),
                         (tt.geglu(x, gate, "tanh"), F.gelu(gate, approximate="tanh") * x),
                         (tt.swiglu(x, gate, 1.702), gate * torch.sigmoid(1.702 * gate) * x)]:
        same(mine, theirs)
        for a, b in zip(torch.autograd.grad(mine.sum(), (x, gate)), torch.autograd.grad(theirs.sum(), (x, gate))):
            same(a, b)
    packed = torch.cat([x, gate], -1).detach()  # halves of one row: strided views, no copies
    same(tt.SwiGLU()(packed), F.silu(gate) * x)
    same(tt.GeGLU("tanh")(packed), F.gelu(gate, approximate="tanh") * x)


@pytest.mark.parametrize("shape", [(7, 33), (2, 33, 5)])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_cross_entropy(shape, reduction):
    x = torch.randn(shape, dtype=torch.float64, requires_grad=True)
    target = torch.randint(33, (shape[0], *shape[2:]))
    target.view(-1)[1] = -100
    mine = tt.CrossEntropyLoss(reduction=reduction)(x, target)
    theirs = torch.nn.CrossEntropyLoss(reduction=reduction)(x, target)
    same(mine, theirs)
    same(*(torch.autograd.grad(each.sum(), x)[0] for each in (mine, theirs)))


def test_fused_add_and_norm():
    x, r = (torch.randn(5, 33, dtype=torch.float64, requires_grad=True) for _ in range(2))
    for fused, plain in [(tt.AddRMSNorm(33, eps=1e-6), torch.nn.RMSNorm(33, eps=1e-6)),
                         (tt.AddLayerNorm(33), torch.nn.LayerNorm(33))]:
        fused, plain = fused.double(), plain.double()
        plain.load_state_dict(fused.state_dict())
        (y, h), (dy, dh) = fused(x, r), torch.randn(2, 5, 33, dtype=torch.float64)
        same(h, x + r)
        same(y, plain(x + r))
        for a, b in zip(torch.autograd.grad((y, h), (x, r, fused.weight), (dy, dh)),
                        torch.autograd.grad((plain(x + r), x + r), (x, r, plain.weight), (dy, dh))):
            same(a, b)
        (only_h,) = torch.autograd.grad(fused(x, r)[1], x, dh)  # y's gradient is None
        same(only_h, dh)


MODULES = [
    (tt.RMSNorm, torch.nn.RMSNorm, (33,), {}), (tt.RMSNorm, torch.nn.RMSNorm, ((6, 33),), {"eps": 1e-3}),
    (tt.RMSNorm, torch.nn.RMSNorm, (33,), {"elementwise_affine": False}),
    (tt.LayerNorm, torch.nn.LayerNorm, (33,), {}), (tt.LayerNorm, torch.nn.LayerNorm, (33,), {"bias": False}),
    (tt.LayerNorm, torch.nn.LayerNorm, ((6, 33), 1e-3, False), {}),
    (tt.GroupNorm, torch.nn.GroupNorm, (3, 6), {}), (tt.Softmax, torch.nn.Softmax, (), {"dim": 1}),
    (tt.LogSoftmax, torch.nn.LogSoftmax, (), {"dim": -1}),
]


@pytest.mark.parametrize("mine, theirs, arguments, named", MODULES)
def test_modules_are_drop_in(mine, theirs, arguments, named):
    ours, torchs = mine(*arguments, **named), theirs(*arguments, **named)
    assert list(ours.state_dict()) == list(torchs.state_dict()) and ours.extra_repr() == torchs.extra_repr()
    for parameter in torchs.parameters():
        torch.nn.init.normal_(parameter)
    ours.load_state_dict(torchs.state_dict(), strict=True)
    x = torch.randn(4, 6, 33)
    torch.testing.assert_close(ours(x), torchs(x), rtol=1e-5, atol=1e-5)
    assert isinstance(ours, theirs) and copy.deepcopy(ours)(x).equal(ours(x))


@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float16])
def test_half_types_are_nearer_than_torchs(kind):
    """Computed in f32 and rounded once: the nearest value to the exact one, or the one beside it."""
    x, w = torch.randn(64, 257).to(kind), torch.randn(257).to(kind)
    exact = F.rms_norm(x.double(), (257,), w.double(), 1e-6)
    made = tt.rms_norm(x, (257,), w, 1e-6)
    assert made.dtype == kind
    assert (made != exact.to(kind)).float().mean() < 1e-3
    dx = torch.autograd.grad(tt.rms_norm(x.requires_grad_(), (257,), w, 1e-6), x, torch.ones_like(x))[0]
    assert dx.dtype == kind


class Residual(torch.nn.Module):
    """A sum with the residual stream that is normalised next."""

    def __init__(self, kind):
        super().__init__()
        self.norm = torch.nn.RMSNorm(64, dtype=kind)

    def forward(self, hidden, residual):
        hidden = residual + hidden
        residual = hidden
        hidden = self.norm(hidden)
        return hidden


@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float16, torch.float32, torch.float64])
def test_eps_that_nobody_gave_is_torchs(kind):
    """That of the type torch computes in: rows whose mean square is of its size tell it from the input type's."""
    size = torch.finfo(torch.promote_types(kind, torch.float32)).eps ** 0.5
    x = (torch.randn(4, 64) * size).to(kind)
    wanted = F.rms_norm(x, (64,))
    alone, fused = torch.nn.Sequential(torch.nn.RMSNorm(64, dtype=kind)), Residual(kind)
    tt.patch(alone)
    assert "residual" in tt.patch(fused)[""]
    for made in (tt.rms_norm(x, (64,)), tt.RMSNorm(64, dtype=kind)(x), alone(x),
                 tt.AddRMSNorm(64, dtype=kind)(x, torch.zeros_like(x))[0], fused(x, torch.zeros_like(x))):
        torch.testing.assert_close(made, wanted, rtol=2e-2 if kind.itemsize == 2 else 1e-5, atol=0)


def test_autocast():
    model = torch.nn.Sequential(torch.nn.Linear(33, 33), tt.RMSNorm(33, eps=1e-6), torch.nn.Linear(33, 8), tt.Softmax(-1))
    x = torch.randn(5, 33)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = model(x)
        assert y.dtype == torch.bfloat16 and model[1].weight.dtype == torch.float32
        loss = y.float().square().sum()
    loss.backward()
    assert model[1].weight.grad.dtype == torch.float32 and model[1].weight.grad.abs().sum() > 0
    wide = model(x)
    torch.testing.assert_close(y.float(), wide, rtol=0, atol=0.02)


def test_errors():
    with pytest.raises(RuntimeError, match="expected input with shape"):
        tt.rms_norm(torch.randn(3, 5), (4,))
    with pytest.raises(RuntimeError, match="label_smoothing"):
        tt.CrossEntropyLoss(label_smoothing=1.1)(torch.randn(3, 5), torch.zeros(3, dtype=torch.int64))
    with pytest.raises(RuntimeError, match="none or tanh"):
        tt.geglu(torch.randn(3, 5), torch.randn(3, 5), "sigmoid")


def test_export():
    class Small(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = tt.RMSNorm(33, eps=1e-6)

        def forward(self, x):
            return tt.swiglu(self.norm(x), x)

    model, x = Small(), torch.randn(4, 33)
    rows = torch.export.Dim("rows", min=2, max=1000)
    exported = torch.export.export(model, (x,), dynamic_shapes=({0: rows},))
    longer = torch.randn(9, 33)
    assert torch.equal(exported.module()(longer), model(longer))
    assert any("trireme.rms_norm" in str(node.target) for node in exported.graph.nodes)

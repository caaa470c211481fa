"""Faults of FAULTS' list that live in training, by their numbers."""
import threading

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

import trireme
import trireme.torch as tt

EVERY_WAY = {
    "eager": lambda x, w: tt.rms_norm(x, (33,), w, 1e-6),
    "registered": lambda x, w: torch.ops.trireme.rms_norm(x, w, 1e-6, 0.0, 1, "")[0],
}


@pytest.fixture(params=EVERY_WAY)
def rms_norm(request):
    return EVERY_WAY[request.param]


@pytest.fixture
def x():
    torch.manual_seed(7)
    return torch.randn(4, 6, 33, requires_grad=True)


@pytest.fixture
def w():
    return torch.randn(33, requires_grad=True)


def test_fault_01_zero_rows(rms_norm, w):
    x = torch.empty(0, 33, requires_grad=True)
    y = rms_norm(x, w)
    y.sum().backward()
    assert y.shape == (0, 33) and x.grad.shape == (0, 33) and w.grad.eq(0).all() and not w.grad.signbit().any()
    compiled = torch.compile(rms_norm, fullgraph=True, backend="aot_eager")
    assert compiled(x, w).shape == (0, 33)


def test_fault_09_views(rms_norm, x, w):
    base = torch.randn(6, 4, 66)
    for view in (base.transpose(0, 1)[..., :33], base[..., ::2], base[:, 1:3, 5:38], base[0, 0, :33].expand(4, 6, 33),
                 base[:, :1, :33].expand(6, 5, 33), base[..., :33].permute(1, 0, 2), base[:, :, 0:33].mT.contiguous().mT):
        assert torch.equal(rms_norm(view, w), rms_norm(view.contiguous(), w))


def test_fault_24_streams():
    if not torch.cuda.is_available():
        pytest.skip("no GPU; bench/gpu_python.sh runs this")


def test_fault_29_misuse(x, w):
    for wrong, error, said in [
        (lambda: tt.rms_norm(x.to(torch.int64), (33,), eps=1e-6), trireme.InvalidArgument, "taken are float64"),
        (lambda: tt.rms_norm(x, (33,), w[:5], 1e-6), trireme.InvalidArgument, "expected 33"),
        (lambda: tt.swiglu(x, x[:2]), trireme.InvalidArgument, "expected 4x6x33"),
        (lambda: tt.named("rms_norm")(x, w, gamma=w), TypeError, "other parameters"),
        (lambda: tt.rms_norm(x.to("meta"), (5,)), RuntimeError, "expected input"),
    ]:
        with pytest.raises(error, match=said):
            wrong()
    assert tt.rms_norm(x.to("meta"), (33,), eps=1e-6).device.type == "meta"


def test_fault_30_backward_twice(rms_norm, x, w):
    y = rms_norm(x, w)
    dy = torch.randn_like(y)
    first = torch.autograd.grad(y, (x, w), dy, retain_graph=True)
    second = torch.autograd.grad(y, (x, w), dy, retain_graph=True)
    assert all(map(torch.equal, first, second))


def test_fault_30_gradients_as_they_come(rms_norm, x, w):
    y = rms_norm(x, w)
    dense = torch.randn(4, 6, 33)
    wanted = torch.autograd.grad(y, (x, w), dense, retain_graph=True)
    wide = torch.zeros(4, 6, 66)
    wide[..., ::2] = dense
    for dy in (wide[..., ::2], dense.permute(2, 0, 1).contiguous().permute(1, 2, 0)):
        assert not dy.is_contiguous()
        assert all(map(torch.equal, torch.autograd.grad(y, (x, w), dy, retain_graph=True), wanted))
    ones = torch.autograd.grad(y, (x, w), torch.ones_like(y), retain_graph=True)
    assert all(map(torch.equal, torch.autograd.grad(y.sum(), (x, w)), ones))  # expanded: every stride 0


def test_fault_30_dy_is_never_written(rms_norm, x, w):
    y = rms_norm(x, w)
    dy = torch.randn_like(y)
    kept, kept_x = dy.clone(), x.detach().clone()
    torch.autograd.grad(y, (x, w), dy)
    assert torch.equal(dy, kept) and torch.equal(x, kept_x)


def test_fault_30_saved_tensors_changed_in_place_are_noticed(rms_norm, w):
    x = torch.randn(4, 33)
    leaf = x.clone().requires_grad_()
    middle = leaf * 1
    y = rms_norm(middle, w)
    middle.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


@pytest.mark.parametrize("reentrant", [False, True])
def test_fault_30_checkpointing(rms_norm, x, w, reentrant):
    wanted = torch.autograd.grad(rms_norm(x, w).square().sum(), (x, w))
    y = checkpoint(lambda x, w: rms_norm(x, w).square().sum(), x, w, use_reentrant=reentrant)
    y.backward()
    assert torch.equal(x.grad, wanted[0]) and torch.equal(w.grad, wanted[1])


def test_fault_30_autocast_and_scaler(x, w):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = tt.rms_norm(F.linear(x, torch.eye(33)), (33,), w, 1e-6)
    assert y.dtype == torch.bfloat16
    scaler = torch.amp.GradScaler("cpu")
    scaler.scale(y.float().sum()).backward()
    assert w.grad.dtype == torch.float32 and torch.isfinite(w.grad).all()


def test_fault_30_deterministic(rms_norm, x, w):
    torch.use_deterministic_algorithms(True)
    try:
        made = [torch.autograd.grad(rms_norm(x, w).sum(), (x, w)) for _ in range(3)]
    finally:
        torch.use_deterministic_algorithms(False)
    assert all(torch.equal(each[1], made[0][1]) for each in made)


def test_fault_30_only_what_is_wanted(rms_norm, x, w):
    with torch.no_grad():
        assert not rms_norm(x, w).requires_grad
    (dw,) = torch.autograd.grad(rms_norm(x.detach(), w).sum(), w)
    (dx,) = torch.autograd.grad(rms_norm(x, w.detach()).sum(), x)
    both = torch.autograd.grad(rms_norm(x, w).sum(), (x, w))
    assert torch.equal(dx, both[0]) and torch.equal(dw, both[1])
    outputs = torch.ops.trireme.rms_norm(x, w, 1e-6, 0.0, 1, "")
    assert outputs[0].requires_grad and outputs[1].requires_grad


def test_autograds_threads(rms_norm, w):
    """Backwards in threads of their own, forwards in others, on shared plans."""
    torch.manual_seed(3)
    inputs = [torch.randn(64, 33, requires_grad=True) for _ in range(8)]
    wanted = [torch.autograd.grad(rms_norm(x, w).square().sum(), x)[0] for x in inputs]
    made = [None] * len(inputs)

    def work(k):
        for _ in range(10):
            made[k] = torch.autograd.grad(rms_norm(inputs[k], w).square().sum(), inputs[k])[0]

    threads = [threading.Thread(target=work, args=(k,)) for k in range(len(inputs))]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert all(map(torch.equal, made, wanted))


def test_the_raw_path(x, w):
    """Tensors go straight into trireme's own operators: no dispatcher, no gradients, memory of torch's."""
    with torch.no_grad():
        y = trireme.rms_norm(x, w)
        assert isinstance(y, torch.Tensor) and torch.equal(y, tt.rms_norm(x, (33,), w, 1e-6))
        out = torch.empty_like(y)
        assert trireme.rms_norm(x, w, out=out) is out and torch.equal(out, y)
        q, scale = trireme.rms_norm_quant(x, types={"q": torch.float8_e4m3fn})
        assert q.dtype == torch.float8_e4m3fn and scale.shape == (4, 6)


def test_fake_and_meta_tensors(x, w):
    from torch._subclasses.fake_tensor import FakeTensorMode
    x, w = x.detach(), w.detach()
    with FakeTensorMode() as mode:
        fake = tt.rms_norm(mode.from_tensor(x), (33,), mode.from_tensor(w), 1e-6)
        assert fake.shape == x.shape
    with torch.device("meta"):
        assert tt.LayerNorm(33)(torch.empty(5, 33)).shape == (5, 33)

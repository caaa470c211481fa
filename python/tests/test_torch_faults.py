"""Faults of FAULTS' list that live in training, by their numbers."""
import copy
import io
import os
import pickle
import subprocess
import sys
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
        (lambda: tt.rms_norm(x.to(torch.int16), (33,), eps=1e-6), trireme.InvalidArgument, "taken are float64"),
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


def test_fault_56_devices_are_not_mixed(x):
    norm = tt.RMSNorm(33, device="meta")
    for wrong in (lambda: norm(x), lambda: norm(x.detach()), lambda: tt.rms_norm(x.to("meta"), (33,), torch.ones(33), 1e-6),
                  lambda: torch.compile(norm, backend="aot_eager", fullgraph=True)(x),
                  lambda: tt.swiglu(x, x.to("meta")), lambda: torch.ops.trireme.swiglu(x.to("meta"), x, 1.0, 1, "")):
        with pytest.raises(RuntimeError, match="same device"):
            wrong()


def test_fault_56_bits_that_negate_are_resolved(w):
    z = torch.randn(4, 33, dtype=torch.complex64)
    negative = z.conj().imag
    assert negative.is_neg()
    plain = negative.resolve_neg()
    for function in (lambda x: tt.rms_norm(x, (33,), w, 1e-6), trireme.layer_norm, tt.softmax,
                     lambda x: torch.ops.trireme.swiglu(x, plain, 1.0, 1, ""), lambda x: tt.swiglu(plain, x)):
        assert torch.equal(function(negative), function(plain))
    leaf = plain.clone().requires_grad_()
    y = tt.rms_norm(leaf, (33,), w, 1e-6)
    assert torch.equal(*(torch.autograd.grad(y, leaf, dy, retain_graph=True)[0] for dy in (negative, plain)))
    with pytest.raises(trireme.InvalidArgument, match="negative bit"):
        trireme.rms_norm(plain, out=negative)
    with pytest.raises(trireme.InvalidArgument, match="DLPack type"):
        trireme.rms_norm(z.conj())
    with pytest.raises(trireme.InvalidArgument, match="without memory"):
        trireme.rms_norm(torch._efficientzerotensor((4, 33)))
    with pytest.raises((RuntimeError, ValueError)):
        trireme.rms_norm(plain.to_sparse())


def test_fault_58_targets_are_checked_as_torchs(x):
    x = x.detach()[0]  # 6 rows of 33 classes
    fine = torch.tensor([0, 32, 5, -100, 7, 1])
    for kind in (torch.int64, torch.int32):
        assert torch.allclose(tt.cross_entropy(x, fine.to(kind)), F.cross_entropy(x, fine))
    byte = torch.tensor([0, 32, 5, 3, 7, 1], dtype=torch.uint8)
    assert torch.allclose(tt.cross_entropy(x, byte), F.cross_entropy(x, byte))
    for wrong in (33, -1, 2**32, 2**32 + 5, -2**31, 2**63 - 1, 156):
        target = fine.clone()
        target[2] = wrong
        with pytest.raises(IndexError, match=f"Target {wrong} is out of bounds"):
            F.cross_entropy(x, target)
        with pytest.raises(IndexError, match=f"Target {wrong} is out of bounds"):
            tt.cross_entropy(x, target)
        with pytest.raises(RuntimeError, match="out of bounds"):
            torch.compile(tt.cross_entropy, backend="aot_eager", fullgraph=True)(x, target)
    for target in (fine.float(), fine.bool(), fine.short(), torch.tensor([0.5] * 6)):
        with pytest.raises(RuntimeError):
            F.cross_entropy(x, target)
        with pytest.raises(RuntimeError, match="expected targets of type int64"):
            tt.cross_entropy(x, target)
    torch.testing.assert_close(tt.cross_entropy(x, torch.softmax(x, -1)), F.cross_entropy(x, torch.softmax(x, -1)))
    for shape in ((5,), (6, 1), ()):
        with pytest.raises((ValueError, RuntimeError)):
            F.cross_entropy(x, torch.zeros(shape, dtype=torch.int64))
        with pytest.raises(ValueError, match="to match the input"):
            tt.cross_entropy(x, torch.zeros(shape, dtype=torch.int64))


@pytest.mark.parametrize("ignored", [-100, 0, 5, 2**31 + 5, -2**40, 16777217, 2**32 + 32])
def test_fault_58_ignored_classes(x, ignored):
    x = x.detach()[0].requires_grad_()
    target = torch.tensor([0, 32, 5, ignored, 7, ignored])
    for reduction in ("mean", "sum", "none"):
        mine, theirs = (f(x, target, ignore_index=ignored, reduction=reduction) for f in (tt.cross_entropy, F.cross_entropy))
        torch.testing.assert_close(mine, theirs)
        torch.testing.assert_close(*(torch.autograd.grad(each.sum(), x)[0] for each in (mine, theirs)))
    one, classes = x.detach()[0], torch.tensor(3)
    torch.testing.assert_close(tt.cross_entropy(one, classes), F.cross_entropy(one, classes))
    batched = torch.vmap(tt.cross_entropy)(x.detach()[:, None], torch.tensor([[0], [1], [2], [3], [4], [5]]))
    torch.testing.assert_close(batched, F.cross_entropy(x.detach(), torch.arange(6), reduction="none"))


def test_fault_59_several_axes():
    x, r = torch.randn(2, 3, 5, 64), torch.randn(2, 3, 5, 64)
    for fused, plain in [(tt.AddRMSNorm((5, 64), eps=1e-6), torch.nn.RMSNorm((5, 64), eps=1e-6)),
                         (tt.AddLayerNorm((5, 64)), torch.nn.LayerNorm((5, 64)))]:
        torch.nn.init.normal_(plain.weight)
        fused.load_state_dict(plain.state_dict())
        y, h = fused(x, r)
        torch.testing.assert_close(y, plain(x + r), rtol=1e-5, atol=1e-5)
        assert torch.equal(h, x + r)
    with pytest.raises(RuntimeError, match="expected input with shape"):
        tt.AddRMSNorm((4, 64))(x, r)


class Scaled(torch.nn.Module):
    """A module with an operator of its own."""

    def __init__(self):
        super().__init__()
        self.scaled = tt.op("twice_of(x[i,j], s = 2) -> (y[i,j])\n    y = x * s")
        self.norm = tt.named("rms_norm")

    def forward(self, x):
        return self.norm(self.scaled(x, s=3.0))


def test_fault_59_modules_with_operators_are_pickled(x):
    model = Scaled()
    wanted = model(x)
    assert torch.equal(pickle.loads(pickle.dumps(model))(x), wanted) and torch.equal(copy.deepcopy(model)(x), wanted)
    assert pickle.loads(pickle.dumps(model.scaled)) is model.scaled and copy.deepcopy(model.norm) is tt.named("rms_norm")
    memory = io.BytesIO()
    torch.save(model, memory)
    memory.seek(0)
    assert torch.equal(torch.load(memory, weights_only=False)(x), wanted)
    code = "import sys, pickle, torch, trireme.torch; print(float(pickle.load(sys.stdin.buffer)(torch.ones(2, 3)).sum()))"
    done = subprocess.run([sys.executable, "-c", code], input=pickle.dumps(model.scaled), capture_output=True, check=True,
                          env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    assert float(done.stdout) == 12  # in a process that never saw the program


def test_fault_59_strides_of_softmax():
    base = torch.randn(2, 3, 4, 5)
    views = [base, base.to(memory_format=torch.channels_last), base.permute(3, 1, 0, 2), base[..., ::2], base[0],
             base[:1].expand(3, 3, 4, 5), base[0, 0, 0], base[0, 0, 0, 0]]
    for mine, theirs in [(tt.softmax, F.softmax), (tt.log_softmax, F.log_softmax)]:
        for view in views:
            for dim in range(-view.dim(), max(view.dim(), 1)):
                for leaf in (view, view.detach().requires_grad_()):
                    made, wanted = mine(leaf, dim), theirs(leaf, dim)
                    assert made.stride() == wanted.stride() and made.is_contiguous()
                    torch.testing.assert_close(made, wanted, rtol=1e-5, atol=1e-6)
                assert mine(view, dim, dtype=torch.float64).dtype == torch.float64
    compiled = torch.compile(lambda x: tt.softmax(x, 1), backend="aot_eager", fullgraph=True)
    assert torch.equal(compiled(base), tt.softmax(base, 1)) and compiled(base).is_contiguous()
    for shape in [(3,), (3, 4), (3, 4, 5), (2, 3, 4, 5)]:
        with pytest.warns(UserWarning, match="Implicit dimension"):  # where a module has none, torch chooses
            torch.testing.assert_close(tt.Softmax()(torch.ones(shape)), torch.nn.Softmax()(torch.ones(shape)))


def test_fault_59_an_operator_made_in_a_compiled_function(x):
    def work(x):
        return tt.op("compiled_inside(x[i,j]) -> (y[i,j])\n    y = x * 3 + 1")(x) + 1

    x = x.detach()
    assert torch.equal(torch.compile(work, fullgraph=True, backend="aot_eager")(x), x * 3 + 1 + 1)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::torch.jit.TracerWarning")
def test_fault_59_traced_by_jit(x):
    model = torch.nn.Sequential(tt.RMSNorm(33, eps=1e-6), torch.nn.Linear(33, 33), tt.Softmax(-1)).eval()
    x = x.detach()
    traced = torch.jit.trace(model, (x,))
    assert "trireme::rms_norm" in str(traced.inlined_graph)
    for rows in (x, torch.randn(5, 33)):
        assert torch.equal(traced(rows), model(rows))
    memory = io.BytesIO()
    torch.jit.save(traced, memory)
    memory.seek(0)
    assert torch.equal(torch.jit.load(memory)(x), model(x))


THREADS = """
import os, torch, trireme, trireme.torch as tt
{set}
x = torch.zeros(4096, 1024)
x[0].requires_grad_().sum().backward()  # starts autograd's own threads, one for each kind of device
threads = lambda: len(os.listdir("/proc/self/task"))
before = threads()
trireme.softmax(x)
tt.softmax(x.requires_grad_()).sum().backward()
after = threads()
print(torch.get_num_threads(), after - before)
"""


@pytest.mark.parametrize("wanted, environment, code", [
    (1, {"OMP_NUM_THREADS": "1"}, ""), (1, {}, "torch.set_num_threads(1)"), (3, {"OMP_NUM_THREADS": "3"}, ""),
    (3, {"OMP_NUM_THREADS": "1", "TRIREME_THREADS": "2"}, "torch.set_num_threads(3)")])
def test_fault_60_torchs_threads(wanted, environment, code):
    environment = {**{name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}, **environment,
                   "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", THREADS.format(set=code)], env=environment, capture_output=True, text=True,
                          check=True)
    threads, made = map(int, done.stdout.split())  # no more than there are cores where the environment says so
    assert made == threads - 1 and (threads == wanted or wanted == 3)


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

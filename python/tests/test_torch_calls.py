"""Calls on plain tensors go past torch's dispatcher and autograd: the same bits, and never where somebody else has a say."""
import os
import pathlib
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

import trireme
import trireme.torch as tt
from trireme.torch._made import MADE


def bits(made):
    return [(each.dtype, tuple(each.shape), each.stride(), each.detach().reshape(-1).view(torch.uint8).tolist() if each.numel() else [])
            for each in (made if isinstance(made, tuple) else (made,))]


CASES = {
    "rms_norm": lambda: (torch.randn(3, 40), torch.randn(40), 1e-6, 0.0, 1, ""),
    "layer_norm": lambda: (torch.randn(2, 3, 40), torch.randn(3, 40), None, 1e-5, 2, ""),
    "add_rms_norm": lambda: (torch.randn(3, 40).bfloat16(), torch.randn(3, 40).bfloat16(), None, 1e-6, 0.0, 1, "y=f32", 3),
    "swiglu": lambda: (torch.randn(40, 3).t(), torch.randn(3, 40), 1.0, 1, "", -1),
    "cross_entropy": lambda: (torch.randn(5, 9), torch.tensor([0, 8, 3, -100, 4]), -100.0, 1, "", 1, 0),
    "softmax": lambda: (torch.randn(0, 9), 1, ""),
    "rms_norm_backward": lambda: (torch.randn(3, 40), torch.randn(3, 40), torch.randn(40), None, 1e-6, 0.0, 1, "dgamma=bf16", 2),
}


@pytest.mark.parametrize("name", CASES)
def test_the_same_bits_with_and_without_the_dispatcher(name):
    torch.manual_seed(3)
    values = CASES[name]()
    operator = MADE[name]
    with torch.no_grad():
        made = operator.operator._quick_overload(*values)
        assert made is not NotImplemented
        assert bits(made) == bits(operator.dispatched(*values)) == bits(operator.overload(*values))
        assert bits(operator.overload(*values, **{})) == bits(made)
        count, last = len(operator.operands), len(operator.operands) + len(operator.constants)
        wanted, row_block = (*values[last + 2:], *(-1, 0)[len(values) - last - 2:])
        whole = operator.operator._run(list(values[:count]), list(values[count:last]), *values[last:last + 2], wanted, row_block)
        given = made if isinstance(made, tuple) else (made,)
        assert [each is None for each in whole] == [not wanted >> k & 1 for k in range(len(whole))]
        assert bits(tuple(each for each in whole if each is not None)) == bits(
            tuple(each for k, each in enumerate(given) if wanted >> k & 1))


def quick(*operands, wanted=1):
    return tt.named("rms_norm").operator._quick(list(operands), [1e-6, 0.0], 1, "", wanted, 0, True)


def test_who_has_a_say_is_asked():
    """Subclasses, modes, transforms, tracers, tensors without memory, batches: NotImplemented. Derivatives: None."""
    x, w = torch.randn(3, 8), torch.randn(8)
    assert isinstance(quick(x, w), tuple) and isinstance(quick(x, torch.nn.Parameter(w, requires_grad=False)), tuple)
    assert quick(x, w.clone().requires_grad_()) is None and quick(torch.nn.Parameter(x), w) is None
    with torch.no_grad():
        assert isinstance(quick(torch.nn.Parameter(x), w), tuple)
        with torch.autograd.forward_ad.dual_level():
            assert quick(x, w) is None
    with torch.inference_mode():
        assert isinstance(quick(x, w), tuple)

    class Mine(torch.Tensor):
        pass

    class Mode(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, function, types, arguments=(), named=None):
            seen.append((function, quick(x, w)))
            return function(*arguments, **(named or {}))

    seen = []
    assert quick(x.as_subclass(Mine), w) is NotImplemented
    assert quick(x.to("meta"), w.to("meta")) is NotImplemented and quick(x.to("meta").requires_grad_(), w) is NotImplemented
    with Mode():
        assert quick(x, w) is NotImplemented
        tt.rms_norm(x, (8,), w, 1e-6)
    assert torch.ops.trireme.rms_norm.default in [each for each, _ in seen]
    torch.func.vmap(lambda each: seen.append(quick(each, w)) or each)(x[None])
    assert seen[-1] is NotImplemented
    torch.jit.trace(lambda each: seen.append(quick(each, w)) or each * 1, (x,), check_trace=False)
    assert seen[-1] is NotImplemented
    with torch._subclasses.FakeTensorMode() as mode:
        assert quick(mode.from_tensor(x), mode.from_tensor(w)) is NotImplemented
    assert quick(x, mode.from_tensor(w)) is NotImplemented
    assert quick(x) is NotImplemented and quick(x, w, wanted=0) is NotImplemented and quick(x.numpy(), w) is NotImplemented


def test_arguments_that_are_none_of_torchs_are_refused_in_its_words():
    x, w = torch.randn(3, 8), torch.randn(8)
    overload = torch.ops.trireme.rms_norm.default
    with torch.no_grad():
        for values in ((x,), (x, w, 1e-6, 0.0), (x, w, 1e-6, 0.0, "one", ""), (x, w, "small", 0.0, 1, ""), (x, w, 1e-6, 0.0, 1, "", 1, 0, 5)):
            with pytest.raises((RuntimeError, TypeError)):
                overload(*values)
        torch.testing.assert_close(overload(x, gamma=w, eps=1e-6, offset=0.0, axes=1, types="")[0],
                                   torch.nn.functional.rms_norm(x, (8,), w, 1e-6))
        with pytest.raises(trireme.TriremeError):
            tt.rms_norm(x, (8,), torch.randn(7), 1e-6)


def test_types_of_calls_do_not_mix():
    """What the last call said of types is kept by its text; others say others."""
    x, w = torch.randn(3, 8), torch.randn(8)
    norm = tt.named("rms_norm")
    for kind in ("bf16", "f32", "f16", "bf16", "f64"):
        (y, _) = norm.call([x, w], [1e-6, 0.0], 1, f"y={kind}", 3)
        assert tt._register.NAMES[y.dtype] == kind
    assert norm.call([x, w], [1e-6, 0.0], 1, "", 3)[0].dtype == torch.float32


def test_host_time_is_measured(tmp_path):
    program = pathlib.Path(__file__).resolve().parents[2] / "bench/host_time.py"
    done = subprocess.run([sys.executable, program, "--device", "cpu", "--rounds", "2", "--calls", "10"], capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    assert done.returncode == 0 and done.stdout.count("\n|") == 7, done.stdout + done.stderr

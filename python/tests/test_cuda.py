"""What needs an NVIDIA GPU: bits of every operator, streams, graphs, training. pytest runs it, and where that is missing
`python3 python/tests/test_cuda.py` does."""
import os
import pathlib
import sys
import threading

try:
    import pytest
except ImportError:
    pytest = None
    root = pathlib.Path(__file__).resolve().parents[2]
    sys.path.insert(0, os.environ.get("TRIREME_PACKAGE", str(root / "build" / "release" / "python")))

try:
    import torch
    missing = "" if torch.cuda.is_available() else "no GPU; bench/gpu_python.sh runs these where there is one"
except ImportError:
    torch, missing = None, "torch is not installed"
if pytest:
    pytestmark = pytest.mark.skipif(bool(missing), reason=missing)

import trireme

if torch:
    import trireme.torch as tt
    from row_in_torch import NAMED, Problem

LINES = ["rms_norm 33x4097 x=bf16 backward", "layer_norm 9x1024 x=f16", "softmax 7x65536 x=bf16",
         "cross_entropy 40x5 x=f16 target=i32 ignore=-1 backward", "group_norm 8x245 groups=4 pixels=49 backward"]


def test_digests_of_problem_lines():
    for line in LINES:
        digests = trireme.verify(line, devices="cuda")
        assert digests["cuda"] == digests["reference"], line


def both(operator, operands, **named):
    """Results on the CPU and on the GPU, as tuples."""
    made = operator(*operands, **named), operator(*[each.cuda() for each in operands], **named)
    return [each if isinstance(each, tuple) else (each,) for each in made]


def test_every_operator_has_the_cpus_bits():
    for name in NAMED:
        for kind in (torch.float64, torch.float32, torch.bfloat16, torch.float16):
            problem = Problem(name, dtype=kind)
            named = dict(**problem.constants, types=problem.types, results="all")
            host, device = both(problem.operator, problem.operands.values(), **named)
            for a, b in zip(host, device):
                assert b.is_cuda and torch.equal(a.view(torch.uint8), b.cpu().view(torch.uint8)), (name, kind)


def gradients(function, *operands):
    leaves = [each.detach().clone().requires_grad_() for each in operands]
    made = function(*leaves)
    made = made if isinstance(made, tuple) else (made,)
    torch.manual_seed(0)
    grads = [torch.randn(each.shape).to(each) for each in made]
    return [*made, *torch.autograd.grad(made, leaves, grads)]


def test_gradients_have_the_cpus_bits():
    torch.manual_seed(1)
    for kind in (torch.float32, torch.bfloat16):
        x, r = (torch.randn(5, 37, 1000).to(kind) for _ in range(2))
        w, b = (torch.randn(1000).to(kind) for _ in range(2))
        for function, operands in [
            (lambda x, w: tt.rms_norm(x, (1000,), w, 1e-6), (x, w)), (lambda x: tt.softmax(x), (x,)),
            (lambda x, w, b: tt.layer_norm(x, (1000,), w, b), (x, w, b)), (tt.swiglu, (x, r)), (tt.geglu, (x, r)),
            (tt.add_rms_norm, (x, r, w)),
        ]:
            host = gradients(function, *operands)
            device = gradients(function, *[each.cuda() for each in operands])
            assert all(torch.equal(a, b.cpu()) for a, b in zip(host, device))


def test_second_derivatives_have_the_cpus_bits():
    torch.manual_seed(2)
    x, w, dy, ddx = torch.randn(5, 1000), torch.randn(1000), torch.randn(5, 1000), torch.randn(5, 1000)
    found = []
    for device in ("cpu", "cuda"):
        leaf, weight = (each.to(device).requires_grad_() for each in (x, w))
        (dx,) = torch.autograd.grad(tt.rms_norm(leaf, (1000,), weight, 1e-6), leaf, dy.to(device), create_graph=True)
        held = weight.detach()
        tangent = torch.func.jvp(lambda x: tt.rms_norm(x, (1000,), held, 1e-6), (leaf.detach(),), (ddx.to(device),))[1]
        found.append((*torch.autograd.grad(dx, (leaf, weight), ddx.to(device)), tangent))
    assert all(torch.equal(a, b.cpu()) for a, b in zip(*found))


def test_fault_58_targets():
    x, target = torch.randn(6, 33, device="cuda"), torch.tensor([0, 32, 5, -100, 7, 1], device="cuda")
    torch.testing.assert_close(tt.cross_entropy(x, target), torch.nn.functional.cross_entropy(x, target))


def test_rope_and_losses_of_rows_have_the_cpus_bits():
    torch.manual_seed(3)
    for kind in (torch.float32, torch.bfloat16):
        q, k = (torch.randn(2, 70, heads, 64).to(kind).transpose(1, 2) for heads in (8, 2))
        cos, sin = (torch.randn(1, 70, 64).to(kind) for _ in range(2))
        x, t = torch.randn(40, 5003).to(kind), torch.randn(40, 5003).log_softmax(-1).to(kind)
        target, weight = torch.randint(5003, (40,)), torch.rand(5003)
        target[3] = -100
        for function, operands in [
            (lambda q, k: tt.rope(q, k, cos.to(q.device), sin.to(q.device)), (q, k)),
            (lambda q, k: tt.rope(q, k, cos.to(q.device), sin.to(q.device), interleaved=True, rounded=True), (q, k)),
            (lambda x: tt.cross_entropy(x, target.to(x.device), weight.to(x.device), reduction="none", label_smoothing=0.1,
                                        softcap=5.0, z_loss=1e-3), (x,)),
            (lambda x: tt.kl_div(x, t.to(x.device), reduction="none", log_target=True), (x,)),
            (lambda x: tt.jsd(x, t.to(x.device), reduction="none"), (t,)), (lambda x: tt.clamped_swiglu(x, x), (x,)),
        ]:
            host = gradients(function, *operands)
            device = gradients(function, *[each.cuda() for each in operands])
            assert all(torch.equal(a, b.cpu()) for a, b in zip(host, device))


def test_losses_over_a_vocabulary():
    torch.manual_seed(4)
    hidden, weight = torch.randn(700, 64, device="cuda").bfloat16(), torch.randn(128256, 64, device="cuda").bfloat16() / 8
    target = torch.randint(128256, (700,), device="cuda")
    target[::7] = -100
    exact = [each.double().requires_grad_() for each in (hidden, weight)]
    wanted = torch.nn.functional.cross_entropy(torch.nn.functional.linear(*exact), target)
    wanted.backward()
    for loss in (lambda x, w: tt.linear_cross_entropy(x, w, target, chunk=256), lambda x, w: tt.linear_cross_entropy(x, w, target),
                 lambda x, w: tt.linear_cross_entropy(x, w, target, chunk=256, acc_dtype=torch.float32),
                 lambda x, w: tt.linear_cross_entropy(x, w, target, reduction="none").sum() / (target >= 0).sum(),
                 lambda x, w: tt.cross_entropy(torch.nn.functional.linear(x, w), target, in_place=True),
                 lambda x, w: tt.cross_entropy(torch.nn.functional.linear(x, w), target)):
        leaves = [each.clone().requires_grad_() for each in (hidden, weight)]
        made = loss(*leaves)
        made.backward()
        assert abs(float(made.detach() - wanted.detach())) < 2e-3 * float(wanted.detach())
        for leaf, want in zip(leaves, exact):
            error = (leaf.grad.double() - want.grad).norm() / want.grad.norm()
            assert error < 2e-2, error


def test_linear_cross_entropy_takes_the_memory_of_a_chunk():
    tokens, classes, columns = 4096, 32000, 64
    hidden = torch.randn(tokens, columns, device="cuda", dtype=torch.bfloat16, requires_grad=True)
    weight = torch.randn(classes, columns, device="cuda", dtype=torch.bfloat16, requires_grad=True)
    target = torch.randint(classes, (tokens,), device="cuda")
    tt.linear_cross_entropy(hidden, weight, target, chunk=256).backward()
    hidden.grad = weight.grad = None
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    tt.linear_cross_entropy(hidden, weight, target, chunk=256).backward()
    used = torch.cuda.max_memory_allocated() - before
    arrays = 256 * classes + classes * columns + tokens * columns
    assert used < 1.25 * 2 * arrays + (4 << 20), used  # of 2 bytes; all logits would take 262 MB


def test_fault_53_patched_under_autocast():
    for norm in (torch.nn.LayerNorm(64), torch.nn.RMSNorm(64, eps=1e-6)):
        norm = norm.cuda()
        x = torch.randn(5, 64, device="cuda")
        for given in (x, x.bfloat16()):
            with torch.autocast("cuda", dtype=torch.bfloat16):
                wanted = norm(given)
                tt.patch(holder := torch.nn.ModuleList([norm]))
                made = norm(given)
            tt.unpatch(holder)
            assert made.dtype == wanted.dtype
            torch.testing.assert_close(made, wanted, rtol=2e-2, atol=2e-2)


def test_fault_01_zero_rows():
    w = torch.ones(33, device="cuda", requires_grad=True)
    x = torch.empty(0, 33, device="cuda", requires_grad=True)
    tt.rms_norm(x, (33,), w, 1e-6).sum().backward()
    assert w.grad.eq(0).all() and not w.grad.signbit().any()


def test_fault_09_views():
    base = torch.randn(6, 4, 66, device="cuda")
    for view in (base.transpose(0, 1)[..., :33], base[..., ::2], base[:, 1:3, 5:38], base[0, 0, :33].expand(4, 6, 33),
                 base[:, :1, :33].expand(6, 5, 33)):
        assert torch.equal(trireme.rms_norm(view), trireme.rms_norm(view.contiguous()))


def test_fault_24_streams():
    x = torch.zeros(4096, 1024, device="cuda")
    wanted = trireme.rms_norm(torch.ones_like(x))
    for stream in (torch.cuda.Stream(), torch.cuda.Stream(priority=-1), torch.cuda.default_stream()):
        torch.cuda.synchronize()
        x.zero_()
        torch.cuda.synchronize()
        with torch.cuda.stream(stream):
            torch.cuda._sleep(20_000_000)  # what follows must wait for it, and so must the result
            x.fill_(1)
            y = trireme.rms_norm(x)
            leaf = x.clone().requires_grad_()
            tt.rms_norm(leaf, (1024,), eps=1e-6).sum().backward()
        stream.synchronize()
        assert torch.equal(y, wanted) and torch.isfinite(leaf.grad).all()
    side = torch.cuda.Stream()
    torch.cuda.synchronize()
    for stream in (side, side.cuda_stream, 1, 2):  # an object, a handle; the legacy and the thread's default stream
        y = trireme.rms_norm(x, stream=stream)
        torch.cuda.synchronize()
        assert torch.equal(y, wanted)


def test_fault_25_cuda_graphs():
    x = torch.randn(64, 1024, device="cuda", requires_grad=True)
    w = torch.randn(1024, device="cuda", requires_grad=True)
    dy = torch.randn(64, 1024, device="cuda")

    def work():
        y = tt.rms_norm(x, (1024,), w, 1e-6)
        return y, *torch.autograd.grad(y, (x, w), dy)

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            work()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = work()
    with torch.no_grad():
        x.copy_(torch.randn(64, 1024))
    graph.replay()
    torch.cuda.synchronize()
    assert all(torch.equal(a, b) for a, b in zip(captured, work()))


def test_compiled():
    x, gate = (torch.randn(64, 1000, device="cuda", requires_grad=True) for _ in range(2))
    for function, operands in [(lambda x: tt.rms_norm(x, (1000,)) * 2, (x,)), (lambda a, b: tt.swiglu(a, b) + 1, (x, gate))]:
        compiled = torch.compile(function, fullgraph=True)
        torch.testing.assert_close(compiled(*operands), function(*operands))
        for a, b in zip(torch.autograd.grad(compiled(*operands).sum(), operands),
                        torch.autograd.grad(function(*operands).sum(), operands)):
            torch.testing.assert_close(a, b)


def test_opcheck():
    for name in ("rms_norm", "swiglu"):
        problem = Problem(name, dtype=torch.float32)
        operands = [each.cuda().requires_grad_() for each in problem.operands.values()]
        torch.library.opcheck(tt.named(name).overload, [*operands, *tt.named(name).constants.values(), 1, ""])


def test_autocast():
    model = torch.nn.Sequential(torch.nn.Linear(64, 64), tt.RMSNorm(64), torch.nn.Linear(64, 8)).cuda()
    with torch.autocast("cuda", dtype=torch.bfloat16):
        y = model(torch.randn(5, 64, device="cuda"))
    y.float().sum().backward()
    assert y.dtype == torch.bfloat16 and model[1].weight.grad.dtype == torch.float32


def test_other_protocols():
    x = torch.randn(5, 257, device="cuda")
    wanted = trireme.rms_norm(x)

    class Interface:
        def __init__(self, tensor):
            self.__cuda_array_interface__ = tensor.__cuda_array_interface__

    class Dlpack:
        def __init__(self, tensor):
            self.tensor = tensor

        def __dlpack_device__(self):
            return self.tensor.__dlpack_device__()

        def __dlpack__(self, **options):
            return self.tensor.__dlpack__(**options)

    for wrap in (Interface, Dlpack):
        out = torch.empty_like(x)
        torch.cuda.synchronize()
        trireme.rms_norm(wrap(x), out=wrap(out), stream=torch.cuda.current_stream())
        torch.cuda.synchronize()
        assert torch.equal(out, wanted), wrap
        try:
            trireme.rms_norm(wrap(x))
        except trireme.InvalidArgument as error:
            assert "out=" in str(error)


def test_mistakes():
    x = torch.randn(5, 33, device="cuda")
    try:
        trireme.rms_norm(x, torch.ones(33))
        raise AssertionError("arrays on two devices were taken")
    except trireme.InvalidArgument as error:
        assert "share a device" in str(error)


def test_threads():
    inputs = [torch.randn(64, 512, device="cuda", requires_grad=True) for _ in range(8)]
    wanted = [gradients(lambda x: tt.rms_norm(x, (512,), eps=1e-6), x)[1] for x in inputs]
    made = [None] * 8

    def work(k):
        with torch.cuda.stream(torch.cuda.Stream()):
            made[k] = gradients(lambda x: tt.rms_norm(x, (512,), eps=1e-6), inputs[k])[1]
            torch.cuda.current_stream().synchronize()

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert all(a.shape == b.shape and torch.isfinite(a).all() for a, b in zip(made, wanted))


def test_second_device():
    if torch.cuda.device_count() < 2:
        return
    x = torch.randn(5, 257)
    with torch.cuda.device(0):  # not the tensors' device
        assert torch.equal(trireme.rms_norm(x.to("cuda:1")).cpu(), trireme.rms_norm(x))


def main():
    if missing:
        print(f"skipped: {missing}")
        return 0
    failed = 0
    for name, test in list(globals().items()):
        if not name.startswith("test_"):
            continue
        try:
            test()
            print(f"ok    {name}", flush=True)
        except Exception as error:
            failed += 1
            import traceback
            traceback.print_exc()
            print(f"FAIL  {name}: {type(error).__name__}: {error}", flush=True)
    print(f"{failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

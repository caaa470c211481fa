"""What machines do when calls cannot be: shapes that differ, machines that fail or die; run by parallel_cases."""
import os

import torch
import torch.distributed as dist
from torch.autograd import forward_ad
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor

import trireme
import trireme.torch as tt
from trireme.torch import parallel


def refused(call, kind, *words):
    try:
        call()
    except kind as error:
        assert all(word in str(error) for word in words), error
        return
    raise AssertionError(f"{words} was not refused")


def case_errors(rank, size):
    """All machines raise the same error, at once."""
    norm = parallel.columns("rms_norm")
    x = torch.randn(4 + rank, 300)
    refused(lambda: norm(x), ValueError, "the number of rows must be the same", str([4 + k for k in range(size)]))
    refused(lambda: parallel.rows("rms_norm")(torch.randn(3, 30 + rank)), ValueError, "the number of columns must be the same")
    refused(lambda: parallel.columns("softmax" if rank else "log_softmax")(torch.randn(3, 30)), ValueError, "the operator")
    refused(lambda: norm(torch.randn(3, 30).to(torch.bfloat16 if rank else torch.float32)), ValueError, "its types")
    refused(lambda: norm(torch.randn(3, 30 + rank)), ValueError, "the number of columns", "`cut` says all sizes")
    uneven = [30 + k for k in range(size)]
    assert parallel.columns("rms_norm", cut=uneven)(torch.randn(3, 30 + rank)).shape == (3, 30 + rank)
    refused(lambda: parallel.columns("rms_norm", cut=uneven)(torch.randn(3, 29)), ValueError, "and the cut says")
    refused(lambda: parallel.rows("rms_norm")(torch.randn(3 + rank, 30)), ValueError, "the number of rows")
    assert parallel.rows("rms_norm", in_order=False)(torch.randn(3 + rank, 30)).shape == (3 + rank, 30)
    none = [0] + [7] * (size - 1)
    refused(lambda: parallel.columns("rms_norm", cut=none)(torch.randn(3, none[rank])), ValueError, "has no columns")
    refused(lambda: parallel.sum_over(torch.randn(3 + rank)), ValueError, "shapes must be those of the other machines")
    refused(lambda: norm(torch.randn(3, 4, 5), axes=2), trireme.Unsupported, "axes=1")
    turn = tt.op("turn(x[i,j]) -> (y[i,j])\n    y = rotate(x, 1)")
    refused(lambda: parallel.columns(turn)(torch.randn(3, 30)), trireme.Unsupported, "rotate reads columns of other parts", "parallel.rows")
    counted = tt.op("counted(x[i,j]) -> (y[i,j])\n    y = x * i")
    refused(lambda: parallel.rows(counted, in_order=False)(torch.randn(3, 30)), trireme.Unsupported, "computes with i")
    pairs = parallel.rows("moe_sum")
    refused(lambda: pairs(torch.randn(3, 30), torch.randn(3), experts=2.0), trireme.Unsupported, "cut rows at multiples of 2")
    # Shapes that all know, and that differ now.
    for rows in (3, 5000, 7):
        norm(torch.randn(rows, 30))
    refused(lambda: norm(torch.randn(5000 if rank else 3, 30)), ValueError, "the number of rows must be the same", "[3, 5000")
    # A shape that some know and others do not, whoever they are; results asked for likewise.
    for k in range(size):
        new = torch.randn(5001 + k if rank == k else 3, 30)
        refused(lambda: norm(new), ValueError, "the number of rows must be the same", str([3] * k + [5001 + k]).rstrip("]"))
        refused(lambda: norm(torch.randn(3, 30), results=["y", "rstd"] if rank == k else "rstd"), ValueError, "which results")
    # Each machine makes its own mistakes, and all say whose: of operands that are not there, of other shapes and of other types.
    w, late = torch.ones(30), size - 1
    for mistakes, kind, words in (
            (lambda: norm(torch.randn(3, 30), w[:20] if rank == late else w), ValueError,
             [f"machine {late} of {size} failed: InvalidArgument: rms_norm: gamma[j] has the shape (20,), and [30] is its part"]),
            (lambda: norm(None if rank == 0 else torch.randn(3, 30), w), ValueError, [f"machine 0 of {size} failed: TypeError", "needs an array"]),
            (lambda: norm(torch.randn(3, 30), None if rank == 0 else w), ValueError, ["the operator, its types"]),
            (lambda: norm(torch.randn(3, 30), w.double() if rank else w), ValueError, ["the operator, its types"]),
            (lambda: norm(torch.randn(3, 30), w[:20]), trireme.InvalidArgument, ["gamma[j] has the shape (20,)"]),
            (lambda: parallel.columns("rms_norm", cut=uneven)(torch.randn(3, 30)), ValueError, ["and the cut says"]),
            (lambda: parallel.rows("rms_norm")(torch.randn(3, 30), w[:20 + rank]), trireme.InvalidArgument, [f"({20 + rank},)"]),
            (lambda: parallel.rows("rms_norm")(torch.randn(3, 30), w[:20] if rank else w), ValueError,
             [f"machine {k} of {size} failed" for k in range(1, size)])):
        refused(mistakes, kind, *words)
    for widths in ([30] + [31] * (size - 1), [32] + [31] * (size - 1)):  # a part's width says nothing of the others'
        alpha = torch.ones(()).requires_grad_()
        parallel.columns("dynamic_tanh", cut=widths)(torch.randn(3, widths[rank]), alpha).sum().backward()
    spread, w = parallel.rows("rms_norm"), torch.ones(30, requires_grad=True)

    def backward(rows):
        spread(torch.randn(rows, 30), w).sum().backward()

    for rows in (3, 5000, 7):
        backward(rows)
    refused(lambda: backward(5000 if rank else 3), ValueError, "the number of rows must be the same")
    # Sums of whole tensors, small ones and large ones, of shapes that all know; eager and compiled.
    around = lambda x: parallel.reduce_from(parallel.copy_to(x) * 2)
    for call in (parallel.sum_over, around, torch.compile(around, fullgraph=True, backend="aot_eager")):
        for shape in ((3, 4), (4, 3), (300, 211), (301, 211), (4, 3)):
            assert call(torch.ones(shape)).shape == shape
        for here, there in (((4, 3), (300, 211)), ((300, 211), (301, 211)), ((4, 3), (3, 4))):
            refused(lambda: call(torch.randn(there if rank else here)), ValueError, "shapes must be those of the other machines",
                    str([here[0] * here[1]] + [there[0] * there[1]] * (size - 1)))
        refused(lambda: call(torch.randn(4, 3).to(torch.float32 if rank else torch.bfloat16)), ValueError, "not of the same thing")
    x = torch.randn(300 if rank else 3, requires_grad=True)
    y = parallel.copy_to(x).sum()
    refused(y.backward, ValueError, "shapes must be those of the other machines")
    # Another call on each machine.
    refused(lambda: norm(torch.randn(3, 30)) if rank else parallel.sum_over(torch.randn(90)), ValueError, "are not all in the same call")
    assert norm(torch.randn(3, 30)).shape == (3, 30)  # and goes on
    if size != 4:
        return
    # Over two groups: whoever has no part in a mistake is told by those who were told.
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("rows", "columns"))
    both = parallel.over("rms_norm", mesh.get_group("columns"), mesh.get_group("rows"))
    for turn in range(2):
        refused(lambda: both(torch.randn(3, 30), w[:20] if rank == 2 else w), ValueError,
                "machine 0 of 2 failed: InvalidArgument: rms_norm: gamma[j] has the shape (20,)")
        refused(lambda: both(torch.randn(3 + (rank == 1), 30), w), ValueError, "the number of rows must be the same", "[3, 4]")
        assert both(torch.randn(3, 30), w).shape == (3, 30)


def case_locals(rank, size):
    """DTensors whose parts are not those of one tensor: refused on every machine, which then go on."""
    mesh, w = init_device_mesh("cpu", (size,)), torch.ones(64)

    def of(rows, columns, place):
        return DTensor.from_local(torch.randn(rows, columns), mesh, [place], run_check=False)

    weight = distribute_tensor(w, mesh, [Replicate()])
    norm = lambda x: tt.named("rms_norm")(x, weight)
    for turn in range(2):
        refused(lambda: norm(of(3 + rank, 64, Shard(0))), ValueError, "rms_norm: the cut must be the same on all")
        refused(lambda: tt.softmax(of(3, 64 + rank, Shard(1))), ValueError, "softmax: the cut must be the same on all")
        refused(lambda: tt.softmax(of(3 + rank, 64, Shard(1))), ValueError, "softmax: the number of rows must be the same on all")
        refused(lambda: norm(of(3, 64 + rank, Shard(0))), ValueError, "machine 1 of", "rms_norm: gamma[j] has the shape (64,)")
        assert norm(of(3, 64, Shard(0))).shape == (3 * size, 64)


def case_transforms(rank, size):
    """torch.func does not reach over machines, and is refused; what the error names works."""
    norm, x, w = parallel.columns("rms_norm"), torch.randn(6, 256), torch.randn(256)
    for call in (lambda x: norm(x, w), parallel.rows("rms_norm"), parallel.sum_over, parallel.copy_to, parallel.reduce_from):
        for transformed in (lambda: torch.func.vmap(call)(x.view(2, 3, 256)), lambda: torch.func.grad(lambda x: call(x).sum())(x),
                            lambda: torch.func.jvp(call, (x,), (x,)), lambda: torch.func.vjp(call, x)):
            refused(transformed, NotImplementedError, "is not transformed by torch.func", "torch.func.grad derives operators on DTensors")
    a = x.clone().requires_grad_()
    y = norm(a, w)
    refused(lambda: torch.autograd.grad(y, a, torch.randn(3, *y.shape), is_grads_batched=True, retain_graph=True), NotImplementedError,
            "nor by is_grads_batched")
    slope, = torch.autograd.grad((y * 2).sum(), a, create_graph=True)
    with forward_ad.dual_level():  # <x, dy/dx^T 2> both ways
        tangent = forward_ad.unpack_dual(norm(forward_ad.make_dual(x, x), w)).tangent
    both = parallel.sum_over(torch.stack([(tangent * 2).sum(), (slope * x).sum()]).detach())
    torch.testing.assert_close(both[0], both[1], rtol=1e-3, atol=1e-3)
    mesh = init_device_mesh("cpu", (size,))
    for place in (Shard(0), Shard(1)):
        x = distribute_tensor(torch.randn(6, 64 * size), mesh, [place])
        a = x.detach().requires_grad_()
        tt.softmax(a).square().sum().backward()
        found = torch.func.grad(lambda x: tt.softmax(x).square().sum())(x)
        torch.testing.assert_close(found.full_tensor(), a.grad.full_tensor())


def case_outside(rank, size):
    """A process that is not in the group."""
    group, mesh = dist.new_group([0, 1]), DeviceMesh("cpu", [0, 1])
    x = torch.randn(3, 512)
    given = distribute_tensor(x, mesh, [Shard(1)])
    calls = [lambda: parallel.columns("softmax", group)(x), lambda: parallel.sum_over(x, group), lambda: parallel.copy_to(x, group),
             lambda: parallel.RMSNorm(512, rows=group)(x), lambda: parallel.cross_entropy(x, torch.tensor([1, 2, 3]), group=group)]
    for call in calls:
        if rank < 2:
            call()
        else:
            refused(call, ValueError, "this process is no member of the group")
    if rank < 2:
        assert torch.allclose(tt.softmax(given).full_tensor(), torch.softmax(given.full_tensor(), -1))
    else:
        refused(lambda: tt.softmax(given), ValueError, "this process is not in the mesh")


def case_differs(rank, size):
    """A shape that one machine knows and the last one does not: who does not asks, who does waits in the collective. As on GPUs,
    whose machines do not say each time whether they ask."""
    tt._meeting.asks_each_time = tt._spread.asks_each_time = lambda device: False
    norm = parallel.columns("rms_norm")
    norm(torch.randn(3, 256))
    norm(torch.randn(3 if rank < size - 1 else 5000, 256))


def case_fails(rank, size):
    """One machine raises; the others are in a collective."""
    if rank == 1:
        raise RuntimeError("what it failed of")
    parallel.rows("rms_norm")(torch.randn(3, 256))


def case_dies_first(rank, size):
    """The last machine goes away before the others ask it anything."""
    if rank == size - 1:
        os._exit(7)
    parallel.rows("rms_norm")(torch.randn(3, 256))


def goes_away(rank, size, call):
    """The last machine goes away in the midst: the others get an error, before the group's time is over."""
    call()
    if rank == size - 1:
        os._exit(7)
    for _ in range(3):
        call()


def case_dies(rank, size):
    norm, x = parallel.columns("rms_norm"), torch.randn(3, 256)
    goes_away(rank, size, lambda: norm(x))


def case_dies_backward(rank, size):
    norm, x = parallel.columns("rms_norm"), torch.randn(3, 256, requires_grad=True)
    made = [norm(x).sum() for _ in range(4)]
    goes_away(rank, size, lambda: made.pop().backward())


def case_dies_rows(rank, size):
    """Rows exchange in their backward alone."""
    norm, x, w = parallel.rows("rms_norm"), torch.randn(3, 256), torch.randn(256, requires_grad=True)
    goes_away(rank, size, lambda: norm(x, w).sum().backward())


def case_dies_dtensor(rank, size):
    x = distribute_tensor(torch.randn(3, 64 * size), init_device_mesh("cpu", (size,)), [Shard(1)])
    goes_away(rank, size, lambda: tt.softmax(x))


def case_differs_backward(rank, size):
    """A gradient whose part on the last machine has other rows: torch refuses it there, and the others are in a collective."""
    mesh = init_device_mesh("cpu", (size,))
    x, w = (distribute_tensor(each, mesh, [place]) for each, place in ((torch.randn(3 * size, 64), Shard(0)), (torch.ones(64), Replicate())))
    y = tt.rms_norm(x, (64,), w.requires_grad_(), 1e-6)
    wrong = DTensor.from_local(torch.randn(3 + (rank == size - 1), 64), mesh, [Shard(0)], run_check=False, shape=y.shape, stride=y.stride())
    y.backward(wrong)


def case_dies_compiled(rank, size):
    norm, x = torch.compile(parallel.columns("rms_norm"), fullgraph=True, backend="aot_eager"), torch.randn(3, 256)
    goes_away(rank, size, lambda: norm(x))


def case_dies_sum(rank, size):
    x = torch.randn(1 << 20)  # in shares
    goes_away(rank, size, lambda: parallel.sum_over(x))


def case_dies_within(rank, size):
    """Between what machines say of an exchange and the exchange."""
    x, kept = torch.randn(3, 256), tt._exchange._gather

    def last(*given):
        if rank == size - 1:
            os._exit(7)
        return kept(*given)

    tt._exchange._gather = last
    parallel.columns("softmax")(x)


def case_dies_mesh(rank, size):
    """Who has nothing to do with who died is told by those who have."""
    mesh = init_device_mesh("cpu", (2, size // 2), mesh_dim_names=("rows", "columns"))
    norm = parallel.over("rms_norm", mesh.get_group("columns"), mesh.get_group("rows"))
    x, w = torch.randn(4, 256), torch.ones(256, requires_grad=True)
    goes_away(rank, size, lambda: norm(x, w).sum().backward())

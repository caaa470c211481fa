"""Operators on DTensors, over two processes: results and gradients are those of one."""
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
pytestmark = pytest.mark.skipif(not torch.distributed.is_available(), reason="torch was built without distributed")

import trireme.torch as tt
from leaving import leave


def work(rank, folder):
    import torch.distributed as dist
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor

    dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=2)
    mesh = init_device_mesh("cpu", (2,))
    torch.manual_seed(1)
    x, r = (torch.randn(4, 6, 32) for _ in range(2))
    w, b = (torch.randn(32) for _ in range(2))
    dy = torch.randn(4, 6, 32)
    cases = [(lambda x, w: tt.rms_norm(x, (32,), w, 1e-6), (x, w)), (lambda x, w, b: tt.layer_norm(x, (32,), w, b), (x, w, b)),
             (lambda x, r, w: tt.add_rms_norm(x, r, w)[0], (x, r, w)), (tt.swiglu, (x, r)), (tt.softmax, (x,))]
    for function, operands in cases:
        leaves = [each.clone().requires_grad_() for each in operands]
        wanted = function(*leaves)
        grads = torch.autograd.grad(wanted, leaves, dy)
        for placement in (Shard(0), Shard(1), Shard(2), Replicate()):
            spread = [distribute_tensor(each, mesh, [placement if each.dim() == 3 else Replicate()]).requires_grad_()
                      for each in operands]
            made = function(*spread)
            assert isinstance(made, DTensor)
            assert made.placements == (placement,), (made.placements, placement)
            if placement != Shard(2):  # rows are what they are anywhere
                assert torch.equal(made.full_tensor(), wanted)
            torch.testing.assert_close(made.full_tensor(), wanted, rtol=1e-5, atol=1e-5)
            found = torch.autograd.grad(made, spread, distribute_tensor(dy, mesh, [placement]))
            for mine, theirs in zip(found, grads):
                torch.testing.assert_close(mine.full_tensor(), theirs, rtol=1e-5, atol=1e-5)
    rows = tt.op("per_head(x[i,j], s[i % 5]) -> (y[i,j])\n    y = x * s")  # 12 rows a process: neither begins with entry 0 alone
    assert torch.equal(rows(distribute_tensor(x, mesh, [Shard(0)]), distribute_tensor(w[:5], mesh, [Replicate()])).full_tensor(), rows(x, w[:5]))
    rows = tt.op("pairs(x[i,j], s[i / 5]) -> (y[i,j])\n    y = x * s")
    made = rows(distribute_tensor(x, mesh, [Shard(0)]), distribute_tensor(w[:5], mesh, [Replicate()]))  # no part ends with an entry
    assert made.placements == (Shard(0),) and torch.equal(made.full_tensor(), rows(x, w[:5]))
    leave()


def test_rows_are_spread_over_machines(tmp_path):
    torch.multiprocessing.spawn(work, (str(tmp_path),), nprocs=2)

"""What machines do in test_torch_parallel: each case runs on every process of a gloo group, and compares with one process.

    python parallel_cases.py CASE ...        # under torchrun, or with RANK, WORLD_SIZE and a meeting place in MEETING
"""
import datetime
import os
import sys
import traceback

import torch
import torch.distributed as dist

import trireme
import trireme.torch as tt
from trireme.torch import parallel

from row_in_torch import NAMED, Problem


def same(a, b):
    assert a.dtype == b.dtype and a.shape == b.shape, (a.dtype, b.dtype, a.shape, b.shape)
    a, b = (each.detach().contiguous().view(-1).view(torch.uint8) for each in (a, b))
    return torch.equal(a, b)


def close(a, b):
    torch.testing.assert_close(a, b, rtol=2e-2 if a.dtype == torch.bfloat16 else 1e-4, atol=1e-3, equal_nan=True)
    return True


def sample(operator, rows, columns, dtype=torch.float32):
    """Operands of any operator, and what goes by name."""
    if operator.name in NAMED:
        problem = Problem(operator.name, dtype=dtype, shape=(rows, columns))
        return list(problem.operands.values()), {**problem.constants, **({"types": problem.types} if problem.types else {})}
    torch.manual_seed(rows * columns)
    return [torch.randn(tt._register.extents(spread, (rows, columns), 1, {})).to(dtype)
            for _, spread, *_ in operator.operator.operands], {}


class Machine:
    """This process's part of tensors that are cut along one axis."""

    def __init__(self, widths, rank):
        self.first, self.width = sum(widths[:rank]), widths[rank]

    def cut(self, tensor, axis):
        return tensor.narrow(axis, self.first, self.width).contiguous()


def compare(operator, spread, operands, constants, cuts, exact, one=None):
    """Results and gradients of `spread`, on what cuts(tensor, its spread) gives, against the operator's, or those of `one`.
    `exact`(spread) says where bits must be the same."""
    spreads = [each[1] for each in operator.operator.operands]
    whole = [each.clone().requires_grad_(each.is_floating_point()) for each in operands]
    mine = [cuts(each.clone(), where).requires_grad_(each.is_floating_point()) for each, where in zip(operands, spreads)]
    wanted, got = (one or operator)(*whole, results="all", **constants), spread(*mine, results="all", **constants)
    wanted, got = ((each if isinstance(each, tuple) else (each,)) for each in (wanted, got))
    for (name, where, *_), a, b in zip(operator.operator.results, wanted, got):
        a = cuts(a, where)
        assert same(a, b) if exact(where) else close(a, b), (operator.name, name)
    chosen = [k for k in operator.returned if wanted[k].requires_grad and got[k].requires_grad]
    if not chosen or "types" in constants:  # whole numbers take no gradients
        return
    torch.manual_seed(3)
    grads = [torch.randn(wanted[k].shape).to(wanted[k].dtype) for k in chosen]
    places = [k for k, each in enumerate(whole) if each.requires_grad and operator.operands[k] not in operator.held]
    a = torch.autograd.grad([wanted[k] for k in chosen], [whole[k] for k in places], grads, allow_unused=True)
    b = torch.autograd.grad([got[k] for k in chosen], [mine[k] for k in places],
                            [cuts(grad, operator.operator.results[k][1]) for k, grad in zip(chosen, grads)], allow_unused=True)
    for k, u, v in zip(places, a, b):
        assert (u is None) == (v is None), (operator.name, operator.operands[k])
        if u is not None:
            u = cuts(u, spreads[k])
            assert same(u, v) if exact(spreads[k]) else close(u, v), (operator.name, "d" + operator.operands[k])


def by_columns(machine, constants):
    def cuts(tensor, where):
        if "j" not in where:
            return tensor
        size = tt._rows.group_of(where, constants)
        return tensor.narrow(-1, machine.first // size, -(-machine.width // size)).contiguous()

    return cuts


def by_rows(machine, constants):
    def cuts(tensor, where):
        row = tt._rows.row_of(where, constants)
        if row is None or row.wrap:
            return tensor
        return tensor.narrow(0, machine.first // row.divide, -(-machine.width // row.divide)).contiguous()

    return cuts


def case_columns(rank, size):
    """Every operator that can be split: the bits of one machine where the cut is at stripes, whatever the parts' sizes."""
    cuts = [((512,) * size, True), (tuple(256 * (1 + k % 3) for k in range(size - 1)) + (100,), True), ((90,) * size, False),
            (tuple(60 + 7 * k for k in range(size)), False)]
    cuts = cuts if size == 2 else cuts[1:3] if size == 3 else cuts[:2]  # each somewhere, or it takes long
    refused, compared = set(), set()
    for name in NAMED:
        operator = tt.named(name)
        try:
            tt._spread.phases_of(operator, True)
        except trireme.Unsupported:
            refused.add(name)
            continue
        for widths, aligned in cuts if not name.endswith("quant") else [each for each in cuts if each[1]]:  # a quantum more or less is not close
            for dtype in (torch.float32, torch.bfloat16) if widths == (512, 512) else (torch.float32,):
                operands, constants = sample(operator, 6, sum(widths), dtype)
                values = {**operator.constants, **constants}
                if tt._spread.cut_inside_groups(operator, tuple(values[each] for each in operator.constants), widths)[0]:
                    continue
                compared.add(name)
                # A sum over rows and all columns is added up machine by machine.
                compare(operator, parallel.columns(operator, cut=widths), operands, constants,
                        by_columns(Machine(widths, rank), values), lambda where: aligned and ("j" in where or where == "[i]"))
    assert refused >= {"rms_norm_rope", "sinkhorn"} and len(refused) < len(NAMED) / 3, refused
    assert set(NAMED) - compared - refused <= {"group_norm"}, compared  # whose pixels no cut here is a multiple of: see groups


def case_groups(rank, size):
    """Groups of neighbouring columns stay whole on a machine, need no exchange of their own, and have one machine's bits; a cut
    inside one is refused with a cut that is not."""
    calls = []
    kept, tt._exchange._gather = tt._exchange._gather, lambda *values: calls.append(1) or kept(*values)
    norm = tt.named("grouped_rms_norm")
    for widths in (tuple(48 * (1 + k) for k in range(size)), (96,) * (size - 1) + (30,)):  # at no stripe, the last group shorter
        operands, _ = sample(norm, 5, sum(widths))
        compare(norm, parallel.columns(norm, cut=widths), operands, {"group": 48.0},
                by_columns(Machine(widths, rank), {"group": 48}), lambda where: True)
    assert not calls, calls
    tt._exchange._gather = kept
    channels, constants = tt.named("group_norm"), {"groups": 3.0, "pixels": 16.0}
    for width, exact in ((256, True), (48, False)):
        operands = [torch.randn(6, width * size), torch.randn(3, width * size // 16), torch.randn(3, width * size // 16)]
        compare(channels, parallel.columns(channels), operands, constants, by_columns(Machine((width,) * size, rank), constants),
                lambda where: exact)
    # Rows of several axes; what is kept of a group goes into the backward.
    x = torch.randn(2, 3, 96 * size)
    whole, mine = x.clone().requires_grad_(), Machine((96,) * size, rank).cut(x, -1).requires_grad_()
    tt.named("grouped_rms_norm")(whole, group=32.0).square().sum().backward()
    parallel.columns("grouped_rms_norm")(mine, group=32.0).square().sum().backward()
    assert same(Machine((96,) * size, rank).cut(whole.grad, -1), mine.grad)
    if tt._register.PAIRS is not None:  # two columns an element
        machine = Machine((96,) * size, rank)
        for name in ("quantise_mxfp4", "quantise_nvfp4"):
            wanted = tt.named(name)(x, types={"q": "f4e2m1"})
            got = parallel.columns(name)(machine.cut(x, -1), types={"q": "f4e2m1"})
            for (each, where, *_), a, b in zip(tt.named(name).operator.results, wanted, got):
                share = a.shape[-1] // size
                assert same(a.view(torch.uint8).narrow(-1, rank * share, share) if a.dtype == tt._register.PAIRS else
                            a.narrow(-1, rank * share, share), b.view(torch.uint8) if a.dtype == tt._register.PAIRS else b), name
    # A quarter of the row is a group; a row's sum over groups that straddle stripes is combined part by part.
    quarters = tt.op("quarters(x[i,j], w[j / (n / 4)]) -> (y[i,j], s[i, j / (n / 4)], t[i])\n"
                     "    s = sum(x, j / (n / 4))\n    y = x * s * w\n    t = sum(x * s)\n")
    if size in (2, 4):
        for width in (256 * 3, 300):
            columns = width * size
            operands = [torch.randn(4, columns), torch.randn(4)]
            machine = Machine((width,) * size, rank)

            def cuts(tensor, where):
                return tensor if "j" not in where else machine.cut(tensor, -1) if "/" not in where else \
                    Machine((4 // size,) * size, rank).cut(tensor, -1)

            compare(quarters, parallel.columns(quarters), operands, {}, cuts, lambda where: where in ("[i, j / (n / 4)]",))
    refusals = [((90,) * size, 48.0, ["[j / group] of 48", "cut at multiples of 48, such as cut=(96, " if size > 2 else "cut=(96, 84)"]),
                ((30,) * size, 40.0 * size, ["cut " + str(30 * size) + " columns over at most 1 machines"])]
    for widths, group, words in refusals:
        try:
            parallel.columns(norm, cut=widths)(torch.randn(3, widths[rank]), group=group)
            raise AssertionError(f"{widths} was not refused")
        except trireme.Unsupported as error:
            assert all(word in str(error) for word in words), error
    try:  # what j is divided by is the same everywhere
        parallel.columns(norm)(torch.randn(3, 96), group=48.0 if rank else 96.0)
        raise AssertionError("groups that differ between machines")
    except ValueError as error:
        assert "what it divides i and j by must be the same" in str(error)


def case_rows(rank, size):
    """Every operator: rows are what they are, and sums over rows have the bits of one machine where rows are cut at blocks."""
    for name in NAMED:
        operator = tt.named(name)
        cuts = [(240,) * size, (512,) * size, tuple(96 * k for k in range(size))]
        for widths in cuts if size == 2 else cuts[2:] if size == 3 else cuts[1:2]:
            operands, constants = sample(operator, sum(widths), 32)
            block, begins = trireme._core.row_block(sum(widths), 32), [sum(widths[:k]) for k in range(size)]

            def exact(where):
                row = tt._rows.row_of(where, constants)
                if row is not None and not row.wrap:
                    return True
                if row is not None or "position" in str(operator.operator.operands):  # blocks do not begin where those do
                    return False
                return all(first % (256 if where == "[]" else block) == 0 for first in begins)

            try:
                compare(operator, parallel.rows(operator, cut=None if widths[0] else widths), operands, constants,
                        by_rows(Machine(widths, rank), constants), exact)
            except trireme.Unsupported as error:
                assert "computes with" in str(error) or "multiples of" in str(error), error


def case_composed(rank, size):
    """Folds exchange two numbers, and amax and sum go in one collective."""
    operator = tt.op("""composed(x[i,j], w[j], eps = 1e-5) -> (y[i,j], l[i], a[i])
    v = variance(x)
    y = (x - mean(x)) * rsqrt(v + eps) * w + softmax(x) * j
    l = logsumexp(x)
    a = amax(x) - amin(x) + n
""")
    for widths in ((256,) * size, (768,) * size, (41,) * size):
        operands, constants = sample(operator, 5, sum(widths))
        compare(operator, parallel.columns(operator), operands, constants, by_columns(Machine(widths, rank), constants),
                lambda where: widths[0] % 256 == 0)
    calls = []
    kept, tt._exchange._gather = tt._exchange._gather, lambda *values: calls.append(1) or kept(*values)
    parallel.columns(operator)(operands[0][:, :41].contiguous(), operands[1][:41])
    tt._exchange._gather = kept
    assert len(calls) == 1, calls


def gathers(call):
    """How many collectives a call takes."""
    calls = []
    kept, tt._exchange._gather = tt._exchange._gather, lambda *values: calls.append(1) or kept(*values)
    try:
        call()
    finally:
        tt._exchange._gather = kept
    return len(calls)


def case_once(rank, size):
    """compose=True: one exchange a row, and the bits of the composed program on one machine, derivatives too."""
    for name, numbers in (("layer_norm", 1), ("add_layer_norm", 1), ("softmax", 1), ("log_softmax", 1), ("masked_softmax", 1),
                          ("softmax_sink", 1), ("cross_entropy", 1), ("rms_norm", 1), ("logprob_entropy", 1)):
        operator = tt.named(name)
        one = tt._spread.Spread(composed=True).of(operator)  # on one machine
        for widths in ((512,) * size, (256, *(256 * 3 for _ in range(size - 1))), (90,) * size):
            aligned = widths[0] % 256 == 0
            operands, constants = sample(operator, 6, sum(widths))
            cuts = by_columns(Machine(widths, rank), {**operator.constants, **constants})
            many = parallel.columns(operator, cut=widths, compose=True)
            compare(operator, many, operands, constants, cuts, lambda where: False)  # the operator's values
            compare(operator, many, operands, constants, cuts, lambda where: aligned and ("j" in where or where == "[i]"), one)
        mine = [cuts(each, where[1]) for each, where in zip(operands, operator.operator.operands)]
        assert gathers(lambda: many(*mine, **constants)) == numbers, name
    torch.manual_seed(1)
    machine = Machine((512,) * size, rank)
    x, target = torch.randn(7, 512 * size), torch.randint(0, 512 * size, (7,))
    for named in (dict(), dict(label_smoothing=0.1), dict(softcap=20.0, z_loss=1e-3)):
        a, b = x.clone().requires_grad_(), machine.cut(x, -1).requires_grad_()
        loss = tt.cross_entropy(a, target, **named)
        made = []
        assert gathers(lambda: made.append(parallel.cross_entropy(b, target, compose=True, **named))) == 1
        close(loss, made[0])
        assert gathers(lambda: made[0].backward()) == 0
        loss.backward()
        close(machine.cut(a.grad, -1), b.grad)
    assert gathers(lambda: parallel.log_probability(machine.cut(x, -1), target, compose=True)) == 1
    norm = parallel.LayerNorm(512, columns=dist.group.WORLD, compose=True)
    assert gathers(lambda: norm(machine.cut(x, -1))) == 1


def case_losses(rank, size):
    for classes, aligned in ((512 * size, True), (100 * size, False)):
        machine = Machine((classes // size,) * size, rank)
        torch.manual_seed(classes)
        x, target, weight = torch.randn(20, classes), torch.randint(0, classes, (20,)), torch.rand(classes)
        target[3] = -100
        soft = torch.softmax(torch.randn(20, classes), -1)
        cases = [dict(), dict(reduction="sum"), dict(reduction="none"), dict(label_smoothing=0.1), dict(weight=weight),
                 dict(weight=weight, label_smoothing=0.2, reduction="sum"), dict(softcap=20.0, z_loss=1e-3), dict(target=soft)]
        for named in cases:
            named = {"target": target, **named}
            mine = dict(named)
            if named["target"] is soft:
                mine["target"] = machine.cut(soft, -1)
            a, b = x.clone().requires_grad_(), machine.cut(x, -1).requires_grad_()
            one, many = tt.cross_entropy(a, **named), parallel.cross_entropy(b, **mine)
            assert same(one, many) if aligned else close(one, many), named
            one.sum().backward()
            many.sum().backward()
            u, v = machine.cut(a.grad, -1), b.grad
            assert same(u, v) if aligned else close(u, v), named
        a, b = x.clone().requires_grad_(), machine.cut(x, -1).requires_grad_()
        program = tt._loss_programs.log_probability()
        one = program.call([a, target], [0.5], wanted=3)[:2]
        many = parallel.log_probability(b, target, temperature=2.0)
        for u, v in zip(one, many):
            assert same(u, v) if aligned else close(u, v)
        (one[0] + one[1]).sum().backward()
        (many[0] + many[1]).sum().backward()
        u, v = machine.cut(a.grad, -1), b.grad
        assert same(u, v) if aligned else close(u, v)


def case_norms(rank, size):
    """Sequence-parallel norms: weights' gradients have the same bits for any number of machines."""
    torch.manual_seed(0)
    rows, columns = 2304, 64  # blocks of 16 rows: 144 of them, halves, thirds and quarters
    assert rows // size % trireme._core.row_block(rows, columns) == 0
    x, dy = torch.randn(rows, columns), torch.randn(rows, columns)
    machine = Machine((rows // size,) * size, rank)
    for one, many in ((tt.RMSNorm(columns), parallel.RMSNorm(columns, rows=dist.group.WORLD)),
                      (tt.LayerNorm(columns), parallel.LayerNorm(columns, rows=dist.group.WORLD))):
        one(x).backward(dy)
        many(machine.cut(x, 0)).backward(machine.cut(dy, 0))
        for a, b in zip(one.parameters(), many.parameters()):
            assert same(a.grad, b.grad)


def case_sums(rank, size):
    torch.manual_seed(5)
    for shape, dtype in (((7, 3), torch.float32), ((300, 211), torch.float32), ((40, 5), torch.bfloat16), ((9000,), torch.float64)):
        parts = [torch.randn(shape).to(dtype) for _ in range(size)]
        nodes = [each.to(torch.promote_types(dtype, torch.float32)) for each in parts]
        while len(nodes) > 1:
            nodes = [nodes[k] + nodes[k + 1] if k + 1 < len(nodes) else nodes[k] for k in range(0, len(nodes), 2)]
        assert same(parallel.sum_over(parts[rank]), nodes[0].to(dtype))
    x = torch.randn(8, 4 * size, requires_grad=True)
    w = torch.randn(4 * size, 4 * size)
    machine = Machine((4,) * size, rank)
    a = torch.relu(x @ w) @ w.t()
    mine = machine.cut(w, 1)
    y = x.detach().clone().requires_grad_()
    b = parallel.reduce_from(torch.relu(parallel.copy_to(y) @ mine) @ mine.t())
    close(a, b)
    a.sum().backward()
    b.sum().backward()
    close(x.grad, y.grad)


def case_mesh(rank, size):
    """Columns over one axis of a mesh, rows over the other."""
    from torch.distributed.device_mesh import init_device_mesh
    if size != 4:
        return
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("rows", "columns"))
    rows, columns = Machine((512, 512), mesh.get_local_rank("rows")), Machine((512, 512), mesh.get_local_rank("columns"))
    for name in ("rms_norm", "layer_norm", "dynamic_tanh", "swiglu", "log_softmax"):
        operator = tt.named(name)
        operands, constants = sample(operator, 1024, 1024)

        def cuts(tensor, where):
            tensor = rows.cut(tensor, 0) if where.startswith("[i") else tensor
            return columns.cut(tensor, -1) if "j" in where else tensor

        compare(operator, parallel.over(operator, mesh.get_group("columns"), mesh.get_group("rows")), operands, constants, cuts,
                lambda where: where != "[]")
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor
    torch.manual_seed(1)
    x, w, dy = torch.randn(8, 6, 512), torch.randn(512), torch.randn(8, 6, 512)
    a, b = x.clone().requires_grad_(), w.clone().requires_grad_()
    y = tt.rms_norm(a, (512,), b, 1e-6)
    wanted = torch.autograd.grad(y, (a, b), dy)
    for places in ((Shard(0), Shard(2)), (Shard(2), Shard(0)), (Shard(0), Shard(1)), (Replicate(), Shard(2))):
        c = distribute_tensor(x, mesh, places).requires_grad_()
        d = distribute_tensor(w, mesh, [Shard(0) if each == Shard(2) else Replicate() for each in places]).requires_grad_()
        z = tt.rms_norm(c, (512,), d, 1e-6)
        assert z.placements == places and same(z.full_tensor(), y)
        for u, v in zip(wanted, torch.autograd.grad(z, (c, d), distribute_tensor(dy, mesh, places))):
            close(u, v.full_tensor())
    try:
        tt.rms_norm(distribute_tensor(x, mesh, (Shard(2), Shard(2))), (512,), None, 1e-6)
        raise AssertionError("columns over two axes of a mesh")
    except trireme.Unsupported as error:
        assert "one axis of a mesh" in str(error) and "accepted are Replicate(), Shard(0), Shard(1)" in str(error)


def case_errors(rank, size):
    """All machines raise the same error, at once."""
    def refused(call, kind, *words):
        try:
            call()
        except kind as error:
            assert all(word in str(error) for word in words), error
            return
        raise AssertionError(f"{words} was not refused")

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
    refused(lambda: parallel.sum_over(torch.randn(3 + rank)), ValueError, "the number of elements")
    refused(lambda: norm(torch.randn(3, 4, 5), axes=2), trireme.Unsupported, "axes=1")
    turn = tt.op("turn(x[i,j]) -> (y[i,j])\n    y = rotate(x, 1)")
    refused(lambda: parallel.columns(turn)(torch.randn(3, 30)), trireme.Unsupported, "rotate reads columns of other parts")
    counted = tt.op("counted(x[i,j]) -> (y[i,j])\n    y = x * i")
    refused(lambda: parallel.rows(counted)(torch.randn(3, 30)), trireme.Unsupported, "computes with i")
    heads = parallel.rows("rms_norm_heads")
    refused(lambda: heads(torch.randn(3, 30), torch.randn(2, 30), heads=2.0), trireme.Unsupported, "cut rows at multiples of 2")
    # Shapes that all know, and that differ now.
    for rows in (3, 5000, 7):
        norm(torch.randn(rows, 30))
    refused(lambda: norm(torch.randn(5000 if rank else 3, 30)), ValueError, "shapes must be those of the other machines", "[3, 5000")
    spread, w = parallel.rows("rms_norm"), torch.ones(30, requires_grad=True)

    def backward(rows):
        spread(torch.randn(rows, 30), w).sum().backward()

    for rows in (3, 5000, 7):
        backward(rows)
    refused(lambda: backward(5000 if rank else 3), ValueError, "shapes must be those of the other machines")
    assert norm(torch.randn(3, 30)).shape == (3, 30)  # and goes on


def case_dtensor(rank, size):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
    mesh = init_device_mesh("cpu", (size,))
    torch.manual_seed(2)
    columns = 256 * size
    x, r, dy = (torch.randn(5, 7, columns) for _ in range(3))  # shards that differ in size, one of them empty
    w = torch.randn(columns)
    cases = [(lambda x, w: tt.rms_norm(x, (columns,), w, 1e-6), (x, w)), (lambda x, r, w: tt.add_rms_norm(x, r, w)[0], (x, r, w)),
             (tt.swiglu, (x, r)), (tt.softmax, (x,))]
    for function, operands in cases:
        leaves = [each.clone().requires_grad_() for each in operands]
        wanted = function(*leaves)
        grads = torch.autograd.grad(wanted, leaves, dy)
        for place in (Shard(0), Shard(1), Shard(2), Replicate()):
            spread = [distribute_tensor(each, mesh, [place if each.dim() == 3 else Shard(0) if place == Shard(2) else Replicate()])
                      .requires_grad_() for each in operands]
            made = function(*spread)
            assert isinstance(made, DTensor) and made.placements == (place,) and same(made.full_tensor(), wanted)
            for leaf, u, v in zip(spread, grads, torch.autograd.grad(made, spread, distribute_tensor(dy, mesh, [place]))):
                assert v.placements == leaf.placements
                assert same(v.full_tensor(), u) if place != Shard(1) or u.dim() == 3 else close(v.full_tensor(), u)
    grouped = tt.named("grouped_rms_norm")
    a, b = x.clone().requires_grad_(), distribute_tensor(x, mesh, [Shard(2)]).requires_grad_()
    (one, kept), (many, cut) = (grouped(each, group=32.0, results=["y", "rstd"]) for each in (a, b))
    assert same(many.full_tensor(), one) and same(cut.full_tensor(), kept) and cut.placements == (Shard(2),)
    one.backward(dy)
    many.backward(distribute_tensor(dy, mesh, [Shard(2)]))
    assert same(b.grad.full_tensor(), a.grad)
    if tt._register.PAIRS is not None:  # two columns an element
        cut, scale = tt.named("quantise_mxfp4")(distribute_tensor(x, mesh, [Shard(2)]), types={"q": "f4e2m1"})
        assert cut.shape == (5, 7, columns // 2) and scale.shape == (5, 7, columns // 32) and cut.to_local().shape == (5, 7, 128)
    # Composed: one exchange, the bits of the composed program on one machine, eager and compiled; rows stay as they are.
    one = tt._spread.Spread(composed=True).of(tt.named("softmax"))
    a, b = x.clone().requires_grad_(), distribute_tensor(x, mesh, [Shard(2)]).requires_grad_()
    made, parts = [], distribute_tensor(x, mesh, [Shard(0)])
    with parallel.compose_dtensors():
        assert gathers(lambda: made.append(tt.softmax(b))) == 1
        made.append(torch.compile(tt.softmax, fullgraph=True, backend="aot_eager")(b))
        assert same(tt.softmax(parts).full_tensor(), tt.softmax(x))
    assert gathers(lambda: tt.softmax(b)) == 2
    wanted = one(a)
    grad, = torch.autograd.grad(wanted, a, dy)
    for each in made:
        assert same(each.full_tensor(), wanted)
        found, = torch.autograd.grad(each, b, distribute_tensor(dy, mesh, [Shard(2)]))
        assert same(found.full_tensor(), grad)
    logits, target = torch.randn(6, columns), torch.randint(0, columns, (6,))
    one = tt.cross_entropy(logits, target)
    many = tt.cross_entropy(distribute_tensor(logits, mesh, [Shard(1)]), distribute_tensor(target, mesh, [Replicate()]))
    assert same(one, many.full_tensor())
    for call, words in [
            (lambda: tt.rms_norm(distribute_tensor(x, mesh, [Shard(0)]), (columns,), w, 1e-6), "w"),
            (lambda: tt.op("per_head(x[i,j], s[i % 3]) -> (y[i,j])\n    y = x * s")(
                distribute_tensor(x, mesh, [Shard(1)]), distribute_tensor(w[:3], mesh, [Replicate()])), "accepted are Replicate() and Shard(0)"),
            (lambda: tt.op("turn(x[i,j]) -> (y[i,j])\n    y = rotate(x, 1)")(distribute_tensor(x, mesh, [Shard(2)])),
             "accepted are Replicate(), Shard(0), Shard(1)"),
            (lambda: grouped(distribute_tensor(x, mesh, [Shard(2)]), group=3.0),
             f"accepted are Replicate(), Shard(0), Shard(1), and Shard(2) of columns that are a multiple of {size} * 3")]:
        try:
            call()
            raise AssertionError(words)
        except (RuntimeError, NotImplementedError) as error:
            assert words in str(error) or "plain tensor" in str(error), error


def case_ops(rank, size):
    """torch.ops.trireme itself takes DTensors, with gradients and without; below autograd by sharding rules."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Partial, Replicate, Shard, distribute_tensor
    mesh, ops = init_device_mesh("cpu", (size,)), torch.ops.trireme
    torch.manual_seed(8)
    x, w, dy = torch.randn(size, 2 * size + 1, 16 * size), torch.randn(16 * size), torch.randn(size, 2 * size + 1, 16 * size)
    a, b = x.clone().requires_grad_(), w.clone().requires_grad_()
    y, rstd = ops.rms_norm(a, b, 1e-6, 0.0, 1, "")
    wanted = torch.autograd.grad(y, (a, b), dy)
    for place in (Shard(0), Shard(1), Shard(2), Replicate()):
        c, d = distribute_tensor(x, mesh, [place]).requires_grad_(), distribute_tensor(w, mesh, [Replicate()]).requires_grad_()
        z, _ = ops.rms_norm(c, d, 1e-6, 0.0, 1, "")
        assert z.placements == (place,)
        close(z.full_tensor(), y)
        for u, v in zip(wanted, torch.autograd.grad(z, (c, d), distribute_tensor(dy, mesh, [place]))):
            close(v.full_tensor(), u)
        with torch.inference_mode():
            c, d = distribute_tensor(x, mesh, [place]), distribute_tensor(w, mesh, [Replicate()])
            z, kept = ops.rms_norm(c, d, 1e-6, 0.0, 1, "")
            assert z.placements == (Replicate() if place == Shard(2) else place,)  # columns that look at others are gathered
            assert same(z.full_tensor(), y) and same(kept.full_tensor(), rstd)
            dx, dw = ops.rms_norm_backward(distribute_tensor(dy, mesh, [place]), c, d, kept, 1e-6, 0.0, 1, "")
            assert dw.placements == (Partial() if place in (Shard(0), Shard(1)) else Replicate(),)
            assert same(dx.full_tensor(), wanted[0])
            close(dw.full_tensor(), wanted[1])
            assert ops.swiglu(c, c, 1.0, 1, "").placements == (place,)
            assert tt.rms_norm(c, (16 * size,), d, 1e-6).placements == (place,)


class Block(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = tt.RMSNorm(width)
        self.up, self.gate, self.down = (torch.nn.Linear(width, width, bias=False) for _ in range(3))
        self.unit = tt.SwiGLU()

    def forward(self, x):
        y = self.norm(x)
        return x + self.down(self.unit(self.up(y), self.gate(y)))


def case_modules(rank, size):
    """parallelize_module, fully_shard and torch.compile, on a model that uses trireme.torch."""
    import copy

    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    from torch.distributed.tensor import DTensor, Replicate, Shard
    from torch.distributed.tensor.parallel import (ColwiseParallel, PrepareModuleInput, RowwiseParallel, SequenceParallel,
                                                   parallelize_module)
    mesh = init_device_mesh("cpu", (size,))
    torch.manual_seed(4)
    width = 16 * size
    model, x = Block(width), torch.randn(2, 4 * size, width)
    wanted = model(x)
    wanted.square().sum().backward()
    grads = {name: each.grad for name, each in model.named_parameters()}
    for compiled in (False, True) if size == 2 else (False,):
        made = copy.deepcopy(model)
        made.zero_grad()
        parallelize_module(made, mesh, {
            "norm": SequenceParallel(), "up": ColwiseParallel(input_layouts=Shard(1), use_local_output=False),
            "gate": ColwiseParallel(input_layouts=Shard(1), use_local_output=False),
            "down": RowwiseParallel(output_layouts=Shard(1), use_local_output=False)})
        run = torch.compile(made, backend="aot_eager") if compiled else made  # the hooks of parallelize_module break the graph
        got = run(DTensor.from_local(x.chunk(size, 1)[rank], mesh, [Shard(1)]))
        close(got.full_tensor(), wanted)
        got.full_tensor().square().sum().backward()
        for name, each in made.named_parameters():
            close(each.grad.full_tensor(), grads[name])
    for compiled in (False, True) if size == 2 else (False,):
        made = copy.deepcopy(model)
        made.zero_grad()
        fully_shard(made, mesh=mesh)
        got = (torch.compile(made, backend="aot_eager") if compiled else made)(x)  # the same batch everywhere: gradients are averaged
        close(got, wanted)
        got.square().sum().backward()
        for name, each in made.named_parameters():
            close(each.grad.full_tensor(), grads[name])
    if size != 2:
        return
    # A model whose parameters are DTensors, in one graph.
    from torch.distributed.tensor import distribute_module, distribute_tensor
    for place in (Shard(1), Shard(2)):
        norm = torch.nn.Sequential(tt.RMSNorm(width), tt.LayerNorm(width))
        one = copy.deepcopy(norm)
        distribute_module(norm, mesh, lambda name, module, mesh: [
            module.register_parameter(key, torch.nn.Parameter(distribute_tensor(each, mesh, [Shard(0) if place == Shard(2) else Replicate()])))
            for key, each in module.named_parameters(recurse=False)])
        a, b = one(x), torch.compile(norm, fullgraph=True, backend="aot_eager")(distribute_tensor(x, mesh, [place]))
        assert b.placements == (place,)
        close(b.full_tensor(), a)
        a.square().sum().backward()
        b.full_tensor().square().sum().backward()
        for u, v in zip(one.parameters(), norm.parameters()):
            assert v.grad.placements == v.placements
            close(v.grad.full_tensor(), u.grad)


def case_compiled(rank, size):
    """Compiled code sees phases and collectives, and has the same bits."""
    from functorch.compile import make_boxed_func, min_cut_rematerialization_partition
    from torch._dynamo.backends.common import aot_autograd
    seen = []

    def note(module, _):
        seen.extend(str(node.target) for node in module.graph.nodes if node.op == "call_function")
        return make_boxed_func(module.forward)

    norm, head, once = parallel.columns("layer_norm"), parallel.rows("rms_norm"), parallel.columns("softmax", compose=True)

    def model(x, w, b, y, g):
        return norm(x, w, b).square().sum() + head(y, g).square().sum() + parallel.cross_entropy(x, target) + once(x).square().sum()

    machine = Machine((300,) * size, rank)
    torch.manual_seed(6)
    x, w, b, y, g = torch.randn(4, 300 * size), torch.randn(300 * size), torch.randn(300 * size), torch.randn(6, 40), torch.randn(40)
    target = torch.randint(0, 300 * size, (4,))
    given = [each.requires_grad_() for each in (machine.cut(x, -1), machine.cut(w, -1), machine.cut(b, -1), y, g)]
    wanted = model(*given)
    grads = torch.autograd.grad(wanted, given)
    run = torch.compile(model, fullgraph=True, backend=aot_autograd(
        fw_compiler=note, bw_compiler=note, partition_fn=min_cut_rematerialization_partition))  # as Inductor's
    got = run(*given)
    for u, v in zip(grads, torch.autograd.grad(got, given)):
        assert same(u, v)
    assert same(wanted, got)
    gathers = [each for each in seen if "all_gather" in each]
    assert len(gathers) == 8, gathers  # layer_norm 2 + 1, cross_entropy 2, rms_norm's dgamma 1, composed softmax 1 + 1


def case_second(rank, size):
    """Derivatives of derivatives are spread, too."""
    torch.manual_seed(0)
    machine = Machine((512,) * size, rank)
    x, w = torch.randn(3, 512 * size), torch.randn(512 * size)

    def second(operator, x, w):
        x, w = x.requires_grad_(), w.requires_grad_()
        slope, = torch.autograd.grad(operator(x, w).square().sum(), x, create_graph=True)
        return torch.autograd.grad(slope.square().sum(), (x, w))

    one = second(tt.named("rms_norm"), x.clone(), w.clone())
    many = second(parallel.columns("rms_norm"), machine.cut(x, -1), machine.cut(w, -1))
    for u, v in zip(one, many):
        torch.testing.assert_close(machine.cut(u, -1), v, rtol=1e-3, atol=1e-2)


def case_uneven(rank, size):
    """DTensor's parts that differ in size, one of them of no rows; one of no columns is refused everywhere."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor
    mesh = init_device_mesh("cpu", (size,))
    torch.manual_seed(9)
    x, w, dy = torch.randn(size + 1, 33 * size + 1), torch.randn(33 * size + 1), torch.randn(size + 1, 33 * size + 1)
    a, b = x.clone().requires_grad_(), w.clone().requires_grad_()
    y = tt.rms_norm(a, w.shape, b, 1e-6)
    wanted = torch.autograd.grad(y, (a, b), dy)
    for place in (Shard(0), Shard(1)):
        c = distribute_tensor(x, mesh, [place]).requires_grad_()
        d = distribute_tensor(w, mesh, [Shard(0) if place == Shard(1) else Replicate()]).requires_grad_()
        z = tt.rms_norm(c, w.shape, d, 1e-6)
        close(z.full_tensor(), y)
        for u, v in zip(wanted, torch.autograd.grad(z, (c, d), distribute_tensor(dy, mesh, [place]))):
            close(v.full_tensor(), u)
    if size > 2:
        try:
            tt.softmax(distribute_tensor(torch.randn(3, size - 1), mesh, [Shard(1)]))
            raise AssertionError("a machine without columns was not refused")
        except ValueError as error:
            assert "has no columns" in str(error) and f"over at most {size - 1} machines" in str(error), error


def case_differs(rank, size):
    """Shapes that all machines know, and that differ in a later call: who changed asks, who did not waits in the collective."""
    norm = torch.compile(parallel.columns("rms_norm"), backend="aot_eager") if os.environ.get("COMPILED") else parallel.columns("rms_norm")
    for rows in (3, 5000):
        norm(torch.randn(rows, 256))
    norm(torch.randn(3 if rank else 5000, 256))


def case_dies_first(rank, size):
    """The last machine goes away before the others ask it anything."""
    if rank == size - 1:
        os._exit(7)
    parallel.rows("rms_norm")(torch.randn(3, 256))


def case_dies(rank, size):
    """The last machine goes away in the midst: the others get an error, before the group's time is over."""
    norm = parallel.columns("rms_norm")
    x = torch.randn(3, 256)
    norm(x)
    if rank == size - 1:
        os._exit(7)
    for _ in range(3):
        norm(x)


CASES = {name.removeprefix("case_"): function for name, function in list(globals().items()) if name.startswith("case_")}


def main(names, seconds=60):
    torch.set_num_threads(1)
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    where = os.environ.get("MEETING")
    dist.init_process_group("gloo", init_method=f"file://{where}" if where else "env://", rank=rank, world_size=size,
                            timeout=datetime.timedelta(seconds=seconds))
    for name in names:
        try:
            CASES[name](rank, size)
        except Exception:
            print(f"machine {rank} of {size}, case {name}:\n{traceback.format_exc()}", flush=True)
            os._exit(1)  # the others see it at once
        print(f"fine {name} {rank}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1:], int(os.environ.get("SECONDS_TO_WAIT", "60")))

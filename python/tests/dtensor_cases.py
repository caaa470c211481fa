"""What machines do with DTensors; run by parallel_cases."""
import torch
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.placement_types import _StridedShard
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor

import trireme
import trireme.torch as tt
from trireme.torch import parallel

from row_in_torch import NAMED
from parallel_compare import Machine, close, compare, gathers, same, sample, sums_are_exact


def case_mesh(rank, size):
    """Columns over one axis of a mesh, rows over the other."""
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
                lambda where: True)
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


def case_dtensor(rank, size):
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
    # What is drawn is what one machine draws; eager and compiled.
    dropout, seed = tt.named("dropout"), torch.tensor(77)
    a = x.clone().requires_grad_()
    wanted = dropout(a, seed, p=0.3)
    grad, = torch.autograd.grad(wanted, a, dy)
    drop = lambda *operands: dropout(*operands, p=0.3)
    for place, calls in ((Shard(0), (drop, torch.compile(drop, fullgraph=True, backend="aot_eager"))), (Shard(2), (drop,))):
        for call in calls:
            b = distribute_tensor(x, mesh, [place]).requires_grad_()
            made = call(b, distribute_tensor(seed, mesh, [Replicate()]))
            assert made.placements == (place,) and same(made.full_tensor(), wanted)
            found, = torch.autograd.grad(made, b, distribute_tensor(dy, mesh, [place]))
            assert same(found.full_tensor(), grad)
    # Rows that know their number, and wrap inside a machine's part; eager and compiled.
    numbered = tt.op("numbered(x[i,j], s[i % 5]) -> (y[i,j], t[])\n    y = x * s * i\n    t = colsum(x * i)")
    a, b = x[0].clone().requires_grad_(), r[0, :5, 0].clone().requires_grad_()
    wanted = numbered(a, b)
    grads = torch.autograd.grad(wanted[0].square().sum() + wanted[1], (a, b))
    c, d = distribute_tensor(x[0], mesh, [Shard(0)]).requires_grad_(), distribute_tensor(r[0, :5, 0].contiguous(), mesh, [Replicate()]).requires_grad_()
    for call in (numbered, torch.compile(numbered, fullgraph=True, backend="aot_eager")):
        y, total = call(c, d)
        assert same(y.full_tensor(), wanted[0]) and total.placements == (Replicate(),)
        close(total.full_tensor(), wanted[1])
        for u, v in zip(grads, torch.autograd.grad(y.square().sum() + total, (c, d))):
            close(v.full_tensor(), u)
    logits, target = torch.randn(6, columns), torch.randint(0, columns, (6,))
    one = tt.cross_entropy(logits, target)
    many = tt.cross_entropy(distribute_tensor(logits, mesh, [Shard(1)]), distribute_tensor(target, mesh, [Replicate()]))
    assert same(one, many.full_tensor())
    for call, words in [
            (lambda: tt.rms_norm(distribute_tensor(x, mesh, [Shard(0)]), (columns,), w, 1e-6), "gamma is a plain tensor"),
            (lambda: tt.op("turn(x[i,j]) -> (y[i,j])\n    y = rotate(x, 1)")(distribute_tensor(x, mesh, [Shard(2)])),
             "accepted are Replicate(), Shard(0), Shard(1)"),
            (lambda: grouped(distribute_tensor(x, mesh, [Shard(2)]), group=3.0),
             f"accepted are Replicate(), Shard(0), Shard(1), and Shard(2) of columns that are a multiple of {size} * 3")]:
        try:
            call()
            raise AssertionError(words)
        except (RuntimeError, NotImplementedError) as error:
            assert words in str(error), error


def moves(array, call):
    """Whether a call brings an array elsewhere."""
    kept, moved = DTensor.redistribute, []

    def redistribute(self, mesh, places):
        moved.append(self is array and tuple(places) != self.placements)
        return kept(self, mesh, places)

    DTensor.redistribute = redistribute
    try:
        call()
    finally:
        DTensor.redistribute = kept
    return any(moved)


def case_axes(rank, size):
    """Rows that are counted, cut along any axis: one process's bits, placed as the rows were. Where their indices wrap inside each
    machine's rows nothing is moved."""
    mesh, heads, tokens = init_device_mesh("cpu", (size,)), 2 * size, 3 * size
    torch.manual_seed(14)
    scores, seed = torch.randn(size, heads, tokens, 24), torch.tensor(99)
    first, last = torch.zeros(tokens), torch.arange(1.0, tokens + 1)
    of_heads, position = torch.randn(heads, 24), torch.arange(size * tokens) % tokens
    x = torch.randn(size, tokens, heads, 24)
    cos, sin = torch.randn(tokens, 12), torch.randn(tokens, 12)
    numbered = tt.op("numbered(x[i,j]) -> (y[i,j])\n    y = x * i")
    thirds = tt.op("thirds(x[i,j], s[i / 5, j]) -> (y[i,j], t[i / 5, j])\n    y = x * s\n    t = colsum(x)")
    entries = torch.randn(-(-scores.numel() // 24 // 5), 24)
    cases = [("causal_softmax", (scores, first, last), dict(queries=float(tokens)), {0, 1}),
             ("softmax_sink", (scores, of_heads[:, 0].contiguous()), dict(queries=float(tokens), heads=float(heads)), {0}),
             ("rms_norm_heads", (x, of_heads), dict(heads=float(heads)), {0, 1}),
             ("rms_norm_rope", (x, of_heads[0].contiguous(), cos, sin), dict(heads=float(heads), positions=float(tokens)), {0}),
             ("rope", (x, position, cos, sin), dict(heads=float(heads)), {0}),
             ("moe_sum", (scores, torch.randn(size, heads, tokens)), dict(experts=3.0), {0}),
             ("modulated_layer_norm", (x, torch.randn(size, 24)), dict(tokens=float(tokens * heads)), {0}),
             ("dropout", (scores, seed), dict(p=0.3), {0}), (numbered, (scores,), {}, {0}), (thirds, (scores, entries), {}, set())]
    for name, operands, constants, stays in cases:
        operator = tt.named(name) if isinstance(name, str) else name
        call = lambda *operands: operator(*operands, **constants)
        torch._dynamo.reset()  # or so many programs are recompilations of one
        leaves = [each.clone().requires_grad_(each.is_floating_point() and place not in operator.held)
                  for each, place in zip(operands, operator.operands)]
        wanted = call(*leaves)
        wanted = wanted if isinstance(wanted, tuple) else (wanted,)
        grads = [torch.randn_like(each) for each in wanted]
        needed = [k for k, each in enumerate(leaves) if each.requires_grad]
        slopes = torch.autograd.grad(wanted, [leaves[k] for k in needed], grads)
        for axis in range(3):
            for run in (call, torch.compile(call, fullgraph=True, backend="aot_eager")) if axis == 1 and size == 2 else (call,):
                given = [distribute_tensor(each.detach(), mesh, [Shard(axis) if k == 0 else Replicate()]).requires_grad_(each.requires_grad)
                         for k, each in enumerate(leaves)]
                if run is call:
                    assert moves(given[0], lambda: call(*given)) == (axis not in stays), (operator.name, axis)
                made = run(*given)
                made = made if isinstance(made, tuple) else (made,)
                for a, b in zip(wanted, made):
                    assert same(b.full_tensor(), a), (operator.name, axis)
                    assert a.shape != operands[0].shape or b.placements == (Shard(axis),), (operator.name, b.placements)
                found = torch.autograd.grad(made, [given[k] for k in needed], [distribute_tensor(each, mesh, b.placements) for each, b in zip(grads, made)])
                for k, u, v in zip(needed, slopes, found):
                    assert v.placements == given[k].placements, (operator.name, operator.operands[k])
                    close(v.full_tensor(), u)
    # Parts of whole entries, but not of as many as DTensor gives each machine.
    y, of_position = torch.randn(size + 1, 4, 24), torch.arange(2.0 * size + 2).long() % tokens
    given = [distribute_tensor(each, mesh, [place]) for each, place in zip((y, of_position, cos, sin), [Shard(0)] + [Replicate()] * 3)]
    made = tt.named("rope")(*given, heads=2.0)
    assert made.placements == (Shard(0),) and same(made.full_tensor(), tt.named("rope")(y, of_position, cos, sin, heads=2.0))
    # Over two axes of a mesh, along the same axis of rows and along two.
    if size == 4:
        square = init_device_mesh("cpu", (2, 2))
        for places in ((Shard(0), Shard(0)), (Shard(0), Shard(1)), (Shard(1), Shard(2)), (Replicate(), Shard(1))):
            made = tt.named("dropout")(distribute_tensor(scores, square, places), distribute_tensor(seed, square, [Replicate()] * 2), p=0.3)
            assert made.placements == places and same(made.full_tensor(), tt.named("dropout")(scores, seed, p=0.3))
    # Compiled code takes other shapes and other constants (of even parts: torch 2.13 tells DTensors apart by their local shapes).
    torch._dynamo.reset()
    norm = torch.compile(lambda x, eps: tt.rms_norm(x, (24,), None, eps), fullgraph=True, backend="aot_eager")
    for rows, eps in ((size, 1e-6), (2 * size, 1e-6), (3 * size, 1e-5), (4 * size, 1e-4)):
        made = norm(distribute_tensor(x.view(-1, 24)[:rows], mesh, [Shard(0)]), eps)
        assert same(made.full_tensor(), tt.rms_norm(x.view(-1, 24)[:rows], (24,), None, eps))
    # Sums that are not made yet are made first; those of a weight, too.
    for each in (Partial(), Partial("avg")):
        y = DTensor.from_local(x, mesh, [each], run_check=False)
        made = tt.rms_norm(y, (24,), None, 1e-6)
        assert made.placements == (Replicate(),) and same(made.full_tensor(), tt.rms_norm(y.full_tensor(), (24,), None, 1e-6))
        w, parts = DTensor.from_local(of_heads[0].clone(), mesh, [each], run_check=False).requires_grad_(), distribute_tensor(x, mesh, [Shard(0)])
        made = tt.rms_norm(parts, (24,), w, 1e-6)
        whole = w.full_tensor().detach().requires_grad_()
        wanted = tt.rms_norm(x, (24,), whole, 1e-6)
        assert made.placements == (Shard(0),) and same(made.full_tensor(), wanted)
        wanted.sum().backward()
        made.full_tensor().sum().backward()
        close(w.grad.full_tensor(), whole.grad)
    # Rows in strides, as a view of a cut sequence leaves them, are gathered.
    for strided in (DTensor.from_local(x.flatten(0, 2), mesh, [_StridedShard(0, split_factor=2)], run_check=False),
                    distribute_tensor(x, mesh, [Shard(1)]).flatten(0, 1)):
        made, wanted = tt.softmax(strided), tt.softmax(strided.full_tensor())
        assert made.placements == (Replicate(),) and same(made.full_tensor(), wanted)


def case_every(rank, size):
    """Every operator, forward and backward, with its rows cut, its columns cut, and neither: one process's bits."""
    mesh, rows, columns, refused = init_device_mesh("cpu", (size,)), 64 * size, 256 * size, set()
    for name in NAMED:
        operator = tt.named(name)
        operands, constants = sample(operator, rows, columns)
        spreads, values = [each[1] for each in operator.operator.operands], {**operator.constants, **constants}
        leaves = [each.clone().requires_grad_(each.is_floating_point() and of not in operator.held)
                  for each, of in zip(operands, operator.operands)]
        wanted = operator(*leaves, results="all", **constants)
        wanted = wanted if isinstance(wanted, tuple) else (wanted,)
        chosen = [k for k in operator.returned if wanted[k].requires_grad and wanted[k].dtype == torch.float32]
        needed = [k for k, each in enumerate(leaves) if each.requires_grad]
        torch.manual_seed(3)
        slopes = [torch.randn(wanted[k].shape).to(wanted[k].dtype) for k in chosen]
        assert chosen and needed, name
        grads = torch.autograd.grad([wanted[k] for k in chosen], [leaves[k] for k in needed], slopes, allow_unused=True)
        source = next(k for k, where in enumerate(spreads) if where.startswith("[i") and "j" in where)
        for place in (Shard(0), Shard(1), Replicate()):
            given = [distribute_tensor(each.detach(), mesh, [place if k == source else Replicate()]).requires_grad_(each.requires_grad)
                     for k, each in enumerate(leaves)]
            try:
                made = operator(*given, results="all", **constants)
            except trireme.Unsupported:
                assert place == Shard(1)
                refused.add(name)
                continue
            made = made if isinstance(made, tuple) else (made,)
            assert made[0].placements == (place,) or wanted[0].shape != operands[source].shape, (name, place, made[0].placements)
            for (of, *_), a, b in zip(operator.operator.results, wanted, made):
                assert same(a, b.full_tensor()), (name, place, of)
            found = torch.autograd.grad([made[k] for k in chosen], [given[k] for k in needed], [
                distribute_tensor(slope, mesh, made[k].placements) for k, slope in zip(chosen, slopes)], allow_unused=True)
            for k, u, v in zip(needed, grads, found):
                assert (u is None) == (v is None), (name, place, operator.operands[k])
                exact = place != Shard(0) or sums_are_exact(spreads[k], (rows // size,) * size, columns, values)
                if u is not None:
                    assert same(u, v.full_tensor()) if exact else close(u, v.full_tensor()), (name, place, operator.operands[k])
    assert refused == {"group_norm", "rms_norm_rope", "rms_norm_rope_positions", "rope", "rope_interleaved", "sinkhorn"}, refused


def case_defaults(rank, size):
    """Gradients flow into defaults that are formulas (fault 51); eager and compiled."""
    mesh = init_device_mesh("cpu", (size,))
    torch.manual_seed(9)
    x, w, dy = torch.randn(2 * size, 256 * size), torch.randn(256 * size), torch.randn(2 * size, 256 * size)
    operator = tt.op("f(x[i,j], w[j], s[i] = mean(x), t[j] = w * w, u[i,j] = x * t) -> (y[i,j])\n    y = x * s + u * t")
    a, b = x.clone().requires_grad_(), w.clone().requires_grad_()
    wanted = operator(a, b)
    grads = torch.autograd.grad(wanted, (a, b), dy)
    for place, of_weights in ((Shard(0), Replicate()), (Shard(1), Shard(0))):
        for call in (operator, torch.compile(operator, fullgraph=True, backend="aot_eager")):
            c, d = (distribute_tensor(each, mesh, [where]).requires_grad_() for each, where in ((x, place), (w, of_weights)))
            made = call(c, d)
            assert same(made.full_tensor(), wanted)
            for u, v in zip(grads, torch.autograd.grad(made, (c, d), distribute_tensor(dy, mesh, [place]))):
                assert same(v.full_tensor(), u)


def case_ops(rank, size):
    """torch.ops.trireme itself takes DTensors, with gradients and without; below autograd by sharding rules."""
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


def case_rules(rank, size):
    """Every operator below autograd: one process's bits, wherever the tensors are, and local where parts begin with indices anew."""
    mesh, ops, rows, columns = init_device_mesh("cpu", (size,)), torch.ops.trireme, 12 * size, 64 * size

    def call(name, placements, operands, constants, wanted=-1):
        given = [each if not placements else distribute_tensor(each, mesh, [placements.get(k, Replicate())]) for k, each in enumerate(operands)]
        made = getattr(ops, name)(*given, *constants, 1, "", wanted)
        return made if isinstance(made, (tuple, list)) else (made,)

    def check(name, placements, operands, constants, found=None):
        one, many = call(name, {}, operands, constants), call(name, placements, operands, constants)
        for a, b in zip(one, many):
            close(b.full_tensor(), a)
            assert same(b.full_tensor(), a) or any(isinstance(each, Partial) for each in b.placements), (name, placements)
        assert found is None or [each.placements[0] for each in many] == found, (name, placements, [each.placements for each in many])

    with torch.inference_mode():
        for name in NAMED:
            operator = tt.named(name)
            operands, constants = sample(operator, rows, columns)
            if "types" in constants or len(operands) < len(operator.operands):
                continue
            values = [{**operator.constants, **constants}[each] for each in operator.constants]
            source = operator.operands.index(next(each[0] for each in operator.operator.operands if "j" in each[1]))
            for placements in ({source: Shard(0)}, {source: Shard(1)}, {0: Shard(0)}, dict.fromkeys(range(len(operands)), Shard(0))):
                if all(k < len(operands) and operands[k].dim() > place.dim for k, place in placements.items()):
                    check(name, placements, operands, values)
        torch.manual_seed(12)
        x = torch.randn(rows, columns)
        for heads, local in ((3.0, True), (9.0, False), (3.0, True)):  # DTensor keeps what it found; the number of heads says which
            w = torch.randn(int(heads), columns)
            check("rms_norm_heads", {0: Shard(0)}, [x, w], [heads, 1e-6, 0.0], [Shard(0) if local else Replicate()] * 2)
        w = torch.randn(columns)
        for group, local in ((32.0, True), (48.0, False)):
            check("grouped_rms_norm", {0: Shard(1)}, [x, w], [1e-6, group], [Shard(1) if local else Replicate()] * 2)
        check("moe_sum", {0: Shard(0)}, [x, torch.randn(rows)], [4.0], [Shard(0)])
        token, table = torch.randint(0, 11, (rows,)), torch.randn(11, columns)
        check("embedding", {0: Shard(0)}, [token, table, torch.tensor(2.0)], [], [Shard(0)])
        check("embedding", {1: Shard(1)}, [token, table, torch.tensor(2.0)], [], [Shard(1)])
        scale = tt.op("scale_by(x[i,j], s[i]) -> (y[i,j], t[i])\n    y = x * s\n    t = s * 2")
        check(scale.name, {0: Shard(1)}, [x, torch.randn(rows)], [], [Shard(1), Replicate()])


def case_picked(rank, size):
    """Rows that tokens pick from a table: nobody is [i,j]; tokens say where rows are, the table where columns are."""
    mesh, columns = init_device_mesh("cpu", (size,)), 256 * size + 3
    torch.manual_seed(10)
    token, table = torch.randint(-1, 12, (size + 1, 5)), torch.randn(11, columns)  # -1 and 11 are outside
    dy, scale, embedding = torch.randn(size + 1, 5, columns), torch.tensor(1.5, requires_grad=True), tt.named("embedding")
    wanted = embedding(token, table, scale)
    grad, = torch.autograd.grad(wanted, scale, dy)
    one = [Replicate()]
    for of_token, of_table, place in [(Shard(0), Replicate(), Shard(0)), (Shard(1), Replicate(), Shard(1)), (Replicate(), Shard(1), Shard(2)),
                                      (Replicate(), Replicate(), Replicate()), (Shard(0), Shard(1), Shard(0))]:
        given = distribute_tensor(token, mesh, [of_token]), distribute_tensor(table, mesh, [of_table])
        alpha = distribute_tensor(scale.detach(), mesh, one).requires_grad_()
        for call in (embedding, torch.compile(embedding, fullgraph=True, backend="aot_eager") if size == 2 else embedding):
            made = call(*given, alpha)
            assert made.placements == (place,) and same(made.full_tensor(), wanted)
            found, = torch.autograd.grad(made, alpha, distribute_tensor(dy, mesh, [place]))
            assert found.placements == (Replicate(),)
            close(found.full_tensor(), grad)
    try:
        embedding(distribute_tensor(token, mesh, one), distribute_tensor(table, mesh, [Shard(0)]))
        raise AssertionError("a table whose rows are cut was not refused")
    except trireme.Unsupported as error:
        assert "the rows of table are picked" in str(error) and "accepted are Replicate() and Shard(1)" in str(error), error
    # The same without DTensors.
    rows, widths = Machine((1,) * size, rank), Machine((256,) * (size - 1) + (259,), rank)
    assert same(parallel.rows(embedding)(rows.cut(token, 0), table, scale), rows.cut(wanted, 0))
    cut = parallel.columns(embedding, cut=(256,) * (size - 1) + (259,))
    assert same(cut(token, widths.cut(table, -1), scale), widths.cut(wanted, -1))


def case_products(rank, size):
    """A product of matrices, whose operands say the rows together with a constant; both gradients are sums over rows."""
    mesh, product = init_device_mesh("cpu", (size,)), tt.named("matmul")
    torch.manual_seed(13)
    x, w, dy = torch.randn(4 * size, 256 * size), torch.randn(6, 256 * size), torch.randn(24 * size)
    a, b = x.clone().requires_grad_(), w.clone().requires_grad_()
    call = lambda x, w: product(x, w, m=6.0)
    wanted = call(a, b)
    close(wanted.view(-1, 6), x @ w.t())
    grads = torch.autograd.grad(wanted, (a, b), dy)
    close(grads[0], dy.view(-1, 6) @ w)
    close(grads[1], dy.view(-1, 6).t() @ x)
    for place in (Shard(0), Shard(1), Replicate()):
        of_w = place if place == Shard(1) else Replicate()
        of_y = place if place == Shard(0) else Replicate()
        for run in (call, torch.compile(call, fullgraph=True, backend="aot_eager")):
            c, d = distribute_tensor(x, mesh, [place]).requires_grad_(), distribute_tensor(w, mesh, [of_w]).requires_grad_()
            made = run(c, d)
            assert made.placements == (of_y,) and same(made.full_tensor(), wanted)
            for leaf, u, v in zip((c, d), grads, torch.autograd.grad(made, (c, d), distribute_tensor(dy, mesh, [of_y]))):
                assert v.placements == leaf.placements
                close(v.full_tensor(), u)
    # Without DTensors, by both cuts, each machine's rows those of its part of x.
    rows, columns = Machine((4,) * size, rank), Machine((256,) * size, rank)
    assert same(parallel.rows(product)(rows.cut(x, 0), w, m=6.0), Machine((24,) * size, rank).cut(wanted, 0))
    assert same(parallel.columns(product)(columns.cut(x, 1), columns.cut(w, 1), m=6.0), wanted)


def case_uneven(rank, size):
    """DTensor's parts that differ in size, one of them of no rows; one of no columns is refused everywhere."""
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

"""What machines do with DTensors and with models of torch.distributed; run by parallel_cases."""
import copy

import torch
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_module, distribute_tensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, SequenceParallel, parallelize_module

import trireme
import trireme.torch as tt
from trireme.torch import parallel

from parallel_compare import Machine, close, compare, gathers, same, sample


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
                lambda where: where != "[]")
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


class Block(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = tt.RMSNorm(width)
        self.up, self.gate, self.down = (torch.nn.Linear(width, width, bias=False) for _ in range(3))
        self.unit = tt.SwiGLU()

    def forward(self, x):
        y = self.norm(x)
        return x + self.down(self.unit(self.up(y), self.gate(y)))


def check_model(model, x, wanted, grads, run, give):
    """A model made of `model`, run on this machine's part of x: the results and gradients of one process."""
    got = run(give(x))
    got = got.full_tensor() if isinstance(got, DTensor) else got
    close(got, wanted)
    got.square().sum().backward()
    for name, each in model.named_parameters():
        close(each.grad.full_tensor(), grads[name])


def check_modules(rank, size, backend):
    """parallelize_module and fully_shard, on a model that uses trireme.torch; compiled where there is a backend."""
    torch._dynamo.reset()  # models of torch alone, too, do not compile on a second mesh of the same machines (torch 2.13)
    mesh = init_device_mesh("cpu", (size,))
    torch.manual_seed(4)
    width = 16 * size
    model, x = Block(width), torch.randn(2, 4 * size, width)
    wanted = model(x)
    wanted.square().sum().backward()
    grads = {name: each.grad for name, each in model.named_parameters()}

    def compiled(made):  # the hooks of torch's modules break the graph
        made.zero_grad()
        return torch.compile(made, backend=backend) if backend else made

    made = copy.deepcopy(model)
    parallelize_module(made, mesh, {
        "norm": SequenceParallel(), "up": ColwiseParallel(input_layouts=Shard(1), use_local_output=False),
        "gate": ColwiseParallel(input_layouts=Shard(1), use_local_output=False),
        "down": RowwiseParallel(output_layouts=Shard(1), use_local_output=False)})
    check_model(made, x, wanted, grads, compiled(made), lambda x: DTensor.from_local(x.chunk(size, 1)[rank], mesh, [Shard(1)]))
    made = copy.deepcopy(model)
    fully_shard(made, mesh=mesh)
    check_model(made, x, wanted, grads, compiled(made), lambda x: x)  # the same batch everywhere: gradients are averaged
    if not backend:
        return
    # A model whose parameters are DTensors, in one graph.
    for place in (Shard(1), Shard(2)):
        one = torch.nn.Sequential(tt.RMSNorm(width), tt.LayerNorm(width))
        norm = copy.deepcopy(one)
        distribute_module(norm, mesh, lambda name, module, mesh: [
            module.register_parameter(key, torch.nn.Parameter(distribute_tensor(each, mesh, [Shard(0) if place == Shard(2) else Replicate()])))
            for key, each in module.named_parameters(recurse=False)])
        a, b = one(x), torch.compile(norm, fullgraph=True, backend=backend)(distribute_tensor(x, mesh, [place]))
        assert b.placements == (place,)
        close(b.full_tensor(), a)
        a.square().sum().backward()
        b.full_tensor().square().sum().backward()
        for u, v in zip(one.parameters(), norm.parameters()):
            assert v.grad.placements == v.placements
            close(v.grad.full_tensor(), u.grad)


def case_modules(rank, size):
    check_modules(rank, size, None)


def case_compiled_modules(rank, size):
    check_modules(rank, size, "aot_eager")


def case_inductor_modules(rank, size):
    check_modules(rank, size, "inductor")


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

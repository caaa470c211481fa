"""What machines do with models of torch.distributed, their heads and losses; run by parallel_cases."""
import copy

import torch
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_module, distribute_tensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, SequenceParallel, parallelize_module

import trireme.torch as tt
from trireme.torch import parallel

from parallel_compare import close, same


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


def case_both(rank, size):
    """Tensor parallel by fully_shard, over the two axes of a mesh: a step's results and gradients, and the next step's results."""
    mesh = init_device_mesh("cpu", (2, size // 2), mesh_dim_names=("data", "tensor"))
    tensor, data = mesh["tensor"], mesh["data"]
    torch.manual_seed(15)
    width = 32
    model, x = torch.nn.Sequential(Block(width), Block(width), tt.LayerNorm(width)), torch.randn(4, 4 * size, width)
    made = copy.deepcopy(model)
    for block in made[:2]:
        parallelize_module(block, tensor, {
            "norm": SequenceParallel(), "up": ColwiseParallel(input_layouts=Shard(1), use_local_output=False),
            "gate": ColwiseParallel(input_layouts=Shard(1), use_local_output=False),
            "down": RowwiseParallel(output_layouts=Shard(1), use_local_output=False)})
        fully_shard(block, mesh=data)
    parallelize_module(made, tensor, {"2": SequenceParallel()})
    fully_shard(made, mesh=data)
    steps = [torch.optim.SGD(each.parameters(), lr=0.01) for each in (model, made)]
    mine = x.chunk(2)[data.get_local_rank()].chunk(size // 2, 1)[tensor.get_local_rank()]
    for _ in range(2):
        wanted, got = model(x), made(DTensor.from_local(mine, tensor, [Shard(1)], run_check=False))
        close(got.full_tensor(), wanted.chunk(2)[data.get_local_rank()])
        wanted.square().sum().backward()
        (2 * got.square().sum()).backward()  # the machines' gradients are averaged
        for (name, a), b in zip(model.named_parameters(), made.parameters()):
            assert b.grad.device_mesh == mesh, name
            close(b.grad.full_tensor(), a.grad)
        for each in steps:
            each.step()
            each.zero_grad()


def case_modules(rank, size):
    check_modules(rank, size, None)


def case_compiled_modules(rank, size):
    check_modules(rank, size, "aot_eager")


def case_inductor_modules(rank, size):
    check_modules(rank, size, "inductor")


def case_heads(rank, size):
    """A linear head and its loss: tokens cut, classes cut, or neither."""
    mesh = init_device_mesh("cpu", (size,))
    torch.manual_seed(11)
    given, target = (torch.randn(4 * size, 24), torch.randn(32 * size, 24)), torch.randint(0, 32 * size, (4 * size,))
    calls = [lambda x, w, t: tt.linear_cross_entropy(x, w, t, label_smoothing=0.1), lambda x, w, t: tt.linear_log_probability(x, w, t)[0].sum()]
    for call in calls:
        leaves = [each.clone().requires_grad_() for each in given]
        wanted = call(*leaves, target)
        grads = torch.autograd.grad(wanted, leaves)
        for tokens, classes in ((Shard(0), Replicate()), (Replicate(), Shard(0)), (Replicate(), Replicate())):
            spread = [distribute_tensor(each, mesh, [place]).requires_grad_() for each, place in zip(given, (tokens, classes))]
            made = call(*spread, distribute_tensor(target, mesh, [tokens]))
            close(made.full_tensor(), wanted)
            for u, v in zip(grads, torch.autograd.grad(made, spread)):
                close(v.full_tensor(), u)


def case_answers(rank, size):
    """Preference losses of log-probabilities whose answers are cut, forward and backward; also where the two models agree."""
    mesh = init_device_mesh("cpu", (size,))
    torch.manual_seed(12)
    logprobs = [-torch.rand(4 * size, 6) * 20 for _ in range(4)]
    logprobs[0][0], logprobs[2][0] = logprobs[1][0], logprobs[3][0]  # a margin of 0
    calls = [lambda a, b, c, d: tt.dpo_loss(a, b, c, d), lambda a, b, c, d: tt.dpo_loss(a.sum(-1), b.sum(-1), label_smoothing=0.1, reduction="sum"),
             lambda a, b, c, d: tt.grpo_loss(a, b, old_logprob=c, reference_logprob=d, beta=0.1)]
    for call in calls:
        leaves = [each.clone().requires_grad_() for each in logprobs]
        wanted = call(*leaves)
        grads = torch.autograd.grad(wanted, leaves, allow_unused=True)
        for place in (Shard(0), Replicate()):
            spread = [distribute_tensor(each, mesh, [place]).requires_grad_() for each in logprobs]
            made = call(*spread)
            close(made.full_tensor(), wanted)
            for u, v in zip(grads, torch.autograd.grad(made, spread, allow_unused=True)):
                assert (u is None) == (v is None)
                if u is not None:
                    close(v.full_tensor(), u)

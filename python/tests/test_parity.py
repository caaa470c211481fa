"""A token's bits are its own: alone, in any batch, in prefill or decode shape, from strided memory, by any number of threads,
without gradients, compiled, in a CUDA graph, and on the CPU as on a GPU. What a trainer and a sampler share (docs/parity.md)."""
import functools
import os
import pathlib
import re

import pytest
import torch

import trireme
import trireme.torch as tt

COLUMNS, TOKENS, LONG = 515, 12, bool(os.environ.get("LONG") or os.environ.get("TRIREME_ALL_MODELS"))
BACKENDS = ["aot_eager", "inductor"] if LONG else ["aot_eager"]
PLACES = ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(
    not torch.cuda.is_available(), reason="no GPU; bench/gpu_python.sh runs these where there is one"))]


HEADS, WIDTH = 5, 103  # of a token's columns, where it has several rows


def heads(x):
    return x.unflatten(-1, (HEADS, WIDTH))


def tokens_of(target, columns):
    """What belongs to each token, by its target: rows of a table."""
    table = torch.linspace(-2, 2, COLUMNS * columns, device=target.device).view(COLUMNS, columns)
    return table.sin()[target.reshape(-1)]


def rope(name, x, weight, target):
    """By a position of each token, or by its own row of the tables."""
    x, own = x[..., :HEADS * 102].unflatten(-1, (HEADS, 102)), target.reshape(-1)
    angles = torch.arange(COLUMNS * 51, device=x.device).view(COLUMNS, 51)
    cos, sin = angles.cos(), angles.sin()
    if name == "rms_norm_rope_positions":
        return tt.named(name)(x, weight[:102], own, cos, sin, heads=HEADS)
    return tt.named(name)(x, weight[:102], cos[own], sin[own], heads=HEADS, positions=own.numel())


def on(name, **constants):
    """The operator on elements and the weight."""
    return lambda *given: tt.named(name)(*given[:-1], **constants)


def on_elements(name, **constants):
    return lambda *given: tt.named(name)(*given[:-2], **constants)


F8, I8 = {"q": torch.float8_e4m3fn}, {"q": torch.int8}


# By name: (how many operands of elements, the call on them, a weight and a target for each token).
OPERATORS = {
    "rms_norm": (1, lambda x, weight, target: tt.rms_norm(x, (COLUMNS,), weight, 1e-5)),
    "layer_norm": (1, lambda x, weight, target: tt.layer_norm(x, (COLUMNS,), weight, weight, 1e-5)),
    "add_rms_norm": (2, lambda x, h, weight, target: tt.add_rms_norm(x, h, weight, 1e-5)),
    "add_layer_norm": (2, lambda x, h, weight, target: tt.add_layer_norm(x, h, weight, weight, 1e-5)),
    "l2_norm": (1, lambda x, weight, target: tt.l2_norm(x)),
    "rms_norm_llama": (1, on("rms_norm_llama")),
    "gated_rms_norm": (2, on("gated_rms_norm")),
    "grouped_rms_norm": (1, on("grouped_rms_norm", group=64)),
    "gated_group_norm": (2, on("gated_group_norm", group=64)),
    "rms_norm_heads": (1, lambda x, weight, target: tt.named("rms_norm_heads")(heads(x), heads(weight), heads=HEADS)),
    "rms_norm_rope": (1, functools.partial(rope, "rms_norm_rope")),
    "rms_norm_rope_positions": (1, functools.partial(rope, "rms_norm_rope_positions")),
    "modulated_layer_norm": (1, lambda x, weight, target: tt.named("modulated_layer_norm")(
        heads(x), tokens_of(target, WIDTH).to(x.dtype), tokens_of(target + 1, WIDTH).to(x.dtype), tokens=HEADS)),
    "group_norm": (1, lambda x, weight, target: tt.group_norm(heads(x.reshape(-1, COLUMNS)), HEADS, weight[:HEADS], weight[-HEADS:])),
    "poly_norm": (1, lambda x, weight, target: tt.named("poly_norm")(x, *(weight[k:k + 1].reshape(()) for k in range(4)))),
    "swiglu": (2, lambda x, gate, weight, target: tt.swiglu(x, gate)),
    "clamped_swiglu": (2, lambda x, gate, weight, target: tt.clamped_swiglu(x, gate)),
    "swiglu_llama": (2, on_elements("swiglu_llama")),
    "swiglu_oai": (2, on_elements("swiglu_oai")),
    "reglu": (2, on_elements("reglu")),
    "geglu_erf": (2, lambda x, gate, weight, target: tt.geglu(x, gate)),
    "geglu_tanh": (2, lambda x, gate, weight, target: tt.geglu(x, gate, "tanh")),
    "relu_squared": (1, lambda x, weight, target: tt.named("relu_squared")(x)),
    "dynamic_tanh": (1, lambda x, weight, target: tt.named("dynamic_tanh")(x, torch.full((), 0.5, device=x.device), weight, weight)),
    "rms_norm_quant": (1, on("rms_norm_quant", types=I8)),
    "add_rms_norm_quant": (2, on("add_rms_norm_quant", types=F8)),
    "add_rms_norm_block_quant": (2, on("add_rms_norm_block_quant", types=I8)),
    "rms_norm_mxfp8": (1, on("rms_norm_mxfp8", types=F8)),
    "swiglu_block_quant": (2, on_elements("swiglu_block_quant", types=F8)),
    "softmax": (1, lambda x, weight, target: tt.softmax(x)),
    "log_softmax": (1, lambda x, weight, target: tt.log_softmax(x)),
    "logprob_entropy": (1, lambda x, weight, target: tt.named("logprob_entropy")(x, target, temperature=0.7)),
}


def results_of(call, operands, weight, target):
    made = call(*operands, weight, target)
    return [each for each in (made if isinstance(made, tuple) else (made,)) if each is not None]


def with_gradients(call, operands, weight, target, gradients):
    """Results, and the gradients of the operands that have each token."""
    operands = [each.detach().requires_grad_() for each in operands]
    made = results_of(call, operands, weight, target)
    made = [(each, given) for each, given in zip(made, gradients) if each.requires_grad]
    taken = torch.autograd.grad([each for each, _ in made], operands, [given.reshape(each.shape) for each, given in made])
    return [each.detach() for each, _ in made] + list(taken)


def by_tokens(arrays):
    return [each.detach().cpu().reshape(TOKENS, -1) for each in arrays]


def assert_same(got, wanted, what):
    got, wanted = by_tokens(got), by_tokens(wanted)
    assert len(got) == len(wanted), what
    for each, other in zip(got, wanted):
        assert each.dtype == other.dtype and each.shape == other.shape, what
        assert torch.equal(each.view(torch.uint8), other.view(torch.uint8)), what


def shaped(arrays, *outer):
    """Tokens as a batch of that shape; what belongs to a token has no columns."""
    return [each.reshape(*outer, *each.shape[1:]) for each in arrays]


def strided(each):
    """The same values as columns of a wider matrix that begins elsewhere, as q, k and v of one product lie."""
    wide = torch.full((*each.shape[:-1], each.shape[-1] + 29), 7.0, dtype=each.dtype, device=each.device)
    wide[..., 13:13 + each.shape[-1]] = each
    return wide[..., 13:13 + each.shape[-1]]


class Case:
    def __init__(self, name, dtype, device="cpu"):
        count, self.call = OPERATORS[name]
        made = torch.Generator().manual_seed(len(name))
        self.operands = [(torch.randn(TOKENS, COLUMNS, generator=made) * 3).to(dtype).to(device) for _ in range(count)]
        self.weight = torch.randn(COLUMNS, generator=made).to(dtype).to(device)
        self.target = torch.randint(COLUMNS, (TOKENS,), generator=made).to(device)
        self.gradients = [torch.randn(each.shape, generator=made).to(each.dtype).to(device) for each in self.run()]

    def run(self, *outer, call=None, tokens=slice(None), change=lambda each: each):
        with torch.no_grad():
            return results_of(call or self.call, [change(each) for each in shaped([x[tokens] for x in self.operands], *outer or (-1,))],
                              self.weight, *shaped([self.target[tokens]], *outer or (-1,)))

    def train(self, *outer, call=None, tokens=slice(None)):
        return with_gradients(call or self.call, shaped([x[tokens] for x in self.operands], *outer or (-1,)), self.weight,
                              *shaped([self.target[tokens]], *outer or (-1,)), [each[tokens] for each in self.gradients])

    def alone(self, run):
        return [torch.cat([each.reshape(1, -1) for each in column])
                for column in zip(*(run(tokens=slice(t, t + 1)) for t in range(TOKENS)))]


@pytest.mark.parametrize("device", PLACES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("name", OPERATORS)
def test_a_token_alone_and_in_any_batch(name, dtype, device):
    case, here = Case(name, dtype, device), Case(name, dtype)
    for way, wanted, cpu in ((case.run, case.alone(case.run), here.run), (case.train, case.alone(case.train), here.train)):
        for outer in ((), (TOKENS, 1), (1, TOKENS), (2, TOKENS // 2), (2, 2, TOKENS // 4)):  # decode, prefill, heads
            assert_same(way(*outer), wanted, outer)
        assert_same(cpu(), wanted, "the CPU's")
    order = torch.randperm(TOKENS, generator=torch.Generator().manual_seed(1))
    for each, other in zip(case.run(tokens=order), case.run()):
        assert torch.equal(each, other[order])  # other neighbours
    assert_same(case.run(change=strided), case.run(), "strided")
    with torch.inference_mode():
        assert_same(case.run(), case.alone(case.run), "inference")


@pytest.mark.parametrize("name", OPERATORS)
def test_threads(name):
    case, before = Case(name, torch.bfloat16), torch.get_num_threads()
    wanted = case.run(), case.train()
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            assert_same(case.run(), wanted[0], threads)
            assert_same(case.train(), wanted[1], threads)
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("device", PLACES)
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", OPERATORS)
def test_compiled(name, backend, device):
    torch._dynamo.reset()
    case = Case(name, torch.bfloat16, device)
    compiled = torch.compile(case.call, fullgraph=True, backend=backend)
    for way in (case.run, case.train):
        for outer in ((), (2, TOKENS // 2), (TOKENS, 1)):
            assert_same(way(*outer, call=compiled), way(), outer)
        alone = [each.reshape(1, -1) for each in way(call=compiled, tokens=slice(3, 4))]
        assert all(torch.equal(each, whole.reshape(TOKENS, -1)[3:4]) for each, whole in zip(alone, way(), strict=True))


@pytest.mark.parametrize("device", PLACES[1:])
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("way", ["run", "train"])
@pytest.mark.parametrize("name", OPERATORS)
def test_cuda_graphs(name, way, compiled, device):
    torch._dynamo.reset()
    case = Case(name, torch.bfloat16, device)
    call = torch.compile(case.call, fullgraph=True, backend=BACKENDS[-1]) if compiled else case.call
    wanted, side = getattr(case, way)(), torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(2):
            getattr(case, way)(call=call)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        made = getattr(case, way)(call=call)
    for each in made:
        each.fill_(7)
    graph.replay()
    torch.cuda.synchronize()
    assert_same(made, wanted, "replayed")


def test_every_norm_and_gated_unit_is_here():
    """What docs/parity.md says; it names the exception, whose draws depend on a token's place."""
    names = [name for name in trireme.operators() if re.search("norm|glu|relu", name)]
    given = {"geglu": "geglu_tanh"}  # one operator of torch's for two of these
    assert {given.get(name, name) for name in names} - {"dropout_add_layer_norm"} <= set(OPERATORS)


def test_a_changed_bit_is_seen():
    case = Case("rms_norm", torch.float32)
    other = [each.clone() for each in case.run()]
    other[0][5, 3] = torch.nextafter(other[0][5, 3], torch.tensor(9e9))
    with pytest.raises(AssertionError):
        assert_same(other, case.run(), "one ulp")


def test_the_page_is_true():
    page = pathlib.Path(__file__).resolve().parents[2] / "docs" / "parity.md"
    example, = re.findall(r"```python\n(.*?)```", page.read_text(), re.S)
    exec(compile(example, str(page), "exec"), {})

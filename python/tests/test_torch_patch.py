"""patch(): rotary embeddings, sums with the residual stream, the loss."""
import collections
import copy
import functools
import pickle

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("transformers", reason="transformers is not installed")
from torch import nn

import tiny_models
from leaving import leave
import trireme.torch as tt
from trireme.torch import _linear, _rewrite

# Architecture -> (attentions with rope, layers with a fused sum), of two layers.
TAKEN = {
    "llama": (2, 2), "mistral": (2, 2), "qwen2": (2, 2), "qwen3": (2, 2), "phi3": (2, 0), "gemma": (2, 2), "gemma2": (2, 2),
    "gemma3_text": (2, 2), "glm4": (2, 2), "cohere": (2, 0), "granite": (2, 0), "olmo2": (2, 0), "smollm3": (2, 2),
    "mixtral": (2, 2), "deepseek_v3": (2, 2), "gpt2": (0, 0), "modernbert": (2, 0), "gpt_oss": (2, 2),
}


@functools.lru_cache(maxsize=None)
def made(name):
    return tiny_models.tiny(name)


@pytest.mark.parametrize("name", TAKEN)
def test_what_is_taken_and_that_nothing_changes(name):
    model, inputs = made(name)
    model, patched = copy.deepcopy(model), copy.deepcopy(model)
    report = tt.patch(patched)
    kinds = collections.Counter(kernel for value in report.values() for kernel in value.split(", "))
    assert (kinds["rope"], sum(count for kind, count in kinds.items() if kind.startswith("residual"))) == TAKEN[name], report
    assert "linear_cross_entropy" in report[""], report
    tiny_models.grow(model)
    tiny_models.grow(patched)
    worst, what = tiny_models.compare(model, patched, inputs)
    assert worst <= 5e-4, (worst, what)
    tt.unpatch(patched)
    assert [type(each) for each in patched.modules()] == [type(each) for each in model.modules()]
    assert not any("trireme" in key for each in patched.modules() for key in each.__dict__)


def wide():
    """A model whose logits are its largest array by far."""
    import transformers
    config = transformers.LlamaConfig(vocab_size=5000, hidden_size=16, intermediate_size=16, num_hidden_layers=1,
                                      num_attention_heads=2, num_key_value_heads=2, pad_token_id=0)
    torch.manual_seed(2)
    return transformers.LlamaForCausalLM(config), torch.randint(5000, (2, 40))


def test_training_has_no_logits_of_all_tokens(monkeypatch):
    """Of all that is made in the forward and the backward the weight's gradient is the largest, where a chunk has 8 tokens."""
    model, tokens = wide()
    tt.patch(model)
    model.train()
    monkeypatch.setattr(_linear, "tokens_of", lambda *_: 8)
    elements = []
    original = torch.Tensor.new_empty
    monkeypatch.setattr(torch.Tensor, "new_empty", lambda self, *shape, **more: elements.append(
        original(self, *shape, **more)) or elements[-1])
    out = model(input_ids=tokens, labels=tokens)
    assert isinstance(out.logits, torch.Tensor) and out.logits.shape == (2, 40, 5000) and out.logits.dtype == torch.float32
    out.loss.backward()
    monkeypatch.undo()
    assert max(each.numel() for each in elements) == 5000 * 16
    assert out.logits.__dict__["value"] is None, "nobody asked for them"
    exact = model.lm_head.weight.detach()
    assert torch.equal(out.logits.argmax(-1), (out.logits.__dict__["source"][0] @ exact.t()).argmax(-1))
    model.eval()
    assert type(model(input_ids=tokens, labels=tokens).logits) is torch.Tensor
    model.train()
    assert type(model(input_ids=tokens).logits) is torch.Tensor
    with torch.no_grad():
        assert type(model(input_ids=tokens, labels=tokens).logits) is torch.Tensor


@pytest.mark.parametrize("name", ["llama", "cohere", "gemma2", "modernbert"])
def test_training_without_logits(name):
    """logits=False: a loss and no logits, compiled too. Models that use their logits before the loss still can."""
    model, inputs = made(name)
    model, patched = (copy.deepcopy(model).train() for _ in range(2))
    tt.patch(patched, logits=False)
    if name == "modernbert":
        inputs = {key: value for key, value in inputs.items() if key != "use_cache"}
    torch.manual_seed(11)  # dropout
    wanted = model(**inputs).loss
    wanted.backward()
    torch._dynamo.reset()
    graphs = []

    def backend(graph, _):
        graphs.extend(str(node.target) for node in graph.graph.nodes)
        return graph

    calls = [patched, torch.compile(patched, backend=backend, fullgraph=True)] if name != "modernbert" else [patched]
    for call in calls:
        patched.zero_grad()
        torch.manual_seed(11)
        out = call(**inputs)
        assert (out.get("logits") is None) == (name not in ("cohere", "gemma2"))  # which scale or cap them
        torch.testing.assert_close(out.loss, wanted, rtol=1e-5, atol=1e-6)
        out.loss.backward()
        for mine, theirs in zip(patched.parameters(), model.parameters()):
            torch.testing.assert_close(mine.grad, theirs.grad, rtol=2e-3, atol=1e-5)
    if name == "llama":
        assert any("linear_summed" in each for each in graphs), graphs
    assert torch.equal(patched.eval()(**inputs).logits, patched(**inputs).logits)


class MeanSquare(torch.autograd.Function):
    """Takes tensors as they are: nothing says to a subclass that it is read."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.square().mean()

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * 2 * x / x.numel()


@pytest.mark.parametrize("cast", [None, torch.bfloat16])
def test_logits_are_a_node_of_the_graph(cast):
    """Of functions of torch.autograd, reentrant checkpoints, compiled ones; with hooks, and after autocast's end."""
    from torch.utils.checkpoint import checkpoint
    model, tokens = wide()
    patched = copy.deepcopy(model)
    tt.patch(patched)
    compiled = torch.compile(lambda x: x.square().mean(), backend="aot_eager")
    for use in (MeanSquare.apply, lambda x: MeanSquare.apply(x.float()), lambda x: MeanSquare.apply(x) + x.square().mean(),
                lambda x: checkpoint(lambda each: each.square().mean(), x, use_reentrant=True), compiled):
        grads, hooked = [], []
        for each in (patched, model):
            each.train().zero_grad()
            with torch.autocast("cpu", dtype=cast, enabled=cast is not None):
                out = each(input_ids=tokens, labels=tokens)
            handle = out.logits.register_hook(lambda grad: hooked.append(grad.float().norm()))
            out.logits.retain_grad()
            (100 * use(out.logits)).backward(retain_graph=True)
            assert use is compiled or torch.equal(out.logits.grad.float().norm(), hooked[-1])
            handle.remove()
            out.loss.backward()
            grads.append([parameter.grad for parameter in each.parameters()])
        bound = 1e-4 if cast is None else 3e-2
        if use is not compiled:  # which makes them in a graph of its own
            assert len(hooked) == 2 and abs(hooked[0] - hooked[1]) <= bound * hooked[1]
        for mine, theirs in zip(*grads):
            assert (mine - theirs).norm() <= bound * theirs.norm()
    out = patched(input_ids=tokens, labels=tokens)
    assert out.logits.requires_grad and out.logits.grad_fn is not None and out.logits.__dict__["value"] is None
    (grad,) = torch.autograd.grad(MeanSquare.apply(out.logits) + out.logits.sum(), out.logits)
    torch.testing.assert_close(grad, 1 + 2 * out.logits.detach() / out.logits.numel())


def test_logits_of_weights_that_have_changed_are_refused():
    model, tokens = wide()
    tt.patch(model)
    model.train()
    sgd = torch.optim.SGD(model.parameters(), lr=1.0)
    wanted = model(input_ids=tokens).logits.detach()
    for read_before in (True, False):
        out = model(input_ids=tokens, labels=tokens)
        if read_before:
            torch.testing.assert_close(out.logits.detach(), wanted)
        out.loss.backward()
        sgd.step()
        if read_before:
            torch.testing.assert_close(out.logits.detach(), wanted)
            continue
        for use in (lambda x: x.argmax(-1), lambda x: x.float().sum(), MeanSquare.apply):
            with pytest.raises(RuntimeError, match="has changed since"):
                use(out.logits)
        assert out.logits.shape == wanted.shape and out.logits.requires_grad  # nothing to compute for these


def test_logits_are_theirs_to_whoever_uses_them():
    model, tokens = wide()
    patched = copy.deepcopy(model)
    tt.patch(patched)
    theirs, mine = (each.train()(input_ids=tokens, labels=tokens) for each in (model, patched))
    for use in (lambda x: x.float(), lambda x: x[:, -1], lambda x: x.softmax(-1), lambda x: torch.cat([x, x]), lambda x: x * 2,
                lambda x: x.detach(), lambda x: x.float().mean(), lambda x: x.to(torch.float64), lambda x: x.clone()):
        torch.testing.assert_close(use(mine.logits), use(theirs.logits), rtol=1e-4, atol=1e-4)
    assert "grad_fn" in repr(mine.logits) and pickle.loads(pickle.dumps(mine.logits.detach())).shape == (2, 40, 5000)
    for model, out in ((model, theirs), (patched, mine)):  # a loss of one's own on top
        (out.loss + out.logits.square().mean()).backward()
    for a, b in zip(patched.parameters(), model.parameters()):
        torch.testing.assert_close(a.grad, b.grad, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("more", [dict(num_items_in_batch=torch.tensor(33)), dict(num_items_in_batch=17),
                                  dict(shift_labels=True)], ids=str)
def test_losses_as_trainers_ask_for_them(more):
    model, tokens = wide()
    if "shift_labels" in more:
        more = dict(shift_labels=torch.roll(tokens, -1, 1))
    labels = tokens.clone()
    labels[:, :7] = -100
    patched = copy.deepcopy(model)
    tt.patch(patched)
    found = []
    for each in (model, patched):
        loss = each.train()(input_ids=tokens, labels=labels, **more).loss
        loss.backward()
        found.append([loss.detach(), *(parameter.grad for parameter in each.parameters())])
    for a, b in zip(*found):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-6)


def test_fault_55_a_gradient_penalty_on_a_patched_model():
    model, inputs = made("llama")
    model, patched = (copy.deepcopy(model).train() for _ in range(2))
    assert "linear_cross_entropy" in tt.patch(patched)[""]
    found = []
    for each in (model, patched):
        torch.manual_seed(11)  # dropout
        leaves = list(each.parameters())
        loss = each(**inputs).loss
        grads = torch.autograd.grad(loss, leaves, create_graph=True)
        found.append(torch.autograd.grad(loss + sum(grad.square().sum() for grad in grads), leaves))
    for theirs, mine in zip(*found):
        assert tiny_models.difference(mine, theirs) < 1e-4


def test_whoever_watches_the_head_or_a_norm_sees_it_run():
    model, tokens = wide()
    plain = copy.deepcopy(model)
    tt.patch(model)
    seen = []
    model.lm_head.register_forward_hook(lambda module, inputs, output: seen.append(type(output)))
    model.model.layers[0].post_attention_layernorm.register_forward_hook(
        lambda module, inputs, output: seen.append(output.shape))
    loss = model.train()(input_ids=tokens, labels=tokens).loss
    assert seen == [(2, 40, 16), torch.Tensor]
    torch.testing.assert_close(loss, plain.train()(input_ids=tokens, labels=tokens).loss)
    model, _ = wide()
    model.lm_head = nn.Sequential(model.lm_head)
    model.get_output_embeddings = lambda: model.lm_head
    report = tt.patch(model)
    assert "its head is Sequential" in report.left[""]


def test_pickle_copy_compile_and_checkpoints():
    model, tokens = wide()
    plain = copy.deepcopy(model)
    tt.patch(model)
    model.train()
    wanted = model(input_ids=tokens, labels=tokens).loss
    wanted.backward()
    for other in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        assert torch.equal(other(input_ids=tokens, labels=tokens).loss, wanted)
        tt.unpatch(other)
        assert type(other) is type(plain) and type(other.lm_head) is nn.Linear
    assert tt.patch(model) == {}, "it is patched already"
    torch._dynamo.reset()
    compiled = torch.compile(model, backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(compiled(input_ids=tokens, labels=tokens, use_cache=False).loss, wanted, rtol=1e-5, atol=1e-5)
    model.gradient_checkpointing_enable()
    loss = model(input_ids=tokens, labels=tokens, use_cache=False).loss
    grads = torch.autograd.grad(loss, list(model.parameters()))
    for mine, parameter in zip(grads, model.parameters()):
        assert torch.equal(mine, parameter.grad)
    assert plain.state_dict().keys() == model.state_dict().keys()


def train_on_two(rank, folder):
    """One of two processes: sharded (FSDP2) and replicated (DDP), gradients beside those of the unpatched model."""
    import torch.distributed as dist
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=2)
    model, _ = wide()
    torch.manual_seed(5 + rank)
    tokens = torch.randint(5000, (2, 40))
    sharded, replicated = copy.deepcopy(model), copy.deepcopy(model)
    model.train()(input_ids=tokens, labels=tokens).loss.backward()
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad)
        parameter.grad /= 2
    mesh = init_device_mesh("cpu", (2,))
    for each in (sharded, replicated):
        assert "linear_cross_entropy" in tt.patch(each).values()
        each.train()
    for layer in sharded.model.layers:
        fully_shard(layer, mesh=mesh)
    fully_shard(sharded, mesh=mesh)
    out = sharded(input_ids=tokens, labels=tokens)
    assert out.logits.__dict__["value"] is None, "what hooks the graph has no need of them"
    out.loss.backward()
    with pytest.raises(RuntimeError, match="has changed since"):  # whose memory was given back
        out.logits.sum()
    parallel = nn.parallel.DistributedDataParallel(replicated)
    parallel(input_ids=tokens, labels=tokens).loss.backward()
    for a, b, wanted in zip(sharded.parameters(), replicated.parameters(), model.parameters()):
        torch.testing.assert_close(a.grad.full_tensor(), wanted.grad, rtol=1e-4, atol=1e-6)
        torch.testing.assert_close(b.grad, wanted.grad, rtol=1e-4, atol=1e-6)
    leave()


@pytest.mark.skipif(not torch.distributed.is_available(), reason="torch was built without distributed")
def test_sharded_and_replicated(tmp_path):
    torch.multiprocessing.spawn(train_on_two, (str(tmp_path),), nprocs=2)


@pytest.mark.skipif(not torch.distributed.is_available(), reason="torch was built without distributed")
def test_tensors_that_are_spread_over_machines_are_torchs(tmp_path):
    import torch.distributed as dist
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import distribute_module, distribute_tensor

    dist.init_process_group("gloo", init_method=f"file://{tmp_path}/meeting", rank=0, world_size=1)
    try:
        mesh = init_device_mesh("cpu", (1,))
        layer = Layer(nn.LayerNorm(16))
        patched = copy.deepcopy(layer)
        tt.patch(patched)
        x = torch.randn(3, 5, 16)
        wanted = layer(x)
        for each in (layer, patched):
            spread = distribute_module(each, mesh)
            torch.testing.assert_close(spread(distribute_tensor(x, mesh)).full_tensor(), wanted, rtol=1e-5, atol=1e-5)
    finally:
        dist.destroy_process_group()


def test_autocast_gives_the_same_types():
    model, tokens = wide()
    patched = copy.deepcopy(model)
    tt.patch(patched)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        theirs, mine = (each.train()(input_ids=tokens, labels=tokens) for each in (model, patched))
    assert theirs.logits.dtype == mine.logits.dtype
    torch.testing.assert_close(mine.loss, theirs.loss, rtol=2e-2, atol=2e-2)
    torch.testing.assert_close(mine.logits, theirs.logits, rtol=5e-2, atol=5e-2)


# ---- rope: what a function does, not what it is called ----

def half(x):
    left, right = x.chunk(2, -1)
    return torch.cat((-right, left), -1)


def llama(q, k, cos, sin, unsqueeze_dim=1):
    cos, sin = cos.unsqueeze(unsqueeze_dim), sin.unsqueeze(unsqueeze_dim)
    return q * cos + half(q) * sin, k * cos + half(k) * sin


def backwards(q, k, cos, sin, unsqueeze_dim=1):
    return llama(q, k, cos, -sin, unsqueeze_dim)


def clamped(q, k, cos, sin, unsqueeze_dim=1):
    return llama(q.clamp(-100, 100), k, cos, sin, unsqueeze_dim)


def keys_alone(q, k, cos, sin, unsqueeze_dim=1):
    return q, llama(q, k, cos, sin, unsqueeze_dim)[1]


def held(q, k, cos, sin, unsqueeze_dim=1):
    return llama(q.detach(), k, cos, sin, unsqueeze_dim)


def other_names(query, key, table):
    return query, key


@pytest.mark.parametrize("function, why", [(backwards, "no kernel"), (clamped, "clamp"), (keys_alone, "no kernel"),
                                           (held, "could not be tried|no kernel"), (other_names, "takes query, key, table")])
def test_other_rotations_are_left_alone(function, why):
    with pytest.raises(_rewrite.Unknown, match=why):
        _rewrite.rotary_function(function)


def test_calls_of_rope_that_were_not_tried_are_the_functions_own():
    calls = []

    def counted(q, k, cos, sin, unsqueeze_dim=1):
        calls.append(q.dtype)
        return llama(q, k, cos, sin, unsqueeze_dim)

    ours = _rewrite.rotary_function(counted)
    calls.clear()
    q, k, cos, sin = torch.randn(2, 4, 5, 8), torch.randn(2, 2, 5, 8), torch.randn(1, 5, 8), torch.randn(1, 5, 8)
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        given = [each.to(dtype) for each in (q, k, cos, sin)]
        for mine, theirs in zip(ours(*given), llama(*given)):
            if dtype == torch.float32:
                torch.testing.assert_close(mine, theirs)
            else:
                assert torch.equal(mine, theirs)
    assert not calls
    for given in ((q.bfloat16(), k.bfloat16(), cos, sin), (q.double(), k.double(), cos.double(), sin.double())):
        for mine, theirs in zip(ours(*given), llama(*given)):
            assert torch.equal(mine, theirs) and mine.dtype == theirs.dtype
    assert len(calls) == 2
    for mine, theirs in zip(ours(q.transpose(1, 2), k.transpose(1, 2), cos, sin, unsqueeze_dim=2), llama(q, k, cos, sin)):
        torch.testing.assert_close(mine.transpose(1, 2), theirs)


# ---- residual streams ----

class Layer(nn.Module):
    def __init__(self, norm):
        super().__init__()
        self.norm, self.linear = norm, nn.Linear(16, 16)

    def forward(self, hidden, scale: "NotDefinedAnywhere" = 1.0, *, residual=None):
        residual = hidden if residual is None else residual
        hidden = self.linear(hidden) * scale
        hidden = residual + hidden
        residual = hidden
        hidden = self.norm(hidden)
        return residual + self.linear(hidden)


class Decorated(Layer):
    @functools.wraps(Layer.forward)
    def forward(self, *inputs):
        return Layer.forward(self, *inputs)


class Scaled(Layer):
    def forward(self, hidden):
        residual = hidden
        hidden = self.linear(hidden)
        hidden = residual + 2 * hidden
        residual = hidden
        hidden = self.norm(hidden)
        return residual + hidden


@pytest.mark.parametrize("norm", [nn.LayerNorm(16), nn.RMSNorm(16), nn.RMSNorm(16, eps=1e-3), nn.LayerNorm(16, bias=False)],
                         ids=str)
def test_sums_of_torchs_norms(norm):
    layer = Layer(norm)
    patched = copy.deepcopy(layer)
    report = tt.patch(patched)
    assert report[""] == "residual sum with norm"
    x = torch.randn(3, 5, 16)
    for call in (lambda each: each(x), lambda each: each(x, 2.0), lambda each: each(x, residual=x * 2)):
        torch.testing.assert_close(call(patched), call(layer), rtol=1e-5, atol=1e-5)
        for mine, theirs in zip(torch.autograd.grad(call(patched).square().sum(), list(patched.parameters())),
                                torch.autograd.grad(call(layer).square().sum(), list(layer.parameters()))):
            torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-4)
    half_precision, same = copy.deepcopy(patched).bfloat16(), copy.deepcopy(layer).bfloat16()
    torch.testing.assert_close(half_precision(x.bfloat16()), same(x.bfloat16()), rtol=2e-2, atol=2e-2)
    row = x[:, :1]
    torch.testing.assert_close(patched(x, residual=row), layer(x, residual=row), rtol=1e-5, atol=1e-5)  # spread: not fused


def test_other_lines_are_left_alone():
    for kind, why in ((Decorated, "its forward is decorated"),
                      (Scaled, "the sum before norm has another form: hidden = residual + 2 * hidden")):
        report = tt.patch(kind(nn.LayerNorm(16)))
        assert "" not in report and report["norm"] == "layer_norm"
        assert report.left[""] == why
    layer = Layer(nn.LayerNorm(16))
    layer.forward = lambda hidden: hidden
    assert "replaced" in tt.patch(layer).left[""]
    assert tt.patch(Layer(nn.LayerNorm(16)), residual=False) == {"norm": "layer_norm"}
    assert tt.patch(Layer(nn.LayerNorm(16)), norms=False) == {}


class Vision(nn.Module):
    """Another name and other tables: a function is known by what it does."""

    def __init__(self, rotates):
        super().__init__()
        self.linear, self.rotates = nn.Linear(8, 8), rotates

    def forward(self, x, cos, sin):
        q, _ = vision_rotary(x, x, cos, sin)
        return self.linear(q)


class Complex(Vision):
    def forward(self, x, cos, sin):
        return self.linear(complex_rotary(x, torch.complex(cos, sin)))


def vision_rotary(q, k, cos, sin, unsqueeze_dim=1):
    return llama(q, k, cos, sin, unsqueeze_dim)


def complex_rotary(x, table):
    return torch.view_as_real(torch.view_as_complex(x.unflatten(-1, (-1, 2))) * table[..., ::2]).flatten(-2)


class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate_up_proj, self.down_proj = (nn.Parameter(torch.randn(4, 8, size)) for size in (16, 8))


def test_the_report_says_of_all_that_looks_alike_why_it_was_left():
    model = nn.ModuleDict({"vision": Vision(1), "complex": Complex(1), "experts": Experts(), "scaled": Scaled(nn.LayerNorm(16))})
    plain = copy.deepcopy(model)
    report = tt.patch(model)
    assert report == {"scaled.norm": "layer_norm", "vision": "rope"}
    assert report.left == {"complex": "complex_rotary takes x, table", "experts": "its experts are in one array, and their gated "
                           "units in a loop of its own", "scaled": "the sum before norm has another form: hidden = residual + 2 * hidden"}
    x, cos, sin = torch.randn(2, 4, 5, 8), torch.randn(1, 5, 8), torch.randn(1, 5, 8)
    for name in ("vision", "complex"):
        torch.testing.assert_close(model[name](x, cos, sin), plain[name](x, cos, sin))
    assert "experts" not in tt.patch(plain, gated=False).left


def test_the_report_is_printed(capsys):
    report = tt.patch(copy.deepcopy(made("gemma3n_text")[0]), verbose=True)
    said = capsys.readouterr().out
    assert said.strip() == str(report) and "linear_cross_entropy: 1 modules" in said and "left alone, " in said

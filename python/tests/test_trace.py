"""Traces of models, and what `trireme drift` says of two: faults put in on purpose are found, and blamed on what they are."""
import contextlib
import copy
import json
import os
import pathlib
import re
import signal
import subprocess
import sys

import pytest
import torch

import trireme.torch as tt

TOOL = os.environ.get("TRIREME_TOOL", str(pathlib.Path(__file__).resolve().parents[2] / "build/release/trireme"))


FAULT = {"call": 0, "at": None, "change": None}


@torch.library.custom_op("trace_test::silu", mutates_args=())
def silu(x: torch.Tensor) -> torch.Tensor:
    y = torch.nn.functional.silu(x)
    FAULT["call"] += 1
    if FAULT["call"] == FAULT["at"]:
        FAULT["change"](y)
    return y


silu.register_fake(torch.empty_like)
silu.register_autograd(lambda ctx, dy: torch.ops.aten.silu_backward(dy, *ctx.saved_tensors),
                       setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs))


@contextlib.contextmanager
def fault(at, change):
    """The at-th silu from now on gives something else."""
    FAULT.update(call=0, at=at, change=change)
    yield
    FAULT.update(at=None)


class Block(torch.nn.Module):
    """A norm, two products and a residual, as transformers have them."""

    def __init__(self, width=16):
        super().__init__()
        self.norm = torch.nn.RMSNorm(width)
        self.up, self.down = torch.nn.Linear(width, 2 * width), torch.nn.Linear(2 * width, width)

    def forward(self, x):
        return x + self.down(silu(self.up(self.norm(x))))


class Model(torch.nn.Module):
    def __init__(self, layers=3, width=16):
        super().__init__()
        torch.manual_seed(0)
        self.embed = torch.nn.Embedding(11, width)
        self.layers = torch.nn.ModuleList(Block(width) for _ in range(layers))
        self.head = torch.nn.Linear(width, 11, bias=False)

    def forward(self, token):
        x = self.embed(token)
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


TOKEN = torch.arange(10).view(2, 5)


def infer(model):
    with torch.no_grad():
        model(TOKEN)


def step(model, token=TOKEN):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    model(token).logsumexp(-1).sum().backward()
    optimizer.step()


def record(model, folder, body=step, **how):
    with tt.trace(model, folder, **how) as made:
        body(model)
    assert made.events == sum(1 for line in open(folder / "trace.jsonl")) - 2
    return folder


def in_a_process(text, *arguments, **variables):
    path = os.pathsep.join([str(pathlib.Path(tt.__file__).parents[2]), str(pathlib.Path(__file__).parent)])
    return subprocess.run([sys.executable, "-c", text, *arguments], env={**os.environ, "PYTHONPATH": path, **variables}).returncode


def drift(a, b, *options, code=None):
    done = subprocess.run([TOOL, "drift", str(a), str(b), "--json", *options], capture_output=True, text=True)
    if code == 2:
        assert done.returncode == 2, done.stdout
        return done.stderr
    report = json.loads(done.stdout) if done.stdout else pytest.fail(done.stderr)
    assert done.returncode == (0 if report["same"] else 1)
    assert code in (None, done.returncode), report
    return report


def first(a, b, *options):
    """Phase, path, name, blame of the event at which they part, and all that is said of it."""
    parting = drift(a, b, *options, code=1)["partings"][0]
    return (parting["phase"], parting["path"], parting["name"], parting["blame"]), parting


def events(folder):
    return [each for each in map(json.loads, open(folder / "trace.jsonl")) if "event" in each]


# ---- the same ----

@pytest.mark.parametrize("patched", [False, True])
def test_a_training_step_twice_is_the_same(tmp_path, patched):
    def model():
        made = Model()
        if patched:
            tt.patch(made)
        return made
    report = drift(record(model(), tmp_path / "a"), record(model(), tmp_path / "b"), code=0)
    assert report["alike"] == report["aligned"] == report["runs"][0]["events"] and not report["unknown"]
    said = events(tmp_path / "a")
    assert {each.get("phase", "") for each in said} == {"", "forward", "backward", "step"}
    assert any(each["name"].startswith("trireme.rms_norm") for each in said) == patched
    backward = {each.get("path", "") for each in said if each.get("phase") == "backward"}
    assert {f"layers.{k}.{part}" for k in range(3) for part in ("up", "down", "norm")} | {"head", "embed"} <= backward


class Unit(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.gate_proj, self.up_proj, self.down_proj = (torch.nn.Linear(*size) for size in ((8, 16), (8, 16), (16, 8)))
        self.act_fn = torch.nn.SiLU()

    def forward(self, x):
        return self.down_proj(self.act_fn(self.gate_proj(x)) * self.up_proj(x))


def test_a_patched_unit_is_seen_as_it_runs(tmp_path):
    """The hooks that watch its activation do not bring the activation back."""
    model = torch.nn.Sequential(torch.nn.Embedding(11, 8), Unit())
    assert tt.patch(model)
    record(model, tmp_path / "a", infer)
    assert any("swiglu" in each["name"] for each in events(tmp_path / "a"))


def test_tracing_changes_no_bits(tmp_path):
    plain, traced = Model(), Model()
    step(plain)
    record(traced, tmp_path / "a", arrays=True)
    assert all(torch.equal(x, y) for x, y in zip(plain.parameters(), traced.parameters()))
    assert not traced._forward_hooks and not traced.layers[0]._forward_pre_hooks


@pytest.mark.parametrize("context", [torch.no_grad, torch.inference_mode])
def test_without_gradients(tmp_path, context):
    def body(model):
        with context():
            for _ in range(2):
                model(TOKEN)
    a, b = (record(Model(), tmp_path / name, body) for name in "ab")
    drift(a, b, code=0)
    assert {each["call"] for each in events(a)} == {0, 1, 2}


# ---- faults, put in ----

def test_a_parameter(tmp_path):
    a, other = Model(), Model()
    with torch.no_grad():
        other.layers[1].up.weight[3, 2] = other.layers[1].up.weight[3, 2].nextafter(torch.tensor(9.0))
    found, parting = first(record(a, tmp_path / "a", arrays="layers.1.up"), record(other, tmp_path / "b", arrays=["layers.1*"]))
    assert found == (None, "layers.1.up", "weight", "parameter")
    output, = parting["outputs"]
    assert output["rows"] == [3, 4] and output["blocks"] == 1
    assert {key: output["elements"][key] for key in ("row", "column", "ulps", "count", "most_ulps")} == dict(
        row=3, column=2, ulps=1, count=1, most_ulps=1)


def test_an_operator_of_other_bits(tmp_path):
    a = record(Model(), tmp_path / "a", infer, arrays=True)
    with fault(2, lambda y: y.view(-1)[37:39].copy_(-y.view(-1)[37:39])):
        b = record(Model(), tmp_path / "b", infer, arrays=lambda path, name: "silu" in name)
    found, parting = first(a, b)
    assert found == ("forward", "layers.1", "trace_test.silu.default", "operator")
    assert parting["outputs"][0]["elements"]["row"] == 1 and parting["outputs"][0]["elements"]["column"] == 5
    assert parting["outputs"][0]["elements"]["count"] == 2 and not parting["inputs"]
    every = drift(a, b, "--all")
    assert every["by_operators"] == 1 and len(every["partings"]) == every["different"] > 5
    assert {each["blame"] for each in every["partings"][1:]} == {"input", "inside"}
    assert every["partings"][1]["inputs"][0]["from"] == ["forward layers.1 trace_test.silu.default"] * 2


def test_ulps_signs_of_zero_and_nans(tmp_path):
    def values(*numbers):
        def change(y):
            y.view(-1)[:len(numbers)] = torch.tensor(numbers)
        return change

    def folder(name, *numbers):
        with fault(1, values(*numbers)):
            return record(Model(), tmp_path / name, infer, arrays="layers.0")
    nan, other_nan = torch.nan, torch.tensor([0xFFC00001 - (1 << 32)], dtype=torch.int32).view(torch.float32).item()
    a, b = folder("a", 0.0, nan, 1.0, 2.0), folder("b", 0.0, other_nan, 1.0, 2.0)
    drift(a, b, code=0)
    elements = first(a, folder("c", -0.0, nan, 1.0 + 2**-21, 2.0))[1]["outputs"][0]["elements"]
    assert (elements["column"], elements["ulps"], elements["count"], elements["most_ulps"]) == (0, 0, 2, 4)
    elements = first(a, folder("d", 0.0, 1.0, 1.0, 2.0))[1]["outputs"][0]["elements"]
    assert elements["column"] == 1 and elements["ulps"] is None


def test_an_argument(tmp_path):
    other = Model()
    other.layers[2].norm.eps = 1e-3
    found, parting = first(record(Model(), tmp_path / "a", infer), record(other, tmp_path / "b", infer))
    assert found[1] == "layers.2.norm" and found[3] == "arguments"
    assert "0.001" in parting["arguments"][1] and "0.001" not in parting["arguments"][0]


def test_an_input(tmp_path):
    found, parting = first(record(Model(), tmp_path / "a"), record(Model(), tmp_path / "b", lambda model: step(model, TOKEN.flip(1))))
    assert found == ("forward", "embed", "aten.embedding.default", "input")
    assert [each["name"] for each in parting["inputs"]] == ["indices"] and parting["inputs"][0]["from"] == [None, "forward aten.flip.default"]


def test_a_type(tmp_path):
    found, parting = first(record(Model(), tmp_path / "a", infer), record(Model().bfloat16(), tmp_path / "b", infer))
    assert found[3] == "parameter" and parting["outputs"][0]["reason"] == "f32 against bf16"


def test_random_numbers(tmp_path):
    def body(seed):
        torch.manual_seed(seed)
        return lambda model: infer(torch.nn.Sequential(model, torch.nn.Dropout(0.5)).train())
    a, b, c = (record(Model(), tmp_path / name, body(seed)) for name, seed in (("a", 1), ("b", 1), ("c", 2)))
    drift(a, b, code=0)
    found, _ = first(a, c)
    assert found[2:] == ("aten.bernoulli_.float", "random")


def test_a_backward(tmp_path):
    class Wrong(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, dy):
            return dy * 1.5

    def body(wrong):
        def run(model):
            model.layers[1].up.register_forward_hook(lambda module, args, y: Wrong.apply(y) if wrong else y.clone())
            step(model)
        return run
    a, b = record(Model(), tmp_path / "a", body(False)), record(Model(), tmp_path / "b", body(True))
    found, parting = first(a, b)
    assert found[0] == "backward" and found[1] == "layers.1.up" and found[3] == "input"
    assert parting["inputs"][0]["from"][1] == "backward layers.1 aten.mul.Tensor"  # which only b has


# ---- runs of other forms ----

def test_patched_against_not(tmp_path):
    """The kernels differ and so do the operators; the modules are the same."""
    patched = Model()
    tt.patch(patched)
    report = drift(record(Model(), tmp_path / "a", infer), record(patched, tmp_path / "b", infer))
    for each in report["partings"]:
        assert each["blame"] == "module" and each["path"] == "layers.0.norm" and not each["inputs"]
    assert report["aligned"] > 20


def test_an_operator_more(tmp_path):
    class More(Block):
        def forward(self, x):
            return super().forward(x.clone() * 1)
    other = Model()
    for layer in other.layers:
        layer.__class__ = More
    report = drift(record(Model(), tmp_path / "a"), record(other, tmp_path / "b"), code=0)
    assert report["runs"][1]["events"] > report["runs"][0]["events"] == report["aligned"]


class Rowwise(torch.nn.Module):
    """Every row is its own; `leak` lets the batch in."""

    def __init__(self, leak=False):
        super().__init__()
        self.norm, self.act, self.leak = tt.RMSNorm(16), torch.nn.SiLU(), leak

    def forward(self, x):
        y = self.act(self.norm(x))
        return y + x.sum(0, keepdim=True) * 2**-10 if self.leak else y * 2


@pytest.mark.parametrize("leak", [False, True])
def test_a_token_alone_and_in_a_batch(tmp_path, leak):
    torch.manual_seed(0)
    x = torch.randn(7, 16)

    def one_by_one(model):
        for k in range(7):
            model(x[k:k + 1])
    a, b = record(Rowwise(leak), tmp_path / "a", lambda model: model(x)), record(Rowwise(leak), tmp_path / "b", one_by_one)
    if leak:
        found, parting = first(a, b, "--rows", "4:5=0:1", "--calls", "1=5")
        assert found == ("forward", "", "aten.add.Tensor", "input")
        assert parting["inputs"][0]["from"] == ["forward aten.mul.Tensor"] * 2
    else:
        report = drift(a, b, "--rows", "4:5=0:1", "--calls", "1=5", code=0)
        assert report["alike"] >= 4
        assert drift(a, b, "--rows", "4:5/7=0:1/1", "--calls", "1=5", code=0) == report
        assert drift(a, b, "--rows", "4:5=0:1", "--calls", "1=4", code=1)["partings"][0]["blame"] == "input"
        assert "rows 7:8" in drift(a, b, "--rows", "7:8=0:1", code=2)


def test_other_threads(tmp_path):
    def threads(count):
        def body(model):
            before = torch.get_num_threads()
            torch.set_num_threads(count)
            try:
                model(torch.randn(64, 16, generator=torch.Generator().manual_seed(3)))
            finally:
                torch.set_num_threads(before)
        return body
    drift(*(record(Rowwise(), tmp_path / f"{count}", threads(count)) for count in (1, 3)), code=0)


def test_compiled_modules_are_one_event(tmp_path):
    def compiled():
        model = Model()
        model.layers[1] = torch.compile(model.layers[1], backend="aot_eager", fullgraph=True)
        return model
    a, b = record(Model(), tmp_path / "a", infer), record(compiled(), tmp_path / "b", infer)
    drift(a, b, code=0)
    assert {each["path"] for each in events(b) if "layers.1" in each.get("path", "") and each["kind"] != "state"} == {"layers.1"}
    step(compiled())
    record(compiled(), tmp_path / "c")  # with a backward
    whole = torch.compile(Model(), backend="aot_eager")
    calls = [each for each in events(record(whole, tmp_path / "d", lambda model: model(TOKEN))) if each["kind"] == "module"]
    assert [each.get("path", "") for each in calls] == [""]
    mine = Model()
    mine.layers[1].compile(backend="aot_eager", fullgraph=True)
    drift(a, record(mine, tmp_path / "e", infer), code=0)
    assert mine.layers[1]._compiled_call_impl.__name__ != "call"


def test_modules_alone(tmp_path):
    a, b = record(Model(), tmp_path / "a", operators=False), record(Model(), tmp_path / "b")
    report = drift(a, b, code=0)
    assert report["aligned"] == report["runs"][0]["events"] < report["runs"][1]["events"]


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_a_gpu(tmp_path):
    x = torch.randn(300, 16, generator=torch.Generator().manual_seed(1))
    cpu = record(Rowwise(), tmp_path / "cpu", lambda model: model(x), arrays=True)
    gpu = record(Rowwise().cuda(), tmp_path / "gpu", lambda model: model(x.cuda()), arrays=True)
    for each in drift(cpu, gpu, "--all")["partings"]:  # torch's own silu; ours has the same bits everywhere
        assert not each["path"].startswith("norm") and each["outputs"][0]["elements"]["most_ulps"] < 100
    a, b = (record(Model().cuda(), tmp_path / name, lambda model: step(model, TOKEN.cuda())) for name in "ab")
    drift(a, b, code=0)
    other = Model().cuda()
    with torch.no_grad():
        other.layers[2].down.bias[3] += 1
    assert first(a, record(other, tmp_path / "c", lambda model: step(model, TOKEN.cuda())))[0][3] == "parameter"
    assert {"forward", "backward", "step"} <= {each.get("phase") for each in events(a)}


# ---- arrays of all kinds ----

class Odd(torch.nn.Module):
    def forward(self, x):
        flags, whole = x > 0, (x * 100).to(torch.int16)
        parts = [x.t()[1:], x[:, ::2], x[0].expand(3, -1), x[:0], x.sum(), x.to(torch.complex64) * 1j, x.to(torch.float8_e4m3fn),
                 flags.logical_not(), whole + 1, x.bfloat16(), x.double(), x.half(), x.as_strided((4, 1), (1, 8)),
                 whole.as_strided((4, 1), (1, 8))]
        state = torch.zeros(4, 6)
        state[1:3].add_(parts[0].reshape(-1)[:12].view(2, 6))
        torch.add(state, 1, out=torch.empty(4, 6))
        cache = torch.empty(8, 6)
        cache[:4].copy_(x)
        return [each.clone() for each in parts], {"state": state, "cache": cache[:4] * 2}, x.to_sparse()


def test_arrays_of_all_kinds(tmp_path):
    x = torch.randn(4, 6, generator=torch.Generator().manual_seed(1))
    a, b = (record(Odd(), tmp_path / name, lambda model: model(x), arrays=True) for name in "ab")
    report = drift(a, b, code=0)
    assert report["alike"] > 15
    types = {array["type"] for each in events(a) for array in each["out"]}
    assert {"f32", "f64", "f16", "bf16", "f8e4m3", "bool", "i16", "c64"} <= types
    one = {array["shape"][0]: array for each in events(a) if each["kind"] == "module" for array in each["out"] if array["shape"] == [3, 6]}
    assert len({open(a / "rows.bin", "rb").read()[8 * k:8 * k + 8] for k in range(one[3]["rows"], one[3]["rows"] + 3)}) == 1


def test_a_view_has_the_digests_of_its_elements(tmp_path):
    x = torch.randn(6, 4, generator=torch.Generator().manual_seed(1))
    a = record(Rowwise(), tmp_path / "a", lambda model: model.act(x.t()[1:3, ::2]))
    b = record(Rowwise(), tmp_path / "b", lambda model: model.act(x.t()[1:3, ::2].contiguous().requires_grad_()))
    assert drift(a, b, code=0)["aligned"] >= 2


def test_many_rows_are_blocks(tmp_path):
    def body(change):
        x = torch.arange(5001 * 3, dtype=torch.float32).view(5001, 3)
        x[change] += 1
        return lambda model: model(x)
    a, b, c = (record(torch.nn.Identity(), tmp_path / name, body(row), arrays=keep) for name, row, keep in (
        ("a", 4990, False), ("b", 5000, False), ("c", 5000, True)))
    _, parting = first(a, b)
    assert parting["outputs"][0]["rows"] == [4984, 4992] and parting["outputs"][0]["of_blocks"] == 626
    assert parting["outputs"][0]["blocks"] == 2
    drift(b, c, code=0)


def test_memory_that_was_not_set(tmp_path):
    """What nobody wrote is no result, and what a foreign kernel wrote is seen where it is read."""
    def body(value):
        def run(model):
            memory = torch.empty(3, 4)
            memory.numpy()[:] = value  # as a kernel outside of torch
            half = torch.empty(2, 4)
            half.numpy()[:] = value
            half[:1].fill_(1.0)
            half[:1] * 2
            model(memory)
        return run
    found, parting = first(*(record(torch.nn.SiLU(), tmp_path / f"{value}", body(value)) for value in (1.0, 2.0)))
    assert found == ("forward", "", "aten.silu.default", "input")


SCRATCH = """
import sys, torch, trireme.torch as tt
torch.manual_seed(0)
rnn, head = torch.nn.LSTM(13, 37, num_layers=2), torch.nn.Linear(37, 5)
model, x = torch.nn.ModuleList([rnn, head]), torch.randn(7, 3, 13)
if len(sys.argv) > 2:
    with torch.no_grad():
        rnn.weight_hh_l1[3, 2] += 1
with tt.trace(model, sys.argv[1]):
    y = head(rnn(x)[0]).log_softmax(-1)
    torch.nn.functional.ctc_loss(y, torch.tensor([1, 2, 3, 1]), torch.tensor([7, 5, 3]), torch.tensor([2, 1, 1])).backward()
"""


def test_scratch_is_no_result(tmp_path):
    """Of memory that kernels leave as they found it: here glibc fills it with another byte in each process."""
    for name, fill, *change in ("a", "80"), ("b", "160"), ("c", "80", "changed"):
        assert in_a_process(SCRATCH, tmp_path / name, *change, MALLOC_PERTURB_=fill) == 0
    drift(tmp_path / "a", tmp_path / "b", code=0)
    scratch = {(each["name"], *(said["name"] for said in each["out"] if "scratch" in said)) for each in events(tmp_path / "a")}
    assert {("aten.mkldnn_rnn_layer.default", "3"), ("aten._ctc_loss.Tensor", "1")} <= scratch
    report = drift(tmp_path / "a", tmp_path / "c", "--all", code=1)
    assert report["partings"][0]["blame"] == "parameter"
    assert [each["blame"] for each in report["partings"] if each["name"] == "aten.mkldnn_rnn_layer_backward.default"] == ["input"] * 2


def test_dtensors_are_the_tensors_inside(tmp_path):
    from torch import distributed
    from torch.distributed.tensor import init_device_mesh
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
    distributed.init_process_group("gloo", store=distributed.HashStore(), rank=0, world_size=1)
    try:
        cut = parallelize_module(Model(), init_device_mesh("cpu", (1,)), {
            f"layers.{k}.{part}": way() for k in range(3) for part, way in (("up", ColwiseParallel), ("down", RowwiseParallel))})
        b = record(cut, tmp_path / "b", lambda model: model(TOKEN).logsumexp(-1).sum().backward())
    finally:
        distributed.destroy_process_group()
    drift(record(Model(), tmp_path / "a", lambda model: model(TOKEN).logsumexp(-1).sum().backward()), b, code=0)
    assert any(array["name"] == "weight._local_tensor" for each in events(b) for array in each["out"])


def test_under_functions_that_transform(tmp_path):
    def model():
        torch.manual_seed(0)
        return torch.nn.Sequential(torch.nn.Linear(16, 16), Rowwise())
    x = torch.randn(7, 16, generator=torch.Generator().manual_seed(1))

    def body(model):
        torch.vmap(model)(x)
        torch.func.grad(lambda own: torch.func.functional_call(model, own, (x,)).sum())(dict(model.named_parameters()))
    a, b = (record(model(), tmp_path / name, body) for name in "ab")
    drift(a, b, code=0)
    assert any(each["name"].startswith("trireme.rms_norm_backward") for each in events(a))


# ---- how traces end ----

def test_a_failure_leaves_a_trace(tmp_path):
    def body(model):
        infer(model)
        raise ValueError("no more")
    with pytest.raises(ValueError, match="no more"):
        record(Model(), tmp_path / "a", body)
    report = drift(tmp_path / "a", record(Model(), tmp_path / "b", infer), code=0)
    assert report["runs"][0]["failed"] == "ValueError: no more" and report["runs"][1]["failed"] is None


def test_a_killed_process_leaves_a_trace(tmp_path):
    text = "import os, signal, sys, test_trace as t\nwith t.tt.trace(model := t.Model(), sys.argv[1]):\n t.infer(model)\n os.kill(os.getpid(), signal.SIGKILL)"
    assert in_a_process(text, tmp_path / "a") == -signal.SIGKILL
    b = record(Model(), tmp_path / "b", infer)
    report = drift(tmp_path / "a", b, code=1)
    assert report["different"] == 0 and not report["runs"][0]["ended"] and report["alike"] == report["runs"][1]["events"]
    lines = (tmp_path / "b" / "trace.jsonl").read_bytes()
    (tmp_path / "b" / "trace.jsonl").write_bytes(lines[:len(lines) // 2])
    assert 0 < drift(tmp_path / "a", b, code=1)["alike"] < report["alike"]


def test_a_folder_is_not_written_over(tmp_path):
    record(Model(), tmp_path / "a", infer)
    with pytest.raises(FileExistsError, match="holds a trace"):
        record(Model(), tmp_path / "a", infer)
    step(Model())  # nothing was left behind


def test_the_storages_that_are_known_are_few(tmp_path):
    def body(model):
        for _ in range(3000):
            torch.ones(3) + 1
    with tt.trace(torch.nn.Identity(), tmp_path / "a") as made:
        body(None)
    assert len(made._storages._entries) < 2100


def test_a_transformer_that_generates(tmp_path):
    from tiny_models import tiny
    model, inputs = tiny("llama")
    prompt = inputs["input_ids"][:1]

    def body(model):
        model.generate(prompt, max_new_tokens=4, do_sample=False)
    a, b = record(model, tmp_path / "a", body), record(copy.deepcopy(model), tmp_path / "b", body)
    report = drift(a, b, code=0)
    assert report["unknown"] == 0 and max(each["call"] for each in events(a)) == 4


def test_the_example_of_the_docs(tmp_path, monkeypatch):
    page = (pathlib.Path(__file__).resolve().parents[2] / "docs" / "drift.md").read_text()
    example, = re.findall(r"```python\n(.*?)```", page, re.S)
    said, = re.findall(r"`trireme drift a b` then says\n\n```text\n(.*?)```", page, re.S)
    monkeypatch.chdir(tmp_path)
    exec(compile(example, "drift.md", "exec"), {})
    done = subprocess.run([TOOL, "drift", "a", "b"], capture_output=True, text=True)

    def without_values(text):  # GELU's bits are the machine's
        return re.sub(r"-?\b\d[\w.-]*", "N", re.sub(r"    element .*", "", text)).replace(", the first of N rows", "")
    assert (done.returncode, without_values(done.stdout)) == (1, without_values(said))

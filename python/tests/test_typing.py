"""What type checkers see: the examples pass mypy --strict, wrong calls do not, and everything public says its types."""
import ast
import inspect
import os
import pathlib
import subprocess
import sys

import pytest

import trireme

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGE = pathlib.Path(trireme.__file__).parents[1]

WRONG = """\
import torch
import trireme
import trireme.torch as tt
from trireme.torch import parallel

x = torch.ones(2, 4)
tt.rms_norm(4, "x")
tt.RMSNorm(4).forward("x")
tt.cross_entropy(x, x, ignore="all")
tt.patch(model=x)
tt.trace(x, "folder")
trireme.rms_norm(x, eps="small")
trireme.rms_norm(x, epsilon=1e-6)
trireme.op(3)
trireme.verify(3)
trireme.rms_norm.plan("shape", axes="one")
parallel.columns(x)
reveal_type(tt.swiglu(x, x))
reveal_type(tt.add_rms_norm(x, x))
reveal_type(trireme.rms_norm.gradient())
reveal_type(tt.op("f(x[i,j]) -> (y[i,j])\\n y = x"))
reveal_type(tt.patch(tt.RMSNorm(4)).left)
reveal_type(tt.trace(tt.RMSNorm(4), "folder").folder)
"""


def mypy(*files):
    pytest.importorskip("mypy", reason="mypy is not installed")
    # As of an installed package: errors inside it are not the user's. What was learnt of torch is kept for the next run.
    return subprocess.run([sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--no-error-summary",
                           "--cache-dir", PACKAGE.parent / "mypy_cache", *files], capture_output=True, text=True,
                          env={**os.environ, "MYPYPATH": str(PACKAGE)})


def test_examples_pass_mypy_strict():
    pytest.importorskip("torch", reason="torch is not installed")
    done = mypy(*sorted((ROOT / "examples").rglob("*.py")))
    assert done.returncode == 0, done.stdout + done.stderr


def test_wrong_calls_do_not(tmp_path):
    pytest.importorskip("torch", reason="torch is not installed")
    (tmp_path / "wrong.py").write_text(WRONG)
    done = mypy(tmp_path / "wrong.py")
    wrong = {int(line.split(":")[1]) for line in done.stdout.splitlines() if ": error:" in line}
    calls = {k for k, line in enumerate(WRONG.splitlines(), 1) if k > 6 and not line.startswith("reveal_type")}
    assert wrong == calls, done.stdout + done.stderr
    seen = [line.split('"')[1].replace("torch._tensor.", "") for line in done.stdout.splitlines() if "Revealed type" in line]
    assert seen == ["Tensor", "tuple[Tensor, Tensor]", "trireme._operator.Operator", "trireme.torch._operator.TorchOperator",
                    "dict[str, str]", "pathlib.Path"], seen


def untyped(name, function):
    signature = inspect.signature(function)
    found = [each.name for each in signature.parameters.values() if each.annotation is each.empty and each.name not in
             ("self", "cls")]
    return [f"{name}({', '.join(found)})"] if found else [name] if signature.return_annotation is signature.empty else []


def public(module, names):
    for name in names:
        value = getattr(module, name)
        if inspect.isfunction(value):
            yield f"{module.__name__}.{name}", value
        if inspect.isclass(value):
            for key, each in vars(value).items():
                each = each.fget if isinstance(each, property) and each.fget.__module__ == value.__module__ else each
                if inspect.isfunction(each) and (key[0] != "_" or key in ("__init__", "__call__")):
                    yield f"{module.__name__}.{name}.{key}", each


def test_everything_public_says_its_types():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    import trireme.torch as tt
    modules = [(trireme, [name for name in trireme.__all__ if name not in trireme.operators()]), (tt, tt.__all__)]
    if torch.distributed.is_available():
        from trireme.torch import parallel
        modules.append((parallel, parallel.__all__))
    functions = [each for module, names in modules for each in public(module, names)]
    assert len(functions) > 60
    assert [text for name, function in functions for text in untyped(name, function)] == []


def test_stubs_name_what_there_is():
    def named(path):
        body = ast.parse(path.read_text()).body
        names = [each.target.id if isinstance(each, ast.AnnAssign) else each.name for each in body
                 if isinstance(each, (ast.AnnAssign, ast.ClassDef, ast.FunctionDef))]
        names += [alias.asname for each in body if isinstance(each, ast.ImportFrom) for alias in each.names if alias.asname]
        return {name for name in names if name[0] != "_"}

    core = trireme._core
    assert named(PACKAGE / "trireme/_core.pyi") == {name for name in dir(core) if name[0] != "_"}
    assert named(PACKAGE / "trireme/__init__.pyi") - {"Timing"} == set(trireme.__all__)
    for name, node in ((each.name, each) for each in ast.parse((PACKAGE / "trireme/_core.pyi").read_text()).body
                       if isinstance(each, ast.ClassDef)):
        for each in node.body:
            members = [each.target.id] if isinstance(each, ast.AnnAssign) else [each.name] if isinstance(each, ast.FunctionDef) else []
            for member in members:
                assert hasattr(getattr(core, name), member) or (name, member) in {("BufferTooSmall", "needed"), ("BufferTooSmall", "got")}

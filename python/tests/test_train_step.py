"""bench/train_step.py runs where there is no GPU, and notices a variant that trains otherwise."""
import json
import os
import pathlib
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

PROGRAM = pathlib.Path(__file__).resolve().parents[2] / "bench/train_step.py"


def run(*arguments, program=PROGRAM):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.run([sys.executable, program, "--tiny", "--device", "cpu", *arguments], env=environment,
                          capture_output=True, text=True)


def alike(found, variants):
    assert all(one["milliseconds"] > 0 for variant, one in found.items() if variant != "liger")
    for variant in variants:
        for what in ("loss", "gradient"):
            assert abs(found[variant][what] / found["eager"][what] - 1) < 1e-5


def test_every_variant_trains_alike(tmp_path):
    """Liger's line says what is missing."""
    kept = tmp_path / "numbers.json"
    done = run("--variants", "eager,liger,trireme,trireme-logits,floor", "--json", kept)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(kept.read_text())["llama"]["found"]
    assert list(found) == ["eager", "liger", "trireme", "trireme-logits", "floor"]
    alike(found, ("trireme", "trireme-logits"))


def test_a_table_a_preset(tmp_path):
    """Long context and the classifier."""
    kept = tmp_path / "numbers.json"
    done = run("--presets", "long,bert", "--variants", "eager,trireme", "--json", kept)
    assert done.returncode == 0, done.stdout + done.stderr
    assert [line for line in done.stdout.splitlines() if line.startswith("## ")] == ["## long", "## bert"]
    assert done.stdout.count("| variant | ms a step | GiB |") == 2
    numbers = json.loads(kept.read_text())
    sizes = {name: (each["options"]["model"], each["options"]["samples"], each["options"]["tokens"])
             for name, each in numbers.items()}
    assert sizes == {"long": ("llama", 1, 200), "bert": ("classifier", 4, 24)}
    for each in numbers.values():
        alike(each["found"], ["trireme"])


def test_what_is_said_wins_over_a_preset(tmp_path):
    kept = tmp_path / "numbers.json"
    done = run("--presets", "long", "--tokens", "40", "--layers", "1", "--variants", "floor", "--json", kept)
    assert done.returncode == 0, done.stdout + done.stderr
    options = json.loads(kept.read_text())["long"]["options"]
    assert (options["tokens"], options["layers"], options["samples"], options["hidden"]) == (40, 1, 1, 64)
    assert run("--presets", "short").returncode == 2


def test_compiled_variants(tmp_path):
    """torch.compile without and with Trireme's operators; `make test-all` asks for it."""
    if not os.environ.get("TRIREME_ALL_MODELS") and not os.environ.get("LONG"):
        pytest.skip("LONG=1 or TRIREME_ALL_MODELS=1 compiles a step")
    done = run("--presets", "bert", "--layers", "1", "--variants", "eager,compile,trireme-compile")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Trireme under torch.compile" in done.stdout


def test_another_loss_is_a_failure(tmp_path):
    other = tmp_path / "train_step.py"
    other.write_text(PROGRAM.read_text().replace("tt.linear_cross_entropy(hidden, head, labels",
                                                 "1.001 * tt.linear_cross_entropy(hidden, head, labels"))
    done = run("--variants", "eager,trireme", program=other)
    assert done.returncode == 1 and "is not eager torch's" in done.stderr, done.stdout + done.stderr

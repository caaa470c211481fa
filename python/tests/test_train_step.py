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


@pytest.mark.parametrize("model", ["llama", "classifier"])
def test_every_variant_trains_alike(model, tmp_path):
    kept = tmp_path / "numbers.json"
    done = run("--model", model, "--variants", "eager,trireme,trireme-logits,floor", "--json", kept)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(kept.read_text())["found"]
    assert list(found) == ["eager", "trireme", "trireme-logits", "floor"]
    assert all(each["milliseconds"] > 0 for each in found.values())
    for variant in ("trireme", "trireme-logits"):
        for what in ("loss", "gradient"):
            assert abs(found[variant][what] / found["eager"][what] - 1) < 1e-5


def test_another_loss_is_a_failure(tmp_path):
    other = tmp_path / "train_step.py"
    other.write_text(PROGRAM.read_text().replace("tt.linear_cross_entropy(hidden, head, labels",
                                                 "1.001 * tt.linear_cross_entropy(hidden, head, labels"))
    done = run("--variants", "eager,trireme", program=other)
    assert done.returncode == 1 and "is not eager torch's" in done.stderr, done.stdout + done.stderr

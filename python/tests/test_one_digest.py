"""examples/one_digest: a transformer of row programs ends with the published weights on every device. BLESS=1 rewrites what is
published, and the tape."""
import hashlib
import importlib.util
import json
import os
import pathlib
import subprocess
import sys

import pytest

import trireme

EXAMPLE = pathlib.Path(__file__).resolve().parents[2] / "examples/one_digest"
TAPE = json.loads((EXAMPLE / "tape.json").read_text())


def loaded(name):
    spec = importlib.util.spec_from_file_location(f"one_digest_{name}", EXAMPLE / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_tape_is_the_model():
    model = loaded("model")
    if os.environ.get("BLESS"):
        model.write()
    assert (EXAMPLE / "tape.json").read_text() == model.printed(model.describe()), "BLESS=1 rewrites it"


def publish(file, got):
    """Of one tape and one version of the contract there are no other weights."""
    before = json.loads(file.read_text())
    same_model = (before["contract"], before["tape"]) == (got["contract"], got["tape"])
    assert not same_model or got == before, "other weights are another version of the contract (src/ir/contract.hpp)"
    file.write_text(json.dumps(got) + "\n")


def test_other_weights_are_another_version_or_another_tape(tmp_path):
    file, before = tmp_path / "published.json", json.loads((EXAMPLE / "published.json").read_text())
    file.write_text(json.dumps(before))
    with pytest.raises(AssertionError, match="another version"):
        publish(file, before | {"sha256": "0" * 64})
    assert json.loads(file.read_text()) == before
    for change in {"contract": before["contract"] + 1}, {"tape": "0" * 64}:
        publish(file, before | {"sha256": "0" * 64} | change)
        assert json.loads(file.read_text())["sha256"] == "0" * 64
        file.write_text(json.dumps(before))


@pytest.mark.parametrize("device, reason", [("wasm", "plans do not run this program on wasm"), ("gpu", "no device named"), *(
    (name, why.splitlines()[0]) for name, why in trireme.devices().items() if why)])
def test_a_device_that_cannot_is_named_with_the_reason(device, reason):
    found = os.environ | {"PYTHONPATH": str(pathlib.Path(trireme.__file__).parents[1])}
    done = subprocess.run([sys.executable, EXAMPLE / "train.py", "--device", device], env=found, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (1, "") and reason in done.stderr and "Traceback" not in done.stderr, done.stderr


def available():
    missing = trireme.devices()
    return [name for name in missing if not name.startswith(("wasm", "lanes")) and not missing[name]]


@pytest.mark.parametrize("device", available())
def test_the_weights_are_those_published(device):
    if device.startswith("cuda"):
        pytest.importorskip("torch", reason="torch is not installed")
    walk, steps = loaded("train").Walk(TAPE, device), len(TAPE["each_step"]["window"])
    losses = [walk.train_step() for _ in range(steps)]
    assert losses[0] > 3 and losses[-1] < 0.5  # ln 22 = 3.1 for letters drawn at random
    got = {"contract": trireme.contract_version, "tape": hashlib.sha256((EXAMPLE / "tape.json").read_bytes()).hexdigest(),
           "steps": steps, "loss": losses[-1], "sha256": walk.digest()}
    if os.environ.get("BLESS") and device == "reference":
        publish(EXAMPLE / "published.json", got)
    assert got == json.loads((EXAMPLE / "published.json").read_text())


def test_every_call_has_the_same_bits_in_the_interpreter_of_gpu_kernels_and_in_webassembly():
    """Which run no plans, and so cannot walk the tape from here."""
    walk, lines = loaded("train").Walk(TAPE, "reference"), {}
    for part in ("start", "step"):
        walk.walk(part)
    for key, plan in walk.plans.items():
        part, index = key.split()[:2]
        lines[plan.line] = TAPE["programs"][TAPE[part][int(index)]["program"]]
    assert len(lines) > 30
    others = [name for name, missing in trireme.devices().items() if name in ("lanes", "wasm") and not missing]
    for line, text in lines.items():
        trireme.verify(line, text=text, devices=others)

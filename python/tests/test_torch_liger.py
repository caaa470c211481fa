"""Every architecture that Liger patches: patched by Trireme it computes what it did, with images' towers beside it too."""
import copy

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("transformers", reason="transformers is not installed")

import tiny_models
from test_torch_models import ARCHITECTURES
from test_torch_patch import TAKEN
import trireme.torch as tt


@pytest.mark.parametrize("name", [name for name in tiny_models.LIGER if name not in {**ARCHITECTURES, **TAKEN}])
def test_ligers_architectures(name):
    """Logits, loss and gradients, in evaluation and in training; the others of the list have their tests there."""
    model, inputs = tiny_models.tiny(name)
    patched = copy.deepcopy(model)
    report = tt.patch(patched)
    if name == "pixtral":  # the tower alone, which llava has
        assert "rope" in str(report) and "labels" not in inputs
    else:
        assert "linear_cross_entropy" in report.get("", ""), report
    tiny_models.grow(model)
    tiny_models.grow(patched)
    worst, what = tiny_models.compare(model, patched, inputs)
    assert worst <= 5e-4, (worst, what)


def test_a_head_is_taken_once():
    """Llama 4's model of images and texts has a model inside that has the same head."""
    model, _ = tiny_models.tiny("llama4")
    for _ in range(2):
        report = tt.patch(model)
        assert "language_model" not in report and "that of the model around it" in report.left["language_model"]
    tt.unpatch(model)
    assert tt.patch(model.language_model)[""] == "linear_cross_entropy"
    assert tt.patch(model)[""] == "linear_cross_entropy", "a model around one that was patched before"
    tt.unpatch(model)
    assert type(model.get_output_embeddings()) is torch.nn.Linear

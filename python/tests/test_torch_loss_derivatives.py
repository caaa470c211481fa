"""Second derivatives of losses of a linear layer and of logits that may be overwritten: torch's own, or refused in words."""
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
F = torch.nn.functional

import trireme.torch as tt
from test_torch_losses import IDS, VARIANTS, plain, problem, torchs


def penalty(loss, leaves):
    """The gradient of a loss and of the square of its gradient, which second derivatives make."""
    grads = torch.autograd.grad(loss, leaves, create_graph=True)
    return torch.autograd.grad(loss + sum(each.square().sum() for each in grads), leaves)


@pytest.mark.parametrize("variant", VARIANTS, ids=IDS)
def test_fault_55_second_derivatives_of_linear_losses(variant):
    """They were dropped without a word where the loss had a gradient of its own beside the penalty."""
    input, matrix, bias, _, target, weight = problem(variant)
    leaves = [each.clone().requires_grad_() for each in (input, matrix, bias)]
    for reduction in ("none", "sum", "mean"):
        wanted = torchs(F.linear(*leaves), target, weight, -100, reduction, variant["smoothing"], softcap=variant["softcap"],
                        z_loss=variant["z_loss"])
        made = tt.linear_cross_entropy(*leaves[:2], target, linear_bias=leaves[2], weight=weight, reduction=reduction, chunk=4,
                                       label_smoothing=variant["smoothing"], softcap=variant["softcap"], z_loss=variant["z_loss"])
        for mine, theirs in zip(penalty(made.sum(), leaves), penalty(wanted.sum(), leaves)):
            torch.testing.assert_close(mine, theirs, rtol=1e-9, atol=1e-10)
    wanted = F.linear(*leaves).log_softmax(-1).gather(-1, target.clamp(0)[:, None])[:, 0][target >= 0].square().sum()
    made = tt.linear_log_probability(*leaves[:2], target, linear_bias=leaves[2])[0].square().sum()
    for mine, theirs in zip(penalty(made, leaves), penalty(wanted, leaves)):
        torch.testing.assert_close(mine, theirs, rtol=1e-9, atol=1e-10)


@pytest.mark.filterwarnings("ignore:Using backward.* with create_graph=True")
def test_fault_55_third_derivatives_part_of_the_leaves_and_hooks():
    input, matrix, *_, target, _ = plain()
    leaf, seen = input.clone().requires_grad_(), []
    found = []
    for call in (lambda x: tt.linear_cross_entropy(x, matrix, target), lambda x: F.cross_entropy(F.linear(x, matrix), target)):
        value = call(leaf)
        for _ in range(3):
            (grad,) = torch.autograd.grad(value, leaf, create_graph=True)
            value = grad.pow(3).sum()
        found.append(grad)
    torch.testing.assert_close(*found, rtol=1e-8, atol=1e-10)
    leaf.register_hook(seen.append)
    tt.linear_cross_entropy(leaf, matrix, target).backward(create_graph=True)
    assert len(seen) == 1 and leaf.grad.requires_grad


def test_fault_55_second_derivatives_of_logits_that_were_overwritten_are_refused():
    *_, logits, target, _ = plain()
    leaf = logits.clone().requires_grad_()
    with pytest.raises(NotImplementedError, match="use in_place=False"):
        penalty(tt.cross_entropy(leaf * 1, target, in_place=True), leaf)
    for mine, theirs in zip(penalty(tt.cross_entropy(leaf * 1, target), [leaf]), penalty(F.cross_entropy(leaf, target), [leaf])):
        torch.testing.assert_close(mine, theirs, rtol=1e-9, atol=1e-10)

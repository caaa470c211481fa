"""Rotary embedding against torch's arithmetic and against transformers' own functions."""
import itertools

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

import trireme.torch as tt


def halves(x):
    left, right = x.chunk(2, -1)
    return torch.cat([-right, left], -1)


def neighbours(x):
    return torch.stack([-x[..., 1::2], x[..., ::2]], -1).flatten(-2)


def wanted(x, cos, sin, heads_axis, interleaved):
    cos, sin = (each if each.shape[-1] == x.shape[-1] else
                each.repeat_interleave(2, -1) if interleaved else torch.cat([each, each], -1) for each in (cos, sin))
    cos, sin = (each.unsqueeze(heads_axis) for each in (cos, sin))
    return x * cos + (neighbours(x) if interleaved else halves(x)) * sin


LAYOUTS = ["tokens first", "heads first", "packed"]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("interleaved", [False, True])
def test_rope_is_torchs(layout, interleaved):
    samples, heads, tokens, columns = 3, 4, 7, 10
    for shared, is_half, heads_axis, learned in itertools.product((True, False), (True, False), (1, 2), (True, False)):
        def draw(count):
            if layout == "packed":
                memory = torch.randn(samples, tokens, count + 3, columns, dtype=torch.float64)[:, :, 2:2 + count]
            elif layout == "heads first":
                memory = torch.randn(samples, count, tokens, columns, dtype=torch.float64).transpose(1, 2)
            else:
                memory = torch.randn(samples, tokens, count, columns, dtype=torch.float64)
            return (memory.transpose(1, 2) if heads_axis == 1 else memory).requires_grad_()

        q, k = draw(heads), draw(2)
        cos, sin = (torch.randn(1 if shared else samples, tokens, columns // (1 + is_half), dtype=torch.float64)
                    .requires_grad_(learned) for _ in range(2))
        made = tt.rope(q, k, cos, sin, None, heads_axis, interleaved=interleaved)
        want = [wanted(each, cos, sin, heads_axis, interleaved) for each in (q, k)]
        leaves = [q, k, *[cos, sin] * learned]
        for mine, theirs in zip(made, want):
            torch.testing.assert_close(mine, theirs, rtol=1e-12, atol=1e-12)
        dy = [torch.randn_like(each) for each in want]
        for mine, theirs in zip(torch.autograd.grad(made, leaves, dy), torch.autograd.grad(want, leaves, dy)):
            torch.testing.assert_close(mine, theirs, rtol=1e-11, atol=1e-11)


def test_rounded_is_torchs_to_the_bit_and_nothing_is_saved():
    x = torch.randn(2, 4, 5, 64).bfloat16()
    cos, sin = torch.randn(2, 5, 64).bfloat16(), torch.randn(2, 5, 64).bfloat16()
    (made, none) = tt.rope(x, None, cos, sin, rounded=True)
    assert none is None and torch.equal(made, wanted(x, cos, sin, 1, False))
    x = x.requires_grad_()
    dy = torch.randn_like(x)
    for interleaved in (False, True):  # gradients too
        mine = torch.autograd.grad(tt.rope(x, None, cos, sin, rounded=True, interleaved=interleaved)[0], x, dy)[0]
        assert torch.equal(mine, torch.autograd.grad(wanted(x, cos, sin, 1, interleaved), x, dy)[0])
    saved = []
    with torch.autograd.graph.saved_tensors_hooks(lambda each: saved.append(each.shape) or each, lambda each: each):
        tt.rope(x, None, cos, sin)
    assert x.transpose(1, 2).shape not in saved and x.shape not in saved, saved


def test_derivatives_of_every_kind():
    x, cos, sin = (torch.randn(shape, dtype=torch.float64) for shape in ((2, 4, 5, 6), (1, 5, 6), (1, 5, 6)))
    for interleaved in (False, True):
        def work(x):
            return tt.rope(x, None, cos, sin, interleaved=interleaved)[0]

        leaf = x.clone().requires_grad_()
        assert torch.autograd.gradcheck(work, leaf) and torch.autograd.gradgradcheck(work, leaf)
        tangent = torch.randn_like(x)
        made = torch.func.jvp(work, (x,), (tangent,))[1]
        torch.testing.assert_close(made, wanted(tangent, cos, sin, 1, interleaved))
        with torch.autograd.forward_ad.dual_level():
            dual = torch.autograd.forward_ad.make_dual(x, tangent)
            torch.testing.assert_close(torch.autograd.forward_ad.unpack_dual(work(dual)).tangent, made)
        grads = torch.func.grad(lambda x: work(x).square().sum())(x)
        torch.testing.assert_close(grads, torch.autograd.grad(wanted(leaf, cos, sin, 1, interleaved).square().sum(), leaf)[0])


@pytest.mark.parametrize("layout", [0, 1])
def test_one_of_anything(layout):
    """One sample, one head (keys of multi-query attention), one token (generation)."""
    for samples, heads, tokens, shared, learned in itertools.product((1, 2), (1, 3), (1, 4), (True, False), (True, False)):
        x = torch.randn(samples, tokens, heads, 6, dtype=torch.float64).transpose(1, 2)
        x = (x.contiguous() if layout else x).requires_grad_()
        cos, sin = (torch.randn(1 if shared else samples, tokens, 6, dtype=torch.float64).requires_grad_(learned)
                    for _ in range(2))
        leaves = [x, *[cos, sin] * learned]
        for interleaved in (False, True):
            for dim in (1, 2):
                given = x if dim == 1 else x.transpose(1, 2)
                mine, theirs = tt.rope(given, None, cos, sin, None, dim, interleaved=interleaved)[0], wanted(
                    given, cos, sin, dim, interleaved)
                torch.testing.assert_close(mine, theirs)
                dy = torch.randn_like(theirs)
                for a, b in zip(torch.autograd.grad(mine, leaves, dy), torch.autograd.grad(theirs, leaves, dy)):
                    torch.testing.assert_close(a, b)


def test_queries_and_keys_have_graphs_of_their_own():
    q, k, cos, sin = (torch.randn(shape) for shape in ((2, 4, 5, 6), (2, 2, 5, 6), (1, 5, 6), (1, 5, 6)))
    leaves = [each.requires_grad_() for each in (q, k)]
    for leaf, made in zip(leaves, tt.rope(*leaves, cos, sin)):
        assert torch.autograd.grad(made.sum(), leaf)[0].shape == leaf.shape


def test_positions_and_errors():
    q, k = torch.randn(2, 4, 5, 8), torch.randn(2, 2, 5, 8)
    cos, sin = torch.randn(30, 8), torch.randn(30, 8)
    places = torch.randint(30, (2, 5))
    for mine, theirs in zip(tt.rope(q, k, cos, sin, places), tt.rope(q, k, cos[places], sin[places])):
        assert torch.equal(mine, theirs)
    for mine, theirs in zip(tt.rope(q, k, cos[:5], sin[:5]), tt.rope(q, k, cos[None, :5], sin[None, :5])):
        assert torch.equal(mine, theirs)
    for wrong in ((cos[:4], sin[:4]), (cos[:5, :6], sin[:5, :6]), (cos[:5], sin[:5, :4])):
        with pytest.raises(ValueError, match="do not rotate"):
            tt.rope(q, k, *wrong)
    compiled = torch.compile(lambda q, k: tt.rope(q, k, cos[:5], sin[:5])[0].sum(), fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(q, k), tt.rope(q, k, cos[:5], sin[:5])[0].sum())

    def work(q, k, interleaved):
        made = tt.rope(q, k, cos[:5], sin[:5], interleaved=interleaved)
        return (made[0] * made[0][:, :1]).sum() + made[1].square().sum()

    compiled = torch.compile(work, fullgraph=True, backend="aot_eager")
    leaves = [each.requires_grad_() for each in (q, k)]
    for interleaved in (False, True):
        for mine, theirs in zip(*(torch.autograd.grad(each(*leaves, interleaved), leaves) for each in (compiled, work))):
            torch.testing.assert_close(mine, theirs)


@pytest.mark.parametrize("name", ["llama", "qwen3", "cohere", "glm"])
def test_rope_is_transformers(name):
    pytest.importorskip("transformers", reason="transformers is not installed")
    import importlib
    module = importlib.import_module(f"transformers.models.{name}.modeling_{name}")
    interleaved = name in ("cohere", "glm")
    q, k = torch.randn(2, 5, 4, 16).transpose(1, 2), torch.randn(2, 5, 2, 16).transpose(1, 2)
    angles = torch.randn(2, 5, 8)
    angles = angles.repeat_interleave(2, -1) if name == "cohere" else torch.cat([angles, angles], -1)
    theirs = module.apply_rotary_pos_emb(q, k, angles.cos(), angles.sin())
    cos, sin = (each[..., :8] if name == "glm" else each for each in (angles.cos(), angles.sin()))
    for a, b in zip(tt.rope(q, k, cos, sin, interleaved=interleaved), theirs):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-5)

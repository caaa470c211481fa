"""Losses against torch's own, in f64 and f32; chunks, memory, checks."""
import inspect
import itertools

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
F = torch.nn.functional

import trireme.torch as tt

VARIANTS = [dict(zip(("weighted", "smoothing", "softcap", "z_loss"), each))
            for each in itertools.product((False, True), (0.0, 0.1), (None, 3.0), (0.0, 0.01))]
IDS = ["-".join(name for name, has in each.items() if has) or "plain" for each in VARIANTS]


def torchs(logits, target, weight, ignore_index, reduction, smoothing, softcap, z_loss):
    """The definition, by torch's own functions."""
    v = logits if softcap is None else softcap * torch.tanh(logits / softcap)
    loss = F.cross_entropy(v, target, weight, ignore_index=ignore_index, reduction=reduction, label_smoothing=smoothing)
    kept = target != ignore_index
    squares = z_loss * torch.logsumexp(v, -1).square() * kept
    return loss + (squares if reduction == "none" else squares.sum() if reduction == "sum" else squares.sum() / kept.sum())


def problem(variant, dtype=torch.float64, tokens=13, hidden=5, classes=33, ignore_index=-100):
    generator = torch.Generator().manual_seed(3)

    def draw(*shape):
        return torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype)

    input, matrix, bias, logits = draw(tokens, hidden), draw(classes, hidden), draw(classes), 3 * draw(tokens, classes)
    target = torch.randint(classes, (tokens,), generator=generator)
    target[[2, 7]] = ignore_index
    weight = draw(classes).abs() if variant["weighted"] else None
    return input, matrix, bias, logits, target, weight


@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
@pytest.mark.parametrize("variant", VARIANTS, ids=IDS)
def test_cross_entropy_is_torchs(variant, reduction):
    *_, logits, target, weight = problem(variant)
    extra = dict(softcap=variant["softcap"], z_loss=variant["z_loss"])
    for in_place, ignore_index in ((False, -100), (False, 1 << 40), (True, 5)):
        target = torch.where(target < 0, ignore_index, target)
        leaf, same = logits.clone().requires_grad_(), logits.clone().requires_grad_()
        wanted = torchs(same, target, weight, ignore_index, reduction, variant["smoothing"], **extra)
        made = tt.cross_entropy(leaf * 1, target, weight, ignore_index=ignore_index, reduction=reduction,
                                label_smoothing=variant["smoothing"], in_place=in_place, **extra)
        torch.testing.assert_close(made, wanted, rtol=1e-11, atol=1e-11)
        dy = torch.randn(made.shape, dtype=made.dtype)
        torch.testing.assert_close(*torch.autograd.grad(made, leaf, dy), *torch.autograd.grad(wanted, same, dy),
                                   rtol=1e-10, atol=1e-11)
        target = torch.where(target == ignore_index, -100, target)


@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
@pytest.mark.parametrize("variant", VARIANTS, ids=IDS)
def test_linear_cross_entropy_is_torchs(variant, reduction):
    input, matrix, bias, _, target, weight = problem(variant)
    extra = dict(softcap=variant["softcap"], z_loss=variant["z_loss"])
    for chunk, biased in ((None, True), (4, False), (1, True), (13, False)):
        leaves = [each.clone().requires_grad_() for each in (input, matrix, *[bias] * biased)]
        wanted = torchs(F.linear(*leaves), target, weight, -100, reduction, variant["smoothing"], softcap=variant["softcap"],
                        z_loss=variant["z_loss"])
        extra["linear_bias"] = leaves[2] if biased else None
        made = tt.linear_cross_entropy(*leaves[:2], target, weight=weight, reduction=reduction,
                                       label_smoothing=variant["smoothing"], chunk=chunk, **extra)
        torch.testing.assert_close(made, wanted, rtol=1e-11, atol=1e-11)
        with torch.no_grad():
            torch.testing.assert_close(tt.linear_cross_entropy(
                *leaves[:2], target, weight=weight, reduction=reduction,
                label_smoothing=variant["smoothing"], chunk=chunk, **extra), wanted.detach(), rtol=1e-11, atol=1e-11)
        dy = torch.randn(made.shape, dtype=made.dtype)
        for mine, theirs in zip(torch.autograd.grad(made, leaves, dy), torch.autograd.grad(wanted, leaves, dy)):
            torch.testing.assert_close(mine, theirs, rtol=1e-10, atol=1e-11)


def plain(**named):
    return problem(dict(weighted=False), **named)


def definition(input, linear_weight, target, *, linear_bias=None, weight=None, ignore_index=None, **more):
    """What torch.nn.functional.linear_cross_entropy says it is, for torch that has none."""
    logits = F.linear(input, linear_weight.flatten(0, -2), None if linear_bias is None else linear_bias.flatten())
    return F.cross_entropy(logits.view(*input.shape[:-1], *linear_weight.shape[:-1]), target, weight,
                           ignore_index=-100 if ignore_index is None else ignore_index, **more)


THEIRS = getattr(F, "linear_cross_entropy", definition)


@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
@pytest.mark.parametrize("shape, positions, of_probabilities", [
    ((), (), False), ((13,), (), False), ((13,), (3,), False), ((13,), (3, 2), False), ((), (), True), ((13,), (), True),
    ((13,), (3,), True), ((13,), (3, 2), True)])
def test_linear_cross_entropy_takes_what_torchs_does(shape, positions, of_probabilities, reduction):
    """Of one row and of many, of one loss and of K dimensions, of classes and of probabilities."""
    generator = torch.Generator().manual_seed(8)

    def draw(*size):
        return torch.randn(size, generator=generator, dtype=torch.float64)

    input, matrix, bias, weight = draw(*shape, 5), draw(7, *positions, 5), draw(7, *positions), draw(7).abs()
    if of_probabilities:
        target, ignored = draw(*shape, 7, *positions).softmax(-1 - len(positions)), [None]
    else:
        target, ignored = torch.randint(7, (*shape, *positions), generator=generator), [None, 3]
        target = target if shape else torch.tensor(2)  # of nothing but what is ignored the mean is NaN
    leaves = [each.requires_grad_() for each in (input, matrix, bias)]
    for extra, ignore_index in itertools.product((dict(), dict(weight=weight), dict(label_smoothing=0.1)), ignored):
        made, wanted = (each(input, matrix, target, linear_bias=bias, reduction=reduction, ignore_index=ignore_index, **extra)
                        for each in (tt.linear_cross_entropy, THEIRS))
        same(made, wanted, leaves)
    theirs = [name for name in inspect.signature(THEIRS).parameters if THEIRS is not definition]
    assert [name for name in inspect.signature(tt.linear_cross_entropy).parameters][:len(theirs)] == theirs


def test_linear_cross_entropy_refuses_what_torchs_does():
    input, matrix, bias, _, target, _ = plain()
    for wrong in (lambda: tt.linear_cross_entropy(input, matrix[0], target),
                  lambda: tt.linear_cross_entropy(input, matrix, target, linear_bias=bias[:3]),
                  lambda: tt.linear_cross_entropy(input[0], matrix[:, None], target[:1]),
                  lambda: tt.linear_cross_entropy(input, matrix, torch.rand(13, 33, dtype=torch.float64), ignore_index=3),
                  lambda: tt.linear_cross_entropy(input, matrix, target, weight=bias.clone().requires_grad_())):
        with pytest.raises(RuntimeError):
            wrong()


@pytest.mark.parametrize("positions", [(), (3, 2)])
def test_the_linear_module_is_torchs(positions):
    torch.manual_seed(5)
    mine = tt.LinearCrossEntropyLoss(5, 7, out_features=positions, bias=True, weight=torch.rand(7), label_smoothing=0.1)
    input, target = torch.randn(13, 5), torch.randint(7, (13, *positions))
    wanted = definition(input, mine.linear.weight.view(7, *positions, 5), target, weight=mine.weight, label_smoothing=0.1,
                        linear_bias=mine.linear.bias.view(7, *positions))
    torch.testing.assert_close(mine(input, target), wanted)
    with pytest.raises(RuntimeError, match="expected weight shape"):
        tt.LinearCrossEntropyLoss(5, 7, weight=torch.rand(5))
    if not hasattr(torch.nn, "LinearCrossEntropyLoss"):
        return  # torch 2.13's
    names = {kind: list(inspect.signature(kind).parameters) for kind in (torch.nn.LinearCrossEntropyLoss, tt.LinearCrossEntropyLoss)}
    theirs, ours = names.values()
    assert ours[:len(theirs)] == theirs
    theirs = torch.nn.LinearCrossEntropyLoss(5, 7, out_features=positions, bias=True, weight=torch.rand(7), label_smoothing=0.1)
    theirs.load_state_dict(mine.state_dict(), strict=True)
    torch.testing.assert_close(theirs(input, target), mine(input, target))
    assert repr(theirs) == repr(mine)


def test_weight_gradients_added_up_in_f32():
    """Over 256 chunks of bf16: in their own type a sum loses what is smaller than its last place."""
    input, matrix, bias, _, target, _ = plain(tokens=2048, hidden=16, classes=33)
    rounded = [each.bfloat16() for each in (input, matrix, bias)]
    exact = [each.double().requires_grad_() for each in rounded]
    F.cross_entropy(F.linear(*exact), target).backward()
    errors = {}
    for acc_dtype, reduction in itertools.product((None, torch.bfloat16, torch.float32), ("mean", "none")):
        leaves = [each.clone().requires_grad_() for each in rounded]
        loss = tt.linear_cross_entropy(*leaves[:2], target, linear_bias=leaves[2], chunk=8, acc_dtype=acc_dtype, reduction=reduction)
        (loss if reduction == "mean" else loss.sum() / (target >= 0).sum()).backward()
        errors[acc_dtype, reduction] = [float((leaf.grad.double() - want.grad).norm() / want.grad.norm())
                                        for leaf, want in zip(leaves, exact)][1:]
    for reduction in ("mean", "none"):
        assert errors[None, reduction] == errors[torch.bfloat16, reduction]
        for wide, narrow in zip(errors[torch.float32, reduction], errors[None, reduction]):
            assert wide < 3e-3 < 3 * wide < narrow, errors
    with pytest.raises(RuntimeError, match="added up"):
        tt.linear_cross_entropy(*leaves[:2], target, acc_dtype=torch.float16)


@pytest.mark.skipif(not hasattr(torch.nn, "LinearCrossEntropyOptions"), reason="torch 2.13 has the options")
def test_options_are_torchs():
    from trireme.torch import _linear
    options = torch.nn.LinearCrossEntropyOptions
    for method, size in (("auto", None), ("aspect_ratio", None), ("aspect_ratio:4", None), (None, 7), (None, None), ("auto", 7)):
        for tokens, hidden, classes in ((1, 4, 9), (64, 8, 1000), (1000, 64, 4096), (5, 16, 7)):
            given = options(chunking_method=method, batch_chunk_size=size)
            mine = _linear.chunk_of(given, torch.empty(tokens, hidden), torch.empty(classes, hidden))
            if method == "auto" and size is None:
                assert mine is None  # ours
                continue
            theirs = given._adjust(tokens, hidden, classes, torch.float32)
            assert min(mine, tokens) == theirs.batch_chunk_size, (method, tokens, hidden, classes)
    input, matrix, *_, target, _ = plain(tokens=64, hidden=16)
    leaves = [each.bfloat16().requires_grad_() for each in (input, matrix)]
    grads = []
    for more in (dict(options=options(batch_chunk_size=4, acc_dtype=torch.float32)), dict(chunk=4, acc_dtype=torch.float32),
                 dict(options=options(batch_chunk_size=4, acc_policy="compact", acc_dtype=torch.float32)), dict(chunk=4)):
        grads.append(torch.autograd.grad(tt.linear_cross_entropy(*leaves, target, **more), leaves[1])[0])
    assert torch.equal(grads[0], grads[1]) and torch.equal(grads[2], grads[3]) and not torch.equal(grads[1], grads[2])


def test_linear_cross_entropy_twice_with_part_of_the_gradients_and_none():
    input, matrix, _, _, target, _ = plain()
    for needs in ((True, False), (False, True), (True, True)):
        leaves = [each.clone().requires_grad_(has) for each, has in zip((input, matrix), needs)]
        loss = tt.linear_cross_entropy(*leaves, target, chunk=4)
        leaves = [each for each in leaves if each.requires_grad]
        first = torch.autograd.grad(loss * 3, leaves, retain_graph=True)
        second = torch.autograd.grad(loss, leaves)
        for a, b in zip(first, second):
            torch.testing.assert_close(a, 3 * b)
        with pytest.raises(RuntimeError, match="second time"):
            torch.autograd.grad(loss, leaves)
    assert tt.linear_cross_entropy(input, matrix, torch.full_like(target, -100)).isnan()
    assert tt.linear_cross_entropy(input[:0], matrix, target[:0], reduction="sum") == 0
    leaf = torch.empty(0, 5, dtype=torch.float64, requires_grad=True)
    tt.linear_cross_entropy(leaf, matrix.requires_grad_(), target[:0], reduction="sum").backward()
    assert torch.equal(matrix.grad, torch.zeros_like(matrix))


def test_what_was_changed_since_is_noticed():
    *_, logits, target, _ = plain()
    leaf = logits.clone().requires_grad_()
    scaled = leaf * 1
    other = scaled.square().sum()  # has saved the logits
    loss = tt.cross_entropy(scaled, target, in_place=True)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        (loss + other).backward()
    scaled = leaf * 1
    loss = tt.cross_entropy(scaled, target, in_place=True)
    memory = scaled.data_ptr()
    (grad,) = torch.autograd.grad(loss, scaled, retain_graph=True)
    assert grad.data_ptr() == memory, "the gradient has memory of its own"
    with pytest.raises(RuntimeError, match="second time"):
        torch.autograd.grad(loss, scaled)
    for mine in (leaf, leaf.view(-1, leaf.shape[-1])):  # as torch of any operation in place
        with pytest.raises(RuntimeError, match="a leaf that requires grad"):
            tt.cross_entropy(mine, target, in_place=True)
    assert torch.equal(leaf, logits)


def test_logits_that_were_expanded_are_not_overwritten():
    *_, logits, _, _ = plain()
    leaf, target = logits[:1].clone().requires_grad_(), torch.tensor([3, 1, 0])
    same(tt.cross_entropy((leaf * 1).expand(3, -1), target, in_place=True), F.cross_entropy(leaf.expand(3, -1), target), [leaf])


def test_shapes_and_devices_at_the_edge():
    """One token without an axis, part of a sequence, none at all, no memory."""
    input, matrix, _, _, target, _ = plain()
    leaf, weight = input[0].clone().requires_grad_(), matrix.clone().requires_grad_()
    one = tt.linear_cross_entropy(leaf, weight, target[0])
    same(one, F.cross_entropy(weight @ leaf, target[0]), [leaf, weight])
    part = input.repeat(3, 1, 1)[:, :-1].requires_grad_()
    labels = target.clamp(0).repeat(3, 1)[:, 1:]
    same(tt.linear_cross_entropy(part, weight.t().contiguous().t(), labels),
         F.cross_entropy(F.linear(part, weight).flatten(0, 1), labels.flatten()), [part, weight])
    none = torch.empty(0, 33)
    assert tt.cross_entropy(none, none).isnan() and tt.cross_entropy(none, none, reduction="sum") == 0
    assert tt.cross_entropy(input[:0], target[:0]).isnan() and tt.cross_entropy(
        input[:0].requires_grad_(), target[:0], reduction="sum", label_smoothing=0.1) == 0
    with torch.device("meta"):
        assert tt.linear_cross_entropy(torch.empty(5, 6), torch.empty(9, 6), torch.empty(5, dtype=torch.long)).is_meta
    assert torch.func.grad(lambda x: tt.cross_entropy(x, target[:2], label_smoothing=0.1, z_loss=0.1))(
        torch.randn(2, 33)).shape == (2, 33)


def test_memory_of_one_chunk(monkeypatch):
    """The largest array that is made is a chunk's logits, and it is made once."""
    from torch.utils._python_dispatch import TorchDispatchMode
    from trireme.torch import _linear
    made = []

    class Recorder(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, arguments=(), named=None):
            found = function(*arguments, **(named or {}))
            if isinstance(found, torch.Tensor) and "empty" in str(function):
                made.append(found.numel())
            return found

    input, matrix, *_ = plain(tokens=64, classes=129, hidden=8)
    target = torch.arange(64)
    operator = __import__("trireme.torch._loss_programs", fromlist=["_"]).cross_entropy(scaled=True, with_gradient=True)
    arguments = (input, matrix, None, target.int(), None, None, torch.ones((), dtype=torch.float64), None, [],
                 operator.operator.text, 16, False, 3)
    with Recorder():
        _linear._summed(*arguments)
    assert sorted(each for each in made if each > 64)[-3:] == [64 * 8, 129 * 8, 16 * 129]
    assert _linear.tokens_of(torch.empty(1, dtype=torch.bfloat16), torch.empty(128256, 1), None) == 2048
    with pytest.raises(ValueError, match="at least one"):
        tt.linear_cross_entropy(input, matrix, target, chunk=0)


def test_probabilities_as_targets():
    *_, logits, target, weight = problem(dict(weighted=True))
    soft = torch.rand(logits.shape, dtype=torch.float64).softmax(-1)
    for reduction, smoothing, classes in itertools.product(("none", "sum", "mean"), (0.0, 0.2), (None, weight)):
        leaves, same = ([each.clone().requires_grad_() for each in (logits, soft)] for _ in range(2))
        made = tt.cross_entropy(*leaves, classes, reduction=reduction, label_smoothing=smoothing)
        wanted = F.cross_entropy(*same, classes, reduction=reduction, label_smoothing=smoothing)
        torch.testing.assert_close(made, wanted, rtol=1e-11, atol=1e-11)
        dy = torch.randn(made.shape, dtype=made.dtype)
        for mine, theirs in zip(torch.autograd.grad(made, leaves, dy), torch.autograd.grad(wanted, same, dy)):
            torch.testing.assert_close(mine, theirs, rtol=1e-10, atol=1e-11)
        if classes is not None:  # a gradient of theirs is torch's too, if targets are probabilities
            leaf, other = (classes.clone().requires_grad_() for _ in range(2))
            made, wanted = (f.cross_entropy(logits, soft, each, reduction=reduction, label_smoothing=smoothing).sum()
                            for f, each in ((tt, leaf), (F, other)))
            torch.testing.assert_close(*torch.autograd.grad(made, leaf), *torch.autograd.grad(wanted, other), rtol=1e-10, atol=1e-11)
    for call in (lambda: tt.cross_entropy(logits, target, weight.requires_grad_()),
                 lambda: F.cross_entropy(logits, target, weight.requires_grad_())):
        with pytest.raises(RuntimeError, match="not differentiable"):
            call()


@pytest.mark.parametrize("shape", [(7,), (2, 7, 3), (2, 7, 3, 5)])
@pytest.mark.parametrize("in_place", [False, True])
def test_classes_along_the_second_axis(shape, in_place):
    images = torch.randn(shape, dtype=torch.float64, requires_grad=True)
    classes = torch.randint(7, (*shape[:1], *shape[2:]) if len(shape) > 1 else ())
    for extra in (dict(), dict(label_smoothing=0.1, reduction="sum")):
        same(tt.cross_entropy(images * 1, classes, in_place=in_place, **extra), F.cross_entropy(images, classes, **extra), [images])


def test_modules_and_positions_as_torchs():
    *_, logits, target, weight = problem(dict(weighted=True))
    mine, theirs = (module(weight, label_smoothing=0.1) for module in (tt.CrossEntropyLoss, torch.nn.CrossEntropyLoss))
    torch.testing.assert_close(mine(logits, target), theirs(logits, target))
    assert mine.state_dict().keys() == theirs.state_dict().keys()
    torch.testing.assert_close(tt.cross_entropy(logits, target.clamp(0), weight, None, 3, None, "sum", 0.1),
                               F.cross_entropy(logits, target.clamp(0), weight, None, 3, None, "sum", 0.1))
    input, matrix, *_ = problem(dict(weighted=True))
    for wrong, error in [(dict(reduction="avg"), ValueError), (dict(label_smoothing=1.5), RuntimeError),
                         (dict(weight=weight[:3]), RuntimeError)]:
        with pytest.raises(error):
            tt.cross_entropy(logits, target, **wrong)
    with pytest.raises(IndexError):
        tt.linear_cross_entropy(input, matrix, torch.full((13,), 33))
    with pytest.raises(RuntimeError):
        tt.linear_cross_entropy(input, matrix[:, :3], target)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_16_bit_losses_are_as_near_as_torchs(dtype):
    input, matrix, _, _, target, _ = plain(dtype=torch.float64, tokens=64, hidden=32, classes=257)
    input, matrix = input.to(dtype), (matrix / 6).to(dtype)
    exact = [each.double().requires_grad_() for each in (input, matrix)]
    wanted = F.cross_entropy(F.linear(*exact), target)
    wanted.backward()
    errors = {}
    for name, loss in (("ours", lambda x, w: tt.linear_cross_entropy(x, w, target, chunk=16)),
                       ("torch", lambda x, w: F.cross_entropy(F.linear(x, w), target))):
        leaves = [each.clone().requires_grad_() for each in (input, matrix)]
        made = loss(*leaves)
        made.backward()
        errors[name] = [float((a.detach().double() - b.detach()).abs().max() / b.detach().abs().max()) for a, b in
                        [(made, wanted), *((leaf.grad, want.grad) for leaf, want in zip(leaves, exact))]]
    assert all(mine <= 2 * theirs + 2 * torch.finfo(dtype).eps for mine, theirs in zip(*errors.values())), errors


@pytest.mark.parametrize("in_place", [False, True])
def test_scaled_f16_loses_no_gradient(in_place):
    """A mean over 2048 rows of probabilities of 1 / 8192: gradients of logits are below f16's numbers, but for a scale. Looked at
    are classes that are no row's target."""
    generator = torch.Generator().manual_seed(4)
    input, matrix = (torch.randn(shape, generator=generator).half() for shape in ((2048, 4), (8192, 4)))
    matrix *= 0.1
    target = torch.randint(8, (2048,), generator=generator)
    exact = [each.double().requires_grad_() for each in (input, matrix)]
    F.cross_entropy(F.linear(*exact), target).backward()
    errors = {}
    for name, loss in (("ours", (lambda x, w: tt.cross_entropy(F.linear(x, w), target, in_place=True, z_loss=1e-9)) if in_place
                        else lambda x, w: tt.linear_cross_entropy(x, w, target, chunk=512, z_loss=1e-9)),
                       ("torch", lambda x, w: F.cross_entropy(F.linear(x, w), target))):
        leaves = [each.clone().requires_grad_() for each in (input, matrix)]
        made = loss(*leaves)
        (made * 4096).backward()
        errors[name] = [float((leaf.grad.double() / 4096 - want.grad)[rows].norm() / want.grad[rows].norm())
                        for leaf, want, rows in zip(leaves, exact, (slice(None), slice(8, None)))]
        assert abs(float(made.detach()) - float(F.cross_entropy(F.linear(*exact), target).detach())) < 2e-2
    assert all(mine <= 2 * theirs + 2e-3 for mine, theirs in zip(errors["ours"], errors["torch"])), errors


def test_log_probability_and_entropy():
    input, matrix, bias, _, target, _ = plain()
    leaves, same = ([each.clone().requires_grad_() for each in (input, matrix, bias)] for _ in range(2))
    logprob, entropy = tt.linear_log_probability(*leaves[:2], target, linear_bias=leaves[2], temperature=0.7, chunk=4)
    v = torch.log_softmax(F.linear(*same) / 0.7, -1)
    kept = target >= 0
    wanted = v.gather(-1, target.clamp(0)[:, None])[:, 0] * kept, -(v.exp() * v).sum(-1) * kept
    for mine, theirs in zip((logprob, entropy), wanted):
        torch.testing.assert_close(mine, theirs, rtol=1e-11, atol=1e-11)
    dy = [torch.randn(13, dtype=torch.float64) for _ in range(2)]
    for only in (0, 1, None):
        pick = slice(None) if only is None else slice(only, only + 1)
        got = torch.autograd.grad((logprob, entropy)[pick], leaves, dy[pick], retain_graph=True)
        for mine, theirs in zip(got, torch.autograd.grad(wanted[pick], same, dy[pick], retain_graph=True)):
            torch.testing.assert_close(mine, theirs, rtol=1e-10, atol=1e-11)
    masked = bias.clone()
    masked[3:20] = -torch.inf
    assert tt.linear_log_probability(input, matrix, target.clamp(max=2), linear_bias=masked)[1].isfinite().all()


@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_compiled_and_autocast(reduction):
    torch._dynamo.reset()
    input, matrix, _, _, target, _ = plain(dtype=torch.float32)

    def work(x, w):
        return tt.linear_cross_entropy(x * 2, w, target, reduction=reduction, chunk=4).sum()

    leaves, same = ([each.clone().requires_grad_() for each in (input, matrix)] for _ in range(2))
    made, wanted = torch.compile(work, fullgraph=True, backend="aot_eager")(*leaves), work(*same)
    assert torch.equal(made, wanted)
    for mine, theirs in zip(torch.autograd.grad(made, leaves), torch.autograd.grad(wanted, same)):
        assert torch.equal(mine, theirs)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = tt.linear_cross_entropy(*leaves, target)
    torch.testing.assert_close(loss, F.cross_entropy(F.linear(*(each.bfloat16() for each in same)).float(), target),
                               rtol=1e-4, atol=1e-4)
    loss.backward()
    assert leaves[0].grad.dtype == torch.float32
    for overload in ("linear_rows", "linear_rows_backward", "linear_summed"):
        schema = getattr(torch.ops.trireme, overload).default._schema
        assert all(str(each.type) == "Tensor" for each in schema.returns)
        assert not any("List[Tensor]" in str(each.type) for each in schema.arguments)


@pytest.mark.parametrize("extra", [dict(), dict(reduction="none"), dict(label_smoothing=0.1), dict(chunk=4, z_loss=0.1)])
def test_compiled_with_dynamic_shapes(extra):
    torch._dynamo.reset()

    def work(x, w, t):
        return tt.linear_cross_entropy(x, w, t, **extra).sum()

    compiled = torch.compile(work, fullgraph=True, dynamic=True, backend="aot_eager")
    input, matrix, _, _, target, _ = plain(dtype=torch.float32)
    for tokens in (13, 5, 9):
        leaves = [each.clone().requires_grad_() for each in (input[:tokens], matrix)]
        made, wanted = (each(*leaves, target[:tokens]) for each in (compiled, work))
        assert torch.equal(made, wanted)
        for mine, theirs in zip(torch.autograd.grad(made, leaves), torch.autograd.grad(wanted, leaves)):
            assert torch.equal(mine, theirs)


def test_transforms_of_torch_func():
    input, matrix, _, _, target, _ = plain()
    target = target.clamp(0)
    for mine, theirs in [
        (lambda x: tt.linear_cross_entropy(x, matrix, target), lambda x: F.cross_entropy(F.linear(x, matrix), target)),
        (lambda x: tt.linear_cross_entropy(x, matrix, target, reduction="none").sum(),
         lambda x: F.cross_entropy(F.linear(x, matrix), target, reduction="sum")),
        (lambda x: tt.linear_log_probability(x, matrix, target)[0].sum(),
         lambda x: -F.cross_entropy(F.linear(x, matrix), target, reduction="sum")),
    ]:
        tangent = torch.randn_like(input)
        for transform in (torch.func.grad, torch.func.jacfwd, lambda each: lambda x: torch.func.jvp(each, (x,), (tangent,))[1]):
            torch.testing.assert_close(transform(mine)(input), transform(theirs)(input), rtol=1e-9, atol=1e-10)


def distributions(dtype=torch.float64):
    generator = torch.Generator().manual_seed(5)
    return [torch.log_softmax(2 * torch.randn(2, 3, 37, generator=generator, dtype=torch.float64), -1).to(dtype)
            for _ in range(2)]


def same(mine, theirs, leaves):
    """Values and gradients."""
    torch.testing.assert_close(mine, theirs, rtol=1e-11, atol=1e-12)
    dy = torch.randn(mine.shape, dtype=mine.dtype)
    for a, b in zip(torch.autograd.grad(mine, leaves, dy), torch.autograd.grad(theirs, leaves, dy, retain_graph=True)):
        torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-12)


@pytest.mark.filterwarnings("ignore:reduction")
@pytest.mark.parametrize("reduction", ["none", "sum", "mean", "batchmean"])
@pytest.mark.parametrize("log_target", [False, True])
def test_kl_div_is_torchs(reduction, log_target):
    x, target = (each.requires_grad_() for each in distributions())
    target = (target if log_target else target.exp()).detach().requires_grad_()
    same(tt.kl_div(x, target, reduction=reduction, log_target=log_target),
         F.kl_div(x, target, reduction=reduction, log_target=log_target), [x, target])
    if not log_target:  # what has no probability counts for nothing
        zeros = torch.where(target > 0.02, target, 0.0).detach()
        same(tt.kl_div(x, zeros, reduction=reduction), F.kl_div(x, zeros, reduction=reduction), [x])
    one, other = torch.tensor(-1.0), torch.tensor(0.5)
    torch.testing.assert_close(tt.kl_div(one, other, reduction="sum"), F.kl_div(one, other, reduction="sum"))


@pytest.mark.parametrize("beta", [0.0, 0.1, 0.5, 1.0])
def test_jsd(beta):
    x, target = (each.requires_grad_() for each in distributions())
    m = (beta * target.exp() + (1 - beta) * x.exp()).log()
    each = beta * target.exp() * (target - m) + (1 - beta) * x.exp() * (x - m)
    if beta in (0.0, 1.0):
        each = target.exp() * (target - x) if beta == 0.0 else x.exp() * (x - target)
    same(tt.jsd(x, target, beta, reduction="none"), each.sum(-1), [x, target])
    same(tt.jsd(x, target, beta), each.sum() / 6, [x, target])
    labels = torch.tensor([[1, -100, 3], [-100, 5, 6]])
    same(tt.jsd(x, target, beta, labels=labels), (each.sum(-1) * (labels != -100)).sum() / 4, [x, target])
    for wrong in (dict(beta=1.5), dict(reduction="mean")):
        with pytest.raises(ValueError):
            tt.jsd(x, target, **wrong)


def test_clamped_swiglu():
    x, gate = (10 * torch.randn(5, 33, dtype=torch.float64) for _ in range(2))
    x[0, :4], gate[0, :4] = torch.tensor([7.0, -7.0, 7.1, 0.0]), torch.tensor([7.0, 7.1, -9.0, 0.0])
    leaves = [each.requires_grad_() for each in (x, gate)]
    g = gate.clamp(max=7.0)
    same(tt.clamped_swiglu(x, gate), (x.clamp(-7.0, 7.0) + 1) * g * torch.sigmoid(1.702 * g), leaves)
    same(tt.clamped_swiglu(x, gate, 10.0, 1.0, 0.0), F.silu(gate.clamp(max=10.0)) * x.clamp(-10.0, 10.0), leaves)


def test_dpo_and_grpo_on_the_head():
    """Against the formulas of the papers, written with whole logits."""
    generator = torch.Generator().manual_seed(9)
    hidden, matrix = (torch.randn(shape, generator=generator, dtype=torch.float64) for shape in ((4, 6, 5), (33, 5)))
    target = torch.randint(33, (4, 6), generator=generator)
    target[:, 4:] = -100
    kept = target >= 0
    reference, old = (torch.randn(4, 6, generator=generator, dtype=torch.float64) * 0.1 for _ in range(2))
    leaves = [each.requires_grad_() for each in (hidden, matrix)]
    logprob = torch.log_softmax(hidden @ matrix.t(), -1).gather(-1, target.clamp(0)[..., None])[..., 0] * kept
    old = (logprob + old).detach()
    margin = (logprob.sum(-1) - (reference * kept).sum(-1))
    margin = 0.3 * (margin[:2] - margin[2:])
    same(tt.linear_dpo_loss(hidden, matrix, target, reference * kept, beta=0.3, chunk=7),
         -F.logsigmoid(margin).mean(), leaves)
    same(tt.linear_dpo_loss(hidden, matrix, target, reference_logprob=(reference * kept).sum(-1), beta=0.3,
                            label_smoothing=0.2), -(0.8 * F.logsigmoid(margin) + 0.2 * F.logsigmoid(-margin)).mean(), leaves)
    advantage = torch.tensor([1.0, -0.5, 2.0, -1.0], dtype=torch.float64)
    ratio = (logprob - old).exp()
    each = -torch.minimum(ratio * advantage[:, None], ratio.clamp(0.9, 1.05) * advantage[:, None])
    each = (each + 0.04 * ((reference - logprob).exp() - (reference - logprob) - 1)) * kept
    for reduction, wanted in dict(none=each, grpo=(each.sum(-1) / 4).mean(), bnpo=each.sum() / 16,
                                  dr_grpo=each.sum() / (4 * 10)).items():
        same(tt.linear_grpo_loss(hidden, matrix, target, advantage, old, reference, beta=0.04, epsilon_low=0.1,
                                 epsilon_high=0.05, reduction=reduction, longest=10, chunk=7), wanted, leaves)
    with pytest.raises(ValueError):
        tt.grpo_loss(logprob, advantage, reduction="mean")


@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float16, torch.float32, torch.float64])
def test_gradients_are_scaled_as_torch_scales_them(kind):
    from trireme.torch import _linear
    for shape in [(7, 257), (33,), (0, 5), (2, 3, 64)]:
        for by in (torch.tensor(0.3), torch.tensor(1.0), torch.tensor(float("nan"))):
            by = by.to(torch.promote_types(kind, torch.float32))
            values = torch.randn(shape, generator=torch.Generator().manual_seed(4)).to(kind)
            wanted = values.clone().mul_(by)
            assert _linear.scale(values, by) is values
            torch.testing.assert_close(values, wanted, rtol=0, atol=0, equal_nan=True)

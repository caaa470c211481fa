"""Derivatives of every kind and order: each is torch's own of the same formula, or is refused in words."""
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
from torch.nn import functional as F

import trireme
import trireme.torch as tt
from row_in_torch import NAMED, Problem, execute

QUANTISED = [name for name in NAMED if any(each[0] == "q" for each in trireme.operator(name).results)]
SMOOTH = [name for name in NAMED if name not in QUANTISED]
f64 = dict(dtype=torch.float64)


class Small:
    """An operator's first problem with few rows and columns, all results as functions of what has gradients. Its four columns
    are two groups, and what is quantised is stored in f16."""

    def __init__(self, name):
        self.name, self.operator = name, tt.named(name)
        self.types = {"q": "f16"} if name in QUANTISED else {}
        groups = {each: 2.0 for each in self.operator.constants if each in ("group", "block", "side")}
        self.problem = Problem(name, shape=(6, 4), **groups)
        self.leaves = {key: value.requires_grad_() for key, value in self.problem.differentiable().items()
                       if key not in self.operator.held}

    def results(self, *leaves):
        operands = {**self.problem.operands, **dict(zip(self.leaves, leaves))}
        made = self.operator(*operands.values(), **self.problem.constants, types=self.types, results="all")
        return made if isinstance(made, tuple) else (made,)

    def torchs(self, *leaves):
        operands = {**self.problem.operands, **dict(zip(self.leaves, leaves))}
        made = execute(self.problem.operator, operands, self.problem.constants, self.problem.rows, self.problem.columns,
                       largest=torch.finfo(torch.float16).max)
        return tuple(made[name] for name in self.operator.results)


@pytest.mark.parametrize("name", SMOOTH)
def test_fault_55_first_and_second_derivatives(name):
    """Reverse, forward, batched, and both in turn, of every result; by differences in f64."""
    small = Small(name)
    leaves = tuple(small.leaves.values())
    assert torch.autograd.gradcheck(small.results, leaves, check_forward_ad=True, check_batched_grad=True,
                                    check_batched_forward_grad=True)
    assert torch.autograd.gradgradcheck(small.results, leaves, check_fwd_over_rev=True, check_rev_over_rev=True,
                                        check_batched_grad=True)


@pytest.mark.parametrize("name", NAMED)
def test_fault_57_every_result_carries_gradients(name):
    """Statistics too, each alone: a loss on log-sum-exps, a penalty on rstd, or on the scale of what is quantised."""
    small = Small(name)
    leaves = tuple(small.leaves.values())
    mine, theirs = small.results(*leaves), small.torchs(*leaves)
    for k, result in enumerate(small.operator.results):
        assert mine[k].requires_grad, result
        dy = torch.randn_like(mine[k])
        got = torch.autograd.grad(mine[k], leaves, dy, allow_unused=True, retain_graph=True)
        want = [None] * len(leaves)
        if theirs[k].requires_grad:  # a power of two, or what is held, does not
            want = torch.autograd.grad(theirs[k], leaves, dy.to(theirs[k].dtype).reshape(theirs[k].shape), allow_unused=True,
                                       retain_graph=True)
        for leaf, a, b in zip(small.leaves, got, want):
            if a is None or b is None:
                assert all(each is None or not each.any() for each in (a, b)), (result, leaf)
            else:
                torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-9, msg=lambda text: f"{result} by {leaf}: {text}")


@pytest.mark.parametrize("name", QUANTISED)
def test_fault_57_statistics_of_what_is_quantised_in_forward_mode(name):
    """Also where the derivative by the quantised values is not there: their type is."""
    small = Small(name)
    leaves = tuple(each.detach() for each in small.leaves.values())
    tangents = tuple(torch.randn_like(each) for each in leaves)
    for k, result in enumerate(small.operator.results):
        if result == "q":
            continue
        mine, theirs = (torch.func.jvp(lambda *given, of=of: of(*given)[k], leaves, tangents)[1]
                        for of in (small.results, small.torchs))
        torch.testing.assert_close(mine, theirs.reshape(mine.shape).to(mine.dtype), rtol=1e-9, atol=1e-9)


def test_fault_57_z_loss():
    x = torch.randn(5, 33, **f64, requires_grad=True)
    target = torch.randint(33, (5,), dtype=torch.int32)
    loss, lse = tt.named("cross_entropy")(x, target, results="all")
    mine = (loss + 1e-2 * lse.square()).mean()
    theirs = F.cross_entropy(x, target.long()) + 1e-2 * x.logsumexp(-1).square().mean()
    torch.testing.assert_close(mine, theirs)
    torch.testing.assert_close(*(torch.autograd.grad(each, x)[0] for each in (mine, theirs)))


@pytest.mark.parametrize("name", NAMED)
def test_gradients_of_statistics_keep_no_memory(name):
    """What is saved for the backward is what the backward of the usual gradients reads."""
    operator = tt.named(name)
    saved = {(operator.operand_keys + operator.result_keys)[k] for k in operator.saved}
    assert saved == {key for key in operator.backward.keys_read() if "__d" not in key}


def per_row(x, w):
    return tt.rms_norm(x, (7,), w, 1e-5).square().sum()


def torchs_per_row(x, w):
    return F.rms_norm(x, (7,), w, 1e-5).square().sum()


# Of (function, x, w): transforms in the words of torch.func.
TRANSFORMS = {
    "grad": lambda f, x, w: torch.func.grad(f, (0, 1))(x, w),
    "grad of grad": lambda f, x, w: torch.func.grad(lambda x: torch.func.grad(f)(x, w).square().sum())(x),
    "vjp": lambda f, x, w: torch.func.vjp(f, x, w)[1](torch.tensor(2.0, **f64)),
    "jvp": lambda f, x, w: torch.func.jvp(f, (x, w), (torch.cos(x), torch.sin(w))),
    "jvp of grad": lambda f, x, w: torch.func.jvp(lambda x: torch.func.grad(f)(x, w), (x,), (torch.cos(x),)),
    "grad of jvp": lambda f, x, w: torch.func.grad(lambda x: torch.func.jvp(lambda x: f(x, w), (x,), (torch.cos(x),))[1])(x),
    "jvp of jvp": lambda f, x, w: torch.func.jvp(lambda x: torch.func.jvp(lambda x: f(x, w), (x,), (torch.cos(x),))[1], (x,),
                                                 (torch.sin(x),)),
    "jacrev": lambda f, x, w: torch.func.jacrev(lambda x: torch.tanh(f(x, w)))(x),
    "jacfwd": lambda f, x, w: torch.func.jacfwd(lambda x: torch.tanh(f(x, w)))(x),
    "hessian": lambda f, x, w: torch.func.hessian(f)(x, w),
    "vmap": lambda f, x, w: torch.vmap(f, (0, None))(x, w),
    "vmap over both": lambda f, x, w: torch.vmap(f)(x, torch.stack([w] * len(x)) * x[:, 0, None]),
    "vmap over weights": lambda f, x, w: torch.vmap(f, (None, 0))(x, torch.stack([w, w + 1])),
    "vmap inside": lambda f, x, w: torch.vmap(f, (1, None))(torch.stack([x, x + 1], 1), w),
    "gradients of samples": lambda f, x, w: torch.vmap(torch.func.grad(f, (0, 1)), (0, None))(x, w),
    "vmap twice": lambda f, x, w: torch.vmap(torch.vmap(f, (0, None)), (0, None))(torch.stack([x, x + 1]), w),
}


@pytest.mark.parametrize("transform", TRANSFORMS)
def test_fault_55_transforms(transform):
    x, w = torch.randn(3, 7, **f64), torch.randn(7, **f64)
    torch.testing.assert_close(TRANSFORMS[transform](per_row, x, w), TRANSFORMS[transform](torchs_per_row, x, w))


@pytest.mark.parametrize("name", SMOOTH)
def test_fault_55_every_operator_under_vmap(name):
    small = Small(name)
    operands = [each.detach() for each in small.problem.operands.values()]
    call = lambda *operands: small.operator(*operands, **small.problem.constants, results="all")  # noqa: E731
    for k, each in enumerate(operands):
        pair = torch.stack([each, each.flip(0) if each.dim() else each + 1], -1)
        made = torch.vmap(call, tuple(-1 if j == k else None for j in range(len(operands))))(
            *(pair if j == k else other for j, other in enumerate(operands)))
        one = [call(*(pair[..., b] if j == k else other for j, other in enumerate(operands))) for b in (0, 1)]
        for a, b, c in zip(*(each if isinstance(each, tuple) else (each,) for each in (made, *one))):
            assert torch.equal(a, torch.stack([b, c])), small.operator.operands[k]


def test_fault_55_what_used_to_be_silent():
    """A second derivative was dropped after .sum(), forward mode gave zeros."""
    x, w = torch.randn(3, 7, **f64, requires_grad=True), torch.randn(7, **f64, requires_grad=True)
    for f in (tt.rms_norm, lambda *given: torch.ops.trireme.rms_norm(given[0], given[2], 1e-5, 0.0, 1, "")[0]):
        (dx,) = torch.autograd.grad(f(x, (7,), w, 1e-5).sum(), x, create_graph=True)
        (want,) = torch.autograd.grad(F.rms_norm(x, (7,), w, 1e-5).sum(), x, create_graph=True)
        assert dx.requires_grad
        for a, b in zip(torch.autograd.grad(dx.sum(), (x, w)), torch.autograd.grad(want.sum(), (x, w))):
            torch.testing.assert_close(a, b)
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(x.detach(), torch.ones_like(x))
        made = torch.autograd.forward_ad.unpack_dual(tt.softmax(dual)).tangent
        torch.testing.assert_close(made, torch.autograd.forward_ad.unpack_dual(F.softmax(dual, -1)).tangent)


def test_fault_55_batched_gradients():
    x, w = torch.randn(3, 7, **f64, requires_grad=True), torch.randn(7, **f64, requires_grad=True)
    dy = torch.randn(5, 3, 7, **f64)
    mine = torch.autograd.grad(tt.rms_norm(x, (7,), w, 1e-5), (x, w), dy, is_grads_batched=True)
    theirs = torch.autograd.grad(F.rms_norm(x, (7,), w, 1e-5), (x, w), dy, is_grads_batched=True)
    torch.testing.assert_close(mine, theirs)


def test_fault_55_half_types():
    x = torch.randn(3, 64).bfloat16().requires_grad_()
    w = torch.randn(64, requires_grad=True)
    (dx,) = torch.autograd.grad(tt.rms_norm(x, (64,), w, 1e-5).sum(), x, create_graph=True)
    made = torch.autograd.grad(dx.float().square().sum(), (x, w))
    assert [each.dtype for each in made] == [torch.bfloat16, torch.float32]
    wide = x.detach().float().requires_grad_()
    (dx,) = torch.autograd.grad(F.rms_norm(wide, (64,), w, 1e-5).sum(), wide, create_graph=True)
    for a, b in zip(made, torch.autograd.grad(dx.square().sum(), (wide, w))):
        torch.testing.assert_close(a.float(), b, rtol=0.05, atol=0.05 * float(b.abs().max()))


def test_fault_55_compiled_transforms():
    torch._dynamo.reset()
    x, w = torch.randn(3, 7, **f64), torch.randn(7, **f64)
    compiled = torch.compile(torch.func.grad(per_row, (0, 1)), backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(compiled(x, w), torch.func.grad(torchs_per_row, (0, 1))(x, w))


def test_fault_55_what_is_held_is_refused_or_has_no_gradient():
    x = torch.randn(3, 7, **f64, requires_grad=True)
    square = tt.op("half_square(x[i,j]) -> (y[i,j])\n    y = x * stop_gradient(x)")
    (dx,) = torch.autograd.grad(square(x).sum(), x, create_graph=True)
    torch.testing.assert_close(dx, x)  # and the second derivative is 0, which the backward's text does not say
    with pytest.raises(NotImplementedError, match="stop_gradient"):
        torch.autograd.grad(dx.sum(), x)
    torch.testing.assert_close(torch.func.jvp(square, (x.detach(),), (torch.ones_like(x),))[1], x.detach())
    held = tt.op("held(x[i,j], c[j]) -> (y[i,j])\n    y = x * x * stop_gradient(c)")
    c = torch.randn(7, **f64, requires_grad=True)
    (dx,) = torch.autograd.grad(held(x, c).sum(), x, create_graph=True)
    ddx, dc = torch.autograd.grad(dx.sum(), (x, c), allow_unused=True)
    torch.testing.assert_close(ddx, (2 * c).expand(3, 7))
    assert dc is None


def test_fault_55_third_derivatives():
    x = torch.randn(2, 5, **f64, requires_grad=True)
    for mine, theirs in [(lambda x: tt.swiglu(x, x), lambda x: F.silu(x) * x), (tt.softmax, lambda x: F.softmax(x, -1)),
                         (lambda x: tt.rms_norm(x, (5,), None, 1e-5), lambda x: F.rms_norm(x, (5,), None, 1e-5))]:
        found = []
        for f in (mine, theirs):
            y = f(x).square().sum()
            for _ in range(3):
                (y,) = torch.autograd.grad(y.sum(), x, create_graph=True)
            found.append(y)
        torch.testing.assert_close(*found, rtol=1e-6, atol=1e-6)


def test_fault_55_forward_mode_along_what_no_result_depends_on():
    double = tt.op("double(x[i,j], s[i,j]) -> (y[i,j])\n    y = s * 2")
    leaves = [torch.rand(3, 4, **f64, requires_grad=True) for _ in range(2)]
    assert torch.autograd.gradcheck(double, leaves, check_forward_ad=True)


# Defaults that are formulas: of every spread, of each other, of operands that a backward does not read, beside statistics.
FORMULAS = {
    "element": "f(x[i,j], s[i,j] = x * x) -> (y[i,j])\n    y = s * 2",
    "row": "f(x[i,j], s[i] = mean(x)) -> (y[i,j])\n    y = x * s",
    "column": "f(x[i,j], w[j], s[j] = w * w) -> (y[i,j], z[j])\n    y = x * s\n    z = colsum(y * s)",
    "one": "f(x[i,j], c[], s[] = c * c) -> (y[i,j])\n    y = x * s + s",
    "group": "f(x[i,j], s[i, j / g] = sum(x * x, j / g), g = 2) -> (y[i,j])\n    y = x * s",
    "strided": "f(x[i,j], s[i, j % g] = sum(x * x, j % g), g = 2) -> (y[i,j])\n    y = x * s",
    "spread up": "f(x[i,j], r[i], s[i,j] = r) -> (y[i,j])\n    y = x * s + sum(s) * x",
    "spread to groups": "f(x[i,j], r[i], s[i, j / g] = r * r, g = 2) -> (y[i])\n    y = sum(entries(s)) * r + sum(x * s)",
    "each other": "f(x[i,j], s[i] = mean(x), t[i,j] = s * x, u[i] = sum(t) + s) -> (y[i,j])\n    y = t * u + x * s",
    "numbers too": "f(x[i,j], w[j] = 1, s[j] = w * w, t[i,j] = s * x) -> (y[i,j], r[i])\n    r = sum(t * t)\n    y = t * r + s",
    "no operand": "f(x[i,j], k[i] = n, s[i] = mean(x) / k) -> (y[i,j])\n    y = x * s + k",
    "read by a default alone": "f(x[i,j], v[i] = variance(x), m[i] = mean(x)) -> (y[i,j])\n    y = (x - m) * rsqrt(v + 0.1)",
    "statistics": "f(x[i,j], s[i] = sum(x * x)) -> (y[i,j], d[i], e[i])\n    d = s * 2\n    e = d * d\n    y = x * d + e",
    "a result": "f(x[i,j], s[i] = logsumexp(x)) -> (p[i,j], m[i])\n    p = exp(x - s)\n    m = s",
    "types": "f(x[i,j], s[i] = mean(x), t[i,j] = cast(s * x, s)) -> (y[i,j])\n    y = x * t + cast(s * x, t)",
}
EXTENTS = {"i": 3, "j": 4, "j / g": 2, "j % g": 2}


def calls_without(operator):
    """(absent operands, call of the present ones, these), for each set that may be absent."""
    torch.manual_seed(0)
    made = {name: torch.rand([EXTENTS[each.strip()] for each in spread.strip("[]").split(",") if each], **f64).add(0.3).requires_grad_()
            for name, spread, *_ in operator.operator.operands}
    optional = [each[0] for each in operator.operator.operands if each[2]]
    for bits in range(1 << len(optional)):
        absent = [name for k, name in enumerate(optional) if bits >> k & 1]
        present = {name: each for name, each in made.items() if name not in absent}

        def call(*leaves, results="all", names=tuple(present)):
            return operator(**dict(zip(names, leaves)), results=results)

        yield absent, call, tuple(present.values())


@pytest.mark.parametrize("name", FORMULAS)
def test_fault_51_gradients_flow_into_defaults(name):
    operator = tt.op(FORMULAS[name])
    for absent, call, leaves in calls_without(operator):
        for results in ["all", *operator.results]:
            one = lambda *leaves: call(*leaves, results=results)
            assert torch.autograd.gradcheck(one, leaves, check_forward_ad=True), (absent, results)
        assert torch.autograd.gradgradcheck(call, leaves), absent
        with torch.no_grad():
            plain = call(*leaves)
        torch.testing.assert_close(call(*leaves), plain, rtol=0, atol=0)


@pytest.mark.parametrize("name", ["column", "each other", "statistics"])
def test_fault_51_transforms_and_compiled_code(name):
    for absent, call, leaves in calls_without(tt.op(FORMULAS[name])):
        def total(*leaves):
            made = call(*leaves)
            return sum(each.square().sum() for each in (made if isinstance(made, tuple) else (made,)))

        wanted = torch.autograd.grad(total(*leaves), leaves, materialize_grads=True)
        plain, every = tuple(each.detach() for each in leaves), tuple(range(len(leaves)))
        torch.testing.assert_close(torch.func.grad(total, every)(*plain), wanted)
        tangents = tuple(torch.rand_like(each) for each in plain)
        along = torch.func.jvp(total, plain, tangents)[1]
        torch.testing.assert_close(along, sum((u * v).sum() for u, v in zip(wanted, tangents)))
        batched = torch.func.vmap(torch.func.grad(total, every))(*(torch.stack([each, 2 * each]) for each in plain))
        torch.testing.assert_close(tuple(each[0] for each in batched), wanted)
        torch._dynamo.reset()
        compiled = torch.compile(total, backend="aot_eager", fullgraph=True)
        torch.testing.assert_close(torch.autograd.grad(compiled(*leaves), leaves, materialize_grads=True), wanted)


def test_fault_51_the_type_of_an_absent_operand():
    operator = tt.op("f(x[i,j], s[i] = mean(x)) -> (y[i,j])\n    y = x * s * (largest(s) / 448)")
    x = torch.rand(3, 4, **f64, requires_grad=True)
    call = lambda x: operator(x, types={"s": "f8e4m3"})
    assert torch.autograd.gradcheck(call, x, check_forward_ad=True) and torch.autograd.gradgradcheck(call, x)
    torch.testing.assert_close(call(x), x * x.mean(-1, keepdim=True))


@pytest.mark.parametrize("name, named", [("masked_softmax", {}), ("causal_softmax", {"queries": 3})])
def test_second_derivatives_where_a_length_is_absent(name, named):
    x = torch.rand(3, 4, **f64, requires_grad=True)
    assert torch.autograd.gradgradcheck(lambda x: tt.named(name)(x, **named), x, check_fwd_over_rev=True)


def test_gradients_of_programs_with_a_result_that_is_called_like_one():
    """`dx` beside `x`: the gradient was None, without a word. Second derivatives, whose programs have no two names, are refused."""
    for text in ("named_dx(x[i,j]) -> (dx[i,j])\n    dx = x * x * x\n",
                 "beside_dx(x[i,j]) -> (y[i,j], dx[i,j])\n    y = x * x * x\n    dx = 3 * x * x\n"):
        operator, x = tt.op(text), torch.randn(2, 3, **f64, requires_grad=True)
        assert torch.autograd.gradcheck(operator, x)
        made = operator(x)
        with pytest.raises(trireme.InvalidProgram, match="two values called 'dx"):
            torch.autograd.grad((made[0] if isinstance(made, tuple) else made).sum(), x, create_graph=True)[0].sum().backward()

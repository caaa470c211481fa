"""Storage types as arrays carry them, tables whose rows are picked, and gradients of named results."""
import numpy as np
import pytest

import trireme

torch = pytest.importorskip("torch")


def test_integers_come_as_they_are():
    pick = trireme.op("pick(x[i,j], target[i]) -> (y[i])\n    y = sum(select(j == target, x, 0))")
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    for kind in (np.int32, np.int64, np.uint8):
        np.testing.assert_array_equal(pick(x, np.array([1, 3, 0], kind)), [1, 7, 8])
    far = np.array([2**62, -(2**63), 2**63 - 1], np.int64)  # no column, and nobody's neighbour
    np.testing.assert_array_equal(pick(x, far), [0, 0, 0])


def test_masks_are_uint8_or_bool():
    mask = trireme.op("mask(x[i,j], m[i,j]) -> (y[i,j])\n    y = select(m == 0, 0, x)")
    x = np.ones((2, 5), np.float32)
    m = np.array([[1, 0, 1, 0, 1], [0, 0, 1, 1, 1]], bool)
    for each in (m, m.astype(np.uint8), torch.tensor(m), torch.tensor(m).to(torch.uint8)):
        given = torch.tensor(x) if isinstance(each, torch.Tensor) else x
        np.testing.assert_array_equal(np.asarray(mask(given, each)), m)


def test_i64_and_u8_results():
    store = trireme.op("store(x[i,j]) -> (y[i,j])\n    y = x * 100")
    x = np.array([[-1.5, 0.004, 2.5, np.nan, 1e30]], np.float32)
    y = store(x, types={"y": "i64"})
    assert y.dtype == np.int64 and y.tolist() == [[-150, 0, 250, 0, 2**63 - 1]]
    y = store(x, types={"y": "u8"})
    assert y.dtype == np.uint8 and y.tolist() == [[0, 0, 250, 0, 255]]


def test_powers_of_two():
    scale = trireme.op("scale(x[i,j]) -> (s[i])\n    s = exponent_floor(amax(abs(x)))")
    x = torch.tensor([[0.0, 3.0], [-100.0, 5.0], [0.0, 0.0]])
    s = scale(x, types={"s": "f8e8m0"})
    assert s.dtype == torch.float8_e8m0fnu
    assert s.float().tolist() == [2.0, 64.0, 2.0**-127]
    assert scale(x.numpy(), types={"s": "f8e8m0"}).tolist() == [128, 133, 0]


def test_two_columns_share_a_byte():
    double = trireme.op("double(x[i,j]) -> (y[i,j])\n    y = x * 2")
    x = torch.tensor([[0.25, -0.5, 1.0, 100.0], [0.0, -3.0, float("nan"), 0.7]])
    packed = [[1 | 10 << 4, 4 | 7 << 4], [0 | 15 << 4, 7 | 3 << 4]]  # 0.5 -1 2 6, 0 -6 6 1.5
    y = double(x, types={"y": "f4e2m1"})
    assert y.dtype == torch.float4_e2m1fn_x2 and y.view(torch.uint8).tolist() == packed
    bits = double(x.numpy(), types={"y": "f4e2m1"})
    assert bits.dtype == np.uint8 and bits.tolist() == packed
    wanted = [[1.0, -2.0, 4.0, 12.0], [0.0, -12.0, 12.0, 3.0]]
    assert double(y, types={"y": "f32"}).tolist() == wanted
    assert double(bits, types={"x": "f4e2m1", "y": "f32"}).tolist() == wanted
    apart = np.zeros((2, 5), np.uint8)
    double(x.numpy(), types={"y": "f4e2m1"}, out=apart[:, 1:3])
    assert apart.tolist() == [[0, *row, 0, 0] for row in packed]
    with pytest.raises(trireme.InvalidArgument, match="7 columns are an odd number"):
        double(np.zeros((2, 7), np.float32), types={"y": "f4e2m1"})
    with pytest.raises(trireme.InvalidArgument, match="columns lie side by side"):
        double(x.numpy(), types={"y": "f4e2m1"}, out=np.zeros((2, 4), np.uint8)[:, ::2])
    plan = double.plan((2, 4), types={"x": "f32", "y": "f4e2m1"})
    assert plan.arrays[1][2] == (2, 2)
    made = np.zeros((2, 2), np.uint8)
    plan.run(x=x.numpy(), y=made)
    assert made.tolist() == packed


def test_torch_operators_know_pairs():
    import trireme.torch as tt

    x = torch.randn(3, 64)
    q, scale = tt.named("quantise_mxfp4")(x, types={"q": "f4e2m1", "scale": "f8e8m0"})
    assert q.dtype == torch.float4_e2m1fn_x2 and q.shape == (3, 32) and scale.shape == (3, 2)
    with torch._subclasses.FakeTensorMode():
        fake = torch.ops.trireme.quantise_mxfp4(torch.empty(3, 64), 32.0, 1, "q=f4e2m1,scale=f8e8m0")
    assert [(each.dtype, each.shape) for each in fake] == [(each.dtype, each.shape) for each in (q, scale)]
    bits = q.view(torch.uint8).long()
    numbers = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6])
    pattern = torch.stack([bits & 15, bits >> 4], -1).reshape(3, 64)
    again = torch.where(pattern < 8, 1.0, -1.0) * numbers[pattern & 7] * scale.float().repeat_interleave(32, 1)
    largest = x.abs().reshape(3, 2, 32).amax(2).repeat_interleave(32, 1)
    assert ((again - x).abs() <= largest / 4).all()


def test_labels_are_read_in_place():
    logits = torch.randn(6, 9, requires_grad=True)
    target = torch.tensor([0, 8, -100, 3, 4, 5])
    import trireme.torch as tt

    loss = tt.cross_entropy(logits, target)
    wanted = torch.nn.functional.cross_entropy(logits, target)
    torch.testing.assert_close(loss, wanted)
    from trireme.torch.losses import _Classes

    assert _Classes(target, (6,), 9, -100).target is target


def test_rows_are_picked():
    rope = trireme.op("take(x[i,j], at[i / 2], table[at, j]) -> (y[i,j])\n    y = x + table")
    x, table = np.zeros((4, 3), np.float32), np.arange(15, dtype=np.float32).reshape(5, 3)
    y = rope(x, np.array([4, -1], np.int64), table)
    np.testing.assert_array_equal(y, [table[4], table[4], [0, 0, 0], [0, 0, 0]])
    with pytest.raises(trireme.TriremeError, match="picks rows of 'table', and is f32; it takes i32 or i64"):
        rope(x, np.array([4, 1], np.float32), table)


def test_tables_are_written_where_they_are_picked():
    put = trireme.op("put(x[i,j], slot[i]) -> (cache[slot, j])\n    cache = x")
    x, cache = np.ones((3, 4), np.float32), np.full((6, 4), 7, np.float32)
    put(x, np.array([5, 9, 0], np.int32), out=cache)
    np.testing.assert_array_equal(cache[:, 0], [1, 7, 7, 7, 7, 1])
    with pytest.raises(TypeError, match="cache is a table whose rows are picked, and is given by out="):
        put(x, np.array([5, 9, 0], np.int32))


def test_shapes_may_come_from_results():
    look_up = trireme.op("look_up(token[i], table[token, j]) -> (y[i,j])\n    y = table")
    table, y = np.arange(8, dtype=np.float32).reshape(4, 2), np.empty((3, 2), np.float32)
    look_up(np.array([3, 0, 4], np.int64), table, out=y)
    np.testing.assert_array_equal(y, [[6, 7], [0, 1], [0, 0]])
    np.testing.assert_array_equal(look_up(np.array([3, 0, 4], np.int64), table), y)


def test_gradients_of_named_results():
    loss = trireme.cross_entropy
    usual, both = loss.gradient(), loss.gradient(["loss", "lse"])
    assert [name for name, *_ in usual.operands][:1] == ["dloss"]
    assert [name for name, *_ in both.operands][:2] == ["dloss", "dlse"]
    assert loss.gradient(["lse", "loss"]) is both
    x, target = np.random.default_rng(0).standard_normal((3, 5)), np.array([1, 0, 4])
    dx = both(dlse=np.ones(3), x=x, target=target)
    p = np.exp(x) / np.exp(x).sum(1, keepdims=True)
    np.testing.assert_allclose(dx, p, rtol=1e-12)
    with pytest.raises(trireme.TriremeError, match="has no result 'nothing'"):
        loss.gradient("nothing")


def test_torch_saves_what_picks_rows():
    import trireme.torch as tt

    rope = tt.op("take(x[i,j], at[i / 2], table[at, j]) -> (y[i,j])\n    y = x * table")
    x, table = torch.randn(4, 3, dtype=torch.float64, requires_grad=True), torch.randn(5, 3, dtype=torch.float64)
    at = torch.tensor([3, 0])
    y = rope(x, at, table)
    torch.testing.assert_close(y, x * table[at.repeat_interleave(2)])
    (dx,) = torch.autograd.grad(y.sum(), x)
    torch.testing.assert_close(dx, table[at.repeat_interleave(2)])
    with pytest.raises(RuntimeError, match="the rows of table are picked, and there is no gradient to a picked table"):
        rope(x, at, table.requires_grad_()).sum().backward()

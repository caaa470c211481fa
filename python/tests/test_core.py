"""trireme with NumPy: signatures, results, types, strides, errors."""
import inspect
import pickle
import pydoc

import numpy as np
import pytest

import trireme


def rms_norm(x, gamma=1.0, eps=1e-6):
    x = x.astype(np.float64)
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + eps) * gamma


@pytest.fixture
def x(rng):
    return rng.standard_normal((3, 5, 257)).astype(np.float32)


@pytest.fixture
def gamma(rng):
    return rng.standard_normal(257).astype(np.float32)


def test_a_call_gives_what_the_formula_says(x, gamma):
    y = trireme.rms_norm(x, gamma, eps=1e-5)
    assert isinstance(y, np.ndarray) and y.dtype == np.float32 and y.shape == x.shape
    np.testing.assert_allclose(y, rms_norm(x, gamma, 1e-5), rtol=2e-6, atol=1e-6)


def test_every_operator_has_a_signature_and_a_page():
    assert len(trireme.operators()) >= 22
    for name in trireme.operators():
        operator = getattr(trireme, name)
        parameters = inspect.signature(operator).parameters
        assert [each for each in parameters][: len(operator.operands)] == [each[0] for each in operator.operands]
        page = pydoc.render_doc(operator, renderer=pydoc.plaintext)
        assert f"{name}(" in page and operator.operands[0][0] in page and "Results:" in page
        assert name in dir(trireme) and name in trireme.__all__
    assert str(inspect.signature(trireme.rms_norm)).startswith("(x, gamma=None, *, eps=1e-06, offset=0.0, out=None")
    with pytest.raises(AttributeError, match="rms_nrm"):
        trireme.rms_nrm


def test_shapes_without_an_operand_per_element():
    """Rows are the tokens', columns the table's; a result that is given says what operands do not."""
    table = np.arange(35, dtype=np.float32).reshape(7, 5)
    token = np.array([[6, 0, 3], [7, -1, 3]], np.int64)
    inside = (token >= 0) & (token < 7)
    want = np.where(inside[..., None], table[np.where(inside, token, 0)], 0)
    assert np.array_equal(trireme.embedding(token, table), want)
    assert np.array_equal(trireme.embedding(token, table, np.array(2, np.float32)), 2 * want)
    assert np.array_equal(trireme.embedding(np.array(3, np.int32), table), table[3])
    assert trireme.embedding(token, table.astype(np.float16)).dtype == np.float16
    out = np.empty((2, 3, 5), np.float32)
    assert trireme.embedding(token, table, out=out) is out and np.array_equal(out, want)
    a, b = np.arange(15, dtype=np.float32).reshape(3, 5), np.arange(20, dtype=np.float32).reshape(4, 5)
    product = np.empty(12, np.float32)
    trireme.matmul(a, b, m=4, out=product)
    assert np.array_equal(product.reshape(3, 4), a @ b.T)
    assert np.array_equal(trireme.matmul(a, b, m=4), product)  # a says how many rows there are, 4 to an entry
    with pytest.raises(TypeError, match="matmul needs an array for x, or y: nothing else says how many rows there are"):
        trireme.matmul(None, b, m=4)
    with pytest.raises(TypeError, match="embedding needs an array for token, or y: nothing else says how many rows"):
        trireme.embedding(None, table)
    assert [name for name, *_ in trireme.embedding.gradient().results] == ["dscale"]


def test_results(x, gamma):
    y, rstd = trireme.rms_norm(x, gamma, results="all")
    both = trireme.rms_norm(x, gamma, results=("rstd", "y"))
    assert both._fields if hasattr(both, "_fields") else both.n_fields == 2
    assert np.array_equal(both.y, y) and np.array_equal(both.rstd, rstd) and rstd.shape == (3, 5)
    assert np.array_equal(trireme.rms_norm(x, gamma, results="rstd"), rstd)
    q = trireme.rms_norm_quant(x, gamma, types={"q": "i8"})
    assert q.q.dtype == np.int8 and q.scale.shape == (3, 5)  # not rstd: the operator's remark says so
    assert trireme.cross_entropy(x[0], np.zeros(5, np.int32)).shape == (5,)
    out = np.full_like(x, 7)
    assert trireme.rms_norm(x, gamma, out=out) is out and np.array_equal(out, y)
    given = {"rstd": np.empty((3, 5), np.float32)}
    result = trireme.rms_norm(x, gamma, out=given)
    assert result.rstd is given["rstd"] and np.array_equal(result.y, y)
    pair = trireme.add_rms_norm(x, x, out=(out, None))
    assert pair.y is out and np.array_equal(pair.h, x + x)


def test_in_place(x, gamma):
    y = trireme.rms_norm(x, gamma)
    copy = x.copy()
    assert trireme.rms_norm(copy, gamma, out=copy) is copy and np.array_equal(copy, y)
    with pytest.raises(trireme.InvalidArgument, match="overlaps the operand in part"):
        flat = x.reshape(-1)
        trireme.rms_norm(flat[: 4 * 257].reshape(4, 257), out=flat[5 : 5 + 4 * 257].reshape(4, 257))


@pytest.mark.parametrize("kind", [np.float64, np.float32, np.float16])
def test_types(rng, kind):
    x = rng.standard_normal((7, 33)).astype(kind)
    y = trireme.rms_norm(x)
    assert y.dtype == kind
    np.testing.assert_allclose(y, rms_norm(x), rtol={8: 1e-14, 4: 2e-6, 2: 1e-3}[np.dtype(kind).itemsize])
    mixed = trireme.rms_norm(x, types={"y": "f32"})
    assert mixed.dtype == np.float32


def test_bf16_travels_as_bits_or_by_its_own_dtype(rng):
    x = rng.standard_normal((7, 33)).astype(np.float32)
    bits = (x.view(np.uint32) >> 16).astype(np.uint16)  # truncated: any bits do
    y = trireme.rms_norm(bits, types={"x": "bf16"})
    assert y.dtype == np.uint16
    wide = (bits.astype(np.uint32) << 16).view(np.float32)
    np.testing.assert_allclose((y.astype(np.uint32) << 16).view(np.float32), rms_norm(wide), rtol=2**-8)
    with pytest.raises(trireme.InvalidArgument, match="types="):
        trireme.rms_norm(bits)
    ml_dtypes = pytest.importorskip("ml_dtypes", reason="ml_dtypes is not installed")
    named = trireme.rms_norm(bits.view(ml_dtypes.bfloat16))
    assert named.dtype == ml_dtypes.bfloat16 and np.array_equal(named.view(np.uint16), y)


def test_strides(rng, x, gamma):
    y = trireme.rms_norm(x, gamma)
    wide = rng.standard_normal((3, 5, 600)).astype(np.float32)
    wide[..., 7:264] = x
    assert np.array_equal(trireme.rms_norm(wide[..., 7:264], gamma), y)
    wide[..., 0:514:2] = x
    assert np.array_equal(trireme.rms_norm(wide[..., 0:514:2], gamma), y)
    backwards = np.ascontiguousarray(x[..., ::-1])[..., ::-1]
    assert np.array_equal(trireme.rms_norm(backwards, gamma), y)
    assert np.array_equal(trireme.rms_norm(np.broadcast_to(x[0, 0], (4, 257)), gamma), np.broadcast_to(y[0, 0], (4, 257)))
    out = np.zeros((3, 5, 300), np.float32)
    trireme.rms_norm(x, gamma, out=out[..., 10:267])
    assert np.array_equal(out[..., 10:267], y) and not out[..., :10].any() and not out[..., 267:].any()


def test_axes(x):
    y = trireme.layer_norm(x, axes=2)
    wanted = (x - x.mean((1, 2), keepdims=True)) / np.sqrt(x.var((1, 2), keepdims=True) + 1e-5)
    np.testing.assert_allclose(y, wanted, rtol=1e-4, atol=1e-5)
    assert trireme.layer_norm(x, axes=2, results="all").average.shape == (3,)


def test_other_protocols(x, gamma):
    y = trireme.rms_norm(x, gamma)

    class Dlpack:
        def __init__(self, array, versioned):
            self.array, self.versioned = array, versioned

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

        def __dlpack__(self, **options):
            if not self.versioned and "max_version" in options:
                raise TypeError("unexpected keyword max_version")
            return self.array.__dlpack__(**options)

    for versioned in (False, True):
        assert np.array_equal(trireme.rms_norm(Dlpack(x, versioned), Dlpack(gamma, versioned)), y)
    assert np.array_equal(trireme.rms_norm(memoryview(x), gamma), y)
    out = x.copy()
    out.flags.writeable = False
    with pytest.raises((trireme.InvalidArgument, ValueError, BufferError)):
        trireme.rms_norm(x, gamma, out=out)


def test_gradient(x, gamma):
    backward = trireme.rms_norm.gradient()
    assert backward is trireme.rms_norm.gradient() and backward.name == "rms_norm_backward"
    dy = np.ones_like(x)
    dx, dgamma = backward(dy, x, gamma)
    assert dx.shape == x.shape and dgamma.shape == gamma.shape
    rstd = trireme.rms_norm(x, gamma, results="rstd")
    saved = backward(dy, x, gamma, rstd, results="dgamma")
    assert np.array_equal(saved, dgamma)
    twice = backward.gradient()
    assert "rms_norm_backward_backward(" in twice.show()


def test_fault_51_gradients_flow_into_defaults(rng):
    x, dy, w = rng.random((3, 4)), rng.random((3, 4)), rng.random(4)
    scaled = trireme.op("f(x[i,j], s[i] = mean(x)) -> (y[i,j])\n    y = x * s")
    wanted = dy * x.mean(1, keepdims=True) + (dy * x).sum(1, keepdims=True) / 4
    backward = scaled.gradient()
    dx, ds = backward(dy, x)
    assert ds is None  # it has flowed on
    np.testing.assert_allclose(dx, wanted)
    np.testing.assert_allclose(backward(dy, x, results="dx"), wanted)
    np.testing.assert_allclose(scaled.gradient(absent="s")(dy, x), wanted)
    np.testing.assert_allclose(backward(dy, x, x.mean(1))[1], (dy * x).sum(1))
    with pytest.raises(TypeError, match="flowed on"):
        backward(dy, x, results="ds")
    with pytest.raises(ValueError, match="'ds'"):
        backward(dy, x, out={"ds": np.empty(3)})
    # What flows on may need what the backward of given operands does not take.
    squared = trireme.op("f(x[i,j], s[i,j] = x * x) -> (y[i,j])\n    y = s * 2")
    assert [each[0] for each in squared.gradient().operands] == ["dy"]
    np.testing.assert_allclose(squared.gradient(absent=["s"])(dy, x), 4 * dy * x)
    # A saved result that the other backward reads is recomputed.
    saved = trireme.op("f(x[i,j], s[i] = sum(x * x)) -> (y[i,j], d[i])\n    d = s * 2\n    y = x * d")
    wanted = 2 * dy * (x * x).sum(1, keepdims=True) + 4 * x * (dy * x).sum(1, keepdims=True)
    np.testing.assert_allclose(saved.gradient()(dy, x)[0], wanted)
    np.testing.assert_allclose(saved.gradient(absent="s")(dy, x), wanted)
    product = trireme.op("f(x[i,j], w[j], b[i,j] = x * w) -> (y[i,j])\n    y = x + b")
    dx, dw = product.gradient(absent="b")(dy, x, w)
    np.testing.assert_allclose(dx, dy * (1 + w))
    np.testing.assert_allclose(dw, (dy * x).sum(0))


def test_operators_without_operands(x, gamma):
    bare = trireme.rms_norm.without("gamma")
    assert [each[0] for each in bare.operands] == ["x"] and bare.without(()).text == bare.text
    assert bare(x).tobytes() == trireme.rms_norm(x).tobytes()
    assert [each[0] for each in bare.gradient().results] == ["dx"]
    assert trireme.rms_norm.without(["gamma"]) is bare and pickle.loads(pickle.dumps(bare)).text == bare.text
    for name, words in [("x", "'x' has no default"), ("eps", "no operand 'eps'")]:
        with pytest.raises(trireme.InvalidArgument, match=words):
            trireme.rms_norm.without(name)
    with pytest.raises(trireme.InvalidArgument, match="is a backward"):
        trireme.rms_norm.gradient().without("gamma")


def test_plans(x, gamma):
    plan = trireme.rms_norm.plan(x.shape, results=("y",), eps=1e-5, threads=1)
    y = np.empty_like(x)
    plan.run(x=x, gamma=gamma, y=y)
    assert np.array_equal(y, trireme.rms_norm(x, gamma, eps=1e-5))
    assert plan.line == "rms_norm 3x5x257 eps=1e-05 rstd=none" and "rms_norm forward" in plan.sku
    assert plan.guarantee["across_batch"] and plan.guarantee["compute"] == "f32"
    assert plan.arrays[0] == ("x", "operand", (3, 5, 257), "f32", True)
    assert "257 columns" in plan.describe() and plan.workspace_bytes == 0
    with pytest.raises(trireme.InvalidArgument, match="null pointer"):
        plan.run(x=x, gamma=gamma)
    with pytest.raises(trireme.InvalidArgument, match="no array 'z'"):
        plan.run(x=x, gamma=gamma, y=y, z=y)


def test_plans_that_accumulate(x, gamma):
    backward = trireme.rms_norm.gradient()
    dy = np.cos(x)
    once, dgamma = (np.zeros_like(gamma) for _ in range(2))
    arrays = dict(dy=dy, x=x, gamma=gamma, dx=np.empty_like(x))
    backward.plan(x.shape, absent=("rstd",)).run(arrays, dgamma=once)
    plan = backward.plan(x.shape, absent=("rstd",), accumulate=("dgamma",))
    for expected in (once, once + once):
        plan.run(arrays, dgamma=dgamma)
        assert np.array_equal(dgamma, expected)
    with pytest.raises(trireme.InvalidArgument, match="no sum over rows"):
        backward.plan(x.shape, accumulate=("dx",))


def test_programs_of_ones_own(x):
    scaled = trireme.op("scaled(x[i,j], s = 2) -> (y[i,j])\n    y = x * s")
    assert np.array_equal(scaled(x), x * 2) and np.array_equal(scaled(x, s=0.5), x / 2)
    assert trireme.op("rms_norm") is trireme.rms_norm
    again = pickle.loads(pickle.dumps(scaled))
    assert np.array_equal(again(x), x * 2) and str(again.show()) == str(scaled.show())
    assert pickle.loads(pickle.dumps(scaled.gradient())).name == "scaled_backward"


def test_bench(x):
    timing = trireme.rms_norm.bench(x, seconds=0.01)
    assert timing.seconds > 0 and timing.bytes == 2 * x.nbytes and "of a copy" in str(timing)


def test_devices_agree(x, gamma):
    y = trireme.rms_norm(x, gamma)
    for device, missing in trireme.devices().items():
        if device == "reference" or device.startswith("cpu") and not missing:
            assert np.array_equal(trireme.rms_norm(x, gamma, device=device), y)
    for threads in (1, 2, 5):
        assert np.array_equal(trireme.rms_norm(x, gamma, threads=threads), y)


def test_the_stubs_are_the_operators():
    import ast
    import os
    import pathlib
    import sys

    root = pathlib.Path(__file__).resolve().parents[2]
    sys.path.insert(0, str(root / "tools"))
    from python_stubs import stubs

    wanted, file = stubs(trireme), root / "python/trireme/__init__.pyi"
    if os.environ.get("BLESS"):
        file.write_text(wanted)
    ast.parse(wanted)
    assert file.read_text() == wanted, "BLESS=1 rewrites it"

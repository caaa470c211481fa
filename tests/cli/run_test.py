"""Usage: run_test.py TRIREME. `trireme run` against NumPy: shapes, types, layouts, and every way to be refused."""
import itertools
import os
import subprocess
import sys
import tempfile

try:
    import numpy as np
except ImportError:
    print("numpy is not installed")
    sys.exit(77)

tool = os.path.realpath(sys.argv[1])
folder = tempfile.TemporaryDirectory()
os.chdir(folder.name)
failures = 0
dice = np.random.default_rng(7)


def fail(message):
    global failures
    failures += 1
    print("FAIL", message)


def trireme(*arguments):
    done = subprocess.run([tool, *arguments], capture_output=True, text=True)
    return done.returncode, (done.stdout + done.stderr).strip()


def save(name, array):
    np.save(name + ".npy", array)


def run(program, inputs, outputs, *more):
    """The results' arrays; inputs are saved first, results forgotten."""
    for name, array in inputs.items():
        save(name, array)
    for name in outputs:
        if os.path.exists(name + ".npy"):
            os.remove(name + ".npy")
    arguments = [f"--in={name}={name}.npy" for name in inputs] + [f"--out={name}={name}.npy" for name in outputs]
    code, said = trireme("run", program, *arguments, *more)
    if code != 0:
        fail(f"{program} {more}: exit {code}: {said}")
        return [np.zeros(0)] * len(outputs)
    return [np.load(name + ".npy") for name in outputs]


def expect_near(got, want, tolerance, what):
    if got.shape != want.shape or not np.allclose(got.astype(np.float64), want, rtol=tolerance, atol=tolerance):
        fail(f"{what}: got {got.shape} {got.ravel()[:4]}, want {want.shape} {want.ravel()[:4]}")


def to_bf16(array):
    bits = array.astype(np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def from_bf16(bits):
    return (bits.astype(np.uint32) << 16).view(np.float32)


def rms(x, gamma, eps, axes=1):
    over = tuple(range(-axes, 0))
    rstd = 1 / np.sqrt((x.astype(np.float64) ** 2).mean(axis=over, keepdims=True) + eps)
    return x * rstd * gamma, rstd.reshape(x.shape[:-axes])


# Types and shapes.
x = dice.standard_normal((3, 5, 40)).astype(np.float32)
gamma = dice.standard_normal(40).astype(np.float32)
for threads, target in itertools.product(["1", "3"], ["cpu", "reference"]):
    y, rstd = run("rms_norm", {"x": x, "gamma": gamma}, ["y", "rstd"], "--threads", threads, "--target", target)
    expect_near(y, rms(x, gamma, 1e-6)[0], 1e-5, "rms_norm")
    expect_near(rstd, rms(x, gamma, 1e-6)[1], 1e-5, "rstd")
    if (threads, target) == ("1", "cpu"):
        first = y.tobytes(), rstd.tobytes()
    elif (y.tobytes(), rstd.tobytes()) != first:
        fail(f"threads {threads}, {target}: other bits")
(y,) = run("rms_norm", {"x": x}, ["y"], "--set", "eps=0.5")
expect_near(y, rms(x, 1, 0.5)[0], 1e-5, "rms_norm without gamma, eps 0.5")
y, rstd = run("rms_norm", {"x": x, "gamma": dice.standard_normal((5, 40)).astype(np.float32)}, ["y", "rstd"], "--axes", "2")
expect_near(y, rms(x, np.load("gamma.npy"), 1e-6, 2)[0], 1e-5, "two axes")
if rstd.shape != (3,):
    fail(f"two axes: rstd {rstd.shape}")
(y,) = run("rms_norm", {"x": x, "gamma": gamma.reshape(1, 1, 40)}, ["y"])
expect_near(y, rms(x, gamma, 1e-6)[0], 1e-5, "gamma of full rank with ones")
for dtype, tolerance in ((np.float64, 1e-12), (np.float16, 2e-3)):
    y, rstd = run("rms_norm", {"x": x.astype(dtype), "gamma": gamma.astype(dtype)}, ["y", "rstd"])
    expect_near(y, rms(x.astype(dtype), gamma.astype(dtype), 1e-6)[0], tolerance, str(dtype))
    if y.dtype != dtype or rstd.dtype != (np.float64 if dtype == np.float64 else np.float32):
        fail(f"{dtype}: y is {y.dtype}, rstd {rstd.dtype}")
(y,) = run("rms_norm", {"x": to_bf16(x)}, ["y"], "--type", "x=bf16")
expect_near(from_bf16(y), rms(from_bf16(to_bf16(x)), 1, 1e-6)[0], 1e-2, "bf16")
(y,) = run("rms_norm", {"x": to_bf16(x)}, ["y"], "--type", "x=bf16", "--type", "y=f32")
expect_near(y, rms(from_bf16(to_bf16(x)), 1, 1e-6)[0], 1e-5, "bf16 to f32")
q, scale = run("rms_norm_quant", {"x": x}, ["q", "scale"], "--type", "q=i8")
expect_near(q * scale[..., None], rms(x, 1, 1e-6)[0], 2e-2, "int8")
(q,) = run("rms_norm_quant", {"x": x}, ["q"], "--type", "q=f8e4m3")
if q.dtype != np.uint8:
    fail(f"f8 is {q.dtype}")
logits, target = dice.standard_normal((6, 9)).astype(np.float32), dice.integers(0, 9, 6).astype(np.int32)
(loss,) = run("cross_entropy", {"x": logits, "target": target}, ["loss"])
expect_near(loss, np.log(np.exp(logits).sum(-1)) - logits[np.arange(6), target], 1e-5, "cross_entropy")
images, weights = dice.standard_normal((6, 10)).astype(np.float32), dice.standard_normal((3, 5)).astype(np.float32)
(y,) = run("group_norm", {"x": images, "gamma": weights}, ["y"], "--set", "groups=3", "--set", "pixels=2")
centred = images - images.mean(-1, keepdims=True)
normal = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5)
expect_near(y, normal * np.repeat(weights, 2, axis=1)[np.arange(6) % 3], 1e-4, "group_norm")
(y,) = run("rms_norm", {"x": x[:0]}, ["y"])
if y.shape != (0, 5, 40):
    fail(f"zero rows: {y.shape}")
(y,) = run("softmax", {"x": gamma}, ["y"])
expect_near(y, np.exp(gamma) / np.exp(gamma).sum(), 1e-5, "rank 1")

# The backward: saved results are recomputed where they are not given, absent gradients are 0, [] results are 0-d.
dy = dice.standard_normal(x.shape).astype(np.float32)
_, rstd = run("rms_norm", {"x": x, "gamma": gamma}, ["y", "rstd"])
given = run("rms_norm", {"dy": dy, "x": x, "gamma": gamma, "rstd": rstd}, ["dx", "dgamma"], "--backward")
recomputed = run("rms_norm", {"dy": dy, "x": x, "gamma": gamma}, ["dx", "dgamma"], "--backward")
for got, again, shape in zip(given, recomputed, [(3, 5, 40), (40,)]):
    if got.shape != shape or got.tobytes() != again.tobytes():
        fail(f"rms_norm --backward: {got.shape}")
hat = x * rstd[..., None]
expect_near(given[1], (dy * hat).sum((0, 1)), 1e-4, "dgamma")
expect_near(given[0], rstd[..., None] * (dy * gamma - hat * (dy * gamma * hat).mean(-1, keepdims=True)), 1e-4, "dx")
alpha = np.float32(0.5)
# Without an operand whose default is an expression the backward is another program, which has no gradient for it.
with open("scaled.row", "w") as file:
    file.write("scaled(x[i,j], s[i] = mean(x), t[i] = s + 1) -> (y[i,j])\n  y = x * s + t\n")
(dx,) = run("scaled.row", {"dy": dy, "x": x}, ["dx"], "--backward")
sums = [each.sum(-1, keepdims=True) for each in (dy * x, dy)]
expect_near(dx, dy * x.mean(-1, keepdims=True) + sums[0] / x.shape[-1], 1e-4, "s is absent, t is not read")
(dx,) = run("scaled.row", {"dy": dy, "x": x}, ["dx"], "--backward", "--absent", "t", "--absent", "s")
expect_near(dx, dy * x.mean(-1, keepdims=True) + (sums[0] + sums[1]) / x.shape[-1], 1e-4, "both absent, said")
(dalpha,) = run("dynamic_tanh", {"dy": dy, "x": x, "alpha": alpha}, ["dalpha"], "--backward")
expect_near(dalpha, (dy * x / np.cosh(0.5 * x) ** 2).sum(), 1e-3, "dalpha")

# A program of one's own.
with open("twice.row", "w") as file:
    file.write("twice(x[i,j]) -> (y[i,j])\n    y = x + x\n")
(y,) = run("twice.row", {"x": np.arange(6, dtype=np.int32).reshape(2, 3)}, ["y"])
if y.dtype != np.int32 or y.tolist() != [[0, 2, 4], [6, 8, 10]]:
    fail(f"twice.row: {y}")


# Tables have as many rows as their arrays, whatever the problem has; a row that nobody writes is 0.
with open("lookup.row", "w") as file:
    file.write("lookup(x[i,j], at[i], table[at, j]) -> (y[i,j], cache[at, j])\n    y = x + table\n    cache = x\n")
table, at = dice.standard_normal((9, 4)).astype(np.float32), np.array([8, 2, -1], np.int64)
rows = dice.standard_normal((3, 4)).astype(np.float32)
y, cache = run("lookup.row", {"x": rows, "at": at, "table": table}, ["y", "cache"])
if not np.array_equal(y, rows + [table[8], table[2], 0 * table[0]]):
    fail(f"lookup.row: {y}")
if not np.array_equal(cache, [0 * rows[0], 0 * rows[0], rows[1]]):
    fail(f"lookup.row: rows that were not written: {cache}")

# A program without an [i,j] operand has its shape from who has its rows and who has its columns.
with open("embed.row", "w") as file:
    file.write("embed(token[i], table[token, j], s[] = 1) -> (y[i,j])\n    y = table * s\n")
token = np.array([[3, 8], [0, 9], [1, 1]], np.int32)
(y,) = run("embed.row", {"token": token, "table": table}, ["y"])
if not np.array_equal(y, np.where((token < 9)[..., None], table[np.minimum(token, 8)], 0)):
    fail(f"embed.row: {y}")
with open("outer.row", "w") as file:
    file.write("outer(a[i], b[j]) -> (y[i,j])\n    y = a * b\n")
(y,) = run("outer.row", {"a": rows[:, 0], "b": rows[0]}, ["y"])
if not np.array_equal(y, np.outer(rows[:, 0], rows[0])):
    fail(f"outer.row: {y}")


# Refusals: exit 2, and why.
def refused(reason, *arguments):
    code, said = trireme("run", *arguments)
    if code != 2 or reason not in said:
        fail(f"run {' '.join(arguments)}: exit {code}, no '{reason}' in: {said}")


save("x", x)
save("wide", gamma[:39])
save("bf16", to_bf16(x))
save("complex", x.astype(np.complex64))
save("big_endian", x.astype(">f4"))
save("fortran", np.asfortranarray(x))
save("scalar", np.float32(1))
save("no_columns", x[..., :0])
with open("x.npy", "rb") as file:
    whole = file.read()
for name, content in {"short": whole[:-1], "long": whole + b"x", "cut": whole[:20], "empty": b"", "text": b"hello",
                      "huge": whole.replace(b"(3, 5, 40), }        ", b"(3, 5, 4000000000), }")[:128],
                      }.items():
    with open(name + ".npy", "wb") as file:
        file.write(content)
good = ["--in", "x=x.npy", "--out", "y=y.npy"]
refused("no operator named 'rms_nrm'; did you mean 'rms_norm'?", "rms_nrm", *good)
refused("--in: rms_norm has no 'z'; there are: x, gamma", "rms_norm", "--in", "z=x.npy", "--out", "y=y.npy")
refused("did you mean 'gamma'?", "rms_norm", *good, "--in", "gama=x.npy")
refused("--out: rms_norm has no 'z'; there are: y, rstd", "rms_norm", "--in", "x=x.npy", "--out", "z=y.npy")
refused("--in x.npy: expected NAME=FILE, as in x=x.npy", "rms_norm", "--in", "x.npy", "--out", "y=y.npy")
refused("--in: 'x' is given twice", "rms_norm", *good, "--in", "x=x.npy")
refused("swiglu needs the operand 'gate'; give --in gate=FILE.npy", "swiglu", *good)
refused("rms_norm needs the operand 'x'", "rms_norm", "--out", "y=y.npy")
refused("nothing would be stored; give --out NAME=FILE.npy", "rms_norm", "--in", "x=x.npy")
refused("run: give a program, such as rms_norm, or --module FILE", *good)
refused("missing.npy: No such file", "rms_norm", "--in", "x=missing.npy", "--out", "y=y.npy")
refused("is not a file", "rms_norm", "--in", "x=.", "--out", "y=y.npy")
refused("no/y.npy: No such file", "rms_norm", "--in", "x=x.npy", "--out", "y=no/y.npy")
refused("wide.npy: 'gamma' has the shape (39,), and (40,) is expected", "rms_norm", *good, "--in", "gamma=wide.npy")
refused("bf16.npy: it holds uint16; say what that stands for", "rms_norm", "--in", "x=bf16.npy", "--out", "y=y.npy")
refused("x.npy: it holds float32, and bf16 travels as uint16", "rms_norm", *good, "--type", "x=bf16")
refused("'f31' is none of f64, f32", "rms_norm", *good, "--type", "y=f31")
refused("--type: rms_norm has no 'eps'", "rms_norm", *good, "--type", "eps=f32")
refused("--set: rms_norm has no 'gamma'; there are: eps, offset", "rms_norm", *good, "--set", "gamma=1")
refused("--set eps: 'small' is not a number", "rms_norm", *good, "--set", "eps=small")
refused("no device named 'gpu'", "rms_norm", *good, "--target", "gpu")
refused("whole number from 1", "rms_norm", *good, "--axes", "0")
refused("and the last 4 axes of it would make a row", "rms_norm", *good, "--axes", "4")
for name, reason in {"complex": "its elements are '<c8'", "big_endian": "it is big-endian ('>f4')",
                     "fortran": "it is in Fortran order", "scalar": "has the shape ()", "no_columns": "rows without columns",
                     "short": "(3, 5, 40) of float32 take 2400 bytes behind the header, and there are 2399",
                     "long": "and there are 2401", "cut": "it ends within its header", "empty": "does not begin as",
                     "text": "does not begin as", "huge": "behind the header, and there are"}.items():
    refused(f"{name}.npy: ", "rms_norm", "--in", f"x={name}.npy", "--out", "y=y.npy")
    refused(reason, "rms_norm", "--in", f"x={name}.npy", "--out", "y=y.npy")

sys.exit(failures != 0)

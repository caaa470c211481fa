"""Faults of FAULTS' list that live in Python, by their numbers; those of torch are in test_torch_faults.py."""
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import trireme
from trireme import _core


def test_fault_01_zero_rows():
    x = np.empty((0, 5, 33), np.float32)
    assert trireme.rms_norm(x).shape == (0, 5, 33)
    gamma = np.ones(33, np.float32)
    dx, dgamma = trireme.rms_norm.gradient()(x, x, gamma)
    assert dx.shape == x.shape and np.array_equal(dgamma.view(np.uint32), np.zeros(33, np.uint32))
    with pytest.raises(trireme.InvalidArgument, match="rows of no columns"):
        trireme.rms_norm(np.empty((5, 0), np.float32))


def test_fault_09_strides_that_nobody_expects(rng):
    base = rng.standard_normal((4, 6, 65)).astype(np.float32)
    wanted = trireme.rms_norm(base)
    expanded = np.broadcast_to(base[0, 0], (4, 65))
    assert np.array_equal(trireme.rms_norm(expanded)[3], wanted[0, 0])
    for view in (base[::-1], base[:, ::-1], base[..., ::-1], base[::2], base[..., ::2], base[::-1, :, ::-1],
                 np.moveaxis(base, 0, 1), np.broadcast_to(base[:, None], (4, 3, 6, 65)), base[:, 1:4]):
        assert np.array_equal(trireme.rms_norm(view), trireme.rms_norm(np.ascontiguousarray(view)))
    with pytest.raises(trireme.InvalidArgument, match="share memory|overlap"):
        trireme.rms_norm(base[0], out=np.lib.stride_tricks.as_strided(np.empty(65, np.float32), (6, 65), (0, 4)))


def test_fault_29_misuse(rng):
    x = rng.standard_normal((4, 8)).astype(np.float32)
    for wrong, error, said in [
        (lambda: trireme.rms_norm(), TypeError, "needs an array for x"),
        (lambda: trireme.rms_norm(None), TypeError, "needs an array for x"),
        (lambda: trireme.rms_norm(3.0), TypeError, "expected an array"),
        (lambda: trireme.rms_norm(x, x, x), TypeError, "takes 2 arrays by position"),
        (lambda: trireme.rms_norm(x, x=x), TypeError, "several values for 'x'"),
        (lambda: trireme.rms_norm(x, weight=x), TypeError, "no parameter 'weight'; it has x, gamma, eps"),
        (lambda: trireme.rms_norm(x, eps="small"), TypeError, "real number"),
        (lambda: trireme.swiglu(x), TypeError, "needs an array for gate"),
        (lambda: trireme.group_norm(x), TypeError, "needs a number for groups"),
        (lambda: trireme.rms_norm(x, results="z"), ValueError, "no result 'z'; it has y, rstd"),
        (lambda: trireme.rms_norm(x, results=()), ValueError, "names no result"),
        (lambda: trireme.rms_norm(x, types={"y": "f33"}), ValueError, "no type 'f33'; there are f64"),
        (lambda: trireme.rms_norm(x, types={"z": "f32"}), ValueError, "no array 'z'"),
        (lambda: trireme.rms_norm(x, types={"x": "bf16"}), ValueError, "types= says bf16"),
        (lambda: trireme.rms_norm(x, axes=3), ValueError, "axes"),
        (lambda: trireme.rms_norm(x, axes=0), ValueError, "axes=0"),
        (lambda: trireme.rms_norm(x, np.ones(7, np.float32)), ValueError, "expected 8"),
        (lambda: trireme.rms_norm(x, out=np.empty((4, 9), np.float32)), ValueError, "expected 4x8"),
        (lambda: trireme.rms_norm(x.astype(np.int16)), ValueError, "int32"),
        (lambda: trireme.rms_norm(x.astype(">f4")), ValueError, "elements of type"),
        (lambda: trireme.rms_norm(x.astype(complex)), ValueError, "elements of type"),
        (lambda: trireme.rms_norm(np.zeros((1,) * 9, np.float32)), ValueError, "9 axes"),
        (lambda: trireme.rms_norm(x, device="gpu"), RuntimeError, "no device named 'gpu'"),
        (lambda: trireme.op("f(x[i,j]) -> (y[i,j])\n y = z"), ValueError, "2:6"),
        (lambda: trireme.op(""), ValueError, "1:1"),
        (lambda: trireme.verify("rms_nrm 3x5"), ValueError, "rms_norm"),
        (lambda: trireme.Operator(), TypeError, "made of text"),
    ]:
        with pytest.raises(error, match=said) as caught:
            wrong()
        assert isinstance(caught.value, trireme.TriremeError) or said == "real number"
    unaligned = np.frombuffer(bytearray(4 * 8 * 4 + 1), np.uint8)[1:].view(np.float32).reshape(4, 8)
    with pytest.raises(trireme.InvalidArgument, match="multiple of the 4 bytes"):
        trireme.rms_norm(unaligned)


def test_fault_29_ten_thousand_shapes():
    scaled = trireme.op("scaled(x[i,j]) -> (y[i,j])\n y = x * 2")
    memory = np.ones(20000, np.float32)
    count = 10000 if os.environ.get("LONG") else 1000
    for k in range(1, count + 1):
        scaled(memory[:k], device="reference")
    assert scaled.cached_plans <= 256
    assert scaled(memory[:3])[2] == 2


def test_fault_29_many_threads_plan_the_same(rng):
    x = rng.standard_normal((64, 1024)).astype(np.float32)
    wanted = trireme.rms_norm(x)
    operator = trireme.op(trireme.rms_norm.text.replace("rms_norm(", "threaded("))
    wrong = []

    def work():
        for _ in range(5):
            if not np.array_equal(operator(x, threads=2)[0], wanted):
                wrong.append(1)

    operator._set_default_results(("y", "rstd"))
    threads = [threading.Thread(target=work) for _ in range(64)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not wrong and operator.cached_plans == 1


def test_fault_22_a_forked_child_works(rng):
    x = rng.standard_normal((512, 1024)).astype(np.float32)
    wanted = trireme.rms_norm(x, threads=2)
    child = os.fork()
    if child == 0:
        try:
            os._exit(0 if np.array_equal(trireme.rms_norm(x, threads=2), wanted) else 1)
        except BaseException:
            os._exit(2)
    assert os.waitpid(child, 0)[1] == 0


def test_threads_run_while_others_wait(rng):
    """Python's lock is given up in long runs: two threads make progress at once, and both are right."""
    x = rng.standard_normal((2000, 1000)).astype(np.float32)
    wanted = trireme.softmax(x, threads=1)
    results = [None, None]

    def work(k):
        results[k] = trireme.softmax(x, threads=1)

    threads = [threading.Thread(target=work, args=(k,)) for k in (0, 1)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert all(np.array_equal(each, wanted) for each in results)


def test_without_numpy_the_import_works():
    code = ("import sys; sys.modules['numpy'] = None; import trireme; "
            "assert trireme.verify('rms_norm 3x31', devices='cpu')['cpu']")
    subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})


def test_fault_40_out_of_memory_is_a_memory_error():
    """In a process that may have little more memory than it has; afterwards it goes on working."""
    program = """
import resource, numpy as np, trireme
from trireme import _core as core
x = np.ones((4, 33), np.float32)
y = trireme.rms_norm(x)
with open("/proc/self/statm") as file:
    used = int(file.read().split()[0]) * resource.getpagesize()
soft, hard = resource.getrlimit(resource.RLIMIT_AS)
resource.setrlimit(resource.RLIMIT_AS, (used + (64 << 20), hard))
try:
    core.digest("rms_norm 200000x10000", None, "cpu", 1)
except MemoryError as error:
    assert isinstance(error, trireme.OutOfMemory), error
    print("refused")
resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
assert np.array_equal(trireme.rms_norm(x), y)
print(core.digest("rms_norm 33x65", None, "cpu", 1))
"""
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path))
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["refused", _core.digest("rms_norm 33x65", None, "cpu", 1)]

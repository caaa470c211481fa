"""Calls with arrays on a GPU, against a driver that writes launches down and runs nothing: what is launched, on which
device and stream, with whose workspace. What the kernels compute is test_cuda.py's, where there is a GPU."""
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]

CODE = r"""
import ctypes, numpy as np, trireme

class Device:
    def __init__(self, index): self.id = index

class Gpu:
    '''An array on the fake GPU, whose memory is the host's.'''
    def __init__(self, array, index=0, stream=None):
        self.array, self.device = array, Device(index)
        self.__cuda_array_interface__ = {"shape": array.shape, "typestr": array.dtype.str, "version": 3,
                                         "data": (array.ctypes.data, False), "strides": array.strides, "stream": stream}

class Launch(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char * 48), ("numbers", ctypes.c_uint * 7), ("stream", ctypes.c_void_p),
                ("rows", ctypes.c_int64 * 3)]

fake = ctypes.CDLL("libcuda.so.1")
fake.fake_launches.restype = ctypes.POINTER(Launch)

def launches():
    found = [(fake.fake_launches()[k].name.decode(), fake.fake_launches()[k].stream) for k in range(fake.fake_launch_count())]
    fake.fake_forget()
    return found

def refused(work, said):
    try:
        work()
    except trireme.TriremeError as error:
        assert said in str(error), error
    else:
        raise AssertionError(said)

x, y, rstd = np.ones((6, 256), np.float32), np.empty((6, 256), np.float32), np.empty(6, np.float32)
gpu_x, gpu_y = Gpu(x), Gpu(y)
assert trireme.devices()["cuda"] == ""
assert trireme.rms_norm(gpu_x, out=gpu_y) is gpu_y
(launch,) = launches()
assert "rms_norm" in launch[0] and launch[1] is None, launch
trireme.rms_norm(gpu_x, out=gpu_y, stream=4096)
assert launches()[0][1] == 4096
trireme.rms_norm(Gpu(x, stream=2), out=gpu_y)  # the interface's own: the thread's default stream
assert launches()[0][1] == 2
trireme.rms_norm(Gpu(x[:, ::2]), out=Gpu(y[:, 1::2]))
assert len(launches()) == 1
refused(lambda: trireme.rms_norm(gpu_x), "out=")
refused(lambda: trireme.rms_norm(gpu_x, out=y), "share a device")
refused(lambda: trireme.rms_norm(gpu_x, np.ones(256, np.float32), out=gpu_y), "share a device")
assert launches() == []

backward = trireme.rms_norm.gradient()
gamma, dgamma = Gpu(np.ones(256, np.float32)), Gpu(np.empty(256, np.float32))
out = {"dx": gpu_y, "dgamma": dgamma}
refused(lambda: backward(Gpu(x.copy()), gpu_x, gamma, out=out), "workspace=")
refused(lambda: backward(Gpu(x.copy()), gpu_x, gamma, out=out, workspace=Gpu(np.empty(8, np.uint8))), "at least")
memory = np.empty(1 << 20, np.uint8)
aligned = memory[-memory.ctypes.data % 256:][:1 << 19]
backward(Gpu(x.copy()), gpu_x, gamma, out=out, workspace=Gpu(aligned), stream=7)
made = launches()
assert len(made) == 2 and all(stream == 7 for _, stream in made), made

plan = trireme.rms_norm.plan((6, 256), absent=("gamma",), results=("y",), device="cuda")
plan.prepare()
plan.run(x=gpu_x, y=gpu_y, stream=5)
assert launches()[0][1] == 5
refused(lambda: plan.run(x=x, y=gpu_y), "the plan is for cuda")
plan = trireme.rms_norm.plan((6, 256), absent=("gamma",), results=("y",), device="cuda:1")
assert "cuda:1" in plan.sku
refused(lambda: trireme.rms_norm.plan((6, 256), device="cuda:7"), "cuda:7")
print("fine")
"""


def test_calls_with_arrays_on_a_gpu(tmp_path):
    if not shutil.which("cc"):
        pytest.skip("no C compiler for the fake driver")
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", tmp_path / "libcuda.so.1",
                    ROOT / "src/devices/cuda/fake_driver.c"], check=True)
    environment = {**os.environ, "LD_LIBRARY_PATH": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path),
                   "TRIREME_CACHE": str(tmp_path / "cache")}
    done = subprocess.run([sys.executable, "-c", CODE], env=environment, capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout == "fine\n", done.stdout + done.stderr

#!/usr/bin/env python3
"""Bytes of WebAssembly modules by architecture: those of the kernel ABI, then kernels of operators by themselves.

    bench/wasm_sizes.py [OPERATOR...]
"""
import os
import shutil
import subprocess
import sys
import tempfile

tool = os.environ.get("TRIREME_TOOL") or shutil.which("trireme") or "build/release/trireme"
archs = ["simd128", "relaxed", "compact", "scalar"]


def size(*words):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "module.wasm")
        subprocess.run([tool, "emit", *words, "--target", "wasm", "-o", path], check=True, stdout=subprocess.DEVNULL)
        return os.path.getsize(path)


def line(name, *words):
    print(f"{name:24}" + "".join(f"{size(*words, '--arch', arch):9}" for arch in archs))


print(" " * 24 + "".join(f"{arch:>9}" for arch in archs))
if not sys.argv[1:]:
    for name in ["rms_norm", "swiglu", "geglu"]:
        line(f"{name} --abi kernel", name, "--abi", "kernel")
for name in sys.argv[1:] or ["rms_norm", "layer_norm", "softmax", "swiglu"]:
    line(name, name)
    line(f"{name} --backward", name, "--backward")

"""The wheel that `pip install .` builds: one binary for every CPython from 3.10 on. Built on the library of the build
under test, so that it takes seconds."""
import glob
import os
import pathlib
import re
import shutil
import subprocess
import sys
import zipfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("TRIREME_PACKAGE", ROOT / "build/release/python")).parent
CODE = """
import sys; sys.path.insert(0, sys.argv[1])
import trireme
assert trireme.verify("rms_norm 3x31 x=bf16 backward", devices="cpu")
print(sys.version_info[1], trireme.__version__)
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    pytest.importorskip("scikit_build_core", reason="scikit-build-core is not installed")
    if not (BUILD / "libtrireme.a").exists() or not (BUILD / "trireme").exists():
        pytest.skip("the package under test was not built here")
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run([sys.executable, "-m", "pip", "wheel", str(ROOT), "--no-build-isolation", "--no-deps", "--quiet",
                    "--wheel-dir", str(folder), f"-Ccmake.define.TRIREME_PREBUILT={BUILD / 'libtrireme.a'}",
                    f"-Cbuild-dir={folder / 'build'}"], check=True)
    (made,) = folder.glob("*.whl")
    return made


def test_the_wheel_holds_the_package_and_nothing_else(wheel):
    assert re.fullmatch(r"trireme_kernels-[\d.]+-cp310-abi3-linux_x86_64\.whl", wheel.name)
    names = zipfile.ZipFile(wheel).namelist()
    sources = {f"trireme/{path.relative_to(ROOT / 'python/trireme')}"
               for pattern in ("*.py", "*.pyi", "py.typed") for path in (ROOT / "python/trireme").rglob(pattern)}
    tool = wheel.name.split("-cp310")[0] + ".data/scripts/trireme"
    assert {name for name in names if ".dist-info/" not in name} == sources | {"trireme/_core.abi3.so", tool}
    metadata = zipfile.ZipFile(wheel).read(next(name for name in names if name.endswith("METADATA"))).decode()
    assert re.findall(r"^Requires-Dist: (.*)$", metadata, re.M)[0] == "numpy"
    version = re.search(r"project\(trireme VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text()).group(1)
    assert f"\nVersion: {version}\n" in metadata


def install(wheel, folder):
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    subprocess.run([sys.executable, "-m", "pip", "--python", folder / "bin/python", "install", "--no-deps", "--no-index",
                    "--quiet", wheel], check=True)


def test_the_tool_comes_with_it(wheel, tmp_path):
    """`trireme` is a command of the environment that the wheel is installed in, and uninstalled with it."""
    install(wheel, tmp_path / "venv")
    said = subprocess.run([tmp_path / "venv/bin/trireme", "verify", "rms_norm 3x31 x=bf16 backward", "--device", "cpu"],
                          capture_output=True, text=True)
    assert said.returncode == 0 and "same bits" in said.stdout, said.stdout + said.stderr
    version = subprocess.run([tmp_path / "venv/bin/trireme", "--version"], capture_output=True, text=True).stdout
    assert wheel.name.split("-")[1] in version, version
    subprocess.run([sys.executable, "-m", "pip", "--python", tmp_path / "venv/bin/python", "uninstall", "--yes", "--quiet",
                    "trireme-kernels"], check=True)
    assert not (tmp_path / "venv/bin/trireme").exists()


def test_manylinux(wheel, tmp_path):
    """The same files under the name of the oldest glibc they run on; pip installs it, and the tool runs."""
    shutil.copy(wheel, tmp_path)
    if b"libstdc++.so" in (BUILD / "trireme").read_bytes():  # not built with TRIREME_STATIC: refused, and left out below
        done = subprocess.run([sys.executable, ROOT / "tools/manylinux.py", tmp_path / wheel.name], capture_output=True, text=True)
        assert done.returncode == 1 and "scripts/trireme needs libstdc++" in done.stderr
        with zipfile.ZipFile(wheel) as whole, zipfile.ZipFile(tmp_path / wheel.name, "w") as less:
            for name in whole.namelist():
                if name.endswith("/RECORD"):
                    lines = whole.read(name).decode().splitlines(True)
                    less.writestr(name, "".join(line for line in lines if "scripts/trireme" not in line))
                elif not name.endswith("scripts/trireme"):
                    less.writestr(name, whole.read(name))
    done = subprocess.run([sys.executable, ROOT / "tools/manylinux.py", tmp_path / wheel.name], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    (made,) = tmp_path.glob("*.whl")
    assert re.fullmatch(r"trireme_kernels-[\d.]+-cp310-abi3-manylinux_2_\d+_x86_64\.whl", made.name), made.name
    assert done.stdout.strip() == str(made)
    install(made, tmp_path / "venv")
    if (tmp_path / "venv/bin/trireme").exists():
        said = subprocess.run([tmp_path / "venv/bin/trireme", "list"], capture_output=True, text=True)
        assert said.returncode == 0 and "rms_norm" in said.stdout, said.stderr
    metadata = "import importlib.metadata as m; print(m.version('trireme-kernels'))"
    assert subprocess.run([tmp_path / "venv/bin/python", "-c", metadata], capture_output=True).returncode == 0
    shutil.copy(wheel, tmp_path / "newer.whl")
    needs = subprocess.run([sys.executable, ROOT / "tools/manylinux.py", tmp_path / "newer.whl", "--newest", "2.5"],
                           capture_output=True, text=True)
    assert needs.returncode == 1 and "newer than 2.5" in needs.stderr


def test_it_needs_libc_alone_and_imports_everywhere(wheel, tmp_path):
    zipfile.ZipFile(wheel).extractall(tmp_path)
    subprocess.run([ROOT / "tests/package/check_static.sh", tmp_path / "trireme/_core.abi3.so"], check=True)
    found = {shutil.which(f"python3.{minor}") for minor in range(10, 15)} | {sys.executable}
    found |= set(glob.glob(os.path.expanduser("~/.pyenv/versions/3.1*/bin/python3")))
    for python in found - {None}:
        version = subprocess.run([python, "-c", "import sys; print(sys.version_info >= (3, 10))"], capture_output=True,
                                 text=True)
        if version.stdout.strip() != "True":
            continue
        done = subprocess.run([python, "-c", CODE, str(tmp_path)], capture_output=True, text=True)
        assert done.returncode == 0, f"{python}: {done.stderr}"

"""Kernels as text and bytes: what the tool writes."""
import json
import os
import re
import subprocess

import pytest

import trireme

TOOL = os.environ.get("TRIREME_TOOL")


def architectures():
    """Each target with the first architecture that the tool's help names."""
    if not TOOL:
        return [("ptx", "sm_80")]
    text = subprocess.run([TOOL, "emit", "--help"], check=True, capture_output=True, text=True).stdout
    return [tuple(re.match(r"(\w+): (\w+)", part).groups()) for part in re.search(r"--arch ARCH +(.*)", text)[1].split("; ")]


@pytest.mark.skipif(not TOOL, reason="TRIREME_TOOL is not set")
@pytest.mark.parametrize("target, arch", architectures())
@pytest.mark.parametrize("backward", [False, True])
def test_same_as_the_tools(tmp_path, target, arch, backward):
    operator = trireme.rms_norm.gradient() if backward else trireme.rms_norm
    made = trireme.emit(operator, target, arch=arch, columns=1024, types={"x": "bf16"}, eps=1e-5)
    file = tmp_path / "kernels"
    subprocess.run([TOOL, "emit", "rms_norm", *["--backward"] * backward, "--target", target, "--arch", arch, "--cols", "1024",
                    "--type", "x=bf16", "--set", "eps=1e-5", "-o", file], check=True, stdout=subprocess.DEVNULL)
    written = file.read_bytes()
    if target == "ptx":  # the tool puts the description before it
        assert written.endswith(made.code) and made.text.lstrip().startswith(".version")
    else:
        assert written == made.code
    assert made.arch == arch and made.program == operator.name and made.manifest["program"] == operator.name
    assert [each["name"] for each in made.manifest["operands"]][:1] == ["dy" if backward else "x"]
    if target == "wasm":
        assert json.dumps(made.manifest["slots"][0]).encode().replace(b" ", b"") in made.code
    again = trireme.emit(operator, target, arch=arch, columns=1024, types={"x": "bf16"}, eps=1e-5, config=made.config)
    assert again.code == made.code


def test_programs_of_ones_own():
    made = trireme.emit("twice(x[i,j]) -> (y[i,j])\n    y = x + x", "ptx")
    assert "twice" in made.text and "args[0]" in made.description and "TWICE_ARGS" in made.c_constants
    assert trireme.emit("rms_norm", "ptx").code == trireme.emit(trireme.rms_norm, "ptx").code


def test_refusals():
    with pytest.raises(trireme.InvalidArgument, match="none of ptx"):
        trireme.emit(trireme.rms_norm, "spirv")
    with pytest.raises(trireme.InvalidArgument, match="no architecture 'sm_9'"):
        trireme.emit(trireme.rms_norm, "ptx", arch="sm_9")
    with pytest.raises(trireme.InvalidArgument, match="at least one column"):
        trireme.emit(trireme.rms_norm, "ptx", columns=0)
    with pytest.raises(trireme.TriremeError, match="gama"):
        trireme.emit(trireme.rms_norm, "ptx", absent=("gama",))

"""Digests of problem lines are the command line's."""
import os
import pathlib
import re
import subprocess

import numpy as np
import pytest

import trireme
from operators_list import lines

TOOL = os.environ.get("TRIREME_TOOL", str(pathlib.Path(__file__).resolve().parents[2] / "build/release/trireme"))


@pytest.mark.skipif(not os.path.exists(TOOL), reason="the command line is not built")
def test_every_operator_has_the_command_lines_digests():
    every = lines()
    assert len(every) > 100
    said = subprocess.run([TOOL, "verify", *every, "--device", "reference"], check=True, capture_output=True, text=True)
    blocks = re.findall(r"^(\S.*)\n  reference +([0-9a-f]{32})", said.stdout, re.M)
    assert len(blocks) == len(every)
    for line, (_, digest) in zip(every, blocks):
        assert trireme.verify(line, devices="cpu") == {"reference": digest, "cpu": digest}, line


def test_programs_of_ones_own_and_all_devices():
    digests = trireme.verify("twice 5x33", text="twice(x[i,j]) -> (y[i,j])\n y = x + x")
    assert set(digests) >= {"reference", "lanes"} and len(set(digests.values())) == 1
    assert len(next(iter(digests.values()))) == 32

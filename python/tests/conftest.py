"""Tests run on the package that the build left in BUILD/python: TRIREME_PACKAGE, else build/release/python."""
import os
import pathlib
import sys

os.environ.setdefault("OMP_NUM_THREADS", "1")  # small problems, and others use the machine too
root = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, os.environ.get("TRIREME_PACKAGE", str(root / "build" / "release" / "python")))
sys.path.insert(0, str(pathlib.Path(__file__).parent))

import pytest


@pytest.fixture
def rng():
    import numpy
    return numpy.random.default_rng(7)

"""Operators over many machines: processes of a gloo group against one process. What they do is in parallel_cases."""
import os
import pathlib
import subprocess
import sys
import time

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
pytestmark = pytest.mark.skipif(not torch.distributed.is_available(), reason="torch was built without distributed")

import trireme

SCRIPT = pathlib.Path(__file__).with_name("parallel_cases.py")
SECONDS = 240  # of a run, on a busy machine; who is not done by then hangs


def environment(**more):
    package = str(pathlib.Path(trireme.__file__).resolve().parents[1])
    return {**os.environ, "PYTHONPATH": package, "OMP_NUM_THREADS": "1", **more}


def run(tmp_path, size, cases, wait=60, **more):
    """Exit codes and what was printed, of one process a machine."""
    files = [open(tmp_path / f"machine{rank}", "w+") for rank in range(size)]
    machines = [subprocess.Popen([sys.executable, str(SCRIPT), *cases], stdout=file, stderr=subprocess.STDOUT,
                                 env=environment(RANK=str(rank), WORLD_SIZE=str(size), MEETING=str(tmp_path / "meeting"),
                                                 SECONDS_TO_WAIT=str(wait), **more))
                for rank, file in enumerate(files)]
    deadline = time.monotonic() + SECONDS
    codes = []
    try:
        for machine in machines:
            codes.append(machine.wait(max(deadline - time.monotonic(), 0.1)))
    finally:
        for machine in machines:
            machine.kill()
    said = []
    for file in files:
        file.seek(0)
        said.append(file.read())
        file.close()
    return codes, said


TORCHRUN = ["-m", "torch.distributed.run", "--standalone"]


def torchrun(size, cases):
    """The same by torchrun: one exit code, one text."""
    done = subprocess.run([sys.executable, *TORCHRUN, f"--nproc-per-node={size}", str(SCRIPT), *cases], env=environment(), capture_output=True, text=True, timeout=SECONDS)
    return [done.returncode], [done.stdout + done.stderr]


LONG = pytest.mark.skipif(not (os.environ.get("TRIREME_ALL_MODELS") or os.environ.get("LONG")),
                          reason="LONG=1 or TRIREME_ALL_MODELS=1 runs what takes long")
COMMON = ["columns", "groups", "rows", "empty", "named", "counted", "random", "composed", "once", "exchanges", "bytes", "shares", "losses", "norms", "sums", "errors"]


@pytest.mark.parametrize("size, cases", [
    (2, [*COMMON, "dtensor", "axes", "picked", "products", "ops", "rules", "heads", "modules", "compiled", "compiled_modules", "second",
         "transforms", "answers", "placements", "cuts", "defaults", "every", "locals"]),
    (3, ["picked", "products", "bytes", "shares", "columns", "groups", "rows", "counted", "random", "norms", "errors", "locals", "losses",
         "ops", "rules", "uneven", "modules", "outside"]),
    (4, ["both", "axes", "columns", "groups", "rows", "empty", "norms", "sums", "shares", "mesh", "once", "uneven", "modules", "errors", "losses", "placements"]),
    (8, ["digests"]),
    pytest.param(2, ["inductor", "inductor_modules"], marks=LONG),
    pytest.param(3, [*COMMON, "dtensor", "every", "compiled", "compiled_modules", "inductor", "inductor_modules"], marks=LONG),
    pytest.param(4, [*COMMON, "dtensor", "every", "compiled", "compiled_modules", "inductor", "inductor_modules"], marks=LONG),
    pytest.param(8, ["norms", "losses", "once", "bytes", "shares"], marks=LONG)])
def test_many_machines_give_what_one_gives(tmp_path, size, cases):
    codes, said = run(tmp_path, size, cases) if size == 2 else torchrun(size, cases)
    assert codes == [0] * len(codes), "\n".join(each for code, each in zip(codes, said) if code)
    for case in cases:
        assert all(any(f"fine {case} {rank}" in each for each in said) for rank in range(size)), case


def test_what_inductor_keeps_on_disk_is_for_the_machine_that_made_it(tmp_path):
    """A second run finds the first one's compiled code, and takes nobody else's."""
    for turn in ("first", "second"):
        (tmp_path / turn).mkdir()
        codes, said = run(tmp_path / turn, 2, ["compiled_first"], TORCHINDUCTOR_CACHE_DIR=str(tmp_path / "kept"))
        assert codes == [0, 0], "\n".join(said)


AWAY = "a machine of the group went away, or did not come"


@pytest.mark.parametrize("case, size, last, words, last_words", [
    ("dies", 3, 7, "Error", ""), ("dies_backward", 3, 7, "Error", ""), ("dies_rows", 3, 7, "Error", ""),
    ("dies_first", 2, 7, f"rms_norm: {AWAY}", ""), ("dies_dtensor", 2, 7, f"softmax: {AWAY}", ""),
    ("dies_within", 2, 7, f"softmax_part1 of 512 columns: {AWAY}", ""), ("dies_sum", 3, 7, f"sum_over of torch.float32 (1048576,): {AWAY}", ""),
    ("dies_compiled", 2, 7, "Error", ""), ("dies_mesh", 4, 7, f"rms_norm: {AWAY}", ""),
    ("differs_backward", 2, 1, f"rms_norm_backward: {AWAY}", "RuntimeError"),
    ("differs", 2, 1, "Error", "of the 2 machines of the group, [0] did not come within 8 s")])
def test_a_machine_that_dies_or_differs_ends_in_an_error(tmp_path, case, size, last, words, last_words):
    """Every machine ends, with Python's words for it."""
    begin = time.monotonic()
    codes, said = run(tmp_path, size, [case], wait=8)
    assert codes == [1] * (size - 1) + [last] and all(words in each for each in said[:-1]) and last_words in said[-1], (codes, said)
    assert time.monotonic() - begin < 60


def test_torchrun_ends_when_a_machine_fails():
    """With the error's words, and no machine waits for the others' timeout."""
    begin = time.monotonic()
    (code,), (said,) = torchrun(3, ["fails"])
    assert code != 0 and "machine 1 of 3, case fails" in said and "what it failed of" in said and "fine fails" not in said, said
    assert time.monotonic() - begin < 60


@pytest.mark.parametrize("launcher, options, code, words", [
    ([], ["--reference"], 0, "the same bits: 2 losses, 12 weights"), ([], [], 0, "the same but for roundings: 2 losses"),
    ([*TORCHRUN, "--nproc-per-node=4"], ["--reference"], 0, "the same bits: 2 losses, 12 weights"),
    ([*TORCHRUN, "--nproc-per-node=2"], [], 1, "2 processes: tensor parallel by two times data parallel by two is four")],
    ids=["reference", "plain", "torchrun", "two"])
def test_four_processes_train_as_one(launcher, options, code, words):
    """Losses and weights, bit for bit where the products are; by other numbers of processes refused."""
    example = pathlib.Path(__file__).resolve().parents[2] / "examples/train_parallel.py"
    done = subprocess.run([sys.executable, *launcher, str(example), *options, "--steps", "2"], env=environment(), capture_output=True,
                          text=True, timeout=SECONDS)
    assert done.returncode == code and words in done.stdout + done.stderr, done.stdout + done.stderr


def trees():
    from trireme.torch._exchange import tree_of
    return tree_of


@pytest.mark.parametrize("widths", [(512, 512), (256,) * 3, (256, 256, 100), (768, 768), (1280,) * 4, (256 * 7, 256, 256 * 5, 30)])
def test_runs_are_nodes_of_the_contracts_tree(rng, widths):
    """Sums of runs, combined as the tree says, are the row sum's bits: by the contract written out."""
    import numpy as np
    tree = trees()(widths, 256)
    x = rng.standard_normal(sum(widths)).astype("f4")
    total = trireme.op("total(x[i,j]) -> (s[i])\n    s = sum(x)")

    def value(node):
        if isinstance(node[0], int):
            part, run = node
            first = sum(widths[:part]) + tree.runs[part][run][0]
            return total(x[None, first:first + tree.runs[part][run][1]])[0]
        return np.float32(value(node[0]) + value(node[1]))

    assert tree.exact and value(tree.shape).tobytes() == total(x[None])[0].tobytes()
    assert [sum(count for _, count in runs) for runs in tree.runs] == list(widths)
    assert max(map(len, tree.runs)) <= 2 * max(1, (max(widths) // 256).bit_length())


def test_cuts_elsewhere_have_one_run_a_part():
    tree = trees()((300, 301, 0, 7, 9), 256)
    assert not tree.exact and tree.runs == (((0, 300),), ((0, 301),), (), ((0, 7),), ((0, 9),))
    assert tree.shape == (((0, 0), (1, 0)), ((3, 0), (4, 0)))

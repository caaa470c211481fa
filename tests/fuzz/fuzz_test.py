"""Usage: fuzz_test.py TRIREME. Tests of the fuzzer: what it must notice, it notices; what is right, it lets pass."""
import contextlib
import io
import os
import pathlib
import random
import re
import stat
import sys
import tempfile
import unittest
from dataclasses import replace

sys.dont_write_bytecode = True
try:
    import numpy as np
except ImportError:
    print("numpy is not installed")
    sys.exit(77)

import arithmetic
import checks
import features
import formulas
import importlib.util
import storage
import syntax
from evaluate import Inputs, evaluate, formula_value
from functions import UNARY
from generate import draw
from parse import parse
from problem import Problem, draw_problem
from tool import Tool

here = pathlib.Path(__file__).resolve().parent
page = (here.parents[1] / "docs/language.md").read_text()
tool = os.path.realpath(sys.argv.pop(1) if len(sys.argv) > 1 else os.environ["TRIREME_TOOL"])
specification = importlib.util.spec_from_file_location("fuzz", here / "__main__.py")
fuzz = importlib.util.module_from_spec(specification)
specification.loader.exec_module(fuzz)
device = next(iter(Tool(tool, ".").devices()))

# A tool that lies: {how} edits what the true one says.
LIAR = """#!{python} -SE
import os, re, subprocess, sys
done = subprocess.run([{tool!r}] + sys.argv[1:], capture_output=True, text=True)
out, err, code = done.stdout, done.stderr, done.returncode
def source(word):
    file = word.split()[0]
    return open(file, errors="replace").read() if file.endswith(".row") and os.path.exists(file) else ""
{how}
sys.stdout.write(out); sys.stderr.write(err); sys.exit(code)
"""
OTHER_BITS = """
if sys.argv[1] == "verify":
    blocks = re.split(r"(?m)^(?=\\S)", out)
    flip = lambda block: re.sub(r"(?m)^(  {device} +)(.)", lambda m: m[1] + ("0" if m[2] != "0" else "1"), block)
    out = "".join(flip(block) if "max(" in source(block or "x") else block for block in blocks)
"""
OTHER_VALUES = """
if sys.argv[1] == "run" and "square(" in source(sys.argv[2]):
    sys.path += {path!r}
    import numpy
    for word in sys.argv:
        if word.startswith("--out="):
            file = word.split("=", 2)[2]
            array = numpy.load(file)
            numpy.save(file, array + (numpy.abs(array) * 1e-5 + 1).astype(array.dtype))
"""
CRASH = """
if sys.argv[1] == "show" and "rotate" in source(sys.argv[2]):
    import os, signal
    os.kill(os.getpid(), signal.SIGSEGV)
"""
NO_PLACE = """
err = re.sub(r":[0-9]+:[0-9]+: expected .*", ": something is wrong", err)
"""


class Faults(unittest.TestCase):
    """Wrong answers of the tool are found, made small and kept."""

    def fuzz(self, how, *more, count=20):
        with tempfile.TemporaryDirectory() as folder:
            if how:
                liar = pathlib.Path(folder) / "liar"
                liar.write_text(LIAR.format(python=sys.executable, tool=tool, how=how.format(path=sys.path, device=device)))
                liar.chmod(liar.stat().st_mode | stat.S_IXUSR)
            arguments = ["--tool", str(liar) if how else tool, "--count", str(count), "--failures", folder + "/kept"]
            arguments += ["--jobs", "1", "--most", "1", "--shrink-seconds", "15", *more]
            said = io.StringIO()
            with contextlib.redirect_stdout(said):
                code = fuzz.Session(fuzz.options_of(arguments)).run()
            kept = sorted(pathlib.Path(folder).glob("kept/*.row"))
            return code, said.getvalue(), [file.read_bytes() for file in kept]

    def test_a_true_tool_passes(self):
        code, said, kept = self.fuzz(None, "--device", device, count=16)
        self.assertEqual((code, kept), (0, []), said)
        self.assertRegex(said, r"\d+ comparisons with the reference")

    def test_other_bits_are_found_and_shrunk(self):
        code, said, kept = self.fuzz(OTHER_BITS, "--device", device)
        self.assertEqual(code, 1, said)
        self.assertIn(f"FAIL bits {device}", said)
        self.assertRegex(said, r"rerun: trireme verify \"\S+/kept/1_\d+_1.row \d+x\d+")
        small = kept[0].decode()
        self.assertLessEqual(len(small.splitlines()), 3, small)
        self.assertRegex(small, r"max\(")
        self.assertLess(len(small), 70, small)

    def test_other_values_are_found_and_shrunk(self):
        code, said, kept = self.fuzz(OTHER_VALUES, "--device", device)
        self.assertEqual(code, 1, said)
        self.assertRegex(said, r"FAIL values .*\n.* not within \[")
        self.assertIn(b"square(", kept[0])
        self.assertLessEqual(len(kept[0].splitlines()), 3, kept[0])

    def test_crashes_are_found_and_shrunk(self):
        code, said, kept = self.fuzz(CRASH, "--device", device)
        self.assertEqual(code, 1, said)
        self.assertRegex(said, r"FAIL crash (show|malformed) .*\n  ended by signal 11")
        self.assertIn(b"rotate", kept[0])
        self.assertLess(len(kept[0]), 70, kept[0])

    def test_errors_without_a_place_are_found(self):
        code, said, _ = self.fuzz(NO_PLACE, "--device", device)
        self.assertEqual(code, 1, said)
        self.assertIn("FAIL malformed without a place", said)

    def test_wrong_gradients_are_found(self):
        forward = parse("f(x[i,j], g[j]) -> (y[i,j])\n y = tanh(x) * g\n")
        right = "b(dy[i,j] = 0, x[i,j], g[j]) -> (dx[i,j], dg[j])\n t = tanh(x)\n dx = dy * g * (1 - t * t)\n dg = colsum(dy * t)\n"
        problem = Problem((5, 7))
        self.assertEqual(checks.gradient_failures(forward, parse(right), problem, ""), ([], True))
        for wrong in (right.replace("1 - t", "1 + t"), right.replace("colsum(dy", "colsum(2 * dy")):
            failures, _ = checks.gradient_failures(forward, parse(wrong), problem, "")
            self.assertEqual([each[0] for each in failures], ["gradient"], wrong)

    def test_another_meaning_is_found(self):
        program = parse("f(x[i,j]) -> (y[i,j])\n y = x - x * 2 - 1\n")
        other = parse("f(x[i,j]) -> (y[i,j])\n y = x - (x * 2 - 1)\n")
        self.assertEqual(checks.meaning_failures(program, program, Problem((5, 7)), ""), [])
        self.assertEqual(checks.meaning_failures(program, other, Problem((5, 7)), "")[0][0], "printed meaning")


class Language(unittest.TestCase):
    def test_texts_are_read_back(self):
        for index in range(300):
            _, program = draw(3, index)
            for dice in (None, random.Random(index)):
                text = syntax.program_text(program, dice)
                self.assertEqual(parse(text), replace(program, remarks=()), text)

    def test_every_function_of_the_page_is_known(self):
        named = set()
        for line in page.splitlines():
            if line.startswith("| `"):
                named |= set(re.findall(r"`(\w+)(?:\([^`]*\))?`", line.split("|")[1]))
        named -= {"rstd", "gamma", "alpha", "eps", "x"}
        self.assertEqual(named - {"eps"}, set(syntax.ARITY))
        for name, each in formulas.FORMULAS.items():
            self.assertTrue(each.expression, f"{name}: a formula that is not of the language wants a record in functions.py")

    def test_bounds_are_those_of_the_page(self):
        for name, each in formulas.ON_THE_PAGE.items():
            if name in UNARY and name != "rsqrt":
                self.assertEqual(UNARY[name].bound, each.bound, name)

    def test_functions_without_a_record_mean_their_formula(self):
        row = "| `hard_tanh` | min(max(x, -1), 1) | all \\|x\\| | exact | exact | exact | exact | 2 / 2 |"
        row += "\n| `swish` | x * sigmoid(b * x) | all | 2^-22 \\|x\\| | 2^-23 | 2^-50 \\|x\\| | 2^-52 | 20 / 30 |"
        read = formulas.read_formulas(f"<!-- generated: functions -->\n| a |\n|---|\n{row}\n<!-- end -->")
        hard, swish = read["hard_tanh"], read["swish"]
        self.assertEqual((hard.arguments, hard.bound), (("x",), None))
        self.assertEqual((swish.arguments, swish.bound), (("x", "b"), ("of x", 2.0**-22, 2.0**-50)))
        x = np.array([[-3.0, -0.5, 0.25, 7.0]])
        value, slope = formula_value(hard, [(x, np.ones_like(x))], arithmetic.Duals())
        np.testing.assert_array_equal(value, np.clip(x, -1, 1))
        np.testing.assert_array_equal(slope, [[0, 1, 1, 0]])
        low, high = formula_value(hard, [(x - 1, x)], arithmetic.Intervals("f32"))
        np.testing.assert_array_equal([low, high], [np.clip(x - 1, -1, 1), np.clip(x, -1, 1)])
        b = np.full((1, 1), 1.702)
        want = x * UNARY["sigmoid"].value(b * x)
        low, high = formula_value(swish, [(x, x), (b, b)], arithmetic.Intervals("f32"))
        self.assertTrue(((low < want) & (want < high) & (high - low < 2.0**-20 * np.abs(x))).all())
        value, slope = formula_value(swish, [(x, np.zeros_like(x)), (b, np.ones_like(b))], arithmetic.Duals())
        np.testing.assert_allclose(slope, x * x * UNARY["sigmoid"].slope(b * x, value), rtol=1e-12)

    def test_a_sample_has_every_construct(self):
        seen = set()
        for index in range(400):
            generator, program = draw(1, index)
            seen |= features.features(program, draw_problem(generator, program))
        missing = [each for each in features.CONSTRUCTS if each not in seen and not each.startswith("backward")]
        self.assertEqual(missing, [])


class Numbers(unittest.TestCase):
    def test_slopes_are_those_of_differences(self):
        x = np.concatenate([np.linspace(-4, 4, 83), [0.3, 1.7]])
        for name, record in UNARY.items():
            value, slope = record.value, record.slope
            at = x if record.lowest == -np.inf else np.abs(x) + record.lowest + 0.1
            differences = (value(at + 1e-6) - value(at - 1e-6)) / 2e-6
            smooth = np.abs(at - np.rint(2 * at) / 2) > 1e-3  # away from steps and corners
            np.testing.assert_allclose(slope(at, value(at))[smooth], differences[smooth], rtol=1e-6, atol=1e-7, err_msg=name)

    def test_names_of_types_have_no_groups(self):
        program = parse("f(x[i,j]) -> (y[i])\n    y = sum(entries(min(largest(x), sum(x, j / 2))))\n")
        inputs = Inputs(2, 4, {}, {"x": np.arange(8.0).reshape(2, 4)}, {"x": "f32", "y": "f32"})
        np.testing.assert_array_equal(evaluate(program, inputs, arithmetic.Duals())["y"][0], [[6], [22]])

    def test_storage_types_round(self):
        values = np.array([0.0, -0.0, 1.0, 448.0, 464.0, 465.0, 1e9, -np.inf, 2.0**-9, 2.0**-10, 1.1 * 2.0**-10, 17.0, 19.0])
        want = [0, 0, 1, 448, 448, 448, 448, -448, 2**-9, 0, 2**-9, 16, 20]
        np.testing.assert_array_equal(storage.round_to("f8e4m3", values), want)
        np.testing.assert_array_equal(storage.round_to("i8", [2.5, 3.5, -200.0, np.inf, np.nan]), [2, 4, -128, 127, 0])
        self.assertEqual(storage.round_to("bf16", 1 + 2.0**-8), 1.0)
        self.assertEqual(storage.round_to("bf16", 1 + 3 * 2.0**-8), 1 + 2.0**-6)
        dice = np.random.default_rng(5)
        halves = dice.standard_normal(1000) * 10.0 ** dice.integers(-8, 6, 1000)
        with np.errstate(over="ignore"):
            np.testing.assert_array_equal(storage.round_to("f16", halves), halves.astype(np.float16))
        for kind in ("f8e4m3", "f8e5m2"):
            finite = [byte for byte in range(256) if np.isfinite(storage.TABLES[kind][byte])]
            np.testing.assert_array_equal(storage.encode(kind, storage.TABLES[kind][finite]), finite)

    def test_zero_rounds_by_chance_to_the_least_step(self):
        for kind, step in {"f8e8m0": 2.0**-127, "f16": 2.0**-24, "f4e2m1": 0.5, "i8": 1.0}.items():
            self.assertEqual(storage.round_by_chance(kind, "f32", np.zeros(1), np.full(1, -1.0)), step, kind)

    def test_intervals_hold_what_is_computed_in_f32(self):
        """Plain f32 arithmetic in the contract's order is a point of the interval; functions lie inside."""
        text = "f(x[i,j], g[j]) -> (y[i,j], r[i], s[j])\n r = mean(x * g) / (amax(x) + 1)\n y = exp(x) * r - floor(x)\n s = colsum(y)\n"
        program, dice = parse(text), np.random.default_rng(3)
        x, g = (dice.uniform(-2, 2, shape).astype(np.float32) for shape in ((9, 300), (1, 300)))
        inputs = Inputs(9, 300, {}, {"x": x.astype(np.float64), "g": g.astype(np.float64)})
        got = evaluate(program, inputs, arithmetic.Intervals("f32"))
        np.testing.assert_array_equal(*got["r"])
        y = np.exp(x) * got["r"][0].astype(np.float32) - np.floor(x)
        self.assertTrue(((got["y"][0] <= y) & (y <= got["y"][1])).all())
        self.assertLess((got["y"][1] - got["y"][0]).max(), 1e-4)
        s = y.sum(axis=0)
        self.assertTrue(((got["s"][0] <= s) & (s <= got["s"][1])).all())


if __name__ == "__main__":
    unittest.main(verbosity=1)

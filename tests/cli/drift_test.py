"""Usage: drift_test.py TRIREME. `trireme drift` on traces written by hand: what it says, its exit codes, and broken traces."""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

from written_trace import array, event, two_events, write_trace

tool = os.path.realpath(sys.argv.pop(1))


def drift(*arguments):
    done = subprocess.run([tool, "drift", *arguments], capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


class Drift(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        os.chdir(folder.name)
        write_trace("a", two_events([1, 2, 3, 4], [1, 4, 3, 8]))

    def parts(self, events, *options, **how):
        shutil.rmtree("b", ignore_errors=True)
        write_trace("b", events, **how)
        code, text = drift("a", "b", *options)
        self.assertEqual(code, 1, text)
        return text

    def test_the_same(self):
        write_trace("b", two_events([1, 2, 3, 4], [1, 4, 3, 8]))
        self.assertEqual(drift("a", "b"), (0, "a  a: 3 events\nb  b: 3 events\n3 aligned: 3 the same, 0 differ\n"
                                              "the same bits wherever both have values\n"))

    def test_the_operator(self):
        self.assertEqual(self.parts(two_events([1, 2, 3, 4], [1, 4, 3, 8.000000953674316])), """\
a  a: 3 events
b  b: 3 events
3 aligned: 1 the same, 2 differ; 1 by the operator, on equal inputs

They part at event 1: operator forward norm aten.mul.Tensor
  output differs: f32 [2, 2], row 1
    element [1, 1]: 8 (0x41000000) against 8.000001 (0x41000001), 1 ulp
  to blame: the operator; its 2 inputs are equal
  before it, the same: event 0, state norm weight

1 more differ: --limit N or --all shows them
""")
        self.assertIn("to blame: what was found inside of it", drift("a", "b", "--all")[1])

    def test_the_input(self):
        text = self.parts(two_events([1, -0.0, 0, 4], [0, 4, 0, 8]), kept=False)
        self.assertIn("They part at event 1: operator forward norm aten.mul.Tensor\n  output differs: f32 [2, 2], row 0, the first of 2 rows\n"
                      "  to blame: its input, not the operator\n  input 'self' differs: f32 [2, 2], row 0, the first of 2 rows\n"
                      "    given from outside of the trace\n", text)
        self.assertIn('arrays="norm*"', text)

    def test_the_sign_of_zero(self):
        write_trace("zero", two_events([1, 2, 3, 4], [0, 4, 3, 8]))
        shutil.move("zero", "a0")
        write_trace("b", two_events([1, 2, 3, 4], [-0.0, 4, 3, 8]))
        self.assertIn("0 (0x00000000) against -0 (0x80000000), which differ by the sign of zero", drift("a0", "b")[1])

    def test_arguments_and_random_numbers(self):
        self.assertIn("to blame: its arguments; its 2 inputs are equal\n    a: none\n    b: eps=0.1\n",
                      self.parts(two_events([1, 2, 3, 4], [1, 4, 3, 9], **{"with": "eps=0.1"})))
        self.assertIn("draws random numbers", self.parts(two_events([1, 2, 3, 4], [1, 4, 3, 9], random=1)))

    def test_a_module_of_other_operators(self):
        events = two_events([1, 2, 3, 4], [1, 4, 3, 9])
        events[1]["name"] = "ours.norm"
        text = self.parts(events)
        self.assertIn("2 aligned: 1 the same, 1 differ\n", text)
        self.assertIn("They part at event 2: module forward norm Norm\n", text)
        self.assertIn("to blame: the module, inside of which other operators run; its input is equal\n", text)

    def test_shapes_types_and_counts(self):
        self.assertIn("output differs: [2, 2] against [3, 2]", self.parts(two_events([1, 2, 3, 4], [1, 4, 3, 8, 1, 1])))
        events = two_events([1, 2, 3, 4], [1, 4, 3, 8])
        events[1]["out"].append(array("second", [1, 1], 2))
        self.assertIn("outputs' differs: 1 against 2", self.parts(events))

    def test_rows_and_calls(self):
        later = [{**each, "call": 2} for each in two_events([3, 4], [3, 8])[1:]]
        write_trace("b", two_events([1, 2], [1, 4]) + later)
        code, text = drift("a", "b", "--rows", "1:2=0:1", "--calls", "1=2")
        self.assertEqual((code, text), (0, "a  a: 3 events, arrays of 2 rows\nb  b: 5 events, 3 of them in the call, arrays of 1 rows\n"
                                           "3 aligned: 3 the same, 0 differ\nthe same bits wherever both have values\n"))
        self.assertEqual(drift("a", "b", "--rows", "0:1=0:1", "--calls", "1=1")[0], 0)
        code, text = drift("a", "b", "--rows", "0:1/2=0:1/1", "--calls", "1=2")
        self.assertEqual(code, 1)
        self.assertIn("row 0", text)

    def test_rows_of_other_widths_are_left_out(self):
        mask = [event("operator", "mask", [array("", [1, 1, 1, 1], 2)])]
        write_trace("whole", mask + two_events([1, 2, 3, 4], [1, 4, 3, 8]))
        mask[0]["out"] = [array("", [1], 1)]
        write_trace("b", mask + two_events([3, 4], [3, 8]))
        code, text = drift("whole", "b", "--rows", "1:2=0:1")
        self.assertEqual(code, 0, text)
        self.assertIn("4 aligned: 3 the same, 0 differ, 1 not comparable\n", text)

    def test_ends(self):
        same = two_events([1, 2, 3, 4], [1, 4, 3, 8])
        self.assertIn("b  b: 3 events; CUT OFF\n3 aligned: 3 the same, 0 differ\nthe same as far as both go, but a trace is cut off\n",
                      self.parts(same, end=False))
        write_trace("failed", same, end="ValueError: no")
        code, text = drift("a", "failed")
        self.assertEqual(code, 0)
        self.assertIn("b  failed: 3 events; ended by ValueError: no\n", text)
        with open("b/trace.jsonl", "rb+") as file:  # killed amid a line
            file.truncate(os.path.getsize("b/trace.jsonl") - 9)
        self.assertIn("b  b: 2 events; CUT OFF\n2 aligned", drift("a", "b")[1])
        write_trace("c", same)
        with open("c/rows.bin", "rb+") as file:
            file.truncate(8 * 4)
        self.assertIn("b  c: 1 events", drift("a", "c")[1])

    def test_wrong_usage_and_broken_traces(self):
        def wrong(pattern, *arguments):
            code, text = drift(*arguments)
            self.assertEqual(code, 2, text)
            self.assertRegex(text, pattern)
        wrong("required", "a")
        wrong("nothing/trace.jsonl: No such file", "a", "nothing")
        for rows in ("1", "1:2", "1:2=", "1:2=0:1x", "a:b=c:d", "-1:2=0:3"):
            wrong("expected A:B=C:D", "a", "a", "--rows=" + rows)
        wrong("rows 1:1 of a", "a", "a", "--rows", "1:1=0:0")
        wrong("rows 1:3 of a, whose arrays have 2", "a", "a", "--rows", "1:3=0:2")
        wrong("as many rows", "a", "a", "--rows", "0:2=0:1")
        wrong("expected K=L", "a", "a", "--calls", "1")
        wrong("--limit", "a", "a", "--limit", "0")
        write_trace("other", [event("operator", "else", [array("", [1], 1)])])
        wrong("nothing that can be compared: 0 events are aligned", "a", "other")
        with open("a/trace.jsonl") as file:
            good = file.read().splitlines(True)
        for line, text, pattern in (
                (0, "{}\n", "is no trace"), (0, '{"trace":2}\n', "traces of form 1"), (0, "", "is no trace"), (1, "[]\n", "line 2: expected an object"),
                (1, "{\n", "line 2: JSON, byte"), (1, '{"event":0,"kind":"x"}\n', "not 'x'"), (1, '{"kind":"state","call":-1}\n', "negative"),
                (1, '{"kind":"state","out":[{"shape":[9007199254740991,2]}]}\n', "below 2\\^53"),
                (1, '{"kind":"state","out":[{"shape":"2"}]}\n', "'shape' is a list"), (4, '{"end":3}\n{"end":3}\n', "behind the end")):
            shutil.rmtree("broken", ignore_errors=True)
            shutil.copytree("a", "broken")
            with open("broken/trace.jsonl", "w") as file:
                file.write("".join(good[:line] + [text] + good[line + 1:]))
            wrong(pattern, "a", "broken")


unittest.main()

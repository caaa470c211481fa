"""Every kind of result that tools/test.sh can leave, and the two lines that must come of it."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

SUMMARY = pathlib.Path(__file__).parent.parent / "tools" / "test_summary.py"

GTEST = """<testsuites><testsuite name="Sum">
<testcase name="Good" status="run" result="completed"/>
<testcase name="Off" status="notrun" result="suppressed"/>
<testcase name="OnGpu" status="run" result="skipped"><skipped message="/src/sum_test.cpp:9&#x0A;no GPU"/></testcase>
<testcase name="OnGpuToo" status="run" result="skipped"><skipped message="/src/sum_test.cpp:12&#x0A;no GPU"/></testcase>
</testsuite></testsuites>"""

FAILED = '<testcase name="{}" status="fail"><failure message="Failed"/></testcase>'
PASSED = '<testcase name="{}" status="run"/>'
SKIPPED = """<testcase name="{}" status="notrun"><skipped message="SKIP_RETURN_CODE=77"/>
<system-out>looking around\nclang-format is not installed\n</system-out></testcase>"""


def summary(files):
    with tempfile.TemporaryDirectory() as folder:
        for name, text in files.items():
            path = pathlib.Path(folder) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        done = subprocess.run([sys.executable, SUMMARY, folder], capture_output=True, text=True, check=False)
        return done.returncode, done.stdout.splitlines()


def ctest(*cases):
    return "<testsuite>" + "".join(cases) + "</testsuite>"


class SummaryTest(unittest.TestCase):
    def test_reasons_are_counted_once_each(self):
        self.assertEqual(
            summary({"native/gtest/test_passes.xml": GTEST, "native/ctest.xml": ctest(PASSED.format("passes"))}),
            (0, ["1 passed, 0 failed, 2 skipped", "skipped: 2 × no GPU"]))

    def test_runs_add_up(self):
        again = GTEST.replace("no GPU", "the processor has no AVX512F")
        self.assertEqual(
            summary({"native/gtest/test_passes.xml": GTEST, "native/ctest.xml": ctest(PASSED.format("passes")),
                     "without/gtest/test_passes.xml": again, "without/ctest.xml": ctest(PASSED.format("passes"))}),
            (0, ["2 passed, 0 failed, 4 skipped", "skipped: 2 × no GPU; 2 × the processor has no AVX512F"]))

    def test_fault_32_a_skip_that_make_could_have_cured_fails(self):
        code, lines = summary({"native/ctest.xml": ctest(PASSED.format("passes"), SKIPPED.format("format"))})
        self.assertEqual((code, lines), (1, ["FAIL 1 skipped, and this is no reason to: clang-format is not installed",
                                             "1 passed, 1 failed, 0 skipped", "skipped: nothing"]))

    def test_a_crash_counts_as_failed(self):  # one program wrote no results, the other died after writing them
        code, lines = summary({"native/gtest/test_passes.xml": GTEST,
                               "native/ctest.xml": ctest(FAILED.format("passes"), FAILED.format("plan"))})
        self.assertEqual((code, lines[0]), (1, "1 passed, 2 failed, 2 skipped"))

    def test_node(self):
        tap = "ok 1 - adds\nok 2 - threads # SKIP no GPU\nnot ok 3 - breaks\n# pass 1\n# fail 1\n# cancelled 0\n"
        self.assertEqual(summary({"node.tap": tap}), (1, ["1 passed, 1 failed, 1 skipped", "skipped: 1 × no GPU"]))

    def test_nothing_skipped(self):
        self.assertEqual(summary({"native/ctest.xml": ctest(PASSED.format("format"))}),
                         (0, ["1 passed, 0 failed, 0 skipped", "skipped: nothing"]))


if __name__ == "__main__":
    unittest.main()

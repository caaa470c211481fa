#!/usr/bin/env python3
"""Usage: test_summary.py RESULTS

Reads what tools/test.sh left in RESULTS and its subfolders, one a run, and prints two lines: how many tests passed, failed
and were skipped; and, as the last line, why they were skipped. Exits 1 if any failed, or was skipped for a reason that is
not in ALLOWED: whatever else a test lacks, `make test` is to install.

    RUN/gtest/*.xml   one per GoogleTest program: its cases count, with the message given to GTEST_SKIP()
    RUN/ctest.xml     the programs themselves: one that has no gtest/*.xml, or failed without a failed case (it crashed), counts
    node.tap          node --test; "# SKIP why"
    pytest.xml        pytest
"""
import collections
import pathlib
import re
import sys
import xml.etree.ElementTree as ElementTree


# No GPU; a processor without an instruction set, or one that TRIREME_HIDE hides; what only LONG=1 runs.
ALLOWED = re.compile(r"no GPU|the processor has no |TRIREME_HIDE takes away|LONG=1")


class Summary:
    def __init__(self):
        self.passed = self.failed = 0
        self.skipped = collections.Counter()  # reason -> how many tests

    def add_case(self, case):
        """Counts a <testcase> as JUnit, GoogleTest and pytest write it; returns whether it failed."""
        skipped = case.find("skipped")
        if case.find("failure") is not None or case.find("error") is not None:
            self.failed += 1
            return True
        if skipped is not None:
            self.skipped[skip_reason(case, skipped)] += 1
        elif case.get("status") not in ("notrun", "disabled"):
            self.passed += 1
        return False


def skip_reason(case, skipped):
    output = case.findtext("system-out") or ""
    if skipped.get("message", "").startswith("SKIP_"):  # ctest: SKIP_RETURN_CODE=77; the script's last line says why
        text = output
    else:  # GoogleTest: "file:line\nreason"
        text = re.sub(r"^\S+:\d+\n", "", skipped.get("message", ""))
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "no reason given"


def cases(path):
    try:
        return ElementTree.parse(path).iter("testcase")
    except ElementTree.ParseError as error:
        print(f"{path}: {error}")
        return iter(())


def add_run(summary, folder):
    programs = {}  # GoogleTest program -> whether one of its cases failed
    for path in sorted((folder / "gtest").glob("*.xml")):
        programs[path.stem] = any([summary.add_case(case) for case in cases(path)])
    for case in cases(folder / "ctest.xml"):
        cases_failed = programs.get("test_" + case.get("name"))
        if cases_failed is None:
            summary.add_case(case)
        elif case.find("failure") is not None and not cases_failed:
            summary.failed += 1


def summarise(results):
    summary = Summary()
    for path in sorted(results.glob("*/ctest.xml")):
        add_run(summary, path.parent)
    for path in sorted(results.rglob("pytest.xml")):
        for case in cases(path):
            summary.add_case(case)
    if (results / "node.tap").exists():
        tap = (results / "node.tap").read_text()
        totals = {name: int(number) for name, number in re.findall(r"^# (pass|fail|cancelled) (\d+)$", tap, re.M)}
        summary.passed += totals.get("pass", 0)
        summary.failed += totals.get("fail", 0) + totals.get("cancelled", 0)
        for reason in re.findall(r"^ *ok \d+ .*# SKIP ?(.*)$", tap, re.M):
            summary.skipped[reason.strip() or "no reason given"] += 1
    return summary


def main():
    summary = summarise(pathlib.Path(sys.argv[1]))
    for reason in sorted(summary.skipped):
        if not ALLOWED.search(reason):
            print(f"FAIL {summary.skipped[reason]} skipped, and this is no reason to: {reason}")
            summary.failed += summary.skipped.pop(reason)
    reasons = [f"{count} × {reason}" for reason, count in sorted(summary.skipped.items())]
    print(f"{summary.passed} passed, {summary.failed} failed, {sum(summary.skipped.values())} skipped")
    print("skipped: " + ("; ".join(reasons) or "nothing"))
    return 1 if summary.failed else 0


if __name__ == "__main__":
    sys.exit(main())

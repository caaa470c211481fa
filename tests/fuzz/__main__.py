"""Usage: python3 tests/fuzz [OPTIONS]. Random programs against every device, the oracle, NumPy and each other.

Every program is printed and read back, differentiated, emitted for a target, run on arrays of its own (each result must
lie in the interval that docs/numerics.md allows), verified on every device, forward and backward, and broken into texts
that must be refused with line and column. What fails is made small, printed with the command that shows it again, and
kept in a folder. A program is a pure function of the seed and its index.
"""
import argparse
import collections
import concurrent.futures
import os
import pathlib
import shutil
import sys
import tempfile
import threading
import time

sys.dont_write_bytecode = True
try:
    import numpy  # noqa: F401
except ImportError:
    print("numpy is not installed")
    sys.exit(77)

import features
from run import Batch, signature_of
from shrink import shrink
from tool import Tool

QUICK_MS = 30  # a small program, compiled and run
BATCH = 20
ENOUGH = 400  # programs, among which every construct must occur


class Tally(collections.Counter):
    """What was done, and which constructs occurred."""

    def __init__(self):
        super().__init__()
        self.constructs = collections.Counter()

    def features(self, program, problem):
        self.constructs.update(features.features(program, problem))

    def absorb(self, other):
        self.update(other)
        self.constructs.update(other.constructs)


def options_of(arguments):
    root = pathlib.Path(__file__).resolve().parents[2]
    parser = argparse.ArgumentParser(prog="python3 tests/fuzz", description=__doc__.split("\n\n")[1])
    parser.add_argument("--tool", default=os.environ.get("TRIREME_TOOL", root / "build/release/trireme"))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, help="programs; 1200 unless a time is given")
    parser.add_argument("--sample", action="store_true", help=f"what `make test` runs: {ENOUGH} programs, one batch at a "
                        "time; 50 times as many if LONG is set in the environment")  # fmt: skip
    parser.add_argument("--only", type=int, metavar="INDEX", help="the program of this index alone")
    parser.add_argument("--seconds", type=float, help="go on for so long instead")
    parser.add_argument("--hours", type=float, help="the same, in hours")
    parser.add_argument("--device", action="append", help="instead of every device that is ready; repeatable")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="batches at a time; one per core unless said")
    parser.add_argument("--failures", default="fuzz_failures", help="the folder that failures are kept in")
    parser.add_argument("--patience", type=float, default=1, help="seconds in which a malformed text must be refused")
    parser.add_argument("--most", type=int, default=20, help="stop after so many different failures")
    parser.add_argument("--shrink-seconds", type=float, default=60, help="for each failure")
    parser.add_argument("--constructs", action="store_true", help="also print how often each construct occurred")
    options = parser.parse_args(arguments)
    if options.sample:
        options.count, options.jobs = ENOUGH * (50 if "LONG" in os.environ else 1), 1
    return options


class Session:
    def __init__(self, options):
        self.options = options
        self.tally = Tally()
        self.seen = collections.Counter()  # signatures of failures
        self.lock = threading.Lock()
        self.folder = tempfile.mkdtemp(prefix="trireme_fuzz_")
        here = self.tool("doctor").devices()
        self.devices = tuple(options.device or here)
        # The others start an engine or a compiler for each program.
        self.quick = tuple(each for each in self.devices if here.get(each, 0) <= QUICK_MS)
        self.start = time.monotonic()
        seconds = options.seconds or (options.hours and options.hours * 3600)
        self.deadline = self.start + seconds if seconds else None
        self.count = options.count or (1200 if seconds is None else None)

    def tool(self, name):
        folder = os.path.join(self.folder, str(name))
        os.makedirs(folder, exist_ok=True)
        return Tool(self.options.tool, folder, patience=self.options.patience)

    def batches(self):
        if self.options.only is not None:
            yield [self.options.only]
            return
        first = 0
        while self.count is None or first < self.count:
            yield list(range(first, first + BATCH if self.count is None else min(first + BATCH, self.count)))
            first += BATCH

    def over(self):
        late = self.deadline is not None and time.monotonic() > self.deadline
        return late or len(self.seen) >= self.options.most

    def one(self, indices):
        if self.over():
            return
        tool, tally = self.tool(indices[0]), Tally()
        for index, case, failure in Batch(tool, self.options.seed, indices, self.devices, self.quick, tally).found:
            signature = signature_of(*failure[:2])
            with self.lock:
                self.seen[signature] += 1
                first = self.seen[signature] == 1
            if first:
                self.report(tool, index, case, failure, signature)
        with self.lock:
            self.tally.absorb(tally)
        shutil.rmtree(tool.folder, ignore_errors=True)

    def report(self, tool, index, case, failure, signature):
        small, again, tried = shrink(case, signature, tool, self.options.shrink_seconds)
        note = f"shrunk in {tried} steps" if again else "it did not fail again when run alone"
        kind, said, command = again or failure
        number = len(self.seen)
        kept = pathlib.Path(self.options.failures)
        kept.mkdir(parents=True, exist_ok=True)
        file = kept / f"{self.options.seed}_{index}_{number}.row"
        source = small.source()
        file.write_bytes(source if isinstance(source, bytes) else source.encode())
        for array in pathlib.Path(tool.folder).glob("shrunk.row.*.npy"):
            shutil.move(array, kept / array.name.replace("shrunk.row", file.name))
        for used in ("shrunk.row", f"second_p{index}.row", f"p{index}.row"):
            command, said = command.replace(used, str(file)), said.replace(used, str(file))
        lines = [f"FAIL {kind} (seed {self.options.seed}, program {index}, {note})", f"  {said}", f"  rerun: {command}"]
        lines.append(f"  as it was drawn: python3 tests/fuzz --seed {self.options.seed} --only {index}")
        if small.check == "gradient":
            lines.append(f"  problem: {small.problem.line(str(file))}")
        shown = source.decode(errors="backslashreplace") if isinstance(source, bytes) else source
        lines += ["    " + line for line in shown[:4000].splitlines()]
        text = "\n".join(lines)
        file.with_suffix(".txt").write_text(text + "\n")
        if case.source() != source:
            original = case.source()
            file.with_suffix(".drawn").write_bytes(original if isinstance(original, bytes) else original.encode())
        with self.lock:
            print(text, flush=True)

    def run(self):
        print(f"seed {self.options.seed}, devices {' '.join(self.devices)}", flush=True)
        with concurrent.futures.ThreadPoolExecutor(self.options.jobs) as pool:
            waiting = set()
            for batch in self.batches():
                if self.over():
                    break
                waiting.add(pool.submit(self.one, batch))
                if len(waiting) >= 2 * self.options.jobs:
                    done, waiting = concurrent.futures.wait(waiting, return_when=concurrent.futures.FIRST_COMPLETED)
                    for each in done:
                        each.result()
            for each in waiting:
                each.result()
        shutil.rmtree(self.folder, ignore_errors=True)
        return self.summary()

    def summary(self):
        taken = time.monotonic() - self.start
        if self.options.constructs:
            for each in features.CONSTRUCTS:
                print(f"{self.tally.constructs[each]:8} {each}")
        for what, count in sorted(self.tally.items()):
            print(f"{count:10} {what}")
        missing = [each for each in features.CONSTRUCTS if not self.tally.constructs[each]]
        print(f"{len(features.CONSTRUCTS) - len(missing)} of the language's {len(features.CONSTRUCTS)} constructs")
        if missing and self.tally["programs"] >= ENOUGH and not self.options.device:
            self.seen[f"constructs that never occurred: {', '.join(missing)}"] += 1
        print(f"{self.tally['programs'] / taken:.1f} programs a second, {taken:.0f} s")
        for signature, count in self.seen.items():
            print(f"FAILED {count} times: {signature}")
        return 1 if self.seen else 0


if __name__ == "__main__":
    sys.exit(Session(options_of(sys.argv[1:])).run())

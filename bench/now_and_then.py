#!/usr/bin/env python3
"""Usage: now_and_then.py THEN NOW [--device NAME ...] [--shape RxC ...] [--operator NAME ...]

Speed of two builds of the tool on one machine: every operator, both directions, f32 and bf16. The two run in turn,
round by round, and the best time of each counts. Prints NOW's speed by THEN's, the geometric mean of each operator, and
every point that fell by more than a tenth; exits 1 if there is one, or an operator's mean fell by more than 3 %.

With --save FILE the times of NOW are kept as lines that a later run may be compared with (--table FILE instead of THEN),
where no old build is at hand: other hours of the same machine then stand beside each other."""

import argparse
import json
import math
import pathlib
import subprocess
import sys

import points

options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
options.add_argument("then", help="a build's trireme, or - with --table")
options.add_argument("now", help="a build's trireme")
options.add_argument("--device", nargs="*", default=["cpu:avx2"])
options.add_argument("--shape", nargs="*", default=["2048x4096"])
options.add_argument("--operator", nargs="*")
options.add_argument("--type", nargs="*", default=["f32", "bf16"])
options.add_argument("--seconds", default="0.05")
options.add_argument("--rounds", default=3, type=int)
options.add_argument("--threads", default="1")
options.add_argument("--table", type=pathlib.Path)
options.add_argument("--save", type=pathlib.Path)
options = options.parse_args()


def best_seconds(tool, line, device):
    command = [tool, "bench", line, "--device", device, "--threads", options.threads, "--seconds", options.seconds, "--json"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        return None
    return min(each["run"]["best_seconds"] for each in json.loads(done.stdout))


def mean(ratios):
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


table = {}
if options.table:
    for row in options.table.read_text().splitlines():
        if row and not row.startswith("#"):
            seconds, key = row.split(" ", 1)
            table[key] = float(seconds)
by_operator, fallen, saved = {}, [], []
for device in options.device:
    for line in (line for shape in options.shape for *_, line in points.lines(lambda *_: shape, options.operator, options.type)):
        key, then, now = f"{device} {line}", [], []
        for _ in range(options.rounds):
            then.append(table.get(key) if options.table else best_seconds(options.then, line, device))
            now.append(best_seconds(options.now, line, device))
        if None in then or None in now:
            print(f"{key}: not timed by {'both' if None in then and None in now else 'then' if None in then else 'now'}")
            continue
        saved.append(f"{min(now):.4g} {key}")
        ratio = min(then) / min(now)
        by_operator.setdefault(line.split()[0], []).append(ratio)
        print(f"{ratio:5.2f}  {key}  {min(then) * 1e3:.3f} -> {min(now) * 1e3:.3f} ms", flush=True)
        if ratio < 0.9:
            fallen.append((ratio, key))
for name, ratios in sorted(by_operator.items(), key=lambda each: mean(each[1])):
    print(f"{mean(ratios):5.2f}  {name}: {len(ratios)} points, worst {min(ratios):.2f}")
for ratio, key in sorted(fallen):
    print(f"fell to {ratio:.2f}: {key}")
if options.save:
    options.save.write_text("# seconds, device, problem line\n" + "\n".join(saved) + "\n")
if not by_operator:
    sys.exit("nothing was timed")
sys.exit(1 if fallen or min(mean(each) for each in by_operator.values()) < 0.97 else 0)

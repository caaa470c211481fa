#!/usr/bin/env python3
"""The table of docs/performance.md for CPUs: every operator, both directions, f32, bf16 and f16, each instruction set of this
machine, 1 and 2 threads, arrays in cache (512 KiB in all) and in memory (128 MiB and more), rows of 128 to 262144 columns. A seeded
sample of these points, as many as the time allows, results checked before they are timed.

A line is `share roof device threads place operator direction type columns  schedule`. share: the time of a copy of as many bytes
by the run's, which take turns. roof: the share that the program's arithmetic leaves room for, its instructions counted from
the functions' records and started as fast as a program of nothing but fma starts them on that instruction set. Then, for each
instruction set, number of threads and place: the median of both, and the worst twenty of what they could reach.

With --peers each point is also timed by torch, eager and compiled (bench/torch_peer.py), and where it has the operator by
oneDNN (Debian's libdnnl-dev), on the same instruction set and as many threads. The line then ends with `eager=1.20 ...`, a
peer's time by ours, and the summary says at how many points each was behind (within 3 % is a tie), and names the others.

  bench/cpu.py --seconds 600 | tee table.txt
  bench/cpu.py --seconds 600 --peers | tee peers.txt
  bench/cpu.py --summary table.txt        # by operator, as Markdown
"""

import argparse
import collections
import json
import os
import pathlib
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time

import points

options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
options.add_argument("--build", default="build/release", type=pathlib.Path)
options.add_argument("--device", nargs="*", help="cpu:avx2 ...; all of this machine unless said")
options.add_argument("--threads", nargs="*", default=["1", "2"])
options.add_argument("--place", nargs="*", default=["cache", "memory"])
options.add_argument("--type", nargs="*", default=["f32", "bf16", "f16"])
options.add_argument("--operator", nargs="*")
options.add_argument("--columns", nargs="*", type=int)
options.add_argument("--seconds", default=600.0, type=float, help="for the whole table")
options.add_argument("--each", default="0.05", help="seconds a point")
options.add_argument("--seed", default=1, type=int)
options.add_argument("--peers", action="store_true", help="torch and oneDNN at the same points, with the python that runs this")
options.add_argument("--summary", nargs="*", type=pathlib.Path)
options = options.parse_args()

WIDTHS = [128, 256, 512, 896, 1024, 1152, 2048, 2880, 3584, 4096, 5120, 7168, 8192, 11008, 12288, 14336, 16384, 18432, 18944,
          28672, 32000, 32768, 50304, 65536, 128256, 131072, 151936, 256000, 262144]
BYTES = {"cache": 512 << 10, "memory": 128 << 20}  # of all arrays, about
ARITHMETIC = "arithmetic(x[i,j]) -> (y[i,j])\n" + "".join(
    f"  a{chain}_{step} = fma({f'a{chain}_{step - 1}' if step else 'x'}, x, {chain}.5)\n" for step in range(16) for chain in range(8)
) + "  y = " + " + ".join(f"a{chain}_15" for chain in range(8)) + "\n"

Point = collections.namedtuple("Point", "share roof device threads place operator direction type columns how peers", defaults=[{}])
TIE = 0.97  # of a peer's speed and more


def bench(line, device, threads, seconds):
    """What the tool measured, or why it did not."""
    command = [options.build / "trireme", "bench", line, "--device", device, "--threads", threads, "--seconds", seconds, "--json"]
    done = subprocess.run(command, capture_output=True, text=True)
    return json.loads(done.stdout)[0] if done.returncode == 0 else done.stderr.strip().splitlines()[-1]


def instruction_sets():
    done = subprocess.run([options.build / "trireme", "doctor", "--json"], capture_output=True, text=True, check=True)
    return [each["name"] for each in json.loads(done.stdout)["devices"] if each["name"].startswith("cpu:") and each["state"] == "ready"]


def instructions_per_second(device, threads):
    with tempfile.TemporaryDirectory() as folder:
        program = pathlib.Path(folder) / "arithmetic.row"
        program.write_text(ARITHMETIC)
        found = bench(f"{program} 256x1024", device, threads, "0.2")
    return found["instructions_per_byte"] * found["bytes"] / found["run"]["best_seconds"]


def rows_of(direction, kind, columns, place):
    """So many that two arrays per element, in a backward four, take BYTES; some operators have one or two more."""
    return max(1, BYTES[place] // (columns * points.WIDTH[kind] * (4 if direction == "backward" else 2)))


class Peers:
    """torch and oneDNN held to one instruction set and a number of threads."""

    def __init__(self, device, threads):
        narrow = {"ATEN_CPU_CAPABILITY": "avx2", "ONEDNN_MAX_CPU_ISA": "AVX2"} if device == "cpu:avx2" else {}
        here = pathlib.Path(__file__).resolve().parent
        self.environment = {**os.environ, **narrow, "OMP_NUM_THREADS": threads, "PYTHONPATH": str(options.build / "python"),
                            "TRIREME_LIBRARY": str((options.build / "libtrireme.so").resolve())}
        self.torch = subprocess.Popen([sys.executable, here / "torch_peer.py"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                      stderr=subprocess.DEVNULL, text=True, env=self.environment)
        self.onednn = options.build / "onednn_peer"
        if not self.onednn.exists():
            built = subprocess.run(["g++", "-std=c++17", "-O2", here / "peers" / "onednn.cpp", "-o", self.onednn, "-ldnnl"],
                                   capture_output=True, text=True)
            if built.returncode:
                print("# oneDNN skipped:", built.stderr.splitlines()[0] if built.stderr else "does not build", flush=True)

    def times(self, operator, kind, direction, rows, columns):
        print(operator, kind, direction, rows, columns, options.each, file=self.torch.stdin, flush=True)
        found = json.loads(self.torch.stdout.readline() or '{"none": "torch is not installed, or ended"}')
        if self.onednn.exists() and operator in ("layer_norm", "softmax") and kind in ("f32", "bf16"):
            done = subprocess.run([self.onednn, operator, kind, direction, str(rows), str(columns), options.each], check=True,
                                  capture_output=True, text=True, env=self.environment)
            found["onednn"] = float(done.stdout)
        return found


def walk():
    drawn = random.Random(options.seed)
    devices = options.device or instruction_sets()
    rates = {(device, threads): instructions_per_second(device, threads) for device in devices for threads in options.threads}
    todo = [(operator, kind, direction, columns, device, threads, place)
            for operator, kind, direction, _ in points.lines(lambda *_: "", options.operator, options.type)
            for columns in options.columns or WIDTHS for device in devices for threads in options.threads
            for place in options.place]
    drawn.shuffle(todo)
    peers = {key: Peers(*key) for key in rates} if options.peers else {}
    began = time.monotonic()
    for operator, kind, direction, columns, device, threads, place in todo:
        if time.monotonic() - began > options.seconds:
            break
        shape = f"{rows_of(direction, kind, columns, place)}x{columns}"
        [(*_, line)] = points.lines(lambda *_: shape, [operator], [kind], ["backward" if direction == "backward" else ""])
        found = bench(line, device, threads, options.each)
        if isinstance(found, str):
            print(f"none {line}: {found}", flush=True)
            continue
        instructions = found["instructions_per_byte"] * found["bytes"]
        copy = min(each["best_seconds"] for each in found["copies"].values())
        roof = min(1.0, copy / (instructions / rates[device, threads])) if instructions else 1.0
        ours, theirs = found["run"]["best_seconds"], {}
        if options.peers:
            told = peers[device, threads].times(operator, kind, direction, *shape.split("x"))
            theirs = {name: seconds / ours for name, seconds in told.items() if name != "none"}
        point = Point(copy / ours, roof, device, threads, place, operator, direction, kind, columns, found["how"], theirs)
        print(f"{point.share:.2f} {roof:.2f} " + " ".join(map(str, point[2:9])) + f"  {point.how}"
              + "".join(f" {name}={factor:.2f}" for name, factor in theirs.items()), flush=True)
        yield point


def read(path):
    for line in path.read_text().splitlines():
        words, how = line.split("  ")[0].split(), line.split("  ")[-1]
        if len(words) == 9 and words[0] not in ("none", "#"):
            peers = {name: float(factor) for name, factor in re.findall(r" (eager|compiled|onednn)=(\S+)", how)}
            yield Point(float(words[0]), float(words[1]), *words[2:], re.sub(r" (eager|compiled|onednn)=\S+", "", how), peers)


def worst(some):
    groups = collections.defaultdict(list)
    for point in some:
        groups[point.device, point.threads, point.place].append(point)
    for (device, threads, place), group in sorted(groups.items()):
        print(f"\n{device}, {threads} thread(s), {place}: {len(group)} points, "
              f"median {statistics.median(each.share for each in group):.2f} of a copy, "
              f"{statistics.median(each.share / each.roof for each in group):.2f} of the roof")
        for each in sorted(group, key=lambda each: each.share / each.roof)[:20]:
            print(f"  {each.share:.2f} of {each.roof:.2f}  {each.operator} {each.direction} {each.type} {each.columns}  {each.how}")


def behind(some):
    """Where a peer is faster, by peer."""
    for name in ("eager", "compiled", "onednn"):
        group = sorted((point for point in some if name in point.peers), key=lambda each: each.peers[name])
        if not group:
            continue
        lost = [point for point in group if point.peers[name] < TIE]
        print(f"\nahead of {name}, or within 3 %, at {len(group) - len(lost)} of {len(group)} points; median "
              f"{statistics.median(each.peers[name] for each in group):.2f} times its speed")
        for each in lost[:40]:
            print(f"  {each.peers[name]:.2f}  {each.operator} {each.direction} {each.type} {each.columns} {each.device} "
                  f"{each.threads} thread(s) {each.place}")


def by_operator(some):
    shares = collections.defaultdict(list)
    for point in some:
        shares[point.operator, point.direction, point.type].append(point.share / point.roof)
    kinds = [(direction, kind) for direction in ("forward", "backward") for kind in options.type]
    print("| operator | " + " | ".join(f"{direction}, {kind}" for direction, kind in kinds) + " |")
    print("| --- |" + " ---: |" * len(kinds))
    for operator in sorted({operator for operator, *_ in shares}):
        cells = [shares.get((operator, *each)) for each in kinds]
        print(f"| {operator} | " + " | ".join(f"{statistics.median(cell):.2f}" if cell else "–" for cell in cells) + " |")


if options.summary:
    everything = [point for path in options.summary for point in read(path)]
    by_operator(everything)
else:
    everything = list(walk())
if not everything:
    sys.exit("nothing was timed")
worst(everything)
behind(everything)

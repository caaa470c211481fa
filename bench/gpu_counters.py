#!/usr/bin/env python3
"""What bounds a kernel: ncu's counters for the kernel over rows, one line of a table for each point.

    bench/gpu_counters.py PROGRAMS rms_norm:backward:4096 "layer_norm:65536:CONFIG" ...

PROGRAMS is the folder of `gpu_once`; a point is OPERATOR[:ROWSrows][:backward][:f16|:f32]:COLUMNS[:CONFIG]; tensors of 512 MiB
unless rows are given; OPERATOR_columns is the kernel that adds up partial rows. Needs an NVIDIA GPU and ncu. Waits are warps waiting, for each warp that issues an instruction.
"""
import csv
import io
import os
import subprocess
import sys

COUNTERS = {
    "µs": ("gpu__time_duration.sum", 1e-3),
    "dram %": ("dram__throughput.avg.pct_of_peak_sustained_elapsed", 1),
    "L2 %": ("lts__throughput.avg.pct_of_peak_sustained_elapsed", 1),
    "L1 %": ("l1tex__throughput.avg.pct_of_peak_sustained_active", 1),
    "issue %": ("smsp__issue_active.avg.pct_of_peak_sustained_active", 1),
    "warps": ("smsp__warps_active.avg.per_cycle_active", 4),
    "registers": ("launch__registers_per_thread", 1),
    "threads": ("launch__block_size", 1),
    "blocks": ("launch__grid_size", 1),
    "spilled": ("smsp__sass_inst_executed_op_local.sum", 1),
}
WAITS = ["long_scoreboard", "barrier", "short_scoreboard", "mio_throttle", "lg_throttle", "membar", "wait", "not_selected",
         "math_pipe_throttle", "dispatch_stall", "sleeping", "no_instruction", "branch_resolve", "drain"]


def wait_counter(wait):
    return f"smsp__average_warps_issue_stalled_{wait}_per_issue_active.ratio"


def measure(programs, point):
    operator, *rest = point.split(":")
    kernel = "_columns$" if operator.endswith("_columns") else "^(?!.*_columns).*$"
    operator = operator.removesuffix("_columns")
    size, rest = (rest[0], rest[1:]) if rest[0].endswith("rows") else ("512M", rest)
    size = size.removesuffix("rows")
    at = next(k for k, part in enumerate(rest) if part.isdigit())
    arguments = [":".join([operator] + rest[:at]), rest[at]] + rest[at + 1:]
    metrics = [name for name, _ in COUNTERS.values()] + [wait_counter(each) for each in WAITS]
    command = ["ncu", "--clock-control", "none", "--csv", "--print-units", "base", "--launch-skip", "2", "--launch-count", "1",
               "--kernel-name", "regex:" + kernel, "--metrics", ",".join(metrics),
               os.path.join(programs, "gpu_once"), size, *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    table = done.stdout[done.stdout.find('"ID"'):]
    values = {row["Metric Name"]: float(row["Metric Value"].replace(",", "")) for row in csv.DictReader(io.StringIO(table))
              if (row.get("Metric Value") or "n/a")[0].isdigit()}
    return values, done.stdout + done.stderr


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    print("| point | " + " | ".join(COUNTERS) + " | waits |")
    print("|---" * (len(COUNTERS) + 2) + "|")
    for point in sys.argv[2:]:
        values, output = measure(sys.argv[1], point)
        if not values:
            print(f"| {point} | no counters: {output.strip()[-300:]} |")
            continue
        cells = []
        for name, scale in COUNTERS.values():
            value = values.get(name, float("nan")) * scale
            cells.append(f"{value:.0f}" if value >= 20 or value == int(value) else f"{value:.1f}")
        waits = sorted(((values.get(wait_counter(each), 0.0), each) for each in WAITS), reverse=True)[:4]
        print(f"| {point} | " + " | ".join(cells) + " | " + ", ".join(f"{each} {value:.1f}" for value, each in waits) + " |",
              flush=True)


if __name__ == "__main__":
    main()

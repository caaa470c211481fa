#!/usr/bin/env python3
"""What operators exchange over machines, and what that takes on paper: the tables of docs/distributed.md.

    PYTHONPATH=build/release/python python3 bench/exchange_model.py

How many exchanges there are, what goes in each and which arrays each phase reads and writes is what `split` says. Times are
kernels + Σ (latency + bytes received / bandwidth): a launch for each phase, and bytes of [i,j] arrays at a GPU's bandwidth, times
the share of it that arithmetic leaves (`roof` in bench/tables/h200.txt); latencies and bandwidths between GPUs are assumed, not
measured.
"""
import pathlib
import statistics

import trireme

MEMORY = 4.4e12  # bytes a second: 92 % of an H200's 4.8
LAUNCH = 5e-6  # seconds: Plan::run costs its caller 4.1 to 5.0 µs (docs/performance.md)
STRIPE = 256  # columns
FABRICS = {"8 × H200": (8, 450e9, 15e-6), "16 in 2 nodes": (16, 50e9, 30e-6), "64 in 8 nodes": (64, 50e9, 60e-6)}
SHAPES = [("rms_norm", 8192, 8192), ("rms_norm", 8192, 65536), ("layer_norm", 8192, 65536), ("cross_entropy", 8192, 128256)]
ELEMENT, NUMBER = 2, 4  # bytes: bf16 in memory, f32 exchanged
TABLE = pathlib.Path(__file__).with_name("tables") / "h200.txt"


def exchanges(program):
    """Of each collective the numbers a row."""
    found = []
    for phase in program.split():
        spreads = {name: spread for name, spread, *_ in phase.program.results}
        numbers = sum(len(each.names) for each in phase.exchanges if spreads[each.names[0]] == "[i]")
        if phase.exchanges:
            found.append(numbers)
    return found


def forms(operator):
    """Forward, the same composed, backward, the same composed: exchanges of each."""
    gradient = operator.gradient()
    return tuple(tuple(exchanges(program)) for program in (operator, operator.compose(), gradient, gradient.compose()))


def table_of_exchanges():
    """Lines of Markdown: operators that exchange alike stand together."""
    alike, refused = {}, []
    for name in trireme.operators():
        try:
            alike.setdefault(forms(trireme.operator(name)), []).append(name)
        except trireme.Unsupported:
            refused.append(name)

    def text(numbers):
        return " + ".join(map(str, numbers)) or "0"

    lines = ["| operators | forward | composed | backward | composed |", "| --- | --- | --- | --- | --- |"]
    for numbers, names in sorted(alike.items(), key=lambda each: (len(each[0][0]), str(each[0]))):
        lines.append(f"| {', '.join(names)} | {' | '.join(map(text, numbers))} |")
    return [*lines, f"| {', '.join(refused)} | refused | | | |"]


# ---- times ----

def sweeps(program):
    """[i,j] arrays that are read or written, over all phases."""
    return sum(spread == "[i,j]" for phase in program.split() for _, spread, *_ in [*phase.program.operands, *phase.program.results])


def arrays(program):
    """The same on one machine, where rows that are read again come from the cache."""
    return sum(spread == "[i,j]" for _, spread, *_ in [*program.operands, *program.results])


def roof(name, direction):
    """The share of a copy's bandwidth that arithmetic leaves in 16 bits."""
    found = [float(line.split("roof=")[1].split()[0]) for line in TABLE.read_text().splitlines()
             if line.split()[1:3] == [name, direction] and line.split()[3] in ("bf16", "f16")]
    return statistics.median(found)


def times(name, direction, composed, rows, columns):
    """Seconds on one GPU, and over each fabric (kernels, exchanges)."""
    program = trireme.operator(name) if direction == "forward" else trireme.operator(name).gradient()
    program = program.compose() if composed else program
    rate = MEMORY * roof(name, direction)
    one = LAUNCH + arrays(program) * rows * columns * ELEMENT / rate
    many = []
    for machines, bandwidth, latency in FABRICS.values():
        kernels = LAUNCH * len(program.split()) + sweeps(program) * rows * columns * ELEMENT / machines / rate
        many.append((kernels, sum(latency + (machines - 1) * numbers * rows * NUMBER / bandwidth for numbers in exchanges(program))))
    return one, many


def one_machines_bits(columns):
    """Over each fabric, whether as many columns on each machine are whole stripes."""
    return [columns % (machines * STRIPE) == 0 for machines, *_ in FABRICS.values()]


def table_of_times():
    lines = ["| | one H200 | " + " | ".join(f"{name}: kernels + exchange" for name in FABRICS) + " |",
             "| --- |" + " --- |" * (len(FABRICS) + 1)]
    for name, rows, columns in SHAPES:
        for direction in ("forward", "backward"):
            before = None
            for composed in (False, True):
                one, many = times(name, direction, composed, rows, columns)
                if many == before:
                    continue
                before = many
                cells = [f"{kernels * 1e6:.0f} + {meeting * 1e6:.1f} µs, {one / (kernels + meeting):.1f} ×{'' if exact else ' †'}"
                         for (kernels, meeting), exact in zip(many, one_machines_bits(columns))]
                lines.append(f"| {name} {rows} × {columns}, {direction}{', composed' * composed} | {one * 1e6:.0f} µs | {' | '.join(cells)} |")
    return lines


if __name__ == "__main__":
    print("\n".join([*table_of_exchanges(), "", *table_of_times()]))

#!/usr/bin/env python3
"""What operators exchange over machines, and what that takes on paper: the tables of docs/distributed.md.

    PYTHONPATH=build/release/python python3 bench/exchange_model.py
    PYTHONPATH=build/release/python python3 bench/exchange_model.py --host    # what eager calls cost the host, measured here

How many exchanges there are, what goes in each and which arrays each phase reads and writes is what `split` says. Times are
kernels + Σ (latency + bytes received / bandwidth + what joins and combines): a launch for each kernel, and its bytes at the share of
a GPU's bandwidth that was measured at the nearest width (bench/tables/h200.txt); latencies and bandwidths between GPUs are assumed,
not measured.
"""
import math
import pathlib
import sys
import time

import trireme

MEMORY = 4.4e12  # bytes a second of a copy: 92 % of an H200's 4.8
LAUNCH = 5e-6  # seconds: Plan::run costs its caller 4.1 to 5.0 µs (docs/performance.md)
HOST_CALL, HOST_EXCHANGE = 110e-6, 300e-6  # seconds of the host: an eager call, and each exchange with the phase after it (--host)
STRIPE = 256  # columns
FABRICS = {"8 × H200": (8, 450e9, 15e-6), "16 in 2 nodes": (16, 50e9, 30e-6), "64 in 8 nodes": (64, 50e9, 60e-6)}
SHAPES = [("rms_norm", 8192, 8192), ("rms_norm", 8192, 65536), ("layer_norm", 8192, 65536), ("cross_entropy", 8192, 128256)]
WORTH_A_COLLECTIVE = 2 << 20  # bytes received: trireme.torch's rule, between latency times bandwidth of FABRICS
MOST_ARRAYS = 40  # of a program that combines: trireme.torch's
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


def in_shares(machines, mine, totals):
    """Whether numbers of so many bytes, `mine` a machine, with totals of so many, go in shares: two collectives."""
    return (machines - 1) * (mine - (mine + totals) / machines) > WORTH_A_COLLECTIVE


def collectives(machines, mine, totals):
    """Of each collective of an exchange the bytes that a machine receives."""
    if in_shares(machines, mine, totals):
        return [(machines - 1) / machines * mine, (machines - 1) / machines * totals]
    return [(machines - 1) * mine]


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


def share(name, direction, columns):
    """Of a copy's bandwidth, what was measured in 16 bits at the nearest width."""
    found = [line.split() for line in TABLE.read_text().splitlines()]
    found = [(abs(math.log(int(words[4]) / columns)), float(words[0])) for words in found
             if words[1:3] == [name, direction] and words[3] in ("bf16", "f16")]
    return min(found)[1]


def programs_that_combine(leaves, arity):
    """How many programs combine so many parts."""
    return 0 if leaves < 2 else 1 if (leaves + 1) * arity <= MOST_ARRAYS else 1 + sum(
        programs_that_combine(each, arity) for each in halves(leaves))


def halves(leaves):
    """Of neighbouring pairs, level by level: the two nodes under the last."""
    left = 1 << (leaves - 1).bit_length() - 1
    return left, leaves - left


def kernels_of_exchanges(program, machines):
    """Of each exchange of rows' totals: (numbers a row, launches that join what is sent, launches that combine what came)."""
    found = []
    for phase in program.split():
        spreads = {name: spread for name, spread, *_ in phase.program.results}
        by_reduction = {}
        for each in phase.exchanges:
            if spreads[each.names[0]] == "[i]":
                by_reduction.setdefault((each.reduction, len(each.names)), []).append(each)
        if by_reduction:
            sent = sum(arity for _, arity in by_reduction)
            joins = sum(arity for (_, arity), lists in by_reduction.items() if len(lists) > 1) + (sent > 1)
            combines = sum(programs_that_combine(machines, arity) for _, arity in by_reduction)
            found.append((sum(arity * len(lists) for (_, arity), lists in by_reduction.items()), joins, combines))
    return found


def exchange_seconds(program, rows, fabric):
    machines, bandwidth, latency = fabric
    seconds = 0
    for numbers, joins, combines in kernels_of_exchanges(program, machines):
        mine = numbers * rows * NUMBER
        received = collectives(machines, mine, mine)
        here = machines * mine // (machines if len(received) > 1 else 1)  # what is combined on each machine, and its totals
        joins += len(received) > 1 and numbers > 1  # totals, before they are gathered
        kernels = LAUNCH * (joins + combines) + (2 * mine * joins + here + here / machines) / MEMORY
        seconds += sum(latency + each / bandwidth for each in received) + kernels
    return seconds


def program_of(name, direction, composed):
    program = trireme.operator(name) if direction == "forward" else trireme.operator(name).gradient()
    return program.compose() if composed else program


def times(name, direction, composed, rows, columns):
    """Seconds on one GPU, and over each fabric (kernels, exchanges)."""
    program, plain = program_of(name, direction, composed), program_of(name, direction, False)
    one = LAUNCH + arrays(plain) * rows * columns * ELEMENT / (MEMORY * share(name, direction, columns))
    many = []
    for fabric in FABRICS.values():
        own = columns / fabric[0]
        rate = MEMORY * share(name, direction, own)
        kernels = LAUNCH * len(program.split()) + sweeps(program) * rows * own * ELEMENT / rate
        many.append((kernels, exchange_seconds(program, rows, fabric)))
    return one, many


def host(program):
    """Seconds of an eager call's host."""
    return HOST_CALL + HOST_EXCHANGE * len(exchanges(program))


def one_machines_bits(columns):
    """Over each fabric, whether as many columns on each machine are whole stripes."""
    return [columns % (machines * STRIPE) == 0 for machines, *_ in FABRICS.values()]


def table_of_times():
    lines = ["| | one H200 | " + " | ".join(f"{name}: kernels + exchange" for name in FABRICS) + " | host, eager |",
             "| --- |" + " --- |" * (len(FABRICS) + 2)]
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
                eager = host(program_of(name, direction, composed))
                lines.append(f"| {name} {rows} × {columns}, {direction}{', composed' * composed} | {one * 1e6:.0f} µs | {' | '.join(cells)} "
                             f"| {eager * 1e6:.0f} µs |")
    return lines


def measured_host():
    """HOST_CALL and HOST_EXCHANGE here: the thread's own time of calls over a group that sends nothing, least of many rounds; of
    swiglu, which exchanges nothing, rms_norm, which does once, and layer_norm, twice."""
    import torch
    import torch.distributed as dist
    from torch.testing._internal.distributed.fake_pg import FakeStore

    from trireme.torch import _meeting, _spread, parallel
    torch.set_num_threads(1)
    dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=8)
    _meeting.asks_each_time = _spread.asks_each_time = lambda device: False  # as on GPUs
    _meeting.meet = lambda *said: None  # once for each shape, and no machine is there to answer
    x, w = torch.ones(2, 256), torch.ones(256)
    works = [lambda call=parallel.columns(name), operands=operands: call(*operands)
             for name, operands in (("swiglu", (x, x)), ("rms_norm", (x, w)), ("layer_norm", (x, w, w)))]
    least = [math.inf] * len(works)
    for _ in range(60):
        for k, work in enumerate(works):
            begin = time.thread_time()
            for _ in range(100):
                work()
            least[k] = min(least[k], (time.thread_time() - begin) / 100)
    return least[0], (least[2] - least[0]) / 2


if __name__ == "__main__":
    if sys.argv[1:] == ["--host"]:
        print("an eager call {:.0f} µs, each exchange {:.0f} µs".format(*(1e6 * each for each in measured_host())))
        sys.exit()
    print("\n".join([*table_of_exchanges(), "", *table_of_times()]))

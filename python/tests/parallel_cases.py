"""What machines do in test_torch_parallel: each case runs on every process of a gloo group, and compares with one process.
Cases of DTensors are in dtensor_cases, of what is exchanged in exchange_cases, of models in model_cases, of what cannot be in
parallel_faults, of what is drawn in parallel_fuzz.

    python parallel_cases.py CASE ...        # under torchrun, or with RANK, WORLD_SIZE and a meeting place in MEETING
"""
import datetime
import faulthandler
import hashlib
import os
import sys
import traceback

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh

import trireme
import trireme.torch as tt
from trireme.torch import parallel

import dtensor_cases
import exchange_cases
import model_cases
import parallel_faults
import parallel_fuzz
from parallel_compare import Machine, by_columns, by_rows, close, compare, gathers, same, sample, sums_are_exact
from leaving import leave
from row_in_torch import NAMED


def case_columns(rank, size):
    """Every operator that can be split: the bits of one machine where the cut is at stripes, whatever the parts' sizes."""
    cuts = [((512,) * size, True), (tuple(256 * (1 + k % 3) for k in range(size - 1)) + (100,), True), ((90,) * size, False),
            (tuple(60 + 7 * k for k in range(size)), False)]
    cuts = cuts if size == 2 else cuts[1:3] if size == 3 else cuts[:2]  # each somewhere, or it takes long
    refused, compared = set(), set()
    for name in NAMED:
        operator = tt.named(name)
        try:
            tt._cut.phases_of(operator, True)
        except trireme.Unsupported:
            refused.add(name)
            continue
        for widths, aligned in cuts if not name.endswith("quant") else [each for each in cuts if each[1]]:  # a quantum more or less is not close
            for dtype in (torch.float32, torch.bfloat16) if widths == (512, 512) else (torch.float32,):
                operands, constants = sample(operator, 6, sum(widths), dtype)
                values = {**operator.constants, **constants}
                if tt._cut.cut_inside_groups(operator, tuple(values[each] for each in operator.constants), widths)[0]:
                    continue
                compared.add(name)
                compare(operator, parallel.columns(operator, cut=widths), operands, constants,
                        by_columns(Machine(widths, rank), values), lambda where: aligned)
    assert refused == {"rms_norm_rope", "rms_norm_rope_positions", "rope", "rope_interleaved", "sinkhorn"}, refused
    assert set(NAMED) - compared - refused == {"group_norm"}, compared  # whose pixels no cut here is a multiple of: see groups


def case_groups(rank, size):
    """Groups of neighbouring columns stay whole on a machine, need no exchange of their own, and have one machine's bits; a cut
    inside one is refused with a cut that is not."""
    calls = []
    kept, tt._exchange._gather = tt._exchange._gather, lambda *values: calls.append(1) or kept(*values)
    norm = tt.named("grouped_rms_norm")
    for widths in (tuple(48 * (1 + k) for k in range(size)), (96,) * (size - 1) + (30,)):  # at no stripe, the last group shorter
        operands, _ = sample(norm, 5, sum(widths))
        compare(norm, parallel.columns(norm, cut=widths), operands, {"group": 48.0},
                by_columns(Machine(widths, rank), {"group": 48}), lambda where: True)
    assert not calls, calls
    tt._exchange._gather = kept
    channels, constants = tt.named("group_norm"), {"groups": 3.0, "pixels": 16.0}
    for width, exact in ((256, True), (48, False)):
        operands = [torch.randn(6, width * size), torch.randn(3, width * size // 16), torch.randn(3, width * size // 16)]
        compare(channels, parallel.columns(channels), operands, constants, by_columns(Machine((width,) * size, rank), constants),
                lambda where: exact)
    # Rows of several axes; what is kept of a group goes into the backward.
    x = torch.randn(2, 3, 96 * size)
    whole, mine = x.clone().requires_grad_(), Machine((96,) * size, rank).cut(x, -1).requires_grad_()
    tt.named("grouped_rms_norm")(whole, group=32.0).square().sum().backward()
    parallel.columns("grouped_rms_norm")(mine, group=32.0).square().sum().backward()
    assert same(Machine((96,) * size, rank).cut(whole.grad, -1), mine.grad)
    if tt._register.PAIRS is not None:  # two columns an element
        machine = Machine((96,) * size, rank)
        for name in ("quantise_mxfp4", "quantise_nvfp4"):
            wanted = tt.named(name)(x, types={"q": "f4e2m1"})
            got = parallel.columns(name)(machine.cut(x, -1), types={"q": "f4e2m1"})
            for (each, where, *_), a, b in zip(tt.named(name).operator.results, wanted, got):
                share = a.shape[-1] // size
                assert same(a.view(torch.uint8).narrow(-1, rank * share, share) if a.dtype == tt._register.PAIRS else
                            a.narrow(-1, rank * share, share), b.view(torch.uint8) if a.dtype == tt._register.PAIRS else b), name
    # A quarter of the row is a group; a row's sum over groups that straddle stripes is combined part by part.
    quarters = tt.op("quarters(x[i,j], w[j / (n / 4)]) -> (y[i,j], s[i, j / (n / 4)], t[i])\n"
                     "    s = sum(x, j / (n / 4))\n    y = x * s * w\n    t = sum(x * s)\n")
    if size in (2, 4):
        for width in (256 * 3, 300):
            columns = width * size
            operands = [torch.randn(4, columns), torch.randn(4)]
            machine = Machine((width,) * size, rank)

            def cuts(tensor, where):
                return tensor if "j" not in where else machine.cut(tensor, -1) if "/" not in where else \
                    Machine((4 // size,) * size, rank).cut(tensor, -1)

            compare(quarters, parallel.columns(quarters), operands, {}, cuts, lambda where: where in ("[i, j / (n / 4)]",))
    refusals = [((90,) * size, 48.0, ["[j / group] of 48", "cut at multiples of 48, such as cut=(96, " if size > 2 else "cut=(96, 84)"]),
                ((30,) * size, 40.0 * size, ["cut " + str(30 * size) + " columns over at most 1 machines"])]
    for widths, group, words in refusals:
        try:
            parallel.columns(norm, cut=widths)(torch.randn(3, widths[rank]), group=group)
            raise AssertionError(f"{widths} was not refused")
        except trireme.Unsupported as error:
            assert all(word in str(error) for word in words), error
    try:  # what j is divided by is the same everywhere
        parallel.columns(norm)(torch.randn(3, 96), group=48.0 if rank else 96.0)
        raise AssertionError("groups that differ between machines")
    except ValueError as error:
        assert "what it divides i and j by must be the same" in str(error)


def case_rows(rank, size):
    """Every operator: rows are what they are, and sums over rows have the bits of one machine where rows are cut at blocks."""
    for name in NAMED:
        operator = tt.named(name)
        cuts = [(240,) * size, (512,) * size, tuple(96 * k for k in range(size))]
        for widths in cuts if size == 2 else cuts[2:] if size == 3 else cuts[1:2]:
            operands, constants = sample(operator, sum(widths), 32)
            def exact(where):
                # Blocks of sums do not begin where positions have a new entry.
                blocks_begin = "position" not in str(operator.operator.operands) or where in ("[i,j]", "[i]")
                return blocks_begin and sums_are_exact(where, widths, 32, constants)

            compare(operator, parallel.rows(operator, cut=None if widths[0] else widths), operands, constants,
                    by_rows(Machine(widths, rank), constants), exact)


def case_empty(rank, size):
    """No rows: nothing is exchanged, sums over rows are zero, and what else is reduced is as on one machine. With rows over the other
    axis of a mesh, some machines have rows and others none."""
    reductions = tt.op("reductions(x[i,j], w[j]) -> (y[i,j], s[i], c[j], t[], top[])\n    g = logsumexp(x) + variance(x * w)\n"
                       "    y = softmax(x) * g + amax(x) - amin(x) * mean(w)\n    s = sum(y)\n    c = colsum(x)\n    t = colsum(x * w)\n"
                       "    top = colmax(x)")
    widths = (256,) * size
    for operator in (reductions, *map(tt.named, ("rms_norm", "layer_norm", "softmax", "cross_entropy", "swiglu"))):
        operands, constants = sample(operator, 3, sum(widths))
        none = [each[:0] if where.startswith("[i") else each for each, (_, where, *_) in zip(operands, operator.operator.operands)]
        for composed in (False, True):
            one = tt._spread.Spread(composed=composed).of(operator)
            compare(operator, parallel.columns(operator, compose=composed), none, constants, by_columns(Machine(widths, rank), constants),
                    lambda where: True, one)
    loss = parallel.cross_entropy(torch.randn(0, 512), torch.zeros(0, dtype=torch.long))
    assert loss.isnan()  # a mean over nothing, as torch's
    if size != 4:
        return
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("rows", "columns"))
    row, column = mesh.get_local_rank("rows"), mesh.get_local_rank("columns")
    for operator in (reductions, tt.named("rms_norm"), tt.named("softmax")):
        operands, constants = sample(operator, 5, 512)
        rows, columns = by_rows(Machine((5, 0), row), constants), by_columns(Machine((256, 256), column), constants)
        spread = parallel.over(operator, mesh.get_group("columns"), mesh.get_group("rows"), row_cut=(5, 0))
        compare(operator, spread, operands, constants, lambda tensor, where: columns(rows(tensor, where), where),
                lambda where: where != "[]")


def case_named(rank, size):
    """Operands with names of ours."""
    programs = ["one(x[i,j], like[i,j]) -> (s[i])\n    s = sum(x * like)",
                "two(x[i,j], first_row[i], like[j]) -> (y[i,j], c[j])\n    y = x * i + first_row * like\n    c = colsum(y)",
                "three(x[i,j], columns[j], first_column[i]) -> (y[i,j], sum_1[i])\n    sum_1 = sum(x * columns) / n\n"
                "    y = x * first_column + j + sum_1",
                "four(like[j], left[i], columns = 2, first_row = 3) -> (both[i,j], sum_2[i])\n    both = like * left * columns + i * n\n"
                "    sum_2 = sum(both) * amax(like) + first_row",
                "five(sum_1[i,j], leaf0[i], total[j]) -> (amax_2[i], right[i])\n    amax_2 = amax(sum_1 * total) * leaf0\n"
                "    right = sum(sum_1 * amax_2) + logsumexp(sum_1)"]
    for text in programs:
        operator = tt.op(text)
        for widths in ((256 * 3, *(256,) * (size - 1)), (40,) * size):  # several runs a part, and one
            operands, constants = sample(operator, 12, sum(widths))
            compare(operator, parallel.columns(operator, cut=widths), operands, constants, by_columns(Machine(widths, rank), constants),
                    lambda where: widths[0] % 256 == 0)
        for widths in ((512 + 256, *(256,) * (size - 1)), (12,) * size):
            operands, constants = sample(operator, sum(widths), 24)
            compare(operator, parallel.rows(operator, cut=widths), operands, constants, by_rows(Machine(widths, rank), constants),
                    lambda where: sums_are_exact(where, widths, 24, constants))


def case_counted(rank, size):
    """Rows that know their number, or that wrap, are cut anywhere; of a largest value over rows and columns every machine has all."""
    programs = [("counted(x[i,j]) -> (y[i,j], t[])\n    y = select(j <= i, x * i, 0)\n    t = colsum(x * i)", {}),
                ("heads(x[i,j], w[i % 3, j], b[(i / 2) % 5]) -> (y[i,j])\n    y = x * w * b", {}),
                ("range(x[i,j]) -> (y[i,j], top[], each[j], head[i % 3, j], pair[i / 2])\n    y = x * 2\n    top = colmax(abs(x))\n"
                 "    each = colmax(x)\n    head = colmax(x)\n    pair = colmax(-x)", {})]
    for text, constants in programs:
        operator = tt.op(text)
        for widths in ((34,) * size, tuple(2 + 8 * k for k in range(size)), (2,) * (size - 1) + (0,), (468,) * size):
            operands, _ = sample(operator, sum(widths), 40)
            compare(operator, parallel.rows(operator, cut=widths), operands, constants, by_rows(Machine(widths, rank), constants),
                    lambda where: "range" in operator.name or sums_are_exact(where, widths, 40, constants))
    assert sums_are_exact("[i % 3, j]", (468,) * size, 40, {}) or size > 3
    operator = tt.op("range(x[i,j]) -> (y[i,j], top[], per[i % 4])\n    y = x * 2\n    top = colmax(abs(x))\n    per = colmax(x + amax(x))")
    for widths in ((40,) * size, (256 * 3, *(256,) * (size - 1))):
        operands, _ = sample(operator, 9, sum(widths))
        compare(operator, parallel.columns(operator, cut=widths), operands, {}, by_columns(Machine(widths, rank), {}), lambda where: True)


def case_random(rank, size):
    """Random numbers count rows and columns over all machines: wherever it is cut, what is drawn is what one machine draws."""
    rounded = tt.op("rounded(p[i,j], g[i,j], seed[]) -> (q[i,j], t[j])\n    q = cast_stochastic(p - 0.1 * g, q, random(seed, 1))\n"
                    "    t = colsum(p * random(seed, 2))")
    placed = tt.op("placed(x[i,j], seed[], a = 3) -> (y[i,j])\n    y = x * random(seed, 0, a * 2, 5) + random(seed, 1) * i")
    dropout, seed = tt.named("dropout"), torch.tensor(0x1234567890ABCDEF)
    assert 0.2 < (dropout(torch.ones(64, 64), seed, p=0.3) == 0).float().mean() < 0.4
    types = {"types": {"q": torch.bfloat16}}
    for operator, arrays, constants in ((dropout, 1, {"p": 0.3}), (rounded, 2, types), (placed, 1, {"a": 7.0})):
        values = {**operator.constants, **constants}
        for widths in ((96,) * size, tuple(41 + 6 * k for k in range(size)), (1,) * size):
            operands = [*torch.randn(arrays, 11, sum(widths)), seed]
            compare(operator, parallel.columns(operator, cut=widths), operands, constants, by_columns(Machine(widths, rank), values),
                    lambda where: True)
        for widths in ((512,) * size, tuple(3 + 8 * k for k in range(size)), (2,) * (size - 1) + (0,)):
            operands = [*torch.randn(arrays, sum(widths), 37), seed]
            compare(operator, parallel.rows(operator, cut=widths), operands, constants, by_rows(Machine(widths, rank), values),
                    lambda where: where == "[i,j]" or sums_are_exact(where, widths, 37, constants))
    try:
        parallel.rows(dropout, in_order=False)(torch.randn(4, 8), seed)
        raise AssertionError("rows that nobody can count were not noticed")
    except trireme.Unsupported as error:
        assert "computes with random, which counts rows over all machines; spread them in order" in str(error), error


def case_composed(rank, size):
    """Folds exchange two numbers, and amax and sum go in one collective."""
    operator = tt.op("""composed(x[i,j], w[j], eps = 1e-5) -> (y[i,j], l[i], a[i])
    v = variance(x)
    y = (x - mean(x)) * rsqrt(v + eps) * w + softmax(x) * j
    l = logsumexp(x)
    a = amax(x) - amin(x) + n
""")
    for widths in ((256,) * size, (768,) * size, (41,) * size):
        operands, constants = sample(operator, 5, sum(widths))
        compare(operator, parallel.columns(operator), operands, constants, by_columns(Machine(widths, rank), constants),
                lambda where: widths[0] % 256 == 0)
    calls = []
    kept, tt._exchange._gather = tt._exchange._gather, lambda *values: calls.append(1) or kept(*values)
    parallel.columns(operator)(operands[0][:, :41].contiguous(), operands[1][:41])
    tt._exchange._gather = kept
    assert len(calls) == 1, calls


def case_once(rank, size):
    """compose=True: one exchange a row, and the bits of the composed program on one machine, derivatives too."""
    for name, numbers in (("layer_norm", 1), ("add_layer_norm", 1), ("softmax", 1), ("log_softmax", 1), ("masked_softmax", 1),
                          ("softmax_sink", 1), ("cross_entropy", 1), ("rms_norm", 1), ("logprob_entropy", 1)):
        operator = tt.named(name)
        one = tt._spread.Spread(composed=True).of(operator)  # on one machine
        for widths in ((512,) * size, (256, *(256 * 3 for _ in range(size - 1))), (90,) * size):
            aligned = widths[0] % 256 == 0
            operands, constants = sample(operator, 6, sum(widths))
            cuts = by_columns(Machine(widths, rank), {**operator.constants, **constants})
            many = parallel.columns(operator, cut=widths, compose=True)
            compare(operator, many, operands, constants, cuts, lambda where: False)  # the operator's values
            compare(operator, many, operands, constants, cuts, lambda where: aligned, one)
        mine = [cuts(each, where[1]) for each, where in zip(operands, operator.operator.operands)]
        assert gathers(lambda: many(*mine, **constants)) == numbers, name
    torch.manual_seed(1)
    machine = Machine((512,) * size, rank)
    x, target = torch.randn(7, 512 * size), torch.randint(0, 512 * size, (7,))
    for named in (dict(), dict(label_smoothing=0.1), dict(softcap=20.0, z_loss=1e-3)):
        a, b = x.clone().requires_grad_(), machine.cut(x, -1).requires_grad_()
        loss = tt.cross_entropy(a, target, **named)
        made = []
        assert gathers(lambda: made.append(parallel.cross_entropy(b, target, compose=True, **named))) == 1
        close(loss, made[0])
        assert gathers(lambda: made[0].backward()) == 0
        loss.backward()
        close(machine.cut(a.grad, -1), b.grad)
    assert gathers(lambda: parallel.log_probability(machine.cut(x, -1), target, compose=True)) == 1
    norm = parallel.LayerNorm(512, columns=dist.group.WORLD, compose=True)
    assert gathers(lambda: norm(machine.cut(x, -1))) == 1


def case_losses(rank, size):
    for classes, aligned in ((512 * size, True), (100 * size, False)):
        machine = Machine((classes // size,) * size, rank)
        torch.manual_seed(classes)
        x, target, weight = torch.randn(20, classes), torch.randint(0, classes, (20,)), torch.rand(classes)
        target[3] = -100
        soft = torch.softmax(torch.randn(20, classes), -1)
        cases = [dict(), dict(reduction="sum"), dict(reduction="none"), dict(label_smoothing=0.1), dict(weight=weight),
                 dict(weight=weight, label_smoothing=0.2, reduction="sum"), dict(softcap=20.0, z_loss=1e-3), dict(target=soft)]
        for named in cases:
            named = {"target": target, **named}
            mine = dict(named)
            if named["target"] is soft:
                mine["target"] = machine.cut(soft, -1)
            a, b = x.clone().requires_grad_(), machine.cut(x, -1).requires_grad_()
            one, many = tt.cross_entropy(a, **named), parallel.cross_entropy(b, **mine)
            assert same(one, many) if aligned else close(one, many), named
            one.sum().backward()
            many.sum().backward()
            u, v = machine.cut(a.grad, -1), b.grad
            assert same(u, v) if aligned else close(u, v), named
        for targets in (target, mine["target"]):
            try:
                parallel.cross_entropy(b, targets, weight.clone().requires_grad_())
                assert False, "a gradient was dropped"
            except (RuntimeError, NotImplementedError) as error:
                assert "detach" in str(error), error
        a, b = x.clone().requires_grad_(), machine.cut(x, -1).requires_grad_()
        program = tt._loss_programs.log_probability()
        one = program.call([a, target], [0.5], wanted=3)[:2]
        many = parallel.log_probability(b, target, temperature=2.0)
        for u, v in zip(one, many):
            assert same(u, v) if aligned else close(u, v)
        (one[0] + one[1]).sum().backward()
        (many[0] + many[1]).sum().backward()
        u, v = machine.cut(a.grad, -1), b.grad
        assert same(u, v) if aligned else close(u, v)


def case_norms(rank, size):
    """Sequence-parallel norms: weights' gradients have the same bits for any number of machines."""
    torch.manual_seed(0)
    rows, columns = 2304, 64  # blocks of 16 rows: 144 of them, halves, thirds and quarters
    assert rows // size % trireme._core.row_block(rows, columns) == 0
    x, dy = torch.randn(rows, columns), torch.randn(rows, columns)
    machine = Machine((rows // size,) * size, rank)
    for one, many in ((tt.RMSNorm(columns), parallel.RMSNorm(columns, rows=dist.group.WORLD)),
                      (tt.LayerNorm(columns), parallel.LayerNorm(columns, rows=dist.group.WORLD))):
        one(x).backward(dy)
        many(machine.cut(x, 0)).backward(machine.cut(dy, 0))
        for a, b in zip(one.parameters(), many.parameters()):
            assert same(a.grad, b.grad)


def digest_over(group):
    """Of what a group makes of the same rows: norms, cut by rows and by columns, losses of a cut vocabulary, and gradients."""
    rank, size, found = dist.get_rank(group), group.size(), hashlib.sha256()
    torch.manual_seed(0)
    x, dy, target = torch.randn(512, 2048), torch.randn(512, 2048), torch.randint(0, 2048, (64,))
    assert 512 // size % trireme._core.row_block(512, 2048) == 0
    by_row, by_column = (Machine((extent // size,) * size, rank) for extent in x.shape)

    def note(tensor, cut=False):
        parts = [tensor.detach().contiguous()]
        if cut:
            mine, parts = parts[0], [torch.empty_like(parts[0]) for _ in range(size)]
            dist.all_gather(parts, mine, group)
        found.update(torch.cat(parts, -1).numpy().tobytes())

    for norm in (parallel.RMSNorm, parallel.LayerNorm):
        rows = norm(2048, rows=group)
        rows(by_row.cut(x, 0)).backward(by_row.cut(dy, 0))
        for each in rows.parameters():
            note(each.grad)
        mine = by_column.cut(x[:64], 1).requires_grad_()
        y = norm(2048 // size, columns=group)(mine)
        y.backward(by_column.cut(dy[:64], 1))
        note(y, cut=True)
        note(mine.grad, cut=True)
    mine = by_column.cut(x[:64], 1).requires_grad_()
    loss = parallel.cross_entropy(mine, target, reduction="none", group=group)
    loss.sum().backward()
    chosen, entropy = parallel.log_probability(mine, target, group=group)
    for each in (loss, chosen, entropy):
        note(each)
    note(mine.grad, cut=True)
    return found.hexdigest()


def case_digests(rank, size):
    """1, 2, 4, 8 machines, each group of the first of these processes: the same bits."""
    groups = [dist.new_group(range(count)) for count in (1, 2, 4, 8) if count <= size]
    found = [digest_over(group) for group in groups if isinstance(group, dist.ProcessGroup)]
    said = [None] * size
    dist.all_gather_object(said, found)
    assert [len(each) for each in said] == [sum(k < group for group in (1, 2, 4, 8) if group <= size) for k in range(size)]
    assert len({digest for each in said for digest in each}) == 1, said


def spread_model(rank, size):
    """A function that exchanges by rows and by columns, and this machine's part of its arguments."""
    norm, head, once = parallel.columns("layer_norm"), parallel.rows("rms_norm"), parallel.columns("softmax", compose=True)

    def model(x, w, b, y, g):
        linear = parallel.reduce_from(parallel.copy_to(y) * 0.5).square().sum()
        return norm(x, w, b).square().sum() + head(y, g).square().sum() + parallel.cross_entropy(x, target) + once(x).square().sum() + linear

    machine = Machine((300,) * size, rank)
    torch.manual_seed(6)
    x, w, b, y, g = torch.randn(4, 300 * size), torch.randn(300 * size), torch.randn(300 * size), torch.randn(6, 40), torch.randn(40)
    target = torch.randint(0, 300 * size, (4,))
    return model, [each.requires_grad_() for each in (machine.cut(x, -1), machine.cut(w, -1), machine.cut(b, -1), y, g)]


def check_compiled(rank, size, backend, equal):
    model, given = spread_model(rank, size)
    wanted = model(*given)
    grads = torch.autograd.grad(wanted, given)
    got = torch.compile(model, fullgraph=True, backend=backend)(*given)
    for u, v in zip([wanted, *grads], [got, *torch.autograd.grad(got, given)]):
        assert equal(u, v)


def case_compiled(rank, size):
    """Compiled code sees phases and collectives, and has the same bits."""
    from functorch.compile import make_boxed_func, min_cut_rematerialization_partition
    from torch._dynamo.backends.common import aot_autograd
    seen = []

    def note(module, _):
        seen.extend(str(node.target) for node in module.graph.nodes if node.op == "call_function")
        return make_boxed_func(module.forward)

    check_compiled(rank, size, aot_autograd(fw_compiler=note, bw_compiler=note,
                                            partition_fn=min_cut_rematerialization_partition), same)  # as Inductor's
    said, gathers = ([each for each in seen if name in each] for name in ("agreed", "all_gather"))
    # layer_norm 2 + 1, cross_entropy 2, rms_norm's dgamma 1, composed softmax 1 + 1, reduce_from 1, copy_to 1
    assert len(said) == 10, said
    assert len(gathers) == 10 + 10, gathers  # and before each what it is


def case_inductor(rank, size):
    """Inductor's own sums (of squares, here) have an order of their own."""
    check_compiled(rank, size, "inductor", close)


def case_compiled_first(rank, size):
    """Nothing has run before that could have registered phases, and nothing runs in the same way on two machines."""
    torch.manual_seed(8)
    logits, target = torch.randn(4, 300 * size), torch.randint(0, 300 * size, (4,))
    mine = Machine((300,) * size, rank).cut(logits, -1).requires_grad_()
    loss = torch.compile(parallel.cross_entropy, fullgraph=True)(mine, target)
    loss.backward()
    wanted = torch.nn.functional.cross_entropy(logits.requires_grad_(), target)
    wanted.backward()
    torch.testing.assert_close(loss, wanted)
    torch.testing.assert_close(mine.grad, Machine((300,) * size, rank).cut(logits.grad, -1))


def case_second(rank, size):
    """Derivatives of derivatives are spread, too."""
    torch.manual_seed(0)
    machine = Machine((512,) * size, rank)
    x, w = torch.randn(3, 512 * size), torch.randn(512 * size)

    def second(operator, x, w):
        x, w = x.requires_grad_(), w.requires_grad_()
        slope, = torch.autograd.grad(operator(x, w).square().sum(), x, create_graph=True)
        return torch.autograd.grad(slope.square().sum(), (x, w))

    one = second(tt.named("rms_norm"), x.clone(), w.clone())
    many = second(parallel.columns("rms_norm"), machine.cut(x, -1), machine.cut(w, -1))
    for u, v in zip(one, many):
        torch.testing.assert_close(machine.cut(u, -1), v, rtol=1e-3, atol=1e-2)


CASES = {name.removeprefix("case_"): function for here in (globals(), *map(vars, (dtensor_cases, exchange_cases, model_cases, parallel_faults, parallel_fuzz)))
         for name, function in here.items() if name.startswith("case_")}


def main(names, seconds=60):
    faulthandler.enable()  # who aborts says where
    torch.set_num_threads(1)
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    where = os.environ.get("MEETING")
    dist.init_process_group("gloo", init_method=f"file://{where}" if where else "env://", rank=rank, world_size=size,
                            timeout=datetime.timedelta(seconds=seconds))
    for name in names:
        try:
            CASES[name](rank, size)
        except Exception:
            print(f"machine {rank} of {size}, case {name}:\n{traceback.format_exc()}", flush=True)
            os._exit(1)  # the others see it at once
        print(f"fine {name} {rank}", flush=True)
    leave()


if __name__ == "__main__":
    main(sys.argv[1:], int(os.environ.get("SECONDS_TO_WAIT", "60")))

"""What machines exchange: how many collectives, how many bytes, and sums of whole tensors; run by parallel_cases."""
import pathlib
import sys

import torch

import trireme
import trireme.torch as tt
from trireme.torch import parallel

from parallel_compare import Machine, by_columns, by_rows, close, compare, received, same, sample, sums_are_exact

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench"))
import exchange_model


def counted(call):
    """Of a call: the numbers that this machine sends in each collective, how often several arrays become one, and how often
    what came is combined."""
    sent, joins, combines = [], [], []
    kept = tt._exchange._gather, tt._exchange.joined, tt._operator.TorchOperator.call

    def joined(tensors, *axis):
        joins.extend([1] * (len(tensors) > 1))
        return kept[1](tensors, *axis)

    def combine(operator, *values, **named):
        combines.extend([1] * operator.name.startswith("combine_"))
        return kept[2](operator, *values, **named)

    tt._exchange._gather = lambda tensor, *more: sent.append(tensor.numel()) or kept[0](tensor, *more)
    tt._exchange.joined = tt._machine.joined = joined
    tt._operator.TorchOperator.call = combine
    try:
        call()
    finally:
        tt._exchange._gather, tt._exchange.joined, tt._operator.TorchOperator.call = kept
        tt._machine.joined = kept[1]
    return sent, len(joins), len(combines)


def case_exchanges(rank, size):
    """The tables of docs/distributed.md are counted: so many collectives, so many numbers a row, so many kernels around them."""
    rows, width = 8, 512
    for name in ("rms_norm", "layer_norm", "softmax", "masked_softmax", "cross_entropy", "logprob_entropy", "dynamic_tanh", "swiglu",
                 "poly_norm", "kl_div", "grouped_rms_norm"):
        operator, forms = tt.named(name), exchange_model.forms(trireme.operator(name))
        operands, constants = sample(operator, rows, width * size)
        cuts = by_columns(Machine((width,) * size, rank), {**operator.constants, **constants})
        for composed in (False, True):
            mine = [cuts(each, where[1]).requires_grad_(each.is_floating_point()) for each, where in zip(operands, operator.operator.operands)]
            spread, made = parallel.columns(operator, compose=composed), []

            def forward():
                found = spread(*mine, **constants)
                made.extend(found if isinstance(found, tuple) else (found,))

            def backward():
                sum(each.sum() for each in made if each.requires_grad).backward()

            for direction, call in (("forward", forward), ("backward", backward)):
                sent, joins, combines = counted(call)
                wanted = forms[2 * (direction == "backward") + composed]
                assert sent == [rows * each for each in wanted], (name, composed, direction, sent, forms)
                around = exchange_model.kernels_of_exchanges(exchange_model.program_of(name, direction, composed), size)
                assert (joins, combines) == tuple(sum(each[k] for each in around) for k in (1, 2)), (name, composed, direction, around)


def of_pairs(parts):
    """The sum in neighbouring pairs, in f32 or wider, rounded once."""
    nodes = [each.to(torch.promote_types(each.dtype, torch.float32)) for each in parts]
    while len(nodes) > 1:
        nodes = [nodes[k] + nodes[k + 1] if k + 1 < len(nodes) else nodes[k] for k in range(0, len(nodes), 2)]
    return nodes[0].to(parts[0].dtype)


def case_bytes(rank, size):
    """What a machine receives is what the page says: little tensors whole from each, large ones in shares, in their own types."""
    for count, dtype in ((1024, torch.bfloat16), (1025, torch.float16), (1024, torch.float32), ((1 << 21) + 5, torch.bfloat16),
                         (1 << 19, torch.float64)):
        torch.manual_seed(17)
        parts = [torch.randn(count).to(dtype) for _ in range(size)]
        made, element = [], parts[0].element_size()
        share = -(-count // size)
        large = count > 1 << 18 and size > 2  # two machines receive as much either way
        wanted = 2 * (size - 1) * share * element if large else (size - 1) * count * element
        assert exchange_model.in_shares(size, count * element, count * element) == large
        assert sum(received(lambda: made.append(parallel.sum_over(parts[rank])))) == wanted, (count, dtype)
        assert same(made[0], of_pairs(parts)), (count, dtype)
    # A weight's gradient, which is a sum over rows, by rows.
    product, m, columns, machine = tt.named("matmul"), 128, 8192, Machine((2,) * size, rank)
    torch.manual_seed(18)
    x, w, dy = torch.randn(2 * size, columns), torch.randn(m, columns), torch.randn(2 * size * m)
    a, b = (w.clone().requires_grad_() for _ in range(2))
    product(x, a, m=float(m)).backward(dy)
    made = parallel.rows(product)(machine.cut(x, 0), b, m=float(m))
    wanted = 2 * (size - 1) * -(-m * columns // size) * 4 if size > 2 else m * columns * 4
    assert sum(received(lambda: made.backward(Machine((2 * m,) * size, rank).cut(dy, 0)))) == wanted
    assert same(a.grad, b.grad)


def case_shares(rank, size):
    """Machines that each combine a share have the bits of machines that combine everything: sums, maxima, pairs, several runs."""
    kept, tt._exchange._LATENCY = tt._exchange._LATENCY, -1
    largest = tt.op("largest(x[i,j], w[j]) -> (y[i,j], top[], each[j], c[j], t[])\n    y = softmax(x) * w + variance(x)\n"
                    "    top = colmax(x)\n    each = colmax(x)\n    c = colsum(x)\n    t = colsum(x * w)")
    once = tt._spread.Spread(composed=True)
    for operator, one in ((largest, None), (tt.named("layer_norm"), None), (tt.named("log_softmax"), once.of(tt.named("log_softmax")))):
        widths = (768, *(256 for _ in range(size - 1)))
        operands, constants = sample(operator, 5, sum(widths))
        sent = []
        sent += received(lambda: compare(operator, parallel.columns(operator, cut=widths, compose=one is not None), operands, constants,
                                         by_columns(Machine(widths, rank), constants), lambda where: True, one))
        operands, constants = sample(operator, sum(widths), 33)
        if one is None:
            sent += received(lambda: compare(operator, parallel.rows(operator, cut=widths), operands, constants,
                                             by_rows(Machine(widths, rank), constants),
                                             lambda where: sums_are_exact(where, widths, 33, constants)))
        assert len(sent) % 2 == 0 and sent
    parts = [torch.randn(301).to(torch.bfloat16) for _ in range(size)]
    for call in (parallel.sum_over, torch.compile(parallel.sum_over, fullgraph=True, backend="aot_eager")):
        for own in (parts, [each[:1] for each in parts], [each.double() for each in parts]):  # fewer than there are machines, too
            assert same(call(own[rank]), of_pairs(own))
    try:
        parallel.sum_over(torch.ones(300 + rank))
        raise AssertionError("shapes that differ, in shares that are as large")
    except ValueError as error:
        assert str([300 + k for k in range(size)]) in str(error), error
    tt._exchange._LATENCY = kept


def case_sums(rank, size):
    torch.manual_seed(5)
    for shape, dtype in (((7, 3), torch.float32), ((300, 211), torch.float32), ((40, 5), torch.bfloat16), ((9000,), torch.float64)):
        parts = [torch.randn(shape).to(dtype) for _ in range(size)]
        assert same(parallel.sum_over(parts[rank]), of_pairs(parts))
    x = torch.randn(8, 4 * size, requires_grad=True)
    w = torch.randn(4 * size, 4 * size)
    machine = Machine((4,) * size, rank)
    a = torch.relu(x @ w) @ w.t()
    mine = machine.cut(w, 1)
    y = x.detach().clone().requires_grad_()
    b = parallel.reduce_from(torch.relu(parallel.copy_to(y) @ mine) @ mine.t())
    close(a, b)
    a.sum().backward()
    b.sum().backward()
    close(x.grad, y.grad)

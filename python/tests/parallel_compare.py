"""How a machine's tensors are compared with one process's."""
import math

import torch

import trireme
import trireme.torch as tt

from row_in_torch import NAMED, Problem


def same(a, b):
    assert a.dtype == b.dtype and a.shape == b.shape, (a.dtype, b.dtype, a.shape, b.shape)
    a, b = (each.detach().contiguous().view(-1).view(torch.uint8) for each in (a, b))
    return torch.equal(a, b)


def close(a, b):
    torch.testing.assert_close(a, b, rtol=2e-2 if a.dtype == torch.bfloat16 else 1e-4, atol=1e-3, equal_nan=True)
    return True


def sample(operator, rows, columns, dtype=torch.float32):
    """Operands of any operator, and what goes by name."""
    if operator.name in NAMED:
        problem = Problem(operator.name, dtype=dtype, shape=(rows, columns))
        return list(problem.operands.values()), {**problem.constants, **({"types": problem.types} if problem.types else {})}
    torch.manual_seed(rows * columns)
    return [torch.randn(tt._register.extents(spread, (rows, columns), 1, {})).to(dtype)
            for _, spread, *_ in operator.operator.operands], {}


class Machine:
    """This process's part of tensors that are cut along one axis."""

    def __init__(self, widths, rank):
        self.first, self.width = sum(widths[:rank]), widths[rank]

    def cut(self, tensor, axis):
        return tensor.narrow(axis, self.first, self.width).contiguous()


def compare(operator, spread, operands, constants, cuts, exact, one=None):
    """Results and gradients of `spread`, on what cuts(tensor, its spread) gives, against the operator's, or those of `one`.
    `exact`(spread) says where bits must be the same."""
    spreads = [each[1] for each in operator.operator.operands]
    whole = [each.clone().requires_grad_(each.is_floating_point()) for each in operands]
    mine = [cuts(each.clone(), where).requires_grad_(each.is_floating_point()) for each, where in zip(operands, spreads)]
    wanted, got = (one or operator)(*whole, results="all", **constants), spread(*mine, results="all", **constants)
    wanted, got = ((each if isinstance(each, tuple) else (each,)) for each in (wanted, got))
    for (name, where, *_), a, b in zip(operator.operator.results, wanted, got):
        a = cuts(a, where)
        assert same(a, b) if exact(where) else close(a, b), (operator.name, name)
    chosen = [k for k in operator.returned if wanted[k].requires_grad and got[k].requires_grad]
    if not chosen or "types" in constants:  # whole numbers take no gradients
        return
    torch.manual_seed(3)
    grads = [torch.randn(wanted[k].shape).to(wanted[k].dtype) for k in chosen]
    places = [k for k, each in enumerate(whole) if each.requires_grad and operator.operands[k] not in operator.held]
    a = torch.autograd.grad([wanted[k] for k in chosen], [whole[k] for k in places], grads, allow_unused=True)
    b = torch.autograd.grad([got[k] for k in chosen], [mine[k] for k in places],
                            [cuts(grad, operator.operator.results[k][1]) for k, grad in zip(chosen, grads)], allow_unused=True)
    for k, u, v in zip(places, a, b):
        assert (u is None) == (v is None), (operator.name, operator.operands[k])
        if u is not None:
            u = cuts(u, spreads[k])
            assert same(u, v) if exact(spreads[k]) else close(u, v), (operator.name, "d" + operator.operands[k])


def by_columns(machine, constants):
    def cuts(tensor, where):
        if "j" not in where:
            return tensor
        size = tt._rows.group_of(where, constants)
        return tensor.narrow(-1, machine.first // size, -(-machine.width // size)).contiguous()

    return cuts


def by_rows(machine, constants):
    def cuts(tensor, where):
        row = tt._rows.row_of(where, constants)
        if row is None or row.wrap:
            return tensor
        return tensor.narrow(0, machine.first // row.divide, -(-machine.width // row.divide)).contiguous()

    return cuts


def gathers(call):
    """How many collectives a call takes."""
    calls = []
    kept, tt._exchange._gather = tt._exchange._gather, lambda *values: calls.append(1) or kept(*values)
    try:
        call()
    finally:
        tt._exchange._gather = kept
    return len(calls)


def received(call):
    """Of each collective of results in a call: the bytes that this machine gets of others."""
    sent = []
    gather, trade = tt._exchange._gather, tt._exchange.trade

    def gathered(tensor, _, group):
        sent.append((group.size() - 1) * tensor.numel() * tensor.element_size())
        return gather(tensor, _, group)

    def traded(tensor, group):
        sent.append(tensor.numel() * tensor.element_size() * (group.size() - 1) // group.size())
        return trade(tensor, group)

    tt._exchange._gather, tt._exchange.trade = gathered, traded
    try:
        call()
    finally:
        tt._exchange._gather, tt._exchange.trade = gather, trade
    return sent


def sums_are_exact(where, widths, columns, constants):
    """Whether rows of such a result, or blocks of its sums, are those of one machine."""
    row, total = tt._rows.row_of(where, constants), sum(widths)
    if row is not None and not row.wrap:
        return True
    divide, wrap = (row.divide, row.wrap) if row else (1, 1)
    block = trireme._core.row_block(total // wrap, math.prod(tt._register.extents(where, (total, columns), 1, constants)))
    unit = 256 if where == "[]" else divide * wrap * block // math.gcd(block, divide)
    return total % (divide * wrap) == 0 and all(sum(widths[:k]) % unit == 0 for k in range(len(widths)))

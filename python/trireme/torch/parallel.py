"""Operators over many machines: each holds a part of the tensors, and a process group is told.

    from trireme.torch import parallel
    norm = parallel.columns("rms_norm", group)            # rows cut by columns: x[:, mine], gamma[mine]
    y = norm(x, gamma, eps=1e-6)
    norm = parallel.rows("rms_norm", group)               # rows spread: dgamma is summed in the contract's order
    loss = parallel.cross_entropy(logits, target, group=group)    # a vocabulary that no device holds
    softmax = parallel.columns("softmax", group, compose=True)    # one exchange a row instead of two

Any operator, tt.op's texts too, forward and backward. Numbers that machines exchange are combined as the contract's sums are, so
that every machine has the same bits, and those of one machine where the cut allows it: docs/distributed.md.
"""
from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from . import _distributed, _loss_programs, losses
from ._exchange import SUM, Piece, exchange, one_each
from ._meeting import asks_each_time, meet, number_of, of_member, refuse_transforms
from ._operator import TorchOperator, named, op
from ._register import LIBRARY
from ._spread import Spread, SpreadOperator, traced
from .functional import eps_of

__all__ = ["LayerNorm", "RMSNorm", "columns", "compose_dtensors", "copy_to", "cross_entropy", "log_probability", "over", "reduce_from", "rows", "sum_over"]


def _operator(operator):
    return operator if isinstance(operator, TorchOperator) else op(operator)


def _group(group):
    group = dist.group.WORLD if group is None else group
    if group is None:
        raise ValueError("there is no group of processes; torch.distributed.init_process_group makes one")
    return of_member(group)


def columns(operator: "TorchOperator | str", group: dist.ProcessGroup | None = None,
            cut: Sequence[int] | None = None, compose: bool = False) -> SpreadOperator:
    """The operator on rows that are cut by columns: [i,j] and [j] tensors are this machine's columns, all others are the same
    on every machine of the group. Columns follow each other in the order of ranks.

    cut: how many columns each machine has; unless said, all have as many. compose: norms, softmax and losses exchange once a row,
    where the operator as it is written waits for a mean or a maximum first; bits are then those of the composed program
    (`Operator.compose()`), on one machine as on many, and not those of the operator."""
    return SpreadOperator(_operator(operator), Spread(columns=_group(group), column_cut=cut, composed=compose))


def rows(operator: "TorchOperator | str", group: dist.ProcessGroup | None = None, cut: Sequence[int] | None = None,
         in_order: bool = True) -> SpreadOperator:
    """The operator on rows that are spread over machines: [i,j] and [i] tensors are this machine's rows, all others are the same
    on every machine of the group. Gradients that sum over rows are those of all machines' rows.

    cut: how many rows each machine has; unless said, all have as many. in_order: the rows of all machines, rank by rank, are the
    rows of one. Say False where they are not (sequence parallel with a batch), or where nobody knows how many the others have:
    gradients are then combined machine by machine."""
    return SpreadOperator(_operator(operator), Spread(rows=[_group(group)], in_order=in_order, row_cut=cut))


def over(operator: "TorchOperator | str", columns: dist.ProcessGroup | None = None, rows: dist.ProcessGroup | None = None,
         in_order: bool = True, column_cut: Sequence[int] | None = None, row_cut: Sequence[int] | None = None,
         compose: bool = False) -> SpreadOperator:
    """Both: columns over one group, rows over another; None is one place."""
    return SpreadOperator(_operator(operator), Spread(columns, [] if rows is None else [rows], in_order, column_cut, row_cut, compose))


class compose_dtensors:
    """From now on, or inside of `with`: operators on DTensors whose columns are cut are composed, as compose=True says. The
    same on every machine; bits then do not depend on how many there are, one included."""

    def __init__(self, on: bool = True) -> None:
        self.before, _distributed.composed = _distributed.composed, on

    def __enter__(self) -> "compose_dtensors":
        return self

    def __exit__(self, *_: object) -> None:
        _distributed.composed = self.before


# ---- sums of whole tensors ----

def sum_over(tensor: Tensor, group: dist.ProcessGroup | None = None) -> Tensor:
    """The sum over machines, rank 0 first, in neighbouring pairs: the same bits on every machine, at any time. Large tensors
    move as many bytes as a ring's all-reduce does, in the tensor's own type; little ones are gathered whole, by one collective.
    16-bit tensors are added in f32, and rounded once."""
    group = _group(group)
    if group.size() == 1:
        return tensor
    if torch.compiler.is_compiling():
        total: Tensor = torch.ops.trireme.sum_over(traced(tensor), group.group_name)
        return total
    return _sum_over(tensor, group)


def _sum_over(tensor, group):
    refuse_transforms([tensor], "sum_over")
    what = f"sum_over of {tensor.dtype} {tuple(map(int, tensor.shape))}"
    count = int(tensor.numel())
    if not asks_each_time(tensor.device):
        meet(group, (number_of(str(tensor.dtype)), count, number_of(what)), ["sum_over", "the type", "the number of elements", "the shape"],
             (0, 1, 2))
    # Tensors of 16 bits move as they are, and are added in f32; whole numbers are f32 before they move.
    moved = tensor if tensor.dtype in (torch.float16, torch.bfloat16) else tensor.to(torch.promote_types(tensor.dtype, torch.float32))
    total = exchange(group, [Piece(SUM, one_each(group.size()), [(moved.reshape(-1),)], count)], moved.dtype, tensor.device, what)[0][0]
    return total.to(tensor.dtype).view(tensor.shape)


# What compiled code calls; as `spread`, it is collectives when the graph is traced.
LIBRARY.define("sum_over(Tensor tensor, str group) -> Tensor")
for _key in ("Autograd", "CompositeExplicitAutograd"):
    LIBRARY.impl("sum_over", lambda tensor, group: _sum_over(tensor, dist.distributed_c10d._resolve_process_group(group)), _key)


def _plain(tensor, what):
    if not torch.compiler.is_compiling():
        refuse_transforms([tensor], what)
    return tensor


class _Copy(torch.autograd.Function):
    @staticmethod
    def forward(ctx, tensor, group):
        ctx.group = group
        return tensor.view_as(tensor)

    @staticmethod
    def backward(ctx, grad):
        return _Reduce.apply(grad.contiguous(), ctx.group), None


class _Reduce(torch.autograd.Function):
    @staticmethod
    def forward(ctx, tensor, group):
        ctx.group = group
        return sum_over(tensor, group)

    @staticmethod
    def backward(ctx, grad):
        return _Copy.apply(grad, ctx.group), None


def copy_to(tensor: Tensor, group: dist.ProcessGroup | None = None) -> Tensor:
    """What stands before a column-parallel linear: the tensor itself; its gradient is the sum_over of all machines'."""
    return _Copy.apply(_plain(tensor, "copy_to"), _group(group))


def reduce_from(tensor: Tensor, group: dist.ProcessGroup | None = None) -> Tensor:
    """What stands behind a row-parallel linear: the sum_over of all machines'; the gradient goes to each as it is."""
    return _Reduce.apply(_plain(tensor, "reduce_from"), _group(group))


# ---- losses ----

def _classes(input, group, cut):
    """This machine's first class, and the number of all. Whether the machines agree is seen to where rows are spread."""
    widths = (input.shape[-1],) * group.size() if cut is None else tuple(cut)
    return sum(widths[:dist.get_rank(group)]), sum(widths)


def cross_entropy(input: Tensor, target: Tensor, weight: Tensor | None = None, *, ignore_index: int = -100,
                  reduction: str = "mean", label_smoothing: float = 0.0, softcap: float | None = None, z_loss: float = 0.0,
                  group: dist.ProcessGroup | None = None, cut: Sequence[int] | None = None, compose: bool = False) -> Tensor:
    """tt.cross_entropy of logits whose classes are cut over machines: `input[..., mine]`, classes last. `target` and `weight`
    are those of all classes, on every machine; so is the loss. Probabilities as targets are cut as the logits are. Rows exchange
    three numbers forward, and none backward. cut: how many classes each machine has; unless said, all have as many. compose: the
    three go in one exchange instead of two (see `columns`)."""
    group = _group(group)
    reduction = losses._reduction(reduction, None, None)
    losses._check_smoothing(label_smoothing)
    constants = {**({"smoothing": label_smoothing} if label_smoothing else {}),
                 **({"softcap": float(softcap)} if softcap is not None else {})}
    first, classes = _classes(input, group, cut)
    mine = slice(first, first + input.shape[-1])
    if target.is_floating_point() and target.shape == input.shape:
        if z_loss:
            raise NotImplementedError("z_loss with targets that are probabilities")
        if weight is not None and weight.requires_grad and torch.is_grad_enabled():
            raise NotImplementedError("a gradient of class weights, which are whole on every machine; detach them")
        program = _loss_programs.soft_cross_entropy(weighted=weight is not None, smoothed=bool(label_smoothing),
                                                    capped=softcap is not None)
        operands = [input, target.to(input.dtype), *([] if weight is None else [weight.detach()[mine].contiguous()])]
        loss = columns(program, group, cut, compose).call(operands, list(constants.values()), wanted=1)[0]
        return loss if reduction == "none" else loss.sum() if reduction == "sum" else loss.sum() / max(loss.numel(), 1)
    found = losses._Classes(target, input.shape[:-1], classes, ignore_index, weight)
    operands = found.operands(input, reduction, weight, label_smoothing, z_loss)
    if "w" in operands:
        operands["w"] = operands["w"][mine].contiguous()
    flags = losses._flags(operands, label_smoothing, softcap)
    if not any(flags.values()) or (reduction == "mean" and sum(flags.values()) == 1):
        program = named("cross_entropy")
        loss = columns(program, group, cut, compose).call([input, operands["target"]], [float(found.ignored)], wanted=1)[0]
        if reduction == "mean":
            return loss.sum() / found.kept.sum()
    else:
        program = _loss_programs.cross_entropy(**flags)
        given = {"x": input, **operands}
        loss = columns(program, group, cut, compose).call([given[name] for name in program.operands], list(constants.values()),
                                                 wanted=1)[0]
    if reduction == "none":
        return loss
    return loss.sum() if reduction == "sum" else found.nan_if_none(loss.sum())


def log_probability(input: Tensor, target: Tensor, *, ignore_index: int = -100, temperature: float = 1.0,
                    group: dist.ProcessGroup | None = None,
                    cut: Sequence[int] | None = None, compose: bool = False) -> tuple[Tensor, Tensor]:
    """Of each row the log-probability of its target under softmax(input / temperature), and the entropy of that distribution,
    of logits whose classes are cut over machines; both 0 where the target is `ignore_index`. compose: one exchange instead of
    three (see `columns`)."""
    group = _group(group)
    _, classes = _classes(input, group, cut)
    found = losses._Classes(target, input.shape[:-1], classes, ignore_index)
    return columns(_loss_programs.log_probability(), group, cut, compose).call([input, found.target], [1.0 / temperature], wanted=3)[:2]


# ---- modules ----

class RMSNorm(torch.nn.RMSNorm):
    """torch.nn.RMSNorm of rows that are spread over `rows` (sequence or data parallel: the weight's gradient is that of all
    machines' tokens) and cut by columns over `columns` (normalized_shape and the weight are this machine's columns)."""

    def __init__(self, *arguments: Any, columns: dist.ProcessGroup | None = None, rows: dist.ProcessGroup | None = None,
                 in_order: bool = True, compose: bool = False, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.operator = over("rms_norm", columns, rows, in_order, compose=compose)

    def forward(self, x: Tensor) -> Tensor:
        return self.operator.call([x, self.weight], [eps_of(self.eps, x.dtype), 0.0], len(self.normalized_shape), wanted=1)[0]


class LayerNorm(torch.nn.LayerNorm):
    """torch.nn.LayerNorm, spread as RMSNorm is. compose: one exchange a row instead of two (see `columns`)."""

    def __init__(self, *arguments: Any, columns: dist.ProcessGroup | None = None, rows: dist.ProcessGroup | None = None,
                 in_order: bool = True, compose: bool = False, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.operator = over("layer_norm", columns, rows, in_order, compose=compose)

    def forward(self, input: Tensor) -> Tensor:
        return self.operator.call([input, self.weight, self.bias], [self.eps], len(self.normalized_shape), wanted=1)[0]

"""Losses with torch's names, parameters and checks, and those that language models are trained with."""
import functools
import math
from typing import Any

import torch
from torch import Tensor, _C
from torch.autograd import forward_ad

from . import _linear, _loss_programs
from ._autograd import autocast_type, is_distributed, is_plain
from ._operator import named, op


def _reduction(reduction, size_average, reduce):
    if size_average is not None or reduce is not None:
        reduction = torch.nn._reduction.legacy_get_string(size_average, reduce)
    if reduction not in ("none", "sum", "mean"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return reduction


def _check_smoothing(label_smoothing):
    if not 0.0 <= label_smoothing <= 1.0:
        raise RuntimeError(f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing}")


def _check_shape(target, shape):
    if target.dtype not in (torch.int64, torch.int32, torch.uint8):
        raise RuntimeError(f"expected targets of type int64, int32 or uint8 but found {target.dtype}")
    if target.shape != shape:
        raise ValueError(f"Expected target of shape {list(shape)} to match the input, got {list(target.shape)}")


def _check_classes(target, classes, ignore_index):
    is_compiling = torch.compiler.is_compiling()
    if is_distributed(target):
        target = target.to_local()  # each machine checks its own
    while not is_compiling and _C._functorch.is_functorch_wrapped_tensor(target):  # a batch's elements are checked alike
        target = _C._functorch.get_unwrapped(target)
    fine = ((target >= 0) & (target < classes)) | (target == ignore_index)
    if is_compiling or not target.is_cpu or type(target) is not Tensor:
        # An assertion on the device, as torch's own: nobody waits for it.
        torch._assert_async(fine.all(), "Target is out of bounds.")
    elif not fine.all():
        raise IndexError(f"Target {target[~fine][0]} is out of bounds.")


class _Classes:
    """Targets as programs read them: integers, negative where a row does not count; and what rows count for. Those that
    torch has are such already where ignore_index is negative, and are read in place."""

    def __init__(self, target, shape, classes, ignore_index, weight=None):
        _check_shape(target, shape)
        given, target = target, target.long()
        _check_classes(target, classes, ignore_index)
        self.kept = target != ignore_index
        self.ignored = min(ignore_index, -1)  # what rows that do not count have
        self.target = given if ignore_index < 0 else torch.where(self.kept, target, -1)
        self.chosen = None
        if weight is not None:
            if weight.shape != (classes,):
                raise RuntimeError("weight tensor should be defined either for all or no classes")
            if weight.requires_grad and torch.is_grad_enabled():
                raise RuntimeError("cross_entropy of classes is not differentiable with respect to their weight, which requires "
                                   "grad; detach it")
            wide = weight.detach().to(torch.promote_types(weight.dtype, torch.float32))
            self.chosen = wide[target.clamp(0, classes - 1)] * self.kept

    def operands(self, input, reduction, weight, label_smoothing, z_loss):
        """What a program of the loss takes, by name. Of "mean" the cross entropy is divided by the sum of weights, as torch
        does, and the square of lse by the number of rows that count."""
        found = {"target": self.target}
        if self.chosen is not None:
            found["chosen"] = self.chosen
            if label_smoothing:
                found["w"] = weight.detach()
        kind = torch.promote_types(input.dtype, torch.float32)
        if reduction == "mean":
            found["share"] = (self.kept if self.chosen is None else self.chosen).sum(dtype=kind).reciprocal()
        if z_loss:
            found["z"] = z_loss * self.kept.sum(dtype=kind).reciprocal() if reduction == "mean" else \
                torch.full((), z_loss, dtype=kind, device=self.target.device)
        return found

    def nan_if_none(self, loss):
        """A mean over nothing is NaN, as torch's."""
        return torch.where(self.kept.any(), loss, torch.nan)


def _in_range(operands, input):
    """Operands of a program with gradient, and what its loss is to be multiplied by. A mean's gradient of logits, some 1 / rows
    of a probability, is below the smallest f16, and the scale that a GradScaler multiplies it by arrives too late; the whole
    sum's products may be beyond the largest. So f16 has 1 / sqrt(rows) in it, and the rest behind it."""
    kind = autocast_type(input.device) or input.dtype
    if kind != torch.float16 or "share" not in operands:
        return operands, None
    share = operands["share"]
    inside = torch.full_like(share, 2.0 ** -round(math.log2(max(operands["target"].numel(), 1)) / 2))
    rest = share / inside
    return {**operands, "share": inside, **({"z": operands["z"] / rest} if "z" in operands else {})}, rest


def _flags(operands, label_smoothing, softcap):
    is_smoothed = True if label_smoothing else False  # not bool(): of a symbol, which compiled code may have, it is another one
    return dict(weighted="chosen" in operands, smoothed=is_smoothed, capped=softcap is not None,
                scaled="share" in operands, squared="z" in operands)


class _OverLogits(torch.autograd.Function):
    """The loss, with its gradient written over the logits in the forward."""

    @staticmethod
    def forward(ctx, logits, operator, operands, constants):
        given = {"x": logits, "at": _linear.at_target(logits, operands["target"]), **operands}
        names = [name for name, *_ in operator.operator.operands]
        loss, dx = operator.operator(*(given[name] for name in names), **constants, results=["loss", "dx"],
                                     out={"dx": logits.detach()})
        torch.autograd.graph.increment_version(logits)  # who saved them for a backward of his own is told
        ctx.dx = logits.detach()
        return loss.sum()

    @staticmethod
    def backward(ctx, grad):
        if torch.is_grad_enabled():
            raise NotImplementedError("cross_entropy with in_place=True: the logits are overwritten, and a gradient that is to be "
                                      "differentiated again (create_graph=True) needs them; use in_place=False")
        if ctx.dx is None:
            raise RuntimeError("Trying to backward through the graph a second time: the gradient was written over the logits "
                               "(in_place=True) and given away")
        found, ctx.dx = ctx.dx, None
        return _linear.scale(found, grad), None, None, None


def cross_entropy(input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: bool | None = None,
                  ignore_index: int = -100, reduce: bool | None = None, reduction: str = "mean",
                  label_smoothing: float = 0.0, *, softcap: float | None = None, z_loss: float = 0.0,
                  in_place: bool = False) -> Tensor:
    """torch.nn.functional.cross_entropy: classes (int64, int32, uint8) or probabilities as targets, checked as torch checks
    them. Losses are f32 (f64 for f64), also of 16-bit logits.

    softcap: of softcap * tanh(input / softcap). z_loss: that many times the square of logsumexp is added to each row's loss.
    in_place: the logits may be overwritten; their gradient takes their memory when the loss is computed."""
    reduction = _reduction(reduction, size_average, reduce)
    _check_smoothing(label_smoothing)
    logits = input if input.dim() == 1 else input.movedim(1, -1)
    classes = logits.shape[-1]
    constants = {**({"smoothing": label_smoothing} if label_smoothing else {}),
                 **({"softcap": float(softcap)} if softcap is not None else {})}
    if target.is_floating_point() and target.shape == input.shape:
        if z_loss:
            raise NotImplementedError("z_loss with targets that are probabilities")
        return _soft(logits, target if input.dim() == 1 else target.movedim(1, -1), weight, reduction, constants)
    rows = _Classes(target, logits.shape[:-1], classes, ignore_index, weight)
    operands = rows.operands(input, reduction, weight, label_smoothing, z_loss)
    flags = _flags(operands, label_smoothing, softcap)
    # Logits that were expanded have no memory of their own for a gradient.
    in_place = in_place and not any(size > 1 and not stride for size, stride in zip(input.shape, input.stride()))
    if in_place and reduction != "none" and input.requires_grad and torch.is_grad_enabled() and \
            not torch.compiler.is_compiling() and is_plain([logits, *operands.values()]):
        if input.is_leaf or (input._is_view() and input._base.is_leaf):
            raise RuntimeError("a leaf that requires grad is used with in_place=True, which would overwrite it")
        operands, rest = _in_range(operands, logits)
        loss = _OverLogits.apply(logits, _loss_programs.cross_entropy(**flags, with_gradient=True), operands, constants)
        loss = loss if rest is None else loss * rest
    elif not any(flags.values()) or (reduction == "mean" and sum(flags.values()) == 1):
        loss = named("cross_entropy").call([logits, operands["target"]], [float(rows.ignored)], wanted=1)[0]
        if reduction == "mean":
            return loss.sum() / rows.kept.sum()
    else:
        program = _loss_programs.cross_entropy(**flags)
        given = {"x": logits, **operands}
        loss = program.call([given[name] for name in program.operands], list(constants.values()), wanted=1)[0]
    if reduction == "none":
        return loss
    return loss.sum() if reduction == "sum" else rows.nan_if_none(loss.sum())


def _soft(logits, target, weight, reduction, constants):
    flags = dict(weighted=weight is not None, smoothed="smoothing" in constants, capped="softcap" in constants)
    program = _loss_programs.soft_cross_entropy(**flags)
    operands = [logits, target.to(logits.dtype), *([] if weight is None else [weight])]
    loss = program.call(operands, list(constants.values()), wanted=1)[0]
    return loss if reduction == "none" else loss.sum() if reduction == "sum" else loss.sum() / loss.numel()


def is_transformed():
    """Whether torch.func or forward mode wants derivatives, of all kinds: head and loss are then called apart."""
    return not torch.compiler.is_compiling() and (_C._are_functorch_transforms_active() or forward_ad._current_level >= 0)


def linear_cross_entropy(input: Tensor, linear_weight: Tensor, target: Tensor, *, linear_bias: Tensor | None = None,
                         weight: Tensor | None = None, reduction: str = "mean", ignore_index: int | None = None,
                         label_smoothing: float = 0.0, options: "torch.nn.LinearCrossEntropyOptions | None" = None,
                         softcap: float | None = None, z_loss: float = 0.0, chunk: int | None = None,
                         acc_dtype: torch.dtype | None = None) -> Tensor:
    """torch.nn.functional.linear_cross_entropy: cross_entropy(linear(input, linear_weight, linear_bias), target, weight), of
    torch before 2.13 too. `input[..., hidden]` (torch: of one or two dimensions), `linear_weight[classes, hidden]`.

    No logits of all tokens are made: a chunk of tokens at a time has its logits made, its loss and gradients computed, and its
    memory used again; the backward is left with a factor (of reduction="none", it makes the logits again). Head and loss are
    called apart, with all logits, where `linear_weight[classes, d..., hidden]` is one of a K-dimensional loss or targets are
    probabilities, and of DTensors, where their product leaves them: a weight that is cut by classes leaves each machine its own.

    softcap, z_loss: as of cross_entropy. chunk: tokens in a chunk; unless said, those whose logits take 512 MiB. acc_dtype: the
    type in which gradients of linear_weight and linear_bias are added up over chunks, their own unless said; f32 for 16-bit ones
    is the other. options: torch's, which say both; a second backward is always allowed."""
    _check_smoothing(label_smoothing)
    reduction = _reduction(reduction, None, None)
    if linear_weight.dim() < 2:
        raise RuntimeError(f"expected linear_weight with dimensionality at least 2, got {linear_weight.dim()}")
    classes, *positions = linear_weight.shape[:-1]
    if linear_bias is not None and linear_bias.shape != linear_weight.shape[:-1]:
        raise RuntimeError(f"expected linear_bias shape {tuple(linear_weight.shape[:-1])}, got {tuple(linear_bias.shape)}")
    if positions and input.dim() != 2:
        raise RuntimeError(f"K-dimensional loss defined by linear_weight shape {tuple(linear_weight.shape)} requires batched input, "
                           f"(N, {linear_weight.shape[-1]}), got input with shape {tuple(input.shape)}")
    of_probabilities = target.shape == (*input.shape[:-1], classes, *positions)
    if of_probabilities and ignore_index is not None:
        raise RuntimeError("ignore_index cannot be specified when target contains probabilities")
    ignore_index = -100 if ignore_index is None else ignore_index
    if positions or of_probabilities or is_transformed() or is_distributed(input, linear_weight):
        logits = torch.nn.functional.linear(input, linear_weight.flatten(0, -2), None if linear_bias is None else linear_bias.flatten())
        logits = logits.view(len(input), classes, *positions) if positions else logits.reshape(-1, classes)
        target = target if positions else target.reshape(-1, classes) if of_probabilities else target.reshape(-1)
        loss = cross_entropy(logits, target, weight, ignore_index=ignore_index, reduction=reduction,
                             label_smoothing=label_smoothing, softcap=softcap, z_loss=z_loss)
        return loss.reshape(input.shape[:-1]) if reduction == "none" and not positions else loss
    rows = _Classes(target, input.shape[:-1], classes, ignore_index, weight)
    operands = rows.operands(input, reduction, weight, label_smoothing, z_loss)
    flags = _flags(operands, label_smoothing, softcap)
    constants = {"smoothing": label_smoothing, "softcap": softcap or 0.0}
    operands = {name: each.reshape(-1) if name in ("target", "chosen") else each for name, each in operands.items()}
    if options is not None:
        chunk = _linear.chunk_of(options, input, linear_weight) if chunk is None else chunk
        acc_dtype = options.acc_dtype if acc_dtype is None and options.acc_policy != "compact" else acc_dtype
    linear = input, linear_weight, linear_bias
    if reduction != "none" and torch.is_grad_enabled() and any(each is not None and each.requires_grad for each in linear):
        operands, rest = _in_range(operands, input)
        program, find_loss = (functools.partial(_loss_programs.cross_entropy, **flags, with_gradient=each) for each in (True, False))
        loss = _linear.summed(*linear, program(), find_loss, operands, constants, chunk, acc_dtype)
        loss = loss if rest is None else loss * rest
    else:
        loss = _linear.rows(*linear, _loss_programs.cross_entropy(**flags), operands, constants, chunk, acc_dtype)[0]
        loss = loss if reduction == "none" else loss.sum()
    return rows.nan_if_none(loss) if reduction == "mean" else loss


def linear_log_probability(input: Tensor, linear_weight: Tensor, target: Tensor, *, linear_bias: Tensor | None = None,
                           ignore_index: int = -100, temperature: float = 1.0, chunk: int | None = None,
                           acc_dtype: torch.dtype | None = None) -> tuple[Tensor, Tensor]:
    """Of each token the log-probability of its target under softmax(linear(input, linear_weight, linear_bias) / temperature),
    and the entropy of that distribution; both 0 where the target is `ignore_index`. Chunked as linear_cross_entropy; the
    backward makes the logits again, a chunk at a time."""
    rows = _Classes(target, input.shape[:-1], linear_weight.shape[0], ignore_index)
    program = _loss_programs.log_probability()
    if is_transformed() or is_distributed(input, linear_weight):
        logits = torch.nn.functional.linear(input, linear_weight, linear_bias)
        return program.call([logits, rows.target], [1.0 / temperature], wanted=3)[:2]
    logprob, entropy, _ = _linear.rows(input, linear_weight, linear_bias, program, {"target": rows.target.reshape(-1)},
                                       {"inverse_temperature": 1.0 / temperature}, chunk, acc_dtype)
    return logprob, entropy


# ---- distributions ----

_KL = "{}(x[i,j], target[i,j]) -> (loss[i{}])\n    loss = {}\n"
_KL_EACH = {True: "exp(target) * (target - x)",  # log_target
            # a probability of 0 counts for nothing
            False: "select(target > 0, target * (log(select(target > 0, target, 1)) - x), 0 * x)"}


def kl_div(input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None,
           reduction: str = "mean", log_target: bool = False) -> Tensor:
    """torch.nn.functional.kl_div: target * (log target - input) of log-probabilities `input`; also reduction="batchmean"."""
    if size_average is not None or reduce is not None:
        reduction = torch.nn._reduction.legacy_get_string(size_average, reduce)
    if reduction not in ("none", "sum", "mean", "batchmean"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    input, target = torch.broadcast_tensors(input, target)
    shape = input.shape
    if not shape:
        input, target = input.view(1), target.view(1)
    each = _KL_EACH[bool(log_target)]
    name = "kl_div_log_target" if log_target else "kl_div"
    if reduction == "none":
        return op(_KL.format(f"{name}_each", ",j", each)).call([input, target], [], wanted=1)[0].view(shape)
    loss = op(_KL.format(name, "", f"sum({each})")).call([input, target], [], wanted=1)[0].sum().to(input.dtype)
    if reduction == "sum":
        return loss
    return loss / (shape[0] if reduction == "batchmean" and shape else max(input.numel(), 1))


_JSD = """jsd(x[i,j], target[i,j], beta = 0.5) -> (loss[i])
    q    = exp(x)
    p    = exp(target)
    m    = log(beta * p + (1 - beta) * q)
    loss = sum(select(p > 0, beta * (p * (target - m)), 0) + select(q > 0, (1 - beta) * (q * (x - m)), 0))
"""
_REVERSE_KL = """reverse_kl(x[i,j], target[i,j]) -> (loss[i])
    loss = sum(exp(x) * (x - target))
"""


def jsd(input: Tensor, target: Tensor, beta: float = 0.5, *, labels: Tensor | None = None, ignore_index: int = -100,
        reduction: str = "batchmean") -> Tensor:
    """Generalised Jensen-Shannon divergence of the student's log-probabilities `input` and the teacher's, `target`:
    beta * KL(teacher | m) + (1 - beta) * KL(student | m), m = beta * teacher + (1 - beta) * student. beta = 0 is
    KL(teacher | student), beta = 1 the other way round. Rows whose label is `ignore_index` do not count. "batchmean"
    divides by the rows that count."""
    if reduction not in ("none", "sum", "batchmean"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    if not 0.0 <= beta <= 1.0:
        raise ValueError(f"beta lies between 0 and 1, and {beta} does not")
    if beta == 0.0:
        loss = op(_KL.format("kl_div_log_target", "", f"sum({_KL_EACH[True]})")).call([input, target], [], wanted=1)[0]
    elif beta == 1.0:
        loss = op(_REVERSE_KL).call([input, target], [], wanted=1)[0]
    else:
        loss = op(_JSD).call([input, target], [float(beta)], wanted=1)[0]
    count = max(loss.numel(), 1)
    if labels is not None:
        kept = labels.view(loss.shape) != ignore_index
        loss, count = torch.where(kept, loss, 0.0), kept.sum().clamp(min=1)
    return loss if reduction == "none" else loss.sum() if reduction == "sum" else loss.sum() / count


# ---- losses on log-probabilities of tokens, as linear_log_probability gives them ----

def _log_sigmoid(x):
    if is_distributed(x):  # in operations that DTensor has rules for, backward too; and that are exact at 0 and far from it
        return -torch.logaddexp(torch.zeros_like(x), -x)
    return torch.nn.functional.logsigmoid(x)


def dpo_loss(chosen: Tensor, rejected: Tensor, reference_chosen: Tensor | None = None,
             reference_rejected: Tensor | None = None, *, beta: float = 0.1, label_smoothing: float = 0.0,
             reduction: str = "mean") -> Tensor:
    """Direct preference optimisation. Log-probabilities of chosen and rejected answers [pairs, tokens], 0 at tokens that do
    not count (linear_log_probability's ignore_index), or already summed [pairs]; the reference model's likewise."""
    def answers(each):
        return each.sum(-1) if each.dim() > 1 else each

    margin = answers(chosen) - answers(rejected)
    if reference_chosen is not None:
        margin = margin - (answers(reference_chosen) - answers(reference_rejected))
    loss = -(1 - label_smoothing) * _log_sigmoid(beta * margin)
    if label_smoothing:
        loss = loss - label_smoothing * _log_sigmoid(-beta * margin)
    return loss if reduction == "none" else loss.sum() if reduction == "sum" else loss.mean()


def grpo_loss(logprob: Tensor, advantage: Tensor, mask: Tensor | None = None, old_logprob: Tensor | None = None,
              reference_logprob: Tensor | None = None, *, beta: float = 0.0, epsilon_low: float = 0.2,
              epsilon_high: float | None = None, reduction: str = "grpo", longest: int | None = None) -> Tensor:
    """Group relative policy optimisation of log-probabilities [answers, tokens] with one advantage an answer (or a token).
    old_logprob: of the policy that sampled (the same one unless said); reference_logprob: for the KL term, `beta` times.
    reduction: "grpo" (each answer's mean, then the mean of answers), "bnpo" (the mean of all tokens), "dr_grpo" (the sum by
    answers times `longest`, the most tokens an answer may have), "none"."""
    epsilon_high = epsilon_low if epsilon_high is None else epsilon_high
    advantage = advantage[:, None] if advantage.dim() == 1 else advantage
    ratio = (logprob - (logprob.detach() if old_logprob is None else old_logprob)).exp()
    loss = -torch.minimum(ratio * advantage, ratio.clamp(1 - epsilon_low, 1 + epsilon_high) * advantage)
    if beta and reference_logprob is not None:
        difference = reference_logprob - logprob
        loss = loss + beta * (difference.exp() - difference - 1)
    mask = torch.ones_like(loss) if mask is None else mask.to(loss.dtype)
    loss = loss * mask
    if reduction == "none":
        return loss
    if reduction == "grpo":
        return (loss.sum(-1) / mask.sum(-1).clamp(min=1)).mean()
    if reduction == "bnpo":
        return loss.sum() / mask.sum().clamp(min=1)
    if reduction == "dr_grpo":
        return loss.sum() / (len(loss) * (longest or loss.shape[1]))
    raise ValueError(f"{reduction} is not a valid value for reduction")


def linear_dpo_loss(input: Tensor, linear_weight: Tensor, target: Tensor, reference_logprob: Tensor | None = None, *,
                    linear_bias: Tensor | None = None, ignore_index: int = -100, beta: float = 0.1,
                    label_smoothing: float = 0.0, chunk: int | None = None, acc_dtype: torch.dtype | None = None) -> Tensor:
    """dpo_loss on linear_log_probability. input [2 * pairs, tokens, hidden]: the chosen answers, then the rejected ones;
    reference_logprob: of the same answers, summed over tokens or not."""
    logprob, _ = linear_log_probability(input, linear_weight, target, linear_bias=linear_bias, ignore_index=ignore_index,
                                        chunk=chunk, acc_dtype=acc_dtype)
    references = (None, None) if reference_logprob is None else reference_logprob.chunk(2)
    return dpo_loss(*logprob.chunk(2), *references, beta=beta, label_smoothing=label_smoothing)


def linear_grpo_loss(input: Tensor, linear_weight: Tensor, target: Tensor, advantage: Tensor,
                     old_logprob: Tensor | None = None, reference_logprob: Tensor | None = None, *,
                     linear_bias: Tensor | None = None, ignore_index: int = -100, temperature: float = 1.0,
                     chunk: int | None = None, acc_dtype: torch.dtype | None = None, **named: Any) -> Tensor:
    """grpo_loss on linear_log_probability. input [answers, tokens, hidden]; tokens whose target is `ignore_index` do not
    count; the rest as of grpo_loss."""
    logprob, _ = linear_log_probability(input, linear_weight, target, linear_bias=linear_bias, ignore_index=ignore_index,
                                        temperature=temperature, chunk=chunk, acc_dtype=acc_dtype)
    return grpo_loss(logprob, advantage, target != ignore_index, old_logprob, reference_logprob, **named)

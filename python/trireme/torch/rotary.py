"""Rotary position embedding of queries and keys."""
import torch
from torch import Tensor
from torch.autograd import forward_ad

from ._autograd import is_plain
from ._operator import constant_text, op

ROWS = {"tokens": "i / heads", "tokens of each sample": "(i / heads) % positions", "positions": "i % positions"}


@constant_text
def _text(rows, interleaved, is_rounded):
    """The program. `is_rounded`: as the two products and a sum of torch's round."""
    name = "_".join(["rope", *(word for word, has in [("interleaved", interleaved), ("rounded", is_rounded)] if has)])
    index = ROWS[rows]
    other = ("select(floor(j / 2) * 2 == j, -rotate(x, 1), rotate(x, -1))" if interleaved else
             "rotate(x, n / 2) * select(j < n / 2, -1, 1)")
    parts = "x * cos", f"{other} * sin"
    constants = "".join(f", {each}" for each in ("heads", "positions") if each in index)
    y = " + ".join(f"cast({each}, y)" if is_rounded else each for each in parts)
    return f"{name}(x[i,j], cos[{index}, j], sin[{index}, j]{constants}) -> (y[i,j])\n    y = {y}\n"


def _rotate(x, cos, sin, heads_axis, interleaved, is_rounded):
    """x: [samples, heads, tokens, columns], or tokens first as `heads_axis` says; cos, sin: [samples or 1, tokens, columns].
    Rows are taken in the order in which they lie in memory."""
    is_shared = cos.shape[0] == 1
    by_heads = heads_axis == 1 and is_shared and x.stride(1) > x.stride(2)  # tokens lie next to each other
    if heads_axis == 1 and not by_heads:
        x = x.transpose(1, 2)
    rows = "positions" if by_heads else "tokens" if not is_shared or x.shape[0] == 1 else "tokens of each sample"
    program = op(_text(rows, interleaved, is_rounded))
    known = {"heads": float(x.shape[2]), "positions": float(cos.shape[1])}
    # Of one head a row has a table's row to itself, and the table has x's own shape.
    shape = x.shape if rows == "tokens" and x.shape[2] == 1 else (-1, x.shape[-1])
    tables = [each.reshape(shape) for each in (cos, sin)]
    (y,) = program.call([x, *tables], [known[name] for name in program.constants], wanted=1)
    return y.transpose(1, 2) if heads_axis == 1 and not by_heads else y


class _Rope(torch.autograd.Function):
    """A rotation by fixed tables: its backward is one too, and needs nothing of what was rotated. y = x * cos + R(x) * sin,
    and R's transpose is -R: dx = dy * cos - R(dy * sin) = dy * cos + R(dy) * back, where `back` is -sin as it stands where R
    takes from. The same of `back` is sin again."""

    @staticmethod
    def forward(ctx, cos, sin, back, options, x):
        ctx.save_for_backward(cos, sin, back)
        ctx.options = options
        return _rotate(x, cos, sin, *options)

    @staticmethod
    def backward(ctx, dy):
        cos, sin, back = ctx.saved_tensors
        return None, None, None, None, _Rope.apply(cos, back, sin, ctx.options, dy)


def _back(sin, interleaved):
    return -(sin.unflatten(-1, (-1, 2)).flip(-1).flatten(-2) if interleaved else sin.roll(sin.shape[-1] // 2, -1))


def _whole(table, columns, interleaved):
    """A table of all columns."""
    if table.shape[-1] == columns:
        return table
    return table.repeat_interleave(2, -1) if interleaved else torch.cat([table, table], -1)


def rope(q: Tensor, k: Tensor | None, cos: Tensor, sin: Tensor, position_ids: Tensor | None = None, unsqueeze_dim: int = 1,
         *, interleaved: bool = False, rounded: bool = False) -> tuple[Tensor, Tensor | None]:
    """Rotated queries and keys; parameters as apply_rotary_pos_emb of Hugging Face's models.

    q, k: [samples, heads, tokens, columns] (unsqueeze_dim=2: [samples, tokens, heads, columns]); k may be None. cos, sin:
    [samples or 1, tokens, columns or half of them], or [tokens, ...]; with `position_ids` [samples or 1, tokens], tables of
    all positions. Columns are rotated with those half a row away; `interleaved`: with their neighbours. Results are rounded
    once; `rounded`: each product too, as torch's arithmetic does."""
    if unsqueeze_dim not in (1, 2):
        raise ValueError(f"unsqueeze_dim is 1 or 2, not {unsqueeze_dim}")
    if position_ids is not None:
        cos, sin = (each.reshape(-1, each.shape[-1])[position_ids] for each in (cos, sin))
    cos, sin = (each[None] if each.dim() == 2 else each for each in (cos, sin))
    given = [each for each in (q, k) if each is not None]
    for each in given:
        samples, tokens, columns = each.shape[0], each.shape[3 - unsqueeze_dim], each.shape[-1]
        if columns % 2 or cos.shape[-1] not in (columns, columns // 2) or cos.shape != sin.shape or cos.shape[:2] not in (
                (samples, tokens), (1, tokens)):
            raise ValueError(f"tables of shape {list(cos.shape)} and {list(sin.shape)} do not rotate {list(each.shape)}; of a "
                             "part of the columns give that part")
    cos, sin = (_whole(each, q.shape[-1], interleaved) for each in (cos, sin))
    options = unsqueeze_dim, interleaved, rounded
    is_fixed = not (cos.requires_grad or sin.requires_grad) and (torch.compiler.is_compiling() or (
        is_plain([cos, sin, *given]) and forward_ad._current_level < 0))
    if is_fixed and torch.is_grad_enabled() and any(each.requires_grad for each in given):
        back = _back(sin, interleaved)
        return tuple(None if each is None else _Rope.apply(cos, sin, back, options, each) for each in (q, k))
    return tuple(None if each is None else _rotate(each, cos, sin, *options) for each in (q, k))

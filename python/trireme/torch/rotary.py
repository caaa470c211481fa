"""Rotary position embedding of queries and keys."""
from torch import Tensor

from ._operator import constant_text, op

ROWS = {"tokens": "i / heads", "tokens of each sample": "(i / heads) % positions", "positions": "i % positions"}


@constant_text
def _text(rows, interleaved, is_half, is_held, is_rounded):
    """The program, with tables of all columns or of half of them. `is_held`: tables have no gradient, and then the backward
    does not read what was rotated. `is_rounded`: as the two products and a sum of torch's round."""
    name = "_".join(["rope", *(word for word, has in [("interleaved", interleaved), ("halves", is_half), ("held", is_held),
                                                      ("rounded", is_rounded)] if has)])
    index = ROWS[rows]
    columns = ("j / 2" if interleaved else "j % (n / 2)") if is_half else "j"
    other = ("select(floor(j / 2) * 2 == j, -rotate(x, 1), rotate(x, -1))" if interleaved else
             "rotate(x, n / 2) * select(j < n / 2, -1, 1)")
    cos, sin = (f"stop_gradient({each})" if is_held else each for each in ("cos", "sin"))
    parts = f"x * {cos}", f"{other} * {sin}"
    constants = "".join(f", {each}" for each in ("heads", "positions") if each in index)
    y = " + ".join(f"cast({each}, y)" if is_rounded else each for each in parts)
    return f"{name}(x[i,j], cos[{index}, {columns}], sin[{index}, {columns}]{constants}) -> (y[i,j])\n    y = {y}\n"


def _rotate(x, cos, sin, heads_axis, interleaved, is_rounded):
    """x: [samples, heads, tokens, columns], or tokens first as `heads_axis` says; cos, sin: [samples or 1, tokens, ...]."""
    samples, tokens, columns = x.shape[0], x.shape[3 - heads_axis], x.shape[-1]
    heads = x.shape[heads_axis]
    if cos.shape[-1] not in (columns, columns / 2) or cos.shape != sin.shape or cos.shape[:2] not in (
            (samples, tokens), (1, tokens)):
        raise ValueError(f"tables of shape {list(cos.shape)} and {list(sin.shape)} do not rotate {list(x.shape)}; of a part of "
                         "the columns give that part")
    is_shared = cos.shape[0] == 1
    by_heads = heads_axis == 1 and is_shared and x.stride(1) > x.stride(2)  # tokens lie next to each other
    if heads_axis == 1 and not by_heads:
        x = x.transpose(1, 2)
    rows = "positions" if by_heads else "tokens" if not is_shared or samples == 1 else "tokens of each sample"
    program = op(_text(rows, interleaved, cos.shape[-1] != columns, not (cos.requires_grad or sin.requires_grad), is_rounded))
    known = {"heads": float(heads), "positions": float(tokens)}
    tables = [each.reshape(-1, each.shape[-1]) for each in (cos, sin)]
    (y,) = program.call([x, *tables], [known[name] for name in program.constants], wanted=1)
    return y.transpose(1, 2) if heads_axis == 1 and not by_heads else y


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
    return tuple(None if each is None else _rotate(each, cos, sin, unsqueeze_dim, interleaved, rounded) for each in (q, k))

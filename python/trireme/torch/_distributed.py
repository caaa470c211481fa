"""How operators are spread over machines: rows anywhere, a row in one place. What is a DTensor stays one.

A program's rows do not know of each other, so that operands and results of rows may be cut along any axis of rows; what is
summed over rows comes out as partial sums. Rows that are cut are put together first.
"""
from ._programs import take_apart


def is_distributed(*arrays):
    return any(type(each).__name__ == "DTensor" for each in arrays)


def register(operator):
    """Tells DTensor of an operator. Raises NotImplementedError."""
    from torch.distributed.tensor import Partial, Replicate, Shard
    from torch.distributed.tensor.experimental import register_sharding

    operands = [spread for _, spread, *_ in operator.operator.operands]
    results = [spread for _, spread, *_ in operator.operator.results]
    strange = [each for each in operands + results if each not in ("[i,j]", "[i]", "[j]", "[]")]
    if strange:
        raise NotImplementedError(f"{operator.name}: an index such as {strange[0]} counts rows over all machines; give it "
                                  "tensors of one")
    if "colmax" in take_apart(operator.operator.text).body:
        raise NotImplementedError(f"{operator.name}: colmax over machines")
    axes_place = len(operands) + len(operator.constants)

    @register_sharding(operator.overload)
    def shardings(*values):
        axes = values[axes_place]
        given = values[:len(operands)]
        wanted = values[axes_place + 2] if len(values) > axes_place + 2 else -1
        first = next(each for each, spread in zip(given, operands) if each is not None and spread == "[i,j]")
        rest = [None] * (len(values) - len(operands))

        def place(spread, by_rows, by_columns):
            return by_rows if "i" in spread else by_columns

        def inputs(by_rows):
            return [None if each is None else place(spread, by_rows, Replicate()) for each, spread in zip(given, operands)]

        found = [([Replicate() for _ in results], inputs(Replicate()) + rest)]
        for axis in range(first.ndim - axes):
            made = [place(spread, Shard(axis), Partial()) if wanted >> k & 1 else Replicate() for k, spread in enumerate(results)]
            found.append((made, inputs(Shard(axis)) + rest))
        return found

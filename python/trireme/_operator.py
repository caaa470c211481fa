"""Operators and plans: what Python adds to trireme._core."""
import inspect
import re
import typing
from collections.abc import Mapping, Sequence
from typing import Any

from . import _core
from ._bench import Timing, bench

# What every operator takes beside its own parameters.
OPTIONS = {
    "out": (None, "results to write to: an array, a tuple in the results' order, or a dict by name"),
    "results": (None, "which results to give: a name, several, or 'all'"),
    "types": (None, "storage types by name, as {'y': 'bf16'}; also what uint16 and uint8 arrays stand for"),
    "axes": (1, "the last so many axes make a row"),
    "threads": (None, "on a CPU; torch.get_num_threads() for torch's tensors, TRIREME_THREADS or one per core for others unless "
                       "said, one where the arrays are small"),
    "stream": (None, "CUDA stream: a number, or an object of torch's or CuPy's; the current one unless said"),
    "workspace": (None, "memory on the GPU that the call may use, where neither torch nor CuPy makes it"),
    "row_block": (None, "rows of a block of sums over rows, where these rows or columns are a part of more (docs/distributed.md)"),
    "device": (None, "where CPU arrays are computed: 'cpu' unless said, 'reference', 'cpu:avx2', ..."),
}


class Text(str):
    """A text that a prompt shows as it is."""

    def __repr__(self):
        return str(self)


class Exchange(typing.NamedTuple):
    """What the machines that share a row exchange: results of a phase, which become totals."""
    reduction: str  # "sum", "amax", "amin", "variance", "logsumexp"
    names: tuple[str, ...]  # one result of the phase; of the last two reductions, two that go together
    combine: "Operator"  # two neighbours' values to one: left, right -> both


class Phase(typing.NamedTuple):
    """One step of a program whose rows are spread over machines."""
    program: "Operator"  # what each machine runs on its own columns; constants `columns`, `first_column` say which
    exchanges: tuple[Exchange, ...]  # combined in neighbouring pairs, level by level; later phases take the totals
    groups: tuple[str, ...] = ()  # "[j / group]": a machine's columns begin and end with whole ones


class Operator(_core.Operator):
    """A row program that can be called with arrays.

    Results are made of the kind that the operands are, or given by `out`. Several results come as a tuple with names.
    """

    def __new__(cls, text: str | None = None, *, named: str | None = None, backward_of: "Operator | None" = None,
                gradients: Sequence[str] | None = None, source: str = "") -> "Operator":
        return super().__new__(cls, text, named, backward_of, gradients)

    def __init__(self, text: str | None = None, *, named: str | None = None, backward_of: "Operator | None" = None,
                 gradients: Sequence[str] | None = None, source: str = "") -> None:
        self._forward = backward_of
        self._gradients = gradients
        self._source = source or text or ""
        self._derived = {}
        self._phases = self._composed = None
        self._without = {}
        self.__name__ = self.__qualname__ = self.name
        self.__module__ = "trireme"
        if backward_of is None:
            self._set_default_results(_returned(self))
        self.__signature__ = _signature(self)
        self.__doc__ = _doc(self)

    def __get__(self, instance, owner=None):  # as a function: help() and inspect treat it as one
        return self

    def __repr__(self):
        return f"<trireme operator {self.name}{self.__signature__}>"

    def __reduce__(self):
        if self._forward is not None:
            return _gradient_of, (self._forward, self._gradients)
        return op, (self._source or self.text,)

    def gradient(self, gradients: str | Sequence[str] | None = None, absent: str | Sequence[str] = ()) -> "Operator":
        """The derived backward, an operator itself: takes gradients of results, gives those of operands. `gradients`: names
        of the results whose gradients arrive, any of them but a colmax; unless said, every [i,j] result and every other that
        no result uses. `absent`: operands that the forward was called without; where the default is a formula, the gradient
        flows on into what that reads."""
        if absent:
            return self.without(absent).gradient(gradients)
        names = None if gradients is None else tuple(sorted({gradients} if isinstance(gradients, str) else set(gradients)))
        if names not in self._derived:
            self._derived[names] = type(self)(backward_of=self, gradients=names)
        return self._derived[names]

    def without(self, absent: str | Sequence[str]) -> "Operator":
        """What a call without these operands computes, as an operator: their defaults stand in their place, and they in no
        signature, so that its gradient() is one where they were absent."""
        names = tuple(sorted({absent} if isinstance(absent, str) else set(absent)))
        if names not in self._without:
            remarks = [line for line in self._source.splitlines() if re.match(r"#(?!:)|#:\s*returns\b", line)]
            text = _core.without(self, names)
            self._without[names] = type(self)(text, source="\n".join([*remarks, text]))
        return self._without[names]

    def split(self) -> "tuple[Phase, ...]":
        """The program cut at its row reductions, for rows whose columns are spread over several machines: phases that each
        machine runs on its own columns, and what all of them exchange after each (docs/distributed.md). Raises Unsupported
        with the reason where a program cannot be cut. trireme.torch.parallel runs them."""
        if self._phases is None:
            self._phases = tuple(Phase(Operator(text), tuple(Exchange(reduction, names, Operator(combine))
                                                             for reduction, names, combine in exchanges), tuple(groups))
                                 for text, exchanges, groups in _core.split(self))
        return self._phases

    def compose(self) -> "Operator":
        """The same values, but for roundings, by fewer sweeps over the row: a variance by two means and exponentials shifted by a
        maximum become totals that are made together, so that machines that share a row exchange once (docs/distributed.md). It
        has no derivative of its own; compose the derivative."""
        if self._composed is None:
            self._composed = Operator(_core.compose(self))
        return self._composed

    def show(self) -> str:
        """The program as text."""
        return Text(self.text)

    def plan(self, shape: Sequence[int], *, axes: int = 1, types: Mapping[str, Any] | None = None, absent: Sequence[str] = (),
             results: Sequence[str] | None = None, strides: Mapping[str, Sequence[int]] | None = None,
             in_place: Mapping[str, str] | None = None, accumulate: Sequence[str] = (), device: str = "cpu", threads: int = 0,
             row_block: int = 0, **constants: float) -> "Plan":
        """A plan: this program made ready for one shape, one set of types and one device, with every option of
        docs/plans.md. Constants go by name."""
        return Plan(self, device, tuple(shape), axes, dict(types or {}), constants, tuple(absent),
                    None if results is None else tuple(results), dict(strides or {}), dict(in_place or {}),
                    tuple(accumulate), threads, row_block)

    def bench(self, *arrays: Any, seconds: float = 0.2, **named: Any) -> Timing:
        """Times calls on these arrays beside copies of the same bytes: an object with seconds, gigabytes_per_second
        and share_of_copy, 1.0 being all that memory gives."""
        return bench(self, arrays, named, seconds)


class Plan(_core.Plan):
    """A program made ready for one shape, one set of types and one device; made by Operator.plan."""

    def run(self, arrays: Mapping[str, Any] | None = None, *, stream: int = 0, **named: Any) -> None:
        """Runs on arrays by name, results included. Nothing is allocated on a CPU but a workspace that is kept."""
        self._run({**(arrays or {}), **named}, stream)

    def describe(self) -> str:
        """What runs, in words."""
        return Text(self.description)

    def __repr__(self):
        return f"<trireme plan {self.line}>"


def op(text: str) -> Operator:
    """Makes an operator of a program's text. `text` may also be the name of one that comes with Trireme."""
    if re.fullmatch(r"\s*\w+\s*", text):
        from ._operators import operator
        return operator(text.strip())
    return Operator(text)


def _gradient_of(forward, gradients=None):
    return forward.gradient(gradients)


def _returned(self):
    """What a call gives unless told: what the remark says, else the results that take gradients, else all."""
    names = [name for name, *_ in self.results]
    remark = re.search(r"^#:\s*returns\s+(.*)$", self._source, re.M)
    if remark:
        return remark.group(1).split()
    try:
        taken = {name for name, *_ in _core.Operator(backward_of=self).operands}
    except _core.TriremeError:  # there is no backward
        return names
    return [name for name in names if "d" + name in taken] or names


def _signature(self):
    kinds = inspect.Parameter
    by_position, by_name = [], []
    last_needed = max((k for k, (_, _, optional, _) in enumerate(self.operands) if not optional), default=-1)
    for k, (name, *_) in enumerate(self.operands):  # before one that is needed, None is said rather than left out
        default = None if k > last_needed else kinds.empty
        by_position.append(kinds(name, kinds.POSITIONAL_OR_KEYWORD, default=default))
    for name, _, optional, fallback in self.constants:
        by_name.append(kinds(name, kinds.KEYWORD_ONLY, default=fallback if optional else kinds.empty))
    taken = {each.name for each in by_position + by_name}
    by_name += [kinds(name, kinds.KEYWORD_ONLY, default=default)
                for name, (default, _) in OPTIONS.items() if name not in taken]
    return inspect.Signature(by_position + by_name)


def _doc(self):
    comment = [line.lstrip("# ").rstrip() for line in self._source.splitlines()
               if line.startswith("#") and not line.startswith("#:")]
    lines = [" ".join(comment) or ("The derived backward of " + self._forward.name + "." if self._forward is not None
                                   else "A row program."), "", "Operands:"]
    for name, spread, optional, fallback in self.operands:
        absent = "" if not optional else f" (absent: {fallback:g})" if fallback is not None else " (absent: recomputed)"
        lines.append(f"    {name}{spread}{absent}")
    if self.constants:
        lines.append("Constants:")
        lines += [f"    {name}" + ("" if fallback is None else f" = {fallback:g}") for name, _, _, fallback in
                  self.constants]
    lines.append("Results:")
    lines += [f"    {name}{spread}" for name, spread, *_ in self.results]
    lines.append("Options:")
    lines += [f"    {name}: {what}" for name, (_, what) in OPTIONS.items()]
    return "\n".join(lines + ["", *("    " + line for line in self.text.rstrip().splitlines())])

"""Kernels as text or bytes, for those who load and launch them themselves: what `trireme emit` writes."""
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from . import _core
from ._operator import Operator, op


@dataclass(frozen=True)
class Emission:
    """A program's kernels for one target."""

    program: str
    target: str
    arch: str
    config: str
    """The schedule, which emit() takes back."""
    code: bytes = field(repr=False)
    """PTX text, machine code, or a module."""
    description: str = field(repr=False)
    """For people, a line each: entries, arguments, grid, scratch, workspace."""
    manifest: dict[str, Any] = field(repr=False)
    """The same for programs."""
    c_constants: str = field(repr=False)
    """Arguments and sizes as constants of C."""

    @property
    def text(self) -> str:
        """The code, where it is text."""
        return self.code.decode("ascii")


def emit(operator: Operator | str, target: str, *, arch: str | None = None, rows: int = 4096, columns: int = 4096,
         types: Mapping[str, Any] | None = None, absent: Sequence[str] = (), config: str | None = None,
         **constants: float) -> Emission:
    """Makes kernels of an operator, its gradient(), a name or a program's text. `rows` is what a schedule may count on;
    code may be made for these `columns`. Types, absent operands and constants are a plan's."""
    program = operator if isinstance(operator, Operator) else op(operator)
    if rows < 0 or columns < 1:
        raise _core.InvalidArgument("emit: at least one column is needed, and no less than no rows")
    code, arch, config, description, manifest, c_constants = _core.emit(
        program, target, arch, max(rows, 1), columns, dict(types or {}), constants, tuple(absent), config)
    return Emission(program.name, target, arch, config, code, description, json.loads(manifest), c_constants)

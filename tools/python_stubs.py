#!/usr/bin/env python3
"""Usage: python_stubs.py PACKAGE_FOLDER    (BUILD/python)

Prints trireme/__init__.pyi: the operators' signatures for type checkers. A test compares it with the file; BLESS=1 writes
it.
"""
import inspect
import sys

HEAD = '''\
# Written by tools/python_stubs.py from the operators' list; BLESS=1 rewrites it.
from typing import Any, Mapping, Sequence

from ._bench import Timing as Timing
from ._core import (
    BufferTooSmall as BufferTooSmall, DriverError as DriverError, InternalError as InternalError,
    InvalidArgument as InvalidArgument, InvalidProgram as InvalidProgram, NoDevice as NoDevice, OutOfMemory as OutOfMemory,
    TriremeError as TriremeError, Unsupported as Unsupported, WrongType as WrongType,
)
from ._emit import Emission as Emission, emit as emit
from ._operator import Exchange as Exchange, Operator as Operator, Phase as Phase, Plan as Plan, op as op
from ._operators import operator as operator, operators as operators
from ._receipt import BlockDigests as BlockDigests, CheckReport as CheckReport, Receipt as Receipt, block_digests as block_digests
from ._verify import devices as devices, verify as verify

__version__: str
contract_version: int
'''
OPTIONS = {
    "out": "Any", "results": "str | Sequence[str] | None", "types": "Mapping[str, Any] | None", "axes": "int",
    "threads": "int | None", "row_block": "int | None", "stream": "Any", "workspace": "Any", "device": "str | None",
}


def stubs(trireme):
    parts = [HEAD]
    for name in trireme.operators():
        operator = getattr(trireme, name)
        constants = {each[0] for each in operator.constants}
        parameters, starred = ["self"], False
        for each in inspect.signature(operator).parameters.values():
            if each.kind is each.KEYWORD_ONLY and not starred:
                parameters.append("*")
                starred = True
            kind = "float" if each.name in constants else OPTIONS.get(each.name, "Any")
            parameters.append(f"{each.name}: {kind}" + ("" if each.default is each.empty else f" = {each.default!r}"))
        title = "".join(word.capitalize() for word in name.split("_"))
        parts.append(f"class _{title}(Operator):\n    def __call__({', '.join(parameters)}) -> Any: ...\n"
                     f"{name}: _{title}\n")
    return "\n".join(parts)


if __name__ == "__main__":
    sys.path.insert(0, sys.argv[1])
    import trireme
    print(stubs(trireme), end="")

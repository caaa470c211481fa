"""The operators that come with Trireme, made when they are first asked for."""
import functools

from . import _core
from ._operator import Operator

_texts = _core.operator_texts()


def operators() -> list[str]:
    """Names of the operators that come with Trireme."""
    return list(_texts)


@functools.lru_cache(maxsize=None)
def operator(name: str) -> Operator:
    """The operator of that name, as `trireme.NAME` is."""
    return Operator(named=name, source=_texts.get(name, ""))

from typing import Any, Sequence

version: str
contract_version: int

Parameter = tuple[str, str, bool, float | None]

class Operator:
    name: str
    text: str
    operands: list[Parameter]
    constants: list[Parameter]
    results: list[Parameter]
    cached_plans: int
    def __new__(cls, text: str | None = None, named: str | None = None, backward_of: Operator | None = None,
                gradients: Any = None) -> Any: ...
    def __call__(self, *arrays: Any, **named: Any) -> Any: ...
    def _set_default_results(self, names: Sequence[str]) -> None: ...

class Plan:
    description: str
    sku: str
    line: str
    workspace_bytes: int
    arrays: list[tuple[str, str, tuple[int, ...], str, bool]]
    guarantee: dict[str, Any]
    def __new__(cls, operator: Operator, device: str, shape: Sequence[int], axes: int, types: dict[str, Any],
                constants: dict[str, float], absent: Sequence[str], results: Sequence[str] | None,
                strides: dict[str, Sequence[int]], in_place: dict[str, str], accumulate: Sequence[str],
                threads: int) -> Any: ...
    def prepare(self) -> None: ...
    def _run(self, arrays: dict[str, Any], stream: int = 0) -> None: ...

def operator_texts() -> dict[str, str]: ...
def devices() -> dict[str, str]: ...
def digest(line: str, text: str | None, device: str, threads: int) -> str: ...
def emit(operator: Operator, target: str, arch: str | None, rows: int, columns: int, types: dict[str, Any],
         constants: dict[str, float], absent: Sequence[str], config: str | None) -> tuple[bytes, str, str, str, str, str]: ...
def layout(array: Any) -> tuple[tuple[int, ...], tuple[int, ...], str, str, int]: ...

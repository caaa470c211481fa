"""Problem lines: the same samples, and the same digests, as `trireme verify` of the command line."""
from collections.abc import Sequence

from . import _core

# The interpreter of 32 lanes takes seconds beyond.
MOST_INTERPRETED = 1 << 21


def devices() -> dict[str, str]:
    """Name -> why it cannot be used here, or ''."""
    return _core.devices()


def verify(line: str, *, text: str | None = None, devices: str | Sequence[str] | None = None, threads: int = 0) -> dict[str, str]:
    """Runs a problem line, such as "rms_norm 33x4097 x=bf16 backward", on every device there is, and gives the digest
    of the results' bits by device. `text`: the program, where it is none of Trireme's operators. Digests that differ
    from the reference's raise TriremeError.
    """
    there = _core.devices()
    if devices is None:
        elements = 1
        for extent in (line.split() + ["", ""])[1].split("x"):
            elements *= int(extent) if extent.isdigit() else 1
        chosen = [name for name, missing in there.items()
                  if not missing and (name != "lanes" or elements <= MOST_INTERPRETED)]
    else:
        chosen = [devices] if isinstance(devices, str) else list(devices)
    digests = {name: _core.digest(line, text, name, threads) for name in ["reference", *chosen]}
    wrong = [name for name, digest in digests.items() if digest != digests["reference"]]
    if wrong:
        raise _core.TriremeError(f'FAIL {line}: {", ".join(wrong)} differ from the reference   '
                                 f'rerun: trireme verify "{line}"')
    return digests

"""The operators' own `#: try` lines as problem lines, forward and backward."""
import re

import trireme
from trireme import _core


def lines():
    found = []
    for name, text in _core.operator_texts().items():
        for tried in re.findall(r"#:\s*try\s+([^#\n]*)", text):
            found += [f"{name} {tried.strip()}", f"{name} {tried.strip()} backward"]
    return found

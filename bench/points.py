"""Problem lines of every operator, for scripts that time them."""
import pathlib
import re

OPERATORS = pathlib.Path(__file__).resolve().parent.parent / "ops"
WIDTH = {"f32": 4, "f64": 8, "bf16": 2, "f16": 2}  # bytes


def lines(shape_of, operators=None, types=("f32", "bf16"), directions=("", "backward")):
    """(operator, type, direction, line): constants and other types are those of each operator's first '#: try' line;
    the shape, which may depend on the operator and type, and the leading operand's type are the caller's."""
    for path in sorted(OPERATORS.glob("*.row")):
        if operators and path.stem not in operators:
            continue
        text = path.read_text()
        kept = text[text.index("#: try") + 6:].splitlines()[0].split("#:")[0].split()[1:]
        leading = re.search(r"(\w+)\s*\[[^],]+, *j", text[text.index(path.stem + "("):])[1]
        for kind in types:
            for direction in directions:
                words = [path.stem, shape_of(path.stem, kind), f"{leading}={kind}", *kept, direction]
                yield path.stem, kind, direction or "forward", " ".join(filter(None, words))

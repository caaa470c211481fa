"""Traces by hand, as docs/drift.md has their form: what `trireme drift` reads."""
import json
import os
import struct


def array(name, values, columns, **more):
    """An f32 array, whose rows have their own numbers as digests; elements are kept where `kept`."""
    return {"name": name, "values": values, "columns": columns, **more}


def event(kind, name, outputs, inputs=(), **more):
    return {"kind": kind, "name": name, "out": list(outputs), "in": list(inputs), "call": 1, "phase": "forward", **more}


def write_trace(folder, events, end=True, kept=True):
    """A trace of arrays of f32 with at most 1024 rows."""
    os.makedirs(folder)
    rows, elements, lines = b"", b"", [{"trace": 1}]

    def line_of(array):
        nonlocal rows, elements
        values, columns = array.pop("values"), array.pop("columns")
        bits = struct.pack(f"<{len(values)}f", *values)
        said = {"name": array.pop("name"), "type": "f32", "shape": [len(values) // columns, columns], "rows": len(rows) // 8, **array}
        if kept:
            said["at"] = len(elements)
        elements += bits
        for k in range(0, len(bits), 4 * columns):
            rows += struct.pack("<q", hash(bits[k:k + 4 * columns]))
        return said
    for number, each in enumerate(events):
        lines.append({"event": number, **each, "out": [line_of(dict(a)) for a in each["out"]], "in": [line_of(dict(a)) for a in each["in"]]})
    if end:
        lines.append({"end": len(events), **({"failed": end} if isinstance(end, str) else {})})
    for name, data in (("rows.bin", rows), ("arrays.bin", elements), ("trace.jsonl", "".join(json.dumps(each) + "\n" for each in lines).encode())):
        with open(os.path.join(folder, name), "wb") as file:
            file.write(data)


def two_events(x, y, **more):
    """A norm that makes y of x, inside of a module."""
    return [event("state", "weight", [array("weight", [1, 2], 2)], path="norm", phase="", call=0),
            event("operator", "aten.mul.Tensor", [array("", y, 2)], [array("self", x, 2), array("other", [1, 2], 2, **{"from": 0})],
                  path="norm", **more),
            event("module", "Norm", [array("", y, 2, **{"from": 1})], [array("0", x, 2)], path="norm")]

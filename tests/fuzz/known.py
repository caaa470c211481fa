"""Open faults of Trireme, each with its number, and what the fuzzer forgives because of it. An entry is deleted when its
fault is mended; with the last one this file goes."""


def excuse(case, kind, said):
    """The number of the fault that explains a failure, or None."""
    # Gradients do not flow into a default that is an expression.
    if kind == "gradient" and any(not is_number(each) for each in case.program.operands if each.name in case.problem.absent):
        return 51
    return None


def is_number(operand):
    return operand.default is None or all(node.op in ("number", "neg") for node in operand.default.nodes())

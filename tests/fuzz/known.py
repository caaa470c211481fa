"""Open faults of Trireme, each with its number, and what the fuzzer forgives because of it. An entry is deleted when its
fault is mended; with the last one this file goes."""
import re


def rotates_by_columns(program):
    """Rotations by arithmetic of n."""
    lines = dict(program.lines)

    def counts(amount):
        if amount.op == "name" and amount.leaf in lines:
            return counts(lines[amount.leaf])
        return "n" in amount.names()

    return any(node.op == "rotate" and counts(node.args[1]) for expr in program.expressions() for node in expr.nodes())


# Refused by the reference: rotations by arithmetic of n other than a quotient.
FAULT_34 = re.compile("an index divisor is made of numbers, constants, n and /|an index divisor must be an integer")
# Refused by `emit`: column sums into [], divided and wrapped results.
FAULT_47 = re.compile(r"sums [\w, ]+ beside its kernels")


def excuse(case, kind, said):
    """The number of the fault that explains a failure, or None."""
    # 33: beside another rotation by n, one takes the other's amount on x86 and wasm. 52: -n / 2 is divided unsigned.
    if re.match("bits|values|crash run", kind) and rotates_by_columns(case.program):
        return 33
    if kind.startswith("refused") and FAULT_34.search(said):
        return 34
    if kind.startswith("refused emit") and FAULT_47.search(said):
        return 47
    # Gradients do not flow into a default that is an expression.
    if kind == "gradient" and any(not is_number(each) for each in case.program.operands if each.name in case.problem.absent):
        return 51
    return None


def is_number(operand):
    return operand.default is None or all(node.op in ("number", "neg") for node in operand.default.nodes())

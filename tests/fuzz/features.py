"""The constructs of docs/language.md, and which of them a program and its problem have."""
from storage import TYPES
from syntax import COMPARISONS, COMPOSED, CONDITIONS, FUNCTIONS, LEFT_TO_A_LINE, OTHERS, REDUCTIONS, TOTALS, VALUES_OF_INTEGERS

INDICES = tuple(f"{form} {what}" for what in ("operand", "result") for form in (
    "[i,j]", "[i]", "[j]", "[]", "divided row", "wrapped row", "divided and wrapped row", "divided column",
    "wrapped column", "divided and wrapped column", "picked row"))  # fmt: skip
DIVISORS = tuple(f"divisor: {what}" for what in (
    "number", "constant", "n", "n / number", "n / constant", "constant / number", "constant / constant",
    "number / number", "quotient of a quotient", "+", "-", "*", "neg"))  # fmt: skip
GROUPS = ("group: j / g", "group: j % g")
ROTATIONS = tuple(f"rotation: {what}" for what in (
    "number", "constant", "named by a line", "negative", "n / number", "n / constant", "arithmetic of constants",
    "sum with n", "product with n", "quotient of a product", "n itself"))  # fmt: skip
PROBLEMS = tuple(f"stored as {kind}" for kind in TYPES) + (
    "0 rows", "1 row", "1 column", "255 columns", "257 columns", "4097 columns", "several axes of rows",
    "several axes of columns", "absent operand", "absent operand with an expression as default", "result not stored",
    "offset", "row stride", "all strides", "negative stride", "backward", "backward without a saved result",
    "backward without an operand whose default is an expression",
    "constant left at its default", "constant given", "table of other rows")  # fmt: skip
CONSTRUCTS = (
    tuple(FUNCTIONS) + tuple(CONDITIONS) + tuple(OTHERS) + REDUCTIONS + COMPOSED + tuple(TOTALS) + COMPARISONS
    + ("+", "-", "*", "/", "%", "neg")
    + ("i", "j", "n", "hexadecimal number", "inf", "nan", "integer comparison", "comparison with an i32 operand",
       "named condition", "result used later", "default: number", "default: expression", "default: ...",
       "constant without default", "cast to a result", "cast to an operand", "several results", "remark: range")
    + INDICES + DIVISORS + GROUPS + ROTATIONS + PROBLEMS
)  # fmt: skip


def features(program, problem):
    out = set()
    for value in program.operands:
        out |= set(of_value(value, "operand", program))
    for value in program.results:
        out |= set(of_value(value, "result", program))
    results = {each.name for each in program.results}
    lines = dict(program.lines)
    for expr in program.expressions():
        for node in expr.nodes():
            out |= set(of_node(node, program, problem, results, lines))
    if any(expr.is_condition() for expr in lines.values()):
        out.add("named condition")
    if len(program.results) > 1:
        out.add("several results")
    if program.remarks:
        out.add("remark: range")
    return out | set(of_problem(program, problem))


def of_value(value, what, program):
    if value.constant:
        if value.default is None:
            yield "constant without default"
        return
    if value.plain:
        letters = ",".join(letter for letter, axis in (("i", value.row), ("j", value.column)) if axis)
        yield f"[{letters}] {what}"
    for where, axis in (("row", value.row), ("column", value.column)):
        if axis is None or axis.plain:
            continue
        if axis.pick:
            yield f"picked row {what}"
            continue
        form = " and ".join(["divided"] * (axis.divide is not None) + ["wrapped"] * (axis.wrap is not None))
        yield f"{form} {where} {what}"
        for by in (axis.divide, axis.wrap):
            if by is not None:
                yield "divisor: " + divisor_form(by)
    if value.default is not None:
        if value.default == LEFT_TO_A_LINE:
            yield "default: ..."
        else:
            simple = all(node.op in ("number", "neg") for node in value.default.nodes())
            yield "default: number" if simple else "default: expression"


def divisor_form(expr):
    if expr.op in ("+", "-", "*", "neg"):
        return expr.op
    if expr.op != "/":
        return "n" if expr.leaf == "n" else "number" if expr.op == "number" else "constant"
    parts = [divisor_form(arg) for arg in expr.args]
    if any("/" in part or "quotient" in part for part in parts):
        return "quotient of a quotient"
    return " / ".join("number" if part == "n" and k else part for k, part in enumerate(parts))


def rotation_form(amount, lines):
    if amount.op == "name" and amount.leaf in lines:
        return "named by a line"
    if amount.op in ("number", "name"):
        return "n itself" if amount.leaf == "n" else "number" if amount.op == "number" else "constant"
    if "n" not in amount.names():
        return "negative" if amount.op == "neg" else "arithmetic of constants"
    if any(node.op == "neg" for node in amount.nodes()):
        return "negative"
    if amount.op == "/":
        inner = amount.args[0].op == "name"
        return ("n / number" if amount.args[1].op == "number" else "n / constant") if inner else "quotient of a product"
    return "product with n" if amount.op == "*" else "sum with n"


def of_node(node, program, problem, results, lines):
    if node.op == "number":
        yield "hexadecimal number" if "x" in node.leaf else node.leaf if node.leaf in ("inf", "nan") else "number"
    elif node.op == "name":
        yield node.leaf if node.leaf in VALUES_OF_INTEGERS else "result used later" if node.leaf in results else "name"
    else:
        yield node.op
    if node.op in COMPARISONS:
        sides = [integer_side(arg, problem) for arg in node.args]
        if all(sides):
            yield "integer comparison"
        if all(sides) and "i32" in sides:
            yield "comparison with an i32 operand"
    if node.op == "cast":
        yield "cast to a result" if node.args[1].leaf in results else "cast to an operand"
    if node.op in REDUCTIONS and len(node.args) == 2:
        yield f"group: j {node.args[1].op} g"
    if node.op == "rotate":
        yield "rotation: " + rotation_form(node.args[1], lines)


def integer_side(expr, problem):
    if expr.op == "neg":
        expr = expr.args[0]
    if expr.op == "number":
        return "number" if expr.leaf.isdigit() else None
    if expr.op != "name":
        return None
    return expr.leaf if expr.leaf in VALUES_OF_INTEGERS else "i32" if problem.types.get(expr.leaf) in ("i32", "i64", "u8") else None


def of_problem(program, problem):
    for kind in problem.types.values():
        yield f"stored as {kind}"
    if problem.rows in (0, 1):
        yield f"{problem.rows} row" + "s" * (problem.rows == 0)
    yield f"{problem.columns} column" + "s" * (problem.columns != 1)
    if len(problem.shape) - problem.axes > 1:
        yield "several axes of rows"
    if problem.axes > 1:
        yield "several axes of columns"
    for each in problem.absent:
        operand = next((e for e in program.operands if e.name == each and not e.constant), None)
        if operand and operand.default is not None:
            simple = operand.default.op in ("number", "neg")
            yield "absent operand" if simple else "absent operand with an expression as default"
        elif problem.backward:
            yield "backward without a saved result" if any(e.name == each for e in program.results) else "absent gradient"
        else:
            yield "result not stored"
    for place in problem.places.values():
        if "+" in place:
            yield "offset"
        if ":" in place:
            yield "all strides" if "," in place else "row stride"
        if "-" in place:
            yield "negative stride"
    if any(count != problem.rows for count in problem.tables.values()):
        yield "table of other rows"
    if problem.backward:
        yield "backward"
    if problem.left_out:
        yield "backward without an operand whose default is an expression"
    for each in program.operands:
        if each.constant:
            yield "constant given" if each.name in problem.constants else "constant left at its default"

"""Makes a failing case as small as it gets while it fails in the same way."""
import time
from dataclasses import replace


from run import signature_of
from syntax import COLUMN_REDUCTIONS, LEFT_TO_A_LINE, LITERAL, REDUCTIONS, Axis, apply, name, number

PLAIN = Axis()


def shrink(case, kind, tool, seconds=60.0):
    """The smallest case found, its failure, and how many were tried. `kind` is a signature_of() a failure."""
    deadline, tried = time.monotonic() + seconds, 0
    smallest, failure = case, None

    def fails(candidate):
        nonlocal tried, failure
        tried += 1
        try:
            failures = candidate.failures(tool, "shrunk.row")
        except Exception:  # a candidate may mean nothing at all
            return False
        same = [each for each in failures if signature_of(*each[:2]) == kind]
        failure = same[0] if same else failure
        return bool(same)

    if not fails(case):
        return case, None, tried
    late = lambda: time.monotonic() > deadline  # noqa: E731
    if case.check == "malformed":
        smallest = shrunk_text(case, fails, late)
    else:
        # Round and round: what follows a step that was taken is tried next, until nothing fails any more.
        candidates, at, idle = list(smaller(smallest)), 0, 0
        while idle < len(candidates) and not late():
            at %= len(candidates)
            if fails(candidates[at]):
                smallest, idle = candidates[at], 0
                candidates = list(smaller(smallest))
            else:
                at, idle = at + 1, idle + 1
    fails(smallest)  # the failure of the smallest
    return smallest, failure, tried


def shrunk_text(case, fails, late):
    """Of a malformed text: pieces go, large ones first."""
    size = len(case.text) // 2
    while size and not late():
        at = 0
        while at < len(case.text) and not late():
            candidate = replace(case, text=case.text[:at] + case.text[at + size :])
            if fails(candidate):
                case = candidate
            else:
                at += size
        size //= 2
    return case


def smaller(case):
    if case.text is not None:
        yield replace(case, text=None)
    for program in smaller_programs(case.program):
        yield replace(case, program=program)
    if case.problem is not None:
        for problem in smaller_problems(case.problem):
            yield replace(case, problem=problem)
    if case.threads != 1:
        yield replace(case, threads=1)
    if case.chunk:
        yield replace(case, chunk=0)
    if len(case.devices) > 1:
        for device in case.devices:
            yield replace(case, devices=(device,))


def without(mapping, key):
    return {k: v for k, v in mapping.items() if k != key}


def smaller_problems(problem):
    rows, columns = problem.rows, problem.columns
    if len(problem.shape) != 2:
        yield replace(problem, shape=(rows, columns), axes=1, places={})
    if problem.places:
        yield replace(problem, places={})
    for fewer in sorted({0, 1, 2, rows // 2, rows - 1}):
        if 0 <= fewer < rows and problem.axes == 1:
            yield replace(problem, shape=(fewer, columns), places={})
            yield replace(problem, shape=(fewer, columns))
    for fewer in sorted({1, 2, 3, 4, 8, 16, 64, 256, columns // 2, columns - 1}):
        if 1 <= fewer < columns and problem.axes == 1:
            yield replace(problem, shape=(rows, fewer))
    if problem.seed:
        yield replace(problem, seed=0)
    for each in problem.places:
        yield replace(problem, places=without(problem.places, each))
    if set(problem.types.values()) - {"f32"}:
        yield replace(problem, types=dict.fromkeys(problem.types, "f32"))
    for each, kind in problem.types.items():
        if kind != "f32":
            yield replace(problem, types={**problem.types, each: "f32"})
    for each in problem.absent:
        yield replace(problem, absent=problem.absent - {each}, types={**problem.types, each: "f32"})
    for each, value in problem.constants.items():
        for simple in (1.0, 2.0):
            if value not in (1.0, 2.0):
                yield replace(problem, constants={**problem.constants, each: simple})


def smaller_programs(program):
    used = used_names(program)
    if program.remarks:
        yield replace(program, remarks=())
    for result in program.results:
        if len(program.results) > 1:
            fewer = replace(program, results=tuple(each for each in program.results if each != result))
            kept = tuple(line for line in fewer.lines if line[0] != result.name)
            yield fewer if result.name in used else replace(fewer, lines=kept)
    names = {each.name for each in program.results}
    for k, (target, expr) in enumerate(program.lines):
        if target in names or program.value(target):
            continue
        rest = replace(program, lines=program.lines[:k] + program.lines[k + 1 :])
        if target not in used:
            yield rest
        else:
            yield substituted(rest, target, apply("<", number("1"), number("2")) if expr.is_condition() else number("1"))
            yield substituted(rest, target, expr)
    for operand in program.operands:
        yield from smaller_signatures(program, operand, used)
    for k, (target, expr) in enumerate(program.lines):
        for fewer in smaller_expressions(expr, top=True):
            yield replace(program, lines=program.lines[:k] + ((target, fewer),) + program.lines[k + 1 :])
    for result in program.results:
        for axes in smaller_axes(result):
            yield replace(program, results=tuple(axes if each == result else each for each in program.results))
    if program.name != "f":
        yield replace(program, name="f")


def used_names(program):
    out = set()
    for expr in program.expressions():
        out |= expr.names()
    for value in program.operands + program.results:
        for axis in (value.row, value.column):
            for part in (axis.divide, axis.wrap) if axis else ():
                out |= part.names() if part else set()
            if axis and axis.pick:
                out.add(axis.pick)
    return out


def smaller_signatures(program, operand, used):
    def changed(new):
        return replace(program, operands=tuple(new if each == operand else each for each in program.operands))

    rest = replace(program, operands=tuple(each for each in program.operands if each != operand))
    if operand.default == LEFT_TO_A_LINE:
        rest = replace(rest, lines=tuple(line for line in rest.lines if line[0] != operand.name))
    if operand.name not in used or (operand.default == LEFT_TO_A_LINE):
        yield rest
    yield substituted(rest, operand.name, number("1"))
    yield substituted(rest, operand.name, number("2"))
    if operand.default is not None:
        plain = changed(replace(operand, default=None))
        if operand.default == LEFT_TO_A_LINE:
            plain = replace(plain, lines=tuple(line for line in plain.lines if line[0] != operand.name))
        yield plain
        if not operand.constant and operand.default.op != "number" and operand.default != LEFT_TO_A_LINE:
            yield changed(replace(operand, default=number("1")))
            for fewer in smaller_expressions(operand.default):
                yield changed(replace(operand, default=fewer))
    if not operand.constant:
        for axes in smaller_axes(operand):
            yield changed(axes)


def smaller_axes(value):
    for which in ("row", "column"):
        axis = getattr(value, which)
        if axis is None or axis == PLAIN:
            continue
        yield replace(value, **{which: PLAIN})
        if axis.divide is not None and axis.wrap is not None:
            yield replace(value, **{which: replace(axis, divide=None)})
            yield replace(value, **{which: replace(axis, wrap=None)})
        for part in ("divide", "wrap"):
            if getattr(axis, part) is not None and getattr(axis, part) != number("2"):
                yield replace(value, **{which: replace(axis, **{part: number("2")})})


def smaller_expressions(expr, top=False):
    """Each with one subexpression replaced by an argument of it or a number, the outermost first."""
    if expr.op in ("number", "name", "..."):
        if expr.op == "name" or expr.leaf not in ("0", "1", "2"):
            yield number("1")
        return
    condition = expr.is_condition()
    if expr.op in COLUMN_REDUCTIONS and top:
        for fewer in smaller_expressions(expr.args[0]):
            yield apply(expr.op, fewer)
        return
    for k, arg in enumerate(expr.args):
        if arg.is_condition() == condition and not is_name_argument(expr, k):
            yield arg
    if condition and expr != apply("<", number("1"), number("2")):
        yield apply("<", number("1"), number("2"))
    if not condition:
        yield number("1")
    for k, arg in enumerate(expr.args):
        if is_name_argument(expr, k):
            continue
        for fewer in smaller_expressions(arg):
            yield apply(expr.op, *expr.args[:k], fewer, *expr.args[k + 1 :])


def is_name_argument(expr, k):
    return expr.op not in REDUCTIONS and k in LITERAL.get(expr.op, ())


def substituted(program, target, new):
    def inside(expr):
        if expr is None or expr == LEFT_TO_A_LINE:
            return expr
        if expr == name(target):
            return new
        return replace(expr, args=tuple(inside(arg) for arg in expr.args))

    def axis(old):
        return old and replace(old, divide=inside(old.divide), wrap=inside(old.wrap))

    def value(old):
        return replace(old, row=axis(old.row), column=axis(old.column), default=inside(old.default))

    return replace(
        program,
        operands=tuple(map(value, program.operands)),
        results=tuple(map(value, program.results)),
        lines=tuple((line, inside(expr)) for line, expr in program.lines),
    )



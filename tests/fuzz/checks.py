"""What must hold of a program and a problem. Each check gives the failures it sees as (kind, what happened, command)."""
import functools
import os
import random
import re
from dataclasses import replace

import numpy as np
from arithmetic import Duals, Intervals
from evaluate import Evaluation, Inputs, evaluate
from parse import ParseError, Parser, parse
from storage import INTEGERS, PACKED, decode, encode, round_to
from syntax import LITERAL
from tool import Tool

# Refusals that docs/language.md announces: of a backward, and of problems.
NO_BACKWARD = re.compile(
    r"no result depends on an operand in memory in a way that has a gradient"
    r"|its backward would have two values called '\w+' \(gradients are called d \+ name\)"
    r"|the rows of '\w+' are picked by"
    r"|no gradient arrives for '\w+', a colmax"
    r"|the totals of a composed reduction have no derivative"
)
PLACED = re.compile(r"^trireme: \S+?:\d+:\d+: .")  # FILE:LINE:COLUMN: what is wrong


def text_failures(tool, file, text):
    """Failures, the program as the tool prints it, and its backward (None: it has none)."""
    failures, shown = [], []
    tool.write(file, text)
    for option in ([], ["--backward"]):
        done = tool.call("show", file, *option)
        what = "show" if not option else "backward"
        if done.flaw:
            failures.append((f"crash {what}", f"{done.flaw}: {done.message}", done.command))
            return failures, None, None
        if done.code != 0:
            if not (option and NO_BACKWARD.search(done.err)):
                failures.append((f"refused {what}", done.message, done.command))
            shown.append(None)
            continue
        again = tool.call("show", tool.write("again_" + file, done.out))
        if again.flaw or again.code != 0 or without_comments(again.out) != without_comments(done.out):
            how = "crash" if again.flaw else "differs" if again.code == 0 else "refused"
            detail = again.flaw or again.message or first_difference(done.out, again.out)
            failures.append((f"printed {what} {how}", detail, done.command))
        try:
            shown.append(parse(done.out))
        except (ParseError, IndexError) as error:
            failures.append((f"printed {what} unreadable", str(error), done.command))
            shown.append(None)
    return failures, shown[0], shown[1]


def without_comments(text):
    """`show` adds advice as comments, which name lines of the text at hand."""
    return "".join(line + "\n" for line in text.splitlines() if not line.startswith("#"))


def first_difference(a, b):
    for left, right in zip(*(without_comments(text).splitlines() + [""] for text in (a, b))):
        if left != right:
            return f"{left!r} became {right!r}"
    return ""


def compute_type(problem):
    return "f64" if "f64" in problem.types.values() else "f32"


def given_constants(program, problem):
    out = dict(problem.constants)
    for each in program.operands:
        if each.constant and each.name not in out:
            out[each.name] = Evaluation(program, None, Duals()).run(each.default)[0].item()
    return out


def draw_inputs(program, problem, dice, wild=0.0):
    """Samples of every operand that is there, exactly as its storage type holds them."""
    inputs = Inputs(problem.rows, problem.columns, given_constants(program, problem), {}, dict(problem.types),
                    tables=dict(problem.tables))
    evaluation = Evaluation(program, inputs, Duals())
    random_state = np.random.default_rng(dice.randrange(2**32))
    for operand in program.operands:
        if operand.constant or operand.name in problem.absent:
            continue
        shape = evaluation.extents(operand)
        values = random_state.uniform(-2, 2, shape)
        kind = problem.types.get(operand.name, "f32")
        written = [each for each in program.results if each.picked and each.row.pick == operand.name]
        if written:  # no row twice
            count = min(evaluation.table_rows(each) for each in written) + 3
            chosen = random_state.permutation(count)[: shape[0]] - 1.0
            values = np.concatenate([chosen, np.full(shape[0] - len(chosen), -1.0)]).reshape(shape)
        elif kind in INTEGERS:
            values = random_state.integers(-3, 9, shape).astype(np.float64)
        elif wild:
            specials = random_state.choice([0.0, -0.0, np.inf, -np.inf, np.nan, 1e30, -1e-30, 65504.0], shape)
            values = np.where(random_state.random(shape) < wild, specials, values)
        inputs.operands[operand.name] = round_to(kind, values)
    return inputs


def meaning_failures(program, shown, problem, command):
    """The printed program, read by our parser, has the same values."""
    inputs = draw_inputs(program, replace(problem, types=all_types(program, problem)), random.Random(7))
    inputs.types = all_types(program, problem)
    want, got = (evaluate(each, inputs, Duals()) for each in (program, shown))
    for name in want:
        if name not in got:
            return [("printed meaning", f"the result '{name}' is not printed", command)]
        if not np.array_equal(want[name][0], got[name][0], equal_nan=True):
            return [("printed meaning", f"'{name}' has other values in the printed program", command)]
    return []


def all_types(program, problem):
    return {e.name: problem.types.get(e.name, "f32") for e in program.operands + program.results if not e.constant}


# ---- results against intervals ----


def value_failures(tool, file, program, problem, target="cpu", threads=1):
    """Runs `program` (the derived one where problem.backward) on arrays of its own; every result must lie in its interval.
    Also how many entries were judged, of how many."""
    first = next((e for e in program.operands if not e.constant and e.row and e.column and e.plain), None)
    if first is None or first.name in problem.absent or problem.columns == 0:
        return [], 0, 0
    dice = random.Random(f"{problem.seed} values")
    results = {each.name for each in program.results}  # `run` makes tables of as many rows as there are
    problem = replace(problem, tables={k: v for k, v in problem.tables.items() if k not in results})
    inputs = draw_inputs(program, problem, dice, wild=0.02 if dice.random() < 0.15 else 0.0)
    arguments = ["run", file, "--target", target, "--threads", str(threads), "--axes", str(problem.axes)]
    arguments += ["--backward"] * problem.backward + [f"--absent={each}" for each in sorted(problem.left_out)]
    own = {each.name for each in program.operands}  # a backward may need fewer constants
    arguments += [f"--set={key}={value!r}" for key, value in problem.constants.items() if key in own]
    outer = problem.shape[: len(problem.shape) - problem.axes]
    inner = problem.shape[len(problem.shape) - problem.axes :]
    for operand in program.operands:
        if operand.name not in inputs.operands:
            continue
        array, kind = inputs.operands[operand.name], problem.types[operand.name]
        shape = [extent for axis, whole, extent in ((operand.row, outer, array.shape[0]), (operand.column, inner, array.shape[1]))
                 if axis for extent in (whole if axis.plain else (extent,))]  # fmt: skip
        if kind in PACKED:
            shape[-1] //= 2
        saved = f"{file}.{operand.name}.npy"
        np.save(os.path.join(tool.folder, saved), encode(kind, array).reshape(shape))
        arguments += [f"--in={operand.name}={saved}"] + [f"--type={operand.name}={kind}"] * (kind[:2] in ("bf", "f8", "f4"))
    stored = [each for each in program.results if each.name not in problem.absent]
    for each in stored:
        arguments += [f"--out={each.name}={file}.{each.name}.npy", f"--type={each.name}={problem.types[each.name]}"]
    done = tool.call(*arguments)
    if done.flaw or done.code != 0:
        return [("crash run" if done.flaw else "refused run", done.flaw or done.message, done.command)], 0, 0
    want = evaluate(program, inputs, Intervals(compute_type(problem)))
    judged = total = 0
    for each in stored:
        kind = problem.types[each.name]
        got = decode(kind, np.load(os.path.join(tool.folder, f"{file}.{each.name}.npy")))
        low, high = (np.where(np.isnan(end), np.nan, round_to(kind, end)) for end in want[each.name])
        if got.size != low.size:
            return [("values", f"'{each.name}' has {got.size} entries, not {low.size}", done.command)], 0, 0
        got, unknown = got.reshape(low.shape), np.isnan(low) | np.isnan(high)
        wrong = ~unknown & ~((low <= got) & (got <= high))
        judged, total = judged + int((~unknown).sum()), total + low.size
        if wrong.any():
            at = tuple(int(k) for k in np.argwhere(wrong)[0])
            detail = f"{each.name}{list(at)} is {got[at]}, not within [{low[at]}, {high[at]}]; {wrong.sum()} of {low.size}"
            return [("values", detail, done.command)], judged, total
    return [], judged, total


# ---- gradients against dual numbers ----


def gradient_failures(program, backward, problem, command):
    """<dy, J v> = <J' dy, v> for random dy and v, in f64. Also whether it could be judged."""
    names = {each.name for each in program.operands}
    if any("d" + each.name in names for each in program.results):
        return [], False  # an operand that the backward does not read may be called like a gradient
    problem = replace(problem, types={}, absent=frozenset(e for e in problem.absent if program.value(e) in program.operands))
    dice = random.Random(f"{problem.seed} gradient")
    at = draw_inputs(program, problem, dice)
    at.types = dict.fromkeys([e.name for e in program.operands + program.results], "f32")
    random_state = np.random.default_rng(dice.randrange(2**32))
    flat = without_gradient(program)
    at.tangents = {name: random_state.uniform(-1, 1, array.shape) for name, array in at.operands.items() if name not in flat}
    cotangents = {}
    first = sides(program, backward, at, cotangents, random_state, saved=dice.random() < 0.5)
    moved = replace(at, operands={k: v if k in flat else v * (1 + 1e-10 * random_state.uniform(-1, 1, v.shape))
                                  for k, v in at.operands.items()})  # fmt: skip
    second = sides(program, backward, moved, cotangents, random_state, saved=False)
    if first is None or second is None:
        return [], False
    (left, right, size), (left2, right2, _) = first, second
    # Where a move of 1e-10 matters in the seventh digit, rounding matters too.
    if not np.isfinite(size) or abs(left - left2) + abs(right - right2) > 1e-7 * size:
        return [], False
    # Saturated functions, such as sigmoid's y * (1 - y), lose all digits of slopes that are next to nothing.
    floor = 1e-10 * sum(np.abs(each).sum() for each in cotangents.values())
    if abs(left - right) > 1e-6 * size + floor:
        return [("gradient", f"forward mode gives {left}, the derived backward {right}", command)], True
    return [], size > 0


def without_gradient(program):
    """Tables, who picks their rows, and seeds."""
    out = {each.name for each in program.operands if each.picked}
    out |= {each.row.pick for each in program.operands + program.results if each.picked}
    seeds = {node.args[0].leaf for expr in program.expressions() for node in expr.nodes() if node.op == "random"}
    return out | seeds


@np.errstate(all="ignore")
def sides(program, backward, at, cotangents, random_state, saved):
    forward = evaluate(program, at, Duals())
    operands, types = dict(at.operands), dict(at.types)
    names = {each.name for each in program.operands}
    tables = {**at.tables, **{"d" + each.name: at.tables[each.name] for each in program.results if each.name in at.tables}}
    left, size = 0.0, 0.0
    nodes = [node for expr in backward.expressions() for node in expr.nodes()]
    read = {arg.leaf for node in nodes for k, arg in enumerate(node.args) if k not in LITERAL.get(node.op, ())}
    read |= {expr.leaf for expr in backward.expressions()}
    typed = {node.args[0].leaf for node in nodes if node.op == "largest"} - read
    for operand in backward.operands:
        if operand.constant or operand.name in names:
            continue
        types[operand.name] = "f32"
        if operand.name in typed:  # it stands for its type alone
            continue
        if operand.name in forward:  # a saved result
            if saved:
                operands[operand.name] = forward[operand.name][0]
            continue
        value, slope = forward[operand.name[1:]]
        if operand.name not in cotangents:
            cotangents[operand.name] = random_state.uniform(-1, 1, value.shape)
        operands[operand.name] = cotangents[operand.name]
        terms = cotangents[operand.name] * slope
        left, size = left + terms.sum(), size + np.abs(terms).sum()
    for result in backward.results:
        types[result.name] = "f32"
    got = evaluate(backward, Inputs(at.rows, at.columns, at.constants, operands, types, tables=tables), Duals())
    right = 0.0
    for name, (gradient, _) in got.items():
        if name[1:] in at.tangents:
            terms = gradient * at.tangents[name[1:]]
            right, size = right + terms.sum(), size + np.abs(terms).sum()
    return (left, right, size) if np.isfinite(left) and np.isfinite(right) else None


# ---- code ----


@functools.lru_cache(maxsize=None)
def architectures(path):
    """By target, as the help of the tool at `path` lists them; where there are more (\"and up\"), the next decade's too."""
    text = Tool(path, ".").call("emit", "--help").out
    found = {}
    for part in re.search(r"--arch ARCH +(.*)", text)[1].split("; "):
        target, names = part.split(": ")
        archs = [word for word in re.findall(r"\w+", names) if word not in ("default", "and", "or", "up")]
        if "and up" in names:
            archs += [re.sub(r"\d+", lambda number: str(int(number[0]) + 10), each) for each in archs]
        found[target] = tuple(archs)
    return found


def emit_failures(tool, file, problem, target, arch):
    arguments = ["emit", file, "--target", target, "--arch", arch, "--cols", str(problem.columns), "-o", "/dev/null"]
    arguments += ["--rows", str(max(problem.rows, 1))] + ["--backward"] * problem.backward
    arguments += [f"--set={key}={value!r}" for key, value in problem.constants.items()]
    arguments += [f"--type={key}={value}" for key, value in problem.types.items()]
    arguments += [f"--absent={each}" for each in sorted(problem.absent | problem.left_out)]
    done = tool.call(*arguments)
    if done.flaw:
        return [(f"crash emit {target}", f"{done.flaw}: {done.message}", done.command)]
    if done.code == 0:
        return []
    return [(f"refused emit {target}", done.message, done.command)]


# ---- stages of compilation ----


def stage_command(file, problem, stage):
    return " ".join(["trireme"] + stage_arguments(file, problem, stage))


def stage_arguments(file, problem, stage):
    arguments = ["show", file, "--after", stage, "--cols", str(problem.columns)] + ["--backward"] * problem.backward
    arguments += [f"--set={key}={value!r}" for key, value in problem.constants.items()]
    arguments += [f"--type={key}={value}" for key, value in problem.types.items()]
    return arguments + [f"--absent={each}" for each in sorted(problem.absent | problem.left_out)]


def stage_failures(tool, file, program, problem, stage):
    """A bound program prints as a program that can be read back. Also the problem of the printed one, in bound_FILE;
    None where that has other samples."""
    done = tool.call(*stage_arguments(file, problem, stage))
    if done.flaw or done.code != 0:
        how = "crash" if done.flaw else "refused"
        return [(f"{how} after {stage}", done.flaw or done.message, done.command)], None
    remarks = "".join(f"#: {each}\n" for each in program.remarks)  # of the samples, which are not printed
    again = tool.call("show", tool.write(bound_file(file, problem), remarks + done.out))
    if without_comments(again.out) != without_comments(done.out):
        said = again.flaw or again.message or first_difference(done.out, again.out)
        return [(f"printed after {stage} differs", said, done.command)], None
    signature = Parser(done.out).signature()
    constants = {each.name for each in signature.operands if each.constant}
    arrays = {each.name for each in signature.operands + signature.results} - constants
    kept = {key: value for key, value in problem.constants.items() if key in constants}
    packed = {each.name for each in signature.operands + signature.results if problem.types.get(each.name) in PACKED and
              not each.column.plain}  # fmt: skip
    if packed & {each.name for each in signature.operands}:  # bytes have other samples
        return [], None
    types, places = ({k: v for k, v in words.items() if k in arrays} for words in (problem.types, problem.places))
    types.update(dict.fromkeys(packed, "u8"))
    return [], replace(problem, types=types, places=places, tables={k: v for k, v in problem.tables.items() if k in arrays}, absent=frozenset(), constants=kept, backward=False,
                       left_out=frozenset())


def bound_file(file, problem):
    return ("bound_backward_" if problem.backward else "bound_") + file


def bound_failures(report, bound, stage, command):
    """The printed program has the results of the one it was made from."""
    if report.flaw or report.refusal:
        return []  # another check's
    if bound.flaw or bound.refusal:
        return [(("crash" if bound.flaw else "refused") + f" bound {stage}", bound.flaw or bound.refusal, command)]
    want, got = (each.rows["reference"][0] for each in (report, bound))
    return [] if want == got else [(f"bits after {stage}", f"the digest is {got}, that of the whole way {want}", command)]


# ---- malformed texts ----


def malformed_failures(tool, file, text):
    """Parsed, or refused with line and column within a second; never anything else. Also whether it was refused."""
    tool.write(file, text)
    done = tool.call("show", file, limit=20)
    if done.flaw:
        return [("crash malformed", f"{done.flaw}: {done.message}", done.command)], True
    if done.code == 0:
        again = tool.call("show", tool.write("again_" + file, done.out), limit=20)
        if without_comments(again.out) != without_comments(done.out):
            return [("printed malformed differs", first_difference(done.out, again.out) or again.message, done.command)], False
        return [], False
    if not PLACED.match(done.message) and text.strip():
        return [("malformed without a place", done.message, done.command)], True
    if done.seconds > tool.patience:  # a busy machine is no fault: the best of three counts
        if min(tool.call("show", file, limit=20).seconds for _ in range(3)) > tool.patience:
            return [("malformed slow", f"{done.seconds:.1f} s: {done.message}", done.command)], True
    return [], True




def malformed_line_failures(tool, line):
    """A problem line that may make no sense: run, or refused in words."""
    done = tool.call("verify", line, "--device", "reference")
    if done.flaw:
        return [("crash line", f"{done.flaw}: {done.message}", done.command)]
    if done.code == 2 and not done.message.startswith("trireme: "):
        return [("malformed line without a word", done.err, done.command)]
    return []

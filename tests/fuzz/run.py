"""One case, a program with a problem and a check, and batches of them. A case can be run again alone, which is what
shrinking does and what a report tells the reader to do."""
import random
import re
from dataclasses import dataclass, replace

import checks
from evaluate import Invalid
from generate import draw
from mutate import mutate, mutate_line
from parse import parse
from problem import Problem, draw_left_out, draw_problem, formulas
from syntax import Program, program_text


@dataclass(frozen=True)
class Case:
    program: Program
    problem: Problem | None
    check: str  # text, meaning, gradient, values, emit, stage, verify, malformed, line (its line in `target`)
    text: str | bytes | None = None  # None: the plain form of `program`
    devices: tuple = ()
    threads: int = 1
    chunk: int = 0
    target: str = ""
    arch: str = ""

    def source(self):
        return self.text if self.text is not None else program_text(self.program)

    def failures(self, tool, file):
        """(kind, what happened, command) of each thing that is wrong."""
        if self.check == "malformed":
            return checks.malformed_failures(tool, file, self.source())[0]
        if self.check == "text":
            return checks.text_failures(tool, file, self.source())[0]
        tool.write(file, self.source())
        if self.check == "line":
            return checks.malformed_line_failures(tool, " ".join([file] + self.target.split(" ")[1:]))
        signature = backward = self.program
        if self.problem.backward or self.check == "gradient":
            backward = derived_program(tool, file, self.program, self.problem)
            signature = backward if self.problem.backward else self.program
        if backward is None:
            return []
        left_out = self.problem.left_out & formulas(self.program)
        problem = without(fitting(self.problem, signature), left_out, signature)
        if self.check == "meaning":
            return checks.meaning_failures(self.program, shown_program(tool, file), problem, f"trireme show {file}")
        if self.check == "gradient":
            return checks.gradient_failures(self.program, backward, problem, gradient_command(file, self.program, problem))[0]
        if self.check == "values":
            return checks.value_failures(tool, file, signature, problem, self.target, self.threads)[0]
        if self.check == "emit":
            return checks.emit_failures(tool, file, problem, self.target, self.arch)
        if self.check == "stage":
            failures, bound = checks.stage_failures(tool, file, self.program, problem, self.arch)
            if failures or not bound:
                return failures
            reports = tool.verify([problem.line(file), bound.line(checks.bound_file(file, problem))], ())
            return checks.bound_failures(*reports, self.arch, checks.stage_command(file, problem, self.arch))
        report = tool.verify([problem.line(file)], self.devices, self.threads, self.chunk)[0]
        return [(kind, said, self.verify_command(problem.line(file))) for kind, said in report.kinds()]

    def verify_command(self, line):
        chunk = f" --chunk {self.chunk}" if self.chunk else ""
        devices = "".join(f" --device {each}" for each in self.devices)
        return f'trireme verify "{line}" --threads {self.threads}{chunk}{devices}'


def shown_program(tool, file, *options):
    done = tool.call("show", file, *options)
    return parse(done.out) if done.code == 0 else None


def derived_program(tool, file, program, problem):
    """The backward that the problem is of, or whose forward's it is."""
    return shown_program(tool, file, "--backward", *absent_formulas(program, problem))


def gradient_command(file, program, problem):
    return " ".join(["trireme show", file, "--backward", *absent_formulas(program, problem)])


def absent_formulas(program, problem):
    """Absent operands whose default is a formula: the gradient flows on into what it reads. Shrunken programs may have
    lost some."""
    return [f"--absent={each}" for each in sorted((problem.absent | problem.left_out) & formulas(program))]


def fitting(problem, signature):
    """The problem without words for names that the signature does not have."""
    arrays = {each.name for each in signature.operands + signature.results if not each.constant}
    constants = {each.name for each in signature.operands if each.constant}
    return replace(
        problem,
        types={k: v for k, v in problem.types.items() if k in arrays},
        places={k: v for k, v in problem.places.items() if k in arrays},
        tables={k: v for k, v in problem.tables.items() if k in arrays},
        absent=frozenset(problem.absent & arrays),
        constants={k: v for k, v in problem.constants.items() if k in constants},
    )


def without(problem, left_out, signature):
    """Of operands that were left out: those that a backward still names have a number as default after all."""
    return replace(problem, left_out=left_out - {each.name for each in signature.operands})


def signature_of(kind, said):
    """What makes two failures the same one: the kind, and for refusals the words without names and numbers."""
    if not re.match("refused|crash|malformed|unsupported", kind):
        return kind
    said = re.sub(r"problem line '.*?':", "", said)
    said = re.sub(r"'[^']*'|`[^`]*`|\b\S*\d\S*|\b\w+(?=:)", "#", said)
    return f"{kind}: {said[:60]}"


class Batch:
    """Draws the programs of some indices and checks them. `found` has (index, Case, failure) of what went wrong."""

    def __init__(self, tool, seed, indices, devices, quick, tally, mutations=2):
        self.tool, self.devices, self.quick, self.tally, self.mutations = tool, devices, quick, tally, mutations
        self.found, self.lines, self.stages = [], [], []
        dice = random.Random(f"{seed}:{indices[0]} batch")
        self.options = {"threads": dice.choice((1, 2, 3, 5)), "chunk": dice.choice((0, 0, 1, 2, 7, 64))}
        for index in indices:
            generator, program = draw(seed, index)
            dice = random.Random(f"{seed}:{index} checks")
            backward = self.check_program(index, generator, program, dice, f"p{index}.row")
            if backward is not None and dice.random() < 0.15:  # a program like any other
                self.check_program(index, generator, backward, dice, f"second_p{index}.row")
                tally["backwards taken as programs"] += 1
        self.verify()

    def note(self, index, case, failures):
        self.found += [(index, case, failure) for failure in failures]

    def check_program(self, index, generator, program, dice, file):
        """All checks but those that wait for the batch. Gives its backward."""
        tool, tally, text = self.tool, self.tally, program_text(program, dice)
        failures, shown, backward = checks.text_failures(tool, file, text)
        self.note(index, Case(program, None, "text", text), failures)
        tally["programs"] += 1
        for k in range(self.mutations):
            broken = mutate(text, dice)
            failures, refused = checks.malformed_failures(tool, f"broken{k}_{file}", broken)
            self.note(index, Case(program, None, "malformed", broken), failures)
            tally["malformed texts, refused" if refused else "malformed texts that were fine"] += 1
        if shown is None:
            return None
        for signature in [program] + [backward] * (backward is not None):
            left_out, other = draw_left_out(generator, program) if signature is backward else frozenset(), None
            if left_out:
                other = shown_program(tool, file, "--backward", *(f"--absent={each}" for each in sorted(left_out)))
            if other is not None:
                signature = other
            problem = fitting(draw_problem(generator, program, None if signature is program else signature), signature)
            problem = without(problem, left_out if other is not None else frozenset(), signature)
            case = Case(program, problem, "verify", text, self.devices, **self.options)
            self.lines.append((index, case, problem.line(file)))
            tally.features(program, problem)
            try:
                self.check_values(index, case, signature, dice, file)
                if not problem.backward:
                    self.check_meaning(index, case, shown, backward, file)
            except Invalid as wrong:  # a flaw of the generator, or of the backward that was printed
                self.note(index, case, [("invalid", str(wrong), f"trireme show {file} --backward")])
            if dice.random() < 0.4:
                self.check_stage(index, case, dice.choice(("bind", "simplify", "expand")), file)
        if generator.rows * generator.columns <= 1000:
            broken = mutate_line(self.lines[-1][2], dice)
            case = Case(program, None, "line", text, target=broken)
            self.note(index, case, checks.malformed_line_failures(tool, broken))
            tally["malformed problem lines"] += 1
        architectures = checks.architectures(tool.path)
        target = dice.choice(tuple(architectures))
        arch = dice.choice(architectures[target])
        case = Case(program, self.lines[-1][1].problem, "emit", text, target=target, arch=arch)
        self.note(index, case, checks.emit_failures(tool, file, case.problem, target, arch))
        tally["artifacts emitted"] += 1
        return backward

    def check_values(self, index, case, signature, dice, file):
        target = dice.choice(self.quick + ("reference",))
        case = replace(case, check="values", target=target)
        failures, judged, total = checks.value_failures(self.tool, file, signature, case.problem, target, case.threads)
        self.note(index, case, failures)
        self.tally["entries within their interval"] += judged
        self.tally["entries that may be anything"] += total - judged

    def check_meaning(self, index, case, shown, backward, file):
        failures = checks.meaning_failures(case.program, shown, case.problem, f"trireme show {file}")
        self.note(index, replace(case, check="meaning"), failures)
        self.tally["printed programs with the same meaning"] += not failures
        if backward is not None:
            command = gradient_command(file, case.program, case.problem)
            failures, could = [], False
            if absent := absent_formulas(case.program, case.problem):
                done = self.tool.call("show", file, "--backward", *absent)
                backward = parse(done.out) if done.code == 0 else None
                if done.flaw or (backward is None and not checks.NO_BACKWARD.search(done.err)):
                    failures = [("refused gradient", done.flaw or done.message, command)]
            if backward is not None:
                failures, could = checks.gradient_failures(case.program, backward, case.problem, command)
            self.note(index, replace(case, check="gradient"), failures)
            self.tally["gradients judged" if could else "gradients that cannot be judged"] += 1

    def check_stage(self, index, case, stage, file):
        case = replace(case, check="stage", arch=stage)
        failures, bound = checks.stage_failures(self.tool, file, case.program, case.problem, stage)
        self.note(index, case, failures)
        if bound:
            command = checks.stage_command(file, case.problem, stage)
            line = bound.line(checks.bound_file(file, case.problem))
            self.stages.append((len(self.lines) - 1, index, case, command, line))

    def verify(self):
        """All lines on the quick devices; two on those that are slow. Then what was printed of bound programs."""
        all_reports = []
        slow = tuple(each for each in self.devices if each not in self.quick)
        for chosen, some in ((self.quick, self.lines), (slow, self.lines[:2] if self.quick else self.lines)):
            if not chosen or not some:
                continue
            reports = self.tool.verify([line for _, _, line in some], chosen, **self.options)
            all_reports = all_reports or reports
            for (index, case, line), report in zip(some, reports):
                case = replace(case, devices=chosen)
                self.note(index, case, [(kind, said, case.verify_command(line)) for kind, said in report.kinds()])
                self.tally["problems verified"] += 1
                same = sum(status == "same bits" for _, status in report.rows.values())
                self.tally["comparisons with the reference"] += same
        bound_reports = self.tool.verify([line for *_, line in self.stages], ())
        for (at, index, case, command, _), bound in zip(self.stages, bound_reports):
            self.note(index, case, checks.bound_failures(all_reports[at], bound, case.arch, command))
            self.tally["bound programs with the same bits"] += 1

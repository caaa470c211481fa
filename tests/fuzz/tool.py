"""Calls of the `trireme` tool: what came back, how long it took, and which line of a batch went wrong."""
import json
import os
import re
import shlex
import subprocess
import time
from dataclasses import dataclass

DEAD = r"internal error|AddressSanitizer|runtime error:|ThreadSanitizer|terminate called|Assertion"


@dataclass
class Done:
    arguments: list
    code: int  # negative: the signal that ended it; None: it was stopped, too slow
    out: str
    err: str
    seconds: float

    @property
    def flaw(self):
        """What no input may cause, or None."""
        if self.code is None:
            return f"no answer within {self.seconds:.0f} s"
        if self.code < 0:
            return f"ended by signal {-self.code}"
        if self.code not in (0, 1, 2):
            return f"exit code {self.code}"
        found = re.search(rf"^.*({DEAD}).*$", self.out + self.err, re.M)
        return f"says '{found.group()}'" if found else None

    @property
    def message(self):
        lines = [line for line in self.err.splitlines() if line.strip()]
        return lines[0] if lines else ""

    @property
    def command(self):
        return " ".join(shlex.quote(each) for each in ["trireme"] + self.arguments)


@dataclass
class LineReport:
    """What `verify` said of one problem line."""

    rows: dict  # device -> (digest, status)
    failures: list  # its lines FAIL ...
    judged: bool = False  # the oracle has spoken, which it does before the devices
    refusal: str = ""  # why the tool gave up, or died
    flaw: str | None = None

    def kinds(self):
        """What is wrong, as words that shrinking can hold on to."""
        if self.flaw:
            yield "crash", self.flaw
        elif self.refusal:
            yield "refused", self.refusal
        wanted = self.rows.get("reference", ("", ""))[0]
        named = " ".join(self.failures)
        for device, (digest, status) in self.rows.items():
            if status.startswith("unsupported"):
                yield f"unsupported {device}", status
            elif digest not in (wanted, "-") and f" device={device} " not in named:
                yield f"bits {device}", f"{device} has the digest {digest}, the reference {wanted}; verify says '{status}'"
        for text in self.failures:
            device = re.search(r" device=(\S+) ", text)
            yield (f"bits {device[1]}" if device else "oracle"), text


class Tool:
    def __init__(self, path, folder, limit=60.0, patience=1.0):
        self.path, self.folder, self.limit, self.patience = os.path.realpath(path), folder, limit, patience
        # Kernels of one run are of no use to the next.
        self.environment = {**os.environ, "TRIREME_CACHE": "off"}

    def call(self, *arguments, limit=None):
        start = time.monotonic()
        limit = limit or self.limit
        try:
            done = subprocess.run([self.path, *arguments], cwd=self.folder, env=self.environment,
                                  capture_output=True, timeout=limit)  # fmt: skip
            code, out, err = done.returncode, done.stdout, done.stderr
        except subprocess.TimeoutExpired as stopped:
            code, out, err = None, stopped.stdout or b"", stopped.stderr or b""
        seconds = time.monotonic() - start
        return Done(list(arguments), code, out.decode(errors="replace"), err.decode(errors="replace"), seconds)

    def write(self, file, text):
        with open(os.path.join(self.folder, file), "wb") as opened:
            opened.write(text if isinstance(text, bytes) else text.encode())
        return file

    def devices(self):
        """What `doctor` calls ready, the reference left out: by name, about the milliseconds that a small program takes."""
        listed = json.loads(self.call("doctor", "--json").out)["devices"]
        return {each["name"]: each["about_ms"] for each in listed if each["state"] == "ready" and each["name"] != "reference"}

    def verify(self, lines, devices, threads=1, chunk=0):
        """A LineReport for each line, of the reference alone where no device is named. A line that ends the tool is found, and those after it are run again."""
        reports = []
        while len(reports) < len(lines):
            options = ["--threads", str(threads)] + (["--chunk", str(chunk)] if chunk else [])
            for device in devices or ("reference",):
                options += ["--device", device]
            rest = lines[len(reports) :]
            done = self.call("verify", *rest, *options, limit=self.limit + 10 * len(rest))
            blocks = read_blocks(done.out)
            whole = [each for each in blocks if each.judged and {*devices, "reference"} <= set(each.rows)]
            if len(whole) == len(rest) and done.flaw is None and done.code in (0, 1):
                return reports + whole
            started = blocks[len(whole)] if len(blocks) > len(whole) else LineReport({}, [])
            started.refusal = done.message or f"exit code {done.code} and no word"
            started.flaw = done.flaw
            reports += whole[: len(rest) - 1] + [started]
        return reports


def read_blocks(out):
    blocks = []
    for line in out.splitlines():
        if line.startswith("FAIL "):
            blocks[-1].failures.append(line)
        elif line.startswith("  "):
            words = line.split(None, 2)
            if words[0] == "oracle":
                blocks[-1].judged = True
            elif words[0] == "differences":
                pass
            elif len(words) == 3:
                blocks[-1].rows[words[0]] = (words[1], words[2].strip())
        elif not re.match(r"\d+ problems, ", line):
            blocks.append(LineReport({}, []))
    return blocks

"""Usage: docs_test.py ROOT BUILD. Runs every command of the README and the other pages, in order, in one folder a page.

```sh                    lines of a shell script; it must succeed
```sh where: COMMAND     the same, where COMMAND succeeds: what it needs is here
```sh long               the same, with LONG=1: it takes minutes
```sh skipped: REASON    not run: it needs a GPU, or what the reason says
```console               `$ COMMAND`, then exactly what it prints; a line `...` stands for any lines
Commands in blocks that say nothing of the kind are found, and are an error.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

root, build = (pathlib.Path(each).resolve() for each in sys.argv[1:3])
failures, ran, skipped = 0, 0, []


def fail(page, line, message):
    global failures
    failures += 1
    print(f"FAIL {page}:{line}: {message}")


def blocks(text):
    """(line, what stands behind the fence, content) of every block, indented ones too."""
    lines, k = text.split("\n"), 0
    while k < len(lines):
        if lines[k].startswith("```"):
            start, words = k, lines[k][3:].strip()
            k += 1
            while k < len(lines) and not lines[k].startswith("```"):
                k += 1
            yield start + 1, words, "\n".join(lines[start + 1 : k]) + "\n"
        elif lines[k].startswith("    ") and (k == 0 or not lines[k - 1].strip()):
            start = k
            while k < len(lines) and (lines[k].startswith("    ") or not lines[k].strip()):
                k += 1
            yield start + 1, "indented", "\n".join(lines[start:k])
            continue
        k += 1


PATH = f"{build}:{root / '.venv/bin'}:{os.environ['PATH']}"
HAS_NUMPY = subprocess.run(["python3", "-c", "import numpy"], env=dict(os.environ, PATH=PATH), capture_output=True).returncode == 0


def shell(script, folder, seconds=120):
    environment = dict(os.environ, PATH=PATH, TRIREME_CACHE=str(folder / "cache"), VIRTUAL_ENV=str(root / ".venv"))
    done = subprocess.run(["bash", "-euo", "pipefail", "-c", script], cwd=folder, env=environment, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=seconds)
    return done.returncode, done.stdout


def why_not(words, content, folder):
    """Why a block of commands is not run here; empty if it is."""
    if words.startswith("sh skipped: "):
        return words.removeprefix("sh skipped: ")
    if "numpy" in content and not HAS_NUMPY:
        return "numpy is not installed"
    if words.startswith("sh where: ") and shell(words.removeprefix("sh where: "), folder)[0] != 0:
        return words.removeprefix("sh ")
    if words == "sh long" and "LONG" not in os.environ:
        return "takes minutes; LONG=1 runs it"
    return ""


def matches(wanted, got):
    pattern = "".join("(?:.*\n)*?" if line == "..." else re.escape(line) + "\n" for line in wanted.splitlines())
    return re.fullmatch(pattern, got) is not None


def run_console(page, line, content, folder):
    for part in re.split(r"^\$ ", content, flags=re.M)[1:]:
        command, wanted = part.split("\n", 1)
        code, got = shell(command, folder)
        if code != 0:
            fail(page, line, f"$ {command}\nexit {code}: {got[-2000:]}")
        elif not matches(wanted.rstrip("\n") + "\n" if wanted.strip() else "", got):
            fail(page, line, f"$ {command}\nprints\n{got[:2000]}not\n{wanted}")


def run_page(path):
    global ran
    page = path.relative_to(root)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for part in ("ops", "bench", "docs", "tools", "examples"):
            if (root / part).exists():
                (folder / part).symlink_to(root / part)
        (folder / "build").mkdir()
        (folder / "build/release").symlink_to(build)
        for line, words, content in blocks(path.read_text()):
            if words == "sh" or words == "sh long" or words.startswith(("sh skipped: ", "sh where: ")):
                if reason := why_not(words, content, folder):
                    skipped.append(f"{page}:{line}: {reason}")
                    continue
                ran += 1
                code, said = shell(content, folder, 3600 if words == "sh long" else 120)
                if code != 0:
                    fail(page, line, f"exit {code} of\n{content}{said[-2000:]}")
            elif words == "console":
                ran += 1
                run_console(page, line, content, folder)
            elif words in ("", "indented", "text", "bash") or words.startswith("sh"):
                if command := re.search(r"^\s*(\$ )?(trireme|make|ninja|cmake|python3?|pip|build/|bench/|tools/)\b.*", content, re.M):
                    fail(page, line, f"```sh or ```console should say how to run: {command[0].strip()}")


pages = [root / "README.md", root / "CONTRIBUTING.md", *sorted(root.glob("docs/*.md")), *sorted(root.glob("*/README.md"))]
for path in pages:
    if path.name != "adding.md":  # tests/adding_test.py follows it
        run_page(path)
print(f"{ran} blocks of commands run, {len(skipped)} skipped:", *skipped, sep="\n  ")
if ran < 5:
    fail("docs", 0, "hardly a command was found")
sys.exit(failures != 0)

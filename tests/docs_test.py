"""Usage: docs_test.py ROOT BUILD. Runs every command of the README and the other pages, in order, in one folder a page.

```sh                    lines of a shell script; it must succeed
```sh skipped: REASON    not run: it needs a GPU, minutes, or what the reason says
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


def shell(script, folder):
    environment = dict(os.environ, PATH=PATH, TRIREME_CACHE=str(folder / "cache"))
    done = subprocess.run(["bash", "-euo", "pipefail", "-c", script], cwd=folder, env=environment, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120)
    return done.returncode, done.stdout


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
            if words.startswith("sh skipped: "):
                skipped.append(f"{page}:{line}: {words[len('sh skipped: '):]}")
            elif words == "sh" and "numpy" in content and not HAS_NUMPY:
                skipped.append(f"{page}:{line}: numpy is not installed")
            elif words == "sh":
                ran += 1
                code, said = shell(content, folder)
                if code != 0:
                    fail(page, line, f"exit {code} of\n{content}{said[-2000:]}")
            elif words == "console":
                ran += 1
                run_console(page, line, content, folder)
            elif words in ("", "indented", "text", "bash"):
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

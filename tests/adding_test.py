"""Usage: adding_test.py ROOT BUILD. Follows docs/adding.md on a copy of the tree: writes its files, makes its changes and
runs its commands. With LONG=1 the copy is built, and the commands that need that (```sh built) run too."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

root, build = (pathlib.Path(each).resolve() for each in sys.argv[1:3])
long_run = "LONG" in os.environ


def stop(message):
    print("FAIL docs/adding.md:", message)
    sys.exit(1)


def change(path, block):
    """A block of context, `-` and `+` lines; what it expects must stand there exactly once."""
    lines = block.splitlines()
    before = "".join(line[1:] + "\n" for line in lines if line[:1] != "+")
    after = "".join(line[1:] + "\n" for line in lines if line[:1] != "-")
    text = path.read_text()
    if text.count(before) != 1:
        stop(f"{path.name} has this {text.count(before)} times:\n{before}")
    path.write_text(text.replace(before, after))


def shell(script, folder, tools):
    environment = dict(os.environ, PATH=f"{tools}:{os.environ['PATH']}", TRIREME_CACHE="off")
    environment.pop("LONG", None)
    done = subprocess.run(["bash", "-euo", "pipefail", "-c", script], cwd=folder, env=environment, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode != 0:
        stop(f"exit {done.returncode} of\n{script}{done.stdout[-3000:]}")
    return done.stdout


with tempfile.TemporaryDirectory() as name:
    copy = pathlib.Path(name) / "trireme"
    ignored = shutil.ignore_patterns("build", ".git", ".venv", "node_modules", "__pycache__")
    shutil.copytree(root, copy, ignore=ignored)
    later, written = [], 0
    for words, block in re.findall(r"^```(.*)\n((?:.*\n)*?)```$", (copy / "docs/adding.md").read_text(), re.M):
        kind, _, target = words.partition(" ")
        if kind == "sh" and target == "built":
            later.append(block)
        elif kind == "sh":
            shell(block, copy, build)
        elif kind == "diff":
            change(copy / target, block)
            written += 1
        elif target:
            (copy / target).parent.mkdir(parents=True, exist_ok=True)
            if (copy / target).exists():
                stop(f"{target} is there already")
            (copy / target).write_text(block)
            written += 1
    if written < 8 or len(later) != 3:
        stop(f"{written} files and {len(later)} blocks of commands were found")
    if long_run:
        shell("cmake --preset release >/dev/null && ninja -C build/release trireme_tool test_math test_passes test_plan", copy, build)
        for block in later:
            print(shell(block, copy, copy / "build/release")[-300:])
print("followed" if long_run else "followed; LONG=1 builds it too")

"""Usage: adding_test.py ROOT BUILD. Follows docs/adding.md on a copy of the tree: writes its files, makes its changes and
runs its commands, and counts the files as its table does. Those that need the tool (```sh tool) get one that is built
there, mostly out of the compiler's cache; those that need tests (```sh built) run with LONG=1, which builds them too."""
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

root, build = (pathlib.Path(each).resolve() for each in sys.argv[1:3])
long_run = "LONG" in os.environ
# Files that a recipe may touch.
MOST = {"an operator": 1, "a function": 1, "a schedule option": 3, "a target": 5}


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


def configure(copy):
    """As BUILD was."""
    cache = dict(re.findall(r"^(\w+):\w+=(.*)$", (build / "CMakeCache.txt").read_text(), re.M))
    same = ["CMAKE_BUILD_TYPE", "CMAKE_CXX_COMPILER", "CMAKE_C_COMPILER", "CMAKE_CXX_FLAGS", "TRIREME_STATIC", "TRIREME_UNITY"]
    options = [f"-D{name}={cache[name]}" for name in same if name in cache] + [f"-DTRIREME_TESTS={'ON' if long_run else 'OFF'}"]
    words = ["cmake", "-S", str(copy), "-B", str(copy / "build/release"), "-G", "Ninja", *options]
    shell(" ".join(map(shlex.quote, words)), copy, build)


with tempfile.TemporaryDirectory() as name:
    copy = pathlib.Path(name) / "trireme"
    ignored = shutil.ignore_patterns("build", ".git", ".venv", "node_modules", "__pycache__")
    shutil.copytree(root, copy, ignore=ignored)
    page = (copy / "docs/adding.md").read_text()
    with_tool, with_tests, written, changed = [], [], {}, {}
    for heading, words, block in re.findall(r"^## (.*)$|^```(.*)\n((?:.*\n)*?)```$", page, re.M):
        kind, _, target = words.partition(" ")
        if heading:
            recipe = heading.lower()
            written[recipe], changed[recipe] = set(), set()
        elif kind == "sh" and target in ("tool", "built"):
            (with_tool if target == "tool" else with_tests).append(block)
        elif kind == "sh":
            shell(block, copy, build)
        elif target:
            if kind == "diff":
                change(copy / target, block)
                changed[recipe].add(target)
            elif (copy / target).exists():
                stop(f"{target} is there already")
            else:
                (copy / target).parent.mkdir(parents=True, exist_ok=True)
                (copy / target).write_text(block)
                written[recipe].add(target)
    stated = {to_add: (int(new), int(old)) for to_add, new, old in re.findall(r"^\| (an? [\w ]+) \| (\d+).* \| (\d+)", page, re.M)}
    counted = {recipe: (len(written[recipe]), len(changed[recipe])) for recipe in written}
    if stated != counted:
        stop(f"files written and changed: the table has {stated}, the recipes {counted}")
    for recipe, most in MOST.items():
        if sum(counted[recipe]) > most:
            stop(f"{recipe} touches {sum(counted[recipe])} files; {most} are the most")
    if len(with_tool) != len(MOST) or len(with_tests) != len(MOST):
        stop(f"{len(with_tool)} and {len(with_tests)} blocks of commands were found")
    configure(copy)
    shell(f"ninja -C build/release -j2 trireme_tool {'test_math test_passes test_schedule test_plan test_conformance test_contract' if long_run else ''}", copy, build)
    for block in with_tool + (with_tests if long_run else []):
        print(shell(block, copy, copy / "build/release")[-300:])
print("followed" if long_run else "followed; LONG=1 builds the tests of the copy, too")

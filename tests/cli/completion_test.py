"""Usage: completion_test.py TRIREME. The manual page and the completions are made from the options the tool reads: each is
complete, and the shells and man that are installed accept it. bash completes at a terminal too."""
import os
import pty
import re
import select
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

tool = os.path.realpath(sys.argv.pop(1))


def trireme(*arguments):
    return subprocess.run([tool, *arguments], capture_output=True, text=True, check=True).stdout


def verbs():
    return re.findall(r"^  ([a-z]+)  ", trireme("--help").split("Subcommands:")[1], re.M)


def options(verb):
    return re.findall(r"^  (?:-h,)?(--?[A-Za-z][a-z-]*)", trireme(verb, "--help"), re.M)


def operators():
    return re.findall(r"^([a-z_0-9]+)\(", trireme("list"), re.M)


def targets():
    return re.findall(r"(\w+): ", re.search(r"--arch ARCH +(.*)", trireme("emit", "--help"))[1])


def cpu_devices():
    return re.findall(r"^cpu:(\w+)", trireme("doctor"), re.M)


class Pages(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        os.chdir(folder.name)
        os.symlink(tool, "trireme")
        os.environ["PATH"] = folder.name + ":" + os.environ["PATH"]

    def write(self, name, *arguments):
        with open(name, "w") as file:
            file.write(trireme(*arguments))
        return name

    def test_manual_page(self):
        page = self.write("trireme.1", "man")
        with open(page) as file:
            source = file.read()
        for verb in verbs():
            section = source.split(f".SS {verb}\n")[1].split("\n.S")[0]
            for option in options(verb):
                if option != "--help":
                    self.assertIn("\\fB" + option.replace("-", "\\-") + "\\fR", section, verb)
        for variable in re.findall(r"TRIREME_\w+", trireme("--help").split("Environment:")[1]):
            self.assertIn(f"\\fB{variable}\\fR=", source)
        self.assertNotIn(".SS man", source)
        if shutil.which("man"):
            done = subprocess.run(["man", "--warnings", "-l", page], capture_output=True, text=True,
                                  env={**os.environ, "LC_ALL": "C.UTF-8", "MANWIDTH": "80"})
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertIn("trireme show OP|FILE [OPTIONS]", re.sub(".\b", "", done.stdout))
            self.assertIn("Columns of a row; default 4096", done.stdout)

    def bash(self, line):
        """What bash offers at the end of a line, split as readline splits it."""
        words = re.findall(r"[=:]|[^\s=:]+", line) + ([""] if line.endswith(" ") else [])
        script = ("source <(trireme completion bash); COMP_WORDS=(\"$@\") COMP_CWORD=$(($# - 1)); _trireme\n"
                  "printf '%s\\n' \"${COMPREPLY[@]}\"")
        done = subprocess.run(["bash", "--norc", "-u", "-c", script, "bash", *words], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""), line)
        return done.stdout.split()

    def test_bash(self):
        self.assertEqual(self.bash("trireme "), verbs() + ["--help", "--version"])
        self.assertEqual(self.bash("trireme sh"), ["show"])
        for verb in verbs():
            self.assertEqual(set(self.bash(f"trireme {verb} -")), set(options(verb)), verb)
        for verb in ("show", "emit", "run", "verify", "bench", "tune"):
            self.assertLessEqual(set(operators()), set(self.bash(f"trireme {verb} ")), verb)
        os.mkdir("my")
        for name in ("my.row", "x.npy"):
            open(name, "w").close()
        cases = {
            "trireme show modul": ["modulated_layer_norm"],
            "trireme show m": [*(name for name in operators() if name.startswith("m")), "my", "my.row"],
            "trireme show rms_norm --target ": targets(),
            "trireme show rms_norm --target=": targets(),
            "trireme show rms_norm --target=x": ["x86"],
            "trireme show rms_norm --back": ["--backward"],
            "trireme show rms_norm --type x=b": ["bf16"],
            "trireme show rms_norm --type x": [],
            "trireme show rms_norm --type=x=f8": ["f8e4m3", "f8e5m2", "f8e8m0"],
            "trireme verify --device cpu:": cpu_devices(),
            "trireme verify --device cpu:avx2": ["avx2"],
            "trireme run rms_norm --in x=": ["trireme", "my", "my.row", "x.npy"],
            "trireme run rms_norm --in x=x": ["x.npy"],
            "trireme cache ": ["list", "verify", "clear"],
            "trireme completion f": ["fish"],
        }
        for line, wanted in cases.items():
            self.assertEqual(sorted(self.bash(line)), sorted(wanted), line)

    def at_terminal(self, shell, setting, line, wanted):
        """Types a line and tabs into an interactive shell until it prints what is wanted."""
        child, terminal = pty.fork()
        if child == 0:
            os.environ.update(TERM="dumb", PS1="$ ")
            os.execvp(shell[0], shell)
        os.write(terminal, setting.encode() + b"\n")
        time.sleep(1)
        os.write(terminal, line.encode() + b"\t\t")
        shown, end = "", time.monotonic() + 60
        while not re.search(wanted, shown) and time.monotonic() < end:
            if select.select([terminal], [], [], 1)[0]:
                shown += os.read(terminal, 65536).decode(errors="replace")
        os.write(terminal, b"\x03\x04exit\n")
        os.close(terminal)
        os.waitpid(child, 0)
        self.assertRegex(shown, wanted)

    def test_bash_at_a_terminal(self):
        self.at_terminal(["bash", "--norc", "-i"], "source <(trireme completion bash)",
                         "trireme show modul\t--ba\t--type x=b", r"show modulated_layer_norm --backward --type x=bf16")
        self.at_terminal(["bash", "--norc", "-i"], "source <(trireme completion bash)",
                         "trireme verify --device cpu:a\t", r"avx2 +avx512|avx512 +avx2")

    @unittest.skipUnless(shutil.which("zsh"), "judged by zsh where it is installed")
    def test_zsh(self):
        self.write("_trireme", "completion", "zsh")
        subprocess.run(["zsh", "-n", "_trireme"], check=True)
        self.at_terminal(["zsh", "-f", "-i"], f"fpath=({os.getcwd()} $fpath); autoload -U compinit; compinit -u -d zd",
                         "trireme show modul\t--ba\t --type x=b\t", r"show modulated_layer_norm[\s\S]*--backward[\s\S]*x=bf16")

    @unittest.skipUnless(shutil.which("fish"), "judged by fish where it is installed")
    def test_fish(self):
        self.write("trireme.fish", "completion", "fish")

        def offered(line):
            done = subprocess.run(["fish", "--no-config", "-c", f"source trireme.fish; complete -C '{line}'"],
                                  capture_output=True, text=True, env={**os.environ, "HOME": os.getcwd()})
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            return [each.split("\t")[0] for each in done.stdout.splitlines()]

        self.assertEqual(sorted(offered("trireme ")), sorted(verbs()))
        for verb in verbs():
            wanted = {each for each in options(verb) if each.startswith("--")}
            self.assertEqual(set(offered(f"trireme {verb} --")), wanted, verb)
        self.assertEqual(offered("trireme show modul"), ["modulated_layer_norm"])
        self.assertEqual(offered("trireme show rms_norm --target x"), ["x86"])
        self.assertEqual(offered("trireme show rms_norm --type x=b"), ["x=bf16"])
        self.assertIn("trireme.fish", offered("trireme emit rms_norm -o trireme.f"))


unittest.main()

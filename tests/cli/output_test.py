"""Usage: output_test.py TRIREME. What the tool writes arrives, or it says why not: full disks, closed streams, files that
are replaced whole or not at all."""
import os
import re
import resource
import signal
import struct
import subprocess
import sys
import tempfile
import unittest

from written_trace import two_events, write_trace

tool = os.path.realpath(sys.argv.pop(1))
kernel = "__global__ void k(float* x) { *x = 1; }"

# For each verb, arguments that print something.
printing = {
    "list": [["list"], ["list", "--markdown"]],
    "show": [["show", "rms_norm"], ["show", "rms_norm", "--target", "ptx"]],
    "emit": [["emit", "rms_norm", "--target", "ptx", "-o", "-"], ["emit", "rms_norm", "--target", "x86", "-o", "a.bin"]],
    "run": [["run", "rms_norm", "--in", "x=x.npy", "--out", "y=y.npy"]],
    "check": [["check", "r.json", "--in", "x=x.npy"]],
    "drift": [["drift", "trace", "trace", *form] for form in ([], ["--json"])],
    "verify": [["verify", "rms_norm 3x7", "--device", "lanes"]],
    "bench": [["bench", "rms_norm 3x7", "--device", "lanes", "--seconds", "0.01", *form] for form in ([], ["--json"], ["--csv"])],
    "tune": [["tune", "rms_norm 8x600", "--seconds", "0.001"]],
    "jit": [["jit", "k.cu", "--name", "k", "--arch", "sm_90"]],
    "cache": [["cache"]],
    "doctor": [["doctor"]],
    "completion": [["completion", "bash"], ["man"]],
}


def write_npy(path, rows, columns):
    head = "{'descr': '<f4', 'fortran_order': False, 'shape': (%d, %d), }" % (rows, columns)
    head += " " * (117 - len(head)) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode())
        file.write(struct.pack(f"<{rows * columns}f", *range(rows * columns)))


def trireme(*arguments, **settings):
    settings = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **settings}
    return subprocess.run([tool, *arguments], text=True, errors="replace", **settings)


class Output(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        os.chdir(folder.name)
        os.environ["TRIREME_CACHE"] = folder.name + "/cache"
        write_npy("x.npy", 16, 64)
        trireme("run", "rms_norm", "--in", "x=x.npy", "--out", "rstd=rstd.npy", "--receipt", "r.json")
        write_trace("trace", two_events([1, 2], [1, 4]))
        with open("k.cu", "w") as file:
            file.write(kernel)

    def test_fault_44_every_verb_says_that_the_disk_is_full(self):
        verbs = re.findall(r"^  ([a-z]+)  ", trireme("--help").stdout.split("Subcommands:")[1], re.M)
        self.assertEqual(sorted(verbs), sorted(printing), "a verb without a case here")
        for each in [["--help"], ["--version"], *([verb, "--help"] for verb in verbs), *sum(printing.values(), [])]:
            good = trireme(*each)
            if good.returncode != 0 and each[0] in ("jit", "tune"):  # no NVRTC, no x86
                continue
            with self.subTest(each), open("/dev/full", "w") as full:
                self.assertEqual(good.returncode, 0, good.stderr)
                done = trireme(*each, stdout=full)
                self.assertEqual((done.returncode, done.stderr),
                                 (2, "trireme: standard output: No space left on device\n"))

    def test_fault_44_a_closed_standard_output_is_no_file(self):
        done = trireme("emit", "rms_norm", "--target", "ptx", "-o", "a.ptx", stdout=None, preexec_fn=lambda: os.close(1))
        self.assertEqual((done.returncode, done.stderr), (2, "trireme: standard output: Bad file descriptor\n"))
        with open("a.ptx") as file:
            self.assertNotIn("a.ptx:", file.read())

    def test_fault_44_errors_into_a_full_disk_keep_their_exit_code(self):
        with open("/dev/full", "w") as full:
            self.assertEqual(trireme("show", "nothing", stderr=full).returncode, 2)
            self.assertEqual(trireme("nonsense", stderr=full).returncode, 2)

    def test_fault_44_a_file_is_replaced_whole_or_not_at_all(self):
        def small_files():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))

        before = b"what was there before"
        cases = {
            "y.npy": ["run", "rms_norm", "--in", "x=x.npy", "--out", "rstd=r.npy", "--out", "y=y.npy"],
            "a.ptx": ["emit", "rms_norm", "--target", "ptx", "-o", "a.ptx"],
            "p.svg": ["bench", "rms_norm 3x7", "--device", "lanes", "--seconds", "0.01", "--svg", "p.svg"],
        }
        for path, arguments in cases.items():
            with open(path, "wb") as file:
                file.write(before)
            os.chmod(path, 0o640)
            there = sorted(os.listdir())
            with self.subTest(path):
                done = trireme(*arguments, preexec_fn=small_files)
                self.assertEqual((done.returncode, done.stderr), (2, f"trireme: {path}: File too large\n"))
                with open(path, "rb") as file:
                    self.assertEqual(file.read(), before)
                self.assertEqual(sorted(os.listdir()), there)  # rstd would have fitted; no leftovers
                self.assertEqual(trireme(*arguments).returncode, 0)
                self.assertGreater(os.path.getsize(path), 1000)
                self.assertEqual(os.stat(path).st_mode & 0o777, 0o640)
                for new in set(os.listdir()) - set(there):
                    os.remove(new)

    def test_fault_44_links_stay_and_devices_are_written_to(self):
        os.symlink("y.npy", "link.npy")
        run = ["run", "rms_norm", "--in", "x=x.npy", "--out"]
        self.assertEqual(trireme(*run, "y=y.npy").returncode, 0)
        self.assertEqual(trireme(*run, "y=link.npy").returncode, 0)
        self.assertTrue(os.path.islink("link.npy"))
        done = trireme(*run, "y=/dev/full")
        self.assertEqual((done.returncode, done.stderr), (2, "trireme: /dev/full: No space left on device\n"))
        self.assertEqual(trireme(*run, "y=/dev/null", "--out", "rstd=/dev/null").returncode, 0)

    def test_fault_44_two_results_into_one_file_are_refused(self):
        os.mkdir("d")
        os.symlink("y.npy", "link.npy")
        for other in ("y.npy", "./y.npy", "d/../y.npy", os.path.abspath("y.npy"), "link.npy"):
            for there in (False, True):
                if there:
                    write_npy("y.npy", 1, 1)
                with self.subTest(other=other, there=there):
                    done = trireme("run", "rms_norm", "--in", "x=x.npy", "--out", "y=y.npy", "--out", f"rstd={other}")
                    self.assertEqual(done.returncode, 2)
                    self.assertIn("are the same file", done.stderr)
                    self.assertEqual(os.path.exists("y.npy"), there)
            os.remove("y.npy")


unittest.main()

"""Usage: json_test.py TRIREME. `--json` of every verb that has it: docs/json.md has the fields, no more and no fewer, and
they say what the text says."""
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

from written_trace import two_events, write_trace

tool = os.path.realpath(sys.argv.pop(1))
page = os.path.join(os.path.dirname(os.path.realpath(__file__)), "../../docs/json.md")
free_keys = {"copies"}  # maps whose keys are names
on_gpus = {"[].host.best_seconds", "[].host.median_seconds"}


def trireme(*arguments, **variables):
    done = subprocess.run([tool, *arguments], capture_output=True, text=True, env={**os.environ, **variables})
    return done.returncode, done.stdout, done.stderr


def documented():
    """The fields of each verb, as the page has them."""
    fields = {}
    with open(page) as file:
        for line in file:
            if head := re.match(r"## `trireme (\w+) --json`", line):
                fields[head[1]] = verb = set()
            elif row := re.match(r"\| `(.*?)` \|", line):
                verb.add(row[1])
    return fields


def paths(value, prefix="", name=""):
    if isinstance(value, list):
        return set().union(*(paths(each, prefix + "[]", name) for each in value), {prefix + "[]"} if not value else set())
    if isinstance(value, dict):
        dot = "." if prefix else ""
        return set().union(*(paths(each, prefix + dot + ("*" if name in free_keys else key), key) for key, each in value.items()))
    return {prefix}


class Json(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        os.environ["TRIREME_CACHE"] = self.cache = folder.name + "/cache"

    def json(self, *arguments, code=0, **variables):
        got, out, err = trireme(*arguments, "--json", **variables)
        self.assertEqual((got, err), (code, ""), arguments)
        value = json.loads(out)
        wanted = documented()[arguments[0]]
        for path in paths(value) - {""}:
            inside = {each for each in wanted if each == path or each.startswith((path + ".", path + "["))}  # null, or empty
            self.assertTrue(inside, f"docs/json.md: {arguments[0]} has no {path}")
        return value

    def complete(self, verb, *values):
        missing = documented()[verb] - set().union(*map(paths, values)) - on_gpus
        self.assertFalse(missing, f"docs/json.md: {verb} never prints {missing}")

    def test_pages_and_verbs_agree(self):
        helps = {verb for verb in re.findall(r"^  ([a-z]+)  ", trireme("--help")[1], re.M) if "--json" in trireme(verb, "--help")[1]}
        self.assertEqual(helps, set(documented()))

    def test_list(self):
        operators = self.json("list")
        self.complete("list", operators)
        text = trireme("list")[1]
        self.assertEqual(text, "".join(f"{each['signature']}\n    {each['purpose']}\n" for each in operators))
        for each in operators:
            self.assertEqual(each["program"], trireme("show", each["name"])[1].split("\n#")[0].rstrip("\n") + "\n")
        rms_norm = next(each for each in operators if each["name"] == "rms_norm")
        self.assertEqual(rms_norm["backward"], trireme("show", "rms_norm", "--backward")[1])
        self.assertEqual([(each["name"], each["kind"], each["spread"], each["default"]) for each in rms_norm["parameters"]],
                         [("x", "operand", "[i,j]", None), ("gamma", "operand", "[j]", 1), ("eps", "constant", None, 1e-6),
                          ("offset", "constant", None, 0), ("y", "result", "[i,j]", None), ("rstd", "result", "[i]", None)])

    def test_verify(self):
        problem = "rms_norm 3x257 x=bf16"
        report = self.json("verify", problem, "rms_norm 2x7 backward", "--device", "lanes")
        self.assertEqual(report["contract"], self.json("doctor")["contract"])
        self.assertEqual((report["comparisons"], report["failed"]), (2, 0))
        differences = report["problems"][1]["differences"]
        self.assertTrue(differences["passed"] and differences["error"] <= differences["bound"])
        first = report["problems"][0]
        self.assertEqual(first["problem"], problem)
        self.assertIn(f"reference    {first['digest']}", trireme("verify", problem, "--device", "lanes")[1])
        self.assertEqual(first["devices"][0], {"device": "lanes", "outcome": "same", "digest": first["digest"], "reason": None,
                                               "element": None, "got": None, "want": None, "rerun": None})
        for each in first["oracle"]:
            self.assertLessEqual(each["error"], each["bound"])
        large = self.json("verify", "rms_norm 2049x2048", "--device", "reference")
        self.assertRegex(large["problems"][0]["without_oracle"], "beyond")
        self.complete("verify", report, {"without_backward": [""]})  # every operator has one

    def test_verify_says_what_it_cannot_do(self):
        missing = self.json("verify", "rms_norm 2x7", "--device", "wasm", code=1, PATH="", TRIREME_WASMTIME="/nowhere")
        self.assertEqual({each["outcome"] for each in missing["problems"][0]["devices"]}, {"missing"})
        self.assertTrue(all(each["reason"] for each in missing["problems"][0]["devices"]))
        code, out, err = trireme("verify", "rms_norm 2x7", "nothing 2x7", "--json")
        self.assertEqual((code, out), (2, ""))
        self.assertIn("nothing", err)

    def test_doctor(self):
        report = self.json("doctor", TRIREME_VERBOSE="0")
        self.complete("doctor", report)
        self.assertIn({"name": "TRIREME_VERBOSE", "value": "0", "state": "right", "reason": None}, report["settings"])
        wrong = self.json("doctor", code=1, TRIREME_THREADS="many", TRIREME_VERBSE="1")
        states = {each["name"]: each["state"] for each in wrong["settings"]}
        self.assertEqual((states["TRIREME_THREADS"], states["TRIREME_VERBSE"], wrong["threads"]), ("wrong", "unknown", None))
        self.assertEqual((report["cache"]["state"], report["cache"]["what"]), ("ready", self.cache))
        text = trireme("doctor")[1]
        for each in report["devices"]:
            self.assertRegex(text, f"(?m)^{re.escape(each['name'])} +{each['state']} +{re.escape(each['what'])}$")
        self.assertIn(f"trireme {report['version']}, contract version {report['contract']}, {report['operators']} operators", text)
        self.assertIn(f"run on {report['cpu_runs_on']}\n", text)

    def test_cache(self):
        self.assertEqual(self.json("cache")["entries"], [])
        with open(self.cache + "/00112233445566778899aabbccddeeff.entry", "wb"):
            pass
        listed = self.json("cache", "list")
        self.complete("cache", listed)
        self.assertEqual((listed["broken"], listed["entries"][0]["broken"], listed["removed"]), (1, "empty", None))
        self.assertRegex(listed["entries"][0]["used"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")
        self.json("cache", "verify", code=1)
        self.assertEqual(self.json("cache", "clear")["removed"], 1)
        off = self.json("cache", TRIREME_CACHE="off")
        self.assertEqual((off["folder"], off["off"]), (None, "TRIREME_CACHE=off"))

    def test_names_that_are_not_utf8(self):
        folder = os.fsdecode(os.fsencode(self.cache) + b"\xff")
        self.assertIn("\ufffd", self.json("cache", TRIREME_CACHE=folder)["folder"])

    def test_drift(self):
        with tempfile.TemporaryDirectory() as folder:
            a, b = folder + "/a", folder + "/b"
            write_trace(a, two_events([1, 2], [1, 4]))
            write_trace(b, two_events([2, 2], [1, 4.000000476837158]), end="ValueError")
            report = self.json("drift", a, b, code=1)
            self.complete("drift", report)
            self.assertEqual((report["aligned"], report["alike"], report["different"], report["runs"][1]["failed"]), (3, 1, 2, "ValueError"))
            parting, = report["partings"]
            self.assertEqual((parting["blame"], parting["inputs"][0]["name"], parting["outputs"][0]["elements"]["ulps"]), ("input", "self", 1))
            self.assertEqual(parting["outputs"][0]["elements"]["b"], "4.0000005 (0x40800001)")
            self.assertTrue(self.json("drift", a, a)["same"])

    def test_bench(self):
        measured = self.json("bench", "rms_norm 8x64", "--device", "lanes", "--seconds", "0.01")
        self.complete("bench", measured)
        self.assertEqual(measured[0]["problem"], "rms_norm 8x64")


unittest.main()

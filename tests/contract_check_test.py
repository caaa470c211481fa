"""contract/check.py, the contract's second implementation: agrees with all vectors, finds what is wrong in a vector or on the
page and names it, and stays small and alone."""
import ast
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
CHECK = ROOT / "contract" / "check.py"


def run(check, *files):
    done = subprocess.run([sys.executable, check, *files], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.returncode, done.stdout


class ContractCheck(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def changed(self, name, change):
        """What check.py says of a file of vectors after a change."""
        content = json.loads((ROOT / "contract" / "vectors" / name).read_text())
        change(content)
        (self.folder / name).write_text(json.dumps(content))
        code, output = run(CHECK, self.folder / name)
        self.assertEqual(code, 1, output)
        return output

    def test_all_vectors_agree(self):
        code, output = run(CHECK)
        self.assertEqual(code, 0, output)
        names = sorted(path.name for path in (ROOT / "contract" / "vectors").glob("*.json"))
        lines = output.splitlines()
        self.assertEqual([line.split(":")[0] for line in lines], names)
        for line in lines:
            agree, _, cases = line.split(": ")[1].split()[:3]
            self.assertEqual(agree, cases.rstrip(","))
            self.assertGreater(int(agree), 0)

    def test_a_row_that_differs_is_named(self):
        def change(content):
            case = next(c for c in content["cases"] if c["name"] == "rotations")
            rows = case["results"][1]["rows"]
            case["results"][1]["rows"] = rows[:8] + ("0" if rows[8] != "0" else "1") + rows[9:]
        output = self.changed("places.json", change)
        self.assertRegex(output, r"FAIL places\.json 'rotations': z row 1: got \w{8}, want \w{8}\n")
        self.assertIn("places.json: 5 of 6 agree", output)

    def test_an_input_that_differs_is_seen_in_its_row(self):
        def change(content):
            case = next(c for c in content["cases"] if c["name"] == "rows picked")
            case["operands"][3]["bits"][4] = "2"             # row 4 goes to entry 2, and no longer to entry 4
        self.assertRegex(self.changed("places.json", change), "FAIL places.json 'rows picked': cache row 2: ")

    def test_digests_of_results_and_of_all_are_compared(self):
        def result(content):
            content["cases"][0]["results"][0]["digest"] = "0" * 32
        self.assertRegex(self.changed("places.json", result), "'rotations': y: got .*, though no row differs")

        def whole(content):
            content["cases"][0]["digest"] = "0" * 32
        self.assertRegex(self.changed("places.json", whole), "'rotations': got .*, though no result differs")

    def test_rows_that_are_missing_are_named(self):
        def change(content):
            content["cases"][0]["results"][0]["rows"] = content["cases"][0]["results"][0]["rows"][:8]
        self.assertRegex(self.changed("places.json", change), r"'rotations': y row 1: got \w{8}, want None")

    def test_blocks_of_rows_are_compared(self):
        def change(content):
            content["row_block"][100][2] += 1
        self.assertRegex(self.changed("row_block.json", change), r"FAIL row_block\.json row_block\(\d+, \d+\): got \d+, want \d+")

    def test_other_versions_and_wrong_programs_are_refused(self):
        self.assertIn("contract 2", self.changed("places.json", lambda content: content.update(contract=2)))

        def change(content):
            content["cases"][0]["program"] = content["cases"][0]["program"].replace("rotate(x, -k)", "rotate(x, k / 4)")
        self.assertIn("'rotations': refused: not a whole number", self.changed("places.json", change))

    def test_the_page_is_what_is_computed(self):
        """A digit of the page's, changed, is seen: nothing stands in its place in the reader."""
        changes = {  # on the page: the vectors that notice, the case
            ("t11 = fma(t10, t7, 0x1.fffffcp-1)", "t11 = fma(t10, t7, 0x1.fffffep-1)"): ("functions_f32", "exp"),
            ("t7 = t6 * t6\nt8 = t7 * t3", "t7 = t6 * t5\nt8 = t7 * t3"): ("folds", "257 columns of f32"),
            ("term = t5 * w", "term = w"): ("folds", "totals of 255 columns of f32"),
            ("| `logsumexp_sum(e)` | logsumexp | `b` |", "| `logsumexp_sum(e)` | logsumexp | `a` |"):
                ("folds", "totals of 255 columns of f64"),
            ("b8fe6c3923a44bbe", "b8fe6c3923a44bbf"): ("places", "rotations")}
        for folder in ("contract", "docs"):
            (self.folder / folder).mkdir()
        shutil.copy(CHECK, self.folder / "contract")
        page = (ROOT / "docs" / "contract.md").read_text()
        for (old, new), (vectors, case) in changes.items():
            self.assertIn(old, page)
            (self.folder / "docs" / "contract.md").write_text(page.replace(old, new, 1))
            code, output = run(self.folder / "contract" / "check.py", ROOT / "contract" / "vectors" / f"{vectors}.json")
            self.assertEqual(code, 1, output)
            self.assertIn(f"FAIL {vectors}.json '{case}'", output)

    def test_it_is_small_and_alone(self):
        text = CHECK.read_text()
        self.assertLessEqual(len(text.splitlines()), 700)
        self.assertLessEqual(max(map(len, text.splitlines())), 128)
        imports = [node for node in ast.walk(ast.parse(text)) if isinstance(node, (ast.Import, ast.ImportFrom))]
        names = {alias.name.split(".")[0] for node in imports if isinstance(node, ast.Import) for alias in node.names}
        names |= {(node.module or "").split(".")[0] for node in imports if isinstance(node, ast.ImportFrom)}
        self.assertLessEqual(names, set(sys.stdlib_module_names))
        self.assertFalse(names & {"ctypes", "importlib", "subprocess"})


if __name__ == "__main__":
    unittest.main()

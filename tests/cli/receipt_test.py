"""Usage: receipt_test.py TRIREME
Receipts: written by `run`, checked by `check`, by all rows and by some, whatever the program reads of its rows; changed
operands, results and receipts are found, and broken receipts are errors.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

tool = str(pathlib.Path(sys.argv[1]).resolve())
folder = pathlib.Path(tempfile.mkdtemp())
failed = 0


def trireme(*words):
    done = subprocess.run([tool, *words], cwd=folder, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def check(code, pattern, *words):
    global failed
    got, output = trireme(*words)
    if got != code or pattern not in output:
        failed += 1
        print(f"FAIL trireme {' '.join(words)}: exit {got}, want {code} and {pattern!r} in: {output}")


def save(name, array):
    np.save(folder / f"{name}.npy", array)


rows, n = 2500, 24
random = np.random.default_rng(1)
save("x", random.standard_normal((rows, n), dtype=np.float32))
save("w", random.standard_normal((4, n), dtype=np.float32))
save("s", random.standard_normal((-(-rows // 7), n), dtype=np.float32))
save("seed", np.array(5, np.int64))
save("p", random.integers(-1, 50, -(-rows // 3)).astype(np.int32))
save("t", random.standard_normal((48, n), dtype=np.float32))
programs = {
    "index": ("(x[i,j]) -> (y[i,j], total[j])\n y = x * i\n total = colsum(x)", ["x"]),
    "wrapped": ("(x[i,j], w[i % 4,j], s[i / 7,j]) -> (y[i,j])\n y = x * w + s", ["x", "w", "s"]),
    "drawn": ("(x[i,j], seed[]) -> (y[i,j])\n y = x * random(seed, 1)", ["x", "seed"]),
    "picked": ("(x[i,j], p[i / 3], t[p,j]) -> (y[i,j])\n y = x + t", ["x", "p", "t"]),
}
for name, (text, operands) in programs.items():
    (folder / f"{name}.row").write_text(name + text + "\n")
    given = [word for each in operands for word in ("--in", f"{each}={each}.npy")]
    total = ["--out", "total=total.npy"] if "total" in text else []
    check(0, "y.npy", "run", f"{name}.row", *given, "--out", "y=y.npy", *total, "--receipt", "r.json")
    text_of_receipt = (folder / "r.json").read_text()
    receipt = json.loads(text_of_receipt)
    canonical = json.dumps(receipt, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    if canonical != text_of_receipt:
        failed += 1
        print("FAIL the receipt is not in canonical form")
    for device in ("reference", "cpu"):
        check(0, "rows 0:2500", "check", "r.json", *given, "--device", device, "--out", "y=y.npy")
        for some, whole in (("0:1", "0:4"), ("1000:1010", "1000:1012"), ("2498:2500", "2496:2500")):
            check(0, f"rows {whole}", "check", "r.json", *given, "--rows", some, "--device", device)
    if total:
        check(0, "left out: it runs over all rows", "check", "r.json", *given, "--rows", "5:6")
    # A result that was never computed so: the receipt's leaf and the array say other bits.
    y = np.load(folder / "y.npy")
    y[1001, 3] += 1
    save("other", y)
    check(1, "y[1001,3]", "check", "r.json", *given, "--out", "y=other.npy", "--rows", "1000:1004")
    x = np.load(folder / "x.npy")
    x[1002, 0] += 1
    save("changed", x)
    changed = ["--in", "x=changed.npy", *given[2:]]
    check(1, "DIFFERS FROM THE RECEIPT: rows 1000:1004", "check", "r.json", *changed)
    if name in ("wrapped", "picked"):  # rows that nobody reads are not looked at
        check(0, "rows 1200:1204", "check", "r.json", *changed, "--rows", "1200:1201")

# Backwards, several normalised axes, no rows; comments are any text, if it is UTF-8.
save("cube", random.standard_normal((30, 4, 6), dtype=np.float32))
save("dy", random.standard_normal((30, 4, 6), dtype=np.float32))
given = ["--in", "x=cube.npy", "--in", "dy=dy.npy", "--set", "eps=1e-5"]
check(0, "dx.npy", "run", "rms_norm", "--backward", *given, "--axes", "2", "--out", "dx=dx.npy", "--receipt", "more.json")
for device in ("reference", "cpu", "wasm"):
    check(0, "rows 3:5", "check", "more.json", *given[:4], "--out", "dx=dx.npy", "--rows", "3:5", "--device", device)
save("none", np.zeros((0, 24), np.float32))
(folder / "index.row").write_text("# \u00e9\u4e2d\U0001f600\n" + (folder / "index.row").read_text())
check(0, "y.npy", "run", "index.row", "--in", "x=none.npy", "--out", "y=y.npy", "--out", "total=total.npy", "--receipt", "more.json")
check(0, "rows 0:0", "check", "more.json", "--in", "x=none.npy")
(folder / "index.row").write_bytes(b"# \xff\n" + (folder / "index.row").read_bytes())
check(2, "not UTF-8", "run", "index.row", "--in", "x=none.npy", "--out", "y=y.npy", "--receipt", "more.json")

# Bound texts, which the contract does not know; what is derived of one is not bound itself.
(folder / "bound.row").write_text("bound(x[i,j]: f32) -> (y[i,j]: f32) in f32\n    y = round_to(x, bf16) * 3\n")
check(0, "y.npy", "run", "bound.row", "--in", "x=x.npy", "--out", "y=y.npy")
check(2, "'bound' is bound", "run", "bound.row", "--in", "x=x.npy", "--out", "y=y.npy", "--receipt", "bound.json")
check(2, "'bound' is bound", "run", "bound.row", "--backward", "--in", "dy=x.npy", "--out", "dx=dx.npy", "--receipt", "bound.json")
if (folder / "bound.json").exists():
    failed += 1
    print("FAIL a receipt of a bound text was written")

# Broken receipts.
given = [word for each in programs["picked"][1] for word in ("--in", f"{each}={each}.npy")]


def broken(pattern, change):
    copy = json.loads(text_of_receipt)
    change(copy)
    (folder / "b.json").write_text(json.dumps(copy))
    check(2, pattern, "check", "b.json", *given)


broken("has no 'shape'", lambda r: r.pop("shape"))
broken("does not know", lambda r: r.update(extra=1))
broken("beyond 2^53", lambda r: r.update(axes=10**30))
broken("should have", lambda r: r.update(shape=[1 << 40, 24]))
broken("2^62", lambda r: r.update(shape=[(1 << 53) - 1, (1 << 53) - 1]))
broken("a list", lambda r: r.update(operands="x"))
broken("leaves", lambda r: r["results"][0]["leaves"].pop())
broken("not that of its leaves", lambda r: r["results"][0].update(digest="0" * 32))
broken("contract version", lambda r: r.update(contract=77))
broken("not that of its text", lambda r: r["program"].update(text="f(x[i,j]) -> (y[i,j])\n y = x"))
broken("compute type", lambda r: r.update(compute="f64"))
for text, pattern in (("", "expected"), ("[" * 100000, "too deeply"), ('{"a":1,"a":2}', "twice"), ("{} x", "behind its end")):
    (folder / "b.json").write_text(text)
    check(2, pattern, "check", "b.json", *given)
for text in (b'{"a":"\xff"}', b'{"a":"\xc0\x80"}', b'{"a":"\xed\xa0\x80"}', b'{"a":"\xe2\x82"}', b'{"a":"\xf4\x90\x80\x80"}'):
    (folder / "b.json").write_bytes(text)
    check(2, "not UTF-8", "check", "b.json", *given)
check(2, "'x' is needed", "check", "r.json", *given[2:])
check(2, "rows 7:7", "check", "r.json", *given, "--rows", "7:7")

# With the results or not at all, and never in the place of one.
kept = np.load(folder / "y.npy")
scaled = ["run", "wrapped.row", "--in", "x=x.npy", "--in", "w=w.npy", "--in", "s=s.npy"]
for place in ("y.npy", "./y.npy"):
    check(2, "same file", *scaled, "--out", "y=y.npy", "--receipt", place)
check(2, "missing/r.json", *scaled, "--out", "y=y.npy", "--receipt", "missing/r.json")
if not np.array_equal(np.load(folder / "y.npy"), kept) or list(folder.glob(".trireme-*")):
    failed += 1
    print("FAIL a result was written without its receipt")

# Signatures.
for each in ("one", "two"):
    subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", f"{each}.pem"], cwd=folder, check=True)
    subprocess.run(["openssl", "pkey", "-in", f"{each}.pem", "-pubout", "-out", f"{each}.pub"], cwd=folder, check=True)
given = ["--in", "x=x.npy", "--in", "w=w.npy", "--in", "s=s.npy"]
check(2, "no cryptographic hash", *scaled, "--out", "y=y.npy", "--receipt", "s.json", "--sign", "one.pem", "--hash", "xxh3-128")
check(2, "no private key", *scaled, "--out", "y=y.npy", "--receipt", "s.json", "--sign", "one.pub")
check(2, "md5", *scaled, "--out", "y=y.npy", "--receipt", "s.json", "--hash", "md5")
check(0, "y.npy", *scaled, "--out", "y=y.npy", "--receipt", "s.json", "--sign", "one.pem")
check(0, "signature    by the key of", "check", "s.json", *given, "--key", "one.pub", "--rows", "0:1")
check(0, "signature    by the key of", "check", "s.json", *given, "--rows", "0:1")
check(1, "BY ANOTHER KEY", "check", "s.json", *given, "--key", "two.pub")
check(1, "MISSING", "check", "r.json", *given, "--key", "one.pub")
check(2, "no public key", "check", "s.json", *given, "--key", "one.pem")
signed = json.loads((folder / "s.json").read_text())
key = signed["signature"]["key"]
check(0, "holds", "check", "s.json", *given, "--key", key, "--rows", "9:10")
report = json.loads(trireme("check", "s.json", *given, "--key", key, "--json")[1])
expected = {"device", "given", "operands", "results", "rows", "signature", "verdict"}
if set(report) != expected or report["verdict"] != "holds" or report["signature"] != {"key": key, "state": "verified"}:
    failed += 1
    print("FAIL check --json:", report)
# What the signature covers is the canonical form without it: another program verifies it.
value = signed.pop("signature")["value"]
(folder / "form").write_text(json.dumps(signed, sort_keys=True, separators=(",", ":"), ensure_ascii=False))
(folder / "value").write_bytes(bytes.fromhex(value))
verified = subprocess.run(["openssl", "pkeyutl", "-verify", "-pubin", "-inkey", "one.pub", "-rawin", "-in", "form", "-sigfile",
                           "value"], cwd=folder, capture_output=True, text=True)
if verified.returncode:
    failed += 1
    print("FAIL openssl says", verified.stdout, verified.stderr)


def changed(value):
    """Another value of the same kind."""
    if isinstance(value, int):
        return value + 1
    if isinstance(value, str):
        return value[:-1] + ("0" if value[-1:] != "0" else "1")
    if isinstance(value, list):
        return value[:-1] if value else ["more"]
    return {**value, "more": 1}


def fields(value, path=()):
    """The paths of all fields, of lists' first entries."""
    for name in value if isinstance(value, dict) else range(min(len(value), 1)) if isinstance(value, list) else ():
        yield (*path, name)
        yield from fields(value[name], (*path, name))


# Every field in turn: the signature or the form says no. Without a signature computing again does.
for name, demands in (("s.json", ["--key", key]), ("more.json", [])):
    if name == "more.json":
        check(0, "y.npy", *scaled, "--out", "y=y.npy", "--receipt", name)
    whole = json.loads((folder / name).read_text())
    for path in fields(whole):
        copy = json.loads(json.dumps(whole))
        place = copy
        for step in path[:-1]:
            place = place[step]
        place[path[-1]] = changed(place[path[-1]])
        (folder / "b.json").write_text(json.dumps(copy))
        code, output = trireme("check", "b.json", *given, *demands)
        if code not in (1, 2) or not output:
            failed += 1
            print(f"FAIL {name} with another {path}: exit {code}, {output}")

# Without libcrypto: said where it is wanted, and nothing but the signature is left unverified.
none = folder / "none"
none.mkdir()
for library in ("libcrypto.so.3", "libcrypto.so.1.1"):
    (none / library).write_text("no library")
os.environ["LD_LIBRARY_PATH"] = str(none)
check(2, "libcrypto.so.3 (or .1.1), which is not here", *scaled, "--out", "y=y.npy", "--receipt", "s2.json", "--sign", "one.pem")
check(2, "libcrypto.so.3", "check", "s.json", *given, "--key", "one.pub")
check(0, "not verified", "check", "s.json", *given, "--rows", "0:1")
sys.exit(1 if failed else 0)

// Receipts over languages: what the command line, Python and JavaScript each write, each of them checks.
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { after, test } from "node:test";

import {
  checkReceipt, compile, load, makeReceipt, parseReceipt, printReceipt, samples, signReceipt, verifySignature,
} from "../../js/trireme.mjs";
import { emit, tool } from "../../js/tests/tool.mjs";
import { compiler } from "./compiler.mjs";

const folder = mkdtempSync(join(tmpdir(), "receipts-"));
after(() => rmSync(folder, { recursive: true }));
const at = (name) => join(folder, name);
const trireme = (...words) => spawnSync(resolve(tool), words, { cwd: folder, encoding: "utf8" });
const python_file = existsSync(".venv/bin/python") ? resolve(".venv/bin/python") : "python3";
const python_package = process.env.TRIREME_PACKAGE ?? resolve("build/release/python");
const python = (text) => execFileSync(python_file, ["-c", `import numpy as np, trireme\n${text}`],
  { cwd: folder, encoding: "utf8", env: { ...process.env, PYTHONPATH: python_package } });

const rows = 1100, columns = 24;  // two rows a block
const x = samples("x", "f32", rows * columns), gamma = samples("gamma", "f32", columns);
const npy = (name, array, shape, type = "<f4") => {
  const extents = shape.map((extent) => `${extent},`).join(" ");
  const dict = `{'descr': '${type}', 'fortran_order': False, 'shape': (${extents}), }`;
  const head = dict.padEnd(117) + "\n";
  const bytes = Buffer.concat([Buffer.from([0x93, ...Buffer.from("NUMPY"), 1, 0, head.length, 0]), Buffer.from(head, "latin1"), Buffer.from(array.buffer)]);
  writeFileSync(at(`${name}.npy`), bytes);
};
npy("x", x, [rows, columns]), npy("gamma", gamma, [columns]);
const generate = (name) => {
  execFileSync("openssl", ["genpkey", "-algorithm", "ed25519", "-out", at(`${name}.pem`)]);
  execFileSync("openssl", ["pkey", "-in", at(`${name}.pem`), "-pubout", "-out", at(`${name}.pub`)]);
};
generate("one"), generate("two");
const text_of = (name) => readFileSync(at(name), "utf8");
const operator_text = compiler.tables.operators.find(({ name }) => name === "rms_norm").text;
const operator = await compile(operator_text, { compiler });
const { y, rstd } = operator.run({ x, gamma, eps: 1e-5 }, { columns });

// By each writer, signed by the same key.
const written = {
  command_line: () => {
    const { status, stderr } = trireme("run", "rms_norm", "--in", "x=x.npy", "--in", "gamma=gamma.npy", "--out", "y=y.npy", "--out",
      "rstd=rstd.npy", "--set", "eps=1e-5", "--receipt", "command_line.json", "--sign", "one.pem");
    assert.equal(status, 0, stderr);
  },
  python: () => python(`
x, gamma = np.load("x.npy"), np.load("gamma.npy")
y, rstd = trireme.rms_norm(x, gamma, eps=1e-5, results="all")
made = trireme.Receipt.of(trireme.rms_norm, {"x": x, "gamma": gamma, "y": y, "rstd": rstd}, eps=1e-5, hash="sha256")
made.sign("one.pem").save("python.json")`),
  javascript: async () => {
    const made = await makeReceipt(operator_text, { x, gamma, y, rstd }, { columns, constants: { eps: 1e-5 }, compiler, hash: "sha256" });
    writeFileSync(at("javascript.json"), printReceipt(await signReceipt(made, text_of("one.pem"))));
  },
};
for (const [name, write] of Object.entries(written)) {
  test(`of ${name}, checked by all`, async () => {
    await write();
    const file = `${name}.json`;
    for (const device of ["reference", "cpu", "wasm"]) {
      const { status, stdout, stderr } = trireme("check", file, "--in", "x=x.npy", "--in", "gamma=gamma.npy", "--key", "one.pub", "--device", device);
      assert.equal(status, 0, stdout + stderr);
    }
    assert.match(python(`
receipt = trireme.Receipt.load("${file}")
arrays = {name: np.load(name + ".npy") for name in ("x", "gamma")}
assert receipt.text == open("${file}", encoding="utf-8").read()
for device in ("reference", "cpu"):
    assert receipt.check(arrays, device=device, key="one.pub"), device
print(receipt.check(arrays, rows=(500, 501), key="one.pub").report["rows"])`), /\[500, 502\]/);
    const receipt = await parseReceipt(text_of(file));
    assert.equal(printReceipt(receipt), text_of(file));
    for (const by of ["module", "reference"])
      for (const wanted of [undefined, [501, 502], [1099, 1100]]) {
        const found = await checkReceipt(receipt, { x, gamma }, { by, compiler, rows: wanted, key: text_of("one.pub") });
        assert.ok(found.passed, JSON.stringify(found));
        assert.deepEqual(found.rows, wanted === undefined ? [0, rows] : wanted[0] === 501 ? [500, 502] : [1098, 1100]);
      }
    await assert.rejects(checkReceipt(receipt, { x, gamma }, { compiler, key: text_of("two.pub") }), /another key/);
    const changed = { ...receipt, shape: [rows + 1, columns] };
    await assert.rejects(verifySignature(changed, text_of("one.pub")), /not one of this receipt/);
    const { signature, ...unsigned } = receipt;
    await assert.rejects(verifySignature(unsigned, text_of("one.pub")), /not signed/);
  });
}

test("what differs is named", async () => {
  const made = await makeReceipt(operator_text, { x, gamma, y, rstd }, { columns, constants: { eps: 1e-5 }, compiler });
  const other = y.slice(), moved = x.slice();
  other[700 * columns + 3] += 1, moved[4 * columns] += 1;
  const given = await checkReceipt(made, { x, gamma, y: other }, { compiler });
  assert.equal(given.passed, false);
  assert.equal(given.results[0].element, "y[700,3]");
  assert.deepEqual(given.given[0].rows, [700, 702]);
  const operands = await checkReceipt(made, { x: moved, gamma }, { compiler });
  assert.deepEqual(operands.operands.at(-1), { name: "x", state: "different", rows: [4, 6] });
  assert.equal(operands.results.length, 0);
  const false_one = await makeReceipt(operator_text, { x, gamma, y: other, rstd }, { columns, constants: { eps: 1e-5 }, compiler });
  const found = await checkReceipt(false_one, { x, gamma }, { compiler });
  assert.deepEqual(found.results[0], { name: "y", state: "different", rows: [700, 702] });
  const kernel = await load(emit("rms_norm"));  // a ready module, without the compiler
  const ready = await makeReceipt(operator_text, { x, gamma, y, rstd }, { columns, constants: { eps: 1e-5, offset: 0 }, kernel });
  assert.ok(printReceipt(ready) === printReceipt(made));
  assert.ok((await checkReceipt(ready, { x, gamma }, { kernel, rows: [9, 10] })).passed);
});

// Rows that are read by other indices, picked or numbered, sums over rows, half and packed types.
const cases = {
  numbered: ["(x[i,j]) -> (y[i,j], total[j])\n y = x * i\n total = colsum(x)\n", ["x"], []],
  drawn: ["(x[i,j], seed[]) -> (y[i,j])\n y = x * random(seed, 1)\n", ["x", "seed"], []],
  picked: ["(x[i,j], p[i / 3], t[p,j]) -> (y[i,j])\n y = x + t\n", ["x", "p", "t"], []],
  halves: ["(h[i,j]) -> (y[i,j])\n y = h + h\n", ["h"], ["--type", "h=bf16"]],
  packed: ["(f[i,j]) -> (y[i,j])\n y = f + f\n", ["f"], ["--type", "f=f4e2m1"]],
  wrapped: ["(x[i,j], w[i % 4,j], s[i / 7,j]) -> (y[i,j])\n y = x * w + s\n", ["x", "w", "s"], []],
};
const w = samples("w", "f32", 4 * columns), s = samples("s", "f32", Math.ceil(rows / 7) * columns);
npy("w", w, [4, columns]), npy("s", s, [Math.ceil(rows / 7), columns]);
const p = Int32Array.from({ length: Math.ceil(rows / 3) }, (_, k) => (k * 7) % 50 - 1), t = samples("t", "f32", 48 * columns);
const h = Uint16Array.from({ length: rows * columns }, (_, k) => (k * 2654435761) >>> 16);  // NaNs of all kinds among them
const f = Uint8Array.from({ length: rows * columns / 2 }, (_, k) => (k * 2654435761) >>> 24), seed = BigInt64Array.of(5n);
npy("p", p, [p.length], "<i4"), npy("t", t, [48, columns]), npy("seed", seed, [], "<i8");
npy("h", h, [rows, columns], "<u2"), npy("f", f, [rows, columns / 2], "|u1");
const arrays = { x, w, s, gamma, p, t, h, f, seed };
for (const [name, [body, operands, options]] of Object.entries(cases)) {
  test(`some rows of ${name}`, async () => {
    writeFileSync(at(`${name}.row`), name + body);
    const total = body.includes("total") ? ["--out", "total=total.npy"] : [];
    const { status, stderr } = trireme("run", `${name}.row`, ...operands.flatMap((each) => ["--in", `${each}=${each}.npy`]), ...options, "--out", "y=y.npy", ...total, "--receipt", `${name}.json`);
    assert.equal(status, 0, stderr);
    const receipt = await parseReceipt(text_of(`${name}.json`)), given = Object.fromEntries(operands.map((each) => [each, arrays[each]]));
    for (const by of ["module", "reference"])
      for (const wanted of [undefined, [0, 1], [555, 560]])
        assert.ok((await checkReceipt(receipt, given, { by, compiler, rows: wanted })).passed, `${by} ${wanted}`);
    if (total.length) assert.equal((await checkReceipt(receipt, given, { compiler, rows: [0, 1] })).results[1].state, "left out");
  });
}
test("a derived backward", async () => {
  const { status, stderr } = trireme("run", "rms_norm", "--backward", "--in", "dy=x.npy", "--in", "x=x.npy", "--in", "gamma=gamma.npy",
    "--out", "dx=dx.npy", "--receipt", "backward.json");
  assert.equal(status, 0, stderr);
  const receipt = await parseReceipt(text_of("backward.json"));
  for (const by of ["module", "reference"])
    assert.ok((await checkReceipt(receipt, { dy: x, x, gamma }, { by, compiler, rows: [7, 9] })).passed, by);
});

test("broken receipts are refused as by the command line", async () => {
  const made = await makeReceipt(operator_text, { x, gamma, y, rstd }, { columns, constants: { eps: 1e-5 }, compiler });
  const text = printReceipt(made);
  const broken = [
    ["", /JSON/], ["{}", /has no/], [text + "x", /JSON/], [text.replace('"axes":1', '"axes":1.0'), /whole/],
    [text.replace('"axes":1', '"axes":1,"axes":1'), /twice/], [text.replace('"receipt":1', '"receipt":2'), /receipt/],
    [text.replace('"axes":1', '"axes":3'), /axes/], [text.replace('"f32"', '"f33"'), /compute|type/],
    [text.replace("xxh3-128", "md5"), /md5/], [text.replace(/"digest":"./, '"digest":"x'), /hex digits/],
  ];
  for (const [changed, pattern] of broken) {
    await assert.rejects(parseReceipt(changed), pattern, changed.slice(0, 60));
    writeFileSync(at("broken.json"), changed);
    assert.equal(trireme("check", "broken.json", "--in", "x=x.npy", "--in", "gamma=gamma.npy").status, 2, changed.slice(0, 60));
  }
  await assert.rejects(checkReceipt({ ...made, contract: 77 }, { x, gamma }, { compiler }), /contract version 77/);
  await assert.rejects(checkReceipt(made, { gamma }, { compiler }), /'x' is needed/);
  await assert.rejects(signReceipt(made, text_of("one.pem")), /no cryptographic hash/);
});

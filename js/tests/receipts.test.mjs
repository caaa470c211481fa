// Receipts by ready modules, without the compiler: what the command line writes is checked here, and what is written here there.
// With the compiler, and with Python: web/tests.
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";

import { checkReceipt, load, makeReceipt, parseReceipt, printReceipt, samples, signReceipt, verifySignature } from "../trireme.mjs";
import { emit, tool } from "./tool.mjs";

const folder = mkdtempSync(join(tmpdir(), "receipts-"));
after(() => rmSync(folder, { recursive: true }));
const at = (name) => join(folder, name), text_of = (name) => readFileSync(at(name), "utf8");
const trireme = (status, ...words) => {
  const done = spawnSync(tool, words, { cwd: folder, encoding: "utf8" });
  assert.equal(done.status, status, done.stdout + done.stderr);
  return done.stdout;
};

const rows = 1100, columns = 24;  // two rows a block
const save = (name, array, shape) => {
  const head = `{'descr': '<f4', 'fortran_order': False, 'shape': (${shape.map((extent) => `${extent},`).join(" ")}), }`.padEnd(117) + "\n";
  const bytes = [Buffer.from([0x93, ...Buffer.from("NUMPY"), 1, 0, head.length, 0]), Buffer.from(head), Buffer.from(array.buffer)];
  writeFileSync(at(`${name}.npy`), Buffer.concat(bytes));
};
const x = samples("x", "f32", rows * columns), gamma = samples("gamma", "f32", columns);
save("x", x, [rows, columns]), save("gamma", gamma, [columns]);
writeFileSync(at("norm.row"), "norm(x[i,j], gamma[j] = 1, eps = 1e-6) -> (y[i,j], rstd[i])\n"
  + "    rstd = rsqrt(mean(x * x) + eps)\n    y = x * rstd * gamma\n");
const text = text_of("norm.row"), given = ["--in", "x=x.npy", "--in", "gamma=gamma.npy"];
const kernel = await load(emit(at("norm.row"))), constants = { eps: 1e-5 };
const { y, rstd } = kernel.run({ x, gamma, ...constants }, { columns });
const made = await makeReceipt(text, { x, gamma, y, rstd }, { columns, constants, kernel });

test("of the command line, checked by a module", async () => {
  trireme(0, "run", "norm.row", ...given, "--out", "y=y.npy", "--out", "rstd=rstd.npy", "--set", "eps=1e-5", "--receipt", "r.json");
  const receipt = await parseReceipt(text_of("r.json"));
  assert.equal(printReceipt(receipt), text_of("r.json"));
  assert.equal(printReceipt(made), text_of("r.json"));
  for (const [wanted, whole] of [[undefined, [0, rows]], [[501, 502], [500, 502]], [[1099, 1100], [1098, 1100]]]) {
    const found = await checkReceipt(receipt, { x, gamma }, { kernel, rows: wanted });
    assert.ok(found.passed, JSON.stringify(found));
    assert.deepEqual(found.rows, whole);
  }
});

test("of a module, signed, checked by the command line", async () => {
  for (const name of ["one", "two"]) {
    execFileSync("openssl", ["genpkey", "-algorithm", "ed25519", "-out", at(`${name}.pem`)]);
    execFileSync("openssl", ["pkey", "-in", at(`${name}.pem`), "-pubout", "-out", at(`${name}.pub`)]);
  }
  const secure = await makeReceipt(text, { x, gamma, y, rstd }, { columns, constants, kernel, hash: "sha256" });
  const receipt = await signReceipt(secure, text_of("one.pem"));
  writeFileSync(at("signed.json"), printReceipt(receipt));
  for (const device of ["reference", "cpu"])
    trireme(0, "check", "signed.json", ...given, "--key", "one.pub", "--device", device);
  trireme(1, "check", "signed.json", ...given, "--key", "two.pub");
  assert.ok((await checkReceipt(receipt, { x, gamma }, { kernel, key: text_of("one.pub") })).passed);
  await assert.rejects(checkReceipt(receipt, { x, gamma }, { kernel, key: text_of("two.pub") }), /another key/);
  await assert.rejects(verifySignature({ ...receipt, shape: [rows + 1, columns] }, text_of("one.pub")), /not one of this receipt/);
  await assert.rejects(signReceipt(made, text_of("one.pem")), /no cryptographic hash/);
});

test("what differs is named", async () => {
  const other = y.slice(), moved = x.slice();
  other[700 * columns + 3] += 1, moved[4 * columns] += 1;
  const false_one = await makeReceipt(text, { x, gamma, y: other, rstd }, { columns, constants, kernel });
  const found = await checkReceipt(false_one, { x, gamma }, { kernel });
  assert.deepEqual([found.passed, found.results[0]], [false, { name: "y", state: "different", rows: [700, 702] }]);
  writeFileSync(at("false.json"), printReceipt(false_one));
  assert.match(trireme(1, "check", "false.json", ...given), /OTHER BITS: rows 700:702\n +these rows have one digest; --out y=FILE/);
  save("other", other, [rows, columns]);
  assert.match(trireme(1, "check", "false.json", ...given, "--out", "y=other.npy"), /OTHER BITS: row 700, y\[700,3\] is .*\n(?!.*FILE)/);
  assert.equal((await checkReceipt(made, { x, gamma, y: other }, { kernel })).results[0].element, "y[700,3]");
  const operands = await checkReceipt(made, { x: moved, gamma }, { kernel });
  assert.deepEqual([operands.operands.at(-1).rows, operands.results.length], [[4, 6], 0]);
});

test("a kernel may make more results than the receipt has, not fewer or others", async () => {
  const fewer = { ...made, results: made.results.filter(({ name }) => name === "y") };
  const receipt = await parseReceipt(JSON.stringify(fewer));
  for (const wanted of [undefined, [501, 502]]) {
    const found = await checkReceipt(receipt, { x, gamma }, { kernel, rows: wanted });
    assert.ok(found.passed, JSON.stringify(found));
    assert.deepEqual(found.results.map(({ name }) => name), ["y"]);
  }
  writeFileSync(at("copy.row"), "copy(x[i,j], gamma[j]) -> (y[i,j])\n    y = x * gamma\n");
  await assert.rejects(checkReceipt(made, { x, gamma }, { kernel: await load(emit(at("copy.row"))) }),
    /its results are y: f32, rstd: f32, the kernel's y: f32/);
});

test("broken receipts, and those of other versions and programs, are refused", async () => {
  const broken = [["", /JSON/], ['"axes":1.0', /whole/], ['"axes":1,"axes":1', /twice/], ['"axes":3', /axes/]];
  for (const [change, pattern] of broken)
    await assert.rejects(parseReceipt(change && printReceipt(made).replace('"axes":1', change)), pattern, change);
  const bound = "norm(x[i,j]: f32) -> (y[i,j]: f32) in f32  # bound\n    y = round_to(x, bf16)\n";
  const digest = createHash("sha256").update(bound).digest("hex");
  const secure = await makeReceipt(`# y: x\n${text}`, { x, gamma, y, rstd }, { columns, constants, kernel, hash: "sha256" });
  await assert.rejects(parseReceipt(printReceipt({ ...secure, program: { text: bound, digest } })), /is bound/);
  await assert.rejects(makeReceipt(bound, { x, gamma, y, rstd }, { columns, constants, kernel }), /is bound/);
  await assert.rejects(checkReceipt({ ...made, contract: 77 }, { x, gamma }, { kernel }), /contract version 77/);
  await assert.rejects(checkReceipt(made, { gamma }, { kernel }), /'x' is needed/);
  await assert.rejects(checkReceipt(made, { x, gamma }, { kernel: await load(emit("softmax")) }), /its operands are/);
});

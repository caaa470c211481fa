// The loader: bits against the reference for every storage type, in chunks, of rows that lie apart.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import { digest, load, loadOperator, probe, samples, xxh3_128 } from "../trireme.mjs";
import { row_block } from "../contract.mjs";
import { digest_of, emit, reference_digests, sampled, trireme } from "./tool.mjs";

const types = (...pairs) => pairs.flatMap((pair) => ["--type", pair]);
test("rows are cut into the blocks that the command line cuts", () => {
  for (const [rows, columns] of [[1, 1], [4096, 64], [5000, 2880], [66000, 200], [130, 8193], [2000, 12288], [32, 131072]]) {
    const bytes = 4 * Math.ceil(rows / row_block(rows, columns)) * (Math.ceil(columns / 64) | 1) * 64;
    const told = trireme("emit", "rms_norm", "--backward", "--target", "wasm", "--rows", String(rows), "--cols", String(columns), "-o", "/dev/null");
    assert.match(told, new RegExp(`, ${bytes} bytes of workspace`));
  }
});

test("this engine keeps subnormals", () => {
  const found = probe();
  assert.equal(found.simd, true);
  assert.equal(found.keepsSubnormals, true);
});

test("XXH3-128 of every kind of length", () => {
  const bytes = Uint8Array.from({ length: 5000 }, (_, k) => (k * k * 7 + k * 131 + 13) >> 2);
  for (const [length, wanted] of [
    [0, "99aa06d3014798d86001c324468d497f"], [3, "ff4a955376e94bdd959ba06c792d6967"],
    [9, "c79720635aa9511635a2c948d47b8b22"], [160, "a3985cc161366b0957f9007d76233acb"],
    [4999, "ce42023b59b2672f1be2646a2c17d9e6"],
  ]) assert.equal(xxh3_128(bytes.subarray(0, length)), wanted, `${length} bytes`);
});

// [operator and shape, options of emit, the rest of the problem line]
const cases = [
  ["rms_norm 7x257", [], ""],
  ["rms_norm 33x4096", ["--absent", "gamma"], "gamma=none"],
  ["rms_norm 5x1000", types("x=bf16", "gamma=bf16", "y=bf16"), "x=bf16"],
  ["rms_norm 3x31", types("x=f16", "gamma=f16", "y=f16"), "x=f16"],
  ["rms_norm 9x300", types("x=f64", "gamma=f64", "y=f64", "rstd=f64"), "x=f64"],
  ["rms_norm 150x300", ["--backward"], "backward"],
  ["layer_norm 9x1024", [], ""],
  ["layer_norm 40x65", ["--backward"], "backward"],
  ["swiglu 7x257", [], ""],
  ["swiglu 5x1000", ["--backward", "--set", "beta=1.702"], "beta=1.702 backward"],
  ["geglu 3x4097", [], ""],
  ["softmax 7x541", [], ""],
  ["softmax 7x541", ["--backward"], "backward"],
  ["rms_norm_quant 5x257", types("q=i8"), "q=i8"],
  ["rms_norm_heads 12x128", ["--set", "heads=4"], "heads=4"],
  ["rms_norm_heads 3001x128", ["--set", "heads=4", "--backward"], "heads=4 backward"],
  ["modulated_layer_norm 200x65", ["--set", "tokens=77", "--backward"], "tokens=77 backward"],
  ["group_norm 8x245", ["--set", "groups=4", "--set", "pixels=49"], "groups=4 pixels=49"],
  ["group_norm 800x245", ["--set", "groups=4", "--set", "pixels=49", "--backward"], "groups=4 pixels=49 backward"],
  ["rms_norm 1x1", [], ""],
  ["rms_norm 0x7", [], ""],
  ["rms_norm 0x7", ["--backward"], "backward"],
];
test("the same bits as the reference, whole and in chunks", async (t) => {
  const wanted = reference_digests(cases.map(([head, , tail]) => `${head} ${tail}`));
  for (const [k, [head, options, tail]] of cases.entries()) {
    const [op, shape] = head.split(" "), [rows, columns] = shape.split("x").map(Number);
    await t.test(`${head} ${tail}`, async () => {
      const bytes = emit(op, "--cols", String(columns), ...options);
      for (const memoryLimit of [undefined, 8 * 65536]) {
        const kernel = await load(bytes, { memoryLimit });
        const results = kernel.run(sampled(kernel, rows, columns), { columns });
        assert.equal(digest_of(kernel, results), wanted[k], `memoryLimit ${memoryLimit}`);
      }
    });
  }
});

test("forward, then backward with what it saved; results into given arrays, again and again", async () => {
  const op = await loadOperator({ forward: emit("rms_norm"), backward: emit("rms_norm", "--backward") });
  const columns = 600, x = samples("x", "f32", 40 * columns), gamma = samples("gamma", "f32", columns);
  const dy = samples("dy", "f32", 40 * columns), y = new Float32Array(40 * columns);
  const { y: same, rstd } = op.forward({ x, gamma }, { columns, into: { y } });
  assert.equal(same, y);
  const { dx, dgamma } = op.backward({ dy, x, gamma, rstd }, { rows: 40 });
  const [wanted] = reference_digests([`rms_norm 40x${columns} backward rstd=none`]);
  assert.equal(digest([["f32", dx], ["f32", dgamma]]), wanted);
  for (const rows of [1, 40, 3]) {
    const part = op.forward({ x: x.subarray(0, rows * columns), gamma }, { columns });
    assert.deepEqual(part.y, y.subarray(0, rows * columns));
  }
});

test("fault 47: sums over everything, beside sums over columns and over rows that share an entry", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "trireme-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const file = join(folder, "p.row");
  writeFileSync(file, "p(x[i,j]) -> (s[], y[i,j], c[j], h[i % 3, j], r[i / 7], g[i % 2, j / 5], m[i, j % 4])\n y = x * 2\n s = colsum(x * x)\n c = colsum(x)\n" +
    " h = colsum(y)\n r = colsum(x)\n g = colsum(x)\n m = colsum(y)\n");
  const [wanted] = reference_digests([`${file} 700x33`]);
  for (const memoryLimit of [undefined, 6 * 65536]) {
    const kernel = await load(emit(file, "--cols", "33"), { memoryLimit });
    assert.equal(digest_of(kernel, kernel.run({ x: samples("x", "f32", 700 * 33) }, { columns: 33 })), wanted, memoryLimit);
  }
});

test("constants travel with the call", async () => {
  const kernel = await load(emit("rms_norm"));
  const x = samples("x", "f32", 7 * 257), gamma = samples("gamma", "f32", 257);
  const [wanted] = reference_digests(["rms_norm 7x257 eps=0.5"]);
  assert.equal(digest_of(kernel, kernel.run({ x, gamma, eps: 0.5 }, { columns: 257 })), wanted);
});

test("many rows through little memory", async () => {
  const rows = 3000, columns = 500, kernel = await load(emit("swiglu"), { memoryLimit: 2 * 65536 });
  const values = { x: new Float32Array(rows * columns).fill(2), gate: samples("gate", "f32", rows * columns) };
  const whole = (await load(emit("swiglu"))).run(values, { columns });
  assert.deepEqual(kernel.run(values, { columns }).y, whole.y);
});

// fault_07 and fault_08 of a loader: q inside qkv, padded rows; what lies between rows stays as it was.
test("rows that lie apart, whole and in chunks", async () => {
  const rows = 45, columns = 300, stride = 333;
  const [wanted, backward] = reference_digests([`rms_norm ${rows}x${columns}`, `rms_norm ${rows}x${columns} backward rstd=none`]);
  const x = samples("x", "f32", rows * columns), gamma = samples("gamma", "f32", columns);
  const dy = samples("dy", "f32", rows * columns);
  const apart = (dense, padding = 7) => {
    const values = new Float32Array(rows * stride).fill(padding);
    for (let row = 0; row < rows; ++row) values.set(dense.subarray(row * columns, (row + 1) * columns), row * stride);
    return { values, stride };
  };
  const together = ({ values }) => {
    const dense = new Float32Array(rows * columns);
    for (let row = 0; row < rows; ++row) dense.set(values.subarray(row * stride, row * stride + columns), row * columns);
    return dense;
  };
  const between = ({ values }) => values.filter((_, k) => k % stride >= columns);
  for (const memoryLimit of [undefined, 4 * 65536]) {
    const kernel = await load(emit("rms_norm"), { memoryLimit });
    const y = { values: apart(x).values.fill(9), stride }, before = between(y);
    const { y: given, rstd } = kernel.run({ x: apart(x), gamma }, { columns, into: { y } });
    assert.equal(given, y.values);
    assert.deepEqual(between(y), before);
    assert.equal(digest([["f32", together(y)], ["f32", rstd]]), wanted);
    // The last row may end with its last value.
    const cut = { values: apart(x).values.subarray(0, (rows - 1) * stride + columns), stride };
    assert.deepEqual(kernel.run({ x: cut, gamma }, { columns }).y, together(y));

    const back = await load(emit("rms_norm", "--backward"), { memoryLimit });
    const { dx, dgamma } = back.run({ dy: apart(dy), x: apart(x), gamma, rstd }, { rows, columns });
    assert.equal(digest([["f32", dx], ["f32", dgamma]]), backward);
  }
  const kernel = await load(emit("rms_norm"));
  const refused = (values, pattern, options) => assert.throws(() => kernel.run({ gamma, ...values }, { columns, ...options }), pattern);
  refused({ x: { values: x, stride: 299 } }, /x: a stride of 299; rows have 300 values/);
  refused({ x: { values: x, stride: "300" } }, /x: a stride of 300; /);
  refused({ x: apart(x), gamma: { values: gamma, stride: 300 } }, /gamma: it has no rows/);
  refused({ x: { stride } }, /x: Float32Array carries f32, got Object/);
  refused({ x: apart(x) }, /y: 600 values, 45 rows a stride of 400 apart want 17900/,
    { into: { y: { values: new Float32Array(600), stride: 400 } } });
});

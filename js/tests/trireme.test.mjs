// The loader: bits against the reference for every storage type, chunks, and what it refuses.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { copyFileSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";

import { digest, load, loadOperator, probe, samples, xxh3_128 } from "../trireme.mjs";
import { row_block } from "../contract.mjs";
import { emit, reference_digests, tool, trireme } from "./tool.mjs";

const types = (...pairs) => pairs.flatMap((pair) => ["--type", pair]);
const digest_of = (kernel, results) =>
  digest(kernel.manifest.results.map(({ name, type }) => [type, results[name]]));
const extent = (axis, count) => (axis ? axis.wrap || Math.ceil(count / axis.divide) : 1);
const sampled = (kernel, rows, columns) =>
  Object.fromEntries(kernel.manifest.operands.filter((operand) => operand.type).map(({ name, type, row, column }) =>
    [name, samples(name, type, extent(row, rows) * extent(column, columns))]));

test("rows are cut into the blocks that the command line cuts", () => {
  for (const [rows, columns] of [[1, 1], [4096, 64], [5000, 2880], [66000, 200], [130, 8193], [2000, 12288], [32, 131072]]) {
    const bytes = 4 * Math.ceil(rows / row_block(rows, columns)) * Math.ceil(columns / 64) * 64;
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
  ["group_norm 8x245", ["--set", "groups=4", "--set", "pixels=49"], "groups=4 pixels=49"],
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
  const { y: same, rstd } = op.forward({ x, gamma }, { into: { y } });
  assert.equal(same, y);
  const { dx, dgamma } = op.backward({ dy, x, gamma, rstd });
  const [wanted] = reference_digests([`rms_norm 40x${columns} backward rstd=none`]);
  assert.equal(digest([["f32", dx], ["f32", dgamma]]), wanted);
  for (const rows of [1, 40, 3]) {
    const part = op.forward({ x: x.subarray(0, rows * columns), gamma });
    assert.deepEqual(part.y, y.subarray(0, rows * columns));
  }
});

test("constants travel with the call", async () => {
  const kernel = await load(emit("rms_norm"));
  const x = samples("x", "f32", 7 * 257), gamma = samples("gamma", "f32", 257);
  const [wanted] = reference_digests(["rms_norm 7x257 eps=0.5"]);
  assert.equal(digest_of(kernel, kernel.run({ x, gamma, eps: 0.5 })), wanted);
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
    const { y: given, rstd } = kernel.run({ x: apart(x), gamma }, { into: { y } });
    assert.equal(given, y.values);
    assert.deepEqual(between(y), before);
    assert.equal(digest([["f32", together(y)], ["f32", rstd]]), wanted);
    // The last row may end with its last value.
    const cut = { values: apart(x).values.subarray(0, (rows - 1) * stride + columns), stride };
    assert.deepEqual(kernel.run({ x: cut, gamma }).y, together(y));

    const back = await load(emit("rms_norm", "--backward"), { memoryLimit });
    const { dx, dgamma } = back.run({ dy: apart(dy), x: apart(x), gamma, rstd });
    assert.equal(digest([["f32", dx], ["f32", dgamma]]), backward);
  }
  const kernel = await load(emit("rms_norm"));
  const refused = (values, pattern, options) => assert.throws(() => kernel.run({ gamma, ...values }, options), pattern);
  refused({ x: { values: x, stride: 299 } }, /x: a stride of 299; rows have 300 values/);
  refused({ x: { values: x, stride: "300" } }, /x: a stride of 300; /);
  refused({ x: apart(x), gamma: { values: gamma, stride: 300 } }, /gamma: it has no rows/);
  refused({ x: { stride } }, /x: Float32Array carries f32, got Object/);
  refused({ x: apart(x) }, /y: 600 values, 45 rows a stride of 400 apart want 17900/,
    { into: { y: { values: new Float32Array(600), stride: 400 } } });
});

test("modules that come with the package", async () => {
  const folder = mkdtempSync(join(tmpdir(), "trireme-"));
  try {
    const { files } = JSON.parse(readFileSync(new URL("../package.json", import.meta.url)));
    for (const name of files.filter((file) => file !== "modules"))
      copyFileSync(new URL(`../${name}`, import.meta.url), join(folder, name));
    execFileSync(process.execPath, [fileURLToPath(new URL("../build.mjs", import.meta.url)), tool, join(folder, "modules")]);
    const installed = await import(pathToFileURL(join(folder, "trireme.mjs")));
    const { forward, backward } = await installed.loadOperator("layer_norm");
    const x = samples("x", "f32", 9 * 70), gamma = samples("gamma", "f32", 70), beta = samples("beta", "f32", 70);
    const [wanted] = reference_digests(["layer_norm 9x70"]);
    const { y, average, rstd } = forward({ x, gamma, beta });
    assert.equal(digest([["f32", y], ["f32", average], ["f32", rstd]]), wanted);
    assert.equal(backward({ dy: x, x, gamma, average, rstd }).dbeta.length, 70);
    await assert.rejects(installed.loadOperator("nothing"), /the package has no module 'nothing/);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

// There is no compiler for TypeScript in the tests: names at least agree, and so do the fields of what is returned.
test("what is exported is declared, and what is declared is exported", async () => {
  const declarations = readFileSync(new URL("../trireme.d.ts", import.meta.url), "utf8");
  const declared = [...declarations.matchAll(/^export (?:declare )?(?:function|const|class) (\w+)/gm)].map((found) => found[1]);
  assert.deepEqual(new Set(declared), new Set(Object.keys(await import("../trireme.mjs"))));
  const fields = (text) => [...text.matchAll(/(\w+)\??:/g)].map((found) => found[1]);
  const of_probe = declarations.match(/function probe\(\): \{([^}]*)\}/)[1];
  assert.deepEqual(new Set(fields(of_probe)), new Set(Object.keys(probe())));
  const kernel = await load(emit("rms_norm"));
  const of_manifest = declarations.match(/interface Manifest \{([^]*?)\n\}/)[1].replace(/\/\*[^]*?\*\//g, "");
  const top = [...of_manifest.matchAll(/^  (\w+)\??:/gm)].map((found) => found[1]);
  assert.deepEqual(new Set(top), new Set(Object.keys(kernel.manifest)));
  for (const name of ["manifest", "run"]) assert.ok(name in kernel);
});

test("fault_28 and fault_29: refusals say what is wrong", async () => {
  const bytes = emit("rms_norm"), kernel = await load(bytes);
  const x = new Float32Array(12), gamma = new Float32Array(4);
  const refused = (values, options, pattern) => assert.throws(() => kernel.run(values, options), pattern);
  refused({ gamma }, {}, /x is missing \(f32\)/);
  refused({ x: new Float64Array(12), gamma }, {}, /x: Float32Array carries f32, got Float64Array/);
  refused({ x: [1, 2, 3, 4], gamma }, {}, /x: Float32Array carries f32, got Array/);
  refused({ x: x.subarray(1), gamma }, {}, /x: 11 values are no whole rows of 4/);
  refused({ x, gamma }, { columns: 6 }, /gamma: 4 values, 2 rows of 6 columns want 6/);
  refused({ x, gamma }, { columns: 0 }, /columns: 0 is no positive integer/);
  refused({ x, gamma: new Float32Array(0) }, {}, /columns: 0 is no positive integer/);
  refused({ x, gamma, z: x }, {}, /no operand 'z'; it has x, gamma, eps/);
  refused({ x, gamma }, { into: { z: x } }, /no result 'z'; it has y, rstd/);
  refused({ x, gamma }, { into: { y: new Float32Array(11) } }, /y: 11 values, 3 rows of 4 columns want 12/);
  refused({ x, gamma, eps: "1" }, {}, /eps: a number, got string/);
  const gone = new Float32Array(12);
  structuredClone(gone.buffer, { transfer: [gone.buffer] });
  refused({ x: gone, gamma }, {}, /x: its buffer is detached/);
  refused({ x, gamma }, { into: { y: gone } }, /y: its buffer is detached/);

  const small = await load(bytes, { memoryLimit: 65536 });
  assert.throws(() => small.run({ x: new Float32Array(20000), gamma: new Float32Array(20000) }), /memoryLimit is 65536/);
  const short = await load(emit("softmax", "--cols", "60"));
  assert.throws(() => short.run({ x: new Float32Array(124) }, { columns: 62 }), /emitted for 60/);
  await assert.rejects(load("rms_norm.wasm"), /give a module's bytes/);
  await assert.rejects(load(new Uint8Array(8)), /no section 'trireme'/);
  await assert.rejects(load(Uint8Array.from(bytes, (byte, k) => (k === 20 ? 255 : byte))),
    WebAssembly.CompileError);
  await assert.rejects(load(emit("rms_norm", "--abi", "kernel")), /no section 'trireme'/);
  await assert.rejects(load(bytes, { memoryLimit: 100 }), /memoryLimit 100/);
  await assert.rejects(load(new Response("", { status: 404, statusText: "Not Found" })), /404 Not Found/);
  const served = await load(new Response(bytes, { headers: { "content-type": "text/plain" } }));
  assert.equal(served.manifest.program, "rms_norm");
});

// Engines that this one is not, played by what they would answer.
test("fault_28: no SIMD, memory that cannot grow", async () => {
  const bytes = emit("rms_norm"), { validate } = WebAssembly, { grow } = WebAssembly.Memory.prototype;
  try {
    WebAssembly.validate = () => false;
    await assert.rejects(load(bytes), /this engine has no WebAssembly SIMD/);
    WebAssembly.validate = validate;
    const kernel = await load(bytes), gamma = new Float32Array(100000);
    WebAssembly.Memory.prototype.grow = () => { throw new RangeError("no"); };
    assert.throws(() => kernel.run({ x: gamma, gamma }), /the engine refuses \d+ bytes of memory; a smaller memoryLimit/);
    WebAssembly.Memory.prototype.grow = grow;
    assert.equal(kernel.run({ x: gamma, gamma }).y.length, 100000);
  } finally {
    WebAssembly.validate = validate;
    WebAssembly.Memory.prototype.grow = grow;
  }
});

test("relaxed modules load only where relaxed_madd is fused", async (t) => {
  const bytes = emit("softmax", "--arch", "relaxed", "--cols", "541");
  if (!probe().fused) {
    await assert.rejects(load(bytes), /emit the module with --arch simd128/);
    return t.skip("relaxed_madd is missing or not fused here");
  }
  const kernel = await load(bytes), [wanted] = reference_digests(["softmax 7x541"]);
  assert.equal(digest_of(kernel, kernel.run(sampled(kernel, 7, 541), { columns: 541 })), wanted);
});

// What the loader refuses, and in which words.
import assert from "node:assert/strict";
import { test } from "node:test";
import { runInNewContext } from "node:vm";

import { load, samples } from "../trireme.mjs";
import { digest_of, emit, reference_digests, sampled } from "./tool.mjs";

test("fault_28 and fault_29: refusals say what is wrong", async () => {
  const bytes = emit("rms_norm"), kernel = await load(bytes);
  const x = new Float32Array(12), gamma = new Float32Array(4);
  const refused = (values, options, pattern) => assert.throws(() => kernel.run(values, { columns: 4, ...options }), pattern);
  refused({ gamma }, {}, /x is missing \(f32\)/);
  refused({ x: new Float64Array(12), gamma }, {}, /x: Float32Array carries f32, got Float64Array/);
  refused({ x: [1, 2, 3, 4], gamma }, {}, /x: Float32Array carries f32, got Array/);
  refused({ x: null, gamma }, {}, /x: Float32Array carries f32, got null/);
  refused({ x: x.subarray(1), gamma }, {}, /x: 11 values are no whole rows of 4/);
  refused({ x, gamma }, { columns: 6 }, /gamma: 4 values, 2 rows of 6 columns want 6/);
  refused({ x, gamma }, { columns: 0 }, /columns: 0 is no positive integer/);
  refused({ x, gamma }, { columns: undefined, rows: 5 }, /x: 12 values are no 5 whole rows/);
  refused({ x, gamma }, { rows: 2 }, /x: 12 values, 2 rows of 4 columns want 8/);
  refused({ x, gamma, z: x }, {}, /rms_norm has no operand 'z'; it has x, gamma, eps/);
  refused({ x, gamma }, { into: { z: x } }, /no result 'z'; it has y, rstd/);
  refused({ x, gamma }, { into: { y: new Float32Array(11) } }, /y: 11 values, 3 rows of 4 columns want 12/);
  refused({ x, gamma, eps: "1" }, {}, /eps: a number, got string/);
  const gone = new Float32Array(12);
  structuredClone(gone.buffer, { transfer: [gone.buffer] });
  refused({ x: gone, gamma }, {}, /x: its buffer is detached/);
  refused({ x, gamma }, { into: { y: gone } }, /y: its buffer is detached/);

  const small = await load(bytes, { memoryLimit: 65536 });
  assert.throws(() => small.run({ x: new Float32Array(20000), gamma: new Float32Array(20000) }, { rows: 1 }), /memoryLimit is 65536/);
  const short = await load(emit("softmax", "--cols", "60"));
  assert.throws(() => short.run({ x: new Float32Array(124) }, { columns: 62 }), /emitted for 60/);
  await assert.rejects(load("rms_norm.wasm"), /give a module's bytes/);
  await assert.rejects(load(Uint8Array.from(bytes, (byte, k) => (k === 20 ? 255 : byte))), WebAssembly.CompileError);
  await assert.rejects(load(bytes, { memoryLimit: 100 }), /memoryLimit 100/);
  await assert.rejects(load(new Response("", { status: 404, statusText: "Not Found" })), /404 Not Found/);
  const served = await load(new Response(bytes, { headers: { "content-type": "text/plain" } }));
  assert.equal(served.manifest.program, "rms_norm");
  assert.equal((await load(new Blob([bytes]))).manifest.program, "rms_norm");
  assert.equal((await load(new WebAssembly.Module(bytes))).manifest.program, "rms_norm");
});

test("fault 65: what is no module of ours is called what it is", async () => {
  const bytes = emit("rms_norm"), refused = (source, pattern) => assert.rejects(load(source), pattern);
  const text = (string) => new TextEncoder().encode(string);
  await refused(text("<!doctype html>\n<title>404</title>"), /load: this is text, no WebAssembly module; it begins "<!doctype html>\\n<title>404/);
  await refused(new Response("Not found"), /this is text, no WebAssembly module; it begins "Not found"/);
  await refused(new Uint8Array(0), /load: there are no bytes/);
  await refused(new Uint8Array(8), /no WebAssembly module; it begins with the bytes 00 00 00 00/);
  await refused(Uint8Array.of(0, 0x61, 0x73, 0x6d, 0x0d, 0, 1, 0), /WebAssembly of version 0x1000d; modules have 1/);
  // Every length: cut between two sections, a module is whole and lacks what stands behind.
  const missing = new Set();
  for (let length = 1; length < bytes.length; ++length)
    await load(bytes.subarray(0, length)).then(() => assert.fail(`loaded ${length} bytes`),
      ({ message }) => missing.add(message.replace(/\d+/, "N")));
  assert.deepEqual(missing, new Set(["load: the module is cut short after N bytes",
    "load: this WebAssembly module has no section 'trireme'; `trireme emit ... --target wasm` writes one"]));
  for (const arch of ["simd128", "relaxed"])
    await refused(emit("swiglu", "--abi", "kernel", "--arch", arch), /this is a module of the kernel ABI.*emit it without --abi/);
  await refused(new WebAssembly.Module(emit("swiglu", "--abi", "kernel")), /this is a module of the kernel ABI/);
  const damaged = Buffer.from(bytes), at = damaged.indexOf('{"format":2');
  damaged.write("[", at);
  await refused(damaged, /the module is damaged: its section 'trireme' is no JSON/);
  const newer = Buffer.from(bytes);
  newer.write('{"format":3', at);
  await refused(newer, /manifest format 3; this loader knows 2/);
});

test("fault 65: misspelt names are errors", async () => {
  const bytes = emit("rms_norm"), kernel = await load(bytes), x = new Float32Array(12), gamma = new Float32Array(4);
  await assert.rejects(load(bytes, { memorylimit: 1 << 20 }), /load has no option 'memorylimit'; it has memoryLimit/);
  await assert.rejects(load(bytes, 1 << 20), /load: options by name, got Number/);
  const refused = (values, options, pattern) => assert.throws(() => kernel.run(values, options), pattern);
  refused({ x, gamma }, { colums: 4 }, /rms_norm: run has no option 'colums'; it has rows, columns, into, inPlace/);
  refused({ x, gamma }, { columns: 4, inplace: { y: "x" } }, /no option 'inplace'/);
  refused({ x, gamma }, 4, /run: options by name, got Number/);
  refused(x, { columns: 4 }, /operands by name, got Float32Array/);
  refused({ x: { values: x, strid: 4 }, gamma }, { columns: 4 }, /x has no field 'strid'; it has values, stride/);
  assert.throws(() => samples("x", "f32", 4, { hi: 1 }), /samples has no option 'hi'; it has seed, low, high/);
});

test("fault 65: a vector of a length that divides makes no other rows", async () => {
  const kernel = await load(emit("rms_norm")), x = samples("x", "f32", 12);
  assert.throws(() => kernel.run({ x, gamma: new Float32Array(2) }), /rms_norm: say the shape, \{ columns \} or \{ rows \}/);
  assert.throws(() => kernel.run({ x, gamma: new Float32Array(2) }, { columns: 4 }), /gamma: 2 values, 3 rows of 4 columns want 4/);
  assert.throws(() => kernel.run({ x, gamma: new Float32Array(2) }, { rows: 3 }), /gamma: 2 values, 3 rows of 4 columns want 4/);
  const gamma = samples("gamma", "f32", 4);
  assert.deepEqual(kernel.run({ x, gamma }, { rows: 3 }), kernel.run({ x, gamma }, { columns: 4 }));
});

test("fault 65: arrays of another realm", async () => {
  const realm = runInNewContext("({ Float32Array, ArrayBuffer, Uint8Array })");
  const bytes = emit("rms_norm"), foreign = realm.Uint8Array.from(bytes);
  assert.ok(!(foreign instanceof Uint8Array));
  const kernel = await load(foreign);
  assert.equal((await load(foreign.buffer)).manifest.program, "rms_norm");
  const [wanted] = reference_digests(["rms_norm 7x257"]), { x, gamma } = sampled(kernel, 7, 257);
  const y = new realm.Float32Array(x.length);
  const results = kernel.run({ x: realm.Float32Array.from(x), gamma: realm.Float32Array.from(gamma) }, { columns: 257, into: { y } });
  assert.equal(results.y, y);
  assert.equal(digest_of(kernel, results), wanted);
});

test("modules in shared memory", async () => {
  const bytes = emit("rms_norm"), shared = new Uint8Array(new SharedArrayBuffer(bytes.length));
  shared.set(bytes);
  assert.equal((await load(shared)).manifest.program, "rms_norm");
  assert.equal((await load(shared.buffer)).manifest.program, "rms_norm");
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
    assert.throws(() => kernel.run({ x: gamma, gamma }, { rows: 1 }), /the engine refuses \d+ bytes of memory; a smaller memoryLimit/);
    WebAssembly.Memory.prototype.grow = grow;
    assert.equal(kernel.run({ x: gamma, gamma }, { rows: 1 }).y.length, 100000);
  } finally {
    WebAssembly.validate = validate;
    WebAssembly.Memory.prototype.grow = grow;
  }
});


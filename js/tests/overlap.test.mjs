// Results that share memory with operands or with each other: refused, judged by elements.
import assert from "node:assert/strict";
import { test } from "node:test";

import { overlap, placed } from "../arrays.mjs";
import { load, samples } from "../trireme.mjs";
import { emit } from "./tool.mjs";

const axis = { divide: 1, wrap: 0 };
const spec = (type) => ({ name: "a", type, row: axis, column: axis });

test("fault 62: overlap agrees with all pairs of bytes", () => {
  let state = 1;
  const pick = (low, high) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return low + ((state >>> 8) % (high - low + 1));
  };
  const buffer = new ArrayBuffer(400), classes = { i8: Int8Array, f16: Uint16Array, f32: Float32Array };
  const counts = { none: 0, identical: 0, some: 0 };
  const make = (type = ["i8", "f16", "f32"][pick(0, 2)], rows = pick(0, 5), columns = pick(1, 5), stride = pick(columns, 9)) => {
    const size = classes[type].BYTES_PER_ELEMENT, values = new classes[type](buffer, size * pick(0, 15), rows * stride);
    return { type, rows, columns, stride, values };
  };
  const bytes = ({ rows, columns, stride, values: { byteOffset, BYTES_PER_ELEMENT: size } }) => {
    const found = new Set();
    for (let row = 0; row < rows; ++row)
      for (let k = 0; k < columns * size; ++k) found.add(byteOffset + row * stride * size + k);
    return found;
  };
  for (let round = 0; round < 60000; ++round) {
    const a = make(), b = round % 3 ? make() : make(a.type, a.rows, a.columns, a.stride);
    const place = ({ type, rows, columns, stride, values }) => placed(spec(type), { array: values, stride }, rows, columns);
    const said = overlap(place(a), place(b)), of_b = bytes(b);
    ++counts[said];
    assert.equal(said !== "none", [...bytes(a)].some((each) => of_b.has(each)), JSON.stringify([round, a, b]));
    if (said === "identical") assert.deepEqual([...bytes(a)], [...of_b]);
  }
  for (const each of Object.keys(counts)) assert.ok(counts[each] > 1000, `${each}: ${counts[each]}`);
  const alone = () => placed(spec("i8"), { array: new Int8Array(8) }, 2, 4);
  assert.equal(overlap(alone(), alone()), "none");
});

// Row by row that would take days.
test("fault 62: however many interleaved rows are judged at once", () => {
  const buffer = new ArrayBuffer(0);
  const half = (byteOffset) => ({
    array: { buffer, BYTES_PER_ELEMENT: 4 }, bytes: { byteOffset }, width: 2, height: 2 ** 40, row_bytes: 8, stride_bytes: 16,
  });
  assert.equal(overlap(half(0), half(8)), "none");
  assert.equal(overlap(half(0), half(4)), "some");
  assert.equal(overlap(half(16 * 2 ** 39), half(12)), "some");
  assert.equal(overlap(half(16), half(16)), "identical");
});

// More than two chunks of 2 MiB.
const rows = 2000, columns = 600;
const gamma = samples("gamma", "f32", columns);

test("fault 62: results that overlap operands in part are refused", async () => {
  const kernel = await load(emit("rms_norm"));
  const memory = new Float32Array((rows + 1) * columns), x = memory.subarray(0, rows * columns);
  const refused = (values, options, pattern) => assert.throws(() => kernel.run(values, { columns, ...options }), pattern);
  const partly = /rms_norm: y and x: the result overlaps the operand in part; they may be disjoint/;
  refused({ x, gamma }, { into: { y: memory.subarray(columns) } }, partly);
  refused({ x: memory.subarray(columns), gamma }, { into: { y: x } }, partly);
  refused({ x, gamma }, { into: { y: memory.subarray(1, 1 + rows * columns) } }, partly);
  refused({ x, gamma }, { into: { rstd: memory.subarray(7, 7 + rows) } }, /rstd and x: the result overlaps the operand in part/);
  const y = new Float32Array(rows * columns);
  refused({ x: y.slice(), gamma: memory.subarray(0, columns) }, { into: { y, rstd: memory.subarray(100, 100 + rows) } },
    /rstd and gamma: the result overlaps/);
  refused({ x, gamma }, { inPlace: { y: "x" }, into: { y: memory.subarray(columns) } },
    /y and x: the result overlaps the operand in part; they may be identical or disjoint/);
  // Undeclared, and over another operand than the one declared.
  refused({ x, gamma }, { into: { y: x } }, /y and x: the result lies on the operand; say so: \{ inPlace: \{ y: "x" \} \}/);
  const swiglu = await load(emit("swiglu"));
  assert.throws(() => swiglu.run({ x, gate: x }, { columns, inPlace: { y: "x" } }), /y and gate: the result lies on the operand/);
});

test("fault 62: two results in one array are refused", async () => {
  const kernel = await load(emit("layer_norm")), x = samples("x", "f32", rows * columns), beta = gamma.slice();
  const both = new Float32Array(rows + 5);
  const run = (into) => kernel.run({ x, gamma, beta }, { columns, into });
  const average = both.subarray(0, rows);
  assert.throws(() => run({ average, rstd: average }), /layer_norm: average and rstd: two results share memory/);
  assert.throws(() => run({ average, rstd: both.subarray(5) }), /two results share memory/);
  const { average: first, rstd: second } = run({}), together = new Float32Array(2 * rows);
  run({ average: together.subarray(0, rows), rstd: together.subarray(rows) });
  assert.deepEqual(together, Float32Array.of(...first, ...second));
});

test("fault 62: interleaved halves are disjoint", async () => {
  const kernel = await load(emit("swiglu")), packed = samples("packed", "f32", 2 * rows * columns);
  const half = (at) => ({ values: packed.subarray(at, at + (2 * rows - 1) * columns), stride: 2 * columns });
  const dense = (at) => packed.filter((_, k) => k % (2 * columns) >= at && k % (2 * columns) < at + columns);
  const gate = dense(0), x = dense(columns), { y } = kernel.run({ x, gate }, { columns });
  const out = new Float32Array(rows * columns);
  assert.deepEqual(kernel.run({ x: half(columns), gate: half(0) }, { columns, into: { y: out } }).y, y);
  // Written onto a half, beside the other.
  kernel.run({ x, gate: half(0) }, { columns, into: { y: half(columns) } });
  assert.deepEqual([dense(0), dense(columns)], [gate, y]);
  assert.throws(() => kernel.run({ x, gate: half(0) }, { columns, into: { y: half(columns - 1) } }), /y and gate: the result overlaps/);
});

test("fault 62: in place where declared, whole and in chunks", async () => {
  for (const memoryLimit of [undefined, 4 * 65536]) {
    const kernel = await load(emit("rms_norm"), { memoryLimit }), x = samples("x", "f32", rows * columns);
    const { y } = kernel.run({ x, gamma }, { columns });
    const over = x.slice();
    assert.equal(kernel.run({ x: over, gamma }, { columns, inPlace: { y: "x" } }).y, over);
    assert.deepEqual(over, y);
    const again = x.slice(), same = new Float32Array(again.buffer);
    kernel.run({ x: again, gamma }, { columns, inPlace: { y: "x" }, into: { y: same } });
    assert.deepEqual(again, y);
    const elsewhere = new Float32Array(x.length);
    assert.equal(kernel.run({ x, gamma }, { columns, inPlace: { y: "x" }, into: { y: elsewhere } }).y, elsewhere);
    assert.deepEqual(x, samples("x", "f32", rows * columns));
  }
  const kernel = await load(emit("rms_norm", "--type", "x=bf16", "--type", "y=f32"));
  const values = { x: new Uint16Array(4), gamma: new Float32Array(4) };
  const refused = (inPlace, pattern) => assert.throws(() => kernel.run(values, { columns: 4, inPlace }), pattern);
  refused({ y: "x" }, /in place, 'y' over 'x': elements of f32 and bf16 differ in size/);
  refused({ y: "gamma" }, /in place, 'y' over 'gamma': both must be \[i,j\], or both \[i\]/);
  refused({ y: "eps" }, /in place, 'y' over 'eps': the second is the name of an operand/);
  refused({ y: "z" }, /in place, 'y' over 'z': the second/);
  refused({ z: "x" }, /no result 'z'; it has y, rstd/);
});

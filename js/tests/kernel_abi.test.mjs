// A host of the kernel ABI written from docs/kernel-abi.md alone, good and bad descriptors, bits against the reference.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import { digest } from "../digest.mjs";
import { samples } from "../samples.mjs";
import { emit, reference_digests } from "./tool.mjs";

const names = ["rms_norm", "swiglu", "geglu"];
const bytes_of = Object.fromEntries(["simd128", "compact", "scalar"].map((arch) =>
  [arch, Object.fromEntries(names.map((name) => [name, emit(name, "--abi", "kernel", "--arch", arch)]))]));
const modules_of = Object.fromEntries(Object.entries(bytes_of).map(([arch, bytes]) =>
  [arch, Object.fromEntries(names.map((name) => [name, new WebAssembly.Module(bytes[name])]))]));
const modules = modules_of.simd128;
const page = 65536;

// Allocates upwards from `base`: 0 as some hosts do, or __heap_base. Memory ends `spare` bytes behind what is allocated.
class Host {
  constructor(name, { base = 0, arch = "simd128" } = {}) {
    this.exports = new WebAssembly.Instance(modules_of[arch][name]).exports;
    this.top = base === "heap" ? this.exports.__heap_base.value : base;
  }
  get view() { return new DataView(this.exports.memory.buffer); }
  alloc(bytes) {
    const at = (this.top + 15) & ~15;
    this.top = at + bytes;
    const missing = Math.ceil(this.top / page) - this.exports.memory.buffer.byteLength / page;
    if (missing > 0) this.exports.memory.grow(missing);
    return at;
  }
  put(array) {
    const at = this.alloc(array.byteLength);
    new Float32Array(this.exports.memory.buffer, at, array.length).set(array);
    return [at, array.byteLength];
  }
  room(count) { return [this.alloc(4 * count), 4 * count]; }
  floats([at, bytes]) { return new Float32Array(this.exports.memory.buffer.slice(at, at + bytes)); }
  u32s(values) {
    const at = this.alloc(4 * values.length);
    values.forEach((value, k) => this.view.setUint32(at + 4 * k, value, true));
    return [at, 4 * values.length];
  }
  descriptor(...pairs) { return this.u32s(pairs.flat())[0]; }
}
const bits = (value) => new Uint32Array(new Float32Array([value]).buffer)[0];
const none = [0, 0];

const rms_params = (host, { eps, rows, columns, weight, rms, dweight, v1 = true }) =>
  host.u32s([bits(eps), columns, rows, ...(v1 ? [] : [0, ...(weight ?? none), ...(rms ?? none), ...(dweight ?? none)])]);
const gated_params = (host, { beta, rows, columns, x, dgate, v1 = true }) =>
  host.u32s([rows, columns, bits(beta), ...(v1 ? [] : [0, ...(x ?? none), ...(dgate ?? none)])]);

// As the page says; a host may give more.
const workspace_bytes = (rows, columns) => {
  const most = columns <= 8192 ? 2 ** Math.floor(Math.log2(Math.min(8192, Math.floor(2 ** 20 / columns))))
                               : Math.max(8, Math.min(120, Math.floor((15 * 2 ** 17) / columns)));
  const block = Math.max(1, Math.ceil(rows / most), Math.min(16, Math.ceil(rows / 128)));
  return 4 * Math.ceil(rows / block) * Math.ceil(columns / 64) * 64;
};

const shapes = [[7, 257], [1, 1], [1, 4097], [33, 1], [300, 31], [5, 541], [129, 130], [2100, 60]];
const long = [[2, 65537]];  // from one base only: digests take their time
const eps = Math.fround(1e-5), beta = Math.fround(1.702);

for (const [arch, base] of [["simd128", 0], ["simd128", 24], ["simd128", "heap"], ["compact", 24], ["compact", "heap"],
                            ["scalar", 24], ["scalar", "heap"]]) {
  test(`rmsnorm_f32 ${arch} forward and backward, host allocates from ${base}`, () => {
    const tried = base === 24 ? [...shapes, ...long] : shapes;
    const lines = tried.flatMap(([rows, columns]) => {
      const line = `rms_norm ${rows}x${columns} eps=${eps}`;
      return [line, `${line} backward rstd=none gamma=none dgamma=none`, `${line} backward rstd=none`];
    });
    const wanted = reference_digests(lines);
    tried.forEach(([rows, columns], k) => {
      const host = new Host("rms_norm", { base, arch });
      const { kernel_forward, kernel_backward } = host.exports;
      const x = host.put(samples("x", "f32", rows * columns)), gamma = host.put(samples("gamma", "f32", columns));
      const dy = host.put(samples("dy", "f32", rows * columns));
      const y = host.room(rows * columns), rms = host.room(rows), dx = host.room(rows * columns);
      const dweight = host.room(columns), work = [host.alloc(workspace_bytes(rows, columns)), workspace_bytes(rows, columns)];
      const sizes = { eps, rows, columns };
      const params = rms_params(host, sizes);
      const before = new Uint8Array(host.exports.memory.buffer.slice(0));
      const untouched = (...written) => {
        const after = new Uint8Array(host.exports.memory.buffer.slice(0, before.length));
        for (const [at, bytes] of written) after.set(before.subarray(at, at + bytes), at);
        assert.ok(Buffer.from(after).equals(Buffer.from(before)), "bytes of the host were changed");
      };
      const forward = host.descriptor(x, gamma, y, rms, params), without = host.descriptor(x, gamma, y, none, params);
      before.set(new Uint8Array(host.exports.memory.buffer, 0, before.length));
      assert.equal(kernel_forward(forward), 0);
      untouched(y, rms);
      const rstd = host.floats(rms).map((value) => 1 / value);
      assert.equal(digest([["f32", host.floats(y)], ["f32", rstd]]), wanted[3 * k], lines[3 * k]);
      new Uint8Array(host.exports.memory.buffer, ...y).fill(0xa5);
      assert.equal(kernel_forward(without), 0);
      assert.equal(digest([["f32", host.floats(y)], ["f32", rstd]]), wanted[3 * k], "without scratch");

      assert.equal(kernel_backward(host.descriptor(dy, x, dx, none, params)), 0);
      assert.equal(digest([["f32", host.floats(dx)]]), wanted[3 * k + 1], lines[3 * k + 1]);

      for (const given of [undefined, rms]) {
        new Uint8Array(host.exports.memory.buffer, ...dx).fill(0xa5);
        new Uint8Array(host.exports.memory.buffer, ...dweight).fill(0xa5);
        const full = rms_params(host, { ...sizes, weight: gamma, rms: given, dweight, v1: false });
        assert.equal(kernel_backward(host.descriptor(dy, x, dx, work, full)), 0);
        assert.equal(digest([["f32", host.floats(dx)], ["f32", host.floats(dweight)]]), wanted[3 * k + 2], lines[3 * k + 2]);
        const only_dx = rms_params(host, { ...sizes, weight: gamma, rms: given, v1: false });
        new Uint8Array(host.exports.memory.buffer, ...dx).fill(0xa5);
        assert.equal(kernel_backward(host.descriptor(dy, x, dx, none, only_dx)), 0);
        assert.equal(digest([["f32", host.floats(dx)], ["f32", host.floats(dweight)]]), wanted[3 * k + 2]);
        const no_weight = rms_params(host, { ...sizes, rms: given, v1: false });
        assert.equal(kernel_backward(host.descriptor(dy, x, dx, none, no_weight)), 0);
        assert.equal(digest([["f32", host.floats(dx)]]), wanted[3 * k + 1]);
        const plain_dweight = rms_params(host, { ...sizes, rms: given, dweight, v1: false });
        assert.equal(kernel_backward(host.descriptor(dy, x, dx, work, plain_dweight)), 0);
        assert.equal(digest([["f32", host.floats(dx)]]), wanted[3 * k + 1]);
      }

      // In place: the results stand exactly on an operand.
      const copy = host.put(samples("x", "f32", rows * columns));
      assert.equal(kernel_forward(host.descriptor(copy, gamma, copy, none, params)), 0);
      assert.equal(digest([["f32", host.floats(copy)], ["f32", rstd]]), wanted[3 * k], "in place");
      const over_dy = host.put(samples("dy", "f32", rows * columns));
      assert.equal(kernel_backward(host.descriptor(over_dy, x, over_dy, none, params)), 0);
      assert.equal(digest([["f32", host.floats(over_dy)]]), wanted[3 * k + 1], "backward in place");
    });
  });
}

for (const [op, arch] of ["swiglu", "geglu"].flatMap((op) => Object.keys(modules_of).map((arch) => [op, arch]))) {
  test(`${op}_f32 ${arch} forward and backward`, () => {
    const constant = op === "swiglu" ? ` beta=${beta}` : "";
    const lines = shapes.flatMap(([rows, columns]) => {
      const line = `${op} ${rows}x${columns}${constant}`;
      return [line, `${line} backward dgate=none`, `${line} backward`];
    });
    const wanted = reference_digests(lines);
    shapes.forEach(([rows, columns], k) => {
      const host = new Host(op, { arch }), count = rows * columns;
      const { kernel_forward, kernel_backward } = host.exports;
      const place = (name) => host.put(samples(name, "f32", count));
      const x = place("x"), gate = place("gate"), dy = place("dy"), out = host.room(count), dgate = host.room(count);
      const params = gated_params(host, { beta, rows, columns });
      assert.equal(kernel_forward(host.descriptor(x, gate, out, none, params)), 0);
      assert.equal(digest([["f32", host.floats(out)]]), wanted[3 * k], lines[3 * k]);
      assert.equal(kernel_backward(host.descriptor(dy, gate, out, none, params)), 0);
      assert.equal(digest([["f32", host.floats(out)]]), wanted[3 * k + 1], lines[3 * k + 1]);
      const full = gated_params(host, { beta, rows, columns, x, dgate, v1: false });
      assert.equal(kernel_backward(host.descriptor(dy, gate, out, none, full)), 0);
      const both = (one, two) => digest([["f32", host.floats(one)], ["f32", host.floats(two)]]);
      assert.equal(both(out, dgate), wanted[3 * k + 2], lines[3 * k + 2]);
      const only_x = gated_params(host, { beta, rows, columns, x, v1: false });
      assert.equal(kernel_backward(host.descriptor(dy, gate, out, none, only_x)), 0);
      assert.equal(digest([["f32", host.floats(out)]]), wanted[3 * k + 1]);

      // Both results in place, each pair of operands in turn.
      for (const [dx_over, dgate_over] of [["dy", "gate"], ["dy", "x"], ["gate", "dy"], ["gate", "x"]]) {
        const at = { x: place("x"), gate: place("gate"), dy: place("dy") };
        const in_place = gated_params(host, { beta, rows, columns, x: at.x, dgate: at[dgate_over], v1: false });
        assert.equal(kernel_backward(host.descriptor(at.dy, at.gate, at[dx_over], none, in_place)), 0);
        assert.equal(both(at[dx_over], at[dgate_over]), wanted[3 * k + 2], `dx over ${dx_over}, dgate over ${dgate_over}`);
      }
    });
  });
}

test("the name, the version and the small entries", () => {
  for (const [op, name] of [["rms_norm", "rmsnorm_f32"], ["swiglu", "swiglu_f32"], ["geglu", "geglu_f32"]]) {
    assert.deepEqual(WebAssembly.Module.imports(modules[op]), []);
    assert.deepEqual(WebAssembly.Module.exports(modules[op]).map((each) => each.name).sort(),
      ["__heap_base", "kernel_backward", "kernel_cleanup", "kernel_forward", "kernel_info", "kernel_init", "memory"]);
    const { memory, kernel_info, kernel_init, kernel_cleanup } = new WebAssembly.Instance(modules[op]).exports;
    const end = memory.buffer.byteLength, view = new DataView(memory.buffer);
    assert.equal(kernel_info(0), 3);
    assert.equal(kernel_info(end - 15), 3);
    assert.equal(kernel_info(-1), 3);
    assert.equal(kernel_info(-16), 3);
    assert.equal(kernel_info(64), 0);
    const at = view.getUint32(64, true), length = view.getUint32(68, true);
    assert.equal(Buffer.from(memory.buffer, at, length + 1).toString(), name + "\0");
    assert.equal(at + length + 1, end);
    assert.deepEqual([72, 74, 76].map((place) => view.getUint16(place, true)), [1, 1, 0]);
    assert.equal(view.getUint8(78), 1);
    assert.equal(kernel_init(0, 0), 0);
    assert.equal(kernel_init(0, 12), 0);
    assert.equal(kernel_init(0, 11), 3);
    assert.equal(kernel_init(end - 11, 12), 3);
    assert.equal(kernel_init(-1, -1), 3);
    assert.equal(kernel_cleanup(), 0);
  }
});

// Every field of a good call spoiled in turn: [what, code, change].
const huge = 0xfffffff0;
const checked = (op, direction, make, spoils) =>
  test(`${op} ${direction}: order and codes of the checks`, () => {
    for (const [what, code, ...changes] of [["nothing", 0], ...spoils]) {
      const host = new Host(op), call = make(host);
      for (const change of changes) change(call, host);
      const { a, b, output, scratch = none, params, params_size } = call;
      const at = host.u32s(params);
      const desc = host.descriptor(a, b, output, scratch, [at[0], params_size ?? at[1]]);
      const before = Buffer.from(host.exports.memory.buffer.slice(0));
      const got = host.exports[`kernel_${direction}`](call.desc ?? desc);
      assert.equal(got, code, what);
      if (code) assert.ok(Buffer.from(host.exports.memory.buffer).equals(before), `${what}: memory was changed`);
    }
  });

const no_a = (call) => (call.a = [call.a[0], 0]);
const no_output = (call) => (call.output = [call.output[0], 0]);
const few_params = (call) => (call.params_size = 11);
const far = (key) => (call) => (call[key] = [huge, call[key][1]]);
const cut = (key) => (call) => (call[key] = [call[key][0], call[key][1] - 4]);
const at_params = (k, value) => (call) => (call.params[k] = value);
const shift = (key, other, by) => (call) => (call[key] = [call[other][0] + by, call[key][1]]);
const everywhere = [
  ["desc outside memory", 3, (call) => (call.desc = -1)],
  ["desc partly outside memory", 3, (call) => (call.desc = 16 * page - 39)],
  ["no a", 1, no_a],
  ["no a comes before no output", 1, no_a, no_output],
  ["no output", 2, no_output],
  ["no output comes before params", 2, no_output, few_params],
  ["params too short", 3, few_params],
  ["params empty", 3, (call) => (call.params_size = 0)],
  ["params outside memory", 3, (call) => (call.params_size = 0xffffffff)],
  ["scratch outside memory", 3, (call) => (call.scratch = [huge, 64])],
];

const rms_forward = (host) => ({
  a: host.put(new Float32Array(15).fill(1)), b: host.put(new Float32Array(5).fill(1)), output: host.room(15),
  scratch: host.room(3), params: [bits(eps), 5, 3],
});
const sizes = [
  ["more rows than there are", 1, at_params(2, 4)],
  ["products that wrap", 1, at_params(2, 0x80000000)],
  ["products that wrap to nothing", 1, at_params(1, 0x10000), at_params(2, 0xffffffff)],
];
checked("rms_norm", "forward", rms_forward, [
  ...everywhere, ...sizes,
  ["no columns", 3, at_params(1, 0)],
  ["no columns comes before no rows", 3, at_params(1, 0), at_params(2, 0)],
  ["columns beyond the limit", 3, at_params(1, 0x40000000)],
  ["no rows", 0, at_params(2, 0)],
  ["a too small", 1, cut("a")],
  ["a outside", 1, far("a")],
  ["b too small", 1, cut("b")],
  ["b outside", 1, far("b")],
  ["output too small", 2, cut("output")],
  ["output outside", 2, far("output")],
  ["a comes before output", 1, far("output"), far("a")],
  ["output on a", 0, shift("output", "a", 0)],
  ["output partly over a", 2, shift("output", "a", 4)],
  ["output over b", 2, shift("output", "b", -20)],
  ["rms over a", 3, shift("scratch", "a", 0)],
  ["scratch too small for rms", 0, cut("scratch")],
]);

const rms_backward = (host) => {
  const call = { a: host.room(15), b: host.room(15), output: host.room(15), scratch: host.room(192) };
  call.params = [bits(eps), 5, 3, 0, ...host.room(5), ...host.room(3), ...host.room(5)];
  return call;
};
checked("rms_norm", "backward", rms_backward, [
  ...everywhere, ...sizes,
  ["b too small", 1, cut("b")],
  ["output too small", 2, cut("output")],
  ["output partly over b", 2, shift("output", "b", 8)],
  ["reserved word", 3, at_params(3, 1)],
  ["weight outside", 3, at_params(4, huge)],
  ["weight too small", 3, at_params(5, 16)],
  ["weight absent", 0, at_params(5, 0)],
  ["rms outside", 3, at_params(6, huge)],
  ["rms too small", 3, at_params(7, 8)],
  ["dweight outside", 3, at_params(8, huge)],
  ["dweight too small", 3, at_params(9, 16)],
  ["dweight on weight", 0, (call) => (call.params[8] = call.params[4])],
  ["dweight over output", 3, (call) => (call.params[8] = call.output[0])],
  ["workspace too small", 3, cut("scratch")],
  ["no workspace", 3, (call) => (call.scratch = none)],
  ["workspace over a", 3, (call) => (call.scratch = [call.a[0], call.scratch[1]])],
  ["no workspace, no dweight", 0, (call) => (call.scratch = none), at_params(9, 0)],
  ["output over weight", 2, (call) => (call.params[4] = call.output[0] + 4)],
  ["a short tail is version 1", 0, (call) => (call.params_size = 39), at_params(4, huge)],
]);

for (const op of ["swiglu", "geglu"]) {
  const forward = (host) => ({ a: host.room(15), b: host.room(15), output: host.room(15), params: [3, 5, bits(beta)] });
  const gated = [
    ...everywhere,
    ["no b", 1, (call) => (call.b = [call.b[0], 0])],
    ["b unequal", 1, cut("b")],
    ["b comes before no output", 1, cut("b"), no_output],
    ["output unequal", 2, cut("output")],
    ["no columns", 3, at_params(1, 0)],
    ["no rows", 0, at_params(0, 0)],
    ["more rows than there are", 1, at_params(0, 4)],
    ["products that wrap", 1, at_params(0, 0x80000000)],
    ["a outside", 1, far("a")],
    ["b outside", 1, far("b")],
    ["output outside", 2, far("output")],
    ["output on b", 0, shift("output", "b", 0)],
    ["output partly over b", 2, shift("output", "b", -4)],
  ];
  checked(op, "forward", forward, gated);
  const backward = (host) => {
    const call = forward(host);
    call.params.push(0, ...host.room(15), ...host.room(15));
    return call;
  };
  checked(op, "backward", backward, [
    ...gated,
    ["x outside", 3, at_params(4, huge)],
    ["x too small", 3, at_params(5, 56)],
    ["dgate without x", 3, at_params(5, 0)],
    ["x without dgate", 0, at_params(7, 0)],
    ["dgate outside", 3, at_params(6, huge)],
    ["dgate too small", 3, at_params(7, 56)],
    ["dgate on gate", 0, (call) => (call.params[6] = call.b[0])],
    ["dgate partly over gate", 3, (call) => (call.params[6] = call.b[0] + 4)],
    ["dgate on dx", 3, (call) => (call.params[6] = call.output[0])],
  ]);
}

test("fault_01 no rows: dweight becomes +0.0", () => {
  const host = new Host("rms_norm"), call = rms_backward(host);
  const dweight = [call.params[8], 20];
  new Uint8Array(host.exports.memory.buffer, ...dweight).fill(0xff);
  call.params[2] = 0;
  const params = host.u32s(call.params);
  assert.equal(host.exports.kernel_backward(host.descriptor(call.a, call.b, call.output, none, params)), 0);
  assert.deepEqual([...new Uint8Array(host.exports.memory.buffer, ...dweight)], Array(20).fill(0));
});

test("fault_28 arrays beyond 2 GiB", () => {
  const small = new Host("rms_norm"), large = new Host("rms_norm", { base: 2 ** 31 + 2 ** 28 });
  large.exports.memory.grow(Math.ceil(large.top / page));
  const [one, other] = [small, large].map((host) => {
    host.alloc = (bytes) => { const at = host.top; host.top += Math.ceil(bytes / 64) * 64; return at; };
    const rows = 3, columns = 300, y = host.room(rows * columns), rms = host.room(rows);
    const x = host.put(samples("x", "f32", rows * columns)), weight = host.put(samples("gamma", "f32", columns));
    const params = rms_params(host, { eps, rows, columns });
    assert.equal(host.exports.kernel_forward(host.descriptor(x, weight, y, rms, params)), 0);
    const dy = x, dx = host.room(rows * columns), dweight = host.room(columns);
    const workspace = host.room(workspace_bytes(rows, columns) / 4);
    const full = rms_params(host, { eps, rows, columns, weight, rms, dweight, v1: false });
    assert.equal(host.exports.kernel_backward(host.descriptor(dy, x, dx, workspace, full)), 0);
    return [y, rms, dx, dweight].map((place) => host.floats(place));
  });
  assert.ok(large.top > 2 ** 31);
  assert.deepEqual(other, one);
});

test("memory filled to the last byte", () => {
  const host = new Host("rms_norm"), { memory, kernel_forward } = host.exports;
  const columns = memory.buffer.byteLength / 8 - 64;
  const weight = [0, 4 * columns], x = [memory.buffer.byteLength - 4 * columns, 4 * columns];
  host.top = 4 * columns;
  const params = rms_params(host, { eps, rows: 1, columns });
  const desc = host.descriptor(x, weight, x, none, params);
  new Float32Array(memory.buffer, ...[0, columns]).fill(1);
  new Float32Array(memory.buffer, x[0], columns).fill(3);
  assert.equal(kernel_forward(desc), 0);
  assert.ok(new Float32Array(memory.buffer, x[0], columns).every((value) => Math.abs(value - 1) < 1e-5));
});

test("the workspace of dweight is what the page says, to the byte", () => {
  for (const [rows, columns] of [[1, 1], [4096, 64], [130, 8192], [130, 8193], [130, 20000], [9, 262145], [20000, 3], [32, 131072], [66000, 200]]) {
    const bytes = workspace_bytes(rows, columns);
    const host = new Host("rms_norm");
    const dy = host.room(rows * columns), x = host.room(rows * columns), dx = host.room(rows * columns);
    const work = [host.alloc(bytes), bytes], dweight = host.room(columns);
    const params = rms_params(host, { eps: 1, rows, columns, dweight, v1: false });
    assert.equal(host.exports.kernel_backward(host.descriptor(dy, x, dx, [work[0], bytes - 1], params)), 3);
    assert.equal(host.exports.kernel_backward(host.descriptor(dy, x, dx, work, params)), 0);
  }
});

test("fault_28 hostile descriptors never trap, and a refused call writes nothing", () => {
  let state = 12345;
  const random = (below) => ((state = (Math.imul(state, 1664525) + 1013904223) >>> 0), Math.floor((state / 2 ** 32) * below));
  const end = 16 * page;
  const nasty = [0, 1, 3, 4, 12, 16, 40, 63, 64, 100, 4096, end - 64, end - 4, end - 1, end, end + 1, 2 ** 31 - 1, 2 ** 31,
    2 ** 32 - 40, 2 ** 32 - 4, 2 ** 32 - 1];
  const value = () => (random(3) ? random(65536) : nasty[random(nasty.length)]);
  const small = () => (random(8) ? random(9) : value());
  const codes = new Set();
  for (const op of ["rms_norm", "swiglu", "geglu"]) {
    const { memory, kernel_forward, kernel_backward, kernel_init, kernel_info } = new WebAssembly.Instance(modules[op]).exports;
    for (let turn = 0; turn < 3000; ++turn) {
      const view = new DataView(memory.buffer), desc = random(20) ? 1000 : value(), params = random(20) ? 2000 : value();
      const put = (at, list) => list.forEach((each, k) => at + 4 * k + 4 <= end && view.setUint32(at + 4 * k, each, true));
      const size = random(2) ? 4 * random(64) : value();
      put(desc, [value(), size, value(), random(3) ? size : value(), value(), random(3) ? size : value(), value(), value(),
        params, random(4) ? [12, 32, 40][random(3)] : value()]);
      put(params, [small(), small(), small(), random(10) ? 0 : value(), value(), value(), value(), value(), value(), value()]);
      const before = turn % 50 ? undefined : Buffer.from(memory.buffer.slice(0));
      const code = (random(2) ? kernel_forward : kernel_backward)(desc);
      codes.add(code);
      if (before && code) assert.ok(Buffer.from(memory.buffer, 0, end).equals(before));
      kernel_init(value(), value());
      if (turn % 10 === 0) kernel_info(value());
    }
    assert.equal(memory.buffer.byteLength, end);
  }
  assert.deepEqual([...codes].sort(), [0, 1, 2, 3]);
});

// docs/kernel-abi.md has the table.
test("fault 48: compact and scalar modules are small", () => {
  const most = {
    compact: { rms_norm: 12288, swiglu: 12288, geglu: 12288 }, scalar: { rms_norm: 8400, swiglu: 5200, geglu: 5200 },
  };
  for (const [arch, sizes] of Object.entries(most))
    for (const [name, bytes] of Object.entries(sizes))
      assert.ok(bytes_of[arch][name].length <= bytes, `${name} ${arch}: ${bytes_of[arch][name].length} bytes`);
});

// wabt judges with everything off that came after the first version.
test("fault 48: scalar modules are WebAssembly 1.0", () => {
  const later = ["simd", "bulk-memory", "reference-types", "sign-extension", "saturating-float-to-int", "multi-value",
                 "mutable-globals"].map((feature) => `--disable-${feature}`);
  const folder = mkdtempSync(join(tmpdir(), "trireme-")), file = join(folder, "module.wasm");
  const validate = (bytes) => (writeFileSync(file, bytes), execFileSync("wasm-validate", [...later, file], { stdio: "pipe" }));
  try {
    assert.throws(() => validate(bytes_of.compact.rms_norm), /SIMD|simd|unexpected opcode/);
    for (const name of names) validate(bytes_of.scalar[name]);
    for (const name of ["rms_norm", "layer_norm", "add_rms_norm", "softmax", "l2_norm"])
      for (const direction of [[], ["--backward"]]) {
        const bytes = emit(name, ...direction, "--arch", "scalar");
        validate(bytes);
        assert.ok(bytes.length <= 4096, `${name} ${direction}: ${bytes.length} bytes`);
      }
  } finally {
    rmSync(folder, { recursive: true });
  }
});

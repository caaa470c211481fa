// Usage: node bench/wasm.mjs [TRIREME [SECONDS]]
// Kernels in WebAssembly memory against a copy loop in the same memory, f32, one thread: GB/s of the bytes that must be
// read and written, and the share of the copy's speed. Best of interleaved rounds. The last column is kernel.run() of
// js/trireme.mjs, which also copies arrays in and out. The first two shapes take 512 MiB, more than any cache holds.
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { load, probe, samples } from "../js/trireme.mjs";

const tool = process.argv[2] ?? "build/release/trireme", seconds = Number(process.argv[3] ?? 1);

// copy(to, from, bytes), 64 bytes a turn by v128.load and v128.store; imports m.memory.
const copy_hex =
  "0061736d0100000001070160037f7f7f00020d01016d066d656d6f72790200010302010007080104636f707900000a550153" +
  "01017f200120026a2103034020002001fd000400fd0b040020002001fd000410fd0b041020002001fd000420fd0b04202000" +
  "2001fd000430fd0b0430200041c0006a2100200141c0006a22012003490d000b0b";
const copy_module = new WebAssembly.Module(Uint8Array.from(copy_hex.match(/../g), (byte) => parseInt(byte, 16)));

const emit = (op, columns, options) => {
  const folder = mkdtempSync(join(tmpdir(), "trireme-"));
  try {
    execFileSync(tool, ["emit", op, "--target", "wasm", "--cols", columns, ...options, "-o", join(folder, "module")]);
    return readFileSync(join(folder, "module"));
  } finally {
    rmSync(folder, { recursive: true });
  }
};

// Lays the arrays out and fills the slots; returns a call of the kernel, a copy of as many bytes, and those bytes.
const prepare = (bytes, manifest, rows, columns) => {
  const { memory, rows: kernel } = new WebAssembly.Instance(new WebAssembly.Module(bytes)).exports;
  let end = 4096;
  const take = (size) => { const at = end; end = Math.ceil((at + size) / 64) * 64; return at; };
  const scratch = take(manifest.scratch.bytes + manifest.scratch.bytesPerStripe * Math.ceil(columns / 256));
  const lay = (list) => list.map(({ type, row, column, name }) =>
    type && { name, row, column, count: (row ? rows : 1) * (column ? columns : 1), at: take(4 * (row ? rows : 1) * (column ? columns : 1)) });
  const operands = lay(manifest.operands), results = lay(manifest.results);
  const half = 64 * Math.floor([...operands, ...results].reduce((sum, each) => sum + (each ? 4 * each.count : 0), 0) / 128);
  const from = take(half), to = take(half);
  memory.grow(Math.ceil(end / 65536));
  for (const each of operands) if (each) new Float32Array(memory.buffer, each.at, each.count).set(samples(each.name, "f32", each.count));
  const view = new DataView(memory.buffer), slots_at = 64;
  const stride = (each) => (each.row ? (each.column ? columns : 1) : 0);
  manifest.slots.forEach(([kind, index], k) => {
    const place = slots_at + 8 * k;
    const value = { columns, scratch, rowBlock: 1, blocks: rows, operand: operands[index]?.at, result: results[index]?.at,
      operandStride: operands[index] && stride(operands[index]), resultStride: results[index] && stride(results[index]) }[kind];
    if (kind === "constant") view.setFloat32(place, manifest.operands[index].constant, true);
    else view.setBigInt64(place, BigInt(value), true);
  });
  const { copy } = new WebAssembly.Instance(copy_module, { m: { memory } }).exports;
  const inputs = Object.fromEntries(operands.filter(Boolean).map((each) =>
    [each.name, new Float32Array(memory.buffer.slice(each.at, each.at + 4 * each.count))]));
  return { run: () => kernel(slots_at, 0n, BigInt(rows), BigInt(rows)), copy: () => copy(to, from, half), bytes: 2 * half, inputs };
};

const best = (ways) => {
  const times = ways.map(() => Infinity), until = performance.now() + 1000 * seconds;
  for (const way of ways) way();
  do {
    ways.forEach((way, k) => {
      const start = performance.now();
      way();
      times[k] = Math.min(times[k], performance.now() - start);
    });
  } while (performance.now() < until);
  return times;
};

const can = probe();
console.log(`node ${process.version}, relaxed_madd ${can.fused ? "fused" : "not used"}`);
console.log("| problem, f32 | module | kernel GB/s | copy GB/s | share | run() GB/s |\n| --- | --- | --- | --- | --- | --- |");
for (const [rows, columns] of [[16384, 4096], [524288, 128], [2048, 4096], [32, 4096]]) {
  for (const op of ["rms_norm", "layer_norm", "swiglu"]) {
    for (const arch of can.fused && op === "swiglu" ? ["simd128", "relaxed"] : ["simd128"]) {
      const bytes = emit(op, columns, ["--arch", arch]), kernel = await load(bytes, { memoryLimit: 2 ** 31 });
      if (op === "swiglu" && arch === "simd128" && rows * columns > 2 ** 25) continue;  // takes seconds, and is not bound by memory
      const { run, copy, bytes: moved, inputs } = prepare(bytes, kernel.manifest, rows, columns);
      const into = kernel.run(inputs, { columns });
      const [own, copied, whole] = best([run, copy, () => kernel.run(inputs, { columns, into })]);
      const speed = (time) => (moved / time / 1e6).toFixed(1);
      console.log(`| ${op} ${rows}x${columns} | ${arch} | ${speed(own)} | ${speed(copied)} | ${(copied / own).toFixed(2)} | ${speed(whole)} |`);
    }
  }
}

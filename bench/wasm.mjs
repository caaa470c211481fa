// Usage: node bench/wasm.mjs [TRIREME [SECONDS]]
// Kernels in WebAssembly memory (prepared calls of js/trireme.mjs) against a copy loop in such memory, f32, one thread:
// GB/s of the bytes that must be read and written, and the share of the copy's speed. Best of interleaved rounds. The
// last column is run(), which also copies arrays in and out. The first two shapes take 512 MiB, more than any cache holds.
// Then what a call costs: microseconds of small problems, by run() into given arrays and prepared.
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

// A copy of half of `bytes` to the other half.
const copy_of = (bytes) => {
  const half = 64 * Math.floor(bytes / 128), memory = new WebAssembly.Memory({ initial: Math.ceil(bytes / 65536) });
  const { copy } = new WebAssembly.Instance(copy_module, { m: { memory } }).exports;
  new Uint8Array(memory.buffer).fill(1);  // pages that nobody wrote are one page of zeros
  return () => copy(half, 0, half);
};

// A prepared call on samples, the same arrays for run(), and the bytes that both must move.
const prepare = (kernel, rows, columns) => {
  const call = kernel.prepare({ rows, columns });
  for (const name of Object.keys(call.operands)) call.operands[name].set(samples(name, "f32", call.operands[name].length));
  const copies = (views) => Object.fromEntries(Object.keys(views).map((name) => [name, views[name].slice()]));
  const all = [...Object.values(call.operands), ...Object.values(call.results)];
  const values = copies(call.operands), into = copies(call.results), run = () => kernel.run(values, { columns, into });
  call.run(), run();
  for (const name of Object.keys(into))
    if (Buffer.compare(Buffer.from(into[name].buffer), Buffer.from(call.results[name].slice().buffer)))
      throw new Error(`${kernel.manifest.program} ${rows}x${columns}: run() and a prepared call differ in ${name}`);
  return { call, run, bytes: all.reduce((sum, view) => sum + view.byteLength, 0) };
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
      const { call, run, bytes: moved } = prepare(kernel, rows, columns);
      const [own, copied, whole] = best([() => call.run(), copy_of(moved), run]);
      const speed = (time) => (moved / time / 1e6).toFixed(1);
      console.log(`| ${op} ${rows}x${columns} | ${arch} | ${speed(own)} | ${speed(copied)} | ${(copied / own).toFixed(2)} | ${speed(whole)} |`);
    }
  }
}

console.log("\n| problem, f32 | run() µs | prepared µs |\n| --- | --- | --- |");
for (const [op, rows, columns] of [["rms_norm", 1, 64], ["rms_norm", 1, 1024], ["layer_norm", 1, 64], ["softmax", 1, 64], ["rms_norm", 32, 64]]) {
  const { call, run } = prepare(await load(emit(op, columns, ["--arch", can.fused ? "relaxed" : "simd128"])), rows, columns);
  const turns = 1000, often = (work) => () => { for (let turn = 0; turn < turns; ++turn) work(); };
  const [whole, prepared] = best([often(run), often(() => call.run())]).map((time) => ((1000 * time) / turns).toFixed(2));
  console.log(`| ${op} ${rows}x${columns} | ${whole} | ${prepared} |`);
}

// What node runs: node run_jobs.mjs FOLDER. jobs.json says where in the file `data` modules and buffers lie; buffers
// are written back to their places. One line a job on standard output: "ok", or a code and what happened.
#pragma once

namespace trireme::wasm {

inline constexpr char node_script[] = R"js(
import fs from "node:fs";
import v8 from "node:v8";

const folder = process.argv[2];
const { multiply, madd, jobs } = JSON.parse(fs.readFileSync(folder + "/jobs.json", "utf8"));
const file = fs.openSync(folder + "/data", "r+");
const page = 65536, line = 64, canary = 0xa5;
const above = (x, unit) => Math.ceil(x / unit) * unit;

// Node reads and writes at most 2 GiB at a time.
const each_part = (transfer, view, position) => {
  for (let done = 0; done < view.length; done += 1 << 30) {
    const part = view.subarray(done, Math.min(view.length, done + (1 << 30)));
    if (transfer(file, part, 0, part.length, position + done) !== part.length) throw Error("data file is cut short");
  }
};
const bytes_at = ([position, length]) => {
  const bytes = new Uint8Array(length);
  each_part(fs.readSync, bytes, position);
  return bytes;
};
const instantiate = (bytes) => new WebAssembly.Instance(new WebAssembly.Module(bytes)).exports;

class Refusal extends Error {}
const refuse = (code, text) => { throw new Refusal(code + " " + text); };

// A library loaded into this process may have told the processor to take subnormals for zeros.
const keeps_subnormals = (() => {
  const { f } = instantiate(bytes_at(multiply));
  return f(2 ** -100, 2 ** -40) === 2 ** -140 && f(2 ** -140, 2 ** 40) === 2 ** -100;
})();

let is_fused;
const require_fused = () => {
  if (is_fused === undefined) {
    const bytes = bytes_at(madd);
    if (!WebAssembly.validate(bytes)) v8.setFlagsFromString("--experimental-wasm-relaxed-simd");
    is_fused = WebAssembly.validate(bytes) ? instantiate(bytes).f() : null;
  }
  if (is_fused === null) refuse("Unsupported", "node " + process.version + " has no relaxed SIMD");
  if (!is_fused) refuse("Unsupported", "relaxed_madd is not fused on this machine");
};

const run = (job) => {
  if (!keeps_subnormals) refuse("Unsupported", "node flushes subnormals: a library it loads has set the processor so");
  if (job.relaxed) require_fused();
  const { memory, rows, columns } = instantiate(bytes_at(job.module));

  const slots_at = line;
  let end = slots_at + 8 * job.slots.length;
  const places = job.buffers.map(({ length }) => {
    const start = above(end, line) + line;
    end = start + length;
    return start;
  });
  const pages = Math.ceil((end + line) / page);
  const missing = pages - memory.buffer.byteLength / page;
  try {
    if (missing > 0) memory.grow(missing);
  } catch {
    refuse("OutOfMemory", pages * page + " bytes, of which a module can have 4 GiB");
  }
  const view = new Uint8Array(memory.buffer);
  if (places.length > 0) places[places.length - 1] = view.length - job.buffers.at(-1).length;

  const slots = job.slots.map(BigInt);
  for (const [slot, buffer, offset] of job.relocations) slots[slot] = BigInt(places[buffer]) + BigInt(offset);
  view.fill(canary);
  slots.forEach((value, k) => new DataView(memory.buffer).setBigUint64(slots_at + 8 * k, BigInt.asUintN(64, value), true));
  job.buffers.forEach(({ position, length }, k) => {
    if (position >= 0) each_part(fs.readSync, view.subarray(places[k], places[k] + length), position);
  });

  for (const [entry, ...numbers] of job.calls) (entry === "rows" ? rows : columns)(slots_at, ...numbers.map(BigInt));

  const found = new Uint8Array(memory.buffer);
  let from = slots_at + 8 * slots.length;
  places.forEach((start, k) => {
    for (let at = from; at < start; ++at) {
      if (found[at] !== canary) refuse("Internal", `byte ${at - start} from buffer ${k} was written`);
    }
    from = start + job.buffers[k].length;
  });
  job.buffers.forEach(({ position, length }, k) => {
    if (position >= 0) each_part(fs.writeSync, found.subarray(places[k], places[k] + length), position);
  });
};

for (const job of jobs) {
  let outcome = "ok";
  try {
    run(job);
  } catch (error) {
    outcome = error instanceof Refusal ? error.message : "Internal " + error;
  }
  console.log(outcome.replaceAll("\n", " "));
}
)js";

}  // namespace trireme::wasm

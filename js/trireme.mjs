// Loads and runs WebAssembly modules that `trireme emit ... --target wasm` wrote, or that are compiled on the spot, in Node and
// in browsers.
//
//   import { load } from "trireme";
//   const rms_norm = await load(await readFile("rms_norm.wasm"));
//   const { y, rstd } = rms_norm.run({ x, gamma, eps: 1e-5 }, { columns: 4096 });
//
// The module says itself, in its custom section "trireme", which arrays it takes. Bits are those of every other device,
// whatever the memory limit.
import { check_names } from "./arrays.mjs";
import { probe, require_engine } from "./engine.mjs";
import { Kernel } from "./kernel.mjs";
import { read_module } from "./module.mjs";
export { CompileError, loadCompiler } from "./compiler.mjs";
export { digest, xxh3_128 } from "./digest.mjs";
export { compile } from "./operator.mjs";
export { parseReceipt, printReceipt, signReceipt, verifySignature } from "./receipt.mjs";
export { checkReceipt, makeReceipt } from "./receipt_check.mjs";
export { samples } from "./samples.mjs";
export { probe };

// memoryLimit: bytes of WebAssembly memory; larger problems go through it in chunks of rows.
export const load = async (source, options = {}) => {
  check_names("load", "option", options, ["memoryLimit"]);
  const { memoryLimit = 2 ** 30 } = options;
  if (!(memoryLimit >= 65536 && memoryLimit <= 2 ** 32))
    throw new RangeError(`load: memoryLimit ${memoryLimit}; it may be 65536 to 2^32 bytes`);
  const can = require_engine();
  const { manifest, compile } = await read_module(source);
  if (manifest.relaxed && !can.fused)
    throw new Error(
      `load: relaxed_madd is ${can.relaxed ? "not fused" : "missing"} here; emit the module with --arch simd128`);
  return new Kernel(await compile(), manifest, memoryLimit);
};

// The modules of an operator that comes with the package; js/build.mjs writes them. Imports are spelt out in the index, so
// that bundlers find them.
const shipped = async (name) => {
  let operators;
  try {
    ({ operators } = await import("./modules/index.mjs"));
  } catch (cause) {
    throw new Error("loadOperator: the package's modules cannot be imported; `node js/build.mjs` makes them", { cause });
  }
  if (!Object.hasOwn(operators, name))
    throw new Error(`loadOperator: the package has no operator '${name}'; it has ${Object.keys(operators).join(", ")}`);
  const { simd128, relaxed } = operators[name];
  return relaxed && probe().fused ? relaxed() : simd128();
};

// run() as a function; the rest of a kernel hangs on it.
const callable = (kernel) => Object.assign((values, options) => kernel.run(values, options), {
  manifest: kernel.manifest, prepare: (shape, constants) => kernel.prepare(shape, constants),
});

// Both directions of an operator, or the one there is: the name of one that comes with the package, in f32, or
// { forward, backward } of what load() takes.
export const loadOperator = async (source, options) => {
  if (typeof source === "string") source = await shipped(source);
  check_names("loadOperator", "direction", source, ["forward", "backward"]);
  const found = await Promise.all(["forward", "backward"].map(async (direction) =>
    source[direction] && [direction, callable(await load(source[direction], options))]));
  if (!found.some(Boolean)) throw new TypeError("loadOperator: neither forward nor backward is given");
  return Object.fromEntries(found.filter(Boolean));
};

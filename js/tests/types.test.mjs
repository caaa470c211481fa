// The declarations: TypeScript's compiler accepts what is right, without the DOM's library and without casts, and refuses
// what is not; and what is declared is there.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { load, probe } from "../trireme.mjs";
import { emit, installed, with_installed_package } from "./tool.mjs";

// "@ts-expect-error" is an error itself where the next line is none.
const program = `
import { digest, load, loadOperator, probe, samples, type Kernel, type Signatures } from "trireme";
import * as modules from "trireme/modules/rms_norm.mjs";
import * as dynamic_tanh from "trireme/modules/dynamic_tanh.mjs";

const x = new Float32Array(12), gamma = new Float32Array(4);
const needs = (array: Float32Array) => array.length;

const rms_norm = await loadOperator("rms_norm", { memoryLimit: 1 << 20 });
const { y, rstd } = rms_norm.forward({ x, gamma, eps: 1e-5 }, { columns: 4, into: { y: x }, inPlace: { y: "x" } });
needs(y) + needs(rstd);
const { dx, dgamma } = rms_norm.backward({ dy: y, x: { values: x, stride: 4 }, gamma, rstd }, { rows: 3 });
needs(dx) + needs(dgamma);
const call = rms_norm.forward.prepare({ rows: 1, columns: 64 }, { eps: 1e-5 });
call.operands.x.set(x);
call.set({ eps: 1 });
needs(call.run().y);
digest([["f32", y]]);
needs(samples("x", "f32", 4));
const fused: boolean = probe().fused;

// @ts-expect-error: no such operator
await loadOperator("rms_nrom");
// @ts-expect-error: no such option
await loadOperator("rms_norm", { memorylimit: 1 });
// @ts-expect-error: a misspelt operand
rms_norm.forward({ x, gama: gamma }, { columns: 4 });
// @ts-expect-error: one that is missing
rms_norm.forward({ x }, { columns: 4 });
// @ts-expect-error: another type
rms_norm.forward({ x: new Float64Array(12), gamma }, { columns: 4 });
// @ts-expect-error: a constant is a number
rms_norm.forward({ x, gamma, eps: x }, { columns: 4 });
// @ts-expect-error: the shape is not said
rms_norm.forward({ x, gamma });
// @ts-expect-error: nor here
rms_norm.forward({ x, gamma }, { into: { y: x } });
// @ts-expect-error: no such option
rms_norm.forward({ x, gamma }, { columns: 4, inplace: {} });
// @ts-expect-error: no such result
rms_norm.forward({ x, gamma }, { columns: 4, into: { z: x } });
// @ts-expect-error: no such operand
rms_norm.forward({ x, gamma }, { columns: 4, inPlace: { y: "z" } });
// @ts-expect-error: no such result
rms_norm.forward({ x, gamma }, { columns: 4 }).z;
// @ts-expect-error: an array is no constant
rms_norm.forward.prepare({ rows: 1, columns: 64 }, { x: 1 });
// @ts-expect-error: a shape has both
rms_norm.forward.prepare({ rows: 1 });
// @ts-expect-error: views stay where they are
call.operands.x = x;
// @ts-expect-error: constants are no arrays
call.operands.eps;
needs((await loadOperator("dynamic_tanh")).backward({ dy: x, x, alpha: x, gamma }, { rows: 3 }).dalpha);
// @ts-expect-error: not by its name
await load("rms_norm.wasm");
// @ts-expect-error: nor by a promise of that
await load(Promise.resolve("rms_norm.wasm"));
// @ts-expect-error: numbers are no bytes
await load([0, 97, 115, 109]);

// Modules of one's own: said, or not.
type Own = { operands: { x: "bf16"; gamma: "f32"; eps?: "constant" }; results: { y: "bf16"; rstd: "f32" } };
const own: Kernel<Own> = await load<Own>(new Uint8Array(8));
const bits: Uint16Array = own.run({ x: new Uint16Array(12), gamma }, { columns: 4 }).y;
// @ts-expect-error: bf16 travels as bits
own.run({ x, gamma }, { columns: 4 });
const fixed = await load<Own & { columns: 4 }>(new ArrayBuffer(8));
fixed.run({ x: bits, gamma });
fixed.prepare({ rows: 1 });
const any = await load({ arrayBuffer: async () => new ArrayBuffer(8) });
any.run({ x, anything: 1 }, { columns: 4 }).whatever!.length;
declare const compiled: {};  // a WebAssembly.Module is declared so
await load(compiled);
const both = await loadOperator({ forward: new Uint8Array(8), backward: Promise.resolve(new Uint8Array(8)) });
both.backward({ x }, { rows: 1 });
needs((await loadOperator<Signatures["dynamic_tanh"]>(dynamic_tanh)).forward({ x, alpha: x, gamma, beta: gamma }, { rows: 3 }).y);
// @ts-expect-error: it was not given
(await loadOperator({ forward: new Uint8Array(8) })).backward;
// @ts-expect-error: a misspelt direction
await loadOperator({ foward: new Uint8Array(8) });
const named = await loadOperator<Signatures["rms_norm"]>(modules);
needs(named.forward({ x, gamma }, { columns: 4 }).y);
// @ts-expect-error: a misspelt operand
named.forward({ x, gama: gamma }, { columns: 4 });
`;
// With the library of browsers, Response and WebAssembly.Module are what is given.
const in_browsers = `
import { load } from "trireme";
await load(fetch("rms_norm.wasm"));
await load(new Response());
await load(new Blob());
await load(await WebAssembly.compileStreaming(fetch("rms_norm.wasm")));
// @ts-expect-error: not by its name
await load("rms_norm.wasm");
`;

const compile = (folder, name, text, lib) => {
  const compilerOptions = {
    noEmit: true, strict: true, noUncheckedIndexedAccess: true, target: "es2022", module: "node16", moduleResolution: "node16",
    lib, types: [],
  };
  writeFileSync(join(folder, name), text);
  writeFileSync(join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions, files: [name] }));
  return spawnSync(installed("tsc"), ["--project", "."], { cwd: folder, encoding: "utf8" });
};

test("fault 65: the declarations, as TypeScript's compiler reads them", () => with_installed_package((folder) => {
  for (const [name, text, lib] of [["own.mts", program, ["es2022"]], ["page.mts", in_browsers, ["es2022", "dom"]]]) {
    const { status, stdout } = compile(folder, name, text, lib);
    assert.equal(status, 0, stdout);
  }
  assert.match(compile(folder, "wrong.mts", program.replaceAll("@ts-expect-error", ""), ["es2022"]).stdout, /'gama' does not exist/);
}));

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
  for (const name of ["manifest", "run", "prepare"]) assert.ok(name in kernel);
  for (const name of ["operands", "results", "set", "run"]) assert.ok(name in kernel.prepare({ rows: 1, columns: 1 }));
});

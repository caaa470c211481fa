// Programs compiled where they run: the reference's digests for every operator, kernels that are kept, refusals, workers; the
// package in bundles and through an import map, in headless Chromium; and what TypeScript's compiler knows of a program's text.
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join, relative } from "node:path";
import { test } from "node:test";
import { Worker } from "node:worker_threads";

import { visit } from "../../js/tests/browser.mjs";
import { installed, reference_digests, with_installed_package } from "../../js/tests/tool.mjs";
import { compile, digest, samples } from "../../js/trireme.mjs";
import { compiler, module_bytes } from "./compiler.mjs";

const root = new URL("../../", import.meta.url).pathname;
const rms_norm = compiler.tables.operators.find((each) => each.name === "rms_norm").text;

test("every operator, both directions: the digests of the native reference", async () => {
  const asked = [];
  for (const { name, text } of compiler.tables.operators) {
    const { tries, backward } = compiler.program(text), line = `${name} ${tries[0]}`;
    for (const full of backward ? [line, `${line} backward`] : [line]) {
      const problem = compiler.open(text, full), constants = {}, types = {}, values = {};
      const op = await compile(text, { compiler }), direction = full.endsWith("backward") ? op.backward() : op;
      for (const each of problem.operands) {
        if (each.type) (values[each.name] = problem.operand(each.name).slice()), (types[each.name] = each.type);
        else constants[each.name] = Number(each.constant);
      }
      for (const each of problem.results) types[each.name] = each.type;
      // Constants that were folded are given on the line alone.
      for (const [, constant, value] of full.matchAll(/ (\w+)=([-\d.e]+)(?= |$)/g))
        if (direction.parameters.some((each) => each.name === constant)) constants[constant] = Number(value);
      const { rows, columns } = problem, results = problem.results.map((each) => each.name);
      const got = direction.run({ ...values, ...constants }, { rows, columns, types, results });
      const here = digest(problem.results.map((each) => [each.type, got[each.name]]));
      assert.equal(here, problem.run(), full);
      problem.close();
      asked.push({ line: full, here });
    }
  }
  const want = reference_digests(asked.map(({ line }) => line));
  assert.deepEqual(asked.map(({ here }) => here), want);
});

test("kernels are kept by shape, types and what is folded; a constant's value makes none", async () => {
  let emitted = 0;
  const counting = new Proxy(compiler, { get: (object, name) => {
    if (name === "emit") ++emitted;
    const found = object[name];
    return typeof found === "function" ? found.bind(object) : found;
  } });
  const op = await compile(rms_norm, { compiler: counting }), x = samples("x", "f32", 12), gamma = samples("gamma", "f32", 4);
  const made = (work) => { const before = emitted; work(); return emitted - before; };
  assert.equal(made(() => op.run({ x, gamma }, { columns: 4 })), 1);
  assert.equal(made(() => op.run({ x, gamma }, { rows: 3 })), 0);
  assert.equal(made(() => op.run({ x, gamma, eps: 1e-3 }, { columns: 4 })), 1);
  assert.equal(made(() => op.run({ x, gamma, eps: 1e-4 }, { columns: 4 })), 0);
  assert.equal(made(() => op.run({ x, gamma, eps: 0 }, { columns: 4 })), 1);
  assert.equal(made(() => op.run({ x }, { columns: 4 })), 1);
  assert.notDeepEqual(op.run({ x, gamma, eps: 1 }, { columns: 4 }), op.run({ x, gamma, eps: 2 }, { columns: 4 }));
  for (let columns = 1; columns < 200; ++columns) op.run({ x: new Float32Array(columns) }, { columns });
  assert.equal(made(() => op.run({ x: new Float32Array(199) }, { columns: 199 })), 0);
});

test("prepared calls, types, results, and what is refused", async () => {
  const op = await compile(rms_norm, { compiler }), x = samples("x", "f32", 12), gamma = samples("gamma", "f32", 4);
  const { y, rstd } = op.run({ x, gamma }, { columns: 4 });
  const call = op.prepare({ rows: 3, columns: 4 }, { constants: { eps: 1e-6 } });
  call.operands.x.set(x), call.operands.gamma.set(gamma);
  assert.deepEqual(call.run().y.slice(), y);
  assert.deepEqual(Object.keys(op.run({ x }, { columns: 4, results: ["y"] })), ["y"]);
  const half = samples("x", "bf16", 12);
  assert.ok(op.run({ x: half }, { columns: 4, types: { x: "bf16" } }).y instanceof Uint16Array);
  assert.throws(() => op.run({ x: half }, { columns: 4 }), /may hold f16, bf16; say which, \{ types: \{ x: "f16" \} \}/);
  assert.throws(() => op.run({ x: half }, { columns: 4, types: { x: "f32" } }), /Uint16Array carries f16, bf16, not f32/);
  assert.throws(() => op.run({ gamma }, { columns: 4 }), /x is missing/);
  assert.throws(() => op.run({ x, gama: gamma }, { columns: 4 }), /no operand 'gama'/);
  assert.throws(() => op.run({ x }), /say the shape/);
  assert.throws(() => op.run({ x }, { columns: 5 }), /12 values/);
  const backward = op.backward();
  assert.deepEqual(Object.keys(backward.run({ dy: y, x, gamma, rstd }, { columns: 4 })), ["dx", "dgamma"]);
  assert.throws(() => backward.backward(), /a backward already/);
  await assert.rejects(compile("f(x[i,j]) -> (y[i,j])\n    y = exq(x)", { compiler }),
    ({ name, code, line, column, reason }) => name === "CompileError" && code === "InvalidProgram" && line === 2 && column === 9 && /exq/.test(reason));
});

test("in a worker, in bundles, through an import map, and for TypeScript, with the package's own compiler", () => with_installed_package(async (folder) => {
  execFileSync(process.execPath, [join(root, "js/build_compiler.mjs"), join(root, "build/web/trireme.wasm"), join(folder, "node_modules/trireme/modules")]);
  writeFileSync(join(folder, "worker.mjs"), `
    import { parentPort } from "node:worker_threads";
    import { compile } from "trireme";
    const op = await compile("double(x[i,j]) -> (y[i,j])\\n    y = x + x");
    parentPort.postMessage(op.run({ x: Float32Array.of(1, 2, 3) }, { rows: 1 }).y);
  `);
  const worker = new Worker(join(folder, "worker.mjs"));
  const y = await new Promise((resolve, reject) => worker.once("message", resolve).once("error", reject));
  await worker.terminate();
  assert.deepEqual([...y], [2, 4, 6]);

  // Pages: bundled in one file or in parts, by rollup, and through an import map.
  writeFileSync(join(folder, "page.mjs"), `
    import { compile, digest, loadCompiler, samples } from "trireme";
    const report = {};
    try {
      const op = await compile(${JSON.stringify(rms_norm)});
      const x = samples("x", "f32", 7 * 257), gamma = samples("gamma", "f32", 257);
      const { y, rstd } = op.run({ x, gamma }, { columns: 257 });
      report.rms_norm = digest([["f32", y], ["f32", rstd]]);
    } catch (error) {
      report.error = String(error.stack);
    }
    if (globalThis.document) await fetch("/report", { method: "POST", body: JSON.stringify(report) });
    else postMessage(report);  // a worker's page reports
  `);
  const { resolve } = createRequire(join(folder, "page.mjs"));
  writeFileSync(join(folder, "rollup.config.mjs"), `
    export default { input: "page.mjs", output: { dir: "rollup", format: "es" },
      plugins: [{ name: "packages", resolveId: (name) => (name === "trireme" ? ${JSON.stringify(resolve("trireme"))} : null) }] };
  `);
  const bundle = (program, ...args) => execFileSync(installed(program), args, { cwd: folder, stdio: "pipe" });
  bundle("esbuild", "page.mjs", "--bundle", "--format=esm", "--target=es2022", "--splitting", "--outdir=parts");
  bundle("esbuild", "page.mjs", "--bundle", "--format=esm", "--target=es2022", "--minify", "--outfile=whole.js");
  bundle("rollup", "--config", "rollup.config.mjs", "--failAfterWarnings");
  const imports = { trireme: "/node_modules/trireme/trireme.mjs" };
  const html = (script, head = "") => `<!doctype html>${head}<script type="module" src="${script}"></script>`;
  const pages = {
    "/parts.html": html("/parts/page.js"), "/whole.html": html("/whole.js"), "/rollup.html": html("/rollup/page.js"),
    "/map.html": html("/page.mjs", `<script type="importmap">${JSON.stringify({ imports })}</script>`),
    "/worker.html": html("/in_worker.mjs"),
  };
  writeFileSync(join(folder, "in_worker.mjs"), `
    const worker = new Worker("/whole.js", { type: "module" });
    worker.onmessage = ({ data }) => fetch("/report", { method: "POST", body: JSON.stringify(data) });
    worker.onerror = ({ message }) => fetch("/report", { method: "POST", body: JSON.stringify({ error: message }) });
  `);
  const files_of = (at) => readdirSync(at, { withFileTypes: true }).flatMap((each) =>
    each.isDirectory() ? files_of(join(at, each.name)) : [join(at, each.name)]);
  const files = Object.fromEntries(files_of(folder).map((file) => ["/" + relative(folder, file), readFileSync(file)]));
  const reports = await visit({ ...files, ...pages }, Object.keys(pages)), [want] = reference_digests(["rms_norm 7x257"]);
  for (const page of Object.keys(pages)) assert.deepEqual(reports[page], { rms_norm: want }, page);

  // What TypeScript's compiler knows of a program's text.
  writeFileSync(join(folder, "own.mts"), `
    import { compile, loadCompiler, CompileError } from "trireme";
    const op = await compile(\`# Softmax with a temperature (as samplers want it).
      scaled(x[i,j], scale[i % heads, j] = 1, temperature = 1, heads) -> (y[i,j], largest[i])
          largest = amax(x)
          y = exp(x - largest) * scale / temperature\`);
    const x = new Float32Array(8);
    const y: Float32Array = op.run({ x, heads: 2, temperature: 0.5 }, { columns: 4 }).y;
    op.run({ x, heads: 2, scale: { values: x, stride: 4 } }, { columns: 4, results: ["largest"] }).largest.length;
    // @ts-expect-error: a misspelt operand
    op.run({ x, heads: 2, scal: x }, { columns: 4 });
    // @ts-expect-error: one that is missing
    op.run({ heads: 2 }, { columns: 4 });
    // @ts-expect-error: a constant that is missing
    op.run({ x }, { columns: 4 });
    // @ts-expect-error: no such result
    op.run({ x, heads: 2 }, { columns: 4 }).z;
    // @ts-expect-error: no such result
    op.run({ x, heads: 2 }, { columns: 4, results: ["z"] });
    const bits: Uint16Array | unknown = op.run({ x: new Uint16Array(8), heads: 2 }, { columns: 4, types: { x: "bf16" } }).y;
    declare const text: string;
    const any = await compile(text);
    any.run({ whatever: x, eps: 1 }, { rows: 2 }).y!.length;
    any.backward().prepare({ rows: 1, columns: 4 }).run();
    any.prepare({ rows: 1, columns: 4 }, { types: { x: "bf16" }, constants: { eps: 1 } }).operands.whatever!.length;

    // Prepared calls: names, and types as they are told; those of seeds and of what picks rows by how they are used.
    const shape = { rows: 2, columns: 4 }, needs = (array: Float32Array) => array.length;
    const call = op.prepare(shape, { constants: { heads: 2 } });
    call.operands.x.set(x), call.operands.scale.set(x), call.set({ temperature: 2 });
    needs(call.run().y) + needs(call.results.largest);
    const half = op.prepare(shape, { types: { x: "bf16", y: "f32" }, absent: ["scale"], results: ["y"], constants: { heads: 2 } });
    const words: Uint16Array = half.operands.x, whole: Float32Array = half.run().y;
    // @ts-expect-error: it was left out
    half.operands.scale;
    // @ts-expect-error: it is not wanted
    half.results.largest;
    // @ts-expect-error: a misspelt operand
    call.operands.scal;
    // @ts-expect-error: no such result
    call.run().z;
    // @ts-expect-error: constants are no arrays
    call.operands.heads;
    // @ts-expect-error: no such constant
    call.set({ temprature: 2 });
    // @ts-expect-error: no such constant
    op.prepare(shape, { constants: { temprature: 2 } });
    // @ts-expect-error: no such array
    op.prepare(shape, { types: { z: "f32" } });
    // @ts-expect-error: no such type
    op.prepare(shape, { types: { x: "f33" } });
    // @ts-expect-error: no such operand
    op.prepare(shape, { absent: ["scal"] });
    const drawn = (await compile("drawn(row[i], t[row, j], seed[]) -> (y[i,j])\\n    y = t * random(seed, 1)")).prepare(shape);
    const seed: BigInt64Array = drawn.operands.seed, row: Int32Array = drawn.operands.row, t: Float32Array = drawn.operands.t;

    // Of a backward, names: which of them there are only the compiler knows, unless results are asked for.
    const back = op.backward();
    needs(back.run({ dy: x, x, heads: 2 }, { columns: 4, results: ["dx"] }).dx);
    const perhaps: Float32Array | undefined = back.run({ dy: x, x, y, largest: x, heads: 2 }, { columns: 4 }).dscale;
    // @ts-expect-error: it may not be there
    needs(back.run({ dy: x, x, heads: 2 }, { columns: 4 }).dscale);
    // @ts-expect-error: a misspelt gradient
    back.run({ dz: x, x, heads: 2 }, { columns: 4 });
    // @ts-expect-error: no gradient of a constant
    back.run({ dy: x, x, heads: 2 }, { columns: 4, results: ["dheads"] });
    const prepared = back.prepare(shape, { constants: { heads: 2 }, results: ["dx"] });
    prepared.operands.dy!.set(x);
    needs(prepared.run().dx);
    // @ts-expect-error: a misspelt gradient
    prepared.operands.dz;
    // @ts-expect-error: a misspelt gradient
    prepared.run().dscal;
    // @ts-expect-error: this is a backward already
    back.backward();
    const compiler = await loadCompiler(new Uint8Array(8));
    compiler.emit(text, "f 4x4", { target: "ptx" }).bytes.length + compiler.tables.targets[0]!.name.length;
    try { await compile(text, { compiler }); } catch (error) { if (error instanceof CompileError) error.line! + 1; }
  `);
  writeFileSync(join(folder, "tsconfig.json"), JSON.stringify({ files: ["own.mts"], compilerOptions: {
    noEmit: true, strict: true, noUncheckedIndexedAccess: true, target: "es2022", module: "node16", moduleResolution: "node16", lib: ["es2022"], types: [] } }));
  const { status, stdout } = spawnSync(installed("tsc"), ["--project", "."], { cwd: folder, encoding: "utf8" });
  assert.equal(status, 0, stdout);
}));

// Modules for engines that fuse relaxed_madd: what they need, where they load, and what the package chooses.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import { setFlagsFromString } from "node:v8";

import { load, loadOperator, probe, samples } from "../trireme.mjs";
import { digest_of, emit, processor_fuses, reference_digests, sampled, with_installed_package } from "./tool.mjs";

// Node 20 has relaxed SIMD behind a flag; later ones know it without. Node 18 has it by other opcodes than the standard's;
// Chromium runs relaxed modules in chromium.test.mjs, whichever Node is here.
if (!probe().relaxed) setFlagsFromString("--experimental-wasm-relaxed-simd");

// Plays an engine that has none: modules with relaxed instructions do not even validate there.
const without_relaxed = async (work) => {
  const { validate } = WebAssembly, found = probe();
  try {
    let calls = 0;  // of probe(): SIMD, then relaxed SIMD
    WebAssembly.validate = (bytes) => calls++ % 2 === 0 && validate(bytes);
    assert.deepEqual(probe(), { ...found, relaxed: false, fused: false });
    return await work();
  } finally {
    WebAssembly.validate = validate;
  }
};

test("this engine has relaxed SIMD, and fuses where the processor does", () => {
  const { relaxed, fused } = probe();
  assert.equal(relaxed, Number(process.versions.node.split(".")[0]) >= 20);
  assert.equal(fused, relaxed && processor_fuses());
});

test("relaxed modules give the same bits, or are refused", async () => {
  const bytes = emit("softmax", "--arch", "relaxed", "--cols", "541"), [wanted] = reference_digests(["softmax 7x541"]);
  if (!probe().fused) return assert.rejects(load(bytes), /emit the module with --arch simd128/);
  const kernel = await load(bytes);
  assert.equal(kernel.manifest.relaxed, true);
  assert.equal(digest_of(kernel, kernel.run(sampled(kernel, 7, 541), { columns: 541 })), wanted);
});

test("relaxed modules are refused where relaxed_madd is missing", () => without_relaxed(async () => {
  await assert.rejects(load(emit("softmax", "--arch", "relaxed")), /relaxed_madd is missing here; emit the module with --arch simd128/);
}));

test("fault 64: a module without relaxed instructions says so, and loads everywhere", () => without_relaxed(async () => {
  const bytes = emit("rms_norm", "--arch", "relaxed"), kernel = await load(bytes);
  assert.equal(kernel.manifest.relaxed, false);
  assert.ok(bytes.equals(emit("rms_norm")));
  const [wanted] = reference_digests(["rms_norm 7x257"]);
  assert.equal(digest_of(kernel, kernel.run(sampled(kernel, 7, 257), { columns: 257 })), wanted);
}));

test("modules that come with the package", async (t) => {
  await with_installed_package(async (folder) => {
    const home = join(folder, "node_modules/trireme"), modules = join(home, "modules");
    const installed = await import(pathToFileURL(join(home, "trireme.mjs")));
    const layer_norm = async () => {
      const { forward, backward } = await installed.loadOperator("layer_norm");
      const x = samples("x", "f32", 9 * 70), gamma = samples("gamma", "f32", 70), beta = samples("beta", "f32", 70);
      const results = forward({ x, gamma, beta }, { columns: 70 }), { average, rstd } = results;
      assert.equal(digest_of(forward, results), reference_digests(["layer_norm 9x70"])[0]);
      assert.equal(backward({ dy: x, x, gamma, average, rstd }, { columns: 70 }).dbeta.length, 70);
    };
    await t.test("both directions of an operator", layer_norm);
    await t.test("fault 64: the same where fused multiply-add is missing", () => without_relaxed(layer_norm));
    await t.test("fault 64: relaxed modules hold relaxed instructions, or are not there", () => {
      const names = readdirSync(modules), relaxed = names.filter((name) => name.endsWith(".relaxed.wasm"));
      assert.ok(relaxed.length > 0);
      for (const name of relaxed) {
        const bytes = readFileSync(join(modules, name));
        assert.ok(bytes.includes('"relaxed":true'), name);
        assert.ok(!bytes.equals(readFileSync(join(modules, name.replace(".relaxed", "")))), name);
      }
    });
    await t.test("fault 64: what exists loads", async () => {
      const values = {
        x: samples("x", "f32", 5 * 33), gamma: samples("gamma", "f32", 33), beta: samples("beta", "f32", 33),
        alpha: samples("alpha", "f32", 1, { low: 0.25, high: 1 }),  // as ops/dynamic_tanh.row says
      };
      const operator = await installed.loadOperator("dynamic_tanh");
      assert.deepEqual(Object.keys(operator).sort(), ["backward", "forward"]);
      assert.equal(digest_of(operator.forward, operator.forward(values, { columns: 33 })), reference_digests(["dynamic_tanh 5x33"])[0]);
      const { backward } = await loadOperator({ backward: emit("rms_norm", "--backward") });
      assert.equal(backward.manifest.program, "rms_norm_backward");
    });
    await t.test("names of others are refused", async () => {
      await assert.rejects(installed.loadOperator("nothing"), /the package has no operator 'nothing'; it has .*add_layer_norm, /);
      await assert.rejects(installed.loadOperator("toString"), /no operator 'toString'/);
      await assert.rejects(loadOperator({ foward: emit("rms_norm") }), /no direction 'foward'; it has forward, backward/);
      await assert.rejects(loadOperator({}), /neither forward nor backward/);
    });
  });
});

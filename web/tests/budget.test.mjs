// The limits that keep the page quick: bytes to load, time until it is ready, time from a text to all that is made of it.
import assert from "node:assert/strict";
import { brotliCompressSync } from "node:zlib";
import { test } from "node:test";

import { loadCompiler } from "../../js/compiler.mjs";
import { module_bytes } from "./compiler.mjs";
import { ready, times } from "./times.mjs";

test("size: 1.6 MB, 550 kB by brotli, no imports", () => {
  const compressed = brotliCompressSync(module_bytes).length;
  console.log(`${module_bytes.length} bytes, ${compressed} by brotli`);
  assert.ok(module_bytes.length <= 1.6e6, `${module_bytes.length} bytes`);
  assert.ok(compressed <= 550e3, `${compressed} bytes by brotli`);
  assert.deepEqual(WebAssembly.Module.imports(new WebAssembly.Module(module_bytes)), []);
});

test("ready in 100 ms; text to all outputs of both directions in 50 ms for every operator", async () => {
  const ready_after = await ready(), found = times(), [[slowest, longest]] = found;
  console.log(`ready after ${ready_after.toFixed(0)} ms; all outputs of both directions: ` +
    `${found.slice(0, 3).map(([line, time]) => `${line} ${time.toFixed(0)} ms`).join(", ")}, the median ${found[found.length >> 1][1].toFixed(0)} ms`);
  // A processor whose other half is busy takes up to twice as long.
  assert.ok(ready_after < 2 * 100 && longest < 2 * 50, `${ready_after} ms, ${slowest} ${longest} ms`);
});

test("edits do not make it grow", async () => {
  const compiler = await loadCompiler(module_bytes), { operators } = compiler.tables;
  const { text } = operators.find((each) => each.name === "rms_norm");
  const edit = (k) => {
    const changed = text.replace("rsqrt(", k % 3 ? "rsqrt(" : "rsqrt((").replace("eps = 1e-6", `eps = ${1 + k}e-6`);
    try {
      compiler.program(changed);
      compiler.emit(changed, "rms_norm 8x1024");
    } catch (error) {
      assert.equal(error.code, "InvalidProgram");
    }
  };
  for (let k = 0; k < 30; ++k) edit(k);
  const before = compiler.memoryBytes;
  for (let k = 0; k < 300; ++k) edit(k);
  assert.equal(compiler.memoryBytes, before);
});

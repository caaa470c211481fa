// What the compiler emits does not depend on how it was compiled: g++, clang and clang for WebAssembly give the same bytes,
// for every operator, direction, target and architecture, over storage types and widths. TRIREME_KERNEL_HASHES names the
// native programs, separated by colons; without one that clang compiled, the test says that it was not compared.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";

import { xxh3_128 } from "../../js/digest.mjs";
import { compiler } from "./compiler.mjs";

const natives = (process.env.TRIREME_KERNEL_HASHES ?? "build/release/kernel_hashes").split(":");
const widths = [257, 4096, 65536];  // of 16384 rows: up to 4 GiB, which 32 bits cannot count
// Two columns a byte, or pairs of columns half a row apart: an odd number of columns is refused.
const by_pairs = ["quantise_mxfp4", "quantise_nvfp4", "rms_norm_rope", "rms_norm_rope_positions", "rope"];

// The operator as its first '#: try' line has it, at another shape and type.
const lines_of = ({ name, text }) => {
  const { forward, backward, tries } = compiler.program(text);
  const first = forward.leading;
  const settings = tries[0].split(/\s+/).slice(1)
    .filter((each) => !each.endsWith("=none") && !each.startsWith("axes=") && !each.startsWith(first + "="));
  return [false, true].filter((is_backward) => !is_backward || backward).flatMap((is_backward) =>
    ["f32", "bf16"].flatMap((type) => widths.map((width) =>
      [name, `16384x${width === 257 && by_pairs.includes(name) ? 258 : width}`, ...settings, ...(first ? [`${first}=${type}`] : []), ...(is_backward ? ["backward"] : [])].join(" "))));
};

test("the same kernels, whoever compiled the compiler", () => {
  const { operators, targets } = compiler.tables;
  const asked = operators.flatMap((operator) => lines_of(operator).flatMap((line) => targets.flatMap((target) =>
    target.commonArchs.map((arch) => ({ operator, line, target: target.name, arch })))));
  const refused = [];
  const got = asked.map(({ operator, line, target, arch }) => {
    try {
      return xxh3_128(compiler.emit(operator.text, line, { target, arch }).bytes);
    } catch (error) {
      refused.push(`${line} for ${target} ${arch}`);
      return `refused: ${error.message.split("\n")[0]}`;
    }
  });
  assert.deepEqual(refused, []);
  const compilers = [];
  for (const native of natives) {
    const { stdout, status, error } = spawnSync(native, {
      input: asked.map(({ line, target, arch }) => `${target} ${arch} ${line}\n`).join(""), encoding: "utf8", maxBuffer: 2 ** 28,
    });
    assert.equal(status, 0, `${native}: ${error ?? "failed"}`);
    const [by, ...want] = stdout.trimEnd().split("\n");
    compilers.push(by);
    assert.equal(want.length, asked.length);
    const differs = asked.filter((_, k) => got[k] !== want[k]);
    const { line, target, arch } = differs[0] ?? {}, k = asked.indexOf(differs[0]);
    assert.equal(differs.length, 0, `${native}: ${differs.length} of ${asked.length} kernels differ, the first: ` +
      `${line} for ${target} ${arch}: ${want[k]}, here ${got[k]}`);
    console.log(`${native}, compiled by ${by}: ${asked.length} kernels`);
  }
  for (const each of ["g++", "clang"])
    if (!compilers.includes(each)) console.log(`NOT compared: kernels of ${each}'s build; TRIREME_KERNEL_HASHES names none (\`tools/test_all.sh clang web\` makes both)`);
});

// Writes down what machines computed, for the page to stand its own digests beside (web/page/digests.json).
//
//   node web/record_digests.mjs --lines | tr '\n' '\0' | xargs -0 trireme verify --json --device cpu >found.json
//   node web/record_digests.mjs found.json "cpu:avx2=AVX2 (AMD EPYC)" "cuda=NVIDIA H200"
//
// The first prints every operator's own problem in both directions, as the compiler writes problem lines; the second takes the
// named devices' digests of those from what `trireme verify --json` said. Entries of other machines stay, unless their program
// has changed since, which each says, or the contract's version, which the file says. AArch64's come of build/aarch64/emulated (`tools/test_all.sh aarch64` makes
// it) as "cpu:neon=AArch64 NEON (emulated, qemu-user)", an H200's of `bench/gpu.sh … digests`.
import { existsSync, readFileSync, writeFileSync } from "node:fs";

import { xxh3_128 } from "../js/digest.mjs";
import { compiler } from "./tests/compiler.mjs";
import { own_problems } from "./tests/own_problems.mjs";

const file = new URL("page/digests.json", import.meta.url), [source, ...names] = process.argv.slice(2);
const own = new Map(own_problems.map(({ line, text }) =>
  [line, { text, program: xxh3_128(new TextEncoder().encode(compiler.program(text).forward.text)) }]));

if (source === "--lines") for (const line of own.keys()) console.log(line);
else {
  const { contract } = compiler.tables, found = JSON.parse(readFileSync(source, "utf8"));
  if (found.contract !== contract) throw new Error(`digests of contract version ${found.contract}; this compiler's is ${contract}`);
  const before = existsSync(file) ? JSON.parse(readFileSync(file, "utf8")) : {};
  const recorded = before.contract === contract ? before.problems : {};
  for (const [line, { program }] of Object.entries(recorded)) if (own.get(line)?.program !== program) delete recorded[line];
  const machines = Object.fromEntries(names.map((each) => each.split("=")));
  for (const { problem: line, digest, devices } of found.problems) {
    if (!own.has(line)) throw new Error(`no operator's own problem: ${line}`);
    const { text, program } = own.get(line), problem = compiler.open(text, line), here = problem.run();
    problem.close();
    for (const { device, outcome, reason } of devices) {
      if (!machines[device] || outcome === "unsupported") continue;
      if (outcome !== "same") throw new Error(`${line} on ${device}: ${outcome}, ${reason}`);
      if (digest !== here) console.log(`left out, of another version of the program: ${line} on ${device}`);
      else (recorded[line] ??= { program, digests: {} }).digests[machines[device]] = digest;
    }
  }
  const lines = Object.keys(recorded).sort().map((line) => `  ${JSON.stringify(line)}: ${JSON.stringify(recorded[line])}`);
  writeFileSync(file, `{"contract": ${contract}, "problems": {\n${lines.join(",\n")}\n}}\n`);
}

// Writes down what machines computed, for the page to stand its own digests beside (web/page/digests.json).
//
//   node web/record_digests.mjs --lines | tr '\n' '\0' | xargs -0 trireme verify --json >found.json
//   node web/record_digests.mjs found.json "cpu:avx2=AVX2 (AMD EPYC)" "cuda=NVIDIA H200"
//
// The first prints every operator's own problem in both directions; the second takes the named devices' digests of those from
// what `trireme verify --json` said. Entries of other machines stay, unless their program has changed since: each says which
// program it is of.
import { existsSync, readFileSync, writeFileSync } from "node:fs";

import { xxh3_128 } from "../js/digest.mjs";
import { compiler } from "./tests/compiler.mjs";

const file = new URL("page/digests.json", import.meta.url), [source, ...names] = process.argv.slice(2);
const own = new Map();  // problem line → program's text and hash
for (const { name, text } of compiler.tables.operators) {
  const { tries, backward, forward } = compiler.program(text), program = xxh3_128(new TextEncoder().encode(forward.text));
  for (const line of backward ? [tries[0], `${tries[0]} backward`] : [tries[0]]) own.set(`${name} ${line}`, { text, program });
}

if (source === "--lines") for (const line of own.keys()) console.log(line);
else {
  const recorded = existsSync(file) ? JSON.parse(readFileSync(file, "utf8")) : {};
  for (const [line, { program }] of Object.entries(recorded)) if (own.get(line)?.program !== program) delete recorded[line];
  const machines = Object.fromEntries(names.map((each) => each.split("=")));
  for (const { problem: line, digest, devices } of JSON.parse(readFileSync(source, "utf8")).problems) {
    if (!own.has(line)) continue;
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
  writeFileSync(file, `{\n${lines.join(",\n")}\n}\n`);
}

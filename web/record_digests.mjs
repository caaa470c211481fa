// Writes down what machines computed, for the page to stand its own digests beside (web/page/digests.json).
//
//   node web/record_digests.mjs --lines | tr '\n' '\0' | xargs -0 trireme verify --json >found.json
//   node web/record_digests.mjs found.json "cpu:avx2=AVX2 (AMD EPYC)" "cuda:0=NVIDIA H200"
//
// The first prints every operator's own problem in both directions; the second takes the named devices' digests from what
// `trireme verify --json` said. Entries of other machines stay.
import { existsSync, readFileSync, writeFileSync } from "node:fs";

const file = new URL("page/digests.json", import.meta.url);
const [source, ...names] = process.argv.slice(2);
if (source === "--lines") {
  const { compiler } = await import("./tests/compiler.mjs");
  for (const { name, text } of compiler.tables.operators) {
    const { tries, backward } = compiler.program(text);
    for (const line of backward ? [tries[0], `${tries[0]} backward`] : [tries[0]]) console.log(`${name} ${line}`);
  }
} else {
  const recorded = existsSync(file) ? JSON.parse(readFileSync(file, "utf8")) : {};
  const machines = Object.fromEntries(names.map((each) => each.split("=")));
  for (const { problem, digest, devices } of JSON.parse(readFileSync(source, "utf8")).problems)
    for (const found of devices) {
      if (!machines[found.device]) continue;
      if (found.outcome === "unsupported") continue;
      if (found.outcome !== "same") throw new Error(`${problem} on ${found.device}: ${found.outcome}, ${found.reason}`);
      (recorded[problem] ??= {})[machines[found.device]] = found.digest ?? digest;
    }
  const lines = Object.keys(recorded).sort().map((line) => `  ${JSON.stringify(line)}: ${JSON.stringify(recorded[line])}`);
  writeFileSync(file, `{\n${lines.join(",\n")}\n}\n`);
}

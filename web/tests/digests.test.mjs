// What machines computed and the page shows (web/page/digests.json) is what this compiler's reference computes, for every
// program that has not changed since.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { xxh3_128 } from "../../js/digest.mjs";
import { compiler } from "./compiler.mjs";

test("recorded digests are the reference's", () => {
  const recorded = JSON.parse(readFileSync(new URL("../page/digests.json", import.meta.url), "utf8"));
  const texts = new Map(compiler.tables.operators.map(({ name, text }) => [name, text]));
  let compared = 0;
  const changed = new Set();
  for (const [line, { program, digests }] of Object.entries(recorded)) {
    const name = line.split(" ")[0], text = texts.get(name);
    if (!text || xxh3_128(new TextEncoder().encode(compiler.program(text).forward.text)) !== program) {
      changed.add(name);
      continue;
    }
    const problem = compiler.open(text, line), digest = problem.run();
    problem.close();
    for (const [machine, found] of Object.entries(digests)) assert.equal(found, digest, `${line} on ${machine}`), ++compared;
  }
  console.log(`${compared} digests compared${changed.size ? `; programs that have changed since: ${[...changed].join(", ")}` : ""}`);
  assert.ok(compared > 40);
});

// What machines computed and the page shows (web/page/digests.json) is what this compiler's reference computes.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { compiler } from "./compiler.mjs";

test("recorded digests are the reference's", () => {
  const recorded = JSON.parse(readFileSync(new URL("../page/digests.json", import.meta.url), "utf8"));
  for (const { name, text } of compiler.tables.operators) {
    const lines = Object.keys(recorded).filter((line) => line.split(" ")[0] === name);
    for (const line of lines) {
      const problem = compiler.open(text, line), digest = problem.run();
      problem.close();
      for (const [machine, found] of Object.entries(recorded[line])) assert.equal(found, digest, `${line} on ${machine}`);
    }
  }
  assert.ok(Object.keys(recorded).length > 20);
});

// What machines computed and the page shows (web/page/digests.json): of every operator's own problem, on the processors that are
// at hand, what this compiler's reference computes; and what web/record_digests.mjs refuses.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test } from "node:test";

import { xxh3_128 } from "../../js/digest.mjs";
import { tool } from "../../js/tests/tool.mjs";
import { compiler } from "./compiler.mjs";
import { own_problems } from "./own_problems.mjs";

test("recorded digests are the reference's", () => {
  const { contract, problems: recorded } = JSON.parse(readFileSync(new URL("../page/digests.json", import.meta.url), "utf8"));
  assert.equal(contract, compiler.tables.contract);
  const of_machine = new Map(), again = "see web/record_digests.mjs";
  for (const { line, text } of own_problems) {
    const { program, digests } = recorded[line] ?? assert.fail(`${line} is not recorded; ${again}`);
    delete recorded[line];
    assert.equal(program, xxh3_128(new TextEncoder().encode(compiler.program(text).forward.text)), `${line}: its program has changed; ${again}`);
    const problem = compiler.open(text, line), digest = problem.run();
    problem.close();
    for (const [machine, found] of Object.entries(digests)) {
      assert.equal(found, digest, `${line} on ${machine}`);
      of_machine.set(machine, [...(of_machine.get(machine) ?? []), line]);
    }
  }
  assert.deepEqual(Object.keys(recorded), [], "no operator's own problems");
  console.log([...of_machine].map(([machine, lines]) => `${machine}: ${lines.length} of ${own_problems.length} problems`).join("; "));
  // A GPU is not always at hand.
  for (const kind of ["AVX2", "AVX-512", "AArch64"])
    assert.equal([...of_machine].find(([machine]) => machine.startsWith(kind))?.[1].length, own_problems.length, `${kind}; ${again}`);
});

test("a problem that is no operator's own, and another contract, are refused, not dropped", () => {
  const folder = mkdtempSync(join(tmpdir(), "trireme-recorded-")), file = join(folder, "found.json");
  try {
    const { contract } = compiler.tables, problems = [{ problem: "rms_norm 8x257", digest: "", devices: [] }];
    for (const [found, reason] of [[{ contract, problems }, /no operator's own problem: rms_norm 8x257/],
      [{ contract: contract + 1, problems: [] }, /digests of contract version/], [{ problems: [] }, /digests of contract version undefined/]]) {
      writeFileSync(file, JSON.stringify(found));
      const { status, stderr } = spawnSync(process.execPath, ["web/record_digests.mjs", file, "cpu:avx2=AVX2"], { encoding: "utf8" });
      assert.equal(status, 1);
      assert.match(stderr, reason);
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test("bench/gpu.sh runs every recorded problem, and fails where one was not run", () => {
  const folder = mkdtempSync(join(tmpdir(), "trireme-recorded-")), count = own_problems.length;
  const run = (programs) => spawnSync("bench/gpu.sh", [programs, folder, folder, "digests"], { encoding: "utf8", env: { ...process.env, DEVICE: "cpu" } });
  try {
    const { status, stdout } = run(dirname(tool));
    assert.equal(status, 0, stdout);
    assert.ok(stdout.includes(`\n${count} of ${count} digests are the reference's\n`), stdout);
    const { problems } = JSON.parse(readFileSync(join(folder, "digests.json"), "utf8"));
    assert.deepEqual(problems.map(({ problem }) => problem).sort(), own_problems.map(({ line }) => line).sort());
    mkdirSync(join(folder, "forgetful"));
    writeFileSync(join(folder, "forgetful/trireme"), `#!/bin/bash\nexec "${tool}" "\${@:1:$#-1}"\n`, { mode: 0o755 });
    const forgetful = run(join(folder, "forgetful"));
    assert.equal(forgetful.status, 1, forgetful.stdout);
    assert.match(forgetful.stdout, /FAILED: .*not run/);
    assert.ok(forgetful.stdout.includes(`\n${count - 1} of ${count} digests are the reference's\n`), forgetful.stdout);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

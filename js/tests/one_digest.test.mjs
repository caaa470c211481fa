// examples/one_digest in Node, by modules that the command line emits: the published digest. In browsers: web/tests.
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import { train } from "../../examples/one_digest/walk.mjs";
import { load } from "../trireme.mjs";
import { emit } from "./tool.mjs";

const read = (name) => JSON.parse(readFileSync(new URL(`../../examples/one_digest/${name}`, import.meta.url), "utf8"));

test("a transformer trained in Node ends with the published weights", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "trireme-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const kernels = new Map(), versions = [];
  const emitted = async (call, { buffers, each_step, programs }) => {
    const { program, backward, shape: [rows, columns], constants = {}, operands, results, absent = [] } = call;
    const file = join(folder, `${program}.row`), flags = ["--rows", rows, "--cols", columns, ...(backward ? ["--backward"] : [])];
    for (const [name, { of }] of Object.entries({ ...operands, ...results })) flags.push("--type", `${name}=${buffers[of].type}`);
    for (const [name, value] of Object.entries(constants))
      flags.push("--set", `${name}=${typeof value === "string" ? each_step[value][0] : value}`);
    for (const name of absent) flags.push("--absent", name);
    const key = [file, ...flags].join(" ");
    if (!kernels.has(key)) {
      writeFileSync(file, programs[program]);
      const kernel = await load(emit(file, ...flags.map(String)));
      versions.push(kernel.manifest.contract);
      const taken = new Set(kernel.manifest.operands.map(({ name }) => name));  // constants that are folded are no arguments
      kernels.set(key, { run: (values, { results, ...options }) =>
        kernel.run(Object.fromEntries(Object.entries(values).filter(([name]) => taken.has(name))), options) });
    }
    return kernels.get(key);
  };
  let last;
  for await (last of train(read("tape.json"), emitted));
  const { step, loss, digest } = last, { contract, tape, ...published } = read("published.json");
  assert.deepEqual({ steps: step, loss, sha256: digest }, published);
  assert.deepEqual(new Set(versions), new Set([contract]));
});

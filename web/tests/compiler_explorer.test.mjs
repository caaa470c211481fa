// The definition for Compiler Explorer (web/compiler-explorer), run as that would: the class over a base that does what theirs
// does, every compiler of the list, its text beside `trireme emit -o -`.
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import { installed, tool } from "../../js/tests/tool.mjs";
import { properties as properties_of } from "../compiler-explorer/properties.mjs";
import { compiler } from "./compiler.mjs";

const from = new URL("../compiler-explorer/", import.meta.url).pathname;
const properties = Object.fromEntries(properties_of(compiler.tables).split("\n").filter(Boolean).map((line) => line.match(/^([^=]+)=(.*)$/).slice(1)));
const listed = properties["group.trireme.compilers"].split(":");

// What of Compiler Explorer's own class is used.
const base = `
  import { spawnSync } from "node:child_process";
  export class BaseCompiler {
    outputFilebase = "output";
    async runCompiler(exe, options, inputFilename) {
      const { status, stdout, stderr } = spawnSync(exe, options, { encoding: "utf8" });
      const lines = (text) => text.split("\\n").slice(0, -1).map((line) => ({ text: line }));
      return { code: status, stdout: lines(stdout), stderr: lines(stderr) };
    }
  }
`;

test("Compiler Explorer: every target's text, errors at their place", async () => {
  const folder = mkdtempSync(join(tmpdir(), "trireme-explorer-"));
  try {
    mkdirSync(join(folder, "lib/compilers"), { recursive: true });
    cpSync(join(from, "trireme.ts"), join(folder, "lib/compilers/trireme.ts"));
    writeFileSync(join(folder, "lib/base-compiler.js"), base);
    execFileSync(installed("esbuild"), ["lib/compilers/trireme.ts", "--bundle", "--format=esm", "--platform=node", "--target=node18", "--outfile=class.mjs"], { cwd: folder, stdio: "pipe" });
    const { TriremeCompiler } = await import(join(folder, "class.mjs"));
    assert.equal(TriremeCompiler.key, properties["group.trireme.compilerType"]);
    const program = join(folder, "example.row"), explorer = new TriremeCompiler();
    cpSync(join(from, "default.row"), program);
    const compile = (id, ...more) =>
      explorer.runCompiler(tool, [...explorer.optionsForFilter({}, ""), ...properties[`compiler.${id}.options`].split(" "), ...more, program], program, {});
    for (const id of listed) {
      const { code, stdout } = await compile(id);
      assert.equal(code, 0, id);
      assert.deepEqual(stdout, []);
      const text = readFileSync(join(folder, "output.s"), "utf8"), [, target, , arch] = properties[`compiler.${id}.options`].split(" ");
      assert.equal(text.trimEnd(), compiler.show(readFileSync(program, "utf8"), "rms_norm 4096x4096", { target, arch }).trimEnd(), id);
      const emitted = execFileSync(tool, ["emit", program, "--target", target, "--arch", arch, "-o", "-"], { maxBuffer: 2 ** 26 });
      const { form } = compiler.tables.targets.find((each) => each.name === target);
      if (form === "text") assert.ok(emitted.toString().trimEnd().endsWith(text.trimEnd()), id);
      else assert.deepEqual(Buffer.from(compiler.emit(readFileSync(program, "utf8"), "rms_norm 4096x4096", { target, arch }).bytes), emitted, id);
    }
    await compile(listed[0], "--backward");
    assert.match(readFileSync(join(folder, "output.s"), "utf8"), /rms_norm_backward/);
    writeFileSync(program, "f(x[i,j]) -> (y[i,j])\n    y = exq(x)\n");
    const { code, stderr } = await compile(listed[0]);
    assert.notEqual(code, 0);
    assert.match(stderr[0].text, /example\.row:2:9: /);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test("Compiler Explorer: a list whose every compiler is described", () => {
  for (const id of listed) for (const field of ["exe", "name", "options", "instructionSet"]) assert.ok(properties[`compiler.${id}.${field}`], `${id}.${field}`);
  assert.ok(listed.includes(properties.defaultCompiler));
  assert.equal(spawnSync(tool, [properties["group.trireme.versionFlag"]]).status, 0);
});

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

// What the definition takes of Compiler Explorer: exec() with its limit on output, a place at the beginning of a line as what
// marks it in the editor, and the filters that are on unless said.
const base = `
  import { spawnSync } from "node:child_process";
  export class BaseCompiler {
    outputFilebase = "output";
    env = { ceProps: (name, otherwise) => otherwise };
    async exec(exe, options, { maxOutput = 1024 * 1024, customCwd }) {
      const { status, stdout, stderr } = spawnSync(exe, options, { encoding: "utf8", cwd: customCwd, maxBuffer: 2 ** 30 });
      const cut = (text) => (text.length > maxOutput ? text.slice(0, maxOutput) + "[Truncated]" : text);
      return { code: status, stdout: cut(stdout), stderr: cut(stderr) };
    }
    transformToCompilationResult({ code, stdout, stderr }, inputFilename) {
      const lines = (text) => text.replaceAll(inputFilename, "<source>").split("\\n").slice(0, -1).map((line) => {
        const [, row, column] = line.match(/^\\s*<source>:(\\d+):(\\d+):/) ?? [];
        return row ? { text: line, tag: { line: Number(row), column: Number(column) } } : { text: line };
      });
      return { code, stdout: lines(stdout), stderr: lines(stderr) };
    }
    getOutputFilename(folder, name) { return folder + "/" + name + ".s"; }
    getDefaultExecOptions() { return {}; }
    getDefaultFilters() { return { binary: false, intel: true, demangle: true, commentOnly: true, directives: true, labels: true, trim: false }; }
  }
`;
const parsers = "export class BaseParser {}\n";

test("Compiler Explorer: every target's text, errors at their place", async () => {
  const folder = mkdtempSync(join(tmpdir(), "trireme-explorer-"));
  try {
    mkdirSync(join(folder, "lib/compilers"), { recursive: true });
    cpSync(join(from, "trireme.ts"), join(folder, "lib/compilers/trireme.ts"));
    writeFileSync(join(folder, "lib/base-compiler.js"), base);
    writeFileSync(join(folder, "lib/compilers/argument-parsers.js"), parsers);
    execFileSync(installed("esbuild"), ["lib/compilers/trireme.ts", "--bundle", "--format=esm", "--platform=node", "--target=node18", "--outfile=class.mjs"], { cwd: folder, stdio: "pipe" });
    const { TriremeCompiler } = await import(join(folder, "class.mjs"));
    assert.equal(TriremeCompiler.key, properties["group.trireme.compilerType"]);
    assert.equal(new TriremeCompiler().getArgumentParserClass().name, "BaseParser", "GCC's would ask for GCC's options");
    const program = join(folder, "example.row"), explorer = new TriremeCompiler();
    cpSync(join(from, "default.row"), program);
    const compile = (id, ...more) =>
      explorer.runCompiler(tool, [...explorer.optionsForFilter({}, ""), ...properties[`compiler.${id}.options`].split(" "), ...more, program], program, {});
    const shown = async (filters) => {
      const { asm } = await explorer.processAsm({ asm: readFileSync(join(folder, "output.s"), "utf8") }, filters);
      return asm.map(({ text }) => text + "\n").join("");
    };
    const filters = explorer.getDefaultFilters();
    for (const id of listed) {
      const { code, stdout } = await compile(id);
      assert.equal(code, 0, id);
      assert.deepEqual(stdout, []);
      const text = await shown(filters), [, target, , arch] = properties[`compiler.${id}.options`].split(" ");
      assert.equal(text, compiler.show(readFileSync(program, "utf8"), "rms_norm 4096x4096", { target, arch }), id);
      const bare = await shown({ ...filters, commentOnly: true });
      assert.deepEqual(bare.split("\n"), text.split("\n").filter((line) => !/^ *(;|\/\/)/.test(line)), id);
      const emitted = execFileSync(tool, ["emit", program, "--target", target, "--arch", arch, "-o", "-"], { maxBuffer: 2 ** 26 });
      const { form } = compiler.tables.targets.find((each) => each.name === target);
      if (form === "text") {
        // For its readers the listing says in comments which registers hold names; the artifact is its other lines, below a head.
        const lines = text.trimEnd().split("\n"), code = lines.filter((line) => !/^ *\/\/ \w+:(?: %\w+)+$/.test(line));
        assert.ok(code.length < lines.length && emitted.toString().trimEnd().endsWith(code.join("\n")), id);
      }
      else assert.deepEqual(Buffer.from(compiler.emit(readFileSync(program, "utf8"), "rms_norm 4096x4096", { target, arch }).bytes), emitted, id);
    }
    await compile(listed[0], "--backward");
    assert.match(readFileSync(join(folder, "output.s"), "utf8"), /rms_norm_backward/);
    writeFileSync(program, "f(x[i,j]) -> (y[i,j])\n    y = exq(x)\n");
    const { code, stderr } = await compile(listed[0]);
    assert.notEqual(code, 0);
    assert.deepEqual(stderr[0], { text: "<source>:2:9: unknown function 'exq'; did you mean 'exp'?", tag: { line: 2, column: 9 } });
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test("Compiler Explorer: a list whose every compiler is described", () => {
  for (const id of listed) for (const field of ["exe", "name", "options", "instructionSet", "semver"]) assert.ok(properties[`compiler.${id}.${field}`], `${id}.${field}`);
  assert.ok(listed.includes(properties.defaultCompiler));
  const { status, stdout } = spawnSync(tool, [properties["group.trireme.versionFlag"]], { encoding: "utf8" });
  assert.deepEqual([status, stdout.trim()], [0, properties[`compiler.${listed[0]}.semver`]]);
});

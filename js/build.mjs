// Usage: node js/build.mjs [TRIREME [FOLDER]]
// Writes the modules that come with the package: every operator that needs nothing said, f32, any number of columns. Per
// operator:
//   NAME.wasm, NAME_backward.wasm   forward and backward, for engines with SIMD
//   NAME.relaxed.wasm, ...          the same for engines that fuse relaxed_madd, where that makes another module
//   NAME.mjs, NAME.relaxed.mjs      the bytes of all its directions as JavaScript, for bundlers and import maps
// and index.mjs (imports of those by name) with its declarations, which know every operator's operands and results;
// and compiler.mjs, the compiler, where `make web` has built it.
import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

import { built_compiler, write_compiler } from "./build_compiler.mjs";
import { read_module } from "./module.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const tool = process.argv[2] ?? join(here, "../build/release/trireme"), folder = process.argv[3] ?? join(here, "modules");
rmSync(folder, { recursive: true, force: true });
mkdirSync(folder, { recursive: true });

const left_out = [];
const emit = (name, direction, arch) => {
  const file = join(folder, "module");
  const { status, stderr } = spawnSync(tool,
    ["emit", name, ...(direction === "backward" ? ["--backward"] : []), "--target", "wasm", "--arch", arch, "-o", file],
    { encoding: "utf8" });
  if (status === 0) return readFileSync(file);
  if (arch === "simd128") left_out.push(`${name} ${direction}: ${stderr.trim().split("\n")[0]}`);
  return undefined;
};
const directions = ["forward", "backward"];
const write = (file, text) => writeFileSync(join(folder, file), text);

// They import nothing: a chunk that imports from the page's own waits for it, while the page may be waiting for the chunk.
const write_script = (stem, modules) => {
  const found = Object.keys(modules);
  write(`${stem}.mjs`, found.map((direction) => `export const ${direction} = /* @__PURE__ */ ` +
    `Uint8Array.from(atob("${modules[direction].toString("base64")}"), (letter) => letter.charCodeAt(0));\n`).join(""));
  write(`${stem}.d.mts`, found.map((direction) => `export const ${direction}: Uint8Array;\n`).join(""));
};

const signature = async (bytes) => {
  const { manifest: { operands, results } } = await read_module(bytes);
  const list = (specs) => specs.map(({ name, type }) => (type ? `${name}: "${type}"` : `${name}?: "constant"`)).join("; ");
  return `{ operands: { ${list(operands)} }; results: { ${list(results)} } }`;
};

const operators = [...execFileSync(tool, ["list"], { encoding: "utf8" }).matchAll(/^(\w+)\(/gm)].map((found) => found[1]);
const imports = [], declarations = [];
for (const name of operators) {
  const plain = {}, relaxed = {};
  let differs = false;
  for (const direction of directions) {
    const stem = name + (direction === "backward" ? "_backward" : "");
    const bytes = emit(name, direction, "simd128");
    if (!bytes) continue;
    plain[direction] = bytes;
    write(`${stem}.wasm`, bytes);
    relaxed[direction] = emit(name, direction, "relaxed");
    if (relaxed[direction].equals(bytes)) continue;
    write(`${stem}.relaxed.wasm`, relaxed[direction]);
    differs = true;
  }
  if (!Object.keys(plain).length) continue;
  write_script(name, plain);
  if (differs) write_script(`${name}.relaxed`, relaxed);
  imports.push(`  ${name}: { simd128: () => import("./${name}.mjs")` +
    `${differs ? `, relaxed: () => import("./${name}.relaxed.mjs")` : ""} },\n`);
  const members = await Promise.all(Object.keys(plain).map(async (each) => `    ${each}: ${await signature(plain[each])};\n`));
  declarations.push(`  ${name}: {\n${members.join("")}  };\n`);
}
write("index.mjs", `// Written by js/build.mjs.\nexport const operators = {\n${imports.join("")}};\n`);
write("index.d.mts", "// Written by js/build.mjs: what every operator's modules take and give.\n" +
  `export interface Signatures {\n${declarations.join("")}}\n`);
rmSync(join(folder, "module"), { force: true });
write_compiler(built_compiler, folder);
for (const each of left_out) console.log(`left out ${each}`);

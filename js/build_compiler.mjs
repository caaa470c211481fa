// Usage: node js/build_compiler.mjs TRIREME_WASM [FOLDER]
// Writes the compiler as the package carries it: FOLDER/compiler.mjs, JavaScript that holds the bytes, for bundlers and import
// maps, and compiler.wasm, the file itself.
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const [, , file, folder = join(dirname(fileURLToPath(import.meta.url)), "modules")] = process.argv;
mkdirSync(folder, { recursive: true });
copyFileSync(file, join(folder, "compiler.wasm"));
writeFileSync(join(folder, "compiler.mjs"), "// Written by js/build_compiler.mjs.\nexport const bytes = () => " +
  `Uint8Array.from(atob("${readFileSync(file).toString("base64")}"), (letter) => letter.charCodeAt(0));\n`);
writeFileSync(join(folder, "compiler.d.mts"), "export function bytes(): Uint8Array;\n");

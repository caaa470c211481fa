// Usage: node js/build_compiler.mjs TRIREME_WASM [FOLDER]
// Writes the compiler as the package carries it: FOLDER/compiler.mjs, JavaScript that holds the bytes, for bundlers and import
// maps, and compiler.wasm, the file itself. js/build.mjs does so too, where `make web` has built the compiler; else the module
// it writes says what is missing, so that bundlers find one.
import { copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
export const built_compiler = join(here, "../build/web/trireme.wasm");

export const write_compiler = (file, folder) => {
  mkdirSync(folder, { recursive: true });
  const is_there = existsSync(file);
  if (is_there) copyFileSync(file, join(folder, "compiler.wasm"));
  const body = is_there ? `Uint8Array.from(atob("${readFileSync(file).toString("base64")}"), (letter) => letter.charCodeAt(0))`
    : '{ throw new Error("the package was built without its compiler; `make web` makes it"); }';
  writeFileSync(join(folder, "compiler.mjs"), `// Written by js/build_compiler.mjs.\nexport const bytes = () => ${body};\n`);
  writeFileSync(join(folder, "compiler.d.mts"), "export function bytes(): Uint8Array;\n");
};

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [, , file = built_compiler, folder = join(here, "modules")] = process.argv;
  if (!existsSync(file)) throw new Error(`${file} is not there; \`make web\` makes it`);
  write_compiler(file, folder);
}

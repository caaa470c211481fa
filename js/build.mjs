// Usage: node js/build.mjs [TRIREME [FOLDER]]
// Writes the modules that come with the package: every operator that needs nothing said, f32, any number of columns,
// forward and backward, with and without relaxed SIMD.
import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const tool = process.argv[2] ?? join(here, "../build/release/trireme"), folder = process.argv[3] ?? join(here, "modules");
rmSync(folder, { recursive: true, force: true });
mkdirSync(folder, { recursive: true });

const operators = [...execFileSync(tool, ["list"], { encoding: "utf8" }).matchAll(/^(\w+)\(/gm)].map((found) => found[1]);
const left_out = [];
for (const name of operators) {
  for (const [direction, ending] of [[[], ""], [["--backward"], "_backward"]]) {
    for (const [arch, variant] of [["simd128", ""], ["relaxed", ".relaxed"]]) {
      const file = join(folder, `${name}${ending}${variant}.wasm`);
      const { status, stderr } = spawnSync(tool, ["emit", name, ...direction, "--target", "wasm", "--arch", arch, "-o", file],
        { encoding: "utf8" });
      if (status !== 0 && variant === "") left_out.push(`${name}${ending}: ${stderr.trim().split("\n")[0]}`);
    }
  }
}
for (const each of left_out) console.log(`left out ${each}`);

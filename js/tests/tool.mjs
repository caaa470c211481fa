// The command line, for tests: modules it emits, and digests of the reference's results.
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = join(dirname(fileURLToPath(import.meta.url)), "../..");
export const tool = process.env.TRIREME_TOOL ?? join(root, "build/release/trireme");

export const trireme = (...args) => execFileSync(tool, args, { encoding: "utf8" });

export const emit = (...args) => {
  const folder = mkdtempSync(join(tmpdir(), "trireme-"));
  try {
    trireme("emit", ...args, "--target", "wasm", "-o", join(folder, "module.wasm"));
    return readFileSync(join(folder, "module.wasm"));
  } finally {
    rmSync(folder, { recursive: true });
  }
};

// Of all results in order, for the samples of each problem line.
export const reference_digests = (lines) => {
  const text = trireme("verify", ...lines, "--device", "reference");
  return [...text.matchAll(/^  reference +([0-9a-f]{32})/gm)].map((found) => found[1]);
};

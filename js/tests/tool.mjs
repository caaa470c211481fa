// What tests share: the command line's modules and the digests of the reference's results; samples; an installed package.
import { execFileSync } from "node:child_process";
import { cpSync, mkdtempSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

import { digest } from "../digest.mjs";
import { samples } from "../samples.mjs";

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

export const digest_of = (kernel, results) =>
  digest(kernel.manifest.results.map(({ name, type }) => [type, results[name]]));
const extent = (axis, count) => (axis ? axis.wrap || Math.ceil(count / axis.divide) : 1);
export const sampled = (kernel, rows, columns) =>
  Object.fromEntries(kernel.manifest.operands.filter((operand) => operand.type).map(({ name, type, row, column }) =>
    [name, samples(name, type, extent(row, rows) * extent(column, columns))]));

// Every other processor that runs these tests has fused multiply-add.
export const processor_fuses = () => process.arch !== "x64" || / fma /.test(readFileSync("/proc/cpuinfo", "utf8"));

// A program that tools/setup.sh installs: tests that need it fail without.
export const installed = (...names) => {
  const found = names.find((name) => {
    try {
      return execFileSync(name, ["--version"], { stdio: ["ignore", "pipe", "ignore"] });
    } catch {
      return false;
    }
  });
  if (!found) throw new Error(`${names[0]} is not installed; \`tools/setup.sh tests\` sees to it`);
  return found;
};

// Calls `work` with a folder whose node_modules/trireme holds what a published package would, modules included.
export const with_installed_package = async (work) => {
  const folder = mkdtempSync(join(tmpdir(), "trireme-installed-")), to = join(folder, "node_modules/trireme");
  try {
    const { files } = JSON.parse(readFileSync(join(root, "js/package.json"), "utf8"));
    mkdirSync(to, { recursive: true });
    for (const name of ["package.json", ...files]) if (name !== "modules") cpSync(join(root, "js", name), join(to, name));
    execFileSync(process.execPath, [join(root, "js/build.mjs"), tool, join(to, "modules")]);
    return await work(folder);
  } finally {
    rmSync(folder, { recursive: true });
  }
};

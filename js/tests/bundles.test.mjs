// The package as pages take it: bundled by esbuild and by rollup, or through an import map; run in headless Chromium, and
// held to the reference's digests.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join, relative } from "node:path";
import { test } from "node:test";

import { visit } from "./browser.mjs";
import { installed, reference_digests, with_installed_package } from "./tool.mjs";

// Operators by name, and the module of one imported by its own.
const page = `
import { digest, loadOperator, samples } from "trireme";
import * as swiglu from "trireme/modules/swiglu.mjs";

const report = {};
const run = (kernel, rows, columns) => {
  const values = Object.fromEntries(kernel.manifest.operands.filter((operand) => operand.type).map(
    ({ name, type, row, column }) => [name, samples(name, type, (row ? rows : 1) * (column ? columns : 1))]));
  const results = kernel(values, { columns });
  return digest(kernel.manifest.results.map(({ name, type }) => [type, results[name]]));
};
try {
  const rms_norm = await loadOperator("rms_norm"), softmax = await loadOperator("softmax");
  report.rms_norm = run(rms_norm.forward, 7, 257);
  report.backward = run(rms_norm.backward, 150, 300);
  report.softmax = run(softmax.forward, 7, 541);
  report.swiglu = run((await loadOperator(swiglu)).forward, 7, 257);
} catch (error) {
  report.error = String(error.stack);
}
await fetch("/report", { method: "POST", body: JSON.stringify(report) });
`;
// The file itself, as an asset.
const asset_page = `
import { digest, load, samples } from "trireme";
import address from "trireme/modules/rms_norm.wasm";
const report = { address };
try {
  const kernel = await load(fetch(address));
  const { y, rstd } = kernel.run({ x: samples("x", "f32", 7 * 257), gamma: samples("gamma", "f32", 257) }, { columns: 257 });
  report.rms_norm = digest([["f32", y], ["f32", rstd]]);
} catch (error) {
  report.error = String(error.stack);
}
await fetch("/report", { method: "POST", body: JSON.stringify(report) });
`;
// What a page's usual plugin for rollup does: packages are found as Node finds them.
const rollup_config = (folder) => `
import { createRequire } from "node:module";
const { resolve } = createRequire(${JSON.stringify(join(folder, "page.mjs"))});
export default {
  input: "page.mjs",
  output: { dir: "rollup", format: "es" },
  plugins: [{ name: "packages", resolveId: (name) => (name.startsWith("trireme") ? resolve(name) : null) }],
};
`;

const files_of = (folder) => readdirSync(folder, { withFileTypes: true }).flatMap((each) =>
  each.isDirectory() ? files_of(join(folder, each.name)) : [join(folder, each.name)]);

test("fault 63: pages that take the package as a bundle, or through an import map", async (t) => {
  const [rms_norm, backward, softmax, swiglu] =
    reference_digests(["rms_norm 7x257", "rms_norm 150x300 backward", "softmax 7x541", "swiglu 7x257"]);
  const wanted = { rms_norm, backward, softmax, swiglu };
  await with_installed_package(async (folder) => {
    writeFileSync(join(folder, "page.mjs"), page);
    writeFileSync(join(folder, "asset_page.mjs"), asset_page);
    writeFileSync(join(folder, "rollup.config.mjs"), rollup_config(folder));
    const bundle = (program, ...args) => execFileSync(installed(program), args, { cwd: folder, stdio: "pipe" });
    const esbuild = (input, ...args) => bundle("esbuild", input, "--bundle", "--format=esm", "--target=es2022", ...args);
    await t.test("esbuild: in parts, in one file, with a module as an asset", () => {
      esbuild("page.mjs", "--splitting", "--outdir=parts");
      assert.ok(readFileSync(join(folder, "parts/page.js")).length < 200000, "operators that are not named lie elsewhere");
      esbuild("page.mjs", "--minify", "--outfile=whole.js");
      esbuild("asset_page.mjs", "--loader:.wasm=file", "--outdir=assets", "--public-path=/assets");
    });
    await t.test("rollup", () => bundle("rollup", "--config", "rollup.config.mjs", "--failAfterWarnings"));

    const imports = { trireme: "/node_modules/trireme/trireme.mjs", "trireme/": "/node_modules/trireme/" };
    const html = (script, head = "") => `<!doctype html>${head}<script type="module" src="${script}"></script>`;
    const pages = {
      "/parts.html": html("/parts/page.js"),
      "/whole.html": html("/whole.js"),
      "/assets.html": html("/assets/asset_page.js"),
      "/rollup.html": html("/rollup/page.js"),
      "/map.html": html("/page.mjs", `<script type="importmap">${JSON.stringify({ imports })}</script>`),
    };
    const files = Object.fromEntries(files_of(folder).map((file) => ["/" + relative(folder, file), readFileSync(file)]));
    const reports = await visit({ ...files, ...pages }, Object.keys(pages));
    for (const name of ["parts", "whole", "rollup", "map"])
      await t.test(`the digests of ${name}`, () => assert.deepEqual(reports[`/${name}.html`], wanted));
    await t.test("the digest of an asset", () => {
      const { address, ...found } = reports["/assets.html"];
      assert.match(address, /^\/assets\/rms_norm-\w+\.wasm$/);
      assert.deepEqual(found, { rms_norm });
    });
    await t.test("Node, by the package's name", async () => {
      const { resolve } = createRequire(join(folder, "page.mjs"));
      for (const name of ["trireme", "trireme/modules/rms_norm.wasm", "trireme/modules/rms_norm.mjs", "trireme/package.json"])
        assert.ok(resolve(name).startsWith(join(folder, "node_modules/trireme")), name);
      writeFileSync(join(folder, "in_node.mjs"), page.replace(/await fetch.*/, "console.log(JSON.stringify(report));"));
      assert.deepEqual(JSON.parse(execFileSync(process.execPath, [join(folder, "in_node.mjs")], { encoding: "utf8" })), wanted);
    });
  });
});

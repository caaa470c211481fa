// What docs/web.md and js/README.md show, run in Chromium beside what `make web` made: pages as they stand there, and the
// JavaScript blocks of one document one after another, with arrays for the names they take as given. What a line prints is
// what its comment says.
import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { emit } from "../../js/tests/tool.mjs";
import { Browser, serve } from "./chromium.mjs";

const blocks_of = (document, language) =>
  [...readFileSync(document, "utf8").matchAll(/^```(\w+)[^\n]*\n([\s\S]*?)^```$/gm)].filter(([, of]) => of === language).map(([, , text]) => text);
const printed_by = (text) => [...text.matchAll(/console\.log\(.*\);\s*\/\/ (.*)/g)].map(([, said]) => said);
const first = `globalThis.printed = []; console.log = (...all) => printed.push(all.map((each) => (ArrayBuffer.isView(each) ? [...each].join(", ") : String(each))).join(" "));`;

let browser;
before(() => { browser = new Browser(); });
after(() => browser.close());

// A page in a folder, beside other files; its last script says that it has ended.
const visit = async (folder, html, wanted, files = {}) => {
  const page_text = `<!doctype html><meta charset="utf-8"><link rel="icon" href="data:,">${html.replace(/<\/script>\s*$/, "\nglobalThis.ended = true;\n</script>")}`;
  const server = await serve(join(process.cwd(), folder), { "/shown.html": page_text, ...files });
  const page = await browser.open(`${server.address}shown.html`, { first });
  try {
    await page.until("globalThis.ended").catch((fault) => assert.fail(`${fault.message}\n${html}`));
    assert.deepEqual(page.faults, [], html);
    assert.deepEqual(await page.evaluate("printed"), wanted, html);
  } finally {
    await page.close();
    server.close();
  }
};

test("pages of docs/web.md and js/README.md", async () => {
  for (const document of ["docs/web.md", "js/README.md"]) {
    const found = blocks_of(document, "html");
    assert.ok(found.length, `${document} shows a page`);
    for (const html of found) {
      assert.ok(printed_by(html).length, `${document} says what its page prints`);
      await visit("build/web/site", html, printed_by(html));
    }
  }
});

test("JavaScript of js/README.md", async () => {
  const blocks = blocks_of("js/README.md", "js"), run = blocks.filter((text) => !text.includes("trireme/modules/"));
  assert.equal(run.length, blocks.length - 1, "one is for bundlers: js/tests/bundles.test.mjs");
  const { publicKey, privateKey } = generateKeyPairSync("ed25519");
  const texts = {
    text: run.join("").match(/compile\(`([^`]*)`\)/)[1],
    privatePem: privateKey.export({ type: "pkcs8", format: "pem" }),
    publicPem: publicKey.export({ type: "spki", format: "pem" }),
  };
  const files = { "/rms_norm.wasm": emit("rms_norm"), "/rms_norm_backward.wasm": emit("rms_norm", "--backward") };
  // What a block defines, those after it use.
  for (const [k, text] of run.entries()) {
    const defined = [...text.matchAll(/^const (rms_norm|op) = /gm)].map(([, name]) => name);
    files[`/block_${k}.mjs`] = `${text}Object.assign(globalThis, { ${defined} });\n`;
  }
  await visit(".", `<script type="importmap">{ "imports": { "trireme": "./js/trireme.mjs" } }</script><script type="module">
    const values = (rows, columns) => Float32Array.from({ length: rows * columns }, (_, k) => Math.sin(k)), used = [];
    Object.assign(globalThis, ${JSON.stringify(texts)}, { x: values(64, 4096), dy: values(64, 4096), tokens: [1, 2, 3].map(() => values(1, 64)), use: (y) => used.push(y.length) });
    const blocks = ${JSON.stringify(run)};
    for (const [k, text] of blocks.entries()) {
      globalThis.gamma = values(1, text.includes("columns: 64 }") ? 64 : 4096);
      await import("./block_" + k + ".mjs");
    }
    if (String(used) !== "64,64,64") throw new Error("tokens used: " + used);
  </script>`, run.flatMap(printed_by), files);
});

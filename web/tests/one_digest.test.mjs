// examples/one_digest by the compiler as a module: in Node, and its page in headless Chromium.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { Browser, serve } from "./chromium.mjs";

const root = new URL("../../", import.meta.url).pathname, folder = "examples/one_digest/";
const { steps, loss, sha256 } = JSON.parse(readFileSync(root + folder + "published.json"));
const wanted = `step ${String(steps).padStart(3)} loss ${loss.toFixed(6)} weights ${sha256}`;

test("in Node", () => {
  const printed = execFileSync(process.execPath, [root + folder + "train.mjs"], { encoding: "utf8" });
  assert.equal(printed.trimEnd().split("\n").at(-1), wanted);
});

test("in Chromium", async () => {
  const server = await serve(root), browser = new Browser();
  try {
    const page = await browser.open(server.address + folder);
    await page.until(`document.getElementById("verdict").textContent`, 60);
    assert.equal(await page.evaluate(`document.getElementById("verdict").textContent`), "the published weights");
    assert.equal((await page.evaluate(`document.getElementById("steps").textContent`)).trimEnd().split("\n").at(-1), wanted);
    assert.deepEqual(page.faults, []);
  } finally {
    await browser.close();
    server.close();
  }
});

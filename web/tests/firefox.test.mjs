// The page in headless Firefox, which speaks no DevTools protocol: a script in the page itself drives it and posts what it
// found. Colours and marks, every operator's kernels with the reference's digests, a link.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import { installed, reference_digests } from "../../js/tests/tool.mjs";
import { serve } from "./chromium.mjs";
import { compiler } from "./compiler.mjs";

const site = join(process.cwd(), "build/web/site");
const script = `
const report = { digests: {} }, find = (id) => document.getElementById(id);
const until = async (holds) => {
  for (const end = performance.now() + 60000; !holds();) {
    if (performance.now() > end) throw new Error("still not: " + holds);
    await new Promise((go) => setTimeout(go, 20));
  }
};
const write = (text) => { find("editor").value = text; find("editor").dispatchEvent(new Event("input")); };
try {
  await until(() => document.documentElement.dataset.ready === "true");
  report.ready = find("state").textContent;
  write("double(x[i,j]) -> (y[i,j])\\n    y = x + exq(x)\\n");
  await until(() => find("fault").textContent.includes("exq"));
  report.fault = find("fault").textContent;
  report.marked = [...CSS.highlights.get("fault")].map((range) => range.startContainer.data.slice(range.startOffset, range.endOffset));
  find("tab-run").click();
  for (const name of [...find("menu").querySelectorAll("optgroup:first-of-type option")].map((option) => option.value)) {
    find("menu").value = name;
    find("menu").dispatchEvent(new Event("change"));
    await until(() => find("line").textContent.startsWith(name + " ") && !find("backward").classList.contains("stale"));
    const out = document.querySelector("#panel-run .work:last-child");
    out.replaceChildren();
    [...document.querySelectorAll("#panel-run button")].find((each) => each.textContent.includes("own problem")).click();
    await until(() => out.querySelector("table, .wrong"));
    report.digests[name] = [...out.querySelectorAll(":scope > .scroll:first-of-type tbody tr")].map((row) => row.cells[1].textContent);
  }
  find("share").click();
  await until(() => location.hash.startsWith("#z="));
  report.shared = true;
} catch (error) {
  report.error = String(error.reason ?? error.stack ?? error);
}
await fetch("/report", { method: "POST", body: JSON.stringify(report) });
`;

test("headless Firefox", async () => {
  const profile = mkdtempSync(join(tmpdir(), "trireme-firefox-"));
  let resolve;
  const posted = new Promise((done) => { resolve = done; });
  const page = readFileSync(join(site, "index.html"), "utf8").replace("</body>", '<script type="module" src="/drive.mjs"></script></body>');
  const server = await serve(site, { "/driven.html": page, "/drive.mjs": script }, (body) => resolve(JSON.parse(body)));
  const firefox = spawn(installed("firefox-esr", "firefox"), ["--headless", "--no-remote", "--profile", profile, `${server.address}driven.html`],
    { stdio: "ignore", env: { ...process.env, HOME: profile, MOZ_HEADLESS: "1" } });
  let timer;
  try {
    const late = new Promise((_, reject) => { timer = setTimeout(() => reject(new Error("no report within three minutes")), 180000); });
    const report = await Promise.race([posted, late]);
    assert.equal(report.error, undefined);
    assert.match(report.fault, /^2:13/);
    assert.deepEqual(report.marked, ["exq"]);
    assert.ok(report.shared);
    const { operators } = compiler.tables;
    const want = reference_digests(operators.map(({ name, text }) => `${name} ${compiler.program(text).tries[0]}`));
    operators.forEach(({ name }, k) => {
      assert.ok(report.digests[name]?.length >= 2, `${name}: ${JSON.stringify(report.digests[name])}`);
      assert.deepEqual([...new Set(report.digests[name])], [want[k]], name);
    });
  } finally {
    clearTimeout(timer);
    const ended = new Promise((done) => firefox.once("exit", done));
    firefox.kill();
    await ended;
    server.close();
    rmSync(profile, { recursive: true, force: true, maxRetries: 5 });
  }
});

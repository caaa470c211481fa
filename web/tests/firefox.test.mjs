// The page in headless Firefox: faults and marks, every view, every operator in both directions with the reference's digests,
// a link opened again, many edits. Screenshots stay in build/web/screenshots.
import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { reference_digests } from "../../js/tests/tool.mjs";
import { serve } from "./chromium.mjs";
import { compiler } from "./compiler.mjs";
import { Firefox } from "./firefox.mjs";

const screenshots = join(process.cwd(), "build/web/screenshots");
mkdirSync(screenshots, { recursive: true });

let server, firefox;
before(async () => {
  server = await serve(join(process.cwd(), "build/web/site"));
  firefox = await new Firefox().start();
  await firefox.send("WebDriver:SetWindowRect", { width: 1300, height: 1000 });
  await open(server.address);
});
after(async () => {
  await firefox?.close();
  server.close();
});

// What scripts in the page use.
const tools = `
  const find = (id) => document.getElementById(id);
  const until = async (holds, what = holds) => {
    for (const end = performance.now() + 30000;;) {
      const value = holds();
      if (value) return value;
      if (performance.now() > end) throw new Error("still not: " + what);
      await new Promise((go) => setTimeout(go, 10));
    }
  };
  const write = (text) => { find("editor").value = text; find("editor").dispatchEvent(new Event("input")); };
  const choose = (id, value) => { find(id).value = value; find(id).dispatchEvent(new Event(id === "menu" ? "change" : "input")); };
  const load = async (name) => {
    choose("menu", name);
    await until(() => find("line").textContent.startsWith(name + " ") && !find("backward").classList.contains("stale"));
  };
`;
const in_page = (body, ...args) => firefox.run(tools + body, ...args);
const open = async (address) => {
  await firefox.open("about:blank");
  await firefox.open(address);
  await in_page(`await until(() => document.documentElement.dataset.ready === "true");`);
};
const shot = (name) => firefox.screenshot(join(screenshots, `firefox-${name}.png`));

test("ready; a fault at its place", async () => {
  const ready = [];
  for (let k = 0; k < 5; ++k) await open(server.address), ready.push(await in_page(`return performance.getEntriesByName("compiler")[0].duration;`));
  console.log(`in Firefox, the best of ${ready.length}: the compiler ready after ${Math.min(...ready).toFixed(0)} ms`);
  const { fault, marked } = await in_page(`
    write("double(x[i,j]) -> (y[i,j])\\n    y = x + exq(x)\\n");
    await until(() => find("fault").textContent.includes("exq"));
    return { fault: find("fault").textContent, marked: [...CSS.highlights.get("fault")].map((range) => range.startContainer.data.slice(range.startOffset, range.endOffset)) };`);
  assert.match(fault, /^2:13/);
  assert.deepEqual(marked, ["exq"]);
});

test("every view", async () => {
  await in_page(`await load("rms_norm");`);
  const views = await in_page(`return [...document.querySelectorAll("[role=tab]")].map((tab) => tab.id.slice(4));`);
  const { stages, targets } = compiler.tables;
  for (const { name } of [...stages.slice(1), ...targets]) assert.ok(views.includes(name), name);
  for (const id of views) {
    const text = await in_page(`
      find("tab-" + args[0]).click();
      const panel = find("panel-" + args[0]);
      return until(() => !panel.hidden && (panel.querySelector("pre") ?? panel).textContent.match(/^[^]{40}/)?.[0], args[0]);`, id);
    assert.doesNotMatch(text, /^# /, id);
  }
  for (const { name: target } of targets) {
    const { text } = compiler.tables.operators.find(({ name }) => name === "rms_norm");
    const code = await in_page(`find("tab-" + args[0]).click(); return until(() => find("panel-" + args[0]).querySelector("pre").textContent);`, target);
    assert.equal(code, compiler.show(text, "rms_norm 64x4096 x=f32", { target }), target);
  }
  await shot("code");
});

test("runs every operator in both directions, with the native reference's digest", async () => {
  const asked = [];
  await in_page(`find("tab-run").click();`);
  for (const { name, text } of compiler.tables.operators) {
    const { backward, tries } = compiler.program(text);
    await in_page(`await load(args[0]);`, name);
    for (const direction of backward ? ["forward", "backward"] : ["forward"]) {
      const rows = await in_page(`
        const out = document.querySelector("#panel-run .work:last-child");
        out.replaceChildren();
        choose("direction", args[0]);
        [...document.querySelectorAll("#panel-run button")].find((each) => each.textContent.includes("own problem")).click();
        await until(() => out.querySelector("table, .wrong"));
        return [...out.querySelectorAll(":scope > .scroll:first-of-type tbody tr")].map((row) => [...row.cells].map((cell) => cell.textContent));`, direction);
      const here = rows.filter(([by]) => !by.startsWith("recorded: "));
      assert.ok(here.length >= 2 && here.slice(1).every(([, , same]) => same === "same bits"), `${name} ${direction}: ${JSON.stringify(rows)}`);
      asked.push({ line: `${name} ${tries[0]}${direction === "backward" ? " backward" : ""}`, digest: rows[0][1] });
    }
  }
  assert.deepEqual(asked.map(({ digest }) => digest), reference_digests(asked.map(({ line }) => line)));
  await shot("run");
});

test("a link carries program, problem and view", async () => {
  const text = "shared(x[i,j], k = 3) -> (y[i,j])\n    y = x * k  # α → β\n";
  const address = await in_page(`
    write(args[0]);
    await until(() => find("backward").textContent.includes("shared_backward"));
    for (const [id, value] of [["rows", "64"], ["columns", "640"], ["direction", "forward"], ["settings", "k=2"]]) choose(id, value);
    find("tab-stages").click();
    find("share").click();
    await until(() => location.hash.startsWith("#z="));
    return location.href;`, text);
  await open(address);
  const found = await in_page(`
    await until(() => find("line").textContent.startsWith("shared 64x640"));
    return [find("editor").value, find("line").textContent, document.querySelector("[aria-selected=true]").id];`);
  assert.deepEqual([found[0], found[2]], [text, "tab-stages"]);
  assert.match(found[1], / k=2$/);
});

test("200 edits do not make it grow", async () => {
  const [early, late] = await in_page(`
    find("tab-ptx").click();
    const edit = async (k) => {
      write("grows(x[i,j], k = " + k + ") -> (y[i,j])\\n    y = x * " + (k % 3 ? "k" : "kk") + "\\n");
      if (k % 3) await until(() => find("state").textContent.startsWith("compiled") && find("panel-ptx").querySelector("pre").textContent.includes("grows"));
      else await until(() => find("fault").textContent.includes("kk"));
    };
    for (let k = 0; k < 40; ++k) await edit(k);
    const early = find("state").title;
    for (let k = 40; k < 240; ++k) await edit(k);
    return [early, find("state").title];`);
  assert.match(early, /^Memory: \d+\.\d\d MB to compile/);
  assert.equal(late, early);
});

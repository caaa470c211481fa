// The package in a browser: headless Chromium loads it from a small server, runs modules and posts what it found. The
// same digests as the command line's; servers with a wrong MIME type; pages whose Content-Security-Policy is strict;
// arrays of another realm, and Float16Array.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { visit } from "./browser.mjs";
import { emit, processor_fuses, reference_digests } from "./tool.mjs";

// Runs in the page.
const script = `
import { digest, load, probe, samples } from "/trireme.mjs";

const report = { probe: probe() };
const attempt = async (name, work) => {
  try {
    report[name] = await work();
  } catch (error) {
    report[name] = String(error);
  }
};
const digest_of = (kernel, results) => digest(kernel.manifest.results.map(({ name, type }) => [type, results[name]]));
const sampled = (kernel, rows, columns) => Object.fromEntries(kernel.manifest.operands.filter((operand) => operand.type).map(
  ({ name, type, row, column }) => [name, samples(name, type, (row ? rows : 1) * (column ? columns : 1))]));
const run = async (path, rows, columns) => {
  const kernel = await load(fetch(path));
  return digest_of(kernel, kernel.run(sampled(kernel, rows, columns), { columns }));
};
await attempt("rms_norm", () => run("/rms_norm.wasm", 7, 257));
await attempt("rms_norm_backward", () => run("/rms_norm_backward.wasm", 150, 300));
await attempt("softmax", () => run("/softmax.wasm", 7, 541));
await attempt("wrong_type", () => run("/as_text/rms_norm.wasm", 7, 257));
await attempt("missing", () => run("/nowhere.wasm", 7, 257));
await attempt("page", () => run("/", 7, 257));
if (report.probe.fused) await attempt("relaxed", () => run("/softmax_relaxed.wasm", 7, 541));
await attempt("memory", async () => {
  const kernel = await load(fetch("/rms_norm.wasm"), { memoryLimit: 2 ** 32 });
  return kernel.run({ x: new Float32Array(257), gamma: new Float32Array(257) }, { columns: 257 }).y.length;
});
await attempt("frame", async () => {
  const frame = document.createElement("iframe");
  document.body.append(frame);
  const kernel = await load(fetch("/rms_norm.wasm")), values = sampled(kernel, 7, 257);
  const x = new frame.contentWindow.Float32Array(values.x), y = new frame.contentWindow.Float32Array(x.length);
  if (x instanceof Float32Array) throw new Error("the frame has no realm of its own");
  return digest_of(kernel, kernel.run({ ...values, x }, { columns: 257, into: { y } }));
});
await attempt("float16", async () => {
  const kernel = await load(fetch("/rms_norm_f16.wasm")), values = sampled(kernel, 3, 31);
  const x = new Float16Array(values.x.buffer), y = new Float16Array(x.length);
  return digest_of(kernel, kernel.run({ ...values, x }, { columns: 31, into: { y } }));
});
await fetch("/report", { method: "POST", body: JSON.stringify(report) });
`;
const page = (policy) => ({
  type: "text/html", body: '<!doctype html><body><script type="module" src="/page.mjs"></script>',
  headers: policy ? { "content-security-policy": policy } : {},
});

test("headless Chromium", async (t) => {
  const files = {
    "/": page(),
    "/strict": page("default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; connect-src 'self'"),
    "/forbidden": page("default-src 'none'; script-src 'self'; connect-src 'self'"),
    "/page.mjs": script,
    "/rms_norm.wasm": emit("rms_norm", "--cols", "257"),
    "/rms_norm_backward.wasm": emit("rms_norm", "--backward", "--cols", "300"),
    "/rms_norm_f16.wasm": emit("rms_norm", "--cols", "31", "--type", "x=f16", "--type", "gamma=f16", "--type", "y=f16"),
    "/softmax.wasm": emit("softmax", "--cols", "541"),
    "/softmax_relaxed.wasm": emit("softmax", "--cols", "541", "--arch", "relaxed"),
  };
  files["/as_text/rms_norm.wasm"] = { type: "text/plain", body: files["/rms_norm.wasm"] };
  const { files: shipped } = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8"));
  for (const name of shipped)
    if (name.endsWith(".mjs")) files["/" + name] = readFileSync(new URL(`../${name}`, import.meta.url));
  const [rms_norm, backward, softmax, f16] =
    reference_digests(["rms_norm 7x257", "rms_norm 150x300 backward", "softmax 7x541", "rms_norm 3x31 x=f16"]);

  const check_bits = (report) => {
    assert.deepEqual(report.probe, { allowed: true, simd: true, keepsSubnormals: true, relaxed: true, fused: processor_fuses() });
    assert.equal(report.rms_norm, rms_norm);
    assert.equal(report.rms_norm_backward, backward);
    assert.equal(report.softmax, softmax);
    if (report.probe.fused) assert.equal(report.relaxed, softmax);
  };
  const reports = await visit(files, ["/", "/strict", "/forbidden"]), report = reports["/"];
  await t.test("the command line's digests; fault_28: a wrong MIME type, a missing file, all of memory", () => {
    check_bits(report);
    assert.equal(report.wrong_type, rms_norm);
    assert.match(report.missing, /nowhere\.wasm: 404/);
    assert.equal(report.memory, 257);
  });
  await t.test("fault 65: a page in place of a module, arrays of a frame, Float16Array", () => {
    assert.match(report.page, /load: http.*: this is text, no WebAssembly module; it begins "<!doctype html>/);
    assert.equal(report.frame, rms_norm);
    assert.equal(report.float16, f16);
  });
  await t.test("fault_28: no eval by CSP", () => check_bits(reports["/strict"]));
  await t.test("fault_28: a CSP that forbids WebAssembly is named", () => {
    assert.equal(reports["/forbidden"].probe.allowed, false);
    assert.match(reports["/forbidden"].rms_norm, /Content-Security-Policy.*'wasm-unsafe-eval'/);
  });
});

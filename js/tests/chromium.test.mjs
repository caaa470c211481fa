// The package in a browser: headless Chromium loads it from a small server, runs modules and posts what it found. The
// same digests as the command line's; servers with a wrong MIME type; pages whose Content-Security-Policy is strict.
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { dirname, extname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { emit, reference_digests } from "./tool.mjs";

const package_folder = join(dirname(fileURLToPath(import.meta.url)), "..");
const browser = ["chromium", "chromium-browser", "google-chrome"].find((name) => spawnSync(name, ["--version"]).status === 0);

// Runs in the page.
const script = `
import { digest, load, loadOperator, probe, samples } from "/trireme.mjs";

const report = { probe: probe() };
const attempt = async (name, work) => {
  try {
    report[name] = await work();
  } catch (error) {
    report[name] = String(error);
  }
};
const digest_of = (kernel, results) => digest(kernel.manifest.results.map(({ name, type }) => [type, results[name]]));
const run = async (path, rows, columns) => {
  const kernel = await load(fetch(path));
  const values = Object.fromEntries(kernel.manifest.operands.filter((operand) => operand.type).map(
    ({ name, type, row, column }) => [name, samples(name, type, (row ? rows : 1) * (column ? columns : 1))]));
  return digest_of(kernel, kernel.run(values, { columns }));
};
await attempt("rms_norm", () => run("/rms_norm.wasm", 7, 257));
await attempt("rms_norm_backward", () => run("/rms_norm_backward.wasm", 150, 300));
await attempt("softmax", () => run("/softmax.wasm", 7, 541));
await attempt("wrong_type", () => run("/as_text/rms_norm.wasm", 7, 257));
await attempt("missing", () => run("/nowhere.wasm", 7, 257));
if (report.probe.fused) await attempt("relaxed", () => run("/softmax_relaxed.wasm", 7, 541));
await attempt("memory", async () => {
  const kernel = await load(fetch("/rms_norm.wasm"), { memoryLimit: 2 ** 32 });
  return kernel.run({ x: new Float32Array(257), gamma: new Float32Array(257) }).y.length;
});
await fetch("/report", { method: "POST", body: JSON.stringify(report) });
`;
const policies = {
  "/": undefined,
  "/strict": "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; connect-src 'self'",
  "/forbidden": "default-src 'none'; script-src 'self'; connect-src 'self'",
};
const types = { ".mjs": "text/javascript", ".wasm": "application/wasm" };

const serve = (files, on_report) => createServer((request, response) => {
  const send = (code, type, body, headers = {}) => response.writeHead(code, { "content-type": type, ...headers }).end(body);
  if (request.method === "POST") {
    let body = "";
    request.on("data", (part) => (body += part)).on("end", () => (send(204, "text/plain", ""), on_report(JSON.parse(body))));
  } else if (request.url in policies) {
    const policy = policies[request.url];
    send(200, "text/html", '<!doctype html><script type="module" src="/page.mjs"></script>',
      policy ? { "content-security-policy": policy } : {});
  } else if (request.url.startsWith("/as_text/")) {
    send(200, "text/plain", files[request.url.slice(8)]);
  } else if (request.url in files) {
    send(200, types[extname(request.url)], files[request.url]);
  } else {
    send(404, "text/plain", "");
  }
});

// What the page at `path` reports.
const visit = async (files, path) => {
  const profile = mkdtempSync(join(tmpdir(), "trireme-chromium-"));
  let deliver, refuse;
  const report = new Promise((resolve, reject) => { deliver = resolve; refuse = reject; });
  const server = serve(files, deliver);
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const child = spawn(browser, ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
    `--user-data-dir=${profile}`, `http://127.0.0.1:${server.address().port}${path}`], { stdio: ["ignore", "ignore", "pipe"] });
  let said = "";
  child.stderr.on("data", (part) => (said += part));
  const ended = new Promise((resolve) => child.on("close", resolve));
  child.on("close", () => refuse(new Error(`${browser} ended before the page reported: ${said.slice(-2000)}`)));
  const clock = setTimeout(() => refuse(new Error(`no report within a minute: ${said.slice(-2000)}`)), 60000);
  try {
    return await report;
  } finally {
    clearTimeout(clock);
    child.kill();
    await ended;
    server.closeAllConnections?.();
    server.close();
    rmSync(profile, { recursive: true, force: true, maxRetries: 5 });
  }
};

test("headless Chromium", { skip: browser ? false : "no chromium on PATH (Debian: apt install chromium)" }, async (t) => {
  const files = { "/page.mjs": script };
  for (const name of ["trireme.mjs", "contract.mjs", "digest.mjs", "samples.mjs"])
    files["/" + name] = readFileSync(join(package_folder, name));
  files["/rms_norm.wasm"] = emit("rms_norm", "--cols", "257");
  files["/rms_norm_backward.wasm"] = emit("rms_norm", "--backward", "--cols", "300");
  files["/softmax.wasm"] = emit("softmax", "--cols", "541");
  files["/softmax_relaxed.wasm"] = emit("softmax", "--cols", "541", "--arch", "relaxed");
  const [rms_norm, backward, softmax] =
    reference_digests(["rms_norm 7x257", "rms_norm 150x300 backward", "softmax 7x541"]);

  const check_bits = (report) => {
    assert.equal(report.probe.simd && report.probe.keepsSubnormals, true);
    assert.equal(report.rms_norm, rms_norm);
    assert.equal(report.rms_norm_backward, backward);
    assert.equal(report.softmax, softmax);
    if (report.probe.fused) assert.equal(report.relaxed, softmax);
  };
  await t.test("the command line's digests; fault_28: a wrong MIME type, a missing file, all of memory", async () => {
    const report = await visit(files, "/");
    check_bits(report);
    assert.equal(report.wrong_type, rms_norm);
    assert.match(report.missing, /nowhere\.wasm: 404/);
    assert.equal(report.memory, 257);
  });
  await t.test("fault_28: no eval by CSP", async () => check_bits(await visit(files, "/strict")));
  await t.test("fault_28: a CSP that forbids WebAssembly is named", async () => {
    const report = await visit(files, "/forbidden");
    assert.equal(report.probe.allowed, false);
    assert.match(report.rms_norm, /Content-Security-Policy.*'wasm-unsafe-eval'/);
  });
});

// Headless Chromium for tests: it opens pages of a small server, and each posts what it found to /report.
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { extname, join } from "node:path";

import { installed } from "./tool.mjs";

const types = { ".html": "text/html", ".js": "text/javascript", ".mjs": "text/javascript", ".wasm": "application/wasm" };

// files: by path, their content, or { body, type, headers }.
const serve = (files, on_report) => createServer((request, response) => {
  const send = (code, type, body, headers = {}) => response.writeHead(code, { "content-type": type, ...headers }).end(body);
  if (request.method === "POST") {
    const page = new URL(request.headers.referer).pathname;
    let body = "";
    request.on("data", (part) => (body += part))
      .on("end", () => (send(204, "text/plain", ""), on_report(page, JSON.parse(body))));
  } else if (Object.hasOwn(files, request.url)) {
    const file = files[request.url];
    const { body, type, headers } = typeof file === "string" || ArrayBuffer.isView(file) ? { body: file } : file;
    send(200, type ?? types[extname(request.url)], body, headers);
  } else {
    send(404, "text/plain", "");
  }
});

// What each of the pages reports, by path. They are frames of one page: the browser takes seconds to start.
export const visit = async (files, paths) => {
  const browser = installed("chromium", "chromium-browser", "google-chrome");
  const profile = mkdtempSync(join(tmpdir(), "trireme-chromium-"));
  const found = {}, missing = () => paths.filter((path) => !Object.hasOwn(found, path));
  let deliver, refuse;
  const reports = new Promise((resolve, reject) => { deliver = resolve; refuse = reject; });
  const body = "<!doctype html>" + paths.map((path) => `<iframe src="${path}"></iframe>`).join("");
  const server = serve({ ...files, "/frames": { type: "text/html", body } }, (page, report) => {
    found[page] = report;
    if (!missing().length) deliver(found);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const child = spawn(browser, ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
    `--user-data-dir=${profile}`, `http://127.0.0.1:${server.address().port}/frames`], { stdio: ["ignore", "ignore", "pipe"] });
  let said = "";
  child.stderr.on("data", (part) => (said += part));
  const ended = new Promise((resolve) => child.on("close", resolve));
  child.on("close", () => refuse(new Error(`${browser} ended before ${missing()} reported: ${said.slice(-2000)}`)));
  const clock = setTimeout(() => refuse(new Error(`${missing()}: no report within two minutes: ${said.slice(-2000)}`)), 120000);
  try {
    return await reports;
  } finally {
    clearTimeout(clock);
    child.kill();
    await ended;
    server.closeAllConnections?.();
    server.close();
    rmSync(profile, { recursive: true, force: true, maxRetries: 5 });
  }
};

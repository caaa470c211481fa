// Headless Chromium over the DevTools protocol, through a pipe, and a server of static files: no packages.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createReadStream, existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { extname, join, normalize } from "node:path";

const types = { ".html": "text/html", ".css": "text/css", ".mjs": "text/javascript", ".wasm": "application/wasm", ".json": "application/json" };

// { address, close }. `extra`: texts by path beside the folder's files; `posted` is told what a page posts.
export const serve = async (folder, extra = {}, posted = () => {}) => {
  const server = createServer(async (request, response) => {
    const path = normalize(decodeURIComponent(new URL(request.url, "http://x").pathname)), file = join(folder, path.endsWith("/") ? path + "index.html" : path);
    if (request.method === "POST") {
      const parts = [];
      for await (const part of request) parts.push(part);
      posted(Buffer.concat(parts).toString());
      return response.writeHead(204).end();
    }
    if (extra[path] !== undefined) return response.writeHead(200, { "content-type": types[extname(path)] ?? "text/html" }).end(extra[path]);
    if (!existsSync(file) || !statSync(file).isFile()) return response.writeHead(404).end();
    response.writeHead(200, { "content-type": types[extname(file)] ?? "application/octet-stream" });
    createReadStream(file).pipe(response);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  return { address: `http://127.0.0.1:${server.address().port}/`, close: () => (server.close(), server.closeAllConnections()) };
};

export class Browser {
  #process;
  #folder = mkdtempSync(join(tmpdir(), "trireme-chromium-"));
  #calls = new Map();
  #next = 1;
  #rest = [];
  #listeners = new Set();

  constructor() {
    const options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", "--no-first-run", "--disable-extensions", "--hide-scrollbars", `--user-data-dir=${this.#folder}`];
    this.#process = spawn("chromium", options, { stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"] });
    this.#process.stdio[4].on("data", (chunk) => this.#read(chunk));
    this.#process.on("exit", () => { for (const { reject } of this.#calls.values()) reject(new Error("chromium ended")); });
  }
  #read(chunk) {
    for (let from = 0; from < chunk.length;) {
      const end = chunk.indexOf(0, from);
      this.#rest.push(chunk.subarray(from, end < 0 ? chunk.length : end));
      if (end < 0) return;
      from = end + 1;
      const message = JSON.parse(Buffer.concat(this.#rest).toString());
      this.#rest = [];
      if (!message.id) for (const listener of this.#listeners) listener(message);
      else {
        const { resolve, reject, method } = this.#calls.get(message.id);
        this.#calls.delete(message.id);
        message.error ? reject(new Error(`${method}: ${message.error.message}`)) : resolve(message.result);
      }
    }
  }
  send(method, params = {}, sessionId) {
    return new Promise((resolve, reject) => {
      const id = this.#next++;
      this.#calls.set(id, { resolve, reject, method });
      this.#process.stdio[3].write(JSON.stringify({ id, method, params, sessionId }) + "\0");
    });
  }
  listen(listener) { this.#listeners.add(listener); }

  // `first`: a script that runs before the page's own.
  async open(address, { width = 1280, height = 900, dark = false, first = "" } = {}) {
    const { targetId } = await this.send("Target.createTarget", { url: "about:blank" });
    const { sessionId } = await this.send("Target.attachToTarget", { targetId, flatten: true });
    const page = new Page((method, params) => this.send(method, params, sessionId), () => this.send("Target.closeTarget", { targetId }));
    this.listen(({ sessionId: of, method, params }) => {
      if (of !== sessionId) return;
      if (method === "Runtime.exceptionThrown") page.faults.push(params.exceptionDetails.exception?.description ?? params.exceptionDetails.text);
      if (method === "Runtime.consoleAPICalled" && params.type === "error") page.faults.push(params.args.map((each) => each.value ?? each.description).join(" "));
      if (method === "Log.entryAdded" && params.entry.level === "error") page.faults.push(params.entry.text);
    });
    for (const domain of ["Runtime", "Page", "Log", "DOM"]) await page.send(`${domain}.enable`);
    await page.resize(width, height);
    await page.send("Emulation.setEmulatedMedia", { features: [{ name: "prefers-color-scheme", value: dark ? "dark" : "light" }] });
    await page.send("Page.addScriptToEvaluateOnNewDocument", { source: first });
    await page.send("Page.navigate", { url: address });
    return page;
  }
  async close() {
    await this.send("Browser.close").catch(() => {});
    if (this.#process.exitCode === null) await Promise.race([once(this.#process, "exit"), new Promise((go) => setTimeout(go, 5000))]);
    if (this.#process.exitCode === null) this.#process.kill("SIGKILL");
    rmSync(this.#folder, { recursive: true, force: true, maxRetries: 5 });
  }
}

class Page {
  faults = [];
  constructor(send, close) { Object.assign(this, { send, close }); }

  async evaluate(expression) {
    const { result, exceptionDetails } = await this.send("Runtime.evaluate", { expression, awaitPromise: true, returnByValue: true });
    if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
    return result.value;
  }
  // Until an expression holds; its value. One that throws, on a page that is not there yet, does not hold.
  async until(expression, seconds = 20) {
    for (const end = Date.now() + 1000 * seconds;;) {
      const value = await this.evaluate(expression).catch(() => false);
      if (value) return value;
      if (Date.now() > end) throw new Error(`after ${seconds} s still not: ${expression}; ${this.faults.join("; ")}`);
      await new Promise((go) => setTimeout(go, 25));
    }
  }
  resize(width, height) { return this.send("Emulation.setDeviceMetricsOverride", { width, height, deviceScaleFactor: 1, mobile: false }); }

  async place_of(selector) {
    await this.evaluate(`document.querySelector(${JSON.stringify(selector)}).scrollIntoView({ block: "nearest" })`);
    return this.evaluate(`(() => { const { x, y, width, height } = document.querySelector(${JSON.stringify(selector)}).getBoundingClientRect(); return [x + width / 2, y + height / 2]; })()`);
  }
  async click(selector) {
    const [x, y] = await this.place_of(selector);
    for (const type of ["mousePressed", "mouseReleased"]) await this.send("Input.dispatchMouseEvent", { type, x, y, button: "left", clickCount: 1 });
  }
  hover(x, y) { return this.send("Input.dispatchMouseEvent", { type: "mouseMoved", x, y }); }
  async press(key, { code = key, text, modifiers = 0, keyCode = { Enter: 13, End: 35, Home: 36, ArrowRight: 39, Tab: 9, a: 65, Backspace: 8 }[key] } = {}) {
    await this.send("Input.dispatchKeyEvent", { type: "keyDown", key, code, text, modifiers, windowsVirtualKeyCode: keyCode });
    await this.send("Input.dispatchKeyEvent", { type: "keyUp", key, code, modifiers, windowsVirtualKeyCode: keyCode });
  }
  type(text) { return this.send("Input.insertText", { text }); }
  // All of the editor's text, as someone would replace it.
  async write(text) {
    await this.evaluate(`document.getElementById("editor").focus(), document.getElementById("editor").select()`);
    await this.type(text);
  }
  async screenshot(file, whole = false) {
    const { data } = await this.send("Page.captureScreenshot", { format: "png", captureBeyondViewport: whole });
    writeFileSync(file, Buffer.from(data, "base64"));
  }
  async give_files(selector, files) {
    const { root } = await this.send("DOM.getDocument");
    const { nodeId } = await this.send("DOM.querySelector", { nodeId: root.nodeId, selector });
    await this.send("DOM.setFileInputFiles", { nodeId, files });
  }
  // Files dropped onto an element, as from a desktop.
  async drop_files(selector, files) {
    const [x, y] = await this.place_of(selector), data = { items: [], files, dragOperationsMask: 1 };
    for (const type of ["dragEnter", "dragOver", "drop"]) await this.send("Input.dispatchDragEvent", { type, x, y, data });
  }
  async heap_bytes() {
    await this.send("HeapProfiler.collectGarbage");
    return (await this.send("Runtime.getHeapUsage")).usedSize;
  }
}

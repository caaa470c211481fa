// Headless Firefox over Marionette, its own protocol: a socket, messages as "LENGTH:[0,id,command,parameters]". No packages.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { installed } from "../../js/tests/tool.mjs";

const free_port = async () => {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  server.close();
  return port;
};

export class Firefox {
  #process;
  #profile = mkdtempSync(join(tmpdir(), "trireme-firefox-"));
  #socket;
  #calls = new Map();
  #rest = Buffer.alloc(0);
  #next = 1;

  async start() {
    const port = await free_port();
    writeFileSync(join(this.#profile, "user.js"), `user_pref("marionette.port", ${port});\n`);
    this.#process = spawn(installed("firefox-esr", "firefox"), ["--headless", "--marionette", "--no-remote", "--profile", this.#profile, "about:blank"],
      { stdio: "ignore", env: { ...process.env, HOME: this.#profile, MOZ_HEADLESS: "1" } });
    for (const end = Date.now() + 60000; !this.#socket;) {
      const socket = connect(port, "127.0.0.1");
      if (await once(socket, "connect").then(() => true, () => false)) this.#socket = socket;
      else if (Date.now() > end) throw new Error("Firefox does not listen");
      else await new Promise((go) => setTimeout(go, 100));
    }
    this.#socket.on("data", (chunk) => this.#read(chunk));
    await this.send("WebDriver:NewSession");
    await this.send("WebDriver:SetTimeouts", { script: 300000 });
    return this;
  }
  #read(chunk) {
    this.#rest = Buffer.concat([this.#rest, chunk]);
    for (;;) {
      const colon = this.#rest.indexOf(":"), length = Number(this.#rest.subarray(0, colon).toString());
      if (colon < 0 || this.#rest.length < colon + 1 + length) return;
      const message = JSON.parse(this.#rest.subarray(colon + 1, colon + 1 + length).toString());
      this.#rest = this.#rest.subarray(colon + 1 + length);
      if (!Array.isArray(message)) continue;  // its greeting
      const [, id, fault, result] = message, { resolve, reject, command } = this.#calls.get(id);
      this.#calls.delete(id);
      fault ? reject(new Error(`${command}: ${fault.message}\n${fault.stacktrace}`)) : resolve(result);
    }
  }
  send(command, parameters = {}) {
    return new Promise((resolve, reject) => {
      const id = this.#next++, message = Buffer.from(JSON.stringify([0, id, command, parameters]));
      this.#calls.set(id, { resolve, reject, command });
      this.#socket.write(Buffer.concat([Buffer.from(`${message.length}:`), message]));
    });
  }

  open(url) { return this.send("WebDriver:Navigate", { url }); }
  async screenshot(file) {
    writeFileSync(file, Buffer.from((await this.send("WebDriver:TakeScreenshot", { full: false })).value, "base64"));
  }
  // The value of an async function's body in the page.
  async run(body, ...args) {
    const script = `const done = arguments[arguments.length - 1];
      (async (...args) => { ${body} })(...arguments).then((value) => done({ value }), (error) => done({ error: error.reason ?? error + "\\n" + error.stack }));`;
    const { value: { value, error } } = await this.send("WebDriver:ExecuteAsyncScript", { script, args });
    if (error) throw new Error(error);
    return value;
  }
  async close() {
    this.#socket?.destroy();
    const ended = once(this.#process, "exit");
    if (this.#process.exitCode === null) this.#process.kill(), await ended;
    rmSync(this.#profile, { recursive: true, force: true, maxRetries: 5 });
  }
}

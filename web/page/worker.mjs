// A thread with a compiler of its own. { id, task, args } in, { id, value } or { id, fault } out, with the bytes of memory that the
// compiler holds; { id, progress } in between.
import { loadCompiler } from "./js/compiler.mjs";
import { tasks } from "./tasks.mjs";

const began = performance.now();
const compiler = await loadCompiler(fetch("trireme.wasm"));
const answer = (message) => postMessage({ ...message, memory: compiler.memoryBytes });
answer({ id: 0, value: { tables: compiler.tables, ready: performance.now() - began } });

addEventListener("message", async ({ data: { id, task, args } }) => {
  try {
    answer({ id, value: await tasks[task](compiler, args, (progress) => postMessage({ id, progress })) });
  } catch ({ name, message, code, line, column, reason }) {
    answer({ id, fault: { name, message, code, line, column, reason: reason ?? message } });
  }
});

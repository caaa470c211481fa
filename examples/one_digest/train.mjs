#!/usr/bin/env node
// Prints the loss of each step and the SHA-256 of all weights, from WebAssembly in Node.
//
//   node examples/one_digest/train.mjs [STEPS]          # after `make web`, which builds the compiler as a module
import { readFileSync } from "node:fs";

import { loadCompiler } from "../../js/trireme.mjs";
import { compiled, line_of, train } from "./walk.mjs";

const read = (path) => readFileSync(new URL(path, import.meta.url));
const compiler = await loadCompiler(read("../../build/web/trireme.wasm"));
const steps = process.argv[2] && Number(process.argv[2]);
for await (const step of train(JSON.parse(read("tape.json")), compiled({ compiler }), steps)) console.log(line_of(step));

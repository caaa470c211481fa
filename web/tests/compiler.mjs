// The compiler that `make web` built, for tests.
import { readFileSync } from "node:fs";

import { loadCompiler } from "../../js/compiler.mjs";

const folder = new URL(process.env.TRIREME_WEB ?? "build/web/", `file://${process.cwd()}/`);
export const module_bytes = readFileSync(new URL("trireme.wasm", folder));
export const compiler = await loadCompiler(module_bytes);

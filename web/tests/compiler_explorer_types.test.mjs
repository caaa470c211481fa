// The definition for Compiler Explorer as TypeScript's compiler reads it, over the declarations of theirs that it touches: what
// it overrides exists there and has those types.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test } from "node:test";

import { installed } from "../../js/tests/tool.mjs";

const from = new URL("../compiler-explorer/", import.meta.url).pathname;
const declarations = {
  "types/compilation/compilation.interfaces.d.ts": `
    export interface ExecutionOptions { timeoutMs?: number; maxOutput?: number; customCwd?: string; }
    export interface ExecutionOptionsWithEnv extends ExecutionOptions { env: Record<string, string>; }
    export interface ResultLine { text: string; tag?: { line?: number; column?: number }; }
    export interface UnprocessedExecResult { code: number; okToCache: boolean; stdout: string; stderr: string; execTime: number; filenameTransform: (name: string) => string; }
    export interface CompilationResult { code: number; stdout: ResultLine[]; stderr: ResultLine[]; }
    export interface ParsedAsmResult { asm: ResultLine[]; }`,
  "types/features/filters.interfaces.d.ts": `
    export interface ParseFiltersAndOutputOptions { binary: boolean; intel: boolean; demangle: boolean; commentOnly: boolean; directives: boolean; labels: boolean; trim: boolean; }`,
  "types/languages.interfaces.d.ts": `
    export interface LanguageDefinition {
      name: string; monaco: string; extensions: [string, ...string[]]; alias: string[]; logoFilename: string | null; logoFilenameDark: string | null;
      formatter: string | null; previewFilter: RegExp | null; monacoDisassembly: string | null; tooltip?: string;
    }`,
  "lib/compilers/argument-parsers.d.ts": `
    import type { BaseCompiler } from "../base-compiler.js";
    export class BaseParser { constructor(compiler: BaseCompiler); }
    export class GCCParser extends BaseParser {}`,
  "lib/base-compiler.d.ts": `
    import type { CompilationResult, ExecutionOptions, ExecutionOptionsWithEnv, ParsedAsmResult, UnprocessedExecResult } from "../types/compilation/compilation.interfaces.js";
    import type { ParseFiltersAndOutputOptions } from "../types/features/filters.interfaces.js";
    import type { BaseParser } from "./compilers/argument-parsers.js";
    export class BaseCompiler {
      protected env: { ceProps<T>(name: string, otherwise: T): T };
      protected outputFilebase: string;
      protected getArgumentParserClass(): typeof BaseParser;
      exec(filepath: string, args: string[], options: ExecutionOptions): Promise<UnprocessedExecResult>;
      protected optionsForFilter(filters: ParseFiltersAndOutputOptions, outputFilename: string, userOptions?: string[]): string[];
      runCompiler(compiler: string, options: string[], inputFilename: string, execOptions: ExecutionOptionsWithEnv, filters?: ParseFiltersAndOutputOptions): Promise<CompilationResult>;
      transformToCompilationResult(input: UnprocessedExecResult, inputFilename: string): CompilationResult;
      getOutputFilename(folder: string, outputFilebase: string, key?: unknown): string;
      getDefaultExecOptions(): ExecutionOptionsWithEnv;
      processAsm(result: { asm: string }, filters: ParseFiltersAndOutputOptions, options: string[]): Promise<ParsedAsmResult>;
      getDefaultFilters(): ParseFiltersAndOutputOptions;
    }`,
  "modules.d.ts": `
    declare module "node:fs/promises" { const fs: { writeFile(file: string, text: string): Promise<void> }; export default fs; }
    declare module "node:path" { const path: { dirname(file: string): string }; export default path; }
    declare module "monaco-editor" {
      export namespace languages {
        type Rule = [RegExp, string | { cases: Record<string, string> }];
        interface IMonarchLanguage { keywords?: string[]; tokenizer: Record<string, Rule[]>; }
        function register(language: { id: string }): void;
        function setMonarchTokensProvider(id: string, language: IMonarchLanguage): void;
      }
    }`,
  "use.ts": `
    import type { LanguageDefinition } from "./types/languages.interfaces.js";
    import { row } from "./lib/language.js";
    import { TriremeCompiler } from "./lib/compilers/trireme.js";
    import { definition } from "./static/row-mode.js";
    export const language: Omit<LanguageDefinition, "extensions"> & { extensions: string[] } = row;
    export const uses: [string, object] = [TriremeCompiler.key, definition()];`,
};

const check = (folder) => spawnSync(installed("tsc"), ["--project", "."], { cwd: folder, encoding: "utf8" });

test("Compiler Explorer: the definition's types", () => {
  const folder = mkdtempSync(join(tmpdir(), "trireme-explorer-"));
  try {
    for (const [file, text] of Object.entries(declarations)) mkdirSync(join(folder, dirname(file)), { recursive: true }), writeFileSync(join(folder, file), text);
    mkdirSync(join(folder, "static"));
    for (const [file, to] of [["trireme.ts", "lib/compilers"], ["language.ts", "lib"], ["row-mode.ts", "static"]]) cpSync(join(from, file), join(folder, to, file));
    const compilerOptions = { noEmit: true, strict: true, noImplicitOverride: true, target: "es2022", module: "node16", moduleResolution: "node16", lib: ["es2022"], types: [] };
    writeFileSync(join(folder, "package.json"), `{ "type": "module" }`);
    writeFileSync(join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions, files: ["use.ts", "modules.d.ts"] }));
    const { status, stdout } = check(folder);
    assert.equal(status, 0, stdout);
    const base = "lib/base-compiler.d.ts";  // one method less to override
    writeFileSync(join(folder, base), declarations[base].replace(/^ *processAsm.*$/m, ""));
    assert.match(check(folder).stdout, /trireme\.ts.*'override' modifier/);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

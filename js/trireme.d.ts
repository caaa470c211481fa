import type { Signatures } from "./modules/index.mjs";

/** Storage types and the typed arrays that carry them; f16, bf16 and f8 travel as their bits. */
export interface ArrayOf {
  f64: Float64Array;
  f32: Float32Array;
  f16: Uint16Array;
  bf16: Uint16Array;
  f8e4m3: Uint8Array;
  f8e5m2: Uint8Array;
  i8: Int8Array;
  i32: Int32Array;
  i64: BigInt64Array;
  u8: Uint8Array;
  f8e8m0: Uint8Array;
  f4e2m1: Uint8Array;
}
export type StorageType = keyof ArrayOf;
export type Values = ArrayOf[StorageType];

/** How an index of an array is made of a row's or column's number; null: the array does not depend on it. */
export type Axis = { divide: number; wrap: number } | null;
export interface ArraySpec {
  name: string;
  type: StorageType;
  row: Axis;
  column: Axis;
}
/** Content of the module's custom section "trireme". */
export interface Manifest {
  format: 2;
  contract: number;
  program: string;
  compute: "f32" | "f64";
  /** It holds relaxed_madd: for engines where that is fused. */
  relaxed: boolean;
  /** 0: any number of columns. */
  columns: number;
  operands: (ArraySpec | { name: string; constant: number | string })[];
  results: ArraySpec[];
  slots: [kind: string, index: number, number?: string][];
  scratch: { bytes: number; bytesPerStripe: number };
  sums: { row: Axis; column: Axis; results: number }[];
}

/**
 * What a module takes and gives, by name; constants are optional. `columns`: where the module says them (--cols).
 * `load<{ operands: { x: "bf16"; eps?: "constant" }; results: { y: "bf16" } }>(bytes)` checks operands' names and types.
 */
export interface Signature {
  operands: object;
  results: object;
  columns?: number;
}
/** Of a module about which nothing is said. */
export interface AnySignature {
  operands: Record<string, StorageType | "constant">;
  results: Record<string, StorageType>;
  columns: number;
}

/** Rows that lie `stride` elements apart; what lies between them is neither read nor written. */
export interface StridedRows<V = Values> {
  values: V;
  stride: number;
}
type Float16 = typeof globalThis extends { Float16Array: { prototype: infer V } } ? V : never;
type Accepted<T> = T extends "constant" ? number
  : T extends StorageType ? Accepts<ArrayOf[T] | (T extends "f16" ? Float16 : never)>
  : never;
type Accepts<V> = V | StridedRows<V>;
type Given<O> = { [N in keyof O]: Accepted<O[N]> };
type Made<R> = { [N in keyof R]: R[N] extends StorageType ? ArrayOf[R[N]] : never };
type Constants<O> = { [N in keyof O as O[N] extends StorageType ? never : N]?: number };
type Arrays<O> = {
  readonly [N in keyof O as Extract<O[N], StorageType> extends never ? never : N]: ArrayOf[Extract<O[N], StorageType>];
};

/** The shape of a problem: one of both says the other. */
export type Shape = { rows: number; columns?: number } | { rows?: number; columns: number };
export interface RunOptions<S extends Signature = AnySignature> {
  rows?: number;
  columns?: number;
  /** Arrays for results; those not given are made. They share memory neither with operands nor with each other. */
  into?: { [N in keyof S["results"]]?: Accepted<S["results"][N]> };
  /** Results that lie exactly on an operand: `{ y: "x" }`. Unless `into` says otherwise, they are put there. */
  inPlace?: { [N in keyof S["results"]]?: keyof S["operands"] & string };
}
/** Whoever says nothing of columns must say the shape of each call. */
type Options<S extends Signature> = S extends { columns: number }
  ? [options?: RunOptions<S>]
  : [options: RunOptions<S> & Shape];

/** A call of one shape whose arrays stay in WebAssembly memory of its own. */
export interface PreparedCall<S extends Signature = AnySignature> {
  /** To be filled by the caller. */
  readonly operands: Arrays<S["operands"]>;
  /** Written by every run. */
  readonly results: Arrays<S["results"]>;
  /** Other values of constants. */
  set(constants: Constants<S["operands"]>): void;
  run(): Arrays<S["results"]>;
}
/** How many rows a table has whose rows an operand picks; as many as the problem unless said. */
interface RowsOfTables {
  tables?: Record<string, number>;
}
interface Prepare<S extends Signature> {
  readonly manifest: Manifest;
  prepare(
    shape: (S extends { columns: number } ? { rows: number; columns?: number } : { rows: number; columns: number }) & RowsOfTables,
    constants?: Constants<S["operands"]>,
  ): PreparedCall<S>;
}
export interface Kernel<S extends Signature = AnySignature> extends Prepare<S> {
  /** Typed arrays by operand (row-major; rows may lie apart), numbers by constant. */
  run(values: Given<S["operands"]>, ...options: Options<S>): Made<S["results"]>;
}
/** A kernel whose `run` is the function itself. */
export interface KernelFunction<S extends Signature = AnySignature> extends Prepare<S> {
  (values: Given<S["operands"]>, ...options: Options<S>): Made<S["results"]>;
}

/** A Response or a Blob, whichever library declares them. */
export interface Body {
  arrayBuffer(): Promise<ArrayBuffer>;
}
/** A WebAssembly.Module: an empty interface, where it is declared. */
export interface CompiledModule {
  readonly then?: never;
  readonly length?: never;
  readonly [Symbol.toStringTag]?: string;
}
export type Source = ArrayBufferLike | ArrayBufferView | Body | CompiledModule;
export interface LoadOptions {
  /** Bytes of WebAssembly memory, 2^30 unless given; larger problems go through it in chunks of rows. */
  memoryLimit?: number;
}
export function load<S extends Signature = AnySignature>(
  source: Source | Promise<Source>,
  options?: LoadOptions,
): Promise<Kernel<S>>;

/** Operators that come with the package, in f32. */
export type OperatorName = keyof Signatures;
export type Operator<D> = { [N in keyof D]: D[N] extends Signature ? KernelFunction<D[N]> : never };
export function loadOperator<N extends OperatorName>(name: N, options?: LoadOptions): Promise<Operator<Signatures[N]>>;
export function loadOperator<N extends "forward" | "backward">(
  source: { [D in N]: Source | Promise<Source> },
  options?: LoadOptions,
): Promise<{ [D in N]: KernelFunction }>;
/** `loadOperator<Signatures["rms_norm"]>(await import("trireme/modules/rms_norm.mjs"))` is checked as well. */
export function loadOperator<D extends { forward?: Signature; backward?: Signature }>(
  source: { [N in keyof D]: Source | Promise<Source> },
  options?: LoadOptions,
): Promise<Operator<D>>;
export type { Signatures };

/** What this thread's engine can do. `allowed`: a page's Content-Security-Policy may forbid WebAssembly. */
export function probe(): { allowed: boolean; simd: boolean; keepsSubnormals: boolean; relaxed: boolean; fused: boolean };

/** The sample values of a problem line: a pure function of (seed, name, index). */
export function samples<T extends "f64" | "f32" | "f16" | "bf16" | "i8" | "i32" | "i64" | "u8">(
  name: string,
  type: T,
  count: number,
  options?: { seed?: number; low?: number; high?: number },
): ArrayOf[T];

/** XXH3-128 of results in order, NaNs made canonical: what `trireme verify` prints. */
export function digest(parts: [type: StorageType, values: ArrayBufferView][]): string;
export function xxh3_128(bytes: Uint8Array): string;

/** What an array of a receipt is said to be. */
export interface ArrayDigests {
  name: string;
  type: StorageType;
  rows: number;
  columns: number;
  block: number;
  digest: string;
  leaves: string[];
}
/** What was computed, and digests of all arrays: docs/receipts.md. */
export interface Receipt {
  receipt: 1;
  hash: "xxh3-128" | "sha256";
  contract: number;
  program: { text: string; digest: string };
  direction: "forward" | "backward";
  gradients: string[];
  shape: number[];
  axes: number;
  compute: "f32" | "f64";
  constants: Record<string, string>;
  absent: string[];
  operands: ArrayDigests[];
  results: ArrayDigests[];
  signature?: { algorithm: "ed25519"; key: string; value: string };
}
type ArrayGiven = Values | { values: Values; stride: number };
/** A module to use, or the compiler; the package's own compiler unless said. */
export interface ReceiptMaker {
  kernel?: Kernel;
  compiler?: Compiler | Source | Promise<Compiler | Source>;
}
export interface MakeReceiptOptions extends ReceiptMaker {
  columns: number;
  rows?: number;
  constants?: Record<string, number>;
  types?: Record<string, StorageType>;
  /** With `kernel`: operands that it was emitted without. */
  absent?: string[];
  /** "sha256" where the receipt is to be signed. */
  hash?: "xxh3-128" | "sha256";
}
/** Of operands and results as they were computed of them, by name: nothing runs. */
export function makeReceipt(text: string, arrays: Record<string, ArrayGiven>, options: MakeReceiptOptions): Promise<Receipt>;
/** Refuses what is no receipt: unknown, missing and doubled fields, digests that do not fit. */
export function parseReceipt(text: string): Promise<Receipt>;
/** In canonical form. */
export function printReceipt(receipt: Receipt): string;
/** A CryptoKey of WebCrypto, whichever library declares it. */
export interface Key {
  readonly type: string;
}
/** Ed25519: a private key's PEM text, or a pair that crypto.subtle.generateKey made. */
export function signReceipt(receipt: Receipt, key: string | { privateKey: Key; publicKey: Key }): Promise<Receipt>;
/** Throws unless the receipt is signed by this key: a PEM text, 64 hex digits, or a CryptoKey. */
export function verifySignature(receipt: Receipt, key: string | Key): Promise<void>;
export type CheckedArray =
  | { name: string; state: "same" }
  | { name: string; state: "left out"; reason: string }
  | { name: string; state: "different"; rows: [number, number]; element?: string };
export interface CheckReport {
  passed: boolean;
  device: "wasm" | "reference";
  rows: [number, number];
  operands: CheckedArray[];
  given: CheckedArray[];
  results: CheckedArray[];
}
/** Computes a receipt's results again, or those of `rows` (the first, and the one behind the last), of these operands. */
export function checkReceipt(
  receipt: Receipt,
  arrays: Record<string, ArrayGiven>,
  options?: ReceiptMaker & { rows?: [number, number]; by?: "module" | "reference"; key?: string | Key },
): Promise<CheckReport>;

/** What the compiler refuses. `line` and `column` count from 1; `reason` is the message without place and quotation. */
export class CompileError extends Error {
  code: "InvalidProgram" | "InvalidArgument" | "Unsupported" | "OutOfMemory" | "Internal" | string;
  line?: number;
  column?: number;
  reason: string;
}
export interface Parameter {
  name: string;
  kind: "operand" | "constant" | "result";
  /** "[i,j]", "[i % heads,j]"; empty for constants. */
  spread: string;
  optional: boolean;
  fallback?: number | string;
}
export interface ProgramText {
  name: string;
  text: string;
  /** The operand whose type others have in a problem line, unless they are told; empty where there is none. */
  leading: string;
  parameters: Parameter[];
  advice: string[];
}
export interface Tables {
  contract: number;
  operators: { name: string; text: string }[];
  targets: { name: string; form: "text" | "code" | "module"; defaultArch: string; archs: string; commonArchs: string[] }[];
  stages: { name: string; summary: string; ofTarget: boolean }[];
  /** Of the schedule, in their order: show() takes their names as stages, for a target. */
  passes: { name: string; summary: string }[];
  types: { name: string; bits: number; integer: boolean }[];
  functions: { name: string; arity: number; formula: string; domain: string; unit: string; bound: number }[];
}
export interface Emission {
  program: string;
  target: string;
  arch: string;
  config: string;
  description: string;
  manifest: object;
  bytes: Uint8Array;
}
export interface OracleError {
  name: string;
  element: string;
  got: number | string;
  want: number | string;
  error: number | string;
  bound: number | string;
  wrong: number;
  unknown: number;
  elements: number;
}
type OpenArray = { name: string; type: StorageType; rows: number; columns: number; at: number };
/** A problem in the compiler's memory; views are gone when that grows. */
export interface OpenProblem {
  readonly line: string;
  readonly rows: number;
  readonly columns: number;
  readonly operands: (OpenArray | { name: string; constant: number | string })[];
  readonly results: OpenArray[];
  operand(name: string): Values;
  result(name: string): Values;
  /** Fills the results; their digest. */
  run(by?: "reference" | "lanes"): string;
  oracle(): { errors: OracleError[]; elements: Record<string, Float64Array> };
  close(): void;
}
export interface EmitOptions {
  target?: string;
  arch?: string;
  config?: string;
}
/** The compiler as a WebAssembly module: texts in, texts and bytes out. `line`: a problem line, "rms_norm 64x4096 x=bf16". */
export interface Compiler {
  readonly tables: Tables;
  readonly memoryBytes: number;
  program(text: string): { forward: ProgramText; backward?: ProgramText; noBackward?: string; tries: string[]; returns: string[] };
  show(text: string, line: string, options?: EmitOptions & { stage?: string }): string;
  emit(text: string, line: string, options?: EmitOptions): Emission;
  split(text: string, direction?: "forward" | "backward"): { program: string; exchanges: { name: string; by: string }[] }[];
  open(text: string, line: string): OpenProblem;
}
/** Of trireme.wasm: its bytes, a Response, a WebAssembly.Module; the package's own unless given. */
export function loadCompiler(source?: Source | Promise<Source>): Promise<Compiler>;

// A program's text, where it is a literal, says its names: comments are skipped, brackets emptied, and what is left is cut at
// commas.
type Blank = " " | "\n" | "\t" | "\r";
type Trim<S extends string> = S extends `${Blank}${infer R}` ? Trim<R> : S extends `${infer R}${Blank}` ? Trim<R> : S;
type Code<S extends string> = Trim<S> extends `#${string}\n${infer R}` ? Code<R> : Trim<S>;
type Emptied<S extends string> = S extends `${infer A}[${string}]${infer B}` ? `${A}@${Emptied<B>}` : S;
type Items<S extends string> = S extends `${infer A},${infer B}` ? Trim<A> | Items<B> : Trim<S>;
type ArrayName<I> = I extends `${infer N}@${string}` ? Trim<N> : never;
type Needed<I> = I extends `${string}=${string}` ? never : I;
type ConstantName<I> = I extends `${string}@${string}` ? never : I extends `${infer N}=${string}` ? Trim<N> : I;
type OperandItems<S extends string> =
  Emptied<Code<S>> extends `${string}(${infer O}->${string}` ? (Trim<O> extends `${infer L})` ? Items<L> : never) : never;
type ResultItems<S extends string> = Emptied<Code<S>> extends `${string}->${infer R}` ? (R extends `${string}(${infer L})${string}` ? Items<L> : never) : never;
type InputOf<I, V> =
  & { [N in ArrayName<Needed<I>>]: Accepts<V> }
  & { [N in Exclude<ArrayName<I>, ArrayName<Needed<I>>>]?: Accepts<V> }
  & { [N in ConstantName<Needed<I>> & string]: number }
  & { [N in Exclude<ConstantName<I>, ConstantName<Needed<I>>> & string]?: number };
type Inputs<S extends string, V> = string extends S ? Record<string, Accepts<V> | number> : InputOf<OperandItems<S>, V>;
type Outputs<S extends string> = string extends S ? string : ArrayName<ResultItems<S>> & string;
type Same<V> = V extends Float32Array | Float64Array ? V : Values;

// Storage types of prepared calls: what `T` tells; else seeds are i64, operands that pick rows i32, and the rest f32, unless
// another array's type is told, which they may take.
type Untold<S extends string, N extends string> =
  S extends `${string}random(${N},${string}` ? "i64" : S extends `${string}[${N}${"," | "]" | " "}${string}` ? "i32" : "f32";
type TypeOf<S extends string, N extends string, T> = N extends keyof T ? T[N]
  : Untold<S, N> extends "f32" ? ([keyof T] extends [never] ? "f32" : StorageType) : Untold<S, N>;
type TypesOf<S extends string, N extends string, T> = { [M in N]: TypeOf<S, M, T> };
type Told<N extends string> = { [M in N]?: StorageType };
type OperandName<S extends string> = string extends S ? string : ArrayName<OperandItems<S>> & string;
type ConstantOf<S extends string> = string extends S ? string : ConstantName<OperandItems<S>> & string;
type CallOf<S extends string, T, Absent, Wanted extends string> = string extends S ? PreparedCall : PreparedCall<{
  operands: TypesOf<S, Exclude<OperandName<S>, Absent>, T> & { [N in ConstantOf<S>]: "constant" };
  results: TypesOf<S, Wanted, T>;
}>;

/** `Names`: of results; `Wanted`: those of them that are computed. */
export interface CompiledRunOptions<Names extends string = string, Wanted extends Names = Names> {
  rows?: number;
  columns?: number;
  /** Of arrays whose class does not say it (Uint16Array), and of results. */
  types?: Record<string, StorageType>;
  /** Those that are wanted; all unless said. */
  results?: Wanted[];
  into?: { [N in Names]?: Accepts<Values> };
  inPlace?: { [N in Names]?: string };
}
/** `T`: storage types by name, f32 unless told; operands that take their defaults; results, all unless said. */
export interface PrepareOptions<T, Absent extends string, Constants extends string, Wanted extends string> {
  types?: T;
  absent?: Absent[];
  constants?: { [N in Constants]?: number };
  results?: Wanted[];
}
interface CompiledProgram {
  readonly name: string;
  readonly text: string;
  readonly parameters: Parameter[];
  readonly advice: string[];
  emit(
    columns: number, target: string,
    options?: { arch?: string; types?: Record<string, StorageType>; absent?: string[]; constants?: Record<string, number> },
  ): Emission;
}
/** A program whose kernels are made when a shape and types are first met. `S`: its text, where that is a literal. */
export interface CompiledOperator<S extends string = string> extends CompiledProgram {
  backward(): CompiledBackward<S>;
  run<V extends Values = Float32Array, R extends Outputs<S> = Outputs<S>>(
    values: Inputs<S, V>, options: CompiledRunOptions<Outputs<S>, R> & Shape,
  ): { [N in R]: Same<V> };
  prepare<T extends Told<OperandName<S> | Outputs<S>> = {}, A extends OperandName<S> = never, R extends Outputs<S> = Outputs<S>>(
    shape: { rows: number; columns: number } & RowsOfTables, options?: PrepareOptions<T, A, ConstantOf<S>, R>,
  ): CallOf<S, T, A, R>;
}

// Of a backward the text says which names there can be: gradients of results arrive as d + result, those of operands are given as
// d + operand. Which of them there are, and what else it needs, the compiler finds out (`parameters` says): they are optional.
type Needs<S extends string> = string extends S ? string : OperandName<S> | Outputs<S> | `d${Outputs<S>}`;
type Gradients<S extends string> = string extends S ? string : `d${OperandName<S>}`;
/** The derived program. Results that are asked for by `results` are there; the others' names alone are known. */
export interface CompiledBackward<S extends string = string> extends CompiledProgram {
  run<V extends Values = Float32Array, R extends Gradients<S> = never>(
    values: { [N in Needs<S>]?: Accepts<V> } & { [N in ConstantOf<S>]?: Accepts<V> | number },
    options: CompiledRunOptions<Gradients<S>, R> & Shape,
  ): { [N in R]: Same<V> } & { [N in Exclude<Gradients<S>, R>]?: Same<V> };
  prepare<T extends Told<Needs<S> | Gradients<S>> = {}, R extends Gradients<S> = never>(
    shape: { rows: number; columns: number } & RowsOfTables, options?: PrepareOptions<T, Needs<S>, ConstantOf<S>, R>,
  ): PreparedBackward<S, T, R>;
}
export interface PreparedBackward<S extends string = string, T = {}, R extends Gradients<S> = never> {
  readonly operands: { readonly [N in Needs<S>]?: ArrayOf[TypeOf<S, N, T> & StorageType] };
  readonly results: GradientArrays<S, T, R>;
  set(constants: { [N in ConstantOf<S>]?: number }): void;
  run(): GradientArrays<S, T, R>;
}
type GradientArrays<S extends string, T, R extends Gradients<S>> =
  & { readonly [N in R]: ArrayOf[TypeOf<S, N, T> & StorageType] }
  & { readonly [N in Exclude<Gradients<S>, R>]?: ArrayOf[TypeOf<S, N, T> & StorageType] };
export interface CompileOptions extends LoadOptions {
  /** What loadCompiler gives, or what it takes; the package's own unless said. */
  compiler?: Compiler | Source | Promise<Compiler | Source>;
}
export function compile<S extends string>(text: S, options?: CompileOptions): Promise<CompiledOperator<S>>;

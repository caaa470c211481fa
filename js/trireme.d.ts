/** Storage types; f16, bf16 and f8 travel as their bits. */
export type StorageType = "f64" | "f32" | "f16" | "bf16" | "f8e4m3" | "f8e5m2" | "i8" | "i32";
export type Values = Float64Array | Float32Array | Uint16Array | Uint8Array | Int8Array | Int32Array;

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
  format: 1;
  contract: number;
  program: string;
  compute: "f32" | "f64";
  relaxed: boolean;
  /** 0: any number of columns. */
  columns: number;
  operands: (ArraySpec | { name: string; constant: number | string })[];
  results: ArraySpec[];
  slots: [kind: string, index: number][];
  scratch: { bytes: number; bytesPerStripe: number };
  columnSums: number;
}

/** Rows that lie `stride` elements apart; what lies between them is neither read nor written. */
export interface StridedRows {
  values: Values;
  stride: number;
}
export interface RunOptions {
  /** Of a row; may be left out where an operand per column, or the module, says it. */
  columns?: number;
  /** Arrays for results; those not given are made. */
  into?: Record<string, Values | StridedRows>;
}
export interface Kernel {
  readonly manifest: Manifest;
  /** Typed arrays by operand (row-major; rows may lie apart), numbers by constant. */
  run(values: Record<string, Values | StridedRows | number>, options?: RunOptions): Record<string, Values>;
}

export type Source = ArrayBuffer | ArrayBufferView | Response | WebAssembly.Module;
export interface LoadOptions {
  /** Bytes of WebAssembly memory, 2^30 unless given; larger problems go through it in chunks of rows. */
  memoryLimit?: number;
}
export function load(source: Source | Promise<Source>, options?: LoadOptions): Promise<Kernel>;
/** By name: an operator that comes with the package, in f32. */
export function loadOperator(
  source: string | { forward: Source | Promise<Source>; backward: Source | Promise<Source> },
  options?: LoadOptions,
): Promise<{ forward: Kernel["run"]; backward: Kernel["run"] }>;

/** What this thread's engine can do. `allowed`: a page's Content-Security-Policy may forbid WebAssembly. */
export function probe(): { allowed: boolean; simd: boolean; keepsSubnormals: boolean; relaxed: boolean; fused: boolean };

/** The sample values of a problem line: a pure function of (seed, name, index). */
export function samples(
  name: string,
  type: "f64" | "f32" | "f16" | "bf16" | "i8" | "i32",
  count: number,
  options?: { seed?: number; low?: number; high?: number },
): Values;

/** XXH3-128 of results in order, NaNs made canonical: what `trireme verify` prints. */
export function digest(parts: [type: StorageType, values: Values][]): string;
export function xxh3_128(bytes: Uint8Array): string;

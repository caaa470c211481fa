// The compiler itself, as a WebAssembly module (web/compiler): texts in, texts and bytes out. One instance a thread.
//
//   const compiler = await loadCompiler(fetch("trireme.wasm"));
//   compiler.program(text).backward.text;
//   compiler.emit(text, "rms_norm 64x4096 x=bf16", { target: "ptx", arch: "sm_90" }).bytes;
import { array_class } from "./arrays.mjs";

const codes = ["InvalidProgram", "InvalidArgument", "Unsupported", "BufferTooSmall", "NoDevice", "Driver", "OutOfMemory", "Internal"];

// What the compiler refuses. `code`: one of the above; `line`, `column` (from 1), where a place in the text is meant, and
// `reason`: the message without place and quotation.
export class CompileError extends Error {
  constructor(code, message) {
    super(message);
    this.name = "CompileError";
    this.code = code;
    const [, line, column, reason] = message.match(/^(\d+):(\d+): ([^\n]*)/) ?? [];
    this.line = line && Number(line);
    this.column = column && Number(column);
    this.reason = reason ?? message.split("\n")[0];
  }
}

const encoder = new TextEncoder(), decoder = new TextDecoder();

export class Compiler {
  #module;
  #exports;
  #tables;

  constructor(module) {
    this.#module = module;
    this.#start();
  }
  #start() {
    this.#exports = new WebAssembly.Instance(this.#module).exports;
    this.#exports._initialize?.();
    this.instances = (this.instances ?? 0) + 1;  // problems of an earlier one are gone
  }

  // { text, bytes } of a verb; bytes are a view that the next call spoils.
  #call(...words) {
    for (const word of words)
      if (typeof word !== "string") throw new TypeError(`${words[0]}: texts are wanted, got ${typeof word}`);
    if (words.some((word) => word.includes("\0"))) throw new CompileError("InvalidProgram", "1:1: a NUL stands in the text");
    const request = encoder.encode(words.join("\0") + "\0"), exports = this.#exports;
    let status;
    try {
      const at = exports.request(request.length);
      new Uint8Array(exports.memory.buffer).set(request, at);
      status = exports.call();
    } catch (cause) {  // a trap: memory ran out, most likely; what is left of the instance is not to be trusted
      this.#start();
      throw new CompileError("OutOfMemory", `the compiler gave up on '${words[0]}'`, { cause });
    }
    const memory = new Uint8Array(exports.memory.buffer);
    const text = decoder.decode(memory.subarray(exports.text(), exports.text() + exports.text_bytes()));
    if (status) throw new CompileError(codes[status - 1], text);
    return { text, bytes: memory.subarray(exports.bytes(), exports.bytes() + exports.bytes_bytes()) };
  }

  // Bytes of memory that the compiler holds.
  get memoryBytes() { return this.#exports.memory.buffer.byteLength; }

  // { contract, operators, targets, stages, passes, functions, types }: the tables one chooses from.
  get tables() { return (this.#tables ??= JSON.parse(this.#call("describe").text)); }

  // { forward, backward or noBackward, tries, returns } of a program's text.
  program(text) { return JSON.parse(this.#call("program", text).text); }

  // The text after a stage of compilation (tables.stages), the kernels after a pass of the schedule (tables.passes), or the
  // target's code.
  show(text, line, { stage = "", target = this.tables.targets[0].name, arch = "", config = "" } = {}) {
    return this.#call("show", text, line, config, stage, target, arch).text;
  }

  // { program, target, arch, config, description, manifest, bytes }.
  emit(text, line, { target = this.tables.targets[0].name, arch = "", config = "" } = {}) {
    const answer = this.#call("emit", text, line, config, target, arch);
    return { ...JSON.parse(answer.text), bytes: answer.bytes.slice() };
  }

  // [{ program, exchanges }]: for rows that are spread over several machines.
  split(text, direction = "forward") { return JSON.parse(this.#call("split", text, direction).text); }

  // A problem with memory of its own, its operands filled with the line's samples.
  open(text, line) { return new OpenProblem(this, (...words) => this.#call(...words), () => this.#exports.memory, text, line); }
}

// Arrays are views of the compiler's memory, made anew at each access: they are gone when that grows.
export class OpenProblem {
  #compiler;
  #call;
  #memory;
  #number;
  #instance;

  constructor(compiler, call, memory, text, line) {
    const { number, ...found } = JSON.parse(call("open", text, line).text);
    Object.assign(this, found);
    this.#compiler = compiler;
    this.#call = call;
    this.#memory = memory;
    this.#number = String(number);
    this.#instance = compiler.instances;
  }
  #check() {
    if (this.#instance !== this.#compiler.instances) throw new CompileError("OutOfMemory", "the compiler was started anew");
  }
  #view({ type, rows, columns, at }) {
    const entries = rows * columns / (type === "f4e2m1" ? 2 : 1);  // two columns a byte
    return new (array_class(type))(this.#memory().buffer, at, entries);
  }
  #find(list, name) {
    this.#check();
    const found = list.find((each) => each.name === name && each.type);
    if (!found) throw new TypeError(`${this.line}: no array '${name}'`);
    return this.#view(found);
  }
  operand(name) { return this.#find(this.operands, name); }
  result(name) { return this.#find(this.results, name); }

  // Fills the results; their digest.
  run(by = "reference") {
    this.#check();
    return JSON.parse(this.#call("run", this.#number, by).text).digest;
  }
  // { errors, elements }: the largest error of each result as it stands in memory, and by result's name the exact values with
  // what the contract's roundings allow: [value, lowest, highest] an element.
  oracle() {
    this.#check();
    const { text, bytes } = this.#call("oracle", this.#number), elements = {};
    const all = new Float64Array(bytes.slice().buffer);
    let at = 0;
    for (const { name, rows, columns } of this.results) elements[name] = all.subarray(at, (at += 3 * rows * columns));
    return { errors: JSON.parse(text), elements };
  }
  close() {
    if (this.#instance === this.#compiler.instances) this.#call("close", this.#number);
    this.#instance = -1;
  }
}

// `source`: the bytes of trireme.wasm, a Response, or a WebAssembly.Module; unless given, the one that comes with the package.
export const loadCompiler = async (source) => {
  source = await (source ?? shipped());
  if (typeof source?.arrayBuffer === "function") {
    if (source.ok === false) throw new Error(`loadCompiler: ${source.url}: ${source.status} ${source.statusText}`);
    source = await source.arrayBuffer();
  }
  const is_module = Object.prototype.toString.call(source) === "[object WebAssembly.Module]";
  return new Compiler(is_module ? source : await WebAssembly.compile(source));
};

const shipped = async () => {
  try {
    return (await import("./modules/compiler.mjs")).bytes();
  } catch (cause) {
    throw new Error("loadCompiler: the package's own compiler cannot be imported; `make web` makes it", { cause });
  }
};

// Programs compiled where they run: text in, kernels made when a shape and types are first met, and kept.
//
//   const op = await compile("scale(x[i,j], by = 2) -> (y[i,j])\n    y = x * by");
//   const { y } = op.run({ x, by: 3 }, { columns: 4096 });
import { carried_types, check_names } from "./arrays.mjs";
import { CompileError, loadCompiler } from "./compiler.mjs";
import { require_engine } from "./engine.mjs";
import { Kernel } from "./kernel.mjs";

const most_kernels = 64;  // of an operator; the one unused for longest goes first

let shared;  // the package's own compiler, loaded once a thread

// `compiler`: what loadCompiler gives, or what it takes; the package's own unless said. memoryLimit: as load()'s.
export const compile = async (text, options = {}) => {
  check_names("compile", "option", options, ["compiler", "memoryLimit"]);
  if (typeof text !== "string") throw new TypeError(`compile: a program's text is wanted, got ${typeof text}`);
  const { memoryLimit = 2 ** 30 } = options;
  const given = await options.compiler;
  const compiler = typeof given?.program === "function" ? given
    : await (given === undefined ? (shared ??= loadCompiler()) : loadCompiler(given));
  const { fused } = require_engine();
  const parts = { compiler, text, memoryLimit, arch: fused ? "relaxed" : "simd128", found: compiler.program(text) };
  return new CompiledOperator(parts, false);
};

const given_array = (value) => (Object.hasOwn(value, "values") ? value.values : value);
const none = (name, types) => `${name}=none${types[name] ? `:${types[name]}` : ""}`;

export class CompiledOperator {
  #parts;
  #is_backward;
  #kernels = new Map();

  constructor(parts, is_backward) {
    this.#parts = parts;
    this.#is_backward = is_backward;
    const { name, text, parameters, advice } = is_backward ? parts.found.backward : parts.found.forward;
    // Where the program comes from, as the compiler prints it; its operands, constants and results.
    Object.assign(this, { name, text, parameters, advice });
  }

  // The derived program, in the same language.
  backward() {
    const { found } = this.#parts;
    if (this.#is_backward) throw new TypeError(`${this.name}: this is a backward already`);
    if (!found.backward) throw new CompileError("Unsupported", found.noBackward);
    return new CompiledOperator(this.#parts, true);
  }

  // `values`: typed arrays by operand, numbers by constant; operands with a default may be left out. Beside run()'s options of
  // a loaded kernel: `types`, for arrays whose class does not say theirs (Uint16Array: { x: "bf16" }) and for results;
  // `results`: the names of those that are wanted, all unless said.
  run(values, options = {}) {
    const { types, results, ...rest } = options;
    const kernel = this.#kernel(this.#choice(values, types, results), this.#columns(values, rest));
    return kernel.run(this.#passed(kernel, values), rest);
  }

  // A call of a fixed shape whose arrays stay in memory of its own (README). `types`: as a problem line says them, f32 unless
  // told; `absent`: operands that take their defaults; `constants` by name.
  prepare(shape, options = {}) {
    check_names(`${this.name}: prepare`, "option", options, ["types", "absent", "constants", "results"]);
    const { types = {}, absent = [], constants = {}, results } = options;
    const present = this.parameters.filter(({ name, kind }) => kind === "operand" && !absent.includes(name));
    const values = { ...Object.fromEntries(present.map(({ name }) => [name, undefined])), ...constants };
    const kernel = this.#kernel(this.#choice(values, types, results), shape.columns);
    return kernel.prepare(shape, this.#passed(kernel, constants));
  }

  // What the emitted module says of itself, for a shape and types as prepare() takes them.
  emit(columns, target, { arch, types = {}, absent = [], constants = {} } = {}) {
    const { compiler, text } = this.#parts;
    const present = Object.entries({ ...types, ...constants }).filter(([name]) => !absent.includes(name));
    const words = [...present.map(([name, value]) => `${name}=${value}`), ...absent.map((name) => none(name, types))];
    return compiler.emit(text, this.#line(columns, words), { target, arch });
  }

  #line(columns, words) {
    const { found } = this.#parts;
    return [found.forward.name, `4096x${columns}`, ...words, ...(this.#is_backward ? ["backward"] : [])].join(" ");
  }

  // The words of a problem line, and what tells kernels apart: a constant that is 0, 1, -1 or stands in an index is folded into
  // the program, every other travels as an argument.
  #choice(values, types = {}, results) {
    const known = (kind) => this.parameters.filter((each) => each.kind === kind);
    const memory = known("operand"), constants = known("constant"), outputs = known("result");
    const names = (list) => list.map(({ name }) => name);
    check_names(this.name, "operand", values, [...names(memory), ...names(constants)]);
    check_names(`${this.name}: types`, "array", types, [...names(memory), ...names(outputs)]);
    if (results) for (const name of results) check_names(this.name, "result", { [name]: 0 }, names(outputs));
    const words = [], key = [];
    const add = (word, same = word) => { words.push(word); key.push(same); };
    for (const { name, optional } of memory) {
      const type = name in values ? this.#type(name, values[name], types[name]) : undefined;
      if (type) add(`${name}=${type}`);
      else if (name in values) continue;  // prepare() leaves it to the compiler
      else if (optional) add(none(name, types));
      else throw new TypeError(`${this.name}: ${name} is missing`);
    }
    for (const { name } of outputs) {
      if (results && !results.includes(name)) add(none(name, types));
      else if (types[name]) add(`${name}=${types[name]}`);
    }
    for (const { name } of constants) {
      if (!(name in values)) continue;
      const value = values[name];
      if (typeof value !== "number") throw new TypeError(`${name}: a number, got ${typeof value}`);
      const in_index = this.parameters.some(({ spread }) => spread.match(/\w+/g)?.includes(name));
      add(`${name}=${value}`, in_index || [0, 1, -1].includes(value) ? undefined : `${name}=*`);
    }
    return { words, key: key.join(" ") };
  }

  #type(name, value, said) {
    if (value === undefined) return said;
    if (value === null || typeof value !== "object") throw new TypeError(`${name}: a typed array, got ${value === null ? "null" : typeof value}`);
    const possible = carried_types(given_array(value));
    if (said ? possible.includes(said) : possible.length === 1) return said ?? possible[0];
    if (said || !possible.length) throw new TypeError(`${name}: ${given_array(value)?.constructor?.name} carries ${possible.join(", ") || "nothing"}, not ${said ?? "values"}`);
    throw new TypeError(`${name}: this array may hold ${possible.join(", ")}; say which, { types: { ${name}: "${possible[0]}" } }`);
  }

  #columns(values, { rows, columns }) {
    if (columns !== undefined) return columns;
    const whole = this.parameters.find(({ name, kind, spread }) => kind === "operand" && spread === "[i,j]" && name in values);
    const length = whole && !Object.hasOwn(values[whole.name], "values") ? values[whole.name].length : undefined;
    if (!(rows > 0) || length === undefined) throw new TypeError(`${this.name}: say the shape, { columns }; the arrays alone do not`);
    if (length === 0 || length % rows) throw new RangeError(`${whole.name}: ${length} values are no ${rows} whole rows`);
    return length / rows;
  }

  #kernel({ words, key }, columns) {
    if (!Number.isSafeInteger(columns) || columns < 1) throw new RangeError(`columns: ${columns} is no positive integer`);
    const { compiler, text, arch, memoryLimit } = this.#parts, name = `${columns} ${key}`;
    let kernel = this.#kernels.get(name);
    if (!kernel) {
      const { bytes, manifest } = compiler.emit(text, this.#line(columns, words), { target: "wasm", arch });
      kernel = new Kernel(new WebAssembly.Module(bytes), manifest, memoryLimit);
      if (this.#kernels.size >= most_kernels) this.#kernels.delete(this.#kernels.keys().next().value);
    }
    this.#kernels.delete(name);  // the last in the order of the map is the one used last
    this.#kernels.set(name, kernel);
    return kernel;
  }

  // Constants that are folded are no arguments.
  #passed({ manifest }, values) {
    const taken = new Set(manifest.operands.map(({ name }) => name));
    return Object.fromEntries(Object.entries(values).filter(([name]) => taken.has(name)));
  }
}

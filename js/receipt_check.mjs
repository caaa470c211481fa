// Receipts of arrays at hand, and receipts computed again: by a module that was loaded, by one compiled on the spot, or by the
// compiler's reference.
import { array_class, array_of, check_names, is_table, placed } from "./arrays.mjs";
import { loadCompiler } from "./compiler.mjs";
import { require_engine } from "./engine.mjs";
import { Kernel } from "./kernel.mjs";
import { array_digests, block_rows, check_program, digest_rows, hash_named, text_digest, verifySignature } from "./receipt.mjs";

const bits_of = (value) => {
  const view = new DataView(new ArrayBuffer(8));
  view.setFloat64(0, Number.isNaN(value) ? NaN : value);
  return view.getBigUint64(0).toString(16).padStart(16, "0");
};
const number_of = (bits) => {
  const view = new DataView(new ArrayBuffer(8));
  view.setBigUint64(0, BigInt(`0x${bits}`));
  return view.getFloat64(0);
};
const compiler_of = async (given) => {
  const compiler = await given;
  return typeof compiler?.program === "function" ? compiler : loadCompiler(compiler);
};
const values_of = (value) => (Object.hasOwn(value, "values") ? value.values : value);
const is_plain = (axis) => axis?.divide === 1 && !axis.wrap;

// Of operands and results as they were computed of them, by name; nothing runs. `kernel`: the module that made them (`absent`:
// operands that it was emitted without), else the text is compiled. `types`: of arrays whose class does not say theirs.
export const makeReceipt = async (text, arrays, options = {}) => {
  check_names("makeReceipt", "option", options,
    ["rows", "columns", "constants", "types", "absent", "kernel", "compiler", "hash"]);
  const { constants = {}, types = {}, hash = "xxh3-128", kernel, columns } = options;
  hash_named(hash), check_program(text);
  if (!Number.isSafeInteger(columns)) throw new TypeError("makeReceipt: say the shape, { columns }");
  let manifest = kernel?.manifest, absent = options.absent ?? [];
  const known = { ...constants };
  if (!manifest) {
    const compiler = await compiler_of(options.compiler), { forward } = compiler.program(text);
    const named = (kind) => forward.parameters.filter((each) => each.kind === kind);
    check_names(forward.name, "array", arrays, [...named("operand"), ...named("result")].map(({ name }) => name));
    absent = named("operand").map(({ name }) => name).filter((name) => !(name in arrays)).sort();
    for (const { name, fallback } of named("constant")) known[name] ??= fallback;
    const words = [...named("operand"), ...named("result")].map(({ name }) => (!(name in arrays) ? `${name}=none`
      : name in types ? `${name}=${types[name]}` : typed(name, arrays[name])));
    for (const [name, value] of Object.entries(constants)) words.push(`${name}=${value}`);
    ({ manifest } = compiler.emit(text, [forward.name, `4096x${columns}`, ...words].join(" "), { target: "wasm", arch: "simd128" }));
  }
  for (const { name, type, constant } of manifest.operands) if (!type) known[name] ??= Number(constant);
  const specs = [...manifest.operands.filter((each) => each.type), ...manifest.results];
  check_names(manifest.program, "array", arrays, specs.map(({ name }) => name));
  for (const { name } of specs) if (!(name in arrays)) throw new TypeError(`makeReceipt: ${name} is missing`);
  const rows = options.rows ?? rows_in(specs, arrays, columns);
  const list = (each) => Promise.all(each.filter((spec) => spec.type).map((spec) =>
    array_digests(hash, placed(spec, array_of(spec, arrays[spec.name]), rows, columns))));
  return {
    receipt: 1, hash, contract: manifest.contract, program: { text, digest: await text_digest(hash, text) },
    direction: "forward", gradients: [], shape: [rows, columns], axes: 1, compute: manifest.compute,
    constants: Object.fromEntries(Object.entries(known).filter(([, value]) => typeof value === "number")
      .map(([name, value]) => [name, bits_of(value)])),
    absent: [...absent].sort(), operands: await list(manifest.operands), results: await list(manifest.results),
  };
};

const of_classes = {
  Float64Array: "f64", Float32Array: "f32", Float16Array: "f16", Int8Array: "i8", Int32Array: "i32", BigInt64Array: "i64",
  Uint8Array: "u8", Uint8ClampedArray: "u8",
};
const typed = (name, value) => {
  const type = of_classes[values_of(value)?.constructor?.name];
  if (!type) throw new TypeError(`${name}: say what this array holds, { types: { ${name}: "bf16" } }`);
  return `${name}=${type}`;
};
const rows_in = (specs, arrays, columns) => {
  const whole = specs.find(({ row, column }) => is_plain(row) && is_plain(column));
  if (whole && !Object.hasOwn(arrays[whole.name], "values")) return arrays[whole.name].length / columns;
  throw new TypeError("makeReceipt: say { rows }; the arrays alone do not");
};

// The part of an array that rows start to last of the problem use: where it begins, and how many rows it has.
const part_of = ({ row }, array, start, last) => {
  if (!row || row.picked || row.wrap) return { offset: 0, rows: array.rows };
  return { offset: Math.floor(start / row.divide), rows: Math.ceil(last / row.divide) - Math.floor(start / row.divide) };
};
const gcd = (a, b) => (b ? gcd(b, a % b) : a);
// Where a run may begin so that every array's rows fall as in the whole problem; 0 where a text may read a row's number.
const start_of = (texts, operands, first) => {
  const code = texts.join("\n").replace(/#[^\n]*/g, "").replace(/\[[^\]]*\]/g, "");
  if (/\bi\b|\brandom\b/.test(code)) return 0;
  const period = operands.filter(({ row }) => row && !row.picked)
    .reduce((all, { row }) => { const own = row.divide * (row.wrap || 1); return (all / gcd(all, own)) * own; }, 1);
  return Number.isSafeInteger(period) ? Math.floor(first / period) * period : 0;
};

class Checker {
  constructor(receipt, arrays, { kernel, compiler, by = "module", rows }) {
    Object.assign(this, { receipt, arrays, kernel, compiler, by, wanted: rows });
    const { shape, axes } = receipt, product = (list) => list.reduce((all, each) => all * each, 1);
    this.rows = product(shape.slice(0, shape.length - axes));
    this.columns = product(shape.slice(shape.length - axes));
  }

  async run() {
    const { receipt } = this;
    this.choose_rows();
    this.constants = Object.fromEntries(Object.entries(receipt.constants).map(([name, bits]) => [name, number_of(bits)]));
    if (!this.kernel) {
      this.compiler = await compiler_of(this.compiler);
      this.found = this.compiler.program(receipt.program.text);
    }
    let manifest = this.kernel?.manifest ?? this.emit(this.rows, []).manifest;
    if (manifest.contract !== receipt.contract)
      throw new Error(`the receipt is of contract version ${receipt.contract}, and this is version ${manifest.contract}`);
    this.specs = manifest;
    this.check_arrays();
    const texts = [receipt.program.text, this.found?.backward?.text ?? ""];
    this.start = this.wanted ? start_of(texts, manifest.operands.filter((each) => each.type), this.first) : 0;
    const report = { device: this.by === "reference" ? "reference" : "wasm", rows: [this.first, this.last], operands: [], given: [], results: [] };
    const inputs = {};
    for (const array of receipt.operands) {
      const spec = manifest.operands.find(({ name }) => name === array.name), place = this.placed_whole(spec, array);
      const part = this.wanted ? part_of(spec, array, this.start, this.last) : { offset: 0, rows: array.rows };
      const state = await this.compare(array, place, part.offset, part.offset + part.rows, 0);
      report.operands.push(state);
      if (state.state === "different") return { passed: false, ...report };
      inputs[array.name] = this.part_values(array.name, place, part);
    }
    const computed = this.compute(inputs);
    for (const array of receipt.results) {
      const spec = manifest.results.find(({ name }) => name === array.name);
      if (this.wanted && !is_plain(spec.row)) {
        report.results.push({ name: array.name, state: "left out", reason: "it has not a row for each" });
        continue;
      }
      const first = this.wanted ? this.first : 0, last = this.wanted ? this.last : array.rows;
      const height = this.wanted ? this.last - this.start : array.rows, width = this.width(array);
      const own = { name: array.name, type: array.type, row_bytes: 0, stride_bytes: 0, bytes: undefined };
      const values = computed[array.name];
      own.bytes = new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
      own.row_bytes = own.stride_bytes = height ? values.byteLength / height : width * values.BYTES_PER_ELEMENT;
      const state = await this.compare(array, own, first, last, this.wanted ? this.start : 0);
      if (array.name in this.arrays) {
        const theirs = this.placed_whole(spec, array);
        report.given.push(await this.compare(array, theirs, first, last, 0));
        Object.assign(state, await this.first_element(spec, array, own, theirs, first, last));
      }
      report.results.push(state);
    }
    return { passed: [...report.operands, ...report.given, ...report.results].every(({ state }) => state !== "different"), ...report };
  }

  choose_rows() {
    this.first = 0, this.last = this.rows;
    if (!this.wanted) return;
    const [first, last] = this.wanted, block = block_rows(this.rows);
    if (!(first >= 0 && first < last && last <= this.rows)) throw new RangeError(`rows ${first}:${last} of a problem that has ${this.rows}`);
    this.first = Math.floor(first / block) * block;
    this.last = Math.min(Math.ceil(last / block) * block, this.rows);
  }

  width({ type, columns }) { return type === "f4e2m1" ? columns / 2 : columns; }

  emit(rows, left_out) {
    const line = this.line(rows, left_out);
    const { fused } = require_engine();
    const made = this.compiler.emit(this.receipt.program.text, line, { target: "wasm", arch: fused ? "relaxed" : "simd128" });
    // Results that were not stored are not stored again.
    const more = made.manifest.results.map(({ name }) => name).filter((name) => !this.receipt.results.some((each) => each.name === name));
    return more.length && !left_out.length ? this.emit(rows, more) : { ...made, line };
  }
  line(rows, left_out) {
    const { operands, results, absent, gradients, direction } = this.receipt;
    const constants = Object.entries(this.constants).map(([name, value]) => `${name}=${value}`);
    const tables = this.specs ? [...this.specs.operands, ...this.specs.results].filter((spec) => spec.type && is_table(spec)) : [];
    return [this.found.forward.name, `${rows}x${this.columns}`, ...[...operands, ...results].map(({ name, type }) => `${name}=${type}`),
      ...[...absent, ...left_out].map((name) => `${name}=none`), ...constants,
      ...tables.map(({ name }) => `${name}.rows=${[...operands, ...results].find((each) => each.name === name).rows}`),
      ...(direction === "backward" ? ["backward"] : []), ...(gradients.length ? [`gradients=${gradients.join(",")}`] : [])].join(" ");
  }

  // The module's arrays are the receipt's; a kernel may make more results.
  check_arrays() {
    const { receipt, specs } = this, whose = this.kernel ? "the kernel's" : "those of its program";
    const wanted = specs.results.filter(({ name }) => !this.kernel || receipt.results.some((each) => each.name === name));
    for (const [which, list] of [["operands", specs.operands.filter((each) => each.type)], ["results", wanted]]) {
      const said = receipt[which].map(({ name, type }) => `${name}: ${type}`).join(", ");
      const here = list.map(({ name, type }) => `${name}: ${type}`).join(", ");
      if (said !== here) throw new TypeError(`the receipt: its ${which} are ${said || "none"}, ${whose} ${here || "none"}`);
      for (const spec of list) {
        const array = receipt[which].find(({ name }) => name === spec.name);
        const extent = (axis, count) => (axis ? axis.wrap || Math.ceil(count / axis.divide) : 1);
        if (this.width(array) !== extent(spec.column, this.columns) || (!is_table(spec) && array.rows !== extent(spec.row, this.rows)))
          throw new TypeError(`the receipt: '${array.name}' has ${array.rows} rows of ${array.columns}, which its program does not have here`);
      }
    }
    if (receipt.compute !== specs.compute) throw new TypeError("the receipt: the compute type is not that of its arrays' types");
    check_names("checkReceipt", "array", this.arrays, [...receipt.operands, ...receipt.results].map(({ name }) => name));
    for (const { name } of receipt.operands) if (!(name in this.arrays)) throw new TypeError(`checkReceipt: the operand '${name}' is needed`);
  }

  placed_whole(spec, array) {
    const place = placed(spec, array_of(spec, this.arrays[array.name]), this.rows, this.columns);
    if (place.height !== array.rows) throw new RangeError(`${array.name}: has ${place.height} rows, and the receipt says ${array.rows}`);
    return place;
  }
  // A view of the caller's array, or its rows with their stride.
  part_values(name, { array, stride_bytes, row_bytes, width }, { offset, rows }) {
    const stride = stride_bytes / array.BYTES_PER_ELEMENT;
    const values = array.subarray(offset * stride, rows ? (offset + rows - 1) * stride + width : offset * stride);
    return stride_bytes === row_bytes ? values : { values, stride };
  }

  compute(inputs) {
    const rows = this.last - this.start, { specs, receipt } = this;
    if (this.by === "reference") {
      if (!this.compiler) throw new TypeError("checkReceipt: the reference is the compiler's; leave out { kernel }");
      if (specs.results.some(is_table)) throw new TypeError("checkReceipt: a result whose rows are picked wants { by: \"module\" }");
      const made = this.emit(rows, []), problem = this.compiler.open(receipt.program.text, made.line);
      try {
        for (const [name, given] of Object.entries(inputs)) {
          if (Object.hasOwn(given, "values")) throw new TypeError(`${name}: the reference wants rows side by side`);
          problem.operand(name).set(given);
        }
        problem.run("reference");
        return Object.fromEntries(receipt.results.map(({ name }) => [name, problem.result(name).slice()]));
      } finally {
        problem.close();
      }
    }
    if (this.by !== "module") throw new TypeError(`checkReceipt: by '${this.by}'; there are "module" and "reference"`);
    let { kernel } = this;
    if (!kernel) {
      const made = this.emit(rows, []);
      kernel = new Kernel(new WebAssembly.Module(made.bytes), made.manifest, 2 ** 30);
    }
    const taken = kernel.manifest.operands.filter(({ type, name }) => !type && name in this.constants);
    const into = Object.fromEntries(receipt.results.filter(({ name }) => is_table(specs.results.find((each) => each.name === name)))
      .map((array) => [array.name, new (array_class(array.type))(array.rows * this.width(array))]));  // rows that nobody picks hold 0
    return kernel.run({ ...inputs, ...Object.fromEntries(taken.map(({ name }) => [name, this.constants[name]])) },
      { rows, columns: this.columns, into });
  }

  // The blocks that hold rows first to last against their leaves; `from`: the number of the place's first row.
  async compare(array, place, first, last, from) {
    const { block, rows, leaves, name } = array;
    for (let at = Math.floor(first / block); at * block < Math.min(last, rows); ++at) {
      const begin = at * block, end = Math.min(begin + block, rows);
      if (await digest_rows(this.receipt.hash, place, begin - from, end - from) === leaves[at]) continue;
      return { name, state: "different", rows: [begin, end] };
    }
    return { name, state: "same" };
  }

  // The first element of a given result that is not the computed one.
  async first_element(spec, array, own, theirs, first, last) {
    const from = this.wanted ? this.start : 0, { hash } = this.receipt, bytes = own.row_bytes / this.width(array);
    for (let row = first; row < last; ++row) {
      if (await digest_rows(hash, own, row - from, row - from + 1) === await digest_rows(hash, theirs, row, row + 1)) continue;
      for (let column = 0; column < this.width(array); ++column) {
        const element = (place, at) => ({ ...place, row_bytes: bytes, bytes: place.bytes.subarray(at * place.stride_bytes + column * bytes) });
        const [got, want] = await Promise.all([element(theirs, row), element(own, row - from)].map((place) => digest_rows(hash, place, 0, 1)));
        if (got === want) continue;
        const index = [...(spec.row ? [row] : []), ...(spec.column ? [column] : [])];
        return { state: "different", rows: [row, row + 1], element: `${array.name}[${index}]` };
      }
    }
    return {};
  }
}

// Computes again what the receipt says of these operands; results that are given too are compared by elements. `rows`: the first
// and the one behind the last, widened to whole blocks. `by`: "module" or "reference". `kernel`: a loaded module to use rather
// than compiling the receipt's text: it then is what is trusted. `key`: whose signature the receipt must bear.
export const checkReceipt = async (receipt, arrays, options = {}) => {
  check_names("checkReceipt", "option", options, ["rows", "by", "kernel", "compiler", "key"]);
  if (options.key !== undefined) await verifySignature(receipt, options.key);
  return new Checker(receipt, arrays, options).run();
};

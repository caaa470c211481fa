// Runs a module: lays a problem out in its memory, fills its slots and calls it; on arrays that are copied in and out
// chunk by chunk, or prepared, on arrays that stay there.
import {
  array_class, array_of, bytes_of, check_names, copy_in, copy_out, is_per_element, is_per_row, is_table, overlap,
  placed, sized,
} from "./arrays.mjs";
import { sums_of } from "./contract.mjs";

const page = 65536, line = 64, stripe = 256;
// Rows go through memory in chunks that caches hold: what is copied in is there when the kernel reads it, and what it
// writes when that is copied out. Figures: docs/performance.md.
const chunk_bytes = 2 ** 21;
const above = (bytes, unit) => Math.ceil(bytes / unit) * unit;

// Gives every array of `operands` and `results` (undefined: a constant) its address: slots, scratch, workspace and whole
// arrays first; then, of the others, `step` rows at a time: as many as fit, near a chunk's bytes, or all of them.
const lay_out = (manifest, { operands, results, rows, columns }, { limit, all_rows }) => {
  const { scratch, compute, slots, program } = manifest;
  const places = [...operands, ...results].filter(Boolean), chunked = places.filter((place) => place.chunked);
  const sums = sums_of(manifest.sums, rows, columns), block = sums.between;
  let end = line;
  const take = (bytes) => { const at = end; end = above(at + bytes, line); return at; };
  const slots_at = take(8 * slots.length);
  const scratch_at = take(scratch.bytes + scratch.bytesPerStripe * Math.ceil(columns / stripe));
  const partials_at = take(sums.values * bytes_of(compute));
  for (const place of places) if (!place.chunked) place.at = take(place.height * place.row_bytes);
  const row_bytes = chunked.reduce((sum, place) => sum + place.row_bytes, 0);
  const least = all_rows ? rows : Math.min(block, rows), needed = end + line * chunked.length + least * row_bytes;
  if (needed > limit)
    throw new RangeError(`${program}: ${least} rows ${all_rows ? "prepared at once" : "at a time"} want ${needed} bytes, ` +
      `memoryLimit is ${limit}`);
  const most = (bytes) => Math.floor(bytes / Math.max(row_bytes, 1) / block) * block;
  const near = Math.max(Math.min(most(chunk_bytes), most(limit - end - line * chunked.length)), block);
  const step = Math.max(all_rows ? rows : Math.min(rows, near), 1);
  for (const place of chunked) place.at = take(step * place.row_bytes);
  return {
    manifest, operands, results, rows, columns, sums, slots_at, scratch_at, partials_at, step, end,
  };
};

const fill_slots = (view, laid, constants, first) => {
  const { manifest, operands, results, slots_at } = laid;
  // Kernels count rows from the first of all; addresses wrap at 2^32 as theirs do.
  const address = (place) => place.at - (place.chunked ? first * place.row_bytes : 0);
  const { cut } = laid.sums;
  manifest.slots.forEach(([kind, index, number], k) => {
    const at = slots_at + 8 * k;
    let value = 0;
    switch (kind) {
      case "columns": value = laid.columns; break;
      case "operand": value = address(operands[index]); break;
      case "result": value = address(results[index]); break;
      case "operandStride": value = operands[index].stride; break;
      case "resultStride": value = results[index].stride; break;
      case "operandRows": value = operands[index].height; break;
      case "resultRows": value = results[index].height; break;
      case "operandColumnStride":
      case "resultColumnStride": value = 1; break;
      case "rowBlock": value = cut[index]?.numbers.row_block ?? 1; break;
      case "blocks": value = cut[index]?.numbers.blocks ?? laid.rows; break;
      case "partials": value = laid.partials_at + cut[index].at * bytes_of(manifest.compute); break;
      case "partialStride": value = cut[index].stride; break;
      case "sum": value = cut[index].numbers[number]; break;
      case "scratch": value = laid.scratch_at; break;
      case "constant": {
        const { name, constant } = manifest.operands[index], number = constants[name] ?? Number(constant);
        if (typeof number !== "number") throw new TypeError(`${name}: a number, got ${typeof number}`);
        view.setBigUint64(at, 0n, true);
        manifest.compute === "f64" ? view.setFloat64(at, number, true) : view.setFloat32(at, number, true);
        return;
      }
      default: throw new TypeError(`load: this loader does not know slots of kind '${kind}'`);
    }
    view.setBigInt64(at, BigInt(value), true);
  });
};

const grow = (memory, bytes, program) => {
  const missing = Math.ceil(bytes / page) - memory.buffer.byteLength / page;
  if (missing <= 0) return;
  try {
    memory.grow(missing);
  } catch {
    throw new RangeError(`${program}: the engine refuses ${above(bytes, page)} bytes of memory; ` +
      "a smaller memoryLimit makes chunks of rows");
  }
};

const check_count = (name, value, least) => {
  if (!Number.isSafeInteger(value) || value < least)
    throw new RangeError(`${name}: ${value} is no ${least ? "positive " : ""}integer${least ? "" : " from 0 on"}`);
};
const columns_of = ({ columns: fixed }, columns) => {
  columns ??= fixed || undefined;
  if (columns === undefined) return undefined;
  check_count("columns", columns, 1);
  if (fixed && columns !== fixed)
    throw new RangeError(`columns: ${columns}, but the module was emitted for ${fixed} (--cols)`);
  return columns;
};

export class Kernel {
  #module;
  #exports;
  #limit;

  constructor(module, manifest, memoryLimit) {
    this.#module = module;
    this.#exports = new WebAssembly.Instance(module).exports;
    this.#limit = memoryLimit;
    this.manifest = manifest;
  }

  // `values`: typed arrays by operand, numbers by constant. Row-major; { values, stride } where rows lie further apart.
  // `rows` or `columns` says the shape, unless the module does. `into`: arrays for results. `inPlace`: { y: "x" } lets y
  // lie on x, and puts it there unless `into` says otherwise.
  run(values, options = {}) {
    const { operands, results, program } = this.manifest;
    check_names(program, "operand", values, operands.map((each) => each.name));
    check_names(`${program}: run`, "option", options, ["rows", "columns", "into", "inPlace"]);
    const { into = {}, inPlace = {} } = options;
    const names = results.map((each) => each.name);
    check_names(program, "result", into, names);
    check_names(program, "result", inPlace, names);
    for (const name of Object.keys(inPlace)) this.#check_in_place(name, inPlace[name]);

    const given = operands.map((operand) => {
      const { name, type } = operand;
      if (type && values[name] === undefined) throw new TypeError(`${program}: ${name} is missing (${type})`);
      return type && array_of(operand, values[name]);
    });
    const [rows, columns] = this.#shape(given, options);
    const problem = {
      rows, columns,
      operands: operands.map((operand, k) => given[k] && placed(operand, given[k], rows, columns)),
      results: results.map((result) => {
        const target = into[result.name] ?? values[inPlace[result.name]];
        if (target !== undefined) return placed(result, array_of(result, target), rows, columns);
        if (is_table(result))
          throw new TypeError(`${program}: ${result.name} is a table whose rows are picked; give it, { into: { ${result.name} } }`);
        const { width, height } = sized(result, rows, columns);
        return placed(result, { array: new (array_class(result.type))(width * height) }, rows, columns);
      }),
    };
    this.#check_overlaps(problem, inPlace);
    this.#execute(lay_out(this.manifest, problem, { limit: this.#limit }), values);
    return Object.fromEntries(problem.results.map(({ name, array }) => [name, array]));
  }

  // A call of a fixed shape whose arrays stay in memory of its own: nothing is copied, checked or made when it runs. `spare`:
  // bytes of that memory for whoever measures (call.spare).
  prepare(shape, constants = {}, spare = 0) {
    const { operands, results, program } = this.manifest;
    check_names(`${program}: a shape`, "extent", shape, ["rows", "columns", "tables"]);
    const { rows, tables = {} } = shape, columns = columns_of(this.manifest, shape.columns);
    const known = [...operands, ...results].filter(is_table).map((each) => each.name);
    check_names(program, "table", tables, known);
    for (const name of known) check_count(`tables.${name}`, tables[name] ?? rows, 1);
    const height = ({ name }) => tables[name] ?? rows;
    if (columns === undefined) throw new TypeError(`${program}: say the shape, { rows, columns }`);
    check_count("rows", rows, 0);
    const problem = {
      rows, columns,
      operands: operands.map((operand) => (operand.type ? sized(operand, rows, columns, height(operand)) : undefined)),
      results: results.map((result) => sized(result, rows, columns, height(result))),
    };
    const laid = lay_out(this.manifest, problem, { limit: this.#limit, all_rows: true });
    const { exports } = new WebAssembly.Instance(this.#module);
    grow(exports.memory, laid.end + spare, program);
    return new PreparedCall(exports, laid, constants, spare);
  }

  #check_in_place(name, other) {
    const { operands, results, program } = this.manifest;
    const to = results.find((each) => each.name === name), from = operands.find((each) => each.name === other);
    const wrong = (what) => new TypeError(`${program}: in place, '${name}' over '${other}': ${what}`);
    if (!from?.type) throw wrong("the second is the name of an operand");
    if (![is_per_element, is_per_row].some((is) => is(to) && is(from))) throw wrong("both must be [i,j], or both [i]");
    if (bytes_of(to.type) !== bytes_of(from.type)) throw wrong(`elements of ${to.type} and ${from.type} differ in size`);
  }

  // [rows, columns]. No array but one of every entry tells rows from columns, and none says both: a vector of another
  // length that divides would make other rows. Where there is no such array, one with a value for each row says how many.
  #shape(given, { rows, columns }) {
    const { operands, program } = this.manifest;
    const whole = operands.findIndex((operand) => operand.type && is_per_element(operand));
    const { name } = operands[whole] ?? {}, { array: { length } = {}, stride } = given[whole] ?? {};
    if (rows !== undefined) check_count("rows", rows, 0);
    columns = columns_of(this.manifest, columns);
    if (columns === undefined && rows > 0 && length !== undefined && stride === undefined) {
      if (length === 0 || length % rows) throw new RangeError(`${name}: ${length} values are no ${rows} whole rows`);
      columns = length / rows;
    }
    if (columns === undefined)
      throw new TypeError(
        `${program}: say the shape, { columns }${rows === undefined ? " or { rows }" : ""}; the arrays alone do not`);
    if (rows !== undefined) return [rows, columns];
    if (length === undefined) {
      const by_row = operands.findIndex((operand) => operand.type && is_per_row(operand));
      if (by_row >= 0) return [given[by_row].array.length, columns];
      throw new TypeError(`${program}: no operand says how many rows there are; give { rows }`);
    }
    if (stride !== undefined) return [length < columns ? 0 : Math.floor((length - columns) / stride) + 1, columns];
    if (length % columns) throw new RangeError(`${name}: ${length} values are no whole rows of ${columns}`);
    return [length / columns, columns];
  }

  #check_overlaps({ operands, results }, inPlace) {
    const wrong = (to, from, what) => new TypeError(`${this.manifest.program}: ${to.name} and ${from.name}: ${what}`);
    results.forEach((to, k) => {
      for (const from of results.slice(k + 1))
        if (overlap(to, from) !== "none") throw wrong(to, from, "two results share memory");
      for (const from of operands) {
        const found = from ? overlap(to, from) : "none", declared = inPlace[to.name] === from?.name;
        if (found === "none" || (found === "identical" && declared)) continue;
        throw wrong(to, from, found === "identical"
          ? `the result lies on the operand; say so: { inPlace: { ${to.name}: "${from.name}" } }`
          : `the result overlaps the operand in part; they may be ${declared ? "identical or " : ""}disjoint`);
      }
    });
  }

  #execute(laid, constants) {
    const { operands, results, rows, slots_at, step } = laid, exports = this.#exports;
    grow(exports.memory, laid.end, this.manifest.program);
    const memory = new Uint8Array(exports.memory.buffer), view = new DataView(exports.memory.buffer);
    const inputs = operands.filter(Boolean);
    // Rows that are not picked keep what they hold.
    results.forEach((place, k) => { if (is_table(this.manifest.results[k])) copy_in(memory, place, 0, place.height); });
    for (const place of inputs) if (!place.chunked) copy_in(memory, place, 0, place.height);
    for (let first = 0; first < rows; first += step) {
      const last = Math.min(first + step, rows);
      for (const place of inputs) if (place.chunked) copy_in(memory, place, first, last);
      fill_slots(view, laid, constants, first);
      exports.rows(slots_at, BigInt(first), BigInt(last), BigInt(rows));
      for (const place of results) if (place.chunked) copy_out(memory, place, first, last);
    }
    if (exports.columns) {
      fill_slots(view, laid, constants, 0);
      exports.columns(slots_at, 0n, BigInt(laid.sums.entries));
    }
    for (const place of results) if (!place.chunked) copy_out(memory, place, 0, place.height);
  }
}

class PreparedCall {
  #laid;
  #constants = {};
  #memory;
  #rows;
  #columns;
  #slots_at;
  #row_count;
  #column_count;

  constructor({ memory, rows, columns }, laid, constants, spare) {
    this.#laid = laid;
    this.#memory = memory;
    this.#rows = rows;
    this.#columns = columns;
    this.#slots_at = laid.slots_at;
    this.#row_count = BigInt(laid.rows);
    this.#column_count = BigInt(laid.sums.entries);
    // The memory is this call's own and never grows again: views of it stay.
    const view = ({ type, at, width, height }) => new (array_class(type))(memory.buffer, at, width * height);
    const views = (places) =>
      Object.freeze(Object.fromEntries(places.filter(Boolean).map((place) => [place.name, view(place)])));
    this.operands = views(laid.operands);
    this.results = views(laid.results);
    if (spare) this.spare = new Uint8Array(memory.buffer, laid.end, spare);
    this.set(constants);
  }

  // Other values of constants; the rest stays as it was.
  set(constants) {
    const { manifest } = this.#laid, known = manifest.operands.filter((each) => !each.type).map((each) => each.name);
    check_names(manifest.program, "constant", constants, known);
    const all = { ...this.#constants, ...constants };
    fill_slots(new DataView(this.#memory.buffer), this.#laid, all, 0);
    this.#constants = all;
  }

  run() {
    if (this.#row_count) this.#rows(this.#slots_at, 0n, this.#row_count, this.#row_count);
    if (this.#columns) this.#columns(this.#slots_at, 0n, this.#column_count);
    return this.results;
  }
}

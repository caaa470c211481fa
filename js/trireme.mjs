// Loads and runs WebAssembly modules that `trireme emit ... --target wasm` wrote, in Node and in browsers.
//
//   import { load } from "trireme";
//   const rms_norm = await load(await readFile("rms_norm.wasm"));
//   const { y, rstd } = rms_norm.run({ x, gamma, eps: 1e-5 }, { columns: 4096 });
//
// The module says itself, in its custom section "trireme", which arrays it takes. Bits are those of every other device,
// whatever the memory limit.
import { row_block } from "./contract.mjs";
export { digest, xxh3_128 } from "./digest.mjs";
export { samples } from "./samples.mjs";

const page = 65536, line = 64, stripe = 256;
// Rows go through memory in chunks that caches hold: what is copied in is there when the kernel reads it, and what it
// writes when that is copied out. Figures: docs/performance.md.
const chunk_bytes = 2 ** 21;
const above = (bytes, unit) => Math.ceil(bytes / unit) * unit;

// Storage types and the typed arrays that carry them; f16, bf16 and f8 travel as their bits.
const arrays = {
  f64: Float64Array, f32: Float32Array, f16: Uint16Array, bf16: Uint16Array, f8e4m3: Uint8Array, f8e5m2: Uint8Array,
  i8: Int8Array, i32: Int32Array,
};

const instantiate = (module) => new WebAssembly.Instance(module);
const from_hex = (hex) => new Uint8Array(hex.match(/../g).map((byte) => parseInt(byte, 16)));
// f(a, b) = a * b and f(a, b, c) = relaxed_madd(a, b, c), in one lane.
const multiply_probe = from_hex(
  "0061736d0100000001070160027d7d017d03020100070501016600000a120110002000fd132001fd13fde601fd1f000b");
const madd_probe = from_hex(
  "0061736d0100000001080160037d7d7d017d03020100070501016600000a160114002000fd132001fd132002fd13fd8502fd1f000b");

// What this thread's engine can do.
export const probe = () => {
  const found = { allowed: true, simd: false, keepsSubnormals: false, relaxed: false, fused: false };
  if (typeof WebAssembly !== "object" || !WebAssembly.validate(multiply_probe)) return found;
  found.simd = true;
  let multiply;
  try {
    multiply = instantiate(new WebAssembly.Module(multiply_probe)).exports.f;
  } catch {  // valid, and still refused: so says the page's policy
    return { ...found, allowed: false };
  }
  found.keepsSubnormals = multiply(2 ** -100, 2 ** -40) === 2 ** -140 && multiply(2 ** -140, 2 ** 40) === 2 ** -100;
  if (!WebAssembly.validate(madd_probe)) return found;
  found.relaxed = true;
  const { f: madd } = instantiate(new WebAssembly.Module(madd_probe)).exports;
  // (1 + 2^-12)^2 - (1 + 2^-11) is 2^-24 rounded once, and 0 where the product is rounded before.
  found.fused = madd(1 + 2 ** -12, 1 + 2 ** -12, -(1 + 2 ** -11)) === 2 ** -24;
  return found;
};

// A module, or its bytes.
const resolve = async (source) => {
  source = await source;
  if (source instanceof WebAssembly.Module) return source;
  // Not compileStreaming: a server that sends another MIME type would break it.
  if (typeof Response === "function" && source instanceof Response) {
    if (!source.ok) throw new Error(`${source.url}: ${source.status} ${source.statusText}`);
    source = await source.arrayBuffer();
  }
  if (source instanceof ArrayBuffer) return new Uint8Array(source);
  if (ArrayBuffer.isView(source)) return new Uint8Array(source.buffer, source.byteOffset, source.byteLength);
  throw new TypeError("load: give a module's bytes, a Response, or a WebAssembly.Module");
};

// The custom section of bytes that an engine without relaxed SIMD would not compile.
const section_of = (bytes, wanted) => {
  let at = 8;
  const number = () => {
    for (let value = 0, unit = 1; ; unit *= 128) {
      const byte = bytes[at++] ?? 0;
      value += (byte & 127) * unit;
      if (byte < 128) return value;
    }
  };
  const text = (from, to) => new TextDecoder().decode(bytes.subarray(from, to));
  while (at < bytes.length) {
    const id = bytes[at++], size = number(), end = at + size;
    if (id === 0) {
      const length = number(), content = at + length;
      if (text(at, content) === wanted) return text(content, end);
    }
    at = end;
  }
  return undefined;
};

const manifest_of = (source) => {
  const [found] = source instanceof WebAssembly.Module
    ? WebAssembly.Module.customSections(source, "trireme").map((section) => new TextDecoder().decode(section))
    : [section_of(source, "trireme")];
  if (found === undefined)
    throw new TypeError("load: the module has no section 'trireme'; `trireme emit ... --target wasm` writes it");
  const manifest = JSON.parse(found);
  if (manifest.format !== 1) throw new TypeError(`load: manifest format ${manifest.format}; this loader knows 1`);
  return manifest;
};

// memoryLimit: bytes of WebAssembly memory; larger problems go through it in chunks of rows.
export const load = async (source, { memoryLimit = 2 ** 30 } = {}) => {
  const can = probe();
  if (!can.simd) throw new Error("load: this engine has no WebAssembly SIMD");
  if (!can.allowed)
    throw new Error("load: the page's Content-Security-Policy forbids WebAssembly; script-src 'wasm-unsafe-eval' allows it");
  if (!can.keepsSubnormals)
    throw new Error("load: this thread flushes subnormal numbers (a native library has set the processor so)");
  if (!(memoryLimit >= page && memoryLimit <= 2 ** 32))
    throw new RangeError(`load: memoryLimit ${memoryLimit}; it may be ${page} to 2^32 bytes`);
  const given = await resolve(source);
  const manifest = manifest_of(given);
  if (manifest.relaxed && !can.fused)
    throw new Error(`load: relaxed_madd is ${can.relaxed ? "not fused" : "missing"} here; emit the module with --arch simd128`);
  const module = given instanceof WebAssembly.Module ? given : await WebAssembly.compile(given);
  return new Kernel(module, manifest, memoryLimit);
};

const extent = (axis, count) => (axis ? axis.wrap || Math.ceil(count / axis.divide) : 1);
const is_detached = (array) => {
  try {
    new Uint8Array(array.buffer, 0, 0);
    return array.buffer.detached ?? false;
  } catch {
    return true;
  }
};

// Typed arrays as they are, { values, stride } taken apart, numbers left alone.
const without_layout = (given) => Object.fromEntries(Object.entries(given).map(([name, value]) => {
  if (typeof value !== "object" || value === null) return [name, value];
  return [name, Object.hasOwn(value, "values") ? { array: value.values, stride: value.stride } : { array: value }];
}));

// Rows first to last of an array to and from its place in memory, where they lie side by side.
const copy_in = (memory, { bytes, at, row_bytes, stride_bytes }, first, last) => {
  if (stride_bytes === row_bytes) return memory.set(bytes.subarray(first * row_bytes, last * row_bytes), at);
  for (let row = first; row < last; ++row, at += row_bytes)
    memory.set(bytes.subarray(row * stride_bytes, row * stride_bytes + row_bytes), at);
};
const copy_out = (memory, { bytes, at, row_bytes, stride_bytes }, first, last) => {
  if (stride_bytes === row_bytes)
    return bytes.set(memory.subarray(at, at + (last - first) * row_bytes), first * row_bytes);
  for (let row = first; row < last; ++row, at += row_bytes)
    bytes.set(memory.subarray(at, at + row_bytes), row * stride_bytes);
};

class Kernel {
  #memory;
  #rows;
  #columns;
  #limit;

  constructor(module, manifest, memoryLimit) {
    const { memory, rows, columns } = instantiate(module).exports;
    this.#memory = memory;
    this.#rows = rows;
    this.#columns = columns;
    this.#limit = memoryLimit;
    this.manifest = manifest;
  }

  // `values`: typed arrays by operand, numbers by constant. Row-major; { values, stride } where rows lie further apart.
  // `columns` may be left out where an operand per column, or the module, says it. `into`: arrays for results.
  run(values, { columns, into = {} } = {}) {
    const { operands, results, program } = this.manifest;
    values = without_layout(values);
    into = without_layout(into);
    const known = new Set(operands.map((operand) => operand.name));
    for (const name of Object.keys(values))
      if (!known.has(name)) throw new TypeError(`${program} has no operand '${name}'; it has ${[...known].join(", ")}`);
    for (const name of Object.keys(into))
      if (!results.some((result) => result.name === name))
        throw new TypeError(`${program} has no result '${name}'; it has ${results.map((each) => each.name).join(", ")}`);
    const inputs = operands.filter((operand) => operand.type);
    for (const operand of inputs) this.#check_array(operand, values[operand.name]);
    const [rows, width] = this.#shape(inputs, values, columns);

    const places = [];
    for (const operand of inputs) places.push(this.#place(operand, values[operand.name], rows, width, false));
    for (const result of results) {
      const given = into[result.name];
      if (given !== undefined) this.#check_array(result, given);
      const count = extent(result.row, rows) * extent(result.column, width);
      places.push(this.#place(result, given ?? { array: new arrays[result.type](count) }, rows, width, true));
    }
    this.#execute(places, values, rows, width);
    return Object.fromEntries(places.filter((each) => each.is_result).map((each) => [each.name, each.array]));
  }

  #check_array({ name, type, row, column }, given) {
    if (given === undefined) throw new TypeError(`${this.manifest.program}: ${name} is missing (${type})`);
    const { array, stride } = given;
    if (stride !== undefined && !(row && column)) throw new TypeError(`${name}: it has no rows to be a stride apart`);
    if (!(array instanceof arrays[type]))
      throw new TypeError(`${name}: ${arrays[type].name} carries ${type}, got ${array?.constructor?.name ?? typeof array}`);
    if (is_detached(array)) throw new TypeError(`${name}: its buffer is detached`);
  }

  #shape(inputs, values, columns) {
    const fixed = this.manifest.columns;
    const per_column = inputs.find(({ row, column }) => !row && column?.divide === 1 && !column.wrap);
    columns ??= fixed || (per_column && values[per_column.name].array.length);
    if (columns === undefined) throw new TypeError(`${this.manifest.program}: say how many columns a row has`);
    if (!Number.isSafeInteger(columns) || columns < 1) throw new RangeError(`columns: ${columns} is no positive integer`);
    if (fixed && columns !== fixed)
      throw new RangeError(`columns: ${columns}, but the module was emitted for ${fixed} (--cols)`);
    const whole = inputs.find(({ row, column }) => row?.divide === 1 && !row.wrap && column?.divide === 1 && !column.wrap);
    if (!whole) throw new TypeError(`${this.manifest.program}: no operand says how many rows there are`);
    const { array: { length }, stride } = values[whole.name];
    if (stride !== undefined) return [length < columns ? 0 : Math.floor((length - columns) / stride) + 1, columns];
    if (length % columns) throw new RangeError(`${whole.name}: ${length} values are no whole rows of ${columns}`);
    return [length / columns, columns];
  }

  #place(spec, { array, stride }, rows, columns, is_result) {
    const { name, row, column } = spec;
    const width = extent(column, columns), height = extent(row, rows);
    if (stride === undefined) {
      if (array.length !== height * width)
        throw new RangeError(`${name}: ${array.length} values, ${rows} rows of ${columns} columns want ${height * width}`);
    } else {
      if (!Number.isSafeInteger(stride) || stride < width)
        throw new RangeError(`${name}: a stride of ${stride}; rows have ${width} values, and must not overlap`);
      const least = height && (height - 1) * stride + width;
      if (array.length < least)
        throw new RangeError(`${name}: ${array.length} values, ${height} rows a stride of ${stride} apart want ${least}`);
    }
    const size = array.BYTES_PER_ELEMENT;
    return {
      name, array, is_result, height, bytes: new Uint8Array(array.buffer, array.byteOffset, array.byteLength),
      row_bytes: width * size, stride_bytes: (stride ?? width) * size, stride: row ? width : 0,
      chunked: row?.divide === 1 && !row.wrap,
    };
  }

  #execute(places, values, rows, columns) {
    const { scratch, columnSums, compute, slots, program } = this.manifest;
    const value_bytes = compute === "f64" ? 8 : 4;
    const block = columnSums ? row_block(rows, columns) : 1, blocks = Math.ceil(rows / block);
    const partial_stride = above(columns, 64);

    // Slots, scratch, workspace and whole arrays; then as many rows of the others as fit.
    let end = line;
    const take = (bytes) => { const at = end; end = above(at + bytes, line); return at; };
    const slots_at = take(8 * slots.length);
    const scratch_at = take(scratch.bytes + scratch.bytesPerStripe * Math.ceil(columns / stripe));
    const partials_at = take(columnSums * blocks * partial_stride * value_bytes);
    for (const place of places) if (!place.chunked) place.at = take(place.height * place.row_bytes);
    const chunked = places.filter((place) => place.chunked);
    const row_bytes = chunked.reduce((sum, place) => sum + place.row_bytes, 0);
    const fit = Math.floor((this.#limit - end - line * chunked.length) / Math.max(row_bytes, 1) / block) * block;
    if (rows > 0 && fit < Math.min(block, rows))
      throw new RangeError(`${program}: ${Math.min(block, rows)} rows at a time want ` +
        `${end + line * chunked.length + Math.min(block, rows) * row_bytes} bytes, memoryLimit is ${this.#limit}`);
    const near = Math.max(Math.floor(chunk_bytes / Math.max(row_bytes, 1) / block), 1) * block;
    const step = Math.max(Math.min(fit, rows, near), 1);
    for (const place of chunked) place.at = take(step * place.row_bytes);
    this.#grow(end);

    const memory = new Uint8Array(this.#memory.buffer), view = new DataView(this.#memory.buffer);
    for (const place of places) if (!place.chunked && !place.is_result) copy_in(memory, place, 0, place.height);
    for (let first = 0; first < rows; first += step) {
      const last = Math.min(first + step, rows);
      for (const place of chunked) if (!place.is_result) copy_in(memory, place, first, last);
      this.#fill_slots(view, slots_at, places, values,
        { first, columns, block, blocks, partials_at, partial_stride, scratch_at });
      this.#rows(slots_at, BigInt(first), BigInt(last), BigInt(rows));
      for (const place of chunked) if (place.is_result) copy_out(memory, place, first, last);
    }
    if (this.#columns) {
      this.#fill_slots(view, slots_at, places, values,
        { first: 0, columns, block, blocks, partials_at, partial_stride, scratch_at });
      this.#columns(slots_at, 0n, BigInt(columns));
    }
    for (const place of places) if (!place.chunked && place.is_result) copy_out(memory, place, 0, place.height);
  }

  #grow(bytes) {
    const missing = Math.ceil(bytes / page) - this.#memory.buffer.byteLength / page;
    if (missing <= 0) return;
    try {
      this.#memory.grow(missing);
    } catch {
      throw new RangeError(`${this.manifest.program}: the engine refuses ${above(bytes, page)} bytes of memory; ` +
        "a smaller memoryLimit makes chunks of rows");
    }
  }

  #fill_slots(view, at, places, values, given) {
    const { operands, results, slots, compute } = this.manifest;
    const place_of = (list, index) => places.find((each) => each.name === list[index].name &&
      each.is_result === (list === results));
    // Kernels count rows from the first of all; addresses wrap at 2^32 as theirs do.
    const address = (place) => place.at - (place.chunked ? given.first * place.row_bytes : 0);
    slots.forEach(([kind, index], k) => {
      let value = 0;
      switch (kind) {
        case "columns": value = given.columns; break;
        case "operand": value = address(place_of(operands, index)); break;
        case "result": value = address(place_of(results, index)); break;
        case "operandStride": value = place_of(operands, index).stride; break;
        case "resultStride": value = place_of(results, index).stride; break;
        case "operandColumnStride":
        case "resultColumnStride": value = 1; break;
        case "rowBlock": value = given.block; break;
        case "blocks": value = given.blocks; break;
        case "partials": value = given.partials_at; break;
        case "partialStride": value = given.partial_stride; break;
        case "scratch": value = given.scratch_at; break;
        case "constant": {
          const { name, constant } = operands[index];
          const number = values[name] ?? Number(constant);
          if (typeof number !== "number") throw new TypeError(`${name}: a number, got ${typeof number}`);
          view.setBigUint64(at + 8 * k, 0n, true);
          compute === "f64" ? view.setFloat64(at + 8 * k, number, true) : view.setFloat32(at + 8 * k, number, true);
          return;
        }
        default: throw new TypeError(`load: this loader does not know slots of kind '${kind}'`);
      }
      view.setBigInt64(at + 8 * k, BigInt(value), true);
    });
  }
}

// A module that comes with the package (js/build.mjs writes them).
const shipped = async (name) => {
  const url = new URL(`./modules/${name}.wasm`, import.meta.url);
  if (url.protocol !== "file:") return fetch(url);
  const { readFile } = await import("node:fs/promises");  // Node's fetch reads no files
  try {
    return await readFile(url);
  } catch {
    throw new Error(`loadOperator: the package has no module '${name}'; \`node js/build.mjs\` makes them, 'trireme list' names them`);
  }
};

// Both directions of an operator: the name of one that comes with the package, in f32, or { forward, backward } of what
// load() takes.
export const loadOperator = async (source, options) => {
  if (typeof source === "string") {
    const variant = probe().fused ? ".relaxed" : "";
    source = { forward: shipped(source + variant), backward: shipped(`${source}_backward${variant}`) };
  }
  const [one, two] = await Promise.all([load(source.forward, options), load(source.backward, options)]);
  return {
    forward: (values, how) => one.run(values, how),
    backward: (values, how) => two.run(values, how),
  };
};

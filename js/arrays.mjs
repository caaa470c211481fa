// The typed arrays of a call: which carry which storage type, how rows lie in them, and whether two share memory.

// Storage types and what carries them; results are made of the first. f16, bf16 and f8 travel as their bits.
const carriers = {
  f64: ["Float64Array"], f32: ["Float32Array"], f16: ["Uint16Array", "Float16Array"], bf16: ["Uint16Array"],
  f8e4m3: ["Uint8Array"], f8e5m2: ["Uint8Array"], i8: ["Int8Array"], i32: ["Int32Array"],
  i64: ["BigInt64Array"], u8: ["Uint8Array", "Uint8ClampedArray"], f8e8m0: ["Uint8Array"],
  f4e2m1: ["Uint8Array"],  // two columns a byte: a manifest counts its columns by j / 2
};
export const storage_types = Object.keys(carriers);
export const array_class = (type) => globalThis[carriers[type][0]];
export const bytes_of = (type) => array_class(type).BYTES_PER_ELEMENT;

// The name of a typed array's class, whichever realm it comes from; undefined for all else.
const class_name = Function.prototype.call.bind(
  Object.getOwnPropertyDescriptor(Object.getPrototypeOf(Uint8Array.prototype), Symbol.toStringTag).get);
const kind = (value) => class_name(value) ?? value?.constructor?.name ?? (value === null ? "null" : typeof value);

// The storage types that an array may carry.
export const carried_types = (array) => Object.keys(carriers).filter((type) => carriers[type].includes(class_name(array)));

const is_detached = ({ buffer }) => {
  try {
    new Uint8Array(buffer, 0, 0);
    return buffer.detached ?? false;
  } catch {
    return true;
  }
};

// Misspelt names are errors: `owner` has no `what` of that name.
export const check_names = (owner, what, given, known) => {
  if (typeof given !== "object" || given === null || class_name(given))
    throw new TypeError(`${owner}: ${what}s by name, got ${kind(given)}`);
  for (const name of Object.keys(given))
    if (!known.includes(name)) throw new TypeError(`${owner} has no ${what} '${name}'; it has ${known.join(", ")}`);
};

// { array, stride } of an array or of { values, stride }, checked as far as that needs no shape.
export const array_of = ({ name, type, row, column }, given) => {
  const is_apart = typeof given === "object" && given !== null && Object.hasOwn(given, "values");
  if (is_apart) check_names(name, "field", given, ["values", "stride"]);
  const { array, stride } = is_apart ? { array: given.values, stride: given.stride } : { array: given };
  if (!carriers[type].includes(class_name(array)))
    throw new TypeError(`${name}: ${carriers[type].join(" or ")} carries ${type}, got ${kind(array)}`);
  if (is_detached(array)) throw new TypeError(`${name}: its buffer is detached`);
  if (stride === undefined) return { array };
  if (!(row && column)) throw new TypeError(`${name}: it has no rows to be a stride apart`);
  if (!Number.isSafeInteger(stride) || stride < 1)
    throw new RangeError(`${name}: a stride of ${stride}; it is a positive integer`);
  return { array, stride };
};

const extent = (axis, count) => (axis ? axis.wrap || Math.ceil(count / axis.divide) : 1);
export const is_table = ({ row }) => row?.picked === true;
const is_plain = (axis) => axis?.divide === 1 && !axis.wrap;
export const is_per_element = ({ row, column }) => is_plain(row) && is_plain(column);
export const is_per_row = ({ row, column }) => is_plain(row) && !column;

// What a problem of this shape has of an array. `chunked`: chunks of rows need as many rows of it. The rest is filled in by
// who places it; all fields are there from the start, because objects that change their shape cost calls 30 µs. `table`: the
// rows of an array whose rows are picked; it has its own.
export const sized = ({ name, type, row, column }, rows, columns, table = 0) => {
  const width = extent(column, columns), height = is_table({ row }) ? table : extent(row, rows);
  const row_bytes = width * bytes_of(type);
  return {
    name, type, width, height, row_bytes, stride: row ? width : 0, chunked: is_plain(row),
    at: 0,  // in the module's memory
    array: undefined, bytes: undefined, stride_bytes: row_bytes,  // of the caller
  };
};

// As many as the array has.
const table_rows = ({ name, column }, { length }, stride, columns) => {
  const width = extent(column, columns);
  if (length < width || (stride === undefined && length % width))
    throw new RangeError(`${name}: ${length} values are no whole rows of ${width}, of which a table has at least one`);
  return stride === undefined ? length / width : Math.floor((length - width) / stride) + 1;
};

// The same with the caller's array, where its rows lie.
export const placed = (spec, { array, stride }, rows, columns) => {
  const place = sized(spec, rows, columns, is_table(spec) ? table_rows(spec, array, stride, columns) : 0);
  const { name, width, height } = place;
  if (stride === undefined) {
    if (array.length !== height * width)
      throw new RangeError(`${name}: ${array.length} values, ${rows} rows of ${columns} columns want ${height * width}`);
  } else {
    if (stride < width)
      throw new RangeError(`${name}: a stride of ${stride}; rows have ${width} values, and must not overlap`);
    const least = height && (height - 1) * stride + width;
    if (array.length < least)
      throw new RangeError(`${name}: ${array.length} values, ${height} rows a stride of ${stride} apart want ${least}`);
  }
  place.array = array;
  place.bytes = new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
  place.stride_bytes = (stride ?? width) * array.BYTES_PER_ELEMENT;
  return place;
};

// Rows first to last of an array to and from its place in memory, where they lie side by side.
export const copy_in = (memory, { bytes, at, row_bytes, stride_bytes }, first, last) => {
  if (stride_bytes === row_bytes) return memory.set(bytes.subarray(first * row_bytes, last * row_bytes), at);
  for (let row = first; row < last; ++row, at += row_bytes)
    memory.set(bytes.subarray(row * stride_bytes, row * stride_bytes + row_bytes), at);
};
export const copy_out = (memory, { bytes, at, row_bytes, stride_bytes }, first, last) => {
  if (stride_bytes === row_bytes)
    return bytes.set(memory.subarray(at, at + (last - first) * row_bytes), first * row_bytes);
  for (let row = first; row < last; ++row, at += row_bytes)
    bytes.set(memory.subarray(at, at + row_bytes), row * stride_bytes);
};

// `count` pieces of `width` bytes, `step` apart; rows that lie side by side are one piece.
const pieces_of = ({ bytes, height, row_bytes, stride_bytes }) => {
  const start = bytes.byteOffset, whole = height * row_bytes;
  if (height > 1 && stride_bytes !== row_bytes) return { start, width: row_bytes, count: height, step: stride_bytes };
  return { start, width: whole, count: whole && 1, step: Math.max(whole, 1) };
};
const meets = (low, high, { start, width, count, step }) => {
  const first = Math.max(0, Math.floor((low - start - width) / step) + 1);  // whose end lies beyond `low`
  return first < count && start + first * step < high;
};
const share_bytes = (a, b) => {
  if (a.count > b.count) [a, b] = [b, a];
  if (a.count > 1 && a.step === b.step) {  // pieces i and i + m meet for every i or for none
    const apart = b.start - a.start;
    const m = Math.max(1 - a.count, Math.floor((-b.width - apart) / a.step) + 1);
    return m < b.count && apart + m * a.step < a.width;
  }
  for (let k = 0; k < a.count; ++k)
    if (meets(a.start + k * a.step, a.start + k * a.step + a.width, b)) return true;
  return false;
};

// "none", "identical" (the same elements in the same places) or "some", judged by elements: the halves of a packed row
// are disjoint. Shared buffers that are two objects over the same memory cannot be told from others.
export const overlap = (a, b) => {
  if (a.array.buffer !== b.array.buffer) return "none";
  const one = pieces_of(a), two = pieces_of(b);
  if (one.count && a.width === b.width && a.array.BYTES_PER_ELEMENT === b.array.BYTES_PER_ELEMENT &&
      ["start", "width", "count", "step"].every((each) => one[each] === two[each])) return "identical";
  return share_bytes(one, two) ? "some" : "none";
};

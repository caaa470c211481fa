// Reads .npy files: little-endian, C order, of the types that travel as typed arrays.
const classes = {
  "<f8": Float64Array, "<f4": Float32Array, "<f2": Uint16Array, "<u2": Uint16Array, "|u1": Uint8Array, "|b1": Uint8Array, "|i1": Int8Array,
  "<i4": Int32Array, "<i8": BigInt64Array,
};
const type_names = { "<f8": "f64", "<f4": "f32", "<f2": "f16", "|b1": "u8", "|i1": "i8", "<i4": "i32", "<i8": "i64" };

// { array, shape, type }; the type is undefined where bits may mean several.
export const read_npy = (buffer, name = "file") => {
  const wrong = (what) => new Error(`${name}: ${what}`), bytes = new Uint8Array(buffer);
  if (bytes.length < 12 || String.fromCharCode(...bytes.subarray(1, 6)) !== "NUMPY" || bytes[0] !== 0x93) throw wrong("this is no .npy file");
  const view = new DataView(buffer), wide = bytes[6] > 1;
  const length = wide ? view.getUint32(8, true) : view.getUint16(8, true), start = (wide ? 12 : 10) + length;
  const head = new TextDecoder().decode(bytes.subarray(wide ? 12 : 10, start));
  const descr = head.match(/'descr':\s*'([^']+)'/)?.[1], shape_text = head.match(/'shape':\s*\(([^)]*)\)/)?.[1];
  if (/'fortran_order':\s*True/.test(head)) throw wrong("its columns come first; save it in C order");
  if (!classes[descr]) throw wrong(`arrays of ${descr}; there are ${Object.keys(classes).join(", ")}`);
  const shape = shape_text.split(",").map((each) => each.trim()).filter(Boolean).map(Number);
  const count = shape.reduce((a, b) => a * b, 1), Class = classes[descr];
  if (start + count * Class.BYTES_PER_ELEMENT > bytes.length) throw wrong("the file is cut short");
  return { array: new Class(buffer.slice(start, start + count * Class.BYTES_PER_ELEMENT)), shape, type: type_names[descr] };
};

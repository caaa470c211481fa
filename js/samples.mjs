// Sample values: a pure function of (seed, operand's name, element's index), the same as in C++ (src/problem/samples.hpp).
import { check_names } from "./arrays.mjs";

const mix = (h) => {
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return (h ^ (h >>> 16)) >>> 0;
};
const key_of = (seed, name) => {
  let h = 0x811c9dc5;
  for (const byte of new TextEncoder().encode(name)) h = Math.imul(h ^ byte, 0x01000193);
  return mix(h ^ mix(seed));
};

const words = new Uint32Array(1), number = new Float32Array(words.buffer);
const bits_of = (value) => ((number[0] = value), words[0]);

// f32 to the nearest, ties to even; for finite values in the type's range.
const to_bf16 = (value) => {
  const bits = bits_of(value);
  return (bits + 0x7fff + ((bits >>> 16) & 1)) >>> 16;
};
const to_f16 = (value) => {
  const bits = bits_of(value), sign = (bits >>> 16) & 0x8000, exponent = Math.max((bits >>> 23) & 0xff, 113) - 127;
  const unit = 2 ** (exponent - 10);
  const scaled = Math.abs(number[0]) / unit;
  let whole = Math.floor(scaled);
  const rest = scaled - whole;
  if (rest > 0.5 || (rest === 0.5 && whole & 1)) ++whole;
  return sign | (exponent === -14 ? whole : ((exponent + 14) << 10) + whole);
};

const stored = {
  f64: [Float64Array, (value) => value],
  f32: [Float32Array, (value) => value],
  f16: [Uint16Array, to_f16],
  bf16: [Uint16Array, to_bf16],
  i8: [Int8Array, (value) => value],
  i32: [Int32Array, (value) => value],
  i64: [BigInt64Array, BigInt],
  u8: [Uint8Array, (value) => value],
};

// `count` entries of the operand `name`. Numbers in [low, high); integer types get whole numbers, `high` included.
export const samples = (name, type, count, options = {}) => {
  check_names("samples", "option", options, ["seed", "low", "high"]);
  let { seed = 0, low, high } = options;
  if (!stored[type]) throw new TypeError(`samples: no type '${type}'; there are ${Object.keys(stored).join(", ")}`);
  const [Array, store] = stored[type];
  const integer = /^[iu]\d/.test(type);
  low ??= type === "u8" ? 0 : integer ? -128 : -2;
  high ??= type === "u8" ? 255 : integer ? 127 : 2;
  const key = key_of(seed, name), array = new Array(count);
  for (let index = 0; index < count; ++index) {
    const above = Math.imul(Math.floor(index / 2 ** 32), 0x9e3779b9);
    const h = mix((mix((index ^ key) | 0) + above + key) | 0);
    if (integer) array[index] = store(low + (h % (high - low + 1)));
    else if (type === "f64") array[index] = low + ((h >>> 8) * 2 ** 29 + (mix(h) >>> 3)) * 2 ** -53 * (high - low);
    else array[index] = store(Math.fround(low + (h >>> 8) * 2 ** -24 * (high - low)));
  }
  return array;
};

// The digest of results: XXH3-128 (seed 0), as Trireme's C++ has it, over bytes in which every NaN is canonical.

const mask = (1n << 64n) - 1n;
const prime32 = [0n, 0x9e3779b1n, 0x85ebca77n, 0xc2b2ae3dn];
const prime64 = [
  0n, 0x9e3779b185ebca87n, 0xc2b2ae3d27d4eb4fn, 0x165667b19e3779f9n, 0x85ebca77c2b2ae63n, 0x27d4eb2f165667c5n,
];
const secretHex =
  "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671fcb79e64eccc0e578825ad07dccff7221" +
  "b8084674f743248ee03590e6813a264c3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8" +
  "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364eac5ac8334d3ebc3c581a0fffa1363eb" +
  "170ddd51b7f0da49d316552629d4689e2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e";
const secret = new DataView(new ArrayBuffer(192));
for (let k = 0; k < 192; ++k) secret.setUint8(k, parseInt(secretHex.slice(2 * k, 2 * k + 2), 16));
const secret64 = (at) => secret.getBigUint64(at, true);
const secret32 = (at) => BigInt(secret.getUint32(at, true));

const add = (a, b) => (a + b) & mask;
const multiply = (a, b) => (a * b) & mask;
const shifted = (h, by) => h ^ (h >> by);
const folded = (a, b) => { const product = a * b; return (product & mask) ^ (product >> 64n); };
const avalanche = (h) => shifted(multiply(shifted(h, 37n), 0x165667919e3779f9n), 32n);
const avalanche64 = (h) => {
  h = multiply(shifted(h, 33n), prime64[2]);
  h = multiply(shifted(h, 29n), prime64[3]);
  return shifted(h, 32n);
};
const swapped = (h, bytes) => {
  let out = 0n;
  for (let k = 0; k < bytes; ++k) out = (out << 8n) | ((h >> BigInt(8 * k)) & 0xffn);
  return out;
};

const upTo16 = (read, length) => {
  const size = BigInt(length);
  if (length === 0) return [avalanche64(secret64(64) ^ secret64(72)), avalanche64(secret64(80) ^ secret64(88))];
  if (length <= 3) {
    const byte = (k) => BigInt(read.getUint8(k));
    const low = (byte(0) << 16n) | (byte(length >> 1) << 24n) | byte(length - 1) | (size << 8n);
    const turned = swapped(low, 4);
    const high = ((turned << 13n) | (turned >> 19n)) & 0xffffffffn;
    return [avalanche64(low ^ secret32(0) ^ secret32(4)), avalanche64(high ^ secret32(8) ^ secret32(12))];
  }
  if (length <= 8) {
    const input = BigInt(read.getUint32(0, true)) | (BigInt(read.getUint32(length - 4, true)) << 32n);
    const product = (input ^ secret64(16) ^ secret64(24)) * add(prime64[1], size << 2n);
    const high = add(product >> 64n, (product & mask) << 1n);
    let low = (product & mask) ^ (high >> 3n);
    low = shifted(multiply(shifted(low, 35n), 0x9fb21c651e98df25n), 28n);
    return [low, avalanche(high)];
  }
  const first = read.getBigUint64(0, true), last = read.getBigUint64(length - 8, true);
  const product = (first ^ last ^ secret64(32) ^ secret64(40)) * prime64[1];
  const flipped = last ^ secret64(48) ^ secret64(56);
  const high = add(product >> 64n, flipped + (flipped & 0xffffffffn) * (prime32[2] - 1n));
  const low = add(product & mask, (size - 1n) << 54n) ^ swapped(high, 8);
  const again = low * prime64[2];
  return [avalanche(again & mask), avalanche(add(again >> 64n, high * prime64[2]))];
};

const upTo240 = (read, length) => {
  const word = (at) => read.getBigUint64(at, true);
  const size = BigInt(length);
  let low = multiply(size, prime64[1]), high = 0n;
  const mix = (at, key) => folded(word(at) ^ secret64(key), word(at + 8) ^ secret64(key + 8));
  const take = (one, two, key) => {
    low = add(low, mix(one, key)) ^ add(word(two), word(two + 8));
    high = add(high, mix(two, key + 16)) ^ add(word(one), word(one + 8));
  };
  if (length <= 128) {
    for (let k = (length - 1) >> 5; k >= 0; --k) take(16 * k, length - 16 * (k + 1), 32 * k);
  } else {
    for (let k = 0; k < 4; ++k) take(32 * k, 32 * k + 16, 32 * k);
    low = avalanche(low), high = avalanche(high);
    for (let k = 4; k < length >> 5; ++k) take(32 * k, 32 * k + 16, 3 + 32 * (k - 4));
    take(length - 16, length - 32, 136 - 17 - 16);
  }
  const mixed = low * prime64[1] + high * prime64[4] + size * prime64[2];
  return [avalanche(add(low, high)), (-avalanche(mixed & mask)) & mask];
};

const long = (read, length) => {
  const sums = [
    prime32[3], prime64[1], prime64[2], prime64[3], prime64[4], prime32[2], prime64[5], prime32[1],
  ];
  const accumulate = (at, key) => {
    for (let k = 0; k < 8; ++k) {
      const value = read.getBigUint64(at + 8 * k, true), keyed = value ^ secret64(key + 8 * k);
      sums[k ^ 1] = add(sums[k ^ 1], value);
      sums[k] = add(sums[k], (keyed & 0xffffffffn) * (keyed >> 32n));
    }
  };
  const stripesOfBlock = 16, blockBytes = 64 * stripesOfBlock;
  const blocks = Math.floor((length - 1) / blockBytes);
  for (let block = 0; block < blocks; ++block) {
    for (let k = 0; k < stripesOfBlock; ++k) accumulate(block * blockBytes + 64 * k, 8 * k);
    for (let k = 0; k < 8; ++k) sums[k] = multiply(shifted(sums[k], 47n) ^ secret64(128 + 8 * k), prime32[1]);
  }
  const left = Math.floor((length - 1 - blocks * blockBytes) / 64);
  for (let k = 0; k < left; ++k) accumulate(blocks * blockBytes + 64 * k, 8 * k);
  accumulate(length - 64, 192 - 64 - 7);
  const merge = (key, start) => {
    for (let k = 0; k < 4; ++k) {
      start += folded(sums[2 * k] ^ secret64(key + 16 * k), sums[2 * k + 1] ^ secret64(key + 16 * k + 8));
    }
    return avalanche(start & mask);
  };
  const size = BigInt(length);
  return [merge(11, size * prime64[1]), merge(192 - 64 - 11, multiply(size, prime64[2]) ^ mask)];
};

// 32 hex digits, high first.
export const xxh3_128 = (bytes) => {
  const read = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const [low, high] = (bytes.length <= 16 ? upTo16 : bytes.length <= 240 ? upTo240 : long)(read, bytes.length);
  return ((high << 64n) | low).toString(16).padStart(32, "0");
};

// By storage type: bytes of an element, its magnitude bits, those of infinity (of NaN where there is no infinity).
const formats = {
  f64: { words: BigUint64Array, magnitude: 0x7fffffffffffffffn, infinity: 0x7ff0000000000000n, nan: 0x7ff8000000000000n },
  f32: { words: Uint32Array, magnitude: 0x7fffffff, infinity: 0x7f800000, nan: 0x7fc00000 },
  f16: { words: Uint16Array, magnitude: 0x7fff, infinity: 0x7c00, nan: 0x7e00 },
  bf16: { words: Uint16Array, magnitude: 0x7fff, infinity: 0x7f80, nan: 0x7fc0 },
  f8e4m3: { words: Uint8Array, magnitude: 0x7f, infinity: 0x7e, nan: 0x7f },
  f8e5m2: { words: Uint8Array, magnitude: 0x7f, infinity: 0x7c, nan: 0x7e },
};

// Of bytes that begin a buffer of their own.
export const make_canonical = (type, { buffer }) => {
  const format = formats[type];
  if (!format) return;
  const words = new format.words(buffer);
  for (let k = 0; k < words.length; ++k) {
    if ((words[k] & format.magnitude) > format.infinity) words[k] = format.nan;
  }
};

// parts: [storage type, typed array] of every result in order, row-major and without gaps.
export const digest = (parts) => {
  const bytes = new Uint8Array(parts.reduce((sum, [, array]) => sum + array.byteLength, 0));
  let at = 0;
  for (const [type, array] of parts) {
    const copy = new Uint8Array(new Uint8Array(array.buffer, array.byteOffset, array.byteLength));
    make_canonical(type, copy);
    bytes.set(copy, at);
    at += copy.length;
  }
  return xxh3_128(bytes);
};

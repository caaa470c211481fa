// What the engine of this thread can do: probed by running small modules, never by names and versions.

const from_hex = (hex) => new Uint8Array(hex.match(/../g).map((byte) => parseInt(byte, 16)));
// f(a, b) = a * b and f(a, b, c) = relaxed_madd(a, b, c), in one lane.
const multiply_probe = from_hex(
  "0061736d0100000001070160027d7d017d03020100070501016600000a120110002000fd132001fd13fde601fd1f000b");
const madd_probe = from_hex(
  "0061736d0100000001080160037d7d7d017d03020100070501016600000a160114002000fd132001fd132002fd13fd8502fd1f000b");
const entry_of = (bytes) => new WebAssembly.Instance(new WebAssembly.Module(bytes)).exports.f;

export const probe = () => {
  const found = { allowed: true, simd: false, keepsSubnormals: false, relaxed: false, fused: false };
  if (typeof WebAssembly !== "object" || !WebAssembly.validate(multiply_probe)) return found;
  found.simd = true;
  let multiply;
  try {
    multiply = entry_of(multiply_probe);
  } catch {  // valid, and still refused: so says the page's policy
    return { ...found, allowed: false };
  }
  found.keepsSubnormals = multiply(2 ** -100, 2 ** -40) === 2 ** -140 && multiply(2 ** -140, 2 ** 40) === 2 ** -100;
  if (!WebAssembly.validate(madd_probe)) return found;
  found.relaxed = true;
  // (1 + 2^-12)^2 - (1 + 2^-11) is 2^-24 rounded once, and 0 where the product is rounded before.
  found.fused = entry_of(madd_probe)(1 + 2 ** -12, 1 + 2 ** -12, -(1 + 2 ** -11)) === 2 ** -24;
  return found;
};

// The same, where kernels can run at all; an error that says why elsewhere.
export const require_engine = () => {
  const can = probe();
  if (!can.simd) throw new Error("load: this engine has no WebAssembly SIMD");
  if (!can.allowed)
    throw new Error("load: the page's Content-Security-Policy forbids WebAssembly; script-src 'wasm-unsafe-eval' allows it");
  if (!can.keepsSubnormals)
    throw new Error("load: this thread flushes subnormal numbers (a native library has set the processor so)");
  return can;
};

// Types of block scales: f4e2m1 lies two columns a byte, f8e8m0 is a power of two; bytes are those of `trireme run`.
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import { load } from "../trireme.mjs";
import { digest_of, emit, reference_digests, sampled, trireme } from "./tool.mjs";

const rows = 5, columns = 64;
const types = ["--type", "q=f4e2m1", "--type", "scale=f8e8m0"];
const dequantise = "dequantise(q[i,j], scale[i, j / 32]) -> (y[i,j])\n    y = q * scale\n";

const npy = (dtype, shape, array) => {
  const header = `{'descr': '${dtype}', 'fortran_order': False, 'shape': (${shape.join(", ")}), }`;
  const text = header.padEnd(117) + "\n";  // 128 bytes with what stands before it
  const begin = Buffer.from([0x93, ...Buffer.from("NUMPY"), 1, 0, text.length, 0]);
  return Buffer.concat([begin, Buffer.from(text), Buffer.from(array.buffer, array.byteOffset, array.byteLength)]);
};
const bytes_of = (file) => {
  const npy = readFileSync(file);
  return npy.subarray(10 + npy.readUInt16LE(8));
};

test("quantise_mxfp4 gives the bytes of `trireme run`, and they are read back", async () => {
  const folder = mkdtempSync(join(tmpdir(), "trireme-"));
  try {
    const quantise = await load(emit("quantise_mxfp4", "--cols", String(columns), ...types));
    const { x } = sampled(quantise, rows, columns);
    x[3] = 1e30, x[70] = -0, x[200] = NaN;
    const { q, scale } = quantise.run({ x }, { rows });
    assert.equal(q.constructor, Uint8Array);
    assert.equal(q.length, rows * columns / 2);
    assert.equal(scale.constructor, Uint8Array);
    assert.equal(scale.length, rows * columns / 32);

    const at = (name) => join(folder, name);
    writeFileSync(at("x.npy"), npy("<f4", [rows, columns], x));
    trireme("run", "quantise_mxfp4", "--in", `x=${at("x.npy")}`, "--out", `q=${at("q.npy")}`, "--out",
            `scale=${at("scale.npy")}`, ...types, "--target", "reference");
    assert.deepEqual(Buffer.from(q), bytes_of(at("q.npy")));
    assert.deepEqual(Buffer.from(scale), bytes_of(at("scale.npy")));

    writeFileSync(at("dequantise.row"), dequantise);
    writeFileSync(at("q.npy"), npy("|u1", [rows, columns / 2], q));
    writeFileSync(at("scale.npy"), npy("|u1", [rows, columns / 32], scale));
    const back = await load(emit(at("dequantise.row"), "--cols", String(columns), ...types, "--type", "y=f32"));
    const { y } = back.run({ q, scale }, { rows });
    trireme("run", at("dequantise.row"), "--in", `q=${at("q.npy")}`, "--in", `scale=${at("scale.npy")}`, "--out",
            `y=${at("y.npy")}`, ...types, "--type", "y=f32", "--target", "reference");
    assert.deepEqual(Buffer.from(y.buffer, y.byteOffset, y.byteLength), bytes_of(at("y.npy")));
    assert.equal(Math.abs(y[5]), 0);  // beside 1e30
    assert.ok(y.some((value) => value !== 0 && Math.abs(value) < 1));
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test("their samples and digests are the reference's", async () => {
  const quantise = await load(emit("quantise_mxfp4", "--cols", String(columns), ...types));
  const line = `quantise_mxfp4 ${rows}x${columns} q=f4e2m1 scale=f8e8m0`;
  assert.equal(digest_of(quantise, quantise.run(sampled(quantise, rows, columns), { rows })), reference_digests([line])[0]);
});

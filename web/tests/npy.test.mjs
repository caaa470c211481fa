// Files of NumPy as the page reads them.
import assert from "node:assert/strict";
import { test } from "node:test";

import { read_npy } from "../page/npy.mjs";

const npy = (descr, shape, data) => {
  const head = `{'descr': '${descr}', 'fortran_order': False, 'shape': (${shape.join(", ")},), }`.padEnd(117) + "\n";
  const bytes = Uint8Array.from([0x93, ...Buffer.from("NUMPY"), 1, 0, head.length, 0, ...Buffer.from(head), ...data]);
  return bytes.buffer;
};

test("masks of bool are bytes", () => {
  const found = read_npy(npy("|b1", [2, 3], [1, 0, 1, 0, 0, 1]), "mask.npy");
  assert.deepEqual({ ...found, array: [...found.array] }, { array: [1, 0, 1, 0, 0, 1], shape: [2, 3], type: "u8" });
});

test("labels of int64, and bytes that may mean several types", () => {
  const found = read_npy(npy("<i8", [1], [7, 0, 0, 0, 0, 0, 0, 0]), "labels.npy");
  assert.deepEqual([found.type, found.array[0]], ["i64", 7n]);
  assert.equal(read_npy(npy("|u1", [1], [7])).type, undefined);
});

test("what cannot be read is told", () => {
  assert.throws(() => read_npy(npy("<c8", [1], []), "z.npy"), /z.npy: arrays of <c8/);
  assert.throws(() => read_npy(npy("<f4", [9], [0, 0]), "x.npy"), /x.npy: the file is cut short/);
  assert.throws(() => read_npy(new ArrayBuffer(20), "x.npy"), /this is no .npy file/);
});

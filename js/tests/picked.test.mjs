// Rows picked by an operand: tables have rows of their own, and what lies outside is 0 or left out.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import { load } from "../trireme.mjs";
import { emit } from "./tool.mjs";

const emitted = (text, ...options) => {
  const folder = mkdtempSync(join(tmpdir(), "picked-"));
  try {
    writeFileSync(join(folder, "p.row"), text);
    return emit(join(folder, "p.row"), ...options);
  } finally {
    rmSync(folder, { recursive: true });
  }
};
const numbers = (count) => Float32Array.from({ length: count }, (_, k) => ((k * 37) % 101) / 8 - 6);
const take = "take(x[i,j], at[i / 2], table[at, j]) -> (y[i,j])\n  y = x + table\n";

for (const [type, few] of [["i32", Int32Array.of(4, -1, 0, 9, 2)], ["i64", BigInt64Array.of(4n, -1n, 0n, 2n ** 40n, 2n)]])
  test(`rows of a table picked by ${type}, in chunks`, async () => {
    const rows = 3000, columns = 7, picks = few.constructor.from({ length: rows / 2 }, (_, k) => few[k % 5]);
    const x = numbers(rows * columns), table = numbers(5 * columns);
    const wanted = x.map((value, k) => {
      const at = Number(picks[Math.floor(k / columns / 2)]);
      return value + (at >= 0 && at < 5 ? table[at * columns + (k % columns)] : 0);
    });
    const module = emitted(take, "--type", `at=${type}`, "--cols", "7");
    for (const memoryLimit of [1 << 26, 65536]) {
      const kernel = await load(module, { memoryLimit });
      assert.deepEqual(kernel.run({ x, at: picks, table }, { columns }).y, wanted);
      const apart = new Float32Array(5 * 9);
      for (let row = 0; row < 5; ++row) apart.set(table.subarray(row * columns, (row + 1) * columns), row * 9);
      assert.deepEqual(kernel.run({ x, at: picks, table: { values: apart, stride: 9 } }, { columns }).y, wanted);
    }
    const call = (await load(module)).prepare({ rows, columns, tables: { table: 5 } });
    call.operands.x.set(x), call.operands.at.set(picks), call.operands.table.set(table);
    assert.deepEqual(call.run().y, wanted);
  });

test("results go to picked rows, and the others keep what they hold", async () => {
  const columns = 3, x = numbers(4 * columns), cache = new Float32Array(6 * columns).fill(-1);
  const kernel = await load(emitted("put(x[i,j], slot[i]) -> (cache[slot, j])\n  cache = x * 2\n", "--type", "slot=i32", "--cols", "3"));
  const { cache: made } = kernel.run({ x, slot: Int32Array.of(5, 0, -3, 2) }, { columns, into: { cache } });
  assert.equal(made, cache);
  const row = (k) => [...cache.subarray(k * columns, (k + 1) * columns)], of = (k) => [...x.subarray(k * columns, (k + 1) * columns)].map((v) => 2 * v);
  assert.deepEqual([row(0), row(2), row(5)], [of(1), of(3), of(0)]);
  for (const k of [1, 3, 4]) assert.deepEqual(row(k), [-1, -1, -1]);
});

test("wrong tables are refused", async () => {
  const kernel = await load(emitted(take, "--type", "at=i32", "--cols", "3")), at = Int32Array.of(0);
  const x = numbers(6);
  assert.throws(() => kernel.run({ x, at, table: numbers(7) }, { columns: 3 }), /table: 7 values are no whole rows of 3/);
  assert.throws(() => kernel.run({ x, at, table: numbers(0) }, { columns: 3 }), /at least one/);
  assert.throws(() => kernel.prepare({ rows: 2, columns: 3, tables: { tabel: 5 } }), /no table 'tabel'; it has table/);
  const put = await load(emitted("put(x[i,j], slot[i]) -> (cache[slot, j])\n  cache = x * 2\n", "--type", "slot=i32", "--cols", "3"));
  assert.throws(() => put.run({ x, slot: Int32Array.of(0, 1) }, { columns: 3 }), /cache is a table whose rows are picked; give it/);
});

test("without an operand of every entry, one with a value for each row says how many there are", async () => {
  const columns = 4, table = numbers(6 * columns), token = Int32Array.of(5, 0, -1, 6, 2);
  const wanted = [...token].flatMap((k) => (k >= 0 && k < 6 ? [...table.subarray(k * columns, (k + 1) * columns)] : [0, 0, 0, 0]));
  const kernel = await load(emit("embedding", "--absent", "scale", "--cols", "4"));
  assert.deepEqual([...kernel.run({ token, table }, { columns }).y], wanted);
  assert.deepEqual([...kernel.run({ token: token.subarray(0, 2), table }).y], wanted.slice(0, 2 * columns));
});

// Prepared calls: the same bits as run(), on arrays that stay in the module's memory.
import assert from "node:assert/strict";
import { test } from "node:test";

import { load, loadOperator } from "../trireme.mjs";
import { digest_of, emit, reference_digests, sampled } from "./tool.mjs";

const fill = (call, values) => { for (const name of Object.keys(values)) call.operands[name].set(values[name]); };

const cases = [
  ["rms_norm 7x257", [], ""],
  ["rms_norm 1x64", ["--type", "x=bf16", "--type", "gamma=bf16", "--type", "y=bf16"], "x=bf16"],
  ["rms_norm 9x300", ["--type", "x=f64", "--type", "gamma=f64", "--type", "y=f64", "--type", "rstd=f64"], "x=f64"],
  ["rms_norm 2500x300", ["--backward"], "backward"],
  ["swiglu 5x1000", ["--backward", "--set", "beta=1.702"], "beta=1.702 backward"],
  ["rms_norm_quant 5x257", ["--type", "q=i8"], "q=i8"],
  ["group_norm 8x245", ["--set", "groups=4", "--set", "pixels=49"], "groups=4 pixels=49"],
  ["rms_norm 0x7", ["--backward"], "backward"],
];
test("prepared calls give the reference's bits, again and again", async (t) => {
  const wanted = reference_digests(cases.map(([head, , tail]) => `${head} ${tail}`));
  for (const [k, [head, options, tail]] of cases.entries()) {
    const [op, shape] = head.split(" "), [rows, columns] = shape.split("x").map(Number);
    await t.test(`${head} ${tail}`, async () => {
      const kernel = await load(emit(op, "--cols", String(columns), ...options)), call = kernel.prepare({ rows, columns });
      const values = sampled(kernel, rows, columns), { results } = call;
      for (let round = 0; round < 3; ++round) {
        for (const result of Object.values(results)) result.fill(7);
        fill(call, values);
        assert.equal(call.run(), results);
        assert.equal(digest_of(kernel, results), wanted[k], `round ${round}`);
        fill(call, Object.fromEntries(Object.keys(values).map((name) => [name, values[name].slice().fill(1)])));
        call.run();
      }
    });
  }
});

test("prepared calls have memory of their own, and constants that may change", async () => {
  const { forward } = await loadOperator({ forward: emit("rms_norm") });
  const one = forward.prepare({ rows: 7, columns: 257 }), two = forward.prepare({ rows: 1, columns: 64 }, { eps: 0.25 });
  const values = sampled(forward, 7, 257), small = sampled(forward, 1, 64);
  const wanted = reference_digests(["rms_norm 7x257", "rms_norm 1x64 eps=0.25", "rms_norm 7x257 eps=0.5", "rms_norm 7x257 eps=0.125"]);
  fill(one, values), fill(two, small);
  one.run(), two.run();
  forward(sampled(forward, 40, 5000), { columns: 5000 });  // grows the module's own memory
  assert.equal(digest_of(forward, one.results), wanted[0]);
  assert.equal(digest_of(forward, two.results), wanted[1]);
  one.set({ eps: 0.5 });
  assert.equal(digest_of(forward, one.run()), wanted[2]);
  assert.equal(digest_of(forward, two.run()), wanted[1]);
  one.set({ eps: 0.125 }), one.set({});
  assert.equal(digest_of(forward, one.run()), wanted[3]);
  // Views are arrays like any other.
  const { y } = forward({ x: one.operands.x, gamma: one.operands.gamma, eps: 0.125 }, { columns: 257 });
  assert.deepEqual(y, one.results.y);
});

// The least of many rounds: 0.04 µs on a machine at rest.
test("a prepared call of 1x64 takes below 0.2 µs", async () => {
  const kernel = await load(emit("rms_norm", "--cols", "64")), call = kernel.prepare({ rows: 1, columns: 64 });
  fill(call, sampled(kernel, 1, 64));
  let least = Infinity;
  for (let round = 0; round < 50; ++round) {
    const began = performance.now();
    for (let k = 0; k < 5000; ++k) call.run();
    least = Math.min(least, (performance.now() - began) / 5000 * 1000);
  }
  assert.ok(least < 0.2, `${least} µs`);
});

test("prepared calls refuse what they cannot be", async () => {
  const bytes = emit("rms_norm"), kernel = await load(bytes, { memoryLimit: 65536 });
  const refused = (shape, pattern, constants) => assert.throws(() => kernel.prepare(shape, constants), pattern);
  refused(undefined, /a shape: extents by name, got undefined/);
  refused({ rows: 1 }, /rms_norm: say the shape, \{ rows, columns \}/);
  refused({ columns: 4 }, /rows: undefined is no integer/);
  refused({ rows: -1, columns: 4 }, /rows: -1 is no integer/);
  refused({ rows: 1.5, columns: 4 }, /rows: 1.5 is no integer/);
  refused({ rows: 1, columns: 0 }, /columns: 0 is no positive integer/);
  refused({ row: 1, columns: 4 }, /no extent 'row'; it has rows, columns/);
  refused({ rows: 100, columns: 1000 }, /rms_norm: 100 rows prepared at once want \d+ bytes, memoryLimit is 65536/);
  refused({ rows: 1, columns: 4 }, /rms_norm has no constant 'x'; it has eps/, { x: 1 });
  refused({ rows: 1, columns: 4 }, /eps: a number, got string/, { eps: "1" });
  const call = kernel.prepare({ rows: 1, columns: 4 });
  assert.throws(() => { call.operands.x = new Float32Array(4); }, TypeError);
  const fixed = await load(emit("group_norm", "--cols", "245", "--set", "groups=4", "--set", "pixels=49"));
  assert.equal(fixed.prepare({ rows: 2 }).operands.x.length, 490);
  assert.throws(() => fixed.prepare({ rows: 2, columns: 49 }), /emitted for 245/);
});

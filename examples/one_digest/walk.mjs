// Walks tape.json in a JavaScript engine, a browser's too, by kernels of WebAssembly: as train.py does.
import { compile } from "../../js/trireme.mjs";

const classes = { f32: Float32Array, i32: Int32Array, i64: BigInt64Array };

// kernel_of(call, tape): what runs a call of the tape, with the `run` of compiled programs (js/README.md).
export const compiled = (options = {}) => {
  const made = {};
  return ({ program, backward }, { programs }) => {
    const forward = (made[program] ??= compile(programs[program], options));
    return backward ? (made[`${program} backward`] ??= forward.then((op) => op.backward())) : forward;
  };
};

const hex = (bytes) => [...new Uint8Array(bytes)].map((byte) => byte.toString(16).padStart(2, "0")).join("");

const each_of = (object, work) => Object.fromEntries(Object.entries(object).map(([name, value]) => [name, work(value)]));

// Gives { step, loss, digest } after each of the first `steps` steps, all of them unless said.
export const train = async function* (tape, kernel_of, steps = tape.each_step.window.length) {
  const buffers = {};
  for (const [name, { type, values, length }] of Object.entries(tape.buffers))
    buffers[name] = values ? classes[type].from(type === "i64" ? values.map(BigInt) : values) : new classes[type](length);
  let step = 0;
  const now = (value) => (typeof value === "string" ? tape.each_step[value][step] : value);
  const slice = ({ of, at = 0, shape, stride, each }) => {
    const first = at + (each ? now(each) : 0), columns = shape.at(-1), count = shape.reduce((a, b) => a * b);
    const values = buffers[of].subarray(first, first + (stride ? (count / columns - 1) * stride + columns : count));
    return stride ? { values, stride } : values;
  };
  const slices = (arrays) => each_of(arrays, slice);
  const walk = async (calls) => {
    for (const call of calls) {
      const { shape: [rows, columns], constants = {}, operands, results, in_place = {} } = call;
      const kernel = await kernel_of(call, tape), into = slices(results);
      kernel.run({ ...slices(operands), ...each_of(constants, now) }, { rows, columns, into, inPlace: in_place, results: Object.keys(into) });
    }
  };
  await walk(tape.start);
  while (step < steps) {
    await walk(tape.step);
    ++step;
    yield { step, loss: buffers[tape.loss][0], digest: hex(await crypto.subtle.digest("SHA-256", buffers[tape.digest])) };
  }
};

export const line_of = ({ step, loss, digest }) => `step ${String(step).padStart(3)} loss ${loss.toFixed(6)} weights ${digest}`;

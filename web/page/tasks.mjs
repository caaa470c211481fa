// What the page asks of its workers: each task takes the compiler, its arguments and a function to report progress to.
import { is_table } from "./js/arrays.mjs";
import { digest } from "./js/digest.mjs";
import { probe } from "./js/engine.mjs";
import { Kernel } from "./js/kernel.mjs";

// The target whose artifacts this engine runs itself, and the best of its architectures here.
const own_target = ({ tables }) => {
  const { name, defaultArch } = tables.targets.find((each) => each.form === "module");
  return { target: name, arch: probe().fused ? "relaxed" : defaultArch };
};
const kernel_of = (compiler, text, line) => {
  const emission = compiler.emit(text, line, own_target(compiler));
  return { ...emission, kernel: new Kernel(new WebAssembly.Module(emission.bytes), emission.manifest, 2 ** 31) };
};
const bytes_of = (array) => new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
const median = (list) => list.sort((a, b) => a - b)[list.length >> 1];

// Seconds of each call, the median of several rounds, which take turns: what else the machine does strikes all of them. Clocks of
// pages are coarse (0.1 ms): a round that is too short for them is made anew with twice as many calls.
const seconds_of = (calls, budget) => {
  const least = Math.max(50 * budget, 2), timers = calls.map((call) => ({ call, count: 1, rounds: [] }));
  for (const end = performance.now() + budget * 1000; timers.some(({ rounds }) => rounds.length < 3) || performance.now() < end;)
    for (const timer of timers) {
      const began = performance.now();
      for (let k = 0; k < timer.count; ++k) timer.call();
      const taken = performance.now() - began;
      if (taken >= least) timer.rounds.push(taken / 1000 / timer.count);
      else (timer.count *= 2), (timer.rounds.length = 0);
    }
  return timers.map(({ rounds }) => median(rounds));
};

// A kernel beside a copy that moves as many bytes in the same memory.
const timed = ({ kernel }, problem, constants, budget) => {
  const of_table = new Set([...kernel.manifest.operands, ...kernel.manifest.results].filter(is_table).map(({ name }) => name));
  const tables = Object.fromEntries([...problem.operands, ...problem.results].filter(({ name }) => of_table.has(name)).map(({ name, rows }) => [name, rows]));
  const inputs = problem.operands.filter((each) => each.type).map(({ name }) => name);
  const arrays = [...inputs.map((name) => problem.operand(name)), ...problem.results.map(({ name }) => problem.result(name))];
  const bytes = arrays.reduce((sum, { byteLength }) => sum + byteLength, 0), half = Math.max(bytes >> 1, 1);
  const call = kernel.prepare({ rows: problem.rows, columns: problem.columns, tables }, constants, 2 * half), { spare } = call;
  for (const name of inputs) call.operands[name].set(problem.operand(name));
  spare.fill(1);  // pages that nobody has written are all one page, and quick
  const [seconds, copy] = seconds_of([() => call.run(), () => spare.copyWithin(half, 0, half)], budget);
  return { bytes, seconds, copy, gigabytes: bytes / seconds / 1e9, copied: bytes / copy / 1e9 };
};

const fill = (problem, data = {}) => {
  for (const [name, array] of Object.entries(data)) {
    const place = problem.operand(name);
    if (place.length !== array.length || place.constructor !== array.constructor)
      throw new Error(`${name}: ${array.constructor.name} of ${array.length} values was given, ${place.constructor.name} of ${place.length} is wanted`);
    place.set(array);
  }
};
const values_of = (problem) => {
  const values = {}, constants = {};
  for (const { name, type, constant } of problem.operands)
    if (type) values[name] = problem.operand(name).slice();
    else constants[name] = Number(constant);
  return { values, constants };
};
const first_difference = (got, want) => {
  const a = bytes_of(got), b = bytes_of(want), at = a.findIndex((byte, k) => byte !== b[k]);
  return at < 0 ? undefined : Math.floor(at / got.BYTES_PER_ELEMENT);
};

const most_interpreted = 2 ** 18, most_oracle = 2 ** 17;

// Floating-point values of bits that travel as integers.
export const widened = (array, type) => {
  if (type === "bf16") return Float32Array.from(array, (bits) => ((words[0] = bits << 16), floats[0]));
  if (type === "f16") return Float32Array.from(array, (bits) => {
    const sign = bits & 0x8000 ? -1 : 1, exponent = (bits >> 10) & 31, rest = bits & 1023;
    if (exponent === 31) return rest ? NaN : sign * Infinity;
    return sign * (exponent ? (1 + rest / 1024) * 2 ** (exponent - 15) : rest * 2 ** -24);
  });
  return array;
};
const words = new Uint32Array(1), floats = new Float32Array(words.buffer);

const summary = (array, type) => {
  if (type.startsWith("f8") || type.startsWith("f4")) return {};  // bits, of which the page knows no values
  let low = Infinity, high = -Infinity, nans = 0;
  for (const value of widened(array, type)) {
    const number = Number(value);
    if (Number.isNaN(number)) ++nans;
    else (low = Math.min(low, number)), (high = Math.max(high, number));
  }
  return { low, high, nans };
};

export const tasks = {
  program: (compiler, { text }) => compiler.program(text),

  view: (compiler, { text, line, stage, target, arch }) => compiler.show(text, line, { stage, target, arch }),

  // The schedule chosen for a target, and the kernels after each of its passes.
  schedule: (compiler, { target, arch, ...problem }) => {
    const { text: _, ...rest } = tasks.kernel(compiler, { ...problem, target, arch });
    const { text, line } = problem, passes = compiler.tables.passes.map(({ name }) => compiler.show(text, line, { stage: name, target, arch }));
    return { ...rest, passes };
  },

  // A text of a target's kernels, with the names of the arrays and constants that its slots speak of.
  kernel: (compiler, { text, line, stage, target, arch }) => {
    const { manifest, config, bytes } = compiler.emit(text, line, { target, arch }), names_of = (list) => list.map(({ name }) => name);
    const operands = names_of(manifest.operands), results = names_of(manifest.results);
    const slots = manifest.slots.map(([kind, index]) => (/^(operand|constant)/.test(kind) ? operands : /^result/.test(kind) ? results : [])[index]);
    return { text: compiler.show(text, line, { stage, target, arch }), config, size: bytes.length, names: { operands, results, slots } };
  },

  emission: (compiler, { text, line, target, arch }) => {
    const { bytes, ...rest } = compiler.emit(text, line, { target, arch });
    return { ...rest, size: bytes.length, bytes };
  },

  // Reference, this engine's kernel and the interpreter of GPU kernels on the same data: digests, differences, time.
  run: (compiler, { text, line, data, seconds = 0.3 }, report) => {
    const problem = compiler.open(text, line);
    try {
      fill(problem, data);
      const { rows, columns } = problem, elements = rows * columns, { values, constants } = values_of(problem);
      report("reference");
      let began = performance.now();
      const runs = [{ by: "reference", digest: problem.run(), seconds: (performance.now() - began) / 1000 }];
      const wanted = problem.results.map(({ name }) => problem.result(name).slice());
      let oracle, without_oracle;
      if (elements > most_oracle) without_oracle = `left out beyond ${most_oracle} elements`;
      else {
        report("oracle");
        try {
          oracle = problem.oracle().errors;
        } catch ({ reason }) {
          without_oracle = reason;
        }
      }
      report("kernel");
      began = performance.now();
      const made = kernel_of(compiler, text, line), compiled = performance.now() - began;
      const taken = new Set(made.manifest.operands.map((each) => each.name));
      const given = Object.fromEntries(Object.entries({ ...values, ...constants }).filter(([name]) => taken.has(name)));
      const results = made.kernel.run(given, { rows, columns });
      const kernel = {
        by: `${made.target} ${made.arch}`,
        digest: digest(made.manifest.results.map(({ name, type }) => [type, results[name]])),
      };
      runs.push(kernel);
      if (kernel.digest !== runs[0].digest)
        problem.results.forEach(({ name }, k) => {
          const at = first_difference(results[name], wanted[k]);
          if (at !== undefined) kernel.difference ??= `${name}: entry ${at} differs`;
        });
      if (elements <= most_interpreted) {
        report("interpreter");
        began = performance.now();
        runs.push({ by: "interpreted GPU kernel", digest: problem.run("lanes"), seconds: (performance.now() - began) / 1000 });
      }
      report("timing");
      const own = Object.fromEntries(Object.entries(constants).filter(([name]) => taken.has(name)));
      const timing = timed(made, problem, own, seconds);
      kernel.seconds = timing.seconds;
      return {
        line: problem.line, runs, timing, compiled, config: made.config, size: made.bytes.length, oracle, without_oracle,
        results: problem.results.map(({ name, type, rows, columns }) => ({ name, type, rows, columns, ...summary(results[name], type) })),
      };
    } finally {
      problem.close();
    }
  },

  // Speed over columns, about 16 MB an array: more than most caches hold.
  sweep: (compiler, { text, line_of, bytes = 2 ** 24 }, report) => {
    const points = [];
    for (let columns = 64; columns <= 65536; columns *= 2) {
      const rows = Math.max(1, Math.floor(bytes / 4 / columns));
      const problem = compiler.open(text, line_of.replace("ROWSxCOLUMNS", `${rows}x${columns}`));
      try {
        const made = kernel_of(compiler, text, problem.line), taken = new Set(made.manifest.operands.map((each) => each.name));
        const own = Object.fromEntries(Object.entries(values_of(problem).constants).filter(([name]) => taken.has(name)));
        const { gigabytes, copied } = timed(made, problem, own, 0.06);
        points.push({ columns, rows, gigabytes, copied });
        report(points.length / 11);
      } finally {
        problem.close();
      }
    }
    return points;
  },

  // The error of a function against the oracle, in units in the last place of f32.
  accuracy: (compiler, { call, low, high, count = 2048 }) => {
    const text = `probe(x[i,j]) -> (y[i,j])\n    y = ${call}\n`;
    const problem = compiler.open(text, `probe 1x${count} x=f32`);
    try {
      const x = problem.operand("x"), points = [];
      for (let k = 0; k < count; ++k) x[k] = low + ((high - low) * (k + 0.5)) / count;
      const inputs = x.slice();
      problem.run();
      const y = problem.result("y").slice(), { elements } = problem.oracle();
      for (let k = 0; k < count; ++k) {
        const exact = elements.y[3 * k];
        if (!Number.isFinite(exact)) continue;
        const ulp = 2 ** (Math.max(Math.floor(Math.log2(Math.abs(exact) || 2 ** -149)), -126) - 23);
        points.push([inputs[k], (y[k] - exact) / ulp]);
      }
      return { points, largest: points.reduce((most, [, error]) => Math.max(most, Math.abs(error)), 0) };
    } finally {
      problem.close();
    }
  },

  // The derived backward beside central differences of the program itself, both in f64.
  gradient: (compiler, { text, settings = "", rows = 3, columns = 8, most = 48 }, report) => {
    const { forward } = compiler.program(text);
    const first = forward.leading, stopped = ["stop_gradient", "cast", "largest"].find((name) => forward.text.includes(`${name}(`));
    const float_types = compiler.tables.types.filter(({ integer }) => !integer).map(({ name }) => name);
    const kept = settings.split(/\s+/).filter((word) => word && !float_types.includes(word.split("=")[1]));
    const line = [forward.name, `${rows}x${columns}`, ...(first ? [`${first}=f64`] : []), ...kept].join(" ");
    const ahead = compiler.open(text, line), back = compiler.open(text, `${line} backward`);
    try {
      ahead.run();
      const is_memory = (each) => each.type, weights = {};
      for (const { name } of back.operands.filter(is_memory)) {
        const same = ahead.operands.find((each) => each.name === name && each.type);
        if (same) back.operand(name).set(ahead.operand(name));
        else if (ahead.results.some((each) => each.name === name)) back.operand(name).set(ahead.result(name));
        else weights[name.slice(1)] = back.operand(name).slice();
      }
      back.run();
      const loss = () => {
        ahead.run();
        let sum = 0;
        for (const [name, weight] of Object.entries(weights)) ahead.result(name).forEach((value, k) => { sum += weight[k] * value; });
        return sum;
      };
      return back.results.filter(({ name }) => ahead.operands.some((each) => each.name === name.slice(1) && each.type === "f64")).map(({ name }) => {
        const operand = name.slice(1), derived = back.result(name).slice(), count = derived.length;
        const step = Math.max(1, Math.floor(count / most)), scale = Math.max(1e-3, ...derived.map(Math.abs));
        let worst = 0, at = 0, checked = 0;
        for (let k = 0; k < count; k += step, ++checked) {
          const value = ahead.operand(operand)[k], h = 1e-5 * Math.max(1, Math.abs(value));
          const moved = (to) => { ahead.operand(operand)[k] = to; return loss(); };
          const slope = (moved(value + h) - moved(value - h)) / (2 * h);
          ahead.operand(operand)[k] = value;
          const error = Math.abs(slope - derived[k]) / scale;
          if (!(error <= worst)) (worst = error), (at = k);
        }
        report(name);
        return { name, checked, worst, at, scale, fine: worst < 1e-6, stopped };
      });
    } finally {
      ahead.close();
      back.close();
    }
  },

  // The digest and the results of a program on its samples, by the reference: what lessons compare.
  reference: (compiler, { text, line }) => {
    const problem = compiler.open(text, line);
    try {
      const digest_of_all = problem.run();
      return { digest: digest_of_all, results: problem.results.map(({ name, type }) => ({ name, type, values: problem.result(name).slice() })) };
    } finally {
      problem.close();
    }
  },
};

// Usage: node web/tests/times.mjs
// How long the compiler takes from a program's text to all outputs of both directions (program, backward, every stage, every
// target's text and bytes), for every operator: milliseconds of the processor, the best of five rounds, the slowest first. The
// engine has met every operator once before: what it then compiles better is no part of it.
import { fileURLToPath } from "node:url";

import { compiler, module_bytes } from "./compiler.mjs";
import { loadCompiler } from "../../js/compiler.mjs";

// Of the processor: what else the machine does is not counted, though it slows this down as well.
const milliseconds = () => {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
};
const best_of = (rounds, work) => Math.min(...Array.from({ length: rounds }, () => {
  const began = milliseconds();
  work();
  return milliseconds() - began;
}));

export const ready = async () => {
  const began = milliseconds();
  (await loadCompiler(module_bytes)).tables;
  return milliseconds() - began;
};

const all_outputs = (text, line) => {
  const { stages, targets } = compiler.tables;
  compiler.program(text);
  for (const { name: stage } of stages) compiler.show(text, line, { stage });
  for (const { name: target } of targets) compiler.show(text, line, { target }), compiler.emit(text, line, { target });
};

// [[line, milliseconds]]
export const times = () => {
  const problems = compiler.tables.operators.map(({ name, text }) => {
    const { backward, tries } = compiler.program(text);
    const line = [name, "64x4096", ...tries[0].split(/ +/).slice(1).filter((word) => !/=none$|^axes=/.test(word))].join(" ");
    return { line, both: () => { for (const direction of backward ? ["", " backward"] : [""]) all_outputs(text, line + direction); } };
  });
  for (const { both } of problems) both();
  return problems.map(({ line, both }) => [line, best_of(5, both)]).sort(([, a], [, b]) => b - a);
};

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  console.log(`${(await ready()).toFixed(1)} ms  ready`);
  const found = times();
  for (const [line, time] of found) console.log(`${time.toFixed(1).padStart(5)} ms  ${line}`);
  console.log(`${found[found.length >> 1][1].toFixed(1)} ms in the median of ${found.length} operators`);
}

// What the page and Compiler Explorer show of x86 is what binutils read in the emitted bytes: every instruction of every
// operator, in both directions, for AVX2 and AVX-512.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import { installed } from "../../js/tests/tool.mjs";
import { compiler } from "./compiler.mjs";

// Names that binutils spell otherwise: conditions, a 64-bit constant's mov, and comparisons whose predicate is their last operand.
const spelled = { jz: "je", jnz: "jne", jc: "jb", jnc: "jae", movabs: "mov" };
const predicates = ["eq", "lt", "le", "unord", "neq", "nlt", "nle", "ord", "eq_uq", "nge", "ngt", "false", "neq_oq", "ge", "gt", "true", "eq_os",
  "lt_oq", "le_oq", "unord_s", "neq_us", "nlt_uq", "nle_uq", "ord_s", "eq_us", "nge_uq", "ngt_uq", "false_os", "neq_os", "ge_oq", "gt_oq", "true_us"];

// One spelling of each: no sizes, numbers as decimals, of a jump or a constant not where it lies.
const normal = (line) => {
  const text = line.replace(/[;#].*$/, "").trim().toLowerCase().replace(/^(?:short|long|rex) /, "").replace(/\s+/g, " ").replace(/, | (?=\{)/g, (found) => found.trim());
  const [, word, after = ""] = text.match(/^(\S+)(?: (.*))?$/), jumps = word.startsWith("j"), implies = /^(?:i?div|mul)$/.test(word);
  const [, compares, predicate, type] = word.match(/^(v?cmp)(\w+)(ps|pd|ss|sd)$/) ?? [];
  const operands = (implies ? after.split(",").at(-1) : jumps ? "" : after)
    .replace(/\b(?:[xyz]mm|[dq]?)word (?:ptr|bcst) ?|\bbyte ptr ?/g, "").replace(/\[(?:rip|l\d+)[^\]]*\]/g, "[constant]").replace(/\{1to\d+\}/g, "")
    .replace(/\b0x[\da-f]+\b/g, (digits) => String(BigInt.asIntN(64, BigInt(digits)))).replace(/\+0\]/g, "]").replace(/\*1\b/g, "");
  return compares ? `${compares}${type} ${operands},${predicates.indexOf(predicate)}` : `${spelled[word] ?? word} ${operands}`.trim();
};

const folder = mkdtempSync(join(tmpdir(), "trireme-listing-")), file = join(folder, "code.bin");
const read_by_objdump = (bytes, from) => {
  writeFileSync(file, bytes);
  const options = ["-D", "-b", "binary", "-m", "i386:x86-64", "-M", "intel", "--no-show-raw-insn", `--start-address=${from}`];
  const text = execFileSync(installed("objdump"), [...options, file], { encoding: "utf8", maxBuffer: 2 ** 28 });
  return [...text.matchAll(/^ *([\da-f]+):\t(.*)$/gm)].map(([, at, said]) => ({ at: parseInt(at, 16), said }));
};
const agree = (kernel, read, what) => {
  let k = 0;
  const instructions = kernel.split("\n").map((each) => each.trim()).filter((each) => each && !/^(?:[;.]|L\d+:)/.test(each));
  for (const said of instructions) {
    const [, alignment] = said.match(/^align (\d+)$/) ?? [];
    if (alignment) {
      while (read[k].at % alignment) ++k;
      continue;
    }
    assert.equal(normal(read[k].said), normal(said), `${what}, byte ${read[k].at}`);
    ++k;
  }
  return k;
};

test("binutils read what the listing says", () => {
  const { commonArchs } = compiler.tables.targets.find(({ name }) => name === "x86");
  let count = 0;
  try {
    for (const { name, text } of compiler.tables.operators) {
      const { backward, tries } = compiler.program(text);
      for (const line of [`${name} ${tries[0]}`, ...(backward ? [`${name} ${tries[0]} backward`] : [])])
        for (const arch of commonArchs) {
          const { bytes, description } = compiler.emit(text, line, { target: "x86", arch });
          const entries = [...description.matchAll(/^entry at byte (\d+)/gm)].map(([, at]) => Number(at));
          const kernels = compiler.show(text, line, { target: "x86", arch }).split(/^ *\.section .*$/m).slice(1);
          assert.equal(kernels.length, entries.length, line);
          kernels.forEach((kernel, k) => { count += agree(kernel, read_by_objdump(bytes, entries[k]), `${line}, ${arch}`); });
        }
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
  console.log(`${count} instructions, ${commonArchs.join(" and ")}`);
});

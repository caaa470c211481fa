// Where the page finds a value in machine code: by the comments of listings.
import assert from "node:assert/strict";
import { test } from "node:test";

import { held_places } from "../page/registers.mjs";
import { compiler } from "./compiler.mjs";

// Marked as "<rstd zmm3>" in the text.
const marked = (text) => {
  let out = "", at = 0;
  for (const [from, to, name] of held_places(text).sort((a, b) => a[0] - b[0])) (out += `${text.slice(at, from)}<${name} ${text.slice(from, to)}>`), (at = to);
  return out + text.slice(at);
};
const unmarked = (text) => text.replace(/<\w+ ([^>]*)>/g, "$1");

const listings = {
  "from what writes it to what writes its register again": `
    vsqrtps zmm3, zmm9
    vdivps <rstd zmm3>, zmm2, zmm3
; rstd: f17 in <rstd zmm3>
    vmulps ymm5, <rstd ymm3>, [rcx+rsi*4]
    vmovups [rcx], <rstd zmm3>
    vmovd xmm3, eax
    vaddps zmm1, zmm3, zmm3`,
  "a sum overwrites what it is added to": `
    vmovups <y zmm3>, [rcx]
; y: f17 in <y zmm3>
    vfmadd231ps <y zmm3>, zmm1, zmm2
    vaddps zmm1, zmm3, zmm3`,
  "to the end of its block": `
    vmovups <a ymm1>, [rcx]
; a: f1 in <a ymm1>
; while x8 < x6 {
    vmovups <x ymm2>, [rcx]
    ; x: f2 in <x ymm2>
    vaddps ymm3, <x ymm2>, <a ymm1>
; }
    vaddps ymm3, ymm2, <a ymm1>
    ret
    vaddps ymm3, ymm2, ymm1`,
  "on the stack, and masks": `
    vmovups ymmword ptr <x [rsp+64]>, zmm4
    vcmpps <m k2>, zmm1, zmm2, 17
; x: f1 in <x [rsp+64]>
; m: m0 in <m k2>
    vaddps zmm3{<m k2>}{z}, zmm9, zmmword ptr <x [rsp+64]>`,
  "AArch64": `
    ldr <x q3>, [x9, #16]
    str q4, <z [sp, #64]>
  ; x: f1 in <x v3>
  ; z: f2 in <z [sp, #64]>
    fmul v5.4s, <x v3>.4s, v4.s[0]
    ldr q29, <z [sp, #64]>
    str <x q3>, [x1, #0]
    str q5, [sp, #64]
    mov v3.16b, v5.16b
    ldr q29, [sp, #64]
    fadd v3.4s, v3.4s, v3.4s`,
};
for (const [name, text] of Object.entries(listings)) test(name, () => assert.equal(marked(unmarked(text)), text));

test("most of what listings say is found where it is written and read", () => {
  let said = 0, instructions = 0;
  for (const { name, text } of compiler.tables.operators)
    for (const [target, arch] of [["x86", "avx2"], ["x86", "avx512"], ["aarch64", "neon"]]) {
      const { tries } = compiler.program(text), code = compiler.show(text, `${name} ${tries[0]}`, { target, arch });
      for (const [from] of held_places(code))
        /^ *; /.test(code.slice(code.lastIndexOf("\n", from) + 1)) ? ++said : ++instructions;
    }
  console.log(`${said} values in registers, ${instructions} places in instructions`);
  assert.ok(said > 5000 && instructions > 2 * said);
});

// Where a program's values stand in machine code: its comments say "; rstd: f17 in zmm3". The register holds the value from the
// instruction that wrote it last until one writes it again, or the comment's block ends.
const held = /^\s*; ([A-Za-z_]\w*): .* in (.+)$/;
const place = /\b(?:([xyz]mm|[vqdsbh])|(k))(\d+)\b|\[r?sp(?:\+|, #)?\d*\]/g;  // of vectors, of masks, on the stack
const key_of = ([text, vector, mask, number]) => (number === undefined ? text : `${mask ?? "v"}${number}`);  // zmm3, ymm3, xmm3 are one
const only_reads = /^(?:cmp|test|v?u?comis[sd]|vp?test|kor?test)/;
const reads_what_it_writes = /^(?:vfn?m|fml|bi[tf]|bsl|ld1|mov v\d+\.\w\[)/;

// Which place an instruction writes, as an offset in its operands: the first, or the last of AArch64's stores.
const written = (mnemonic, operands) => {
  if (only_reads.test(mnemonic)) return -1;
  if (/^st/.test(mnemonic)) return operands.lastIndexOf("[");
  if (operands.startsWith("{")) return 1;
  const first = operands.search(/,(?![^[]*\])|$/), memory = operands.indexOf("[");
  return memory >= 0 && memory < first ? memory : 0;
};

// [[from, to, name]]
export const held_places = (text) => {
  const places = [], holders = new Map(), writes = new Map();  // by place: { name, depth }; where it was written last
  let depth = 0, at = 0;
  const leave = () => { for (const [key, holder] of holders) if (holder.depth >= depth) holders.delete(key); };
  for (const line of text.split("\n")) {
    const begin = at;
    at += line.length + 1;
    if (/^\s*; /.test(line)) {
      if (/^\s*; }/.test(line)) leave(), --depth;
      if (line.endsWith("{")) ++depth;
      const [, name, list] = line.match(held) ?? [];
      for (const found of list?.matchAll(place) ?? []) {
        const key = key_of(found), [from, to] = writes.get(key) ?? [];
        if (to) places.push([from, to, name]);
        const word = begin + line.length - list.length + found.index;
        places.push([word, word + found[0].length, name]);
        holders.set(key, { name, depth });
      }
      continue;
    }
    const { 1: mnemonic, 2: operands } = line.match(/^\s*(?:short )?([a-z][\w.]*) +(.*)$/) ?? {};
    if (line.trim() === "ret") holders.clear();  // behind it stands what other places jump to
    if (!operands) continue;
    const start = begin + line.length - operands.length, to_write = written(mnemonic, operands);
    for (const found of operands.matchAll(place)) {
      const key = key_of(found), word = [start + found.index, start + found.index + found[0].length], holder = holders.get(key);
      const writes_it = found.index === to_write;
      if (holder && (!writes_it || reads_what_it_writes.test(`${mnemonic} ${operands}`))) places.push([...word, holder.name]);
      if (writes_it) writes.set(key, word);
    }
    for (const found of operands.matchAll(place)) if (found.index === to_write) holders.delete(key_of(found));
  }
  return places;
};

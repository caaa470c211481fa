// Lights up the same value in every text: its name in programs, its slots and pointers in kernels and code. The pointer, or the
// caret, on a word decides which.
import { mark } from "./highlight.mjs";
import { held_places } from "./registers.mjs";

const word_pattern = /(?:operand|result) \d+|args\[\d+\]|\[args(?:\+\d+)?\]|\[rdi(?:\+\d+)?\]|\[x0(?:, #\d+)?\]|[%$]?[A-Za-z_][\w.]*/g;

// Registers that a kernel's text says to hold a named value: "y: f12, f13 .. f15", "y: %f12 %f13", ";; y: $v12". Those of
// machines, "; y: f12 in zmm3", hold other values at other places (registers.mjs).
const said = /^\s*(?:#|;;?|\/\/) ([A-Za-z_]\w*): ((?:[%$]?(?:f|fd|m|p|v)\d+(?:, | \.\. | |$))+)(?:in .*)?$/gm;
const registers_of = (list) => list.split(/,? (?!\.\.)(?<!\.\. )/).flatMap((each) => {
  const [first, last] = each.trim().split(" .. ").map((word) => word.match(/^(.*?)(\d+)$/));
  if (!first) return [];
  return Array.from({ length: last ? last[2] - first[2] + 1 : 1 }, (_, k) => first[1] + (Number(first[2]) + k));
});
// A pointer made of another: of a kernel's text, of the comments in code, of PTX and of WebAssembly.
const moved = [
  /^\s*(?:; )?(p\d+) = (p\d+) \+ /gm,
  /^\s*add\.s64 (%rd\d+), (%rd\d+), /gm,
  /local\.get (\$p\d+)\n(?!.*\$p\d)(?:.*\n(?!.*\$p\d)){0,5}.*i32\.add\n\s*local\.set (\$p\d+)/gm,
];

// What stands for a name in a kernel's text: "operand 0", the argument slots that hold its address, stride or value, pointers
// that come of those, and registers that hold its value. `names`: of operands, results and slots, in their order.
const aliases_of = (text, { operands = [], results = [], slots = [] }) => {
  const found = new Map(), ambiguous = new Set();
  const add = (alias, name) => {
    if (!name || ambiguous.has(alias)) return;
    if ((found.get(alias) ?? name) !== name) found.delete(alias), ambiguous.add(alias);  // it is used again, for another
    else found.set(alias, name);
  };
  operands.forEach((name, k) => add(`operand ${k}`, name));
  results.forEach((name, k) => add(`result ${k}`, name));
  slots.forEach((name, slot) => {
    const offset = slot ? `+${8 * slot}` : "";
    for (const alias of [`args[${slot}]`, `[args${offset}]`, `[rdi${offset}]`, `[x0, #${8 * slot}]`]) add(alias, name);
  });
  for (const [, register, slot] of text.matchAll(/^\s*(?:; )?(p\d+) = (args\[\d+\])/gm)) add(register, found.get(slot));
  for (const [, register, slot] of text.matchAll(/(%rd\d+), (\[args(?:\+\d+)?\])/g)) add(register, found.get(slot));
  for (const [, slot_offset = 0, pointer] of text.matchAll(/local\.get \$args\n\s*i32\.load(?: offset=(\d+))?\n\s*local\.set (\$p\d+)/g)) add(pointer, slots[slot_offset / 8]);
  for (const pattern of moved)
    for (const [, to, from] of text.matchAll(pattern)) {
      const [made, of] = pattern === moved[2] ? [from, to] : [to, from];
      add(made, found.get(of));
    }
  for (const [, name, list] of text.matchAll(said)) for (const register of registers_of(list)) add(register, name);
  return found;
};

// Places that stand for a name by what precedes them: machine registers, and loads of a WebAssembly module through its $args.
const places_of = (text, { slots = [] }) => {
  const places = held_places(text);
  if (slots.length)
    for (const { 0: all, 1: load, 2: offset = 0, index } of text.matchAll(/local\.get \$args\n\s*([a-z]\w*\.load\w*(?: offset=(\d+))?)/g)) {
      const name = slots[offset / 8], end = index + all.length;
      if (name) places.push([end - load.length, end, name]);
    }
  return places;
};

export class Links {
  #texts = new Map();  // element → { text, aliases, places }
  #current;

  watch(element, names = {}) {
    const text = element.textContent;
    this.#texts.set(element, { text, aliases: aliases_of(text, names), places: places_of(text, names) });
    this.#light(element);
  }

  // The name that stands at an offset of an element's text.
  name_at(element, offset) {
    const known = this.#texts.get(element);
    if (!known || offset < 0) return undefined;
    const { text, aliases, places } = known, placed = places.find(([from, to]) => from <= offset && offset < to);
    if (placed) return placed[2];
    const begin = Math.max(0, text.lastIndexOf("\n", offset - 1) + 1), end = text.indexOf("\n", offset) < 0 ? text.length : text.indexOf("\n", offset);
    for (const { 0: word, index } of text.slice(begin, end).matchAll(word_pattern))
      if (begin + index <= offset && offset < begin + index + word.length) return aliases.get(word) ?? word;
    return undefined;
  }

  show(name) {
    if (name === this.#current) return;
    this.#current = name;
    for (const element of this.#texts.keys()) this.#light(element);
  }
  #light(element) {
    const { text, aliases, places } = this.#texts.get(element), name = this.#current, same = [], gradient = [];
    const add = (stands, from, to) => {
      if (stands === name) same.push([from, to]);
      else if (stands === `d${name}` || name === `d${stands}`) gradient.push([from, to]);
    };
    if (name) {
      for (const [from, to, stands] of places) add(stands, from, to);
      for (const { 0: word, index } of text.matchAll(word_pattern)) {
        add(aliases.get(word) ?? word, index, index + word.length);
        if (same.length + gradient.length > 5000) break;  // more than anyone looks at
      }
    }
    mark(element, "same", same);
    mark(element, "gradient", gradient);
  }
}

export const caret_at = (x, y) => {
  if (document.caretPositionFromPoint) {
    const { offsetNode, offset } = document.caretPositionFromPoint(x, y) ?? {};
    return offsetNode && { node: offsetNode, offset };
  }
  const range = document.caretRangeFromPoint?.(x, y);
  return range && { node: range.startContainer, offset: range.startOffset };
};

// Lights up the same value in every text: its name in programs, its slots and pointers in kernels and code. The pointer, or the
// caret, on a word decides which.
import { mark } from "./highlight.mjs";

const word_pattern = /(?:operand|result) \d+|args\[\d+\]|\[args(?:\+\d+)?\]|\[rdi(?:\+\d+)?\]|[%$]?[A-Za-z_][\w.]*/g;

// What stands for a name in a kernel's text: "operand 0", the argument slots that hold its address, stride or value, and the
// pointers loaded from those. `names`: of operands, results and slots, in their order.
const aliases_of = (text, { operands = [], results = [], slots = [] }) => {
  const found = new Map();
  const add = (alias, name) => { if (name) found.set(alias, name); };
  operands.forEach((name, k) => add(`operand ${k}`, name));
  results.forEach((name, k) => add(`result ${k}`, name));
  slots.forEach((name, slot) => {
    const offset = slot ? `+${8 * slot}` : "";
    for (const alias of [`args[${slot}]`, `[args${offset}]`, `[rdi${offset}]`]) add(alias, name);
  });
  for (const [, register, slot] of text.matchAll(/^\s*(p\d+) = (args\[\d+\])/gm)) add(register, found.get(slot));
  for (const [, register, slot] of text.matchAll(/(%rd\d+), (\[args(?:\+\d+)?\])/g)) add(register, found.get(slot));
  return found;
};

// Places that stand for a name by what precedes them: loads of a WebAssembly module through its $args.
const places_of = (text, { slots = [] }) => {
  const places = [];
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

// Lights up the same value in every text: its name in programs, its slots and pointers in kernels and code. The pointer, or the
// caret, on a word decides which.
import { mark } from "./highlight.mjs";

const word_pattern = /(?:operand|result) \d+|args\[\d+\]|\[args(?:\+\d+)?\]|\[rdi(?:\+\d+)?\]|[%$]?[A-Za-z_][\w.]*/g;

// What stands for a name in a text of a kernel: "args[4] pointer to operand 0" and the pointers loaded from there.
const aliases_of = (text, names) => {
  const found = new Map(), { operands = [], results = [] } = names;
  const add = (alias, name) => { if (name) found.set(alias, name); };
  operands.forEach((name, k) => add(`operand ${k}`, name));
  results.forEach((name, k) => add(`result ${k}`, name));
  for (const [, slot, kind, index] of text.matchAll(/args\[(\d+)\] (?:[a-z ]*?)(operand|result) (\d+)/g)) {
    const name = (kind === "operand" ? operands : results)[index], offset = 8 * slot;
    add(`args[${slot}]`, name);
    add(offset ? `[args+${offset}]` : "[args]", name);
    add(offset ? `[rdi+${offset}]` : "[rdi]", name);
  }
  for (const [, register, slot] of text.matchAll(/^\s*(p\d+) = (args\[\d+\])/gm)) add(register, found.get(slot));
  for (const [, register, slot] of text.matchAll(/(%rd\d+), (\[args(?:\+\d+)?\])/g)) add(register, found.get(slot));
  return found;
};

export class Links {
  #texts = new Map();  // element → { text, aliases }
  #current;

  // `names`: of operands and results in their order, where the text is a kernel's.
  watch(element, names = {}) {
    const text = element.textContent;
    this.#texts.set(element, { text, aliases: aliases_of(text, names) });
    this.#light(element);
  }
  forget(element) {
    mark(element, "same", []);
    mark(element, "gradient", []);
    this.#texts.delete(element);
  }

  // The name that stands at an offset of an element's text.
  name_at(element, offset) {
    const known = this.#texts.get(element);
    if (!known || offset < 0) return undefined;
    const begin = Math.max(0, known.text.lastIndexOf("\n", offset - 1) + 1);
    const end = known.text.indexOf("\n", offset) < 0 ? known.text.length : known.text.indexOf("\n", offset);
    for (const { 0: word, index } of known.text.slice(begin, end).matchAll(word_pattern))
      if (begin + index <= offset && offset < begin + index + word.length) return known.aliases.get(word) ?? word;
    return undefined;
  }

  show(name) {
    if (name === this.#current) return;
    this.#current = name;
    for (const element of this.#texts.keys()) this.#light(element);
  }
  #light(element) {
    const { text, aliases } = this.#texts.get(element), name = this.#current, same = [], gradient = [];
    if (name && element.isConnected)
      for (const { 0: word, index } of text.matchAll(word_pattern)) {
        const stands = aliases.get(word) ?? word, place = [index, index + word.length];
        if (stands === name) same.push(place);
        else if (stands === `d${name}` || name === `d${stands}`) gradient.push(place);
        if (same.length + gradient.length > 5000) break;
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

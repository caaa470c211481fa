// A textarea over its own coloured text, with line numbers and the place of a fault underlined.
import { colour, mark } from "./highlight.mjs";

export class Editor {
  constructor({ area, under, gutter }, changed) {
    Object.assign(this, { area, under, gutter, changed });
    area.addEventListener("input", () => this.#refresh(true));
    area.addEventListener("scroll", () => this.#follow());
    area.addEventListener("keydown", (event) => this.#key(event));
    this.#refresh(false);
  }
  get text() { return this.area.value; }
  set text(value) {
    this.area.value = value;
    this.area.setSelectionRange(0, 0);
    this.area.scrollTo(0, 0);
    this.#refresh(true);
  }

  #follow() {
    this.under.scrollTo(this.area.scrollLeft, this.area.scrollTop);
    this.gutter.scrollTo(0, this.area.scrollTop);
  }
  #refresh(tell) {
    const { text } = this, lines = text.split("\n").length;
    this.under.textContent = text + "\n";  // its last line as high as the textarea's
    if (this.lines !== lines) {
      this.lines = lines;
      this.gutter.textContent = Array.from({ length: lines }, (_, k) => k + 1).join("\n") + "\n";
    }
    mark(this.under, "fault", []);
    colour(this.under, text);
    this.#follow();
    if (tell) this.changed(text);
  }
  // Enter keeps the indentation, and a signature's next line begins one. Tab is the page's, for the keyboard.
  #key(event) {
    if (event.key !== "Enter" || event.isComposing || event.ctrlKey || event.metaKey || event.altKey) return;
    const { selectionStart, value } = this.area, line = value.slice(value.lastIndexOf("\n", selectionStart - 1) + 1, selectionStart);
    const indent = /->/.test(line) ? "    " : line.match(/^ */)[0];
    if (!indent) return;
    event.preventDefault();
    this.area.setRangeText("\n" + indent, selectionStart, this.area.selectionEnd, "end");
    this.area.dispatchEvent(new Event("input"));
  }

  #offset(line, column) {  // both from 1, columns in characters
    const lines = this.text.split("\n").slice(0, line), last = lines.pop() ?? "";
    return lines.reduce((sum, each) => sum + each.length + 1, 0) + [...last].slice(0, column - 1).join("").length;
  }
  show_fault(line, column) {
    const from = this.#offset(line, column), word = this.text.slice(from).match(/^(?:\w+|[^\s\w])/)?.[0].length ?? 0;
    mark(this.under, "fault", word ? [[from, from + word]] : [[Math.max(from - 1, 0), Math.max(from, 1)]]);
  }
  go_to(line, column) {
    const at = this.#offset(line, column);
    this.area.focus();
    this.area.setSelectionRange(at, at);
  }
  // Where in the text a point of the screen lies; the letters are all as wide.
  offset_at(x, y) {
    const box = this.under.getBoundingClientRect(), style = getComputedStyle(this.under);
    this.letter ??= (() => {
      const probe = document.createElement("span");
      probe.textContent = "x".repeat(100);
      this.under.append(probe);
      const width = probe.getBoundingClientRect().width / 100;
      probe.remove();
      return width;
    })();
    const row = Math.floor((y - box.top - parseFloat(style.paddingTop) + this.area.scrollTop) / parseFloat(style.lineHeight));
    const column = Math.floor((x - box.left - parseFloat(style.paddingLeft) + this.area.scrollLeft) / this.letter);
    const lines = this.text.split("\n");
    if (row < 0 || row >= lines.length || column < 0 || column >= lines[row].length) return -1;
    return lines.slice(0, row).reduce((sum, each) => sum + each.length + 1, 0) + column;
  }
}

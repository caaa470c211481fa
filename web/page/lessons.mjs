// Views that teach: the tree of a row sum, what fma changes, and puzzles that a digest judges.
import { make, table } from "./dom.mjs";
import { colour } from "./highlight.mjs";
import { puzzles } from "./puzzles.mjs";
import { svg } from "./plots.mjs";

const stripe = 256;  // columns, by the numeric contract

// The tree over stripes: neighbours in pairs, level by level; a last one without a neighbour moves up as it is.
export const pair_tree = (count) => {
  const levels = [Array.from({ length: count }, (_, k) => ({ from: k, to: k, children: [] }))];
  while (levels.at(-1).length > 1) {
    const below = levels.at(-1), level = [];
    for (let k = 0; k < below.length; k += 2) {
      const children = below.slice(k, k + 2);
      level.push({ from: children[0].from, to: children.at(-1).to, children });
    }
    levels.push(level);
  }
  return levels;
};

// A program's text in its own colours.
const listing = (text) => {
  const element = make("pre", { class: "text", tabindex: 0 }, text);
  colour(element, text);
  return element;
};

// What happens inside a stripe: each line the values that are left, each added to the one under the darker half. `absent`:
// columns that a row's last stripe lacks.
const halvings = (absent) => {
  const width = 900, left = 84, rise = 18, lines = Math.log2(stripe) + 1, step = (width - left) / stripe;
  const root = svg("svg", { viewBox: `0 0 ${width} ${lines * rise}`, role: "img", "aria-label": `Inside a stripe: ${stripe} values, then halves down to one` });
  for (let k = 0, count = stripe; k < lines; ++k, count /= 2) {
    const y = k * rise + 2, half = count / 2;
    root.append(svg("text", { x: 0, y: y + 11 }, count > 1 ? `t + (t + ${half})` : "the sum"));
    const bar = (kind, from, to) => { if (to > from) root.append(svg("rect", { class: kind, x: left + from * step, y, width: Math.max((to - from) * step - 1, 2), height: rise - 5 })); };
    if (count === 1) bar("low", 0, 1);
    else bar("low", 0, half), bar("high", half, count);
    if (k === 0) bar("absent", stripe - absent, stripe);
  }
  return root;
};

const tree_view = {
  id: "tree", title: "Sum tree", lasting: true,
  build(panel, page) {
    this.page = page;
    this.box = make("div", { class: "scroll" });
    this.inside = make("div", { class: "scroll" });
    this.said = make("p", { "aria-live": "polite" });
    panel.append(make("div", { class: "work" }, make("p", {},
      `A row's sum has one order, whatever the machine. Columns are cut into stripes of ${stripe}; inside a stripe column t is added to t + 128, then to t + 64, down to 1; the stripes' sums are added in neighbouring pairs.`,
      " For the number of columns above this is the tree over stripes: point at one, or walk with the arrow keys."), this.box, this.said, this.inside));
  },
  update() {
    const columns = Math.max(1, this.page.columns), all = Math.ceil(columns / stripe), count = Math.min(all, 32);
    if (this.drawn === columns) return;
    this.drawn = columns;
    const levels = pair_tree(count), width = 900, step = width / count, rise = 46, height = levels.length * rise + 20;
    const root = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": `Tree of ${count} stripes` });
    root.style.minWidth = `${Math.min(count * 30, width)}px`;  // a finger's place a stripe; beyond that it scrolls
    const places = new Map(), at_y = (level) => height - 50 - level * rise;
    levels.forEach((nodes, level) => nodes.forEach((node) => {
      const kin = node.children.map((child) => places.get(child).x);
      const x = level === 0 ? (node.from + 0.5) * step : (Math.min(...kin) + Math.max(...kin)) / 2;
      const edges = node.children.map((child) => {
        const { x: below, y } = places.get(child), edge = svg("path", { class: "edge", d: `M${below},${y}L${x},${at_y(level)}` });
        edge.node = child;
        root.append(edge);
        return edge;
      });
      places.set(node, { x, y: at_y(level), edges, node });
    }));
    const dots = [];
    for (const [node, { x, y }] of places) {
      const leaf = node.from === node.to && !node.children.length;
      const dot = leaf ? svg("rect", { class: "node", x: x - Math.min(step / 2 - 2, 16), y: y - 9, width: Math.min(step - 4, 32), height: 22, rx: 3, tabindex: node.from === 0 ? 0 : -1, role: "button", "aria-label": `Stripe ${node.from}: columns ${node.from * stripe} to ${Math.min(columns, (node.from + 1) * stripe) - 1}` })
        : svg("circle", { class: "node", cx: x, cy: y, r: 6 });
      dot.node = node;
      dots.push(dot);
      root.append(dot);
      if (leaf && (count <= 16 || node.from % 4 === 0)) root.append(svg("text", { x, y: y + 30, "text-anchor": "middle" }, String(node.from * stripe)));
      if (leaf) for (const kind of ["pointerenter", "focus"]) dot.addEventListener(kind, () => this.light(node, levels, dots, root, columns));
    }
    const leaves = dots.filter((dot) => dot.getAttribute("role"));
    root.addEventListener("keydown", ({ key }) => {
      const k = leaves.indexOf(document.activeElement), next = leaves[k + ({ ArrowRight: 1, ArrowLeft: -1 }[key] ?? NaN)];
      next?.focus();
    });
    this.box.replaceChildren(root);
    this.inside.replaceChildren(halvings(0));
    this.said.textContent = all > count ? `The first ${count} of ${all} stripes are drawn.` : `${count} stripe${count > 1 ? "s" : ""}, ${levels.length - 1} levels of pairs above them.`;
  },
  light(leaf, levels, dots, root, columns) {
    const holds = (node) => node.from <= leaf.from && leaf.from <= node.to;
    for (const dot of dots) dot.classList.toggle("on", holds(dot.node));
    for (const edge of root.querySelectorAll(".edge")) edge.classList.toggle("on", holds(edge.node));
    const from = leaf.from * stripe, to = Math.min(columns, from + stripe), partners = [];
    this.inside.replaceChildren(halvings(stripe - to + from));
    levels.slice(1).forEach((nodes) => {
      const node = nodes.find(holds), [left, right] = node.children;
      const other = right && (holds(left) ? right : left);
      if (other) partners.push(other.from === other.to ? `stripe ${other.from}` : `stripes ${other.from}–${other.to}`);
    });
    this.said.textContent = `Stripe ${leaf.from}: columns ${from} to ${to - 1}${to - from < stripe ? `, the ${stripe - to + from} absent ones count as −0` : ""}. ` +
      `Inside, eight halvings: ${stripe} → 128 → 64 → … → 1. ${partners.length ? `Then it meets ${partners.join(", then ")}.` : "It is the whole sum."}`;
  },
};

const pair = [
  ["product, then sum", "two_roundings(a[i,j], b[i,j], c[i,j]) -> (y[i,j])\n    y = a * b + c\n"],
  ["fma", "one_rounding(a[i,j], b[i,j], c[i,j]) -> (y[i,j])\n    y = fma(a, b, c)\n"],
];
// Instructions of floating-point products and sums in a target's code: nothing else is said of it here.
const arithmetic = /^\s*(v?(?:mul|add|fn?m(?:add|sub)\d*)p[sd]|(?:mul|add|fma)\.rn\.f\d+|f(?:mul|add|mla|madd)\b|f\d+(?:x\d)?\.(?:mul|add|sub|relaxed_madd))/gm;
const counted = (code) => {
  const found = new Map();
  for (const [, name] of code.matchAll(arithmetic)) found.set(name, (found.get(name) ?? 0) + 1);
  return [...found].map(([name, times]) => `${times} ${name}`).join(", ");
};

const fma_view = {
  id: "fma", title: "fma", lasting: true,
  build(panel, page) {
    this.page = page;
    this.out = make("div", { class: "work" });
    panel.append(make("div", { class: "work" }, make("p", {},
      "A compiler that fuses a product and a sum on one machine and not on another gives other bits there. Here the program says which it wants: a * b + c rounds twice on every target, fma(a, b, c) once."),
      make("div", { class: "columns" }, pair.map(([title, text]) => make("div", {}, make("h3", {}, title), listing(text))))), this.out);
  },
  async update() {
    if (this.drawn) return;
    this.drawn = true;
    const { targets } = this.page.tables, code_of = (target, arch) => Promise.all(pair.map(([, text]) =>
      this.page.background.call("view", { text, line: `${text.split("(")[0]} 4096x4096`, target, arch })));
    const codes = await Promise.all(targets.flatMap(({ name, commonArchs }) => commonArchs.map(async (arch) => [`${name} ${arch}`, ...(await code_of(name, arch)).map(counted)])));
    const same_code = new Map();  // architectures of one target whose instructions are the same
    for (const [where, ...words] of codes) same_code.set(words.join("|"), [...(same_code.get(words.join("|")) ?? []), where]);
    const runs = await Promise.all(pair.map(([, text]) => this.page.background.call("reference", { text, line: `${text.split("(")[0]} 1x4096` })));
    const [twice, once] = runs.map(({ results }) => results[0].values), differing = [...twice.keys()].filter((k) => twice[k] !== once[k]);
    const farthest = differing.reduce((most, k) => (Math.abs(twice[k] - once[k]) / Math.abs(once[k]) > Math.abs(twice[most] - once[most]) / Math.abs(once[most]) ? k : most), differing[0]);
    this.out.replaceChildren(
      make("p", {}, make("strong", {}, `${differing.length} of ${twice.length}`), " samples differ. Where a · b and c nearly cancel, the difference is large: entry ",
        make("code", {}, String(farthest)), " is ", make("code", {}, String(twice[farthest])), " with two roundings, and ", make("code", {}, String(once[farthest])), " with one."),
      table(["Instructions for", ...pair.map(([title]) => title)],
        [...same_code].map(([words, where]) => [where.join(", "), ...words.split("|").map((each) => make("code", {}, each))])),
      make("p", { class: "dim" }, "Where a target has no instruction for fma, it is made of others that give the same bits, and there are more of them."),
      make("p", {}, "Digests: ", make("code", {}, runs[0].digest), " and ", make("code", {}, runs[1].digest), "."),
      make("div", { class: "row" }, pair.map(([title, text]) => make("button", { type: "button", onclick: () => this.page.load(text, { rows: 1, columns: 4096, settings: "" }) }, `Edit “${title}”`))));
  },
};

const puzzles_view = {
  id: "puzzles", title: "Puzzles", lasting: true,
  build(panel, page) {
    this.page = page;
    const cards = puzzles.map((puzzle) => {
      const said = make("p", { "aria-live": "polite" });
      const card = make("article", { class: "puzzle" }, make("h3", {}, puzzle.title), make("p", {}, puzzle.text), listing(puzzle.start),
        make("div", { class: "row" },
          make("button", { type: "button", onclick: () => page.load(puzzle.start, { rows: 64, columns: 4096, type: "f32", direction: "forward", settings: "" }) }, "Begin"),
          make("button", { type: "button", class: "primary", onclick: () => this.judge(puzzle, card, said) }, "Judge what stands in the editor")), said);
      return card;
    });
    panel.append(make("div", { class: "work" }, make("p", {}, "A digest is the judge: it is that of the right results, to the last bit, so the order of operations counts. Each asks for what it names and nothing more."), ...cards));
  },
  async judge({ lines, ranges = "" }, card, said) {
    const { page } = this;
    if (page.fault) return void (said.textContent = "The program in the editor is not one yet.");
    try {
      let right = 0;
      for (const { line, digest } of lines) {
        const found = await page.background.call("reference", { text: ranges + page.text, line: `${page.found.forward.name} ${line}` });
        if (found.digest === digest) ++right;
      }
      card.classList.toggle("solved", right === lines.length);
      said.className = right === lines.length ? "fine" : "wrong";
      said.textContent = right === lines.length ? "Solved: every bit is right." : right ? `${right} of ${lines.length} problems have the right bits.` : "Other bits.";
    } catch ({ reason }) {
      said.className = "wrong";
      said.textContent = reason;
    }
  },
};

export const lessons = [tree_view, fma_view, puzzles_view];

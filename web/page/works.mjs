// Views that do something: run the program, measure it, compare functions with the oracle, check gradients.
import { xxh3_128 } from "./js/digest.mjs";
import { figure, make, seconds, table } from "./dom.mjs";
import { read_npy } from "./npy.mjs";
import { plot } from "./plots.mjs";

const failure = (fault) => make("p", { class: "wrong", role: "alert" }, fault.reason ?? String(fault));

// A button that runs a task in the background thread, can be stopped, and says how far it is.
const worker_button = (title, page, work) => {
  const state = make("output", { class: "dim progress", "aria-live": "polite" });
  let running = false;
  const button = make("button", {
    type: "button", class: "primary work-button",
    async onclick() {
      if (running) return page.background.cancel();
      running = true;
      button.textContent = "Stop";
      try {
        await work((progress) => { state.textContent = typeof progress === "number" ? `${Math.round(100 * progress)} %` : String(progress); });
        state.textContent = "";
      } catch (fault) {
        state.textContent = fault.cancelled ? "stopped" : "";
        if (!fault.cancelled) throw fault;
      } finally {
        running = false;
        button.textContent = title;
      }
    },
  }, title);
  return { button, state };
};

let recorded;  // by problem line, written down on machines; of one program and version of the contract
// [[machine, digest or nothing]] of an operator's own problem; undefined for every other.
const recorded_of = async (line, { forward }, tables) => {
  recorded ??= fetch("digests.json").then((response) => (response.ok ? response.json() : {})).catch(() => ({}));
  const { contract, problems: all } = await recorded, found = all?.[line];
  if (contract !== tables.contract || found?.program !== xxh3_128(new TextEncoder().encode(forward.text))) return undefined;
  const machines = new Set(Object.values(all).flatMap(({ digests }) => Object.keys(digests)));
  return [...machines].sort().map((machine) => [machine, found.digests[machine]]);
};

const same = (is) => make("span", { class: is ? "fine" : "wrong" }, is ? "same bits" : "OTHER BITS");

const run_view = {
  id: "run", title: "Run", lasting: true,
  build(panel, page) {
    this.page = page;
    this.data = {};
    this.out = make("div", { class: "work", "aria-live": "polite" });
    this.files = make("span", { class: "dim" });
    this.samples = make("button", { type: "button", hidden: true, onclick: () => { this.data = {}; input.value = ""; this.list(); } }, "Samples again");
    const input = make("input", { type: "file", accept: ".npy", multiple: true, "aria-label": "Arrays as .npy files", onchange: () => this.take(input.files) });
    const drop = make("div", { class: "drop" }, make("label", {}, "Data: samples, or drop .npy files named after operands (x.npy, gamma.npy): ", input), " ", this.files, " ", this.samples);
    for (const kind of ["dragover", "dragleave", "drop"])
      panel.addEventListener(kind, (event) => {
        event.preventDefault();
        drop.classList.toggle("over", kind === "dragover");
        if (kind === "drop") this.take(event.dataTransfer.files);
      });
    const { button, state } = worker_button("Run it", page, (report) => this.run(report));
    this.button = button;
    const tries = make("button", { type: "button", onclick: () => this.as_recorded() }, "The operator's own problem");
    panel.append(make("div", { class: "work" }, make("p", { class: "dim" },
      "Runs the emitted module in a worker, on the problem above, and compares its bits with the reference: the numeric contract, executed literally. The same problem gives the same digest on every machine."),
      make("div", { class: "row" }, button, tries, state), drop), this.out);
  },
  has_whole() { return this.page.found.forward.parameters.some(({ kind, spread }) => kind === "operand" && spread === "[i,j]"); },
  list() {
    this.samples.hidden = !Object.keys(this.data).length;
    this.files.textContent = Object.entries(this.data).map(([name, { shape }]) => `${name} ${shape.join("×")}`).join(", ");
  },
  async take(files) {
    try {
      for (const file of files) {
        const name = file.name.replace(/\.npy$/, ""), found = read_npy(await file.arrayBuffer(), file.name);
        const parameter = this.page.found.forward.parameters.find((each) => each.name === name) ?? this.page.found.backward?.parameters.find((each) => each.name === name);
        if (!parameter) throw new Error(`${file.name}: the program has no operand '${name}'`);
        this.data[name] = found;
        const columns = found.shape.at(-1), rows = found.array.length / columns, is_leading = name === this.page.found.forward.leading;
        if (parameter.spread === "[i,j]" && found.shape.length) this.page.set_problem({ rows, columns, type: found.type });
        else if (is_leading) this.page.set_problem({ columns, type: found.type });  // a table: [token, j]
        else if (parameter.spread === "[i]" && !this.has_whole()) this.page.set_problem({ rows: found.array.length });
      }
      this.list();
    } catch (error) {
      this.out.replaceChildren(failure(error));
    }
  },
  async as_recorded() {
    const { tries, forward } = this.page.found, [shape, ...words] = (tries[0] ?? "7x257").split(/\s+/), [rows, columns] = shape.split("x");
    const first = forward.leading;
    const type = words.find((word) => word.startsWith(`${first}=`))?.split("=")[1] ?? "f32";
    this.page.set_problem({ rows, columns, type, settings: words.filter((word) => !word.startsWith(`${first}=`)).join(" ") });
    this.button.click();
  },
  async run(report) {
    const { page, out } = this, data = Object.fromEntries(Object.entries(this.data).map(([name, { array }]) => [name, array]));
    try {
      const found = await page.background.call("run", { text: page.text, line: page.line(), data }, report);
      const first = page.found.forward.leading;
      const known = Object.keys(data).length ? undefined : await recorded_of(found.line.replace(` ${first}=f32`, ""), page.found, page.tables);
      out.replaceChildren(...this.report(found, known));
    } catch (fault) {
      out.replaceChildren(failure(fault));
      throw fault.cancelled ? fault : { cancelled: true };
    }
  },
  report({ line, runs, timing, compiled, config, size, oracle, without_oracle, results }, known) {
    const [reference] = runs;
    const rows = runs.map(({ by, digest, seconds: taken, difference }) =>
      [by, make("code", {}, digest), by === "reference" ? "" : make("span", {}, same(digest === reference.digest), difference ? ` ${difference}` : ""), seconds(taken)]);
    for (const [machine, digest] of known ?? [])
      rows.push([`recorded: ${machine}`, digest ? make("code", {}, digest) : "", digest ? same(digest === reference.digest) : make("span", { class: "dim" }, "not run there yet"), ""]);
    const { bytes, gigabytes, copied } = timing;
    return [
      make("p", {}, make("code", {}, line)),
      table(["Run by", "Digest of the results", "Bits", { title: "Time", number: true }], rows),
      make("p", {}, `${(bytes / 1e6).toFixed(2)} MB read and written at ${gigabytes.toFixed(2)} GB/s; a copy of as many bytes in the module's own memory makes ${copied.toFixed(2)} GB/s: `,
        make("strong", {}, `${((100 * gigabytes) / copied).toFixed(0)} % of a copy`), `. Compiled in ${compiled.toFixed(1)} ms to ${size} bytes; schedule: `, make("code", {}, config), "."),
      make("div", { class: "columns" },
        make("div", {}, make("h3", {}, "Results"), table(["Name", "Type", "Shape", { title: "Least", number: true }, { title: "Most", number: true }, { title: "NaN", number: true }],
          results.map(({ name, type, rows: height, columns, low, high, nans }) => [name, type, `${height}×${columns}`, figure(low ?? ""), figure(high ?? ""), String(nans ?? "")]))),
        make("div", {}, make("h3", {}, "Against the oracle"), oracle
          ? table(["Furthest out", { title: "Error", number: true }, { title: "Bound", number: true }, ""], oracle.map(({ element, error, bound, wrong }) =>
            [make("code", {}, element), Number(error).toExponential(2), Number(bound).toExponential(2), make("span", { class: wrong ? "wrong" : "fine" }, wrong ? `${wrong} outside` : "within")]))
          : make("p", { class: "dim" }, without_oracle))),
    ];
  },
};

const speed_view = {
  id: "speed", title: "Speed", lasting: true,
  build(panel, page) {
    this.out = make("div", { class: "work" });
    const { button, state } = worker_button("Measure", page, async (report) => {
      try {
        const line_of = page.line({ shape: "ROWSxCOLUMNS" });
        const points = await page.background.call("sweep", { text: page.text, line_of }, report);
        this.show(points, line_of);
      } catch (fault) {
        if (!fault.cancelled) this.out.replaceChildren(failure(fault));
        throw { cancelled: true };
      }
    });
    panel.append(make("div", { class: "work" }, make("p", { class: "dim" }, "Bandwidth over the number of columns, beside a copy of as many bytes in the same memory: arrays of about 16 MB, one thread."),
      make("div", { class: "row" }, button, state)), this.out);
  },
  show(points, line_of) {
    const series = [
      { name: "kernel", css: "first", dot: "dot", points: points.map(({ columns, gigabytes }) => [columns, gigabytes]) },
      { name: "copy", css: "second", dot: "dot2", points: points.map(({ columns, copied }) => [columns, copied]) },
    ];
    this.out.replaceChildren(make("div", { class: "columns" },
      plot({ title: `GB/s over columns: ${line_of}`, x_label: "columns", y_label: "GB/s", series, log: true }),
      table([{ title: "Columns", number: true }, { title: "Rows", number: true }, { title: "GB/s", number: true }, { title: "of a copy", number: true }],
        points.map(({ columns, rows, gigabytes, copied }) => [String(columns), String(rows), gigabytes.toFixed(2), `${((100 * gigabytes) / copied).toFixed(0)} %`]))));
  },
};

const accuracy_view = {
  id: "accuracy", title: "Accuracy", lasting: true,
  build(panel, page) {
    this.page = page;
    const usable = page.tables.functions.filter(({ arity }) => arity === 1);
    this.choice = make("select", { "aria-label": "Function", onchange: () => this.draw() }, usable.map(({ name }) => make("option", { value: name, selected: name === "exp" }, name)));
    const number = (label, value) => make("input", { type: "number", step: "any", value, "aria-label": label, onchange: () => this.draw() });
    this.low = number("From", -8);
    this.high = number("To", 8);
    this.out = make("div", { class: "work" });
    panel.append(make("div", { class: "work" }, make("p", { class: "dim" },
      "Every function is one fixed sequence of roundings, the same on every target. Here its f32 result stands against exact mathematics, in units in the last place (a correctly rounded result lies within a half)."),
      make("div", { class: "row" }, this.choice, make("label", { class: "field" }, make("span", {}, "from"), this.low), make("label", { class: "field" }, make("span", {}, "to"), this.high))), this.out);
  },
  update() { if (!this.drawn) return this.draw(); },
  async draw() {
    this.drawn = true;
    const { page, out } = this, name = this.choice.value, facts = page.tables.functions.find((each) => each.name === name);
    try {
      const { points, largest } = await page.background.call("accuracy", { call: `${name}(x)`, low: Number(this.low.value), high: Number(this.high.value) });
      out.replaceChildren(make("p", {}, make("code", {}, `${name}(x) = ${facts.formula}`), `; largest error here ${largest.toFixed(3)} ulp; the contract promises ${figure(facts.bound)} ${facts.unit}. Domain: ${facts.domain || "all numbers"}.`),
        plot({ title: `Error of ${name} in ulp`, x_label: "x", y_label: "error, ulp", series: [{ name, css: "first", points }], dots: true, symmetric: true, bounds: facts.unit === "ulp" && largest <= facts.bound ? [facts.bound, -facts.bound] : [] }));
    } catch (fault) {
      if (!fault.cancelled) out.replaceChildren(failure(fault));
    }
  },
};

const gradient_view = {
  id: "gradients", title: "Gradients", lasting: true,
  build(panel, page) {
    this.out = make("div", { class: "work", "aria-live": "polite" });
    const { button, state } = worker_button("Check gradients", page, async (report) => {
      try {
        const needed = page.found.forward.parameters.some(({ kind, optional }) => kind === "constant" && !optional);
        const shape = needed ? { rows: page.rows, columns: Math.min(page.columns, 512) } : {};
        this.show(await page.background.call("gradient", { text: page.text, settings: page.settings, ...shape }, report));
      } catch (fault) {
        if (!fault.cancelled) this.out.replaceChildren(failure(fault));
        throw { cancelled: true };
      }
    });
    panel.append(make("div", { class: "work" }, make("p", { class: "dim" },
      "The derived backward in f64, beside central differences of the program itself: every result weighted at random, operands moved one entry at a time."),
      make("div", { class: "row" }, button, state)), this.out);
  },
  show(list) {
    if (!list.length) return this.out.replaceChildren(make("p", {}, "Nothing here has a gradient."));
    this.out.replaceChildren(table(["Gradient", { title: "Entries checked", number: true }, { title: "Largest difference, relative", number: true }, ""],
      list.map(({ name, checked, worst, fine, stopped }) => [make("code", {}, name), String(checked), fine || !stopped ? worst.toExponential(2) : "",
        fine ? make("span", { class: "fine" }, "agrees")
          : stopped ? make("span", { class: "dim" }, `not compared: the program has ${stopped}, through which gradients do not follow its slope`)
            : make("span", { class: "wrong" }, "differs (a kink, or a fault)")])));
  },
};

export const work_views = [run_view, speed_view, accuracy_view, gradient_view];

// Views that are texts: the program after a stage of compilation, and the code of a target. Which there are, the compiler's
// tables say.
import { make, save } from "./dom.mjs";
import { colour } from "./highlight.mjs";

// Shows the newest answer only; what a later request has overtaken is dropped.
const latest = () => {
  let turn = 0;
  return async (work, show, failed) => {
    const mine = ++turn;
    try {
      const value = await work();
      if (mine === turn) show(value);
    } catch (fault) {
      if (mine === turn && !fault.cancelled) failed(fault);
    }
  };
};
const put = (page, pre, text, names) => {
  if (pre.textContent !== text) {
    const { scrollTop } = pre;
    pre.textContent = text;
    pre.scrollTop = scrollTop;
  }
  page.links.watch(pre, names);
};
const arch_choice = ({ commonArchs, defaultArch }, label, changed) => {
  const select = make("select", { "aria-label": label, onchange: changed }, commonArchs.map((arch) => make("option", { value: arch, selected: arch === defaultArch }, arch)));
  return select;
};

// Of every target's architectures, one.
const machine_choice = ({ tables }, changed) => make("select", { "aria-label": "Target", onchange: changed },
  tables.targets.flatMap(({ name, commonArchs }) => commonArchs.map((arch) => make("option", { value: `${name} ${arch}` }, `${name} ${arch}`))));

export const stage_view = ({ name, summary, ofTarget }) => {
  const newest = latest();
  return {
    id: name, title: name[0].toUpperCase() + name.slice(1),
    build(panel, page) {
      this.page = page;
      this.pre = make("pre", { class: "text", tabindex: 0, "aria-label": `After ${name}` });
      const about = make("div", { class: "about" }, `After “${name}”: ${summary}.`);
      if (ofTarget) {
        this.target = machine_choice(page, () => this.update());
        about.append(this.target);
      }
      panel.append(about, this.pre);
    },
    update() {
      const { page, pre } = this, [target, arch] = this.target?.value.split(" ") ?? [];
      return newest(() => page.compile.call(ofTarget ? "kernel" : "view", { text: page.text, line: page.line(), stage: name, target, arch }),
        (found) => {
          put(page, pre, found.text ?? found, found.names);
          if (!ofTarget) colour(pre, pre.textContent);
        },
        ({ reason }) => put(page, pre, `# ${reason}`));
    },
  };
};

// The decisions of the schedule one by one: the kernels that those up to the chosen pass make.
export const schedule_view = {
  id: "schedule", title: "Schedule",
  build(panel, page) {
    this.page = page;
    this.newest = latest();
    this.target = machine_choice(page, () => this.update());
    this.config = make("code");
    this.buttons = page.tables.passes.map(({ name, summary }) =>
      make("button", { type: "button", title: summary, "aria-pressed": "false", onclick: () => this.choose(name) }, name));
    this.said = make("span", { "aria-live": "polite" });
    this.pre = make("pre", { class: "text", tabindex: 0, "aria-label": "Kernels after a pass of the schedule" });
    panel.append(make("div", { class: "about" }, this.target, make("span", {}, "The schedule chosen: ", this.config)),
      make("div", { class: "about" }, make("span", { class: "row", role: "group", "aria-label": "Passes of the schedule" }, this.buttons), this.said), this.pre);
    this.chosen = page.tables.passes.at(-1).name;
  },
  choose(name) {
    this.chosen = name;
    this.show();
  },
  update() {
    const { page, config, pre } = this, [target, arch] = this.target.value.split(" ");
    return this.newest(() => page.compile.call("schedule", { text: page.text, line: page.line(), target, arch }),
      (found) => {
        this.found = found;
        config.textContent = found.config;
        this.show();
      },
      ({ reason }) => {
        this.found = undefined;
        config.textContent = "";
        put(page, pre, `# ${reason}`);
      });
  },
  // A pass that changes nothing here says so, and its button is dim.
  show() {
    const { page, buttons, found, chosen } = this, { passes } = page.tables;
    const changes = (k) => !found || k === 0 || found.passes[k] !== found.passes[k - 1];
    buttons.forEach((button, k) => {
      button.setAttribute("aria-pressed", String(passes[k].name === chosen));
      button.classList.toggle("dim", !changes(k));
    });
    const at = passes.findIndex(({ name }) => name === chosen);
    this.said.textContent = `After “${chosen}”: ${passes[at].summary}.${changes(at) ? "" : " This changes nothing here."}`;
    if (found) put(page, this.pre, found.passes[at], found.names);
  },
};

export const code_view = ({ name, archs, ...target }) => {
  const newest = latest();
  return {
    id: name, title: name,
    build(panel, page) {
      this.page = page;
      this.arch = arch_choice(target, `Architecture of ${name}`, () => this.update());
      this.facts = make("span");
      this.button = make("button", { type: "button", onclick: () => this.download() }, "Download");
      this.pre = make("pre", { class: "text", tabindex: 0, "aria-label": `Code for ${name}` });
      panel.append(make("div", { class: "about" }, this.arch, this.button, this.facts), this.pre);
    },
    update() {
      const { page, pre, facts, arch } = this;
      return newest(() => page.compile.call("kernel", { text: page.text, line: page.line(), target: name, arch: arch.value }),
        ({ text, names, size, config }) => {
          put(page, pre, text, names);
          facts.textContent = `${size} bytes; schedule: ${config}`;
        },
        ({ reason }) => {
          put(page, pre, `# ${reason}`);
          facts.textContent = archs;
        });
    },
    async download() {
      const { page } = this, extension = { text: name, code: "bin", module: "wasm" }[target.form];
      const { bytes, program } = await page.compile.call("emission", { text: page.text, line: page.line(), target: name, arch: this.arch.value });
      save(bytes, `${program}.${extension}`);
    },
  };
};

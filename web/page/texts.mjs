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

export const stage_view = ({ name, summary, ofTarget }) => {
  const newest = latest();
  return {
    id: name, title: name[0].toUpperCase() + name.slice(1),
    build(panel, page) {
      this.page = page;
      this.pre = make("pre", { class: "text", tabindex: 0, "aria-label": `After ${name}` });
      const about = make("div", { class: "about" }, `After “${name}”: ${summary}.`);
      if (ofTarget) {
        const { targets } = page.tables;
        this.target = make("select", { "aria-label": "Target", onchange: () => this.update() },
          targets.flatMap(({ name: target, commonArchs }) => commonArchs.map((arch) => make("option", { value: `${target} ${arch}` }, `${target} ${arch}`))));
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

// The page: an editor, the derived backward, and views of what the program becomes. All compiling and running happens in two
// workers, one that answers while one types and one for what takes longer.
import { find, make } from "./dom.mjs";
import { Editor } from "./editor.mjs";
import { colour, set_keywords } from "./highlight.mjs";
import { lessons } from "./lessons.mjs";
import { Links, caret_at } from "./link.mjs";
import { arranged, examples } from "./programs.mjs";
import { link_of, state_of } from "./share.mjs";
import { Thread } from "./thread.mjs";
import { code_view, schedule_view, stage_view } from "./texts.mjs";
import { work_views } from "./works.mjs";

const compile = new Thread(), background = new Thread(), links = new Links();
const fields = Object.fromEntries(["rows", "columns", "type", "direction", "settings"].map((name) => [name, find(name)]));
const page = {
  compile, background, links, tables: undefined,
  found: undefined,  // of the last program that could be read
  text: "", fault: undefined,
  // The problem line of the fields, with other rows and columns where those are given.
  line({ shape = `${fields.rows.value}x${fields.columns.value}`, direction = fields.direction.value } = {}) {
    const { forward } = this.found, first = forward.leading;
    const words = [forward.name, shape];
    if (first) words.push(`${first}=${fields.type.value}`);
    words.push(...fields.settings.value.split(/\s+/).filter(Boolean));
    if (direction === "backward") words.push("backward");
    return words.join(" ");
  },
  get settings() { return fields.settings.value; },
  get rows() { return Number(fields.rows.value); },
  get columns() { return Number(fields.columns.value); },
  // Links are written by anyone: names of no field, and values that a choice does not have, are passed over.
  set_problem(values) {
    for (const [name, field] of Object.entries(fields)) {
      const value = values[name], choices = [...(field.options ?? [])];
      if (value !== undefined && (!choices.length || choices.some((each) => each.value === String(value)))) field.value = value;
    }
    this.problem_changed();
  },
  problem_changed: () => refresh_view(),
  load(text, values = {}) {
    editor.text = text;
    this.set_problem(values);
  },
};

const megabytes = (bytes) => (bytes / 1e6).toFixed(2);
for (const thread of [compile, background])
  thread.answered = () => { find("state").title = `Memory: ${megabytes(compile.memory)} MB to compile, ${megabytes(background.memory)} MB to run`; };

// The program, while one types.
let turn = 0, waiting;
const read_program = async () => {
  const mine = ++turn, { text } = editor, began = performance.now();
  let found, fault;
  try {
    found = await compile.call("program", { text });
  } catch (error) {
    fault = error;
  }
  if (mine !== turn) return;
  page.text = text;
  page.fault = fault;
  page.found = found ?? page.found;
  show_fault(fault, found?.forward.advice ?? []);
  find("backward").classList.toggle("stale", Boolean(fault));
  find("state").textContent = fault ? "not compiled" : `compiled in ${(performance.now() - began).toFixed(0)} ms`;
  if (found) {
    const { backward, noBackward } = found;
    const place = find("backward");
    place.textContent = backward?.text ?? `# ${noBackward}`;
    colour(place, place.textContent);
    links.watch(place);
    [...fields.direction.options].find((each) => each.value === "backward").disabled = !backward;
    if (!backward && fields.direction.value === "backward") fields.direction.value = "forward";
  }
  links.watch(editor.under);
  await refresh_view();
};
const show_fault = (fault, advice) => {
  const place = find("fault");
  place.classList.toggle("advice", !fault);
  editor.area.setAttribute("aria-invalid", String(Boolean(fault)));
  if (!fault) return place.replaceChildren(advice.join(" "));
  const { line, column, reason } = fault;
  if (line === undefined) return place.replaceChildren(reason);
  editor.show_fault(line, column);
  place.replaceChildren(make("button", { type: "button", "aria-label": `Go to line ${line}, column ${column}`, onclick: () => editor.go_to(line, column) }, `${line}:${column}`), reason);
};
const named = new Map();  // the menu's programs, by text
const editor = new Editor({ area: find("editor"), under: find("under"), gutter: find("gutter") }, (text) => {
  find("menu").value = named.get(text) ?? "";
  clearTimeout(waiting);
  waiting = setTimeout(read_program, 40);
});

// Views in tabs. A view is { title, build(panel) } and gets update() whenever what it shows may have changed; one that is
// `lasting` shows more than the program's text makes of it.
const views = [];
let active;
const refresh_view = async () => {
  if (!page.found || !active) return;
  find("line").textContent = page.line();
  active.panel.classList.toggle("stale", Boolean(page.fault) && !active.lasting);
  if (!page.fault || active.lasting) await active.update?.();
};
const choose = (view, focus = false) => {
  for (const each of views) {
    const is = each === view;
    each.tab.setAttribute("aria-selected", String(is));
    each.tab.tabIndex = is ? 0 : -1;
    each.panel.hidden = !is;
  }
  active?.left?.();
  active = view;
  view.tab.scrollIntoView({ block: "nearest", inline: "nearest" });
  if (focus) view.tab.focus({ preventScroll: true });
  refresh_view();
};
const add_view = (view, group) => {
  const { id, title } = view;
  if (views.at(-1)?.group !== group)
    find("tabs").append(make("div", { class: "group", role: "presentation" }, make("span", { class: "caption", "aria-hidden": "true" }, group)));
  view.group = group;
  view.panel = make("div", { class: "panel", role: "tabpanel", id: `panel-${id}`, "aria-labelledby": `tab-${id}`, hidden: true });
  view.tab = make("button", { type: "button", role: "tab", id: `tab-${id}`, "aria-controls": `panel-${id}`, "aria-selected": "false", tabindex: -1, onclick: () => choose(view) }, title);
  find("tabs").lastChild.append(view.tab);
  find("panels").append(view.panel);
  view.build(view.panel, page);
  views.push(view);
};
find("tabs").addEventListener("keydown", ({ key }) => {
  const step = { ArrowRight: 1, ArrowLeft: -1 }[key];
  if (step) choose(views[(views.indexOf(active) + step + views.length) % views.length], true);
  if (key === "Home") choose(views[0], true);
  if (key === "End") choose(views.at(-1), true);
});

const fill_menu = () => {
  const group = (label, list) => make("optgroup", { label }, list.map(([name]) => make("option", { value: name }, name)));
  const operators = page.tables.operators.map(({ name, text }) => [name, arranged(text)]);
  const all = new Map([...operators, ...examples]);
  for (const [name, text] of all) named.set(text, name);
  find("menu").append(make("option", { value: "", disabled: true, hidden: true }, "your own"), group("Operators", operators), group("Examples", examples));
  find("menu").addEventListener("change", () => load_named(find("menu").value));
  const load_named = async (name) => {
    const text = all.get(name), { tries, forward } = await compile.call("program", { text });
    // What the operator cannot do without stands in its first '#: try' line.
    const words = (tries[0] ?? "").split(/\s+/), [rows, columns] = (words[0] ?? "").split("x");
    const first = forward.leading;
    const needed = forward.parameters.some(({ kind, optional }) => kind === "constant" && !optional);
    const settings = words.slice(1).filter((word) => !word.startsWith(`${first}=`) && !word.endsWith("=none")).join(" ");
    page.load(text, { rows: needed ? rows : 64, columns: needed ? columns : 4096, type: "f32", settings });
  };
  return load_named;
};

// Hovering a name, or moving the caret onto one, lights it up everywhere.
const name_under = (event) => {
  if (event.target === editor.area) return links.name_at(editor.under, editor.offset_at(event.clientX, event.clientY));
  const element = event.target.closest?.(".text");
  if (!element) return undefined;
  const caret = caret_at(event.clientX, event.clientY);
  return caret && element.contains(caret.node) ? links.name_at(element, caret.offset) : undefined;
};
let frame;
document.addEventListener("pointermove", (event) => {
  if (event.pointerType === "touch") return;
  cancelAnimationFrame(frame);
  frame = requestAnimationFrame(() => links.show(name_under(event)));
});
document.addEventListener("selectionchange", () => {
  if (document.activeElement === editor.area) links.show(links.name_at(editor.under, editor.area.selectionStart));
});

const set_theme = (theme) => {
  if (theme) document.documentElement.dataset.theme = theme;
};
// A browser may forbid a page to keep anything: the theme then lasts as long as the page.
const kept = (use) => {
  try {
    return use(localStorage);
  } catch {
    return undefined;
  }
};
set_theme(kept((storage) => storage.getItem("theme")));
find("theme").addEventListener("click", () => {
  const dark = document.documentElement.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  set_theme(dark === "dark" ? "light" : "dark");
  kept((storage) => storage.setItem("theme", document.documentElement.dataset.theme));
});
const copy = async (button, text) => {
  const said = button.textContent;
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
  } catch {
    button.textContent = "Not allowed";
  }
  setTimeout(() => { button.textContent = said; }, 1200);
};
find("share").addEventListener("click", async ({ currentTarget }) => {
  const problem = Object.fromEntries(Object.entries(fields).map(([name, field]) => [name, field.value]));
  const address = await link_of({ text: editor.text, ...problem, view: active?.id });
  history.replaceState(null, "", address);
  await copy(currentTarget, address);
});
find("copy-backward").addEventListener("click", ({ currentTarget }) => copy(currentTarget, find("backward").textContent));
find("problem").addEventListener("submit", (event) => event.preventDefault());
for (const field of Object.values(fields)) field.addEventListener("input", () => refresh_view());

// The program, problem and view of the page's link, as it opens or later; false where the link has none.
const restore = async () => {
  const { hash } = location, shared = await state_of(hash);
  if (hash !== location.hash) return restore();
  if (!shared) return false;
  page.load(shared.text, shared);
  choose(views.find(({ id }) => id === shared.view) ?? active ?? views[0]);
  return true;
};
const start = async () => {
  const { tables, ready } = await compile.ready;
  page.tables = tables;
  set_keywords(tables);
  find("state").textContent = `compiler ready in ${ready.toFixed(0)} ms`;
  performance.measure("compiler", { duration: ready, end: performance.now() });
  fields.type.append(...tables.types.map(({ name }) => make("option", { value: name, selected: name === "f32" }, name)));
  for (const stage of tables.stages.slice(1)) {
    if (stage.ofTarget) add_view(schedule_view, "Passes");
    add_view(stage_view(stage), "Passes");
  }
  for (const target of tables.targets) add_view(code_view(target), "Code");
  for (const view of work_views) add_view(view, "Measure");
  for (const view of lessons) add_view(view, "Lessons");
  const load_named = fill_menu();
  addEventListener("hashchange", restore);
  if (!(await restore())) {
    await load_named("rms_norm");
    choose(views.find(({ id }) => id === "expand") ?? views[0]);
  }
  clearTimeout(waiting);
  await read_program();
  document.documentElement.dataset.ready = "true";
  performance.mark("ready");
};
start().catch((error) => { find("state").textContent = error.reason ?? String(error); });

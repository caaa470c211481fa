// Elements by tag, attributes and children; a text becomes a text node, never markup.
export const make = (tag, attributes = {}, ...children) => {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.flat().filter((each) => each !== undefined && each !== false));
  return element;
};
export const find = (id) => document.getElementById(id);

export const table = (heads, rows) => make("div", { class: "scroll" }, make("table", {},
  make("thead", {}, make("tr", {}, heads.map((head) => make("th", { scope: "col", class: head.number ? "number" : undefined }, head.title ?? head)))),
  make("tbody", {}, rows.map((cells) => make("tr", {}, cells.map((cell, k) => make("td", { class: heads[k].number ? "number" : undefined }, cell)))))));

export const seconds = (value) =>
  value === undefined ? "" : value >= 1 ? `${value.toFixed(2)} s` : value >= 1e-3 ? `${(value * 1e3).toFixed(2)} ms` : `${(value * 1e6).toFixed(2)} µs`;
export const figure = (value) => (typeof value === "number" ? String(Number(value.toPrecision(4))) : String(value));

export const save = (bytes, name) => {
  const address = URL.createObjectURL(new Blob([bytes]));
  make("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
};

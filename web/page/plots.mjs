// Small plots as SVG, in the page's own colours.
const svg = (name, attributes = {}, ...children) => {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
};
export { svg };

const nice = (most) => {
  const unit = 10 ** Math.floor(Math.log10(most)), parts = most / unit;
  return (parts <= 1 ? 1 : parts <= 2 ? 2 : parts <= 5 ? 5 : 10) * unit;
};

// Round numbers from low to high, four to eight of them.
const round_ticks = (low, high) => {
  if (!(high > low)) return [low];
  const step = [1, 2, 2.5, 5, 10].map((each) => each * 10 ** Math.floor(Math.log10((high - low) / 4))).findLast((each) => (high - low) / each >= 4);
  return Array.from({ length: Math.floor(high / step) - Math.ceil(low / step) + 1 }, (_, k) => (Math.ceil(low / step) + k) * step);
};

// series: [{ name, css, dot, points: [[x, y], …] }]. `log`: x by powers of two.
export const plot = ({ title, x_label, y_label, series, log = false, dots = false, symmetric = false, bounds = [] }) => {
  const width = 640, height = 300, left = 52, right = 24, top = 26, bottom = 40;
  const all = series.flatMap((each) => each.points);
  if (!all.length) return svg("svg");
  const xs = all.map(([x]) => (log ? Math.log2(x) : x)), low_x = Math.min(...xs), high_x = Math.max(...xs);
  const high_y = nice(Math.max(1e-9, ...all.map(([, y]) => Math.abs(y)), ...bounds.map(Math.abs))), low_y = symmetric ? -high_y : 0;
  const at_x = (x) => left + (((log ? Math.log2(x) : x) - low_x) / (high_x - low_x || 1)) * (width - left - right);
  const at_y = (y) => height - bottom - ((y - low_y) / (high_y - low_y)) * (height - top - bottom);
  const root = svg("svg", { class: "plot", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": title });
  root.append(svg("title", {}, title));
  for (let k = 0; k <= 4; ++k) {
    const value = low_y + ((high_y - low_y) * k) / 4, y = at_y(value);
    root.append(svg("line", { class: "axis", x1: left, x2: width - right, y1: y, y2: y }),
      svg("text", { x: left - 6, y: y + 4, "text-anchor": "end" }, String(Number(value.toPrecision(3)))));
  }
  const ticks = log ? Array.from({ length: high_x - low_x + 1 }, (_, k) => 2 ** (low_x + k)) : round_ticks(low_x, high_x);
  ticks.forEach((tick, k) => {
    if (log && ticks.length > 8 && k % 2) return;
    root.append(svg("text", { x: at_x(tick), y: height - bottom + 16, "text-anchor": "middle" }, String(Number(tick.toPrecision(6)))));
  });
  for (const y of bounds) root.append(svg("line", { class: "bound", x1: left, x2: width - right, y1: at_y(y), y2: at_y(y) }));
  root.append(svg("text", { x: (left + width - right) / 2, y: height - 6, "text-anchor": "middle" }, x_label), svg("text", { x: left, y: 14 }, y_label));
  let at = width - right;
  for (const { name, css, dot, points } of [...series].reverse()) {
    const path = points.map(([x, y]) => `${at_x(x).toFixed(1)},${at_y(Math.min(Math.max(y, low_y), high_y)).toFixed(1)}`);
    if (dots) root.append(svg("path", { class: css, "stroke-width": 2, d: path.map((each) => `M${each}h1`).join("") }));
    else root.append(svg("polyline", { class: css, points: path.join(" ") }), ...points.map(([x, y]) => svg("circle", { class: dot, cx: at_x(x), cy: at_y(y), r: 2.5 }, svg("title", {}, `${name}, ${x}: ${y.toPrecision(3)}`))));
    if (series.length > 1) {
      root.append(svg("text", { x: at, y: 14, "text-anchor": "end" }, name));
      const long = name.length * 6.2;
      root.append(svg("line", { class: css, x1: at - long - 28, x2: at - long - 8, y1: 10, y2: 10 }));
      at -= long + 44;
    }
  }
  return root;
};

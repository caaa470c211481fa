// Colours and marks by the CSS Custom Highlight API: texts stay plain text nodes, however long they are. An engine without it
// shows them plain.
const registry = globalThis.CSS?.highlights;
const named = (name) => {
  if (!registry) return undefined;
  if (!registry.has(name)) registry.set(name, new Highlight());
  return registry.get(name);
};

const range_of = (node, from, to) => {
  const range = new StaticRange({ startContainer: node, startOffset: from, endContainer: node, endOffset: to });
  return range;
};

// Ranges of each element under each name, so that one element's can be replaced.
const held = new WeakMap();

export const mark = (element, name, places) => {
  const highlight = named(name), node = element.firstChild;
  if (!highlight) return;
  const mine = held.get(element) ?? held.set(element, {}).get(element);
  for (const range of mine[name] ?? []) highlight.delete(range);
  mine[name] = node ? places.map(([from, to]) => range_of(node, from, to)) : [];
  for (const range of mine[name]) highlight.add(range);
};

// The language's words and its types, once the compiler's tables are there.
let keywords = new Set();
export const set_keywords = ({ words, types }) => { keywords = new Set([...words, ...types.map(({ name }) => name)]); };

// The language's own colours.
export const colour = (element, text) => {
  const found = { keyword: [], number: [], comment: [], function: [] };
  for (const match of text.matchAll(/#[^\n]*|[A-Za-z_]\w*(\s*\()?|0[xX][\da-fA-F.]+(?:[pP][+-]?\d+)?|\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+/g)) {
    const at = match.index, word = match[0].replace(/\s*\($/, ""), place = [at, at + word.length];
    if (word.startsWith("#")) found.comment.push(place);
    else if (/^[\d.]/.test(word)) found.number.push(place);
    else if (keywords.has(word)) found.keyword.push(place);
    else if (match[1] && text.slice(0, at).trim() !== "" && !/(?:^|\n)\s*$/.test(text.slice(0, at))) found.function.push(place);
  }
  for (const [name, places] of Object.entries(found)) mark(element, name, places);
};

// A link that carries the program and its problem: deflated JSON in the part of the address that no server sees.
const to_text = (bytes) => btoa(String.fromCharCode(...bytes)).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
const to_bytes = (text) => Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (letter) => letter.charCodeAt(0));
const through = async (bytes, stream) => new Uint8Array(await new Response(new Blob([bytes]).stream().pipeThrough(stream)).arrayBuffer());

export const link_of = async (state, address = location.href) => {
  const bytes = await through(new TextEncoder().encode(JSON.stringify(state)), new CompressionStream("deflate-raw"));
  return `${address.split("#")[0]}#z=${to_text(bytes)}`;
};

// What a link carries; undefined where it carries nothing that can be read.
export const state_of = async (hash = location.hash) => {
  const [, packed] = hash.match(/^#z=([\w-]+)$/) ?? [];
  if (!packed) return undefined;
  try {
    const state = JSON.parse(new TextDecoder().decode(await through(to_bytes(packed), new DecompressionStream("deflate-raw"))));
    return typeof state?.text === "string" ? state : undefined;
  } catch {
    return undefined;
  }
};

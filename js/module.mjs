// From what load() is given to a module and its manifest; or an error that says what was given instead.

const text_of = (bytes, from, to) => new TextDecoder().decode(bytes.subarray(from, to));

const is_module = (value) => {  // of any realm
  try {
    return Boolean(WebAssembly.Module.exports(value));
  } catch {
    return false;
  }
};

// { name, module } or { name, bytes }; the name begins what is said of it.
const fetched = async (source) => {
  source = await source;
  if (is_module(source)) return { name: "load", module: source };
  let name = "load";
  // Not compileStreaming: a server that sends another MIME type would break it.
  if (typeof source?.arrayBuffer === "function") {
    if (source.url) name = `load: ${source.url}`;
    if (source.ok === false) throw new Error(`${name}: ${source.status} ${source.statusText}`);
    source = await source.arrayBuffer();
  }
  let bytes;
  if (ArrayBuffer.isView(source)) bytes = new Uint8Array(source.buffer, source.byteOffset, source.byteLength);
  else if (/^\[object (Shared)?ArrayBuffer\]$/.test(Object.prototype.toString.call(source))) bytes = new Uint8Array(source);
  else throw new TypeError("load: give a module's bytes, a Response, or a WebAssembly.Module");
  const is_shared = Object.prototype.toString.call(bytes.buffer) === "[object SharedArrayBuffer]";
  return { name, bytes: is_shared ? bytes.slice() : bytes };  // engines compile no shared memory
};

const check_head = (name, bytes) => {
  const wrong = (what) => new TypeError(`${name}: ${what}`);
  const magic = [0, 0x61, 0x73, 0x6d];
  if (bytes.length === 0) throw wrong("there are no bytes; a WebAssembly module is wanted");
  if (magic.some((byte, k) => k < bytes.length && bytes[k] !== byte)) {
    const text = text_of(bytes, 0, 60).trim();
    if (/^[\x20-\x7e\s]+$/.test(text)) throw wrong(`this is text, no WebAssembly module; it begins ${JSON.stringify(text)}`);
    const hex = [...bytes.subarray(0, 4)].map((each) => each.toString(16).padStart(2, "0")).join(" ");
    throw wrong(`this is no WebAssembly module; it begins with the bytes ${hex}`);
  }
  if (bytes.length < 8) throw wrong(`the module is cut short after ${bytes.length} bytes`);
  const version = new DataView(bytes.buffer, bytes.byteOffset).getUint32(4, true);
  if (version !== 1) throw wrong(`WebAssembly of version 0x${version.toString(16)}; modules have 1`);
};

// Reads unsigned numbers and names from bytes[at, end).
class Reader {
  constructor(name, bytes, at, end) {
    Object.assign(this, { name, bytes, at, end });
  }
  ended() {
    const { name, bytes, end } = this, how = end === bytes.length ? `cut short after ${end} bytes` : `damaged before byte ${end}`;
    return new TypeError(`${name}: the module is ${how}`);
  }
  number() {
    for (let value = 0, unit = 1; unit < 2 ** 35; unit *= 128) {
      if (this.at >= this.end) throw this.ended();
      const byte = this.bytes[this.at++];
      value += (byte & 127) * unit;
      if (byte < 128) return value;
    }
    throw new TypeError(`${this.name}: the module is damaged before byte ${this.at}`);
  }
  part(length) {
    const from = this.at;
    if (length > this.end - from) throw this.ended();
    this.at += length;
    return new Reader(this.name, this.bytes, from, this.at);
  }
  text(length = this.end - this.at) {
    const { at, end } = this.part(length);
    return text_of(this.bytes, at, end);
  }
}

// The manifest's text and the names of exports. By hand: an engine without relaxed SIMD compiles no relaxed module, and
// still is to say why.
const read_sections = (name, bytes) => {
  check_head(name, bytes);
  const found = { manifest: undefined, exports: [] }, reader = new Reader(name, bytes, 8, bytes.length);
  while (reader.at < reader.end) {
    const id = reader.part(1), section = reader.part(reader.number());
    if (bytes[id.at] === 0 && section.text(section.number()) === "trireme") found.manifest = section.text();
    if (bytes[id.at] !== 7) continue;
    for (let left = section.number(); left > 0; --left) {
      found.exports.push(section.text(section.number()));
      section.part(1), section.number();
    }
  }
  return found;
};
const sections_of = (module) => ({
  manifest: WebAssembly.Module.customSections(module, "trireme").map((section) => new TextDecoder().decode(section))[0],
  exports: WebAssembly.Module.exports(module).map((each) => each.name),
});

const parsed = (name, { manifest: text, exports }) => {
  const wrong = (what) => new TypeError(`${name}: ${what}`);
  if (text === undefined && exports.includes("kernel_info"))
    throw wrong("this is a module of the kernel ABI, for hosts that know nothing of Trireme; emit it without --abi");
  if (text === undefined)
    throw wrong("this WebAssembly module has no section 'trireme'; `trireme emit ... --target wasm` writes one");
  let manifest;
  try {
    manifest = JSON.parse(text);
  } catch (cause) {
    throw new TypeError(`${name}: the module is damaged: its section 'trireme' is no JSON`, { cause });
  }
  if (manifest?.format !== 2) throw wrong(`manifest format ${manifest?.format}; this loader knows 2`);
  return manifest;
};

// The manifest of what was given, and a function that compiles it.
export const read_module = async (source) => {
  const { name, module, bytes } = await fetched(source);
  const manifest = parsed(name, module ? sections_of(module) : read_sections(name, bytes));
  return { manifest, compile: async () => module ?? WebAssembly.compile(bytes) };
};

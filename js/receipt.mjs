// Receipts as docs/receipts.md says: their form, digests of arrays by blocks of rows, signatures.
import { copy_in, storage_types } from "./arrays.mjs";
import { make_canonical, xxh3_128 } from "./digest.mjs";

const most_blocks = 1024, most_bytes = 2 ** 26;
const encoder = new TextEncoder();

export const hex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
const from_hex = (text) => Uint8Array.from(text.match(/../g) ?? [], (byte) => parseInt(byte, 16));
const wrong = (what) => new TypeError(`the receipt: ${what}`);

const webcrypto = (what) => {
  if (!globalThis.crypto?.subtle)
    throw new Error(`${what} wants WebCrypto, which is not here: Node 20 or later, or a page from https or localhost`);
  return globalThis.crypto.subtle;
};
const hashes = {
  "xxh3-128": { digits: 32, of: async (bytes) => xxh3_128(bytes) },
  sha256: { digits: 64, of: async (bytes) => hex(new Uint8Array(await webcrypto("sha256").digest("SHA-256", bytes))) },
};
export const hash_named = (name) => {
  if (!Object.hasOwn(hashes, name)) throw wrong(`digests by '${name}'; this version knows xxh3-128 and sha256`);
  return hashes[name];
};
export const text_digest = (hash, text) => hash_named(hash).of(encoder.encode(text));

// A bound text is a printout of the compiler's, with forms that the contract does not know. It says types, and nothing else has a colon.
export const check_program = (text) => {
  if (text.replace(/#[^\n]*/g, "").includes(":"))
    throw wrong("it holds a program of the contract, and this one is bound: give the text that it was bound from");
};

export const block_rows = (rows) => {
  let block = 1;
  while (block * most_blocks < rows) block *= 2;
  return block;
};
const root_of = async (hash, leaves) => {
  let level = leaves.length ? leaves : [await hash.of(new Uint8Array(0))];
  while (level.length > 1) {
    const above = [];
    for (let k = 0; k < level.length; k += 2)
      above.push(k + 1 < level.length ? await hash.of(from_hex(level[k] + level[k + 1])) : level[k]);
    level = above;
  }
  return level[0];
};

// Rows first to last of an array as placed() has it (arrays.mjs): the only copy that is made.
export const digest_rows = (hash, place, first, last) => {
  const copy = new Uint8Array((last - first) * place.row_bytes);
  copy_in(copy, { ...place, at: 0 }, first, last);
  make_canonical(place.type, copy);
  return hash_named(hash).of(copy);
};
export const array_digests = async (hash, place) => {
  const { name, type, width, height: rows } = place, block = block_rows(rows), leaves = [];
  for (let first = 0; first < rows; first += block)
    leaves.push(await digest_rows(hash, place, first, Math.min(first + block, rows)));
  const columns = type === "f4e2m1" ? 2 * width : width;
  return { name, type, rows, columns, block, digest: await root_of(hash_named(hash), leaves), leaves };
};

const canonical = (value) => {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (typeof value !== "object") return JSON.stringify(value);
  return `{${Object.keys(value).sort().map((name) => `${JSON.stringify(name)}:${canonical(value[name])}`).join(",")}}`;
};
export const printReceipt = (receipt) => canonical(receipt);
// What a signature covers.
const signed_form = ({ signature, ...rest }) => encoder.encode(canonical(rest));

// JSON.parse takes the last of two fields of one name, and fractions.
const check_json = (text, parsed) => {
  let said = 0;
  const rest = text.replace(/"(?:[^"\\]|\\.)*"(\s*:)?/g, (_, colon) => { said += colon ? 1 : 0; return ""; });
  if (/[.eE]/.test(rest)) throw wrong("its numbers are whole ones");
  const count = (value) => (typeof value !== "object" || value === null ? 0
    : Object.values(value).reduce((sum, each) => sum + count(each), Array.isArray(value) ? 0 : Object.keys(value).length));
  if (said !== count(parsed)) throw wrong("a field stands twice");
};

const check_fields = (value, where, names, optional = []) => {
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw wrong(`${where} is an object`);
  for (const name of names) if (!Object.hasOwn(value, name)) throw wrong(`${where} has no '${name}'`);
  for (const name of Object.keys(value))
    if (![...names, ...optional].includes(name)) throw wrong(`${where} has a field '${name}', which this version does not know`);
};
const check_whole = (value, what, least, most = Number.MAX_SAFE_INTEGER) => {
  if (!Number.isSafeInteger(value) || value < least || value > most) throw wrong(`'${what}' is a whole number from ${least} to ${most}`);
};
const check_hex = (value, what, digits) => {
  if (typeof value !== "string" || value.length !== digits || !/^[0-9a-f]*$/.test(value)) throw wrong(`${what} is ${digits} hex digits`);
};
const is_name = (value) => typeof value === "string" && /^[A-Za-z_]\w{0,1023}$/.test(value);
const check_names = (value, what) => {
  if (!Array.isArray(value) || !value.every(is_name) || new Set(value).size !== value.length)
    throw wrong(`'${what}' lists names, each once`);
};

const check_array = async (hash, array) => {
  check_fields(array, "an array", ["name", "type", "rows", "columns", "block", "digest", "leaves"]);
  const { name, type, rows, columns, block, digest, leaves } = array;
  if (!is_name(name)) throw wrong("an array's name is a name");
  if (!storage_types.includes(type)) throw wrong(`'type' of '${name}' is a storage type, not '${type}'`);
  check_whole(rows, `rows of ${name}`, 0);
  check_whole(columns, `columns of ${name}`, 1);
  if (block !== block_rows(rows)) throw wrong(`'${name}' has blocks of ${block} rows, and ${block_rows(rows)} are right for ${rows}`);
  const blocks = Math.ceil(rows / block);
  if (!Array.isArray(leaves) || leaves.length !== blocks) throw wrong(`'${name}' has ${leaves?.length} leaves, and ${blocks} blocks`);
  for (const leaf of leaves) check_hex(leaf, `a leaf of '${name}'`, hash.digits);
  check_hex(digest, `the digest of '${name}'`, hash.digits);
  if (digest !== await root_of(hash, leaves)) throw wrong(`the digest of '${name}' is not that of its leaves`);
};

// A receipt's fields, of its text; unknown, missing and doubled ones are errors.
export const parseReceipt = async (text) => {
  if (typeof text !== "string") throw new TypeError(`parseReceipt: a receipt's text is wanted, got ${typeof text}`);
  if (text.length > most_bytes) throw wrong("it is longer than 64 MiB");
  let receipt;
  try {
    receipt = JSON.parse(text);
  } catch (cause) {
    throw new TypeError(`the receipt's JSON: ${cause.message}`, { cause });
  }
  check_fields(receipt, "it", ["receipt", "hash", "contract", "program", "direction", "gradients", "shape", "axes", "compute",
    "constants", "absent", "operands", "results"], ["signature"]);
  check_json(text, receipt);
  check_whole(receipt.receipt, "receipt", 1, 1);
  const hash = hash_named(receipt.hash), { program, shape, signature } = receipt;
  check_whole(receipt.contract, "contract", 0, 2 ** 20);
  check_fields(program, "'program'", ["text", "digest"]);
  if (typeof program.text !== "string" || /[\ud800-\udfff]/u.test(program.text)) throw wrong("'text' of 'program' is a text");
  check_hex(program.digest, "the program's digest", hash.digits);
  if (program.digest !== await text_digest(receipt.hash, program.text)) throw wrong("the program's digest is not that of its text");
  check_program(program.text);
  if (!["forward", "backward"].includes(receipt.direction)) throw wrong("'direction' is forward or backward");
  check_names(receipt.gradients, "gradients");
  if (receipt.gradients.length && receipt.direction === "forward") throw wrong("gradients arrive in a backward");
  if (!Array.isArray(shape) || shape.length < 1 || shape.length > 8) throw wrong("a shape has 1 to 8 axes");
  for (const extent of shape) check_whole(extent, "shape", 0);
  check_whole(receipt.axes, "axes", 1, shape.length);
  if (!["f32", "f64"].includes(receipt.compute)) throw wrong("'compute' is f32 or f64");
  check_fields(receipt.constants, "'constants'", [], Object.keys(receipt.constants ?? {}).filter(is_name));
  for (const bits of Object.values(receipt.constants)) check_hex(bits, "a constant", 16);
  check_names(receipt.absent, "absent");
  for (const which of ["operands", "results"]) {
    if (!Array.isArray(receipt[which])) throw wrong(`'${which}' is a list`);
    for (const array of receipt[which]) await check_array(hash, array);
  }
  if (!receipt.results.length) throw wrong("it has no results");
  if (signature) check_signature(receipt);
  return receipt;
};

const check_signature = ({ hash, signature }) => {
  check_fields(signature, "'signature'", ["algorithm", "key", "value"]);
  if (signature.algorithm !== "ed25519") throw wrong(`a signature by '${signature.algorithm}'; this version knows ed25519`);
  if (hash !== "sha256") throw wrong("one that is signed has digests by sha256: XXH3 is no cryptographic hash");
  check_hex(signature.key, "the key of a signature", 64);
  check_hex(signature.value, "the value of a signature", 128);
};

const from_pem = (text, label) => {
  const [, body] = text.match(new RegExp(`-----BEGIN ${label}-----([A-Za-z0-9+/=\\s]+)-----END ${label}-----`)) ?? [];
  if (!body) throw new TypeError(`a PEM text with '${label}' is wanted`);
  return Uint8Array.from(atob(body.replace(/\s/g, "")), (letter) => letter.charCodeAt(0));
};
const raw_key = async (subtle, key) => hex(new Uint8Array(await subtle.exportKey("raw", key)));

// Ed25519 by WebCrypto. `key`: a private key's PEM text (openssl genpkey -algorithm ed25519), or a CryptoKeyPair.
export const signReceipt = async (receipt, key) => {
  const subtle = webcrypto("a signature");
  if (receipt.hash !== "sha256") throw wrong("one that is signed has digests by sha256: XXH3 is no cryptographic hash");
  let pair = key;
  if (typeof key === "string") {
    const privateKey = await subtle.importKey("pkcs8", from_pem(key, "PRIVATE KEY"), { name: "Ed25519" }, true, ["sign"]);
    const { x } = await subtle.exportKey("jwk", privateKey);
    pair = { privateKey, publicKey: await subtle.importKey("jwk", { kty: "OKP", crv: "Ed25519", x }, { name: "Ed25519" }, true, ["verify"]) };
  }
  const { signature, ...rest } = receipt;
  const value = hex(new Uint8Array(await subtle.sign({ name: "Ed25519" }, pair.privateKey, signed_form(rest))));
  return { ...rest, signature: { algorithm: "ed25519", key: await raw_key(subtle, pair.publicKey), value } };
};

// Throws unless the receipt is signed by this key: a PEM text, 64 hex digits, or a CryptoKey.
export const verifySignature = async (receipt, key) => {
  const subtle = webcrypto("a signature");
  const imported = typeof key !== "string" ? key
    : /^[0-9a-f]{64}$/.test(key) ? await subtle.importKey("raw", from_hex(key), { name: "Ed25519" }, true, ["verify"])
      : await subtle.importKey("spki", from_pem(key, "PUBLIC KEY"), { name: "Ed25519" }, true, ["verify"]);
  if (!receipt.signature) throw wrong("it is not signed");
  check_signature(receipt);
  const wanted = await raw_key(subtle, imported);
  if (receipt.signature.key !== wanted) throw wrong(`it is signed by another key, ${receipt.signature.key}, wanted ${wanted}`);
  if (!await subtle.verify({ name: "Ed25519" }, imported, from_hex(receipt.signature.value), signed_form(receipt)))
    throw wrong("the signature is not one of this receipt by its key");
};

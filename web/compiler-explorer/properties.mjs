// Usage: node web/compiler-explorer/properties.mjs >row.defaults.properties
// The list of compilers for Compiler Explorer: one for each common architecture of each target in the compiler's own table.
// /opt/compiler-explorer/trireme is where Compiler Explorer would install the tool.
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const exe = "/opt/compiler-explorer/trireme/bin/trireme";
const { version } = JSON.parse(readFileSync(new URL("../../js/package.json", import.meta.url), "utf8"));
const instruction_sets = { x86: "amd64", wasm: "wasm32" };  // where Compiler Explorer's name is not ours

export const properties = ({ targets }) => {
  const compilers = targets.flatMap(({ name, commonArchs }) => commonArchs.map((arch) => ({ id: `trireme_${name}_${arch}`, name, arch })));
  const lines = [
    "compilers=&trireme",
    `defaultCompiler=${compilers[0].id}`,
    "",
    `group.trireme.compilers=${compilers.map(({ id }) => id).join(":")}`,
    "group.trireme.groupName=Trireme",
    "group.trireme.compilerType=trireme",
    "group.trireme.supportsBinary=false",
    "group.trireme.supportsExecute=false",
    "group.trireme.supportsLibraryCodeFilter=false",
    "group.trireme.versionFlag=--version",
    "group.trireme.isSemVer=true",
  ];
  for (const { id, name, arch } of compilers)
    lines.push("", `compiler.${id}.exe=${exe}`, `compiler.${id}.name=trireme ${name} ${arch}`, `compiler.${id}.options=--target ${name} --arch ${arch}`,
      `compiler.${id}.semver=${version}`, `compiler.${id}.instructionSet=${instruction_sets[name] ?? name}`);
  return lines.join("\n") + "\n";
};

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { compiler } = await import("../tests/compiler.mjs");
  process.stdout.write(properties(compiler.tables));
}

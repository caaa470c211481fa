// Every operator's own problem, its first '#: try' line, in both directions: [{ asked, line, text }], the line as it stands there
// and as the compiler writes it.
import { compiler } from "./compiler.mjs";

const canonical = (text, line) => {
  const problem = compiler.open(text, line);
  problem.close();
  return problem.line;
};
export const own_problems = compiler.tables.operators.flatMap(({ name, text }) => {
  const { tries, backward } = compiler.program(text), line = `${name} ${tries[0]}`;
  return (backward ? [line, `${line} backward`] : [line]).map((asked) => ({ asked, line: canonical(text, asked), text }));
});

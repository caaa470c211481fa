// The programs of the menu: the compiler's operators, and a few that are none.

// What an operator's file says to tests ("#: try", "#: use") goes behind its program: readers come first.
export const arranged = (text) => {
  const lines = text.trimEnd().split("\n"), is_remark = (line) => line.startsWith("#:");
  const remarks = lines.filter(is_remark);
  return [...lines.filter((line) => !is_remark(line)), ...(remarks.length ? ["", ...remarks] : [])].join("\n") + "\n";
};

export const examples = [
  ["scaled_softmax", "# Softmax with a temperature, as samplers want it.\nscaled_softmax(x[i,j], temperature = 1) -> (y[i,j])\n    s = x * (1 / temperature)\n    e = exp(s - amax(s))\n    y = e * (1 / sum(e))\n"],
  ["squared_relu", "# Primer's activation.\nsquared_relu(x[i,j]) -> (y[i,j])\n    y = square(relu(x))\n"],
  ["standardise", "# Columns' sums as well: the mean of every row, and how far columns lie from 0 together.\nstandardise(x[i,j], eps = 1e-5) -> (y[i,j], drift[j])\n    m = mean(x)\n    y = (x - m) * rsqrt(mean((x - m) * (x - m)) + eps)\n    drift = colsum(y)\n"],
];

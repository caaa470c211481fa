// Puzzles and the digests that judge them. Solutions are not here; the tests hold one of each to these digests.
// `ranges` stand before the program that is judged: samples that reach what the puzzle is about.
export const puzzles = [
  {
    title: "1. A squared ReLU",
    text: "Primer's activation: the square of what is positive in x, and 0 elsewhere.",
    start: "squared_relu(x[i,j]) -> (y[i,j])\n    y = x\n",
    lines: [{ line: "7x257", digest: "fd01681066310a5ceebaa69cb365d634" }, { line: "3x1024 x=bf16", digest: "aef60dcfb5c8f884d41fde9849534c90" }],
  },
  {
    title: "2. Softmax with a temperature",
    text: "Multiply x by 1 / temperature, subtract the row's largest, take exp, and multiply by 1 / the row's sum. The temperature is a constant; 0.7 unless given.",
    start: "scaled_softmax(x[i,j], temperature = 0.7) -> (y[i,j])\n    y = x * (1 / temperature)\n",
    lines: [{ line: "7x257", digest: "6d8a1691d7515ff56cb7588f5439ea0a" }, { line: "2x4096 temperature=2", digest: "1b0303a58857801354a0e5904d21a449" }],
  },
  {
    title: "3. gpt-oss's clamped SwiGLU, in four lines",
    text: "The gate is at most 7, up lies between -7 and 7. The result is (up + 1) times gate · sigmoid(1.702 · gate).",
    start: "gpt_oss_swiglu(up[i,j], gate[i,j]) -> (y[i,j])\n    y = (up + 1) * (gate * sigmoid(1.702 * gate))\n",
    ranges: "#: range up -12..12\n#: range gate -12..12\n",
    lines: [{ line: "7x257", digest: "bd0e1ec4eea17279837029927d4f1375" }, { line: "3x1000 up=bf16 gate=bf16", digest: "260bec57dab3c2603077dacc7070c529" }],
  },
  {
    title: "4. Quantise to int8, a scale a row",
    text: "The scale is the row's largest |x| over 127, and q is x over the scale. The judge stores q as i8: stores round to nearest, ties to even.",
    start: "quantise(x[i,j]) -> (q[i,j], scale[i])\n    scale = amax(x) / 127\n    q = x\n",
    lines: [{ line: "7x257 q=i8", digest: "2f9bab8987da15e0e1099deb90918df4" }, { line: "3x1024 x=bf16 q=i8", digest: "f08f06659abaf18696db0ee3370207dc" }],
  },
  {
    title: "5. Centred cosine similarity",
    text: "Of each row of x with the same row of t: subtract each row's mean, then the sum of products times rsqrt of the product of both sums of squares (x's first).",
    start: "centred_cosine(x[i,j], t[i,j]) -> (similarity[i])\n    similarity = sum(x * t)\n",
    lines: [{ line: "7x257", digest: "344cee48e061835e1f839485b2f7c135" }, { line: "3x1000", digest: "f9295ca73a5b5b363358d65a67460726" }],
  },
];

// One solution of each puzzle of web/page/puzzles.mjs, in their order.
export const solutions = [
`squared_relu(x[i,j]) -> (y[i,j])
    y = square(relu(x))
`,
`scaled_softmax(x[i,j], temperature = 0.7) -> (y[i,j])
    s = x * (1 / temperature)
    e = exp(s - amax(s))
    y = e * (1 / sum(e))
`,
`gpt_oss_swiglu(up[i,j], gate[i,j]) -> (y[i,j])
    g = min(gate, 7)
    u = clamp(up, -7, 7)
    y = (u + 1) * (g * sigmoid(1.702 * g))
`,
`quantise(x[i,j]) -> (q[i,j], scale[i])
    scale = amax(abs(x)) / 127
    q = x / scale
`,
`centred_cosine(x[i,j], t[i,j]) -> (similarity[i])
    a = x - mean(x)
    b = t - mean(t)
    similarity = sum(a * b) * rsqrt(sum(a * a) * sum(b * b))
`,
];

// The programs of the kernel ABI, and where their arrays come from.
#include "kernel_abi/module.hpp"

namespace trireme {

std::span<const KernelAbi> kernel_abis() {
  using enum AbiArray::Extent;
  static const AbiEntry gated_forward = {.a = {"x"}, .b = {"gate"}, .output = {"y", Elements, true}};
  static const AbiEntry gated_backward = {.a = {"dy"},
                                          .b = {"gate"},
                                          .output = {"dx", Elements, true},
                                          .optional = {{"x"}, {"dgate", Elements, true, "x"}}};
  const auto with_text = [](AbiEntry entry, std::string_view text) { return entry.text = text, entry; };
  // The backwards are derived (table_test.cpp), but for the gradients that hosts do not ask for.
  static const KernelAbi all[] = {
      {.program = "rms_norm",
       .name = "rmsnorm_f32",
       .rows_at = 8,
       .columns_at = 4,
       .value = "eps",
       .value_at = 0,
       .forward = {.text = R"(
rmsnorm(x[i,j], weight[j], eps[]) -> (y[i,j], rms[i])
    rms  = sqrt(mean(x * x) + eps)
    rstd = 1 / rms
    y    = x * rstd * weight)",
                   .a = {"x"},
                   .b = {"weight", Columns},
                   .output = {"y", Elements, true},
                   .in_scratch = "rms"},
       .backward = {.text = R"(
rmsnorm_backward(eps[], dy[i,j], x[i,j], weight[j] = 1, rms[i] = sqrt(mean(x * x) + eps)) -> (dx[i,j], dweight[j])
    rstd    = 1 / rms
    x_hat   = x * rstd
    g       = dy * weight
    dx      = rstd * (g - x_hat * mean(g * x_hat))
    dweight = colsum(dy * x_hat))",
                    .a = {"dy"},
                    .b = {"x"},
                    .output = {"dx", Elements, true},
                    .optional = {{"weight", Columns}, {"rms", Rows}, {"dweight", Columns, true}}}},
      {.program = "swiglu",
       .name = "swiglu_f32",
       .rows_at = 0,
       .columns_at = 4,
       .value = "beta",
       .value_at = 8,
       .sizes_agree = true,
       .forward = with_text(gated_forward, R"(
swiglu(x[i,j], gate[i,j], beta[]) -> (y[i,j])
    y = gate * sigmoid(beta * gate) * x)"),
       .backward = with_text(gated_backward, R"(
swiglu_backward(dy[i,j], x[i,j] = 0, gate[i,j], beta[]) -> (dx[i,j], dgate[i,j])
    t1    = sigmoid(beta * gate)
    dx    = dy * gate * t1
    dgate = dy * x * t1 * (1 + gate * (1 - t1) * beta))")},
      {.program = "geglu",
       .name = "geglu_f32",
       .rows_at = 0,
       .columns_at = 4,
       .sizes_agree = true,
       .forward = with_text(gated_forward, R"(
geglu(x[i,j], gate[i,j]) -> (y[i,j])
    y = gelu_tanh(gate) * x)"),
       .backward = with_text(gated_backward, R"(
geglu_backward(dy[i,j], x[i,j] = 0, gate[i,j]) -> (dx[i,j], dgate[i,j])
    t1    = min(max(gate, -16), 16)
    t2    = t1 * t1
    t3    = sigmoid(t1 * (1.5957691216057308 + 0.07135481627260025 * t2))
    t4    = t1 * (t3 * (1 - t3)) * (1.5957691216057308 + 0.21406444881780073 * t2)
    dx    = dy * gelu_tanh(gate)
    dgate = dy * x * (t3 + t4))")},
  };
  return all;
}

}  // namespace trireme

// examples/jit/normalization.cu, run on a CPU: right by the oracle, in both types, for rows that no block divides.
#include <gtest/gtest.h>

#include <map>
#include <tuple>

#include "bench/textbook.hpp"
#include "plan/check.hpp"
#include "reference/oracle.hpp"
#include "tests/examples/cuda_on_a_cpu.hpp"

namespace f32 {
#include "examples/jit/normalization.cu"
}
// The same text with other elements, and names of its own: extern "C" knows no namespaces.
#define BF16
#define layer_norm_forward layer_norm_forward_bf16
#define rms_norm_forward rms_norm_forward_bf16
#define layer_norm_backward layer_norm_backward_bf16
#define rms_norm_backward rms_norm_backward_bf16
#define column_sums column_sums_bf16
namespace bf16 {
#include "examples/jit/normalization.cu"
}
#undef layer_norm_forward
#undef rms_norm_forward
#undef layer_norm_backward
#undef rms_norm_backward
#undef column_sums

namespace trireme::bench {
namespace {

template <typename... Parameters>
void call(void (*kernel)(Parameters...), const TextbookLaunch& launch) {
  ASSERT_EQ(launch.arguments.size(), sizeof...(Parameters)) << launch.kernel;
  std::tuple<std::remove_const_t<Parameters>...> values;
  std::size_t k = 0;
  auto take = [&](auto& value) {
    ASSERT_EQ(launch.arguments[k].size(), sizeof value) << launch.kernel << " " << k;
    std::memcpy(static_cast<void*>(&value), launch.arguments[k++].data(), sizeof value);
  };
  std::apply([&](auto&... each) { (take(each), ...); }, values);
  cuda_on_a_cpu::launch(static_cast<unsigned>(launch.grid), static_cast<unsigned>(launch.block),
                        [&] { std::apply(kernel, values); });
}

void run(const TextbookLaunch& launch, bool bf16) {
  const std::map<std::string, std::function<void()>> kernels = {
      {"layer_norm_forward",
       [&] { bf16 ? call(bf16::layer_norm_forward_bf16, launch) : call(f32::layer_norm_forward, launch); }},
      {"rms_norm_forward",
       [&] { bf16 ? call(bf16::rms_norm_forward_bf16, launch) : call(f32::rms_norm_forward, launch); }},
      {"layer_norm_backward",
       [&] { bf16 ? call(bf16::layer_norm_backward_bf16, launch) : call(f32::layer_norm_backward, launch); }},
      {"rms_norm_backward",
       [&] { bf16 ? call(bf16::rms_norm_backward_bf16, launch) : call(f32::rms_norm_backward, launch); }},
      {"column_sums", [&] { bf16 ? call(bf16::column_sums_bf16, launch) : call(f32::column_sums, launch); }}};
  kernels.at(launch.kernel)();
}

TEST(TextbookNormalization, LiesWithinTheOraclesBounds) {
  for (std::string program : {"rms_norm", "layer_norm"})
    for (std::string shape : {"1x1", "5x257", "9x64", "6x301"})
      for (std::string types : {"", " x=bf16"})
        for (std::string direction : {"", " backward"}) {
          const std::string line = program + " " + shape + types + direction;
          SCOPED_TRACE(line);
          Prepared prepared = prepare_problem(parse_problem(line).value()).value();
          poison_results(prepared);
          std::vector<float> workspace;
          TextbookProblem problem{.program = program,
                                  .backward = !direction.empty(),
                                  .rows = prepared.problem.rows(),
                                  .columns = prepared.problem.columns(),
                                  .eps = program == "layer_norm" ? 1e-5f : 1e-6f,
                                  .block = 8,
                                  .parts = 3};
          workspace.assign(static_cast<std::size_t>(problem.workspace_floats()), NAN);
          problem.workspace = workspace.data();
          problem.array = [&](const std::string& name) -> void* {
            for (std::size_t k = 0; k < prepared.bound.array_count(); ++k)
              if (prepared.bound.array(k).name == name) return prepared.arrays[k].data;
            ADD_FAILURE() << "no array " << name;
            return nullptr;
          };
          for (const TextbookLaunch& launch : textbook_launches(problem)) run(launch, !types.empty());
          std::vector<OracleResult> oracle = run_oracle(prepared.bound, prepared.view()).value();
          for (std::size_t k = 0; k < oracle.size(); ++k) {
            TextbookError each = textbook_error(oracle[k], prepared.results()[k]);
            EXPECT_LE(each.worst, 1) << prepared.bound.results[k].name << "[" << each.row << "," << each.column
                                     << "] got " << each.got << " want " << each.want << " within " << each.allowed;
          }
        }
}

TEST(TextbookNormalization, StatisticsMayBeLeftOut) {
  Prepared prepared = prepare_problem(parse_problem("layer_norm 3x40").value()).value();
  float* x = static_cast<float*>(prepared.operands()[0].data);
  std::vector<float> gamma(40, 1), beta(40, 0), first(120), second(120), mean(3), rstd(3);
  auto forward = [&](float* y, float* mean_out, float* rstd_out) {
    cuda_on_a_cpu::launch(
        3, 8, [&] { f32::layer_norm_forward(x, gamma.data(), beta.data(), y, mean_out, rstd_out, 3, 40, 1e-5f); });
  };
  forward(first.data(), mean.data(), rstd.data());
  forward(second.data(), nullptr, nullptr);
  EXPECT_EQ(first, second);
  EXPECT_GT(rstd[2], 0);
}

}  // namespace
}  // namespace trireme::bench

// Sums over rows that are added to what stands in their results' memory: gradients of several micro-batches.
#include <gtest/gtest.h>

#include "devices/arguments.hpp"
#include "plan/check.hpp"
#include "plan/devices_for_test.hpp"
#include "plan/plan_for_test.hpp"
#include "reference/reference.hpp"
#include "support/float_types.hpp"
#include "trireme/plan.hpp"

namespace trireme {
namespace {

constexpr std::string_view every_spread =
    "p(x[i,j]) -> (y[i,j], c[j], t[], w[i % 3, j], d[i / 4, j % 2], u[j / 2])\n"
    "  y = x * 2\n  c = colsum(x)\n  t = colsum(x)\n  w = colsum(x * x)\n  d = colsum(x)\n  u = colsum(x)\n";

constexpr std::string_view every_maximum =
    "p(x[i,j]) -> (c[j], t[], w[i % 3, j], d[i / 4, j % 2], u[j / 2], s[j])\n"
    "  c = colmax(x)\n  t = colmax(x)\n  w = colmax(x * x)\n  d = colmax(x)\n  u = colmax(x)\n  s = colsum(x)\n";

struct Case {
  std::string line;
  std::string_view text = {};
};
const std::vector<Case>& cases() {
  static const std::vector<Case> all = {
      {"rms_norm 37x300 backward accumulate=dgamma"},
      {"rms_norm 300x1 x=bf16 dgamma=bf16 backward accumulate=dgamma"},
      {"layer_norm 9x4097 x=bf16 dgamma=f16 dbeta=f8e4m3 backward accumulate=dbeta,dgamma"},
      {"layer_norm 70x257 x=f64 dgamma=f32:-3 dbeta=f64:2 backward accumulate=dbeta,dgamma"},
      {"layer_norm 5x300 dgamma=f32+1 backward accumulate=dgamma"},  // beside one that does not
      {"rms_norm 0x16 backward accumulate=dgamma"},
      {"group_norm 6x96 groups=3 pixels=8 backward accumulate=dgamma"},
      {"p 50x64 accumulate=c,d,t,u,w", every_spread},
      {"p 21x6 x=bf16 c=i8 t=bf16 w=i32:-7,1 accumulate=c,t,w", every_spread},
      {"p 1000x258 t=f64 accumulate=t", every_spread},
      {"p 50x64 accumulate=c,d,s,t,u,w", every_maximum},
      {"p 21x6 x=bf16 c=i8 t=bf16 w=i32:-7,1 accumulate=c,t,w", every_maximum},
      {"p 0x6 accumulate=c,t,u", every_maximum},  // what is there stays
  };
  return all;
}

Prepared prepared_for(const Case& each, const std::string& line) {
  return prepare_problem(parse_problem(line).value(), each.text).value();
}

TEST(Accumulate, every_device_gives_the_references_bits) {
  for (const Case& each : cases()) {
    Prepared wanted = prepared_for(each, each.line);
    run_reference(wanted.program, wanted.view()).value();
    for (const DeviceEntry* device : devices_here())
      for (int threads : {1, 3}) {
        if (threads > 1 && !device->threads) continue;
        Prepared got = prepared_for(each, each.line);
        auto executable = device->compile(got.program, facts_of(got.program, got.view())).value();
        executable->run(got.view(), {.threads = threads, .chunk_rows = threads == 3 ? 7 : 0}).value();
        EXPECT_EQ(digest_of(got), digest_of(wanted)) << device->name << " rerun: trireme verify \"" << each.line << '"';
      }
  }
}

// What was there plus the sum that a run without it gives, where both are of the compute type.
TEST(Accumulate, is_one_addition_after_the_sum) {
  for (const char* line :
       {"rms_norm 37x300 backward", "layer_norm 300x257 x=bf16 backward", "rms_norm 0x16 backward"}) {
    Prepared sums = prepare_problem(parse_problem(line).value()).value();
    run_reference(sums.program, sums.view()).value();
    Prepared added = prepare_problem(parse_problem(std::string(line) + " accumulate=dgamma").value()).value();
    const std::size_t k = added.program.find_result("dgamma").value();
    const Array& array = added.results()[k];
    std::vector<float> before;
    for (std::int64_t c = 0; c < added.problem.columns(); ++c)
      before.push_back(static_cast<float>(load_f64(array.type, array.entry(0, c))));
    run_reference(added.program, added.view()).value();
    ASSERT_EQ(array.type, Type::F32);
    for (std::int64_t c = 0; c < added.problem.columns(); ++c) {
      const float sum = static_cast<float>(load_f64(Type::F32, sums.results()[k].entry(0, c)));
      EXPECT_EQ(load_bits(Type::F32, array.entry(0, c)), std::bit_cast<std::uint32_t>(before[c] + sum)) << line << c;
    }
  }
}

TEST(Accumulate, the_oracle_knows_it) {
  for (const Case& each : cases()) {
    Prepared prepared = prepared_for(each, each.line);
    run_reference(prepared.program, prepared.view()).value();
    const auto oracle = oracle_of(prepared).value();
    for (const LargestError& error : largest_errors(prepared.bound, oracle, prepared.result_elements()))
      EXPECT_TRUE(error.fine()) << each.line << ' ' << error.result << " got " << error.got << " want " << error.want;
  }
}

TEST(Accumulate, plans_add_up_runs) {
  constexpr std::int64_t rows = 5, columns = 40;
  Floats dy = sampled(rows * columns, "dy"), x = sampled(rows * columns), gamma = sampled(columns, "gamma");
  Floats once(columns), twice(columns), dx(rows * columns);
  auto run = [&](Floats& dgamma, std::set<std::string> accumulate, int times) {
    PlanOptions options{.program = rms_norm().differentiate().value(),
                        .shape = {rows, columns},
                        .absent = {"rstd"},
                        .accumulate = std::move(accumulate)};
    Plan plan = Plan::create(cpu(), options).value();
    EXPECT_EQ(plan.describe().find("added to what is there") != std::string::npos, !options.accumulate.empty());
    Args args = plan.args();
    args["dy"] = view(dy), args["x"] = view(x), args["gamma"] = view(gamma);
    args["dx"] = view(dx), args["dgamma"] = view(dgamma);
    Workspace workspace = plan.make_workspace().value();
    for (int k = 0; k < times; ++k) plan.run(args, {}, workspace.span()).value();
  };
  run(once, {}, 1);
  run(twice, {"dgamma"}, 2);
  for (std::int64_t c = 0; c < columns; ++c) EXPECT_EQ(twice[c], (0.0f + once[c]) + once[c]) << c;
}

TEST(Accumulate, refusals) {
  auto refused = [](const std::string& line) {
    Result<Prepared> made = prepare_problem(parse_problem(line).value());
    return made ? "not refused" : made.error().message;
  };
  auto says = [&](const std::string& line, std::string_view what) {
    EXPECT_NE(refused(line).find(what), std::string::npos) << line << ": " << refused(line);
  };
  says("rms_norm 3x5 accumulate=y", "'y' cannot be accumulated: it is no sum over rows");
  says("rms_norm 3x5 backward accumulate=dx", "'dx' cannot be accumulated: it is no sum over rows");
  says("rms_norm 3x5 backward accumulate=dgamma dgamma=none", "'dgamma' is to be accumulated, and is not stored");
  says("rms_norm 3x5 backward accumulate=x", "'x' is an operand");
  says("rms_norm 3x5 backward accumulate=dgama", "has no 'dgama'");
  EXPECT_EQ(parse_problem("rms_norm 3x5 backward accumulate=,").error().code, Code::InvalidArgument);
  const std::string line = "rms_norm 3x5 backward accumulate=dbeta,dgamma";
  EXPECT_EQ(print(parse_problem(line).value()), line);
}

}  // namespace
}  // namespace trireme

// The tuner's search: the bits stay, the winner is remembered and taken.
#include "plan/tune.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "devices/arguments.hpp"
#include "devices/cache/kernel_cache.hpp"
#include "plan/check.hpp"
#include "plan/devices_for_test.hpp"
#include "problem/digest.hpp"
#include "problem/problem.hpp"
#include "reference/reference.hpp"
#include "schedule/candidates.hpp"
#include "targets/targets.hpp"
#include "trireme/plan.hpp"

namespace trireme {
namespace {

const DeviceEntry* a_cpu() { return cpus().empty() ? nullptr : cpus()[0]; }

TEST(Tune, bits_are_the_same_for_every_candidate) {
  int compared = 0;
  for (const char* line : {"rms_norm 70x1024 x=bf16 backward", "softmax 9x8192", "layer_norm 40x128 x=f16 backward"}) {
    Problem problem = parse_problem(line).value();
    Prepared wanted = prepare_problem(problem).value();
    ASSERT_TRUE(run_reference(wanted.program, wanted.view()));
    const DeviceEntry& lanes = *find_device("lanes");
    Machine machine{.simd = false, .shared_bytes = 232448, .clusters = true, .processors = 132};
    Facts facts = facts_of(wanted.program, wanted.view());
    std::vector<Config> configs = candidate_configs(wanted.program, machine, facts);
    EXPECT_GT(configs.size(), 20u);
    for (std::size_t k = 0; k < 40; k += 4)
      for (const Config& each : neighbours(configs[k])) configs.push_back(each);
    for (std::size_t k = 0; k < configs.size(); k += 1 + configs.size() / 16) {
      facts.config = configs[k];
      auto executable = lanes.compile(wanted.program, facts);
      if (!executable) continue;
      Prepared got = prepare_problem(problem).value();
      ASSERT_TRUE(executable.value()->run(got.view(), {})) << print(configs[k]);
      EXPECT_EQ(digest_of(got), digest_of(wanted)) << line << " " << print(configs[k]);
      ++compared;
    }
  }
  EXPECT_GT(compared, 12);
}

TEST(Tune, tries_the_chosen_one_first_and_sorts_the_rest) {
  const DeviceEntry* cpu = a_cpu();
  if (!cpu) GTEST_SKIP() << no_cpu();
  Prepared prepared = prepare_problem(parse_problem("rms_norm 8x1024").value()).value();
  double last = 0;
  auto tried = try_configs(*cpu, prepared.program, prepared.view(),
                           {.seconds = 0.001, .bytes = 65536, .progress = [&](double part) { last = part; }});
  ASSERT_TRUE(tried) << tried.error().message;
  EXPECT_EQ(last, 1);
  Config chosen = choose_config(prepared.program, cpu->machine().value(), facts_of(prepared.program, prepared.view()));
  EXPECT_EQ(print((*tried)[0].config), print(chosen));
  EXPECT_TRUE(std::isfinite((*tried)[0].seconds));
  for (std::size_t k = 2; k < tried->size(); ++k) EXPECT_LE((*tried)[k - 1].seconds, (*tried)[k].seconds);
}

struct Idle : Executable {
  Status run(const Problem2d&, const RunOptions&) override { return Done{}; }
  std::string describe() const override { return "idle"; }
};

// What a search for a table is held against is not the table's own schedule.
TEST(Tune, the_models_choice_is_without_the_table) {
  for (const Target* target : targets())
    for (const std::string_view arch : target->common_archs) {
      const Machine machine = target->machine(arch).value();
      if (machine.simd || machine.tuned.empty()) continue;
      // Rows of any number take the table's schedules where there are sums over them.
      Prepared prepared = prepare_problem(parse_problem("add_rms_norm 4x1152 x=f32 backward").value()).value();
      const Facts facts = facts_of(prepared.program, prepared.view());
      Machine without = machine;
      without.tuned = {};
      const std::string tuned = print(choose_config(prepared.program, machine, facts)),
                        models = print(choose_config(prepared.program, without, facts));
      ASSERT_NE(tuned, models) << arch;
      const DeviceEntry device{.name = "idle",
                               .compile = [](const Program&, const Facts&) -> Result<std::unique_ptr<Executable>> {
                                 return std::unique_ptr<Executable>(std::make_unique<Idle>());
                               },
                               .machine = [&]() -> Result<Machine> { return machine; }};
      for (bool by_model : {false, true}) {
        const auto tried = try_configs(device, prepared.program, prepared.view(),
                                       {.seconds = 0.0001, .most = 1, .bytes = 65536, .by_model = by_model});
        ASSERT_TRUE(tried) << tried.error().message;
        EXPECT_EQ(print((*tried)[0].config), by_model ? models : tuned);
        EXPECT_TRUE(
            std::any_of(tried->begin(), tried->end(), [&](const Tried& each) { return print(each.config) == tuned; }));
      }
    }
}

TEST(Tune, a_winner_is_taken_by_plans) {
  const DeviceEntry* cpu = a_cpu();
  if (!cpu) GTEST_SKIP() << no_cpu();
  if (!KernelCache::process().disk()) GTEST_SKIP() << KernelCache::process().off_reason();
  // A program of this test's own: nobody else is served by what it remembers.
  RowProgram program =
      RowProgram::parse("tuned_by_a_test(x[i,j]) -> (y[i,j])\n  y = x * rsqrt(mean(x * x) + 0.5)\n").value();
  auto plan = [&] {
    return Plan::create(Device::named(cpu->name).value(), {.program = program, .shape = {16, 4096}}).value();
  };
  std::string before = plan().sku().config;
  Problem problem = parse_problem("tuned_by_a_test 16x4096").value();
  Prepared prepared = prepare_problem(problem, program.print()).value();
  Facts facts = facts_of(prepared.program, prepared.view());
  Config other = parse_config(before).value();
  other.unroll = other.unroll == 4 ? 8 : 4;
  ASSERT_TRUE(remember_config(*cpu, prepared.program, facts, other));
  ASSERT_TRUE(remembered_config(*cpu, prepared.program, facts));
  EXPECT_EQ(plan().sku().config, print(other));
  ASSERT_TRUE(remember_config(*cpu, prepared.program, facts, parse_config(before).value()));
  EXPECT_EQ(plan().sku().config, before);
  facts.columns = 2048;
  EXPECT_FALSE(remembered_config(*cpu, prepared.program, facts));
  EXPECT_FALSE(remember_config(devices()[0], prepared.program, facts, other));
}

}  // namespace
}  // namespace trireme

// Kernels that say in listings which registers hold a program's values: where they say it, and that nothing else
// changes.
#include <gtest/gtest.h>

#include <regex>

#include "devices/arguments.hpp"
#include "plan/operator_points.hpp"
#include "plan/show.hpp"
#include "targets/targets.hpp"

namespace trireme {
namespace {

TEST(ListingNames, LeaveNoTraceInWhatIsEmitted) {
  int compared = 0;
  for (const OperatorText& op : operator_texts())
    for (bool backward : {false, true}) {
      const Result<Prepared> prepared =
          prepare_problem(OperatorPoint{&op, backward, Type::F32, 257}.problem(64).value(), {}, Fill::NoMemory);
      if (!prepared) continue;
      const Facts facts = facts_of(prepared->program, prepared->view());
      for (const Target* target : targets())
        for (std::string_view arch : target->common_archs) {
          const Machine machine = target->machine(arch).value();
          const Result<Lowered> plain = lower_for(prepared->program, machine, facts);
          const Result<Lowered> named = lower_for(prepared->program, machine, facts, true);
          ASSERT_EQ(static_cast<bool>(plain), static_cast<bool>(named));
          if (!plain) continue;
          EXPECT_TRUE(plain->kernels.rows.names.empty());
          EXPECT_FALSE(named->kernels.rows.names.empty()) << op.name;
          const Result<Artifact> without = target->emit(plain->kernels, arch, {});
          const Result<Artifact> with = target->emit(named->kernels, arch, {});
          ASSERT_TRUE(without) << without.error().message;
          ASSERT_TRUE(with) << with.error().message;
          EXPECT_TRUE(without->bytes == with->bytes)
              << op.name << " " << backward << " " << target->name << " " << arch;
          ++compared;
        }
    }
  EXPECT_GT(compared, 500);
}

TEST(ListingNames, StandInEveryTargetsText) {
  const Prepared prepared = prepare_problem(parse_problem("rms_norm 64x4096").value(), {}, Fill::NoMemory).value();
  const Facts facts = facts_of(prepared.program, prepared.view());
  for (const Target* target : targets()) {
    const std::string text = show_code({prepared, facts, *target, {}}).value();
    for (std::string_view name : {" x: ", " gamma: ", " rstd: ", " y: ", " eps: "})
      EXPECT_NE(text.find(name), std::string::npos) << target->name << name;
  }
  const std::string lowered = find_show_point("lower")->text({prepared, facts, *targets()[1], {}}).value();
  EXPECT_NE(lowered.find("# rstd: f"), std::string::npos);
}

// Machine code: the register that a comment names holds the value there: the store that follows reads it.
TEST(ListingNames, SayWhichMachineRegisterHoldsAValue) {
  int stores = 0;
  for (const OperatorText& op : operator_texts()) {
    const Result<Prepared> prepared =
        prepare_problem(OperatorPoint{&op, false, Type::F32, 257}.problem(64).value(), {}, Fill::NoMemory);
    if (!prepared) continue;
    const Facts facts = facts_of(prepared->program, prepared->view());
    for (const Target* target : targets()) {
      if (target->form != Target::Form::Code) continue;
      for (std::string_view arch : target->common_archs) {
        const Result<std::string> code = show_code({*prepared, facts, *target, std::string(arch)});
        if (!code) continue;
        const std::regex named(
            R"(; \w+: (f\d+) in (?:[xyz]mm|v)(\d+)\n *; store f32 global .* = (f\d+)\n((?: *[^ ;].*\n)+))");
        for (std::sregex_iterator at(code->begin(), code->end(), named), end; at != end; ++at) {
          const std::smatch& found = *at;
          if (found[1] != found[3]) continue;
          const std::regex read(R"((?:[xyz]mm|[vqds]))" + found[2].str() + R"(\b)");
          EXPECT_TRUE(std::regex_search(found[4].str(), read)) << op.name << " " << arch << ":\n" << found[0];
          ++stores;
        }
      }
    }
  }
  EXPECT_GT(stores, 500);
}

}  // namespace
}  // namespace trireme

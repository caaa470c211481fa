// Every device's schedule, as far as each of its passes: the reference's bits.
#include "schedule/schedule_passes.hpp"

#include "same_bits_for_test.hpp"

namespace trireme {
namespace {

TEST(SchedulePasses, EachLeavesTheBits) {
  std::size_t lowered = 0;
  for (const char* line :
       {"rms_norm 37x300 x=bf16", "rms_norm 37x300 x=bf16 backward", "softmax 37x128 x=f32",
        "layer_norm 37x1100 x=f32 backward", "swiglu 9x64 x=f16", "softmax 64x48 x=f32:1,64 y=:1,64"}) {
    Prepared reference = prepare_problem(parse_problem(line).value()).value();
    ASSERT_TRUE(run_reference(reference.program, reference.view()));
    for (const DeviceEntry* device : devices_here(30)) {
      for (const SchedulePass& pass : schedule_passes()) {
        Prepared got = prepare_problem(parse_problem(line).value()).value();
        Facts facts = facts_of(got.program, got.view());
        const Config whole = choose_config(got.program, machine_of(*device).value(), facts);
        facts.config = config_after(whole, pass);
        SCOPED_TRACE(fmt::format("{} on {} after {}: {}", line, device->name, pass.name, print(*facts.config)));
        auto executable = device->compile(got.program, facts);
        ASSERT_TRUE(executable) << executable.error().message;
        ASSERT_TRUE(executable.value()->run(got.view(), {}));
        EXPECT_EQ(digest_of(got), digest_of(reference));
        ++lowered;
      }
    }
  }
  EXPECT_EQ(lowered, 6 * schedule_passes().size() * devices_here(30).size());
}

}  // namespace
}  // namespace trireme

// A listing is of the code that is emitted without one: every operator, both directions and architectures. That
// binutils read in that code what the listing says, web/tests/listing.test.mjs tests.
#include <gtest/gtest.h>

#include "devices/arguments.hpp"
#include "plan/check.hpp"
#include "plan/operator_points.hpp"
#include "targets/x86/emit.hpp"

namespace trireme::x86 {
namespace {

TEST(X86, AListingDoesNotChangeTheCode) {
  for (const OperatorText& op : operator_texts())
    for (bool backward : {false, true})
      for (Isa isa : {Isa::Avx2, Isa::Avx512}) {
        const OperatorPoint point{&op, backward, Type::F32, 4096};
        const Result<Prepared> made = prepare_problem(point.problem(7).value(), {}, Fill::NoMemory);
        if (!made) continue;  // the operator does not take this width
        const Config config = choose_config(made->program, machine_of(isa), facts_of(made->program, made->view()));
        const Kernels kernels = lower(made->program, config).value();
        std::vector<const Kernel*> all = {&kernels.rows};
        for (const Kernel& each : kernels.columns) all.push_back(&each);
        for (const Kernel* kernel : all)
          EXPECT_EQ(emit(*kernel, isa, true)->bytes, emit(*kernel, isa)->bytes) << op.name << " " << kernel->name;
      }
}

}  // namespace
}  // namespace trireme::x86

#include "devices/cpu/there_and_back_for_test.hpp"
#include "devices/cpu/x86/devices.hpp"

namespace trireme::cpu {
namespace {

void there_and_back(std::string_view arch) {
  for (const InstructionSet& each : x86_instruction_sets()) {
    if (each.arch != arch) continue;
    if (std::string reason = each.missing(); !reason.empty()) GTEST_SKIP() << reason;
    return there_and_back(*each.moves);
  }
  FAIL() << arch;
}
TEST(Packing, fault_08_EveryEntryThereAndBackAndNothingElse_Avx2) { there_and_back("avx2"); }
TEST(Packing, fault_08_EveryEntryThereAndBackAndNothingElse_Avx512) { there_and_back("avx512"); }

}  // namespace
}  // namespace trireme::cpu

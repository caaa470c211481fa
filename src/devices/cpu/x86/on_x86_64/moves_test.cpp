#include "devices/cpu/round_trip_for_test.hpp"
#include "devices/cpu/x86/devices.hpp"

namespace trireme::cpu {
namespace {

void with_moves_of(std::string_view arch, void (*test)(const MoveTable&)) {
  for (const InstructionSet& each : x86_instruction_sets()) {
    if (each.arch != arch) continue;
    if (std::string reason = each.missing(); !reason.empty()) GTEST_SKIP() << reason;
    return test(*each.moves);
  }
  FAIL() << arch;
}
TEST(Packing, fault_08_EveryEntryRoundTripAndNothingElse_Avx2) { with_moves_of("avx2", round_trip); }
TEST(Packing, fault_08_EveryEntryRoundTripAndNothingElse_Avx512) { with_moves_of("avx512", round_trip); }
TEST(Packing, NothingIsReadBeyondARow_Avx2) { with_moves_of("avx2", one_row_at_the_edge); }
TEST(Packing, NothingIsReadBeyondARow_Avx512) { with_moves_of("avx512", one_row_at_the_edge); }

}  // namespace
}  // namespace trireme::cpu

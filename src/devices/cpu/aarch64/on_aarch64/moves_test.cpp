#include "devices/cpu/aarch64/moves.hpp"

#include "devices/cpu/round_trip_for_test.hpp"

namespace trireme::cpu {
namespace {

TEST(Packing, fault_08_EveryEntryRoundTripAndNothingElse_Neon) { round_trip(neon_moves()); }
TEST(Packing, NothingIsReadBeyondARow_Neon) { one_row_at_the_edge(neon_moves()); }

}  // namespace
}  // namespace trireme::cpu

#include <algorithm>
#include <bit>

#include "ir/contract.hpp"
#include "schedule/across.hpp"
#include "schedule/choose.hpp"
#include "schedule/resolve_groups.hpp"
#include "schedule/shape.hpp"
#include "schedule/sum_classes.hpp"
#include "schedule/tuned.hpp"
#include "schedule/work.hpp"

namespace trireme {

Config choose_for_simd(const Program& program, const Machine& machine, const Facts& facts) {
  if (std::optional<Config> tuned = tuned_config(program, machine, facts)) return *tuned;
  Config config{.simd = true};
  const Shape shape = shape_of(program, facts.layout);
  config.lanes = machine.lanes(*program.compute);
  if (machine.compact) {
    config.compact = true;
    config.unroll = 1;
    if (fixes_columns(program)) config.columns = facts.columns;
    return config;
  }
  // Code takes 0.15 µs an instruction to make: fewer vectors a turn where each is much work, which costs nothing there
  // (4 against 16: geglu_erf backward 1.00, gated_rms_norm backward 0.7 to 1.00; layer_norm backward 1.08; 1 against 2:
  // geglu_erf backward 1.00; 8 against 16 in f64: 0.95 to 1.05).
  const int work = instructions_a_vector(program, machine.instructions);
  // As many sums as lanes; fewer rows of the one kind than a tile has are no product of matrices. Of a Zen 4's 115
  // GFLOP/s, one thread, f32, with tiles and without: matmul 65536x1024 m=1024 46 and 14 % on AVX-512, 27 and 13 % on
  // AVX2; 262144x128 m=512 40 and 35 %, 38 and 31 %; 65536x96 m=256 30 and 34 %, 32 and 30 %.
  if (const std::optional<std::int64_t> m = tiled_by(program, facts.layout, facts.columns);
      m && facts.columns >= contract::stripe / 2 && facts.rows >= tile_sides(config.lanes).quotients * *m &&
      *m >= tile_sides(config.lanes).remainders) {
    config.tile = config.lanes;
    config.columns = facts.columns;
    config.unroll = 2;
    return config;
  }
  auto up = [](std::int64_t value, std::int64_t by) { return (value + by - 1) / by; };
  const std::int64_t stripes = up(facts.columns, config.stripe());
  const std::int64_t vectors = up(facts.columns, config.lanes);
  const std::int64_t elements = facts.rows * facts.columns;
  const bool large = machine.cache_bytes && elements * shape.stored_bytes > machine.cache_bytes;
  // Rows that lie apart, or whose columns lie backwards, go on elsewhere than where they end, which the processor's own
  // prefetching does not foresee: short rows get code of their own, and the next row is fetched (swiglu f32 2048x32x128
  // with columns backwards on AVX2 4.5 ms, 18.6 without, 4.2 contiguous; its backward on AVX-512 5.1 to 6.1, 8.7
  // without, 4.6 contiguous).
  const bool unforeseen = facts.layout.backwards() || (large && facts.rows_apart);
  auto unroll = [&](int instructions) {
    return std::clamp(static_cast<int>(std::bit_floor(static_cast<unsigned>(instructions / work))), 1, 8);
  };
  config.unroll = work > 32 ? unroll(256) : *program.compute == Type::F64 ? 8 : 16;
  // Rows side by side: by the time of contiguous arrays, softmax backward 32x64x128 f32 takes 2.6 and not 4.8 as with
  // copies, 128x65536 bf16 1.5 and not 3. Turns of 128 rows are whole pieces of lines and pages (4096x4096 bf16: 3.5
  // with 64 rows); beyond the caches columns are fetched ahead (512x4096 bf16: 4.0 without), within them that is
  // lost time (32x64x128: 2.9 instead of 2.6).
  // A sum over rows takes registers of rows of one block; 2048 rows and more have blocks of 16. With two sums copies
  // are better (512x32x128, layer_norm backward f32: 3.3 against 4.0).
  const bool whole_blocks =
      !shape.column_sums ||
      (shape.column_sums == 1 && row_block_of(program, facts.rows, facts.columns) % config.lanes == 0);
  if (machine.across && facts.layout.strided() && facts.together >= config.lanes && whole_blocks &&
      goes_across(program)) {
    config.across = true;
    config.prefetch = machine.cache_bytes && elements * shape.row_bytes > machine.cache_bytes;
    // Two turns, so that two threads have work, unless pieces of columns get too short: softmax backward 128x65536 f16
    // with turns of 64 rows 7.4 ms, of 128 3.0.
    const std::int64_t least = across_piece_bytes(config.prefetch) / shape.narrowest_stored;
    const std::int64_t rows = std::min({facts.together, facts.rows, std::max(facts.rows / 2, least), std::int64_t{128},
                                        std::int64_t{most_across_registers} * config.lanes});
    config.rows = static_cast<int>(std::max(rows / config.lanes, std::int64_t{1}));
    config.unroll = std::max(unroll(shape.column_sums ? 64 : 128), 2);
    config.streaming = large && !facts.in_place;
    // A turn that fits the second cache beside the next one fetches that (2048x32x128 bf16, softmax backward: 2.0
    // instead of 3.8).
    const std::int64_t turn_bytes = config.rows * config.lanes * facts.columns * shape.row_bytes;
    config.overlap = config.prefetch && shape.reductions > 0 && turn_bytes <= 1 << 18;
    return config;
  }
  // Short rows are worth code of their own: no loop, no tail, column sums in registers (256x128: layer_norm backward
  // 8.9 µs against 17.5, softmax 14 against 23); without sums it gains nothing.
  const std::int64_t most = shape.reductions || shape.column_sums || unforeseen ? 1000 : 256;
  if (goes_lane_by_lane(program, facts.layout, facts.columns, config.lanes)) {
    config.unroll = std::min(unroll(128), 2);  // going lane by lane is a loop of its own in every vector
  } else if (vectors <= 32 && stripes <= 16 && vectors * work <= most) {
    config.columns = facts.columns;
    config.stripes = std::bit_ceil(static_cast<unsigned>(stripes));
    config.hoist = true;
    // AVX-512 has registers for a row of 8 vectors: 16-bit types are widened once (add_rms_norm bf16 in L1: 0.29 ns an
    // element instead of 0.35). Rows that wait for two sums are taken in pairs (softmax 0.35 instead of 0.40).
    bool registers = machine.register_bytes == 64 && facts.columns <= 8 * config.lanes && !shape.column_sums;
    config.reload = !registers;
    if (registers && shape.reductions > 1) config.rows = 2;
  }
  if (fixes_columns(program)) config.columns = facts.columns;
  if (config.stripes) config.unroll = Config{}.unroll;  // there is no loop
  // Groups of columns are reduced in registers where their chunks stand beside each other, in whole stripes if a sweep
  // also sums the row. Beyond some thousand instructions code takes longer to make than half a millisecond: such groups
  // are kept in scratch (swiglu_block_quant of f64 on AVX2 had 3913).
  const int chunks = chunks_of_groups(program, facts.columns, config.lanes);
  if (!config.stripes && chunks * work <= 2000) config.unroll = std::max(config.unroll, chunks);
  // Ordinary stores read what they overwrite. By a streaming copy's time, rms_norm 4096x4096 from memory: 2.77 with
  // them, 1.61 past the caches and with the next row on its way (docs/performance.md). Rows in unrolled stripes are
  // short, and one sweep reads straight on: there the processor's own prefetching is enough, unless rows lie apart
  // (512x32x128 with outer axes swapped, rms_norm backward f32: 3.1 times the contiguous one without, 2.0 with it).
  // Rows that begin within a register's place would be stored both ways, and share lines (512x32x128 with rows one
  // element longer, rms_norm f32: 1.11 ms on AVX2 and 0.34 with ordinary stores, 0.52 and 0.28 on AVX-512).
  const bool in_place_of_registers = facts.result_alignment >= config.lanes * shape.narrowest_stored;
  config.streaming = large && !facts.in_place && in_place_of_registers;
  const bool sweeps_again = !config.stripes && shape.reductions > 0;
  config.prefetch = large && (sweeps_again || unforeseen || (facts.layout.jumps() && shape.reductions > 0));
  // Two sweeps at once want AVX-512's registers. By a streaming copy's time: softmax 2.38 without, 1.73 with it,
  // rms_norm backward 2.53 and 1.71.
  // Rows of entries in turn are walked one by one.
  const bool in_turn = std::any_of(program.results.begin(), program.results.end(), [&](const Output& result) {
    return is_column_reduction(program[result.value].op) && result.spread.row.wrap != no_node;
  });
  config.overlap = large && sweeps_again && machine.register_bytes == 64 && !in_turn;
  if (config.overlap && work > 32) config.unroll = unroll(128);
  return config;
}

}  // namespace trireme

#include "schedule/config.hpp"

#include <algorithm>
#include <bit>

#include "ir/contract.hpp"
#include "ir/integers.hpp"
#include "schedule/across.hpp"
#include "schedule/shape.hpp"
#include "schedule/work.hpp"

namespace trireme {
namespace {

Config for_simd(const Program& program, const Machine& machine, const Facts& facts) {
  Config config{.simd = true};
  const Shape shape = shape_of(program, facts.layout);
  config.lanes = machine.register_bytes / static_cast<int>(bytes(*program.compute));
  // Code takes 0.15 µs an instruction to make: fewer vectors a turn where each is much work, which costs nothing there
  // (4 against 16: geglu_erf backward 1.00, gated_rms_norm backward 0.7 to 1.00; layer_norm backward 1.08; 1 against 2:
  // geglu_erf backward 1.00; 8 against 16 in f64: 0.95 to 1.05).
  const int work = instructions_a_vector(program);
  const std::int64_t vectors = (facts.columns + config.lanes - 1) / config.lanes;
  const std::int64_t elements = facts.rows * facts.columns;
  const bool large = machine.cache_bytes && elements * shape.stored_bytes > machine.cache_bytes;
  // Rows that lie apart, or whose columns lie backwards, go on elsewhere than where they end, which the processor's own
  // prefetching does not foresee: short rows get code of their own, and the next row is fetched (swiglu f32 2048x32x128
  // with columns backwards on AVX2 4.5 ms, 18.6 without, 4.2 contiguous; its backward on AVX-512 5.1 to 6.1, 8.7
  // without, 4.6 contiguous).
  const bool unforeseen = facts.layout.backwards() || facts.rows_apart;
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
  const bool whole_blocks = !shape.column_sums || (shape.column_sums == 1 &&
                                                   contract::row_block(facts.rows, facts.columns) % config.lanes == 0);
  if (machine.across && facts.layout.strided() && facts.together >= config.lanes && whole_blocks &&
      goes_across(program)) {
    config.across = true;
    std::int64_t rows = std::min({facts.together, facts.rows / 2, std::int64_t{128}});
    config.rows = static_cast<int>(std::max(rows / config.lanes, std::int64_t{1}));
    config.unroll = std::max(unroll(shape.column_sums ? 64 : 128), 2);
    config.streaming = large && !facts.in_place;
    config.prefetch = machine.cache_bytes && elements * shape.row_bytes > machine.cache_bytes;
    // A turn that fits the second cache beside the next one fetches that (2048x32x128 bf16, softmax backward: 2.0
    // instead of 3.8).
    const std::int64_t turn_bytes = config.rows * config.lanes * facts.columns * shape.row_bytes;
    config.overlap = config.prefetch && shape.reductions > 0 && turn_bytes <= 1 << 18;
    return config;
  }
  // Short rows are worth code of their own: no loop, no tail, column sums in registers (256x128: layer_norm backward
  // 8.9 µs against 17.5, softmax 14 against 23); without sums it gains nothing.
  const std::int64_t most = shape.reductions || shape.column_sums || unforeseen ? 1000 : 256;
  if (goes_lane_by_lane(program, facts.layout)) {
    config.unroll = std::min(unroll(128), 2);  // going lane by lane is a loop of its own in every vector
  } else if (vectors <= 32 && vectors * work <= most) {
    config.columns = facts.columns;
    config.stripes = std::bit_ceil(static_cast<unsigned>(contract::stripes(facts.columns)));
    config.hoist = true;
    // AVX-512 has registers for a row of 8 vectors: 16-bit types are widened once (add_rms_norm bf16 in L1: 0.29 ns an
    // element instead of 0.35). Rows that wait for two sums are taken in pairs (softmax 0.35 instead of 0.40).
    bool registers = machine.register_bytes == 64 && facts.columns <= 8 * config.lanes && !shape.column_sums;
    config.reload = !registers;
    if (registers && shape.reductions > 1) config.rows = 2;
  }
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
  config.overlap = large && sweeps_again && machine.register_bytes == 64;
  if (config.overlap && work > 32) config.unroll = unroll(128);
  return config;
}

// Figures are shares of a copy, bf16, 256 or 512 MiB, found by bench/schedules on an H200 unless said otherwise.
class ForThreads {
 public:
  ForThreads(const Program& program, const Machine& machine, const Facts& facts)
      : machine_(machine),
        facts_(facts),
        shape_(shape_of(program, facts.layout)),
        stripes_(contract::stripes(facts.columns)) {}

  Config choose() {
    config_ = {.simd = false, .lanes = 32, .columns = facts_.columns, .streaming = true};
    config_.vector = shape_.widest_vector(facts_);
    // A row's sum costs shuffles for every element of a vector: 8-byte loads of 16-bit types reach 0.98 where 16-byte
    // loads reach 0.95 (rms_norm, 512 columns), and leave registers for column sums (0.93 against 0.77 at 2880).
    if (shape_.reductions && stripes_ > 1) config_.vector = std::min(config_.vector, 4);
    if (few_rows()) return config_;
    if (stripes_ == 1) short_rows();
    else if (shape_.column_sums) rows_with_column_sums();
    else long_rows();
    return config_;
  }

 private:
  // Enough that teams of so many rows still fill the machine?
  bool many_rows(std::int64_t a_team) const {
    return facts_.rows * config_.cluster >= a_team * config_.teams * 4 * machine_.processors;
  }

  // Less than a block for each processor: what counts is the way from the first load to the last store. All of a row's
  // loads at once, weights among them, and as many threads as a row can use.
  bool few_rows() {
    if (shape_.column_sums || stripes_ == 1 || facts_.rows > machine_.processors) return false;
    for (std::int64_t each : {1, 2, 4})
      if (stripes_ <= 32 * each && split(each, 1)) return config_.hoist = true;
    return false;
  }

  // Up to 256 columns: several rows a warp. With sums, 16 elements a lane: fewer lanes share a row, and fewer shuffles
  // are needed (0.96 against 0.93 at 256).
  void short_rows() {
    config_.stripes = 1;
    config_.hoist = true;
    std::int64_t vectors = (facts_.columns + config_.vector - 1) / config_.vector;
    if (shape_.reductions) vectors = (vectors + 1) / 2;
    config_.lanes = static_cast<int>(std::clamp<std::int64_t>(next_power(vectors), 4, 32));
    config_.teams = 128 / config_.lanes;
    if (!shape_.reductions) return;
    if (shape_.column_sums) {
      ring(2);
      // Two sums: 0.83 at 128 columns, 0.73 without.
      config_.reload = config_.ring > 0 && (shape_.column_sums > 1 || facts_.columns > 128);
    } else if ((facts_.columns <= 128 || twice()) && many_rows(4)) {
      config_.rows = 4;  // the prologue is paid once: 0.93 against 0.82 at 128
      ring(4);
    }
  }

  // A block has a block of rows, and the sums in registers. One sum fits 16384 columns a block, two 12288; longer rows
  // take clusters of smaller blocks. Where not even two rows of 8192 columns fit the shared memory, blocks are so small
  // that two of them fit a multiprocessor, and one fills what the other waits for (add_rms_norm f32 at 65536: 0.89
  // against 0.56).
  void rows_with_column_sums() {
    std::int64_t two_rows = 2 * contract::stripe * std::max<std::int64_t>(shape_.row_bytes, 1);  // bytes a stripe
    std::int64_t fit = (machine_.shared_bytes - 4096) / two_rows;
    bool single = shape_.column_sums == 1, one = single && fit >= 64;
    std::int64_t alone = one ? 64 : 48, block = 32, each = stripes_ <= 32 ? 2 : 4, cluster = 1;
    // Up to 8192 columns of f32: 8-byte loads, since larger ones fill the queue of shared memory (rms_norm at 2880 and
    // 5120: 0.94 and 0.93 against 0.79 and 0.80; at 12288 it is the other way round). Where two arrays
    // are read, a few stripes are loads enough to wait for, one a warp, without a ring (1024: 0.95 against 0.86), and
    // the caches do better unadvised (2880: 0.94 against 0.85).
    bool wide = shape_.widest >= 4 && stripes_ <= 32, two = single && shape_.row_bytes <= 8;
    bool light = wide && two && stripes_ <= 8;
    if (wide) config_.vector = std::min(config_.vector, 2);
    if (wide && two) config_.streaming = false;
    if (light) each = 1;
    if (fit < 32 && even())
      block = alone = std::bit_floor(static_cast<std::uint64_t>(std::max<std::int64_t>(fit / 2, 1)));
    if (stripes_ > alone) {
      while (block > 8 && !divides(block)) block /= 2;
      if (block <= 8) each = 2;
      std::int64_t most = one && even() ? 8 : 16;
      for (cluster = up(stripes_, block); cluster > most;) cluster = up(stripes_, block *= 2);
    }
    if (!split(each, cluster)) return in_loops();
    bool odd = !std::has_single_bit(static_cast<std::uint64_t>(facts_.columns));
    // As many registers as the blocks leave: rms_norm 0.90 against 0.87 at 5120, layer_norm 0.86 against 0.80 at 2880.
    std::int64_t row_blocks = contract::row_blocks(std::int64_t{1} << 40, facts_.columns);
    if (odd && cluster == 1 && !wide) config_.resident = row_blocks > machine_.processors && config_.groups > 6 ? 2 : 1;
    // Two sums in a cluster have 256 threads a block, and registers for what the ring would be read for twice.
    bool keeps = (!one && cluster > 1) || each < 4;
    // Sixteen blocks of f32 have none (rms_norm at 131072: 0.82 against 0.71).
    if (single && cluster > 8 && shape_.widest >= 4) {
      keeps = false;
      config_.resident = 1;
    }
    // Weights in scratch leave registers (0.937 against 0.919 at 12288).
    config_.stage = odd && !keeps && cluster == 1;
    if (!light) ring(keeps && (cluster > 1 || (odd && !wide)) ? 3 : 2);
    config_.stage &= config_.ring > 0;
    config_.hoist = !config_.stage;
    config_.reload = config_.ring > 0 && (!keeps || (wide && odd && !single));
  }

  static std::int64_t up(std::int64_t value, std::int64_t by) { return (value + by - 1) / by; }
  // Do blocks of so many stripes (a power of two) leave few of them without work?
  bool divides(std::int64_t block) const { return up(stripes_, block) * block * 16 <= stripes_ * 17; }
  bool even() const { return std::has_single_bit(static_cast<std::uint64_t>(stripes_)); }
  bool twice() const { return shape_.reductions > 1; }

  // Nothing ties a row's blocks together: two stripes a warp, and blocks of 64 to 256 threads, as even as can be.
  // Larger blocks wait for their last warps (geglu backward at 7168: 0.80 with 448 threads).
  void rows_without_sums() {
    config_.hoist = true;
    std::int64_t each = 2, groups = up(stripes_, each);
    if (groups > 8)
      for (groups = 8; groups > 1 && !divides(each * groups);) groups /= 2;
    config_.stripes = static_cast<int>(each);
    config_.groups = static_cast<int>(groups);
    config_.cluster = static_cast<int>(up(stripes_, each * config_.groups));
    config_.teams = config_.groups * config_.cluster == 1 ? 128 / config_.lanes : 1;
  }

  void long_rows() {
    if (!shape_.reductions) return rows_without_sums();
    bool weights = shape_.column_bytes > 0, narrow = shape_.widest < 4;
    bool several = narrow && shape_.row_bytes > shape_.widest;  // arrays to read
    if (!twice() && several && stripes_ <= 20) {
      // Loads of two arrays are enough to wait for: fewer of them a thread, weights beside them (add_rms_norm 0.96
      // against 0.86 at 4096).
      config_.vector = shape_.widest_vector(facts_);
      config_.hoist = true;
      split(stripes_ <= 2 ? 1 : 2, 1);
      return;
    }
    if (!twice() && (several || stripes_ > 64) && rows_ahead()) return;
    if (stripes_ == 2 && twice() && weights && many_rows(4)) {
      split(2, 1);
      config_.rows = 4;  // 0.95 against 0.87 (layer_norm, 512)
      config_.hoist = true;
      ring(4);
      return;
    }
    std::int64_t each = stripes_ <= (twice() ? 2 : 4) ? 2 : 4;
    if (stripes_ <= (!even() ? 128 : twice() && !weights ? 32 : 64) && split(each, 1)) {
      config_.hoist = each <= 2;
      // Beside less than half the threads that a multiprocessor holds, a row read again is better than one kept: 32
      // registers and not 66 (layer_norm at 12288 0.92 against 0.75, at 18432 0.92 against 0.56).
      config_.reload = twice() && weights && narrow && stripes_ > 32 && !even();
      return;
    }
    std::int64_t block = twice() && weights && narrow && stripes_ <= 128 ? 64 : 32;
    bool longest = twice() && !weights && stripes_ > 256;
    std::int64_t cluster = std::min<std::int64_t>(longest && narrow ? 16 : 8, next_power(up(stripes_, block)));
    std::int64_t rows = twice() && weights && narrow ? 16 : 4;
    if (!split(stripes_ <= 128 ? 4 : 8, cluster)) {
      if (!split(4, 1)) in_loops();
    } else if (twice() && narrow && weights && stripes_ > 256) {
      config_.reload = true;  // 0.74 at 131072, where hoisted weights take all registers (0.60)
    } else if (longest) {
      config_.resident = narrow ? 6 : 0;  // softmax at 131072: bf16 0.81, f32 0.94; with several rows 0.80 and 0.79
    } else if (stripes_ > 64 && many_rows(rows)) {
      // A few rows each, the next one on its way while this one is summed. layer_norm at 32768: 0.86, and 0.45 with
      // clusters of four and four rows; softmax at 65536 0.85.
      config_.rows = static_cast<int>(rows);
      config_.hoist = true;
      ring(rows > 4 ? 3 : 2);
      config_.reload = !twice() && config_.ring > 0;
    }
  }

  // Two rows a block, the second on its way while the first is summed, weights in scratch: registers for enough
  // threads. rms_norm at 65536: 0.95, and 0.92 with weights in registers. False where the row cannot be dealt out
  // evenly to blocks of 16 or 32 stripes (of several arrays also 8: add_rms_norm at 18432 0.96 against 0.81), and where
  // blocks would be larger than those of long_rows() for no gain (one array at 131072).
  bool rows_ahead() {
    std::int64_t block = stripes_ > 256 ? 64 : 32;
    const bool several = shape_.widest < 4 && shape_.row_bytes > shape_.widest;
    while (block > (several ? 8 : 16) && !divides(block)) block /= 2;
    bool alone = stripes_ < 32;
    if ((!alone && !divides(block)) || (stripes_ > 256 && shape_.row_bytes <= 4)) return false;
    config_.cluster = static_cast<int>(alone ? 1 : up(stripes_, block));
    if (!machine_.clusters || !many_rows(2) || config_.cluster > (several ? 16 : 8)) {
      config_.cluster = 1;
      return false;
    }
    split(!alone && block == 8 ? 2 : 4, config_.cluster);
    config_.vector = std::min(shape_.widest_vector(facts_), static_cast<int>(16 / shape_.widest_column));
    config_.rows = 2;
    config_.stage = shape_.column_bytes > 0;
    ring(2);
    config_.stage &= config_.ring > 0;
    config_.reload = config_.ring > 0;
    return true;
  }

  bool split(std::int64_t each, std::int64_t cluster) {
    std::int64_t groups = up(stripes_, each * cluster);
    if (cluster > 1) groups = next_power(groups);
    if (groups > 32 || (cluster > 1 && !machine_.clusters)) return false;
    config_.stripes = static_cast<int>(each);
    config_.groups = static_cast<int>(groups);
    config_.cluster = static_cast<int>(cluster);
    config_.teams = groups * cluster == 1 ? 128 / config_.lanes : 1;
    return true;
  }

  void in_loops() {  // the row is read once a sweep
    config_.stripes = 0;
    config_.groups = 32;
    config_.cluster = config_.teams = 1;
  }

  void ring(std::int64_t wanted) {
    if (!shape_.row_bytes) return;  // nothing is read by rows and columns
    std::int64_t columns = config_.groups * config_.stripes * std::min(contract::stripe, next_power(facts_.columns));
    std::int64_t staged = config_.stage ? columns * shape_.column_bytes : 0;
    std::int64_t slots = (machine_.shared_bytes - 4096 - staged) / (columns * shape_.row_bytes * config_.teams);
    config_.ring = static_cast<int>(std::min(wanted, slots));
    if (config_.ring < 2) config_.ring = 0;
  }

  const Machine& machine_;
  const Facts& facts_;
  const Shape shape_;
  const std::int64_t stripes_;
  Config config_;
};

}  // namespace

bool goes_lane_by_lane(const Program& program, const Layout& layout) {
  if (layout.strided()) return true;
  for (const Operand& operand : program.operands)
    if (!operand.constant && !operand.spread.column.plain()) return true;
  std::vector<bool> used = reachable(program);
  for (NodeId id = 0; id < program.size(); ++id)
    if (used[id] && (program[id].op == Op::Rotate || compares_integers(program, program[id]))) return true;
  return false;
}

Config choose_config(const Program& program, const Machine& machine, const Facts& facts) {
  Config config = machine.simd ? for_simd(program, machine, facts) : ForThreads(program, machine, facts).choose();
  config.layout = facts.layout;
  return config;
}

}  // namespace trireme

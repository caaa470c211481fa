#include "schedule/config.hpp"

#include <algorithm>
#include <bit>

#include "ir/contract.hpp"
#include "ir/integers.hpp"
#include "schedule/shape.hpp"
#include "schedule/work.hpp"

namespace trireme {
namespace {

Config for_simd(const Program& program, const Machine& machine, const Facts& facts) {
  Config config{.simd = true};
  config.lanes = machine.register_bytes / static_cast<int>(bytes(*program.compute));
  // Code takes 0.2 µs an instruction to make: fewer vectors a turn where each is much work, which costs nothing there
  // (4 against 16: geglu_erf backward 1.00, gated_rms_norm backward 0.7 to 1.00; layer_norm backward 1.08).
  const int work = instructions_a_vector(program);
  const std::int64_t vectors = (facts.columns + config.lanes - 1) / config.lanes;
  config.unroll =
      work <= 32 ? 16 : std::clamp(static_cast<int>(std::bit_floor(256u / static_cast<unsigned>(work))), 2, 8);
  // Short rows are worth code of their own: no loop, no tail, column sums in registers (256x128: layer_norm backward
  // 8.9 µs against 17.5, softmax 14 against 23); without sums it gains nothing.
  Shape shape = shape_of(program, facts.layout);
  const std::int64_t most = shape.reductions || shape.column_sums ? 1000 : 256;
  if (goes_lane_by_lane(program, facts.layout)) {
    config.unroll = 2;  // going lane by lane is a loop of its own in every vector
  } else if (vectors <= 32 && vectors * work <= most) {
    config.columns = facts.columns;
    config.stripes = std::bit_ceil(static_cast<unsigned>(contract::stripes(facts.columns)));
    config.hoist = true;
    config.reload = true;
  }
  // Ordinary stores read what they overwrite. By a streaming copy's time, rms_norm 4096x4096 from memory: 2.77 with
  // them, 1.61 past the caches and with the next row on its way (docs/performance.md). Rows in unrolled stripes are
  // short, and one sweep reads straight on: there the processor's own prefetching is enough.
  std::int64_t elements = facts.rows * facts.columns;
  bool large = machine.cache_bytes && elements * shape.stored_bytes > machine.cache_bytes;
  config.streaming = large && !facts.in_place;
  config.prefetch = large && !config.stripes && shape.reductions > 0;
  // Two sweeps at once want AVX-512's registers. By a streaming copy's time: softmax 2.38 without, 1.73 with it,
  // rms_norm backward 2.53 and 1.71.
  config.overlap = config.prefetch && machine.register_bytes == 64;
  return config;
}

// Figures are shares of a copy, bf16, 256 MiB, found by bench/schedules on an H200 unless said otherwise.
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

  // Up to 256 columns: several rows a warp.
  void short_rows() {
    config_.stripes = 1;
    config_.hoist = true;
    std::int64_t vectors = (facts_.columns + config_.vector - 1) / config_.vector;
    // With sums, 16 elements a lane: fewer lanes share a row, and fewer shuffles are needed (0.96 against 0.93 at 256).
    bool shared = shape_.reductions && !(shape_.column_sums && facts_.columns <= 128);
    config_.lanes = static_cast<int>(std::clamp<std::int64_t>(next_power(shared ? (vectors + 1) / 2 : vectors), 4, 32));
    config_.teams = 128 / config_.lanes;
    if (!shape_.reductions) return;
    if (shape_.column_sums) {
      if (facts_.columns > 128) ring(2), config_.reload = config_.ring > 0;
    } else if (facts_.columns <= 128 && many_rows(4)) {
      config_.rows = 4;  // the prologue is paid once: 0.93 against 0.82 at 128
      ring(4);
    }
  }

  // A block has a block of rows, and the sums in registers. One sum fits 16384 columns a block, two 12288; longer rows
  // take clusters of smaller blocks. Where not even two rows of 8192 columns fit the shared memory, blocks are so small
  // that two of them fit a multiprocessor, and one fills what the other waits for (add_rms_norm f32 at 65536: 0.89
  // against 0.56).
  void rows_with_column_sums() {
    std::int64_t two_rows = 2 * contract::stripe * shape_.row_bytes;  // bytes a stripe
    std::int64_t fit = (machine_.shared_bytes - 4096) / two_rows;
    bool one = shape_.column_sums == 1 && fit >= 64;
    std::int64_t alone = one ? 64 : 48, block = 32, each = stripes_ <= 32 ? 2 : 4, cluster = 1;
    if (fit < 32 && even())
      block = alone = std::bit_floor(static_cast<std::uint64_t>(std::max<std::int64_t>(fit / 2, 1)));
    if (stripes_ > alone) cluster = std::min<std::int64_t>(one ? 8 : 16, next_power((stripes_ + block - 1) / block));
    if (!split(each, cluster)) return in_loops();
    config_.hoist = true;
    // Two sums in a cluster have 256 threads a block, and registers for what the ring would be read for twice.
    bool keeps = !one && cluster > 1;
    ring(keeps || !std::has_single_bit(static_cast<std::uint64_t>(facts_.columns)) ? 3 : 2);
    config_.reload = config_.ring > 0 && each >= 4 && !keeps;
  }

  // Blocks of a cluster take a power of two of stripes each: other rows would leave some of them idle.
  bool even() const { return std::has_single_bit(static_cast<std::uint64_t>(stripes_)); }

  void long_rows() {
    if (!shape_.reductions) {
      // Two stripes a warp, at most 512 threads, and nothing that ties a row's blocks together: 1.00 at 4096.
      config_.hoist = true;
      for (std::int64_t each : {2, 4, 8}) {
        std::int64_t cluster = even() ? std::min<std::int64_t>(8, next_power(stripes_ / 32)) : 1;
        bool small = stripes_ <= 16 * each * cluster || each == 8;
        if (small && (split(each, cluster) || split(each, 1))) return;
      }
      config_.hoist = false;
      return in_loops();
    }
    bool once = shape_.reductions == 1;
    std::int64_t each = stripes_ <= (once ? 4 : 2) ? 2 : 4;
    if (stripes_ <= (!even() ? 128 : once ? 64 : 32) && split(each, 1)) {
      config_.hoist = each <= 2;
      return;
    }
    // Clusters of blocks of 256 threads: what one waits for, others fill (softmax at 16384: 0.91 against 0.78).
    std::int64_t cluster = std::min<std::int64_t>(8, next_power((stripes_ + 31) / 32));
    if (!split(stripes_ > 128 ? 8 : 4, cluster)) {
      if (!split(4, 1)) in_loops();
      return;
    }
    // A few rows each, the next one on its way while this one is summed: 0.90 at 65536, where reading the row once a
    // sweep reaches 0.63.
    if (stripes_ > 64 && many_rows(4)) {
      config_.rows = 4;
      config_.hoist = true;
      ring(2);
      config_.reload = once && config_.ring > 0;
    }
  }

  bool split(std::int64_t each, std::int64_t cluster) {
    std::int64_t groups = (stripes_ + each * cluster - 1) / (each * cluster);
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
    std::int64_t columns = config_.groups * config_.stripes * std::min(contract::stripe, next_power(facts_.columns));
    std::int64_t slots = (machine_.shared_bytes - 4096) / (columns * shape_.row_bytes * config_.teams);
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

#include "schedule/config.hpp"

#include <algorithm>
#include <bit>

#include "ir/contract.hpp"
#include "ir/integers.hpp"

namespace trireme {
namespace {

struct Shape {
  int column_sums = 0;
  std::int64_t stored_bytes = 0;  // bytes a column costs in results per element
  std::int64_t widest = 1;        // bytes of the widest array per element
  std::int64_t row_bytes = 0;     // bytes a column costs in the ring: all operands per element
};

Shape shape_of(const Program& program) {
  Shape shape;
  for (const Operand& operand : program.operands) {
    if (operand.constant || !operand.spread.row.present || !operand.spread.column.present) continue;
    std::int64_t size = static_cast<std::int64_t>(bytes(*operand.type));
    shape.widest = std::max(shape.widest, size);
    shape.row_bytes += size;
  }
  for (const Output& result : program.results) {
    if (program[result.value].op == Op::ColumnSum) ++shape.column_sums;
    if (!result.spread.row.present || !result.spread.column.present) continue;
    std::int64_t size = static_cast<std::int64_t>(bytes(*result.type));
    shape.widest = std::max(shape.widest, size);
    shape.stored_bytes += size;
  }
  return shape;
}

bool has_row_sums(const Program& program) {
  std::vector<bool> used = reachable(program);
  for (NodeId id = 0; id < program.size(); ++id)
    if (used[id] && is_row_reduction(program[id].op)) return true;
  return false;
}

Config for_simd(const Program& program, const Machine& machine, const Facts& facts) {
  Config config{.simd = true};
  config.lanes = machine.register_bytes / static_cast<int>(bytes(*program.compute));
  // Short rows are worth code of their own: no loop, no tail, column sums in registers. Beyond 32 vectors the code
  // grows faster than it gains.
  if (goes_lane_by_lane(program, facts.layout)) {
    config.unroll = 2;  // going lane by lane is a loop of its own in every vector
  } else if (facts.columns <= 32 * config.lanes) {
    config.columns = facts.columns;
    config.stripes = std::bit_ceil(static_cast<unsigned>(contract::stripes(facts.columns)));
    config.hoist = true;
    config.reload = true;
  }
  // Ordinary stores read what they overwrite. By a streaming copy's time, rms_norm 4096x4096 from memory: 2.77 with
  // them, 1.61 past the caches and with the next row on its way (docs/performance.md). Rows in unrolled stripes are
  // short, and one sweep reads straight on: there the processor's own prefetching is enough.
  Shape shape = shape_of(program);
  std::int64_t elements = facts.rows * facts.columns;
  bool large = machine.cache_bytes && elements * shape.stored_bytes > machine.cache_bytes;
  config.streaming = large && !facts.in_place;
  config.prefetch = large && !config.stripes && has_row_sums(program);
  return config;
}

std::int64_t power(std::int64_t value) {
  return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(value)));
}

// Figures are shares of a copy, bf16, 256 MiB, found by bench/schedules on an H200 unless said otherwise.
class ForThreads {
 public:
  ForThreads(const Program& program, const Machine& machine, const Facts& facts)
      : machine_(machine),
        facts_(facts),
        shape_(shape_of(program)),
        reduces_(has_row_sums(program)),
        stripes_(contract::stripes(facts.columns)) {}

  Config choose() {
    config_ = {.simd = false, .lanes = 32, .columns = facts_.columns, .streaming = true};
    config_.vector = static_cast<int>(std::clamp<std::int64_t>(facts_.alignment, 1, 16 / shape_.widest));
    // A row's sum costs shuffles for every element of a vector: 8-byte loads of 16-bit types reach 0.98 where 16-byte
    // loads reach 0.95 (rms_norm, 512 columns), and leave registers for column sums (0.93 against 0.77 at 2880).
    if (reduces_ && stripes_ > 1) config_.vector = std::min(config_.vector, 4);
    if (stripes_ == 1) short_rows();
    else if (shape_.column_sums) rows_with_column_sums();
    else long_rows();
    return config_;
  }

 private:
  bool many_rows(std::int64_t a_team) const {  // enough that teams of so many rows still fill the machine
    return facts_.rows >= a_team * 16 * machine_.processors;
  }

  // Up to 256 columns: several rows a warp.
  void short_rows() {
    config_.stripes = 1;
    config_.hoist = true;
    std::int64_t vectors = (facts_.columns + config_.vector - 1) / config_.vector;
    // With sums, 16 elements a lane: fewer lanes share a row, and fewer shuffles are needed (0.96 against 0.93 at 256).
    bool shared = reduces_ && !(shape_.column_sums && facts_.columns <= 128);
    config_.lanes = static_cast<int>(std::clamp<std::int64_t>(power(shared ? (vectors + 1) / 2 : vectors), 4, 32));
    config_.teams = 128 / config_.lanes;
    if (!reduces_) return;
    if (shape_.column_sums) {
      if (facts_.columns > 128) ring(2), config_.reload = config_.ring > 0;
    } else if (facts_.columns <= 128 && many_rows(4 * config_.teams)) {
      config_.rows = 4;  // the prologue is paid once: 0.93 against 0.82 at 128
      ring(4);
    }
  }

  // A block has a block of rows, and the sums in registers.
  void rows_with_column_sums() {
    std::int64_t block = columns_of_a_block() / contract::stripe, cluster = 1;
    std::int64_t each = stripes_ == 1 ? 1 : 2;
    if (stripes_ > block) {
      each = 4;
      cluster = std::min<std::int64_t>(8, power((stripes_ + block - 1) / block));
    } else if (stripes_ > 32) {
      each = 4;
    }
    if (!split(each, cluster)) return in_loops();
    config_.hoist = true;
    ring(2);
    config_.reload = config_.ring > 0 && each >= 4;  // fewer stripes fit in registers until the second sweep
  }

  // One column sum fits 16384 columns a block; two spill there.
  std::int64_t columns_of_a_block() const {
    bool fits = 2 * 16384 * shape_.row_bytes + 4096 <= machine_.shared_bytes;
    return shape_.column_sums == 1 && fits ? 16384 : 8192;
  }

  void long_rows() {
    std::int64_t each = stripes_ <= 4 ? 2 : 4;
    if (!reduces_) each = std::min<std::int64_t>(4, power(stripes_));
    if (stripes_ <= 128 && split(each, 1)) {
      config_.hoist = each <= 2;
      config_.reload = stripes_ > 64;  // two blocks of 1024 threads a multiprocessor: 0.92 against 0.84 at 32768
      return;
    }
    // Longer ones: a cluster for a few rows, the next one on its way while this one is summed (0.90 at 65536, where
    // reading the row once a sweep reaches 0.63).
    if (reduces_ && split(8, 8)) {
      config_.hoist = config_.reload = true;
      if (many_rows(4)) {
        config_.rows = 4;
        ring(2);
      }
      return;
    }
    in_loops();
  }

  bool split(std::int64_t each, std::int64_t cluster) {
    std::int64_t groups = (stripes_ + each * cluster - 1) / (each * cluster);
    if (cluster > 1) groups = power(groups);
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
    std::int64_t columns = config_.groups * config_.stripes * std::min(contract::stripe, power(facts_.columns));
    std::int64_t slots = (machine_.shared_bytes - 4096) / (columns * shape_.row_bytes * config_.teams);
    config_.ring = static_cast<int>(std::min(wanted, slots));
    if (config_.ring < 2) config_.ring = 0;
  }

  const Machine& machine_;
  const Facts& facts_;
  const Shape shape_;
  const bool reduces_;
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

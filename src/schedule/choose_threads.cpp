#include <algorithm>
#include <bit>
#include <utility>

#include "ir/contract.hpp"
#include "schedule/choose.hpp"
#include "schedule/shape.hpp"
#include "schedule/work.hpp"

namespace trireme {
namespace {

// Figures are shares of a copy, bf16, 256 or 512 MiB, found by bench/schedules on an H200 unless said otherwise.
class ForThreads {
 public:
  ForThreads(const Program& program, const Machine& machine, const Facts& facts)
      : machine_(machine),
        facts_(facts),
        shape_(shape_of(program, facts.layout)),
        work_(instructions_a_vector(program)),
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

  // Stripes of a row of which two fit a block's shared memory.
  std::int64_t stripes_that_fit_twice() const {
    return (machine_.shared_bytes - 4096) / (2 * contract::stripe * std::max<std::int64_t>(shape_.row_bytes, 1));
  }

  // A block has a block of rows, and the sums in registers. One sum fits 16384 columns a block, two 12288; longer rows
  // take clusters of smaller blocks. Where not even two rows of 8192 columns fit the shared memory, blocks are so small
  // that two of them fit a multiprocessor, and one fills what the other waits for (add_rms_norm f32 at 65536: 0.89
  // against 0.56).
  void rows_with_column_sums() {
    if (shape_.widest >= 4 && wide_rows_with_column_sums()) return;
    const std::int64_t fit = stripes_that_fit_twice();
    bool single = shape_.column_sums == 1, one = single && fit >= 64;
    std::int64_t alone = one ? 64 : 48, block = 32, each = stripes_ <= 32 ? 2 : 4, cluster = 1;
    if (shape_.widest >= 4 && stripes_ <= 32) config_.vector = std::min(config_.vector, 2);
    if (fit < 32 && even())
      block = alone = std::bit_floor(static_cast<std::uint64_t>(std::max<std::int64_t>(fit / 2, 1)));
    if (stripes_ > alone) {
      while (block > 8 && !divides(block)) block /= 2;
      if (block <= 8) each = 2;
      std::int64_t most = one && even() ? 8 : 16;
      for (cluster = up(stripes_, block); cluster > most;) cluster = up(stripes_, block *= 2);
    }
    // Two sums at 131072 columns: half as many blocks, with all that fits them (0.745 against 0.48).
    bool all_that_fits = !single && cluster > 8 && even() && 2 * block <= fit;
    if (all_that_fits) {
      each = 8;
      cluster /= 2;
      config_.vector = shape_.widest_vector(facts_);
    }
    // Two sums leave registers for two stripes, while a block's warps are few (layer_norm at 10240: 0.88 against 0.79,
    // at 12288 0.83 against 0.87).
    bool half = !single && cluster == 1 && stripes_ > 32 && stripes_ <= 40;
    if (half) each = 2;
    if (!split(each, cluster)) return in_loops();
    bool odd = !std::has_single_bit(static_cast<std::uint64_t>(facts_.columns));
    // As many registers as the blocks leave: rms_norm 0.90 against 0.87 at 5120, layer_norm 0.86 against 0.80 at 2880.
    std::int64_t row_blocks = contract::row_blocks(std::int64_t{1} << 40, facts_.columns);
    if (odd && cluster == 1 && !half) config_.resident = row_blocks > machine_.processors && config_.groups > 6 ? 2 : 1;
    // Two sums in a cluster have 256 threads a block, and registers for what the ring would be read for twice.
    bool keeps = ((!one && cluster > 1) || each < 4) && !half && !all_that_fits;
    // Sixteen blocks of f32 have none (rms_norm at 131072: 0.82 against 0.71, layer_norm 0.74 against 0.65).
    if (cluster > 8 && shape_.widest >= 4) {
      keeps = false;
      if (single) config_.resident = 1;
    }
    // Weights in scratch leave registers (0.937 against 0.919 at 12288; with two sums 0.87 against 0.91).
    config_.stage = all_that_fits || (odd && !keeps && single && cluster == 1);
    ring(keeps && (cluster > 1 || odd) ? 3 : 2);
    config_.stage &= config_.ring > 0;
    config_.hoist = !config_.stage;
    config_.reload = config_.ring > 0 && !keeps;
  }

  // f32: mostly 8-byte loads, since larger ones fill the queue of shared memory (rms_norm at 2880 and 5120: 0.94 and
  // 0.93 against 0.79 and 0.80). False where none of these goes.
  bool wide_rows_with_column_sums() {
    const bool single = shape_.column_sums == 1, two = shape_.row_bytes <= 8;  // arrays that are read
    const std::int64_t fit = stripes_that_fit_twice();
    const int vector = std::exchange(config_.vector, std::min(config_.vector, 2));
    const bool streaming = std::exchange(config_.streaming, !(single && two));  // unadvised at 2880: 0.94 against 0.85
    config_.hoist = true;
    // A few stripes of two arrays are loads enough to wait for, one a warp, without a ring (1024: 0.95 against 0.86);
    // a pair of small blocks fills what the other waits for (4096: 0.94 against 0.91, layer_norm 0.91 against 0.89).
    if (single && two && stripes_ <= 8) return split(1, 1);
    if (two && even() && stripes_ <= 32 && stripes_ > 8 && split(2, 2)) {
      config_.vector = vector;
      return true;
    }
    // A block to itself. Beyond 8192 columns a warp has no registers for what it reads twice (rms_norm at 10240: 0.93
    // against 0.92, layer_norm 0.93 against 0.89).
    if (stripes_ <= std::min<std::int64_t>(fit, 48) && split(2, 1)) {
      ring(2);
      const bool odd = !std::has_single_bit(static_cast<std::uint64_t>(facts_.columns));
      config_.reload = stripes_ > 32 || (odd && !single);
      return true;
    }
    // Clusters of blocks of 8192 columns (rms_norm at 16384 to 65536: 0.93, 0.94, 0.94; four stripes a warp 0.88 to
    // 0.91). Two sums have registers, with half as many warps (layer_norm at 16384: 0.91 against 0.88).
    if (two && even() && stripes_ > 32 && stripes_ <= 8 * 32 && split(2, stripes_ / 32)) {
      config_.streaming = false;
      ring(2);
      config_.reload = single;
      return true;
    }
    // Clusters of small blocks, weights in scratch, so that three fit a multiprocessor (at 12288 add_rms_norm 0.91
    // against 0.73, gated_rms_norm 0.89 against 0.63; at 18432 rms_norm 0.91 against 0.87).
    if (!even() && stripes_ > 32 && stripes_ <= 16 * 8 && divides(8) && split(2, up(stripes_, 8))) {
      config_.streaming = false;
      config_.stage = shape_.column_bytes > 0;
      ring(two ? 3 : 2);
      config_.reload = config_.ring > 0;
      config_.stage &= config_.reload;
      config_.hoist = !config_.stage;
      return true;
    }
    config_.vector = vector;
    config_.streaming = streaming;
    return false;
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
    if (!twice() && several && work_ > 32 && stripes_ > 8 && stripes_ <= 20 && many_rows(2)) {
      split(4, 1);
      config_.rows = 2;  // much arithmetic, and the next row on its way (gated_rms_norm at 4096: 1.02 against 0.74)
      config_.hoist = true;
      ring(2);
      return;
    }
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
    // Where a warp in ten would have nothing to do (softmax at 3584: 0.90 against 0.85, at 4608 0.89 against 0.85).
    if (twice() && !weights && narrow && stripes_ > 8 && stripes_ <= 32 && up(stripes_, 4) * 40 > stripes_ * 11)
      each = 2;
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
  const int work_;  // instructions an element, about
  const std::int64_t stripes_;
  Config config_;
};

}  // namespace

Config choose_for_threads(const Program& program, const Machine& machine, const Facts& facts) {
  const Machine left = machine_for(program, machine);
  return ForThreads(program, left, facts).choose();
}

}  // namespace trireme

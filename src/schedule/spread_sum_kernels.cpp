#include "schedule/spread_sum_kernels.hpp"

#include <array>
#include <bit>
#include <vector>

#include "ir/contract.hpp"
#include "schedule/kernel_builder.hpp"
#include "schedule/pair_sums.hpp"

namespace trireme {
namespace {

constexpr int warps = 4;  // a block
constexpr int lanes = 32;
constexpr int most_levels = 24;  // of pair sums: 2^27 values

class SumLowering {
 public:
  SumLowering(Kernel& kernel, Type compute, std::string name, int covered) : b_(kernel), compute_(compute) {
    kernel.name = std::move(name);
    kernel.simd = false;
    kernel.compute = compute;
    kernel.launch = {.lanes = lanes, .groups = warps, .columns_covered = covered};
    in_ = b_.pointer({Slot::Kind::OperandPointer, 0});
    out_ = b_.pointer({Slot::Kind::ResultPointer, 0});
    zero_ = b_.index(0);
    one_ = b_.index(1);
  }

  void stripes(Walk walk) {
    Reg in_stride = number(), wide = number(), chunks = number();
    Reg run = number(), period = number(), boundary = number();
    std::array<Reg, 3> counts = {number(), number(), number()};
    const Reg first_unit = b_.mul(b_.special(Do::BlockIndex), warps);
    Reg at = b_.add(first_unit, b_.special(Do::ThreadGroup));
    in_units(at, [&](Reg u) {
      Reg lane = b_.special(Do::ThreadLane);
      Reg chunk = b_.index(Do::IndexRemainder, u, chunks), rest = b_.index(Do::IndexDivide, u, chunks);
      Reg entry = b_.index(Do::IndexRemainder, rest, wide), row = b_.index(Do::IndexDivide, rest, wide);
      Reg count = of_entry(entry, boundary, counts);
      Reg from = b_.mul(chunk, chunk_stripes);
      Reg stripes = b_.index(Do::IndexShiftRight, b_.add(count, contract::stripe - 1), std::countr_zero(256u));
      Reg to = b_.index(Do::IndexMin, b_.add(from, chunk_stripes), stripes);
      Reg first = b_.pointer(in_, b_.index(Do::IndexMul, row, in_stride), value_bytes());
      if (walk == Walk::Strided) first = b_.pointer(first, entry, value_bytes());
      else first = b_.pointer(first, b_.index(Do::IndexMul, entry, run), value_bytes());
      auto stripe = [&](Reg which, Reg dst) {
        Reg k = b_.add(b_.mul(which, contract::stripe), lane);
        std::vector<Reg> values;
        for (int c = 0; c < contract::stripe / lanes; ++c) {
          Reg place = b_.add(k, c * lanes);
          Reg exists = b_.below(place, 0, count);
          if (walk == Walk::Strided) place = b_.index(Do::IndexMul, place, period);
          if (walk == Walk::Runs) {
            const Reg run_begins = b_.index(Do::IndexMul, b_.index(Do::IndexDivide, place, run), period);
            place = b_.add(run_begins, b_.index(Do::IndexRemainder, place, run));
          }
          values.push_back(b_.primitive(Op::Select, {exists, load(first, place, exists), b_.number(-0.0)}));
        }
        // The halving tree: first between the values of a lane, then between lanes.
        for (std::size_t half = values.size() / 2; half >= 1; half /= 2)
          for (std::size_t c = 0; c < half; ++c) values[c] = b_.primitive(Op::Add, {values[c], values[c + half]});
        for (int s = lanes / 2; s >= 1; s /= 2)
          values[0] = b_.primitive(Op::Add, {values[0], b_.shuffle_xor(values[0], s)});
        b_.assign(dst, values[0]);
      };
      Reg total = PairSums(b_, zero_, std::countr_zero(static_cast<unsigned>(chunk_stripes / PairSums::unit)) + 1)
                      .sum(from, to, stripe);
      all_pairs().zero_where_empty(count, total);
      store(compute_, out_, u, b_.below(lane, 0, one_), total);
    });
  }

  void blocks() {
    Reg in_stride = number(), wide = number(), most = number();
    Reg run = number(), gap = number(), boundary = number();
    std::array<Reg, 3> counts = {number(), number(), number()}, row_blocks = {number(), number(), number()};
    in_units(thread_unit(), [&](Reg u) {
      Reg column = b_.index(Do::IndexRemainder, u, wide), rest = b_.index(Do::IndexDivide, u, wide);
      Reg block = b_.index(Do::IndexRemainder, rest, most), entry = b_.index(Do::IndexDivide, rest, most);
      Reg count = of_entry(entry, boundary, counts), size = of_entry(entry, boundary, row_blocks);
      Reg k = b_.copy(b_.index(Do::IndexMul, block, size));
      Reg end = b_.index(Do::IndexMin, b_.add(k, size), count);
      Reg inside = b_.index(Do::IndexRemainder, k, run);
      const Reg runs = b_.index(Do::IndexDivide, k, run);
      Reg row = b_.index(Do::IndexMul, runs, b_.add(run, gap));
      row = b_.add(row, b_.add(b_.index(Do::IndexMul, entry, run), inside));
      Reg step = b_.fresh(Bank::Pointer), left = b_.copy(b_.index(Do::IndexSub, run, inside));
      Reg start = b_.pointer(in_, b_.add(b_.index(Do::IndexMul, row, in_stride), column), value_bytes());
      b_.emit({.code = Do::PointerAdd, .dst = step, .a = start, .b = zero_, .imm = 1});
      Reg gap_elements = b_.index(Do::IndexMul, gap, in_stride);
      Reg sum = b_.number(-0.0);
      auto advance = [&](Reg elements) {
        b_.emit({.code = Do::PointerAdd, .dst = step, .a = step, .b = elements, .imm = value_bytes()});
      };
      auto add_rows = [&](int rows) {
        std::vector<Reg> values;
        for (int r = 0; r < rows; ++r) {
          values.push_back(load(step, {}, {}));
          advance(in_stride);
        }
        for (Reg value : values) b_.emit({.code = Do::Primitive, .op = Op::Add, .dst = sum, .a = sum, .b = value});
        b_.increase(k, rows);
      };
      b_.repeat_while_less(k, end, [&] {
        Reg stop = b_.index(Do::IndexMin, b_.add(k, left), end);
        Reg full = b_.index(Do::IndexSub, stop, 3);
        b_.repeat_while_less(k, full, [&] { add_rows(4); });
        b_.repeat_while_less(k, stop, [&] { add_rows(1); });
        advance(gap_elements);
        b_.assign(left, run);
      });
      store(compute_, out_, u, {}, sum);
    });
  }

  void pairs(bool by_row, Type stored, const ArrayLayout& layout) {
    Reg wide = number(), most = number(), boundary = number();
    std::array<Reg, 3> counts = {number(), number(), number()};
    Reg row_stride = number(), column_stride = number();
    std::vector<std::array<Reg, 2>> row_jumps, column_jumps;
    for (int k = 0; k < layout.row_jumps; ++k) row_jumps.push_back({number(), number()});
    for (int k = 0; k < layout.column_jumps; ++k) column_jumps.push_back({number(), number()});
    in_units(thread_unit(), [&](Reg u) {
      Reg column = b_.index(Do::IndexRemainder, u, wide), row = b_.index(Do::IndexDivide, u, wide);
      Reg count = of_entry(by_row ? row : column, boundary, counts);
      Reg base = b_.index(Do::IndexMul, by_row ? b_.index(Do::IndexMul, row, wide) : u, most);
      if (by_row) base = b_.add(base, column);
      Reg first = b_.pointer(in_, base, value_bytes());
      Reg total = all_pairs().sum(zero_, count, [&](Reg which, Reg dst) {
        b_.assign(dst, load(first, by_row ? b_.index(Do::IndexMul, which, wide) : which, {}));
      });
      all_pairs().zero_where_empty(count, total);
      const Reg row_begins = b_.index(Do::IndexMul, row, row_stride);
      Reg place = b_.add(row_begins, b_.index(Do::IndexMul, column, column_stride));
      for (auto [jumps, index] : {std::pair(&row_jumps, row), std::pair(&column_jumps, column)})
        for (auto [every, elements] : *jumps)
          place = b_.add(place, b_.index(Do::IndexMul, b_.index(Do::IndexDivide, index, every), elements));
      store(stored, out_, place, {}, total);
    });
  }

 private:
  std::int64_t value_bytes() const { return static_cast<std::int64_t>(bytes(compute_)); }
  Reg number() { return b_.slot({Slot::Kind::Number, numbers_++}); }

  Reg thread_unit() {
    const Reg first_lane = b_.mul(b_.special(Do::ThreadGroup), lanes);
    Reg thread = b_.add(first_lane, b_.special(Do::ThreadLane));
    return b_.add(b_.mul(b_.special(Do::BlockIndex), warps * lanes), thread);
  }
  template <typename Body>
  void in_units(Reg at, Body&& body) {
    Reg u = b_.add(at, b_.argument(0));
    b_.when_less(u, b_.argument(1), [&] { body(u); });
  }

  PairSums all_pairs() { return {b_, zero_, most_levels}; }

  Reg of_entry(Reg entry, Reg boundary, const std::array<Reg, 3>& values) {
    Reg value = b_.copy(values[2]);
    b_.when_less(entry, b_.add(boundary, 1), [&] { b_.assign(value, values[1]); });
    b_.when_less(entry, boundary, [&] { b_.assign(value, values[0]); });
    return value;
  }

  Reg load(Reg pointer, Reg place, Reg mask) {
    Reg value = b_.fresh(Bank::Lane);
    b_.emit({.code = Do::Load, .type = compute_, .a = pointer, .b = place, .c = mask, .values = {value}});
    return value;
  }
  void store(Type type, Reg pointer, Reg place, Reg mask, Reg value) {
    b_.emit({.code = Do::StoreOne, .type = type, .a = pointer, .b = place, .c = mask, .values = {value}});
  }
  KernelBuilder b_;
  Type compute_;
  int numbers_ = 0;
  Reg in_, out_, zero_, one_;
};

}  // namespace

Kernel lower_stripes(std::string name, Type compute, Walk walk) {
  Kernel kernel;
  SumLowering(kernel, compute, std::move(name), warps).stripes(walk);
  return kernel;
}

Kernel lower_blocks(std::string name, Type compute) {
  Kernel kernel;
  SumLowering(kernel, compute, std::move(name), warps * lanes).blocks();
  return kernel;
}

Kernel lower_pairs(std::string name, Type compute, Type stored, bool by_row, const ArrayLayout& layout) {
  Kernel kernel;
  SumLowering(kernel, compute, std::move(name), warps * lanes).pairs(by_row, stored, layout);
  return kernel;
}

}  // namespace trireme

// Lanes: constants, primitives, masks and movement. Each primitive is one rounding.
#include <bit>

#include "targets/aarch64/machine.hpp"

namespace trireme::aarch64 {

Vec Machine::all(std::uint32_t bits) { return as_.constant({bits, bits, bits, bits}); }

Vec Machine::all(double value) { return as_.constant(lanes_of(value)); }

Constant Machine::lanes_of(double value) const {
  if (!wide()) {
    const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(value));
    return {bits, bits, bits, bits};
  }
  const auto bits = std::bit_cast<std::uint64_t>(value);
  const auto low = static_cast<std::uint32_t>(bits), high = static_cast<std::uint32_t>(bits >> 32);
  return {low, high, low, high};
}

Constant Machine::columns_from(std::int64_t first) const {
  Constant words{};
  for (std::size_t t = 0; t < 4; ++t) {
    const double column = static_cast<double>(first) + static_cast<double>(wide() ? t / 2 : t);
    const Constant all_lanes = lanes_of(column);
    words[t] = all_lanes[t];
  }
  return words;
}

void Machine::constant(Vec dst, double value) { as_.load_constant(dst, lanes_of(value)); }

void Machine::slot(Vec dst, Address at) {
  Vec one = temporary();
  move_raw(form::load_v, one, at, wide() ? 8 : 4);
  as_.put(wide() ? form::dup_d : form::dup_s, {dst, one});
}

void Machine::from_index(Vec dst, Gp index) {
  Vec one = temporary();
  as_.put(wide() ? form::scvtf_d_x : form::scvtf_s_x, {one, index});
  as_.put(wide() ? form::dup_d : form::dup_s, {dst, one});
}

void Machine::column(Vec dst, Gp index, std::int64_t more) {
  if (!index.valid()) return as_.load_constant(dst, columns_from(more));
  Gp first = as_.new_gp();
  Vec numbers = temporary();
  add(first, index, more);
  as_.put(form::dup_w, {numbers, first});
  as_.put(form::add_4s, {numbers, numbers, as_.constant({0, 1, 2, 3})});
  if (wide()) as_.put(form::sxtl_2d, {numbers, numbers});
  lanewise(form::scvtf, {dst, numbers});
}

void Machine::move(Vec dst, Vec a) {
  if (dst != a) as_.put(form::mov_v, {dst, a});
}

void Machine::arithmetic(Op operation, Vec dst, Vec a, Vec b) {
  switch (operation) {
    case Op::Add: return lanewise(form::fadd, {dst, a, b});
    case Op::Sub: return lanewise(form::fsub, {dst, a, b});
    case Op::Mul: return lanewise(form::fmul, {dst, a, b});
    case Op::Div: return lanewise(form::fdiv, {dst, a, b});
    case Op::Min: return lanewise(form::fmin, {dst, a, b});  // NaN wins, and -0 lies below +0
    case Op::Max: return lanewise(form::fmax, {dst, a, b});
    case Op::Neg: return lanewise(form::fneg, {dst, a});
    case Op::Abs: return lanewise(form::fabs, {dst, a});
    case Op::Sqrt: return lanewise(form::fsqrt, {dst, a});
    case Op::Floor: return lanewise(form::frintm, {dst, a});
    case Op::Round: return lanewise(form::frintn, {dst, a});
    case Op::BitsAdd: return lanewise(form::add, {dst, a, b});
    case Op::And:
    case Op::BitsAnd: return as_.put(form::and_, {dst, a, b});
    case Op::Or:
    case Op::BitsOr: return as_.put(form::orr, {dst, a, b});
    case Op::Not: return as_.put(form::mvn, {dst, a});
    default: return;
  }
}

// The instruction adds to its destination.
void Machine::fma(Vec dst, Vec a, Vec b, Vec c) {
  if (dst == c || (dst != a && dst != b)) {
    move(dst, c);
    return lanewise(form::fmla, {dst, a, b});
  }
  Vec sum = temporary();
  move(sum, c);
  lanewise(form::fmla, {sum, a, b});
  move(dst, sum);
}

void Machine::shift(Op operation, Vec dst, Vec a, int by) {
  const int bits = wide() ? 64 : 32;
  const bool left = operation == Op::BitsShiftLeft;
  if (!left && by == 0) return move(dst, a);
  const int field = left ? bits + by : 2 * bits - by;  // says the width of lanes too
  const Form& how = left ? wide() ? form::shl_2d : form::shl_4s : wide() ? form::ushr_2d : form::ushr_4s;
  as_.put(how, {dst, a}, {.shown = by, .bits = static_cast<std::uint32_t>(field) << 16});
}

void Machine::compare(Op operation, Vec dst, Vec a, Vec b) {
  if (operation == Op::Less) lanewise(form::fcmgt, {dst, b, a});
  else if (operation == Op::LessEqual) lanewise(form::fcmge, {dst, b, a});
  else lanewise(form::fcmeq, {dst, a, b});
}

// bit and bif change some bits of what is there, bsl takes the condition's place.
void Machine::select(Vec dst, Vec condition, Vec a, Vec b) {
  if (dst == a) return as_.put(form::bif, {dst, b, condition});
  if (dst == condition) return as_.put(form::bsl, {dst, a, b});
  move(dst, b);
  as_.put(form::bit, {dst, a, condition});
}

void Machine::shuffle_xor(Vec dst, Vec a, int distance) {
  Vec from = a;
  const int inner = wide() ? 0 : distance & 1, outer = wide() ? distance : distance >> 1;
  if (inner) as_.put(form::rev64_4s, {dst, from}), from = dst;
  if (outer) as_.put(form::ext_8, {dst, from});
  else if (!inner) move(dst, a);
}

void Machine::turn(Vec dst, Vec a) { shuffle_xor(dst, a, lanes() - 1); }

Vec Machine::turned(Vec a) {
  if (!a.valid()) return a;
  Vec other = temporary();
  turn(other, a);
  return other;
}

// to - from - more as a number, in all lanes. Rounding keeps the order of integers and moves none across a small one,
// so that numbers below 2^24 compare with it as integers do.
Vec Machine::distance(Gp to, Gp from, std::int64_t more) {
  Gp count = as_.new_gp();
  Vec lanes = temporary();
  as_.put(form::sub_x, {count, to, from});
  if (more) add(count, count, -more);
  from_index(lanes, count);
  return lanes;
}

void Machine::mask_below(Vec dst, Gp index, std::int64_t more, Gp end) {
  const bool small = more >= 0 && more < 1 << 23;
  const Vec count = distance(end, index, small ? 0 : more);
  lanewise(form::fcmgt, {dst, count, as_.constant(columns_from(small ? more : 0))});
}

void Machine::mask_equal(Vec dst, Gp a, std::int64_t more, Gp b) {
  const Vec apart = distance(b, a, more);
  lanewise(form::fcmeq, {dst, apart, all(0.0)});
}

Gp Machine::mask_bits(Vec mask) {
  Gp bits = as_.new_gp();
  Vec narrow = temporary();
  as_.put(wide() ? form::xtn_2s : form::xtn_4h, {narrow, mask});
  as_.put(form::fmov_x_d, {bits, narrow});
  return bits;
}

void Machine::skip_without_lane(Gp bits, int lane, Label skip) {
  const int bit = lane * mask_field();
  as_.put(bit < 32 ? form::tbz_w : form::tbz_x, {bits},
          {.shown = bit, .bits = static_cast<std::uint32_t>(bit % 32) << 19, .label = skip});
}

void Machine::to_lane(Vec dst, int lane, Vec scalar) {
  const int at = lane << (wide() ? 4 : 3);
  as_.put(wide() ? form::mov_to_d : form::mov_to_s, {dst, scalar},
          {.shown = lane, .bits = static_cast<std::uint32_t>(at) << 16});
}

Vec Machine::from_lane(Vec value, int lane) {
  Vec scalar = temporary();
  const int at = lane << (wide() ? 4 : 3);
  as_.put(wide() ? form::mov_from_d : form::mov_from_s, {scalar, value},
          {.shown = lane, .bits = static_cast<std::uint32_t>(at) << 16});
  return scalar;
}

}  // namespace trireme::aarch64

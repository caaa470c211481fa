// Index and pointer registers: 64-bit integers in general registers.
#include <bit>

#include "targets/aarch64/machine.hpp"

namespace trireme::aarch64 {

namespace {

constexpr std::int64_t immediates = 4096;  // of additions and comparisons

std::uint32_t immediate(std::int64_t value) { return static_cast<std::uint32_t>(value) << 10; }

}  // namespace

void Machine::set(Gp dst, std::int64_t value) {
  const auto bits = static_cast<std::uint64_t>(value);
  auto part = [&](int k) { return static_cast<std::uint32_t>(bits >> (16 * k) & 0xFFFF); };
  as_.put(form::mov_i, {dst}, {.shown = part(0), .bits = part(0) << 5});
  for (int k = 1; k < 4; ++k)
    if (part(k)) as_.put(form::movk[k], {dst}, {.shown = part(k), .bits = part(k) << 5});
}

Gp Machine::in_register(Gp b, std::int64_t imm) {
  if (b.valid()) return b;
  Gp made = as_.new_gp();
  set(made, imm);
  return made;
}

void Machine::add(Gp dst, Gp a, std::int64_t imm) {
  if (imm >= 0 && imm < immediates) return as_.put(form::add_i, {dst, a}, {.shown = imm, .bits = immediate(imm)});
  if (imm < 0 && -imm < immediates) return as_.put(form::sub_i, {dst, a}, {.shown = -imm, .bits = immediate(-imm)});
  as_.put(form::add_x, {dst, a, in_register({}, imm)});
}

void Machine::compare(Gp a, Gp b, std::int64_t imm) {
  if (!b.valid() && imm >= 0 && imm < immediates)
    return as_.put(form::cmp_i, {a}, {.shown = imm, .bits = immediate(imm)});
  as_.put(form::cmp_x, {a, in_register(b, imm)});
}

void Machine::index(Do code, Gp dst, Gp a, Gp b, std::int64_t imm) {
  const auto bits = static_cast<std::uint64_t>(imm);
  const bool power = !b.valid() && std::has_single_bit(bits);
  auto shift = [&](std::int64_t by) {
    as_.put(form::lsr_i, {dst, a}, {.shown = by, .bits = static_cast<std::uint32_t>(by) << 16});
  };
  switch (code) {
    case Do::IndexAdd:
      if (!b.valid()) return add(dst, a, imm);
      return as_.put(form::add_x, {dst, a, b});
    case Do::IndexSub:
      if (!b.valid()) return add(dst, a, -imm);
      return as_.put(form::sub_x, {dst, a, b});
    case Do::IndexMul: return as_.put(form::mul, {dst, a, in_register(b, imm)});
    case Do::IndexAnd: return as_.put(form::and_x, {dst, a, in_register(b, imm)});
    case Do::IndexShiftRight: return shift(imm);
    case Do::IndexMin:
    case Do::IndexMax: {
      const Gp other = in_register(b, imm);
      as_.put(form::cmp_x, {a, other});
      return as_.put(code == Do::IndexMin ? form::csel_lt : form::csel_gt, {dst, a, other});
    }
    case Do::IndexDivide:
      if (power) return shift(std::countr_zero(bits));
      return as_.put(form::udiv, {dst, a, in_register(b, imm)});
    case Do::IndexRemainder: {
      if (power) return as_.put(form::and_x, {dst, a, in_register({}, imm - 1)});
      const Gp divisor = in_register(b, imm), quotient = as_.new_gp();
      as_.put(form::udiv, {quotient, a, divisor});
      return as_.put(form::msub, {dst, quotient, divisor, a});
    }
    default: return;
  }
}

void Machine::pointer_add(Gp dst, Gp a, Gp b, std::int64_t imm) {
  const auto bits = static_cast<std::uint64_t>(imm);
  if (imm == 1) return as_.put(form::add_x, {dst, a, b});
  if (std::has_single_bit(bits)) {
    const int by = std::countr_zero(bits);
    return as_.put(form::add_shifted, {dst, a, b}, {.shown = by, .bits = static_cast<std::uint32_t>(by) << 10});
  }
  as_.put(form::madd, {dst, b, in_register({}, imm), a});
}

void Machine::load_slot(Gp dst, Gp args, std::int64_t slot) {
  const Address at = reachable({args, slot * 8}, 8);
  as_.put(form::ldr_x, {dst, at.base}, {.shown = at.offset, .bits = static_cast<std::uint32_t>(at.offset / 8) << 10});
}

}  // namespace trireme::aarch64

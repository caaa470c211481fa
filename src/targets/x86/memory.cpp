// Loads and stores of every storage type. What a mask leaves out is never touched: it may lie on a page that is not
// there.
#include "targets/x86/machine.hpp"

namespace trireme::x86 {

using asmjit::Label;
using asmjit::Operand;

namespace {

constexpr auto last_map = [] {  // the last word first
  std::array<std::uint16_t, 32> map{};
  for (int k = 0; k < 32; ++k) map[k] = static_cast<std::uint16_t>(31 - k);
  return map;
}();

}  // namespace

void Machine::move_raw(const Operand& to, const Operand& from, int size) {
  auto sized = [&](const Operand& o) -> Operand { return o.isMem() ? o : Operand(part(o.as<Vec>(), size)); };
  cc_.emit(size == 4 ? Inst::kIdVmovd : size == 8 ? Inst::kIdVmovq : Inst::kIdVmovups, sized(to), sized(from));
}

Mem Machine::partial_buffer() {
  if (!partial_buffer_.hasBase()) partial_buffer_ = cc_.newStack(16, 16);
  return partial_buffer_;
}

Mem Machine::lane_buffer() {
  if (!lane_buffer_.hasBase()) lane_buffer_ = cc_.newStack(64, 64);
  return lane_buffer_;
}

void Machine::copy_elements(const Mem& to, const Mem& from, const Gp& bits, int element_bytes) {
  Gp target = new_gp(), source = new_gp(), t = new_gp(), element = new_gp().r32(), rest = new_gp().r32();
  Label next = cc_.newLabel(), done = cc_.newLabel();
  cc_.lea(target, to);
  cc_.lea(source, from);
  cc_.test(bits, bits);
  cc_.jz(done);
  cc_.bind(next);
  cc_.bsf(t.r32(), bits);
  const unsigned shift = element_bytes == 2 ? 1 : 0;
  Mem read = asmjit::x86::ptr(source, t, shift), write = asmjit::x86::ptr(target, t, shift);
  read.setSize(element_bytes);
  cc_.movzx(element, read);
  cc_.mov(write, element_bytes == 2 ? element.r16() : Gp(element.r8()));
  cc_.lea(rest, asmjit::x86::ptr(bits.r64(), -1));
  cc_.and_(bits, rest);  // without its lowest bit
  cc_.jnz(next);
  cc_.bind(done);
}

void Machine::move_masked(const Operand& to, const Operand& from, Type type, const Mask& mask) {
  const bool load = to.isReg();
  const int element = static_cast<int>(bytes(type));
  if (avx512()) {
    constexpr asmjit::InstId move[] = {Inst::kIdVmovdqu8, Inst::kIdVmovdqu16, Inst::kIdVmovdqu32, Inst::kIdVmovdqu64};
    cc_.k(k(mask));
    if (load) cc_.z();
    cc_.emit(move[std::countr_zero(bytes(type))], to, from);
    return;
  }
  if (element == 8) return void(cc_.emit(Inst::kIdVmaskmovpd, to, v(mask), from));
  if (element == 4) return void(cc_.emit(Inst::kIdVmaskmovps, to, wide() ? mask_of_dwords(v(mask)) : v(mask), from));
  // One by one, through a buffer; whole vectors and none at all come by here too, and are quick. Of two bytes in pairs
  // first, which leaves one element of a row's end at most.
  Gp which = mask_bits(mask);
  Label full = cc_.newLabel(), done = cc_.newLabel();
  const bool pairs = element == 2 && !wide();
  if (pairs) {
    Vec even = mask_of_dwords(v(mask)), odd = mask_of_dwords(v(mask), 0xDD);
    cc_.vandps(even, even, odd);
    cc_.emit(Inst::kIdVmaskmovps, to, even, from);
    Gp both = new_gp().r32();
    cc_.mov(both, which);
    cc_.shr(both, 1);
    cc_.and_(both, which);
    cc_.and_(both, 0x55);
    cc_.lea(both, asmjit::x86::ptr(both.r64(), both.r64(), 1));
    cc_.xor_(which, both);
    cc_.jz(done);
  } else {
    cc_.cmp(which, static_cast<std::int32_t>(all_lanes()));
    cc_.je(full);
  }
  if (load) {
    if (!pairs) cc_.emit(Inst::kIdVxorps, to, to, to);
    cc_.emit(Inst::kIdVmovups, partial_buffer(), to);
    copy_elements(partial_buffer(), from.as<Mem>(), which, element);
    cc_.emit(Inst::kIdVmovups, to, partial_buffer());
  } else {
    cc_.emit(Inst::kIdVmovups, partial_buffer(), from);
    copy_elements(to.as<Mem>(), partial_buffer(), which, element);
  }
  if (!pairs) {
    cc_.jmp(done);
    cc_.bind(full);
    move_raw(to, from, raw_bytes(type));
  }
  cc_.bind(done);
}

// each(t), t the number of the lane in a register, for the lanes of the mask.
template <typename Each>
void Machine::each_lane(const Mask& mask, Each&& each) {
  Gp bits = mask.isValid() ? mask_bits(mask) : new_gp().r32(), t = new_gp(), rest = new_gp().r32();
  if (!mask.isValid()) cc_.mov(bits, static_cast<std::int32_t>(all_lanes()));
  Label next = cc_.newLabel(), done = cc_.newLabel();
  cc_.test(bits, bits);
  cc_.jz(done);
  cc_.bind(next);
  cc_.bsf(t.r32(), bits);
  each(t);
  cc_.lea(rest, asmjit::x86::ptr(bits.r64(), -1));
  cc_.and_(bits, rest);  // without its lowest bit
  cc_.jnz(next);
  cc_.bind(done);
}

void Machine::load_i64(const Vec& dst, const Mem& at, const Mask& mask, int step) {
  const Mem buffer = lane_buffer();
  Gp source = new_gp(), target = new_gp();
  Vec one = temporary_vec(16);
  cc_.lea(source, at);
  cc_.lea(target, buffer);
  cc_.vxorps(dst, dst, dst);
  cc_.emit(Inst::kIdVmovups, buffer, dst);
  each_lane(mask, [&](const Gp& t) {
    Gp from = new_gp();
    cc_.mov(from, t);
    if (step < 0) cc_.neg(from);
    Mem element = asmjit::x86::ptr(source, from, 3), place = asmjit::x86::ptr(target, t, wide() ? 3 : 2);
    element.setSize(8);
    cc_.vxorps(one, one, one);
    op(Inst::kIdVcvtsi2ss, Inst::kIdVcvtsi2sd, one, one, element);
    op(Inst::kIdVmovss, Inst::kIdVmovsd, place, one);
  });
  cc_.emit(Inst::kIdVmovups, dst, buffer);
}

void Machine::store_i64(const Mem& at, const Vec& value, const Mask& mask, int step) {
  const Mem buffer = lane_buffer();
  Gp source = new_gp(), target = new_gp();
  cc_.lea(source, buffer);
  cc_.lea(target, at);
  cc_.emit(Inst::kIdVmovups, buffer, value);
  each_lane(mask, [&](const Gp& t) {
    Gp to = new_gp();
    Vec one = temporary_vec(16);
    op(Inst::kIdVmovss, Inst::kIdVmovsd, one, asmjit::x86::ptr(source, t, wide() ? 3 : 2));
    Gp integer = to_i64(one);
    cc_.mov(to, t);
    if (step < 0) cc_.neg(to);
    cc_.mov(asmjit::x86::qword_ptr(target, to, 3), integer);
  });
}

void Machine::load(const Vec& dst, const Mem& at, Type type, const Mask& mask) {
  if (type == Type::I64) return load_i64(dst, at, mask, 1);
  const bool f8 = type == Type::F8E4M3 || type == Type::F8E5M2;
  if (!mask.isValid() && !f8) return widen(dst, at, type);
  Vec raw = type == compute_ ? dst : temporary_raw(type);
  if (mask.isValid()) move_masked(raw, at, type, mask);
  else move_raw(raw, at, raw_bytes(type));
  if (type != compute_) widen(dst, raw, type);
  if (mask.isValid() && type == Type::F8E8M0) clear_absent(dst, mask);  // no bits of it are 0
}

void Machine::clear_absent(const Vec& dst, const Mask& mask) {
  if (avx512()) {
    cc_.k(k(mask)).z();
    op(Inst::kIdVmovaps, Inst::kIdVmovapd, dst, dst);
  } else {
    cc_.vandps(dst, dst, v(mask));
  }
}

void Machine::index_load(const Gp& dst, const Mem& at, Type type, const Mask& mask) {
  auto take = [&](const Gp& to) {
    Mem element = at;
    element.setSize(static_cast<std::uint32_t>(bytes(type)));
    if (type == Type::I64) cc_.mov(to, element);
    else if (type == Type::U8) cc_.movzx(to.r32(), element);
    else cc_.movsxd(to, element);
  };
  if (!mask.isValid()) return take(dst);
  Label none = cc_.newLabel();
  Gp which = mask_bits(mask), value = new_gp();  // dst may be part of the address
  cc_.xor_(value.r32(), value.r32());
  cc_.test(which, 1);
  cc_.jz(none);
  take(value);
  cc_.bind(none);
  cc_.mov(dst, value);
}

void Machine::load_one(const Vec& dst, const Mem& at, Type type, const Mask& mask) {
  constexpr asmjit::InstId broadcast[] = {Inst::kIdVpbroadcastb, Inst::kIdVpbroadcastw, Inst::kIdVbroadcastss,
                                          Inst::kIdVbroadcastsd};
  Vec raw = type == compute_ || type == Type::I64 ? dst : temporary_raw(type);
  Label none = cc_.newLabel();
  if (mask.isValid()) {
    cc_.vxorps(dst, dst, dst);
    Gp which = mask_bits(mask);
    cc_.test(which, which);
    cc_.jz(none);
  }
  if (type == Type::I64) {
    Gp integer = new_gp();
    cc_.mov(integer, at);
    from_index(dst, integer);
  } else {
    cc_.emit(broadcast[std::countr_zero(bytes(type))], raw, at);
    if (type != compute_) widen(dst, raw, type);
  }
  if (!mask.isValid()) return;
  clear_absent(dst, mask);
  cc_.bind(none);
}

void Machine::store_streaming(const Mem& at, const Vec& raw, int size) {
  streamed_ = true;
  Gp address = new_gp();
  Label ordinary = cc_.newLabel(), done = cc_.newLabel();
  cc_.lea(address, at);
  cc_.test(address.r8(), size - 1);
  cc_.jnz(ordinary);
  cc_.vmovntps(at, part(raw, size));
  cc_.aside([&] {  // no whole lines
    cc_.bind(ordinary);
    cc_.vmovups(at, part(raw, size));
    cc_.jmp(done);
  });
  cc_.bind(done);
}

void Machine::store(const Mem& at, const Vec& value, Type type, const Mask& mask, Hint hint, bool exact) {
  if (type == Type::I64) return store_i64(at, value, mask, 1);
  Vec raw = narrow(value, type, exact);
  if (mask.isValid()) move_masked(at, raw, type, mask);
  else store_raw(at, raw, raw_bytes(type), hint);
}

void Machine::store_raw(const Mem& at, const Vec& raw, int size, Hint hint) {
  if (hint == Hint::Streaming && size >= 16) store_streaming(at, raw, size);
  else move_raw(at, raw, size);
}

void Machine::store_two(const Mem& at, const Vec& low, const Vec& high, Type type, Hint hint, bool exact) {
  const int size = raw_bytes(type);
  if (type == Type::I64) {
    store_i64(at, low, {}, 1);
    return store_i64(at.cloneAdjusted(size), high, {}, 1);
  }
  if (2 * bytes(type) == bytes(compute_)) return store_raw(at, narrow_two(low, high, type, exact), 2 * size, hint);
  store_raw(at, narrow(low, type, exact), size, hint);
  store_raw(at.cloneAdjusted(size), narrow(high, type, exact), size, hint);
}

void Machine::load_backwards(const Vec& dst, const Mem& at, Type type, const Mask& mask) {
  if (type == Type::I64) return load_i64(dst, at, mask, -1);
  const Mem first = first_of(1, at, type);
  if (!spreads(type) && !turns_raw(type)) {
    load(dst, first, type, turned(mask));
    return turn(dst, dst);
  }
  Vec raw = temporary_raw(type);
  if (mask.isValid()) move_masked(raw, first, type, turned(mask));
  else move_raw(raw, first, raw_bytes(type));
  if (spreads(type)) return spread_bf16(dst, raw, true);
  turn_raw(raw, raw, type);
  widen(dst, raw, type);
  if (mask.isValid() && type == Type::F8E8M0) clear_absent(dst, mask);
}

void Machine::store_backwards(const Mem& at, const Vec& value, Type type, const Mask& mask, Hint hint, bool exact) {
  if (type == Type::I64) return store_i64(at, value, mask, -1);
  const Mem first = first_of(1, at, type);
  if (!turns_raw(type)) return store(first, turned(value), type, turned(mask), hint, exact);
  Vec raw = temporary_raw(type);
  turn_raw(raw, narrow(value, type, exact), type);
  if (mask.isValid()) move_masked(first, raw, type, turned(mask));
  else store_raw(first, raw, raw_bytes(type), hint);
}

void Machine::store_two_backwards(const Mem& at, const Vec& low, const Vec& high, Type type, Hint hint, bool exact) {
  const Mem first = first_of(2, at, type);
  if (!avx512() || wide() || bytes(type) != 2) return store_two(first, turned(high), turned(low), type, hint, exact);
  Vec raw = temporary_vec(64);
  cc_.vpermw(raw, words(last_words_, last_map), narrow_two(low, high, type, exact));
  store_raw(first, raw, 64, hint);
}

// Where so many vectors that end with the element at `at` begin.
Mem Machine::first_of(int vectors, const Mem& at, Type type) const {
  return at.cloneAdjusted(static_cast<std::int64_t>(bytes(type)) - vectors * raw_bytes(type));
}

void Machine::store_one(const Mem& at, const Vec& value, Type type, const Mask& mask) {
  Label skip = cc_.newLabel();
  Gp integer = type == Type::I64 ? to_i64(value) : Gp();
  Vec raw = type == Type::I64 ? value : narrow(value, type);
  if (mask.isValid()) {
    Gp which = mask_bits(mask);
    cc_.test(which, 1);
    cc_.jz(skip);
  }
  switch (bytes(type)) {
    case 1: cc_.vpextrb(at, raw.xmm(), 0); break;
    case 2: cc_.vpextrw(at, raw.xmm(), 0); break;
    case 4: cc_.vmovd(at, raw.xmm()); break;
    default: type == Type::I64 ? cc_.mov(at, integer) : cc_.vmovq(at, raw.xmm()); break;
  }
  if (mask.isValid()) cc_.bind(skip);
}

}  // namespace trireme::x86

// Loads and stores of every storage type. What a mask leaves out is never touched: it may lie on a page that is not
// there.
#include "targets/x86/machine.hpp"

namespace trireme::x86 {

using asmjit::Label;

void Machine::load_raw(const Vec& dst, const Mem& at, int size) {
  if (size == 4) cc_.vmovd(dst.xmm(), at);
  else if (size == 8) cc_.vmovq(dst.xmm(), at);
  else cc_.vmovups(part(dst, size), at);
}

void Machine::store_raw(const Mem& at, const Vec& raw, int size) {
  if (size == 4) cc_.vmovd(at, raw.xmm());
  else if (size == 8) cc_.vmovq(at, raw.xmm());
  else cc_.vmovups(at, part(raw, size));
}

Mem Machine::partial_buffer() {
  if (!partial_buffer_.hasBase()) partial_buffer_ = cc_.newStack(16, 16);
  return partial_buffer_;
}

void Machine::copy_elements(const Mem& to, const Mem& from, const Gp& bits, int element_bytes) {
  Gp target = new_gp(), source = new_gp(), t = new_gp(), element = cc_.newInt32(), rest = cc_.newInt32();
  Label next = cc_.newLabel(), done = cc_.newLabel();
  cc_.lea(target, to);
  cc_.lea(source, from);
  cc_.test(bits, bits);
  cc_.jz(done);
  cc_.bind(next);
  cc_.bsf(t.r32(), bits);
  const unsigned shift = element_bytes == 2 ? 1 : 0;
  if (element_bytes == 2) {
    cc_.movzx(element, asmjit::x86::word_ptr(source, t, shift));
    cc_.mov(asmjit::x86::word_ptr(target, t, shift), element.r16());
  } else {
    cc_.movzx(element, asmjit::x86::byte_ptr(source, t, shift));
    cc_.mov(asmjit::x86::byte_ptr(target, t, shift), element.r8());
  }
  cc_.lea(rest, asmjit::x86::ptr(bits, -1));
  cc_.and_(bits, rest);  // without its lowest bit
  cc_.jnz(next);
  cc_.bind(done);
}

void Machine::load_masked(const Vec& raw, const Mem& at, Type type, const Mask& mask) {
  const int element = static_cast<int>(bytes(type));
  if (avx512()) {
    constexpr asmjit::InstId move[] = {Inst::kIdVmovdqu8, Inst::kIdVmovdqu16, Inst::kIdVmovdqu32, Inst::kIdVmovdqu64};
    cc_.k(k(mask)).z().emit(move[std::countr_zero(bytes(type))], raw, at);
    return;
  }
  if (element == 8) return void(cc_.vmaskmovpd(raw, v(mask), at));
  if (element == 4) return void(cc_.vmaskmovps(raw, wide() ? mask_of_dwords(v(mask)) : v(mask), at));
  Gp which = mask_bits(mask);
  Label full = cc_.newLabel(), done = cc_.newLabel();
  cc_.cmp(which, static_cast<std::int32_t>(all_lanes()));
  cc_.je(full);
  cc_.vxorps(raw, raw, raw);
  cc_.vmovups(partial_buffer(), raw);
  copy_elements(partial_buffer(), at, which, element);
  cc_.vmovups(raw, partial_buffer());
  cc_.jmp(done);
  cc_.bind(full);
  load_raw(raw, at, raw_bytes(type));
  cc_.bind(done);
}

void Machine::load(const Vec& dst, const Mem& at, Type type, const Mask& mask) {
  const bool f8 = type == Type::F8E4M3 || type == Type::F8E5M2;
  if (!mask.isValid() && !f8) return widen(dst, at, type);
  Vec raw = type == compute_ ? dst : new_raw(type);
  if (mask.isValid()) load_masked(raw, at, type, mask);
  else load_raw(raw, at, raw_bytes(type));
  if (type != compute_) widen(dst, raw, type);
}

void Machine::load_one(const Vec& dst, const Mem& at, Type type, const Mask& mask) {
  constexpr asmjit::InstId broadcast[] = {Inst::kIdVpbroadcastb, Inst::kIdVpbroadcastw, Inst::kIdVbroadcastss,
                                          Inst::kIdVbroadcastsd};
  Vec raw = type == compute_ ? dst : new_raw(type);
  Label none = cc_.newLabel();
  if (mask.isValid()) {
    cc_.vxorps(dst, dst, dst);
    Gp which = mask_bits(mask);
    cc_.test(which, which);
    cc_.jz(none);
  }
  cc_.emit(broadcast[std::countr_zero(bytes(type))], raw, at);
  if (type != compute_) widen(dst, raw, type);
  if (!mask.isValid()) return;
  if (avx512()) {
    cc_.k(k(mask)).z();
    op(Inst::kIdVmovaps, Inst::kIdVmovapd, dst, dst);
  } else {
    cc_.vandps(dst, dst, v(mask));
  }
  cc_.bind(none);
}

void Machine::store_masked(const Mem& at, const Vec& raw, Type type, const Mask& mask) {
  const int element = static_cast<int>(bytes(type));
  if (avx512()) {
    constexpr asmjit::InstId move[] = {Inst::kIdVmovdqu8, Inst::kIdVmovdqu16, Inst::kIdVmovdqu32, Inst::kIdVmovdqu64};
    cc_.k(k(mask)).emit(move[std::countr_zero(bytes(type))], at, raw);
    return;
  }
  if (element == 8) return void(cc_.vmaskmovpd(at, v(mask), raw));
  if (element == 4) return void(cc_.vmaskmovps(at, wide() ? mask_of_dwords(v(mask)) : v(mask), raw));
  Gp which = mask_bits(mask);
  Label full = cc_.newLabel(), done = cc_.newLabel();
  cc_.cmp(which, static_cast<std::int32_t>(all_lanes()));
  cc_.je(full);
  cc_.vmovups(partial_buffer(), raw);
  copy_elements(at, partial_buffer(), which, element);
  cc_.jmp(done);
  cc_.bind(full);
  store_raw(at, raw, raw_bytes(type));
  cc_.bind(done);
}

void Machine::store_streaming(const Mem& at, const Vec& raw, int size) {
  streamed_ = true;
  Gp address = new_gp();
  Label ordinary = cc_.newLabel(), done = cc_.newLabel();
  cc_.lea(address, at);
  cc_.test(address.r8(), size - 1);
  cc_.jnz(ordinary);
  cc_.vmovntps(at, part(raw, size));
  cc_.jmp(done);
  cc_.bind(ordinary);
  cc_.vmovups(at, part(raw, size));
  cc_.bind(done);
}

void Machine::store(const Mem& at, const Vec& value, Type type, const Mask& mask, Hint hint) {
  Vec raw = narrow(value, type);
  const int size = raw_bytes(type);
  if (mask.isValid()) store_masked(at, raw, type, mask);
  else if (hint == Hint::Streaming && size >= 16) store_streaming(at, raw, size);
  else store_raw(at, raw, size);
}

void Machine::store_one(const Mem& at, const Vec& value, Type type, const Mask& mask) {
  Label skip = cc_.newLabel();
  Vec raw = narrow(value, type);
  if (mask.isValid()) {
    Gp which = mask_bits(mask);
    cc_.test(which, 1);
    cc_.jz(skip);
  }
  switch (bytes(type)) {
    case 1: cc_.vpextrb(at, raw.xmm(), 0); break;
    case 2: cc_.vpextrw(at, raw.xmm(), 0); break;
    case 4: cc_.vmovd(at, raw.xmm()); break;
    default: cc_.vmovq(at, raw.xmm()); break;
  }
  if (mask.isValid()) cc_.bind(skip);
}

}  // namespace trireme::x86

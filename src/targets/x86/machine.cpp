// Registers, constants, masks and lane movement.
#include "targets/x86/machine.hpp"

namespace trireme::x86 {

using asmjit::ConstPoolScope;

Vec Machine::new_vec(int bytes) {
  if (bytes > 32) return cc_.newZmm();
  if (bytes > 16) return cc_.newYmm();
  return cc_.newXmm();
}

Mask Machine::new_mask() {
  if (avx512()) return cc_.newKq();
  return new_lane();
}

Mem Machine::all32(std::uint32_t bits, const Vec& like) {
  if (avx512()) {
    Mem at = cc_.newConst(ConstPoolScope::kLocal, &bits, 4);
    return like.isZmm() ? at._1to16() : like.isYmm() ? at._1to8() : at._1to4();
  }
  std::uint32_t copies[8] = {bits, bits, bits, bits, bits, bits, bits, bits};
  Mem at = cc_.newConst(ConstPoolScope::kLocal, copies, 32);
  at.setSize(0);
  return at;
}

Mem Machine::all64(std::uint64_t bits, const Vec& like) {
  if (avx512()) {
    Mem at = cc_.newConst(ConstPoolScope::kLocal, &bits, 8);
    return like.isZmm() ? at._1to8() : like.isYmm() ? at._1to4() : at._1to2();
  }
  std::uint64_t copies[4] = {bits, bits, bits, bits};
  Mem at = cc_.newConst(ConstPoolScope::kLocal, copies, 32);
  at.setSize(0);
  return at;
}

// 0, 1, 2, …
Mem Machine::iota(int element_bytes, int count) {
  std::uint32_t dwords[16] = {};
  const int step = element_bytes / 4;
  for (int t = 0; t < count; ++t) dwords[t * step] = static_cast<std::uint32_t>(t);
  Mem at = cc_.newConst(ConstPoolScope::kLocal, dwords, static_cast<std::size_t>(element_bytes * count));
  at.setSize(0);
  return at;
}

void Machine::constant(const Vec& dst, double value) {
  if (std::bit_cast<std::uint64_t>(value) == 0) {
    cc_.vxorps(dst, dst, dst);
  } else if (wide()) {
    cc_.vbroadcastsd(dst, cc_.newDoubleConst(ConstPoolScope::kLocal, value));
  } else {
    cc_.vbroadcastss(dst, cc_.newFloatConst(ConstPoolScope::kLocal, static_cast<float>(value)));
  }
}

void Machine::slot(const Vec& dst, const Mem& at) { op(Inst::kIdVbroadcastss, Inst::kIdVbroadcastsd, dst, at); }

void Machine::from_index(const Vec& dst, const Gp& index) {
  Vec one = cc_.newXmm();
  cc_.vxorps(one, one, one);
  op(Inst::kIdVcvtsi2ss, Inst::kIdVcvtsi2sd, one, one, index.r64());
  op(Inst::kIdVbroadcastss, Inst::kIdVbroadcastsd, dst, one);
}

void Machine::column(const Vec& dst, const Gp& index, std::int32_t more) {
  Vec integers = wide() ? new_raw32() : dst;
  Gp first = cc_.newInt32();
  cc_.lea(first, asmjit::x86::ptr(index, more));
  if (avx512()) {
    cc_.vpbroadcastd(integers, first);
  } else {
    cc_.vmovd(integers.xmm(), first);
    cc_.vpbroadcastd(integers, integers.xmm());
  }
  cc_.vpaddd(integers, integers, iota(4, lanes()));
  op(Inst::kIdVcvtdq2ps, Inst::kIdVcvtdq2pd, dst, integers);
}

void Machine::move(const Mask& dst, const Mask& a) {
  if (avx512()) cc_.kmovq(k(dst), k(a));
  else cc_.vmovaps(v(dst), v(a));
}

// Inside 16 bytes by an immediate permutation, across them by another.
void Machine::shuffle_xor(const Vec& dst, const Vec& a, int distance) {
  constexpr int swap[4] = {0xE4, 0xB1, 0x4E, 0x1B};  // four parts, part t from t ^ 0, 1, 2, 3
  if (wide() && !avx512()) return void(cc_.vpermpd(dst, a, swap[distance]));
  const int inner_count = wide() ? 2 : 4;
  const int inner = distance % inner_count, outer = distance / inner_count;
  Vec from = a;
  if (inner) {
    if (wide()) cc_.vpermilpd(dst, from, 0x55);
    else cc_.vpermilps(dst, from, swap[inner]);
    from = dst;
  }
  if (outer) {
    if (avx512()) cc_.vshuff32x4(dst, from, from, swap[outer]);
    else cc_.vperm2f128(dst, from, from, 1);
  } else if (!inner) {
    move(dst, a);
  }
}

void Machine::mask_below(const Mask& dst, const Gp& index, std::int32_t more, const Gp& end) {
  // How many lanes are below, cut to 0 .. lanes: bzhi looks at 8 bits only, a dword comparison at 32.
  Gp count = new_gp(), bound = new_gp();
  cc_.mov(count, end);
  cc_.sub(count, index);
  if (more) cc_.sub(count, more);
  cc_.mov(bound.r32(), lanes());
  cc_.cmp(count, bound);
  cc_.cmovg(count, bound);
  cc_.xor_(bound.r32(), bound.r32());
  cc_.test(count, count);
  cc_.cmovs(count, bound);
  if (avx512()) {
    cc_.mov(bound.r32(), static_cast<std::int32_t>(all_lanes()));
    cc_.bzhi(bound.r32(), bound.r32(), count.r32());
    cc_.kmovd(k(dst), bound.r32());
  } else {
    Vec below = cc_.newXmm();
    cc_.vmovq(below.xmm(), count);
    if (wide()) {
      cc_.vpbroadcastq(v(dst), below);
      cc_.vpcmpgtq(v(dst), v(dst), iota(8, lanes()));
    } else {
      cc_.vpbroadcastd(v(dst), below);
      cc_.vpcmpgtd(v(dst), v(dst), iota(4, lanes()));
    }
  }
}

Gp Machine::mask_bits(const Mask& mask) {
  Gp bits = cc_.newInt32();
  if (avx512()) cc_.kmovd(bits, k(mask));
  else op(Inst::kIdVmovmskps, Inst::kIdVmovmskpd, bits, v(mask));
  return bits;
}

Vec Machine::mask_of_dwords(const Vec& mask) {
  Vec high = cc_.newXmm(), out = cc_.newXmm();
  cc_.vextractf128(high, mask, 1);
  cc_.vshufps(out, mask.xmm(), high, 0x88);
  return out;
}

}  // namespace trireme::x86

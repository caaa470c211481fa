// Registers, constants, masks and lane movement.
#include "targets/x86/machine.hpp"

#include <cstring>

namespace trireme::x86 {

Vec Machine::temporary_vec(int bytes) {
  if (bytes > 32) return cc_.newZmm();
  if (bytes > 16) return cc_.newYmm();
  return cc_.newXmm();
}

Mem Machine::all(const void* element, int element_bytes, const Vec& like) {
  if (avx512()) {
    const auto times = static_cast<Mem::Broadcast>(std::countr_zero(like.size() / element_bytes));
    return cc_.newConst(element, element_bytes).cloneBroadcasted(times);
  }
  std::uint8_t copies[32];
  for (int at = 0; at < 32; at += element_bytes) std::memcpy(copies + at, element, element_bytes);
  Mem at = cc_.newConst(copies, 32);
  at.setSize(0);
  return at;
}

// 0, 1, 2, …
Mem Machine::iota(int element_bytes, int count) {
  std::uint32_t dwords[16] = {};
  const int step = element_bytes / 4;
  for (int t = 0; t < count; ++t) dwords[t * step] = static_cast<std::uint32_t>(t);
  Mem at = cc_.newConst(dwords, static_cast<std::size_t>(element_bytes * count));
  at.setSize(0);
  return at;
}

Mem Machine::columns_from(std::int32_t first) {
  double doubles[8] = {};
  float singles[16] = {};
  for (int t = 0; t < 8; ++t) doubles[t] = first + t;
  for (int t = 0; t < 16; ++t) singles[t] = static_cast<float>(first + t);
  const auto size = static_cast<std::size_t>(lanes()) * bytes(compute_);
  Mem at = wide() ? cc_.newConst(doubles, size) : cc_.newConst(singles, size);
  at.setSize(0);
  return at;
}

const Vec& Machine::words(Vec& kept, const Words& map) {
  if (!kept.isValid())
    at_start([&] {
      kept = cc_.newZmm();
      cc_.vmovups(kept, cc_.newConst(map.data(), sizeof map));
    });
  return kept;
}

const KReg& Machine::odd_words() {
  if (!odd_words_.isValid())
    at_start([&] {
      Gp bits = new_gp().r32();
      cc_.mov(bits, 0xAAAAAAAAu);
      cc_.kmovd(odd_words_ = cc_.newK(), bits);
    });
  return odd_words_;
}

void Machine::constant(const Vec& dst, double value) {
  if (std::bit_cast<std::uint64_t>(value) == 0) {
    cc_.vxorps(dst, dst, dst);
  } else if (wide()) {
    cc_.vbroadcastsd(dst, cc_.newConst(&value, sizeof value));
  } else {
    const auto single = static_cast<float>(value);
    cc_.vbroadcastss(dst, cc_.newConst(&single, sizeof single));
  }
}

void Machine::slot(const Vec& dst, const Mem& at) { op(Inst::kIdVbroadcastss, Inst::kIdVbroadcastsd, dst, at); }

void Machine::from_index(const Vec& dst, const Gp& index) {
  Vec one = temporary_vec(16);
  cc_.vxorps(one, one, one);
  op(Inst::kIdVcvtsi2ss, Inst::kIdVcvtsi2sd, one, one, index.r64());
  op(Inst::kIdVbroadcastss, Inst::kIdVbroadcastsd, dst, one);
}

void Machine::column(const Vec& dst, const Gp& index, std::int32_t more) {
  if (!index.isValid()) return void(cc_.vmovups(dst, columns_from(more)));
  Vec integers = wide() ? temporary_raw32() : dst;
  Gp first = new_gp().r32();
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

// to - from - more as a number, in all lanes. Rounding keeps the order of integers and moves none across a small one,
// so that numbers below 2^24 compare with it as integers do.
Vec Machine::distance(const Gp& to, const Gp& from, std::int32_t more) {
  Gp count = new_gp();
  Vec lanes = temporary_lane();
  cc_.mov(count, to);
  cc_.sub(count, from);
  if (more) cc_.sub(count, more);
  from_index(lanes, count);
  return lanes;
}

void Machine::mask_below(const Mask& dst, const Gp& index, std::int32_t more, const Gp& end) {
  const bool small = more >= 0 && more < 1 << 23;
  const Vec count = distance(end, index, small ? 0 : more);
  op(Inst::kIdVcmpps, Inst::kIdVcmppd, dst, count, columns_from(small ? more : 0), asmjit::Imm(greater_ordered));
}

void Machine::mask_equal(const Mask& dst, const Gp& a, std::int32_t more, const Gp& b) {
  const Vec apart = distance(b, a, more), zero = temporary_lane();
  cc_.vxorps(zero, zero, zero);
  op(Inst::kIdVcmpps, Inst::kIdVcmppd, dst, apart, zero, asmjit::Imm(equal_ordered));
}

void Machine::turn(const Vec& dst, const Vec& a) {
  if (!last_first_.isValid())
    at_start([&] {
      std::uint32_t dwords[16];
      const int size = wide() ? 2 : 1;  // of a lane
      for (int k = 0; k < lanes() * size; ++k)
        dwords[k] = static_cast<std::uint32_t>((lanes() - 1 - k / size) * size + k % size);
      last_first_ = new_lane();
      cc_.vmovups(last_first_, cc_.newConst(dwords, last_first_.size()));
    });
  cc_.vpermps(dst, last_first_, a);
}

void Machine::turn_raw(const Vec& dst, const Vec& raw, Type type) {
  const int size = static_cast<int>(bytes(type));
  Vec& last_first = last_bytes_[std::countr_zero(bytes(type))];
  if (!last_first.isValid())
    at_start([&] {
      std::uint8_t map[16] = {};
      for (int k = 0; k < raw_bytes(type); ++k)
        map[k] = static_cast<std::uint8_t>((lanes() - 1 - k / size) * size + k % size);
      last_first = cc_.newXmm();
      cc_.vmovups(last_first, cc_.newConst(map, sizeof map));
    });
  cc_.vpshufb(dst.xmm(), raw.xmm(), last_first.xmm());
}

Vec Machine::turned(const Vec& value) {
  Vec other = temporary_lane();
  turn(other, value);
  return other;
}

// Through a vector of lanes: there is no permutation of bits, and masks are for the ends of rows.
Mask Machine::turned(const Mask& mask) {
  if (!mask.isValid()) return mask;
  if (!avx512()) return turned(v(mask));
  Vec lanes = temporary_lane();
  KReg other = temporary_k();
  op(Inst::kIdVpmovm2d, Inst::kIdVpmovm2q, lanes, k(mask));
  turn(lanes, lanes);
  op(Inst::kIdVpmovd2m, Inst::kIdVpmovq2m, other, lanes);
  return other;
}

Gp Machine::mask_bits(const Mask& mask) {
  Gp bits = new_gp().r32();
  if (avx512()) cc_.kmovd(bits, k(mask));
  else op(Inst::kIdVmovmskps, Inst::kIdVmovmskpd, bits, v(mask));
  return bits;
}

Vec Machine::mask_of_dwords(const Vec& mask, unsigned which) {
  Vec high = temporary_vec(16), out = temporary_vec(16);
  cc_.vextractf128(high, mask, 1);
  cc_.vshufps(out, mask.xmm(), high, which);
  return out;
}

}  // namespace trireme::x86

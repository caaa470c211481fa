// Storage types: widening is exact (i32 to f32 rounds once), narrowing rounds once to nearest even.
#include "targets/x86/machine.hpp"

namespace trireme::x86 {

namespace {

constexpr std::uint32_t sign32 = 0x80000000u;
constexpr std::uint64_t sign64 = std::uint64_t{1} << 63;

// For each word of a result, which word of its arguments it is.
constexpr auto spread_map = [] {  // word k into the upper half of lane k
  std::array<std::uint16_t, 32> map{};
  for (int k = 0; k < 32; ++k) map[k] = static_cast<std::uint16_t>(k / 2);
  return map;
}();
constexpr auto spread_back_map = [] {  // the same of the last word first
  std::array<std::uint16_t, 32> map{};
  for (int k = 0; k < 32; ++k) map[k] = static_cast<std::uint16_t>(15 - k / 2);
  return map;
}();
constexpr auto upper_map = [] {  // the upper halves of two registers' lanes
  std::array<std::uint16_t, 32> map{};
  for (int k = 0; k < 32; ++k) map[k] = static_cast<std::uint16_t>(2 * k + 1);
  return map;
}();

}  // namespace

void Machine::widen(const Vec& dst, const asmjit::Operand& raw, Type type) {
  if (type == compute_) return cc_.emit(Inst::kIdVmovups, dst, raw), void();
  if (type == Type::I32) return op(Inst::kIdVcvtdq2ps, Inst::kIdVcvtdq2pd, dst, raw);
  if (type == Type::F32) return void(cc_.emit(Inst::kIdVcvtps2pd, dst, raw));
  Vec single = wide() ? temporary_raw32() : dst;
  switch (type) {
    case Type::I8:
      cc_.emit(Inst::kIdVpmovsxbd, single, raw);
      return op(Inst::kIdVcvtdq2ps, Inst::kIdVcvtdq2pd, dst, single);
    case Type::U8:
      cc_.emit(Inst::kIdVpmovzxbd, single, raw);
      return op(Inst::kIdVcvtdq2ps, Inst::kIdVcvtdq2pd, dst, single);
    case Type::F8E8M0:
      cc_.emit(Inst::kIdVpmovzxbd, single, raw);
      widen_f8e8m0(single, single);
      break;
    case Type::BF16:
      if (spreads(type)) return spread_bf16(dst, raw, false);
      cc_.emit(Inst::kIdVpmovzxwd, single, raw);
      cc_.vpslld(single, single, 16);
      break;
    case Type::F16: cc_.emit(Inst::kIdVcvtph2ps, single, raw); break;
    case Type::F8E4M3:
    case Type::F8E5M2: widen_f8(single, raw.as<Vec>(), type); break;
    case Type::F64:
    case Type::F32:
    case Type::I64:
    case Type::F4E2M1:
    case Type::I32:
      cc_.reportError(asmjit::kErrorInvalidArgument, "no storage type narrower than the compute type");
      break;
  }
  if (wide()) cc_.vcvtps2pd(dst, single);
}

// Through f16, which has f8e5m2's exponent and whose conversion does not mind subnormals: f8e4m3 as an f16 of the same
// fields is 2^-8 of its value. Its NaN comes out as 480, which is no other code's value.
void Machine::widen_f8(const Vec& dst, const Vec& raw, Type type) {
  Vec words = temporary_vec(lanes() * 2);
  cc_.vpmovzxbw(words, raw);
  cc_.vpsllw(words, words, 8);
  if (type == Type::F8E5M2) return void(cc_.vcvtph2ps(dst, words));
  cc_.vpsraw(words, words, 1);
  cc_.vandps(words, words, all32(0xBFFFBFFFu, words));
  cc_.vcvtph2ps(dst, words);
  cc_.vmulps(dst, dst, all32(256.0f, dst));
  Vec magnitude = temporary_raw32();
  cc_.vandps(magnitude, dst, all32(~sign32, dst));
  if (avx512()) {
    KReg nan = temporary_k();
    cc_.vcmpps(nan, magnitude, all32(480.0f, dst), equal_ordered);
    cc_.k(nan).vorps(dst, dst, all32(~0u, dst));
  } else {
    cc_.vcmpps(magnitude, magnitude, all32(480.0f, dst), equal_ordered);
    cc_.vorps(dst, dst, magnitude);
  }
}

// The byte is an f32's exponent; 0 (2^-127) and 255 (NaN) need half of the mantissa's range beside it.
void Machine::widen_f8e8m0(const Vec& dst, const Vec& bytes) {
  Vec half = temporary_raw32();
  cc_.vpaddd(half, bytes, all32(1u, bytes));
  cc_.vandps(half, half, all32(0xFEu, bytes));  // 0 for those two
  cc_.vpaddd(half, half, all32(~0u, bytes));
  cc_.vpsrld(half, half, 31);
  cc_.vpslld(half, half, 22);
  cc_.vpslld(dst, bytes, 23);
  cc_.vorps(dst, dst, half);
}

// Each word into the upper half of its lane, by one instruction.
void Machine::spread_bf16(const Vec& dst, const asmjit::Operand& raw, bool backwards) {
  Vec from = raw.isMem() ? temporary_raw(Type::BF16) : raw.as<Vec>();
  if (raw.isMem()) cc_.emit(Inst::kIdVmovups, from, raw);
  const Vec spread = backwards ? words(spread_back_, spread_back_map) : words(spread_words_, spread_map);
  cc_.k(odd_words()).z().vpermw(dst, spread, from.zmm());
}

Vec Machine::narrow(const Vec& value, Type type, bool exact) {
  if (type == compute_) return value;
  if (is_integer(type)) return narrow_integer(value, type);
  if (type == Type::F32) {
    Vec raw = temporary_raw32();
    cc_.vcvtpd2ps(raw, value);
    return raw;
  }
  Vec single = wide() ? round_to_odd(value) : value;
  if (type == Type::BF16) return pack(bf16_dwords(single, exact), 2);
  if (type == Type::F8E4M3 || type == Type::F8E5M2) return narrow_f8(single, type);
  if (type == Type::F8E8M0) return narrow_f8e8m0(single);
  Vec raw = temporary_raw(Type::F16);
  cc_.vcvtps2ph(raw, single, 0);
  return raw;
}

// Truncated toward zero, then the last bit set where something was cut off: no later rounding can then go wrong.
// The conversion rounds to nearest, so where it went away from zero it is taken back by one.
Vec Machine::round_to_odd(const Vec& x) {
  Vec single = temporary_raw32(), back = temporary_lane(), magnitude = temporary_lane(),
      back_magnitude = temporary_lane();
  cc_.vcvtpd2ps(single, x);
  cc_.vcvtps2pd(back, single);
  cc_.vandpd(magnitude, x, all64(~sign64, x));
  cc_.vandpd(back_magnitude, back, all64(~sign64, x));
  if (avx512()) {
    KReg away = temporary_k(), inexact = temporary_k();
    cc_.vcmppd(away, back_magnitude, magnitude, greater_ordered);
    cc_.vcmppd(inexact, back, x, not_equal);
    cc_.k(away).vpsubd(single, single, all32(1u, single));
    cc_.k(inexact).vorps(single, single, all32(1u, single));
  } else {
    cc_.vcmppd(back_magnitude, back_magnitude, magnitude, greater_ordered);
    cc_.vcmppd(back, back, x, not_equal);
    cc_.vpaddd(single, single, mask_of_dwords(back_magnitude));
    Vec inexact = mask_of_dwords(back);
    cc_.vpsrld(inexact, inexact, 31);
    cc_.vorps(single, single, inexact);
  }
  return single;
}

// Adds just under half of the last place kept, or half where that place is odd; what is below it is then dropped. NaNs
// become quiet ones instead, because adding to their bits could carry into the sign.
void Machine::round_bf16(const Vec& bits, const Vec& x) {
  if (!avx512()) {
    Vec nan = temporary_raw32();  // all ones: a NaN as it is
    cc_.vpsrld(bits, x, 16);
    cc_.vandps(bits, bits, all32(1u, x));
    cc_.vpaddd(bits, bits, x);
    cc_.vpaddd(bits, bits, all32(0x7FFFu, x));
    cc_.vcmpps(nan, x, x, unordered);
    return void(cc_.vorps(bits, bits, nan));
  }
  KReg odd = temporary_k(), nan = temporary_k();
  cc_.vptestmd(odd, x, all32(0x10000u, x));
  cc_.vcmpps(nan, x, x, unordered);
  cc_.vpaddd(bits, x, all32(0x7FFFu, x));
  cc_.k(odd).vpaddd(bits, x, all32(0x8000u, x));
  cc_.k(nan).vorps(bits, x, all32(0x400000u, x));
}

Vec Machine::bf16_dwords(const Vec& x, bool exact) {
  Vec bits = temporary_raw32();
  if (!exact) round_bf16(bits, x);
  cc_.vpsrld(bits, exact ? x : bits, 16);
  return bits;
}

// Two vectors whose elements are half as wide as lanes, as one register.
Vec Machine::narrow_two(const Vec& low, const Vec& high, Type type, bool exact) {
  if (type == Type::BF16 && avx512()) return narrow_two_bf16(low, high, exact);
  Vec raw = temporary_lane();
  if (type == Type::BF16) {
    Vec lower = bf16_dwords(low, exact), upper = bf16_dwords(high, exact);
    cc_.vpackusdw(raw, lower, upper);  // inside 16 bytes
    cc_.vpermq(raw, raw, 0 << 0 | 2 << 2 | 1 << 4 | 3 << 6);
    return raw;
  }
  Vec upper = narrow(high, type), lower = narrow(low, type);
  if (avx512()) cc_.vinserti64x4(raw, lower.zmm(), upper, 1);
  else cc_.vinserti128(raw, lower.ymm(), upper, 1);
  return raw;
}

Vec Machine::narrow_two_bf16(const Vec& low, const Vec& high, bool exact) {
  Vec raw = temporary_lane();
  const Vec upper_words = words(upper_words_, upper_map);
  if (exact) {
    move(raw, low);
    cc_.vpermt2w(raw, upper_words, high);
    return raw;
  }
  if (isa_ != Isa::Avx512Bf16) {
    Vec upper = temporary_lane();
    round_bf16(raw, low);
    round_bf16(upper, high);
    cc_.vpermt2w(raw, upper_words, upper);
    return raw;
  }
  // The machine's own conversion is the contract's, except that it takes subnormal values for zeros.
  constexpr int subnormal = 0x20;  // of vfpclassps
  const asmjit::Label seldom = cc_.newLabel(), done = cc_.newLabel();
  const KReg in_low = temporary_k(), in_high = temporary_k();
  cc_.vfpclassps(in_low, low, subnormal);
  cc_.vfpclassps(in_high, high, subnormal);
  cc_.vcvtne2ps2bf16(raw, high, low);
  cc_.kortestw(in_low, in_high);
  cc_.jnz(seldom);
  cc_.aside([&] {
    Vec rounded = temporary_lane(), upper = temporary_lane();
    KReg both = temporary_k();
    cc_.bind(seldom);
    round_bf16(rounded, low);
    round_bf16(upper, high);
    cc_.vpermt2w(rounded, upper_words, upper);
    cc_.kunpckwd(both, in_high, in_low);
    cc_.k(both).vmovdqu16(raw, rounded);
    cc_.jmp(done);
  });
  cc_.bind(done);
  return raw;
}

// Adding 2^(e+23-m), where e is the exponent of |x| (at least the type's least) and m its mantissa bits, rounds to the
// type's last place; the sum's low bits then count those places, and e - least gives the codes below.
Vec Machine::narrow_f8(const Vec& x, Type type) {
  const int mantissa = type == Type::F8E4M3 ? 3 : 2;
  const int least = type == Type::F8E4M3 ? -6 : -14;
  const std::uint32_t least_bits = static_cast<std::uint32_t>(least + 127) << 23;
  Vec magnitude = temporary_raw32(), exponent = temporary_raw32(), magic = temporary_raw32(), sign = temporary_raw32();
  cc_.vandps(magnitude, x, all32(~sign32, x));
  cc_.vminps(magnitude, magnitude, all32(static_cast<float>(facts(type).largest), x));  // a NaN becomes the largest
  cc_.vandps(exponent, magnitude, all32(0x7F800000u, x));
  cc_.vpmaxsd(exponent, exponent, all32(least_bits, x));
  cc_.vpaddd(magic, exponent, all32(static_cast<std::uint32_t>(23 - mantissa) << 23, x));
  cc_.vaddps(magnitude, magnitude, magic);
  cc_.vpsubd(magnitude, magnitude, magic);
  cc_.vpsubd(exponent, exponent, all32(least_bits, x));
  cc_.vpsrld(exponent, exponent, 23 - mantissa);
  cc_.vpaddd(magnitude, magnitude, exponent);
  cc_.vpsrld(sign, x, 24);
  cc_.vandps(sign, sign, all32(0x80u, x));
  cc_.vorps(magnitude, magnitude, sign);
  if (avx512()) {
    KReg nan = temporary_k();
    cc_.vcmpps(nan, x, x, unordered);
    cc_.k(nan).vorps(magnitude, magnitude, all32(0x7Fu, x));
  } else {
    cc_.vcmpps(sign, x, x, unordered);
    cc_.vandps(sign, sign, all32(0x7Fu, x));
    cc_.vorps(magnitude, magnitude, sign);
  }
  return pack(magnitude, 1);
}

// The nearest power of two, as its exponent. Half of 2^k is added to what follows 2^k; between 2^-127 and 2^-126, whose
// bits are those of a subnormal, the bits less 2^-127 are.
Vec Machine::narrow_f8e8m0(const Vec& x) {
  constexpr std::uint32_t half = 1u << 22;
  Vec magnitude = temporary_raw32(), more = temporary_raw32();
  cc_.vpmaxsd(magnitude, x, all32(half, x));  // negative numbers are below every power
  cc_.vpaddd(more, magnitude, all32(0u - half, x));
  cc_.vpminsd(more, more, all32(half, x));
  cc_.vpaddd(magnitude, magnitude, more);
  cc_.vpsrld(magnitude, magnitude, 23);
  cc_.vpminsd(magnitude, magnitude, all32(254u, x));
  if (avx512()) {
    KReg nan = temporary_k();
    cc_.vcmpps(nan, x, x, unordered);
    cc_.k(nan).vorps(magnitude, magnitude, all32(255u, x));
  } else {
    cc_.vcmpps(more, x, x, unordered);
    cc_.vandps(more, more, all32(255u, x));
    cc_.vorps(magnitude, magnitude, more);
  }
  return pack(magnitude, 1);
}

Vec Machine::narrow_integer(const Vec& x, Type type) {
  Vec number = temporary_lane(), raw = temporary_raw32();
  if (avx512()) {  // NaN becomes 0
    KReg number_mask = temporary_k();
    op(Inst::kIdVcmpps, Inst::kIdVcmppd, number_mask, x, x, asmjit::Imm(ordered));
    cc_.k(number_mask).z();
    op(Inst::kIdVmovaps, Inst::kIdVmovapd, number, x);
  } else {
    op(Inst::kIdVcmpps, Inst::kIdVcmppd, number, x, x, asmjit::Imm(ordered));
    op(Inst::kIdVandps, Inst::kIdVandpd, number, number, x);
  }
  if (type == Type::I32 && !wide()) {
    // Out of range the conversion gives 0x80000000; above, its complement is wanted.
    cc_.vcvtps2dq(raw, number);
    if (avx512()) {
      KReg above = temporary_k();
      cc_.vcmpps(above, number, all32(0x1p31f, x), greater_equal_ordered);
      cc_.k(above).vxorps(raw, raw, all32(~0u, raw));
    } else {
      cc_.vcmpps(number, number, all32(0x1p31f, x), greater_equal_ordered);
      cc_.vxorps(raw, raw, number);
    }
    return raw;
  }
  const double largest = facts(type).largest, least = facts(type).least;
  if (wide()) {
    cc_.vminpd(number, number, all64(largest, x));
    cc_.vmaxpd(number, number, all64(least, x));
    cc_.vcvtpd2dq(raw, number);
  } else {
    cc_.vminps(number, number, all32(static_cast<float>(largest), x));
    cc_.vmaxps(number, number, all32(static_cast<float>(least), x));
    cc_.vcvtps2dq(raw, number);
  }
  if (type == Type::I32) return raw;
  cc_.vandps(raw, raw, all32(0xFFu, raw));
  return pack(raw, 1);
}

// The low bytes of dwords that fit in them.
Vec Machine::pack(const Vec& dwords, int element_bytes) {
  Vec raw = temporary_vec(lanes() * element_bytes);
  if (avx512()) {
    cc_.emit(element_bytes == 2 ? Inst::kIdVpmovdw : Inst::kIdVpmovdb, raw, dwords);
    return raw;
  }
  if (dwords.isYmm()) {
    cc_.vextracti128(raw, dwords, 1);
    cc_.vpackusdw(raw, dwords.xmm(), raw);
  } else {
    cc_.vpackusdw(raw, dwords, dwords);
  }
  if (element_bytes == 1) cc_.vpackuswb(raw, raw, raw);
  return raw;
}

// As numbers: whole, within 2^63, and 0 for NaN and for -0.
void Machine::round_to_i64(const Vec& dst, const Vec& a) {
  Vec whole = temporary_lane();
  arithmetic(Op::Round, whole, a, a);
  auto all = [&](double value) { return wide() ? all64(value, a) : all32(static_cast<float>(value), a); };
  op(Inst::kIdVminps, Inst::kIdVminpd, whole, whole, all(0x1p63));
  op(Inst::kIdVmaxps, Inst::kIdVmaxpd, whole, whole, all(-0x1p63));
  op(Inst::kIdVaddps, Inst::kIdVaddpd, whole, whole, all(0.0));
  if (avx512()) {
    KReg number = temporary_k();
    op(Inst::kIdVcmpps, Inst::kIdVcmppd, number, a, a, asmjit::Imm(ordered));
    cc_.k(number).z();
    op(Inst::kIdVmovaps, Inst::kIdVmovapd, dst, whole);
  } else {
    Vec number = temporary_lane();
    op(Inst::kIdVcmpps, Inst::kIdVcmppd, number, a, a, asmjit::Imm(ordered));
    op(Inst::kIdVandps, Inst::kIdVandpd, dst, whole, number);
  }
}

// Out of range, and of NaN, the conversion gives the least integer.
Gp Machine::to_i64(const Vec& scalar) {
  Gp integer = new_gp(), instead = in_register(std::numeric_limits<std::int64_t>::max());
  op(Inst::kIdVcvtss2si, Inst::kIdVcvtsd2si, integer, scalar.xmm());
  const double limit = 0x1p63;
  const float single = 0x1p63f;
  Mem beyond = wide() ? cc_.newConst(&limit, sizeof limit) : cc_.newConst(&single, sizeof single);
  op(Inst::kIdVucomiss, Inst::kIdVucomisd, scalar.xmm(), beyond);
  cc_.cmovae(integer, instead);
  cc_.mov(instead, 0);  // `xor` would change the flags
  cc_.cmovp(integer, instead);
  return integer;
}

void Machine::round_to(Type type, const Vec& dst, const Vec& a) {
  if (type == Type::I64) return round_to_i64(dst, a);
  if (type == Type::BF16) {
    Vec single = wide() ? round_to_odd(a) : a, bits = temporary_raw32();
    round_bf16(bits, single);
    cc_.vandps(wide() ? bits : dst, bits, all32(0xFFFF0000u, bits));
    if (wide()) cc_.vcvtps2pd(dst, bits);
    return;
  }
  Vec raw = narrow(a, type);
  widen(dst, raw, type);
}

}  // namespace trireme::x86

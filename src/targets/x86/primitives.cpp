// The primitives: each is one rounding, and one instruction wherever the machine has it.
#include "targets/x86/machine.hpp"

namespace trireme::x86 {

namespace {

// Immediates of vroundps and vrndscaleps: direction, and no exception for inexact.
constexpr int to_even = 0x08, down = 0x09;

}  // namespace

void Machine::arithmetic(Op operation, const Vec& dst, const Vec& a, const Vec& b) {
  const std::uint32_t sign32 = 0x80000000u;
  const std::uint64_t sign64 = std::uint64_t{1} << 63;
  const asmjit::Imm way = operation == Op::Floor ? down : to_even;
  switch (operation) {
    case Op::Add: return op(Inst::kIdVaddps, Inst::kIdVaddpd, dst, a, b);
    case Op::Sub: return op(Inst::kIdVsubps, Inst::kIdVsubpd, dst, a, b);
    case Op::Mul: return op(Inst::kIdVmulps, Inst::kIdVmulpd, dst, a, b);
    case Op::Div: return op(Inst::kIdVdivps, Inst::kIdVdivpd, dst, a, b);
    case Op::Sqrt: return op(Inst::kIdVsqrtps, Inst::kIdVsqrtpd, dst, a);
    case Op::Neg: return op(Inst::kIdVxorps, Inst::kIdVxorpd, dst, a, wide() ? all64(sign64, a) : all32(sign32, a));
    case Op::Abs: return op(Inst::kIdVandps, Inst::kIdVandpd, dst, a, wide() ? all64(~sign64, a) : all32(~sign32, a));
    case Op::Floor:
    case Op::Round:
      if (avx512()) return op(Inst::kIdVrndscaleps, Inst::kIdVrndscalepd, dst, a, way);
      return op(Inst::kIdVroundps, Inst::kIdVroundpd, dst, a, way);
    case Op::BitsAdd: return op(Inst::kIdVpaddd, Inst::kIdVpaddq, dst, a, b);
    case Op::BitsAnd: return op(Inst::kIdVandps, Inst::kIdVandpd, dst, a, b);
    case Op::BitsOr: return op(Inst::kIdVorps, Inst::kIdVorpd, dst, a, b);
    default: break;
  }
  cc_.reportError(asmjit::kErrorInvalidArgument, "not an arithmetic primitive");
}

void Machine::fma(const Vec& dst, const Vec& a, const Vec& b, const Vec& c) {
  if (dst == c) return op(Inst::kIdVfmadd231ps, Inst::kIdVfmadd231pd, dst, a, b);  // dst = a * b + dst
  const Vec& factor = dst == b ? a : b;
  if (dst != a && dst != b) move(dst, a);
  op(Inst::kIdVfmadd213ps, Inst::kIdVfmadd213pd, dst, factor, c);  // dst = factor * dst + c
}

void Machine::shift(Op operation, const Vec& dst, const Vec& a, int by) {
  if (operation == Op::BitsShiftLeft) op(Inst::kIdVpslld, Inst::kIdVpsllq, dst, a, asmjit::Imm(by));
  else op(Inst::kIdVpsrld, Inst::kIdVpsrlq, dst, a, asmjit::Imm(by));
}

void Machine::compare(Op operation, const Mask& dst, const Vec& a, const Vec& b) {
  const int predicate = operation == Op::Less        ? less_ordered
                        : operation == Op::LessEqual ? less_equal_ordered
                                                     : equal_ordered;
  op(Inst::kIdVcmpps, Inst::kIdVcmppd, dst, a, b, asmjit::Imm(predicate));
}

void Machine::logic(Op operation, const Mask& dst, const Mask& a, const Mask& b) {
  if (operation == Op::And) return cc_.emit(avx512() ? Inst::kIdKandw : Inst::kIdVandps, dst, a, b), void();
  if (operation == Op::Or) return cc_.emit(avx512() ? Inst::kIdKorw : Inst::kIdVorps, dst, a, b), void();
  if (!avx512()) return void(cc_.vxorps(v(dst), v(a), all32(~0u, v(a))));
  // Of just as many bits as there are lanes; the others become zero.
  op(Inst::kIdKnotw, Inst::kIdKnotb, dst, a);
}

void Machine::select(const Vec& dst, const Mask& condition, const Vec& a, const Vec& b) {
  if (avx512()) {
    cc_.k(k(condition));
    op(Inst::kIdVblendmps, Inst::kIdVblendmpd, dst, b, a);
  } else {
    op(Inst::kIdVblendvps, Inst::kIdVblendvpd, dst, b, a, v(condition));
  }
}

void Machine::min_max(Op operation, const Vec& dst, const Vec& a, const Vec& b) {
  const bool max = operation == Op::Max;
  if (avx512()) {
    // vrange orders zeros and drops NaNs; the sum of what is unordered brings them back.
    const Vec out = dst == a || dst == b ? temporary_lane() : dst;
    KReg nan = temporary_k();
    op(Inst::kIdVrangeps, Inst::kIdVrangepd, out, a, b, asmjit::Imm(max ? 0x5 : 0x4));
    op(Inst::kIdVcmpps, Inst::kIdVcmppd, nan, a, b, asmjit::Imm(unordered));
    cc_.k(nan);
    op(Inst::kIdVaddps, Inst::kIdVaddpd, out, a, b);
    if (out != dst) move(dst, out);
    return;
  }
  // Of two zeros vmax returns the second: either order, then `and` for +0 (vmin: `or` for −0); all ones are a NaN.
  Vec one = temporary_lane(), other = temporary_lane(), nan = temporary_lane();
  min_max_raw(operation, one, a, b);
  min_max_raw(operation, other, b, a);
  if (max) op(Inst::kIdVandps, Inst::kIdVandpd, one, one, other);
  else op(Inst::kIdVorps, Inst::kIdVorpd, one, one, other);
  op(Inst::kIdVcmpps, Inst::kIdVcmppd, nan, a, b, asmjit::Imm(unordered));
  op(Inst::kIdVorps, Inst::kIdVorpd, dst, one, nan);
}

void Machine::min_max_raw(Op operation, const Vec& dst, const Vec& a, const Vec& b) {
  if (operation == Op::Max) op(Inst::kIdVmaxps, Inst::kIdVmaxpd, dst, a, b);
  else op(Inst::kIdVminps, Inst::kIdVminpd, dst, a, b);
}

}  // namespace trireme::x86

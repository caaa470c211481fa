// Index and pointer registers: 64-bit integers in general registers.
#include "targets/x86/machine.hpp"

namespace trireme::x86 {

using asmjit::x86::ptr;

asmjit::Operand Machine::index_operand(const Gp& b, std::int64_t imm) {
  if (b.isValid()) return b;
  if (imm == static_cast<std::int32_t>(imm)) return asmjit::Imm(imm);
  return in_register(imm);
}

Gp Machine::in_register(std::int64_t value) {
  Gp r = new_gp();
  cc_.mov(r, value);
  return r;
}

void Machine::index(Do code, const Gp& dst, const Gp& a, const Gp& b, std::int64_t imm) {
  switch (code) {
    case Do::IndexAdd:
      if (b.isValid()) return void(cc_.lea(dst, ptr(a, b)));
      return two_operand(Inst::kIdAdd, dst, a, index_operand(b, imm));
    case Do::IndexSub: return two_operand(Inst::kIdSub, dst, a, index_operand(b, imm));
    case Do::IndexAnd: return two_operand(Inst::kIdAnd, dst, a, index_operand(b, imm));
    case Do::IndexShiftRight: return two_operand(Inst::kIdShr, dst, a, asmjit::Imm(imm));
    case Do::IndexMul: return multiply(dst, a, b, imm);
    case Do::IndexMin:
    case Do::IndexMax: return extreme(code == Do::IndexMax, dst, a, b.isValid() ? b : in_register(imm));
    case Do::IndexDivide:
    case Do::IndexRemainder: return divide(code == Do::IndexDivide, dst, a, b, imm);
    default: cc_.reportError(asmjit::kErrorInvalidArgument, "not an index operation");
  }
}

// dst = dst op b, where dst may be b.
void Machine::two_operand(asmjit::InstId id, const Gp& dst, const Gp& a, const asmjit::Operand& b) {
  const Gp out = b == dst && dst != a ? new_gp() : dst;
  if (out != a) cc_.mov(out, a);
  cc_.emit(id, out, b);
  if (out != dst) cc_.mov(dst, out);
}

void Machine::multiply(const Gp& dst, const Gp& a, const Gp& b, std::int64_t imm) {
  const asmjit::Operand factor = index_operand(b, imm);
  if (factor.isImm()) cc_.emit(Inst::kIdImul, dst, a, factor);
  else two_operand(Inst::kIdImul, dst, a, factor);
}

void Machine::extreme(bool most, const Gp& dst, const Gp& a, const Gp& b) {
  const Gp out = dst == a ? new_gp() : dst;
  if (out != b) cc_.mov(out, b);
  cc_.cmp(a, out);
  cc_.emit(most ? Inst::kIdCmovg : Inst::kIdCmovl, out, a);
  if (out != dst) cc_.mov(dst, out);
}

void Machine::divide(bool quotient, const Gp& dst, const Gp& a, const Gp& b, std::int64_t imm) {
  const auto bits = static_cast<std::uint64_t>(imm);
  if (!b.isValid() && std::has_single_bit(bits)) {
    if (quotient) return two_operand(Inst::kIdShr, dst, a, asmjit::Imm(std::countr_zero(bits)));
    return two_operand(Inst::kIdAnd, dst, a, index_operand({}, imm - 1));
  }
  using asmjit::x86::rax, asmjit::x86::rdx;
  const Gp divisor = b.isValid() ? b : in_register(imm);
  cc_.mov(rax, a);
  cc_.xor_(rdx.r32(), rdx.r32());
  cc_.div(rdx, rax, divisor);
  cc_.mov(dst, quotient ? rax : rdx);
}

// Both below 2^32: the upper half of a product with 2^64 / by, rounded up.
void Machine::divide_narrow(bool quotient, const Gp& dst, const Gp& a, std::int64_t by) {
  using asmjit::x86::rax, asmjit::x86::rdx;
  const auto divisor = static_cast<std::uint64_t>(by);
  const Gp inverse = in_register(static_cast<std::int64_t>(~std::uint64_t{0} / divisor + 1));
  const Gp high = new_gp();
  cc_.mov(rax, a);
  cc_.mul(rdx, rax, inverse);
  cc_.mov(high, rdx);
  if (quotient) return void(cc_.mov(dst, high));
  multiply(high, high, {}, by);
  two_operand(Inst::kIdSub, dst, a, high);
}

void Machine::pointer_add(const Gp& dst, const Gp& a, const Gp& b, std::int64_t imm) {
  if (imm == 1 || imm == 2 || imm == 4 || imm == 8)
    return void(cc_.lea(dst, ptr(a, b, std::countr_zero(static_cast<std::uint64_t>(imm)))));
  Gp offset = new_gp();
  multiply(offset, b, {}, imm);
  cc_.lea(dst, ptr(a, offset));
}

}  // namespace trireme::x86

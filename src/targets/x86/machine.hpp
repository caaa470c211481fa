// The x86 machine: how each lane instruction of a kernel is spelled in AVX-512 or AVX2. It knows registers and types;
// the walk over the kernel is emit.cpp's.
//
// A lane register is a zmm or ymm of `lanes()` values of the compute type. A mask is a k register on AVX-512, whose
// bits from `lanes()` on are zero; on AVX2 a ymm of all ones or zeros per lane. *Raw* registers hold `lanes()`
// elements of a storage type in their low bytes, as memory does.
#pragma once
#include <asmjit/x86.h>

#include "schedule/kernel.hpp"
#include "targets/x86/emit.hpp"

namespace trireme::x86 {

using asmjit::x86::Compiler;
using asmjit::x86::Gp;
using asmjit::x86::KReg;
using asmjit::x86::Mem;
using asmjit::x86::Vec;
namespace Inst = asmjit::x86::Inst;
using Mask = asmjit::x86::Reg;  // k or ymm

class Machine {
 public:
  Machine(Compiler& compiler, Isa isa, Type compute) : cc_(compiler), isa_(isa), compute_(compute) {}

  Isa isa() const { return isa_; }
  int lanes() const { return x86::lanes(isa_, compute_); }
  Vec new_lane() { return new_vec(avx512() ? 64 : 32); }
  Mask new_mask();
  Gp new_gp() { return cc_.newInt64(); }

  // Lane and mask values
  void constant(const Vec& dst, double value);
  void slot(const Vec& dst, const Mem& at);
  void from_index(const Vec& dst, const Gp& index);
  void column(const Vec& dst, const Gp& index, std::int32_t more);  // index + more + lane < 2^31
  void move(const Vec& dst, const Vec& a) { cc_.vmovaps(dst, a); }
  void move(const Mask& dst, const Mask& a);
  void shuffle_xor(const Vec& dst, const Vec& a, int distance);
  void mask_below(const Mask& dst, const Gp& index, std::int32_t more, const Gp& end);

  // Primitives. `dst` may be any of the arguments.
  void unary(Op op, const Vec& dst, const Vec& a);
  void binary(Op op, const Vec& dst, const Vec& a, const Vec& b);
  void fma(const Vec& dst, const Vec& a, const Vec& b, const Vec& c);
  void shift(Op op, const Vec& dst, const Vec& a, int by);
  void compare(Op op, const Mask& dst, const Vec& a, const Vec& b);
  void logic(Op op, const Mask& dst, const Mask& a, const Mask& b);
  void select(const Vec& dst, const Mask& condition, const Vec& a, const Vec& b);
  // NaN if either is, −0 below +0.
  void min_max(Op op, const Vec& dst, const Vec& a, const Vec& b);
  // The same where `c` is neither zero nor NaN: one instruction, which returns its second operand for a NaN.
  void min_max_constant(Op op, const Vec& dst, const Vec& c, const Vec& x);
  void round_to(Type type, const Vec& dst, const Vec& a);

  // Memory. A mask that is not valid stands for all lanes.
  void load(const Vec& dst, const Mem& at, Type type, const Mask& mask);
  void load_one(const Vec& dst, const Mem& at, Type type, const Mask& mask);
  void store(const Mem& at, const Vec& value, Type type, const Mask& mask, Hint hint);
  void store_one(const Mem& at, const Vec& value, Type type, const Mask& mask);
  bool streamed() const { return streamed_; }  // a fence is due before the end

 private:
  bool avx512() const { return isa_ == Isa::Avx512; }
  bool wide() const { return compute_ == Type::F64; }
  std::uint64_t all_lanes() const { return (std::uint64_t{1} << lanes()) - 1; }
  int raw_bytes(Type type) const { return lanes() * static_cast<int>(bytes(type)); }
  Vec new_vec(int bytes);  // 16 at least
  Vec new_raw(Type type) { return new_vec(raw_bytes(type)); }
  Vec new_raw32() { return new_vec(lanes() * 4); }

  // A constant in memory as an operand: broadcast by the instruction itself (AVX-512) or written out (AVX2).
  Mem all32(std::uint32_t bits, const Vec& like);
  Mem all32(float value, const Vec& like) { return all32(std::bit_cast<std::uint32_t>(value), like); }
  Mem all64(std::uint64_t bits, const Vec& like);
  Mem all64(double value, const Vec& like) { return all64(std::bit_cast<std::uint64_t>(value), like); }
  Mem iota(int element_bytes, int count);

  // The instruction of the compute type.
  template <typename... Operands>
  void op(asmjit::InstId single, asmjit::InstId twice, const Operands&... operands) {
    cc_.emit(wide() ? twice : single, operands...);
  }
  KReg k(const Mask& mask) const { return mask.as<KReg>(); }
  Vec v(const Mask& mask) const { return mask.as<Vec>(); }
  Gp mask_bits(const Mask& mask);       // a 32-bit register, bit t for lane t
  Vec mask_of_dwords(const Vec& mask);  // AVX2, f64: the mask for elements of 4 bytes

  // Storage types
  void widen(const Vec& dst, const asmjit::Operand& raw, Type type);  // raw: a raw register or memory
  void widen_f8(const Vec& dst, const Vec& raw, Type type);
  Vec narrow(const Vec& value, Type type);  // the raw register; `value` itself where nothing changes
  Vec narrow_bf16(const Vec& x);
  Vec narrow_f8(const Vec& x, Type type);
  Vec narrow_integer(const Vec& x, Type type);
  Vec round_to_odd(const Vec& x);  // f64 to f32
  Vec pack(const Vec& dwords, int element_bytes);

  void load_raw(const Vec& dst, const Mem& at, int size);
  void store_raw(const Mem& at, const Vec& raw, int size);
  void load_masked(const Vec& raw, const Mem& at, Type type, const Mask& mask);
  void store_masked(const Mem& at, const Vec& raw, Type type, const Mask& mask);
  void store_streaming(const Mem& at, const Vec& raw, int size);
  // AVX2: copies the elements of 1 or 2 bytes that `bits` names, one by one; `bits` is used up.
  void copy_elements(const Mem& to, const Mem& from, const Gp& bits, int element_bytes);
  Mem partial_buffer();

  Compiler& cc_;
  Isa isa_;
  Type compute_;
  bool streamed_ = false;
  Mem partial_buffer_;
};

// A register's low part: xmm, ymm or zmm.
inline Vec part(const Vec& x, int bytes) {
  if (bytes > 32) return x.zmm();
  if (bytes > 16) return x.ymm();
  return x.xmm();
}

}  // namespace trireme::x86

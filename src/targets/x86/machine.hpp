// The x86 machine: how each lane instruction of a kernel is spelled in AVX-512 or AVX2. It knows registers and types;
// the walk over the kernel is emit.cpp's.
//
// A lane register is a zmm or ymm of `lanes()` values of the compute type. A mask is a k register on AVX-512, whose
// bits from `lanes()` on are zero; on AVX2 a ymm of all ones or zeros per lane. *Raw* registers hold `lanes()`
// elements of a storage type in their low bytes, as memory does.
#pragma once
#include <asmjit/x86.h>

#include <array>

#include "schedule/kernel.hpp"
#include "targets/x86/compiler.hpp"
#include "targets/x86/emit.hpp"

namespace trireme::x86 {

using asmjit::x86::Gp;
using asmjit::x86::KReg;
using asmjit::x86::Mem;
using asmjit::x86::Vec;
namespace Inst = asmjit::x86::Inst;
using Mask = asmjit::x86::Reg;  // k or ymm

// Predicates of vcmpps that raise nothing.
constexpr int equal_ordered = 0x00, unordered = 0x03, not_equal = 0x04, ordered = 0x07;
constexpr int less_ordered = 0x11, less_equal_ordered = 0x12, greater_equal_ordered = 0x1D, greater_ordered = 0x1E;

class Machine {
 public:
  Machine(Compiler& compiler, Isa isa, Type compute) : cc_(compiler), isa_(isa), compute_(compute) {}

  int lanes() const { return x86::lanes(isa_, compute_); }
  Vec new_lane() { return avx512() ? Vec(cc_.newZmm()) : Vec(cc_.newYmm()); }
  Mask new_mask() { return avx512() ? Mask(cc_.newK()) : Mask(cc_.newYmm()); }
  Gp new_gp() { return cc_.newInt64(); }

  // Index registers; `b` not valid: imm takes its place.
  void index(Do code, const Gp& dst, const Gp& a, const Gp& b, std::int64_t imm);
  void divide_narrow(bool quotient, const Gp& dst, const Gp& a, std::int64_t by);
  void pointer_add(const Gp& dst, const Gp& a, const Gp& b, std::int64_t imm);
  Gp in_register(std::int64_t value);
  asmjit::Operand index_operand(const Gp& b, std::int64_t imm);  // `b`, or an immediate where it fits one

  // Lane and mask values
  void constant(const Vec& dst, double value);
  void slot(const Vec& dst, const Mem& at);
  void from_index(const Vec& dst, const Gp& index);
  void random(const Vec& dst, const Gp& column, std::int32_t more, const Gp& row, const Gp& seed, std::uint32_t stream,
              bool all_the_same);
  void column(const Vec& dst, const Gp& index,
              std::int32_t more);  // index + more + lane < 2^31; without index: a constant
  void move(const Vec& dst, const Vec& a) { cc_.vmovaps(dst, a); }
  void move(const Mask& dst, const Mask& a);
  void shuffle_xor(const Vec& dst, const Vec& a, int distance);
  void mask_below(const Mask& dst, const Gp& index, std::int32_t more, const Gp& end);
  void mask_equal(const Mask& dst, const Gp& a, std::int32_t more, const Gp& b);

  // Primitives. `dst` may be any of the arguments.
  void arithmetic(Op op, const Vec& dst, const Vec& a, const Vec& b);  // `b` is ignored by those of one argument
  void fma(const Vec& dst, const Vec& a, const Vec& b, const Vec& c);
  void shift(Op op, const Vec& dst, const Vec& a, int by);
  void compare(Op op, const Mask& dst, const Vec& a, const Vec& b);
  void logic(Op op, const Mask& dst, const Mask& a, const Mask& b);
  void select(const Vec& dst, const Mask& condition, const Vec& a, const Vec& b);
  // NaN if either is, −0 below +0.
  void min_max(Op op, const Vec& dst, const Vec& a, const Vec& b);
  // The machine's own instruction, which returns `b` for a NaN and for two zeros: the same where `a` is neither.
  void min_max_raw(Op op, const Vec& dst, const Vec& a, const Vec& b);
  void round_to(Type type, const Vec& dst, const Vec& a);

  // Memory. A mask that is not valid stands for all lanes.
  void load(const Vec& dst, const Mem& at, Type type, const Mask& mask);
  void index_load(const Gp& dst, const Mem& at, Type type, const Mask& mask);  // 0 where lane 0 is masked off
  void load_one(const Vec& dst, const Mem& at, Type type, const Mask& mask);
  // exact: the type holds the value.
  void store(const Mem& at, const Vec& value, Type type, const Mask& mask, Hint hint, bool exact);
  void store_one(const Mem& at, const Vec& value, Type type, const Mask& mask);
  // Consecutive vectors, without a mask: one access where they fit a register together.
  void store_two(const Mem& at, const Vec& low, const Vec& high, Type type, Hint hint, bool exact);
  // Lane t is the element t before `at`.
  void load_backwards(const Vec& dst, const Mem& at, Type type, const Mask& mask);
  void store_backwards(const Mem& at, const Vec& value, Type type, const Mask& mask, Hint hint, bool exact);
  void store_two_backwards(const Mem& at, const Vec& low, const Vec& high, Type type, Hint hint, bool exact);
  void begin() { start_ = cc_.cursor(); }      // here belongs what the whole kernel needs
  bool streamed() const { return streamed_; }  // a fence is due before the end

 private:
  bool avx512() const { return is_avx512(isa_); }
  bool wide() const { return compute_ == Type::F64; }
  std::uint64_t all_lanes() const { return (std::uint64_t{1} << lanes()) - 1; }
  int raw_bytes(Type type) const { return lanes() * static_cast<int>(bytes(type)); }
  Vec temporary_vec(int bytes);  // 16 at least
  Vec temporary_lane() { return temporary_vec(avx512() ? 64 : 32); }
  Vec temporary_raw(Type type) { return temporary_vec(raw_bytes(type)); }
  Vec temporary_raw32() { return temporary_vec(lanes() * 4); }
  KReg temporary_k() { return cc_.newK(); }

  void two_operand(asmjit::InstId id, const Gp& dst, const Gp& a, const asmjit::Operand& b);
  void multiply(const Gp& dst, const Gp& a, const Gp& b, std::int64_t imm);
  void extreme(bool most, const Gp& dst, const Gp& a, const Gp& b);
  void divide(bool quotient, const Gp& dst, const Gp& a, const Gp& b, std::int64_t imm);

  // A constant in memory as an operand: broadcast by the instruction itself (AVX-512) or written out (AVX2).
  Mem all(const void* element, int element_bytes, const Vec& like);
  Mem all32(std::uint32_t bits, const Vec& like) { return all(&bits, 4, like); }
  Mem all32(float value, const Vec& like) { return all(&value, 4, like); }
  Mem all64(std::uint64_t bits, const Vec& like) { return all(&bits, 8, like); }
  Mem all64(double value, const Vec& like) { return all(&value, 8, like); }
  Mem iota(int element_bytes, int count);
  Mem columns_from(std::int32_t first);  // first + lane, exact
  Vec distance(const Gp& to, const Gp& from, std::int32_t more);
  // Registers for the whole kernel, filled at its start.
  using Words = std::array<std::uint16_t, 32>;
  const Vec& words(Vec& kept, const Words& map);
  const KReg& odd_words();
  template <typename Emit>
  void at_start(Emit emit) {
    asmjit::BaseNode* here = cc_.setCursor(start_);
    emit();
    if (here != start_) start_ = cc_.setCursor(here);
    else start_ = cc_.cursor();
  }

  // The instruction of the compute type.
  template <typename... Operands>
  void op(asmjit::InstId single, asmjit::InstId twice, const Operands&... operands) {
    cc_.emit(wide() ? twice : single, operands...);
  }
  KReg k(const Mask& mask) const { return mask.as<KReg>(); }
  Vec v(const Mask& mask) const { return mask.as<Vec>(); }
  Gp mask_bits(const Mask& mask);           // a 32-bit register, bit t for lane t
  void turn(const Vec& dst, const Vec& a);  // the last lane first
  Mask turned(const Mask& mask);
  Vec turned(const Vec& value);
  // Up to 16 bytes are turned more cheaply than lanes (bf16 on AVX2: 5 % of swiglu), but f16's conversions want the
  // same ports (softmax backward 512x32x128: 0.59 ms instead of 0.48).
  bool turns_raw(Type type) const { return raw_bytes(type) <= 16 && type != Type::F16; }
  void turn_raw(const Vec& dst, const Vec& raw, Type type);
  // AVX2: every second dword, the even or (0xDD) the odd ones; of f64 the mask for elements of 4 bytes.
  Vec mask_of_dwords(const Vec& mask, unsigned which = 0x88);

  // Storage types
  void widen(const Vec& dst, const asmjit::Operand& raw, Type type);  // raw: a raw register or memory
  void widen_f8(const Vec& dst, const Vec& raw, Type type);
  bool spreads(Type type) const { return type == Type::BF16 && avx512() && !wide(); }
  void spread_bf16(const Vec& dst, const asmjit::Operand& raw, bool backwards);
  // The raw register; `value` itself where nothing changes.
  Vec narrow(const Vec& value, Type type, bool exact = false);
  void round_bf16(const Vec& bits, const Vec& x);  // in the upper halves of dwords; the lower ones are left over
  Vec bf16_dwords(const Vec& x, bool exact);       // in the lower halves
  Vec narrow_two(const Vec& low, const Vec& high, Type type, bool exact);
  Vec narrow_two_bf16(const Vec& low, const Vec& high, bool exact);  // AVX-512
  Vec narrow_f8(const Vec& x, Type type);
  Vec narrow_integer(const Vec& x, Type type);
  Vec narrow_f8e8m0(const Vec& x);
  void widen_f8e8m0(const Vec& dst, const Vec& bytes);
  void round_to_i64(const Vec& dst, const Vec& a);
  Gp to_i64(const Vec& scalar);
  // i64 is wider than f32: its elements go one by one. `step` is 1, or -1 for backwards.
  template <typename Each>
  void each_lane(const Mask& mask, Each&& each);
  void load_i64(const Vec& dst, const Mem& at, const Mask& mask, int step);
  void store_i64(const Mem& at, const Vec& value, const Mask& mask, int step);
  Vec round_to_odd(const Vec& x);  // f64 to f32
  Vec pack(const Vec& dwords, int element_bytes);

  Mem first_of(int vectors, const Mem& at, Type type) const;
  // Between a raw register and memory, either way.
  void move_raw(const asmjit::Operand& to, const asmjit::Operand& from, int size);
  void move_masked(const asmjit::Operand& to, const asmjit::Operand& from, Type type, const Mask& mask);
  void store_raw(const Mem& at, const Vec& raw, int size, Hint hint);
  void store_streaming(const Mem& at, const Vec& raw, int size);
  // AVX2: copies the elements of 1 or 2 bytes that `bits` names, one by one; `bits` is used up.
  void copy_elements(const Mem& to, const Mem& from, const Gp& bits, int element_bytes);
  Mem partial_buffer();
  Mem lane_buffer();
  void clear_absent(const Vec& dst, const Mask& mask);

  Compiler& cc_;
  Isa isa_;
  Type compute_;
  bool streamed_ = false;
  asmjit::BaseNode* start_ = nullptr;
  Vec spread_words_, spread_back_, upper_words_, last_words_, last_first_, last_bytes_[3];
  KReg odd_words_;
  Mem partial_buffer_, lane_buffer_;  // on the stack
};

// A register's low part: xmm, ymm or zmm.
inline Vec part(const Vec& x, int bytes) {
  if (bytes > 32) return x.zmm();
  if (bytes > 16) return x.ymm();
  return x.xmm();
}

}  // namespace trireme::x86

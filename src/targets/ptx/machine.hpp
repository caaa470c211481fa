// Spells the lowered form's instructions in PTX, one to one. R is the compute type's register: F32 or F64.
#pragma once
#include <vector>

#include "schedule/kernel.hpp"
#include "trireme/ptx.hpp"

namespace trireme::ptx {

template <typename R>
class Machine {
 public:
  Machine(const trireme::Kernel& form, Kernel& k, int arch, bool with_names);
  Status run();

 private:
  void block(const std::vector<Instr>& body);
  void instruction(const Instr& instr);
  void index(const Instr& instr);
  void say_name(const trireme::Kernel::Named& named);
  U32 block_number(bool rank);
  void divide(const Instr& instr, U64 d);
  void reciprocal_from_one(R divisor, R d);
  void divide_by(R a, double divisor, R d);
  void primitive(const Instr& instr);

  // random.cpp
  struct Drawn {  // four columns' words
    Reg column, row, seed;
    std::int64_t offset = 0, stream = 0;
    std::array<U32, 4> words = {};
  };
  std::array<U32, 4> draw(U32 block, const Instr& instr);
  void random(const Instr& instr);
  std::optional<Drawn> drawn_;  // by the instruction before

  // memory.cpp
  void load(const Instr& instr);
  void store(const Instr& instr);
  Global global(const Instr& instr);
  Shared scratch(Reg offset, Reg scaled, std::int64_t scale, std::int64_t imm);
  template <typename Where>
  void load_at(const Instr& instr, const Where& where, std::span<const R> to);
  template <typename Where>
  void store_at(const Instr& instr, const Where& where, std::span<const R> from);
  template <typename Body>
  void guarded(Reg mask_register, Body&& body) {
    if (mask_register) k_.when(mask(mask_register), body);
    else body();
  }

  // convert.cpp
  R widen_bits(Type type, U32 word, int place, R to);   // element `place` of a 32-bit word of 1- or 2-byte elements
  U32 pack_word(Type type, std::span<const R> values);  // 4 / bytes(type) elements; those missing are 0
  R from_f32(F32 value, R to);
  F32 to_f32(R value);  // rounded to odd, so that a second rounding is the only one
  F32 to_f32_even(R value);
  R round_to(Type type, R value);
  U32 to_integer(Type type, R value);
  U64 to_i64(R value);
  U32 f8_bits(Type type, F32 value);
  U32 f8e8m0_bits(F32 value);

  R lane(Reg reg) const { return lanes_[reg.id]; }
  Pred mask(Reg reg) const { return masks_[reg.id]; }
  U64 index(Reg reg) const { return indices_[reg.id]; }
  U64 pointer(Reg reg) const { return pointers_[reg.id]; }
  Operand<U64> second(const Instr& instr) const {
    return instr.b ? Operand<U64>(index(instr.b)) : Operand<U64>(instr.imm);
  }
  void find_constants(const std::vector<Instr>& body, std::vector<int>& writes);
  double constant(Reg reg) const { return constants_[reg.id]; }  // NaN: none

  const trireme::Kernel& form_;
  Kernel& k_;
  int arch_;
  bool with_names_;  // in comments
  ParameterBytes args_;
  Parameter<U64> bounds_[3];
  std::vector<R> lanes_;
  std::vector<Pred> masks_;
  std::vector<U64> indices_, pointers_;
  std::vector<double> constants_;  // of Lane registers that are written once, by LaneConstant; else NaN
  U32 lane_in_group_, group_number_;
  Shared scratch_;
  std::string refused_;
};

extern template class Machine<F32>;
extern template class Machine<F64>;

}  // namespace trireme::ptx

// The AArch64 machine: how each lane instruction of a kernel is spelled in A64. It knows registers and types; the walk
// over the kernel is emit.cpp's.
//
// A lane register is a vector of 16 bytes; a mask is one of all ones or zeros a lane. *Raw* registers hold as many
// elements of a storage type in their low bytes, as memory does.
#pragma once
#include "schedule/kernel.hpp"
#include "targets/aarch64/assembler.hpp"
#include "targets/aarch64/emit.hpp"

namespace trireme::aarch64 {

struct Address {
  Gp base;
  std::int64_t offset = 0;
};

class Machine {
 public:
  Machine(Assembler& assembler, Isa isa, Type compute) : as_(assembler), isa_(isa), compute_(compute) {}

  int lanes() const { return register_bytes / static_cast<int>(bytes(compute_)); }

  // index.cpp. `b` not valid: imm takes its place.
  void index(Do code, Gp dst, Gp a, Gp b, std::int64_t imm);
  void compare(Gp a, Gp b, std::int64_t imm);
  void pointer_add(Gp dst, Gp a, Gp b, std::int64_t imm);
  void add(Gp dst, Gp a, std::int64_t imm);
  void set(Gp dst, std::int64_t value);
  void load_slot(Gp dst, Gp args, std::int64_t slot);

  // memory.cpp
  void load(Vec dst, Address at, Type type, Vec mask);
  void load_backwards(Vec dst, Address at, Type type, Vec mask);
  void load_one(Vec dst, Address at, Type type, Vec mask);
  void index_load(Gp dst, Address at, Type type, Vec mask);
  // exact: the type holds the value.
  void store(Address at, Vec value, Type type, Vec mask, bool exact);
  void store_two(Address at, Vec low, Vec high, Type type, bool exact);  // side by side
  void store_backwards(Address at, Vec value, Type type, Vec mask, bool exact);
  void store_one(Address at, Vec value, Type type, Vec mask);
  void prefetch(Address at);
  int raw_bytes(Type type) const { return lanes() * static_cast<int>(bytes(type)); }

  // lanes.cpp
  void constant(Vec dst, double value);
  void slot(Vec dst, Address at);
  void from_index(Vec dst, Gp index);
  void column(Vec dst, Gp index, std::int64_t more);
  void move(Vec dst, Vec a);
  void arithmetic(Op operation, Vec dst, Vec a, Vec b);
  void fma(Vec dst, Vec a, Vec b, Vec c);
  void shift(Op operation, Vec dst, Vec a, int by);
  void compare(Op operation, Vec dst, Vec a, Vec b);
  void select(Vec dst, Vec condition, Vec a, Vec b);
  void shuffle_xor(Vec dst, Vec a, int distance);
  void mask_below(Vec dst, Gp index, std::int64_t more, Gp end);
  void mask_equal(Vec dst, Gp a, std::int64_t more, Gp b);

  // random.cpp
  void random(Vec dst, Gp column, std::int64_t more, Gp row, Gp seed, std::uint32_t stream, bool all_the_same);

  // convert.cpp
  void round_to(Type type, Vec dst, Vec a);

 private:
  bool wide() const { return compute_ == Type::F64; }
  Vec temporary() { return as_.new_vec(); }
  void lanewise(const Form& form, std::initializer_list<Register> registers) {
    as_.put(form, registers, {.of_2d = wide()});
  }
  Gp in_register(Gp b, std::int64_t imm);
  void turn(Vec dst, Vec a);  // the last lane first
  Vec turned(Vec a_or_none);
  Gp mask_bits(Vec mask);  // as many equal bits a lane as `mask_field` says
  int mask_field() const { return wide() ? 32 : 16; }
  void skip_without_lane(Gp bits, int lane, Label skip);

  Address reachable(Address at, int unit);
  Gp flat(Address at);
  void move_raw(const Form (&forms)[5], Vec raw, Address at, int size);
  void move_masked(bool load, Vec raw, Address at, Type type, Vec mask);
  void load_i64(Vec dst, Address at, Vec mask, int step);
  void store_i64(Address at, Vec value, Vec mask, int step);
  void to_lane(Vec dst, int lane, Vec scalar);
  Vec from_lane(Vec value, int lane);
  Address first_of(Address at, Type type) const;

  void widen(Vec dst, Vec raw, Type type);
  void widen_f8(Vec dst, Vec raw, Type type);
  void widen_f8e8m0(Vec dst, Vec raw);
  Vec narrow(Vec value, Type type, bool exact = false);
  Vec narrow_two(Vec low, Vec high, Type type, bool exact);
  Vec narrow_integer(Vec value, Type type);
  Vec round_bf16(Vec x);  // in the upper halves of lanes; the lower ones are left over
  Vec narrow_bf16(Vec single, bool exact);
  Vec narrow_f8(Vec single, Type type);
  Vec narrow_f8e8m0(Vec single);
  Vec pack(Vec dwords);  // low bytes
  void set_where_nan(Vec bits, Vec x, std::uint32_t more);
  Constant lanes_of(double value) const;
  Constant columns_from(std::int64_t first) const;  // first + lane, exact
  Vec distance(Gp to, Gp from, std::int64_t more);
  Vec all(std::uint32_t bits);  // in every lane of 32 bits; not to be written
  Vec all(double value);

  Assembler& as_;
  Isa isa_;
  Type compute_;
};

}  // namespace trireme::aarch64

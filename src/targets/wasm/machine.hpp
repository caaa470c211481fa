// Spells the instructions of a lowered simd kernel, one to one, as the body of a WebAssembly function.
// Lane and Mask registers are v128 locals (a mask's lanes are all ones or zeros), Index i64, Pointer i32.
// machine.cpp has control, indices and lanes, memory.cpp loads and stores, emulated.cpp runs of emulated fma.
#pragma once
#include <map>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "schedule/kernel.hpp"
#include "targets/lane_facts.hpp"
#include "targets/wasm/through_f64.hpp"

namespace trireme::wasm {

using Primitive = trireme::Op;

struct Entry {
  std::string name;
  bool has_total = true;                            // rows(args, first, last, total), or columns(args, first, last)
  std::optional<Callee> fma;                        // of add_fma; none: relaxed_madd
  bool compact = false;                             // Options::compact
  std::optional<Callee> masked_load, masked_store;  // of add_masked_load and add_masked_store; none: in place
};

Result<Body> translate(const Kernel& kernel, const Entry& entry);

class Machine {
 public:
  Machine(const Kernel& kernel, const Entry& entry, Function& function, Constants& constants);
  Status run() { return block(kernel_.body); }

 private:
  struct Address {
    Value<I32> base;
    std::uint32_t offset;
  };

  // machine.cpp
  Status block(const std::vector<Instr>& body);
  Status step(const Instr& instr);
  Status control(const Instr& instr);
  Status primitive(const Instr& instr);
  void index(const Instr& instr);
  void extremum(const Instr& instr, PlainOp exact, PlainOp with_constant);
  void fma(const Instr& instr);
  void shuffle_xor(const Instr& instr);
  void columns_from(std::int64_t first);  // pushed: first + lane, exact
  void distance(const Instr& instr, std::int64_t more);
  void mask_below(const Instr& instr);
  void mask_equal(const Instr& instr);
  void less(const Instr& instr);
  void push_index(const Instr& instr);  // b, or imm in its place
  Status refuse(const Instr& instr, std::string_view reason) const;

  // emulated.cpp
  std::size_t run_at(const std::vector<Instr>& body, std::size_t first) const;  // its end, or `first` if there is none
  Status emulated_run(std::span<const Instr> run);
  void fast_fma(const Instr& instr);
  Halves wide(Reg reg);
  bool is_power(Reg reg) const { return powers_.contains(reg.id); }

  // memory.cpp
  Address address(const Instr& instr);
  MemArg at(const Address& address, const Instr& instr, int element = 0) const;
  void push_place(const Address& address);
  Value<I32x4> load_vector(const Address& address, const Instr& instr);
  void random(const Instr& instr);
  void load_i64(const Instr& instr);
  void store_i64(const Instr& instr);
  void round_to_i64(const Instr& instr);
  void index_load(const Instr& instr);
  void load(const Instr& instr);
  void load_one(const Instr& instr);
  void store_vector(const Address& address, const Instr& instr, Value<I32x4> bits);
  void store(const Instr& instr);
  void store_one(const Instr& instr);
  bool calls_masked(const Instr& instr, const std::optional<Callee>& callee) const {
    return callee && bytes(instr.type) == bytes(kernel_.compute);
  }
  template <typename Body>
  void for_lanes_of(Local<V128> mask, Body&& body);
  void store_two(const Instr& instr);
  Value<I32x4> narrowed(const Instr& instr, Reg value);
  void set_widened(const Instr& instr, Reg dst, Value<I32x4> bits);

  Local<V128> lane(Reg reg) const { return (reg.bank == Bank::Mask ? masks_ : lanes_)[reg.id]; }
  Local<I64> integer(Reg reg) const { return indices_[reg.id]; }
  Local<I32> pointer(Reg reg) const { return pointers_[reg.id]; }
  Function& f() { return writer_->raw(); }
  template <typename... Registers>
  void lanewise(PlainOp op, Reg dst, Registers... operands) {
    (f().get(lane(operands)), ...);
    f().op(op), f().set(lane(dst));
  }

  const Kernel& kernel_;
  const Entry& entry_;
  const bool f64_;  // f64 lanes, two of them
  Local<I32> args_, scratch_;
  std::array<Local<I64>, 3> arguments_;  // first, last, total
  std::optional<Writer> writer_;
  std::vector<Local<V128>> lanes_, masks_;
  std::vector<Local<I64>> indices_;
  std::vector<Local<I32>> pointers_;
  LaneFacts facts_;

  struct WideLocals {
    Local<V128> low, high;
  };
  std::map<int, WideLocals> wide_;  // by Lane register: its value in f64, inside a run
  std::set<int> powers_;            // Lane registers that hold powers of two, 0 or infinity, inside a run
  std::vector<WideLocals> wide_pool_;
  std::size_t wide_used_ = 0;
  Local<V128> doubt_;  // lanes of ones where a run's fast form may have rounded wrongly
};

}  // namespace trireme::wasm

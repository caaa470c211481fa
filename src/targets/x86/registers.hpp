// The compiler's registers for a kernel's, and what is known of their values.
#pragma once
#include <array>
#include <optional>

#include "targets/x86/machine.hpp"

namespace trireme::x86 {

class Registers {
 public:
  Registers(const Kernel& kernel, Machine& machine);

  Vec lane(Reg r) { return find(r, Bank::Lane).as<Vec>(); }
  Mask mask(Reg r) { return find(r, Bank::Mask); }
  Mask mask_or_none(Reg r) { return r ? mask(r) : Mask(); }
  Gp index(Reg r) { return find(r, Bank::Index).as<Gp>(); }
  Gp pointer(Reg r) { return find(r, Bank::Pointer).as<Gp>(); }

  // Not valid where nothing has been kept in it.
  asmjit::x86::Reg made(Reg r);

  // Nothing reads it after `i`, as far as one run of instructions shows.
  bool dies(Reg r, const Instr& i) const;
  // The first register that the kernel does not declare or that stands in the wrong place.
  const std::optional<Reg>& wrong() const { return wrong_; }

 private:
  struct Life {
    asmjit::x86::Reg machine;                   // not valid: none yet
    const std::vector<Instr>* block = nullptr;  // where it first occurs
    const Instr* last = nullptr;
    bool local = false;  // occurs in `block` only, and is written there first
  };
  void scan(const std::vector<Instr>& block);
  void touch(Reg r, const std::vector<Instr>& block, const Instr& i, bool write);
  Life* life(Reg r);
  asmjit::x86::Reg find(Reg r, Bank bank);
  asmjit::x86::Reg create(Bank bank);

  Machine& machine_;
  std::array<std::vector<Life>, 4> lives_;  // by bank
  std::optional<Reg> wrong_;
};

}  // namespace trireme::x86

#include "targets/x86/registers.hpp"

namespace trireme::x86 {

Registers::Registers(const Kernel& kernel, Machine& machine) : machine_(machine) {
  const int counts[4] = {kernel.lane_count, kernel.mask_count, kernel.index_count, kernel.pointer_count};
  for (int bank = 0; bank < 4; ++bank) lives_[bank].resize(counts[bank]);
  scan(kernel.body);
}

Registers::Life* Registers::life(Reg r) {
  auto& bank = lives_[static_cast<int>(r.bank)];
  return r.id >= 0 && r.id < static_cast<int>(bank.size()) ? &bank[r.id] : nullptr;
}

void Registers::touch(Reg r, const std::vector<Instr>& block, const Instr& i, bool write) {
  Life* found = life(r);
  if (!found) return;
  if (!found->block) {
    found->block = &block;
    found->local = write;
  } else if (found->block != &block) {
    found->local = false;
  }
  found->last = &i;
}

void Registers::scan(const std::vector<Instr>& block) {
  for (const Instr& i : block) {
    for (Reg r : {i.a, i.b, i.c}) touch(r, block, i, false);
    for (Reg r : i.values) touch(r, block, i, i.code == Do::Load);
    touch(i.dst, block, i, true);
    scan(i.body);
    scan(i.other);
  }
}

asmjit::x86::Reg Registers::create(Bank bank) {
  switch (bank) {
    case Bank::Lane: return machine_.new_lane();
    case Bank::Mask: return machine_.new_mask();
    case Bank::Index:
    case Bank::Pointer: break;
  }
  return machine_.new_gp();
}

asmjit::x86::Reg Registers::find(Reg r, Bank bank) {
  Life* found = life(r);
  if (!found || r.bank != bank) {
    if (!wrong_) wrong_ = r;
    return create(bank);
  }
  if (!found->machine.isValid()) found->machine = create(bank);
  return found->machine;
}

asmjit::x86::Reg Registers::made(Reg r) {
  const Life* found = life(r);
  return found ? found->machine : asmjit::x86::Reg();
}

bool Registers::dies(Reg r, const Instr& i) const {
  const Life& known = lives_[static_cast<int>(r.bank)][r.id];
  return known.local && known.last == &i;
}

}  // namespace trireme::x86

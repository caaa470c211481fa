// What lies on the stack, and how instructions get at it.
#include <algorithm>

#include "targets/x86/compiler.hpp"

namespace trireme::x86 {

namespace {

using asmjit::BaseNode;
using asmjit::InstNode;
using asmjit::x86::ptr;
using asmjit::x86::rsp;
namespace Inst = asmjit::x86::Inst;

}  // namespace

bool Compiler::touches_stack(InstNode* node) {
  bool any = false;
  each_register(node, [&](std::uint32_t id) { any |= on_stack(id); });
  return any;
}

Compiler::Spill Compiler::spill_of(InstNode* node) {
  Spill spill;
  asmjit::InstRWInfo uses;
  asmjit::InstAPI::queryRWInfo(arch(), node->baseInst(), node->operands(), node->opCount(), &uses);
  auto pass = [&](std::uint32_t id, bool read, bool written) {
    if (!on_stack(id)) return;
    for (Spill::Passing& each : spill.passing)
      if (each.id == id) return void((each.read |= read, each.written |= written));
    spill.passing.push_back({id, read, written});
  };
  // A mask goes to a general register from a mask register only, though its operand may lie in memory otherwise.
  const bool mask_to_gp = node->opCount() == 2 && node->op(0).isReg() && node->op(0).as<asmjit::x86::Reg>().isGp() &&
                          node->op(1).isReg() && node->op(1).as<asmjit::x86::Reg>().isKReg();
  bool may_lie = uses.rmFeature() == 0 && !mask_to_gp;
  for (std::uint32_t k = 0; k < node->opCount(); ++k) may_lie &= !node->op(k).isMem();
  for (std::uint32_t k = 0; k < node->opCount(); ++k) {
    asmjit::Operand_& operand = node->op(k);
    if (operand.isMem() && operand.as<Mem>().hasBaseReg()) pass(operand.as<Mem>().baseId(), true, false);
    if (operand.isMem() && operand.as<Mem>().hasIndexReg()) pass(operand.as<Mem>().indexId(), true, false);
    if (!operand.isReg() || !on_stack(operand.id())) continue;
    const asmjit::OpRWInfo& use = uses.operand(k);
    int times = 0;
    each_register(node, [&](std::uint32_t id) { times += id == operand.id(); });
    // Written there, what a register would lose remains.
    const bool whole = use.isReadOnly() || (use.isWriteOnly() && use.rmSize() == bytes_of(of(operand.id()).group));
    if (may_lie && times == 1 && use.isRm() && use.rmSize() && whole && !(k == 0 && node->hasExtraReg())) {
      spill.in_memory = static_cast<int>(k);
      spill.memory_bytes = use.rmSize();
      may_lie = false;
    } else {
      pass(operand.id(), use.isRead() || node->hasExtraReg(), use.isWrite());  // a mask leaves some of it as it was
    }
  }
  if (node->hasExtraReg()) pass(node->extraReg().id(), true, false);
  // A result may take the register of something read.
  int used[groups] = {};
  for (Spill::Passing& each : spill.passing)
    if (each.read) each.spare = used[of(each.id).group]++;
  for (Spill::Passing& each : spill.passing)
    if (!each.read) each.spare = 0;
  return spill;
}

// False: some instruction needed more spare registers than there were. Now there are enough.
bool Compiler::keep_enough_spares() {
  bool enough = true;
  on_stack_.clear();
  for (int at = 0; spills_ && at < static_cast<int>(nodes_.size()); ++at) {
    InstNode* node = instruction(nodes_[at]);
    if (!node || !touches_stack(node)) continue;
    on_stack_.push_back(spill_of(node));
    on_stack_.back().node = at;
    for (const Spill::Passing& passing : on_stack_.back().passing) {
      std::vector<int>&spares = spares_[of(passing.id).group], &others = registers_[of(passing.id).group];
      for (; passing.spare >= static_cast<int>(spares.size()); enough = false) {
        auto last = of(passing.id).group == General ? others.begin() : others.end() - 1;  // rcx is no caller's
        spares.push_back(*last);
        others.erase(last);
      }
    }
  }
  return enough;
}

void Compiler::give_places() {
  struct Place {
    int at, until;
  };
  std::vector<Place> places[groups];
  for (int start : begins_)
    for (int index = start; index >= 0; index = virtuals_[index].next) {
      Virtual& each = virtuals_[index];
      if (each.place < 0) continue;
      std::vector<Place>& known = places[each.group];
      auto free =
          std::find_if(known.begin(), known.end(), [&](const Place& place) { return place.until < each.first; });
      if (free == known.end()) {
        const std::uint32_t bytes = bytes_of(each.group);
        free = known.insert(known.end(), {static_cast<int>(newStack(bytes, bytes).offset()), 0});
      }
      each.place = free->at;
      free->until = each.last;
    }
}

void Compiler::move_spare(Group group, int spare, int place, bool load) {
  const auto id = static_cast<std::uint32_t>(spare);
  const Mem at = ptr(rsp, place);
  auto move = [&](asmjit::InstId inst, const asmjit::Operand& there) {
    load ? emit(inst, there, at) : emit(inst, at, there);
  };
  if (group == General) move(Inst::kIdMov, asmjit::x86::gpq(id));
  else if (group == Mask) move(Inst::kIdKmovq, asmjit::x86::KReg(id));
  else if (avx512_) move(Inst::kIdVmovups, asmjit::x86::Zmm(id));
  else move(Inst::kIdVmovups, asmjit::x86::Ymm(id));
}

void Compiler::pass_through_spares(const Spill& spill) {
  InstNode* node = instruction(nodes_[spill.node]);
  if (spill.in_memory >= 0) {
    const int place = of(node->op(spill.in_memory).id()).place;
    node->setOp(spill.in_memory, ptr(rsp, place, spill.memory_bytes));
  }
  for (const Spill::Passing& each : spill.passing) {
    const Virtual& passing = of(each.id);
    const int spare = spares_[passing.group][each.spare];
    if (each.read) setCursor(node->prev()), move_spare(passing.group, spare, passing.place, true);
    if (each.written) setCursor(node), move_spare(passing.group, spare, passing.place, false);
    each_register(node, [&](std::uint32_t& id) {
      if (id == each.id) id = static_cast<std::uint32_t>(spare);
    });
  }
}

}  // namespace trireme::x86

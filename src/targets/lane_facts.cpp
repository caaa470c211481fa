#include "targets/lane_facts.hpp"

#include <bit>
#include <cmath>

namespace trireme {

LaneFacts::LaneFacts(const Kernel& kernel) : facts_(static_cast<std::size_t>(kernel.lane_count)) { scan(kernel.body); }

void LaneFacts::scan(const std::vector<Instr>& block) {
  for (const Instr& i : block) {
    if (i.code == Do::Load)
      for (Reg each : i.values) write(each, i);
    write(i.dst, i);
    scan(i.body);
    scan(i.other);
  }
}

void LaneFacts::write(Reg lane, const Instr& by) {
  if (lane.bank != Bank::Lane || lane.id < 0 || lane.id >= static_cast<int>(facts_.size())) return;
  Fact& fact = facts_[static_cast<std::size_t>(lane.id)];
  ++fact.writes;
  if (by.code == Do::LaneConstant) fact.constant = std::bit_cast<double>(by.imm);
  // Infinities of f8e5m2 are stored as its largest numbers.
  const bool loaded = (by.code == Do::Load || by.code == Do::LoadOne) && by.type != Type::F8E5M2;
  const bool typed = loaded || (by.code == Do::Primitive && by.op == Op::RoundTo);
  if (typed) fact.type = by.type;
}

const LaneFacts::Fact* LaneFacts::only(Reg lane) const {
  if (lane.bank != Bank::Lane || lane.id < 0 || lane.id >= static_cast<int>(facts_.size())) return nullptr;
  const Fact& fact = facts_[static_cast<std::size_t>(lane.id)];
  return fact.writes == 1 ? &fact : nullptr;
}

std::optional<double> LaneFacts::constant(Reg lane) const {
  const Fact* fact = only(lane);
  return fact ? fact->constant : std::nullopt;
}

bool LaneFacts::plain_constant(Reg lane) const {
  const std::optional<double> value = constant(lane);
  return value && *value != 0 && !std::isnan(*value);
}

bool LaneFacts::exact(Reg lane, Type type) const {
  const Fact* fact = only(lane);
  return fact && fact->type == type;
}

}  // namespace trireme

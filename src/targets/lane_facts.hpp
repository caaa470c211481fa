// What a kernel's Lane registers are known to hold, whichever way is taken through its code.
#pragma once
#include <optional>
#include <vector>

#include "schedule/kernel.hpp"

namespace trireme {

class LaneFacts {
 public:
  explicit LaneFacts(const Kernel& kernel);

  std::optional<double> constant(Reg lane) const;  // only ever a LaneConstant's
  // Only ever one constant, and that neither zero nor NaN: what the machines' own minimum and maximum get right.
  bool plain_constant(Reg lane) const;
  // Only ever loaded as this type or rounded to it: storing it so rounds nothing.
  bool exact(Reg lane, Type type) const;

 private:
  struct Fact {
    int writes = 0;
    std::optional<double> constant;
    std::optional<Type> type;
  };
  void scan(const std::vector<Instr>& block);
  void write(Reg lane, const Instr& by);
  const Fact* only(Reg lane) const;  // of a register that is written in one place

  std::vector<Fact> facts_;
};

}  // namespace trireme

// Lowers stages and a config to kernels.
#pragma once
#include <algorithm>

#include "schedule/config.hpp"
#include "schedule/kernel.hpp"
#include "schedule/stages.hpp"

namespace trireme {

// What of the arrays' layout is fixed in the code; one entry per operand and result, or none where all are plain.
struct Layout {
  std::vector<bool> strided_operands, strided_results;  // columns do not lie side by side
  bool strided() const {
    auto any = [](const std::vector<bool>& flags) {
      return std::find(flags.begin(), flags.end(), true) != flags.end();
    };
    return any(strided_operands) || any(strided_results);
  }
};

Result<Kernels> lower(const Program& program, const Config& config, const Layout& layout = {});

}  // namespace trireme

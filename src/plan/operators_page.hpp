// The page docs/operators.md: every operator's program, its derived backward, and what each moves through memory.
#pragma once
#include <string>

#include "trireme/result.hpp"

namespace trireme {

Result<std::string> operators_markdown();

}  // namespace trireme

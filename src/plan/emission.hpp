// From a problem to an artifact, and to what a caller of it has to know: entries, arguments, grid, scratch and
// workspace; in words, as JSON, and as a C header that holds the artifact itself.
#pragma once
#include <string>

#include "plan/check.hpp"
#include "schedule/config.hpp"
#include "targets/targets.hpp"
#include "trireme/emit.hpp"

namespace trireme {

// The head of its text: rms_norm(x[i,j], ...) -> (y[i,j], rstd[i])
std::string signature_of(const Program& program);

// An empty arch is the target's default.
Result<Emission> emit(const Prepared& prepared, const Facts& facts, const Target& target, std::string arch);
// Of kernels that were lowered for that architecture before.
Result<Emission> emit(const Prepared& prepared, const Facts& facts, const Target& target, const std::string& arch,
                      const Lowered& lowered);

}  // namespace trireme

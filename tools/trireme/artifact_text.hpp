// What a caller of an emitted artifact has to know: entries, arguments, grid, scratch and workspace; in words, as
// comments and as a C header that holds the artifact itself.
#pragma once
#include <string>

#include "targets.hpp"

namespace trireme::cli {

struct Emitted {
  const ProgramOptions& options;
  const BoundProgram& bound;
  const Lowered& lowered;
  const Artifact& artifact;
};

std::string describe(const Emitted& emitted);  // a line each
std::string as_comments(const std::string& text);
std::string c_header(const Emitted& emitted);

}  // namespace trireme::cli

// Kernels as text or bytes, for those who load and launch them themselves: what `trireme emit` writes.
//
//   Emission ptx = emit({.program = RowProgram::named("rms_norm").value(), .target = "ptx", .arch = "sm_90",
//                        .columns = 4096, .types = {{"x", Type::BF16}}}).value();
//
// Arrays have no gaps and begin at multiples of 16 bytes.
#pragma once
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/export.hpp"
#include "trireme/program.hpp"
#include "trireme/result.hpp"
#include "trireme/type.hpp"

namespace trireme {

struct EmitOptions {
  RowProgram program = {};
  std::string target = {};   // of emit_targets()
  std::string arch = {};     // the target's default unless given: "sm_90", "avx512", "relaxed"
  std::int64_t rows = 4096;  // the schedule may count on; results do not depend on it
  std::int64_t columns = 4096;
  std::map<std::string, Type> types = {};  // as a plan's
  std::map<std::string, double> constants = {};
  std::set<std::string> absent = {};  // operands that take their defaults, and results that are not stored
  std::string config = {};            // the schedule; chosen unless given
};

struct Emission {
  std::string program, target, arch, config;
  std::vector<std::uint8_t> bytes;  // PTX text, machine code, or a module
  std::string description;          // for people, a line each: entries, arguments, grid, scratch, workspace
  std::string manifest;             // the same for programs, as JSON
  std::string c_constants;          // arguments and sizes as constants of C
};

TRIREME_API Result<Emission> emit(const EmitOptions& options);
TRIREME_API std::string c_header(const Emission& emission);  // the constants, and the bytes as an array
TRIREME_API std::vector<std::string> emit_targets();

}  // namespace trireme

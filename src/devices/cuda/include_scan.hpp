// Which files a text of CUDA C++ may include, read as a compiler reads it: line splices, comments, string literals and
// raw strings are where the standard has them (translation phases 2 and 3). Conditions are not evaluated: what stands
// in a branch that is not taken is named too. What cannot be told so is said, for nothing may be kept on such a ground.
// Examples: include_scan_test.cpp.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace trireme::cuda {

struct IncludeScan {
  struct Name {
    std::string text;
    bool quoted;  // "…", which is looked for beside the text too, rather than <…>
    bool operator==(const Name&) const = default;
  };
  // `macro(argument)` in a condition or a definition, where the argument is a single name.
  struct Call {
    std::string macro, argument;
    std::string definition;  // the macro whose definition it stands in and whose parameter the argument is, if one
  };

  std::vector<Name> names;  // of #include, #include_next, #import, #embed and __has_include
  std::vector<Call> calls;
  std::string unsure;  // why more than these may matter; empty where nothing else does
};

IncludeScan scan_includes(std::string_view text);

// __has_include may be asked through a macro, as libcu++ does: #define HAS(x) __has_include(x). Why more files than the
// scans name may matter; empty where none does. The scans are of all the texts of one translation unit.
std::string unsure_of(std::span<const IncludeScan> scans);

}  // namespace trireme::cuda

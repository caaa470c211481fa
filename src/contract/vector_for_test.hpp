// A vector of contract/vectors: a program, what its plan is told, inputs by rule, and digests of the reference's
// results. docs/contract.md has the format.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "problem/samples.hpp"
#include "trireme/type.hpp"

namespace trireme::vectors {

struct Samples {
  SampleRange range;
  std::uint32_t seed = 0;
};
struct Count {
  std::uint64_t first = 0, step = 1;
};
using Bits = std::vector<std::uint64_t>;
using Rule = std::variant<Samples, Count, Bits>;
inline Rule range(double low, double high) { return Samples{{.low = low, .high = high}}; }
inline Rule whole(double low, double high) { return Samples{{.low = low, .high = high, .integer = true}}; }

struct Case {
  std::string name, program;
  std::int64_t rows = 0, columns = 0;
  std::map<std::string, Type> types;       // of operands that are present and results that are stored
  std::map<std::string, Rule> rules = {};  // of operands; samples of the type's range unless said
  std::map<std::string, double> constants = {};
  std::map<std::string, std::int64_t> table_rows = {};
  std::map<std::string, Rule> before = {};  // of results that accumulate: what stands in their memory
  std::int64_t row_block = 0;               // given where not 0
};

std::vector<Case> function_cases(Type compute);
std::vector<Case> type_cases();
std::vector<Case> special_cases();
std::vector<Case> sum_cases();
std::vector<Case> group_cases();
std::vector<Case> fold_cases();
std::vector<Case> column_cases();
std::vector<Case> place_cases();
std::vector<Case> random_cases();
std::vector<Case> operator_cases(bool backward);

// Whether contract/`file` holds `text`. BLESS=1 writes it there, unless that would lose or change what this version of
// the contract has published: this, and other text without BLESS, fails the test.
bool compare(const std::string& file, const std::string& text);

// Every operand in memory and every result of the program with the same type; then those that are named with another.
std::map<std::string, Type> all(const std::string& program, Type type, std::map<std::string, Type> others = {});

}  // namespace trireme::vectors

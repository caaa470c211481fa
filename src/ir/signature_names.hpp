// A signature's names, found without walking the signature: for passes that look up many.
#pragma once
#include <optional>
#include <string_view>
#include <unordered_map>

#include "ir/program.hpp"

namespace trireme {

// As long as the program's operands and results stay as they are.
class SignatureNames {
 public:
  explicit SignatureNames(const Program& program) {
    for (std::size_t k = 0; k < program.operands.size(); ++k) operands_.emplace(program.operands[k].name, k);
    for (std::size_t k = 0; k < program.results.size(); ++k) results_.emplace(program.results[k].name, k);
  }
  std::optional<std::size_t> operand(std::string_view name) const { return found(operands_, name); }
  std::optional<std::size_t> result(std::string_view name) const { return found(results_, name); }

 private:
  using Places = std::unordered_map<std::string_view, std::size_t>;
  static std::optional<std::size_t> found(const Places& places, std::string_view name) {
    auto it = places.find(name);
    return it == places.end() ? std::nullopt : std::optional(it->second);
  }
  Places operands_, results_;
};

}  // namespace trireme

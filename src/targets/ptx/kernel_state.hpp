// What a kernel under construction remembers, and how its parts become text. The typed half is trireme/ptx.hpp.
#pragma once
#include "trireme/ptx.hpp"

namespace trireme::ptx {

struct ClassFacts {
  std::string_view prefix, declared;
  unsigned bits;
  bool is_float;
};
inline constexpr std::array<ClassFacts, 6> class_facts = {{{"%p", ".pred", 1, false},
                                                           {"%rs", ".b16", 16, false},
                                                           {"%r", ".b32", 32, false},
                                                           {"%rd", ".b64", 64, false},
                                                           {"%f", ".f32", 32, true},
                                                           {"%fd", ".f64", 64, true}}};
constexpr const ClassFacts& facts(Class type) { return class_facts[static_cast<std::size_t>(type)]; }

template <typename... Parts>
std::string join(const Parts&... parts) {
  std::string text;
  (text.append(parts), ...);
  return text;
}
inline std::string decimal(std::uint64_t value) { return std::to_string(value); }
std::string type_name(Class type, char integer);  // ".f32", ".pred", ".s64"; the letter is an integer's
std::string commented(std::string_view text, std::string_view indent);
bool is_identifier(std::string_view name);

// The least architecture and PTX version (10 * major + minor) that the text seen so far can do with.
struct Needs {
  unsigned sm = 0, ptx = 0;
  std::string reason;  // the instruction that needs this sm
  void add(std::string_view text);
};

struct Architecture {
  unsigned sm, ptx;            // the PTX version that first knew it
  std::uint32_t shared_bytes;  // a block may use
};

struct Kernel::State {
  struct Param {
    std::string name;
    Class type;
    std::uint32_t bytes, align;  // bytes 0: a scalar
  };
  struct LabelState {
    std::string name;
    bool placed = false, used = false;
  };

  std::string name;
  KernelOptions options;
  std::vector<Param> params;
  std::vector<LabelState> labels;
  std::array<std::vector<bool>, class_facts.size()> assigned;  // of each register, by id - 1
  std::string shared_declarations, body, guard, last_spelling;
  std::uint32_t shared_areas = 0;
  std::uint64_t static_shared = 0;
  std::optional<std::uint32_t> dynamic_shared;  // bytes
  Needs needs;
  std::string fault;  // the first

  void refuse(std::string reason) {
    if (fault.empty()) fault = std::move(reason);
  }
  std::vector<bool>& registers(Class type) { return assigned[static_cast<std::size_t>(type)]; }
  std::string use(const Value& value, std::string_view by);
  std::string define(const Value& value, std::string_view by);
  void line(std::string_view spelling, std::string_view operands);  // one instruction
  std::string flaw(const Architecture& architecture) const;         // of the complete kernel; empty: none
  std::string head() const;
  std::string text() const;
};

}  // namespace trireme::ptx

// The backwards of the table are the derived ones; what a host lends as an array [] is a constant to the derivation,
// since no host wants its gradient.
#include <gtest/gtest.h>

#include <regex>

#include "kernel_abi/module.hpp"
#include "language/parse.hpp"
#include "language/print.hpp"
#include "passes/passes.hpp"

namespace trireme {
namespace {

Program with_constant(std::string_view text, std::string_view value) {
  std::string changed(text);
  if (const std::string array = std::string(value) + "[]"; !value.empty())
    changed.replace(changed.find(array), array.size(), std::string(value) + " = 1");
  return parse(changed).value();
}

struct Printed {
  std::string signature, body;
};
Printed printed(const Program& program) {
  const std::string text = print(program);
  const std::size_t end = text.find(")\n", text.find("-> ("));
  return {std::regex_replace(text.substr(0, end), std::regex("\\s+"), " "), text.substr(end)};  // a long one wraps
}

TEST(KernelAbiTable, BackwardsAreDerived) {
  for (const KernelAbi& abi : kernel_abis()) {
    const Printed derived = printed(differentiate(with_constant(abi.forward.text, abi.value)).value());
    const Printed stands = printed(with_constant(abi.backward.text, abi.value));
    EXPECT_EQ(stands.body, derived.body) << abi.name;
    // What the forward keeps is computed again where a host did not keep it.
    if (abi.forward.in_scratch.empty()) continue;
    const std::size_t kept = derived.signature.find(std::string(abi.forward.in_scratch) + "[i] = ");
    ASSERT_NE(kept, std::string::npos) << derived.signature;
    const std::string recomputed = derived.signature.substr(kept, derived.signature.find(", eps", kept) - kept);
    EXPECT_NE(stands.signature.find(recomputed), std::string::npos) << recomputed << " in " << stands.signature;
  }
}

}  // namespace
}  // namespace trireme

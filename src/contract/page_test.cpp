// docs/contract.md: the expansions of functions and folds, as lists of operations, are those of the records, and
// contract/listings.json has a digest of each, of this version for ever: bits that no vector shows are held there.
// BLESS=1 test_contract rewrites the page where no listing changed.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>

#include "contract/telling_inputs_for_test.hpp"
#include "contract/vector_for_test.hpp"
#include "ir/contract.hpp"
#include "ir/rewrite.hpp"
#include "layout/elements.hpp"
#include "math/functions.hpp"
#include "math/reductions.hpp"
#include "passes/passes.hpp"
#include "problem/digest.hpp"
#include "reference/reference.hpp"
#include "support/hash.hpp"

namespace trireme {
namespace {

// One operation a line, in an order in which they can be carried out; numbers are what the compute type holds.
class Listing {
 public:
  Listing(const Program& program, std::vector<std::string> arguments)
      : program_(program), arguments_(std::move(arguments)), text_of_(program.size()) {}

  std::string run(const std::vector<std::string>& results) {
    const std::vector<bool> wanted = reachable(program_);
    std::string lines;
    int lines_so_far = 0;
    for (NodeId id = 0; id < program_.size(); ++id) {
      if (!wanted[id]) continue;
      const Node& node = program_[id];
      if (node.op == Op::Number) {
        text_of_[id] = hex(node.number());
      } else if (node.op == Op::Operand) {
        text_of_[id] = arguments_[static_cast<std::size_t>(node.payload)];
      } else {
        for (std::size_t k = 0; k < results.size(); ++k)
          if (program_.results[k].value == id) text_of_[id] = results[k];
        if (text_of_[id].empty()) text_of_[id] = fmt::format("t{}", ++lines_so_far);
        lines += fmt::format("{} = {}\n", text_of_[id], operation(node));
      }
    }
    return lines;
  }

 private:
  std::string hex(double number) const {
    if (program_.compute == Type::F32) number = static_cast<float>(number);
    return std::isfinite(number) ? fmt::format("{:a}", number) : number > 0 ? "inf" : number < 0 ? "-inf" : "nan";
  }
  std::string operation(const Node& node) const {
    const std::string_view name =
        node.op == Op::Call ? functions()[static_cast<std::size_t>(node.payload)].name : facts(node.op).name;
    auto arg = [&](int k) { return text_of_[node.args[static_cast<std::size_t>(k)]]; };
    if (node.op == Op::Neg) return "-" + arg(0);
    const bool infix = (node.op >= Op::Add && node.op <= Op::Div) || (node.op >= Op::Less && node.op <= Op::Equal);
    if (infix) return fmt::format("{} {} {}", arg(0), name, arg(1));
    std::string text = std::string(name) + '(';
    for (int k = 0; k < node.arity; ++k) text += (k ? ", " : "") + arg(k);
    if (node.op == Op::BitsShiftLeft || node.op == Op::BitsShiftRight) text += fmt::format(", {}", node.payload);
    return text + ')';
  }

  const Program& program_;
  const std::vector<std::string> arguments_;
  std::vector<std::string> text_of_;
};

std::vector<std::string> names_of_arguments(const Function& function) {
  return function.arity == 3 ? std::vector<std::string>{"x", "low", "high"} : std::vector<std::string>{"x"};
}

Program expansion_of(const Function& function, Type compute) {
  const std::vector<std::string> names = names_of_arguments(function);
  Program program;
  program.name = "f";
  program.compute = compute;
  Spread element;
  element.row.present = element.column.present = true;
  std::vector<Formula> arguments;
  for (const std::string& name : names) {
    program.operands.push_back({.name = name, .spread = element, .type = compute});
    arguments.push_back({&program, program.add(Op::Operand, {}, static_cast<std::int64_t>(arguments.size()))});
  }
  const Formula value = function.expand(compute, arguments);
  program.results.push_back({.name = "y", .spread = element, .value = value.id, .type = compute});
  return in_canonical_order(simplify(expand_calls(std::move(program))));
}

// By what each is the listing of: a function in a compute type, a part of a fold, the digest's secret.
using Listings = std::map<std::string, std::string>;

std::string listing_of(const Function& function, Type compute, Listings& all) {
  return all[fmt::format("{} in {}", function.name, name(compute))] =
             Listing(expansion_of(function, compute), names_of_arguments(function)).run({"y"});
}

std::string block(const std::string& heading, const std::string& lines) {
  return fmt::format("{}\n\n```text\n{}```\n\n", heading, lines);
}

std::string functions_markdown(Listings& all) {
  std::string text;
  for (const Function& each : functions()) {
    const std::string f32 = listing_of(each, Type::F32, all), f64 = listing_of(each, Type::F64, all);
    const std::string arguments = each.arity == 3 ? "x, low, high" : "x";
    text += fmt::format("### {}({})\n\n", each.name, arguments);
    if (f32 == f64) text += block("In f32 and f64:", f32);
    else text += block("In f32:", f32) + block("In f64:", f64);
  }
  return text;
}

std::string folds_markdown(Listings& all) {
  std::string text;
  for (const Fold& each : folds()) {
    const auto index = static_cast<std::int64_t>(&each - folds().data());
    const FoldFormula term = fold_term(each, Type::F64, false), merge = fold_merge(each, Type::F64, false);
    text += fmt::format("### The fold of {}\n\nThe first total of a stripe is its {}.\n\n", fold_name(index),
                        each.first == Op::Sum ? "row sum" : "`amax`");
    const std::string fold = fmt::format("the fold of {}, its ", fold_name(index));
    const std::string term_heading = each.weighted ? "`term(x, a, c, w)`:" : "`term(x, a, c)`:";
    text += block(term_heading, all[fold + "term"] = Listing(term.program, {"x", "a", "c", "w"}).run({"term"}));
    text += block("`merge(a1, b1, c1, a2, b2, c2)`:",
                  all[fold + "merge"] = Listing(merge.program, {"a1", "b1", "a2", "b2", "c1", "c2"}).run({"a", "b"}));
  }
  return text;
}

std::string listings_json(const Listings& all) {
  std::string text;
  for (const auto& [what, listing] : all)
    text += fmt::format("{}  {{\"name\": \"{}\", \"digest\": \"{}\"}}", text.empty() ? "" : ",\n", what,
                        hex(Hasher().add(listing).value()));
  return fmt::format("{{\"contract\": {}, \"cases\": [\n{}\n]}}\n", contract::version, text);
}

TEST(ContractPage, lists_the_expansions) {
  const std::string file = std::string(TRIREME_SOURCE_DIR) + "/docs/contract.md";
  std::stringstream read;
  read << std::ifstream(file).rdbuf();
  std::string text = read.str();
  auto fill = [&](const std::string& first, const std::string& last, const std::string& made) {
    const std::size_t from = text.find(first), to = text.find(last);
    ASSERT_TRUE(from != text.npos && to != text.npos) << first;
    text = text.substr(0, from + first.size()) + made + text.substr(to);
  };
  Listings all;
  fill("<!-- generated: expansions -->\n", "<!-- end of expansions -->\n", "\n" + functions_markdown(all));
  fill("<!-- generated: folds -->\n", "<!-- end of folds -->\n", "\n" + folds_markdown(all));
  const std::size_t secret = text.find("secret (192 bytes)\n");
  ASSERT_NE(secret, text.npos);
  all["the secret of digests"] = text.substr(secret, text.find("\n\n", secret) - secret);
  if (!vectors::compare("listings.json", listings_json(all))) return;
  if (std::getenv("BLESS")) std::ofstream(file) << text;
  else EXPECT_TRUE(text == read.str()) << "BLESS=1 test_contract rewrites docs/contract.md";
  EXPECT_NE(text.find(fmt::format("# The contract, version {}\n", contract::version)), text.npos);
}

// The results of an expansion for these inputs.
std::vector<std::uint64_t> results_of(const Program& program, const std::vector<std::uint64_t>& inputs) {
  const auto columns = static_cast<std::int64_t>(inputs.size());
  const Array x{.type = program.compute.value(), .row_stride = columns, .column_stride = 1};
  std::array<Array, 2> arrays = {x, x};
  std::array<std::vector<std::byte>, 2> memory;
  for (int k = 0; k < 2; ++k) {
    memory[k].resize(inputs.size() * bytes(x.type));
    arrays[k].data = memory[k].data();
  }
  for (std::int64_t c = 0; c < columns; ++c) set_bits_at(arrays[0], 0, c, inputs[static_cast<std::size_t>(c)]);
  const std::array<double, 1> none = {0};
  EXPECT_TRUE(run_reference(program, {1, columns, none, arrays}));
  std::vector<std::uint64_t> results;
  for (std::int64_t c = 0; c < columns; ++c) results.push_back(canonical_bits(x.type, bits_at(arrays[1], 0, c)));
  return results;
}

// Of constants that were changed by one unit in the last place, those that show, in percent.
TEST(ContractPage, the_last_bit_of_a_constant_shows_in_the_vectors) {
  std::map<Type, std::array<int, 2>> seen;
  for (const vectors::TellingInputs& inputs : vectors::telling_inputs) {
    const auto function = std::find_if(functions().begin(), functions().end(),
                                       [&](const Function& each) { return each.name == inputs.function; });
    ASSERT_NE(function, functions().end()) << inputs.function;
    const Program program = expansion_of(*function, inputs.compute);
    const std::vector<std::uint64_t> wanted = results_of(program, inputs.bits);
    const std::vector<bool> used = reachable(program);
    for (NodeId id = 0; id < program.size(); ++id) {
      const Node& node = program[id];
      if (!used[id] || node.op != Op::Number || !std::isfinite(node.number()) || node.number() == 0) continue;
      const double number = node.number();
      const double next = inputs.compute == Type::F64
                              ? std::nextafter(number, number * 2)
                              : std::nextafter(static_cast<float>(number), static_cast<float>(number) * 2);
      const Program other = rewrite(program, [&](Program& out, const Node& each, std::span<const NodeId> args) {
        return &each == &node ? out.number(next) : copy_node(out, each, args);
      });
      seen[inputs.compute][0] += results_of(other, inputs.bits) != wanted;
      ++seen[inputs.compute][1];
    }
  }
  for (const auto& [type, least] : {std::pair(Type::F32, 85), {Type::F64, 55}}) {
    const auto [shown, all] = seen[type];
    EXPECT_GE(100 * shown, least * all) << name(type) << ": " << shown << " of " << all;
  }
}

}  // namespace
}  // namespace trireme

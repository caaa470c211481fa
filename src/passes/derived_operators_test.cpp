// The derived backward of every operator in ops/: what it costs, counted on the graph, and its text, in
// tests/golden/ops. BLESS=1 test_passes rewrites the texts.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "ir/verify.hpp"
#include "language/parse.hpp"
#include "language/print.hpp"
#include "passes/passes.hpp"

namespace trireme {
namespace {

const std::filesystem::path source_dir = TRIREME_SOURCE_DIR;

std::string text_of(const std::filesystem::path& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

std::vector<std::string> operator_names() {
  std::vector<std::string> names;
  for (const auto& file : std::filesystem::directory_iterator(source_dir / "ops"))
    if (file.path().extension() == ".row") names.push_back(file.path().stem());
  std::sort(names.begin(), names.end());
  return names;
}

Program backward_of(const std::string& name) {
  Result<Program> forward = parse(text_of(source_dir / "ops" / (name + ".row")));
  EXPECT_TRUE(forward) << name << ".row:" << forward.error().message;
  Result<Program> backward = differentiate(*forward);
  EXPECT_TRUE(backward) << backward.error().message;
  return std::move(*backward);
}

struct Counts {
  int element_arrays = 0, row_arrays = 0, reductions = 0, sweeps = 0, element_operations = 0;
};

// Over results only: defaults are not run where saved results are given.
Counts counts(const Program& program) {
  std::vector<bool> wanted(program.size());
  std::vector<int> depth(program.size());
  for (const Output& result : program.results) wanted[result.value] = true;
  for (NodeId id = static_cast<NodeId>(program.size()); id-- > 0;)
    if (wanted[id])
      for (NodeId arg : program[id]) wanted[arg] = true;
  Counts made;
  for (NodeId id = 0; id < program.size(); ++id) {
    if (!wanted[id]) continue;
    const Node& node = program[id];
    for (NodeId arg : node) depth[id] = std::max(depth[id], depth[arg]);
    if (node.op == Op::Operand) {
      const Spread& spread = program.operands[node.payload].spread;
      if (spread.row.present && spread.plain()) ++(spread.column.present ? made.element_arrays : made.row_arrays);
    } else if (is_row_reduction(node.op)) {
      ++made.reductions;
      made.sweeps = std::max(made.sweeps, ++depth[id]);
    } else if (node.by_column && node.arity > 0 && !is_column_reduction(node.op)) {
      ++made.element_operations;
    }
  }
  return made;
}

TEST(DerivedOperators, cost_what_the_textbook_says) {
  struct Target {
    const char* name;
    int element_arrays, row_arrays, reductions, sweeps, most_operations;  // what is not limited: 99
  };
  constexpr Target targets[] = {
      {"rms_norm", 2, 1, 1, 1, 10},              // dy x; rstd
      {"rms_norm_llama", 2, 1, 1, 1, 11},        // and its cast
      {"rms_norm_heads", 2, 1, 1, 1, 10},        //
      {"layer_norm", 2, 2, 2, 1, 13},            // dy x; average rstd
      {"add_rms_norm", 3, 1, 1, 1, 11},          // dy dh h: rms_norm's and one addition
      {"add_layer_norm", 3, 2, 2, 1, 14},        // dy dh h
      {"group_norm", 2, 2, 2, 1, 13},            //
      {"modulated_layer_norm", 2, 2, 2, 1, 14},  // 1 + scale
      {"gated_rms_norm", 3, 1, 1, 1, 99},        // dy x gate
      {"l2_norm", 2, 1, 1, 1, 5},                // dy x
      {"rms_norm_rope", 2, 1, 1, 1, 99},         // dy x
      {"rms_norm_quant", 2, 2, 1, 1, 99},        // dq x; rstd scale
      {"add_rms_norm_quant", 3, 2, 1, 1, 99},    // dq dh h
      {"softmax", 2, 0, 1, 1, 3},                // dy y
      {"log_softmax", 2, 0, 1, 1, 3},            // dy y
      {"cross_entropy", 1, 3, 0, 0, 99},         // x; dloss target lse
      {"swiglu", 3, 0, 0, 0, 99},                // dy x gate
      {"swiglu_llama", 3, 0, 0, 0, 99},          //
      {"geglu", 3, 0, 0, 0, 99},                 //
      {"geglu_erf", 3, 0, 0, 0, 99},             //
      {"reglu", 3, 0, 0, 0, 99},                 //
      {"dynamic_tanh", 2, 0, 0, 0, 99},          // dy x
  };
  EXPECT_GE(operator_names().size(), std::size(targets));
  for (const Target& target : targets) {
    Program backward = backward_of(target.name);
    Counts cost = counts(backward);
    SCOPED_TRACE(print(backward));
    EXPECT_EQ(cost.element_arrays, target.element_arrays);
    EXPECT_EQ(cost.row_arrays, target.row_arrays);
    EXPECT_EQ(cost.reductions, target.reductions);
    EXPECT_EQ(cost.sweeps, target.sweeps);
    EXPECT_LE(cost.element_operations, target.most_operations);
  }
  EXPECT_TRUE(backward_of("softmax").find_operand("y"));
  EXPECT_TRUE(backward_of("log_softmax").find_operand("y"));
}

TEST(DerivedOperators, read_as_the_golden_files) {
  std::filesystem::path folder = source_dir / "tests" / "golden" / "ops";
  std::size_t files = 0;
  for (const std::string& name : operator_names()) {
    Program backward = backward_of(name);
    Status status = verify(backward);
    EXPECT_TRUE(status) << status.error().message;
    std::string text = print(backward);
    Result<Program> again = parse(text);
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_EQ(print(*again), text);
    std::string golden = "# trireme show " + name + " --backward\n" + text;
    if (std::getenv("BLESS")) std::ofstream(folder / (name + ".row")) << golden;
    EXPECT_EQ(text_of(folder / (name + ".row")), golden) << "BLESS=1 test_passes rewrites it";
  }
  for ([[maybe_unused]] const auto& file : std::filesystem::directory_iterator(folder)) ++files;
  EXPECT_EQ(files, operator_names().size());
}

}  // namespace
}  // namespace trireme

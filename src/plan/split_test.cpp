// A row spread over several machines gives the whole row's result: each part runs the stages of split() on its own
// columns, and this test is the engine that reduces what they exchange.
#include <gtest/gtest.h>

#include "ir/primitives.hpp"
#include "language/parse.hpp"
#include "language/print.hpp"
#include "language/random_program.hpp"
#include "math/reductions.hpp"
#include "passes/passes.hpp"
#include "plan/check.hpp"
#include "plan/definitions_for_test.hpp"
#include "reference/oracle.hpp"
#include "support/contract_arithmetic.hpp"

namespace trireme {
namespace {

using Matrices = std::map<std::string, Matrix>;

Matrix read(const Buffer& buffer) {
  Matrix made{buffer.row_extent, buffer.column_extent, {}};
  for (std::int64_t r = 0; r < made.rows; ++r)
    for (std::int64_t c = 0; c < made.columns; ++c)
      made.values.push_back(load_f64(buffer.array.type, buffer.array.entry(r, c)));
  return made;
}

struct Part {
  std::int64_t first = 0, columns = 0;
  Matrices known;  // results and exchanged values
};

class Engine {
 public:
  Engine(const Prepared& whole, const std::vector<std::int64_t>& widths) : whole_(whole) {
    for (std::int64_t width : widths) {
      parts_.push_back({first_, width, {}});
      first_ += width;
    }
    EXPECT_EQ(first_, whole.problem.columns());
    for (std::size_t k = 0; k < whole.program.operands.size(); ++k)
      if (!whole.program.operands[k].constant) {
        given_[whole.program.operands[k].name] = read(whole.buffers.operands[k]);
        types_[whole.program.operands[k].name] = *whole.program.operands[k].type;
      }
    for (const Output& result : whole.program.results) types_[result.name] = *result.type;
  }

  void run(const std::vector<SplitStage>& stages) {
    for (const SplitStage& stage : stages) {
      for (Part& part : parts_) run(stage.program, part);
      for (const Exchange& each : stage.exchanges) exchange(each);
    }
  }

  // The parts' columns side by side; what has no columns is the same in all parts.
  Matrix result(const Output& output) const {
    Matrix made = parts_[0].known.at(output.name);
    if (!output.spread.column.present) {
      for (const Part& part : parts_) EXPECT_EQ(part.known.at(output.name).values, made.values) << output.name;
      return made;
    }
    made.columns = 0;
    made.values.clear();
    for (const Part& part : parts_) made.columns += part.known.at(output.name).columns;
    for (std::int64_t r = 0; r < made.rows; ++r)
      for (const Part& part : parts_) {
        const Matrix& mine = part.known.at(output.name);
        for (std::int64_t c = 0; c < mine.columns; ++c) made.values.push_back(mine.at(r, c));
      }
    return made;
  }

 private:
  void run(const Program& program, Part& part) {
    SCOPED_TRACE(print(program));
    Binding binding;
    for (const Operand& operand : program.operands) {
      if (operand.name == "columns") binding.constants["columns"] = static_cast<double>(first_);
      else if (operand.name == "first_column") binding.constants["first_column"] = static_cast<double>(part.first);
      else if (operand.constant && whole_.problem.constants.contains(operand.name))
        binding.constants[operand.name] = whole_.problem.constants.at(operand.name);
      else if (!operand.constant && whole_.problem.absent.contains(operand.name)) binding.absent.insert(operand.name);
      else if (!operand.constant) binding.types[operand.name] = type_of(operand.name);
    }
    for (const Output& result : program.results) binding.types[result.name] = type_of(result.name);
    Result<PreparedProgram> prepared = prepare(program, binding);
    ASSERT_TRUE(prepared) << prepared.error().message;
    const Program& ready = prepared->expanded;
    Buffers buffers = make_buffers(ready, {whole_.problem.rows(), part.columns}).value();
    for (std::size_t k = 0; k < ready.operands.size(); ++k)
      if (!ready.operands[k].constant)
        fill(buffers.operands[k], ready.operands[k], part,
             indexing(ready, ready.operands[k].spread, part.columns).value().column.divide);
    std::vector<Array> arrays = buffers.arrays();
    Status status = run_reference(
        ready,
        {.rows = whole_.problem.rows(), .columns = part.columns, .constants = prepared->constants, .arrays = arrays});
    ASSERT_TRUE(status) << status.error().message;
    for (std::size_t k = 0; k < ready.results.size(); ++k) part.known[ready.results[k].name] = read(buffers.results[k]);
  }

  Type type_of(const std::string& name) const {
    auto it = types_.find(name);
    return it == types_.end() ? *whole_.program.compute : it->second;
  }

  // `group`: columns that share an entry.
  void fill(const Buffer& buffer, const Operand& operand, const Part& part, std::int64_t group) const {
    auto known = part.known.find(operand.name);
    bool whole = known == part.known.end();
    const Matrix& from = whole ? given_.at(operand.name) : known->second;
    std::int64_t first = whole && operand.spread.column.present ? part.first / group : 0;
    for (std::int64_t r = 0; r < buffer.row_extent; ++r)
      for (std::int64_t c = 0; c < buffer.column_extent; ++c)
        store_f64(buffer.array.type, buffer.array.entry(r, c), from.at(r, first + c));
  }

  // In order of the parts, in the compute type.
  void exchange(const Exchange& each) {
    ContractArithmetic arithmetic;
    if (each.op == Op::Fold) return *whole_.program.compute == Type::F64 ? merge<double>(each) : merge<float>(each);
    Op op = each.op == Op::Sum ? Op::Add : each.op == Op::Amax ? Op::Max : Op::Min;
    Matrix total = parts_[0].known.at(each.name);
    for (std::size_t p = 1; p < parts_.size(); ++p)
      for (std::size_t k = 0; k < total.values.size(); ++k) {
        double next = parts_[p].known.at(each.name).values[k];
        total.values[k] =
            through_type(*whole_.program.compute, apply_primitive<double>(op, 0, total.values[k], next, 0));
      }
    for (Part& part : parts_) part.known[each.name] = total;
  }

  template <typename T>
  void merge(const Exchange& each) {
    const FoldFormula formula = fold_merge(folds()[each.fold], *whole_.program.compute, true);
    Matrix first = parts_[0].known.at(each.name), second = parts_[0].known.at(each.second);
    std::int64_t columns = parts_[0].columns;
    for (std::size_t p = 1; p < parts_.size(); ++p) {
      for (std::size_t k = 0; k < first.values.size(); ++k) {
        const T arguments[] = {static_cast<T>(first.values[k]),
                               static_cast<T>(second.values[k]),
                               static_cast<T>(parts_[p].known.at(each.name).values[k]),
                               static_cast<T>(parts_[p].known.at(each.second).values[k]),
                               static_cast<T>(columns),
                               static_cast<T>(parts_[p].columns)};
        std::vector<T> values(formula.program.size());
        for (NodeId id = 0; id < values.size(); ++id) {
          const Node& node = formula.program[id];
          T args[3] = {};
          for (int a = 0; a < node.arity; ++a) args[a] = values[node.args[a]];
          values[id] = node.op == Op::Operand  ? arguments[node.payload]
                       : node.op == Op::Number ? static_cast<T>(node.number())
                                               : apply_primitive<T>(node, args[0], args[1], args[2]);
        }
        first.values[k] = values[formula.values[0]];
        second.values[k] = values[formula.values[1]];
      }
      columns += parts_[p].columns;
    }
    for (Part& part : parts_) part.known[each.name] = first, part.known[each.second] = second;
  }

  const Prepared& whole_;
  std::int64_t first_ = 0;
  std::vector<Part> parts_;
  Matrices given_;
  std::map<std::string, Type> types_;
};

const std::vector<std::vector<std::int64_t>> cuts = {{300, 301}, {256, 1, 344}, {86, 86, 86, 86, 86, 86, 85}};

void expect_same_values(const Engine& engine, const Prepared& whole) {
  for (std::size_t k = 0; k < whole.program.results.size(); ++k)
    EXPECT_EQ(engine.result(whole.program.results[k]).values, read(whole.buffers.results[k]).values)
        << whole.program.results[k].name;
}

// The parts' results, of some cuts of 601 columns, are what the oracle accepts of the whole row.
void expect_whole_rows_results(const Prepared& whole, const std::vector<SplitStage>& stages) {
  std::vector<OracleResult> oracle = run_oracle(whole.bound, whole.view()).value();
  for (const std::vector<std::int64_t>& widths : cuts) {
    SCOPED_TRACE(std::to_string(widths.size()) + " parts");
    Engine engine(whole, widths);
    engine.run(stages);
    if (testing::Test::HasFatalFailure()) return;
    for (std::size_t k = 0; k < whole.program.results.size(); ++k) {
      Matrix got = engine.result(whole.program.results[k]);
      std::int64_t wrong = 0;
      for (std::size_t e = 0; e < got.values.size(); ++e) wrong += !oracle[k].elements[e].accepts(got.values[e]);
      EXPECT_EQ(wrong, 0) << whole.program.results[k].name;
    }
  }
}

TEST(Split, gives_what_the_whole_row_gives) {
  const char* lines[] = {
      "rms_norm 5x601",
      "layer_norm 5x601",
      "softmax 5x601",
      "log_softmax 5x601",
      "add_rms_norm 5x601 x=bf16",
      "cross_entropy 9x601 target=i32",
      "rms_norm 5x601 gamma=none backward",
      "rms_norm 5x601 backward",
      "layer_norm 5x601 backward",
      "softmax 5x601 backward",
      "log_softmax 5x601 backward",
      "add_rms_norm 5x601 x=bf16 backward",
      "cross_entropy 9x601 target=i32 backward",
      "dynamic_tanh 5x601 backward",
  };
  for (const char* line : lines) {
    SCOPED_TRACE(line);
    Prepared whole = prepare_problem(parse_problem(line).value()).value();
    Result<std::vector<SplitStage>> stages = split(whole.source);
    ASSERT_TRUE(stages) << stages.error().message;
    expect_whole_rows_results(whole, *stages);
  }
}

// Equal parts of a power of two of stripes are subtrees of the row's sum.
TEST(Split, gives_the_same_bits_for_equal_parts_of_whole_stripes) {
  for (const char* line : {"rms_norm 5x1024", "layer_norm 5x1024", "softmax 5x1024", "rms_norm 5x1024 backward",
                           "dynamic_tanh 70x1024 backward", "poly_norm 70x1024 backward",
                           "softmax_sink 12x1024 queries=3 heads=2 backward"}) {
    SCOPED_TRACE(line);
    Prepared whole = prepare_problem(parse_problem(line).value()).value();
    run_reference(whole.program, whole.view()).value();
    Engine engine(whole, {512, 512});
    engine.run(split(whole.source).value());
    expect_same_values(engine, whole);
  }
}

// Composed programs have the same values and exchange once, in forwards as in backwards.
TEST(Split, exchanges_once_where_reductions_are_composed) {
  const char* lines[] = {
      "layer_norm 5x601",
      "add_layer_norm 5x601 x=bf16",
      "softmax 5x601",
      "log_softmax 5x601",
      "masked_softmax 5x601 mask=u8",
      "cross_entropy 9x601 target=i32",
      "softmax_sink 6x601 queries=3 heads=2",
      "logprob_entropy 9x601 target=i32 temperature=0.5",
      "layer_norm 5x601 backward",
      "softmax 5x601 backward",
      "cross_entropy 9x601 target=i32 backward",
  };
  for (const char* line : lines) {
    SCOPED_TRACE(line);
    Prepared whole = prepare_problem(parse_problem(line).value()).value();
    std::vector<SplitStage> stages = split(compose(whole.source)).value();
    EXPECT_LE(stages.size(), 2u);
    expect_whole_rows_results(whole, stages);
  }
}

TEST(Split, says_what_is_exchanged) {
  std::vector<SplitStage> stages = split(find_program("layer_norm").value()).value();
  std::string text;
  for (const SplitStage& stage : stages) {
    text += print(stage.program);
    for (const Exchange& each : stage.exchanges)
      text += "all-reduce " + std::string(facts(each.op).name) + ": " + each.name + "\n";
  }
  EXPECT_EQ(text, R"(layer_norm_part1(x[i,j]) -> (sum_1[i])
    sum_1 = sum(x)
all-reduce sum: sum_1
layer_norm_part2(x[i,j], sum_1[i], columns) -> (average[i], sum_2[i])
    average = sum_1 / columns
    t1      = x - average
    sum_2   = sum(t1 * t1)
all-reduce sum: sum_2
layer_norm_rest(x[i,j], gamma[j] = 1, beta[j] = 0, sum_1[i], sum_2[i], eps = 1e-5, columns) -> (y[i,j], rstd[i])
    rstd = rsqrt(sum_2 / columns + eps)
    y    = (x - sum_1 / columns) * rstd * gamma + beta
)");
  for (const char* refused : {"rms_norm_rope", "sinkhorn"}) {
    Result<std::vector<SplitStage>> none = split(find_program(refused).value());
    ASSERT_FALSE(none) << refused;
    EXPECT_EQ(none.error().code, Code::Unsupported);
  }
}

TEST(Split, exchanges_a_total_once) {
  const Program program = *parse("both(x[i,j]) -> (y[i,j])\n    y = x * sum(x * x) + mean(x * x) - sum(x)\n");
  auto stages = *split(program);
  ASSERT_EQ(stages.size(), 2u);
  ASSERT_EQ(stages[0].exchanges.size(), 2u);
  EXPECT_EQ(print(stages[0].program),
            "both_part1(x[i,j]) -> (sum_1[i], sum_2[i])\n    sum_1 = sum(x * x)\n    sum_2 = sum(x)\n");
  EXPECT_EQ(
      print(stages[1].program),
      "both_rest(x[i,j], sum_1[i], sum_2[i], columns) -> (y[i,j])\n    y = x * sum_1 + sum_1 / columns - sum_2\n");
}

// Groups of neighbours need no exchange where parts hold whole ones, and have the whole row's bits.
TEST(Split, keeps_groups_inside_parts) {
  for (const char* line : {"grouped_rms_norm 5x640 group=64", "grouped_rms_norm 5x640 group=64 backward",
                           "swiglu_block_quant 5x640 block=64", "add_rms_norm_block_quant 3x1024 q=i8"}) {
    SCOPED_TRACE(line);
    Prepared whole = prepare_problem(parse_problem(line).value()).value();
    run_reference(whole.program, whole.view()).value();
    std::vector<SplitStage> stages = split(whole.source).value();
    ASSERT_EQ(stages.back().groups.size(), 1u);
    EXPECT_TRUE(stages.back().groups[0] == "[j / group]" || stages.back().groups[0] == "[j / block]");
    const bool long_row = whole.problem.columns() == 1024;
    Engine engine(whole, long_row ? std::vector<std::int64_t>{512, 512} : std::vector<std::int64_t>{128, 384, 128});
    engine.run(stages);
    expect_same_values(engine, whole);
  }
  auto refusal = [](const char* text) { return split(parse(text).value()).error().message; };
  EXPECT_EQ(refusal("f(x[i,j]) -> (y[i,j])\ny = x * sum(x, j % 4)"),
            "f cannot be split: every part of a row has columns of all groups j % g; its rows may be spread, each in "
            "one place");
  EXPECT_EQ(refusal("f(x[i,j]) -> (y[i])\ny = sum(entries(amax(x, j / 4)))"),
            "f cannot be split: entries are those of the whole row; its rows may be spread, each in one place");
}

// Parts draw what the whole row draws, also where they begin inside a block of four numbers.
TEST(Split, draws_random_numbers_of_the_whole_row) {
  for (const char* line :
       {"dropout 5x640 p=0.3", "dropout 5x640 p=0.3 backward", "dropout_add_layer_norm 3x1024 p=0.3"}) {
    SCOPED_TRACE(line);
    Prepared whole = prepare_problem(parse_problem(line).value()).value();
    run_reference(whole.program, whole.view()).value();
    const bool long_row = whole.problem.columns() == 1024;
    Engine engine(whole, long_row ? std::vector<std::int64_t>{512, 512} : std::vector<std::int64_t>{129, 382, 129});
    engine.run(split(whole.source).value());
    expect_same_values(engine, whole);
  }
  const char* text = "f(x[i,j], seed[], a) -> (y[i,j])\ny = x * random(seed, 7, a, 2 * a) - random(seed, 8, a, 0)";
  EXPECT_EQ(print(split(parse(text).value()).value()[0].program),
            "f_rest(x[i,j], seed[], a, first_column) -> (y[i,j])\n"
            "    y = x * random(seed, 7, a, 2 * a + first_column) - random(seed, 8, a, first_column)\n");
}

// What users get: programs with texts of their own, and how two neighbours' values become one.
TEST(Split, gives_phases_and_how_to_combine) {
  RowProgram program = RowProgram::parse(
                           "p(x[i,j]) -> (v[i], l[i], t[i])\n"
                           "  v = variance(x)\n  l = logsumexp(x)\n  t = amin(x - amax(x))\n")
                           .value();
  std::vector<RowProgram::Phase> phases = program.split().value();
  ASSERT_EQ(phases.size(), 3u);
  std::vector<std::string> said;
  for (const RowProgram::Phase& phase : phases)
    for (const RowProgram::Exchange& each : phase.exchanges) {
      std::string text = each.reduction + ":";
      for (const std::string& name : each.names) text += " " + name;
      said.push_back(text);
      EXPECT_EQ(RowProgram::parse(each.combine.print()).value().print(), each.combine.print());
    }
  EXPECT_EQ(said,
            (std::vector<std::string>{"variance: variance_sum_1 variance_squares_2",
                                      "logsumexp: logsumexp_top_3 logsumexp_sum_4", "amax: amax_5", "amin: amin_6"}));
  EXPECT_EQ(phases[1].exchanges[0].combine.print(),
            "combine_amin(left[i,j], right[i,j]) -> (both[i,j])\n"
            "    both = min(left, right)\n");
  EXPECT_EQ(phases[0].exchanges[1].combine.signature().size(), 8u);
  EXPECT_EQ(RowProgram().split().error().code, Code::InvalidArgument);
}

// Entries that several parts of a row land on: of maxima the larger one is kept; sums are those of the rows' sums.
TEST(Split, says_how_column_results_meet) {
  RowProgram program = RowProgram::parse(
                           "p(x[i,j]) -> (c[j], t[], m[], w[i / 2])\n  c = colmax(x)\n  t = colsum(x)\n  m = "
                           "colmax(x)\n  w = colmax(x)\n")
                           .value();
  std::vector<RowProgram::Phase> phases = program.split().value();
  ASSERT_EQ(phases.size(), 2u);
  std::string said;
  for (const RowProgram::Exchange& each : phases[0].exchanges) said += each.reduction + ": " + each.names[0] + "\n";
  EXPECT_EQ(said, "amax: m\namax: w\nsum: sum_1\n");
  EXPECT_EQ(phases[1].program.print(), "p_rest(sum_1[i]) -> (t[])\n    t = colsum(select(j == 0, sum_1, -0))\n");
}

// Stages of any program verify, read what earlier ones stored or exchanged, and together store every result once.
TEST(Split, cuts_random_programs) {
  int cut = 0;
  for (int seed = 0; seed < 1000; ++seed) {
    Program program = random_program({.seed = static_cast<std::uint64_t>(seed), .size = 4 + seed % 40});
    Result<std::vector<SplitStage>> stages = split(program);
    if (!stages) {
      EXPECT_EQ(stages.error().code, Code::Unsupported) << stages.error().message << "\n" << print(program);
      continue;
    }
    ++cut;
    std::set<std::string> known, results;
    for (const Operand& operand : program.operands) known.insert(operand.name);
    known.insert({"columns", "first_column"});
    for (const SplitStage& stage : *stages) {
      for (const Operand& operand : stage.program.operands) EXPECT_TRUE(known.contains(operand.name)) << operand.name;
      std::string text = print(stage.program);
      EXPECT_EQ(print(parse(text).value()), text);
      for (const Output& result : stage.program.results) {
        EXPECT_TRUE(known.insert(result.name).second);
        if (program.find_result(result.name)) results.insert(result.name);
      }
    }
    EXPECT_EQ(results.size(), program.results.size());
  }
  EXPECT_GT(cut, 100);
}

}  // namespace
}  // namespace trireme

#include "reference/reference.hpp"

#include <map>

#include "ir/contract.hpp"
#include "reference/draft_for_test.hpp"

namespace trireme {
namespace {

constexpr std::int64_t odd_sizes[] = {1, 2, 3, 31, 33, 255, 256, 257, 513, 541, 1025, 1300};

// The sum rule again, from the other end: which leaf stands where in the tree, by recursion on positions.
float tree(const std::vector<float>& v, std::size_t first, std::size_t t, std::size_t stride) {
  // The value v[t] holds once the strides 128 ... `stride` have been added into it.
  if (stride == 256) return first + t < v.size() ? v[first + t] : -0.0f;
  return tree(v, first, t, 2 * stride) + tree(v, first, t + stride, 2 * stride);
}
float pairs(const std::vector<float>& v, std::size_t first, std::size_t span) {
  // `span` stripes, a power of two; a subtree without its right half is its left half.
  if (span == 1) return tree(v, 256 * first, 0, 1);
  float left = pairs(v, first, span / 2);
  return 256 * (first + span / 2) < v.size() ? left + pairs(v, first + span / 2, span / 2) : left;
}
float sum_by_recursion(const std::vector<float>& v) { return pairs(v, 0, 64); }

TEST(Reference, rms_norm_agrees_with_plain_arithmetic) {
  RmsNorm draft;
  for (std::int64_t n : odd_sizes) {
    Trial trial(draft, 3, n);
    auto gamma = [](std::int64_t, std::int64_t c) { return 0.5 + static_cast<double>(c % 7); };
    trial.fill("x", rough).fill("gamma", gamma).run();
    for (int i = 0; i < 3; ++i) {
      double squares = 0;
      for (int j = 0; j < n; ++j) squares += std::pow(static_cast<float>(rough(i, j)), 2);
      double rstd = 1 / std::sqrt(squares / static_cast<double>(n) + 1e-6);
      EXPECT_NEAR(trial("rstd", i) / rstd, 1, 1e-6);
      for (int j = 0; j < n; ++j) {
        double y = static_cast<float>(rough(i, j)) * rstd * gamma(0, j);
        EXPECT_NEAR(trial("y", i, j), y, 1e-6 * std::fabs(y)) << i << ' ' << j;
      }
    }
  }
}

TEST(Reference, row_sums_follow_the_tree) {
  Draft draft;
  draft.result("s", per_row, sum(draft.operand("x", per_element)));
  bool order_matters = false;
  for (std::int64_t n : odd_sizes) {
    Trial trial(draft, 4, n);
    trial.fill("x", rough).run();
    for (int i = 0; i < 4; ++i) {
      std::vector<float> row(n);
      float in_order = 0;
      for (int j = 0; j < n; ++j) in_order += row[j] = static_cast<float>(rough(i, j));
      EXPECT_EQ(trial("s", i), sum_by_recursion(row)) << n;
      order_matters |= trial("s", i) != in_order;
    }
  }
  EXPECT_TRUE(order_matters);
}

TEST(Reference, small_trees_by_hand) {
  Draft draft;
  draft.result("s", per_row, sum(draft.operand("x", per_element)));
  // (1 + -1) at distance 128 first, then 2^-30 survives; neighbours in a plain loop would lose it.
  Trial trial(draft, 1, 256);
  auto value = [](int, int j) { return j == 0 ? 1 : j == 1 ? 0x1p-30 : j == 128 ? -1 : 0; };
  EXPECT_EQ(trial.fill("x", value).run()("s", 0), 0x1p-30);
  // Three stripes: (a + b) + c, though the last stripe's sum is alone on its level.
  Trial stripes(draft, 1, 513);
  auto ends = [](int, int j) { return j == 0 ? 1 : j == 256 ? 0x1p-24 : j == 512 ? 0x1p-24 : 0; };
  EXPECT_EQ(stripes.fill("x", ends).run()("s", 0), 1);
  // All absent but one: the sign of zero survives, since absent elements are -0.0.
  Trial zero(draft, 1, 1);
  EXPECT_TRUE(std::signbit(zero.fill("x", [](int, int) { return -0.0; }).run()("s", 0)));
}

// Column sums once more, with maps instead of streams.
std::map<std::pair<int, int>, float> column_sums_by_hand(int rows, int columns,
                                                         const std::vector<std::vector<float>>& v, auto&& row_entry,
                                                         auto&& column_entry, std::int64_t entries) {
  std::map<std::pair<int, int>, std::vector<float>> by_entry;
  for (int i = 0; i < rows; ++i) {
    std::map<int, std::vector<float>> sharing;
    for (int j = 0; j < columns; ++j) sharing[column_entry(j)].push_back(v[i][j]);
    for (auto& [c, values] : sharing) by_entry[{row_entry(i), c}].push_back(sum_by_recursion(values));
  }
  std::map<std::pair<int, int>, float> sums;
  for (auto& [entry, values] : by_entry) {
    std::int64_t block = contract::row_block(static_cast<std::int64_t>(values.size()), entries);
    std::vector<float> blocks;
    for (std::size_t k = 0; k < values.size(); ++k)
      k % block == 0 ? blocks.push_back(values[k]) : void(blocks.back() += values[k]);
    while (blocks.size() > 1) {
      std::vector<float> next;
      for (std::size_t k = 0; k < blocks.size(); k += 2)
        next.push_back(k + 1 < blocks.size() ? blocks[k] + blocks[k + 1] : blocks[k]);
      blocks = next;
    }
    sums[entry] = blocks[0];
  }
  return sums;
}

// The largest of what lands on an entry; -inf where nothing does.
TEST(Reference, column_maxima) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  Draft draft;
  Formula x = draft.operand("x", per_element);
  auto largest = [](Formula a) { return a.with(Op::ColumnMax, {a.id}); };
  Spread wrapped = per_column, halves = per_element;
  wrapped.row = draft.axis(0, 3);
  halves.column = draft.axis(0, 7);
  draft.result("plain", per_column, largest(x));
  draft.result("wrapped", wrapped, largest(x));
  draft.result("halves", halves, largest(x));
  draft.result("all", one_value, largest(x));
  const float values[2][4] = {{1, -0.0f, -infinity, 2}, {-5, 0.0f, -infinity, std::numeric_limits<float>::quiet_NaN()}};
  Trial trial(draft, 2, 4);
  trial.fill("x", [&](int i, int j) { return values[i][j]; }).run();
  EXPECT_EQ(trial("plain", 0, 0), 1);
  EXPECT_FALSE(std::signbit(trial("plain", 0, 1)));
  EXPECT_EQ(trial("plain", 0, 2), -infinity);
  EXPECT_TRUE(std::isnan(trial("plain", 0, 3)));
  EXPECT_EQ(trial("wrapped", 1, 0), -5);
  for (int c = 0; c < 4; ++c) EXPECT_EQ(trial("wrapped", 2, c), -infinity) << c;
  EXPECT_EQ(trial("halves", 0, 3), 2);
  EXPECT_EQ(trial("halves", 0, 6), -infinity);
  EXPECT_TRUE(std::isnan(trial("all", 0, 0)));
}

TEST(Reference, column_sums_follow_the_rule_of_blocks) {
  for (auto [rows, columns] : {std::pair{1, 1}, {7, 33}, {300, 20}, {2500, 3}, {40, 600}}) {
    Draft draft;
    Formula x = draft.operand("x", per_element);
    Spread wrapped = per_column, divided = per_row, both, halves = per_element;
    wrapped.row = draft.axis(0, 3);
    divided.row = draft.axis(4, 0);
    both.row = draft.axis(2, 5);
    both.column = draft.axis(3, 0);
    halves.column = draft.axis(0, 2);
    draft.result("plain", per_column, column_sum(x));
    draft.result("wrapped", wrapped, column_sum(x));
    draft.result("divided", divided, column_sum(x));
    draft.result("both", both, column_sum(x));
    draft.result("halves", halves, column_sum(x));
    draft.result("all", one_value, column_sum(x));
    Trial trial(draft, rows, columns);
    trial.fill("x", rough).run();
    std::vector<std::vector<float>> v(rows, std::vector<float>(columns));
    for (int i = 0; i < rows; ++i)
      for (int j = 0; j < columns; ++j) v[i][j] = static_cast<float>(rough(i, j));

    auto check = [&, rows = rows, columns = columns](std::string_view name, auto&& row_entry, auto&& column_entry) {
      const Buffer& buffer = trial.buffers.results[draft.program.find_result(name).value()];
      auto want = column_sums_by_hand(rows, columns, v, row_entry, column_entry, buffer.entries());
      for (int r = 0; r < buffer.row_extent; ++r)
        for (int c = 0; c < buffer.column_extent; ++c)
          EXPECT_EQ(trial(name, r, c), (want[{r, c}])) << name << ' ' << rows << 'x' << columns << ' ' << r << ' ' << c;
    };
    auto zero = [](int) { return 0; };
    auto itself = [](int k) { return k; };
    check("plain", zero, itself);
    check(
        "wrapped", [](int i) { return i % 3; }, itself);
    check(
        "divided", [](int i) { return i / 4; }, zero);
    check(
        "both", [](int i) { return i / 2 % 5; }, [](int j) { return j / 3; });
    check("halves", itself, [](int j) { return j % 2; });
    std::vector<float> row_sums;
    for (auto& row : v) row_sums.push_back(sum_by_recursion(row));
    EXPECT_EQ(trial("all", 0), sum_by_recursion(row_sums));
  }
}

TEST(Reference, divided_and_wrapped_operands) {
  Draft draft;
  Spread cosine;
  cosine.row = draft.axis(2, 3);
  cosine.column = {true, no_node, (draft.leaf(Op::ColumnCount) / 2.0).id};
  Formula x = draft.operand("x", per_element), table = draft.operand("cos", cosine);
  Formula by = draft.leaf(Op::ColumnCount) / 2.0;
  draft.result("y", per_element, x.with(Op::Rotate, {x.id, by.id}) * table);
  auto value = [](int i, int j) { return 10 * i + j; };
  Trial trial(draft, 9, 8);
  trial.fill("x", value).fill("cos", value).run();
  for (int i = 0; i < 9; ++i)
    for (int j = 0; j < 8; ++j) EXPECT_EQ(trial("y", i, j), value(i, (j + 4) % 8) * value(i / 2 % 3, j % 4));

  std::vector<Array> arrays = trial.buffers.arrays();
  Status odd = run_reference(draft.program, {9, 7, draft.constants, arrays});
  ASSERT_FALSE(odd);
  EXPECT_EQ(odd.error().code, Code::InvalidArgument);
  EXPECT_NE(odd.error().message.find("7 / 2"), std::string::npos) << odd.error().message;
}

TEST(Reference, comparisons_of_indices_are_made_in_integers) {
  Draft draft;
  Formula target = draft.operand("target", per_row, Type::I32), shifted = draft.operand("shifted", per_row, Type::I32);
  Formula one = draft.number(1), zero = draft.number(0);
  draft.result("integers", per_row, select(equal(target, shifted), one, zero));
  draft.result("numbers", per_row, select(equal(target + 0.0, shifted), one, zero));
  draft.result("diagonal", per_element, select(draft.leaf(Op::ColumnIndex) <= draft.leaf(Op::RowIndex), one, zero));
  Trial trial(draft, 3, 4);
  trial.fill("target", [](int, int) { return 16777216; })
      .fill("shifted", [](int i, int) { return 16777216 + i; })
      .run();
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(trial("integers", i), i == 0);
    EXPECT_EQ(trial("numbers", i), i != 2);
    for (int j = 0; j < 4; ++j) EXPECT_EQ(trial("diagonal", i, j), j <= i);
  }
}

TEST(Reference, computes_in_f64_and_rounds_once) {
  RmsNorm draft(Type::F16, 1e-6, Type::F64);
  Trial trial(draft, 2, 100);
  trial.fill("x", rough).fill("gamma", [](int, int) { return 1; }).run();
  double squares = 0;
  for (int j = 0; j < 100; ++j) squares += std::pow(widen(Type::F16, round_to_bits(Type::F16, rough(0, j))), 2);
  EXPECT_NEAR(trial("rstd", 0) * std::sqrt(squares / 100 + 1e-6), 1, 1e-14);
}

TEST(Reference, strides_repeat_and_walk_backwards) {
  Draft draft;
  Formula x = draft.operand("x", per_element);
  draft.result("s", per_row, sum(x * draft.leaf(Op::ColumnIndex)));
  float memory[6] = {1, 2, 3, 4, 5, 6}, out[2];
  Array arrays[] = {{memory + 5, Type::F32, -3, -1}, {out, Type::F32, 1, 0}};
  ASSERT_TRUE(run_reference(draft.program, {2, 3, draft.constants, arrays}));
  EXPECT_EQ(out[0], 5 + 2 * 4);
  EXPECT_EQ(out[1], 2 + 2 * 1);
  arrays[0] = {memory, Type::F32, 0, 0};
  ASSERT_TRUE(run_reference(draft.program, {2, 3, draft.constants, arrays}));
  EXPECT_EQ(out[1], 3);
}

TEST(Reference, refuses_what_it_cannot_run) {
  Draft draft;
  Formula x = draft.operand("x", per_element);
  draft.result("y", per_element, x.with(Op::Mean, {x.id}));
  Trial trial(draft, 1, 2);
  std::vector<Array> arrays = trial.buffers.arrays();
  EXPECT_EQ(run_reference(draft.program, {1, 2, draft.constants, arrays}).error().code, Code::Internal);
  EXPECT_EQ(run_reference(draft.program, {1, 0, draft.constants, arrays}).error().code, Code::InvalidArgument);
  arrays[0].type = Type::F16;
  EXPECT_EQ(run_reference(draft.program, {1, 2, draft.constants, arrays}).error().code, Code::InvalidArgument);
}

}  // namespace
}  // namespace trireme

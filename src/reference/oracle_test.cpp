#include "reference/oracle.hpp"

#include "ir/primitives.hpp"
#include "language/parse.hpp"
#include "math/functions.hpp"
#include "passes/passes.hpp"
#include "reference/bounded.hpp"
#include "reference/draft_for_test.hpp"
#include "support/contract_arithmetic.hpp"

namespace trireme {
namespace {

// A program from text, run by the reference (expanded) and by the oracle (as bound).
struct Checked {
  Program bound, expanded;
  Buffers buffers;
  std::vector<OracleResult> oracle;
  std::vector<LargestError> errors;

  template <typename Fill>
  Checked(std::string_view text, const Binding& binding, std::int64_t rows, std::int64_t columns, Fill&& fill) {
    Program program = parse(text).value();
    auto [as_bound, as_expanded, constants] = prepare(program, binding).value();
    bound = std::move(as_bound), expanded = std::move(as_expanded);
    buffers = make_buffers(bound, {rows, columns}).value();
    for (std::size_t k = 0; k < bound.operands.size(); ++k) {
      const Buffer& buffer = buffers.operands[k];
      for (std::int64_t r = 0; r < buffer.row_extent; ++r)
        for (std::int64_t c = 0; c < buffer.column_extent; ++c)
          store_f64(buffer.array.type, buffer.array.entry(r, c), fill(bound.operands[k].name, r, c));
    }
    std::vector<Array> arrays = buffers.arrays();
    Problem2d problem{rows, columns, constants, arrays};
    Status ran = run_reference(expanded, problem);
    EXPECT_TRUE(ran) << (ran ? "" : ran.error().message);
    oracle = run_oracle(bound, problem).value();
    errors = largest_errors(bound, oracle, std::span(arrays).subspan(bound.operands.size()));
  }

  const LargestError& error(std::string_view result) const { return errors[bound.find_result(result).value()]; }
  void expect_fine() const {
    for (const LargestError& each : errors)
      EXPECT_TRUE(each.fine()) << each.result << '[' << each.row << ',' << each.column << "] got " << each.got
                               << " want " << each.want << " error " << each.error << " tolerance " << each.tolerance;
  }
};

double plain(std::string_view, std::int64_t r, std::int64_t c) { return rough(r, c); }

constexpr std::string_view rms_norm =
    "rms_norm(x[i,j], gamma[j] = 1, eps = 1e-6, offset = 0) -> (y[i,j], rstd[i])\n"
    "rstd = rsqrt(mean(x * x) + eps)\n"
    "y = x * rstd * (gamma + offset)\n";
constexpr std::string_view layer_norm =
    "layer_norm(x[i,j], eps = 1e-5) -> (y[i,j], mean_out[i], dg[j], all[])\n"
    "mean_out = mean(x)\n"
    "d = x - mean_out\n"
    "y = d * rsqrt(mean(d * d) + eps)\n"
    "dg = colsum(y * x)\n"
    "all = colsum(x * x)\n";

Binding types_of(std::initializer_list<std::string> names, Type type, Type small_type = Type::F32) {
  Binding binding;
  for (const std::string& name : names) binding.types[name] = name == "x" || name == "y" ? type : small_type;
  return binding;
}

TEST(Bounded, holds_what_the_compute_type_gives) {
  ContractArithmetic arithmetic;
  std::uint64_t state = 7;
  auto next = [&] { return state = state * 6364136223846793005u + 1442695040888963407u, state >> 33; };
  for (int trial = 0; trial < 20000; ++trial) {
    // A stack of values that random operations combine; the float's way must stay inside the bounds.
    float x[4];
    Bounded<float> b[4];
    for (int k = 0; k < 4; ++k) b[k] = Bounded<float>(x[k] = static_cast<float>(rough(trial, k)));
    for (int step = 0; step < 12; ++step) {
      int p = next() % 4, q = next() % 4, into = next() % 4;
      switch (next() % 7) {
        case 0: x[into] = x[p] + x[q], b[into] = b[p] + b[q]; break;
        case 1: x[into] = x[p] - x[q], b[into] = b[p] - b[q]; break;
        case 2: x[into] = x[p] * x[q], b[into] = p == q ? squared(b[p]) : b[p] * b[q]; break;
        case 3: x[into] = x[p] / x[q], b[into] = b[p] / b[q]; break;
        case 4: x[into] = std::sqrt(x[p]), b[into] = square_root(b[p]); break;
        case 5: x[into] = larger(x[p], x[q]), b[into] = larger(b[p], b[q]); break;
        case 6:
          x[into] = std::fma(x[p], x[q], 1.f),
          b[into] = exact_sum(exact_product(b[p], b[q]), Bounded<float>(1)).rounded();
      }
      if (b[into].nan()) {
        ASSERT_TRUE(std::isnan(x[into]));
        break;
      }
      ASSERT_TRUE(b[into].holds(x[into])) << x[into] << " in " << b[into].low << " .. " << b[into].high;
      ASSERT_TRUE(b[into].unknown || b[into].holds(b[into].value));
    }
  }
}

TEST(Oracle, holds_the_reference_for_odd_sizes) {
  for (std::int64_t n : {1, 2, 3, 33, 257, 541, 1030})
    for (Type type : {Type::F32, Type::BF16, Type::F16, Type::F8E4M3, Type::F64}) {
      Type small_type = type == Type::F64 ? Type::F64 : Type::F32;
      Checked(rms_norm, types_of({"x", "gamma", "y", "rstd"}, type, small_type), 3, n, plain).expect_fine();
      Checked(layer_norm, types_of({"x", "y", "mean_out", "dg", "all"}, type, small_type), 7, n, plain).expect_fine();
    }
}

TEST(Oracle, bounds_are_close) {
  Checked checked(rms_norm, types_of({"x", "gamma", "y", "rstd"}, Type::F32), 4, 4096, plain);
  checked.expect_fine();
  for (std::size_t k = 0; k < checked.oracle.size(); ++k)
    for (const OracleElement& element : checked.oracle[k].elements)
      EXPECT_LT(element.tolerance(), 20 * 0x1p-24 * std::fabs(static_cast<double>(element.value)) + 1e-40);
  EXPECT_EQ(checked.error("y").unknown, 0);
  EXPECT_GT(checked.error("y").worst, 0);  // and not so wide that nothing is ever seen
}

TEST(Oracle, sees_a_wrong_element) {
  Checked checked(rms_norm, types_of({"x", "gamma", "y", "rstd"}, Type::F32), 4, 300, plain);
  Array y = checked.buffers.results[0].array;
  std::uint64_t bits = load_bits(Type::F32, y.entry(2, 299));
  store_bits(Type::F32, y.entry(2, 299), bits + 32);
  LargestError error = largest_error("y", checked.oracle[0], y);
  EXPECT_FALSE(error.fine());
  EXPECT_EQ(error.wrong, 1);
  EXPECT_EQ(error.row, 2);
  EXPECT_EQ(error.column, 299);
  store_f64(Type::F32, y.entry(2, 299), std::nan(""));
  EXPECT_EQ(largest_error("y", checked.oracle[0], y).worst, HUGE_VAL);
}

TEST(Oracle, fault_12_and_13_are_certain) {
  // A zero row with eps 0 is 0 * inf; an infinity makes its own row NaN or 0 and leaves the others alone.
  Binding binding = types_of({"x", "gamma", "y", "rstd"}, Type::F32);
  binding.constants["eps"] = 0;
  auto fill = [](std::string_view name, std::int64_t r, std::int64_t c) {
    return name != "x" ? 1. : r == 0 ? 0. : r == 1 && c == 3 ? HUGE_VAL : rough(r, c);
  };
  Checked checked(rms_norm, binding, 3, 40, fill);
  checked.expect_fine();
  for (const LargestError& error : checked.errors) EXPECT_EQ(error.unknown, 0);
  EXPECT_TRUE(std::isnan(checked.oracle[0].at(0, 0).lowest));
  EXPECT_EQ(checked.oracle[1].at(1, 0).value, 0);
  EXPECT_TRUE(std::isnan(checked.oracle[0].at(1, 3).lowest));
  EXPECT_EQ(checked.oracle[0].at(1, 4).value, 0);
}

TEST(Oracle, fault_11_overflow_belongs_to_the_contract) {
  auto huge = [](std::string_view name, std::int64_t, std::int64_t) { return name == "x" ? 3e38 : 1; };
  Checked checked(rms_norm, types_of({"x", "gamma", "y", "rstd"}, Type::BF16), 1, 40, huge);
  checked.expect_fine();
  EXPECT_EQ(checked.oracle[1].at(0, 0).highest, 0);
}

TEST(Oracle, fault_15_says_what_cancellation_costs) {
  auto offset = [](std::string_view, std::int64_t r, std::int64_t c) { return r ? 3.3 : 1e6 + rough(r, c); };
  Checked checked(layer_norm, types_of({"x", "y", "mean_out", "dg", "all"}, Type::F32), 2, 1024, offset);
  checked.expect_fine();
}

TEST(Oracle, conditions_near_a_tie_may_go_either_way) {
  constexpr std::string_view text =
      "op(x[i,j]) -> (a[i,j], b[i,j])\n"
      "t = x / 3 * 3\n"
      "a = select(t < x, 1, 2)\n"
      "b = select(x < 1, x, 5)\n";
  auto fill = [](std::string_view, std::int64_t, std::int64_t c) { return 0.1 * static_cast<double>(c); };
  Checked checked(text, types_of({"x", "a", "b"}, Type::F32), 1, 20, fill);
  checked.expect_fine();
  EXPECT_EQ(checked.oracle[0].at(0, 7).lowest, 1);
  EXPECT_EQ(checked.oracle[0].at(0, 7).highest, 2);
  EXPECT_EQ(checked.oracle[1].at(0, 19).lowest, 5);
}

TEST(Oracle, fault_16_stores_that_saturate) {
  constexpr std::string_view text =
      "op(x[i,j]) -> (q[i,j], e[i,j])\n"
      "scale = max(amax(abs(x)) / largest(q), 1e-30)\n"
      "q = x / scale\n"
      "e = cast(x, e) * 1.5\n";
  Binding binding;
  binding.types = {{"x", Type::F32}, {"q", Type::I8}, {"e", Type::F8E4M3}};
  double rows[3][3] = {{0, -0.0, 0}, {1e-44, -1e-44, 0}, {-500, 448, std::nan("")}};
  Checked checked(text, binding, 3, 3, [&](std::string_view, std::int64_t r, std::int64_t c) { return rows[r][c]; });
  checked.expect_fine();
  EXPECT_EQ(checked.oracle[0].at(2, 2).value, 0);
  EXPECT_EQ(checked.oracle[1].at(2, 0).value, -448);
}

TEST(Oracle, holds_every_function) {
  // Of exact arguments and of rounded ones, small and large, and at the corners.
  const double corners[] = {0., -0., 1., -1., 88.7, 88.8, -87.4, 710., 1e-40, -1e-40, 1e30, HUGE_VAL, -HUGE_VAL, NAN};
  int tried = 0;
  for (const Function& function : functions()) {
    std::string args = function.arity == 3 ? ", -1.5, 2" : "", name(function.name);
    std::string text =
        "op(x[i,j]) -> (y[i,j], z[i,j])\ny = " + name + "(x" + args + ")\nz = " + name + "(x * 0.7" + args + ")\n";
    if (!parse(text)) continue;  // not of the language: only derivatives use it
    ++tried;
    for (Type type : {Type::F32, Type::F64}) {
      auto fill = [&](std::string_view, std::int64_t r, std::int64_t c) {
        return c < std::ssize(corners) ? corners[c] : std::fabs(rough(r, c)) < 20 ? rough(r, c) : rough(r, c) / 50;
      };
      Checked checked(text, types_of({"x", "y", "z"}, type, type), 8, 300, fill);
      checked.expect_fine();
      EXPECT_EQ(checked.error("y").unknown + checked.error("z").unknown, 0) << name;
    }
  }
  EXPECT_GE(tried, 15);
}

TEST(Oracle, programs_on_bits_are_unsupported) {
  // What `show --after expand` prints of exp, read back: no fault of ours, and nothing the oracle could judge.
  Program program = parse("f(x[i,j]: f32) -> (y[i,j]: f32) in f32\ny = x * bits_shift_left(x, 23)\n").value();
  Binding binding = types_of({"x", "y"}, Type::F32);
  Program bound = bind(program, binding).value();
  Buffers buffers = make_buffers(bound, {2, 3}).value();
  std::vector<double> constants(bound.operands.size());
  std::vector<Array> arrays = buffers.arrays();
  auto oracle = run_oracle(bound, {2, 3, constants, arrays});
  ASSERT_FALSE(oracle);
  EXPECT_EQ(oracle.error().code, Code::Unsupported);
  EXPECT_NE(oracle.error().message.find("bits_shift_left"), std::string::npos) << oracle.error().message;
}

// A rotation sinks to the loads; the comparison it was around stays one of integers, where f32 would round.
TEST(Oracle, rotated_comparisons_of_integers) {
  constexpr std::string_view text =
      "op(x[i,j], t[i,j]) -> (y[i,j], z[i,j])\n"
      "y = rotate(select(t == 16777217, x, -x), 2)\n"
      "z = rotate(select(t < 16777217, x, -x), n - 1)\n";
  Binding binding = types_of({"x", "y", "z"}, Type::F32);
  binding.types["t"] = Type::I32;
  for (bool bound : {false, true}) {
    if (bound) binding.columns = 5;
    Checked checked(text, binding, 3, 5, [](std::string_view name, std::int64_t r, std::int64_t c) {
      return name == "t" ? 16777215.0 + static_cast<double>((r + c) % 4) : 1 + static_cast<double>(c);
    });
    checked.expect_fine();
    EXPECT_EQ(checked.error("y").unknown + checked.error("z").unknown, 0);
  }
}

// The reference and the oracle take any arithmetic, whether bind knew the columns or not.
TEST(Oracle, fault_34_rotations_by_arithmetic) {
  for (const char* by : {"n - 1", "n * 2", "k + n", "-n / 2", "3 * n / 4", "n * n - k", "n / n"})
    for (bool bound : {false, true}) {
      Binding binding = types_of({"x", "y"}, Type::F32);
      if (bound) binding.columns = 12;
      Checked checked("op(x[i,j], k = 5) -> (y[i,j])\ny = rotate(x * 2, " + std::string(by) + ")\n", binding, 2, 12,
                      plain);
      checked.expect_fine();
      EXPECT_EQ(checked.error("y").error, 0) << by;
    }
}

constexpr std::string_view softmax =
    "softmax(x[i,j]) -> (y[i,j], lse[i])\n"
    "top = amax(x)\n"
    "e = exp(x - top)\n"
    "total = sum(e)\n"
    "y = e / total\n"
    "lse = top + log(total)\n";

TEST(Oracle, fault_14_softmax) {
  auto fill = [](std::string_view, std::int64_t r, std::int64_t c) {
    if (r == 0) return -HUGE_VAL;                        // masked as a whole: NaN
    if (r == 1) return c == 2 ? HUGE_VAL : rough(r, c);  // inf - inf, and through the sum the whole row
    if (r == 2) return c % 2 ? -5e4 : rough(r, c);       // masked half: exactly 0
    if (r == 3) return c % 2 ? -HUGE_VAL : rough(r, c);
    return rough(r, c);
  };
  for (std::int64_t n : {1, 2, 33, 541})
    for (Type type : {Type::F32, Type::BF16}) {
      Checked checked(softmax, types_of({"x", "y", "lse"}, type), 5, n, fill);
      checked.expect_fine();
      EXPECT_EQ(checked.error("y").unknown, 0);
      Array y = checked.buffers.results[0].array;
      EXPECT_TRUE(std::isnan(load_f64(type, y.entry(0, 0))));
      if (n > 2) {
        EXPECT_TRUE(std::isnan(load_f64(type, y.entry(1, n - 1))));
      }
      if (n > 1) {
        EXPECT_EQ(load_f64(type, y.entry(2, 1)), 0);
        EXPECT_EQ(load_f64(type, y.entry(3, 1)), 0);
      } else {
        EXPECT_EQ(load_f64(type, y.entry(4, 0)), 1);
      }
    }
}

}  // namespace
}  // namespace trireme

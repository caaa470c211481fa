#include <gtest/gtest.h>

#include "ir/verify.hpp"
#include "language/print.hpp"
#include "language/random_program.hpp"
#include "passes/parsed_for_test.hpp"
#include "passes/passes.hpp"

namespace trireme {
namespace {

const char* rms_norm = R"(
rms_norm(x[i,j], gamma[j] = 1, eps = 1e-6, offset = 0) -> (y[i,j], rstd[i])
    rstd = rsqrt(mean(x * x) + eps)
    y    = x * rstd * (gamma + offset)
)";

std::string bound(std::string_view text, const Binding& binding) {
  Result<Program> made = bind(parsed(text), binding);
  if (!made) return std::string(name(made.error().code)) + ": " + made.error().message;
  Status status = verify(*made);
  EXPECT_TRUE(status) << status.error().message;
  return print(simplify(*made));
}

using Types = std::map<std::string, Type>;
const Types all_f32 = {{"x", Type::F32}, {"gamma", Type::F32}, {"y", Type::F32}, {"rstd", Type::F32}};

Types without(Types types, std::initializer_list<const char*> names) {
  for (const char* name : names) types.erase(name);
  return types;
}

TEST(Bind, FixesTypesAndConstants) {
  Types types = {{"x", Type::BF16}, {"gamma", Type::F32}, {"y", Type::BF16}, {"rstd", Type::F32}};
  EXPECT_EQ(bound(rms_norm, {.types = types}),
            "rms_norm(x[i,j]: bf16, gamma[j]: f32, eps = 1e-6) -> (y[i,j]: bf16, rstd[i]: f32) in f32\n"
            "    rstd = rsqrt(mean(x * x) + eps)\n"
            "    y    = x * rstd * gamma\n");
  // A new eps compiles nothing; 0, 1 and -1 fold; another offset stays.
  EXPECT_EQ(bound(rms_norm, {.types = all_f32, .constants = {{"eps", 1e-5}}}), bound(rms_norm, {.types = all_f32}));
  EXPECT_EQ(bound(rms_norm, {.types = all_f32, .constants = {{"eps", 0}, {"offset", 0.5}}}),
            "rms_norm(x[i,j]: f32, gamma[j]: f32, offset = 0) -> (y[i,j]: f32, rstd[i]: f32) in f32\n"
            "    rstd = rsqrt(mean(x * x))\n"
            "    y    = x * rstd * (gamma + offset)\n");
}

// -0 + 0 is +0, so this is a rule of the contract, of what is a zero when the plan is made and nothing else.
TEST(Bind, SumsWithKnownZerosAreTheirOtherArgument) {
  const Types types = {{"x", Type::F32}, {"y", Type::F32}};
  auto right_side = [&](const std::string& e, std::map<std::string, double> constants = {}) {
    Result<Program> made = bind(parsed("f(x[i,j], w[i,j] = 0, c = 0) -> (y[i,j])\n    y = " + e + "\n"),
                                {.types = types, .constants = std::move(constants), .absent = {"w"}});
    const std::string text = print(made.value());
    return text.substr(text.find("y = ") + 4);
  };
  for (const char* e : {"x + 0", "0 + x", "x - 0", "x + -0", "x + c", "x - c", "x + w", "w + x + w", "x + (c - w)"})
    EXPECT_EQ(right_side(e), "x\n") << e;
  EXPECT_EQ(right_side("x / (0 - c)"), "x / 0\n");
  EXPECT_EQ(right_side("x / (-0 - c)"), "x / -0\n");
  EXPECT_EQ(right_side("0 - x"), "0 - x\n");
  EXPECT_EQ(right_side("x + 0 * c"), "x + 0 * 0\n");
  EXPECT_EQ(right_side("x + c", {{"c", 1e-60}}), "x + c\n");
  // What became a zero later is a value that was added, and a bound text says the same when it is bound again.
  const Program bound = parsed("f(x[i,j]: f32) -> (y[i,j]: f32) in f32\n    y = x + 0\n");
  EXPECT_EQ(print(bind(bound, {.types = types}).value()), print(bound));
}

TEST(Bind, ComputesInTheWidestNeeded) {
  auto compute = [](Types types, std::set<std::string> absent, std::optional<std::set<std::string>> wanted) {
    return *bind(parsed(rms_norm), {.types = types, .absent = absent, .wanted = wanted}).value().compute;
  };
  Types types = all_f32;
  EXPECT_EQ(compute(types, {}, {}), Type::F32);
  types["gamma"] = Type::F64;
  EXPECT_EQ(compute(types, {}, {}), Type::F64);
  EXPECT_EQ(compute(types, {"gamma"}, {}), Type::F32);
  types = all_f32, types["rstd"] = Type::F64;
  EXPECT_EQ(compute(types, {}, {}), Type::F64);
  EXPECT_EQ(compute(types, {}, {{"y"}}), Type::F32);
}

TEST(Bind, AbsentOperandsAndUnwantedResults) {
  EXPECT_EQ(bound(rms_norm, {.types = without(all_f32, {"gamma", "rstd"}), .absent = {"gamma"}, .wanted = {{"y"}}}),
            "rms_norm(x[i,j]: f32, eps = 1e-6) -> (y[i,j]: f32) in f32\n"
            "    rstd = rsqrt(mean(x * x) + eps)\n"
            "    y    = x * rstd\n");
  // An operand that is given but not needed keeps its place; one that is not given goes.
  EXPECT_EQ(bound(rms_norm, {.types = without(all_f32, {"y"}), .wanted = {{"rstd"}}}),
            "rms_norm(x[i,j]: f32, gamma[j]: f32, eps = 1e-6) -> (rstd[i]: f32) in f32\n"
            "    rstd = rsqrt(mean(x * x) + eps)\n");
  EXPECT_EQ(bound(rms_norm, {.types = without(all_f32, {"y", "gamma"}), .wanted = {{"rstd"}}}),
            "rms_norm(x[i,j]: f32, eps = 1e-6) -> (rstd[i]: f32) in f32\n"
            "    rstd = rsqrt(mean(x * x) + eps)\n");
}

// A backward's saved results are recomputed where they are absent, and what they are computed from is not needed where
// they are given.
TEST(Bind, SavedResults) {
  Program backward = differentiate(parsed("softmax(x[i,j]) -> (y[i,j])\ne = exp(x - amax(x))\ny = e / sum(e)")).value();
  std::string text = print(backward);
  EXPECT_EQ(bound(text, {.types = {{"dy", Type::F32}, {"y", Type::F32}, {"dx", Type::F32}}, .absent = {"x"}}),
            "softmax_backward(dy[i,j]: f32, y[i,j]: f32) -> (dx[i,j]: f32) in f32\n"
            "    dx = y * (dy - sum(dy * y))\n");
  EXPECT_EQ(bound(text, {.types = {{"dy", Type::F32}, {"x", Type::F32}, {"dx", Type::F32}}, .absent = {"y"}}),
            "softmax_backward(dy[i,j]: f32, x[i,j]: f32) -> (dx[i,j]: f32) in f32\n"
            "    t1 = exp(x - amax(x))\n"
            "    y  = t1 / sum(t1)\n"
            "    dx = y * (dy - sum(dy * y))\n");
}

TEST(Bind, IndicesFold) {
  const char* text = "f(w[i % heads, j / (groups / 2)], x[i,j], heads = 4, groups = 6) -> (y[i,j])\ny = x * w * heads";
  EXPECT_EQ(bound(text, {.types = {{"w", Type::F16}, {"x", Type::F32}, {"y", Type::I8}}}),
            "f(w[i % 4, j / 3]: f16, x[i,j]: f32) -> (y[i,j]: i8) in f32\n"
            "    y = x * w * 4\n");
  EXPECT_NE(bound(text, {.types = {{"w", Type::F16}, {"x", Type::F32}, {"y", Type::I8}}, .constants = {{"heads", 1.5}}})
                .find("'w': an index divisor must be a positive integer, not 1.5"),
            std::string::npos);
}

TEST(Bind, TypesInPrograms) {
  const char* text =
      "f(x[i,j]) -> (q[i,j], s[i])\ns = amax(abs(x)) / largest(q)\nq = stop_gradient(cast(x, x) / s) * cast(s, s)";
  EXPECT_EQ(bound(text, {.types = {{"x", Type::BF16}, {"q", Type::I8}, {"s", Type::F16}}}),
            "f(x[i,j]: bf16) -> (q[i,j]: i8, s[i]: f16) in f32\n"
            "    s = amax(abs(x)) / 127\n"
            "    q = x / s * round_to(s, f16)\n");
}

// What largest names may have no array: its type is said, and rounds nothing.
TEST(Bind, TypesOfWhatIsAbsent) {
  const char* text =
      "f(x[i,j], w[i,j] = 1) -> (q[i,j], s[i])\ns = amax(abs(cast(x, q))) / largest(q) * largest(w)\nq = w * x / s";
  const std::set<std::string> wanted = {"s"};
  const Types types = {{"x", Type::F32}, {"s", Type::F32}};
  EXPECT_EQ(bound(text, {.types = types,
                         .absent = {"w"},
                         .wanted = wanted,
                         .types_of_absent = {{"q", Type::F8E4M3}, {"w", Type::I8}}}),
            "f(x[i,j]: f32) -> (s[i]: f32) in f32\n"
            "    s = amax(abs(x)) / 448 * 127\n");
  Result<Program> untyped = bind(parsed(text), {.types = types, .absent = {"w"}, .wanted = wanted});
  ASSERT_FALSE(untyped);
  EXPECT_EQ(untyped.error().message,
            "f: largest(q) needs a type for 'q', which no array says: q=none:f8e4m3 in a problem "
            "line, types elsewhere");
}

// What the forward stored rounded and the backward recomputes is rounded again, to the type of its gradient.
TEST(Bind, RecomputedCasts) {
  const char* text = "f(dh[i,j] = 0, x[i,j], h[i,j] = cast(x * 3, h)) -> (dx[i,j])\ndx = dh * h";
  Types types = {{"dh", Type::BF16}, {"x", Type::F32}, {"dx", Type::F32}};
  EXPECT_EQ(bound(text, {.types = types, .absent = {"h"}}),
            "f(dh[i,j]: bf16, x[i,j]: f32) -> (dx[i,j]: f32) in f32\n"
            "    h  = round_to(x * 3, bf16)\n"
            "    dx = dh * h\n");
}

TEST(Bind, Refuses) {
  auto refusal = [](const char* text, const Binding& binding) {
    Result<Program> made = bind(parsed(text), binding);
    return made ? "accepted" : made.error().message;
  };
  EXPECT_EQ(refusal(rms_norm, {.types = {{"gama", Type::F32}}}),
            "rms_norm has no operand or result 'gama'; did you mean 'gamma'?");
  EXPECT_EQ(refusal(rms_norm, {.types = all_f32, .constants = {{"epz", 1}}}),
            "rms_norm has no constant 'epz'; did you mean 'eps'?");
  EXPECT_EQ(refusal(rms_norm, {.types = all_f32, .absent = {"x"}}),
            "rms_norm: the operand 'x' is absent and has no default; give it; only 'gamma' may be absent");
  EXPECT_EQ(refusal(rms_norm, {.types = without(all_f32, {"gamma"})}),
            "rms_norm: the operand 'gamma' has no type; give one, or list it as absent to use its default");
  EXPECT_EQ(refusal(rms_norm, {.types = without(all_f32, {"y"})}), "rms_norm: the result 'y' has no type");
  EXPECT_EQ(refusal(rms_norm, {.types = all_f32, .wanted = std::set<std::string>{}}),
            "rms_norm: no result is wanted; at least one is needed");
  EXPECT_EQ(refusal("f(x[i,j], c) -> (y[i,j])\ny = x * c", {.types = {{"x", Type::F32}, {"y", Type::F32}}}),
            "f: the constant 'c' needs a value");
}

// What prepare() makes has primitives only, and rotations stand on loads.
TEST(Pipeline, LeavesPrimitives) {
  const char* text = R"(
f(x[i,j], w[j], shift = 2) -> (y[i,j], m[i])
    m = mean(x)
    y = rotate(gelu(x) * w + rotate(x, 1), shift) * silu(m) + rotate(j, n / 2)
)";
  Types types = {{"x", Type::F16}, {"w", Type::F32}, {"y", Type::F16}, {"m", Type::F32}};
  Result<PreparedProgram> prepared = prepare(parsed(text), {.types = types});
  ASSERT_TRUE(prepared) << prepared.error().message;
  const Program& ready = prepared->expanded;
  std::vector<bool> wanted = reachable(ready);
  int rotations = 0;
  for (NodeId id = 0; id < ready.size(); ++id) {
    if (!wanted[id]) continue;
    Op op = ready[id].op;
    EXPECT_TRUE(op < Op::Mean || op == Op::Rotate) << facts(op).name;
    if (op != Op::Rotate) continue;
    ++rotations;
    Op below = ready[ready[id].args[0]].op;
    EXPECT_TRUE(below == Op::Operand || below == Op::ColumnIndex) << facts(below).name;
  }
  EXPECT_EQ(rotations, 4);  // x by 2 and by 3, w by 2, j by n / 2
}

// What is rotated by several is rotated once, by their sum; what would read too much is refused, not tried.
TEST(Pipeline, RotationsInsideRotations) {
  auto nested = [](int depth, bool tree) {
    std::string text = "f(x[i,j]) -> (y[i,j])\nh0 = x\n";
    for (int k = 0; k < depth; ++k) {
      std::string below = "h" + std::to_string(k), by = tree ? std::to_string(1 << k) : "n - " + std::to_string(k);
      text += "h" + std::to_string(k + 1) + " = rotate(" + below + ", " + by + ")" + (tree ? " * " + below : "") + "\n";
    }
    return parsed((text + "y = h" + std::to_string(depth) + "\n").c_str());
  };
  Binding binding{.types = {{"x", Type::F32}, {"y", Type::F32}}, .columns = std::int64_t{1} << 32};
  Result<PreparedProgram> chain = prepare(nested(3000, false), binding);
  ASSERT_TRUE(chain) << chain.error().message;
  EXPECT_LT(chain->expanded.size(), 10u);
  Result<PreparedProgram> tree = prepare(nested(30, true), binding);  // twice the columns at each level
  ASSERT_FALSE(tree);
  EXPECT_EQ(tree.error().code, Code::Unsupported) << tree.error().message;
}

TEST(Bind, fault_52_rotations) {
  auto rotated = [](const std::string& by, std::optional<std::int64_t> columns, double k) {
    Binding binding{.types = {{"x", Type::F32}, {"y", Type::F32}}, .constants = {{"k", k}}, .columns = columns};
    Result<Program> made = bind(parsed(("f(x[i,j], k = 2) -> (y[i,j])\ny = rotate(x, " + by + ")").c_str()), binding);
    if (!made) return made.error().message;
    std::string text = print(*made);
    return text.substr(text.find("y = "));
  };
  EXPECT_EQ(rotated("-n / 2", 12, 2), "y = rotate(x, 6)\n");
  EXPECT_EQ(rotated("3 * n / 4", 12, 2), "y = rotate(x, 9)\n");
  EXPECT_EQ(rotated("n - k", 12, 30), "y = rotate(x, 6)\n");
  EXPECT_EQ(rotated("3 * n / 4", std::nullopt, 2), "y = rotate(x, 3 * n / 4)\n");
  EXPECT_EQ(rotated("n + k * (k - 16777219)", std::nullopt, 1), "y = rotate(x, n + -16777218)\n");  // not in f32
  EXPECT_EQ(rotated("3 * n / 4", 10, 2), "f: rotate needs a whole number of columns, not 30 / 4");
  EXPECT_EQ(rotated("n - k / 2", std::nullopt, 3), "f: rotate needs a whole number of columns, not 3 / 2");
  EXPECT_EQ(rotated("n - k", 12, 0.5), "f: rotate needs a whole number of columns, not 0.5");
}

TEST(Bind, first_rows_and_columns_of_random_numbers) {
  auto drawn = [](const std::string& place, double first) {
    const std::map<std::string, Type> types = {{"seed", Type::I64}, {"x", Type::F32}, {"y", Type::F32}};
    const std::string text = "f(x[i,j], seed[], a = 2) -> (y[i,j])\ny = x * random(seed, 5" + place + ")";
    Result<Program> made = bind(parsed(text.c_str()), {.types = types, .constants = {{"a", first}}});
    if (!made) return made.error().message;
    EXPECT_EQ(print(parse(print(*made)).value()), print(*made));
    const std::string bound = print(*made);
    return bound.substr(bound.find("random"));
  };
  EXPECT_EQ(drawn("", 0), "random(seed, 5)\n");
  EXPECT_EQ(drawn(", a - 3, 2 * a - 6", 3), "random(seed, 5)\n");
  EXPECT_EQ(drawn(", a, 0", 4e15), "random(seed, 5, 4e15, 0)\n");
  EXPECT_EQ(drawn(", 0, a + 1", 16777216), "random(seed, 5, 0, 16777217)\n");  // not in f32
  EXPECT_EQ(drawn(", 0, a", 0x1p30), "random(seed, 5, 0, 1073741824)\n");
  EXPECT_EQ(drawn(", 0, a + 1", 0x1p30),
            "f: random needs a whole number from 0 to 2^30 as its first column, not 1073741825");
  EXPECT_EQ(drawn(", -a, 0", 1), "f: random needs a whole number from 0 to 2^53 as its first row, not -1");
  EXPECT_EQ(drawn(", a / 2, 0", 3), "f: random needs a whole number from 0 to 2^53 as its first row, not 3 / 2");
}

// What passes make prints, and reads back as the same.
void expect_prints_back(const Program& program, int seed) {
  std::string text = print(program);
  Result<Program> again = parse(text);
  ASSERT_TRUE(again) << "seed " << seed << ": " << again.error().message << "\n" << text;
  ASSERT_EQ(print(*again), text) << "seed " << seed;
}

TEST(Pipeline, RandomProgramsPass) {
  int count = std::getenv("LONG") ? 20000 : 500, passed = 0;
  for (int seed = 0; seed < count; ++seed) {
    Program program = random_program({.seed = static_cast<std::uint64_t>(seed), .columns_multiple = 12});
    if (seed % 2) {
      Result<Program> backward = differentiate(program);
      if (!backward) continue;
      program = std::move(*backward);
    }
    Binding binding;
    for (std::size_t k = 0; k < program.operands.size(); ++k) {
      const Operand& operand = program.operands[k];
      if (operand.constant) binding.constants[operand.name] = 2;
      else if (operand.fallback != no_node && (seed + k) % 3 == 0) binding.absent.insert(operand.name);
      else binding.types[operand.name] = type_facts[(seed + k) % type_facts.size()].type;
    }
    for (const Output& result : program.results) binding.types[result.name] = Type::F32;
    expect_prints_back(program, seed);
    Result<PreparedProgram> ready = prepare(program, binding);
    if (ready) {
      ++passed;
      const Program& bound = ready->bound;
      for (const Program& form : {bound, simplify(bound), expand(bound).value(), ready->expanded})
        expect_prints_back(form, seed);
    } else EXPECT_EQ(ready.error().code, Code::InvalidArgument) << "seed " << seed << ": " << ready.error().message;
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(passed, count / 2);
}

}  // namespace
}  // namespace trireme

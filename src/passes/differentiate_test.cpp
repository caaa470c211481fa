#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <random>

#include "ir/build.hpp"
#include "ir/verify.hpp"
#include "language/parse.hpp"
#include "language/print.hpp"
#include "language/random_program.hpp"
#include "passes/evaluate_for_test.hpp"
#include "passes/parsed_for_test.hpp"
#include "passes/passes.hpp"

namespace trireme {
namespace {

Program backward_of(const Program& program, const DifferentiateOptions& options = {}) {
  Result<Program> backward = differentiate(program, options);
  EXPECT_TRUE(backward) << backward.error().message;
  Status status = verify(*backward);
  EXPECT_TRUE(status) << status.error().message << "\n" << print(*backward);
  std::string text = print(*backward);
  Result<Program> again = parse(text);
  EXPECT_TRUE(again) << again.error().message << "\n" << text;
  if (again) {
    EXPECT_EQ(print(*again), text);
  }
  return std::move(*backward);
}

// ---- whether it is right ----

struct Check {
  std::int64_t rows = 3, columns = 4;
  std::map<std::string, double> constants = {};
  std::set<std::string> absent = {};  // of the forward's operands
  std::optional<std::set<std::string>> gradients = {};
};

Result<Program> prepared(const Program& program, const Check& check, std::set<std::string> absent) {
  Binding binding{.constants = check.constants, .absent = std::move(absent)};
  std::erase_if(binding.constants, [&](const auto& each) { return !program.find_operand(each.first); });
  std::erase_if(binding.absent, [&](const auto& each) { return !program.find_operand(each); });
  for (const Operand& operand : program.operands)
    if (!operand.constant && !binding.absent.contains(operand.name)) binding.types[operand.name] = Type::F64;
  for (const Output& result : program.results) binding.types[result.name] = Type::F64;
  TRIREME_TRY(ready, prepare(program, binding));
  return std::move(ready.expanded);
}

std::map<std::string, double> constants_of(const Program& program, const Check& check) {
  std::map<std::string, double> values = check.constants;
  for (const Operand& operand : program.operands)
    if (operand.constant && operand.fallback != no_node)
      values.try_emplace(operand.name, *as_number(program, operand.fallback));
  return values;
}

// A program with operands and gradients filled at random.
struct Trial {
  const Program& forward;
  const Check& check;
  Program ready;  // the forward
  std::map<std::string, double> constants;
  Values given, inputs;  // of the forward; of the backward

  Trial(const Program& forward, const Program& backward, const Check& check, unsigned seed)
      : forward(forward),
        check(check),
        ready(prepared(forward, check, check.absent).value()),
        constants(constants_of(forward, check)) {
    Evaluation evaluation(ready, check.rows, check.columns);
    std::mt19937 random(seed);
    std::normal_distribution<double> normal;
    for (const Operand& operand : ready.operands)
      if (!operand.constant) {
        given[operand.name].resize(evaluation.entries(operand.spread));
        for (double& value : given[operand.name]) value = normal(random);
      }
    Values results = evaluation.run(given, constants);
    inputs = given;
    inputs.insert(results.begin(), results.end());  // saved ones
    for (const Operand& operand : backward.operands) {
      auto it = results.find(operand.name.substr(1));
      if (operand.constant || it == results.end() || given.contains(operand.name)) continue;
      for (std::size_t k = 0; k < it->second.size(); ++k) inputs[operand.name].push_back(normal(random));
    }
  }

  // The sum of the results, weighted by their gradients, with one entry of an operand moved.
  double total(const std::string& name, std::size_t entry, double by) const {
    Values moved = given;
    moved[name][entry] += by;
    double total = 0;
    for (const auto& [result, values] : Evaluation(ready, check.rows, check.columns).run(moved, constants))
      if (auto it = inputs.find("d" + result); it != inputs.end())
        for (std::size_t k = 0; k < values.size(); ++k) total += values[k] * it->second[k];
    return total;
  }
  double difference(const std::string& name, std::size_t entry, double step) const {
    return (total(name, entry, step) - total(name, entry, -step)) / (2 * step);
  }
};

// Compares all gradients with central differences of the sum of results, weighted at random; once with saved results
// given, once with them recomputed.
void check_gradients(std::string_view text, const Check& check = {}) {
  SCOPED_TRACE(text);
  Program forward = parsed(text);
  Program backward = backward_of(forward, {.gradients = check.gradients, .absent = check.absent});
  Trial trial(forward, backward, check, 7);
  std::set<std::string> recomputed = check.absent;
  for (const Output& result : forward.results) recomputed.insert(result.name);
  for (const std::set<std::string>& absent : {check.absent, recomputed}) {
    Result<Program> gradient = prepared(backward, check, absent);
    ASSERT_TRUE(gradient) << gradient.error().message;
    Values gradients = Evaluation(*gradient, check.rows, check.columns).run(trial.inputs, trial.constants);
    for (const auto& [name, values] : trial.given) {
      auto it = gradients.find("d" + name);
      if (it == gradients.end()) continue;
      ASSERT_EQ(it->second.size(), values.size());
      for (std::size_t k = 0; k < values.size(); ++k) {
        double want = trial.difference(name, k, 1e-5 * std::max(1.0, std::fabs(values[k])));
        EXPECT_NEAR(it->second[k], want, 1e-6 * std::max(1.0, std::fabs(want))) << "d" << name << "[" << k << "]\n"
                                                                                << print(backward);
      }
    }
  }
}

// A default that is an expression is part of the program.
TEST(Differentiate, fault_51_gradients_flow_into_defaults) {
  const std::string_view text = "f(x[i,j], s[i] = mean(x), t[i] = s * s) -> (y[i,j])\ny = x * s + t";
  for (const std::set<std::string>& absent : std::vector<std::set<std::string>>{{}, {"s"}, {"t"}, {"s", "t"}})
    check_gradients(text, {.absent = absent});
  check_gradients("f(x[i,j], w[j], b[i,j] = x * w) -> (y[i,j])\ny = x + b", {.absent = {"b"}});
  const Program backward = backward_of(parsed(text), {.absent = {"s", "t"}});
  EXPECT_FALSE(backward.find_result("ds"));
  EXPECT_FALSE(backward.find_operand("s"));
  // Numbers have no gradient: their operand keeps its own.
  for (const char* number : {"1", "-1", "-(1)"}) {
    const Program program = parsed(fmt::format("f(x[i,j], w[j] = {}) -> (y[i,j])\ny = x * w", number));
    EXPECT_TRUE(backward_of(program, {.absent = {"w"}}).find_result("dw")) << number;
  }
}

// An absent operand whose type the program asks for stays for its type alone; a cast to it leaves values as they are.
TEST(Differentiate, fault_51_types_of_absent_operands) {
  const std::string_view text = "f(x[i,j], s[i] = mean(x)) -> (y[i,j])\ny = cast(x * s, s) * largest(s)";
  EXPECT_EQ(print(backward_of(parsed(text), {.absent = {"s"}})),
            "f_backward(dy[i,j] = 0, x[i,j], s[i] = 0) -> (dx[i,j])\n"
            "    dx = dy * (largest(s) * mean(x)) + largest(s) * mean(dy * x)\n");
}

// A program may be as deep as it is long: what walks it keeps its own stack.
TEST(Differentiate, AbsentOperandOfALongProgram) {
  std::string text = "f(x[i,j], w[j], b[i,j] = x * w) -> (y[i,j])\nv0 = b\n";
  constexpr int length = 30000;
  for (int k = 1; k <= length; ++k) text += fmt::format("v{} = v{} + w\n", k, k - 1);
  text += fmt::format("y = v{}", length);
  const Program backward = backward_of(parsed(text), {.absent = {"b"}});
  EXPECT_TRUE(backward.find_result("dx"));
  EXPECT_TRUE(backward.find_result("dw"));
  EXPECT_FALSE(backward.find_result("db"));
}

TEST(Differentiate, fault_57_any_result_can_take_a_gradient) {
  const std::string_view text = R"(
loss(x[i,j], w[j]) -> (loss[i], lse[i], top[i], y[i,j], total[])
    top   = amax(x)
    lse   = top + log(sum(exp(x - top)))
    loss  = lse - sum(x * w)
    y     = x * lse
    total = colsum(y * y)
)";
  using Names = std::set<std::string>;
  for (const Names& names :
       {Names{"loss", "lse"}, Names{"lse"}, Names{"loss", "lse", "top", "y", "total"}, Names{"total"}})
    check_gradients(text, {.gradients = names});
  const Program usual = backward_of(parsed(text));
  EXPECT_FALSE(usual.find_operand("dlse"));
  EXPECT_EQ(differentiate(parsed(text), {.gradients = Names{"lsf"}}).error().message,
            "loss has no result 'lsf' whose gradient could arrive; did you mean 'lse'?");
  EXPECT_EQ(differentiate(parsed(text), {.gradients = Names{}}).error().message,
            "loss: at least one result has a gradient");
  EXPECT_EQ(differentiate(parsed(text), {.absent = {"y"}}).error().message,
            "loss has no operand 'y' in memory that could be absent");
}

TEST(Differentiate, PickedRows) {
  const Program rope = parsed(R"(
rope(x[i,j], position[i], cosine[position, j], w[j]) -> (y[i,j])
    y = x * cosine * w
)");
  const Program backward = backward_of(rope);
  EXPECT_TRUE(backward.find_result("dx") && backward.find_result("dw"));
  EXPECT_FALSE(backward.find_result("dcosine") || backward.find_result("dposition"));
  const Program embedding = parsed("embedding(token[i], table[token, j]) -> (y[i,j])\ny = table");
  EXPECT_EQ(differentiate(embedding).error().message,
            "embedding: the rows of 'table' are picked by 'token', and there is no gradient to a picked table");
  // The gradient of what was written at a row is read there, and who picks stands first.
  const Program write = backward_of(parsed("put(x[i,j], slot[i]) -> (cache[slot, j])\ncache = x * x"));
  EXPECT_EQ(print(write),
            "put_backward(slot[i], dcache[slot, j] = 0, x[i,j]) -> (dx[i,j])\n    dx = 2 * (dcache * x)\n");
}

TEST(Differentiate, Fusions) {
  check_gradients(R"(
heads(x[i,j], w[i % heads, j], shift[i / 2, j], s[], b[i % heads], heads = 2, eps = 1e-6) -> (y[i,j], rstd[i])
    rstd = rsqrt(mean(x * x) + eps)
    y    = x * rstd * w * s + b + shift
)",
                  {.rows = 4});
  check_gradients(R"(
norm_rope(x[i,j], w[j], cosine[i, j % (n / 2)], sine[i, j % (n / 2)], eps = 1e-6) -> (y[i,j], rstd[i])
    rstd = rsqrt(mean(x * x) + eps)
    t    = x * rstd * w
    y    = t * cosine + select(j < n / 2, -1, 1) * rotate(t, n / 2) * sine
)",
                  {.columns = 6});
  check_gradients("f(x[i,j], w[j]) -> (y[i,j])\ny = rotate(x * w, 3) * x + rotate(w, 1)", {.columns = 5});
  check_gradients(R"(
group_norm(x[i,j], gamma[i % groups, j / pixels], groups = 2, pixels = 3, eps = 1e-5) -> (y[i,j])
    c = x - mean(x)
    y = c / sqrt(mean(square(c)) + eps) * gamma
)",
                  {.rows = 4, .columns = 6});
  check_gradients("poly(x[i,j], w[j], k[]) -> (y[i,j], z[])\ny = x * w + k\nz = colsum(y * y * w)");
  check_gradients("norm(w[j], x[i,j]) -> (y[i,j])\ny = x / sqrt(sum(w * w))");
  check_gradients("offset(x[i,j], e[]) -> (y[i,j], r[i])\nr = rsqrt(mean(x * x) + e * e)\ny = x * r");
  check_gradients("rows(x[i,j], s[], t[i / 2]) -> (z[i])\nz = sum(x) * s + t * s", {.rows = 5});
}

TEST(Differentiate, Pieces) {
  check_gradients("f(a[i,j], b[i,j]) -> (y[i,j])\ny = min(a, b) * max(a, b * 2)");
  check_gradients("f(a[i,j], b[i]) -> (y[i,j], m[i])\nm = amax(a * b) + amin(a)\ny = abs(a) * m");
  check_gradients("f(a[i,j], b[i,j]) -> (y[i,j])\ny = a / (1 + b * b) + fma(a, b, a) + sqrt(1 + a * a)");
  check_gradients("f(a[i,j], b[i,j]) -> (y[i,j])\ny = select(and(a < b, 0 < a), log(1 + a * a), b * tanh(a)) - a / 3");
  check_gradients("f(a[i,j], b[i,j]) -> (y[i,j])\ny = gelu(a) + relu(b) * softplus(a) + clamp(a, -1, b) + erf(a * b)");
  check_gradients("f(a[i,j], b[i,j]) -> (y[i,j])\ny = stop_gradient(3) * cast(a, y) * b - cast(b, a)");
}

double gradient_at(std::string_view text, const Values& inputs, const std::string& wanted, std::size_t entry,
                   std::int64_t columns) {
  Program backward = backward_of(parsed(text));
  Result<Program> ready = prepared(backward, {}, {});
  EXPECT_TRUE(ready) << ready.error().message;
  return Evaluation(*ready, 1, columns).run(inputs, {}).at(wanted).at(entry);
}

TEST(Differentiate, Groups) {
  check_gradients("f(x[i,j]) -> (y[i,j])\n y = x * rsqrt(mean(x * x, j / 3) + 0.1)\n", {.columns = 8});
  check_gradients(
      "f(x[i,j], w[j / g], v[i, j / g], g = 3) -> (y[i,j], r[i, j / g])\n"
      " r = sum(x * x, j / g) * w * w\n y = x * r * v\n",
      {.columns = 8});
  check_gradients(
      "f(x[i,j], s[i, j % g], t[], g = 3) -> (y[i,j], r[i, j % g])\n"
      " r = mean(x, j % g) * s * t + s * s\n y = x * sum(r, j / 2)\n",
      {.columns = 8, .gradients = std::set<std::string>{"y", "r"}});
  check_gradients(
      "f(x[i,j], s[i], w[j / 3]) -> (y[i])\n r = sum(x, j / 3) * s * w\n"
      " y = sum(entries(r * r)) + mean(entries(s * r)) + sum(entries(s, j / 3)) + sum(r)\n",
      {.columns = 8});
  check_gradients(
      "f(x[i,j]) -> (y[i,j], z[i])\n m = amax(x * x, j / 3)\n y = x / m\n"
      " z = amax(entries(m)) + amin(entries(m * m))\n",
      {.columns = 8});
  check_gradients(
      "f(x[i,j]) -> (y[i,j])\n e = exp(x)\n a = e / sum(e, j / 2)\n b = a / sum(a, j % 2)\n"
      " y = b / sum(b, j / 2)\n");
  check_gradients("f(x[i,j]) -> (y[i,j])\n y = x * rotate(mean(x, j / 3), 2) * sum(sum(x, j / 3), j / 3)\n",
                  {.columns = 8});
}

TEST(Differentiate, GroupsReadLikeATextbook) {
  Program forward = parse(
                        "f(x[i,j], gamma[j] = 1, eps = 1e-6) -> (y[i,j], rstd[i, j / 64])\n"
                        " rstd = rsqrt(mean(x * x, j / 64) + eps)\n y = x * rstd * gamma\n")
                        .value();
  EXPECT_EQ(print(backward_of(forward)),
            "f_backward(dy[i,j] = 0, x[i,j], gamma[j] = 1, rstd[i, j / 64] = rsqrt(mean(x * x, j / 64) + eps), "
            "eps = 1e-6) -> (\n        dx[i,j], dgamma[j])\n"
            "    g      = dy * gamma\n"
            "    dx     = rstd * (g - sum(g * x, j / 64) * rstd * rstd / sum(1, j / 64) * x)\n"
            "    dgamma = colsum(dy * x * rstd)\n");
}

TEST(Differentiate, Ties) {
  EXPECT_EQ(
      gradient_at("f(a[i,j], b[i,j]) -> (y[i,j])\ny = min(a, b)", {{"a", {1}}, {"b", {1}}, {"dy", {1}}}, "da", 0, 1),
      1);
  EXPECT_EQ(
      gradient_at("f(a[i,j], b[i,j]) -> (y[i,j])\ny = min(a, b)", {{"a", {1}}, {"b", {1}}, {"dy", {1}}}, "db", 0, 1),
      0);
  EXPECT_EQ(
      gradient_at("f(a[i,j], b[i,j]) -> (y[i,j])\ny = max(a, b)", {{"a", {1}}, {"b", {1}}, {"dy", {1}}}, "da", 0, 1),
      1);
  EXPECT_EQ(gradient_at("f(a[i,j]) -> (y[i,j])\ny = abs(a)", {{"a", {0}}, {"dy", {1}}}, "da", 0, 1), 0);
  EXPECT_EQ(gradient_at("f(a[i,j]) -> (y[i,j])\ny = relu(a)", {{"a", {0}}, {"dy", {1}}}, "da", 0, 1), 0);
  EXPECT_EQ(gradient_at("f(a[i,j]) -> (y[i,j])\ny = a + round(a) + floor(a)", {{"a", {2}}, {"dy", {1}}}, "da", 0, 1),
            1);
  EXPECT_EQ(gradient_at("f(a[i,j]) -> (m[i])\nm = amax(a)", {{"a", {2, 1, 2}}, {"m", {2}}, {"dm", {1}}}, "da", 0, 3),
            0.5);
  EXPECT_EQ(gradient_at("f(a[i,j]) -> (m[i])\nm = amax(a)", {{"a", {2, 1, 2}}, {"m", {2}}, {"dm", {1}}}, "da", 1, 3),
            0);
}

// j cancels in j / x / (2 * j), and with it what would make dx differ from column to column.
TEST(Differentiate, CancelledIndices) {
  Program backward = backward_of(parsed("f(x[i], z[i,j]) -> (y[i,j])\ny = max(amin(j / x / (2 * j)), 1) * z"));
  EXPECT_TRUE(backward.find_result("dx"));
}

// select(0 < a, log(a), 0) has no gradient at 0, whatever else the gradient shares with it.
TEST(Differentiate, Guards) {
  const char* text = "f(a[i,j]) -> (y[i,j])\ny = select(0 < a, log(a), 0) + select(1 < a, log(a) * 2, 0) + a";
  EXPECT_EQ(gradient_at(text, {{"a", {0}}, {"dy", {1}}}, "da", 0, 1), 1);
  EXPECT_EQ(gradient_at(text, {{"a", {2}}, {"dy", {1}}}, "da", 0, 1), 2.5);
}

TEST(Differentiate, SignatureOfGradients) {
  Program backward =
      backward_of(parsed("f(x[i,j], t[i], k[j], c = 2) -> (y[i,j])\ny = select(t < k, x * c, stop_gradient(x))"));
  ASSERT_EQ(backward.results.size(), 1u);
  EXPECT_EQ(backward.results[0].name, "dx");
  EXPECT_FALSE(differentiate(parsed("f(x[i,j]) -> (y[i,j])\ny = select(x < 0, 1, 2)")));
  Result<Program> clash = differentiate(parsed("f(x[i,j], dy[i,j]) -> (y[i,j])\ny = x * dy"));
  ASSERT_FALSE(clash);
  EXPECT_NE(clash.error().message.find("'dy'"), std::string::npos);
}

// largest(v) needs v's type: that of v's gradient where v itself is not there.
TEST(Differentiate, LargestOfWhatIsNotThere) {
  Program backward = backward_of(parsed("f(x[i,j]) -> (y[i,j], v[j])\nv = colsum(x)\ny = x * largest(v)"));
  EXPECT_NE(print(backward).find("largest(dv)"), std::string::npos) << print(backward);
  backward = backward_of(parsed("f(x[i,j]) -> (y[i,j], v[i])\nv = mean(x)\ny = x * v * largest(v)"));
  EXPECT_NE(print(backward).find("largest(v)"), std::string::npos) << print(backward);
  const Program unread = parsed("f(x[i,j]) -> (y[i,j], v[i])\nv = mean(x)\ny = (x + v) * largest(v)");
  backward = backward_of(unread);
  EXPECT_EQ(print(backward),
            "f_backward(dy[i,j] = 0, dv[i] = 0) -> (dx[i,j])\n    dx = largest(dv) * (dy + mean(dy))\n");
  EXPECT_EQ(*options_for(unread, backward, {}).gradients, std::set<std::string>{"y"});
}

// A gradient that does not arrive is there for largest alone: a cast to its result rounds as little as ever.
TEST(Differentiate, CastsToWhatIsNotThereStayOut) {
  const Program forward =
      parsed("f(x[i,j]) -> (y[i,j], s[i])\ns = amax(x) / largest(y)\nh = cast(x * x, y)\ny = h * stop_gradient(s)");
  Result<Program> of_s = differentiate(forward, {.gradients = std::set<std::string>{"s"}});
  ASSERT_TRUE(of_s) << of_s.error().message;
  EXPECT_NE(print(*of_s).find("largest(dy)"), std::string::npos) << print(*of_s);
  EXPECT_EQ(*options_for(forward, *of_s, {}).gradients, std::set<std::string>{"s"});
  const Program cast_only =
      parsed("f(x[i,j]) -> (y[i,j], s[i])\nh = cast(x * x, y)\ny = h * largest(y)\ns = sum(h * h)");
  of_s = differentiate(cast_only, {.gradients = std::set<std::string>{"s"}});
  ASSERT_TRUE(of_s) << of_s.error().message;
  EXPECT_EQ(print(*of_s).find("dy"), std::string::npos) << print(*of_s);
}

// Paths through a program grow like 2^depth; its backward grows like its depth, and no call stack does.
TEST(Differentiate, DeepPrograms) {
  Program program;
  program.name = "deep";
  Spread element{{true}, {true}};
  program.operands = {{.name = "x", .spread = element}, {.name = "w", .spread = element}};
  Formula x{&program, program.add(Op::Operand, {}, 0)}, w{&program, program.add(Op::Operand, {}, 1)}, y = x;
  for (int k = 0; k < 4000; ++k) y = select(y < w, y * y, x * y) - sum(y * w);
  program.results.push_back({.name = "y", .spread = element, .value = y.id});
  Result<Program> backward = differentiate(program);
  ASSERT_TRUE(backward) << backward.error().message;
  EXPECT_TRUE(verify(*backward));
  EXPECT_LT(backward->size(), 20 * program.size());
}

// Text to derived backward to text, near the language's limits. Generous, for machines that are busy or run this under
// a sanitizer: work that grows like the square of the lines takes minutes here.
TEST(Differentiate, fault_43_long_programs_take_seconds) {
  auto lines = [](int count, const std::function<std::string(const std::string& k, const std::string& next)>& line) {
    std::string text;
    for (int k = 0; k < count; ++k) text += line(std::to_string(k), std::to_string(k + 1));
    return text;
  };
  auto list = [](int count, const std::string& before, const std::string& after) {
    std::string text;
    for (int k = 0; k < count; ++k) text += (k ? ", " : "") + before + std::to_string(k) + after;
    return text;
  };
  std::string texts[] = {
      "f(x[i,j], c[i,j]) -> (y[i,j])\na0 = x\n" +
          lines(16000, [](auto k, auto next) { return "a" + next + " = a" + k + " * c + 1\n"; }) + "y = a16000\n",
      "f(x[i,j], c[i,j], " + list(8000, "b", "[i,j]") + ") -> (y[i,j])\na0 = x\n" +
          lines(8000, [](auto k, auto next) { return "a" + next + " = a" + k + " * c + b" + k + "\n"; }) +
          "y = a8000\n",
      "f(x[i,j], w[j]) -> (" + list(16000, "y", "[i,j]") + ")\n" +
          lines(16000, [](auto k, auto) { return "y" + k + " = x * w * " + k + "\n"; }),
      "f(x[i,j]) -> (" + list(8000, "y", "[i]") + ", z[i,j])\n" +
          lines(8000, [](auto k, auto) { return "y" + k + " = cast(sum(x * " + k + "), y" + k + ")\n"; }) + "z = x\n",
      "f(x[i,j], " + list(60000, "u", "[i,j]") + ") -> (y[i,j])\ny = x * x\n",
      "f(" + list(2000, "x", "[i,j]") + ") -> (" + list(2000, "y", "[i,j]") + ")\n" +
          lines(2000,
                [](auto k, auto) {
                  return "m" + k + " = amax(x" + k + ")\ne" + k + " = exp(x" + k + " - m" + k + ")\ns" + k +
                         " = sum(e" + k + ")\ny" + k + " = e" + k + " / s" + k + " + (m" + k + " + log(s" + k + "))\n";
                }),
      "f(x[i,j], w[i,j]) -> (y[i,j])\na0 = x\n" +
          lines(8000, [](auto k, auto next) { return "a" + next + " = max(a" + k + " * w, x)\n"; }) + "y = a8000\n",
  };
  for (const std::string& text : texts) {
    SCOPED_TRACE(text.substr(0, 60));
    auto begin = std::chrono::steady_clock::now();
    Result<Program> forward = parse(text);
    ASSERT_TRUE(forward) << forward.error().message;
    Result<Program> backward = differentiate(*forward);
    ASSERT_TRUE(backward) << backward.error().message;
    EXPECT_FALSE(print(*backward).empty());
    Binding binding;
    for (const Operand& operand : forward->operands) binding.types[operand.name] = Type::F32;
    for (const Output& result : forward->results) binding.types[result.name] = Type::F32;
    ASSERT_TRUE(prepare(*forward, binding));
    std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
    EXPECT_LT(taken.count(), 10);
  }
}

// A maximum over rows is a statistic: no gradient arrives for it, and none can be asked for.
TEST(Differentiate, MaximaOverRows) {
  const char* text = "f(x[i,j]) -> (y[i,j], m[j], t[])\ny = x * x\nm = colmax(abs(x))\nt = colmax(x)";
  EXPECT_EQ(print(backward_of(parsed(text))), "f_backward(dy[i,j] = 0, x[i,j]) -> (dx[i,j])\n    dx = 2 * (dy * x)\n");
  Result<Program> asked = differentiate(parsed(text), {.gradients = std::set<std::string>{"y", "t"}});
  ASSERT_FALSE(asked);
  EXPECT_EQ(asked.error().code, Code::Unsupported);
  EXPECT_EQ(asked.error().message,
            "f: no gradient arrives for 't', a colmax: it would be shared by the elements that equal the maximum, and "
            "how many they are is known when all rows are done");
  EXPECT_EQ(differentiate(parsed("f(x[i,j]) -> (m[j])\nm = colmax(x)")).error().code, Code::Unsupported);
}

bool is_explained(const Error& error) {
  return error.code == Code::InvalidProgram || error.message.find("a colmax") != std::string::npos;
}

// Random programs: where differences of two step sizes agree, the function is smooth enough to compare.
TEST(Differentiate, RandomPrograms) {
  int compared = 0, singular = 0, programs = 0;
  int count = std::getenv("LONG") ? 20000 : 400;
  for (int seed = 0; seed < count; ++seed) {
    Program forward = random_program({.seed = static_cast<std::uint64_t>(seed),
                                      .size = 4 + seed % 24,
                                      .columns_multiple = 4,
                                      .casts = false,
                                      .defaults = false,
                                      .special_numbers = false});
    bool stopped = false;  // differences go through these
    for (NodeId id = 0; id < forward.size(); ++id)
      for (Op op : {Op::StopGradient, Op::Floor, Op::Round}) stopped = stopped || forward[id].op == op;
    if (stopped) continue;
    Result<Program> derived = differentiate(forward);
    if (!derived) {
      EXPECT_TRUE(is_explained(derived.error())) << derived.error().message;
      continue;
    }
    Program backward = backward_of(forward);
    Check check{.rows = 3, .columns = 4};
    for (const Operand& operand : forward.operands)
      if (operand.constant && operand.fallback == no_node) check.constants[operand.name] = 0.7;
    Trial trial(forward, backward, check, static_cast<unsigned>(seed));
    Result<Program> gradient = prepared(backward, check, {});
    ASSERT_TRUE(gradient) << gradient.error().message << "\n" << print(forward);
    Values gradients = Evaluation(*gradient, check.rows, check.columns).run(trial.inputs, trial.constants);
    ++programs;
    for (const auto& [name, values] : trial.given) {
      auto it = gradients.find("d" + name);
      if (it == gradients.end()) continue;
      for (std::size_t k = 0; k < values.size(); ++k) {
        double size = std::fabs(trial.total(name, k, 0));
        double one = trial.difference(name, k, 1e-4), two = trial.difference(name, k, 1e-5);
        double tolerance = 1e-5 * std::max(1.0, std::fabs(one)) + 1e-9 * size;
        if (!(std::fabs(one - two) < tolerance) || !(size < 1e6)) continue;
        if (!std::isfinite(it->second[k])) {  // sqrt(max(x, 0)) * 0 and the like: the chain rule has no answer
          ++singular;
          continue;
        }
        ++compared;
        ASSERT_NEAR(it->second[k], two, 10 * tolerance) << "seed " << seed << ": d" << name << "[" << k << "]\n"
                                                        << print(forward) << print(backward);
      }
    }
  }
  EXPECT_GT(compared, 9 * programs);
  EXPECT_LT(singular, compared / 50);
}

// Casts, largest() and defaults in random places: a backward that verifies, or an error that says why there is none.
TEST(Differentiate, RandomTypes) {
  int derived = 0, count = std::getenv("LONG") ? 100000 : 3000;
  for (int seed = 0; seed < count; ++seed) {
    Program forward = random_program(
        {.seed = static_cast<std::uint64_t>(seed), .size = 4 + seed % 40, .columns_multiple = seed % 3 == 0 ? 12 : 1});
    SCOPED_TRACE(seed);
    Result<Program> backward = differentiate(forward);
    if (!backward) {
      EXPECT_TRUE(is_explained(backward.error())) << backward.error().message << "\n" << print(forward);
      continue;
    }
    ++derived;
    Status status = verify(*backward);
    ASSERT_TRUE(status) << status.error().message << "\n" << print(forward) << print(*backward);
  }
  EXPECT_GT(derived, count / 2);
}

}  // namespace
}  // namespace trireme

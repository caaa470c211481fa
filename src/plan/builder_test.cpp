// Programs written in C++ are those written as text; misuse is an error of build(), never a crash.
#include "trireme/builder.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <random>

#include "ir/groups.hpp"
#include "ir/verify.hpp"
#include "language/names.hpp"
#include "language/parse.hpp"
#include "language/print.hpp"
#include "language/print_expression.hpp"
#include "language/random_program.hpp"
#include "math/functions.hpp"
#include "math/reductions.hpp"
#include "passes/passes.hpp"
#include "plan/check.hpp"
#include "plan/ops.hpp"
#include "trireme/ops.hpp"

namespace trireme {
namespace {

std::string canonical(std::string_view text) { return RowProgram::parse(text).value().print(); }

std::string built(const ProgramBuilder& builder) {
  Result<RowProgram> program = builder.build();
  return program ? program->print() : "error: " + program.error().message;
}

TEST(Builder, rms_norm) {
  ProgramBuilder build("rms_norm");
  Expr x = build.operand("x[i,j]"), gamma = build.operand("gamma[j]", 1), eps = build.constant("eps", 1e-6),
       offset = build.constant("offset", 0);
  build.result("y[i,j]"), build.result("rstd[i]");
  Expr rstd = build.line("rstd", rsqrt(mean(x * x) + eps));
  build.line("y", x * rstd * (gamma + offset));
  EXPECT_EQ(built(build), RowProgram::named("rms_norm").value().print());
  EXPECT_EQ(built(build), ops::rms_norm().print());
}

TEST(Builder, cross_entropy) {
  ProgramBuilder build("cross_entropy");
  Expr x = build.operand("x[i,j]"), target = build.operand("target[i]"), ignore = build.constant("ignore", -100);
  build.result("loss[i]"), build.result("lse[i]");
  Expr top = build.line("top", amax(x));
  Expr lse = build.line("lse", top + log(sum(exp(x - top))));
  build.line("loss", select(target == ignore, 0, lse - sum(select(build.j() == target, x, 0))));
  EXPECT_EQ(built(build), ops::cross_entropy().print());
}

TEST(Builder, add_rms_norm_quant) {
  ProgramBuilder build("add_rms_norm_quant");
  Expr x = build.operand("x[i,j]"), residual = build.operand("residual[i,j]"), gamma = build.operand("gamma[j]", 1);
  Expr eps = build.constant("eps", 1e-6), offset = build.constant("offset", 0), least = build.constant("least", 1e-10);
  for (const char* each : {"q[i,j]", "h[i,j]", "scale[i]", "rstd[i]"}) build.result(each);
  Expr h = build.line("h", cast(x + residual, "h"));
  Expr rstd = build.line("rstd", rsqrt(mean(h * h) + eps));
  Expr y = build.line("y", h * rstd * (gamma + offset));
  Expr scale = build.line("scale", max(amax(abs(y)), least) / build.largest("q"));
  build.line("q", y * (1 / stop_gradient(scale)));
  EXPECT_EQ(built(build), ops::add_rms_norm_quant().print());
}

TEST(Builder, rms_norm_rope) {
  ProgramBuilder build("rms_norm_rope");
  Expr x = build.operand("x[i,j]"), gamma = build.operand("gamma[j]", 1);
  Expr cos = build.operand("cos[(i / heads) % positions, j % (n / 2)]");
  Expr sin = build.operand("sin[(i / heads) % positions, j % (n / 2)]");
  build.constant("heads"), build.constant("positions");  // an index may name what is declared after it
  Expr eps = build.constant("eps", 1e-6), offset = build.constant("offset", 0);
  build.result("y[i,j]"), build.result("rstd[i]");
  Expr rstd = build.line("rstd", rsqrt(mean(x * x) + eps)), j = build.j(), n = build.n();
  Expr t = build.line("t", x * rstd * (gamma + offset));
  build.line("y", t * stop_gradient(cos) + rotate(t, n / 2) * select(j < n / 2, -1, 1) * stop_gradient(sin));
  EXPECT_EQ(built(build), ops::rms_norm_rope().print());
}

TEST(Builder, conditions_and_signs_of_comparison) {
  ProgramBuilder build("signs");
  Expr x = build.operand("x[i,j]"), i = build.i();
  build.result("y[i,j]",
               select((x > 1 and x >= 2) || x < 3 || !(x <= 4) || x != 5, -x, select(x == i, -6, build["x"])));
  EXPECT_EQ(built(build), canonical("signs(x[i,j]) -> (y[i,j])\n y = select(or(or(or(and(x > 1, x >= 2), x < 3), "
                                    "not(x <= 4)), x != 5), -x, select(x == i, -6, x))"));
}

// The header's names are the language's; call() reaches the functions that have no name there.
TEST(Builder, cpp_names_are_those_of_the_language) {
  std::ifstream file(TRIREME_SOURCE_DIR "/include/trireme/builder.hpp");
  int found = 0;
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("inline Expr ") || line.starts_with("inline Expr call(")) continue;
    if (line.find("const Expr& group)") != std::string::npos) continue;  // groups are an argument more
    std::string name = line.substr(12, line.find('(') - 12);
    auto callable = callable_named(name);
    ASSERT_TRUE(callable) << name;
    EXPECT_EQ(std::count(line.begin(), line.begin() + line.find(')'), '&'), callable->arity) << line;
    EXPECT_NE(line.find("call(\"" + name + "\""), std::string::npos) << line;
    ++found;
  }
  EXPECT_GE(found, 30);
}

// Any program through the public builder, node by node, its lines in the order of the printed text.
class Replay {
 public:
  explicit Replay(const Program& program) : program_(program), builder_(program.name), made_(program.size()) {
    for (const Operand& each : program.operands)
      operands_.push_back(each.constant ? builder_.constant(each.name)
                                        : builder_.operand(each.name + spread_text(program, each.spread)));
    for (const Output& each : program.results) builder_.result(each.name + spread_text(program, each.spread));
    std::vector<bool> wanted = reachable(program);
    for (NodeId id = 0; id < program.size(); ++id) {
      if (!wanted[id]) continue;
      const std::string* name = program.name_of(id);
      bool free = name && is_plain_name(*name) && !program.find_operand(*name) && !program.find_result(*name);
      if (free && program[id].arity > 0 && taken_.insert(*name).second) builder_.line(*name, node(id));
      for (const Operand& each : program.operands)
        if (each.fallback == id) builder_.default_value(each.name, node(id));
      for (const Output& each : program.results)
        if (each.value == id) builder_.line(each.name, node(id));
    }
  }
  const ProgramBuilder& builder() const { return builder_; }

 private:
  Expr node(NodeId id) {
    if (made_[id]) return *made_[id];
    Expr made = make(id);
    made_[id] = made;
    return made;
  }

  Expr make(NodeId id) {
    const Node& node = program_[id];
    std::vector<Expr> args;
    for (NodeId arg : node) args.push_back(this->node(arg));
    switch (node.op) {
      case Op::Number: return builder_.number(node.number());
      case Op::Constant:
      case Op::Operand: return operands_[node.payload];
      case Op::RowIndex: return builder_.i();
      case Op::ColumnIndex: return builder_.j();
      case Op::ColumnCount: return builder_.n();
      case Op::Add: return args[0] + args[1];
      case Op::Sub: return args[0] - args[1];
      case Op::Mul: return args[0] * args[1];
      case Op::Div: return args[0] / args[1];
      case Op::Neg: return -args[0];
      case Op::Less: return args[0] < args[1];
      case Op::LessEqual: return args[0] <= args[1];
      case Op::Equal: return args[0] == args[1];
      case Op::And: return args[0] && args[1];
      case Op::Or: return args[0] || args[1];
      case Op::Not: return !args[0];
      case Op::Cast: return cast(args[0], program_.symbols[node.payload]);
      case Op::CastStochastic: return cast_stochastic(args[0], program_.symbols[node.payload], args[1]);
      case Op::Random: {
        const auto stream = static_cast<std::uint32_t>(node.payload);
        return node.arity == 1 ? random(args[0], stream) : random(args[0], stream, args[1], args[2]);
      }
      case Op::Largest: return builder_.largest(program_.symbols[node.payload]);
      case Op::Call: return call(functions()[node.payload].name, args);
      case Op::Reduce:
      case Op::ReduceSpread: return call(reductions()[node.payload].name, args);
      case Op::Group: {
        const GroupReduction kind = group_of(node);
        const Expr j = builder_.j(), group = kind.wraps ? j % args[1] : j / args[1];
        const std::string_view name = facts(kind.op).name;
        return kind.entries ? call(name, {entries(args[0], group)}) : call(name, {args[0], group});
      }
      default: return call(facts(node.op).name, args);
    }
  }

  const Program& program_;
  ProgramBuilder builder_;
  std::vector<std::optional<Expr>> made_;
  std::vector<Expr> operands_;
  std::set<std::string> taken_;
};

// From the printed text, whose nodes stand in the order of its lines.
void expect_replayed(const std::string& text) {
  Program program = parse(text).value();
  EXPECT_EQ(built(Replay(program).builder()), text);
}

TEST(Builder, every_operator_and_its_backward) {
  for (const OperatorText& each : operator_texts()) {
    RowProgram forward = RowProgram::named(each.name).value();
    expect_replayed(forward.print());
    expect_replayed(forward.differentiate().value().print());
  }
}

TEST(Builder, random_programs) {
  for (int seed = 0; seed < (std::getenv("LONG") ? 20000 : 300); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomProgram options{.seed = static_cast<std::uint64_t>(seed), .size = seed % 61};
    options.columns_multiple = seed % 3 == 0 ? 12 : 1;
    options.seeds = seed % 4 == 1;
    expect_replayed(print(random_program(options)));
    if (HasFailure()) return;
  }
}

std::string mistake(const std::function<void(ProgramBuilder&, Expr x)>& make) {
  ProgramBuilder build("p");
  Expr x = build.operand("x[i,j]");
  make(build, x);
  Result<RowProgram> program = build.build();
  if (program) return "built: " + program->print();
  EXPECT_EQ(program.error().code, Code::InvalidProgram);
  EXPECT_EQ(build.build().error().message, program.error().message);
  return program.error().message;
}

#define EXPECT_MISTAKE(message, ...) \
  EXPECT_EQ(mistake([&]([[maybe_unused]] ProgramBuilder & build, [[maybe_unused]] Expr x) __VA_ARGS__), message)

TEST(Builder, misuse_is_reported_by_build) {
  EXPECT_MISTAKE("p: there is no result; declare one with result(\"y[i,j]\", value)", {});
  EXPECT_MISTAKE("p: the result 'y' is never assigned", { build.result("y[i,j]"); });
  EXPECT_MISTAKE("p: '+' was given an Expr that was never made", { build.result("y[i,j]", x + Expr()); });
  EXPECT_MISTAKE("p: 'y' was given an Expr that was never made", { build.result("y[i,j]", Expr()); });
  EXPECT_MISTAKE(
      "p: 'y' was given what came of plain numbers alone, or of an Expr that was never made; write "
      "builder.number(2) / 3",
      { build.result("y[i,j]", Expr(2) / 3); });
  EXPECT_MISTAKE("p: comparisons do not chain; write a < b && b < c",
                 { build.result("y[i,j]", select(x < 1 < 2, 1, 0)); });
  EXPECT_MISTAKE("p: '*' was given a condition as its argument 2, not a value; select(condition, 1, 0) makes one of it",
                 { build.result("y[i,j]", x * (x < 1)); });
  EXPECT_MISTAKE("p: 'select' needs a condition as its argument 1, such as a < b",
                 { build.result("y[i,j]", select(x, 1, 0)); });
  EXPECT_MISTAKE("p: the result 'y' is a condition, not a value", { build.result("y[i,j]", x < 1); });
  EXPECT_MISTAKE("p: unknown name 'gama'; did you mean 'gamma'?", {
    build.operand("gamma[j]");
    build.result("y[i,j]", x * build["gama"]);
  });
  EXPECT_MISTAKE("p: unknown function 'sigmod'; did you mean 'sigmoid'?",
                 { build.result("y[i,j]", call("sigmod", {x})); });
  EXPECT_MISTAKE("p: 'exp' takes 1 argument, found 2", { build.result("y[i,j]", call("exp", {x, x})); });
  EXPECT_MISTAKE("p: 'bits_add' belongs to bound programs, whose compute type is known", {
    build.result("y[i,j]", call("bits_add", {x, x}));
  });
  EXPECT_MISTAKE("p: 'cast' takes the name of an operand or result: cast(value, \"x\"), builder.largest(\"q\")", {
    build.result("y[i,j]", call("cast", {x, x}));
  });
  EXPECT_MISTAKE("p: cast names 'ress', which is neither an operand in memory nor a result; did you mean 'res'?",
                 { build.result("res[i,j]", cast(x, "ress")); });
  EXPECT_MISTAKE("p: largest needs the name of an operand or result", { build.result("y[i,j]", build.largest("")); });
  EXPECT_MISTAKE("p: 'x' is already defined", { build.operand("x[j]"); });
  EXPECT_MISTAKE("p: 'y' is already defined", {
    build.result("y[i,j]", x);
    build.line("y", x);
  });
  EXPECT_MISTAKE("p: 'exp' is no name for a line, or is reserved", { build.line("exp", x); });
  EXPECT_MISTAKE("p: 'n' is no name for a constant", { build.constant("n"); });
  EXPECT_MISTAKE("p: '+' was given a colsum, which is the whole value of a result and nothing else's",
                 { build.result("y[j]", colsum(x) + 1); });
  EXPECT_MISTAKE("p: colsum stands only as the whole value of a result, and 't' is none",
                 { build.line("t", colsum(x)); });
  EXPECT_MISTAKE("p: colmax stands only as the whole value of a result, and 't' is none",
                 { build.line("t", colmax(x)); });
  EXPECT_MISTAKE("p: the result 'y' needs a colsum or a colmax as its value", { build.result("y[j]", x); });
  EXPECT_MISTAKE("p: the result 'y' is spread narrower than its value", { build.result("y[i]", x); });
  EXPECT_MISTAKE("p: the result 'y' is used before it is assigned", {
    build.result("y[i,j]");
    build.line("y", x + build["y"]);
  });
  EXPECT_MISTAKE("p: the default of 'd' is spread wider than it", {
    build.operand("d[]", x);
    build.result("y[i,j]", x);
  });
  EXPECT_MISTAKE("p: the default of 'd' reads an operand that does not stand before it", {
    Expr d = build.operand("d[i,j]");
    build.default_value("d", d + 1);
    build.result("y[i,j]", d);
  });
  EXPECT_MISTAKE("p: 'gama' is neither an operand nor a constant", { build.default_value("gama", 1); });
  EXPECT_MISTAKE("p: 'g' has a default already", {
    build.operand("g[]", 1);
    build.default_value("g", 1);
  });
}

TEST(Builder, wrong_declarations_are_reported_by_build) {
  auto no_declaration = [](const std::string& text) {
    return "p: '" + text +
           "' declares nothing; write a name that is not reserved and its spread, such as x[i,j], gamma[j], rstd[i], "
           "scale[] or w[i % heads, j]";
  };
  for (std::string text : {"y", "", "[i,j]", "y[i,j", "y[i,j] = 1", "y[i], z[j]", "y[i]) -> (z[i]", "exp[i,j]", "y[i#]",
                           "y[i\n]", "2y[i]", "y [i]"}) {
    EXPECT_MISTAKE(no_declaration(text), { build.operand(text); });
    EXPECT_MISTAKE(no_declaration(text), { build.result(text, x); });
  }
  EXPECT_MISTAKE("1:18: the row's index stands first: [i,j]\n  p(x[i,j]) -> (y[j,i])\n                   ^",
                 { build.result("y[j,i]", x); });
  EXPECT_MISTAKE(
      "1:17: 'heads' is not a constant of this signature\n  p(x[i,j], w[i % heads, j]) -> (y[i,j])\n                  "
      "^",
      {
        build.operand("w[i % heads, j]");
        build.result("y[i,j]", x);
      });
}

TEST(Builder, builders_do_not_mix) {
  ProgramBuilder one("one"), other("other");
  Expr a = one.operand("a[i,j]"), b = other.operand("b[i,j]");
  one.result("y[i,j]", a + b);
  other.result("y[i,j]", b);
  std::string message = "'+' mixes the programs 'one' and 'other': an expression belongs to the builder that made it";
  EXPECT_EQ(one.build().error().message, "one: " + message);
  EXPECT_EQ(other.build().error().message, "other: " + message);
}

TEST(Builder, expressions_and_copies_outlive_builders) {
  Expr kept;
  std::optional<ProgramBuilder> copy;
  {
    ProgramBuilder build("p");
    kept = build.operand("x[i,j]");
    copy = std::move(build);
    build.result("z[i,j]", kept);  // NOLINT: a moved-from builder is the same builder
  }
  copy->result("y[i,j]", exp(kept));
  EXPECT_EQ(built(*copy), canonical("p(x[i,j]) -> (z[i,j], y[i,j])\n z = x\n y = exp(x)"));
  copy.reset();
  Expr lonely = kept * kept;  // its program is still there, although nobody can ask for it
  Expr moved = std::move(kept), sum = kept + lonely + moved;
}

TEST(Builder, limits) {
  ProgramBuilder deep("deep");
  Expr x = deep.operand("x[i,j]"), chain = x;
  for (int k = 0; k < 20000; ++k) chain = chain * x + k;
  deep.result("y[i,j]", chain);
  ASSERT_TRUE(deep.build()) << deep.build().error().message;
  for (int k = 0; k < 10000; ++k) chain = chain * x + k;
  deep.result("z[i,j]", chain);
  EXPECT_EQ(deep.build().error().message, "deep: the program has more than 65536 nodes");

  ProgramBuilder wide("wide");
  Expr value = wide.operand("x[i,j]");
  for (int k = 0; k < 40; ++k) value = value + value;  // 2^40 if written as a tree
  wide.result("y[i,j]", value);
  EXPECT_TRUE(wide.build());
}

// Whatever is called in whatever order, build() answers.
TEST(Builder, random_misuse) {
  constexpr const char* texts[] = {
      "x[i,j]", "g[j]", "r[i]", "s[]",    "w[i % h, j]", "w[i / 0]", "h",  "x",
      "y[i,j]", "z[j]", "n",    "y[j,i]", "i[i]",        "",         "[[", "q[(i / 2) % n, j]"};
  int good = 0, rounds = std::getenv("LONG") ? 1000000 : 20000;
  for (int seed = 0; seed < rounds; ++seed) {
    std::mt19937 dice(static_cast<unsigned>(seed));
    auto below = [&](std::size_t count) { return static_cast<std::size_t>(dice() % count); };
    ProgramBuilder builders[] = {ProgramBuilder("one"), ProgramBuilder("two")};
    std::vector<Expr> made = {1.0, builders[0].operand("a[i,j]")};
    auto text = [&] { return texts[below(std::size(texts))]; };
    std::vector<std::string_view> names = callable_names();
    for (std::size_t k = 0; k < 3 + below(10); ++k) {
      auto some = [&] { return below(40) == 0 ? Expr() : made[below(made.size())]; };
      ProgramBuilder& build = builders[below(30) == 0];
      switch (below(14)) {
        case 0: made.push_back(below(2) ? build.operand(text()) : build.operand(text(), some())); break;
        case 1: made.push_back(below(2) ? build.constant(text()) : build.constant(text(), 2)); break;
        case 2: made.push_back(build.result(text(), some())); break;
        case 3: build.result(text()); break;
        case 4: made.push_back(build.line(text(), some())); break;
        case 5: made.push_back(build[text()]); break;
        case 6: made.push_back(some() < some()); break;
        case 7: made.push_back(some() + some()); break;
        case 8: made.push_back(cast(some(), text())); break;
        case 9: made.push_back(some() != some() && some() >= some()); break;
        case 10: made.push_back(below(2) ? build.i() : build.largest(text())); break;
        default: {
          std::vector<Expr> args;
          for (std::size_t count = below(4); args.size() < count;) args.push_back(some());
          made.push_back(call(names[below(names.size())], args));
        }
      }
    }
    if (below(2)) builders[0].result("result[i,j]", made.back());
    for (const ProgramBuilder& build : builders) {
      Result<RowProgram> program = build.build();
      if (!program) {
        ASSERT_EQ(program.error().code, Code::InvalidProgram);
        ASSERT_FALSE(program.error().message.empty());
        continue;
      }
      ++good;
      ASSERT_TRUE(verify(program->graph()));
    }
  }
  EXPECT_GT(good, rounds / 500);
}

TEST(Operators, each_is_a_function) {
  EXPECT_EQ(ops::rms_norm().name(), "rms_norm");
  EXPECT_EQ(ops::swiglu().print(), RowProgram::named("swiglu").value().print());
  EXPECT_EQ(ops::all().size(), RowProgram::names().size());
  for (std::size_t k = 0; k < ops::all().size(); ++k) EXPECT_EQ(ops::all()[k]().name(), RowProgram::names()[k]);
}

}  // namespace
}  // namespace trireme

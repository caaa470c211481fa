// Groups of columns: what is parsed prints as it was written, and a reduction's domain is in its node.
#include "ir/groups.hpp"

#include <gtest/gtest.h>

#include "ir/verify.hpp"
#include "language/parse.hpp"
#include "language/print.hpp"
#include "trireme/builder.hpp"

namespace trireme {
namespace {

TEST(Groups, PrintAsTheyWereWritten) {
  const std::string program =
      "f(x[i,j], w[j / g] = 1, s[i, j % 4], g = 32) -> (y[i,j], scale[i, j / g], t[i], u[i, j % 4], c[i, j / 2])\n"
      "    scale = amax(abs(x), j / g) * w\n"
      "    y     = x / scale - mean(x, j % (n / 2))\n"
      "    u     = sum(x, j % 4) * s\n"
      "    t     = sum(entries(scale)) + mean(entries(1, j / (n / 2))) + amin(entries(u))\n"
      "    c     = colsum(x)\n";
  Result<Program> parsed = parse(program);
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_TRUE(verify(*parsed));
  EXPECT_EQ(print(*parsed), program);
}

TEST(Groups, KeepTheirDomainWhateverTheirArgument) {
  Program program = parse("f(x[i,j]) -> (y[i,j])\n y = x * sum(2, j / 8) + sum(entries(3, j % 8))\n").value();
  std::vector<GroupReduction> found;
  for (NodeId id = 0; id < program.size(); ++id)
    if (program[id].op == Op::Group) found.push_back(group_of(program[id]));
  ASSERT_EQ(found.size(), 2u);
  EXPECT_FALSE(found[0].wraps || found[0].entries);
  EXPECT_TRUE(found[1].wraps && found[1].entries);
}

TEST(Groups, SpreadsAreEqualWhereIndicesAre) {
  Program program = parse(
                        "f(x[i,j], a[i, j / 8], r[i]) -> (y[i,j])\n p = sum(x, j / 8)\n q = sum(x, j % 8)\n"
                        " s = p + a * r\n t = p + q\n u = rotate(p, 1)\n y = s + t + u\n")
                        .value();
  ColumnSpreads spreads(program);
  auto of = [&](std::string_view name) {
    for (const auto& [id, given] : program.names())
      if (given == name) return spreads[id];
    return ColumnSpread{};
  };
  EXPECT_TRUE(of("p").is_group());
  EXPECT_TRUE(of("p") == of("s"));
  EXPECT_FALSE(of("p") == of("q"));
  EXPECT_TRUE(of("t").is_element());
  EXPECT_TRUE(of("u").is_element());
}

TEST(Groups, ParenthesesAroundEntriesMeanNothing) {
  const std::string head = "f(x[i,j]) -> (y[i])\n    y = ";
  EXPECT_EQ(print(parse(head + "sum(((entries(amax(x, j / 8)))))\n").value()),
            print(parse(head + "sum(entries(amax(x, j / 8)))\n").value()));
  const Result<Program> wrong = parse(head + "sum((entries(amax(x, j / 8))\n");
  ASSERT_FALSE(wrong);
  EXPECT_NE(wrong.error().message.find("')'"), std::string::npos) << wrong.error().message;
}

TEST(Groups, AreWrittenInCpp) {
  ProgramBuilder build("f");
  Expr x = build.operand("x[i,j]"), g = build.constant("g", 32);
  Expr j = build.j();
  build.result("y[i,j]"), build.result("scale[i, j / g]"), build.result("t[i]");
  Expr scale = build.line("scale", amax(abs(x), j / g));
  build.line("y", x / scale + mean(x, j % 4));
  build.line("t", sum(entries(scale, j / g)));
  Result<std::string> made = build.text();
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(*made,
            "f(x[i,j], g = 32) -> (y[i,j], scale[i, j / g], t[i])\n"
            "    scale = amax(abs(x), j / g)\n"
            "    y     = x / scale + mean(x, j % 4)\n"
            "    t     = sum(entries(scale))\n");
}

TEST(Groups, MistakesInCppAreTold) {
  auto message = [](auto&& write) {
    ProgramBuilder build("f");
    Expr x = build.operand("x[i,j]");
    build.result("y[i,j]", write(build, x));
    return build.text().error().message;
  };
  EXPECT_NE(message([](ProgramBuilder&, Expr x) { return sum(x, x); }).find("group of columns"), std::string::npos);
  EXPECT_NE(message([](ProgramBuilder& b, Expr x) { return x * (b.j() % 4); }).find("index of groups"),
            std::string::npos);
  EXPECT_NE(message([](ProgramBuilder& b, Expr x) { return x + entries(x, b.j() / 4); }).find("index of groups"),
            std::string::npos);
  EXPECT_NE(message([](ProgramBuilder& b, Expr x) { return sum(entries(x, b.j() / 4)); }).find("entries"),
            std::string::npos);
}

}  // namespace
}  // namespace trireme

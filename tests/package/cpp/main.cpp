// Against an installed Trireme: RMS normalisation of one row, through a plan and in one call; a program of our own.
#include <cstdio>
#include <trireme/builder.hpp>
#include <trireme/ops.hpp>
#include <trireme/plan.hpp>

int main() {
  using namespace trireme;
  float x[4] = {1, 1, 1, 1}, y[4] = {}, z[4] = {};
  Plan plan = Plan::create(Device::cpu().value(), {.program = ops::rms_norm(),
                                                   .shape = {1, 4},
                                                   .constants = {{"eps", 3}},
                                                   .absent = {"gamma"},
                                                   .results = {{"y"}}})
                  .value();
  Args args = plan.args();
  args["x"] = View{x}, args["y"] = View{y};
  plan.run(args).value();
  run("rms_norm", {{"x", View{x, Type::F32, {1, 4}}}, {"y", View{z, Type::F32, {1, 4}}}}, {.constants = {{"eps", 3}}})
      .value();
  ProgramBuilder build("twice");
  Expr a = build.operand("a[i,j]");
  build.result("b[i,j]", a + a);
  bool built = build.build().value().print() == "twice(a[i,j]) -> (b[i,j])\n    b = a + a\n";
  bool right = built && y[0] == 0.5f && y[3] == 0.5f && z[0] == 0.5f && z[3] == 0.5f;
  std::printf("%s\n", right ? "right" : "wrong");
  return right ? 0 : 1;
}

// Against an installed Trireme: RMS normalisation of one row, through a plan and in one call; a program of our own.
#include <cstdio>
#include <stdexcept>
#include <trireme/builder.hpp>
#include <trireme/ops.hpp>
#include <trireme/plan.hpp>

std::string name_of_a_wrong_program();  // without_exceptions.cpp

int main(int count, char**) {
  using namespace trireme;
  if (count > 1) return name_of_a_wrong_program().empty();  // nobody catches: the process ends with the message
  bool caught = false;
  try {
    caught = RowProgram::parse("wrong").value().name().empty();
  } catch (const std::runtime_error&) {
    caught = true;
  }
  const float x[4] = {1, 1, 1, 1};
  float y[4] = {}, z[4] = {};
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
  bool right = caught && built && y[0] == 0.5f && y[3] == 0.5f && z[0] == 0.5f && z[3] == 0.5f;
  std::printf("%s\n", right ? "right" : "wrong");
  return right ? 0 : 1;
}

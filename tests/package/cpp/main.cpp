// Against an installed Trireme: RMS normalisation of one row, through a plan and in one call.
#include <cstdio>
#include <trireme/plan.hpp>

int main() {
  using namespace trireme;
  float x[4] = {1, 1, 1, 1}, y[4] = {}, z[4] = {};
  Plan plan = Plan::create(Device::cpu().value(), {.program = RowProgram::named("rms_norm").value(),
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
  bool right = y[0] == 0.5f && y[3] == 0.5f && z[0] == 0.5f && z[3] == 0.5f;
  std::printf("%s\n", right ? "right" : "wrong");
  return right ? 0 : 1;
}

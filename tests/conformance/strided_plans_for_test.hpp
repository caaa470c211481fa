// For tests: plans that are made for some strides, run with those and with others, against contiguous arrays.
#pragma once
#include <cstdlib>

#include "plan/plan_for_test.hpp"

namespace trireme {

// An f32 matrix in memory that its strides, which may be negative, just fit.
struct Placed {
  Dims shape, strides;
  Floats memory;
  std::int64_t first = 0;

  Placed(const Dims& shape, const Dims& strides, const Floats& rows = {}) : shape(shape), strides(strides) {
    std::int64_t reach = 1;
    for (std::size_t k = 0; k < 2; ++k) {
      reach += (shape[k] - 1) * std::abs(strides[k]);
      if (strides[k] < 0) first -= (shape[k] - 1) * strides[k];
    }
    memory.resize(static_cast<std::size_t>(reach));
    for (std::size_t k = 0; k < rows.size(); ++k) at(static_cast<std::int64_t>(k)) = rows[k];
  }
  float& at(std::int64_t entry) {  // row by row
    return memory[first + entry / shape[1] * strides[0] + entry % shape[1] * strides[1]];
  }
  View view() { return {memory.data() + first, Type::F32, shape, strides}; }
  Floats rows() {
    Floats values;
    for (std::int64_t k = 0; k < shape[0] * shape[1]; ++k) values.push_back(at(k));
    return values;
  }
};

// A plan is made for columns apart, and takes whatever strides do that: x and y with each of `all`.
inline void expect_other_strides(const Dims& shape, const Dims& made_for, const std::vector<Dims>& all,
                                 const std::string& told) {
  PlanOptions options{.program = rms_norm(), .shape = {shape[0], shape[1]}};
  options.strides = {{"x", made_for}, {"y", made_for}};
  Plan plan = Plan::create(cpu(), options).value();
  EXPECT_NE(plan.describe().find(told), std::string::npos) << plan.describe();
  Floats x = sampled(shape[0] * shape[1]), gamma = sampled(shape[1], "gamma"), rstd(shape[0]);
  Floats wanted = by_reference(x, shape[0], shape[1]).y;
  Workspace workspace(plan.workspace_bytes());
  for (const Dims& of_x : all)
    for (const Dims& of_y : all) {
      Placed from(shape, of_x, x), to(shape, of_y);
      Args args = plan.args();
      args["x"] = from.view(), args["y"] = to.view(), args["gamma"] = view(gamma), args["rstd"] = view(rstd);
      plan.run(args, {}, workspace.span()).value();
      EXPECT_TRUE(same_bits(to.rows(), wanted)) << print_strides(of_x) << ' ' << print_strides(of_y);
    }
}

// h lies on the residual, and is both stored and summed.
inline void expect_in_place(const Dims& shape, const Dims& strides, const std::string& told) {
  const Floats x = sampled(shape[0] * shape[1]), residual = sampled(shape[0] * shape[1], "residual");
  Floats gamma = sampled(shape[1], "gamma");
  auto run = [&](const Dims& lie, bool in_place) {
    PlanOptions options{.program = RowProgram::named("add_rms_norm").value(), .shape = {shape[0], shape[1]}};
    for (const char* name : {"x", "residual", "y", "h"}) options.strides[name] = lie;
    if (in_place) options.in_place = {{"h", "residual"}};
    Plan plan = Plan::create(cpu(), options).value();
    EXPECT_TRUE(lie[1] == 1 || plan.describe().find(told) != std::string::npos) << plan.describe();
    Placed a(shape, lie, x), b(shape, lie, residual), y(shape, lie), apart(shape, lie);
    Placed& h = in_place ? b : apart;
    Floats rstd(shape[0]);
    Args args = plan.args();
    args["x"] = a.view(), args["residual"] = b.view(), args["gamma"] = view(gamma), args["y"] = y.view();
    args["h"] = h.view(), args["rstd"] = view(rstd);
    Workspace workspace(plan.workspace_bytes());
    plan.run(args, {}, workspace.span()).value();
    return std::vector<Floats>{y.rows(), h.rows(), rstd};
  };
  const std::vector<Floats> plain = run({shape[1], 1}, false), apart = run(strides, false), over = run(strides, true);
  for (std::size_t k = 0; k < 3; ++k) {
    EXPECT_TRUE(same_bits(plain[k], apart[k])) << k;
    EXPECT_TRUE(same_bits(plain[k], over[k])) << k;
  }
}

}  // namespace trireme

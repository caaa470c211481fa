// The shapes that plans take: every rank, every suffix of axes, extents of every spread, packed operands; and each code
// of the errors.
#include <numeric>

#include "plan/plan_for_test.hpp"

namespace trireme {
namespace {

std::int64_t product(const Dims& shape) {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

// x and y have their axes in memory the other way round, with gaps: no two of them join.
TEST(PlanShapes, RanksOneToEightAndEverySuffixOfAxes) {
  const std::int64_t extents[max_rank] = {2, 3, 2, 3, 2, 2, 3, 5};
  for (std::size_t rank = 1; rank <= max_rank; ++rank)
    for (int axes = 1; axes <= static_cast<int>(rank); ++axes) {
      Dims shape(std::span(extents + max_rank - rank, rank)), strides = shape;
      std::int64_t reach = 1;
      for (std::size_t k = 0; k < rank; ++k) strides[k] = reach, reach = reach * shape[k] + 1;
      std::int64_t columns = product(Dims(std::span(shape.begin() + rank - axes, axes))),
                   rows = product(shape) / columns;
      Floats apart = sampled(reach), y(reach), rstd(rows), gamma = sampled(columns, "gamma"), x;
      auto place = [&](std::int64_t entry) {
        std::int64_t at = 0;
        for (std::size_t k = rank; k-- > 0; entry /= shape[k]) at += entry % shape[k] * strides[k];
        return at;
      };
      for (std::int64_t k = 0; k < rows * columns; ++k) x.push_back(apart[place(k)]);
      Plan plan =
          Plan::create(
              cpu(),
              {.program = rms_norm(), .shape = shape, .axes = last(axes), .strides = {{"x", strides}, {"y", strides}}})
              .value();
      Workspace workspace(plan.workspace_bytes());
      Args args = plan.args();
      args["x"] = view(apart, shape, strides), args["gamma"] = view(gamma);
      args["y"] = view(y, shape, strides), args["rstd"] = view(rstd);
      ASSERT_EQ(refusal(plan.run(args, {}, workspace.span())), "") << plan.line();
      Normalised wanted = by_reference(x, rows, columns);
      EXPECT_TRUE(same_bits(rstd, wanted.rstd)) << plan.describe();
      for (std::int64_t k = 0; k < rows * columns; ++k) ASSERT_EQ(y[place(k)], wanted.y[k]) << plan.describe();
    }
  expect_refused(Plan::create(cpu(), {.program = rms_norm(), .shape = {1, 1, 1, 1, 1, 1, 1, 1, 8}}),
                 Code::InvalidArgument, "1 to 8 axes, not 9");
}

// i / a has ceil(rows / a) entries, i % b has b, whether or not there are so many rows.
TEST(PlanShapes, ExtentsOfEverySpread) {
  RowProgram program = RowProgram::parse(
                           "spread(x[i,j], a[i / 4, j], b[i % 8, j % 3], c[(i / 2) % 3], d[j / 4], e[])"
                           " -> (y[i,j], da[i / 4], db[j % 5], all[])\n"
                           "    y = x * a + b * c + d * e\n"
                           "    da = colsum(y)\n    db = colsum(y)\n    all = colsum(y)\n")
                           .value();
  const std::map<std::string, Dims> wanted = {{"x", {6, 10}}, {"a", {2, 10}}, {"b", {8, 3}}, {"c", {3}},  {"d", {3}},
                                              {"e", {}},      {"y", {6, 10}}, {"da", {2}},   {"db", {5}}, {"all", {}}};
  std::vector<std::vector<Floats>> results;
  for (const Device& device : {Device::reference(), cpu()}) {
    Plan plan = Plan::create(device, {.program = program, .shape = {6, 10}}).value();
    ASSERT_EQ(plan.array_count(), wanted.size());
    Workspace workspace(plan.workspace_bytes());
    Args args = plan.args();
    std::vector<Floats>& memory = results.emplace_back();
    for (std::size_t k = 0; k < plan.array_count(); ++k) {
      Plan::Array array = plan.array(k);
      EXPECT_TRUE(array.shape == wanted.at(array.name)) << array.name;
      memory.push_back(sampled(product(array.shape), array.name.c_str()));
      args[array.name] = view(memory.back(), array.shape);
    }
    EXPECT_EQ(refusal(plan.run(args, {}, workspace.span())), "") << device.name();
    memory[0].pop_back();
    args["x"] = view(memory[0]);  // the last element counts
    expect_refused(plan.check(args), Code::BufferTooSmall, "240 bytes are needed");
    memory[0].push_back(0);
  }
  for (std::size_t k = 6; k < results[0].size(); ++k) EXPECT_TRUE(same_bits(results[0][k], results[1][k])) << k;
}

// gate and up as one projection leaves them: halves of a row, and the result over one of them.
TEST(PlanShapes, fault_10_PackedGateAndUp) {
  constexpr std::int64_t rows = 5, columns = 300;
  Floats packed = sampled(rows * 2 * columns), y(rows * columns), x, gate, apart(rows * columns);
  for (std::int64_t r = 0; r < rows; ++r) {
    gate.insert(gate.end(), &packed[r * 2 * columns], &packed[r * 2 * columns] + columns);
    x.insert(x.end(), &packed[r * 2 * columns] + columns, &packed[r * 2 * columns] + 2 * columns);
  }
  RowProgram swiglu = RowProgram::named("swiglu").value();
  auto half = [&](std::size_t from) {
    return View{packed.data() + from, Type::F32, {rows, columns}, {2 * columns, 1}, (packed.size() - from) * 4};
  };
  Plan plain = Plan::create(Device::reference(), {.program = swiglu, .shape = {rows, columns}}).value();
  Args plain_args = plain.args();
  plain_args["x"] = view(x), plain_args["gate"] = view(gate), plain_args["y"] = view(apart);
  plain.run(plain_args).value();
  Plan plan = Plan::create(cpu(), {.program = swiglu, .shape = {rows, columns}, .in_place = {{"y", "gate"}}}).value();
  Args args = plan.args();
  args["gate"] = half(0), args["x"] = half(columns), args["y"] = view(y);
  EXPECT_EQ(refusal(plan.run(args)), "");
  EXPECT_TRUE(same_bits(y, apart));
  args["y"] = half(columns);
  expect_refused(plan.check(args), Code::InvalidArgument, "in_place");
  args["y"] = half(0);
  EXPECT_EQ(refusal(plan.run(args)), "");
  for (std::int64_t r = 0; r < rows; ++r)
    EXPECT_EQ(0, std::memcmp(&packed[r * 2 * columns], &apart[r * columns], columns * sizeof(float)));
}

// Driver: cuda_plan_test.cpp. Internal: never.
TEST(PlanShapes, EachCodeIsProvoked) {
  using enum Code;
  expect_refused(RowProgram::parse("f(x[i,j]) -> (y[i,j])\n    y = x +\n"), InvalidProgram, "2:");
  expect_refused(Plan::create(cpu(), {.program = rms_norm(), .shape = {4, 0}}), InvalidArgument, "no columns");
  RowProgram backward = RowProgram::named("dynamic_tanh").value().differentiate().value();
  PlanOptions options{.program = backward, .shape = {std::int64_t{1} << 40, 256}};
  options.max_workspace_bytes = 0;
  if (has_kernels()) expect_refused(Plan::create(cpu(), options), Unsupported, "and 0 are allowed");
  options.max_workspace_bytes.reset();
  Plan plan = Plan::create(cpu(), options).value();
#if !defined(__SANITIZE_ADDRESS__)  // which ends the program
  if (has_kernels())
    expect_refused(plan.make_workspace(), OutOfMemory, "no memory for " + std::to_string(plan.workspace_bytes()));
#endif
  Floats x(1);
  Args args = plan.args();
  args["dy"] = View{x.data(), Type::F32, {}, {}, 4};
  expect_refused(plan.check(args), BufferTooSmall, "1125899906842624 bytes are needed");
  expect_refused(Device::named("abacus"), NoDevice, "no device named 'abacus'; there are: cpu, reference");
}

}  // namespace
}  // namespace trireme

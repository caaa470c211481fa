// Plans on awkward shapes and layouts: every width, beyond 2^31, any strides, in place and overlapping.
#include <sys/mman.h>

#include <cstdlib>
#include <map>

#include "plan/plan_for_test.hpp"

namespace trireme {
namespace {

TEST(Plan, fault_02_AwkwardColumns) {
  for (std::int64_t columns : {1, 2, 3, 31, 33, 541, 65537}) {
    Floats x = sampled(2 * columns), gamma = sampled(columns, "gamma"), y(x.size()), rstd(2);
    Plan plan = Plan::create(cpu(), {.program = rms_norm(), .shape = {2, columns}}).value();
    Args args = plan.args();
    args["x"] = view(x), args["gamma"] = view(gamma), args["y"] = view(y), args["rstd"] = view(rstd);
    plan.run(args).value();
    EXPECT_TRUE(same_bits(y, by_reference(x, 2, columns).y)) << columns;
  }
}

// One row, repeated by a stride of 0.
void expect_equal_rows(std::int64_t rows, std::int64_t columns) {
  Floats x = sampled(columns), rstd(rows);
  Plan plan = Plan::create(cpu(), {.program = rms_norm(),
                                   .shape = {rows, columns},
                                   .absent = {"gamma"},
                                   .results = {{"rstd"}},
                                   .strides = {{"x", {0, 1}}}})
                  .value();
  Args args = plan.args();
  args["x"] = view(x, {rows, columns}, {0, 1}), args["rstd"] = view(rstd);
  plan.run(args).value();
  float wanted = by_reference(x, 1, columns).rstd[0];
  for (float value : rstd) ASSERT_EQ(value, wanted);
}

TEST(Plan, fault_03_MoreThan2To31Elements) { expect_equal_rows((1 << 14) + 1, 1 << 17); }

TEST(Plan, fault_03_JustBelowAtAndAboveEachPower) {
  if (!std::getenv("LONG")) GTEST_SKIP() << "19 billion elements; LONG=1 runs it";
  for (std::int64_t rows : {1 << 15, 1 << 16})
    for (std::int64_t columns : {(1 << 16) - 1, 1 << 16, (1 << 16) + 1}) expect_equal_rows(rows, columns);
}

TEST(Plan, fault_03_ShapesBeyondReason) {
  constexpr std::int64_t big = std::int64_t{1} << 32;
  EXPECT_EQ(refusal(Plan::create(cpu(), {.program = rms_norm(), .shape = {big, 16}})), "");
  expect_refused(Plan::create(cpu(), {.program = rms_norm(), .shape = {big, big}}), Code::InvalidArgument, "2^57");
  expect_refused(Plan::create(cpu(), {.program = rms_norm(), .shape = {2, big}}), Code::InvalidArgument, "2^31");
}

TEST(Plan, fault_04_SmallViewWithAHugeOuterStride) {
  constexpr std::int64_t rows = 3, columns = 300, stride = (std::int64_t{1} << 31) + 5;
  constexpr std::size_t size = (rows - 1) * stride * sizeof(float) + columns * sizeof(float);
  void* mapped = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) GTEST_SKIP() << "no address space for " << size << " bytes";
  Floats x = sampled(rows * columns), gamma = sampled(columns, "gamma"), y(x.size()), rstd(rows);
  for (std::int64_t r = 0; r < rows; ++r)
    std::memcpy(static_cast<float*>(mapped) + r * stride, x.data() + r * columns, columns * sizeof(float));
  Plan plan = Plan::create(cpu(), {.program = rms_norm(), .shape = {rows, columns}}).value();
  Args args = plan.args();
  View far{mapped, Type::F32, {rows, columns}, {stride, 1}, size};
  args["x"] = far, args["gamma"] = view(gamma), args["y"] = view(y), args["rstd"] = view(rstd);
  plan.run(args).value();
  EXPECT_TRUE(same_bits(y, by_reference(x, rows, columns).y));
  far.bytes = size - 1;
  args["x"] = far;
  Status refused = plan.run(args);
  expect_refused(refused, Code::BufferTooSmall, std::to_string(size) + " bytes are needed");
  EXPECT_EQ(refused.error().needed, static_cast<std::int64_t>(size));
  EXPECT_EQ(refused.error().got, static_cast<std::int64_t>(size - 1));
  munmap(mapped, size);
}

TEST(Plan, fault_08_LastStrideNotOne) {
  constexpr std::int64_t rows = 5, columns = 270;
  Floats x = sampled(rows * columns), gamma = sampled(columns, "gamma"), turned(x.size()), y(x.size() * 2), rstd(rows);
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < columns; ++c) turned[c * rows + r] = x[r * columns + c];
  PlanOptions options{.program = rms_norm(), .shape = {rows, columns}};
  Plan plain = Plan::create(cpu(), options).value();
  Args args = plain.args();
  args["x"] = view(turned, {rows, columns}, {1, rows});
  expect_refused(plain.check(args), Code::Unsupported, "give these strides in .strides");
  options.strides = {{"x", {1, rows}}, {"y", {2 * columns, 2}}};
  Plan plan = Plan::create(cpu(), options).value();
  Args strided = plan.args();
  strided["x"] = view(turned), strided["gamma"] = view(gamma);  // strides as in the plan
  strided["y"] = view(y), strided["rstd"] = view(rstd);
  Workspace workspace(plan.workspace_bytes());
  plan.run(strided, {}, workspace.span()).value();
  Floats got;
  for (std::size_t k = 0; k < y.size(); k += 2) got.push_back(y[k]);
  EXPECT_TRUE(same_bits(got, by_reference(x, rows, columns).y));
  EXPECT_NE(plan.describe().find("slower"), std::string::npos);
}

TEST(Plan, fault_09_ExpandedNegativeAndUnflattenableStrides) {
  Floats row = sampled(40), gamma = sampled(40, "gamma"), x, y(240), rstd(6);
  for (int r = 0; r < 6; ++r) x.insert(x.end(), row.begin(), row.end());
  Plan plan = Plan::create(cpu(), {.program = rms_norm(), .shape = {2, 3, 40}}).value();
  Args args = plan.args();
  args["gamma"] = view(gamma), args["y"] = view(y), args["rstd"] = view(rstd);
  args["x"] = view(row, {2, 3, 40}, {0, 0, 1});
  plan.run(args).value();
  EXPECT_TRUE(same_bits(y, by_reference(x, 6, 40).y));

  x = sampled(240);
  Floats backwards = by_reference(x, 6, 40).y;
  args["x"] = View{x.data() + 200, Type::F32, {2, 3, 40}, {-120, -40, 1}, 160};
  plan.run(args).value();
  for (int r = 0; r < 6; ++r) EXPECT_EQ(0, std::memcmp(&y[r * 40], &backwards[(5 - r) * 40], 160));

  args["x"] = view(x, {2, 3, 40}, {0, 40, 1});
  expect_refused(plan.check(args), Code::Unsupported, "give these strides in .strides");
  args["x"] = view(x);
  args["y"] = view(y, {2, 3, 40}, {0, 0, 1});
  expect_refused(plan.check(args), Code::InvalidArgument, "share memory");
}

// Axes that do not flatten, rows and columns, expanded and backwards, on operands and results of every spread.
TEST(Plan, fault_09_AnyStrides) {
  constexpr std::int64_t a = 3, b = 4, c = 5, d = 14;
  struct Case {
    Dims x, y, rstd, gamma;
  };
  const Case cases[] = {
      {{600, 140, 14, 1}, {2000, 400, 60, 1}, {8, 2}, {14, 1}},  // two strides of rows
      {{0, 70, 14, 1}, {1000, -250, 14, 1}, {-4, 1}, {0, 1}},    // an expanded axis outside, y and rstd backwards
      {{280, 70, 1, 5}, {14, 42, 168, 3}, {1, 3}, {1, 5}},       // rows that do not make one axis
      {{-1, 3, 12, 60}, {1, 3, 12, -60}, {5, -1}, {-14, -1}},    // everything the other way round
      {{0, 0, 0, 0}, {280, 70, 14, 1}, {4, 1}, {0, 0}},          // one number
  };
  auto reaching = [](const Dims& shape, const Dims& strides, std::int64_t& first) {
    std::int64_t high = 0;
    first = 0;
    for (std::size_t k = 0; k < shape.size(); ++k) {
      std::int64_t far = (shape[k] - 1) * strides[k];
      (far < 0 ? first : high) += far < 0 ? -far : far;
    }
    return static_cast<std::size_t>(first + high + 1);
  };
  for (const Device& device : {cpu(), Device::reference()})
    for (const Case& each : cases) {
      std::map<std::string, Dims> strides = {{"x", each.x}, {"y", each.y}, {"rstd", each.rstd}, {"gamma", each.gamma}};
      std::map<std::string, Dims> shapes = {
          {"x", {a, b, c, d}}, {"y", {a, b, c, d}}, {"rstd", {a, b}}, {"gamma", {c, d}}};
      Plan plan =
          Plan::create(device, {.program = rms_norm(), .shape = {a, b, c, d}, .axes = last(2), .strides = strides})
              .value();
      EXPECT_NE(plan.sku().layout, "columns side by side");
      std::map<std::string, Floats> memory, dense;
      std::map<std::string, std::int64_t> firsts;
      Args args = plan.args();
      for (auto& [name, shape] : shapes) {
        Floats& m = memory[name] = sampled(reaching(shape, strides[name], firsts[name]), name.c_str());
        std::size_t from = static_cast<std::size_t>(firsts[name]);
        args[name] = View{m.data() + from, Type::F32, {}, {}, (m.size() - from) * sizeof(float)};
      }
      auto gather = [&](const std::string& name) {
        Floats values;
        const Dims &shape = shapes[name], &by = strides[name];
        std::int64_t count = 1;
        for (std::int64_t extent : shape) count *= extent;
        for (std::int64_t entry = 0; entry < count; ++entry) {
          std::int64_t place = firsts[name], rest = entry;
          for (std::size_t k = shape.size(); k-- > 0; rest /= shape[k]) place += rest % shape[k] * by[k];
          values.push_back(memory[name][place]);
        }
        return values;
      };
      Floats x = gather("x"), gamma = gather("gamma"), y(x.size()), rstd(a * b);
      Workspace workspace(plan.workspace_bytes());
      plan.run(args, {}, workspace.span()).value();
      Plan flat = Plan::create(Device::reference(), {.program = rms_norm(), .shape = {a * b, c * d}}).value();
      Args flat_args = flat.args();
      flat_args["x"] = view(x), flat_args["gamma"] = view(gamma), flat_args["y"] = view(y),
      flat_args["rstd"] = view(rstd);
      flat.run(flat_args).value();
      EXPECT_TRUE(same_bits(gather("y"), y)) << device.name() << ' ' << plan.describe();
      EXPECT_TRUE(same_bits(gather("rstd"), rstd)) << device.name() << ' ' << plan.describe();
      // The last element counts.
      std::size_t from = static_cast<std::size_t>(firsts["y"]), have = (memory["y"].size() - from) * sizeof(float);
      args["y"] = View{memory["y"].data() + from, Type::F32, {}, {}, have - 1};
      Status small = plan.check(args);
      expect_refused(small, Code::BufferTooSmall, "bytes are needed");
      EXPECT_EQ(small.error().needed, static_cast<std::int64_t>(have));
    }
}

// q, k and v inside one buffer: the plan is made for two strides of rows; fewer and other ones go, too.
TEST(Plan, fault_04_QInsideQkv) {
  constexpr std::int64_t tokens = 70, heads = 6, columns = 64, width = 3 * heads * columns;
  Floats qkv = sampled(tokens * width), y(tokens * heads * columns), gamma = sampled(columns, "gamma"), q;
  for (std::int64_t t = 0; t < tokens; ++t)
    q.insert(q.end(), qkv.begin() + t * width, qkv.begin() + t * width + heads * columns);
  Plan plan = Plan::create(cpu(), {.program = rms_norm(),
                                   .shape = {tokens, heads, columns},
                                   .results = {{"y"}},
                                   .in_place = {{"y", "x"}},
                                   .strides = {{"x", {width, columns, 1}}, {"y", {width, columns, 1}}},
                                   .threads = 3})
                  .value();
  Args args = plan.args();
  args["gamma"] = view(gamma);
  args["x"] = view(qkv), args["y"] = view(y, {tokens, heads, columns}, {heads * columns, columns, 1});
  plan.run(args).value();
  Floats wanted = by_reference(q, tokens * heads, columns).y;
  EXPECT_TRUE(same_bits(y, wanted));
  args["y"] = View{qkv.data() + heads * columns};  // over k
  plan.run(args).value();
  args["y"] = View{qkv.data()};  // in place
  plan.run(args).value();
  for (std::int64_t t = 0; t < tokens; ++t)
    for (std::int64_t part : {0, 1})
      ASSERT_EQ(0, std::memcmp(&qkv[t * width + part * heads * columns], &wanted[t * heads * columns],
                               heads * columns * sizeof(float)));
  args["y"] = View{qkv.data() + columns};  // heads one further on
  expect_refused(plan.check(args), Code::InvalidArgument, "in part");
}

TEST(Plan, fault_10_InPlaceOverlapAndHalves) {
  RowProgram program = RowProgram::named("add_rms_norm").value();
  for (std::int64_t columns : {7, 300, 5000}) {  // unrolled and in loops
    Floats x = sampled(3 * columns), residual = sampled(3 * columns, "residual"), gamma = sampled(columns, "gamma");
    Floats y(x.size()), h(x.size()), rstd(3), y2(x.size()), rstd2(3);
    auto run = [&](const Plan& plan, Floats& h, Floats& y) {
      Args args = plan.args();
      args["x"] = view(x), args["residual"] = view(residual), args["gamma"] = view(gamma);
      args["y"] = view(y), args["h"] = view(h), args["rstd"] = view(rstd);
      return plan.run(args);
    };
    PlanOptions options{.program = program, .shape = {3, columns}};
    Plan apart = Plan::create(cpu(), options).value();
    run(apart, h, y).value();
    expect_refused(run(apart, residual, y2), Code::InvalidArgument, ".in_place = {{\"h\", \"residual\"}}");
    options.in_place = {{"h", "residual"}};
    for (const Device& device : {cpu(), Device::reference()}) {
      residual = sampled(3 * columns, "residual");
      run(Plan::create(device, options).value(), residual, y2).value();
      EXPECT_TRUE(same_bits(y, y2)) << device.name() << ' ' << columns;
      EXPECT_TRUE(same_bits(h, residual)) << device.name() << ' ' << columns;
    }
  }

  Floats packed = sampled(4 * 64);
  Plan plan =
      Plan::create(cpu(), {.program = rms_norm(), .shape = {4, 32}, .absent = {"gamma"}, .results = {{"y"}}}).value();
  Args args = plan.args();
  auto half = [&](std::size_t from) {
    return View{packed.data() + from, Type::F32, {4, 32}, {64, 1}, (packed.size() - from) * sizeof(float)};
  };
  args["x"] = half(0), args["y"] = half(32);
  EXPECT_EQ(refusal(plan.run(args)), "");
  args["y"] = half(31);
  expect_refused(plan.check(args), Code::InvalidArgument, "in part");
  expect_refused(Plan::create(cpu(), {.program = RowProgram::named("rms_norm_rope").value(),
                                      .shape = {4, 32},
                                      .constants = {{"heads", 2}, {"positions", 2}},
                                      .in_place = {{"y", "x"}}}),
                 Code::Unsupported, "rotated");
}

}  // namespace
}  // namespace trireme

// Plans: bits against the reference device, every refusal, strides, overlap, threads, no allocation in run.
#include "trireme/plan.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <thread>

#include "plan/samples.hpp"

namespace {
std::atomic<long> allocations = 0;
}
long allocations_in_tests() { return allocations; }

// Counts what the plan's run allocates. Replaces the whole test program's; aligned forms too.
void* operator new(std::size_t bytes) {
  ++allocations;
  if (void* memory = std::malloc(bytes ? bytes : 1)) return memory;
  throw std::bad_alloc();
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  ++allocations;
  auto line = static_cast<std::size_t>(alignment);
  if (void* memory = std::aligned_alloc(line, (bytes + line) / line * line)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

namespace trireme {
namespace {

using Floats = std::vector<float>;

Floats sampled(std::size_t count, const char* name = "x") {
  Floats values(count);
  for (std::size_t k = 0; k < count; ++k)
    values[k] = static_cast<float>(sample_value(sample_draw(0, name, k), Type::F32, {}));
  return values;
}

View view(Floats& values, Dims shape = {}, Dims strides = {}) {
  return {values.data(), Type::F32, shape, strides, values.size() * sizeof(float)};
}

bool same_bits(const Floats& a, const Floats& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

RowProgram rms_norm() { return RowProgram::named("rms_norm").value(); }
Device cpu() { return Device::cpu().value(); }

// What the refusal says; empty if there is none.
template <typename T>
std::string refusal(const Result<T>& result) {
  return result ? "" : std::string(name(result.error().code)) + ": " + result.error().message;
}
template <typename T>
void expect_refused(const Result<T>& result, Code code, const std::string& part) {
  ASSERT_FALSE(result) << "not refused: " << part;
  EXPECT_EQ(name(result.error().code), name(code)) << result.error().message;
  EXPECT_NE(result.error().message.find(part), std::string::npos) << result.error().message;
}

// rms_norm of contiguous x by the reference device.
struct Normalised {
  Floats y, rstd;
};
Normalised by_reference(Floats x, std::int64_t rows, std::int64_t columns) {
  Normalised out{Floats(rows * columns), Floats(rows)};
  Floats gamma = sampled(columns, "gamma");
  Plan plan = Plan::create(Device::reference(), {.program = rms_norm(), .shape = {rows, columns}}).value();
  Args args = plan.args();
  args["x"] = view(x), args["gamma"] = view(gamma), args["y"] = view(out.y), args["rstd"] = view(out.rstd);
  plan.run(args).value();
  return out;
}

TEST(Plan, RunsWithTheReferencesBits) {
  Floats x = sampled(2 * 3 * 260), gamma = sampled(260, "gamma"), y(x.size()), rstd(6);
  Plan plan = Plan::create(cpu(), {.program = rms_norm(), .shape = {2, 3, 260}}).value();
  Args args = plan.args();
  args["x"] = view(x, {2, 3, 260}), args["gamma"] = view(gamma, {1, 1, 260});
  args["y"] = view(y), args["rstd"] = view(rstd, {2, 3, 1});
  EXPECT_EQ(refusal(plan.check(args)), "");
  plan.run(args).value();
  Normalised wanted = by_reference(x, 6, 260);
  EXPECT_TRUE(same_bits(y, wanted.y));
  EXPECT_TRUE(same_bits(rstd, wanted.rstd));
  EXPECT_EQ(plan.workspace_bytes(), 0u);
  EXPECT_EQ(plan.names(), (std::vector<std::string>{"x", "gamma", "y", "rstd"}));
  EXPECT_NE(plan.describe().find("6 rows of 260 columns"), std::string::npos) << plan.describe();
  EXPECT_EQ(plan.sku().types, "x=f32 gamma=f32 y=f32 rstd=f32");
  EXPECT_TRUE(plan.guarantee().across_batch);
  EXPECT_TRUE(plan.prepare());
}

TEST(Plan, SeveralAxesMakeARowAndRankOneIsOneRow) {
  Floats x = sampled(4 * 6), y(24), z(24), gamma = sampled(24, "gamma");
  PlanOptions options{.program = rms_norm(), .shape = {4, 6}, .axes = last(2), .results = {{"y"}}};
  Plan plan = Plan::create(cpu(), options).value();
  Args args = plan.args();
  args["x"] = view(x), args["gamma"] = view(gamma, {4, 6}), args["y"] = view(y);
  plan.run(args).value();
  options.shape = {24}, options.axes = last(1);
  Plan flat = Plan::create(cpu(), options).value();
  Args flat_args = flat.args();
  flat_args["x"] = view(x), flat_args["gamma"] = view(gamma), flat_args["y"] = view(z);
  flat.run(flat_args).value();
  EXPECT_TRUE(same_bits(y, z));
  EXPECT_TRUE(same_bits(y, by_reference(x, 1, 24).y));
}

TEST(Plan, RunAllocatesNothing) {
  for (bool backward : {false, true}) {
    RowProgram program = backward ? rms_norm().differentiate().value() : rms_norm();
    Plan plan = Plan::create(cpu(), {.program = program, .shape = {40, 5000}}).value();
    Workspace workspace(plan.workspace_bytes());
    Args args = plan.args();
    std::vector<Floats> memory;
    for (const std::string& name : plan.names()) {
      memory.push_back(sampled(40 * 5000, name.c_str()));
      args[name] = View{memory.back().data()};
    }
    long before = allocations;
    Status first = plan.run(args, {}, workspace.span()), second = plan.run(args, {}, workspace.span());
    args["x"] = View{memory[0].data()};
    Status third = plan.run(args, {}, workspace.span());
    long after = allocations;
    EXPECT_TRUE(first && second && third) << refusal(first);
    EXPECT_EQ(after - before, 0) << (backward ? "backward" : "forward");
    EXPECT_EQ(backward, plan.workspace_bytes() > 0);
  }
}

TEST(Plan, WhatNothingReadsMayBeLeftOut) {
  RowProgram backward = RowProgram::named("softmax").value().differentiate().value();  // reads y, not x
  Plan plan = Plan::create(cpu(), {.program = backward, .shape = {3, 33}}).value();
  Floats dy = sampled(99, "dy"), x = sampled(99), y = sampled(99, "y"), with(99), without(99);
  for (bool given : {true, false}) {
    Args args = plan.args();
    args["dy"] = view(dy), args["y"] = view(y), args["dx"] = view(given ? with : without);
    if (given) args["x"] = view(x);
    EXPECT_EQ(refusal(plan.run(args)), "");
  }
  EXPECT_TRUE(same_bits(with, without));
}

TEST(Plan, ThreadsGiveTheSameBits) {
  Floats x = sampled(37 * 300), gamma = sampled(300, "gamma");
  Normalised wanted = by_reference(x, 37, 300);
  auto in_order = [](void*, int count, ParallelFor::Body* body, void* context) {
    for (int k = count; k-- > 0;) body(context, k);
  };
  for (int threads : {1, 2, 5})
    for (bool lent : {false, true}) {
      PlanOptions options{.program = rms_norm(), .shape = {37, 300}, .threads = threads};
      if (lent) options.parallel_for.run = in_order;
      Plan plan = Plan::create(cpu(), options).value();
      Floats y(x.size()), rstd(37);
      Args args = plan.args();
      args["x"] = view(x), args["gamma"] = view(gamma), args["y"] = view(y), args["rstd"] = view(rstd);
      plan.run(args).value();
      EXPECT_TRUE(same_bits(y, wanted.y)) << threads;
    }
}

TEST(Plan, fault_01_ZeroRows) {
  RowProgram backward = rms_norm().differentiate().value();
  for (const Device& device : {cpu(), Device::reference()}) {
    Plan plan = Plan::create(device, {.program = backward, .shape = {0, 7}}).value();
    Floats gamma = sampled(7, "gamma"), dgamma(7, NAN);
    Args args = plan.args();
    args["gamma"] = view(gamma), args["dgamma"] = view(dgamma);
    Workspace workspace(plan.workspace_bytes());
    EXPECT_EQ(refusal(plan.run(args, {}, workspace.span())), "") << device.name();
    for (float value : dgamma) EXPECT_TRUE(value == 0 && !std::signbit(value)) << device.name();
    Plan forward = Plan::create(device, {.program = rms_norm(), .shape = {3, 0, 7}}).value();
    Args none = forward.args();
    none["gamma"] = view(gamma);
    EXPECT_EQ(refusal(forward.run(none)), "") << device.name();
  }
  expect_refused(Plan::create(cpu(), {.program = rms_norm(), .shape = {3, 0}}), Code::InvalidArgument, "no columns");
}

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

// One row of memory, expanded: 2^31 elements and a few more are read, few are written.
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

TEST(Plan, fault_29_MisuseIsRefused) {
  Plan plan = Plan::create(cpu(), {.program = rms_norm(), .shape = {4, 8}}).value();
  Floats x = sampled(32), gamma = sampled(8, "gamma"), y(32), rstd(4);
  auto refused = [&](Code code, const std::string& part, auto&& change) {
    Args args = plan.args();
    args["x"] = view(x), args["gamma"] = view(gamma), args["y"] = view(y), args["rstd"] = view(rstd);
    ASSERT_EQ(refusal(plan.check(args)), "");
    change(args);
    expect_refused(plan.run(args), code, part);
  };
  using enum Code;
  refused(InvalidArgument, "did you mean 'rstd'?", [&](Args& args) { args["rstdd"] = view(rstd); });
  refused(InvalidArgument, "rstd: a null pointer for a result", [](Args& args) { args["rstd"] = View{}; });
  refused(InvalidArgument, "x: a null pointer for an operand", [](Args& args) { args["x"] = View{}; });
  refused(InvalidArgument, "the view is f64, the plan was made for f32", [&](Args& args) {
    args["x"] = View{x.data(), Type::F64};
  });
  refused(InvalidArgument, "the shape 8x4, expected 4x8", [&](Args& args) { args["x"] = view(x, {8, 4}); });
  refused(InvalidArgument, "expected 8 or 1x8", [&](Args& args) { args["gamma"] = view(gamma, {2, 4}); });
  refused(InvalidArgument, "at most 8 axes", [&](Args& args) { args["x"] = view(x, {1, 1, 1, 1, 1, 1, 1, 4, 8}); });
  refused(InvalidArgument, "are not those of", [&](Args& args) { args["x"] = view(x, {4, 8}, {1}); });
  refused(InvalidArgument, "multiple of the 4 bytes",
          [&](Args& args) { args["x"] = View{reinterpret_cast<char*>(x.data()) + 1}; });
  refused(InvalidArgument, "beyond 2^61", [&](Args& args) { args["x"] = view(x, {4, 8}, {INT64_MAX, 1}); });
  refused(BufferTooSmall, "128 bytes are needed, and the buffer has 124", [&](Args& args) {
    args["x"] = View{x.data(), Type::F32, {}, {}, 124};
  });
  refused(InvalidArgument, "two results share memory", [&](Args& args) { args["rstd"] = View{y.data()}; });
  refused(InvalidArgument, "another plan", [&](Args& args) {
    args = Plan::create(cpu(), {.program = rms_norm(), .shape = {4, 8}}).value().args();
  });
  refused(InvalidArgument, "moved away", [&](Args& args) { Args taken = std::move(args); });
  refused(InvalidArgument, "problem line: rms_norm 4x8", [](Args& args) { args["x"] = View{}; });

  auto not_made = [](Code code, const std::string& part, const PlanOptions& options) {
    expect_refused(Plan::create(cpu(), options), code, part);
  };
  not_made(InvalidArgument, "needs a program", {.shape = {4, 8}});
  not_made(InvalidArgument, "1 to 8 axes", {.program = rms_norm()});
  not_made(InvalidArgument, "not the last 3", {.program = rms_norm(), .shape = {4, 8}, .axes = last(3)});
  not_made(InvalidArgument, "negative extent", {.program = rms_norm(), .shape = {-4, 8}});
  not_made(InvalidArgument, "has no 'z'", {.program = rms_norm(), .shape = {4, 8}, .types = {{"z", Type::F32}}});
  not_made(InvalidArgument, "did you mean 'rstd'", {.program = rms_norm(), .shape = {4, 8}, .results = {{"rstdd"}}});
  not_made(InvalidArgument, "no result is wanted",
           {.program = rms_norm(), .shape = {4, 8}, .results = std::set<std::string>{}});
  not_made(InvalidArgument, "absent and has no default", {.program = rms_norm(), .shape = {4, 8}, .absent = {"x"}});
  not_made(Unsupported, "allowed",
           {.program = rms_norm().differentiate().value(), .shape = {4, 8}, .max_workspace_bytes = 16});
  expect_refused(Device::named("cpu:avx22"), NoDevice, "did you mean 'cpu:avx2'");
  expect_refused(RowProgram::named("rms_nrom"), InvalidArgument, "did you mean 'rms_norm'");

  Plan backward = Plan::create(cpu(), {.program = rms_norm().differentiate().value(), .shape = {4, 8}}).value();
  Args args = backward.args();
  std::vector<Floats> memory;
  for (const std::string& name : backward.names()) {
    memory.push_back(sampled(32, name.c_str()));
    args[name] = View{memory.back().data()};
  }
  expect_refused(backward.run(args), BufferTooSmall, "a workspace of");
}

TEST(OneCall, RunsAndRefuses) {
  Floats x = sampled(6 * 50), gamma = sampled(50, "gamma"), y(300);
  run("rms_norm", {{"x", view(x, {2, 3, 50})}, {"gamma", view(gamma, {50})}, {"y", view(y, {2, 3, 50})}}).value();
  EXPECT_TRUE(same_bits(y, by_reference(x, 6, 50).y));
  expect_refused(run("rms_norm", {{"y", view(y, {6, 50})}}), Code::InvalidArgument, "the shape comes from one");
  expect_refused(run("rms_norm", {{"x", view(x, {6, 50})}, {"z", view(y, {6, 50})}, {"y", view(y, {6, 50})}}),
                 Code::InvalidArgument, "no array 'z'");
}

TEST(OneCall, fault_29_ManyShapesStayBounded) {
  Floats x = sampled(1000), y(1000);
  for (std::int64_t columns = 1; columns <= 400; ++columns)
    run("rms_norm", {{"x", View{x.data(), Type::F32, {1, columns}}}, {"y", View{y.data(), Type::F32, {1, columns}}}})
        .value();
  EXPECT_LE(cached_plans(), max_cached_plans);
}

// Pages of this process that are in memory.
long resident_pages() {
  long size = 0, resident = 0;
  if (std::FILE* file = std::fopen("/proc/self/statm", "r")) {
    if (std::fscanf(file, "%ld %ld", &size, &resident) != 2) resident = 0;
    std::fclose(file);
  }
  return resident;
}

TEST(OneCall, fault_29_TenThousandShapesInBoundedMemory) {
  constexpr std::int64_t shapes = 10000, first = 600;  // beyond short rows, whose number of columns is compiled in
  Floats x = sampled(first + shapes), y(x.size());
  auto call = [&](std::int64_t columns) {
    run("swiglu", {{"x", View{x.data(), Type::F32, {1, columns}}},
                   {"gate", View{x.data(), Type::F32, {1, columns}}},
                   {"y", View{y.data(), Type::F32, {1, columns}}}})
        .value();
  };
  for (std::int64_t k = 0; k < 500; ++k) call(first + k);
  long before = resident_pages();
  for (std::int64_t k = 500; k < shapes; ++k) call(first + k);
  EXPECT_LT(resident_pages() - before, 4096) << "pages";  // 16 MB; a plan is some 20 KB
  EXPECT_LE(cached_plans(), max_cached_plans);
}

TEST(OneCall, fault_29_ManyThreadsPlanTheSame) {
  Floats x = sampled(300);
  std::vector<Floats> results(64, Floats(300));
  std::vector<std::thread> threads;
  for (Floats& y : results)
    threads.emplace_back([&x, &y] {
      for (int k = 0; k < 20; ++k)
        run("softmax", {{"x", View{x.data(), Type::F32, {3, 100}}}, {"y", View{y.data(), Type::F32, {3, 100}}}})
            .value();
    });
  for (std::thread& thread : threads) thread.join();
  for (const Floats& y : results) EXPECT_TRUE(same_bits(y, results[0]));
}

TEST(Plan, OneIsSharedByThreads) {
  Floats x = sampled(40 * 300), gamma = sampled(300, "gamma");
  Plan plan = Plan::create(cpu(), {.program = rms_norm(), .shape = {40, 300}}).value();
  Floats wanted = by_reference(x, 40, 300).y;
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&] {
      Floats y(x.size()), rstd(40);
      Args args = plan.args();
      args["x"] = view(x), args["gamma"] = view(gamma), args["y"] = view(y), args["rstd"] = view(rstd);
      for (int k = 0; k < 50; ++k) plan.run(args).value();
      EXPECT_TRUE(same_bits(y, wanted));
    });
  for (std::thread& thread : threads) thread.join();
}

// Every operator, both directions, through a plan: the bits of the reference device.
TEST(Plan, EveryOperatorOnCpu) {
  for (const std::string& name : RowProgram::names())
    for (bool backward : {false, true}) {
      RowProgram program = RowProgram::named(name).value();
      if (backward) program = program.differentiate().value();
      PlanOptions options{.program = program, .shape = {6, 34}};
      for (const RowProgram::Parameter& each : program.signature())
        if (each.kind == RowProgram::Kind::Constant && !each.optional) options.constants[each.name] = 2;
      std::vector<std::vector<Floats>> results;
      for (const Device& device : {Device::reference(), cpu()}) {
        Result<Plan> plan = Plan::create(device, options);
        ASSERT_TRUE(plan) << refusal(plan);
        Args args = plan->args();
        std::vector<Floats> memory;
        for (const std::string& array : plan->names()) {
          memory.push_back(sampled(6 * 34, array.c_str()));
          args[array] = View{memory.back().data()};
        }
        Workspace workspace(plan->workspace_bytes());
        Status status = plan->run(args, {}, workspace.span());
        ASSERT_TRUE(status) << refusal(status);
        results.push_back(std::move(memory));
      }
      for (std::size_t k = 0; k < results[0].size(); ++k)
        for (std::size_t e = 0; e < results[0][k].size(); ++e) {
          float a = results[0][k][e], b = results[1][k][e];
          ASSERT_TRUE(std::memcmp(&a, &b, 4) == 0 || (a != a && b != b)) << name << ' ' << backward << ' ' << k;
        }
    }
}

}  // namespace
}  // namespace trireme

// Each pass of a schedule on a nest of a few chunks: what it adds to the kernel, and that it adds nothing else.
#include "schedule/schedule_passes.hpp"

#include <gtest/gtest.h>

#include <functional>

#include "language/parse.hpp"
#include "passes/passes.hpp"
#include "schedule/lower.hpp"
#include "schedule/verify_kernel.hpp"

namespace trireme {
namespace {

const SchedulePass& pass(std::string_view name) {
  for (const SchedulePass& each : schedule_passes())
    if (each.name == name) return each;
  throw std::out_of_range(std::string(name));
}

// Two sweeps over rows of 8 columns; x is operand 0, g is 1.
Program tiny() {
  Binding binding;
  for (const char* name : {"x", "g", "y"}) binding.types[name] = Type::F32;
  return prepare(parse("f(x[i,j], g[j]) -> (y[i,j])\n  y = (x - amax(x)) * g\n").value(), binding).value().expanded;
}

Kernel after(const char* schedule, std::string_view name) {
  const Config config = config_after(parse_config(schedule).value(), pass(name));
  const Kernels kernels = lower(tiny(), config).value();
  EXPECT_TRUE(verify(kernels.rows)) << name << ": " << print(kernels.rows);
  return kernels.rows;
}

// How many there are, those in loops and branches among them; `in_loops`: those alone.
using Wanted = std::function<bool(const Instr&)>;
int count(const std::vector<Instr>& code, const Wanted& wanted, bool in_loops = false, bool inside = false) {
  int found = 0;
  for (const Instr& each : code) {
    found += (inside || !in_loops) && wanted(each);
    for (const std::vector<Instr>& body :
         {std::cref<std::vector<Instr>>(each.body), std::cref<std::vector<Instr>>(each.other)})
      found += count(body, wanted, in_loops, inside || each.code == Do::While);
  }
  return found;
}

bool is_load(const Instr& each) { return each.code == Do::Load && each.space == Space::Global; }
bool is_scratch_load(const Instr& each) { return each.code == Do::Load && each.space == Space::Scratch; }
bool is_copy(const Instr& each) { return each.code == Do::CopyAsync; }
bool is_prefetch(const Instr& each) { return each.code == Do::Prefetch; }
bool is_store(const Instr& each) { return each.code == Do::Store && each.space == Space::Global; }
bool is_streaming(const Instr& each) { return each.hint == Hint::Streaming; }

// Four lanes, so that a row is two chunks; four rows a team.
constexpr const char* threads = "threads lanes=4 rows=4 columns=8 stripes=1 ring=2 stage streaming";
constexpr const char* hoisted = "threads lanes=4 rows=4 columns=8 stripes=1 hoist streaming";
constexpr const char* loops = "simd lanes=4 unroll=2 streaming prefetch overlap";

TEST(SchedulePasses, PlaceLeavesNothingFromSweepToSweep) {
  const Kernel kernel = after(threads, "place");
  EXPECT_EQ(count(kernel.body, is_load), 2 * 2 + 2);  // x a sweep, g in the second
  EXPECT_EQ(count(kernel.body, is_load, true), 2 * 2 + 2);
  EXPECT_EQ(count(kernel.body, is_store), 2);
  EXPECT_EQ(count(kernel.body, is_copy) + count(kernel.body, is_scratch_load) + count(kernel.body, is_streaming), 0);
  EXPECT_EQ(kernel.launch.lanes, 4);
  EXPECT_EQ(kernel.launch.rows, 4);
}

TEST(SchedulePasses, KeepLoadsElementsOnce) {
  EXPECT_EQ(count(after(threads, "keep").body, is_load), 2 + 2);
  // A schedule that reloads keeps nothing.
  EXPECT_EQ(count(after("threads lanes=4 rows=4 columns=8 stripes=1 reload", "keep").body, is_load), 2 * 2 + 2);
}

TEST(SchedulePasses, EntriesLeavesNoPartialSums) {
  const Binding binding{.types = {{"x", Type::F32}, {"y", Type::F32}}};
  const Program sum = prepare(parse("f(x[i,j]) -> (y[i / 2, j])\n  y = colsum(x)\n").value(), binding).value().expanded;
  const Config whole = parse_config("threads lanes=4 columns=8 stripes=1 entries").value();
  auto lowered = [&](std::string_view name) { return lower(sum, config_after(whole, pass(name))).value(); };
  EXPECT_EQ(lowered("hoist").columns.size(), 1);
  const Kernels kernels = lowered("entries");
  EXPECT_TRUE(kernels.columns.empty());
  EXPECT_EQ(count(kernels.rows.body, is_store), 2);
  EXPECT_EQ(count(kernels.rows.body, is_store, true), 0);  // after the rows
  EXPECT_LT(kernels.rows.slot({Slot::What::Pointer, partials_array(0)}), 0);
}

TEST(SchedulePasses, HoistLoadsValuesPerColumnBeforeTheRows) {
  const Kernel kernel = after(hoisted, "hoist");
  EXPECT_EQ(count(kernel.body, is_load), 2 + 2);
  EXPECT_EQ(count(kernel.body, is_load, true), 2);
}

TEST(SchedulePasses, RingCopiesRowsToCome) {
  const Kernel kernel = after(threads, "ring");
  EXPECT_EQ(count(kernel.body, is_copy), 2 + 2);  // the first row, and in the loop the next one
  EXPECT_EQ(count(kernel.body, is_copy, true), 2);
  EXPECT_EQ(count(kernel.body, is_scratch_load), 2);
  EXPECT_EQ(count(kernel.body, is_load), 2) << "g";
}

TEST(SchedulePasses, StageCopiesValuesPerColumnOnce) {
  const Kernel kernel = after(threads, "stage");
  EXPECT_EQ(count(kernel.body, is_copy), 2 + 2 + 2);
  EXPECT_EQ(count(kernel.body, is_copy, true), 2);
  EXPECT_EQ(count(kernel.body, is_scratch_load), 2 + 2);
  EXPECT_EQ(count(kernel.body, is_load), 0);
}

TEST(SchedulePasses, PrefetchFetchesTheNextRow) {
  EXPECT_EQ(count(after(loops, "stage").body, is_prefetch), 0);
  const Kernel before = after(loops, "stage"), kernel = after(loops, "prefetch");
  EXPECT_GT(count(kernel.body, is_prefetch), 0);
  for (const Wanted other : {is_load, is_store, is_scratch_load})
    EXPECT_EQ(count(kernel.body, other), count(before.body, other));
}

TEST(SchedulePasses, StreamChangesStoresAlone) {
  for (const char* schedule : {threads, hoisted, loops}) {
    const Kernel before = after(schedule, "prefetch"), kernel = after(schedule, "stream");
    EXPECT_EQ(count(kernel.body, is_streaming), count(kernel.body, is_store)) << schedule;
    std::string text = print(kernel);
    const std::string_view hint = " streaming";
    for (std::size_t at; (at = text.find(hint)) != text.npos;) text.erase(at, hint.size());
    EXPECT_EQ(text, print(before)) << schedule;
  }
}

TEST(SchedulePasses, OverlapTakesTwoRowsInOneSweep) {
  auto is_both = [](const Kernel& kernel) {
    return print(kernel).find("# a row, and the one before it") != std::string::npos;
  };
  EXPECT_FALSE(is_both(after(loops, "stream")));
  EXPECT_TRUE(is_both(after(loops, "overlap")));
}

TEST(SchedulePasses, TheLastOneIsTheSchedule) {
  for (const char* schedule :
       {threads, hoisted, loops, "simd lanes=4 columns=8 stripes=1 reload hoist",
        "simd lanes=4 rows=2 columns=8 stripes=1 hoist", "threads lanes=32 groups=2 cluster=2 columns=1024 stripes=1",
        "threads lanes=8 teams=4 columns=8 stripes=1",
        "simd lanes=4 rows=4 unroll=4 streaming prefetch overlap across"}) {
    const Config whole = parse_config(schedule).value();
    EXPECT_EQ(print(config_after(whole, schedule_passes().back())), print(whole));
    EXPECT_EQ(print(after(schedule, "overlap")), print(lower(tiny(), whole).value().rows));
    for (const SchedulePass& each : schedule_passes()) after(schedule, each.name);
  }
}

}  // namespace
}  // namespace trireme

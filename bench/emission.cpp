// How long the CPU device takes to make a kernel, from the expanded program to executable memory: every operator, both
// directions, every storage type of its elements; rows that are unrolled, rows that are not, more than caches hold.
// Best of 7 each.
//
//   emission [--all]
//
// Prints the slowest; with --all every line.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string_view>

#include "devices/arguments.hpp"
#include "plan/check.hpp"
#include "plan/devices.hpp"
#include "plan/ops.hpp"
#include "plan/remarks.hpp"

namespace {

using namespace trireme;

struct Made {
  std::shared_ptr<const Prepared> prepared;
  std::int64_t rows;
  const DeviceEntry* device;
  double microseconds = 1e9;
};

void make(Made& made) {
  Facts facts = facts_of(made.prepared->program, made.prepared->view());
  facts.rows = made.rows;
  auto start = std::chrono::steady_clock::now();
  auto executable = made.device->compile(made.prepared->program, facts).value();  // anew: nobody holds the last one
  std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - start;
  made.microseconds = std::min(made.microseconds, took.count());
}

}  // namespace

int main(int argc, char** argv) {
  const bool all = argc > 1 && std::string_view(argv[1]) == "--all";
  std::vector<Made> made;
  for (const OperatorText& op : operator_texts()) {
    const Remarks remarks = parse_remarks(op.text).value();
    Problem problem = parse_problem(fmt::format("{} {}", op.name, remarks.tries[0])).value();
    problem.axes = 1;
    problem.placements.clear();
    for (bool backward : {false, true})
      for (Type type : {Type::F32, Type::F64, Type::BF16, Type::F16, Type::F8E4M3, Type::F8E5M2, Type::I8})
        for (std::int64_t columns : {128, 512, 4096}) {
          problem.backward = backward;
          problem.shape = {1, columns};
          problem.types["x"] = type;
          auto prepared = std::make_shared<const Prepared>(prepare_problem(problem, {}, Fill::Nothing).value());
          for (std::int64_t rows : {256, 1 << 20})
            for (const char* name : {"cpu:avx2", "cpu:avx512"})
              if (find_device(name)->missing().empty()) made.push_back({prepared, rows, find_device(name)});
        }
  }
  // Round by round, so that a moment's noise is in one of a kernel's times only.
  for (int round = 0; round < 7; ++round)
    for (Made& each : made) make(each);
  std::sort(made.begin(), made.end(), [](const Made& a, const Made& b) { return a.microseconds > b.microseconds; });
  auto slow = std::count_if(made.begin(), made.end(), [](const Made& each) { return each.microseconds > 500; });
  fmt::print("{} kernels, median {:.0f} us, {} over 500 us\n", made.size(), made[made.size() / 2].microseconds, slow);
  for (std::size_t k = 0; k < made.size() && (all || k < 20); ++k)
    fmt::print("{:6.0f} us  {:<10} {} rows of {}\n", made[k].microseconds, made[k].device->name, made[k].rows,
               print(made[k].prepared->problem));
}

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
#include "language/parse.hpp"
#include "plan/check.hpp"
#include "plan/devices.hpp"
#include "plan/ops.hpp"
#include "problem/problem_shape.hpp"
#include "problem/remarks.hpp"
#include "schedule/across.hpp"

namespace {

using namespace trireme;

struct Made {
  std::shared_ptr<const Prepared> prepared;
  std::int64_t rows;
  bool across;  // its rows lie side by side: a kernel for those, and one for other strides
  const DeviceEntry* device;
  double microseconds = 1e9;
};

// All arrays transposed.
void lay_across(const Program& program, Facts& facts) {
  facts.together = facts.rows;
  auto apart = [](const Spread& spread) {
    return ArrayLayout{.strided = spread.row.present && spread.column.present, .row_jumps = 0, .column_jumps = 0};
  };
  facts.layout = {};
  for (std::size_t k = 0; k < program.array_count(); ++k)
    facts.layout.arrays.push_back(program.array(k).in_memory ? apart(program.array(k).spread) : ArrayLayout{});
}

void make(Made& made) {
  Facts facts = facts_of(made.prepared->program, made.prepared->view());
  facts.rows = made.rows;
  if (made.across) lay_across(made.prepared->program, facts);
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
    const Program forward = parse(op.text).value();
    for (bool backward : {false, true})
      for (Type type : {Type::F32, Type::F64, Type::BF16, Type::F16, Type::F8E4M3, Type::F8E5M2, Type::I8})
        for (std::int64_t columns : {128, 512, 4096}) {
          problem.backward = backward;
          problem.shape = {1, columns};
          problem.types[forward.operands[leading_operand(forward).value()].name] = type;
          auto prepared = std::make_shared<const Prepared>(prepare_problem(problem, {}, Fill::Nothing).value());
          for (std::int64_t rows : {256, 1 << 20})
            for (const DeviceEntry& device : devices())
              for (bool across : {false, true})
                if (device.threads && device.missing().empty() && (!across || goes_across(prepared->program)))
                  made.push_back({prepared, rows, across, &device});
        }
  }
  // Round by round, so that a moment's noise is in one of a kernel's times only.
  for (int round = 0; round < 7; ++round)
    for (Made& each : made) make(each);
  std::sort(made.begin(), made.end(), [](const Made& a, const Made& b) { return a.microseconds > b.microseconds; });
  for (bool across : {false, true}) {
    std::vector<double> times;  // the longest first
    for (const Made& each : made)
      if (each.across == across) times.push_back(each.microseconds);
    if (times.empty()) continue;
    fmt::print("{} programs{}: median {:.0f} us, longest {:.0f}\n", times.size(), across ? " with two kernels" : "",
               times[times.size() / 2], times[0]);
  }
  for (std::size_t k = 0; k < made.size() && (all || k < 20); ++k)
    fmt::print("{:6.0f} us  {:<10} {} rows of {}{}\n", made[k].microseconds, made[k].device->name, made[k].rows,
               print(made[k].prepared->problem), made[k].across ? ", transposed: two kernels" : "");
}

// The yardstick in cache: RMSNorm in plain C++ with everything the contract forbids (fused and reassociated sums, see
// CMakeLists.txt), in turn with Trireme's kernel on the same arrays, one thread.
#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <limits>
#include <vector>

#include "devices/arguments.hpp"
#include "plan/check.hpp"
#include "plan/devices.hpp"
#include "problem/problem.hpp"
#include "trireme/ops.hpp"
#include "trireme/plan.hpp"

namespace {

using namespace trireme;

[[gnu::noinline]] void free_rms(const float* x, const float* gamma, float* y, float* rstd, std::int64_t rows,
                                std::int64_t columns) {
  for (std::int64_t i = 0; i < rows; ++i, x += columns, y += columns) {
    float sum = 0;
    for (std::int64_t j = 0; j < columns; ++j) sum += x[j] * x[j];
    float r = rstd[i] = 1 / std::sqrt(sum / static_cast<float>(columns) + 1e-6f);
    for (std::int64_t j = 0; j < columns; ++j) y[j] = x[j] * r * gamma[j];
  }
}

template <typename Work>
double nanoseconds(int times, Work&& work) {
  auto start = std::chrono::steady_clock::now();
  for (int k = 0; k < times; ++k) work();
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count() / times;
}

void compare(std::int64_t rows, std::int64_t columns) {
  Prepared prepared = prepare_problem(parse_problem(fmt::format("rms_norm {}x{}", rows, columns)).value()).value();
  const DeviceEntry* cpu = nullptr;
  for (const DeviceEntry& device : devices())
    if (!cpu && device.name.starts_with("cpu") && device.missing().empty()) cpu = &device;
  if (!cpu) return fmt::print("no cpu device here\n");
  Problem2d view = prepared.view();
  auto executable = cpu->compile(prepared.program, facts_of(prepared.program, view)).value();
  const float* operands[2] = {};
  for (std::size_t k = 0; k < prepared.program.operands.size(); ++k)
    if (prepared.program.operands[k].name == "x") operands[0] = static_cast<const float*>(view.arrays[k].data);
    else if (prepared.program.operands[k].name == "gamma") operands[1] = static_cast<const float*>(view.arrays[k].data);
  auto* y = static_cast<float*>(prepared.results()[0].data);
  auto* rstd = static_cast<float*>(prepared.results()[1].data);
  double ours = std::numeric_limits<double>::infinity(), free = ours;
  for (int turn = 0; turn < 200; ++turn) {
    ours = std::min(ours, nanoseconds(20, [&] { executable->run(view, {}).value(); }));
    free = std::min(free, nanoseconds(20, [&] { free_rms(operands[0], operands[1], y, rstd, rows, columns); }));
  }
  fmt::print("rms_norm {:>5}x{:<6} {:>10.0f} ns  free {:>10.0f} ns  {:.2f} of its time   {}\n", rows, columns, ours,
             free, ours / free, executable->describe());
}

// What a call costs beside its work: Plan::run on one row of 128 columns, by the time a row takes among many.
void time_run() {
  auto plan_of = [](std::int64_t rows) {
    return Plan::create(Device::cpu().value(), {.program = ops::rms_norm(), .shape = {rows, 128}}).value();
  };
  std::vector<float> x(64 * 128, 1), gamma(128, 1), y(64 * 128), rstd(64);
  auto time = [&](std::int64_t rows) {
    Plan plan = plan_of(rows);
    Args args = plan.args();
    args["x"] = View{x.data()};
    args["gamma"] = View{gamma.data()};
    args["y"] = View{y.data()};
    args["rstd"] = View{rstd.data()};
    double best = std::numeric_limits<double>::infinity();
    for (int turn = 0; turn < 200; ++turn) best = std::min(best, nanoseconds(200, [&] { plan.run(args).value(); }));
    return best;
  };
  double one = time(1), many = time(64);
  fmt::print("Plan::run, 1x128: {:.0f} ns; a row of 64x128 takes {:.0f} ns\n", one, (many - one) / 63);
}

}  // namespace

int main() {
  for (auto [rows, columns] : {std::pair{1024, 128}, {128, 1024}, {32, 4096}, {8, 16384}, {2, 65536}})
    compare(rows, columns);  // 1 MiB
  for (auto [rows, columns] : {std::pair{1, 128}, {16, 128}, {4, 1024}, {1, 4096}}) compare(rows, columns);
  time_run();
}

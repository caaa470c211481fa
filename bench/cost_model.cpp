// Holds the cost model of thread machines (schedule/cost.hpp) against schedules that were timed: what it would have
// chosen among those of a point, by the best of them.
//
//   cost_model TIMES... [--fit SECONDS] [--seed N] [--megabytes M]
//
// TIMES is what `gpu_table --schedules N` prints, such as bench/tables/h200_schedules.txt. Every fourth point is held
// out; --fit moves the figures to do better on the others, and prints them as they stand in cost.hpp.
#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <random>

#include "bench/must.hpp"
#include "plan/timed_schedules.hpp"
#include "targets/targets.hpp"

using namespace trireme;
using namespace trireme::bench;

namespace {

constexpr struct {
  const char* name;
  double ThreadFigures::*member;
} figures[] = {
    {"issued", &ThreadFigures::issued},
    {"cache_bandwidth", &ThreadFigures::cache_bandwidth},
    {"found_again", &ThreadFigures::found_again},
    {"narrow_segments", &ThreadFigures::narrow_segments},
    {"sharpness", &ThreadFigures::sharpness},
    {"registers", &ThreadFigures::registers},
    {"kept", &ThreadFigures::kept},
    {"passed", &ThreadFigures::passed},
    {"hoisted", &ThreadFigures::hoisted},
    {"summed", &ThreadFigures::summed},
    {"loaded", &ThreadFigures::loaded},
    {"arithmetic", &ThreadFigures::arithmetic},
    {"spilled", &ThreadFigures::spilled},
    {"work", &ThreadFigures::work},
    {"again", &ThreadFigures::again},
    {"weights", &ThreadFigures::weights},
    {"access", &ThreadFigures::access},
    {"start_latency", &ThreadFigures::start_latency},
    {"odd", &ThreadFigures::odd},
    {"shuffle", &ThreadFigures::shuffle},
    {"sweep", &ThreadFigures::sweep},
    {"exchange", &ThreadFigures::exchange},
    {"memory_latency", &ThreadFigures::memory_latency},
    {"loop_latency", &ThreadFigures::loop_latency},
    {"sum_latency", &ThreadFigures::sum_latency},
    {"cluster_latency", &ThreadFigures::cluster_latency},
    {"cluster_growth", &ThreadFigures::cluster_growth},
    {"dependent", &ThreadFigures::dependent},
};

const Machine& h200() {
  static const Machine machine = must(must(find_target("ptx"))->machine("sm_90"));
  return machine;
}

// How far estimates lie off: of times, by a copy's, and of registers.
double error_of(const TimedPoint& point, const ThreadCost& cost) {
  const Shape shape = shape_of(point.program, {});
  const auto bytes =
      static_cast<double>((shape.row_bytes + shape.stored_bytes) * point.facts.columns * point.facts.rows);
  double error = 0;
  for (const TimedSchedule& each : point.schedules) {
    const double seconds = cost(each.config);
    if (std::isfinite(seconds))
      error += std::min(1.0, std::fabs(std::log(bytes / h200().multiprocessor.bandwidth / seconds / each.share)));
    if (each.registers > 0) error += std::fabs(std::log(cost.registers_had(each.config) / each.registers));
  }
  return error / static_cast<double>(point.schedules.size());
}

double objective(const std::vector<const TimedPoint*>& points, const ThreadFigures& f) {
  double lost = 0, error = 0;
  for (const TimedPoint* each : points) {
    const ThreadCost cost(each->program, h200(), each->facts, f);
    lost += 1 - choose_among(*each, cost).of_best();
    error += error_of(*each, cost);
  }
  return (lost + 0.1 * error) / static_cast<double>(points.size());
}

void report(const char* name, const std::vector<const TimedPoint*>& points, const ThreadFigures& f) {
  std::vector<std::pair<ModelChoice, const TimedPoint*>> all;
  for (const TimedPoint* each : points)
    all.emplace_back(choose_among(*each, ThreadCost(each->program, h200(), each->facts, f)), each);
  std::sort(all.begin(), all.end(), [](auto& a, auto& b) { return a.first.of_best() < b.first.of_best(); });
  double sum = 0;
  for (auto& each : all) sum += each.first.of_best();
  fmt::print("{}: {} points; of the best schedule's speed: median {:.3f}, mean {:.3f}, tenth {:.3f}, worst {:.3f}\n",
             name, all.size(), all[all.size() / 2].first.of_best(), sum / static_cast<double>(all.size()),
             all[all.size() / 10].first.of_best(), all[0].first.of_best());
  for (std::size_t k = 0; k < std::min<std::size_t>(all.size(), 6); ++k) {
    const auto& [choice, point] = all[k];
    fmt::print("  {:.3f} of {:.3f}  {}  {}\n", choice.of_best() * choice.best, choice.best, point->point.name(),
               choice.chosen ? print(choice.chosen->config) : "none");
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return fmt::print("cost_model TIMES... [--fit SECONDS] [--seed N] [--megabytes M]\n"), 2;
  double fit = 0;
  std::uint64_t seed = 1;
  std::int64_t megabytes = 256;
  std::vector<std::string> paths;
  for (int k = 1; k < argc; ++k) {
    const std::string_view option = argv[k];
    if (!option.starts_with("--")) paths.emplace_back(option);
    else if (k + 1 == argc) return fmt::print(stderr, "{} takes a number\n", option), 2;
    else if (option == "--fit") fit = std::atof(argv[++k]);
    else if (option == "--seed") seed = static_cast<std::uint64_t>(std::atoll(argv[++k]));
    else if (option == "--megabytes") megabytes = std::atoll(argv[++k]);
    else return fmt::print(stderr, "{}: no such option\n", option), 2;
  }
  const std::vector<TimedPoint> points = must(read_timed_schedules(paths, megabytes << 20));
  std::vector<const TimedPoint*> shown, held_out;
  for (std::size_t k = 0; k < points.size(); ++k)
    if (points[k].schedules.size() > 1) (k % 4 == 3 ? held_out : shown).push_back(&points[k]);

  ThreadFigures best;
  std::mt19937_64 random(seed);
  double least = objective(shown, best);
  const auto began = std::chrono::steady_clock::now();
  auto spent = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count(); };
  while (spent() < fit) {
    ThreadFigures other = best;
    const double step = std::max(0.05, 0.6 * (1 - spent() / fit));
    for (std::uint64_t k = 1 + random() % 3; k > 0; --k)
      other.*figures[random() % std::size(figures)].member *= std::exp(std::normal_distribution<>(0, step)(random));
    other.sharpness = std::clamp(other.sharpness, 1.5, 12.0);
    const double now = objective(shown, other);
    if (now < least) least = now, best = other;
  }
  report("fitted to", shown, best);
  report("held out", held_out, best);
  if (fit > 0)
    for (const auto& each : figures) fmt::print("{} = {:.3g}, ", each.name, best.*each.member);
  fmt::print("\n");
}

// Share of a device copy of the same bytes that operators reach on a GPU, with the schedules they get by themselves:
// every operator, both directions, three storage types, rows of 128 to 262144 columns. A seeded sample of these points,
// as many as the time allows; then the median and the worst twenty of what each could reach: a copy's speed, or where
// its arithmetic takes longer, the share that leaves (`roof`: the program's instructions by the machine's table, each
// value made once, every scheduler issuing one a cycle).
//
//   gpu_table [--seconds S] [--megabytes M] [--seed N] [--operator NAME] ... [--schedules N]
//
// Arrays have M MiB (512), ten times what a cache of this generation holds, so that nothing is found in it again. A
// line is `share operator direction type columns  schedule  roof`, and two such tables are compared by
// bench/against.py.
//
// With --schedules N, each point has N lines more, of other valid schedules, half of them those that the cost model
// ranks first, half drawn at random: what the model is held against (bench/cost_model.cpp). A line then ends with what
// the driver made of the kernel.
#include <atomic>
#include <chrono>
#include <optional>
#include <random>
#include <thread>

#include "bench/gpu_problem.hpp"
#include "devices/arguments.hpp"
#include "devices/parallel.hpp"
#include "plan/check.hpp"
#include "plan/operator_points.hpp"
#include "schedule/candidates.hpp"
#include "schedule/work.hpp"

using namespace trireme;
using namespace trireme::bench;

namespace {

struct Options {
  double seconds = 240;
  std::int64_t megabytes = 512;
  std::uint64_t seed = 1;
  std::size_t schedules = 0;
  std::vector<std::string_view> operators;

  Options(int argc, char** argv) {
    for (int k = 1; k + 1 < argc; k += 2) {
      const std::string_view option = argv[k];
      if (option == "--seconds") seconds = std::atof(argv[k + 1]);
      else if (option == "--megabytes") megabytes = std::atoll(argv[k + 1]);
      else if (option == "--seed") seed = static_cast<std::uint64_t>(std::atoll(argv[k + 1]));
      else if (option == "--schedules") schedules = static_cast<std::size_t>(std::atoll(argv[k + 1]));
      else if (option == "--operator") operators.emplace_back(argv[k + 1]);
      else fmt::print(stderr, "{}: no such option\n", option), std::exit(2);
    }
  }
  bool wants(std::string_view name) const {
    return operators.empty() || std::find(operators.begin(), operators.end(), name) != operators.end();
  }
};

struct Compiled {
  Program program;
  std::int64_t rows = 0;
  std::unique_ptr<cuda::CudaExecutable> executable;
  std::string trouble;
};

Result<Compiled> compile(const cuda::Device& device, const Program& program, const Facts& facts) {
  TRIREME_TRY(made, cuda::CudaExecutable::create(device, program, facts));
  return Compiled{program, facts.rows, std::move(made), {}};
}

// The driver compiles on all cores. `make(k)`: the k-th.
template <typename Make>
std::vector<Compiled> compile_all(std::size_t count, Make&& make) {
  std::vector<Compiled> all(count);
  std::atomic<std::size_t> next = 0;
  in_parallel(static_cast<int>(std::max(1u, std::thread::hardware_concurrency())), [&](int) {
    for (std::size_t p; (p = next++) < count;) {
      Result<Compiled> made = make(p);
      if (made) all[p] = std::move(*made);
      else all[p].trouble = made.error().message;
    }
  });
  return all;
}

// Nothing where the device cannot launch it: a cluster may not fit.
std::optional<double> share_of(const cuda::Device& device, cuda::StreamHandle stream, const GpuProblem& gpu,
                               const Compiled& made, std::int64_t columns, int rounds, int warm_up) {
  const auto needed = made.executable->memory_bytes(made.rows, columns, {});
  const auto workspace = must(made.executable->allocate(std::max<std::int64_t>(needed.workspace, 256)));
  std::vector<std::byte, CacheLineAllocator<std::byte>> own(static_cast<std::size_t>(needed.own));
  auto run = [&] { return made.executable->run_in(gpu.problem(), {}, {workspace.get(), own.data(), stream}); };
  if (!run()) return std::nullopt;
  return Beside(device, stream, gpu.moved_bytes()).share([&] { must(run()); }, rounds, warm_up);
}

// The largest share that a program's arithmetic leaves room for.
double roof_of(const Machine& machine, const Program& program, std::int64_t elements, std::int64_t bytes) {
  const Multiprocessor& each = machine.multiprocessor;
  const double issued = 32.0 * each.schedulers * each.clock * machine.processors;
  const double arithmetic =
      static_cast<double>(elements) * instructions_a_vector(program, machine.instructions) / issued;
  return std::min(1.0, static_cast<double>(bytes) / each.bandwidth / arithmetic);
}

Result<Prepared> prepared_for(const OperatorPoint& point, const Options& options) {
  TRIREME_TRY(problem, point.problem(point.rows_of(options.megabytes << 20)));
  return prepare_problem(problem, {}, Fill::NoMemory);
}

void time_schedules(const cuda::Device& device, cuda::StreamHandle stream, const OperatorPoint& point,
                    const Options& options, std::mt19937_64& random) {
  const Prepared prepared = must(prepared_for(point, options));
  const Program& program = prepared.program;
  const Facts facts = facts_of(program, prepared.view());
  std::vector<Config> configs = candidate_configs(program, cuda::machine_of(device), facts);
  sort_by_cost(program, cuda::machine_of(device), facts, configs);
  const std::size_t count = std::min(configs.size(), options.schedules), ranked = count / 2;
  std::shuffle(configs.begin() + static_cast<std::ptrdiff_t>(ranked), configs.end(), random);
  configs.resize(count);
  const std::vector<Compiled> made = compile_all(configs.size(), [&](std::size_t k) {
    Facts with = facts;
    with.config = configs[k];
    return compile(device, program, with);
  });
  const GpuProblem gpu(device, program, facts.rows, point.columns);
  for (std::size_t k = 0; k < made.size(); ++k) {
    if (!made[k].executable) continue;
    const auto share = share_of(device, stream, gpu, made[k], point.columns, 3, 1);
    if (!share) continue;
    const auto& facts = made[k].executable->loaded().facts();
    fmt::print("{:.3f} {}  {}  registers={} local={}\n", *share, point.name(), print(configs[k]), facts.registers,
               facts.local_bytes);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const auto began = std::chrono::steady_clock::now();
  auto seconds = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count(); };
  const Options options(argc, argv);
  const cuda::Device& device = *must(must(cuda::Driver::instance())->device(0));
  cuda::Stream stream = must(device.stream());

  std::vector<OperatorPoint> points = operator_points();
  std::erase_if(points, [&](const OperatorPoint& each) { return !options.wants(each.op->name); });
  std::mt19937_64 random(options.seed);
  std::shuffle(points.begin(), points.end(), random);

  std::vector<double> shares;
  std::vector<std::pair<double, std::string>> of_roofs;
  constexpr std::size_t at_once = 64;
  std::size_t done = 0;
  for (; done < points.size() && seconds() < options.seconds; done += at_once) {
    const auto some = std::span(points).subspan(done, std::min(at_once, points.size() - done));
    const std::vector<Compiled> made = compile_all(some.size(), [&](std::size_t k) -> Result<Compiled> {
      TRIREME_TRY(prepared, prepared_for(some[k], options));
      return compile(device, prepared.program, facts_of(prepared.program, prepared.view()));
    });
    for (std::size_t k = 0; k < some.size(); ++k) {
      if (!made[k].executable) {
        fmt::print("none  {}  {}\n", some[k].name(), made[k].trouble);
        continue;
      }
      const GpuProblem gpu(device, made[k].program, made[k].rows, some[k].columns);
      const auto share = share_of(device, stream.get(), gpu, made[k], some[k].columns, 11, 6);
      if (!share) continue;
      const double roof =
          roof_of(cuda::machine_of(device), made[k].program, made[k].rows * some[k].columns, gpu.moved_bytes());
      shares.push_back(*share);
      of_roofs.emplace_back(*share / roof, fmt::format("{} (a share of {:.2f})", some[k].name(), *share));
      const auto& facts = made[k].executable->loaded().facts();
      fmt::print("{:.3f} {}  {}  roof={:.2f}", *share, some[k].name(), made[k].executable->identity().config, roof);
      if (options.schedules) fmt::print("  registers={} local={}", facts.registers, facts.local_bytes);
      fmt::print("\n");
      if (options.schedules) time_schedules(device, stream.get(), some[k], options, random);
      std::fflush(stdout);
    }
  }
  if (shares.empty()) return 1;
  std::sort(shares.begin(), shares.end());
  std::sort(of_roofs.begin(), of_roofs.end());
  fmt::print("# {} of {} points in {:.0f} s; median share {:.2f}, of the roof {:.2f}; worst twenty of the roof:\n",
             shares.size(), points.size(), seconds(), shares[shares.size() / 2], of_roofs[of_roofs.size() / 2].first);
  for (std::size_t k = 0; k < std::min<std::size_t>(20, of_roofs.size()); ++k)
    fmt::print("#   {:.2f}  {}\n", of_roofs[k].first, of_roofs[k].second);
}

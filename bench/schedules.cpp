// Tries every schedule worth a look for operators on a GPU and prints the best beside the one that is chosen by itself:
// where the thresholds of schedule/config.cpp come from.
//
//   schedules MEGABYTES SECONDS OPERATOR[:backward] ...
#include <chrono>

#include "bench/gpu_problem.hpp"
#include "ir/contract.hpp"
#include "language/parse.hpp"
#include "plan/ops.hpp"

using namespace trireme;
using namespace trireme::bench;

namespace {

std::vector<Config> candidates(const Config& chosen, std::int64_t columns, bool sums) {
  std::vector<Config> configs = {chosen};
  std::int64_t stripes = contract::stripes(columns);
  for (int cluster : {1, 2, 4, 8})
    for (int each : {1, 2, 4, 8})
      for (int ring : {0, 2, 4})
        for (int rows : {1, 4, 16})
          for (bool reload : {false, true}) {
            Config other = chosen;
            std::int64_t groups = (stripes + each * cluster - 1) / (each * cluster);
            if (cluster > 1) groups = std::bit_ceil(static_cast<std::uint64_t>(groups));
            bool one_warp = groups == 1 && cluster == 1;
            if ((sums && rows > 1) || (ring && !sums && rows == 1) || (rows > 1 && !one_warp)) continue;
            if (each > 2 * stripes || groups > 32 || (cluster > 1 && columns < 8192) || (stripes == 1 && each > 1))
              continue;
            if (groups * each * cluster > 2 * stripes && groups > 1) continue;
            other.stripes = each;
            other.groups = static_cast<int>(groups);
            other.cluster = cluster;
            other.ring = ring;
            other.rows = rows;
            other.reload = reload;
            other.hoist = sums || each <= 2 || rows > 1;
            other.teams = one_warp ? 128 / other.lanes : 1;
            configs.push_back(other);
          }
  return configs;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return fmt::print("schedules MEGABYTES SECONDS OPERATOR[:backward] ...\n"), 2;
  std::int64_t tensor = std::int64_t{std::atoi(argv[1])} << 20;
  auto clock = [] { return std::chrono::steady_clock::now(); };
  auto end = clock() + std::chrono::seconds(std::atoi(argv[2]));
  const cuda::Device& device = *must(must(cuda::Driver::instance())->device(0));
  cuda::Stream stream = must(device.stream());
  for (int a = 3; a < argc; ++a) {
    std::string wanted = argv[a];
    bool backward = wanted.ends_with(":backward");
    std::string_view op = std::string_view(wanted).substr(0, wanted.find(':'));
    for (const OperatorText& each : operator_texts()) {
      if (each.name != op) continue;
      for (std::int64_t columns :
           {128, 256, 512, 1024, 2048, 2880, 4096, 5120, 8192, 12288, 16384, 32768, 65536, 131072}) {
        if (clock() > end) return 0;
        std::int64_t rows = tensor / 2 / columns;
        Program source = must(parse(each.text));
        if (backward) source = must(differentiate(source));
        Program program = bound(source, Type::BF16);
        GpuProblem gpu(device, program, rows, columns);
        Config chosen = choose_config(program, cuda::machine_of(device), facts_of(program, gpu.problem()));
        double copy = copy_seconds(device, stream.get(), gpu.element_bytes());
        std::vector<std::tuple<double, std::string>> table;
        double own = 0;
        bool first = true;
        for (const Config& config : candidates(chosen, columns, backward)) {
          auto made = cuda::CudaExecutable::create(device, program, config);
          if (!made) continue;
          Blocks blocks = cut_rows((*made)->loaded().kernels(), rows, columns);
          cuda::Memory workspace = must(device.allocate(std::max<std::int64_t>(blocks.workspace_bytes, 16)));
          double seconds = median_seconds(device, stream.get(), [&] {
            must((*made)->loaded().launch_rows(program, gpu.problem(), blocks, workspace.get(), stream.get(), 0, rows));
            must((*made)->loaded().launch_columns(program, gpu.problem(), blocks, workspace.get(), stream.get()));
          });
          if (first) own = copy / seconds;
          first = false;
          table.emplace_back(copy / seconds, (*made)->describe());
        }
        std::sort(table.begin(), table.end(), std::greater<>());
        fmt::print("{:<20} {:>6}  chosen {:.3f} {}\n", wanted, columns, own, print(chosen));
        for (std::size_t k = 0; k < std::min<std::size_t>(table.size(), 3); ++k)
          fmt::print("{:>36.3f} {}\n", std::get<0>(table[k]), std::get<1>(table[k]));
        std::fflush(stdout);
      }
    }
  }
}

// Tries every schedule worth a look for operators on a GPU and prints the best beside the one that is chosen by itself:
// where the thresholds of schedule/config.cpp come from.
//
//   schedules MEGABYTES SECONDS OPERATOR[:backward][:f32][:COLUMNS,COLUMNS...] ...
#include <atomic>
#include <chrono>
#include <thread>

#include "bench/gpu_problem.hpp"
#include "language/parse.hpp"
#include "plan/ops.hpp"
#include "schedule/candidates.hpp"

using namespace trireme;
using namespace trireme::bench;

int main(int argc, char** argv) {
  if (argc < 4)
    return fmt::print("schedules MEGABYTES SECONDS OPERATOR[:backward][:f32][:COLUMNS,COLUMNS...] ...\n"), 2;
  std::int64_t tensor = std::int64_t{std::atoi(argv[1])} << 20;
  auto clock = [] { return std::chrono::steady_clock::now(); };
  auto end = clock() + std::chrono::seconds(std::atoi(argv[2]));
  const cuda::Device& device = *must(must(cuda::Driver::instance())->device(0));
  cuda::Stream stream = must(device.stream());
  std::vector<std::jthread> workers(std::max(1u, std::thread::hardware_concurrency()));
  for (int a = 3; a < argc; ++a) {
    std::string wanted = argv[a];
    bool backward = wanted.find(":backward") != std::string::npos;
    std::vector<std::int64_t> widths;
    if (std::size_t list = wanted.find_last_of(':'); list != std::string::npos && std::isdigit(wanted[list + 1]))
      for (const char* at = wanted.c_str() + list; *at; at += std::strcspn(at + 1, ",") + 1)
        widths.push_back(std::atoll(at + 1));
    if (widths.empty())
      widths = {128, 256, 512, 1024, 2048, 2880, 4096, 5120, 8192, 12288, 16384, 32768, 65536, 131072};
    std::string_view op = std::string_view(wanted).substr(0, wanted.find(':'));
    for (const OperatorText& each : operator_texts()) {
      if (each.name != op) continue;
      for (std::int64_t columns : widths) {
        if (clock() > end) return 0;
        Type type = wanted.find(":f32") != std::string::npos ? Type::F32 : Type::BF16;
        std::int64_t rows = tensor / static_cast<std::int64_t>(bytes(type)) / columns;
        Program source = must(parse(each.text));
        if (backward) source = must(differentiate(source));
        Program program = bound(source, type);
        GpuProblem gpu(device, program, rows, columns);
        std::vector<Config> configs =
            candidate_configs(program, cuda::machine_of(device), facts_of(program, gpu.problem()));
        Beside beside(device, stream.get(), gpu.element_bytes());
        std::vector<std::tuple<double, std::string>> table;
        double own = 0;
        bool first = true;
        std::vector<std::unique_ptr<cuda::CudaExecutable>> executables(configs.size());
        std::atomic<std::size_t> next = 0;
        for (std::jthread& worker : workers)  // the driver compiles on all cores
          worker = std::jthread([&] {
            for (std::size_t k; (k = next++) < configs.size();)
              if (auto made = cuda::CudaExecutable::create(device, program, configs[k]))
                executables[k] = std::move(*made);
          });
        for (std::jthread& worker : workers) worker.join();
        for (const auto& made : executables) {
          if (!made) continue;
          Blocks blocks = cut_rows(made->loaded().kernels(), rows, columns);
          cuda::Memory workspace = must(device.allocate(std::max<std::int64_t>(blocks.workspace_bytes, 16)));
          double share = beside.share([&] {
            must(made->loaded().launch_rows(program, gpu.problem(), blocks, workspace.get(), stream.get(), 0, rows));
            must(made->loaded().launch_columns(program, gpu.problem(), blocks, workspace.get(), stream.get()));
          });
          if (first) own = share;
          first = false;
          table.emplace_back(share, made->describe());
        }
        std::sort(table.begin(), table.end(), std::greater<>());
        fmt::print("{:<20} {:>6}  chosen {:.3f} {}\n", wanted, columns, own, print(configs[0]));
        for (std::size_t k = 0; k < std::min<std::size_t>(table.size(), 4); ++k)
          fmt::print("{:>36.3f} {}\n", std::get<0>(table[k]), std::get<1>(table[k]));
        std::fflush(stdout);
      }
    }
  }
}

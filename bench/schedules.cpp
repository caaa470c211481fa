// Tries every schedule worth a look for operators on a GPU, then the neighbours of the best, and prints the best beside
// the one that is chosen by itself: where the thresholds of schedule/choose_threads.cpp come from.
//
//   schedules MEGABYTES SECONDS OPERATOR[:backward][:f16|:f32][:COLUMNS,COLUMNS...] [CONFIG...] ...
//
// Configs behind an operator ("threads vector=4 groups=2 stripes=4", without columns) are timed instead of a search.
#include <atomic>
#include <chrono>
#include <optional>
#include <thread>

#include "bench/gpu_problem.hpp"
#include "schedule/candidates.hpp"

using namespace trireme;
using namespace trireme::bench;

namespace {

using Executables = std::vector<std::unique_ptr<cuda::CudaExecutable>>;

struct Tried {
  double share;
  Config config;
  std::string told;
};

class Search {
 public:
  Search(const cuda::Device& device, const Wanted& wanted, std::int64_t tensor, std::int64_t columns)
      : device_(device),
        program_(wanted.program()),
        rows_(wanted.rows(tensor, columns)),
        columns_(columns),
        stream_(must(device.stream())),
        gpu_(device, program_, rows_, columns),
        beside_(device, stream_.get(), gpu_.element_bytes()) {}

  // The chosen one first, then those.
  std::vector<Tried> these(std::vector<Config> configs) {
    std::vector<Tried> all =
        time({choose_config(program_, cuda::machine_of(device_), facts_of(program_, gpu_.problem()))}, rounds, warm_up);
    for (Config& each : configs) each.columns = columns_;
    for (Tried& each : time(configs, rounds, warm_up)) all.push_back(std::move(each));
    return all;
  }

  // The chosen one first, then the best of all.
  std::vector<Tried> run() {
    constexpr std::size_t looked_at = 6, told = 5;
    std::vector<Config> all =
        candidate_configs(program_, cuda::machine_of(device_), facts_of(program_, gpu_.problem()));
    std::vector<Tried> best = time(all, 3, 1);
    std::vector<Config> near;
    for (std::size_t k = 0; k < std::min(best.size(), looked_at); ++k)
      for (const Config& each : neighbours(best[k].config)) near.push_back(each);
    for (Tried& each : time(near, 3, 1)) best.push_back(std::move(each));
    sort(best);
    std::vector<Config> finalists = {all[0]};
    for (std::size_t k = 0; k < std::min(best.size(), 2 * told); ++k) finalists.push_back(best[k].config);
    std::vector<Tried> last = time(finalists, rounds, warm_up);
    if (last.size() > told) last.resize(told);
    std::vector<Tried> own = time({all[0]}, rounds, warm_up);
    last.insert(last.begin(), own.begin(), own.end());
    return last;
  }

 private:
  static constexpr int rounds = 11, warm_up = 6;

  static void sort(std::vector<Tried>& tried) {
    std::sort(tried.begin(), tried.end(), [](const Tried& a, const Tried& b) { return a.share > b.share; });
  }

  Executables compile(const std::vector<Config>& configs) {
    Executables made(configs.size());
    std::atomic<std::size_t> next = 0;
    std::vector<std::jthread> workers;  // the driver compiles on all cores
    for (unsigned k = 0; k < std::max(1u, std::thread::hardware_concurrency()); ++k)
      workers.emplace_back([&] {
        for (std::size_t k; (k = next++) < configs.size();)
          if (auto executable = cuda::CudaExecutable::create(device_, program_, configs[k]))
            made[k] = std::move(*executable);
      });
    workers.clear();
    return made;
  }

  std::vector<Tried> time(const std::vector<Config>& configs, int rounds, int warm_up) {
    std::vector<Tried> tried;
    Executables made = compile(configs);
    for (std::size_t k = 0; k < configs.size(); ++k) {
      if (!made[k]) continue;
      const cuda::LoadedKernels& loaded = made[k]->loaded();
      Blocks blocks = cut_rows(loaded.kernels(), rows_, columns_);
      cuda::Memory workspace = must(device_.allocate(std::max<std::int64_t>(blocks.workspace_bytes, 16)));
      // A cluster may not fit the device.
      if (!loaded.launch_rows(program_, gpu_.problem(), blocks, workspace.get(), stream_.get(), 0, rows_)) continue;
      double share = beside_.share(
          [&] {
            must(loaded.launch_rows(program_, gpu_.problem(), blocks, workspace.get(), stream_.get(), 0, rows_));
            must(loaded.launch_columns(program_, gpu_.problem(), blocks, workspace.get(), stream_.get()));
          },
          rounds, warm_up);
      tried.push_back({share, configs[k], made[k]->describe()});
    }
    sort(tried);
    return tried;
  }

  const cuda::Device& device_;
  Program program_;
  std::int64_t rows_, columns_;
  cuda::Stream stream_;
  GpuProblem gpu_;
  Beside beside_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4)
    return fmt::print(
               "schedules MEGABYTES SECONDS OPERATOR[:backward][:f16|:f32][:COLUMNS,COLUMNS...] [CONFIG...] ...\n"),
           2;
  std::int64_t tensor = std::int64_t{std::atoi(argv[1])} << 20;
  auto end = std::chrono::steady_clock::now() + std::chrono::seconds(std::atoi(argv[2]));
  const cuda::Device& device = *must(must(cuda::Driver::instance())->device(0));
  for (int a = 3; a < argc; ++a) {
    std::string text = argv[a];
    std::vector<std::int64_t> widths;
    if (std::size_t list = text.find_last_of(':'); list != std::string::npos && std::isdigit(text[list + 1]))
      for (const char* at = text.c_str() + list; *at; at += std::strcspn(at + 1, ",") + 1)
        widths.push_back(std::atoll(at + 1));
    if (widths.empty())
      widths = {128, 256, 512, 1024, 2048, 2880, 4096, 5120, 8192, 12288, 16384, 32768, 65536, 131072};
    std::vector<Config> configs;
    while (a + 1 < argc && std::string_view(argv[a + 1]).starts_with("threads "))
      configs.push_back(must(parse_config(argv[++a])));
    for (std::int64_t columns : widths) {
      if (std::chrono::steady_clock::now() > end) return 0;
      Search search(device, Wanted(text), tensor, columns);
      std::vector<Tried> tried = configs.empty() ? search.run() : search.these(configs);
      for (std::size_t k = 0; k < tried.size(); ++k) {
        if (k == 0) fmt::print("{:<24} {:>6}  chosen {:.3f} {}\n", text, columns, tried[k].share, tried[k].told);
        else fmt::print("{:>40.3f} {}\n", tried[k].share, tried[k].told);
      }
      std::fflush(stdout);
    }
  }
}

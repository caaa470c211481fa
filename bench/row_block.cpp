// Measures on a GPU what the contract's row_block costs: norm backwards at many widths, with many block sizes and
// schedules, as a share of a copy of the same bytes in the same run. The table behind ir/contract.hpp and
// schedule/cost.hpp; docs/performance.md holds what it printed.
//
//   row_block [MEGABYTES a tensor [BEST]]
#include "bench/gpu_problem.hpp"
#include "ir/contract.hpp"
#include "language/parse.hpp"

using namespace trireme;
using namespace trireme::bench;

namespace {

constexpr const char* rms_norm = R"(
rms_norm(x[i,j], gamma[j] = 1, eps = 1e-6) -> (y[i,j], rstd[i])
    rstd = rsqrt(mean(x * x) + eps)
    y    = x * rstd * gamma
)";
constexpr const char* layer_norm = R"(
layer_norm(x[i,j], gamma[j] = 1, beta[j] = 0, eps = 1e-5) -> (y[i,j], mu[i], rstd[i])
    mu   = mean(x)
    d    = x - mu
    rstd = rsqrt(mean(d * d) + eps)
    y    = d * rstd * gamma + beta
)";

// The schedule that is chosen by itself, and what differs from it in one thing.
std::vector<Config> candidates(const Config& chosen) {
  std::vector<Config> configs = {chosen};
  if (chosen.stripes) configs.push_back(chosen), configs.back().reload = !chosen.reload;
  if (chosen.ring) configs.push_back(chosen), configs.back().ring = 3;
  return configs;
}

}  // namespace

int main(int argc, char** argv) {
  std::int64_t tensor = std::int64_t{argc > 1 ? std::atoi(argv[1]) : 256} << 20;
  std::size_t best = argc > 2 ? std::atoi(argv[2]) : 4;
  const cuda::Device& device = *must(must(cuda::Driver::instance())->device(0));
  cuda::Stream stream = must(device.stream());
  fmt::print("{:<11} {:>7} {:>8} {:>6} {:>6}  {:>6}  {}\n", "program", "columns", "rows", "block", "blocks", "share",
             "config");
  for (const char* text : {rms_norm, layer_norm})
    for (std::int64_t columns :
         {128, 256, 512, 1024, 2048, 2880, 4096, 5120, 7168, 8192, 12288, 16384, 32768, 65536, 131072}) {
      std::int64_t rows = tensor / 2 / columns;
      Program program = bound(must(differentiate(must(parse(text)))), Type::BF16);
      GpuProblem gpu(device, program, rows, columns);
      Beside beside(device, stream.get(), gpu.moved_bytes());
      std::vector<std::pair<double, std::string>> table;
      for (const Config& config : candidates(choose_config(program, cuda::machine_of(device), {rows, columns, 16}))) {
        auto made = cuda::CudaExecutable::create(device, program, config);
        if (!made) continue;
        for (std::int64_t wanted : {8,  12, 14,  15,  16,  24,  28,  30,  32,  33,  48,   56,   60,   64,
                                    66, 96, 112, 128, 132, 192, 256, 264, 384, 512, 1024, 2048, 4096, 8192}) {
          std::int64_t block = (rows + wanted - 1) / wanted;
          Blocks blocks = cut_rows((*made)->loaded().kernels(), rows, columns, block);
          if (blocks.workspace_bytes > (std::int64_t{1} << 30) || wanted * 4 > rows) continue;
          cuda::Memory workspace = must(device.allocate(blocks.workspace_bytes));
          double share = beside.share([&] {
            must((*made)->loaded().launch_rows(program, gpu.problem(), blocks, workspace.get(), stream.get(), 0, rows));
            must((*made)->loaded().launch_columns(program, gpu.problem(), blocks, workspace.get(), stream.get()));
          });
          table.emplace_back(
              share, fmt::format("{:<11} {:>7} {:>8} {:>6} {:>6}  {:>6.3f}  {}", program.name.substr(0, 10), columns,
                                 rows, block, blocks.count, share, (*made)->describe()));
        }
      }
      std::sort(table.begin(), table.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
      for (std::size_t k = 0; k < std::min(table.size(), best); ++k) fmt::print("{}\n", table[k].second);
      std::fflush(stdout);
    }
}

// Measures on a GPU what the contract's row_block costs: norm backwards at many widths, with many block sizes and
// schedules, as a share of a copy of the same bytes in the same run. The table behind ir/contract.hpp and
// schedule/config.cpp; docs/performance.md holds what it printed.
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

// The schedules worth a look: how many stripes a warp, how deep the ring.
std::vector<Config> candidates(const Config& chosen, std::int64_t columns) {
  std::vector<Config> configs = {chosen};
  std::int64_t stripes = contract::stripes(columns);
  for (int ring : {0, 2, 3, 4, 6})
    for (int each : {1, 2, 4, 8}) {
      Config other = chosen;
      other.ring = ring;
      other.reload = ring > 0;
      if (stripes == 1) {
        if (each > 1) continue;
      } else {
        other.hoist = true;
        other.stripes = each;
        other.groups = static_cast<int>((stripes + each - 1) / each);
        other.teams = other.groups == 1 ? 4 : 1;
        if (other.groups > 32 || each > static_cast<int>(2 * stripes)) continue;
      }
      configs.push_back(other);
    }
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
    for (std::int64_t columns : {128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072}) {
      std::int64_t rows = tensor / 2 / columns;
      Program program = bound(must(differentiate(must(parse(text)))), Type::BF16);
      GpuProblem gpu(device, program, rows, columns);
      double copy = copy_seconds(device, stream.get(), gpu.element_bytes());
      std::vector<std::pair<double, std::string>> table;
      for (const Config& config :
           candidates(choose_config(program, cuda::machine_of(device), {rows, columns, 16}), columns)) {
        auto made = cuda::CudaExecutable::create(device, program, config);
        if (!made) continue;
        for (std::int64_t wanted : {16, 32, 64, 128, 132, 256, 264, 512, 1024, 2048, 4096, 8192}) {
          std::int64_t block = (rows + wanted - 1) / wanted;
          Blocks blocks = cut_rows((*made)->kernels(), rows, columns, block);
          if (blocks.workspace_bytes > (std::int64_t{1} << 30) || wanted * 4 > rows) continue;
          cuda::Memory workspace = must(device.allocate(blocks.workspace_bytes));
          double seconds = median_seconds(device, stream.get(), [&] {
            must((*made)->launch(gpu.problem(), blocks, workspace.get(), stream.get(), 0, rows));
            must((*made)->launch_columns(gpu.problem(), blocks, workspace.get(), stream.get()));
          });
          table.emplace_back(copy / seconds,
                             fmt::format("{:<11} {:>7} {:>8} {:>6} {:>6}  {:>6.3f}  {}", program.name.substr(0, 10),
                                         columns, rows, block, blocks.count, copy / seconds, (*made)->describe()));
        }
      }
      std::sort(table.begin(), table.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
      for (std::size_t k = 0; k < std::min(table.size(), best); ++k) fmt::print("{}\n", table[k].second);
      std::fflush(stdout);
    }
}

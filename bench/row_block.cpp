// Measures on a GPU what the contract's row_block costs: norm backwards at many widths, with many block sizes and
// schedules, as a share of a copy of the same bytes in the same run. The table behind ir/contract.hpp and
// schedule/config.cpp; docs/performance.md holds what it printed.
//
//   row_block [MEGABYTES a tensor]
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "devices/cuda/cuda_device.hpp"
#include "ir/contract.hpp"
#include "language/parse.hpp"
#include "passes/passes.hpp"

using namespace trireme;

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

template <typename T>
T must(Result<T> result) {
  if (!result) fmt::print(stderr, "{}\n", result.error().message), std::exit(1);
  return std::move(*result);
}

double median_seconds(const cuda::Device& device, cuda::StreamHandle stream, auto&& work) {
  std::vector<double> seconds;
  cuda::Event start = must(device.event()), stop = must(device.event());
  for (int k = 0; k < 9; ++k) {
    must(device.record(start, stream));
    work();
    must(device.record(stop, stream));
    must(device.synchronize(stop));
    if (k >= 2) seconds.push_back(must(device.milliseconds(start, stop)) * 1e-3);
  }
  std::sort(seconds.begin(), seconds.end());
  return seconds[seconds.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  std::int64_t tensor = std::int64_t{argc > 1 ? std::atoi(argv[1]) : 256} << 20;
  const cuda::Driver* driver = must(cuda::Driver::instance());
  const cuda::Device& device = *must(driver->device(0));
  cuda::Stream stream = must(device.stream());
  cuda::Memory x = must(device.allocate(tensor)), dy = must(device.allocate(tensor)), dx = must(device.allocate(tensor));
  std::vector<std::uint16_t> noise(tensor / 2);
  for (std::size_t k = 0; k < noise.size(); ++k) noise[k] = 0x3F00 + (k * 2654435761u >> 24);
  must(device.copy(x.get(), noise.data(), tensor));
  must(device.copy(dy.get(), noise.data(), tensor));
  must(device.fill(dx.get(), 0, tensor));

  fmt::print("{:<11} {:>7} {:>8} {:>6} {:>6}  {:>6} {:>7}  {}\n", "program", "columns", "rows", "block", "blocks", "share",
             "rows/us", "config");
  for (const char* text : {rms_norm, layer_norm})
    for (std::int64_t columns : {128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072}) {
      std::int64_t rows = tensor / 2 / columns;
      Program backward = must(differentiate(must(parse(text))));
      Binding binding;
      for (const Operand& operand : backward.operands)
        if (!operand.constant)
          binding.types[operand.name] = operand.spread.row.present && operand.spread.column.present ? Type::BF16
                                        : operand.spread.row.present                                ? Type::F32
                                                                                                    : Type::BF16;
      for (const Output& result : backward.results)
        binding.types[result.name] = result.spread.row.present ? Type::BF16 : Type::F32;
      Program program = must(prepare(backward, binding));

      std::vector<double> constants(program.operands.size(), 1e-6);
      std::vector<Array> operands, results;
      std::vector<cuda::Memory> small;
      auto array = [&](const std::string& name, const Spread& spread, Type type) {
        if (spread.row.present && spread.column.present)
          return Array{name == "dy" ? dy.get() : name == "dx" ? dx.get() : x.get(), type, columns, 1};
        small.push_back(must(device.allocate((spread.row.present ? rows : columns) * 4)));
        must(device.fill(small.back().get(), 0x3F, (spread.row.present ? rows : columns) * 4));
        return Array{small.back().get(), type, spread.row.present ? 1 : 0, spread.row.present ? 0 : 1};
      };
      for (const Operand& operand : program.operands)
        operands.push_back(operand.constant ? Array{} : array(operand.name, operand.spread, *operand.type));
      for (const Output& result : program.results) results.push_back(array(result.name, result.spread, *result.type));
      Problem2d problem{rows, columns, constants, operands, results};

      double copy = median_seconds(device, stream.get(), [&] {
        must(device.copy_async(dx.get(), x.get(), tensor, stream.get()));
      }) * 1.5;  // three tensors instead of two
      Config chosen = choose_config(program, cuda::machine_of(device), {rows, columns, 16});
      std::vector<Config> configs = {chosen};
      std::int64_t stripes = contract::stripes(columns);
      for (int each : {1, 2, 4, 8})
        for (int ring : {0, 2, 3, 4}) {
          Config other = chosen;
          other.stripes = each;
          other.groups = static_cast<int>((stripes + each - 1) / each);
          other.ring = ring;
          if (stripes == 1) continue;
          other.hoist = true;
          other.reload = ring > 0;
          other.teams = other.groups == 1 ? 4 : 1;
          if (other.groups <= 32 && other.groups >= 1 && (each == 1 || each <= stripes)) configs.push_back(other);
        }
      if (stripes == 1)
        for (int ring : {0, 2, 4, 6}) {
          Config other = chosen;
          other.ring = ring;
          configs.push_back(other);
        }
      struct Row {
        double share;
        std::string text;
      };
      std::vector<Row> table;
      for (const Config& config : configs) {
        auto made = cuda::CudaExecutable::create(device, program, config);
        if (!made) continue;
        for (std::int64_t wanted : {64, 128, 132, 256, 264, 512, 528, 1024, 1056, 2048, 4096, 8192}) {
          std::int64_t block = (rows + wanted - 1) / wanted;
          Blocks blocks = cut_rows((*made)->kernels(), rows, columns, block);
          if (blocks.workspace_bytes > (std::int64_t{1} << 30) || wanted * 4 > rows) continue;
          cuda::Memory workspace = must(device.allocate(blocks.workspace_bytes));
          double seconds = median_seconds(device, stream.get(), [&] {
            must((*made)->launch(problem, blocks, workspace.get(), stream.get(), 0, rows));
            must((*made)->launch_columns(problem, blocks, workspace.get(), stream.get()));
          });
          table.push_back({copy / seconds,
                           fmt::format("{:<11} {:>7} {:>8} {:>6} {:>6}  {:>6.3f} {:>7.1f}  {}", text == rms_norm ? "rms_norm" : "layer_norm",
                                       columns, rows, block, blocks.count, copy / seconds, rows / seconds * 1e-6,
                                       (*made)->describe())});
        }
      }
      std::sort(table.begin(), table.end(), [](const Row& a, const Row& b) { return a.share > b.share; });
      for (std::size_t k = 0; k < std::min<std::size_t>(table.size(), 8); ++k) fmt::print("{}\n", table[k].text);
      fmt::print("\n");
      std::fflush(stdout);
    }
}

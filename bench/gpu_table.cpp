// Share of a device copy of the same bytes that every operator reaches on a GPU, with the schedule it gets by itself.
//
//   gpu_table [MEGABYTES a tensor [OPERATOR ...]]
#include <atomic>
#include <thread>

#include "bench/gpu_problem.hpp"
#include "language/parse.hpp"
#include "plan/ops.hpp"

using namespace trireme;
using namespace trireme::bench;

namespace {

struct Point {
  std::int64_t rows, columns;
  std::unique_ptr<cuda::CudaExecutable> executable;
  std::string trouble;
};

void compile_all(const cuda::Device& device, const Program& program, std::vector<Point>& points) {
  std::atomic<std::size_t> next = 0;
  std::vector<std::jthread> workers;  // the driver compiles on all cores
  for (unsigned k = 0; k < std::max(1u, std::thread::hardware_concurrency()); ++k)
    workers.emplace_back([&] {
      for (std::size_t p; (p = next++) < points.size();) {
        std::int64_t columns = points[p].columns, alignment = std::min<std::int64_t>(16, columns & -columns);
        Config config = choose_config(program, cuda::machine_of(device), {points[p].rows, columns, alignment});
        if (auto made = cuda::CudaExecutable::create(device, program, config)) points[p].executable = std::move(*made);
        else points[p].trouble = made.error().message;
      }
    });
}

}  // namespace

int main(int argc, char** argv) {
  std::int64_t tensor = std::int64_t{argc > 1 ? std::atoi(argv[1]) : 256} << 20;
  auto wanted = [&](std::string_view name) {
    for (int k = 2; k < argc; ++k)
      if (name == argv[k]) return true;
    return argc <= 2;
  };
  const cuda::Device& device = *must(must(cuda::Driver::instance())->device(0));
  cuda::Stream stream = must(device.stream());
  for (const OperatorText& each : operator_texts()) {
    if (!wanted(each.name)) continue;
    for (bool backward : {false, true})
      for (Type type : {Type::BF16, Type::F16, Type::F32}) {
        Program source = must(parse(each.text));
        if (backward) source = must(differentiate(source));
        Program program = bound(source, type);
        std::vector<Point> points;
        for (std::int64_t columns : {128, 256, 512, 1024, 2048, 2880, 3584, 4096, 5120, 7168, 8192, 12288, 16384, 18432,
                                     32768, 65536, 131072}) {
          bool some = columns == 128 || columns == 1024 || columns == 4096 || columns == 16384 || columns == 65536;
          if (type == Type::F16 && !some) continue;  // the bytes of bf16, and nearly its instructions
          points.push_back({tensor / static_cast<std::int64_t>(bytes(type)) / columns, columns, nullptr, ""});
        }
        compile_all(device, program, points);
        fmt::print("{:<16} {:<8} {:<4}", each.name, backward ? "backward" : "forward", name(type));
        for (const Point& point : points) {
          if (!point.executable) {
            fmt::print("  {}: {}", point.columns, point.trouble);
            continue;
          }
          GpuProblem gpu(device, program, point.rows, point.columns);
          const cuda::LoadedKernels& loaded = point.executable->loaded();
          Blocks blocks = cut_rows(loaded.kernels(), point.rows, point.columns);
          cuda::Memory workspace = must(device.allocate(std::max<std::int64_t>(blocks.workspace_bytes, 16)));
          double share = Beside(device, stream.get(), gpu.element_bytes()).share([&] {
            must(loaded.launch_rows(program, gpu.problem(), blocks, workspace.get(), stream.get(), 0, point.rows));
            must(loaded.launch_columns(program, gpu.problem(), blocks, workspace.get(), stream.get()));
          });
          fmt::print("  {}: {:.2f}", point.columns, share);
          std::fflush(stdout);
        }
        fmt::print("\n");
      }
  }
}

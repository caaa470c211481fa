// Share of a device copy of the same bytes that every operator reaches on a GPU, with the schedule it gets by itself.
//
//   gpu_table [MEGABYTES a tensor [OPERATOR ...]]
#include "bench/gpu_problem.hpp"
#include "language/parse.hpp"
#include "plan/ops.hpp"

using namespace trireme;
using namespace trireme::bench;

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
      for (Type type : {Type::BF16, Type::F32}) {
        fmt::print("{:<16} {:<8} {:<4}", each.name, backward ? "backward" : "forward", name(type));
        for (std::int64_t columns :
             {128, 256, 512, 1024, 2048, 2880, 4096, 5120, 8192, 12288, 16384, 32768, 65536, 131072}) {
          std::int64_t rows = tensor / static_cast<std::int64_t>(bytes(type)) / columns;
          Program source = must(parse(each.text));
          if (backward) source = must(differentiate(source));
          Program program = bound(source, type);
          GpuProblem gpu(device, program, rows, columns);
          Facts facts = facts_of(program, gpu.problem());
          auto made =
              cuda::CudaExecutable::create(device, program, choose_config(program, cuda::machine_of(device), facts));
          if (!made) {
            fmt::print("  {}: {}", columns, made.error().message);
            continue;
          }
          Blocks blocks = cut_rows((*made)->loaded().kernels(), rows, columns);
          cuda::Memory workspace = must(device.allocate(std::max<std::int64_t>(blocks.workspace_bytes, 16)));
          double share = Beside(device, stream.get(), gpu.element_bytes()).share([&] {
            must((*made)->loaded().launch_rows(program, gpu.problem(), blocks, workspace.get(), stream.get(), 0, rows));
            must((*made)->loaded().launch_columns(program, gpu.problem(), blocks, workspace.get(), stream.get()));
          });
          fmt::print("  {}: {:.2f}", columns, share);
          std::fflush(stdout);
        }
        fmt::print("\n");
      }
  }
}

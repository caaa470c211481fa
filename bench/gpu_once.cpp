// Launches an operator's kernel a few times and ends: what a profiler wants to look at (bench/gpu_counters.py).
//
//   gpu_once ROWS|MEGABYTESM OPERATOR[:backward][:f16|:f32] COLUMNS [CONFIG]
#include "bench/gpu_problem.hpp"

using namespace trireme;
using namespace trireme::bench;

int main(int argc, char** argv) {
  if (argc < 4) return fmt::print("gpu_once ROWS|MEGABYTESM OPERATOR[:backward][:f16|:f32] COLUMNS [CONFIG]\n"), 2;
  Wanted wanted(argv[2]);
  Program program = wanted.program();
  std::int64_t columns = std::atoll(argv[3]), rows = std::atoll(argv[1]);
  if (std::strchr(argv[1], 'M')) rows = wanted.rows(rows << 20, columns);
  const cuda::Device& device = *must(must(cuda::Driver::instance())->device(0));
  cuda::Stream stream = must(device.stream());
  GpuProblem gpu(device, program, rows, columns);
  Config config = argc > 4 ? must(parse_config(argv[4]))
                           : choose_config(program, cuda::machine_of(device), facts_of(program, gpu.problem()));
  auto made = must(cuda::CudaExecutable::create(device, program, config));
  const cuda::LoadedKernels& loaded = made->loaded();
  Blocks blocks = cut_rows(loaded.kernels(), rows, columns);
  cuda::Memory workspace = must(device.allocate(std::max<std::int64_t>(blocks.workspace_bytes, 16)));
  for (int k = 0; k < 4; ++k) {
    must(loaded.launch_rows(program, gpu.problem(), blocks, workspace.get(), stream.get(), 0, rows));
    must(loaded.launch_columns(program, gpu.problem(), blocks, workspace.get(), stream.get()));
  }
  must(device.synchronize(stream.get()));
  fmt::print("{}\n", print(config));
}

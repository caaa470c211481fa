// Milliseconds from a program's text to its first result on a GPU, and where they go. Run it twice with the same
// TRIREME_CACHE: the first run compiles, the second reads. With TRIREME_CACHE=off the driver's own cache shows, and
// with CUDA_CACHE_DISABLE=1 not even that.
//
//   first_result [OPERATOR ...]
#include <chrono>

#include "bench/gpu_problem.hpp"
#include "devices/cuda/modules.hpp"
#include "language/parse.hpp"
#include "plan/ops.hpp"
#include "schedule/lower.hpp"
#include "targets/ptx/emit.hpp"

using namespace trireme;
using namespace trireme::bench;

namespace {

class Clock {
 public:
  double lap() {  // milliseconds since the last one
    auto now = std::chrono::steady_clock::now();
    return std::chrono::duration<double, std::milli>(now - std::exchange(last_, now)).count();
  }

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

std::string registers(const cuda::Device& device, const cuda::Module& module, const char* name) {
  cuda::FunctionFacts facts = must(device.function_facts(must(device.function(module, name))));
  return fmt::format("{} registers{}", facts.registers,
                     facts.local_bytes ? fmt::format(" and {} local bytes", facts.local_bytes) : "");
}

}  // namespace

int main(int argc, char** argv) {
  const cuda::Device& device = *must(must(cuda::Driver::instance())->device(0));
  cuda::Modules& modules = device.modules();
  cuda::Stream stream = must(device.stream());
  const char* folder = modules.cache().disk() ? modules.cache().disk()->folder().path().c_str() : "no disk";
  Clock clock;
  bool linked = modules.linked_is_as_good();
  fmt::print("cache: {}; linked code is {}, asked in {:.1f} ms\n", folder,
             !modules.cache().disk() ? "not asked for"
             : linked                ? "as good"
                                     : "worse, PTX is loaded as it is",
             clock.lap());
  constexpr std::int64_t rows = 64, columns = 4096;
  for (const OperatorText& each : operator_texts()) {
    bool wanted = argc <= 1;
    for (int k = 1; k < argc; ++k) wanted |= each.name == std::string_view(argv[k]);
    if (!wanted) continue;
    for (bool backward : {false, true}) {
      Program example = must(parse(each.text));
      if (backward) example = must(differentiate(example));
      GpuProblem gpu(device, bound(example, Type::BF16), rows, columns);  // memory is not what is measured
      must(device.synchronize());

      clock.lap();
      Program source = must(parse(each.text));
      if (backward) source = must(differentiate(source));
      Program program = bound(source, Type::BF16);
      Config config = choose_config(program, cuda::machine_of(device), facts_of(program, gpu.problem()));
      auto made = must(cuda::CudaExecutable::create(device, program, config));
      double compiled = clock.lap();
      Blocks blocks = cut_rows(made->loaded().kernels(), rows, columns);
      cuda::Memory workspace = must(device.allocate(std::max<std::int64_t>(blocks.workspace_bytes, 16)));
      must(made->loaded().launch_rows(program, gpu.problem(), blocks, workspace.get(), stream.get(), 0, rows));
      must(made->loaded().launch_columns(program, gpu.problem(), blocks, workspace.get(), stream.get()));
      must(device.synchronize(stream.get()));
      double ran = clock.lap();

      // The same in parts; a comment of its own makes the text new to every cache.
      std::string text =
          must(ptx::emit(must(lower(program, config)), device.facts().capability >= 90 ? "sm_90" : "sm_80"));
      double emitted = clock.lap();
      text += fmt::format("// {}\n", std::chrono::steady_clock::now().time_since_epoch().count());
      cuda::Module loaded = must(modules.load_image(text));
      double load = clock.lap();
      std::string cubin = must(modules.link(text));
      double link = clock.lap();
      cuda::Module from_cubin = must(modules.load_image(cubin));
      double image = clock.lap();
      const char* name = made->loaded().kernels().rows.name.c_str();
      fmt::print(
          "{:<24} first result {:6.1f} ms (to code {:5.1f}); emit {:4.1f}, load PTX {:5.1f}, link {:5.1f}, "
          "load cubin {:4.1f}; loaded {}, linked {}\n",
          std::string(each.name) + (backward ? " backward" : ""), compiled + ran, compiled, emitted, load, link, image,
          registers(device, loaded, name), registers(device, from_cubin, name));
    }
  }
}

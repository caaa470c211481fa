// The textbook's norms (examples/jit/normalization.cu) on a GPU, beside the generated kernels: first both are held to
// the oracle, then timed as shares of a device copy of the same bytes. Exits with 1 where a result is out of its
// bounds.
//
//   textbook [FILE.cu [MEGABYTES a tensor]]
#include "bench/textbook.hpp"

#include <fstream>
#include <map>

#include "bench/gpu_problem.hpp"
#include "devices/cuda/jit_kernel.hpp"
#include "language/parse.hpp"
#include "plan/check.hpp"

using namespace trireme;
using namespace trireme::bench;

namespace {

class Textbook {
 public:
  Textbook(const cuda::Device& device, std::string file) : device_(device), file_(std::move(file)) {
    std::ifstream stream(file_);
    source_.assign(std::istreambuf_iterator<char>(stream), {});
  }
  const std::string& source() const { return source_; }

  const jit::Kernel& kernel(const std::string& name, Type type) {
    auto [place, fresh] = kernels_.try_emplace({name, type});
    if (fresh) {
      jit::Options options{
          .flags = type == Type::BF16 ? std::vector<std::string>{"-DBF16"} : std::vector<std::string>{}, .file = file_};
      place->second = std::make_unique<jit::Kernel>(must(cuda::kernel_from_source(device_, source_, name, options)));
      fmt::print("  {} {}\n", name_of(type), place->second->describe());
    }
    return *place->second;
  }

  void run(const std::vector<TextbookLaunch>& launches, Type type, cuda::StreamHandle stream) {
    for (const TextbookLaunch& launch : launches) {
      std::vector<jit::Argument> arguments;
      for (const auto& each : launch.arguments) arguments.push_back({each.data(), each.size()});
      must(kernel(launch.kernel, type).launch_packed({launch.grid}, {launch.block}, 0, stream, arguments));
    }
  }
  static std::string_view name_of(Type type) { return name(type); }

 private:
  const cuda::Device& device_;
  std::string file_, source_;
  std::map<std::pair<std::string, Type>, std::unique_ptr<jit::Kernel>> kernels_;
};

TextbookProblem problem_for(const cuda::Device& device, const std::string& program, bool backward, const Program& bound,
                            const Problem2d& on_device) {
  TextbookProblem problem{.program = program,
                          .backward = backward,
                          .rows = on_device.rows,
                          .columns = on_device.columns,
                          .eps = program == "layer_norm" ? 1e-5f : 1e-6f};
  // Four blocks a multiprocessor keep it busy; more parts would only be more to add up.
  problem.parts = std::min<std::int64_t>(on_device.rows, backward ? 4 * device.facts().multiprocessors : 0);
  if (on_device.rows <= 512)
    problem.parts = std::min<std::int64_t>(problem.parts, 64);  // as textbook_error counts them
  problem.array = [&bound, on_device](const std::string& name) -> void* {
    for (std::size_t k = 0; k < bound.array_count(); ++k)
      if (bound.array(k).name == name) return on_device.arrays[k].data;
    return nullptr;
  };
  return problem;
}

// Brings the results back into the problem's own memory.
void fetch_results(const cuda::Device& device, const cuda::DeviceArrays& arrays, Prepared& prepared) {
  const std::size_t first = prepared.operands().size();
  for (std::size_t k = 0; k < prepared.results().size(); ++k)
    must(device.copy(prepared.buffers.results[k].memory.data(), arrays.problem.arrays[first + k].data,
                     prepared.buffers.results[k].memory.size()));
}

bool check_line(const cuda::Device& device, Textbook& textbook, const std::string& line) {
  Prepared prepared = must(prepare_problem(must(parse_problem(line))));
  const Type type = prepared.operands()[0].type;
  std::vector<OracleResult> oracle = must(run_oracle(prepared.bound, prepared.view()));
  auto generated = must(cuda::CudaExecutable::create(
      device, prepared.program,
      choose_config(prepared.program, cuda::machine_of(device), facts_of(prepared.program, prepared.view()))));
  poison_results(prepared);
  must(generated->run(prepared.view(), {}));
  bool fine = true;
  for (const LargestError& each : largest_errors(prepared.bound, oracle, prepared.result_elements()))
    if (!each.fine())
      fine = false, fmt::print("FAIL {} generated {} is out of the oracle's bounds\n", line, each.result);
  std::vector<std::vector<double>> wanted;
  for (std::size_t k = 0; k < oracle.size(); ++k) {
    wanted.emplace_back();
    for (std::int64_t r = 0; r < oracle[k].row_extent; ++r)
      for (std::int64_t c = 0; c < oracle[k].column_extent; ++c)
        wanted.back().push_back(load_f64(prepared.results()[k].type, prepared.results()[k].entry(r, c)));
  }

  poison_results(prepared);
  auto arrays = must(cuda::to_device(device, prepared.program, prepared.view()));
  TextbookProblem problem =
      problem_for(device, prepared.problem.program, prepared.problem.backward, prepared.bound, arrays->problem);
  cuda::Memory workspace = must(device.allocate(std::max<std::int64_t>(4 * problem.workspace_floats(), 16)));
  problem.workspace = static_cast<float*>(workspace.get());
  cuda::Stream stream = must(device.stream());
  std::string digests[2];
  for (std::string& digest : digests) {
    must(device.fill(workspace.get(), 0xff, std::max<std::int64_t>(4 * problem.workspace_floats(), 16)));
    textbook.run(textbook_launches(problem), type, stream.get());
    must(device.synchronize(stream.get()));
    fetch_results(device, *arrays, prepared);
    digest = digest_of(prepared);
  }
  if (digests[0] != digests[1]) fine = false, fmt::print("FAIL {} the textbook's bits change from run to run\n", line);
  for (std::size_t k = 0; k < oracle.size(); ++k) {
    TextbookError found = textbook_error(oracle[k], prepared.results()[k]);
    double difference = 0;
    for (std::int64_t r = 0; r < oracle[k].row_extent; ++r)
      for (std::int64_t c = 0; c < oracle[k].column_extent; ++c)
        difference =
            std::max(difference, std::fabs(load_f64(prepared.results()[k].type, prepared.results()[k].entry(r, c)) -
                                           wanted[k][static_cast<std::size_t>(r * oracle[k].column_extent + c)]));
    fmt::print("{} {:<36} {:<8} textbook's error {:.2e} of {:.2e} allowed; from the generated {:.2e}\n",
               found.worst <= 1 ? "ok  " : "FAIL", line, prepared.bound.results[k].name, found.error, found.allowed,
               difference);
    fine &= found.worst <= 1;
  }
  return fine;
}

void time_both(const cuda::Device& device, Textbook& textbook, const std::string& name, bool backward, Type type,
               std::int64_t tensor) {
  cuda::Stream stream = must(device.stream());
  fmt::print("{:<12} {:<8} {:<4}", name, backward ? "backward" : "forward", Textbook::name_of(type));
  for (std::int64_t columns : {1024, 4096, 8192, 16384}) {
    std::int64_t rows = tensor / static_cast<std::int64_t>(bytes(type)) / columns;
    Program source = must(find_program(name));
    if (backward) source = must(differentiate(source));
    Program program = bound(source, type);
    GpuProblem gpu(device, program, rows, columns);
    auto made = must(cuda::CudaExecutable::create(
        device, program, choose_config(program, cuda::machine_of(device), facts_of(program, gpu.problem()))));
    Blocks blocks = cut_rows(made->loaded().kernels(), rows, columns);
    cuda::Memory partials = must(device.allocate(std::max<std::int64_t>(blocks.workspace_bytes, 16)));
    Beside beside(device, stream.get(), gpu.moved_bytes());
    double generated = beside.share([&] {
      must(made->loaded().launch_rows(program, gpu.problem(), blocks, partials.get(), stream.get(), 0, rows));
      must(made->loaded().launch_columns(program, gpu.problem(), blocks, partials.get(), stream.get()));
    });
    TextbookProblem problem = problem_for(device, name, backward, program, gpu.problem());
    cuda::Memory workspace = must(device.allocate(std::max<std::int64_t>(4 * problem.workspace_floats(), 16)));
    problem.workspace = static_cast<float*>(workspace.get());
    std::vector<TextbookLaunch> launches = textbook_launches(problem);
    double plain = beside.share([&] { textbook.run(launches, type, stream.get()); });
    fmt::print("  {}: {:.2f} | {:.2f}", columns, generated, plain);
    std::fflush(stdout);
  }
  fmt::print("\n");
}

}  // namespace

int main(int argc, char** argv) {
  std::string file = argc > 1 ? argv[1] : "examples/jit/normalization.cu";
  std::int64_t tensor = std::int64_t{argc > 2 ? std::atoi(argv[2]) : 256} << 20;
  const cuda::Device& device = *must(must(cuda::Driver::instance())->device(0));
  Textbook textbook(device, file);
  if (textbook.source().empty()) {
    fmt::print(stderr, "{} cannot be read\n", file);
    return 1;
  }
  if (auto nvrtc = cuda::Nvrtc::open(""); !nvrtc) {
    fmt::print("skipped: {}\n", nvrtc.error().message);
    return 0;
  }
  fmt::print("{} at {}\n", must(cuda::Nvrtc::open(""))->name(), must(cuda::Nvrtc::open(""))->path());
  for (std::string name :
       {"layer_norm_forward", "layer_norm_backward", "rms_norm_forward", "rms_norm_backward", "column_sums"})
    for (Type type : {Type::F32, Type::BF16}) textbook.kernel(name, type);
  bool fine = true;
  for (std::string name : {"rms_norm", "layer_norm"})
    for (std::string shape : {"1x1", "33x1000", "512x4096"})
      for (std::string types : {"", " x=bf16"})
        for (std::string direction : {"", " backward"})
          fine &= check_line(device, textbook, name + " " + shape + types + direction);
  fmt::print("share of a device copy: columns: generated | textbook\n");
  for (std::string name : {"rms_norm", "layer_norm"})
    for (bool backward : {false, true})
      for (Type type : {Type::BF16, Type::F32}) time_both(device, textbook, name, backward, type, tensor);
  return fine ? 0 : 1;
}

// Small batches on a GPU: a kernel's own time beside an empty kernel's, both replayed from graphs of 64 launches, and
// what a call of Plan::run costs its caller.
//
//   small_batches [OPERATOR ...]
#include <chrono>

#include "bench/gpu_problem.hpp"
#include "trireme/plan.hpp"
#include "trireme/ptx.hpp"

using namespace trireme;
using namespace trireme::bench;

namespace {

constexpr int launches = 64;

// Microseconds a launch.
template <typename Work>
double replayed(const cuda::Device& device, cuda::StreamHandle stream, Work&& launch) {
  cuda::Graph graph = must(device.capture(stream, [&]() -> Status {
    for (int k = 0; k < launches; ++k) TRIREME_CHECK(launch());
    return Done{};
  }));
  cuda::Event start = must(device.event()), stop = must(device.event());
  std::vector<double> times;
  for (int k = 0; k < 25; ++k) {
    must(device.record(start, stream));
    must(device.launch(graph, stream));
    must(device.record(stop, stream));
    must(device.synchronize(stop));
    if (k >= 5) times.push_back(must(device.milliseconds(start, stop)) * 1e3 / launches);
  }
  std::nth_element(times.begin(), times.begin() + times.size() / 2, times.end());
  return times[times.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> names(argv + 1, argv + argc);
  if (names.empty()) names = {"rms_norm", "layer_norm", "softmax", "swiglu"};
  const cuda::Device& device = *must(must(cuda::Driver::instance())->device(0));
  cuda::Stream stream = must(device.stream());
  ptx::Module text("sm_80");
  text.kernel("empty", {.reqntid = {128}}).ret();
  cuda::Module module = must(device.load(must(text.text())));
  cuda::Function empty = must(device.function(module, "empty"));
  fmt::print("{:<12} {:>5} {:>8}  {:>9} {:>9} {:>9} {:>9}  (us)\n", "bf16", "rows", "columns", "kernel", "empty",
             "host", "launch");
  for (const std::string& name : names)
    for (std::int64_t columns : {1024, 4096, 8192})
      for (std::int64_t rows : {1, 16, 128}) {
        RowProgram program = must(RowProgram::named(name));
        PlanOptions options{.program = program, .shape = {rows, columns}};
        for (const RowProgram::Parameter& each : program.signature())
          if (each.kind == RowProgram::Kind::Operand) options.types[each.name] = Type::BF16;
        Plan plan = must(Plan::create(must(Device::cuda()), options));
        must(plan.prepare());
        Args args = plan.args();
        std::int64_t apart = std::max<std::int64_t>(rows * columns * 4, 1 << 20);
        cuda::Memory memory = must(device.allocate(apart * static_cast<std::int64_t>(plan.names().size())));
        char* at = static_cast<char*>(memory.get());
        for (const std::string& array : plan.names()) {
          must(device.fill(at, 0x3F, rows * columns * 4));
          args[array] = View{at, options.types.contains(array) ? options.types[array]
                                 : array == "y"                ? Type::BF16
                                                               : Type::F32};
          at += apart;
        }
        Stream queue{stream.get()};
        must(plan.run(args, queue));
        must(device.synchronize(stream.get()));
        auto host_time = [&](auto&& launch) {
          constexpr int calls = 500;  // fewer than a stream holds: nobody waits
          auto begin = std::chrono::steady_clock::now();
          for (int k = 0; k < calls; ++k) must(launch());
          std::chrono::duration<double, std::micro> host = std::chrono::steady_clock::now() - begin;
          must(device.synchronize(stream.get()));
          return host.count() / calls;
        };
        double host = host_time([&] { return plan.run(args, queue); });
        double bare = host_time(
            [&] { return device.launch(empty, {.grid = {1}, .block = {128}, .stream = stream.get()}, nullptr); });
        double kernel = replayed(device, stream.get(), [&] { return plan.run(args, queue); });
        auto blocks = static_cast<std::uint32_t>(std::min<std::int64_t>(rows, 128));
        double nothing = replayed(device, stream.get(), [&] {
          return device.launch(empty, {.grid = {blocks}, .block = {128}, .stream = stream.get()}, nullptr);
        });
        fmt::print("{:<12} {:>5} {:>8}  {:>9.2f} {:>9.2f} {:>9.2f} {:>9.2f}\n", name, rows, columns, kernel, nothing,
                   host, bare);
      }
}

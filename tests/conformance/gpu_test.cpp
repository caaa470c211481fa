// On a real GPU: operators x types x shapes x layouts x schedules, bit for bit, on a stream of their own, with spoiled
// results and canaries around every buffer. bench/gpu.sh runs these; elsewhere they are skipped, and say why.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <random>
#include <thread>

#include "devices/arguments.hpp"
#include "ir/contract.hpp"
#include "plan/check.hpp"
#include "plan/devices.hpp"
#include "plan/difference.hpp"
#include "plan/on_gpu_for_test.hpp"
#include "plan/ops.hpp"
#include "problem/problem_shape.hpp"
#include "problem/remarks.hpp"
#include "problem/samples.hpp"
#include "reference/reference.hpp"
#include "schedule/valid.hpp"
#include "support/float_types.hpp"

namespace trireme {
namespace {

constexpr std::uint8_t canary = 0xC3;
constexpr std::size_t fence_bytes = 4096;

// Device memory between two fences; it begins as far from a multiple of 256 bytes as the host's does.
class Fenced {
 public:
  Fenced(const cuda::Device& device, std::size_t bytes, std::size_t offset = 0)
      : device_(device), bytes_(bytes), offset_(fence_bytes + offset) {
    memory_ = device.allocate(offset_ + bytes + fence_bytes).value();
    device.fill(memory_.get(), canary, offset_ + bytes + fence_bytes).value();
  }
  std::byte* data() const { return static_cast<std::byte*>(memory_.get()) + offset_; }
  std::vector<std::byte> read() const {
    std::vector<std::byte> host(bytes_);
    if (bytes_) device_.copy(host.data(), data(), bytes_).value();
    return host;
  }
  bool whole() const {
    std::vector<std::byte> host(offset_ + bytes_ + fence_bytes);
    device_.copy(host.data(), memory_.get(), host.size()).value();
    auto fine = [](std::byte each) { return each == std::byte{canary}; };
    return std::all_of(host.begin(), host.begin() + static_cast<std::ptrdiff_t>(offset_), fine) &&
           std::all_of(host.begin() + static_cast<std::ptrdiff_t>(offset_ + bytes_), host.end(), fine);
  }

 private:
  const cuda::Device& device_;
  std::size_t bytes_, offset_;
  cuda::Memory memory_;
};

// Runs a prepared problem on the GPU as a plan would, and brings its results back into the prepared buffers.
std::string run_fenced(const cuda::Device& device, const DirectExecutable& executable, Prepared& prepared) {
  std::vector<std::unique_ptr<Fenced>> memory;
  std::vector<Array> arrays = prepared.arrays;
  auto bring = [&](Buffer& buffer, Array& array) {
    std::size_t offset = reinterpret_cast<std::uintptr_t>(buffer.memory.data()) % 256;
    memory.push_back(std::make_unique<Fenced>(device, buffer.memory.size(), offset));
    if (!buffer.memory.empty()) device.copy(memory.back()->data(), buffer.memory.data(), buffer.memory.size()).value();
    array.data = memory.back()->data() + (static_cast<std::byte*>(buffer.array.data) - buffer.memory.data());
  };
  std::size_t number = 0;
  for (auto* buffers : {&prepared.buffers.operands, &prepared.buffers.results})
    for (Buffer& buffer : *buffers) bring(buffer, arrays[number++]);
  Problem2d problem = prepared.view();
  problem.arrays = arrays;
  DirectExecutable::MemoryBytes bytes = executable.memory_bytes(problem.rows, problem.columns, {});
  Fenced workspace(device, static_cast<std::size_t>(bytes.workspace));
  std::vector<std::byte, CacheLineAllocator<std::byte>> own(static_cast<std::size_t>(bytes.own));
  cuda::Stream stream = device.stream().value();
  Status done =
      executable.run_in(problem, {}, {.workspace = workspace.data(), .own = own.data(), .stream = stream.get()});
  if (!done) return std::string(name(done.error().code)) + ": " + done.error().message;
  device.synchronize(stream.get()).value();
  std::size_t at = 0;
  for (Buffer& buffer : prepared.buffers.operands) {
    if (!memory[at]->whole()) return "the canary around an operand is gone";
    std::vector<std::byte> now = memory[at++]->read();
    if (std::memcmp(now.data(), buffer.memory.data(), now.size()) != 0) return "an operand was written to";
  }
  for (Buffer& buffer : prepared.buffers.results) {
    if (!memory[at]->whole()) return "the canary around a result is gone";
    std::vector<std::byte> now = memory[at++]->read();
    if (!now.empty()) std::memcpy(buffer.memory.data(), now.data(), now.size());
  }
  return workspace.whole() ? "" : "the canary around the workspace is gone";
}

// Empty, or what is wrong. `make` makes the executable for the prepared problem; Unsupported is no fault.
template <typename Make>
std::string compare(const cuda::Device& device, const std::string& line, std::string_view text, Make&& make) {
  auto prepare = [&] { return prepare_problem(parse_problem(line).value(), text); };
  Result<Prepared> wanted = prepare(), got = prepare();
  if (!wanted) return wanted.error().message;
  Status status = run_reference(wanted->program, wanted->view());
  if (!status) return status.error().message;
  Result<std::unique_ptr<Executable>> executable = make(*got);
  if (!executable) return executable.error().code == Code::Unsupported ? "" : executable.error().message;
  poison_results(*got);
  std::string wrong = run_fenced(device, *(*executable)->direct(), *got);
  if (wrong.empty() && digest_of(*got) != digest_of(*wanted)) wrong = "other bits";
  if (wrong.empty()) return "";
  return fmt::format("{}: {} ({})   rerun: trireme verify \"{}\" --device cuda", line, wrong, (*executable)->describe(),
                     line);
}

Result<std::unique_ptr<Executable>> chosen(const Prepared& prepared) {
  return find_device("cuda")->compile(prepared.program, facts_of(prepared.program, prepared.view()));
}

std::vector<std::string> operator_lines() {
  constexpr const char* types[] = {"f32", "bf16", "f16", "f64", "f8e4m3", "f8e5m2"};
  constexpr const char* layouts[] = {"", "+1", "+3:4500", "+0:4500", "+8:4504"};
  constexpr const char* shapes[] = {"0x33",  "1x1",     "7x2",     "5x31",   "129x33", "9x257",
                                    "3x541", "40x1024", "12x2880", "9x4096", "6x4097"};
  std::vector<std::string> lines;
  std::size_t turn = 0;
  for (const OperatorText& each : operator_texts()) {
    std::vector<std::string> tries = parse_remarks(each.text).value().tries;
    Program program = find_program(each.name).value();
    const std::optional<std::size_t> leading = leading_operand(program);
    const std::string element = leading ? program.operands[*leading].name : "";
    // Where an operator needs constants, its own lines have them.
    bool needs_constants = false;
    for (const Operand& operand : program.operands) needs_constants |= operand.constant && operand.fallback == no_node;
    for (const char* shape : shapes) {
      if (needs_constants) break;
      std::string layout = layouts[turn % std::size(layouts)];
      const std::string type = element + "=" + types[turn % std::size(types)] + layout;
      const std::string line = element.empty() ? shape : fmt::format("{} {}", shape, type);
      // As with odd columns and n / 2, and tables without rows.
      const Problem problem = parse_problem(fmt::format("{} {}", each.name, line)).value();
      if (prepare_problem(problem, {}, Fill::NoMemory)) tries.push_back(line);
      turn += 1 + static_cast<std::size_t>(turn % 7 == 0);
    }
    for (const std::string& line : tries)
      for (const char* direction : {"", " backward"})
        lines.push_back(fmt::format("{} {}{}", each.name, line, direction));
  }
  return lines;
}

TEST(GpuLines, AreProblems) {
  for (const std::string& line : operator_lines()) {
    Result<Problem> problem = parse_problem(line);
    ASSERT_TRUE(problem) << line << ": " << problem.error().message;
    Result<Prepared> prepared = prepare_problem(*problem);
    EXPECT_TRUE(prepared) << line << ": " << prepared.error().message;
  }
}

TEST_F(OnGpu, OperatorsTypesShapesLayouts) {
  std::vector<std::string> lines = operator_lines();
  for (const std::string& line : lines) EXPECT_EQ(compare(*device, line, {}, chosen), "");
  fmt::print("{} problems\n", lines.size());
}

TEST_F(OnGpu, LongRows) {
  for (const char* line :
       {"rms_norm 3x65537 x=bf16", "rms_norm 3x65537 x=bf16 backward", "layer_norm 17x131072 x=bf16 backward",
        "softmax 5x100001 x=f32", "rms_norm 2x1048576 x=bf16", "rms_norm 2x1048576 x=bf16 backward",
        "dynamic_tanh 3x70000 backward", "rms_norm 70000x8 backward", "dynamic_tanh 40000x3 backward",
        "swiglu 200000x7 x=bf16 backward"})
    EXPECT_EQ(compare(*device, line, {}, chosen), "");
}

// Schedules that the heuristics would not choose, drawn at random.
TEST_F(OnGpu, Schedules) {
  constexpr std::string_view programs[] = {
      "p(x[i,j], gamma[j] = 1, eps = 1e-6) -> (y[i,j], rstd[i])\n"
      "  rstd = rsqrt(mean(x * x) + eps)\n  y = x * rstd * gamma\n",
      "p(x[i,j], gamma[j], beta[j]) -> (y[i,j], mu[i], rstd[i])\n"
      "  mu = mean(x)\n  rstd = rsqrt(mean(square(x - mu)) + 1e-5)\n  y = (x - mu) * rstd * gamma + beta\n",
      "p(x[i,j], scale[] = 1) -> (y[i,j])\n  e = exp((x - amax(x)) * scale)\n  y = e / sum(e)\n",
      "p(x[i,j], gate[i,j]) -> (y[i,j])\n  y = x * silu(gate)\n"};
  std::mt19937 random(3);
  auto one_of = [&](auto... values) {
    std::common_type_t<decltype(values)...> all[] = {values...};
    return all[random() % sizeof...(values)];
  };
  int compared = 0;
  for (int turn = 0; turn < (long_runs() ? 200 : 30) && !HasFailure(); ++turn) {
    std::int64_t columns = one_of(1, 7, 32, 64, 255, 256, 257, 512, 768, 1000, 1024, 2048, 2049, 4104, 8192, 16384);
    std::string line = fmt::format("p {}x{} x={}{}", columns <= 1024 ? one_of(1, 3, 65, 400) : one_of(1, 3, 20),
                                   columns, one_of("f32", "bf16", "f16", "f64", "f8e4m3"), one_of("", " backward"));
    std::string_view text = programs[random() % std::size(programs)];
    EXPECT_EQ(compare(*device, line, text,
                      [&](const Prepared& got) -> Result<std::unique_ptr<Executable>> {
                        Facts facts = facts_of(got.program, got.view());
                        Config config = choose_config(got.program, cuda::machine_of(*device), facts);
                        std::int64_t stripes = contract::stripes(columns);
                        config.vector = std::min(config.vector, one_of(1, 2, 4, 8));
                        config.hoist = one_of(true, false), config.reload = one_of(true, false);
                        config.streaming = one_of(true, false), config.rows = one_of(1, 3, 7);
                        config.cluster = device->facts().clusters && stripes > 1 ? one_of(1, 1, 2, 3, 4, 5) : 1;
                        config.stripes = one_of(1, 2, 4);
                        config.groups = static_cast<int>((stripes + config.stripes * config.cluster - 1) /
                                                         (config.stripes * config.cluster));
                        if (config.cluster > 1)
                          config.groups = static_cast<int>(std::bit_ceil(unsigned(config.groups)));
                        config.ring = one_of(0, 2, 3, 4);
                        if (config.groups > 16 || one_of(0, 0, 0, 1)) {
                          config.stripes = config.ring = 0, config.cluster = 1, config.groups = one_of(1, 4, 8, 32);
                        }
                        config.teams = 1;
                        if (config.stripes && config.groups * config.cluster == 1)  // whole warps
                          config.teams = 32 / config.lanes * one_of(1, 2, 4);
                        if (config.teams == 1 && config.groups == 1) config.lanes = 32;
                        if (config.groups * config.cluster > 1) config.lanes = 32;
                        config.stage = config.ring && config.teams == 1 && !config.hoist && one_of(true, false);
                        config.resident = one_of(0, 1, 2);
                        if (!config.stripes) config.hoist = config.reload = false;
                        if (Status fits = valid(got.program, config, cuda::machine_of(*device), facts); !fits)
                          return Error{Code::Unsupported, fits.error().message};
                        Result<std::unique_ptr<cuda::CudaExecutable>> made =
                            cuda::CudaExecutable::create(*device, got.program, config);
                        if (!made) return made.error();  // what is valid can be made
                        // What no launch could hold is no schedule.
                        if ((*made)->loaded().kernels().rows.scratch_bytes > device->facts().shared_bytes_per_block)
                          return Error{Code::Unsupported, "too much shared memory"};
                        if ((*made)->loaded().facts().max_threads < (*made)->loaded().kernels().rows.launch.threads())
                          return Error{Code::Unsupported, "too many threads"};
                        ++compared;
                        return std::unique_ptr<Executable>(std::move(*made));
                      }),
              "");
  }
  fmt::print("{} schedules\n", compared);
}

// PTX for sm_80 runs here too: f8 results without the instructions that sm_89 brought.
TEST_F(OnGpu, StoresF8AsOlderGpusDo) {
  for (const char* type : {"f8e4m3", "f8e5m2"}) {
    std::string line = fmt::format("p 4096x1024 x=f32 y={}", type);
    std::string_view text = "p(x[i,j]) -> (y[i,j])\n  y = x\n";
    Result<Prepared> wanted = prepare_problem(parse_problem(line).value(), text),
                     got = prepare_problem(parse_problem(line).value(), text);
    auto fill = [](Prepared& prepared) {  // every sign, exponent and upper fraction; then what lies just beside them
      for (std::uint32_t k = 0; k < 1u << 22; ++k) {
        std::uint32_t bits = (k >> 2) << 12 | (k & 3 ? 0x7FFu + (k & 3) - 1 : 0);
        std::memcpy(static_cast<float*>(prepared.operands()[0].data) + k, &bits, 4);
      }
    };
    fill(*wanted), fill(*got);
    run_reference(wanted->program, wanted->view()).value();
    Config config = choose_config(got->program, cuda::machine_of(*device), facts_of(got->program, got->view()));
    auto made = cuda::CudaExecutable::create(*device, got->program, config, "sm_80");
    ASSERT_TRUE(made) << made.error().message;
    poison_results(*got);
    EXPECT_EQ(run_fenced(*device, **made, *got), "");
    EXPECT_EQ(digest_of(*got), digest_of(*wanted)) << type;
  }
}

}  // namespace
}  // namespace trireme

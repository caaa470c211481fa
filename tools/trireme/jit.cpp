// trireme jit: a kernel of the user's own, in CUDA C++: compiled, described, timed.
#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>

#include "devices/cuda/jit_kernel.hpp"
#include "files.hpp"
#include "measure.hpp"
#include "verbs.hpp"

namespace trireme::cli {
namespace {

struct JitOptions {
  std::string file, name, ptx, cubin;
  jit::Options jit;
  bool bench = false;
  std::vector<std::int64_t> grid = {1}, block = {256};
  std::uint32_t shared_bytes = 0;
  std::vector<std::string> arguments;
};

// One argument of a launch that is timed.
struct Value {
  std::vector<unsigned char> bytes;  // as the kernel takes it
  std::int64_t memory_bytes = 0;     // behind it, on the device
};

template <typename T>
Value value_of(T number) {
  Value value{std::vector<unsigned char>(sizeof number)};
  std::memcpy(value.bytes.data(), &number, sizeof number);
  return value;
}

Result<Value> parse_argument(const std::string& text) {
  if (text == "null") return value_of<void*>(nullptr);
  std::size_t colon = text.find(':');
  std::string type = text.substr(0, colon), rest = colon == std::string::npos ? "" : text.substr(colon + 1);
  char* end = nullptr;
  if (type == "f32" || type == "f64") {
    double number = std::strtod(rest.c_str(), &end);
    if (!rest.empty() && !*end) return type == "f32" ? value_of(static_cast<float>(number)) : value_of(number);
  }
  // Products are welcome: bytes:4096*4096*4.
  std::int64_t product = 1;
  for (const char* at = rest.c_str();; at = end + 1) {
    product *= std::strtoll(at, &end, 10);
    if (end == at || (*end && *end != '*')) break;
    if (*end) continue;
    if (type == "i32") return value_of(static_cast<std::int32_t>(product));
    if (type == "i64") return value_of(product);
    if (type == "bytes" && product > 0) return Value{std::vector<unsigned char>(sizeof(void*)), product};
    break;
  }
  return Error{Code::InvalidArgument,
               fmt::format("no argument '{}'; expected i32:N, i64:N, f32:X, f64:X, null, or bytes:N for memory", text)};
}

Result<std::string> read_source(const std::string& path) {
  TRIREME_TRY(bytes, read_file(path));
  if (bytes.empty()) return Error{Code::InvalidArgument, path + ": the file is empty"};
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

void print_facts(const jit::Facts& facts) {
  auto row = [](std::string_view what, const std::string& value) { fmt::print("  {:<14} {}\n", what, value); };
  row("registers", fmt::format("{} a thread", facts.registers));
  row("local memory", fmt::format("{} bytes a thread", facts.local_bytes));
  if (facts.spill_stores >= 0)
    row("spills", fmt::format("{} bytes stored, {} bytes loaded", facts.spill_stores, facts.spill_loads));
  row("shared memory", fmt::format("{} bytes", facts.shared_bytes));
  if (facts.knows_parameters)
    row("parameters",
        facts.parameter_bytes.empty() ? "none" : fmt::format("{} bytes", fmt::join(facts.parameter_bytes, ", ")));
}

jit::Extent extent(const std::vector<std::int64_t>& sizes) {
  return {sizes[0], sizes.size() > 1 ? sizes[1] : 1, sizes.size() > 2 ? sizes[2] : 1};
}

// Medians of events around single launches; memory is filled with ones, and each array counts once.
Status time_kernel(const cuda::Device& device, const jit::Kernel& kernel, const JitOptions& options) {
  std::vector<Value> values;
  std::vector<cuda::Memory> memory;
  std::vector<jit::Argument> arguments;
  std::int64_t bytes = 0;
  for (const std::string& text : options.arguments) {
    TRIREME_TRY(value, parse_argument(text));
    if (value.memory_bytes) {
      TRIREME_TRY(place, device.allocate(static_cast<std::size_t>(value.memory_bytes)));
      std::vector<float> ones(static_cast<std::size_t>(value.memory_bytes) / 4 + 1, 1.0f);
      TRIREME_CHECK(device.copy(place.get(), ones.data(), static_cast<std::size_t>(value.memory_bytes)));
      void* pointer = place.get();
      std::memcpy(value.bytes.data(), &pointer, sizeof pointer);
      bytes += value.memory_bytes;
      memory.push_back(std::move(place));
    }
    values.push_back(std::move(value));
  }
  for (const Value& each : values) arguments.push_back({each.bytes.data(), each.bytes.size()});
  TRIREME_TRY(stream, device.stream());
  TRIREME_TRY(start, device.event());
  TRIREME_TRY(stop, device.event());
  std::vector<double> seconds;
  for (int round = 0; round < 23; ++round) {
    TRIREME_CHECK(device.record(start, stream.get()));
    TRIREME_CHECK(kernel.launch_packed(extent(options.grid), extent(options.block), options.shared_bytes, stream.get(),
                                       arguments));
    TRIREME_CHECK(device.record(stop, stream.get()));
    TRIREME_CHECK(device.synchronize(stop));
    TRIREME_TRY(milliseconds, device.milliseconds(start, stop));
    if (round >= 3) seconds.push_back(milliseconds * 1e-3);
  }
  double time = median(seconds);
  fmt::print("  {:<14} {:.1f} us, the median of {}", "time", time * 1e6, seconds.size());
  if (bytes) fmt::print("; {:.0f} GB/s if every array is moved once", static_cast<double>(bytes) / time * 1e-9);
  fmt::print("\n");
  return Done{};
}

Result<int> compile_and_time(JitOptions options) {
  TRIREME_CHECK(check_distinct({{"--ptx", options.ptx}, {"--cubin", options.cubin}}));
  TRIREME_TRY(source, read_source(options.file));
  options.jit.file = options.file;
  auto begin = std::chrono::steady_clock::now();
  TRIREME_TRY(compiled, jit::compile(source, options.name, options.jit));
  double taken = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  TRIREME_TRY(nvrtc, cuda::Nvrtc::open(options.jit.nvrtc));
  fmt::print("{} for {}, {} {}\n", options.name, compiled.arch, nvrtc->name(),
             compiled.from_cache ? "(from the cache)" : fmt::format("in {:.2f} s", taken));
  if (!compiled.not_kept.empty()) fmt::print("  not kept in the cache: {}\n", compiled.not_kept);
  if (!compiled.log.empty()) fmt::print("{}\n", compiled.log);
  if (!compiled.cubin.empty()) print_facts(compiled.facts);
  if (!options.ptx.empty()) TRIREME_CHECK(write_file(options.ptx, {}, std::as_bytes(std::span(compiled.ptx))));
  if (!options.cubin.empty()) TRIREME_CHECK(write_file(options.cubin, {}, std::as_bytes(std::span(compiled.cubin))));
  if (!options.bench) return fine;
  TRIREME_TRY(driver, cuda::Driver::instance());
  TRIREME_TRY(device, driver->device(options.jit.device));
  TRIREME_TRY(kernel, cuda::kernel_from_source(*device, source, options.name, options.jit));
  fmt::print("{}\n", kernel.describe());
  TRIREME_CHECK(time_kernel(*device, kernel, options));
  return fine;
}

}  // namespace

Command jit_verb() {
  auto options = std::make_shared<JitOptions>();
  Command verb{.name = "jit", .summary = "Compiles a CUDA C++ kernel of yours by NVRTC: registers, spills, time"};
  verb.option("file", options->file, "CUDA C++", {.type = "FILE", .required = true});
  verb.option("--name", options->name, "The kernel: an extern \"C\" name, or a C++ one such as 'scale<float>'",
              {.type = "NAME", .required = true});
  verb.option("--arch", options->jit.arch, "sm_90 …, and no GPU is needed; else that of the GPU", {.type = "ARCH"});
  auto flag = [options](const char* prefix) {
    return [options, prefix](const std::string& text) { options->jit.flags.push_back(prefix + text); };
  };
  verb.each("-D", flag("-D"), "A macro: -D WIDTH=4; repeatable", {.type = "NAME[=VALUE]"});
  verb.each("-I", flag("-I"), "A folder of headers; repeatable", {.type = "FOLDER"});
  verb.each("--flag", flag(""), "For NVRTC as it is: --flag=--use_fast_math; repeatable", {.type = "TEXT"});
  verb.option("--nvrtc", options->jit.nvrtc, "The library's path; TRIREME_NVRTC, else searched for", {.type = "FILE"});
  verb.option("--ptx", options->ptx, "Where the PTX is written", {.type = "FILE"});
  verb.option("--cubin", options->cubin, "Where the cubin is written", {.type = "FILE"});
  verb.option("--bench", options->bench, "Times it on a GPU, launched as the options below say");
  verb.option("--grid", options->grid, "Blocks: x, or x,y,z", {.type = "N", .whole = at_least(1)});
  verb.option("--block", options->block, "Threads: x, or x,y,z", {.type = "N", .whole = at_least(1)});
  verb.option("--shared", options->shared_bytes, "Bytes of dynamic shared memory", {.type = "N"});
  verb.option("--arg", options->arguments,
              "An argument, in order: i32:N, i64:N, f32:X, f64:X, null, bytes:N (memory full of ones); repeatable",
              {.type = "KIND:VALUE"});
  verb.footer =
      "Example: trireme jit examples/jit/normalization.cu --name rms_norm_forward --bench --grid 4096\n"
      "         --arg bytes:4096*4096*4 --arg bytes:4096*4 --arg bytes:4096*4096*4 --arg null --arg i32:4096\n"
      "         --arg i32:4096 --arg f32:1e-6";
  verb.run = [options] { return compile_and_time(*options); };
  return verb;
}

}  // namespace trireme::cli

#include "devices/cuda/jit_kernel.hpp"

#include <fmt/format.h>

#include <array>

#include "support/environment.hpp"
#include "support/out_of_memory.hpp"
#include "trireme/ptx.hpp"

namespace trireme {
namespace jit {

struct Kernel::State {
  const cuda::Device* device;
  cuda::Module module;
  cuda::Function function;
  std::string name;  // as the user says it
  std::string made;  // by whom, or from where
  Facts facts;
  int max_threads = 0;
};

struct Maker {
  // `facts` are the compiler's; the driver knows better where it can tell.
  static Result<Kernel> make(const cuda::Device& device, cuda::Module module, const std::string& entry,
                             Kernel::State state) {
    TRIREME_TRY(function, device.function(module, entry.c_str()));
    TRIREME_TRY(loaded, device.function_facts(function));
    if (std::optional<std::vector<int>> sizes = device.parameter_bytes(function)) {
      state.facts.parameter_bytes = *sizes;
      state.facts.knows_parameters = true;
    }
    state.facts.registers = loaded.registers;
    state.facts.local_bytes = loaded.local_bytes;
    state.facts.shared_bytes = loaded.static_shared_bytes;
    state.max_threads = loaded.max_threads;
    state.device = &device;
    state.module = std::move(module);
    state.function = function;
    return Kernel(std::make_shared<const Kernel::State>(std::move(state)));
  }
};

namespace {

std::string list(const std::vector<int>& sizes) {
  return sizes.empty() ? "none" : fmt::format("of {} bytes", fmt::join(sizes, ", "));
}

std::string spelled(const Extent& extent) { return fmt::format("{} x {} x {}", extent.x, extent.y, extent.z); }

std::string spelled(const Facts& facts) {
  auto number = [](int value, std::string_view what) {
    return value < 0 ? fmt::format("unknown {}", what) : fmt::format("{} {}", value, what);
  };
  std::string text = number(facts.registers, "registers") + ", " + number(facts.local_bytes, "bytes of local memory");
  if (facts.spill_stores >= 0)
    text += fmt::format(" (spills: {} bytes stored, {} loaded)", facts.spill_stores, facts.spill_loads);
  text += ", " + number(facts.shared_bytes, "bytes of shared memory");
  if (facts.knows_parameters) text += "; parameters " + list(facts.parameter_bytes);
  return text;
}

Result<const cuda::Device*> device_of(const Options& options) {
  TRIREME_CHECK(environment::check());
  TRIREME_TRY(driver, cuda::Driver::instance());
  return driver->device(options.device);
}

}  // namespace

Result<Compiled> compile(std::string_view source, std::string_view name, const Options& options) {
  return or_out_of_memory([&]() -> Result<Compiled> {
    TRIREME_CHECK(environment::check());
    cuda::JitRequest request{std::string(source), std::string(name), options.arch, options};
    if (request.arch.empty()) {
      Result<const cuda::Device*> device = device_of(options);
      if (!device)
        return Error{device.error().code,
                     device.error().message + "; where an architecture is named, no GPU is needed"};
      TRIREME_TRY(nvrtc, cuda::Nvrtc::open(options.nvrtc));
      TRIREME_TRY(arch, cuda::arch_for(*nvrtc, (*device)->facts().capability));
      request.arch = arch;
    }
    return cuda::compile_in(KernelCache::process(), request);
  });
}

std::string describe(const Compiled& compiled) {
  return fmt::format("{} for {}: {}", compiled.name, compiled.arch,
                     compiled.cubin.empty() ? "PTX, which the driver compiles" : spelled(compiled.facts));
}

Result<Kernel> compile_cached(std::string_view source, std::string_view name, const Options& options) {
  return or_out_of_memory([&]() -> Result<Kernel> {
    TRIREME_TRY(device, device_of(options));
    return cuda::kernel_from_source(*device, source, name, options);
  });
}

Result<Kernel> from_ptx(const std::string& text, std::string_view name, const Options& options) {
  return or_out_of_memory([&]() -> Result<Kernel> {
    TRIREME_TRY(device, device_of(options));
    return cuda::kernel_from_ptx(*device, text, name);
  });
}

Result<Kernel> from_builder(const ptx::Module& module, std::string_view name, const Options& options) {
  return or_out_of_memory([&]() -> Result<Kernel> {
    TRIREME_TRY(text, module.text());
    return from_ptx(text, name, options);
  });
}

const std::string& Kernel::name() const { return state_->name; }
const Facts& Kernel::facts() const { return state_->facts; }

Result<int> Kernel::blocks_per_multiprocessor(std::uint32_t block_threads, std::uint32_t shared_bytes) const {
  return or_out_of_memory([&]() -> Result<int> {
    return state_->device->blocks_per_multiprocessor(state_->function, block_threads, shared_bytes);
  });
}

std::string Kernel::describe() const {
  std::string text = fmt::format("{} on {} (sm_{}), {}: {}", state_->name, state_->device->facts().name,
                                 state_->device->facts().capability, state_->made, spelled(state_->facts));
  int threads = std::min(256, state_->max_threads);
  if (Result<int> blocks = blocks_per_multiprocessor(static_cast<std::uint32_t>(threads), 0))
    text +=
        fmt::format("; in blocks of {} threads {} run at once on a multiprocessor, {} % of its threads", threads,
                    *blocks, 100 * *blocks * threads / std::max(1, state_->device->facts().threads_per_multiprocessor));
  return text;
}

Status Kernel::launch_packed(Extent grid, Extent block, std::uint32_t shared_bytes, void* stream,
                             std::span<const Argument> arguments) const {
  return or_out_of_memory([&]() -> Status {
    auto refuse = [&](const std::string& why) { return Error{Code::InvalidArgument, state_->name + ": " + why}; };
    const Facts& facts = state_->facts;
    if (facts.knows_parameters) {
      if (arguments.size() != facts.parameter_bytes.size())
        return refuse(fmt::format("{} arguments are given, and it takes {}: {}", arguments.size(),
                                  facts.parameter_bytes.size(), list(facts.parameter_bytes)));
      for (std::size_t k = 0; k < arguments.size(); ++k)
        if (arguments[k].bytes != static_cast<std::size_t>(facts.parameter_bytes[k]))
          return refuse(fmt::format("argument {} is of {} bytes, and its parameter of {}; all of them: {}", k + 1,
                                    arguments[k].bytes, facts.parameter_bytes[k], list(facts.parameter_bytes)));
    }
    auto outside = [](std::int64_t value, std::int64_t most) { return value < 1 || value > most; };
    if (outside(grid.x, 0x7fffffff) || outside(grid.y, 0xffff) || outside(grid.z, 0xffff))
      return refuse(fmt::format("a grid of {} blocks; from 1 to 2147483647 x 65535 x 65535 go", spelled(grid)));
    if (outside(block.x, 1024) || outside(block.y, 1024) || outside(block.z, 64) ||
        block.x * block.y * block.z > state_->max_threads)
      return refuse(fmt::format("a block of {} threads; from 1 to {} in all go, and 64 along z", spelled(block),
                                state_->max_threads));
    if (shared_bytes > 48 << 10) TRIREME_CHECK(state_->device->allow_shared(state_->function, shared_bytes));

    // The driver copies the arguments before it returns.
    std::array<void*, 64> few;
    std::vector<void*> many(arguments.size() > few.size() ? arguments.size() : 0);
    void** params = many.empty() ? few.data() : many.data();
    for (std::size_t k = 0; k < arguments.size(); ++k) params[k] = const_cast<void*>(arguments[k].data);
    auto narrow = [](const Extent& e) {
      return std::array{static_cast<std::uint32_t>(e.x), static_cast<std::uint32_t>(e.y),
                        static_cast<std::uint32_t>(e.z)};
    };
    return state_->device->launch(state_->function,
                                  {.grid = narrow(grid),
                                   .block = narrow(block),
                                   .shared_bytes = shared_bytes,
                                   .stream = static_cast<cuda::StreamHandle>(stream)},
                                  params);
  });
}

}  // namespace jit

namespace cuda {

Result<jit::Kernel> kernel_from_source(const Device& device, std::string_view source, std::string_view name,
                                       const jit::Options& options) {
  TRIREME_TRY(nvrtc, Nvrtc::open(options.nvrtc));
  JitRequest request{std::string(source), std::string(name), options.arch, options};
  if (request.arch.empty()) {
    TRIREME_TRY(arch, arch_for(*nvrtc, device.facts().capability));
    request.arch = arch;
  }
  auto image_of = [](const std::string& artifact) -> Result<std::string> {
    TRIREME_TRY(compiled, read_artifact(artifact));
    return std::move(compiled.cubin.empty() ? compiled.ptx : compiled.cubin);
  };
  Module module;
  TRIREME_TRY(artifact,
              artifact_of(*nvrtc, request, [&](const CacheKey& key, const KernelCache::Make& make) -> Result<Cached> {
                TRIREME_TRY(loaded, device.modules().load_made(key, make, image_of));
                module = loaded.module;
                return Cached{loaded.artifact, loaded.from};
              }));
  if (!artifact.not_kept.empty()) {
    TRIREME_TRY(image, image_of(*artifact.bytes));
    TRIREME_TRY(loaded, device.modules().load_image(image));
    module = loaded;
  }
  TRIREME_TRY(compiled, read_artifact(*artifact.bytes));
  std::string_view from = artifact.from == Cached::From::Made   ? "compiled now"
                          : artifact.from == Cached::From::Disk ? "from disk"
                                                                : "from memory";
  return jit::Maker::make(
      device, std::move(module), compiled.name,
      {.name = request.name, .made = fmt::format("{} {}", nvrtc->name(), from), .facts = compiled.facts});
}

Result<jit::Kernel> kernel_from_ptx(const Device& device, const std::string& text, std::string_view name) {
  std::vector<std::string> kernels = entries_of(text);
  if (std::find(kernels.begin(), kernels.end(), name) == kernels.end())
    return Error{Code::InvalidArgument,
                 fmt::format("the PTX has no kernel '{}'; it has {}", name,
                             kernels.empty() ? "none" : fmt::format("{}", fmt::join(kernels, ", ")))};
  TRIREME_TRY(module, device.load(text));
  return jit::Maker::make(device, module, std::string(name), {.name = std::string(name), .made = "from PTX"});
}

}  // namespace cuda
}  // namespace trireme

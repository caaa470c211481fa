// The kernel ABI from the host's side. Arrays lie behind the module's own data, one behind the other, for one call.
#include "trireme/wasm_host.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "devices/device.hpp"
#include "devices/wasm/module_counts.hpp"
#include "devices/wasm/sandbox.hpp"
#include "support/out_of_memory.hpp"

static_assert(std::endian::native == std::endian::little, "structures are copied as they are");

namespace trireme {
namespace {

constexpr std::int64_t info_bytes = 16, descriptor_bytes = 40;
constexpr std::uint32_t longest_name = 256;
constexpr int known_major = 1, minor_with_regions = 1;  // of the kernel ABI's version

Status check_limits(const WasmLimits& limits) {
  const auto refuse = [](const char* what, std::int64_t least, std::int64_t most, std::int64_t got) {
    return Error{Code::InvalidArgument, fmt::format("WasmLimits: {} is {}; {} to {} go", what, got, least, most)};
  };
  constexpr std::int64_t most_memory = std::int64_t{1} << 32, least_stack = 64 << 10, most_stack = 1 << 20;
  if (limits.memory_bytes < wasm::page_bytes || limits.memory_bytes > most_memory)
    return refuse("memory_bytes", wasm::page_bytes, most_memory, limits.memory_bytes);
  if (limits.stack_bytes < least_stack || limits.stack_bytes > most_stack)
    return refuse("stack_bytes", least_stack, most_stack, limits.stack_bytes);
  if (!(limits.seconds > 0 && limits.seconds <= 1e6))
    return Error{Code::InvalidArgument, fmt::format("WasmLimits: seconds is {}; up to 1e6 go", limits.seconds)};
  return Done{};
}

Status check_code(std::string_view entry, std::int64_t code) {
  const auto error = [&](Code kind, std::string_view meaning) {
    return Error{kind, fmt::format("{} returned {}: {}", entry, code, meaning)};
  };
  switch (code) {
    case 0: return Done{};
    case 1: return error(Code::InvalidArgument, "invalid input");
    case 2: return error(Code::InvalidArgument, "invalid output");
    case 3: return error(Code::InvalidArgument, "invalid params");
    case 4: return error(Code::OutOfMemory, "out of memory");
    case 5: return error(Code::Unsupported, "not implemented");
    case 6: return error(Code::InvalidProgram, "internal error");
    default: return error(Code::InvalidProgram, "no code of the kernel ABI");
  }
}

// Where things lie in the module's memory.
struct Region {
  std::uint32_t offset, size;
};

class Arena {
 public:
  explicit Arena(std::int64_t base) : end_(base) {}
  Region place(std::size_t bytes) {
    const std::int64_t start = whole_lines(end_);
    end_ = std::min(start + static_cast<std::int64_t>(std::min<std::size_t>(bytes, beyond)), std::int64_t{beyond});
    return {static_cast<std::uint32_t>(start), static_cast<std::uint32_t>(bytes)};
  }
  std::int64_t end() const { return end_; }

 private:
  static constexpr std::int64_t beyond = std::int64_t{1} << 33;  // no limit allows it
  std::int64_t end_;
};

}  // namespace

struct WasmKernel::State {
  std::unique_ptr<wasm::Sandbox> sandbox;
  Info info;
  struct Running {
    std::unique_ptr<wasm::SandboxInstance> instance;
    wasm::SandboxInstance::Entry init, forward, backward, info, cleanup;
    std::int64_t base = 0;  // of free memory
  };
  std::unique_ptr<Running> running;  // none after a trap

  Status start(const wasm::Watch& watch);
  Status read_info(const wasm::Watch& watch);
  Status check_call(bool backward, const WasmKernelCall& call) const;
  Status run(bool backward, const WasmKernelCall& call);
  Status run_running(bool backward, const WasmKernelCall& call, const wasm::Watch& watch);
};

Status WasmKernel::State::start(const wasm::Watch& watch) {
  auto fresh = std::make_unique<Running>();
  TRIREME_TRY(instance, wasm::SandboxInstance::create(*sandbox, watch));
  fresh->instance = std::move(instance);
  const auto find = [&](wasm::SandboxInstance::Entry& entry, const char* name, const char* signature) -> Status {
    TRIREME_TRY(found, fresh->instance->entry(name, signature));
    entry = found;
    return Done{};
  };
  TRIREME_CHECK(find(fresh->init, "kernel_init", "ii>i"));
  TRIREME_CHECK(find(fresh->forward, "kernel_forward", "i>i"));
  TRIREME_CHECK(find(fresh->backward, "kernel_backward", "i>i"));
  TRIREME_CHECK(find(fresh->info, "kernel_info", "i>i"));
  TRIREME_CHECK(find(fresh->cleanup, "kernel_cleanup", ">i"));
  // A module that does not say where its own data end may have them anywhere in its first memory. Address 0 means none.
  const auto heap_base = fresh->instance->global("__heap_base");
  fresh->base = heap_base ? *heap_base : static_cast<std::int64_t>(fresh->instance->memory().size());
  fresh->base = std::max(fresh->base, line_bytes);
  running = std::move(fresh);
  return Done{};
}

Status WasmKernel::State::read_info(const wasm::Watch& watch) {
  Arena arena(running->base);
  const Region place = arena.place(info_bytes);
  TRIREME_CHECK(running->instance->grow_to(arena.end()));
  std::memset(running->instance->memory().data() + place.offset, 0, info_bytes);
  TRIREME_TRY(code, running->instance->call(running->info, {place.offset}, watch));
  TRIREME_CHECK(check_code("kernel_info", code));

  const std::span<std::uint8_t> memory = running->instance->memory();
  std::uint32_t name[2];
  std::uint16_t version[3];
  std::memcpy(name, memory.data() + place.offset, sizeof name);
  std::memcpy(version, memory.data() + place.offset + 8, sizeof version);
  if (name[1] > longest_name || std::uint64_t{name[0]} + name[1] > memory.size())
    return Error{Code::InvalidProgram,
                 fmt::format("kernel_info: a name of {} bytes at {}; it must lie inside memory, and have at most {}",
                             name[1], name[0], longest_name)};
  info.name.assign(reinterpret_cast<const char*>(memory.data()) + name[0], name[1]);
  std::ranges::replace_if(
      info.name, [](char each) { return each < ' ' || each > '~'; }, '?');
  std::ranges::copy(version, info.version.begin());
  info.supports_backward = memory[place.offset + 14] != 0;
  if (info.version[0] != known_major)
    return Error{Code::Unsupported, fmt::format("{} is of version {}.{}.{} of the kernel ABI; {}.x is known", info.name,
                                                version[0], version[1], version[2], known_major)};
  return Done{};
}

// A module that does not know the regions would not read them, and say that all is well.
Status WasmKernel::State::check_call(bool backward, const WasmKernelCall& call) const {
  if (backward && !info.supports_backward)
    return Error{Code::Unsupported, fmt::format("{} has no backward (kernel_info: supports_backward)", info.name)};
  if (!call.regions.empty() && info.version[1] < minor_with_regions)
    return Error{Code::Unsupported,
                 fmt::format("regions in params need version {}.{} of the kernel ABI; {} is of {}.{}.{}", known_major,
                             minor_with_regions, info.name, info.version[0], info.version[1], info.version[2])};
  for (const WasmKernelCall::Region& region : call.regions) {
    if (!region.input.empty() && !region.output.empty())
      return Error{Code::InvalidArgument, "a region is an input or an output, not both"};
    if (region.params_at > call.params.size() || call.params.size() - region.params_at < sizeof(Region))
      return Error{Code::InvalidArgument, fmt::format("params of {} bytes have no room for a region at byte {}",
                                                      call.params.size(), region.params_at)};
  }
  return Done{};
}

Status WasmKernel::State::run(bool backward, const WasmKernelCall& call) {
  TRIREME_CHECK(check_call(backward, call));
  wasm::Watch watch;
  TRIREME_CHECK(sandbox->start(watch));
  if (!running) TRIREME_CHECK(start(watch));
  // After a trap, or where memory ran out on our side, nobody knows what the module's data are worth, and it starts
  // afresh. A refusal leaves it as it was.
  struct Afresh {
    State& state;
    bool needed = true;
    ~Afresh() {
      if (needed) state.running.reset();
    }
  } afresh{*this};
  Status status = run_running(backward, call, watch);
  afresh.needed = !status && status.error().code == Code::InvalidProgram;
  return status;
}

Status WasmKernel::State::run_running(bool backward, const WasmKernelCall& call, const wasm::Watch& watch) {
  Arena arena(running->base);
  const Region descriptor_place = arena.place(descriptor_bytes), params = arena.place(call.params.size());
  const Region a = arena.place(call.a.size()), b = arena.place(call.b.size());
  const Region scratch = arena.place(call.scratch.size());
  std::vector<Region> regions;
  for (const WasmKernelCall::Region& region : call.regions)
    regions.push_back(arena.place(region.input.size() + region.output.size()));
  const Region output = arena.place(call.output.size());
  wasm::SandboxInstance& instance = *running->instance;
  TRIREME_CHECK(instance.grow_to(arena.end()));

  std::uint8_t* memory = instance.memory().data();
  const auto put = [&](const Region& place, std::span<const std::byte> bytes) {
    if (!bytes.empty()) std::memcpy(memory + place.offset, bytes.data(), bytes.size());
  };
  put(params, call.params), put(a, call.a), put(b, call.b);
  for (std::size_t k = 0; k < regions.size(); ++k) {
    put(regions[k], call.regions[k].input);
    std::memcpy(memory + params.offset + call.regions[k].params_at, &regions[k], sizeof(Region));
  }
  const Region descriptor[] = {a, b, output, scratch, params};
  static_assert(sizeof descriptor == descriptor_bytes);
  std::memcpy(memory + descriptor_place.offset, descriptor, sizeof descriptor);

  TRIREME_TRY(init_code, instance.call(running->init, {params.offset, params.size}, watch));
  TRIREME_CHECK(check_code("kernel_init", init_code));
  const auto& entry = backward ? running->backward : running->forward;
  TRIREME_TRY(code, instance.call(entry, {descriptor_place.offset}, watch));
  TRIREME_TRY(cleanup_code, instance.call(running->cleanup, {}, watch));
  TRIREME_CHECK(check_code(entry.name, code));
  TRIREME_CHECK(check_code("kernel_cleanup", cleanup_code));

  memory = instance.memory().data();  // the module may have grown it
  const auto take = [&](const Region& place, std::span<std::byte> bytes) {
    if (!bytes.empty()) std::memcpy(bytes.data(), memory + place.offset, bytes.size());
  };
  take(output, call.output), take(scratch, call.scratch);
  for (std::size_t k = 0; k < regions.size(); ++k) take(regions[k], call.regions[k].output);
  return Done{};
}

WasmKernel::WasmKernel(std::unique_ptr<State> state) : state_(std::move(state)) {}
WasmKernel::WasmKernel(WasmKernel&&) noexcept = default;
WasmKernel& WasmKernel::operator=(WasmKernel&&) noexcept = default;
WasmKernel::~WasmKernel() = default;
const WasmKernel::Info& WasmKernel::info() const {
  static const Info none{};
  return state_ ? state_->info : none;
}
Status WasmKernel::run(bool backward, const WasmKernelCall& call) {
  return or_out_of_memory([&]() -> Status {
    if (!state_) return Error{Code::InvalidArgument, "the kernel was moved away"};
    return state_->run(backward, call);
  });
}
Status WasmKernel::forward(const WasmKernelCall& call) { return run(false, call); }
Status WasmKernel::backward(const WasmKernelCall& call) { return run(true, call); }

struct WasmHost::State {
  std::shared_ptr<const wasm::Wasmtime> library;
};

Result<WasmHost> WasmHost::open(const std::string& library) {
  return or_out_of_memory([&]() -> Result<WasmHost> {
    TRIREME_TRY(opened, wasm::Wasmtime::open(library));
    return WasmHost(std::make_shared<const State>(State{opened}));
  });
}
const std::string& WasmHost::library() const { return state_->library->path; }
int WasmHost::version() const { return state_->library->version; }

Result<WasmKernel> WasmHost::load(std::span<const std::uint8_t> module, const WasmLimits& limits) const {
  return or_out_of_memory([&]() -> Result<WasmKernel> {
    TRIREME_CHECK(check_limits(limits));
    if (static_cast<std::int64_t>(module.size()) > limits.module_bytes)
      return Error{Code::InvalidProgram,
                   fmt::format("the module has {} bytes; the limit is {} (WasmLimits::module_bytes)", module.size(),
                               limits.module_bytes)};
    TRIREME_CHECK(wasm::count_module(module, limits));
    auto state = std::make_unique<WasmKernel::State>();
    TRIREME_TRY(sandbox, wasm::Sandbox::compile(state_->library, module, limits));
    state->sandbox = std::move(sandbox);
    wasm::Watch watch;
    TRIREME_CHECK(state->sandbox->start(watch));
    TRIREME_CHECK(state->start(watch));
    TRIREME_CHECK(state->read_info(watch));
    return WasmKernel(std::move(state));
  });
}

}  // namespace trireme

// The part of the C ABI that runs kernel modules nobody trusts.
#include "c_api/guard.hpp"
#include "trireme/wasm_host.hpp"

namespace trireme::c_api {
namespace {

using WasmHosts = Handles<WasmHost>;
using WasmKernels = Handles<WasmKernel>;

// Each limit, here and there; and their order is that of the header.
struct LimitPair {
  std::int64_t trireme_wasm_limits::*from;
  std::int64_t WasmLimits::*to;
};
constexpr LimitPair limit_pairs[] = {
    {&trireme_wasm_limits::memory_bytes, &WasmLimits::memory_bytes},
    {&trireme_wasm_limits::stack_bytes, &WasmLimits::stack_bytes},
    {&trireme_wasm_limits::module_bytes, &WasmLimits::module_bytes},
    {&trireme_wasm_limits::declarations, &WasmLimits::declarations},
    {&trireme_wasm_limits::parameters, &WasmLimits::parameters},
    {&trireme_wasm_limits::table_elements, &WasmLimits::table_elements},
    {&trireme_wasm_limits::functions, &WasmLimits::functions},
    {&trireme_wasm_limits::code_bytes, &WasmLimits::code_bytes},
    {&trireme_wasm_limits::function_bytes, &WasmLimits::function_bytes},
    {&trireme_wasm_limits::locals, &WasmLimits::locals},
    {&trireme_wasm_limits::function_locals, &WasmLimits::function_locals},
    {&trireme_wasm_limits::branches, &WasmLimits::branches},
    {&trireme_wasm_limits::function_branches, &WasmLimits::function_branches},
    {&trireme_wasm_limits::crossings, &WasmLimits::crossings},
    {&trireme_wasm_limits::merges, &WasmLimits::merges},
    {&trireme_wasm_limits::function_merges, &WasmLimits::function_merges},
    {&trireme_wasm_limits::function_bulk_operations, &WasmLimits::function_bulk_operations},
    {&trireme_wasm_limits::nesting, &WasmLimits::nesting},
};
static_assert(sizeof(WasmLimits) == sizeof(double) + std::size(limit_pairs) * sizeof(std::int64_t));
static_assert(sizeof(trireme_wasm_limits) == sizeof(std::size_t) + sizeof(WasmLimits));

Result<WasmLimits> limits_of(const trireme_wasm_limits* given) {
  WasmLimits limits;
  if (!given) return limits;
  TRIREME_TRY(from, versioned(given, "limits", sizeof(trireme_wasm_limits)));
  if (from.seconds != 0) limits.seconds = from.seconds;
  for (const auto& [there, here] : limit_pairs)
    if (from.*there != 0) limits.*here = from.*there;
  return limits;
}

template <typename Byte, typename Memory>
Result<std::span<Byte>> bytes_of(Memory* memory, std::size_t count, const char* what) {
  if (count > 0) TRIREME_CHECK(given(memory, what));
  return std::span(static_cast<Byte*>(memory), count);
}

Status run(trireme_wasm_kernel* kernel, const trireme_wasm_call* given_call,
           Status (WasmKernel::*entry)(const WasmKernelCall&)) {
  TRIREME_TRY(object, WasmKernels::get(kernel, "kernel"));
  TRIREME_TRY(from, versioned(given_call, "call", sizeof(trireme_wasm_call)));
  TRIREME_TRY(a, bytes_of<const std::byte>(from.a, from.a_bytes, "a"));
  TRIREME_TRY(b, bytes_of<const std::byte>(from.b, from.b_bytes, "b"));
  TRIREME_TRY(output, bytes_of<std::byte>(from.output, from.output_bytes, "output"));
  TRIREME_TRY(scratch, bytes_of<std::byte>(from.scratch, from.scratch_bytes, "scratch"));
  TRIREME_TRY(params, bytes_of<const std::byte>(from.params, from.params_bytes, "params"));
  WasmKernelCall call{.a = a, .b = b, .output = output, .scratch = scratch, .params = params};
  if (from.region_count > 0) TRIREME_CHECK(given(from.regions, "regions"));
  for (const trireme_wasm_region& region : std::span(from.regions, from.region_count)) {
    TRIREME_TRY(in, bytes_of<const std::byte>(region.input, region.input_bytes, "a region's input"));
    TRIREME_TRY(out, bytes_of<std::byte>(region.output, region.output_bytes, "a region's output"));
    call.regions.push_back({.params_at = region.params_at, .input = in, .output = out});
  }
  return (object->*entry)(call);
}

}  // namespace
}  // namespace trireme::c_api

using namespace trireme;
using namespace trireme::c_api;

trireme_status trireme_wasm_host_open(const char* library, trireme_wasm_host** host) {
  return guarded([&]() -> Status {
    TRIREME_CHECK(given(host, "host"));
    TRIREME_TRY(opened, WasmHost::open(library ? library : ""));
    *host = static_cast<trireme_wasm_host*>(WasmHosts::add(std::make_unique<WasmHost>(opened)));
    return Done{};
  });
}

trireme_status trireme_wasm_host_library(const trireme_wasm_host* host, const char** path, int32_t* version) {
  return guarded([&]() -> Status {
    TRIREME_TRY(object, WasmHosts::get(host, "host"));
    if (path) *path = object->library().c_str();
    if (version) *version = object->version();
    return Done{};
  });
}

trireme_status trireme_wasm_host_destroy(trireme_wasm_host* host) {
  return guarded([&] { return WasmHosts::remove(host, "host"); });
}

trireme_status trireme_wasm_kernel_load(const trireme_wasm_host* host, const void* module, size_t module_bytes,
                                        const trireme_wasm_limits* limits, trireme_wasm_kernel** kernel) {
  return guarded([&]() -> Status {
    TRIREME_TRY(object, WasmHosts::get(host, "host"));
    TRIREME_CHECK(given(kernel, "kernel"));
    TRIREME_TRY(bytes, bytes_of<const std::uint8_t>(module, module_bytes, "module"));
    TRIREME_TRY(converted, limits_of(limits));
    TRIREME_TRY(loaded, object->load(bytes, converted));
    *kernel = static_cast<trireme_wasm_kernel*>(WasmKernels::add(std::make_unique<WasmKernel>(std::move(loaded))));
    return Done{};
  });
}

trireme_status trireme_wasm_kernel_info(const trireme_wasm_kernel* kernel, trireme_wasm_info* info) {
  return guarded([&]() -> Status {
    TRIREME_TRY(object, WasmKernels::get(kernel, "kernel"));
    TRIREME_CHECK(versioned(info, "info", sizeof(trireme_wasm_info)));
    const WasmKernel::Info& from = object->info();
    info->name = from.name.c_str();
    std::copy(from.version.begin(), from.version.end(), info->version);
    info->supports_backward = from.supports_backward;
    return Done{};
  });
}

trireme_status trireme_wasm_kernel_forward(trireme_wasm_kernel* kernel, const trireme_wasm_call* call) {
  return guarded([&] { return run(kernel, call, &WasmKernel::forward); });
}

trireme_status trireme_wasm_kernel_backward(trireme_wasm_kernel* kernel, const trireme_wasm_call* call) {
  return guarded([&] { return run(kernel, call, &WasmKernel::backward); });
}

trireme_status trireme_wasm_kernel_destroy(trireme_wasm_kernel* kernel) {
  return guarded([&] { return WasmKernels::remove(kernel, "kernel"); });
}

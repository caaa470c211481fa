#include "devices/wasm/wasmtime_host.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "devices/device.hpp"
#include "devices/wasm/fork_gate.hpp"

namespace trireme::wasm {
namespace {

using trireme::Code;

constexpr std::uint8_t canary = 0xa5;
// Modules of our own may have all there is; and several threads may run one at a time.
constexpr WasmLimits limits{.memory_bytes = std::int64_t{1} << 32, .seconds = no_time_limit, .stack_bytes = 1 << 20};

Result<bool> madd_is_fused(const std::shared_ptr<const Wasmtime>& library) {
  const std::vector<std::uint8_t> probe = madd_probe();
  TRIREME_TRY(sandbox, Sandbox::compile(library, probe, limits));
  TRIREME_TRY(instance, SandboxInstance::create(*sandbox, {}));
  TRIREME_TRY(entry, instance->entry("f", ">i"));
  TRIREME_TRY(fused, instance->call(entry, {}, {}));
  return fused != 0;
}

std::int64_t bytes_of(const JobBuffer& buffer) {
  return static_cast<std::int64_t>(buffer.data.empty() ? buffer.bytes : buffer.data.size());
}

// What happens inside a module of ours is our fault.
Error ours(const Error& error) {
  return {error.code == Code::InvalidProgram ? Code::Internal : error.code, "wasm in wasmtime: " + error.message};
}

Status run(SandboxInstance& instance, const Job& job) {
  const std::int64_t slots_at = line_bytes, slots_end = slots_at + 8 * static_cast<std::int64_t>(job.slots.size());
  std::vector<std::int64_t> places;
  std::int64_t end = slots_end;
  for (const JobBuffer& buffer : job.buffers) {
    places.push_back(whole_lines(end) + line_bytes);
    end = places.back() + bytes_of(buffer);
  }
  TRIREME_CHECK(instance.grow_to(end + line_bytes));
  const std::span<std::uint8_t> memory = instance.memory();
  if (!places.empty()) places.back() = static_cast<std::int64_t>(memory.size()) - bytes_of(job.buffers.back());

  std::ranges::fill(memory, canary);
  std::vector<std::uint64_t> slots = job.slots;
  for (const Job::Relocation& each : job.relocations)
    slots[each.slot] = static_cast<std::uint64_t>(places[each.buffer] + each.offset_bytes);
  std::memcpy(memory.data() + slots_at, slots.data(), 8 * slots.size());
  for (std::size_t k = 0; k < places.size(); ++k) std::ranges::copy(job.buffers[k].data, memory.data() + places[k]);

  for (const Job::Call& call : job.calls) {
    const auto first = static_cast<std::uint64_t>(call.first), last = static_cast<std::uint64_t>(call.last);
    const auto args = static_cast<std::uint64_t>(slots_at), total = static_cast<std::uint64_t>(call.total);
    if (call.entry == Job::Call::Entry::Rows) {
      TRIREME_TRY(entry, instance.entry("rows", "iIII>"));
      TRIREME_CHECK(instance.call(entry, {args, first, last, total}, {}));
    } else {
      TRIREME_TRY(entry, instance.entry("columns", "iII>"));
      TRIREME_CHECK(instance.call(entry, {args, first, last}, {}));
    }
  }

  const std::span<std::uint8_t> found = instance.memory();
  std::int64_t from = slots_end;
  for (std::size_t k = 0; k < places.size(); ++k) {
    const auto gap = found.subspan(static_cast<std::size_t>(from), static_cast<std::size_t>(places[k] - from));
    const auto written = std::ranges::find_if(gap, [](std::uint8_t byte) { return byte != canary; });
    if (written != gap.end())
      return Error{Code::Internal, fmt::format("byte {} from buffer {} was written", written - gap.end(), k)};
    from = places[k] + bytes_of(job.buffers[k]);
  }
  for (std::size_t k = 0; k < places.size(); ++k) {
    const JobBuffer& buffer = job.buffers[k];
    std::copy_n(found.data() + places[k], buffer.data.size(), buffer.data.data());
  }
  return Done{};
}

}  // namespace

Result<std::shared_ptr<const Wasmtime>> wasmtime() {
  const InsideForkGate gate;                                 // a child would wait for ever for who opens it
  static const auto* opened = new Result(Wasmtime::open());  // never destroyed: the library stays
  return *opened;
}

std::string wasmtime_missing(bool relaxed) {
  const auto library = wasmtime();
  if (!library) return library.error().message;
  if (!relaxed) return {};
  const InsideForkGate gate;
  static const std::string reason = [&]() -> std::string {
    const Result<bool> fused = madd_is_fused(*library);
    if (!fused) return "wasmtime has no relaxed SIMD: " + fused.error().message;
    return *fused ? "" : "relaxed_madd is not fused on this machine";
  }();
  return reason;
}

Result<std::unique_ptr<Sandbox>> compile_in_wasmtime(std::span<const std::uint8_t> module) {
  TRIREME_TRY(library, wasmtime());
  auto compiled = Sandbox::compile(library, module, limits);
  if (!compiled) return ours(compiled.error());
  return compiled;
}

Status run_in_wasmtime(const Sandbox& sandbox, const Job& job) {
  auto instance = SandboxInstance::create(sandbox, {});
  if (!instance) return ours(instance.error());
  const Status status = run(**instance, job);
  return status ? status : Status(ours(status.error()));
}

}  // namespace trireme::wasm

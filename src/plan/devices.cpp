#include "plan/devices.hpp"

#include <charconv>
#include <map>
#include <mutex>

#include "devices/cpu/code_memory.hpp"
#include "devices/cpu/cpu_device.hpp"
#include "devices/cpu/isa.hpp"
#include "devices/cuda/cuda_device.hpp"
#include "devices/fork_mutex.hpp"
#include "devices/lanes/lanes_device.hpp"
#include "devices/reference_device.hpp"
#include "devices/wasm/wasm_device.hpp"

namespace trireme {
namespace {

std::string always_there() { return {}; }

template <x86::Isa isa>
std::string isa_missing() {
  Result<cpu::CpuId> cpuid = cpu::ask_cpuid();
  if (!cpuid) return cpuid.error().message;
  std::string reason = cpu::why_not(isa, *cpuid);
  return reason.empty() ? cpu::code_memory_denied() : reason;
}
template <x86::Isa isa>
Result<std::unique_ptr<Executable>> compile_for_cpu(const Program& program, const Facts& facts) {
  return cpu::compile(program, facts, cpu::best_of(isa));
}

template <x86::Isa isa>
Result<Machine> cpu_machine() {
  return x86::machine_of(isa);
}

DeviceEntry cuda_entry(const std::string& name, int ordinal) {
  return {name, [ordinal] { return cuda::missing(ordinal); },
          [ordinal](const Program& program, const Facts& facts) { return cuda::compile(program, facts, ordinal); },
          [ordinal]() -> Result<Machine> {
            TRIREME_TRY(driver, cuda::Driver::instance());
            TRIREME_TRY(device, driver->device(ordinal));
            return cuda::machine_of(*device);
          }};
}

}  // namespace

const std::vector<DeviceEntry>& devices() {
  using enum x86::Isa;
  using enum wasm::Choice;
  static const std::vector<DeviceEntry> table = {
      {"reference", always_there, compile_for_reference},
      {"cpu:avx512", isa_missing<Avx512>, compile_for_cpu<Avx512>, cpu_machine<Avx512>},
      {"cpu:avx2", isa_missing<Avx2>, compile_for_cpu<Avx2>, cpu_machine<Avx2>},
      cuda_entry("cuda", 0),
      {"wasm", wasm::missing<Any, false>, wasm::compile<Any, false>},
      {"wasm:relaxed", wasm::missing<Any, true>, wasm::compile<Any, true>},
      {"wasm:node", wasm::missing<Node, false>, wasm::compile<Node, false>},
      {"lanes", always_there, lanes::compile},
  };
  return table;
}

const DeviceEntry* find_device(std::string_view name) {
  for (const DeviceEntry& entry : devices())
    if (entry.name == name) return &entry;
  constexpr std::string_view cuda = "cuda:";
  if (!name.starts_with(cuda)) return nullptr;
  name.remove_prefix(cuda.size());
  int ordinal = 0;
  auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), ordinal);
  if (error != std::errc() || end != name.data() + name.size() || ordinal < 0) return nullptr;
  if (ordinal == 0) return find_device("cuda");
  struct Further {
    ForkMutex mutex;
    std::map<int, DeviceEntry> entries;
  };
  static auto* further = new Further;  // never destroyed: plans may outlive main
  std::lock_guard lock(further->mutex);
  return &further->entries.try_emplace(ordinal, cuda_entry("cuda:" + std::to_string(ordinal), ordinal)).first->second;
}

}  // namespace trireme

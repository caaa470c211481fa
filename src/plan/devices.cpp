#include "plan/devices.hpp"

#include "devices/compose.hpp"
#include "devices/cpu/cpu_device.hpp"
#include "devices/cpu/isa.hpp"
#include "devices/cuda/cuda_device.hpp"
#include "devices/lanes/lanes_device.hpp"
#include "devices/reference_device.hpp"
#include "devices/wasm/wasm_device.hpp"

namespace trireme {
namespace {

std::string always_there() { return {}; }

template <x86::Isa isa>
std::string isa_missing() {
  return cpu::why_not(isa, cpu::read_cpuid());
}
template <x86::Isa isa>
Result<std::unique_ptr<Executable>> compile_for_cpu(const Program& program, const Facts& facts) {
  return cpu::compile(program, facts, isa);
}

template <Compile* compile>
Result<std::unique_ptr<Executable>> composed(const Program& program, const Facts& facts) {
  return compose(program, facts, compile);
}

}  // namespace

const std::vector<DeviceEntry>& devices() {
  using enum x86::Isa;
  using enum wasm::Choice;
  static const std::vector<DeviceEntry> table = {
      {"reference", always_there, compile_for_reference},
      {"cpu:avx512", isa_missing<Avx512>, composed<compile_for_cpu<Avx512>>},
      {"cpu:avx2", isa_missing<Avx2>, composed<compile_for_cpu<Avx2>>},
      {"cuda", cuda::missing, composed<cuda::compile>},
      {"wasm", wasm::missing<Any, false>, composed<wasm::compile<Any, false>>},
      {"wasm:relaxed", wasm::missing<Any, true>, composed<wasm::compile<Any, true>>},
      {"wasm:node", wasm::missing<Node, false>, composed<wasm::compile<Node, false>>},
      {"lanes", always_there, composed<lanes::compile>},
  };
  return table;
}

}  // namespace trireme

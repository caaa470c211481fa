#include "targets/wasm/emit.hpp"

#include <fmt/format.h>

#include "targets/wasm/fma.hpp"
#include "targets/wasm/machine.hpp"

namespace trireme::wasm {
namespace {

bool uses_fma(const std::vector<Instr>& body) {
  for (const Instr& instr : body) {
    if (instr.code == Do::Primitive && instr.op == trireme::Op::Fma) return true;
    if (uses_fma(instr.body) || uses_fma(instr.other)) return true;
  }
  return false;
}

Result<Module> build(const Kernels& kernels, const Options& options) {
  Module module({.min_pages = 1});
  std::optional<Callee> fma;
  const auto add = [&](const Kernel& kernel, Entry entry) -> Status {
    if (kernel.launch.lanes != lanes(kernel.compute))
      return Error{trireme::Code::Internal, fmt::format("wasm: kernel {} has {} lanes of {}", kernel.name,
                                                        kernel.launch.lanes, name(kernel.compute))};
    if (!options.relaxed && !fma && uses_fma(kernel.body)) {
      TRIREME_TRY(added, add_fma(module, kernel.compute));
      fma = added;
    }
    entry.fma = fma;
    TRIREME_TRY(body, translate(kernel, entry));
    module.add(std::move(body), entry.name);
    return Done{};
  };
  TRIREME_CHECK(add(kernels.rows, {.name = "rows"}));
  for (const Kernel& columns : kernels.columns) TRIREME_CHECK(add(columns, {.name = "columns", .has_total = false}));
  return module;
}

}  // namespace

Result<std::vector<std::uint8_t>> emit(const Kernels& kernels, const Options& options) {
  TRIREME_TRY(module, build(kernels, options));
  return module.encode();
}

Result<std::string> listing(const Kernels& kernels, const Options& options) {
  TRIREME_TRY(module, build(kernels, options));
  return module.text();
}

}  // namespace trireme::wasm

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

}  // namespace

bool uses_relaxed(const Kernels& kernels, const Options& options) {
  if (!options.relaxed) return false;
  bool found = uses_fma(kernels.rows.body);
  for (const Kernel& kernel : kernels.columns) found = found || uses_fma(kernel.body);
  return found;
}

Result<Callee> Emitter::add(const Kernel& kernel, const std::string& name, const std::string& export_name,
                            bool has_total) {
  if (kernel.launch.lanes != lanes(kernel.compute))
    return Error{trireme::Code::Internal, fmt::format("wasm: kernel {} has {} lanes of {}", kernel.name,
                                                      kernel.launch.lanes, trireme::name(kernel.compute))};
  std::optional<Callee>& fma = kernel.compute == trireme::Type::F64 ? fma_f64_ : fma_f32_;
  if (!options_.relaxed && !fma && uses_fma(kernel.body)) {
    TRIREME_TRY(added, add_fma(module_, kernel.compute));
    fma = added;
  }
  TRIREME_TRY(body, translate(kernel, {.name = name, .has_total = has_total, .fma = fma}));
  return module_.add(std::move(body), export_name);
}

Result<Functions> Emitter::add(const Kernels& kernels, const std::string& prefix) {
  TRIREME_TRY(rows, add(kernels.rows, prefix + "_rows", {}, true));
  Functions functions{rows, {}};
  for (const Kernel& kernel : kernels.columns) {
    TRIREME_TRY(columns, add(kernel, prefix + "_columns", {}, false));
    functions.columns = columns;
  }
  return functions;
}

Result<Module> build(const Kernels& kernels, const Options& options) {
  Module module({.min_pages = 1});
  Emitter emitter(module, options);
  TRIREME_CHECK(emitter.add(kernels.rows, "rows", "rows", true));
  for (const Kernel& columns : kernels.columns) TRIREME_CHECK(emitter.add(columns, "columns", "columns", false));
  return module;
}

Result<std::vector<std::uint8_t>> emit(const Kernels& kernels, const Options& options, const std::string& manifest) {
  TRIREME_TRY(module, build(kernels, options));
  if (!manifest.empty()) module.custom("trireme", manifest);
  return module.encode();
}

Result<std::string> listing(const Kernels& kernels, const Options& options) {
  TRIREME_TRY(module, build(kernels, options));
  return module.text();
}

}  // namespace trireme::wasm

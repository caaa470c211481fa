#include "targets/wasm/emit.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "targets/wasm/fma.hpp"
#include "targets/wasm/machine.hpp"
#include "targets/wasm/masked.hpp"
#include "targets/wasm/one_lane.hpp"

namespace trireme::wasm {
namespace {

bool uses_fma(const std::vector<Instr>& body) {
  for (const Instr& instr : body) {
    if (instr.code == Do::Primitive && instr.op == trireme::Op::Fma) return true;
    if (uses_fma(instr.body) || uses_fma(instr.other)) return true;
  }
  return false;
}

// Is there a masked access to elements of the compute type's width?
bool is_masked(const std::vector<Instr>& body, Do code, trireme::Type compute) {
  return std::ranges::any_of(body, [&](const Instr& instr) {
    return (instr.code == code && instr.c && bytes(instr.type) == bytes(compute)) ||
           is_masked(instr.body, code, compute) || is_masked(instr.other, code, compute);
  });
}

}  // namespace

bool uses_relaxed(const Kernels& kernels, const Options& options) {
  if (!options.relaxed) return false;
  bool found = uses_fma(kernels.rows.body);
  for (const Kernel& kernel : kernels.columns) found = found || uses_fma(kernel.body);
  return found;
}

Status Emitter::add_functions(const Kernel& kernel) {
  OfType& functions = kernel.compute == trireme::Type::F64 ? f64_ : f32_;
  if (!options_.relaxed && !functions.fma && uses_fma(kernel.body)) {
    TRIREME_TRY(added, add_fma(module_, kernel.compute, options_.scalar));
    functions.fma = added;
  }
  if (!options_.compact || options_.scalar) return Done{};
  const int lane_bytes = static_cast<int>(bytes(kernel.compute));
  if (!functions.masked_load && is_masked(kernel.body, Do::Load, kernel.compute)) {
    TRIREME_TRY(added, add_masked_load(module_, lane_bytes));
    functions.masked_load = added;
  }
  if (!functions.masked_store && is_masked(kernel.body, Do::Store, kernel.compute)) {
    TRIREME_TRY(added, add_masked_store(module_, lane_bytes));
    functions.masked_store = added;
  }
  return Done{};
}

Result<Callee> Emitter::add(const Kernel& kernel, const std::string& name, const std::string& export_name,
                            bool has_total) {
  if (kernel.launch.lanes != options_.lanes(kernel.compute))
    return Error{trireme::Code::Internal, fmt::format("wasm: kernel {} has {} lanes of {}", kernel.name,
                                                      kernel.launch.lanes, trireme::name(kernel.compute))};
  TRIREME_CHECK(add_functions(kernel));
  const OfType& functions = kernel.compute == trireme::Type::F64 ? f64_ : f32_;
  std::optional<Callee> fma = functions.fma;
  if (fma && options_.scalar) fma = with_vectors(*fma);
  TRIREME_TRY(body, translate(kernel, {.name = name,
                                       .has_total = has_total,
                                       .fma = fma,
                                       .compact = options_.compact,
                                       .masked_load = functions.masked_load,
                                       .masked_store = functions.masked_store}));
  if (options_.scalar) {
    TRIREME_TRY(scalar, one_lane(body, kernel.compute == trireme::Type::F64 ? Type::F64 : Type::F32));
    body = std::move(scalar);
  }
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
  Module module({.min_pages = 1}, options.compact);
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

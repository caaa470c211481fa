#include "targets/ptx/emit.hpp"

#include <fmt/format.h>

#include <cstdlib>

#include "targets/ptx/machine.hpp"

namespace trireme::ptx {
namespace {

std::string head(const trireme::Kernel& form) {
  const Launch& launch = form.launch;
  std::string text = fmt::format("{}: {} threads a block ({} lanes x {} groups x {} teams)\n", form.name,
                                 launch.threads(), launch.lanes, launch.groups, launch.teams);
  if (launch.columns_covered) {
    text += fmt::format("grid: ceil((last - first) / {}) blocks over columns\n", launch.columns_covered);
  } else {
    text += fmt::format("grid: ceil(row blocks / {}) * {} blocks; slot row_block says how many rows a team takes\n",
                        launch.teams, launch.cluster);
  }
  return text + fmt::format("dynamic shared memory: {} bytes", form.scratch_bytes);
}

Status emit_into(Module& module, const trireme::Kernel& form, int arch, bool with_names) {
  if (form.simd) return Error{Code::Internal, form.name + ": PTX runs thread kernels"};
  KernelOptions options{.comment = head(form), .reqntid = {static_cast<std::uint32_t>(form.launch.threads())}};
  options.minnctapersm = static_cast<std::uint32_t>(form.launch.resident);
  if (form.launch.meets) options.reqnctapercluster = static_cast<std::uint32_t>(form.launch.cluster);
  Kernel& kernel = module.kernel(form.name, options);
  if (form.compute == Type::F32) return Machine<F32>(form, kernel, arch, with_names).run();
  return Machine<F64>(form, kernel, arch, with_names).run();
}

Result<std::string> emit_all(std::span<const trireme::Kernel* const> kernels, std::string_view arch, bool with_names) {
  int number = std::atoi(std::string(arch.substr(arch.find('_') + 1)).c_str());
  Module module(arch);
  for (const trireme::Kernel* form : kernels) TRIREME_CHECK(emit_into(module, *form, number, with_names));
  return module.text();
}

}  // namespace

Result<std::string> emit(const Kernels& kernels, std::string_view arch, bool with_names) {
  std::vector<const trireme::Kernel*> all = {&kernels.rows};
  for (auto* list : {&kernels.before, &kernels.columns})
    for (const trireme::Kernel& each : *list) all.push_back(&each);
  return emit_all(all, arch, with_names);
}

Result<std::string> emit(std::span<const trireme::Kernel> kernels, std::string_view arch, bool with_names) {
  std::vector<const trireme::Kernel*> all;
  for (const trireme::Kernel& each : kernels) all.push_back(&each);
  return emit_all(all, arch, with_names);
}

}  // namespace trireme::ptx

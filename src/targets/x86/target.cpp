// x86 machine code in the table of targets.
#include <fmt/format.h>

#include "targets/targets.hpp"
#include "targets/x86/emit.hpp"

namespace trireme::x86 {

namespace {

Result<Isa> isa_of(std::string_view arch) {
  for (Isa isa : {Isa::Avx2, Isa::Avx512, Isa::Avx512Bf16})
    if (arch == arch_name(isa)) return isa;
  return unknown_arch(target, arch);
}

Result<trireme::Machine> machine_of_arch(std::string_view arch) {
  TRIREME_TRY(isa, isa_of(arch));
  return machine_of(isa);
}

Result<Artifact> emit_artifact(const Kernels& kernels, std::string_view arch, const std::string&) {
  TRIREME_TRY(isa, isa_of(arch));
  TRIREME_TRY(rows, emit(kernels.rows, isa));
  Artifact artifact{std::move(rows.bytes)};
  for (const Kernel& kernel : kernels.columns) {
    TRIREME_TRY(columns, emit(kernel, isa));
    artifact.bytes.resize((artifact.bytes.size() + 63) / 64 * 64, 0xCC);  // int3 up to the next cache line
    artifact.columns_entry = static_cast<std::int64_t>(artifact.bytes.size());
    artifact.bytes.insert(artifact.bytes.end(), columns.bytes.begin(), columns.bytes.end());
  }
  return artifact;
}

Result<std::string> list(const Kernels& kernels, std::string_view arch) {
  TRIREME_TRY(isa, isa_of(arch));
  TRIREME_TRY(rows, emit(kernels.rows, isa, true));
  std::string text = rows.listing;
  for (const Kernel& kernel : kernels.columns) {
    TRIREME_TRY(columns, emit(kernel, isa, true));
    text += "\n" + columns.listing;
  }
  return text;
}

std::string entries_of(const Kernels&, const Artifact& artifact) {
  std::string text =
      "entry at byte 0: void rows(const uint64_t* args, int64_t first, int64_t last, int64_t total), System V\n";
  if (artifact.columns_entry >= 0)
    text += fmt::format("entry at byte {}: columns, the same way, once all rows are done\n", artifact.columns_entry);
  return text;
}

constexpr std::string_view common[] = {"avx2", "avx512", "avx512_bf16"};

}  // namespace

const Target target = {
    .name = "x86",
    .form = Target::Form::Code,
    .default_arch = "avx2",
    .archs = "avx2 (default), avx512 or avx512_bf16",
    .common_archs = common,
    .machine = machine_of_arch,
    .emit = emit_artifact,
    .listing = list,
    .entries = entries_of,
    .manifest = [](const Kernels&, std::string_view arch) { return fmt::format(R"("arch":"{}",)", arch); },
};

}  // namespace trireme::x86

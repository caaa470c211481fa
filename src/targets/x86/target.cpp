// x86 machine code in the table of targets.
#include <fmt/format.h>

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
  constexpr std::uint8_t filler = 0xCC;  // int3
  return artifact_of(kernels, filler, [isa = isa](const Kernel& kernel) { return emit(kernel, isa); });
}

Result<std::string> list(const Kernels& kernels, std::string_view arch) {
  TRIREME_TRY(isa, isa_of(arch));
  return listing_of(kernels, [isa = isa](const Kernel& kernel) { return emit(kernel, isa, true); });
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
    .entries = [](const Kernels&, const Artifact& artifact) { return entries_of(artifact, "System V"); },
    .manifest = [](const Kernels&, std::string_view arch) { return fmt::format(R"("arch":"{}",)", arch); },
};

}  // namespace trireme::x86

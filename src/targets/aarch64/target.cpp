// A64 machine code in the table of targets.
#include <fmt/format.h>

#include "targets/aarch64/emit.hpp"

namespace trireme::aarch64 {

namespace {

Result<Isa> isa_of(std::string_view arch) {
  for (Isa isa : {Isa::Neon, Isa::NeonBf16})
    if (arch == arch_name(isa)) return isa;
  return unknown_arch(target, arch);
}

// There are stores past the caches (stnp), a hint alone that no more than a few processors take.
Result<trireme::Machine> machine_of_arch(std::string_view arch) {
  TRIREME_TRY(isa, isa_of(arch));
  trireme::Machine machine{.simd = true, .register_bytes = register_bytes, .across = true};
  machine.instructions.extremum = 1;
  auto& storage = machine.instructions.storage;
  storage[static_cast<std::size_t>(Type::BF16)] = {2, isa == Isa::NeonBf16 ? 2 : 13, 1, 1};
  storage[static_cast<std::size_t>(Type::I64)] = {13, 13, 0, 0};
  for (Type type : {Type::I8, Type::U8}) storage[static_cast<std::size_t>(type)] = {4, 4, 1, 1};
  storage[static_cast<std::size_t>(Type::I32)] = {2, 2, 1, 1};
  return machine;
}

Result<Artifact> emit_artifact(const Kernels& kernels, std::string_view arch, const std::string&) {
  TRIREME_TRY(isa, isa_of(arch));
  constexpr std::uint8_t filler = 0;  // udf #0
  return artifact_of(kernels, filler, [isa = isa](const Kernel& kernel) { return emit(kernel, isa); });
}

Result<std::string> list(const Kernels& kernels, std::string_view arch) {
  TRIREME_TRY(isa, isa_of(arch));
  return listing_of(kernels, [isa = isa](const Kernel& kernel) { return emit(kernel, isa, true); });
}

constexpr std::string_view common[] = {"neon", "neon_bf16"};

}  // namespace

const Target target = {
    .name = "aarch64",
    .form = Target::Form::Code,
    .default_arch = "neon",
    .archs = "neon (default) or neon_bf16",
    .common_archs = common,
    .machine = machine_of_arch,
    .emit = emit_artifact,
    .listing = list,
    .entries = [](const Kernels&, const Artifact& artifact) { return entries_of(artifact, "AAPCS64"); },
    .manifest = [](const Kernels&, std::string_view arch) { return fmt::format(R"("arch":"{}",)", arch); },
};

}  // namespace trireme::aarch64

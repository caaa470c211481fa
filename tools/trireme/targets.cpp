#include "targets.hpp"

#include <fmt/format.h>

#include <charconv>

#include "devices/compose.hpp"
#include "schedule/lower.hpp"
#include "targets/ptx/emit.hpp"
#include "targets/wasm/emit.hpp"
#include "targets/x86/emit.hpp"

namespace trireme::cli {
namespace {

Error unknown_arch(std::string_view arch) {
  return {Code::InvalidArgument, fmt::format("no architecture '{}'; {}", arch, arch_help)};
}

// Shared memory a block may ask for (CUDA C++ Programming Guide, technical specifications per compute capability).
Result<std::int64_t> shared_bytes(std::string_view arch) {
  int sm = 0;
  if (!arch.starts_with("sm_") || std::from_chars(arch.data() + 3, arch.data() + arch.size(), sm).ec != std::errc{} ||
      sm < 80)
    return unknown_arch(arch);
  bool small = sm == 86 || sm == 89 || sm >= 120;
  return (small ? 99 : sm < 90 ? 163 : 227) * 1024;
}

Result<x86::Isa> isa_named(std::string_view arch) {
  if (arch == "avx2") return x86::Isa::Avx2;
  if (arch == "avx512") return x86::Isa::Avx512;
  if (arch == "avx512_bf16") return x86::Isa::Avx512Bf16;
  return unknown_arch(arch);
}

Result<Machine> machine_of(Target target, std::string_view arch) {
  switch (target) {
    case Target::Ptx: {
      TRIREME_TRY(shared, shared_bytes(arch));
      return Machine{.simd = false, .shared_bytes = shared, .clusters = arch >= "sm_90"};
    }
    case Target::X86: {
      TRIREME_TRY(isa, isa_named(arch));
      return x86::machine_of(isa);
    }
    case Target::Wasm: {
      TRIREME_CHECK(wasm_options(arch));
      return Machine{.simd = true, .register_bytes = 16};
    }
  }
  return unknown_arch(arch);
}

const char* default_arch(Target target) {
  switch (target) {
    case Target::Ptx: return "sm_80";
    case Target::X86: return "avx2";
    case Target::Wasm: return "simd128";
  }
  return "";
}

// Column sums into divided, wrapped and scalar results are no part of a program's own kernels.
Status check_sums(const BoundProgram& bound) {
  const Program& program = bound.prepared.program;
  std::string names, options;
  for (std::size_t r : without_sums(program, bound.facts).summed) {
    names += (names.empty() ? "" : ", ") + program.results[r].name;
    options += " --absent " + program.results[r].name;
  }
  if (names.empty()) return Done{};
  return Error{Code::Unsupported, fmt::format("{} sums {} beside its kernels: plans, run and verify do that; here, "
                                              "leave it out with{}",
                                              program.name, names, options)};
}

Result<std::vector<x86::Code>> x86_code(const Lowered& lowered, bool with_listing) {
  TRIREME_TRY(isa, isa_named(lowered.arch));
  std::vector<x86::Code> all;
  TRIREME_TRY(rows, x86::emit(lowered.kernels.rows, isa, with_listing));
  all.push_back(std::move(rows));
  for (const Kernel& kernel : lowered.kernels.columns) {
    TRIREME_TRY(columns, x86::emit(kernel, isa, with_listing));
    all.push_back(std::move(columns));
  }
  return all;
}

}  // namespace

Result<wasm::Options> wasm_options(std::string_view arch) {
  if (arch == "simd128") return wasm::Options{};
  if (arch == "relaxed") return wasm::Options{.relaxed = true};
  return unknown_arch(arch);
}

Result<Lowered> lower_for(const BoundProgram& bound, Target target, std::string arch) {
  if (arch.empty()) arch = default_arch(target);
  TRIREME_TRY(machine, machine_of(target, arch));
  TRIREME_CHECK(check_sums(bound));
  TRIREME_TRY(config, config_for(bound.prepared.program, machine, bound.facts));
  TRIREME_TRY(kernels, lower(bound.prepared.program, config));
  return Lowered{target, std::move(arch), config, std::move(kernels)};
}

std::string print(const Lowered& lowered) {
  std::string text = fmt::format("config: {}\n\n{}", print(lowered.config), print(lowered.kernels.rows));
  for (const Kernel& kernel : lowered.kernels.columns) text += "\n" + print(kernel);
  return text;
}

Result<std::string> listing(const Lowered& lowered) {
  switch (lowered.target) {
    case Target::Ptx: return ptx::emit(lowered.kernels, lowered.arch);
    case Target::X86: {
      TRIREME_TRY(all, x86_code(lowered, true));
      std::string text;
      for (const x86::Code& code : all) text += (text.empty() ? "" : "\n") + code.listing;
      return text;
    }
    case Target::Wasm: {
      TRIREME_TRY(options, wasm_options(lowered.arch));
      return wasm::listing(lowered.kernels, options);
    }
  }
  return std::string();
}

Result<Artifact> make_artifact(const Lowered& lowered, const std::string& manifest) {
  switch (lowered.target) {
    case Target::Ptx: {
      TRIREME_TRY(text, ptx::emit(lowered.kernels, lowered.arch));
      return Artifact{{text.begin(), text.end()}};
    }
    case Target::X86: {
      TRIREME_TRY(all, x86_code(lowered, false));
      Artifact artifact{std::move(all[0].bytes)};
      if (all.size() > 1) {
        artifact.bytes.resize((artifact.bytes.size() + 63) / 64 * 64, 0xCC);  // int3 up to the next cache line
        artifact.columns_entry = static_cast<std::int64_t>(artifact.bytes.size());
        artifact.bytes.insert(artifact.bytes.end(), all[1].bytes.begin(), all[1].bytes.end());
      }
      return artifact;
    }
    case Target::Wasm: {
      TRIREME_TRY(options, wasm_options(lowered.arch));
      TRIREME_TRY(bytes, wasm::emit(lowered.kernels, options, manifest));
      return Artifact{std::move(bytes)};
    }
  }
  return Artifact{};
}

}  // namespace trireme::cli

// WebAssembly in the table of targets.
#include "targets/targets.hpp"
#include "targets/wasm/emit.hpp"

namespace trireme::wasm {

namespace {

struct Arch {
  std::string_view name;
  Options options;
};
constexpr Arch archs[] = {{"simd128", {}},
                          {"relaxed", {.relaxed = true}},
                          {"compact", {.compact = true}},
                          {"scalar", {.compact = true, .scalar = true}}};

}  // namespace

Result<Options> options_of(std::string_view arch) {
  for (const Arch& each : archs)
    if (arch == each.name) return each.options;
  return unknown_arch(target, arch);
}

std::string_view arch_of(const Options& options) {
  for (const Arch& each : archs)
    if (options == each.options) return each.name;
  return {};
}

namespace {

Result<trireme::Machine> machine_of_arch(std::string_view arch) {
  TRIREME_TRY(options, options_of(arch));
  return trireme::Machine{.simd = true, .register_bytes = options.scalar ? 4 : 16, .compact = options.compact};
}

Result<Artifact> emit_artifact(const Kernels& kernels, std::string_view arch, const std::string& manifest) {
  TRIREME_TRY(options, options_of(arch));
  TRIREME_TRY(bytes, emit(kernels, options, manifest));
  return Artifact{std::move(bytes)};
}

Result<std::string> list(const Kernels& kernels, std::string_view arch) {
  TRIREME_TRY(options, options_of(arch));
  return listing(kernels, options);
}

std::string entries_of(const Kernels& kernels, const Artifact&) {
  std::string text = "exports memory, rows(args: i32, first: i64, last: i64, total: i64)\n";
  if (!kernels.columns.empty()) text += "exports columns(args: i32, first: i64, last: i64), once all rows are done\n";
  return text;
}

// Whether it holds relaxed_madd: for engines where that is fused.
std::string manifest_of_target(const Kernels& kernels, std::string_view arch) {
  const Result<Options> options = options_of(arch);
  return options && uses_relaxed(kernels, *options) ? "\"relaxed\":true," : "\"relaxed\":false,";
}

constexpr std::string_view common[] = {"simd128", "relaxed", "compact", "scalar"};

}  // namespace

const Target target = {
    .name = "wasm",
    .form = Target::Form::Module,
    .default_arch = "simd128",
    .archs = "simd128 (default), relaxed, compact or scalar",
    .common_archs = common,
    .machine = machine_of_arch,
    .emit = emit_artifact,
    .listing = list,
    .entries = entries_of,
    .manifest = manifest_of_target,
};

}  // namespace trireme::wasm

#include "targets/targets.hpp"

#include <fmt/format.h>

#include "support/hash.hpp"

namespace trireme {

namespace ptx {
extern const Target target;
}
namespace x86 {
extern const Target target;
}
namespace aarch64 {
extern const Target target;
}
namespace wasm {
extern const Target target;
}

std::span<const Target* const> targets() {
  static constexpr const Target* table[] = {
      &ptx::target,      //
      &x86::target,      //
      &aarch64::target,  //
      &wasm::target,     //
  };
  return table;
}

Result<const Target*> find_target(std::string_view name) {
  std::string known;
  for (const Target* each : targets()) {
    if (each->name == name) return each;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", each->name);
  }
  return Error{Code::InvalidArgument, fmt::format("--target: '{}' is none of {}", name, known)};
}

std::string Artifact::hash() const { return short_hex(Hasher().add(bytes.data(), bytes.size())); }

Result<Compiled> compile(const Program& program, const Config& config, const Target& target, std::string_view arch) {
  TRIREME_TRY(kernels, lower(program, config));
  TRIREME_TRY(artifact, target.emit(kernels, arch, {}));
  return Compiled{{config, std::move(kernels)}, std::move(artifact)};
}

Error unknown_arch(const Target& target, std::string_view arch) {
  return {Code::InvalidArgument, fmt::format("no architecture '{}'; {}: {}", arch, target.name, target.archs)};
}

}  // namespace trireme

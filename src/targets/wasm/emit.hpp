// Kernel to a WebAssembly module, SIMD128.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "schedule/kernel.hpp"
#include "targets/wasm/encoder.hpp"
#include "trireme/result.hpp"

namespace trireme {
struct Target;
}

namespace trireme::wasm {

extern const Target target;  // in the table of targets

// Values of the compute type a v128 holds.
constexpr int lanes(trireme::Type compute) { return 16 / static_cast<int>(bytes(compute)); }

struct Options {
  bool relaxed = false;  // fma by relaxed_madd, for engines where a probe shows it fused; else by exact emulation
};

Result<Options> options_of(std::string_view arch);  // simd128 or relaxed
constexpr std::string_view arch_of(const Options& options) { return options.relaxed ? "relaxed" : "simd128"; }

// Whether `relaxed` makes another module of these kernels, one that needs an engine with relaxed_madd.
bool uses_relaxed(const Kernels& kernels, const Options& options);

// Adds kernels of f32 or f64 to a module that has more in it. The functions are not exported.
struct Functions {
  Callee rows;
  std::optional<Callee> columns;
};
class Emitter {
 public:
  Emitter(Module& module, const Options& options) : module_(module), options_(options) {}
  Result<Functions> add(const Kernels& kernels, const std::string& prefix);

 private:
  friend Result<Module> build(const Kernels&, const Options&);
  Result<Callee> add(const Kernel& kernel, const std::string& name, const std::string& export_name, bool has_total);
  Module& module_;
  Options options_;
  std::optional<Callee> fma_f32_, fma_f64_;  // once a module
};

// A module that imports nothing and exports memory and functions rows(args, first, last, total) and, if there is one,
// columns(args, first, last); args is the address of the slots (8 bytes each; addresses are 32-bit), the rest i64.
// `manifest`, if any, is the content of its custom section "trireme".
Result<std::vector<std::uint8_t>> emit(const Kernels& kernels, const Options& options = {},
                                       const std::string& manifest = {});
Result<std::string> listing(const Kernels& kernels, const Options& options = {});  // the same in the text format

}  // namespace trireme::wasm

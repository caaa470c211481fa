// Kernel to a WebAssembly module: SIMD128, or instructions of WebAssembly 1.0 alone.
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

struct Options {
  bool relaxed = false;  // fma by relaxed_madd, for engines where a probe shows it fused; else by exact emulation
  bool compact = false;  // few bytes go before speed: functions are called where else their code stands in place
  bool scalar = false;   // what WebAssembly 1.0 has, one value at a time; compact too

  bool operator==(const Options&) const = default;
  // Values of the compute type that a Lane register holds.
  constexpr int lanes(trireme::Type compute) const { return scalar ? 1 : 16 / static_cast<int>(bytes(compute)); }
};

constexpr int lanes(trireme::Type compute) { return Options{}.lanes(compute); }  // of a v128

Result<Options> options_of(std::string_view arch);
std::string_view arch_of(const Options& options);

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
  Status add_functions(const Kernel& kernel);  // that it calls, once a module
  struct OfType {
    std::optional<Callee> fma, masked_load, masked_store;
  };
  OfType f32_, f64_;
};

// A module that imports nothing and exports memory and functions rows(args, first, last, total) and, if there is one,
// columns(args, first, last); args is the address of the slots (8 bytes each; addresses are 32-bit), the rest i64.
// `manifest`, if any, is the content of its custom section "trireme".
Result<std::vector<std::uint8_t>> emit(const Kernels& kernels, const Options& options = {},
                                       const std::string& manifest = {});
Result<std::string> listing(const Kernels& kernels, const Options& options = {});  // the same in the text format

}  // namespace trireme::wasm

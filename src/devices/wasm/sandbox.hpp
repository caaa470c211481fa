// A module compiled by wasmtime, and instances of it with limits on memory, time and stack. Whatever the module does is
// an error at worst. One thread at a time may use an instance, and a Sandbox that has a time limit.
#pragma once
#include <initializer_list>
#include <limits>
#include <optional>
#include <span>
#include <string_view>

#include "devices/wasm/wasmtime.hpp"
#include "devices/wasm/watchdog.hpp"
#include "trireme/wasm_host.hpp"

namespace trireme::wasm {

inline constexpr std::int64_t page_bytes = 65536;
inline constexpr double no_time_limit = std::numeric_limits<double>::infinity();  // as WasmLimits::seconds

class Sandbox {
 public:
  // Refuses modules that are not valid. How long it takes is the caller's concern (module_counts.hpp).
  static Result<std::unique_ptr<Sandbox>> compile(std::shared_ptr<const Wasmtime> library,
                                                  std::span<const std::uint8_t> module, const WasmLimits& limits);
  ~Sandbox();
  Sandbox(const Sandbox&) = delete;
  Sandbox& operator=(const Sandbox&) = delete;

  const Wasmtime& library() const { return *library_; }

  // Begins a call: from now on what runs in instances given this watch has limits.seconds, all together.
  Status start(Watch& watch) const;

 private:
  friend class SandboxInstance;
  Sandbox(std::shared_ptr<const Wasmtime> library, const WasmLimits& limits)
      : library_(std::move(library)), limits_(limits) {}
  std::shared_ptr<const Wasmtime> library_;
  WasmLimits limits_;
  c::Engine* engine_ = nullptr;
  c::Module* module_ = nullptr;
};

class SandboxInstance {
 public:
  // Runs the module's start function, if it has one, under the limits. The module must export a memory.
  static Result<std::unique_ptr<SandboxInstance>> create(const Sandbox& sandbox, const Watch& watch);
  ~SandboxInstance();
  SandboxInstance(const SandboxInstance&) = delete;
  SandboxInstance& operator=(const SandboxInstance&) = delete;

  // Until the next call or growth.
  std::span<std::uint8_t> memory() const;
  Status grow_to(std::int64_t bytes);                                // at least so many
  std::optional<std::uint32_t> global(std::string_view name) const;  // an i32 one

  struct Entry {
    std::string name;
    std::size_t arguments = 0;
    bool has_result = false;
    c::Item function;
  };
  // `signature`: a letter a parameter, i for i32 and I for i64, then ">" and the result, if any: "iI>i".
  Result<Entry> entry(std::string_view name, std::string_view signature) const;
  // The result, or 0.
  Result<std::int64_t> call(const Entry& entry, std::initializer_list<std::uint64_t> arguments, const Watch& watch);

 private:
  explicit SandboxInstance(const Sandbox& sandbox) : sandbox_(sandbox), c_(*sandbox.library_) {}
  template <typename Work>
  Status guarded(std::string_view what, const Watch& watch, const Work& work);  // traps become errors

  const Sandbox& sandbox_;
  const Wasmtime& c_;
  c::Store* store_ = nullptr;
  c::Context* context_ = nullptr;
  c::Instance instance_ = {};
  c::Item memory_ = {};
};

}  // namespace trireme::wasm

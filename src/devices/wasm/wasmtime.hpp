// wasmtime's C library, opened at run time as its PyPI wheel or a package carries it, and declared here from its public
// documentation, so that no header of it is needed.
// Only what has stayed the same across the versions we accept is used: opaque handles; items that the library fills in,
// of which we know the kind (first byte) and that the rest begins at byte 8; arguments as raw 16-byte values.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "trireme/result.hpp"

namespace trireme::wasm {

namespace c {

struct Config;
struct Engine;
struct Store;
struct Context;
struct Module;
struct Error;
struct Trap;
struct FunctionType;
struct ValueType;

template <typename T>
struct Vector {  // wasm_*_vec_t
  std::size_t size = 0;
  T* data = nullptr;
};

struct alignas(16) Instance {
  std::byte filled[64];  // 16 so far
};
struct alignas(16) Item {  // wasmtime_extern_t, wasmtime_val_t; 32 bytes so far
  std::uint8_t kind;
  std::byte filled[63];
  const void* content() const { return filled + 7; }
};
enum ItemKind : std::uint8_t { FunctionItem = 0, GlobalItem = 1, TableItem = 2, MemoryItem = 3 };
enum ValueKind : std::uint8_t { I32Value = 0, I64Value = 1 };

struct alignas(16) Raw {  // wasmtime_val_raw_t
  std::uint64_t low = 0, high = 0;
};

enum TrapCode : std::uint8_t { StackOverflow = 0, Unreachable = 9, Interrupt = 10 };

}  // namespace c

class Wasmtime {
 public:
  // `path`: of the library. Empty: TRIREME_WASMTIME; else the wheel of the active virtual environment, of the python on
  // PATH or of the system; else libwasmtime.so as the loader finds it. The library is never closed.
  static Result<std::shared_ptr<const Wasmtime>> open(const std::string& path = {});
  static constexpr int oldest_version = 25, newest_version = 59;

  std::string path;
  int version = 0;

  // clang-format off
  c::Config* (*config_new)() = nullptr;
  void (*config_epoch_interruption)(c::Config*, bool) = nullptr;
  void (*config_parallel_compilation)(c::Config*, bool) = nullptr;
  void (*config_max_wasm_stack)(c::Config*, std::size_t) = nullptr;
  c::Engine* (*engine_new)(c::Config*) = nullptr;  // takes the config
  void (*engine_delete)(c::Engine*) = nullptr;
  void (*engine_increment_epoch)(c::Engine*) = nullptr;  // from any thread
  c::Error* (*module_new)(c::Engine*, const std::uint8_t*, std::size_t, c::Module**) = nullptr;
  void (*module_delete)(c::Module*) = nullptr;
  c::Error* (*module_serialize)(c::Module*, c::Vector<char>*) = nullptr;
  c::Store* (*store_new)(c::Engine*, void*, void (*)(void*)) = nullptr;
  void (*store_delete)(c::Store*) = nullptr;
  c::Context* (*store_context)(c::Store*) = nullptr;
  void (*store_limiter)(c::Store*, std::int64_t memory_bytes, std::int64_t table_elements, std::int64_t instances,
                        std::int64_t tables, std::int64_t memories) = nullptr;
  void (*set_epoch_deadline)(c::Context*, std::uint64_t ticks) = nullptr;
  c::Error* (*instance_new)(c::Context*, const c::Module*, const c::Item* imports, std::size_t, c::Instance*,
                            c::Trap**) = nullptr;
  bool (*instance_export)(c::Context*, const c::Instance*, const char*, std::size_t, c::Item*) = nullptr;
  c::FunctionType* (*function_type)(const c::Context*, const void* function) = nullptr;
  const c::Vector<c::ValueType*>* (*type_parameters)(const c::FunctionType*) = nullptr;
  const c::Vector<c::ValueType*>* (*type_results)(const c::FunctionType*) = nullptr;
  std::uint8_t (*value_kind)(const c::ValueType*) = nullptr;
  void (*function_type_delete)(c::FunctionType*) = nullptr;
  c::Error* (*function_call)(c::Context*, const void* function, c::Raw* arguments_and_results, std::size_t,
                             c::Trap**) = nullptr;
  void (*global_get)(c::Context*, const void* global, c::Item* value) = nullptr;
  std::uint8_t* (*memory_data)(const c::Context*, const void* memory) = nullptr;
  std::size_t (*memory_bytes)(const c::Context*, const void* memory) = nullptr;
  c::Error* (*memory_grow)(c::Context*, const void* memory, std::uint64_t pages, std::uint64_t* before) = nullptr;
  void (*error_message)(const c::Error*, c::Vector<char>*) = nullptr;
  void (*error_delete)(c::Error*) = nullptr;
  bool (*trap_code)(const c::Trap*, std::uint8_t*) = nullptr;
  void (*trap_message)(const c::Trap*, c::Vector<char>*) = nullptr;
  void (*trap_delete)(c::Trap*) = nullptr;
  void (*bytes_delete)(c::Vector<char>*) = nullptr;
  // clang-format on

  // What modules do not need, switched off where the library knows it: name, and the function that takes a bool.
  std::vector<void (*)(c::Config*, bool)> unneeded_features;

  std::string take(c::Error* error) const;  // its message; deletes it
  std::string take(c::Trap* trap, std::uint8_t* code) const;

 private:
  Wasmtime() = default;
  std::string load(void* handle);  // the first function that is missing, or empty
  int read_version() const;        // 0 if it cannot be read
};

}  // namespace trireme::wasm

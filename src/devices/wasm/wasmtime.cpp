#include "devices/wasm/wasmtime.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "devices/wasm/fork_gate.hpp"
#include "devices/wheels.hpp"
#include "support/environment.hpp"
#include "support/processor.hpp"

namespace trireme::wasm {
namespace {

constexpr char how_to_get_it[] = "install its wheel (pip install wasmtime), or name the library in TRIREME_WASMTIME";

std::string in_the_wheel() { return "wasmtime/linux-" + std::string(processor) + "/_libwasmtime.so"; }

std::string text_of(const c::Vector<char>& bytes) {
  std::string text(bytes.data, bytes.size);
  while (!text.empty() && (text.back() == '\0' || text.back() == '\n')) text.pop_back();
  return text;
}

}  // namespace

std::string Wasmtime::load(void* handle) {
  std::string missing;
  const auto entry = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(handle, name));
    if (!function && missing.empty()) missing = name;
  };
  entry(config_new, "wasm_config_new");
  entry(config_epoch_interruption, "wasmtime_config_epoch_interruption_set");
  entry(config_parallel_compilation, "wasmtime_config_parallel_compilation_set");
  entry(config_max_wasm_stack, "wasmtime_config_max_wasm_stack_set");
  entry(engine_new, "wasm_engine_new_with_config");
  entry(engine_delete, "wasm_engine_delete");
  entry(engine_increment_epoch, "wasmtime_engine_increment_epoch");
  entry(module_new, "wasmtime_module_new");
  entry(module_delete, "wasmtime_module_delete");
  entry(module_serialize, "wasmtime_module_serialize");
  entry(store_new, "wasmtime_store_new");
  entry(store_delete, "wasmtime_store_delete");
  entry(store_context, "wasmtime_store_context");
  entry(store_limiter, "wasmtime_store_limiter");
  entry(set_epoch_deadline, "wasmtime_context_set_epoch_deadline");
  entry(instance_new, "wasmtime_instance_new");
  entry(instance_export, "wasmtime_instance_export_get");
  entry(function_type, "wasmtime_func_type");
  entry(type_parameters, "wasm_functype_params");
  entry(type_results, "wasm_functype_results");
  entry(value_kind, "wasm_valtype_kind");
  entry(function_type_delete, "wasm_functype_delete");
  entry(function_call, "wasmtime_func_call_unchecked");
  entry(global_get, "wasmtime_global_get");
  entry(memory_data, "wasmtime_memory_data");
  entry(memory_bytes, "wasmtime_memory_data_size");
  entry(memory_grow, "wasmtime_memory_grow");
  entry(error_message, "wasmtime_error_message");
  entry(error_delete, "wasmtime_error_delete");
  entry(trap_code, "wasmtime_trap_code");
  entry(trap_message, "wasm_trap_message");
  entry(trap_delete, "wasm_trap_delete");
  entry(bytes_delete, "wasm_byte_vec_delete");
  for (const char* feature : {"threads", "shared_memory", "gc", "function_references", "exceptions", "memory64",
                              "multi_memory", "multi_value", "tail_call", "stack_switching", "component_model"}) {
    const std::string prefix = std::string(feature) == "shared_memory" ? "wasmtime_config_" : "wasmtime_config_wasm_";
    if (void* found = dlsym(handle, (prefix + feature + "_set").c_str()))
      unneeded_features.push_back(reinterpret_cast<void (*)(c::Config*, bool)>(found));
  }
  return missing;
}

// No function tells it. But compiled modules carry it, so that no other version loads them: in an ELF file, whose first
// section holds a zero, a length, and the version as text.
int Wasmtime::read_version() const {
  constexpr std::uint8_t empty[] = {0, 'a', 's', 'm', 1, 0, 0, 0};
  constexpr std::size_t elf_header_bytes = 64;
  c::Config* config = config_new();
  config_parallel_compilation(config, false);
  c::Engine* engine = engine_new(config);
  c::Module* module = nullptr;
  int result = 0;
  if (c::Error* error = module_new(engine, empty, sizeof empty, &module)) {
    error_delete(error);
  } else {
    c::Vector<char> bytes;
    if (c::Error* error = module_serialize(module, &bytes)) {
      error_delete(error);
    } else {
      if (bytes.size > elf_header_bytes + 2 && bytes.data[elf_header_bytes] == 0) {
        const char* text = bytes.data + elf_header_bytes + 2;
        const auto length = static_cast<std::size_t>(static_cast<std::uint8_t>(text[-1]));
        std::from_chars(text, std::min<const char*>(text + length, bytes.data + bytes.size), result);
      }
      bytes_delete(&bytes);
    }
    module_delete(module);
  }
  engine_delete(engine);
  return result;
}

Result<std::shared_ptr<const Wasmtime>> Wasmtime::open(const std::string& path) {
  const InsideForkGate gate;
  TRIREME_TRY(named, environment::wasmtime());
  std::string file = path.empty() ? named : path;
  if (file.empty()) {
    const std::vector<std::string> found = find_in_pythons(in_the_wheel());
    file = found.empty() ? "libwasmtime.so" : found.front();
  }
  void* handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    const char* why = dlerror();
    return Error{Code::NoDevice,
                 fmt::format("wasmtime's library is missing ({}); {}", why ? why : file, how_to_get_it)};
  }
  std::shared_ptr<Wasmtime> library(new Wasmtime);
  library->path = file;
  if (const std::string missing = library->load(handle); !missing.empty())
    return Error{Code::Unsupported, fmt::format("{} has no {}: it is not wasmtime's library, or one older than {}; {}",
                                                file, missing, oldest_version, how_to_get_it)};
  library->version = library->read_version();
  if (library->version < oldest_version || library->version > newest_version) {
    const std::string found = library->version ? fmt::format("version {}", library->version) : "of an unknown version";
    return Error{Code::Unsupported, fmt::format("{} is {}; versions {} to {} are known; {}", file, found,
                                                oldest_version, newest_version, how_to_get_it)};
  }
  return std::shared_ptr<const Wasmtime>(std::move(library));
}

std::string Wasmtime::take(c::Error* error) const {
  c::Vector<char> message;
  error_message(error, &message);
  std::string text = text_of(message);
  bytes_delete(&message);
  error_delete(error);
  return text;
}

std::string Wasmtime::take(c::Trap* trap, std::uint8_t* code) const {
  c::Vector<char> message;
  trap_message(trap, &message);
  std::string text = text_of(message);
  bytes_delete(&message);
  if (!trap_code(trap, code)) *code = 255;
  trap_delete(trap);
  return text;
}

}  // namespace trireme::wasm

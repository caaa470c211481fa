#include "devices/wasm/sandbox.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "support/mxcsr.hpp"

namespace trireme::wasm {
namespace {

using trireme::Code;

// Calls back once if it still lives when the time is over. A thread a call: none is left behind that a fork would lose.
template <typename Work>
class Watchdog {
 public:
  Watchdog(double seconds, Work work)
      : thread_([this, seconds, work = std::move(work)] {
          std::unique_lock lock(mutex_);
          if (!done_.wait_for(lock, std::chrono::duration<double>(seconds), [this] { return is_done_; })) work();
        }) {}
  ~Watchdog() {
    std::unique_lock lock(mutex_);
    is_done_ = true;
    lock.unlock();
    done_.notify_one();
    thread_.join();
  }

 private:
  std::mutex mutex_;
  std::condition_variable done_;
  bool is_done_ = false;
  std::thread thread_;
};

// The message of an error is a backtrace and a chain of causes, "    1: wasm trap: ..."; the last one is the reason.
std::string reason(const std::string& message) {
  std::string_view last = message;
  last = last.substr(0, last.find_last_not_of(" \n") + 1);
  last = last.substr(last.rfind('\n') + 1);
  last.remove_prefix(std::min(last.find_first_not_of(" 0123456789:"), last.size()));
  if (last.starts_with("wasm trap: ")) last.remove_prefix(11);
  return last.empty() ? "no reason given" : std::string(last);
}

Status check_limits(const WasmLimits& limits) {
  const auto refuse = [](const char* what, std::int64_t least, std::int64_t most, std::int64_t got) {
    return Error{Code::InvalidArgument, fmt::format("WasmLimits: {} is {}; {} to {} go", what, got, least, most)};
  };
  constexpr std::int64_t most_memory = std::int64_t{1} << 32, least_stack = 64 << 10, most_stack = 1 << 20;
  if (limits.memory_bytes < page_bytes || limits.memory_bytes > most_memory)
    return refuse("memory_bytes", page_bytes, most_memory, limits.memory_bytes);
  if (limits.stack_bytes < least_stack || limits.stack_bytes > most_stack)
    return refuse("stack_bytes", least_stack, most_stack, limits.stack_bytes);
  if (!(limits.seconds > 0 && limits.seconds <= 1e6))
    return Error{Code::InvalidArgument, fmt::format("WasmLimits: seconds is {}; up to 1e6 go", limits.seconds)};
  return Done{};
}

}  // namespace

Result<std::unique_ptr<Sandbox>> Sandbox::compile(std::shared_ptr<const Wasmtime> library,
                                                  std::span<const std::uint8_t> module, const WasmLimits& limits) {
  TRIREME_CHECK(check_limits(limits));
  if (static_cast<std::int64_t>(module.size()) > limits.module_bytes)
    return Error{Code::InvalidProgram,
                 fmt::format("the module has {} bytes; the limit is {} (WasmLimits::module_bytes)", module.size(),
                             limits.module_bytes)};
  constexpr std::uint8_t magic[] = {0, 'a', 's', 'm'};
  if (module.size() < sizeof magic || !std::equal(std::begin(magic), std::end(magic), module.begin()))
    return Error{Code::InvalidProgram, "not a valid WebAssembly module: it does not begin with \\0asm"};
  std::unique_ptr<Sandbox> sandbox(new Sandbox(std::move(library), limits));
  const Wasmtime& c = *sandbox->library_;
  c::Config* config = c.config_new();
  c.config_epoch_interruption(config, true);
  c.config_max_wasm_stack(config, static_cast<std::size_t>(limits.stack_bytes));
  for (const auto set : c.unneeded_features) set(config, false);
  sandbox->engine_ = c.engine_new(config);
  if (c::Error* error = c.module_new(sandbox->engine_, module.data(), module.size(), &sandbox->module_))
    return Error{Code::InvalidProgram, "not a valid WebAssembly module: " + reason(c.take(error))};

  c::Vector<c::ImportType*> imports;
  c.module_imports(sandbox->module_, &imports);
  std::string first;
  if (imports.size > 0) {
    const auto name = [](const c::Vector<char>* text) { return std::string_view(text->data, text->size); };
    first = fmt::format("{}.{}", name(c.import_module(imports.data[0])), name(c.import_name(imports.data[0])));
  }
  c.imports_delete(&imports);
  if (!first.empty())
    return Error{Code::InvalidProgram, fmt::format("the module imports {}; modules get nothing from the host", first)};
  return sandbox;
}

Sandbox::~Sandbox() {
  if (module_) library_->module_delete(module_);
  if (engine_) library_->engine_delete(engine_);
}

template <typename Work>
Status SandboxInstance::guarded(std::string_view what, const Work& work) {
  const WasmLimits& limits = sandbox_.limits_;
  c_.set_epoch_deadline(context_, 1);
  c::Trap* trap = nullptr;
  c::Error* error = nullptr;
  {
    const ContractArithmetic arithmetic;
    const Watchdog watchdog(limits.seconds, [this] { c_.engine_increment_epoch(sandbox_.engine_); });
    error = work(&trap);
  }
  if (error) return Error{Code::InvalidProgram, fmt::format("{}: {}", what, reason(c_.take(error)))};
  if (!trap) return Done{};
  std::uint8_t code = 0;
  const std::string message = c_.take(trap, &code);
  if (code == c::Interrupt)
    return Error{Code::InvalidProgram, fmt::format("{} was stopped after {} seconds", what, limits.seconds)};
  if (code == c::StackOverflow)
    return Error{Code::InvalidProgram,
                 fmt::format("{} trapped: it needs more than the {} bytes of stack it has", what, limits.stack_bytes)};
  return Error{Code::InvalidProgram, fmt::format("{} trapped: {}", what, reason(message))};
}

Result<std::unique_ptr<SandboxInstance>> SandboxInstance::create(const Sandbox& sandbox) {
  constexpr std::int64_t table_elements = 10000;
  std::unique_ptr<SandboxInstance> made(new SandboxInstance(sandbox));
  const Wasmtime& c = made->c_;
  made->store_ = c.store_new(sandbox.engine_, nullptr, nullptr);
  made->context_ = c.store_context(made->store_);
  c.store_limiter(made->store_, sandbox.limits_.memory_bytes, table_elements, 1, 1, 1);
  TRIREME_CHECK(made->guarded("making an instance", [&](c::Trap** trap) {
    return c.instance_new(made->context_, sandbox.module_, nullptr, 0, &made->instance_, trap);
  }));
  constexpr std::string_view memory = "memory";
  if (!c.instance_export(made->context_, &made->instance_, memory.data(), memory.size(), &made->memory_) ||
      made->memory_.kind != c::MemoryItem)
    return Error{Code::InvalidProgram, "the module exports no memory named memory"};
  return made;
}

SandboxInstance::~SandboxInstance() {
  if (store_) c_.store_delete(store_);
}

std::span<std::uint8_t> SandboxInstance::memory() const {
  return {c_.memory_data(context_, memory_.content()), c_.memory_bytes(context_, memory_.content())};
}

Status SandboxInstance::grow_to(std::int64_t bytes) {
  const auto now = static_cast<std::int64_t>(c_.memory_bytes(context_, memory_.content()));
  if (bytes <= now) return Done{};
  const auto refused = [&](const std::string& why) {
    return Error{Code::OutOfMemory,
                 fmt::format("{} bytes of memory are needed, the module has {}: {}", bytes, now, why)};
  };
  const std::int64_t limit = sandbox_.limits_.memory_bytes;
  if (bytes > limit) return refused(fmt::format("the limit is {} (WasmLimits::memory_bytes)", limit));
  std::uint64_t before = 0;
  const auto pages = static_cast<std::uint64_t>((bytes - now + page_bytes - 1) / page_bytes);
  if (c::Error* error = c_.memory_grow(context_, memory_.content(), pages, &before))
    return refused(reason(c_.take(error)));
  return Done{};
}

std::optional<std::uint32_t> SandboxInstance::global(std::string_view name) const {
  c::Item item = {}, value = {};
  if (!c_.instance_export(context_, &instance_, name.data(), name.size(), &item) || item.kind != c::GlobalItem)
    return std::nullopt;
  c_.global_get(context_, item.content(), &value);
  if (value.kind != c::I32Value) return std::nullopt;
  return *static_cast<const std::uint32_t*>(value.content());
}

Result<SandboxInstance::Entry> SandboxInstance::entry(std::string_view name, std::string_view signature) const {
  Entry entry{.name = std::string(name)};
  if (!c_.instance_export(context_, &instance_, name.data(), name.size(), &entry.function) ||
      entry.function.kind != c::FunctionItem)
    return Error{Code::InvalidProgram, fmt::format("the module exports no function {}", name)};
  c::FunctionType* type = c_.function_type(context_, entry.function.content());
  std::string found;
  const auto spell = [&](const c::Vector<c::ValueType*>* values) {
    for (std::size_t k = 0; k < values->size; ++k) {
      const std::uint8_t kind = c_.value_kind(values->data[k]);
      found += kind == c::I32Value ? 'i' : kind == c::I64Value ? 'I' : '?';
    }
  };
  spell(c_.type_parameters(type));
  entry.arguments = found.size();
  found += '>';
  spell(c_.type_results(type));
  entry.has_result = found.back() != '>';
  c_.function_type_delete(type);
  if (found != signature)
    return Error{
        Code::InvalidProgram,
        fmt::format("{} has the signature {}; expected {} (i: i32, I: i64, ?: anything else)", name, found, signature)};
  return entry;
}

Result<std::int64_t> SandboxInstance::call(const Entry& entry, std::initializer_list<std::uint64_t> arguments) {
  constexpr std::size_t most = 8;
  c::Raw values[most];
  if (arguments.size() != entry.arguments || entry.arguments > most)
    return Error{Code::Internal, fmt::format("{} called with {} arguments", entry.name, arguments.size())};
  std::ranges::transform(arguments, values, [](std::uint64_t value) { return c::Raw{.low = value}; });
  TRIREME_CHECK(guarded(entry.name, [&](c::Trap** trap) {
    return c_.function_call(context_, entry.function.content(), values, std::max<std::size_t>(entry.arguments, 1),
                            trap);
  }));
  return entry.has_result ? static_cast<std::int32_t>(values[0].low) : 0;
}

}  // namespace trireme::wasm

#include "devices/wasm/sandbox.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "devices/wasm/fork_gate.hpp"
#include "support/contract_arithmetic.hpp"

namespace trireme::wasm {
namespace {

using trireme::Code;

// The message of an error is a backtrace and a chain of causes, "    1: wasm trap: ..."; the last one is the reason.
std::string reason(const std::string& message) {
  std::string_view last = message;
  last = last.substr(0, last.find_last_not_of(" \n") + 1);
  last = last.substr(last.rfind('\n') + 1);
  last.remove_prefix(std::min(last.find_first_not_of(" 0123456789:"), last.size()));
  if (last.starts_with("wasm trap: ")) last.remove_prefix(11);
  return last.empty() ? "no reason given" : std::string(last);
}

}  // namespace

Result<std::unique_ptr<Sandbox>> Sandbox::compile(std::shared_ptr<const Wasmtime> library,
                                                  std::span<const std::uint8_t> module, const WasmLimits& limits) {
  const InsideForkGate gate;
  std::unique_ptr<Sandbox> sandbox(new Sandbox(std::move(library), limits));
  const Wasmtime& c = *sandbox->library_;
  c::Config* config = c.config_new();
  c.config_epoch_interruption(config, limits.seconds != no_time_limit);
  c.config_parallel_compilation(config, false);  // its threads would be missing in a forked child
  c.config_max_wasm_stack(config, static_cast<std::size_t>(limits.stack_bytes));
  for (const auto set : c.unneeded_features) set(config, false);
  sandbox->engine_ = c.engine_new(config);
  if (c::Error* error = c.module_new(sandbox->engine_, module.data(), module.size(), &sandbox->module_))
    return Error{Code::InvalidProgram, "not a valid WebAssembly module: " + reason(c.take(error))};
  return sandbox;
}

Sandbox::~Sandbox() {
  const InsideForkGate gate;
  if (module_) library_->module_delete(module_);
  if (engine_) library_->engine_delete(engine_);
}

Status Sandbox::start(Watch& watch) const {
  if (limits_.seconds == no_time_limit) return Done{};
  const auto stop = [](void* sandbox) {
    const Sandbox& self = *static_cast<const Sandbox*>(sandbox);
    self.library_->engine_increment_epoch(self.engine_);
  };
  return watch.start(limits_.seconds, stop, const_cast<Sandbox*>(this));
}

template <typename Work>
Status SandboxInstance::guarded(std::string_view what, const Watch& watch, const Work& work) {
  const WasmLimits& limits = sandbox_.limits_;
  const auto stopped = [&] {
    return Error{Code::InvalidProgram, fmt::format("{} was stopped after {} seconds", what, limits.seconds)};
  };
  c_.set_epoch_deadline(context_, 1);
  if (watch.is_over()) return stopped();  // the epoch may have advanced before the deadline was set
  c::Trap* trap = nullptr;
  c::Error* error = nullptr;
  {
    const ContractArithmetic arithmetic;
    error = work(&trap);
  }
  if (error) return Error{Code::InvalidProgram, fmt::format("{}: {}", what, reason(c_.take(error)))};
  if (!trap) return Done{};
  std::uint8_t code = 0;
  const std::string message = c_.take(trap, &code);
  if (code == c::Interrupt) return stopped();
  if (code == c::StackOverflow)
    return Error{Code::InvalidProgram,
                 fmt::format("{} trapped: it needs more than the {} bytes of stack it has", what, limits.stack_bytes)};
  return Error{Code::InvalidProgram, fmt::format("{} trapped: {}", what, reason(message))};
}

Result<std::unique_ptr<SandboxInstance>> SandboxInstance::create(const Sandbox& sandbox, const Watch& watch) {
  std::unique_ptr<SandboxInstance> made(new SandboxInstance(sandbox));
  const Wasmtime& c = made->c_;
  made->store_ = c.store_new(sandbox.engine_, nullptr, nullptr);
  made->context_ = c.store_context(made->store_);
  c.store_limiter(made->store_, sandbox.limits_.memory_bytes, sandbox.limits_.table_elements, 1, 1, 1);
  TRIREME_CHECK(made->guarded("making an instance", watch, [&](c::Trap** trap) {
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

Result<std::int64_t> SandboxInstance::call(const Entry& entry, std::initializer_list<std::uint64_t> arguments,
                                           const Watch& watch) {
  constexpr std::size_t most = 8;
  c::Raw values[most];
  if (arguments.size() != entry.arguments || entry.arguments > most)
    return Error{Code::Internal, fmt::format("{} called with {} arguments", entry.name, arguments.size())};
  std::ranges::transform(arguments, values, [](std::uint64_t value) { return c::Raw{.low = value}; });
  TRIREME_CHECK(guarded(entry.name, watch, [&](c::Trap** trap) {
    return c_.function_call(context_, entry.function.content(), values, std::max<std::size_t>(entry.arguments, 1),
                            trap);
  }));
  return entry.has_result ? static_cast<std::int32_t>(values[0].low) : 0;
}

}  // namespace trireme::wasm

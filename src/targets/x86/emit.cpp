#include "targets/x86/emit.hpp"

#include <fmt/format.h>

#include <atomic>
#include <memory>
#include <optional>

#include "support/out_of_memory.hpp"
#include "targets/listing.hpp"
#include "targets/x86/walker.hpp"

namespace trireme::x86 {

namespace {

Error internal(std::string what) { return {trireme::Code::Internal, "x86: " + std::move(what)}; }

// Remembers the first complaint; the emitter then goes on into the void. It is called from inside asmjit, which no
// exception may pass through, and so allocates nothing.
class Complaints : public asmjit::ErrorHandler {
 public:
  void handleError(asmjit::Error error, const char*, asmjit::BaseEmitter*) override { note(error); }
  void note(asmjit::Error error) {
    if (first == asmjit::kErrorOk) first = error;
  }
  trireme::Error error_of(const Kernel& kernel) const {
    if (first == asmjit::kErrorOutOfMemory) return out_of_memory();
    return internal(fmt::format("{}: asmjit: {}", kernel.name, asmjit::DebugUtils::errorAsString(first)));
  }
  asmjit::Error first = asmjit::kErrorOk;
};

// What code is made in. The system takes up to 0.2 ms to lend this memory, nearly as long as the rest takes: one is
// kept, as large as the largest kernel so far wanted it. No lock: a child that is forked while another thread emits
// finds none kept, and makes one.
struct Workbench {
  asmjit::CodeHolder holder;
  Compiler compiler;

  static std::unique_ptr<Workbench> take() {
    std::unique_ptr<Workbench> bench(kept.exchange(nullptr, std::memory_order_acquire));
    return bench ? std::move(bench) : std::make_unique<Workbench>();
  }
  static void give_back(std::unique_ptr<Workbench> bench) {
    bench->holder.reset();
    bench.reset(kept.exchange(bench.release(), std::memory_order_acq_rel));
  }

 private:
  static inline std::atomic<Workbench*> kept;  // never destroyed: threads may outlive main
};

Result<MachineCode> emit_at(Workbench& bench, const Kernel& kernel, Isa isa, bool with_listing) {
  auto& [holder, compiler] = bench;
  Complaints complaints;
  asmjit::StringLogger logger;
  complaints.note(holder.init(asmjit::Environment(asmjit::Arch::kX64)));
  holder.setErrorHandler(&complaints);
  if (with_listing) holder.setLogger(&logger);
  if (!complaints.first)
    if (asmjit::Error error = holder.attach(&compiler)) {
      compiler.not_attached();
      complaints.note(error);
    }
  if (complaints.first) return complaints.error_of(kernel);
  compiler.begin(is_avx512(isa));
  Walker walker(compiler, kernel, isa, with_listing);
  walker.walk();
  if (complaints.first) return complaints.error_of(kernel);
  if (std::optional<std::string> fault = walker.fault()) return internal(kernel.name + ": " + *fault);
  complaints.note(compiler.finish());
  if (!complaints.first) complaints.note(holder.flatten());
  if (!complaints.first) complaints.note(holder.resolveUnresolvedLinks());
  if (complaints.first) return complaints.error_of(kernel);
  if (holder.hasUnresolvedLinks() || holder.hasRelocEntries())
    return internal(kernel.name + ": the code is not position independent");

  MachineCode code;
  code.bytes.resize(holder.codeSize());
  if (holder.copyFlattenedData(code.bytes.data(), code.bytes.size()) != asmjit::kErrorOk)
    return internal(kernel.name + ": the code could not be copied");
  if (with_listing) code.listing = laid_out(kernel, {logger.data(), logger.dataSize()});
  return code;
}

}  // namespace

// Results beyond 4 MiB go past the caches: at 8 MiB rms_norm then takes 0.38 ms instead of 0.81, swiglu 0.69 instead of
// 0.85; at 4 MiB swiglu loses (0.40 instead of 0.35), as do 16-bit types (0.30 instead of 0.26; docs/performance.md).
trireme::Machine machine_of(Isa isa) {
  return {.simd = true,
          .register_bytes = is_avx512(isa) ? 64 : 32,
          .cache_bytes = 4 << 20,
          .across = true,
          .tuned = is_avx512(isa) ? "avx512" : "avx2"};
}

Result<MachineCode> emit(const Kernel& kernel, Isa isa, bool with_listing) {
  if (!kernel.simd || (kernel.compute != Type::F32 && kernel.compute != Type::F64) ||
      kernel.launch.lanes != lanes(isa, kernel.compute))
    return internal(fmt::format("{}: not a simd kernel of {} lanes", kernel.name, lanes(isa, kernel.compute)));

  std::unique_ptr<Workbench> bench = Workbench::take();
  Result<MachineCode> made = emit_at(*bench, kernel, isa, with_listing);
  // After an error asmjit's parts may not fit each other: the next code made there could be wrong.
  if (made) Workbench::give_back(std::move(bench));
  return made;
}

}  // namespace trireme::x86

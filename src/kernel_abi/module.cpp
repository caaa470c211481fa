// Puts a module of the kernel ABI together: kernels, the function that calls them, and the entries.
#include "kernel_abi/module.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "kernel_abi/entry.hpp"
#include "language/parse.hpp"
#include "passes/passes.hpp"
#include "schedule/lower.hpp"
#include "targets/targets.hpp"

namespace trireme {
namespace abi {

std::string global_name(bool backward, std::string_view array) {
  return (backward ? "backward " : "") + std::string(array);
}

namespace {

constexpr std::uint32_t initial_pages = 16, page_bytes = 65536;

// The kernels of an entry for one choice of its optional arrays.
struct Variant {
  bool backward = false;
  unsigned present = 0;  // bit k: optional array k
  Program program;
  Kernels kernels;
};

bool is_present(const AbiEntry& entry, unsigned present, std::string_view array) {
  for (std::size_t k = 0; k < entry.optional.size(); ++k)
    if (entry.optional[k].name == array) return present >> k & 1;
  return true;
}

// Optional operands that serve one result only, and such results, come together.
bool is_possible(const AbiEntry& entry, unsigned present) {
  return std::ranges::all_of(entry.optional, [&](const AbiArray& array) {
    return array.needs.empty() || is_present(entry, present, array.name) == is_present(entry, present, array.needs);
  });
}

Result<Variant> make_variant(const AbiEntry& entry, bool backward, unsigned present) {
  TRIREME_TRY(program, parse(entry.text));
  Binding binding{.wanted = std::set<std::string>()};
  for (const Operand& operand : program.operands)
    if (is_present(entry, present, operand.name)) binding.types[operand.name] = Type::F32;
    else binding.absent.insert(operand.name);
  for (const Output& result : program.results)
    if (is_present(entry, present, result.name))
      binding.types[result.name] = Type::F32, binding.wanted->insert(result.name);
  TRIREME_TRY(prepared, prepare(program, binding));
  TRIREME_TRY(machine, wasm::target.machine(wasm::target.default_arch));
  TRIREME_TRY(lowered, lower_for(prepared.expanded, machine, {.rows = 4096, .columns = 4096}));
  return Variant{backward, present, std::move(prepared.expanded), std::move(lowered.kernels)};
}

class ModuleWriter {
 public:
  ModuleWriter(const KernelAbi& abi, const wasm::Options& options) : abi_(abi), emitter_(module_, options) {}

  Result<std::vector<std::uint8_t>> write() {
    TRIREME_CHECK(make_variants());
    add_globals();
    TRIREME_CHECK(add_dispatch());
    TRIREME_TRY(borrow_body, borrow());
    const wasm::Callee borrow = module_.add(std::move(borrow_body));
    TRIREME_TRY(overlap_body, overlap());
    const wasm::Callee overlap = module_.add(std::move(overlap_body));
    for (bool backward : {false, true}) {
      const int first = backward ? 1 : 0;  // the forward has no optional arrays
      TRIREME_TRY(entry, write_entry({abi_, backward, scratch_, first, globals_, overlap, borrow}));
      module_.add(std::move(entry), backward ? "kernel_backward" : "kernel_forward");
    }
    TRIREME_CHECK(add_small_entries());
    return module_.encode();
  }

 private:
  Status make_variants() {
    TRIREME_TRY(forward, make_variant(abi_.forward, false, 0));
    variants_.push_back(std::move(forward));
    for (unsigned present = 0; present < 1u << abi_.backward.optional.size(); ++present) {
      if (!is_possible(abi_.backward, present)) continue;
      TRIREME_TRY(variant, make_variant(abi_.backward, true, present));
      variants_.push_back(std::move(variant));
    }
    for (const Variant& variant : variants_) {
      const auto add = [&](const Kernel& kernel) {
        scratch_.bytes = std::max(scratch_.bytes, kernel.scratch_bytes);
        scratch_.bytes_per_stripe = std::max(scratch_.bytes_per_stripe, kernel.scratch_bytes_per_stripe);
      };
      add(variant.kernels.rows);
      for (const Kernel& kernel : variant.kernels.columns) add(kernel);
      if (variant.kernels.rows.slots.size() * 8 > slots_bytes)
        return Error{Code::Internal, "kernel ABI: no room for the slots of " + variant.kernels.rows.name};
    }
    return Done{};
  }

  void add_globals() {
    const auto add = [&](const std::string& name) {
      globals_[name] = module_.global({.name = name, .is_mutable = true});
    };
    for (const char* name : {"window", "window_bytes", "columns", "rows", "row_block", "blocks", "partial_stride",
                             "variant", "value", "scratch", "scratch_stride"})
      add(name);
    for (bool backward : {false, true}) {
      const AbiEntry& entry = backward ? abi_.backward : abi_.forward;
      for (const AbiArray& array : {entry.a, entry.b, entry.output}) add(global_name(backward, array.name));
      for (const AbiArray& array : entry.optional) add(global_name(backward, array.name));
    }
    module_.global({.name = "__heap_base", .value = initial_pages * page_bytes, .is_exported = true});
  }

  const wasm::Global& global(std::string_view name) const { return globals_.find(name)->second; }

  // Slots from globals, then the kernels.
  void write_call(wasm::Function& f, const Variant& variant, const wasm::Functions& functions) {
    const AbiEntry& entry = variant.backward ? abi_.backward : abi_.forward;
    const auto get = [&](std::string_view name) { f.get(global(name)), f.op("i64.extend_i32_u"); };
    const auto in_window = [&](std::uint32_t offset) {
      f.get(global("window")), f.i32_const(static_cast<std::int32_t>(offset)), f.op("i32.add");
      f.op("i64.extend_i32_u");
    };
    const auto pointer = [&](std::string_view array) {
      if (array == abi_.value) in_window(value_at);
      else if (array == entry.in_scratch) get("scratch");
      else get(global_name(variant.backward, array));
    };
    const auto stride = [&](const Program::Array& array) {
      if (array.name == entry.in_scratch) get("scratch_stride");
      else if (array.spread.column.present) get("columns");
      else f.i64_const(1);
    };
    f.get(global("window")), f.get(global("value")), f.memory("i32.store", {.offset = value_at});
    const std::vector<Slot>& slots = variant.kernels.rows.slots;
    for (std::size_t k = 0; k < slots.size(); ++k) {
      f.get(global("window"));
      const Slot& slot = slots[k];
      switch (slot.what) {
        case Slot::What::Columns: get("columns"); break;
        case Slot::What::Pointer:
          if (slot.array == scratch_array) in_window(scratch_at);
          else if (slot.array < 0) get("scratch");
          else pointer(variant.program.array(static_cast<std::size_t>(slot.array)).name);
          break;
        case Slot::What::Stride:
          if (slot.array < 0) get("partial_stride");
          else stride(variant.program.array(static_cast<std::size_t>(slot.array)));
          break;
        case Slot::What::RowBlock: variant.kernels.columns.empty() ? f.i64_const(1) : get("row_block"); break;
        case Slot::What::Blocks: variant.kernels.columns.empty() ? get("rows") : get("blocks"); break;
        case Slot::What::Rows:
        case Slot::What::ColumnStride:
        case Slot::What::Every:
        case Slot::What::Jump:
        case Slot::What::SumNumber:
        case Slot::What::Value: f.i64_const(0); break;  // arrays are plain, and the programs have no constants
      }
      f.memory("i64.store", {.offset = static_cast<std::uint32_t>(8 * k)});
    }
    f.get(global("window")), f.i64_const(0), get("rows"), get("rows"), f.call(functions.rows);
    if (functions.columns) f.get(global("window")), f.i64_const(0), get("columns"), f.call(*functions.columns);
  }

  Status add_dispatch() {
    wasm::Function dispatch("dispatch");
    for (const Variant& variant : variants_) {
      const int number = variant.backward ? 1 + static_cast<int>(variant.present) : 0;
      const std::string prefix = variant.backward ? fmt::format("backward_{}", variant.present) : "forward";
      TRIREME_TRY(functions, emitter_.add(variant.kernels, prefix));
      dispatch.get(global("variant")), dispatch.i32_const(number), dispatch.op("i32.eq");
      const wasm::Label chosen = dispatch.if_();
      write_call(dispatch, variant, functions);
      dispatch.end(chosen);
    }
    TRIREME_TRY(body, dispatch.finish());
    dispatch_ = module_.add(std::move(body));
    return Done{};
  }

  // Keeps `left` bytes of the host's memory in locals, a step a level of the stack, while the kernels use them.
  Result<wasm::Body> borrow() {
    wasm::Function f("borrow");
    const auto at = f.parameter<wasm::I32>("at"), left = f.parameter<wasm::I32>("left");
    const wasm::Callee self{dispatch_.index + 1, "borrow", {{wasm::Type::I32, wasm::Type::I32}}};
    std::vector<wasm::Local<wasm::V128>> kept;
    const auto place = [](std::size_t k) {
      return wasm::MemArg{.offset = static_cast<std::uint32_t>(16 * k), .align_log2 = 0};
    };
    for (std::size_t k = 0; k < borrowed_step / 16; ++k) kept.push_back(f.local<wasm::V128>(fmt::format("kept{}", k)));
    for (std::size_t k = 0; k < kept.size(); ++k) f.get(at), f.memory("v128.load", place(k)), f.set(kept[k]);
    f.get(left), f.i32_const(borrowed_step), f.op("i32.gt_u");
    const wasm::Label more = f.if_();
    f.get(at), f.i32_const(borrowed_step), f.op("i32.add");
    f.get(left), f.i32_const(borrowed_step), f.op("i32.sub");
    f.call(self);
    f.else_(more);
    f.call(dispatch_);
    f.end(more);
    for (std::size_t k = 0; k < kept.size(); ++k) f.get(at), f.get(kept[k]), f.memory("v128.store", place(k));
    return f.finish();
  }

  // Do bytes a .. a + a_bytes and b .. b + b_bytes share one?
  static Result<wasm::Body> overlap() {
    wasm::Function f("overlap", wasm::Type::I32);
    const auto a = f.parameter<wasm::I64>("a"), a_bytes = f.parameter<wasm::I64>("a_bytes");
    const auto b = f.parameter<wasm::I64>("b"), b_bytes = f.parameter<wasm::I64>("b_bytes");
    f.get(a), f.get(b), f.get(b_bytes), f.op("i64.add"), f.op("i64.lt_u");
    f.get(b), f.get(a), f.get(a_bytes), f.op("i64.add"), f.op("i64.lt_u"), f.op("i32.and");
    f.get(a_bytes), f.op("i64.eqz"), f.op("i32.eqz"), f.op("i32.and");
    f.get(b_bytes), f.op("i64.eqz"), f.op("i32.eqz"), f.op("i32.and");
    return f.finish();
  }

  Status add_small_entries() {
    // More than `bytes` behind `at`, in 64 bits.
    const auto fail_outside = [](wasm::Function& f, wasm::Local<wasm::I32> at, auto&& push_bytes) {
      f.get(at), f.op("i64.extend_i32_u"), push_bytes(), f.op("i64.add");
      f.op("memory.size"), f.op("i64.extend_i32_u"), f.i64_const(16), f.op("i64.shl"), f.op("i64.gt_u");
      const wasm::Label fails = f.if_();
      f.i32_const(invalid_params), f.ret(), f.end(fails);
    };

    wasm::Function init("kernel_init", wasm::Type::I32);
    const auto params = init.parameter<wasm::I32>("params_ptr"), length = init.parameter<wasm::I32>("params_len");
    init.get(length);
    const wasm::Label given = init.if_();
    init.get(length), init.i32_const(v1_params_bytes), init.op("i32.lt_u");
    const wasm::Label too_short = init.if_();
    init.i32_const(invalid_params), init.ret(), init.end(too_short);
    fail_outside(init, params, [&] { init.get(length), init.op("i64.extend_i32_u"); });
    init.end(given), init.i32_const(0);
    TRIREME_TRY(init_body, init.finish());
    module_.add(std::move(init_body), "kernel_init");

    const std::uint32_t name_bytes = static_cast<std::uint32_t>(abi_.name.size());
    const std::uint32_t name_at = initial_pages * page_bytes - name_bytes - 1;  // a NUL follows, as memory begins
    module_.data(name_at, {reinterpret_cast<const std::uint8_t*>(abi_.name.data()), abi_.name.size()});
    wasm::Function info("kernel_info", wasm::Type::I32);
    const auto to = info.parameter<wasm::I32>("info");
    info.get(to), info.op("i32.eqz");
    const wasm::Label null = info.if_();
    info.i32_const(invalid_params), info.ret(), info.end(null);
    fail_outside(info, to, [&] { info.i64_const(info_bytes); });
    constexpr std::uint32_t version_1_1_0 = 1 | 1 << 16, backward = 1 << 16;  // u16 @8 @10; u16 @12, u8 @14, 0 @15
    const std::uint32_t words[] = {name_at, name_bytes, version_1_1_0, backward};
    for (std::uint32_t k = 0; k < 4; ++k) {
      info.get(to), info.i32_const(static_cast<std::int32_t>(words[k]));
      info.memory("i32.store", {.offset = 4 * k, .align_log2 = 0});
    }
    info.i32_const(0);
    TRIREME_TRY(info_body, info.finish());
    module_.add(std::move(info_body), "kernel_info");

    wasm::Function cleanup("kernel_cleanup", wasm::Type::I32);
    cleanup.i32_const(0);
    TRIREME_TRY(cleanup_body, cleanup.finish());
    module_.add(std::move(cleanup_body), "kernel_cleanup");
    return Done{};
  }

  const KernelAbi& abi_;
  wasm::Module module_{{.min_pages = initial_pages}};
  wasm::Emitter emitter_;
  std::vector<Variant> variants_;
  Scratch scratch_;
  Globals globals_;
  wasm::Callee dispatch_;
};

}  // namespace
}  // namespace abi

const Target& kernel_abi_target() { return wasm::target; }

Result<std::vector<std::uint8_t>> emit_kernel_abi(std::string_view program, std::string_view arch) {
  TRIREME_TRY(options, wasm::options_of(arch.empty() ? wasm::target.default_arch : arch));
  std::string known;
  for (const KernelAbi& each : kernel_abis()) {
    if (each.program == program) return abi::ModuleWriter(each, options).write();
    known += (known.empty() ? "" : ", ") + std::string(each.program);
  }
  return Error{Code::InvalidArgument,
               fmt::format("the kernel ABI has no '{}'; it has {}, as they are in f32", program, known)};
}

}  // namespace trireme

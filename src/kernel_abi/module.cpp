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

std::string place_name(std::size_t k) { return fmt::format("place{}", k); }
std::string place_bytes_name(std::size_t k) { return fmt::format("place{}_bytes", k); }

std::string there_name(std::string_view array) { return std::string(array) + "_there"; }

bool stands_in(const AbiEntry& entry, const AbiArray& array) {
  return !array.is_result &&
         std::ranges::none_of(entry.optional, [&](const AbiArray& other) { return other.needs == array.name; });
}

namespace {

constexpr std::string_view given = "_given";

// weight[j] = 1 becomes weight_given[j], weight_there[] and a line that chooses.
std::string with_stand_ins(const AbiEntry& entry) {
  std::string text(entry.text);
  for (const AbiArray& array : entry.optional) {
    if (!stands_in(entry, array)) continue;
    const std::string name(array.name);
    const std::size_t begin = text.find(name + "["), equals = text.find(" = ", begin);
    std::size_t end = equals + 3;
    for (int depth = 0; depth > 0 || (text[end] != ',' && text[end] != ')'); ++end)
      depth += (text[end] == '(') - (text[end] == ')');
    const std::string spread = text.substr(begin + name.size(), equals - begin - name.size());
    const std::string fallback = text.substr(equals + 3, end - equals - 3);
    text.replace(begin, end - begin, fmt::format("{0}{1}{2}, {3}[]", name, given, spread, there_name(name)));
    text.insert(text.find('\n', begin) + 1,
                fmt::format("    {0} = select(0 < {2}, {0}{1}, {3})\n", name, given, there_name(name), fallback));
  }
  return text;
}

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
bool is_possible(const AbiEntry& entry, unsigned present, bool compact) {
  return std::ranges::all_of(entry.optional, [&](const AbiArray& array) {
    if (compact && stands_in(entry, array)) return is_present(entry, present, array.name);
    return array.needs.empty() || is_present(entry, present, array.name) == is_present(entry, present, array.needs);
  });
}

Result<Variant> make_variant(const AbiEntry& entry, bool backward, unsigned present, const wasm::Options& options) {
  TRIREME_TRY(program, parse(options.compact ? with_stand_ins(entry) : std::string(entry.text)));
  Binding binding{.wanted = std::set<std::string>()};
  for (const Operand& operand : program.operands)
    if (is_present(entry, present, operand.name)) binding.types[operand.name] = Type::F32;
    else binding.absent.insert(operand.name);
  for (const Output& result : program.results)
    if (is_present(entry, present, result.name))
      binding.types[result.name] = Type::F32, binding.wanted->insert(result.name);
  TRIREME_TRY(prepared, prepare(program, binding));
  TRIREME_TRY(machine, wasm::target.machine(wasm::arch_of(options)));
  TRIREME_TRY(lowered, lower_for(prepared.expanded, machine, {.rows = 4096, .columns = 4096}));
  return Variant{backward, present, std::move(prepared.expanded), std::move(lowered.kernels)};
}

class ModuleWriter {
 public:
  ModuleWriter(const KernelAbi& abi, const wasm::Options& options)
      : abi_(abi),
        options_(options),
        module_({.min_pages = initial_pages}, options.compact),
        emitter_(module_, options) {}

  Result<std::vector<std::uint8_t>> write() {
    TRIREME_CHECK(make_variants());
    add_globals();
    TRIREME_CHECK(add_dispatch());
    TRIREME_TRY(borrow_body, borrow());
    const wasm::Callee borrow = module_.add(std::move(borrow_body));
    TRIREME_TRY(overlap_body, overlap());
    const wasm::Callee overlap = module_.add(std::move(overlap_body));
    TRIREME_TRY(clash_body, clash_end(overlap));
    const wasm::Callee clash = module_.add(std::move(clash_body));
    for (bool backward : {false, true}) {
      const int first = backward ? 1 : 0;  // the forward has no optional arrays
      TRIREME_TRY(entry, write_entry({abi_, backward, options_.compact, scratch_, first, globals_, places_, overlap,
                                      clash, borrow}));
      module_.add(std::move(entry), backward ? "kernel_backward" : "kernel_forward");
    }
    TRIREME_CHECK(add_small_entries());
    return module_.encode();
  }

 private:
  Status make_variants() {
    TRIREME_TRY(forward, make_variant(abi_.forward, false, 0, options_));
    variants_.push_back(std::move(forward));
    for (unsigned present = 0; present < 1u << abi_.backward.optional.size(); ++present) {
      if (!is_possible(abi_.backward, present, options_.compact)) continue;
      TRIREME_TRY(variant, make_variant(abi_.backward, true, present, options_));
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
    places_ = 4 + std::max(abi_.forward.optional.size(), abi_.backward.optional.size());
    for (std::size_t k = 0; k < places_; ++k) add(place_name(k)), add(place_bytes_name(k));
    for (bool backward : {false, true}) {
      const AbiEntry& entry = backward ? abi_.backward : abi_.forward;
      std::size_t k = 0;
      const auto alias = [&](const AbiArray& array) {
        globals_[global_name(backward, array.name)] = global(place_name(k++));
      };
      for (const AbiArray& array : {entry.a, entry.b, entry.output}) alias(array);
      for (const AbiArray& array : entry.optional) {
        alias(array);
        if (options_.compact && stands_in(entry, array)) add(there_name(array.name));
      }
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
    const auto number = [&](std::string_view array) {  // of an operand that stands in
      for (std::uint32_t k = 0; k < entry.optional.size(); ++k)
        if (there_name(entry.optional[k].name) == array) return k;
      return ~0u;
    };
    const auto pointer = [&](std::string_view array) {
      if (array.ends_with(given)) array.remove_suffix(given.size());
      if (const std::uint32_t k = number(array); k != ~0u) in_window(there_at + 4 * k);
      else if (array == abi_.value) in_window(value_at);
      else if (array == entry.in_scratch) get("scratch");
      else get(global_name(variant.backward, array));
    };
    const auto stride = [&](const Program::Array& array) {
      if (array.name == entry.in_scratch) get("scratch_stride");
      else if (array.spread.column.present) get("columns");
      else f.i64_const(1);
    };
    f.get(global("window")), f.get(global("value")), f.memory("i32.store", {.offset = value_at});
    for (std::uint32_t k = 0; k < entry.optional.size(); ++k) {
      if (!options_.compact || !stands_in(entry, entry.optional[k])) continue;
      f.get(global("window")), f.get(global(there_name(entry.optional[k].name))), f.op("f32.convert_i32_u");
      f.memory("f32.store", {.offset = there_at + 4 * k});
    }
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
    const std::uint32_t step = borrowed_step(options_.compact);
    const auto keep = [&]<typename T>(T, wasm::Op<wasm::Immediate::Memory> load,
                                      wasm::Op<wasm::Immediate::Memory> store, std::uint32_t bytes) {
      std::vector<wasm::Local<T>> kept;
      const auto place = [&](std::size_t k) {
        return wasm::MemArg{.offset = bytes * static_cast<std::uint32_t>(k), .align_log2 = 0};
      };
      for (std::size_t k = 0; k < step / bytes; ++k) kept.push_back(f.local<T>(fmt::format("kept{}", k)));
      for (std::size_t k = 0; k < kept.size(); ++k) f.get(at), f.memory(load, place(k)), f.set(kept[k]);
      f.get(left), f.i32_const(static_cast<std::int32_t>(step)), f.op("i32.gt_u");
      const wasm::Label more = f.if_();
      f.get(at), f.i32_const(static_cast<std::int32_t>(step)), f.op("i32.add");
      f.get(left), f.i32_const(static_cast<std::int32_t>(step)), f.op("i32.sub");
      f.call(self);
      f.else_(more);
      f.call(dispatch_);
      f.end(more);
      for (std::size_t k = 0; k < kept.size(); ++k) f.get(at), f.get(kept[k]), f.memory(store, place(k));
    };
    if (options_.scalar) keep(wasm::I64{}, "i64.load", "i64.store", 8);
    else keep(wasm::V128{}, "v128.load", "v128.store", 16);
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

  // Behind an array of the call that shares a byte with at .. at + bytes; 0 if none does.
  Result<wasm::Body> clash_end(const wasm::Callee& overlap) {
    wasm::Function f("clash_end", wasm::Type::I64);
    const auto at = f.parameter<wasm::I64>("at"), bytes = f.parameter<wasm::I64>("bytes");
    const auto get = [&](const std::string& name) { f.get(global(name)), f.op("i64.extend_i32_u"); };
    for (std::size_t k = 0; k < places_; ++k) {
      f.get(at), f.get(bytes), get(place_name(k)), get(place_bytes_name(k)), f.call(overlap);
      const wasm::Label shared = f.if_();
      get(place_name(k)), get(place_bytes_name(k)), f.op("i64.add"), f.ret();
      f.end(shared);
    }
    f.i64_const(0);
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
  const wasm::Options options_;
  wasm::Module module_;
  wasm::Emitter emitter_;
  std::vector<Variant> variants_;
  Scratch scratch_;
  Globals globals_;
  std::size_t places_ = 0;  // that a call may touch
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

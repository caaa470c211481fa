#include "devices/wasm/module_counts.hpp"

#include <algorithm>
#include <optional>
#include <vector>

#include "devices/wasm/local_flow.hpp"
#include "devices/wasm/module_cursor.hpp"

namespace trireme::wasm {
namespace {

constexpr std::uint8_t magic[] = {0, 'a', 's', 'm', 1, 0, 0, 0};
constexpr std::uint8_t section_order[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 10, 11};
constexpr std::int64_t most_locals = 50000;  // of a function: engines take no more, whatever the limits

bool is_value_type(std::uint8_t type) { return type == 0x6f || type == 0x70 || (type >= 0x7b && type <= 0x7f); }

class Counter {
 public:
  Counter(std::span<const std::uint8_t> module, const WasmLimits& limits) : in_(module), limits_(limits) {}

  Result<ModuleCounts> count() {
    for (std::uint8_t wanted : magic)
      if (in_.is_fine() && in_.byte() != wanted)
        in_.wrong("it does not begin as modules do, with \\0asm and version 1");
    const std::uint8_t* next = section_order;
    while (in_.more()) {
      const std::uint8_t id = in_.byte();
      const std::uint32_t length = in_.number();
      if (id == 0) {  // custom: for tools
        in_.skip(length);
        continue;
      }
      const std::uint8_t* place = std::ranges::find(section_order, id);
      if (place < next || place == std::end(section_order)) {
        in_.wrong(fmt::format("section {} is unknown, or cannot stand here", id));
        break;
      }
      next = place + 1;
      in_.within(length, [&] { section(id); });
    }
    if (in_.error()) return *in_.error();
    return counts_;
  }

 private:
  // `count` as a limit's name has it: the field of ModuleCounts that keeps the largest.
  void at_most(std::int64_t count, std::int64_t& largest, std::int64_t limit, const char* what, const char* name) {
    largest = std::max(largest, count);
    if (in_.is_fine() && count > limit)
      in_.refuse(fmt::format("{} {}; the limit is {} (WasmLimits::{})", what, count, limit, name));
  }
  void declared(std::int64_t count, const char* what) {
    at_most(count, counts_.declarations, limits_.declarations, what, "declarations");
  }

  void section(std::uint8_t id) {
    switch (id) {
      case 1: return declared(in_.each([&] { type(); }), "types:");
      case 2: in_.each([&] { import(); }); return;
      case 3: return functions();
      case 4: return single(in_.each([&] { table(); }), "tables");
      case 5: return single(in_.each([&] { memory_or_table(); }), "memories");
      case 6: return declared(in_.each([&] { value_type(), in_.byte(), expression(); }), "globals:");
      case 7: return declared(in_.each([&] { in_.name(), in_.byte(), in_.number(); }), "exports:");
      case 8: in_.number(); return;  // the start function
      case 9: return declared(in_.each([&] { element_segment(); }), "element segments:");
      case 10: in_.each([&] { function(); }); return;
      case 11: return declared(in_.each([&] { data_segment(); }), "data segments:");
      case 12: in_.number(); return;  // of data segments
    }
  }
  void single(std::int64_t count, const char* what) {
    if (in_.is_fine() && count > 1) in_.refuse(fmt::format("the module has {} {}; one goes", count, what));
  }

  void value_type() {
    if (const std::uint8_t type = in_.byte(); in_.is_fine() && !is_value_type(type))
      in_.wrong(fmt::format("{:#x} is no type of values here", type));
  }
  void type() {
    if (in_.byte() != 0x60) in_.wrong("a type that is not a function's");
    const std::int64_t parameters = in_.each([&] { value_type(); }), results = in_.each([&] { value_type(); });
    at_most(parameters, counts_.parameters, limits_.parameters, "parameters of a function:", "parameters");
    if (in_.is_fine() && results > 1) in_.refuse(fmt::format("a function has {} results; one goes", results));
    parameters_.push_back(parameters);
  }
  void import() {
    const std::string from = in_.name(), what = in_.name();
    if (in_.is_fine())
      in_.refuse(fmt::format("the module imports {}.{}; modules get nothing from the host", from, what));
  }
  void functions() {
    const std::int64_t count = in_.each([&] { function_types_.push_back(in_.number()); });
    at_most(count, counts_.functions, limits_.functions, "functions:", "functions");
  }
  std::uint32_t memory_or_table() {  // how large at first
    const std::uint8_t flags = in_.byte();
    if (in_.is_fine() && flags > 1) in_.wrong("a memory or table that is shared, or has 64-bit addresses");
    const std::uint32_t least = in_.number();
    if (flags == 1) in_.number();
    return least;
  }
  void table() {
    value_type();
    at_most(memory_or_table(), counts_.table_elements, limits_.table_elements,
            "elements of a table:", "table_elements");
  }
  void element_segment() {
    const std::uint32_t flags = in_.number();
    if (flags > 7) return in_.wrong("an element segment of unknown form");
    const bool active = !(flags & 1), with_table = flags & 2, with_kind = flags & 3, of_expressions = flags & 4;
    if (active && with_table) in_.number();
    if (active) expression();
    if (with_kind) in_.byte();
    in_.each([&] { of_expressions ? expression() : static_cast<void>(in_.number()); });
  }
  void data_segment() {
    const std::uint32_t flags = in_.number();
    if (flags > 2) return in_.wrong("a data segment of unknown form");
    if (flags == 2) in_.number();
    if (flags != 1) expression();
    in_.skip(in_.number());
  }

  void expression() { read_code(0); }
  void read_code(std::int64_t locals) {
    branches_ = bulk_operations_ = 0;
    flow_.emplace(locals);
    while (in_.is_fine() && flow_->is_open()) instruction();
  }

  void function() {
    if (functions_read_ >= function_types_.size()) return in_.wrong("more bodies than functions");
    const std::uint32_t type = function_types_[functions_read_++], length = in_.number();
    if (type >= parameters_.size()) return in_.wrong("a function of unknown type");
    at_most(length, counts_.function_bytes, limits_.function_bytes, "bytes of a function:", "function_bytes");
    at_most(counts_.code_bytes + length, counts_.code_bytes, limits_.code_bytes, "bytes of code:", "code_bytes");
    in_.within(length, [&] {
      std::int64_t locals = parameters_[type];
      in_.each([&] { locals += in_.number(), value_type(); });
      at_most(locals, counts_.function_locals, std::min(limits_.function_locals, most_locals),
              "locals of a function:", "function_locals");
      at_most(counts_.locals + locals, counts_.locals, limits_.locals, "locals:", "locals");
      if (in_.is_fine()) read_code(locals);
    });
    if (!in_.is_fine()) return;
    const std::int64_t merges = flow_->merges();
    at_most(counts_.crossings + branches_ * flow_->crossing_locals(), counts_.crossings, limits_.crossings,
            "branches x locals that live across them:", "crossings");
    at_most(merges, counts_.function_merges, limits_.function_merges,
            "merges of locals in a function:", "function_merges");
    at_most(counts_.merges + merges, counts_.merges, limits_.merges, "merges of locals:", "merges");
  }

  void branch() {
    flow_->next_block();
    at_most(++branches_, counts_.function_branches, limits_.function_branches,
            "branches of a function:", "function_branches");
    at_most(counts_.branches + 1, counts_.branches, limits_.branches, "branches:", "branches");
  }
  void branch_to_target() {
    flow_->branch_to(in_.number());
    branch();
  }
  void call_of_the_engine() { branch(); }  // which may end in a trap

  // `ways` that lead to where control flow joins again, other than branches.
  void open_block(int ways) {
    const std::uint8_t type = in_.byte();
    if (in_.is_fine() && type != 0x40 && !is_value_type(type))
      in_.refuse("a block of the module has parameters, or several results; one result goes");
    flow_->open(ways);
    at_most(flow_->depth(), counts_.nesting, limits_.nesting, "blocks in blocks:", "nesting");
    branch();
  }
  void close_block() {
    flow_->close();
    flow_->next_block();
  }

  std::uint32_t local() {
    const std::uint32_t index = in_.number();
    if (in_.is_fine() && !flow_->has(index)) in_.wrong("a local that is not there");
    return index;
  }
  void read_local() {
    if (const std::uint32_t index = local(); in_.is_fine()) flow_->read(index);
  }
  void write_local() {
    if (const std::uint32_t index = local(); in_.is_fine()) flow_->write(index);
  }

  void memory_access() {
    if (in_.number() >= 32) in_.wrong("an access to another memory");
    in_.number();
  }

  // clang-format off
  void instruction() {
    const std::uint8_t code = in_.byte();
    switch (code) {
      case 0x00: case 0x01: case 0x1a: case 0x1b: case 0xd1: return;        // unreachable nop drop select ref.is_null
      case 0x02: case 0x03: return open_block(1);                           // block loop
      case 0x04: return open_block(2);                                      // if
      case 0x05: case 0x0f: return branch();                                // else return
      case 0x0b: return close_block();                                      // end
      case 0x0c: case 0x0d: return branch_to_target();                      // br br_if
      case 0x0e: in_.each([&] { branch_to_target(); }); return branch_to_target();  // br_table
      case 0x10: case 0x23: case 0x24: case 0x3f: in_.number(); return;     // call global.get global.set memory.size
      case 0x11: in_.number(), in_.number(); return call_of_the_engine();   // call_indirect
      case 0x1c: in_.each([&] { value_type(); }); return;                   // select of a type
      case 0x20: return read_local();                                       // local.get
      case 0x21: case 0x22: return write_local();                           // local.set local.tee
      case 0x25: case 0x26: case 0x40: case 0xd2:                           // table.get table.set memory.grow ref.func
        in_.number(); return call_of_the_engine();
      case 0x41: return in_.skip_number(5);                                 // i32.const
      case 0x42: return in_.skip_number(10);                                // i64.const
      case 0x43: return in_.skip(4);                                        // f32.const
      case 0x44: return in_.skip(8);                                        // f64.const
      case 0xd0: return value_type();                                       // ref.null
      case 0xfc: return bulk_instruction();
      case 0xfd: return simd_instruction();
    }
    if (code >= 0x28 && code <= 0x3e) return memory_access();
    if (code < 0x45 || code > 0xc4) in_.wrong(fmt::format("{:#x} is no instruction here", code));  // arithmetic between
  }
  // clang-format on

  void bulk_instruction() {
    const std::uint32_t code = in_.number();
    if (code < 8) return;  // saturating conversions
    if (code > 17) return in_.wrong("an unknown instruction behind 0xfc");
    if (code == 10 || code == 11)  // memory.copy memory.fill
      at_most(++bulk_operations_, counts_.function_bulk_operations, limits_.function_bulk_operations,
              "memory.copy and memory.fill in a function:", "function_bulk_operations");
    in_.number();
    if (code == 8 || code == 10 || code == 12 || code == 14) in_.number();  // memory.init, memory.copy, the tables'
    call_of_the_engine();
  }

  void simd_instruction() {
    const std::uint32_t code = in_.number();
    if (code > 0x113) return in_.wrong("an unknown instruction behind 0xfd");
    const bool with_lane = code >= 84 && code <= 91;
    if (code <= 11 || with_lane || code == 92 || code == 93) memory_access();
    if (code == 12 || code == 13) in_.skip(16);  // v128.const i8x16.shuffle
    if (with_lane || (code >= 21 && code <= 34)) in_.byte();
  }

  ModuleCursor in_;
  const WasmLimits& limits_;
  ModuleCounts counts_;
  std::vector<std::int64_t> parameters_;  // of each type
  std::vector<std::uint32_t> function_types_;
  std::size_t functions_read_ = 0;
  // Of the function or expression that is read.
  std::optional<LocalFlow> flow_;
  std::int64_t branches_ = 0, bulk_operations_ = 0;
};

}  // namespace

Result<ModuleCounts> count_module(std::span<const std::uint8_t> module, const WasmLimits& limits) {
  return Counter(module, limits).count();
}

}  // namespace trireme::wasm

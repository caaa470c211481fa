// Writes WebAssembly modules: bytes to load, and a listing in the text format that assembles to the same bytes.
// Knows nothing of row programs. A Function collects typed locals and instructions; finish() checks the operand stack
// as a validator would; a Module puts checked bodies around one memory.
// Examples: encoder_test.cpp.
#pragma once
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "targets/wasm/instructions.hpp"
#include "trireme/result.hpp"

namespace trireme::wasm {

enum class Type : std::uint8_t { None = 0x40, V128 = 0x7b, F64 = 0x7c, F32 = 0x7d, I64 = 0x7e, I32 = 0x7f };
std::string_view name(Type type);

template <Type t>
struct ValueType {
  static constexpr Type type = t;
};
using I32 = ValueType<Type::I32>;
using I64 = ValueType<Type::I64>;
using F32 = ValueType<Type::F32>;
using F64 = ValueType<Type::F64>;
using V128 = ValueType<Type::V128>;

// Handles. Locals of different types are different C++ types, and no handle is a number.
template <typename T>
struct Local {
  std::uint32_t index;
};
struct Label {
  std::uint32_t id;
};
struct Global {  // i32
  std::uint32_t index;
  bool is_mutable;
  std::string name;
};
struct Signature {
  std::vector<Type> parameters;
  Type result = Type::None;
  bool operator==(const Signature&) const = default;
};
struct Callee {
  std::uint32_t index;
  std::string name;
  Signature signature;
};

struct MemArg {
  std::uint32_t offset = 0;                // bytes, added to the address without wrapping
  std::optional<std::uint8_t> align_log2;  // a hint, at most the natural alignment, which is the default
};

// A function as data. Made by Function::finish, so that what a Module holds has been checked.
struct Body {
  struct Variable {
    Type type;
    std::string name;
  };
  struct Item {
    const Instruction* instruction;
    std::uint64_t a = 0, b = 0;  // two words hold any immediate
  };

  std::string name;
  Signature signature;
  std::vector<Variable> locals;  // parameters first
  std::vector<Global> globals;   // those used; items hold positions in these two
  std::vector<Callee> callees;
  std::vector<Item> items;
  std::vector<std::pair<std::size_t, std::string>> comments;  // of the text, each before the item of that number
};
Status check(const Body& body);  // types the operand stack: the validation algorithm of the specification's appendix
std::vector<std::uint8_t> encode(const Body& body);  // as in the code section, without its size
std::string text(const Body& body, std::string_view export_name = {});

class Function {
 public:
  explicit Function(std::string name, Type result = Type::None) {
    body_.name = std::move(name), body_.signature.result = result;
  }

  // Parameters come before locals. A local starts as zero; one without a name is listed under its number.
  template <typename T>
  Local<T> parameter(std::string_view name) {
    return {declare(T::type, name, true)};
  }
  template <typename T>
  Local<T> local(std::string_view name = {}) {
    return {declare(T::type, name, false)};
  }
  template <typename T>
  void get(Local<T> local) {
    access("local.get", local.index, T::type);
  }
  template <typename T>
  void set(Local<T> local) {
    access("local.set", local.index, T::type);
  }
  template <typename T>
  void tee(Local<T> local) {
    access("local.tee", local.index, T::type);
  }
  void get(const Global& global);
  void set(const Global& global);

  void i32_const(std::int32_t value) { constant("i32.const", static_cast<std::uint32_t>(value)); }
  void i64_const(std::int64_t value) { constant("i64.const", static_cast<std::uint64_t>(value)); }
  void f32_const(float value) { constant("f32.const", std::bit_cast<std::uint32_t>(value)); }
  void f64_const(double value) { constant("f64.const", std::bit_cast<std::uint64_t>(value)); }
  template <typename Lane, std::size_t count>  // 16 bytes in all, the lowest lane first
  void v128_const(const std::array<Lane, count>& lanes) {
    const auto words = std::bit_cast<std::array<std::uint64_t, 2>>(lanes);
    constant("v128.const", words[0], words[1]);
  }
  template <typename Lane>  // the same value in every lane
  void splat_const(Lane value) {
    std::array<Lane, 16 / sizeof(Lane)> lanes;
    lanes.fill(value);
    v128_const(lanes);
  }

  void comment(std::string text) { body_.comments.emplace_back(body_.items.size(), std::move(text)); }
  void op(PlainOp op) { push(op.instruction); }
  void memory(Op<Immediate::Memory> op, MemArg at = {}) { push_memory(op.instruction, at, 0); }
  void lane(Op<Immediate::Lane> op, std::uint8_t lane) { push(op.instruction, lane); }
  void memory_lane(Op<Immediate::MemoryLane> op, std::uint8_t lane, MemArg at = {}) {
    push_memory(op.instruction, at, lane);
  }
  void shuffle(const std::array<std::uint8_t, 16>& lanes);  // 0..15 from the first operand, 16..31 from the second
  void call(const Callee& callee);
  void ret();

  // A branch to a block or an if goes behind its end, to a loop goes to its start.
  Label block(Type result = Type::None) { return open("block", result); }
  Label loop(Type result = Type::None) { return open("loop", result); }
  Label if_(Type result = Type::None) { return open("if", result); }
  void else_(Label label);
  void end(Label label);
  void br(Label label);
  void br_if(Label label);

  // The checked body, or Internal with the function, the instruction and what is wrong with it.
  Result<Body> finish() const;

 private:
  std::uint32_t declare(Type type, std::string_view name, bool is_parameter);
  void access(Op<Immediate::Local> op, std::uint32_t index, Type type) {
    push(op.instruction, index, static_cast<std::uint64_t>(type));
  }
  void constant(Op<Immediate::Const> op, std::uint64_t low, std::uint64_t high = 0) { push(op.instruction, low, high); }
  Label open(Op<Immediate::Block> op, Type result);
  void push_memory(const Instruction* instruction, MemArg at, std::uint8_t lane);
  void push(const Instruction* instruction, std::uint64_t a = 0, std::uint64_t b = 0) {
    body_.items.push_back({instruction, a, b});
  }

  Body body_;
  std::unordered_set<std::string> names_;  // of locals
  std::uint32_t labels_ = 0;
  std::string misuse_;  // the first call that no instruction can stand for
};

// One memory, globals, functions and data. Export names must differ, and data lie inside the initial memory.
class Module {
 public:
  struct Memory {
    std::string export_name = "memory";
    std::uint32_t min_pages = 1;  // of 64 KiB
    std::optional<std::uint32_t> max_pages;
  };
  struct GlobalOptions {
    std::string name;
    std::int32_t value = 0;
    bool is_mutable = false;
    bool is_exported = false;  // under its name
  };
  // `compact`: functions are made short (shrink.hpp).
  explicit Module(Memory memory, bool compact = false) : memory_(std::move(memory)), compact_(compact) {}

  Global global(GlobalOptions options);
  Callee add(Body body, std::string export_name = {});  // functions call those added before them
  void data(std::uint32_t offset, std::span<const std::uint8_t> bytes);
  void custom(std::string name, std::string content);  // a section that engines carry and do not read

  std::vector<std::uint8_t> encode(bool with_names = false) const;  // names of functions, for an engine's stack traces
  std::string text() const;

 private:
  struct Segment {
    std::uint32_t offset;
    std::vector<std::uint8_t> bytes;
  };
  struct Entry {
    Body body;
    std::string export_name;
  };
  struct Custom {
    std::string name, content;
  };

  Memory memory_;
  bool compact_;
  std::vector<GlobalOptions> globals_;
  std::vector<Entry> functions_;
  std::vector<Segment> data_;
  std::vector<Custom> customs_;
};

}  // namespace trireme::wasm

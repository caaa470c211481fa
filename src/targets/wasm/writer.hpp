// Shapes, values and the Writer that puts them into locals: what values.hpp and the emitter stand on.
#pragma once
#include <array>
#include <bit>
#include <cstdint>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "targets/wasm/encoder.hpp"

namespace trireme::wasm {

struct F32x4;
struct F64x2;
struct I32x4;
struct I64x2;

// What a shape is made of. `words` is the family of its bitwise instructions.
template <typename Stored, typename LaneType, typename ConditionShape>
struct ShapeFacts {
  using Wasm = Stored;
  using Lane = LaneType;
  using Condition = ConditionShape;
};
template <typename S>
struct Shape;
template <>
struct Shape<F32x4> : ShapeFacts<V128, float, I32x4> {
  static constexpr std::string_view name = "f32x4", words = "v128";
};
template <>
struct Shape<F64x2> : ShapeFacts<V128, double, I64x2> {
  static constexpr std::string_view name = "f64x2", words = "v128";
};
template <>
struct Shape<I32x4> : ShapeFacts<V128, std::uint32_t, I32x4> {
  static constexpr std::string_view name = "i32x4", words = "v128";
};
template <>
struct Shape<I64x2> : ShapeFacts<V128, std::uint64_t, I64x2> {
  static constexpr std::string_view name = "i64x2", words = "v128";
};
template <>
struct Shape<I32> : ShapeFacts<I32, std::uint32_t, I32> {
  static constexpr std::string_view name = "i32", words = "i32";
};
template <>
struct Shape<I64> : ShapeFacts<I64, std::uint64_t, I32> {
  static constexpr std::string_view name = "i64", words = "i64";
};
template <>
struct Shape<F64> : ShapeFacts<F64, double, I32> {
  static constexpr std::string_view name = "f64", words = "i64";
};
template <typename S>
inline constexpr bool is_vector = std::is_same_v<typename Shape<S>::Wasm, V128>;

// "f32x4", "add" is f32x4.add; a pair that is not in the table does not compile.
consteval PlainOp instruction(std::string_view family, std::string_view name) {
  for (const Instruction& each : instructions)
    if (each.immediate == Immediate::None && each.name.size() == family.size() + 1 + name.size() &&
        each.name.starts_with(family) && each.name[family.size()] == '.' && each.name.ends_with(name))
      return PlainOp(each);
  no_such_instruction();
  return PlainOp(instructions[0]);
}

class Writer;

template <typename S>
struct Value {
  Writer* writer;
  Local<typename Shape<S>::Wasm> local;
};

// The vectors that a function uses as constants. They are set once, where it begins: an engine would otherwise build
// them anew in each turn of a loop. A function is written twice, the first time to learn them.
using Constants = std::vector<std::array<std::uint64_t, 2>>;

class Writer {
 public:
  // Behind the function's parameters, before its code.
  Writer(Function& function, Constants& constants) : f_(function), constants_(constants) {
    for (const auto& words : constants_) {
      constant_locals_.push_back(f_.local<V128>());
      f_.v128_const(words), f_.set(constant_locals_.back());
    }
  }
  Writer(const Writer&) = delete;
  ~Writer() { flush(); }

  // For instructions that stand in no expression.
  Function& raw() { return flush(), f_; }
  // Temporaries are free again: no Value that an operator made may be used any more.
  void release() { used_ = {}; }

  template <typename S>
  Value<S> value(Local<typename Shape<S>::Wasm> local) {
    return {this, local};
  }
  template <typename S>
  Value<S> fresh() {
    using T = typename Shape<S>::Wasm;
    auto& pool = pools_[slot<T>()];
    auto& used = used_[slot<T>()];
    if (used == pool.size()) pool.push_back(f_.local<T>().index);
    return {this, Local<T>{pool[used++]}};
  }
  template <typename S>
  void push(Value<S> value) {
    if (is_pending(value)) {
      pending_.reset();
      f_.tee(value.local);
    } else {
      flush();
      f_.get(value.local);
    }
  }
  // The top of the stack, in a temporary.
  template <typename S>
  Value<S> pop() {
    flush();
    Value<S> result = fresh<S>();
    pending_ = std::pair(result.local.index, Shape<S>::Wasm::type);
    return result;
  }
  // The value's own temporary is not to be used any more.
  template <typename S>
  void assign(Local<typename Shape<S>::Wasm> local, Value<S> value) {
    if (is_pending(value)) {
      pending_.reset();
    } else {
      push(value);
    }
    f_.set(local);
  }

  template <typename S>
  Value<S> constant(typename Shape<S>::Lane lane) {
    if constexpr (is_vector<S>) {
      std::array<typename Shape<S>::Lane, 16 / sizeof(lane)> lanes;
      lanes.fill(lane);
      return lanes_constant<S>(lanes);
    } else {
      return push_constant<S>(lane), pop<S>();
    }
  }
  template <typename S>
  void push_constant(typename Shape<S>::Lane lane) {
    if constexpr (is_vector<S>) return push(constant<S>(lane));
    if constexpr (std::is_same_v<S, I32>) raw().i32_const(static_cast<std::int32_t>(lane));
    if constexpr (std::is_same_v<S, I64>) raw().i64_const(static_cast<std::int64_t>(lane));
    if constexpr (std::is_same_v<S, F64>) raw().f64_const(lane);
  }
  template <typename S>
  Value<S> lanes_constant(const std::array<typename Shape<S>::Lane, 16 / sizeof(typename Shape<S>::Lane)>& lanes) {
    const auto words = std::bit_cast<std::array<std::uint64_t, 2>>(lanes);
    for (std::size_t k = 0; k < constants_.size(); ++k)
      if (constants_[k] == words) return {this, constant_locals_[k]};
    constants_.push_back(words);
    constant_locals_.push_back(f_.local<V128>());
    return {this, constant_locals_.back()};
  }

  template <typename R, typename... S>
  Value<R> apply(PlainOp op, Value<S>... operands) {
    (push(operands), ...);
    f_.op(op);
    return pop<R>();
  }

 private:
  template <typename T>
  static constexpr std::size_t slot() {
    return static_cast<std::size_t>(T::type) - static_cast<std::size_t>(Type::V128);
  }
  template <typename S>
  bool is_pending(Value<S> value) const {
    return pending_ && *pending_ == std::pair(value.local.index, Shape<S>::Wasm::type);
  }
  void flush() {
    if (!pending_) return;
    const auto [index, type] = *pending_;
    pending_.reset();
    switch (type) {
      case Type::V128: return f_.set(Local<V128>{index});
      case Type::F64: return f_.set(Local<F64>{index});
      case Type::F32: return f_.set(Local<F32>{index});
      case Type::I64: return f_.set(Local<I64>{index});
      case Type::I32: return f_.set(Local<I32>{index});
      case Type::None: return;
    }
  }

  Function& f_;
  Constants& constants_;
  std::vector<Local<V128>> constant_locals_;
  std::array<std::vector<std::uint32_t>, 5> pools_;  // locals by type
  std::array<std::size_t, 5> used_ = {};
  std::optional<std::pair<std::uint32_t, Type>> pending_;  // on the stack still, not yet in its local
};

// A function whose parameters and code `write(function, constants)` writes.
template <typename Write>
Result<Body> write_twice(const std::string& name, Type result, Write&& write) {
  Constants constants;
  Function draft(name, result), function(name, result);
  write(draft, constants);
  write(function, constants);
  return function.finish();
}

}  // namespace trireme::wasm

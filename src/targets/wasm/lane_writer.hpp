// What the walks of one_lane.cpp write: instructions of one lane, and what turns a value's form into another.
#pragma once
#include <fmt/format.h>

#include <bit>
#include <map>

#include "targets/wasm/encoder.hpp"

namespace trireme::wasm {

// What a value of the stack is; of v128, what lane 0 of it is.
enum class Form : std::uint8_t {
  I32,
  I64,
  F32,
  F64,
  Truth,     // i32: not 0 for a lane of ones, 0 for one of zeros
  Unsigned,  // i64, of an i32 without sign; only wanted
};

inline Form form_of(char letter) {
  return letter == 'l' ? Form::I64 : letter == 'f' ? Form::F32 : letter == 'd' ? Form::F64 : Form::I32;
}
inline Form form_of(Type type) {
  return type == Type::I64 ? Form::I64 : type == Type::F32 ? Form::F32 : type == Type::F64 ? Form::F64 : Form::I32;
}
inline Type type_of(Form form) {
  switch (form) {
    case Form::I64:
    case Form::Unsigned: return Type::I64;
    case Form::F32: return Type::F32;
    case Form::F64: return Type::F64;
    case Form::I32:
    case Form::Truth: break;
  }
  return Type::I32;
}
inline bool is_wide(Form form) { return form == Form::I64 || form == Form::F64; }
inline bool is_float(Form form) { return form == Form::F32 || form == Form::F64; }
inline Form integer(bool wide) { return wide ? Form::I64 : Form::I32; }

// "f32x4.add" is f32.add of one lane.
inline const Instruction* scalar_twin(std::string_view name) {
  for (std::string_view shape : {"f32x4", "f64x2", "i32x4", "i64x2"})
    if (name.starts_with(shape)) return find_named(std::string(shape.substr(0, 3)) + std::string(name.substr(5)));
  return nullptr;
}

inline bool is_comparison(std::string_view name) {
  const std::string_view op = name.substr(name.find('.') + 1);
  return op == "eq" || op == "ne" || op.starts_with("lt") || op.starts_with("gt") || op.starts_with("le") ||
         op.starts_with("ge");
}

// Nothing is written before writes_ is set: the first walk only asks.
class LaneWriter {
 protected:
  void refuse(std::string reason) {
    if (reason_.empty()) reason_ = std::move(reason);
  }
  std::uint32_t declare(Type type, std::string name) {
    out_.locals.push_back({type, std::move(name)});
    return static_cast<std::uint32_t>(out_.locals.size() - 1);
  }
  std::uint32_t temporary(Type type, int number = 0) { return temporaries_[{type, number}]; }

  void put(const Instruction* instruction, std::uint64_t a = 0, std::uint64_t b = 0) {
    if (writes_) out_.items.push_back({instruction, a, b});
  }
  void put(std::string_view name) {
    const Instruction* found = find_named(name);
    if (!found) return refuse(std::string(name));
    put(found);
  }
  void access(std::string_view name, std::uint32_t local) {
    if (writes_) put(find_named(name), local, static_cast<std::uint64_t>(out_.locals[local].type));
  }
  void put_constant(Form form, std::uint64_t bits) {
    switch (type_of(form)) {
      case Type::I32: return put(find_named("i32.const"), bits & 0xffffffff);
      case Type::F32: return put(find_named("f32.const"), bits & 0xffffffff);
      case Type::I64: return put(find_named("i64.const"), bits);
      default: return put(find_named("f64.const"), bits);
    }
  }
  void put_f64(double value) { put_constant(Form::F64, std::bit_cast<std::uint64_t>(value)); }

  void convert(Form from, Form to) {
    if (from == to || (from == Form::I32 && to == Form::Truth)) return;
    if (from == Form::Truth && to != Form::Truth) {  // all ones
      put_constant(Form::I32, ~0u), put("i32.mul");
      if (type_of(to) == Type::I64 || to == Form::F64) put("i64.extend_i32_s");
      return convert(to == Form::F64 ? Form::I64 : to == Form::F32 ? Form::I32 : to, to);
    }
    if (to == Form::Truth) {
      convert(from, integer(is_wide(from)));
      if (is_wide(from)) put_constant(Form::I64, 0), put("i64.ne");
      return;
    }
    if (to == Form::Unsigned) return convert(from, Form::I32), put("i64.extend_i32_u");
    if (is_float(from)) put(from == Form::F64 ? "i64.reinterpret_f64" : "i32.reinterpret_f32");
    if (is_wide(from) && !is_wide(to)) put("i32.wrap_i64");
    if (!is_wide(from) && is_wide(to)) return refuse("32 bits where 64 are wanted");
    if (is_float(to)) put(to == Form::F64 ? "f64.reinterpret_i64" : "f32.reinterpret_i32");
  }

  Body out_;
  bool writes_ = false;
  std::string reason_;  // the first that something cannot be written for
  std::map<std::pair<Type, int>, std::uint32_t> temporaries_;
};

}  // namespace trireme::wasm

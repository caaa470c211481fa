// For tests of the emitter: a builder of small kernels, storage types in scalar code, and a way to run both.
#pragma once
#include <gtest/gtest.h>

#include <cfenv>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "devices/cpu/code_memory.hpp"
#include "devices/cpu/x86/isa.hpp"
#include "support/guarded.hpp"
#include "targets/x86/emit.hpp"

namespace trireme::x86 {

inline std::vector<Isa> isas_here() {
  std::vector<Isa> found;
  for (Isa isa : {Isa::Avx2, Isa::Avx512, Isa::Avx512Bf16})
    if (cpu::why_not(isa, cpu::read_cpuid()).empty()) found.push_back(isa);
  return found;
}

inline std::string label(Isa isa, Type compute) {
  return std::string(isa == Isa::Avx2     ? "avx2 "
                     : isa == Isa::Avx512 ? "avx512 "
                                          : "avx512_bf16 ") +
         std::string(name(compute));
}

// Calls `check` for every instruction set of this machine and both compute types.
inline void on_each(const std::function<void(Isa, Type)>& check) {
  for (Isa isa : isas_here())
    for (Type compute : {Type::F32, Type::F64}) {
      SCOPED_TRACE(label(isa, compute));
      check(isa, compute);
    }
}

struct Builder {
  Kernel kernel;
  std::vector<std::vector<Instr>*> open;

  Builder(Isa isa, Type compute, int slots) {
    kernel.name = "test";
    kernel.compute = compute;
    kernel.launch.lanes = lanes(isa, compute);
    for (int k = 0; k < slots; ++k) kernel.slots.push_back({Slot::What::Pointer, k});
    open.push_back(&kernel.body);
  }
  int width() const { return kernel.launch.lanes; }
  Type compute() const { return kernel.compute; }

  Reg lane() { return {Bank::Lane, kernel.lane_count++}; }
  Reg mask() { return {Bank::Mask, kernel.mask_count++}; }
  Reg index() { return {Bank::Index, kernel.index_count++}; }
  Reg pointer() { return {Bank::Pointer, kernel.pointer_count++}; }

  Reg add(Instr instr) { return open.back()->emplace_back(std::move(instr)).dst; }

  Reg index_constant(std::int64_t value) { return add({.code = Do::IndexConstant, .dst = index(), .imm = value}); }
  Reg index_slot(int slot) { return add({.code = Do::IndexSlot, .dst = index(), .imm = slot}); }
  Reg pointer_slot(int slot) { return add({.code = Do::PointerSlot, .dst = pointer(), .imm = slot}); }
  Reg index_op(Do code, Reg a, Reg b, std::int64_t imm = 0) {
    return add({.code = code, .dst = index(), .a = a, .b = b, .imm = imm});
  }
  Reg constant(double value) {
    return add({.code = Do::LaneConstant, .dst = lane(), .imm = std::bit_cast<std::int64_t>(value)});
  }
  Reg primitive(Op op, Reg a, Reg b = {}, Reg c = {}, std::int64_t imm = 0, Type type = Type::F32) {
    Reg dst = is_condition(op) ? mask() : lane();
    return add({.code = Do::Primitive, .op = op, .type = type, .dst = dst, .a = a, .b = b, .c = c, .imm = imm});
  }
  Reg mask_below(Reg a, Reg b, std::int64_t imm = 0) {
    return add({.code = Do::MaskBelow, .dst = mask(), .a = a, .b = b, .imm = imm});
  }
  Reg load(Type type, Reg a, Reg b = {}, Reg c = {}, std::int64_t imm = 0) {
    Reg value = lane();
    add({.code = Do::Load, .type = type, .a = a, .b = b, .c = c, .imm = imm, .values = {value}});
    return value;
  }
  void store(Type type, Reg value, Reg a, Reg b = {}, Reg c = {}, std::int64_t imm = 0, Hint hint = Hint::None) {
    add({.code = Do::Store, .type = type, .hint = hint, .a = a, .b = b, .c = c, .imm = imm, .values = {value}});
  }
  // The body of a While or If; what follows stands after it.
  void inside(Instr instr, const std::function<void()>& body) {
    std::vector<Instr> instructions;
    open.push_back(&instructions);
    body();
    open.pop_back();
    instr.body = std::move(instructions);
    add(std::move(instr));
  }
};

using Entry = void(const std::uint64_t*, std::int64_t, std::int64_t, std::int64_t);

inline void run(const Kernel& kernel, Isa isa, std::vector<std::uint64_t> args, std::int64_t first = 0,
                std::int64_t last = 0, std::int64_t total = 0) {
  Result<MachineCode> code = emit(kernel, isa);
  ASSERT_TRUE(code) << code.error().message;
  Result<cpu::CodeMemory> executable = cpu::CodeMemory::create({{code->bytes}});
  ASSERT_TRUE(executable) << executable.error().message;
  executable->entry<Entry>()(args.data(), first, last, total);
}

inline std::uint64_t slot_of(const void* pointer) { return reinterpret_cast<std::uint64_t>(pointer); }

// An element-wise kernel: slot 0 is n, then the inputs, then the result. Full vectors (first two at a time, if wanted),
// then a masked tail.
using Body = std::function<Reg(Builder&, const std::vector<Reg>&)>;

inline Kernel elementwise(Isa isa, Type compute, const std::vector<Type>& inputs, Type output, const Body& body,
                          Hint hint = Hint::None, bool in_twos = false) {
  Builder b(isa, compute, static_cast<int>(inputs.size()) + 2);
  Reg n = b.index_slot(0), j = b.index_constant(0);
  Reg full = b.index_op(Do::IndexAnd, n, {}, -b.width());
  std::vector<Reg> from;
  for (std::size_t k = 0; k < inputs.size(); ++k) from.push_back(b.pointer_slot(static_cast<int>(k) + 1));
  Reg to = b.pointer_slot(static_cast<int>(inputs.size()) + 1);
  auto evaluate = [&](Reg mask) {
    std::vector<Reg> values;
    for (std::size_t k = 0; k < inputs.size(); ++k) values.push_back(b.load(inputs[k], from[k], j, mask));
    return body(b, values);
  };
  auto step = [&](Reg mask) { b.store(output, evaluate(mask), to, j, mask, 0, hint); };
  if (in_twos) {
    Reg twos = b.index_op(Do::IndexAnd, n, {}, -2 * b.width());
    b.inside({.code = Do::While, .a = j, .b = twos}, [&] {
      Reg low = evaluate({}), first = b.add({.code = Do::IndexMove, .dst = b.index(), .a = j});
      b.add({.code = Do::IndexAdd, .dst = j, .a = j, .imm = b.width()});
      Reg high = evaluate({});
      b.add({.code = Do::Store, .type = output, .hint = hint, .a = to, .b = first, .values = {low, high}});
      b.add({.code = Do::IndexAdd, .dst = j, .a = j, .imm = b.width()});
    });
  }
  b.inside({.code = Do::While, .a = j, .b = full}, [&] {
    step({});
    b.add({.code = Do::IndexAdd, .dst = j, .a = j, .imm = b.width()});
  });
  step(b.mask_below(j, n));
  return b.kernel;
}

// Storage types, by definition: the nearest multiple of the last place, ties to even. Independent of the emitter's way.
struct Format {
  int mantissa, least_exponent;
  double largest;
  bool saturates;
};
inline Format format(Type type) {
  switch (type) {
    case Type::F16: return {10, -14, 65504, false};
    case Type::BF16: return {7, -126, 0x1.fep127, false};
    case Type::F8E4M3: return {3, -6, 448, true};
    case Type::F8E5M2: return {2, -14, 57344, true};
    default: return {23, -126, 0x1.fffffep127, false};
  }
}

// x rounded to the type, as a number; NaN for integers is 0.
inline double rounded(double x, Type type) {
  if (type == Type::F64) return x;
  if (is_integer(type)) {
    const double largest = facts(type).largest, least = type == Type::U8 ? 0 : -std::exp2(8.0 * bytes(type) - 1);
    return std::isnan(x) ? 0 : std::nearbyint(std::fmin(std::fmax(x, least), largest)) + 0.0;
  }
  if (type == Type::F8E8M0) {
    if (std::isnan(x)) return x;
    for (double power = 0x1p-127; power < 0x1p127; power *= 2)
      if (x < 1.5 * power) return power;
    return 0x1p127;
  }
  if (std::isnan(x)) return x;
  const Format f = format(type);
  if (std::isinf(x)) return f.saturates ? std::copysign(f.largest, x) : x;
  if (x == 0) return x;
  int exponent = std::max(std::ilogb(x), f.least_exponent) - f.mantissa;
  double scaled = std::ilogb(x) < exponent - 1 ? std::copysign(0.25, x) : std::ldexp(x, -exponent);
  double result = std::ldexp(std::nearbyint(scaled), exponent);
  if (std::fabs(result) > f.largest)
    return std::copysign(f.saturates ? f.largest : std::numeric_limits<double>::infinity(), x);
  return result;
}

// The value of an element, by its fields.
inline double element_value(const void* at, Type type) {
  switch (type) {
    case Type::F64: {
      double value;
      std::memcpy(&value, at, 8);
      return value;
    }
    case Type::F32: {
      float value;
      std::memcpy(&value, at, 4);
      return value;
    }
    case Type::I8: return *static_cast<const std::int8_t*>(at);
    case Type::I32: {
      std::int32_t value;
      std::memcpy(&value, at, 4);
      return value;
    }
    case Type::I64: {
      std::int64_t value;
      std::memcpy(&value, at, 8);
      return static_cast<double>(value);
    }
    case Type::U8: return *static_cast<const std::uint8_t*>(at);
    case Type::F8E8M0: {
      const int power = *static_cast<const std::uint8_t*>(at);
      return power == 255 ? std::numeric_limits<double>::quiet_NaN() : std::ldexp(1.0, power - 127);
    }
    default: break;
  }
  const Format f = format(type);
  const int bits = static_cast<int>(bytes(type)) * 8;
  unsigned code = 0;
  std::memcpy(&code, at, bytes(type));
  const bool negative = code >> (bits - 1) & 1;
  const int exponent = static_cast<int>((code & ((1u << (bits - 1)) - 1)) >> f.mantissa);
  const unsigned fraction = code & ((1u << f.mantissa) - 1);
  const int top = (1 << (bits - 1 - f.mantissa)) - 1;
  double value = exponent == 0
                     ? std::ldexp(fraction, f.least_exponent - f.mantissa)
                     : std::ldexp(fraction + (1u << f.mantissa), exponent - 1 + f.least_exponent - f.mantissa);
  if (type == Type::F8E4M3 ? exponent == top && fraction == 7 : exponent == top && fraction != 0)
    value = std::numeric_limits<double>::quiet_NaN();
  else if (type != Type::F8E4M3 && exponent == top) value = std::numeric_limits<double>::infinity();
  return negative ? -value : value;
}

// Equal as values, zeros by sign, all NaNs the same.
inline bool same(double a, double b) {
  return std::isnan(a) ? std::isnan(b) : std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}

inline const std::vector<double>& special_values() {
  static const std::vector<double> values = [] {
    const double inf = std::numeric_limits<double>::infinity();
    std::vector<double> out = {
        0,       0x1p-149,   0x1p-130,       0x1p-126, 0x1p-24, 0.1,  0.5,        0.75, 1,      1.5,
        2.5,     3,          126.5,          127.5,    128.5,   447,  456,        464,  1000,   57344,
        61440.0, 65504,      65519.996,      65520,    1e6,     1e10, 2147483520, 3e9,  0x1p62, 0x1p63,
        1e30,    0x1.8p-127, 0x1.fffffep127, inf};
    for (std::size_t k = 0, n = out.size(); k < n; ++k) out.push_back(-out[k]);
    out.push_back(std::numeric_limits<double>::quiet_NaN());
    return out;
  }();
  return values;
}

}  // namespace trireme::x86

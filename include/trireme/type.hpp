// The storage types of operands and results. A plan gives them; a program knows none.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace trireme {

enum class Type : std::uint8_t { F64, F32, F16, BF16, F8E4M3, F8E5M2, I8, I32 };

struct TypeFacts {
  Type type;
  std::string_view name;
  std::size_t bytes;
  double largest;  // the largest finite value
};

inline constexpr std::array<TypeFacts, 8> type_facts = {{
    {Type::F64, "f64", 8, 0x1.fffffffffffffp1023},
    {Type::F32, "f32", 4, 0x1.fffffep127},
    {Type::F16, "f16", 2, 65504},
    {Type::BF16, "bf16", 2, 0x1.fep127},
    {Type::F8E4M3, "f8e4m3", 1, 448},
    {Type::F8E5M2, "f8e5m2", 1, 57344},
    {Type::I8, "i8", 1, 127},
    {Type::I32, "i32", 4, 2147483647},
}};

// An integer cast to Type may be none of them; it is refused wherever a type is given.
constexpr bool exists(Type type) { return static_cast<std::size_t>(type) < type_facts.size(); }
inline constexpr TypeFacts no_type = {Type::F32, "no type", 1, 0};

constexpr const TypeFacts& facts(Type type) {
  return exists(type) ? type_facts[static_cast<std::size_t>(type)] : no_type;
}
constexpr std::string_view name(Type type) { return facts(type).name; }
constexpr std::size_t bytes(Type type) { return facts(type).bytes; }
constexpr bool is_integer(Type type) { return type == Type::I8 || type == Type::I32; }

constexpr std::optional<Type> type_named(std::string_view name) {
  for (const TypeFacts& each : type_facts)
    if (each.name == name) return each.type;
  return std::nullopt;
}

}  // namespace trireme

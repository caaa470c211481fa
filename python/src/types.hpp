// The storage types, by every name that arrays have for them.
#pragma once
#include "arrays.hpp"

namespace trireme::python {

struct TypeRecord {
  std::int32_t type;
  const char* name;
  int bytes;
  char format;            // of the buffer protocol; 0: none
  const char* interface;  // kind and bytes, of array interfaces
  dlpack::DataType dlpack;
};

inline constexpr TypeRecord types[] = {
    {TRIREME_F64, "f64", 8, 'd', "f8", {dlpack::Float, 64, 1}},
    {TRIREME_F32, "f32", 4, 'f', "f4", {dlpack::Float, 32, 1}},
    {TRIREME_F16, "f16", 2, 'e', "f2", {dlpack::Float, 16, 1}},
    {TRIREME_BF16, "bf16", 2, 0, "", {dlpack::Bfloat, 16, 1}},
    {TRIREME_F8E4M3, "f8e4m3", 1, 0, "", {dlpack::Float8E4M3Fn, 8, 1}},
    {TRIREME_F8E5M2, "f8e5m2", 1, 0, "", {dlpack::Float8E5M2, 8, 1}},
    {TRIREME_I8, "i8", 1, 'b', "i1", {dlpack::Int, 8, 1}},
    {TRIREME_I32, "i32", 4, 'i', "i4", {dlpack::Int, 32, 1}},
    {TRIREME_I64, "i64", 8, 'q', "i8", {dlpack::Int, 64, 1}},
    {TRIREME_I64, "i64", 8, 'l', "i8", {dlpack::Int, 64, 1}},
    {TRIREME_U8, "u8", 1, 'B', "u1", {dlpack::UInt, 8, 1}},
    {TRIREME_U8, "u8", 1, '?', "b1", {dlpack::Bool, 8, 1}},
    {TRIREME_F8E8M0, "f8e8m0", 1, 0, "", {dlpack::Float8E8M0Fnu, 8, 1}},
    {TRIREME_F4E2M1, "f4e2m1", 1, 0, "", {dlpack::Float4E2M1Fn, 4, 2}},
    {Raw16, "uint16", 2, 'H', "u2", {dlpack::UInt, 16, 1}},
};

inline constexpr char accepted[] =
    "taken are float64, float32, float16, bfloat16, float8 (e4m3fn, e5m2, e8m0fnu), float4_e2m1fn_x2, int8, int32, "
    "int64, uint8 and "
    "bool; "
    "or uint16 and uint8 with their meaning in types=, as in types={'x': 'bf16'}";

// Bits that stand for another type where types= says which: uint16, and uint8, which is u8 where it does not.
constexpr bool may_be(std::int32_t type, std::int32_t said) {
  return (type == Raw16 && said == TRIREME_BF16) ||
         (type == TRIREME_U8 &&
          (said == TRIREME_F8E4M3 || said == TRIREME_F8E5M2 || said == TRIREME_F8E8M0 || said == TRIREME_F4E2M1));
}

// False with a Python error where there is no record.
bool set_type(Array& array, const TypeRecord* record, const char* what, const char* said);

}  // namespace trireme::python

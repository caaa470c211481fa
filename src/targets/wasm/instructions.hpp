// The instructions of WebAssembly that the encoder knows: one table of name, bytes and operands.
// The encoder, the stack check, the listing and the tests walk it; an instruction is named as in the text format,
// `f.op("f32x4.add")`, and a name that is not in the table does not compile.
#pragma once
#include <cstdint>
#include <string_view>

namespace trireme::wasm {

// What follows the opcode in the bytes. It decides which method of Function writes the instruction.
enum class Immediate : std::uint8_t {
  None,        // `argument` zero bytes: the index of the only memory
  Memory,      // memarg; `argument` is log2 of the natural alignment in bytes
  Lane,        // a lane below `argument`
  MemoryLane,  // memarg as for Memory, then a lane
  Shuffle,     // 16 lanes of 32
  Const,
  Local,
  Global,
  Block,  // block, loop, if: the type of the result
  Else,
  End,
  Branch,
  Return,
  Call,
};

struct Instruction {
  std::string_view name;
  std::uint32_t code;  // one byte, or prefix << 12 | number where the prefix is 0xfc or 0xfd
  // Operands : results, the top of the stack last. i l f d v are i32 i64 f32 f64 v128; ? is any one type, the same
  // throughout; ! says that control does not go on.
  std::string_view signature;
  Immediate immediate = Immediate::None;
  std::uint8_t argument = 0;

  constexpr std::uint8_t prefix() const { return static_cast<std::uint8_t>(code >> 12); }
  constexpr std::uint32_t number() const { return code & 0xfff; }
};

// clang-format off
inline constexpr Instruction instructions[] = {
    // Control.
    {"unreachable", 0x00, ":!"}, {"nop", 0x01, ":"}, {"block", 0x02, ":", Immediate::Block},
    {"loop", 0x03, ":", Immediate::Block}, {"if", 0x04, "i:", Immediate::Block}, {"else", 0x05, ":", Immediate::Else},
    {"end", 0x0b, ":", Immediate::End}, {"br", 0x0c, ":!", Immediate::Branch}, {"br_if", 0x0d, "i:", Immediate::Branch},
    {"return", 0x0f, ":!", Immediate::Return}, {"call", 0x10, ":", Immediate::Call}, {"drop", 0x1a, "?:"},
    {"select", 0x1b, "??i:?"},
    // Variables: ? is the variable's type.
    {"local.get", 0x20, ":?", Immediate::Local}, {"local.set", 0x21, "?:", Immediate::Local},
    {"local.tee", 0x22, "?:?", Immediate::Local}, {"global.get", 0x23, ":?", Immediate::Global},
    {"global.set", 0x24, "?:", Immediate::Global},
    // Scalar memory: the last number is log2 of the bytes accessed. Then whole-memory instructions.
    {"i32.load", 0x28, "i:i", Immediate::Memory, 2}, {"i64.load", 0x29, "i:l", Immediate::Memory, 3},
    {"f32.load", 0x2a, "i:f", Immediate::Memory, 2}, {"f64.load", 0x2b, "i:d", Immediate::Memory, 3},
    {"i32.load8_s", 0x2c, "i:i", Immediate::Memory}, {"i32.load8_u", 0x2d, "i:i", Immediate::Memory},
    {"i32.load16_s", 0x2e, "i:i", Immediate::Memory, 1}, {"i32.load16_u", 0x2f, "i:i", Immediate::Memory, 1},
    {"i64.load8_s", 0x30, "i:l", Immediate::Memory}, {"i64.load8_u", 0x31, "i:l", Immediate::Memory},
    {"i64.load16_s", 0x32, "i:l", Immediate::Memory, 1}, {"i64.load16_u", 0x33, "i:l", Immediate::Memory, 1},
    {"i64.load32_s", 0x34, "i:l", Immediate::Memory, 2}, {"i64.load32_u", 0x35, "i:l", Immediate::Memory, 2},
    {"i32.store", 0x36, "ii:", Immediate::Memory, 2}, {"i64.store", 0x37, "il:", Immediate::Memory, 3},
    {"f32.store", 0x38, "if:", Immediate::Memory, 2}, {"f64.store", 0x39, "id:", Immediate::Memory, 3},
    {"i32.store8", 0x3a, "ii:", Immediate::Memory}, {"i32.store16", 0x3b, "ii:", Immediate::Memory, 1},
    {"i64.store8", 0x3c, "il:", Immediate::Memory}, {"i64.store16", 0x3d, "il:", Immediate::Memory, 1},
    {"i64.store32", 0x3e, "il:", Immediate::Memory, 2}, {"memory.size", 0x3f, ":i", Immediate::None, 1},
    {"memory.grow", 0x40, "i:i", Immediate::None, 1}, {"memory.copy", 0xfc00a, "iii:", Immediate::None, 2},
    {"memory.fill", 0xfc00b, "iii:", Immediate::None, 1},
    // Constants.
    {"i32.const", 0x41, ":i", Immediate::Const}, {"i64.const", 0x42, ":l", Immediate::Const},
    {"f32.const", 0x43, ":f", Immediate::Const}, {"f64.const", 0x44, ":d", Immediate::Const},
    {"v128.const", 0xfd00c, ":v", Immediate::Const},
    // i32 comparisons.
    {"i32.eqz", 0x45, "i:i"}, {"i32.eq", 0x46, "ii:i"}, {"i32.ne", 0x47, "ii:i"}, {"i32.lt_s", 0x48, "ii:i"},
    {"i32.lt_u", 0x49, "ii:i"}, {"i32.gt_s", 0x4a, "ii:i"}, {"i32.gt_u", 0x4b, "ii:i"}, {"i32.le_s", 0x4c, "ii:i"},
    {"i32.le_u", 0x4d, "ii:i"}, {"i32.ge_s", 0x4e, "ii:i"}, {"i32.ge_u", 0x4f, "ii:i"},
    // i64 comparisons.
    {"i64.eqz", 0x50, "l:i"}, {"i64.eq", 0x51, "ll:i"}, {"i64.ne", 0x52, "ll:i"}, {"i64.lt_s", 0x53, "ll:i"},
    {"i64.lt_u", 0x54, "ll:i"}, {"i64.gt_s", 0x55, "ll:i"}, {"i64.gt_u", 0x56, "ll:i"}, {"i64.le_s", 0x57, "ll:i"},
    {"i64.le_u", 0x58, "ll:i"}, {"i64.ge_s", 0x59, "ll:i"}, {"i64.ge_u", 0x5a, "ll:i"},
    // f32 comparisons.
    {"f32.eq", 0x5b, "ff:i"}, {"f32.ne", 0x5c, "ff:i"}, {"f32.lt", 0x5d, "ff:i"}, {"f32.gt", 0x5e, "ff:i"},
    {"f32.le", 0x5f, "ff:i"}, {"f32.ge", 0x60, "ff:i"},
    // f64 comparisons.
    {"f64.eq", 0x61, "dd:i"}, {"f64.ne", 0x62, "dd:i"}, {"f64.lt", 0x63, "dd:i"}, {"f64.gt", 0x64, "dd:i"},
    {"f64.le", 0x65, "dd:i"}, {"f64.ge", 0x66, "dd:i"},
    // i32 arithmetic.
    {"i32.clz", 0x67, "i:i"}, {"i32.ctz", 0x68, "i:i"}, {"i32.popcnt", 0x69, "i:i"}, {"i32.add", 0x6a, "ii:i"},
    {"i32.sub", 0x6b, "ii:i"}, {"i32.mul", 0x6c, "ii:i"}, {"i32.div_s", 0x6d, "ii:i"}, {"i32.div_u", 0x6e, "ii:i"},
    {"i32.rem_s", 0x6f, "ii:i"}, {"i32.rem_u", 0x70, "ii:i"}, {"i32.and", 0x71, "ii:i"}, {"i32.or", 0x72, "ii:i"},
    {"i32.xor", 0x73, "ii:i"}, {"i32.shl", 0x74, "ii:i"}, {"i32.shr_s", 0x75, "ii:i"}, {"i32.shr_u", 0x76, "ii:i"},
    {"i32.rotl", 0x77, "ii:i"}, {"i32.rotr", 0x78, "ii:i"},
    // i64 arithmetic.
    {"i64.clz", 0x79, "l:l"}, {"i64.ctz", 0x7a, "l:l"}, {"i64.popcnt", 0x7b, "l:l"}, {"i64.add", 0x7c, "ll:l"},
    {"i64.sub", 0x7d, "ll:l"}, {"i64.mul", 0x7e, "ll:l"}, {"i64.div_s", 0x7f, "ll:l"}, {"i64.div_u", 0x80, "ll:l"},
    {"i64.rem_s", 0x81, "ll:l"}, {"i64.rem_u", 0x82, "ll:l"}, {"i64.and", 0x83, "ll:l"}, {"i64.or", 0x84, "ll:l"},
    {"i64.xor", 0x85, "ll:l"}, {"i64.shl", 0x86, "ll:l"}, {"i64.shr_s", 0x87, "ll:l"}, {"i64.shr_u", 0x88, "ll:l"},
    {"i64.rotl", 0x89, "ll:l"}, {"i64.rotr", 0x8a, "ll:l"},
    // f32 arithmetic.
    {"f32.abs", 0x8b, "f:f"}, {"f32.neg", 0x8c, "f:f"}, {"f32.ceil", 0x8d, "f:f"}, {"f32.floor", 0x8e, "f:f"},
    {"f32.trunc", 0x8f, "f:f"}, {"f32.nearest", 0x90, "f:f"}, {"f32.sqrt", 0x91, "f:f"}, {"f32.add", 0x92, "ff:f"},
    {"f32.sub", 0x93, "ff:f"}, {"f32.mul", 0x94, "ff:f"}, {"f32.div", 0x95, "ff:f"}, {"f32.min", 0x96, "ff:f"},
    {"f32.max", 0x97, "ff:f"}, {"f32.copysign", 0x98, "ff:f"},
    // f64 arithmetic.
    {"f64.abs", 0x99, "d:d"}, {"f64.neg", 0x9a, "d:d"}, {"f64.ceil", 0x9b, "d:d"}, {"f64.floor", 0x9c, "d:d"},
    {"f64.trunc", 0x9d, "d:d"}, {"f64.nearest", 0x9e, "d:d"}, {"f64.sqrt", 0x9f, "d:d"}, {"f64.add", 0xa0, "dd:d"},
    {"f64.sub", 0xa1, "dd:d"}, {"f64.mul", 0xa2, "dd:d"}, {"f64.div", 0xa3, "dd:d"}, {"f64.min", 0xa4, "dd:d"},
    {"f64.max", 0xa5, "dd:d"}, {"f64.copysign", 0xa6, "dd:d"},
    // Scalar conversions.
    {"i32.wrap_i64", 0xa7, "l:i"}, {"i32.trunc_f32_s", 0xa8, "f:i"}, {"i32.trunc_f32_u", 0xa9, "f:i"},
    {"i32.trunc_f64_s", 0xaa, "d:i"}, {"i32.trunc_f64_u", 0xab, "d:i"}, {"i64.extend_i32_s", 0xac, "i:l"},
    {"i64.extend_i32_u", 0xad, "i:l"}, {"i64.trunc_f32_s", 0xae, "f:l"}, {"i64.trunc_f32_u", 0xaf, "f:l"},
    {"i64.trunc_f64_s", 0xb0, "d:l"}, {"i64.trunc_f64_u", 0xb1, "d:l"}, {"f32.convert_i32_s", 0xb2, "i:f"},
    {"f32.convert_i32_u", 0xb3, "i:f"}, {"f32.convert_i64_s", 0xb4, "l:f"}, {"f32.convert_i64_u", 0xb5, "l:f"},
    {"f32.demote_f64", 0xb6, "d:f"}, {"f64.convert_i32_s", 0xb7, "i:d"}, {"f64.convert_i32_u", 0xb8, "i:d"},
    {"f64.convert_i64_s", 0xb9, "l:d"}, {"f64.convert_i64_u", 0xba, "l:d"}, {"f64.promote_f32", 0xbb, "f:d"},
    {"i32.reinterpret_f32", 0xbc, "f:i"}, {"i64.reinterpret_f64", 0xbd, "d:l"}, {"f32.reinterpret_i32", 0xbe, "i:f"},
    {"f64.reinterpret_i64", 0xbf, "l:d"}, {"i32.extend8_s", 0xc0, "i:i"}, {"i32.extend16_s", 0xc1, "i:i"},
    {"i64.extend8_s", 0xc2, "l:l"}, {"i64.extend16_s", 0xc3, "l:l"}, {"i64.extend32_s", 0xc4, "l:l"},
    {"i32.trunc_sat_f32_s", 0xfc000, "f:i"}, {"i32.trunc_sat_f32_u", 0xfc001, "f:i"},
    {"i32.trunc_sat_f64_s", 0xfc002, "d:i"}, {"i32.trunc_sat_f64_u", 0xfc003, "d:i"},
    {"i64.trunc_sat_f32_s", 0xfc004, "f:l"}, {"i64.trunc_sat_f32_u", 0xfc005, "f:l"},
    {"i64.trunc_sat_f64_s", 0xfc006, "d:l"}, {"i64.trunc_sat_f64_u", 0xfc007, "d:l"},
    // Vector memory.
    {"v128.load", 0xfd000, "i:v", Immediate::Memory, 4}, {"v128.load8x8_s", 0xfd001, "i:v", Immediate::Memory, 3},
    {"v128.load8x8_u", 0xfd002, "i:v", Immediate::Memory, 3}, {"v128.load16x4_s", 0xfd003, "i:v", Immediate::Memory, 3},
    {"v128.load16x4_u", 0xfd004, "i:v", Immediate::Memory, 3},
    {"v128.load32x2_s", 0xfd005, "i:v", Immediate::Memory, 3},
    {"v128.load32x2_u", 0xfd006, "i:v", Immediate::Memory, 3}, {"v128.load8_splat", 0xfd007, "i:v", Immediate::Memory},
    {"v128.load16_splat", 0xfd008, "i:v", Immediate::Memory, 1},
    {"v128.load32_splat", 0xfd009, "i:v", Immediate::Memory, 2},
    {"v128.load64_splat", 0xfd00a, "i:v", Immediate::Memory, 3}, {"v128.store", 0xfd00b, "iv:", Immediate::Memory, 4},
    {"v128.load32_zero", 0xfd05c, "i:v", Immediate::Memory, 2},
    {"v128.load64_zero", 0xfd05d, "i:v", Immediate::Memory, 3},
    {"v128.load8_lane", 0xfd054, "iv:v", Immediate::MemoryLane},
    {"v128.load16_lane", 0xfd055, "iv:v", Immediate::MemoryLane, 1},
    {"v128.load32_lane", 0xfd056, "iv:v", Immediate::MemoryLane, 2},
    {"v128.load64_lane", 0xfd057, "iv:v", Immediate::MemoryLane, 3},
    {"v128.store8_lane", 0xfd058, "iv:", Immediate::MemoryLane},
    {"v128.store16_lane", 0xfd059, "iv:", Immediate::MemoryLane, 1},
    {"v128.store32_lane", 0xfd05a, "iv:", Immediate::MemoryLane, 2},
    {"v128.store64_lane", 0xfd05b, "iv:", Immediate::MemoryLane, 3},
    // Lanes: the last number counts them.
    {"i8x16.shuffle", 0xfd00d, "vv:v", Immediate::Shuffle}, {"i8x16.swizzle", 0xfd00e, "vv:v"},
    {"i8x16.splat", 0xfd00f, "i:v"}, {"i16x8.splat", 0xfd010, "i:v"}, {"i32x4.splat", 0xfd011, "i:v"},
    {"i64x2.splat", 0xfd012, "l:v"}, {"f32x4.splat", 0xfd013, "f:v"}, {"f64x2.splat", 0xfd014, "d:v"},
    {"i8x16.extract_lane_s", 0xfd015, "v:i", Immediate::Lane, 16},
    {"i8x16.extract_lane_u", 0xfd016, "v:i", Immediate::Lane, 16},
    {"i8x16.replace_lane", 0xfd017, "vi:v", Immediate::Lane, 16},
    {"i16x8.extract_lane_s", 0xfd018, "v:i", Immediate::Lane, 8},
    {"i16x8.extract_lane_u", 0xfd019, "v:i", Immediate::Lane, 8},
    {"i16x8.replace_lane", 0xfd01a, "vi:v", Immediate::Lane, 8},
    {"i32x4.extract_lane", 0xfd01b, "v:i", Immediate::Lane, 4},
    {"i32x4.replace_lane", 0xfd01c, "vi:v", Immediate::Lane, 4},
    {"i64x2.extract_lane", 0xfd01d, "v:l", Immediate::Lane, 2},
    {"i64x2.replace_lane", 0xfd01e, "vl:v", Immediate::Lane, 2},
    {"f32x4.extract_lane", 0xfd01f, "v:f", Immediate::Lane, 4},
    {"f32x4.replace_lane", 0xfd020, "vf:v", Immediate::Lane, 4},
    {"f64x2.extract_lane", 0xfd021, "v:d", Immediate::Lane, 2},
    {"f64x2.replace_lane", 0xfd022, "vd:v", Immediate::Lane, 2},
    // Vector comparisons.
    {"i8x16.eq", 0xfd023, "vv:v"}, {"i8x16.ne", 0xfd024, "vv:v"}, {"i8x16.lt_s", 0xfd025, "vv:v"},
    {"i8x16.lt_u", 0xfd026, "vv:v"}, {"i8x16.gt_s", 0xfd027, "vv:v"}, {"i8x16.gt_u", 0xfd028, "vv:v"},
    {"i8x16.le_s", 0xfd029, "vv:v"}, {"i8x16.le_u", 0xfd02a, "vv:v"}, {"i8x16.ge_s", 0xfd02b, "vv:v"},
    {"i8x16.ge_u", 0xfd02c, "vv:v"}, {"i16x8.eq", 0xfd02d, "vv:v"}, {"i16x8.ne", 0xfd02e, "vv:v"},
    {"i16x8.lt_s", 0xfd02f, "vv:v"}, {"i16x8.lt_u", 0xfd030, "vv:v"}, {"i16x8.gt_s", 0xfd031, "vv:v"},
    {"i16x8.gt_u", 0xfd032, "vv:v"}, {"i16x8.le_s", 0xfd033, "vv:v"}, {"i16x8.le_u", 0xfd034, "vv:v"},
    {"i16x8.ge_s", 0xfd035, "vv:v"}, {"i16x8.ge_u", 0xfd036, "vv:v"}, {"i32x4.eq", 0xfd037, "vv:v"},
    {"i32x4.ne", 0xfd038, "vv:v"}, {"i32x4.lt_s", 0xfd039, "vv:v"}, {"i32x4.lt_u", 0xfd03a, "vv:v"},
    {"i32x4.gt_s", 0xfd03b, "vv:v"}, {"i32x4.gt_u", 0xfd03c, "vv:v"}, {"i32x4.le_s", 0xfd03d, "vv:v"},
    {"i32x4.le_u", 0xfd03e, "vv:v"}, {"i32x4.ge_s", 0xfd03f, "vv:v"}, {"i32x4.ge_u", 0xfd040, "vv:v"},
    {"f32x4.eq", 0xfd041, "vv:v"}, {"f32x4.ne", 0xfd042, "vv:v"}, {"f32x4.lt", 0xfd043, "vv:v"},
    {"f32x4.gt", 0xfd044, "vv:v"}, {"f32x4.le", 0xfd045, "vv:v"}, {"f32x4.ge", 0xfd046, "vv:v"},
    {"f64x2.eq", 0xfd047, "vv:v"}, {"f64x2.ne", 0xfd048, "vv:v"}, {"f64x2.lt", 0xfd049, "vv:v"},
    {"f64x2.gt", 0xfd04a, "vv:v"}, {"f64x2.le", 0xfd04b, "vv:v"}, {"f64x2.ge", 0xfd04c, "vv:v"},
    {"i64x2.eq", 0xfd0d6, "vv:v"}, {"i64x2.ne", 0xfd0d7, "vv:v"}, {"i64x2.lt_s", 0xfd0d8, "vv:v"},
    {"i64x2.gt_s", 0xfd0d9, "vv:v"}, {"i64x2.le_s", 0xfd0da, "vv:v"}, {"i64x2.ge_s", 0xfd0db, "vv:v"},
    // Vector bits.
    {"v128.not", 0xfd04d, "v:v"}, {"v128.and", 0xfd04e, "vv:v"}, {"v128.andnot", 0xfd04f, "vv:v"},
    {"v128.or", 0xfd050, "vv:v"}, {"v128.xor", 0xfd051, "vv:v"}, {"v128.bitselect", 0xfd052, "vvv:v"},
    {"v128.any_true", 0xfd053, "v:i"},
    // i8x16.
    {"i8x16.abs", 0xfd060, "v:v"}, {"i8x16.neg", 0xfd061, "v:v"}, {"i8x16.popcnt", 0xfd062, "v:v"},
    {"i8x16.all_true", 0xfd063, "v:i"}, {"i8x16.bitmask", 0xfd064, "v:i"}, {"i8x16.narrow_i16x8_s", 0xfd065, "vv:v"},
    {"i8x16.narrow_i16x8_u", 0xfd066, "vv:v"}, {"i8x16.shl", 0xfd06b, "vi:v"}, {"i8x16.shr_s", 0xfd06c, "vi:v"},
    {"i8x16.shr_u", 0xfd06d, "vi:v"}, {"i8x16.add", 0xfd06e, "vv:v"}, {"i8x16.add_sat_s", 0xfd06f, "vv:v"},
    {"i8x16.add_sat_u", 0xfd070, "vv:v"}, {"i8x16.sub", 0xfd071, "vv:v"}, {"i8x16.sub_sat_s", 0xfd072, "vv:v"},
    {"i8x16.sub_sat_u", 0xfd073, "vv:v"}, {"i8x16.min_s", 0xfd076, "vv:v"}, {"i8x16.min_u", 0xfd077, "vv:v"},
    {"i8x16.max_s", 0xfd078, "vv:v"}, {"i8x16.max_u", 0xfd079, "vv:v"}, {"i8x16.avgr_u", 0xfd07b, "vv:v"},
    // i16x8.
    {"i16x8.abs", 0xfd080, "v:v"}, {"i16x8.neg", 0xfd081, "v:v"}, {"i16x8.extadd_pairwise_i8x16_s", 0xfd07c, "v:v"},
    {"i16x8.extadd_pairwise_i8x16_u", 0xfd07d, "v:v"}, {"i16x8.all_true", 0xfd083, "v:i"},
    {"i16x8.bitmask", 0xfd084, "v:i"}, {"i16x8.narrow_i32x4_s", 0xfd085, "vv:v"},
    {"i16x8.narrow_i32x4_u", 0xfd086, "vv:v"}, {"i16x8.extend_low_i8x16_s", 0xfd087, "v:v"},
    {"i16x8.extend_high_i8x16_s", 0xfd088, "v:v"}, {"i16x8.extend_low_i8x16_u", 0xfd089, "v:v"},
    {"i16x8.extend_high_i8x16_u", 0xfd08a, "v:v"}, {"i16x8.shl", 0xfd08b, "vi:v"}, {"i16x8.shr_s", 0xfd08c, "vi:v"},
    {"i16x8.shr_u", 0xfd08d, "vi:v"}, {"i16x8.add", 0xfd08e, "vv:v"}, {"i16x8.add_sat_s", 0xfd08f, "vv:v"},
    {"i16x8.add_sat_u", 0xfd090, "vv:v"}, {"i16x8.sub", 0xfd091, "vv:v"}, {"i16x8.sub_sat_s", 0xfd092, "vv:v"},
    {"i16x8.sub_sat_u", 0xfd093, "vv:v"}, {"i16x8.mul", 0xfd095, "vv:v"}, {"i16x8.min_s", 0xfd096, "vv:v"},
    {"i16x8.min_u", 0xfd097, "vv:v"}, {"i16x8.max_s", 0xfd098, "vv:v"}, {"i16x8.max_u", 0xfd099, "vv:v"},
    {"i16x8.avgr_u", 0xfd09b, "vv:v"}, {"i16x8.q15mulr_sat_s", 0xfd082, "vv:v"},
    {"i16x8.extmul_low_i8x16_s", 0xfd09c, "vv:v"}, {"i16x8.extmul_high_i8x16_s", 0xfd09d, "vv:v"},
    {"i16x8.extmul_low_i8x16_u", 0xfd09e, "vv:v"}, {"i16x8.extmul_high_i8x16_u", 0xfd09f, "vv:v"},
    // i32x4.
    {"i32x4.abs", 0xfd0a0, "v:v"}, {"i32x4.neg", 0xfd0a1, "v:v"}, {"i32x4.extadd_pairwise_i16x8_s", 0xfd07e, "v:v"},
    {"i32x4.extadd_pairwise_i16x8_u", 0xfd07f, "v:v"}, {"i32x4.all_true", 0xfd0a3, "v:i"},
    {"i32x4.bitmask", 0xfd0a4, "v:i"}, {"i32x4.extend_low_i16x8_s", 0xfd0a7, "v:v"},
    {"i32x4.extend_high_i16x8_s", 0xfd0a8, "v:v"}, {"i32x4.extend_low_i16x8_u", 0xfd0a9, "v:v"},
    {"i32x4.extend_high_i16x8_u", 0xfd0aa, "v:v"}, {"i32x4.shl", 0xfd0ab, "vi:v"}, {"i32x4.shr_s", 0xfd0ac, "vi:v"},
    {"i32x4.shr_u", 0xfd0ad, "vi:v"}, {"i32x4.add", 0xfd0ae, "vv:v"}, {"i32x4.sub", 0xfd0b1, "vv:v"},
    {"i32x4.mul", 0xfd0b5, "vv:v"}, {"i32x4.min_s", 0xfd0b6, "vv:v"}, {"i32x4.min_u", 0xfd0b7, "vv:v"},
    {"i32x4.max_s", 0xfd0b8, "vv:v"}, {"i32x4.max_u", 0xfd0b9, "vv:v"}, {"i32x4.dot_i16x8_s", 0xfd0ba, "vv:v"},
    {"i32x4.extmul_low_i16x8_s", 0xfd0bc, "vv:v"}, {"i32x4.extmul_high_i16x8_s", 0xfd0bd, "vv:v"},
    {"i32x4.extmul_low_i16x8_u", 0xfd0be, "vv:v"}, {"i32x4.extmul_high_i16x8_u", 0xfd0bf, "vv:v"},
    // i64x2.
    {"i64x2.abs", 0xfd0c0, "v:v"}, {"i64x2.neg", 0xfd0c1, "v:v"}, {"i64x2.all_true", 0xfd0c3, "v:i"},
    {"i64x2.bitmask", 0xfd0c4, "v:i"}, {"i64x2.extend_low_i32x4_s", 0xfd0c7, "v:v"},
    {"i64x2.extend_high_i32x4_s", 0xfd0c8, "v:v"}, {"i64x2.extend_low_i32x4_u", 0xfd0c9, "v:v"},
    {"i64x2.extend_high_i32x4_u", 0xfd0ca, "v:v"}, {"i64x2.shl", 0xfd0cb, "vi:v"}, {"i64x2.shr_s", 0xfd0cc, "vi:v"},
    {"i64x2.shr_u", 0xfd0cd, "vi:v"}, {"i64x2.add", 0xfd0ce, "vv:v"}, {"i64x2.sub", 0xfd0d1, "vv:v"},
    {"i64x2.mul", 0xfd0d5, "vv:v"}, {"i64x2.extmul_low_i32x4_s", 0xfd0dc, "vv:v"},
    {"i64x2.extmul_high_i32x4_s", 0xfd0dd, "vv:v"}, {"i64x2.extmul_low_i32x4_u", 0xfd0de, "vv:v"},
    {"i64x2.extmul_high_i32x4_u", 0xfd0df, "vv:v"},
    // f32x4.
    {"f32x4.abs", 0xfd0e0, "v:v"}, {"f32x4.neg", 0xfd0e1, "v:v"}, {"f32x4.sqrt", 0xfd0e3, "v:v"},
    {"f32x4.ceil", 0xfd067, "v:v"}, {"f32x4.floor", 0xfd068, "v:v"}, {"f32x4.trunc", 0xfd069, "v:v"},
    {"f32x4.nearest", 0xfd06a, "v:v"}, {"f32x4.add", 0xfd0e4, "vv:v"}, {"f32x4.sub", 0xfd0e5, "vv:v"},
    {"f32x4.mul", 0xfd0e6, "vv:v"}, {"f32x4.div", 0xfd0e7, "vv:v"}, {"f32x4.min", 0xfd0e8, "vv:v"},
    {"f32x4.max", 0xfd0e9, "vv:v"}, {"f32x4.pmin", 0xfd0ea, "vv:v"}, {"f32x4.pmax", 0xfd0eb, "vv:v"},
    // f64x2.
    {"f64x2.abs", 0xfd0ec, "v:v"}, {"f64x2.neg", 0xfd0ed, "v:v"}, {"f64x2.sqrt", 0xfd0ef, "v:v"},
    {"f64x2.ceil", 0xfd074, "v:v"}, {"f64x2.floor", 0xfd075, "v:v"}, {"f64x2.trunc", 0xfd07a, "v:v"},
    {"f64x2.nearest", 0xfd094, "v:v"}, {"f64x2.add", 0xfd0f0, "vv:v"}, {"f64x2.sub", 0xfd0f1, "vv:v"},
    {"f64x2.mul", 0xfd0f2, "vv:v"}, {"f64x2.div", 0xfd0f3, "vv:v"}, {"f64x2.min", 0xfd0f4, "vv:v"},
    {"f64x2.max", 0xfd0f5, "vv:v"}, {"f64x2.pmin", 0xfd0f6, "vv:v"}, {"f64x2.pmax", 0xfd0f7, "vv:v"},
    // Vector conversions.
    {"i32x4.trunc_sat_f32x4_s", 0xfd0f8, "v:v"}, {"i32x4.trunc_sat_f32x4_u", 0xfd0f9, "v:v"},
    {"f32x4.convert_i32x4_s", 0xfd0fa, "v:v"}, {"f32x4.convert_i32x4_u", 0xfd0fb, "v:v"},
    {"i32x4.trunc_sat_f64x2_s_zero", 0xfd0fc, "v:v"}, {"i32x4.trunc_sat_f64x2_u_zero", 0xfd0fd, "v:v"},
    {"f64x2.convert_low_i32x4_s", 0xfd0fe, "v:v"}, {"f64x2.convert_low_i32x4_u", 0xfd0ff, "v:v"},
    {"f32x4.demote_f64x2_zero", 0xfd05e, "v:v"}, {"f64x2.promote_low_f32x4", 0xfd05f, "v:v"},
    // Relaxed SIMD: whether a * b + c is fused is the engine's choice, so a loader must probe.
    {"f32x4.relaxed_madd", 0xfd105, "vvv:v"}, {"f32x4.relaxed_nmadd", 0xfd106, "vvv:v"},
    {"f64x2.relaxed_madd", 0xfd107, "vvv:v"}, {"f64x2.relaxed_nmadd", 0xfd108, "vvv:v"},
};
// clang-format on

// At run time; null if it is not in the table.
constexpr const Instruction* find_named(std::string_view name) {
  for (const Instruction& instruction : instructions)
    if (instruction.name == name) return &instruction;
  return nullptr;
}

void no_such_instruction();  // never defined: its name is the compiler's message

consteval const Instruction* find(std::string_view name, Immediate immediate) {
  for (const Instruction& instruction : instructions) {
    if (instruction.name == name && instruction.immediate == immediate) return &instruction;
  }
  no_such_instruction();
  return nullptr;
}

// An instruction with a given kind of immediate: "v128.load" is an Op<Immediate::Memory> and nothing else.
template <Immediate immediate>
struct Op {
  consteval Op(const char* name) : instruction(find(name, immediate)) {}
  constexpr explicit Op(const Instruction& record) : instruction(&record) {}
  const Instruction* instruction;
};
// To choose one at run time: wide ? PlainOp("f64.add") : PlainOp("f32.add").
using PlainOp = Op<Immediate::None>;

}  // namespace trireme::wasm

#include "targets/wasm/machine.hpp"

#include <fmt/format.h>

#include <cmath>

namespace trireme::wasm {
namespace {

struct LanewiseOp {
  Primitive op;
  PlainOp f32, f64;
};
constexpr LanewiseOp unary_ops[] = {
    {Primitive::Neg, "f32x4.neg", "f64x2.neg"},           {Primitive::Abs, "f32x4.abs", "f64x2.abs"},
    {Primitive::Sqrt, "f32x4.sqrt", "f64x2.sqrt"},        {Primitive::Floor, "f32x4.floor", "f64x2.floor"},
    {Primitive::Round, "f32x4.nearest", "f64x2.nearest"}, {Primitive::Not, "v128.not", "v128.not"},
};
constexpr LanewiseOp binary_ops[] = {
    {Primitive::Add, "f32x4.add", "f64x2.add"},   {Primitive::Sub, "f32x4.sub", "f64x2.sub"},
    {Primitive::Mul, "f32x4.mul", "f64x2.mul"},   {Primitive::Div, "f32x4.div", "f64x2.div"},
    {Primitive::Less, "f32x4.lt", "f64x2.lt"},    {Primitive::LessEqual, "f32x4.le", "f64x2.le"},
    {Primitive::Equal, "f32x4.eq", "f64x2.eq"},   {Primitive::And, "v128.and", "v128.and"},
    {Primitive::Or, "v128.or", "v128.or"},        {Primitive::BitsAdd, "i32x4.add", "i64x2.add"},
    {Primitive::BitsAnd, "v128.and", "v128.and"}, {Primitive::BitsOr, "v128.or", "v128.or"},
};

constexpr std::uint8_t args_slot_bytes = 8;

}  // namespace

Machine::Machine(const Kernel& kernel, const Entry& entry, Function& function, Constants& constants)
    : kernel_(kernel), entry_(entry), f64_(kernel.compute == trireme::Type::F64), facts_(kernel) {
  args_ = function.parameter<I32>("args");
  arguments_ = {function.parameter<I64>("first"), function.parameter<I64>("last"),
                entry.has_total ? function.parameter<I64>("total") : Local<I64>{}};
  scratch_ = function.local<I32>("scratch");
  if (entry.fma && !f64_) doubt_ = function.local<V128>("doubt");
  for (int k = 0; k < kernel.lane_count; ++k) lanes_.push_back(function.local<V128>(fmt::format("v{}", k)));
  for (int k = 0; k < kernel.mask_count; ++k) masks_.push_back(function.local<V128>(fmt::format("m{}", k)));
  for (int k = 0; k < kernel.index_count; ++k) indices_.push_back(function.local<I64>(fmt::format("i{}", k)));
  for (int k = 0; k < kernel.pointer_count; ++k) pointers_.push_back(function.local<I32>(fmt::format("p{}", k)));
  writer_.emplace(function, constants);
  if (const int slot = kernel.slot({Slot::What::Pointer, scratch_array}); slot >= 0) {
    f().get(args_), f().memory("i32.load", {.offset = static_cast<std::uint32_t>(slot) * args_slot_bytes});
    f().set(scratch_);
  }
}

Status Machine::refuse(const Instr& instr, std::string_view reason) const {
  return Error{trireme::Code::Internal, fmt::format("wasm: kernel {}, instruction code {}, op {}: {}", kernel_.name,
                                                    static_cast<int>(instr.code), facts(instr.op).name, reason)};
}

Status Machine::block(const std::vector<Instr>& body) {
  for (std::size_t k = 0; k < body.size();) {
    const std::size_t end = run_at(body, k);
    if (end > k) TRIREME_CHECK(emulated_run(std::span(body).subspan(k, end - k)));
    else writer_->release();
    if (end == k) TRIREME_CHECK(step(body[k]));
    k = std::max(end, k + 1);
  }
  return Done{};
}

Status Machine::step(const Instr& instr) {
  if (instr.backwards) return refuse(instr, "vectors that lie backwards are not taken");
  const auto slot_offset = static_cast<std::uint32_t>(instr.imm) * args_slot_bytes;
  switch (instr.code) {
    case Do::IndexConstant: f().i64_const(instr.imm), f().set(integer(instr.dst)); break;
    case Do::IndexSlot:
      f().get(args_), f().memory("i64.load", {.offset = slot_offset}), f().set(integer(instr.dst));
      break;
    case Do::IndexArgument:
      if (instr.imm < 0 || instr.imm > (entry_.has_total ? 2 : 1)) return refuse(instr, "no such argument");
      f().get(arguments_[instr.imm]), f().set(integer(instr.dst));
      break;
    case Do::IndexMove:
      instr.dst.bank == Bank::Pointer ? (f().get(pointer(instr.a)), f().set(pointer(instr.dst)))
                                      : (f().get(integer(instr.a)), f().set(integer(instr.dst)));
      break;
    case Do::IndexAdd:
    case Do::IndexSub:
    case Do::IndexMul:
    case Do::IndexMin:
    case Do::IndexMax:
    case Do::IndexAnd:
    case Do::IndexShiftRight:
    case Do::IndexDivide:
    case Do::IndexRemainder: index(instr); break;
    case Do::IndexLoad: index_load(instr); break;
    case Do::PointerSlot:
      f().get(args_), f().memory("i32.load", {.offset = slot_offset}), f().set(pointer(instr.dst));
      break;
    case Do::PointerAdd:
      f().get(pointer(instr.a)), f().get(integer(instr.b)), f().op("i32.wrap_i64");
      if (instr.imm != 1) f().i32_const(static_cast<std::int32_t>(instr.imm)), f().op("i32.mul");
      f().op("i32.add"), f().set(pointer(instr.dst));
      break;
    case Do::Load: load(instr); break;
    case Do::LoadOne: load_one(instr); break;
    case Do::Store: store(instr); break;
    case Do::StoreOne: store_one(instr); break;
    case Do::LaneConstant: {
      const double value = std::bit_cast<double>(instr.imm);
      f64_ ? f().splat_const(value) : f().splat_const(static_cast<float>(value));
      f().set(lane(instr.dst));
      break;
    }
    case Do::LaneSlot:
      f().get(args_);
      f64_ ? f().memory("v128.load64_splat", {.offset = slot_offset})
           : f().memory("v128.load32_splat", {.offset = slot_offset});
      f().set(lane(instr.dst));
      break;
    case Do::LaneFromIndex:
      f().get(integer(instr.a));
      f64_ ? (f().op("f64.convert_i64_s"), f().op("f64x2.splat"))
           : (f().op("f32.convert_i64_s"), f().op("f32x4.splat"));
      f().set(lane(instr.dst));
      break;
    case Do::Random: random(instr); break;
    case Do::LaneColumn:  // numbers below 2^31
      if (!instr.a) {
        columns_from(instr.imm), f().set(lane(instr.dst));
        break;
      }
      f().get(integer(instr.a)), f().op("i32.wrap_i64"), f().i32_const(static_cast<std::int32_t>(instr.imm));
      f().op("i32.add"), f().op("i32x4.splat"), f().v128_const(std::array<std::uint32_t, 4>{0, 1, 2, 3});
      f().op("i32x4.add"), f().op(f64_ ? PlainOp("f64x2.convert_low_i32x4_s") : PlainOp("f32x4.convert_i32x4_s"));
      f().set(lane(instr.dst));
      break;
    case Do::LaneMove: f().get(lane(instr.a)), f().set(lane(instr.dst)); break;
    case Do::Primitive: return primitive(instr);
    case Do::ShuffleXor: shuffle_xor(instr); break;
    case Do::MaskBelow: mask_below(instr); break;
    case Do::MaskEqual: mask_equal(instr); break;
    case Do::While:
    case Do::If: return control(instr);
    case Do::Prefetch:  // there is no such instruction
    case Do::Note: break;
    case Do::Name: {
      const Kernel::Named& named = kernel_.names[instr.imm];
      std::string text = named.name + ":";
      for (Reg each : named.registers) text += fmt::format(" ${}{}", each.bank == Bank::Mask ? "m" : "v", each.id);
      f().comment(std::move(text));
      break;
    }
    case Do::LaneBit:
    case Do::ThreadLane:
    case Do::ThreadGroup:
    case Do::ThreadTeam:
    case Do::BlockIndex:
    case Do::BlockRank:
    case Do::Barrier:
    case Do::ClusterBarrier:
    case Do::OpenMailbox:
    case Do::Send:
    case Do::Receive:
    case Do::CopyAsync:
    case Do::CopyCommit:
    case Do::CopyWait: return refuse(instr, "belongs to thread machines");
  }
  return Done{};
}

void Machine::push_index(const Instr& instr) { instr.b ? f().get(integer(instr.b)) : f().i64_const(instr.imm); }

void Machine::index(const Instr& instr) {
  const auto plain = [&](PlainOp op) {
    f().get(integer(instr.a)), push_index(instr);
    f().op(op), f().set(integer(instr.dst));
  };
  // Engines divide 64-bit integers by instruction, 20 to 40 cycles, even by a constant.
  const bool power = !instr.b && std::has_single_bit(static_cast<std::uint64_t>(instr.imm));
  const auto by_power = [&](std::int64_t number, PlainOp op) {
    f().get(integer(instr.a)), f().i64_const(number), f().op(op), f().set(integer(instr.dst));
  };
  switch (instr.code) {
    case Do::IndexAdd: return plain("i64.add");
    case Do::IndexSub: return plain("i64.sub");
    case Do::IndexMul: return plain("i64.mul");
    case Do::IndexAnd: return plain("i64.and");
    case Do::IndexShiftRight: return plain("i64.shr_u");
    case Do::IndexDivide:
      return power ? by_power(std::countr_zero(static_cast<std::uint64_t>(instr.imm)), "i64.shr_u")
                   : plain("i64.div_u");
    case Do::IndexRemainder: return power ? by_power(instr.imm - 1, "i64.and") : plain("i64.rem_u");
    default:  // IndexMin, IndexMax
      f().get(integer(instr.a)), push_index(instr);
      f().get(integer(instr.a)), push_index(instr);
      f().op(instr.code == Do::IndexMin ? PlainOp("i64.lt_s") : PlainOp("i64.gt_s"));
      f().op("select"), f().set(integer(instr.dst));
  }
}

void Machine::less(const Instr& instr) { f().get(integer(instr.a)), push_index(instr), f().op("i64.lt_s"); }

Status Machine::control(const Instr& instr) {
  if (entry_.compact && instr.code == Do::While) {  // the condition stands once
    const Label again = f().loop();
    less(instr);
    const Label taken = f().if_();
    TRIREME_CHECK(block(instr.body));
    f().br(again), f().end(taken), f().end(again);
    return Done{};
  }
  less(instr);
  const Label taken = f().if_();
  if (instr.code == Do::While) {
    const Label again = f().loop();
    TRIREME_CHECK(block(instr.body));
    less(instr);
    f().br_if(again);
    f().end(again);
  } else {
    TRIREME_CHECK(block(instr.body));
    if (!instr.other.empty()) {
      f().else_(taken);
      TRIREME_CHECK(block(instr.other));
    }
  }
  f().end(taken);
  return Done{};
}

Status Machine::primitive(const Instr& instr) {
  for (const LanewiseOp& each : unary_ops)
    if (each.op == instr.op) return lanewise(f64_ ? each.f64 : each.f32, instr.dst, instr.a), Done{};
  for (const LanewiseOp& each : binary_ops)
    if (each.op == instr.op) return lanewise(f64_ ? each.f64 : each.f32, instr.dst, instr.a, instr.b), Done{};
  switch (instr.op) {
    case Primitive::Min:
      f64_ ? extremum(instr, "f64x2.min", "f64x2.pmin") : extremum(instr, "f32x4.min", "f32x4.pmin");
      break;
    case Primitive::Max:
      f64_ ? extremum(instr, "f64x2.max", "f64x2.pmax") : extremum(instr, "f32x4.max", "f32x4.pmax");
      break;
    case Primitive::Fma: fma(instr); break;
    case Primitive::Select: lanewise("v128.bitselect", instr.dst, instr.b, instr.c, instr.a); break;
    case Primitive::BitsShiftLeft:
    case Primitive::BitsShiftRight: {
      const bool left = instr.op == Primitive::BitsShiftLeft;
      f().get(lane(instr.a)), f().i32_const(static_cast<std::int32_t>(instr.imm));
      f().op(f64_ ? (left ? PlainOp("i64x2.shl") : PlainOp("i64x2.shr_u"))
                  : (left ? PlainOp("i32x4.shl") : PlainOp("i32x4.shr_u")));
      f().set(lane(instr.dst));
      break;
    }
    case Primitive::RoundTo:
      if (instr.type == trireme::Type::I64) round_to_i64(instr);
      else set_widened(instr, instr.dst, narrowed(instr, instr.a));
      break;
    default: return refuse(instr, "not a primitive");
  }
  return Done{};
}

// As numbers: whole, within 2^63, and 0 for NaN and for -0.
void Machine::round_to_i64(const Instr& instr) {
  const auto limit = [&](double value) { f64_ ? f().splat_const(value) : f().splat_const(static_cast<float>(value)); };
  f().get(lane(instr.a)), f().op(f64_ ? PlainOp("f64x2.nearest") : PlainOp("f32x4.nearest"));
  limit(0x1p63), f().op(f64_ ? PlainOp("f64x2.min") : PlainOp("f32x4.min"));
  limit(-0x1p63), f().op(f64_ ? PlainOp("f64x2.max") : PlainOp("f32x4.max"));
  limit(0), f().op(f64_ ? PlainOp("f64x2.add") : PlainOp("f32x4.add"));
  f().get(lane(instr.a)), f().get(lane(instr.a)), f().op(f64_ ? PlainOp("f64x2.eq") : PlainOp("f32x4.eq"));
  f().op("v128.and"), f().set(lane(instr.dst));
}

// The exact forms propagate NaN and order -0 below +0, and cost an engine several instructions. pmin(x, c) is
// c < x ? c : x and pmax(x, c) is x < c ? c : x: one instruction, the same where c is neither zero nor NaN.
void Machine::extremum(const Instr& instr, PlainOp exact, PlainOp with_constant) {
  if (facts_.plain_constant(instr.b)) return lanewise(with_constant, instr.dst, instr.a, instr.b);
  if (facts_.plain_constant(instr.a)) return lanewise(with_constant, instr.dst, instr.b, instr.a);
  lanewise(exact, instr.dst, instr.a, instr.b);
}

void Machine::fma(const Instr& instr) {
  if (!entry_.fma)
    return lanewise(f64_ ? PlainOp("f64x2.relaxed_madd") : PlainOp("f32x4.relaxed_madd"), instr.dst, instr.a, instr.b,
                    instr.c);
  for (Reg operand : {instr.a, instr.b, instr.c}) f().get(lane(operand));
  f().call(*entry_.fma), f().set(lane(instr.dst));
}

void Machine::shuffle_xor(const Instr& instr) {
  const int lane_bytes = f64_ ? 8 : 4;
  std::array<std::uint8_t, 16> bytes;
  for (int k = 0; k < 16; ++k) bytes[k] = static_cast<std::uint8_t>(k ^ (instr.imm * lane_bytes & 15));
  f().get(lane(instr.a)), f().get(lane(instr.a)), f().shuffle(bytes), f().set(lane(instr.dst));
}

void Machine::columns_from(std::int64_t first) {
  std::array<std::uint32_t, 4> words;
  for (int t = 0; t < 4; ++t) {
    const auto single = std::bit_cast<std::uint32_t>(static_cast<float>(first + t));
    const auto twice = std::bit_cast<std::uint64_t>(static_cast<double>(first + t / 2));
    words[t] = f64_ ? static_cast<std::uint32_t>(twice >> (t % 2 * 32)) : single;
  }
  f().v128_const(words);
}

// Pushes b - a - more as a number, in all lanes. Rounding keeps the order of integers and moves none across a small
// one, so that numbers below 2^24 compare with it as integers do.
void Machine::distance(const Instr& instr, std::int64_t more) {
  f().get(integer(instr.b)), f().get(integer(instr.a)), f().op("i64.sub");
  if (more != 0) f().i64_const(more), f().op("i64.sub");
  f64_ ? (f().op("f64.convert_i64_s"), f().op("f64x2.splat")) : (f().op("f32.convert_i64_s"), f().op("f32x4.splat"));
}

void Machine::mask_below(const Instr& instr) {
  const bool small = instr.imm >= 0 && instr.imm < 1 << 23;
  distance(instr, small ? 0 : instr.imm);
  columns_from(small ? instr.imm : 0);
  f().op(f64_ ? PlainOp("f64x2.gt") : PlainOp("f32x4.gt")), f().set(lane(instr.dst));
}

void Machine::mask_equal(const Instr& instr) {
  distance(instr, instr.imm);
  f().v128_const(std::array<std::uint32_t, 4>{});
  f().op(f64_ ? PlainOp("f64x2.eq") : PlainOp("f32x4.eq")), f().set(lane(instr.dst));
}

Result<Body> translate(const Kernel& kernel, const Entry& entry) {
  if (!kernel.simd || (kernel.compute != trireme::Type::F32 && kernel.compute != trireme::Type::F64))
    return Error{trireme::Code::Internal, "wasm: kernel " + kernel.name + " is not a simd kernel of f32 or f64"};
  Status status = Done{};
  auto body = write_twice(entry.name, Type::None, [&](Function& function, Constants& constants) {
    status = Machine(kernel, entry, function, constants).run();
  });
  if (!status) return status.error();
  return body;
}

}  // namespace trireme::wasm

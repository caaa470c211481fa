// Loads and stores. A masked access touches no byte of an absent lane: the memory may end there.
#include <bit>

#include "targets/wasm/convert.hpp"
#include "targets/wasm/machine.hpp"

namespace trireme::wasm {
namespace {

// Whole vectors, by their bytes; an element, by log2 of its bytes.
Op<Immediate::Memory> load_of(int vector_bytes) {
  switch (vector_bytes) {
    case 16: return "v128.load";
    case 8: return "v128.load64_zero";
    case 4: return "v128.load32_zero";
    case 2: return "v128.load16_splat";
    default: return "v128.load8_splat";
  }
}
Op<Immediate::MemoryLane> store_of(int vector_bytes) {
  return vector_bytes == 8   ? Op<Immediate::MemoryLane>("v128.store64_lane")
         : vector_bytes == 4 ? Op<Immediate::MemoryLane>("v128.store32_lane")
         : vector_bytes == 2 ? Op<Immediate::MemoryLane>("v128.store16_lane")
                             : Op<Immediate::MemoryLane>("v128.store8_lane");
}
constexpr Op<Immediate::MemoryLane> load_lane[] = {"v128.load8_lane", "v128.load16_lane", "v128.load32_lane",
                                                   "v128.load64_lane"};
constexpr Op<Immediate::MemoryLane> store_lane[] = {"v128.store8_lane", "v128.store16_lane", "v128.store32_lane",
                                                    "v128.store64_lane"};

int log2_bytes(Storage type) { return std::countr_zero(bytes(type)); }

// Which lane of its own width an element has, where elements stand one an i32 lane (f64: an i64 lane).
std::uint8_t place(Storage type, int element) {
  return static_cast<std::uint8_t>(type == Storage::F64 ? element : element << (2 - log2_bytes(type)));
}

}  // namespace

Machine::Address Machine::address(const Instr& instr) {
  const bool has_offset = instr.imm >= 0 && instr.imm < (std::int64_t{1} << 31);
  const std::uint32_t offset = has_offset ? static_cast<std::uint32_t>(instr.imm) : 0;
  if (instr.space == Space::Global) {
    f().get(pointer(instr.a));
  } else {
    f().get(scratch_);
    if (instr.a) f().get(integer(instr.a)), f().op("i32.wrap_i64"), f().op("i32.add");
  }
  if (instr.b) {
    f().get(integer(instr.b)), f().op("i32.wrap_i64");
    if (const int shift = log2_bytes(instr.type)) f().i32_const(shift), f().op("i32.shl");
    f().op("i32.add");
  }
  if (!has_offset) f().i32_const(static_cast<std::int32_t>(instr.imm)), f().op("i32.add");
  return {writer_->pop<I32>(), offset};
}

MemArg Machine::at(const Address& address, const Instr& instr, int element) const {
  return {.offset = address.offset + static_cast<std::uint32_t>(element * bytes(instr.type)),
          .align_log2 = static_cast<std::uint8_t>(log2_bytes(instr.type))};
}

void Machine::push_place(const Address& address) {
  writer_->push(address.base);
  if (address.offset) f().i32_const(static_cast<std::int32_t>(address.offset)), f().op("i32.add");
}

// body(k) under a test of lane k of the mask.
template <typename Body>
void Machine::for_lanes_of(Local<V128> mask, Body&& body) {
  for (int k = 0; k < kernel_.launch.lanes; ++k) {
    f().get(mask), f().lane("i32x4.extract_lane", static_cast<std::uint8_t>(f64_ ? 2 * k : k));
    const Label present = f().if_();
    body(k);
    f().end(present);
  }
}

Value<I32x4> Machine::load_vector(const Address& address, const Instr& instr) {
  const int element_bytes = static_cast<int>(bytes(instr.type));
  const int vector_bytes = kernel_.launch.lanes * element_bytes;
  writer_->push(address.base);
  if (element_bytes == 2 && vector_bytes == 8) {
    f().memory("v128.load16x4_u", at(address, instr));
  } else {
    f().memory(load_of(vector_bytes), at(address, instr));
    if (element_bytes == 1) f().op("i16x8.extend_low_i8x16_u");
    if (element_bytes <= 2) f().op("i32x4.extend_low_i16x8_u");
  }
  return writer_->pop<I32x4>();
}

void Machine::set_widened(const Instr& instr, Reg dst, Value<I32x4> bits) {
  f64_ ? writer_->assign(lane(dst), widen_to_f64(bits, instr.type))
       : writer_->assign(lane(dst), widen(bits, instr.type));
}

Value<I32x4> Machine::narrowed(const Instr& instr, Reg value) {
  const bool exact = facts_.exact(value, instr.type);
  return f64_ ? narrow_from_f64(writer_->value<F64x2>(lane(value)), instr.type, exact)
              : narrow(writer_->value<F32x4>(lane(value)), instr.type, exact);
}

void Machine::index_load(const Instr& instr) {
  std::optional<Label> present;
  if (instr.c) {
    f().i64_const(0), f().set(integer(instr.dst));
    f().get(lane(instr.c)), f().op("v128.any_true");
    present = f().if_();
  }
  const Address from = address(instr);
  writer_->push(from.base);
  switch (instr.type) {
    case Storage::I64: f().memory("i64.load", at(from, instr)); break;
    case Storage::U8: f().memory("i64.load8_u", at(from, instr)); break;
    default: f().memory("i64.load32_s", at(from, instr)); break;
  }
  f().set(integer(instr.dst));
  if (present) f().end(*present);
}

// i64 has no lanes beside those of f32: each element goes by itself.
void Machine::load_i64(const Instr& instr) {
  const Address from = address(instr);
  const bool one = instr.code == Do::LoadOne;
  const Local<V128> dst = lane(one ? instr.dst : instr.values[0]);
  const auto element = [&](int k) {
    writer_->push(from.base), f().memory("i64.load", at(from, instr, k));
    f().op(f64_ ? PlainOp("f64.convert_i64_s") : PlainOp("f32.convert_i64_s"));
  };
  const Value<I32x4> values = writer_->fresh<I32x4>();
  writer_->assign(values.local, writer_->constant<I32x4>(0));
  if (one) {
    std::optional<Label> present;
    if (instr.c) f().get(lane(instr.c)), f().op("v128.any_true"), present = f().if_();
    element(0), f().op(f64_ ? PlainOp("f64x2.splat") : PlainOp("f32x4.splat")), f().set(values.local);
    if (present) f().end(*present);
    f().get(values.local);
    if (instr.c) f().get(lane(instr.c)), f().op("v128.and");
    return f().set(dst);
  }
  const auto put = [&](int k) {
    f().get(values.local), element(k);
    f64_ ? f().lane("f64x2.replace_lane", static_cast<std::uint8_t>(k))
         : f().lane("f32x4.replace_lane", static_cast<std::uint8_t>(k));
    f().set(values.local);
  };
  if (instr.c) for_lanes_of(lane(instr.c), put);
  else
    for (int k = 0; k < kernel_.launch.lanes; ++k) put(k);
  f().get(values.local), f().set(dst);
}

void Machine::store_i64(const Instr& instr) {
  const Address to = address(instr);
  const int lanes = kernel_.launch.lanes;
  const auto put = [&](int k) {
    writer_->push(to.base), f().get(lane(instr.values[static_cast<std::size_t>(k / lanes)]));
    const auto place = static_cast<std::uint8_t>(k % lanes);
    if (f64_) f().lane("f64x2.extract_lane", place), f().op("f64.nearest"), f().op("i64.trunc_sat_f64_s");
    else f().lane("f32x4.extract_lane", place), f().op("f32.nearest"), f().op("i64.trunc_sat_f32_s");
    f().memory("i64.store", at(to, instr, k));
  };
  if (instr.code == Do::StoreOne) {
    std::optional<Label> present;
    if (instr.c) f().get(lane(instr.c)), f().lane("i32x4.extract_lane", 0), present = f().if_();
    put(0);
    if (present) f().end(*present);
  } else if (instr.c) {
    for_lanes_of(lane(instr.c), put);
  } else {
    for (int k = 0; k < lanes * static_cast<int>(instr.values.size()); ++k) put(k);
  }
}

void Machine::load(const Instr& instr) {
  if (instr.type == Storage::I64) return load_i64(instr);
  const Address from = address(instr);
  if (!instr.c) return set_widened(instr, instr.values[0], load_vector(from, instr));
  if (calls_masked(instr, entry_.masked_load)) {
    push_place(from);
    f().get(lane(instr.c)), f().call(*entry_.masked_load);
    return set_widened(instr, instr.values[0], writer_->pop<I32x4>());
  }
  const Value<I32x4> bits = writer_->fresh<I32x4>();
  f().get(lane(instr.c)), f().op(f64_ ? PlainOp("i64x2.all_true") : PlainOp("i32x4.all_true"));
  const Label whole = f().if_();
  writer_->assign(bits.local, load_vector(from, instr));
  f().else_(whole);
  writer_->assign(bits.local, writer_->constant<I32x4>(0));
  for_lanes_of(lane(instr.c), [&](int k) {
    writer_->push(from.base), f().get(bits.local);
    f().memory_lane(load_lane[log2_bytes(instr.type)], place(instr.type, k), at(from, instr, k));
    f().set(bits.local);
  });
  f().end(whole);
  set_widened(instr, instr.values[0], bits);
  if (instr.type != Storage::F8E8M0) return;  // the only one none of whose bits are 0
  const Local<V128> dst = lane(instr.values[0]);
  f().get(dst), f().get(lane(instr.c)), f().op("v128.and"), f().set(dst);
}

void Machine::load_one(const Instr& instr) {
  if (instr.type == Storage::I64) return load_i64(instr);
  const Address from = address(instr);
  const auto element = [&] {
    writer_->push(from.base);
    switch (bytes(instr.type)) {
      case 1: f().memory("i32.load8_u", at(from, instr)), f().op("i32x4.splat"); break;
      case 2: f().memory("i32.load16_u", at(from, instr)), f().op("i32x4.splat"); break;
      case 4: f().memory("v128.load32_splat", at(from, instr)); break;
      default: f().memory("v128.load64_splat", at(from, instr)); break;
    }
    return writer_->pop<I32x4>();
  };
  if (!instr.c) return set_widened(instr, instr.dst, element());
  const Value<I32x4> bits = writer_->fresh<I32x4>();
  writer_->assign(bits.local, writer_->constant<I32x4>(0));
  f().get(lane(instr.c)), f().op("v128.any_true");
  const Label present = f().if_();
  writer_->assign(bits.local, element());
  f().end(present);
  set_widened(instr, instr.dst, bits);
  f().get(lane(instr.dst)), f().get(lane(instr.c)), f().op("v128.and"), f().set(lane(instr.dst));
}

void Machine::store_vector(const Address& address, const Instr& instr, Value<I32x4> bits) {
  const int element_bytes = static_cast<int>(bytes(instr.type));
  const int vector_bytes = kernel_.launch.lanes * element_bytes;
  writer_->push(address.base), f().get(bits.local);
  if (vector_bytes == 16) return f().memory("v128.store", at(address, instr));
  if (element_bytes <= 2) f().get(bits.local), f().op("i16x8.narrow_i32x4_u");
  if (element_bytes == 1) f().get(bits.local), f().op("i8x16.narrow_i16x8_u");
  f().memory_lane(store_of(vector_bytes), 0, at(address, instr));
}

// Side by side, without a mask: one store where they fit a vector together.
void Machine::store_two(const Instr& instr) {
  const Address to = address(instr);
  const Value<I32x4> low = narrowed(instr, instr.values[0]), high = narrowed(instr, instr.values[1]);
  if (2 * bytes(instr.type) != bytes(kernel_.compute)) {
    store_vector(to, instr, low);
    const auto vector_bytes = static_cast<std::uint32_t>(kernel_.launch.lanes * bytes(instr.type));
    return store_vector({to.base, to.offset + vector_bytes}, instr, high);
  }
  writer_->push(to.base), f().get(low.local), f().get(high.local);
  if (f64_) f().shuffle({0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23});
  else f().op("i16x8.narrow_i32x4_u");
  f().memory("v128.store", at(to, instr));
}

void Machine::store(const Instr& instr) {
  if (instr.type == Storage::I64) return store_i64(instr);
  if (instr.values.size() == 2) return store_two(instr);
  const Address to = address(instr);
  const Value<I32x4> bits = narrowed(instr, instr.values[0]);
  if (!instr.c) return store_vector(to, instr, bits);
  if (calls_masked(instr, entry_.masked_store)) {
    push_place(to);
    return f().get(bits.local), f().get(lane(instr.c)), f().call(*entry_.masked_store);
  }
  f().get(lane(instr.c)), f().op(f64_ ? PlainOp("i64x2.all_true") : PlainOp("i32x4.all_true"));
  const Label whole = f().if_();
  store_vector(to, instr, bits);
  f().else_(whole);
  for_lanes_of(lane(instr.c), [&](int k) {
    writer_->push(to.base), f().get(bits.local);
    f().memory_lane(store_lane[log2_bytes(instr.type)], place(instr.type, k), at(to, instr, k));
  });
  f().end(whole);
}

void Machine::store_one(const Instr& instr) {
  if (instr.type == Storage::I64) return store_i64(instr);
  const Address to = address(instr);
  const Value<I32x4> bits = narrowed(instr, instr.values[0]);
  std::optional<Label> present;
  if (instr.c) {
    f().get(lane(instr.c)), f().lane("i32x4.extract_lane", 0);
    present = f().if_();
  }
  writer_->push(to.base), f().get(bits.local);
  f().memory_lane(store_lane[log2_bytes(instr.type)], 0, at(to, instr));
  if (present) f().end(*present);
}

}  // namespace trireme::wasm

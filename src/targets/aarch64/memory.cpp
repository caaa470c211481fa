// Loads and stores of every storage type. What a mask leaves out is never touched: it may lie on a page that is not
// there.
#include <bit>

#include "targets/aarch64/machine.hpp"

namespace trireme::aarch64 {

// Offsets are multiples of the unit up to 4095 of it.
Address Machine::reachable(Address at, int unit) {
  if (at.offset >= 0 && at.offset % unit == 0 && at.offset / unit < 4096) return at;
  return {flat(at), 0};
}

Gp Machine::flat(Address at) {
  if (at.offset == 0) return at.base;
  Gp made = as_.new_gp();
  add(made, at.base, at.offset);
  return made;
}

void Machine::move_raw(const Form (&forms)[5], Vec raw, Address at, int size) {
  at = reachable(at, size);
  const int which = std::countr_zero(static_cast<unsigned>(size));
  as_.put(forms[which], {raw, at.base},
          {.shown = at.offset, .bits = static_cast<std::uint32_t>(at.offset >> which) << 10});
}

// Lane by lane; whole vectors come by here too, and are quick.
void Machine::move_masked(bool load, Vec raw, Address at, Type type, Vec mask) {
  const int size = static_cast<int>(bytes(type)), which = std::countr_zero(static_cast<unsigned>(size));
  const Label whole = as_.new_label(), done = as_.new_label();
  const Gp bits = mask_bits(mask), base = flat(at);
  as_.put(form::cmn_1, {bits});
  as_.put(form::b_eq, {}, {.label = whole});
  if (load) as_.put(form::movi_0, {raw});
  for (int lane = 0; lane < lanes(); ++lane) {
    const Label skip = as_.new_label();
    skip_without_lane(bits, lane, skip);
    // The lane's number in Q, S and size, from the highest bit on.
    const std::uint32_t number = static_cast<std::uint32_t>(lane) << which;
    const std::uint32_t fields = (number >> 3 & 1) << 30 | (number >> 2 & 1) << 12 | (number & 3) << 10;
    as_.put(load ? form::load_lane[which] : form::store_lane[which], {raw, flat({base, lane * size})},
            {.shown = lane, .bits = fields});
    as_.bind(skip);
  }
  as_.put(form::b, {}, {.label = done});
  as_.bind(whole);
  move_raw(load ? form::load_v : form::store_v, raw, {base, 0}, raw_bytes(type));
  as_.bind(done);
}

void Machine::load_i64(Vec dst, Address at, Vec mask, int step) {
  const Gp bits = mask.valid() ? mask_bits(mask) : Gp{};
  Vec lanes_so_far = temporary();
  as_.put(form::movi_0, {lanes_so_far});
  for (int lane = 0; lane < lanes(); ++lane) {
    const Label skip = as_.new_label();
    if (bits.valid()) skip_without_lane(bits, lane, skip);
    Gp integer = as_.new_gp();
    Vec number = temporary();
    const Address element = reachable({at.base, at.offset + step * 8 * lane}, 8);
    as_.put(form::ldr_x, {integer, element.base},
            {.shown = element.offset, .bits = static_cast<std::uint32_t>(element.offset / 8) << 10});
    as_.put(wide() ? form::scvtf_d_x : form::scvtf_s_x, {number, integer});
    to_lane(lanes_so_far, lane, number);
    as_.bind(skip);
  }
  move(dst, lanes_so_far);
}

// The conversion rounds to even, ends at the largest and least integers, and makes 0 of NaN.
void Machine::store_i64(Address at, Vec value, Vec mask, int step) {
  const Gp bits = mask.valid() ? mask_bits(mask) : Gp{};
  for (int lane = 0; lane < lanes(); ++lane) {
    const Label skip = as_.new_label();
    if (bits.valid()) skip_without_lane(bits, lane, skip);
    Gp integer = as_.new_gp();
    as_.put(wide() ? form::fcvtns_x_d : form::fcvtns_x_s, {integer, from_lane(value, lane)});
    const Address element = reachable({at.base, at.offset + step * 8 * lane}, 8);
    as_.put(form::str_x, {integer, element.base},
            {.shown = element.offset, .bits = static_cast<std::uint32_t>(element.offset / 8) << 10});
    as_.bind(skip);
  }
}

void Machine::load(Vec dst, Address at, Type type, Vec mask) {
  if (type == Type::I64) return load_i64(dst, at, mask, 1);
  const Vec raw = type == compute_ ? dst : temporary();
  if (mask.valid()) move_masked(true, raw, at, type, mask);
  else move_raw(form::load_v, raw, at, raw_bytes(type));
  if (type != compute_) widen(dst, raw, type);
  if (mask.valid() && type == Type::F8E8M0) as_.put(form::and_, {dst, dst, mask});  // no bits of it are 0
}

void Machine::load_one(Vec dst, Address at, Type type, Vec mask) {
  const Label none = as_.new_label();
  Vec out = mask.valid() ? temporary() : dst;
  if (mask.valid()) {
    as_.put(form::movi_0, {out});
    as_.put(form::cbz, {mask_bits(mask)}, {.label = none});
  }
  if (type == Type::I64) {
    Gp integer = as_.new_gp();
    index_load(integer, at, type, {});
    from_index(out, integer);
  } else {
    Vec raw = temporary();
    move_raw(form::load_v, raw, at, static_cast<int>(bytes(type)));
    if (type != compute_) {
      Vec lane = temporary();
      widen(lane, raw, type);
      raw = lane;
    }
    as_.put(wide() ? form::dup_d : form::dup_s, {out, raw});
  }
  if (!mask.valid()) return;
  as_.put(form::and_, {out, out, mask});
  as_.bind(none);
  move(dst, out);
}

void Machine::index_load(Gp dst, Address at, Type type, Vec mask) {
  const Form& how = type == Type::I64 ? form::ldr_x : type == Type::U8 ? form::ldrb : form::ldrsw;
  const int size = static_cast<int>(bytes(type));
  auto take = [&](Gp to) {
    const Address from = reachable(at, size);
    as_.put(how, {to, from.base}, {.shown = from.offset, .bits = static_cast<std::uint32_t>(from.offset / size) << 10});
  };
  if (!mask.valid()) return take(dst);
  const Label none = as_.new_label();
  Gp value = as_.new_gp();  // dst may be part of the address
  const Gp bits = mask_bits(mask);
  set(value, 0);
  skip_without_lane(bits, 0, none);
  take(value);
  as_.bind(none);
  as_.put(form::mov_x, {dst, value});
}

void Machine::store(Address at, Vec value, Type type, Vec mask, bool exact) {
  if (type == Type::I64) return store_i64(at, value, mask, 1);
  const Vec raw = narrow(value, type, exact);
  if (mask.valid()) move_masked(false, raw, at, type, mask);
  else move_raw(form::store_v, raw, at, raw_bytes(type));
}

void Machine::store_two(Address at, Vec low, Vec high, Type type, bool exact) {
  const int size = raw_bytes(type);
  if (2 * size == register_bytes) return move_raw(form::store_v, narrow_two(low, high, type, exact), at, 2 * size);
  store(at, low, type, {}, exact);
  store({at.base, at.offset + size}, high, type, {}, exact);
}

void Machine::store_one(Address at, Vec value, Type type, Vec mask) {
  const Label skip = as_.new_label();
  const Vec raw = type == Type::I64 ? value : narrow(value, type);
  if (mask.valid()) skip_without_lane(mask_bits(mask), 0, skip);
  if (type == Type::I64) {
    Gp integer = as_.new_gp();
    as_.put(wide() ? form::fcvtns_x_d : form::fcvtns_x_s, {integer, value});
    const Address to = reachable(at, 8);
    as_.put(form::str_x, {integer, to.base},
            {.shown = to.offset, .bits = static_cast<std::uint32_t>(to.offset / 8) << 10});
  } else {
    move_raw(form::store_v, raw, at, static_cast<int>(bytes(type)));
  }
  if (mask.valid()) as_.bind(skip);
}

// Where the vector that ends with the element at `at` begins.
Address Machine::first_of(Address at, Type type) const {
  return {at.base, at.offset + static_cast<std::int64_t>(bytes(type)) - raw_bytes(type)};
}

void Machine::load_backwards(Vec dst, Address at, Type type, Vec mask) {
  if (type == Type::I64) return load_i64(dst, at, mask, -1);
  Vec straight = temporary();
  load(straight, first_of(at, type), type, turned(mask));
  turn(dst, straight);
}

void Machine::store_backwards(Address at, Vec value, Type type, Vec mask, bool exact) {
  if (type == Type::I64) return store_i64(at, value, mask, -1);
  const Vec other = turned(value);
  store(first_of(at, type), other, type, turned(mask), exact);
}

void Machine::prefetch(Address at) { as_.put(form::prfm, {flat(at)}); }

}  // namespace trireme::aarch64

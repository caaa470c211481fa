// Philox, one element a lane, in lanes of 32 bits whatever the compute type.
#include "ir/philox.hpp"
#include "targets/wasm/machine.hpp"
#include "targets/wasm/values.hpp"

namespace trireme::wasm {

void Machine::random(const Instr& instr) {
  const auto half = [&](Reg index, bool high) {
    f().get(integer(index));
    if (high) f().i64_const(32), f().op("i64.shr_u");
    f().op("i32.wrap_i64"), f().op("i32x4.splat");
    return writer_->pop<I32x4>();
  };
  f().get(integer(instr.a)), f().op("i32.wrap_i64"), f().i32_const(static_cast<std::int32_t>(instr.imm));
  f().op("i32.add"), f().op("i32x4.splat");
  if (instr.count != 1) f().v128_const(std::array<std::uint32_t, 4>{0, 1, 2, 3}), f().op("i32x4.add");
  const auto columns = writer_->pop<I32x4>();
  const auto exclusive = [&](Value<I32x4> a, Value<I32x4> b) { return writer_->apply<I32x4>("v128.xor", a, b); };
  const auto product_high = [&](Value<I32x4> a, Value<I32x4> b) {
    const auto low = writer_->apply<I32x4>("i64x2.extmul_low_i32x4_u", a, b);
    const auto high = writer_->apply<I32x4>("i64x2.extmul_high_i32x4_u", a, b);
    return shuffle(low, high, {4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31});
  };
  Value<I32x4> c[4] = {columns >> 2, half(instr.b, false), half(instr.b, true),
                       writer_->constant<I32x4>(static_cast<std::uint32_t>(instr.imm2))};
  Value<I32x4> key[2] = {half(instr.d, false), half(instr.d, true)};
  const Value<I32x4> m[2] = {writer_->constant<I32x4>(philox::multipliers[0]),
                             writer_->constant<I32x4>(philox::multipliers[1])};
  for (int round = 0; round < philox::rounds; ++round) {
    const auto high_a = product_high(c[0], m[0]), high_b = product_high(c[2], m[1]);
    const auto low_a = writer_->apply<I32x4>("i32x4.mul", c[0], m[0]);
    const auto low_b = writer_->apply<I32x4>("i32x4.mul", c[2], m[1]);
    const auto first = exclusive(exclusive(high_b, c[1]), key[0]);
    const auto third = exclusive(exclusive(high_a, c[3]), key[1]);
    c[0] = first, c[1] = low_b, c[2] = third, c[3] = low_a;
    if (round + 1 == philox::rounds) break;
    for (int k = 0; k < 2; ++k) key[k] = key[k] + philox::key_steps[k];
  }
  // Word j % 4 of the block.
  const auto word = columns & 3u;
  auto bits = c[3];
  for (std::uint32_t k = 3; k-- > 0;) bits = choose(equal(word, k), c[k], bits);
  const auto number = as<F32x4>((bits >> 9) | 0x3f800000u) - 1.0f;
  if (f64_) writer_->assign(lane(instr.dst), writer_->apply<F64x2>("f64x2.promote_low_f32x4", number));
  else writer_->assign(lane(instr.dst), number);
}

}  // namespace trireme::wasm

// Philox: a thread draws the words of four columns at once where it has all of them.
#include "ir/philox.hpp"
#include "targets/ptx/machine.hpp"

namespace trireme::ptx {

template <typename R>
std::array<U32, 4> Machine<R>::draw(U32 block, const Instr& instr) {
  auto low = [&](U64 value) { return k_.template cvt_u<U32>(value); };
  auto high = [&](U64 value) { return k_.template cvt_u<U32>(k_.shr_u(value, 32)); };
  const U64 row = index(instr.b), seed = index(instr.d);
  const U32 row_low = low(row), row_high = high(row), seed_low = low(seed), seed_high = high(seed);
  std::array<U32, 4> c = {block, row_low, row_high, k_.template constant<U32>(static_cast<std::uint32_t>(instr.imm2))};
  std::array<U32, 2> key = {seed_low, seed_high};
  for (int round = 0; round < philox::rounds; ++round) {
    const U32 high_a = k_.mul_hi_u(c[0], philox::multipliers[0]), low_a = k_.mul(c[0], philox::multipliers[0]);
    const U32 high_b = k_.mul_hi_u(c[2], philox::multipliers[1]), low_b = k_.mul(c[2], philox::multipliers[1]);
    const U32 first = k_.xor_(k_.xor_(high_b, c[1]), key[0]), third = k_.xor_(k_.xor_(high_a, c[3]), key[1]);
    c = {first, low_b, third, low_a};
    if (round + 1 == philox::rounds) break;
    for (int k = 0; k < 2; ++k) key[k] = k_.add(key[k], philox::key_steps[k]);
  }
  return c;
}

template <typename R>
void Machine<R>::random(const Instr& instr) {
  U32 bits;
  if (instr.count == 4) {
    const std::int64_t offset = instr.imm & ~std::int64_t{3};
    const bool again = drawn_ && drawn_->column == instr.a && drawn_->row == instr.b && drawn_->seed == instr.d &&
                       drawn_->offset == offset && drawn_->stream == instr.imm2;
    if (!again) {
      const U32 first = k_.template cvt_u<U32>(k_.add(index(instr.a), offset));
      const U32 block = k_.shr_u(first, 2);
      drawn_ = {instr.a, instr.b, instr.d, offset, instr.imm2, draw(block, instr)};
    }
    bits = drawn_->words[instr.imm & 3];
  } else {
    const U32 column = k_.template cvt_u<U32>(instr.imm ? k_.add(index(instr.a), instr.imm) : index(instr.a));
    const U32 block = k_.shr_u(column, 2), word = k_.and_(column, 3);
    const std::array<U32, 4> words = draw(block, instr);
    bits = words[3];
    for (std::uint32_t k = 3; k-- > 0;) bits = k_.selp(words[k], bits, k_.setp(IntCompare::Eq, word, k));
  }
  const F32 above_one = k_.template bitcast<F32>(k_.or_(k_.shr_u(bits, 9), 0x3F800000u));
  from_f32(k_.add(above_one, -1.0f), lane(instr.dst));
}

template std::array<U32, 4> Machine<F32>::draw(U32, const Instr&);
template std::array<U32, 4> Machine<F64>::draw(U32, const Instr&);
template void Machine<F32>::random(const Instr&);
template void Machine<F64>::random(const Instr&);

}  // namespace trireme::ptx

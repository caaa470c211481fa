// Philox, one element a lane, in lanes of 32 bits whatever the compute type.
#include "ir/philox.hpp"
#include "targets/aarch64/machine.hpp"

namespace trireme::aarch64 {

void Machine::random(Vec dst, Gp column, std::int64_t more, Gp row, Gp seed, std::uint32_t stream, bool all_the_same) {
  auto half = [&](Gp value, bool high) {
    Vec lanes = temporary();
    Gp upper = value;
    if (high) index(Do::IndexShiftRight, upper = as_.new_gp(), value, {}, 32);
    as_.put(form::dup_w, {lanes, upper});
    return lanes;
  };
  auto lanewise = [&](const Form& form, Vec a, Vec b) {
    Vec made = temporary();
    as_.put(form, {made, a, b});
    return made;
  };
  auto shifted = [&](Vec a, int by) {
    Vec made = temporary();
    as_.put(form::ushr_4s, {made, a}, {.shown = by, .bits = static_cast<std::uint32_t>(64 - by) << 16});
    return made;
  };
  auto product_high = [&](Vec a, Vec b) {
    const Vec low = lanewise(form::umull_2d, a, b), high = lanewise(form::umull2_2d, a, b);
    return lanewise(form::uzp2_4s, low, high);
  };
  Gp first = as_.new_gp();
  add(first, column, more);
  Vec columns = half(first, false);
  if (!all_the_same) columns = lanewise(form::add_4s, columns, as_.constant({0, 1, 2, 3}));
  const Vec row_low = half(row, false), row_high = half(row, true), key_low = half(seed, false),
            key_high = half(seed, true), multipliers[2] = {all(philox::multipliers[0]), all(philox::multipliers[1])};
  Vec c[4] = {shifted(columns, 2), row_low, row_high, all(stream)}, key[2] = {key_low, key_high};
  for (int round = 0; round < philox::rounds; ++round) {
    const Vec high_a = product_high(c[0], multipliers[0]), high_b = product_high(c[2], multipliers[1]);
    const Vec low_a = lanewise(form::mul_4s, c[0], multipliers[0]),
              low_b = lanewise(form::mul_4s, c[2], multipliers[1]);
    const Vec even = lanewise(form::eor, high_b, c[1]), odd = lanewise(form::eor, high_a, c[3]);
    c[0] = lanewise(form::eor, even, key[0]);
    c[1] = low_b;
    c[2] = lanewise(form::eor, odd, key[1]);
    c[3] = low_a;
    if (round + 1 == philox::rounds) break;
    for (int k = 0; k < 2; ++k) key[k] = lanewise(form::add_4s, key[k], all(philox::key_steps[k]));
  }
  // Word j % 4 of the block.
  const Vec word = lanewise(form::and_, columns, all(3u));
  Vec bits = temporary();
  move(bits, c[3]);
  for (std::uint32_t k = 3; k-- > 0;) {
    Vec is_it = temporary();
    if (k == 0) as_.put(form::cmeq_0_4s, {is_it, word});
    else as_.put(form::cmeq_4s, {is_it, word, all(k)});
    as_.put(form::bit, {bits, c[k], is_it});
  }
  const Vec mantissa = shifted(bits, 9), from_one = lanewise(form::orr, mantissa, all(0x3F800000u));
  if (!wide()) return as_.put(form::fadd_4s, {dst, from_one, all(0xBF800000u)});
  const Vec single = lanewise(form::fadd_4s, from_one, all(0xBF800000u));
  as_.put(form::fcvtl_2d, {dst, single});
}

}  // namespace trireme::aarch64

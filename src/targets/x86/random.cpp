// Philox, one element a lane, in lanes of 32 bits whatever the compute type.
#include "ir/philox.hpp"
#include "targets/x86/machine.hpp"

namespace trireme::x86 {

void Machine::random(const Vec& dst, const Gp& column, std::int32_t more, const Gp& row, const Gp& seed,
                     std::uint32_t stream, bool all_the_same) {
  auto broadcast = [&](const Gp& value) {
    Vec all = temporary_raw32();
    if (avx512()) {
      cc_.vpbroadcastd(all, value.r32());
    } else {
      cc_.vmovd(all.xmm(), value.r32());
      cc_.vpbroadcastd(all, all.xmm());
    }
    return all;
  };
  auto low = [&](const Gp& value) {
    Gp half = new_gp();
    cc_.mov(half, value);
    return broadcast(half);
  };
  auto high = [&](const Gp& value) {
    Gp half = new_gp();
    cc_.mov(half, value);
    cc_.shr(half, 32);
    return broadcast(half);
  };
  Gp first = new_gp();
  cc_.lea(first, asmjit::x86::ptr(column, more));
  Vec columns = broadcast(first);
  if (!all_the_same) cc_.vpaddd(columns, columns, iota(4, lanes()));

  auto number = [&](std::uint32_t bits) {
    Gp value = new_gp();
    cc_.mov(value.r32(), bits);
    return broadcast(value);
  };
  const Vec multipliers[2] = {number(philox::multipliers[0]), number(philox::multipliers[1])};
  Vec c[4] = {temporary_raw32(), low(row), high(row), number(stream)};
  cc_.vpsrld(c[0], columns, 2);
  Vec key[2] = {low(seed), high(seed)};
  // The upper halves of the products of all lanes: those of even lanes, then those of odd ones, which lie in place.
  auto product_high = [&](const Vec& a, const Vec& b) {
    Vec even = temporary_raw32(), odd = temporary_raw32();
    cc_.vpmuludq(even, a, b);
    cc_.vpsrlq(odd, a, 32);
    cc_.vpmuludq(odd, odd, b);
    cc_.vpsrlq(even, even, 32);
    cc_.vpsrlq(odd, odd, 32);
    cc_.vpsllq(odd, odd, 32);
    cc_.vorps(even, even, odd);
    return even;
  };
  for (int round = 0; round < philox::rounds; ++round) {
    Vec high_a = product_high(c[0], multipliers[0]), high_b = product_high(c[2], multipliers[1]);
    Vec low_a = temporary_raw32(), low_b = temporary_raw32();
    cc_.vpmulld(low_a, c[0], multipliers[0]);
    cc_.vpmulld(low_b, c[2], multipliers[1]);
    cc_.vxorps(high_b, high_b, c[1]);
    cc_.vxorps(high_b, high_b, key[0]);
    cc_.vxorps(high_a, high_a, c[3]);
    cc_.vxorps(high_a, high_a, key[1]);
    c[0] = high_b, c[1] = low_b, c[2] = high_a, c[3] = low_a;
    if (round + 1 == philox::rounds) break;
    for (int k = 0; k < 2; ++k) cc_.vpaddd(key[k], key[k], all32(philox::key_steps[k], key[k]));
  }
  // Word j % 4 of the block: all ones where k is it.
  Vec bits = temporary_raw32(), which = temporary_raw32();
  cc_.vxorps(bits, bits, bits);
  cc_.vandps(columns, columns, all32(3u, columns));
  for (std::uint32_t k = 0; k < 4; ++k) {
    cc_.vxorps(which, columns, all32(k, columns));
    cc_.vpaddd(which, which, all32(~0u, columns));
    cc_.vpsrad(which, which, 31);
    cc_.vandps(which, which, c[k]);
    cc_.vorps(bits, bits, which);
  }
  cc_.vpsrld(bits, bits, 9);
  cc_.vorps(bits, bits, all32(0x3F800000u, bits));
  cc_.vsubps(bits, bits, all32(1.0f, bits));
  if (wide()) cc_.vcvtps2pd(dst, bits);
  else move(dst, bits);
}

}  // namespace trireme::x86

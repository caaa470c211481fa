// f32 goes through f64, where its products are exact; f64 through pairs of f64, whose sum is exact. Functions, because
// written in place the code grows sevenfold and runs no faster (softmax f32 in node: 21 ns an element either way).
#include "targets/wasm/fma.hpp"

#include "targets/wasm/one_lane.hpp"
#include "targets/wasm/through_f64.hpp"

namespace trireme::wasm {
namespace {

struct Pair {
  Value<F64x2> value, lost;  // value is the nearest f64 to value + lost
};

Pair two_sum(Value<F64x2> a, Value<F64x2> b) {
  const auto sum = a + b;
  const auto part = sum - a;
  const auto a_lost = a - (sum - part);
  return {sum, (b - part) + a_lost};
}

// Veltkamp's halves and Dekker's product.
Pair split(Value<F64x2> v) {
  const auto large = v * 0x1.0000002p27;
  const auto high = large - (large - v);
  return {high, v - high};
}
Pair two_product(Value<F64x2> a, Value<F64x2> b) {
  const auto product = a * b;
  const Pair left = split(a), right = split(b);
  const auto middle = left.value * right.lost, other = left.lost * right.value, small = left.lost * right.lost;
  return {product, (left.value * right.value - product) + middle + other + small};
}

// The pair rounded to odd: cut towards zero, and the last bit set where that lost something. Rounded again, to fewer
// bits by two or more, it gives what rounding the pair once would have given.
Value<F64x2> to_odd(const Pair& pair) {
  const auto inexact = more(abs(pair.lost), 0.0);  // false for infinities and NaN, where `lost` is NaN
  const auto opposite = as<I64x2>(pair.lost ^ pair.value) & inexact;
  const auto cut = as<I64x2>(pair.value) - (opposite >> 63);
  const auto odd = inexact >> 63;
  return as<F64x2>(cut | odd);
}

Result<Body> write_fma_f32x4() {
  return write_twice("fma_f32x4", Type::V128, [](Function& f, Constants& constants) {
    const auto a_local = f.parameter<V128>("a"), b_local = f.parameter<V128>("b"), c_local = f.parameter<V128>("c");
    Writer writer(f, constants);
    const Halves a = halves(writer.value<F32x4>(a_local)), b = halves(writer.value<F32x4>(b_local)),
                 c = halves(writer.value<F32x4>(c_local));
    const auto low = a.low * b.low, high = a.high * b.high;
    const auto low_sum = low + c.low, high_sum = high + c.high;
    const auto wrong = may_be_wrong(low_sum, high_sum, true);
    writer.push(writer.apply<I32>("v128.any_true", wrong));
    const Label rare = writer.raw().if_();
    const auto low_odd = to_odd(two_sum(low, c.low)), high_odd = to_odd(two_sum(high, c.high));
    writer.push(joined({rounded(low_odd), rounded(high_odd)})), writer.raw().ret();
    writer.raw().end(rare);
    writer.push(joined({rounded(low_sum), rounded(high_sum)}));
  });
}

// Of one lane; the upper one of each pair is not looked at.
Result<Body> write_fma_f32() {
  TRIREME_TRY(body, write_twice("fma_f32", Type::V128, [](Function& f, Constants& constants) {
                const auto a_local = f.parameter<V128>("a"), b_local = f.parameter<V128>("b"),
                           c_local = f.parameter<V128>("c");
                Writer writer(f, constants);
                const auto a = promoted(writer.value<F32x4>(a_local)), b = promoted(writer.value<F32x4>(b_local));
                const auto c = promoted(writer.value<F32x4>(c_local)), product = a * b, sum = product + c;
                const auto wrong = may_be_wrong(sum, sum, true);
                writer.push(writer.apply<I32>("v128.any_true", wrong));
                const Label rare = writer.raw().if_();
                writer.push(rounded(to_odd(two_sum(product, c)))), writer.raw().ret();
                writer.raw().end(rare);
                writer.push(rounded(sum));
              }));
  return one_lane(body, Type::F32);
}

// Boldo and Melquiond, Emulation of FMA and correctly rounded sums (2008): with a * b = u + u', c + u' = t + t' and
// u + t = v + v', the nearest to v + odd(t' + v') is the answer, unless something overflows or u' underflows.
Result<Body> write_fma_f64x2(const Callee& fma_f64) {
  return write_twice("fma_f64x2", Type::V128, [&](Function& f, Constants& constants) {
    const auto a_local = f.parameter<V128>("a"), b_local = f.parameter<V128>("b"), c_local = f.parameter<V128>("c");
    Writer writer(f, constants);
    const auto a = writer.value<F64x2>(a_local), b = writer.value<F64x2>(b_local), c = writer.value<F64x2>(c_local);
    const Pair u = two_product(a, b);
    const Pair t = two_sum(c, u.lost);
    const Pair v = two_sum(u.value, t.value);
    const auto result = v.value + to_odd(two_sum(t.lost, v.lost));

    const auto size = abs(u.value);
    auto safe = less(size, 0x1p1000);
    const auto not_tiny = more(size, 0x1p-900);
    safe = safe & not_tiny;
    for (Value<F64x2> operand : {a, b, c}) {
      const auto small = less(abs(operand), 0x1p990);
      safe = safe & small;
    }
    const auto all_safe = writer.apply<I32>("i64x2.all_true", safe);
    writer.push(all_safe);
    const Label done = writer.raw().if_();
    writer.push(result), writer.raw().ret();
    writer.raw().end(done);
    const auto one_lane = [&](std::uint8_t lane) {
      for (Value<F64x2> operand : {a, b, c}) writer.push(operand), writer.raw().lane("f64x2.extract_lane", lane);
      writer.raw().call(fma_f64);
    };
    one_lane(0), writer.raw().op("f64x2.splat");
    one_lane(1), writer.raw().lane("f64x2.replace_lane", 1);
  });
}

}  // namespace

Result<Callee> add_fma(Module& module, trireme::Type compute, bool scalar) {
  if (compute == trireme::Type::F32) {
    TRIREME_TRY(body, scalar ? write_fma_f32() : write_fma_f32x4());
    return module.add(std::move(body));
  }
  TRIREME_TRY(lane, write_fma_f64());
  if (scalar) return module.add(std::move(lane));
  TRIREME_TRY(body, write_fma_f64x2(module.add(std::move(lane))));
  return module.add(std::move(body));
}

}  // namespace trireme::wasm

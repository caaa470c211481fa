// fma of f64 in integers 128 bits wide: right for all operands, and slow.
#include "targets/wasm/fma.hpp"

namespace trireme::wasm {
namespace {

constexpr std::uint64_t infinity = 0x7ff0000000000000;

Value<I64> to_i64(Value<I32> condition) { return condition.writer->apply<I64>("i64.extend_i32_u", condition); }
Value<I64> leading_zeros(Value<I64> v) { return v.writer->apply<I64>("i64.clz", v); }
Value<I64> nonzero(Value<I64> v) { return to_i64(differ(v, 0)); }
Value<I64> bits_of(Value<F64> v) { return v.writer->apply<I64>("i64.reinterpret_f64", v); }

// A magnitude of 126 bits, the highest of them set, which stands for 2^exponent.
struct Wide {
  Value<I64> high, low, exponent, sign;
};

Wide choose_wide(Value<I32> condition, const Wide& yes, const Wide& no) {
  const auto high = choose(condition, yes.high, no.high), low = choose(condition, yes.low, no.low);
  const auto exponent = choose(condition, yes.exponent, no.exponent), sign = choose(condition, yes.sign, no.sign);
  return {high, low, exponent, sign};
}

// A finite number other than 0 is mantissa * 2^(exponent - 1075), the mantissa from 2^52 up to 2^53.
struct Parts {
  Value<I64> mantissa, exponent, sign;
};
Parts take_apart(Value<F64> v) {
  const auto bits = bits_of(v);
  const auto fraction = bits & 0x000fffffffffffffu;
  const auto field = (bits >> 52) & 0x7ffu;
  const auto is_normal = nonzero(field);
  const auto mantissa = fraction | (is_normal << 52);
  const auto shift = leading_zeros(mantissa) - 11;  // 0 for normal numbers
  const auto exponent = ((field + 1) - is_normal) - shift;
  return {mantissa << shift, exponent, bits >> 63};
}

Wide exact_product(const Parts& x, const Parts& y) {
  constexpr std::uint64_t half = 0xffffffff;
  const auto x_low = x.mantissa & half, x_high = x.mantissa >> 32;
  const auto y_low = y.mantissa & half, y_high = y.mantissa >> 32;
  const auto low_carry = (x_low * y_low) >> 32;
  const auto cross = x_high * y_low + low_carry;
  const auto cross_low = cross & half, cross_high = cross >> 32;
  const auto other = x_low * y_high + cross_low;
  const auto other_high = other >> 32;
  const auto high = x_high * y_high + cross_high + other_high;
  const auto low = x.mantissa * y.mantissa;
  const auto shift = leading_zeros(high) - 2;  // 20 or 21
  const auto from_low = low >> (shift ^ 63) >> 1;
  const auto exponent = (x.exponent + y.exponent) - (2150 - 125);
  return {(high << shift) | from_low, low << shift, exponent - shift, x.sign ^ y.sign};
}

// Shifted right by `count`; the last bit is set where ones were lost.
Wide shift_down(const Wide& v, Value<I64> count) {
  Writer& writer = *count.writer;
  const auto zero = writer.constant<I64>(0);
  const auto is_far = more(count, 63);
  const auto middle = choose(is_far, v.high, v.low), high = choose(is_far, zero, v.high);
  const auto lost_far = choose(is_far, v.low, zero);
  const auto shift = choose(more(count, 127), writer.constant<I64>(63), count) & 63;
  const auto back = shift ^ 63;  // a shift by back and 1 more is one by 64 - shift
  const auto from_high = high << 1 << back;
  const auto lost = (middle << 1 << back) | lost_far;
  const auto sticky = nonzero(lost);
  return {high >> shift, (middle >> shift) | from_high | sticky, v.exponent, v.sign};
}

// The magnitude of a + b, where a is not the smaller one; its leading bit may be lower.
Wide sum(const Wide& a, const Wide& b) {
  const auto negate = a.sign ^ b.sign;
  const auto ones = a.sign.writer->constant<I64>(0) - negate;
  const auto b_low = (b.low ^ ones) + negate;
  const auto negate_carry = to_i64(less_unsigned(b_low, negate));
  const auto low = a.low + b_low;
  const auto carry = to_i64(less_unsigned(low, b_low));
  const auto b_high = (b.high ^ ones) + negate_carry;
  return {a.high + b_high + carry, low, a.exponent, a.sign};
}

// The nearest f64 to a magnitude above 0.
Value<F64> rounded(const Wide& v) {
  Writer& writer = *v.high.writer;
  const auto zero = writer.constant<I64>(0);
  // The leading bit into bit 62 of `top`: first by 63 places where the high word is empty.
  const auto is_low = equal(v.high, 0);
  const auto low_half = v.low >> 1, low_bit = v.low << 63;
  const auto high = choose(is_low, low_half, v.high), low = choose(is_low, low_bit, v.low);
  const auto jump = choose(is_low, writer.constant<I64>(63), zero);
  const auto shift = leading_zeros(high) - 1;
  const auto from_low = low >> 1 >> (shift ^ 63);
  const auto sticky = nonzero(low << shift);
  const auto top = (high << shift) | from_low | sticky;
  const auto biased = ((v.exponent + (1023 + 1)) - jump) - shift;
  // Subnormal results lose more bits.
  const auto missing = writer.constant<I64>(1) - biased;
  const auto below = choose(more(missing, 0), missing, zero);
  const auto extra = choose(more(below, 63), writer.constant<I64>(63), below);
  const auto lost = nonzero(top << 1 << (extra ^ 63));
  const auto kept = (top >> extra) | lost;
  const auto odd = (kept >> 10) & 1;
  const auto mantissa = (kept + 0x1ff + odd) >> 10;
  // The mantissa's leading bit, where there is one, counts as 1 in the exponent.
  const auto finite = ((below - missing) << 52) + mantissa;
  const auto magnitude = choose(more_unsigned(finite, infinity), writer.constant<I64>(infinity), finite);
  return writer.apply<F64>("f64.reinterpret_i64", magnitude | (v.sign << 63));
}

// Zero, infinity or NaN.
Value<I32> is_special(Value<F64> v) {
  const auto magnitude = bits_of(v) & 0x7fffffffffffffffu;
  return more_unsigned(magnitude - 1, infinity - 2);
}

void return_if(Value<I32> condition, auto&& value) {
  Writer& writer = *condition.writer;
  writer.push(condition);
  const Label taken = writer.raw().if_();
  writer.push(value());
  writer.raw().ret();
  writer.raw().end(taken);
}

}  // namespace

Result<Body> write_fma_f64() {
  return write_twice("fma_f64", Type::F64, [](Function& f, Constants& constants) {
    const auto x_local = f.parameter<F64>("x"), y_local = f.parameter<F64>("y"), z_local = f.parameter<F64>("z");
    Writer writer(f, constants);
    const auto x = writer.value<F64>(x_local), y = writer.value<F64>(y_local), z = writer.value<F64>(z_local);
    const auto x_special = is_special(x), y_special = is_special(y);
    return_if(x_special | y_special, [&] { return x * y + z; });
    return_if(equal(z, 0.0), [&] { return x * y; });  // with its own sign where it underflows
    return_if(is_special(z), [&] { return z; });
    const Parts x_parts = take_apart(x), y_parts = take_apart(y), z_parts = take_apart(z);
    const Wide product = exact_product(x_parts, y_parts);
    const Wide added = {z_parts.mantissa << 9, writer.constant<I64>(0), z_parts.exponent - 1023, z_parts.sign};
    const auto same = equal(added.exponent, product.exponent);
    const auto wider = more_unsigned(added.high, product.high) & same;
    const auto swap = more(added.exponent, product.exponent) | wider;
    const Wide larger = choose_wide(swap, added, product), smaller = choose_wide(swap, product, added);
    const Wide total = sum(larger, shift_down(smaller, larger.exponent - smaller.exponent));
    return_if(equal(total.high | total.low, 0), [&] { return writer.constant<F64>(0); });
    writer.push(rounded(total));
  });
}

}  // namespace trireme::wasm

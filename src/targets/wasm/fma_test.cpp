// fma by emulation and by relaxed_madd, against std::fma.
#include <random>

#include "devices/wasm/test_cases.hpp"

namespace trireme::wasm {
namespace {

template <typename T>
struct Triples {
  std::vector<T> a, b, c;
  void add(T x, T y, T z) { a.push_back(x), b.push_back(y), c.push_back(z); }
};

template <typename T>
class Samples {
 public:
  explicit Samples(int count) : count_(count) {}

  Triples<T> make() {
    for (T x : specials<T>)
      for (T y : specials<T>)
        for (T z : specials<T>) result_.add(x, y, z);
    for (int k = 0; k < count_; ++k) {
      anything();
      cancelling();
      halfway();
      at(Limits::min_exponent - digits, Limits::min_exponent + 2);               // subnormal results, and just above
      at(Limits::min_exponent - 2 * digits, Limits::min_exponent - digits + 2);  // about half the smallest
      at(Limits::max_exponent - 3, Limits::max_exponent + 1);                    // overflow
      at(-3, 3);
    }
    return std::move(result_);
  }

 private:
  using Limits = std::numeric_limits<T>;
  using Bits = Word<T>;
  static constexpr int digits = Limits::digits;

  int between(int low, int high) { return low + static_cast<int>(random_() % static_cast<unsigned>(high - low + 1)); }
  T sign() { return random_() % 2 ? 1 : -1; }
  // Mantissas of few bits, of all bits, and those next to a power of two.
  T mantissa() {
    const T ulp = Limits::epsilon();
    switch (random_() % 4) {
      case 0: return 1 + std::ldexp(T(random_() % 64), -6);
      case 1: return 1 + ulp * T(random_() % 4);
      case 2: return 2 - ulp * T(1 + random_() % 4);
      default: return 1 + ulp * T(random_() % (Bits{1} << (digits - 1)));
    }
  }
  T near(int exponent) { return sign() * std::ldexp(mantissa(), exponent); }

  void anything() {
    const auto bits = [&] { return std::bit_cast<T>(static_cast<Bits>(random_())); };
    const T x = bits(), y = bits(), z = bits();
    result_.add(x, y, z);
  }
  // The sum loses most of its bits: c is the product, a few units off.
  void cancelling() {
    const T x = near(between(-30, 30)), y = near(between(-30, 30));
    const Bits product = std::bit_cast<Bits>(-x * y);
    result_.add(x, y, std::bit_cast<T>(static_cast<Bits>(product + random_() % 5 - 2)));
  }
  // c has all bits, and the product is half a unit of its last place, or next to that.
  void halfway() {
    const int exponent = between(Limits::min_exponent - 2, Limits::max_exponent - 2);
    halfway(exponent);
    halfway(between(Limits::min_exponent - 4, Limits::min_exponent + 1));  // about subnormal
  }
  void halfway(int exponent) {
    const int half = std::max(exponent, Limits::min_exponent - 1) - digits, split = half / 2 + between(-9, 9);
    const T x = sign() * std::ldexp(T(1), split), z = near(exponent);
    T y = std::ldexp(T(1), half - split);
    if (random_() % 2) y = std::nextafter(y, sign() * Limits::max());
    result_.add(x, y, z);
    // A product of twice the bits, below or above by a little: (1 + k)(1 - k), (1 + k)^2 (1 - 2 k), about.
    const T k = Limits::epsilon() * T(random_() % 8), u = 1 + k;
    result_.add(std::ldexp(u, split), sign() * std::ldexp(random_() % 2 ? 2 - u : 1 / u, half - split), z);
  }
  // The product and c where the exponent is in this range.
  void at(int low, int high) {
    const int whole = between(low, high), split = between(-20, 20) + whole / 2;
    result_.add(near(split), near(whole - split), near(between(low, high)));
  }

  int count_;
  std::mt19937_64 random_{digits};
  Triples<T> result_;
};

template <typename T>
Case fma_case(bool relaxed, int count, bool scalar = false) {
  const Triples<T> triples = Samples<T>(count).make();
  return {
      .name = std::string(name(storage_of<T>)) + (relaxed  ? " relaxed"
                                                  : scalar ? " scalar"
                                                           : " emulated"),
      .kernels = map_kernel(storage_of<T>, {storage_of<T>, storage_of<T>, storage_of<T>}, storage_of<T>,
                            apply(Primitive::Fma), false, scalar),
      .buffers = {bytes_of(triples.a), bytes_of(triples.b), bytes_of(triples.c), Bytes(triples.a.size() * sizeof(T))},
      .columns = static_cast<std::int64_t>(triples.a.size()),
      .relaxed = relaxed,
      .scalar = scalar,
      .check = [=](const Case& done) {
        std::vector<T> want;
        for (std::size_t k = 0; k < triples.a.size(); ++k)
          want.push_back(std::fma(triples.a[k], triples.b[k], triples.c[k]));
        expect_same<T>(values_of<T>(done.buffers[3]), want, [&](std::size_t k) {
          std::ostringstream text;
          text << std::hexfloat << triples.a[k] << " * " << triples.b[k] << " + " << triples.c[k];
          return text.str();
        });
      }};
}

// Several in a row, as functions have them: with constants to add, with powers of two, on results of each other.
Case chain_case(double addend, bool chained, int count) {
  Triples<float> triples = Samples<float>(count).make();
  // Products just below half of the smallest number: added to one with an odd last place, f64 makes a tie of them.
  for (int k = 1; k < 100; ++k) triples.add(std::ldexp(1 + k * 0x1p-23f, -75), std::ldexp(1 - k * 0x1p-23f, -75), 0);
  const auto fma = [](KernelBuilder& b, Reg x, Reg y, Reg z) {
    return b.into(Bank::Lane, {.code = Do::Primitive, .op = Primitive::Fma, .a = x, .b = y, .c = z});
  };
  const Evaluate chain = [=](KernelBuilder& b, const std::vector<Reg>& x) {
    const Reg first = fma(b, x[0], x[1], b.number(addend));
    const Reg factor = apply(Primitive::BitsShiftLeft, 23)(b, {x[1]});
    return chained ? fma(b, first, factor, fma(b, first, x[2], first)) : first;
  };
  return {.name = "plus " + std::to_string(addend) + (chained ? ", in a chain" : ""),
          .kernels = map_kernel(Storage::F32, {Storage::F32, Storage::F32, Storage::F32}, Storage::F32, chain),
          .buffers = {bytes_of(triples.a), bytes_of(triples.b), bytes_of(triples.c), Bytes(triples.a.size() * 4)},
          .columns = static_cast<std::int64_t>(triples.a.size()),
          .check = [=](const Case& done) {
            std::vector<float> want;
            for (std::size_t k = 0; k < triples.a.size(); ++k) {
              const float first = std::fma(triples.a[k], triples.b[k], static_cast<float>(addend)), c = triples.c[k];
              const float shifted = std::bit_cast<float>(std::bit_cast<std::uint32_t>(triples.b[k]) << 23);
              want.push_back(chained ? std::fma(first, shifted, std::fma(first, c, first)) : first);
            }
            expect_same<float>(values_of<float>(done.buffers[3]), want, [&](std::size_t k) {
              std::ostringstream text;
              text << std::hexfloat << triples.a[k] << ", " << triples.b[k] << ", " << triples.c[k];
              return text.str();
            });
          }};
}

TEST(WasmFma, RunsRoundOnceEach) {
  TRIREME_SKIP_WITHOUT_NODE();
  const int count = std::getenv("LONG") ? 1000000 : 20000;
  std::vector<Case> cases;
  for (double addend : {1.0, -0.25, 0x1p-70, 0x1p-130 + 0x1p-149, 0.0, -0x1.8p23})
    for (bool chained : {false, true}) cases.push_back(chain_case(addend, chained, count / 4));
  run(std::move(cases));
}

TEST(WasmFma, RoundsOnce) {
  TRIREME_SKIP_WITHOUT_NODE();
  const int count = std::getenv("LONG") ? 1000000 : 20000;
  run({fma_case<float>(false, count), fma_case<double>(false, count), fma_case<float>(true, count),
       fma_case<double>(true, count), fma_case<float>(false, count, true), fma_case<double>(false, count, true)});
}

}  // namespace
}  // namespace trireme::wasm

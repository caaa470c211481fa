// Conversions, against definitions by table: all patterns of small types, every boundary of rounding.
#include <fmt/format.h>

#include <map>
#include <random>

#include "devices/wasm/test_cases.hpp"

namespace trireme::wasm {
namespace {

// ---- What the contract says about types, by definition ----------------------------------------------------------

struct Format {
  int exponent_bits, mantissa_bits;
  bool has_infinity;
};
const std::map<Storage, Format> formats = {{Storage::F16, {5, 10, true}},
                                           {Storage::BF16, {8, 7, true}},
                                           {Storage::F8E4M3, {4, 3, false}},
                                           {Storage::F8E5M2, {5, 2, true}}};
bool saturates(Storage type) { return bytes(type) == 1 || type == Storage::I32; }

double decode(Storage type, std::uint32_t bits) {
  if (type == Storage::I8) return static_cast<std::int8_t>(bits);
  if (type == Storage::I32) return static_cast<std::int32_t>(bits);
  if (type == Storage::U8) return static_cast<std::uint8_t>(bits);
  if (type == Storage::F8E8M0) return bits == 255 ? NAN : std::ldexp(1.0, static_cast<int>(bits) - 127);
  if (type == Storage::F32) return std::bit_cast<float>(bits);
  const Format& format = formats.at(type);
  const int bias = (1 << (format.exponent_bits - 1)) - 1;
  const std::uint32_t mantissa = bits & ((1u << format.mantissa_bits) - 1);
  const int exponent = static_cast<int>(bits >> format.mantissa_bits) & ((1 << format.exponent_bits) - 1);
  const double sign = bits >> (format.exponent_bits + format.mantissa_bits) ? -1 : 1;
  if (exponent == (1 << format.exponent_bits) - 1) {
    if (format.has_infinity) return mantissa ? NAN : sign * INFINITY;
    if (mantissa == (1u << format.mantissa_bits) - 1) return NAN;
  }
  if (exponent == 0) return sign * std::ldexp(mantissa, 1 - bias - format.mantissa_bits);
  return sign * std::ldexp(mantissa | 1u << format.mantissa_bits, exponent - bias - format.mantissa_bits);
}

// All finite magnitudes, in order: the position is the bits. Behind them the value whose bits infinity has.
const std::vector<double>& magnitudes(Storage type) {
  static std::map<Storage, std::vector<double>> tables;
  std::vector<double>& table = tables[type];
  if (table.empty()) {
    while (true) {
      const double value = decode(type, static_cast<std::uint32_t>(table.size()));
      if (!std::isfinite(value)) break;
      table.push_back(value);
    }
    table.push_back(2 * table.back() - table[table.size() - 2]);
  }
  return table;
}

std::uint32_t encode(Storage type, double value) {
  if (is_integer(type)) {
    const double low = type == Storage::I8 ? -128 : type == Storage::U8 ? 0 : -0x1p31, high = facts(type).largest;
    if (std::isnan(value)) return 0;
    const auto whole = static_cast<std::int32_t>(std::clamp(std::nearbyint(value), low, high));
    return static_cast<std::uint32_t>(whole) & (bytes(type) == 1 ? 0xff : ~0u);
  }
  if (type == Storage::F8E8M0) {
    if (std::isnan(value)) return 255;
    for (std::uint32_t power = 0; power < 254; ++power)
      if (value < 1.5 * decode(type, power)) return power;
    return 254;
  }
  const auto& table = magnitudes(type);
  const std::uint32_t sign = std::signbit(value) ? 1u << (8 * bytes(type) - 1) : 0;
  if (std::isnan(value)) return (1u << (8 * bytes(type) - 1)) - 1;
  const double magnitude = std::min(std::fabs(value), saturates(type) ? table[table.size() - 2] : table.back());
  const auto above = std::lower_bound(table.begin(), table.end(), magnitude) - table.begin();
  if (table[above] == magnitude) return sign | static_cast<std::uint32_t>(above);
  const double middle = (table[above - 1] + table[above]) / 2;
  const bool up = magnitude > middle || (magnitude == middle && above % 2 == 0);
  return sign | static_cast<std::uint32_t>(up ? above : above - 1);
}

const Storage narrow_types[] = {Storage::F16, Storage::BF16, Storage::F8E4M3, Storage::F8E5M2,
                                Storage::I8,  Storage::I32,  Storage::U8,     Storage::F8E8M0};

// Bits one an element, cut to the type's bytes, and back.
Bytes packed(Storage type, const std::vector<std::uint32_t>& bits) {
  Bytes result;
  for (std::uint32_t each : bits)
    for (std::size_t k = 0; k < bytes(type); ++k) result.push_back(static_cast<std::uint8_t>(each >> (8 * k)));
  return result;
}
std::vector<std::uint32_t> unpacked(Storage type, const Bytes& from) {
  std::vector<std::uint32_t> result(from.size() / bytes(type));
  for (std::size_t k = 0; k < from.size(); ++k)
    result[k / bytes(type)] |= static_cast<std::uint32_t>(from[k]) << (8 * (k % bytes(type)));
  return result;
}

// Every value of a small type, the middle to the next one, and the neighbours of that middle.
template <typename T>
std::vector<T> rounding_samples(Storage type) {
  std::vector<T> result = specials<T>;
  const auto add = [&](double middle) {
    for (T value : {static_cast<T>(middle), std::nextafter(static_cast<T>(middle), T(0)),
                    std::nextafter(static_cast<T>(middle), std::numeric_limits<T>::infinity())})
      result.push_back(value), result.push_back(-value);
  };
  if (is_integer(type)) {
    for (int k = 0; k < 300; ++k) add(k / 2.0);
    for (double whole : {0x1p24, 0x1p30, 0x1p31, 0x1p32})
      for (int k = -5; k <= 5; ++k) add(whole + k / 2.0), add(k + 3e6);
    return result;
  }
  const auto& table = magnitudes(type);
  for (std::size_t k = 0; k + 1 < table.size(); ++k) {
    result.push_back(static_cast<T>(table[k])), result.push_back(static_cast<T>(-table[k]));
    add((table[k] + table[k + 1]) / 2);
  }
  return result;
}

// ---- Tests -------- -------------------------------------------------------------------------------------------

template <typename T>
Case widening(Storage type) {
  std::vector<std::uint32_t> patterns;
  if (bytes(type) < 4)
    for (std::uint32_t bits = 0; bits < 1u << (8 * bytes(type)); ++bits) patterns.push_back(bits);
  else
    for (T value : specials<T>)
      patterns.push_back(type == Storage::F32 ? std::bit_cast<std::uint32_t>(static_cast<float>(value))
                                              : encode(type, value));
  for (std::uint32_t k = 0; bytes(type) == 4 && k < 10000; ++k) patterns.push_back(k * 0x9e3779b9u);
  std::vector<T> want;
  for (std::uint32_t bits : patterns) want.push_back(static_cast<T>(decode(type, bits)));
  return {.name = "widen " + std::string(name(type)) + " to " + std::string(name(storage_of<T>)),
          .kernels = map_kernel(storage_of<T>, {type}, storage_of<T>, same),
          .buffers = {packed(type, patterns), Bytes(patterns.size() * sizeof(T))},
          .columns = static_cast<std::int64_t>(patterns.size()),
          .check = [=](const Case& done) {
            expect_same<T>(values_of<T>(done.buffers[1]), want,
                           [&](std::size_t k) { return std::to_string(patterns[k]); });
          }};
}

TEST(WasmConvert, WidensEveryPattern) {
  TRIREME_SKIP_WITHOUT_NODE();
  std::vector<Case> cases;
  for (Storage type : narrow_types) cases.push_back(widening<float>(type)), cases.push_back(widening<double>(type));
  cases.push_back(widening<float>(Storage::F32)), cases.push_back(widening<double>(Storage::F32));
  run(std::move(cases));
}

template <typename T>
Case narrowing(Storage type, bool round_to) {
  const std::vector<T> samples = rounding_samples<T>(type);
  const auto count = samples.size();
  const std::string title = std::string(round_to ? "round " : "narrow ") + std::string(name(storage_of<T>)) + " to " +
                            std::string(name(type));
  const auto check = [=](const Case& done) {
    std::vector<T> got, want;
    for (T value : samples) want.push_back(static_cast<T>(decode(type, encode(type, value))));
    if (round_to) got = values_of<T>(done.buffers[1]);
    else
      for (std::uint32_t bits : unpacked(type, done.buffers[1])) got.push_back(static_cast<T>(decode(type, bits)));
    expect_same<T>(got, want, [&](std::size_t k) { return std::to_string(samples[k]); });
  };
  if (round_to)
    return {.name = title,
            .kernels = map_kernel(storage_of<T>, {storage_of<T>}, storage_of<T>, apply(Primitive::RoundTo, 0, type)),
            .buffers = {bytes_of(samples), Bytes(count * sizeof(T))},
            .columns = static_cast<std::int64_t>(count),
            .check = check};
  return {.name = title,
          .kernels = map_kernel(storage_of<T>, {storage_of<T>}, type, same),
          .buffers = {bytes_of(samples), Bytes(count * bytes(type))},
          .columns = static_cast<std::int64_t>(count),
          .check = check};
}

TEST(WasmConvert, NarrowsWithOneRounding) {
  TRIREME_SKIP_WITHOUT_NODE();
  std::vector<Case> cases;
  for (Storage type : narrow_types)
    for (bool round_to : {false, true})
      cases.push_back(narrowing<float>(type, round_to)), cases.push_back(narrowing<double>(type, round_to));
  run(std::move(cases));
}

// What is rounded already, or loaded so, is stored as it is; two vectors at once give what one by one does.
template <typename T>
Case exactly(Storage type, bool loaded, bool in_twos) {
  std::vector<std::uint32_t> bits;
  if (loaded)
    for (std::uint32_t each = 0; each < 1u << (8 * bytes(type)); ++each) bits.push_back(each);
  const std::vector<T> samples = rounding_samples<T>(type);
  std::vector<double> values;
  for (std::uint32_t each : bits) values.push_back(decode(type, each));
  if (!loaded) values.assign(samples.begin(), samples.end());
  std::vector<T> want;
  for (double value : values) want.push_back(static_cast<T>(decode(type, encode(type, value))));
  return {
      .name = fmt::format("{} {} as {}{}", loaded ? "loaded" : "rounded", name(storage_of<T>), name(type),
                          in_twos ? " in twos" : ""),
      .kernels = loaded ? map_kernel(storage_of<T>, {type}, type, same, in_twos)
                        : map_kernel(storage_of<T>, {storage_of<T>}, type, apply(Primitive::RoundTo, 0, type), in_twos),
      .buffers = {loaded ? packed(type, bits) : bytes_of(samples), Bytes(want.size() * bytes(type))},
      .columns = static_cast<std::int64_t>(want.size()),
      .check = [=](const Case& done) {
        std::vector<T> got;
        for (std::uint32_t each : unpacked(type, done.buffers[1])) got.push_back(static_cast<T>(decode(type, each)));
        expect_same<T>(got, want, [&](std::size_t k) { return std::to_string(k); });
      }};
}

TEST(WasmConvert, ExactValuesAndTwoVectorsAtOnce) {
  TRIREME_SKIP_WITHOUT_NODE();
  std::vector<Case> cases;
  for (Storage type : narrow_types)
    for (bool in_twos : {false, true}) {
      cases.push_back(exactly<float>(type, false, in_twos)), cases.push_back(exactly<double>(type, false, in_twos));
      if (bytes(type) > 2) continue;
      cases.push_back(exactly<float>(type, true, in_twos)), cases.push_back(exactly<double>(type, true, in_twos));
    }
  run(std::move(cases));
}

TEST(WasmConvert, NarrowsF64ToF32) {
  TRIREME_SKIP_WITHOUT_NODE();
  std::vector<double> samples = specials<double>;
  std::mt19937_64 random(1);
  for (int k = 0; k < 20000; ++k) {
    const float value = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
    const double next = std::nextafter(value, INFINITY);
    for (double sample : {(value + next) / 2, std::nextafter((value + next) / 2, 0.0)}) samples.push_back(sample);
  }
  std::vector<float> want(samples.begin(), samples.end());
  run({{.name = "f64 to f32",
        .kernels = map_kernel(Storage::F64, {Storage::F64}, Storage::F32, same),
        .buffers = {bytes_of(samples), Bytes(samples.size() * 4)},
        .columns = static_cast<std::int64_t>(samples.size()),
        .check = [=](const Case& done) {
          expect_same<float>(values_of<float>(done.buffers[1]), want,
                             [&](std::size_t k) { return std::to_string(samples[k]); });
        }}});
}

}  // namespace
}  // namespace trireme::wasm

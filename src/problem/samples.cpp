#include "problem/samples.hpp"

#include "layout/elements.hpp"
#include "support/contract_arithmetic.hpp"
#include "support/float_types.hpp"

namespace trireme {
namespace {

std::uint32_t mix(std::uint32_t h) {  // the finish of MurmurHash3
  h ^= h >> 16;
  h *= 0x85EBCA6Bu;
  h ^= h >> 13;
  h *= 0xC2B2AE35u;
  h ^= h >> 16;
  return h;
}

std::uint32_t key_of(std::uint32_t seed, std::string_view name) {
  std::uint32_t h = 0x811C9DC5u;
  for (char c : name) h = (h ^ static_cast<unsigned char>(c)) * 0x01000193u;
  return mix(h ^ mix(seed));
}

std::uint32_t draw(std::uint32_t key, std::uint64_t index) {
  std::uint32_t low = static_cast<std::uint32_t>(index), high = static_cast<std::uint32_t>(index >> 32);
  return mix(mix(low ^ key) + high * 0x9E3779B9u + key);
}

}  // namespace

SampleRange default_range(Type type) {
  if (type == Type::U8) return {.low = 0, .high = 255, .integer = true};
  if (is_integer(type)) return {.low = -128, .high = 127, .integer = true};
  if (!float_format(type).is_signed) return {.low = 0.125, .high = 8};
  return {};
}

std::uint32_t sample_draw(std::uint32_t seed, std::string_view name, std::uint64_t index) {
  return draw(key_of(seed, name), index);
}

double sample_value(std::uint32_t draw, Type type, const SampleRange& range) {
  if (range.integer) {
    auto count = static_cast<std::uint64_t>(range.high - range.low) + 1;
    return range.low + static_cast<double>(draw % count);
  }
  double span = range.high - range.low;
  if (type == Type::F64)
    return range.low + (static_cast<double>(draw >> 8) * 0x1p29 + static_cast<double>(mix(draw) >> 3)) * 0x1p-53 * span;
  return static_cast<float>(range.low + static_cast<double>(draw >> 8) * 0x1p-24 * span);
}

void fill_samples(const Array& array, std::int64_t row_extent, std::int64_t column_extent, std::uint32_t seed,
                  std::string_view name, const SampleRange& range) {
  ContractArithmetic arithmetic;
  std::uint32_t key = key_of(seed, name);
  std::uint64_t index = 0;
  for (std::int64_t r = 0; r < row_extent; ++r)
    for (std::int64_t c = 0; c < column_extent; ++c)
      set_value_at(array, r, c, sample_value(draw(key, index++), array.type, range));
}

void fill_picks(const Array& array, std::int64_t row_extent, std::uint32_t seed, std::string_view name,
                std::int64_t table_rows, bool once) {
  ContractArithmetic arithmetic;
  const std::uint32_t key = key_of(seed, name);
  for (std::int64_t r = 0; r < row_extent; ++r) {
    std::int64_t row = -1 + static_cast<std::int64_t>(draw(key, static_cast<std::uint64_t>(r)) %
                                                      static_cast<std::uint64_t>(table_rows + 2));
    if (once) row = r < table_rows ? (r + key % table_rows) % table_rows : -1;
    store_f64(array.type, array.entry(r, 0), static_cast<double>(row));
  }
}

}  // namespace trireme

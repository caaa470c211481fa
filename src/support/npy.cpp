#include "support/npy.hpp"

#include <charconv>
#include <cstring>
#include <limits>
#include <optional>
#include <string_view>

namespace trireme {
namespace {

constexpr std::string_view magic = "\x93NUMPY";
constexpr std::size_t alignment = 64;

Error refuse(const std::string& what) { return {Code::InvalidArgument, "not a .npy file: " + what}; }

// Behind `'key':` in the dictionary that the head is.
std::optional<std::string_view> value_of(std::string_view dictionary, std::string_view key) {
  const std::size_t found = dictionary.find("'" + std::string(key) + "'");
  if (found == dictionary.npos) return std::nullopt;
  const std::size_t colon = dictionary.find(':', found);
  if (colon == dictionary.npos) return std::nullopt;
  std::string_view rest = dictionary.substr(colon + 1);
  rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
  return rest;
}

// "(3, 4)", "(3,)" or "()".
std::optional<std::vector<std::int64_t>> parse_shape(std::string_view text) {
  if (!text.starts_with('(')) return std::nullopt;
  text.remove_prefix(1);
  std::vector<std::int64_t> shape;
  std::int64_t count = 1;
  while (true) {
    text.remove_prefix(std::min(text.find_first_not_of(", "), text.size()));
    if (text.starts_with(')')) return shape;
    std::int64_t extent = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), extent);
    if (error != std::errc() || extent < 0) return std::nullopt;
    if (__builtin_mul_overflow(count, extent, &count)) return std::nullopt;
    shape.push_back(extent);
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  }
}

}  // namespace

std::int64_t NpyHead::count() const {
  std::int64_t product = 1;
  for (std::int64_t extent : shape) product *= extent;
  return product;
}

Result<NpyFile> parse_npy(std::span<const std::byte> file) {
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  if (!text.starts_with(magic) || text.size() < 12) return refuse("it does not begin with \\x93NUMPY");
  const int major = static_cast<unsigned char>(text[6]);
  if (major < 1 || major > 3) return refuse("version " + std::to_string(major) + "; 1 to 3 are known");
  const std::size_t length_bytes = major == 1 ? 2 : 4, head_at = 8 + length_bytes;
  std::uint32_t length = 0;
  std::memcpy(&length, file.data() + 8, length_bytes);
  if (length > text.size() - head_at) return refuse("its head is cut short");
  const std::string_view dictionary = text.substr(head_at, length);

  NpyFile result;
  const auto type = value_of(dictionary, "descr"), order = value_of(dictionary, "fortran_order"),
             shape = value_of(dictionary, "shape");
  if (!type || !order || !shape) return refuse("its head lacks descr, fortran_order or shape");
  const std::size_t end_of_type = type->starts_with('\'') ? type->find('\'', 1) : type->npos;
  if (end_of_type == type->npos) return refuse("values of several parts");
  result.head.type = type->substr(1, end_of_type - 1);
  result.head.fortran_order = order->starts_with("True");
  const auto extents = parse_shape(*shape);
  if (!extents) return refuse("its shape cannot be read");
  result.head.shape = *extents;

  std::int64_t value_bytes = 0;
  const char* digits = result.head.type.data() + std::min<std::size_t>(2, result.head.type.size());
  std::from_chars(digits, result.head.type.data() + result.head.type.size(), value_bytes);
  result.values = file.subspan(head_at + length);
  std::int64_t wanted = 0;
  if (value_bytes < 1 || __builtin_mul_overflow(result.head.count(), value_bytes, &wanted))
    return refuse("values of type '" + result.head.type + "'");
  if (static_cast<std::int64_t>(result.values.size()) < wanted)
    return refuse("it has " + std::to_string(result.values.size()) + " bytes of values, its head says " +
                  std::to_string(wanted));
  result.values = result.values.first(static_cast<std::size_t>(wanted));
  return result;
}

std::string npy_head(const NpyHead& head) {
  std::string shape = "(";
  for (std::size_t k = 0; k < head.shape.size(); ++k) shape += (k ? ", " : "") + std::to_string(head.shape[k]);
  if (head.shape.size() == 1) shape += ",";
  std::string dictionary = "{'descr': '" + head.type +
                           "', 'fortran_order': " + (head.fortran_order ? "True" : "False") + ", 'shape': " + shape +
                           "), }";
  const std::size_t fixed = magic.size() + 4;
  const std::size_t unpadded = fixed + dictionary.size() + 1;
  dictionary.append((alignment - unpadded % alignment) % alignment, ' ');
  dictionary += '\n';
  std::string text(magic);
  text += {'\1', '\0', static_cast<char>(dictionary.size() & 255), static_cast<char>(dictionary.size() >> 8)};
  return text + dictionary;
}

}  // namespace trireme

// NumPy's .npy files: a header that is a Python literal, then the elements in C order, little-endian.
// Files come from anywhere, so the header is read as if it were hostile: everything is checked, and nothing is
// allocated by what it claims.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/result.hpp"
#include "trireme/type.hpp"

namespace trireme {

// How an element is written in a file. bf16 and f8 have no name in NumPy: they travel as uint16 and uint8.
struct NpyType {
  std::string_view descr, name;  // "<f4", "float32"
  std::size_t bytes;
};

struct NpyHeader {
  NpyType type;
  std::vector<std::int64_t> shape;
  std::size_t data_offset = 0;  // bytes of the header, magic and padding included
  std::int64_t elements = 1;

  std::int64_t data_bytes() const { return elements * static_cast<std::int64_t>(type.bytes); }
};

// A header is no longer than this; it is enough to read so much of a file.
inline constexpr std::size_t max_npy_header_bytes = 16384;

Result<NpyHeader> read_npy_header(std::string_view file_start);
std::string npy_header(const NpyType& type, const std::vector<std::int64_t>& shape);

const NpyType& npy_type_for(Type type);

// The storage type of elements so written, where nobody has said: uint8 and bool are u8, and nothing is known of
// uint16.
Result<Type> storage_type_of(const NpyType& type);
Status check_holds(const NpyType& type, Type storage);  // an error where elements of `storage` are not so written

}  // namespace trireme

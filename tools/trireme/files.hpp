// Files of bytes, and arrays in NumPy's format.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "support/npy.hpp"
#include "trireme/result.hpp"

namespace trireme::cli {

Result<std::vector<std::byte>> read_file(const std::string& path);
Status write_file(const std::string& path, std::span<const std::byte> head, std::span<const std::byte> bytes);

struct NpyArray {
  NpyHead head;
  std::vector<std::byte> values;
};
Result<NpyArray> read_npy(const std::string& path);  // errors name the file
Status write_npy(const std::string& path, const NpyHead& head, std::span<const std::byte> values);

// "x=x.npy" of an option such as --in.
struct NamedFile {
  std::string name, path;
};
Result<NamedFile> parse_named_file(const std::string& option, const std::string& text);

}  // namespace trireme::cli

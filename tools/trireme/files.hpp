// Files of bytes, and options that name files.
#pragma once
#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "trireme/result.hpp"

namespace trireme::cli {

Result<std::vector<std::byte>> read_file(const std::string& path);
Status write_file(const std::string& path, std::span<const std::byte> head, std::span<const std::byte> bytes);

// What "NAME=VALUE" options give, by name; each name once. `form`: "NAME=FILE, as in x=x.npy".
Result<std::map<std::string, std::string>> values_by_name(const std::string& option,
                                                          const std::vector<std::string>& given, const char* form);

}  // namespace trireme::cli

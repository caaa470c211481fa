#include "files.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

namespace trireme::cli {
namespace {

Error failure(const std::string& path) { return {Code::InvalidArgument, path + ": " + std::strerror(errno)}; }

using File = std::unique_ptr<std::FILE, decltype([](std::FILE* file) { std::fclose(file); })>;

}  // namespace

Result<std::vector<std::byte>> read_file(const std::string& path) {
  File file(std::fopen(path.c_str(), "rb"));
  if (!file) return failure(path);
  std::vector<std::byte> bytes;
  std::byte part[1 << 16];
  while (const std::size_t got = std::fread(part, 1, sizeof part, file.get()))
    bytes.insert(bytes.end(), part, part + got);
  if (std::ferror(file.get())) return failure(path);
  return bytes;
}

Status write_file(const std::string& path, std::span<const std::byte> head, std::span<const std::byte> bytes) {
  std::FILE* file = path == "-" ? stdout : std::fopen(path.c_str(), "wb");
  if (!file) return failure(path);
  auto put = [&](std::span<const std::byte> part) {  // fwrite takes no null pointer, not even for nothing
    return part.empty() || std::fwrite(part.data(), 1, part.size(), file) == part.size();
  };
  bool written = put(head) && put(bytes);
  written = std::fflush(file) == 0 && written;
  if (file != stdout) written = std::fclose(file) == 0 && written;
  if (!written) return failure(path);
  return Done{};
}

Result<std::map<std::string, std::string>> values_by_name(const std::string& option,
                                                          const std::vector<std::string>& given, const char* form) {
  std::map<std::string, std::string> values;
  for (const std::string& each : given) {
    const std::size_t equals = each.find('=');
    if (equals == 0 || equals == each.npos || equals + 1 == each.size())
      return Error{Code::InvalidArgument, fmt::format("{} {}: expected {}", option, each, form)};
    if (!values.emplace(each.substr(0, equals), each.substr(equals + 1)).second)
      return Error{Code::InvalidArgument, fmt::format("{}: '{}' is given twice", option, each.substr(0, equals))};
  }
  return values;
}

}  // namespace trireme::cli

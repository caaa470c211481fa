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
  bool written = std::fwrite(head.data(), 1, head.size(), file) == head.size() &&
                 std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size();
  written = std::fflush(file) == 0 && written;
  if (file != stdout) written = std::fclose(file) == 0 && written;
  if (!written) return failure(path);
  return Done{};
}

Result<NpyArray> read_npy(const std::string& path) {
  TRIREME_TRY(bytes, read_file(path));
  const Result<NpyFile> parsed = parse_npy(bytes);
  if (!parsed) return Error{parsed.error().code, path + ": " + parsed.error().message};
  const std::size_t head_bytes = static_cast<std::size_t>(parsed->values.data() - bytes.data());
  NpyArray array{parsed->head, {}};
  bytes.resize(head_bytes + parsed->values.size());
  bytes.erase(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(head_bytes));
  array.values = std::move(bytes);
  return array;
}

Status write_npy(const std::string& path, const NpyHead& head, std::span<const std::byte> values) {
  const std::string text = npy_head(head);
  return write_file(path, std::as_bytes(std::span(text)), values);
}

Result<NamedFile> parse_named_file(const std::string& option, const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == 0 || equals == text.npos || equals + 1 == text.size())
    return Error{Code::InvalidArgument, fmt::format("{} {}: expected NAME=FILE, as in x=x.npy", option, text)};
  return NamedFile{text.substr(0, equals), text.substr(equals + 1)};
}

}  // namespace trireme::cli

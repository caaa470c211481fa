#include "npy_file.hpp"

#include <fmt/ranges.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

namespace trireme::cli {
namespace {

Error about(const std::string& path, const std::string& what) { return {Code::InvalidArgument, path + ": " + what}; }
Error system_error(const std::string& path) { return about(path, std::strerror(errno)); }

}  // namespace

Result<NpyFile> NpyFile::open(const std::string& path) {
  NpyFile npy;
  npy.path_ = path;
  npy.file_.reset(std::fopen(path.c_str(), "rb"));
  struct stat facts;
  if (!npy.file_ || fstat(fileno(npy.file_.get()), &facts) != 0) return system_error(path);
  if (!S_ISREG(facts.st_mode)) return about(path, "is not a file");
  std::string start(max_npy_header_bytes, '\0');
  start.resize(std::fread(start.data(), 1, start.size(), npy.file_.get()));
  Result<NpyHeader> header = read_npy_header(start);
  if (!header) return about(path, header.error().message);
  npy.header_ = *header;
  std::int64_t there = facts.st_size - static_cast<std::int64_t>(header->data_offset);
  if (there != header->data_bytes())
    return about(path, fmt::format("{} of {} take {} bytes behind the header, and there are {}",
                                   shape_text(header->shape), header->type.name, header->data_bytes(), there));
  return npy;
}

Status NpyFile::read(std::span<std::byte> elements, std::int64_t from_byte) const {
  errno = 0;
  if (std::fseek(file_.get(), static_cast<long>(header_.data_offset) + from_byte, SEEK_SET) != 0 ||
      std::fread(elements.data(), 1, elements.size(), file_.get()) != elements.size())
    return errno ? system_error(path_) : about(path_, "it has become shorter");
  return Done{};
}

Result<NewFile> write_npy(const std::string& path, const NpyType& type, const std::vector<std::int64_t>& shape,
                          std::span<const std::byte> elements) {
  const std::string header = npy_header(type, shape);
  return NewFile::write(path, std::as_bytes(std::span(header)), elements);
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
  return shape.size() == 1 ? fmt::format("({},)", shape[0]) : fmt::format("({})", fmt::join(shape, ", "));
}

}  // namespace trireme::cli

// .npy files on disk; support/npy.hpp has the format.
#pragma once
#include <cstddef>
#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "files.hpp"
#include "support/npy.hpp"

namespace trireme::cli {

// Opened, its header read and its length checked; the elements come later, into memory of the right size.
class NpyFile {
 public:
  static Result<NpyFile> open(const std::string& path);
  const std::string& path() const { return path_; }
  const NpyHeader& header() const { return header_; }
  Status read(std::span<std::byte> elements, std::int64_t from_byte = 0) const;  // of its data

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::string path_;
  NpyHeader header_;
  std::unique_ptr<std::FILE, Close> file_;
};

Result<NewFile> write_npy(const std::string& path, const NpyType& type, const std::vector<std::int64_t>& shape,
                          std::span<const std::byte> elements);

std::string shape_text(const std::vector<std::int64_t>& shape);  // "(3, 4)"

}  // namespace trireme::cli

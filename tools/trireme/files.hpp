// Files of bytes, and options that name files.
#pragma once
#include <cstddef>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "trireme/result.hpp"

namespace trireme::cli {

Result<std::vector<std::byte>> read_file(const std::string& path);

// A file that is written beside its place and put there by commit(), so that readers find the old one or the new one,
// whole. Without commit() nothing has happened; pipes and devices, where there is no beside, have been written to.
class NewFile {
 public:
  static Result<NewFile> write(const std::string& path, std::span<const std::byte> head,
                               std::span<const std::byte> bytes);
  Status commit();

  NewFile(NewFile&& other) noexcept
      : path_(std::move(other.path_)), place_(std::move(other.place_)), beside_(std::exchange(other.beside_, {})) {}
  NewFile& operator=(NewFile&&) = delete;
  ~NewFile();

 private:
  explicit NewFile(std::string path) : path_(std::move(path)) {}
  std::string path_;              // as it was given
  std::filesystem::path place_;   // links followed
  std::filesystem::path beside_;  // empty where there is nothing to rename
};

// At once; "-" is the standard output.
Status write_file(const std::string& path, std::span<const std::byte> head, std::span<const std::byte> bytes);

// What "NAME=VALUE" options give, by name; each name once. `form`: "NAME=FILE, as in x=x.npy".
Result<std::map<std::string, std::string>> values_by_name(const std::string& option,
                                                          const std::vector<std::string>& given, const char* form);

// Files that are written, by what goes into them: an error if two would be one.
Status check_distinct(const std::map<std::string, std::string>& files);

}  // namespace trireme::cli

#include "files.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <system_error>

namespace trireme::cli {
namespace {

Error failure(const std::string& path) { return {Code::InvalidArgument, path + ": " + std::strerror(errno)}; }

using File = std::unique_ptr<std::FILE, decltype([](std::FILE* file) { std::fclose(file); })>;

bool put(std::span<const std::byte> bytes, std::FILE* file) {  // fwrite takes no null pointer, not even for nothing
  return bytes.empty() || std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size();
}

// Where links lead, whether or not something is there.
std::filesystem::path place_of(const std::string& path) {
  constexpr int most_links = 40;  // as Linux
  std::error_code none;
  std::filesystem::path place = std::filesystem::absolute(path, none);
  for (int links = 0; links < most_links && std::filesystem::is_symlink(place, none); ++links)
    place = place.parent_path() / std::filesystem::read_symlink(place, none);  // an absolute one stands alone
  return std::filesystem::weakly_canonical(place, none);
}

// Nothing is lost where two results go into a device; an empty path is no file.
bool same_file(const std::string& a, const std::string& b) {
  std::error_code none;
  return !a.empty() && !b.empty() && !std::filesystem::is_other(a, none) && place_of(a) == place_of(b);
}

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

Result<NewFile> NewFile::write(const std::string& path, std::span<const std::byte> head,
                               std::span<const std::byte> bytes) {
  NewFile made(path);
  struct stat old;
  const bool there = stat(path.c_str(), &old) == 0;
  if (there ? access(path.c_str(), W_OK) != 0 : errno != ENOENT) return failure(path);
  int descriptor;
  if (there && !S_ISREG(old.st_mode)) {
    descriptor = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  } else {
    made.place_ = place_of(path);
    std::string beside;
    int tries = 0;
    do {
      beside = made.place_.parent_path() / fmt::format(".trireme-{}-{}", getpid(), tries);
      descriptor = open(beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    } while (descriptor < 0 && errno == EEXIST && ++tries < 1000);
    if (descriptor >= 0) made.beside_ = std::move(beside);
  }
  File file(descriptor < 0 ? nullptr : fdopen(descriptor, "wb"));
  if (!file) return failure(path);
  if (!put(head, file.get()) || !put(bytes, file.get())) return failure(path);
  if (there && S_ISREG(old.st_mode) && fchmod(descriptor, old.st_mode & 07777) != 0) return failure(path);
  if (std::fclose(file.release()) != 0) return failure(path);
  return made;
}

Status NewFile::commit() {
  if (beside_.empty()) return Done{};
  if (std::rename(beside_.c_str(), place_.c_str()) != 0) return failure(path_);
  beside_.clear();
  return Done{};
}

NewFile::~NewFile() {
  if (!beside_.empty()) std::remove(beside_.c_str());
}

Status write_file(const std::string& path, std::span<const std::byte> head, std::span<const std::byte> bytes) {
  if (path == "-") {
    if (!put(head, stdout) || !put(bytes, stdout)) throw std::system_error(errno, std::generic_category());
    return Done{};
  }
  TRIREME_TRY(file, NewFile::write(path, head, bytes));
  return file.commit();
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

Status check_distinct(const std::map<std::string, std::string>& files) {
  for (auto a = files.begin(); a != files.end(); ++a)
    for (auto b = std::next(a); b != files.end(); ++b)
      if (same_file(a->second, b->second))
        return Error{Code::InvalidArgument, fmt::format("{} (for {}) and {} (for {}) are the same file", a->second,
                                                        a->first, b->second, b->first)};
  return Done{};
}

}  // namespace trireme::cli

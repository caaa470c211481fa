// A folder that is ours alone, and the few things a cache does in it. Every call goes through the folder's descriptor,
// so that nobody can put another folder in its place once it was judged.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "trireme/result.hpp"

namespace trireme {

class Descriptor {
 public:
  explicit Descriptor(int number = -1) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Descriptor();
  int close();  // errno, or 0
  int get() const { return number_; }
  explicit operator bool() const { return number_ >= 0; }

 private:
  int number_;
};

// Holds until it is destroyed or the process dies.
class FolderLock {
 public:
  FolderLock() = default;
  explicit FolderLock(Descriptor file) : file_(std::move(file)) {}
  FolderLock(FolderLock&&) = default;
  FolderLock& operator=(FolderLock&&) = default;
  ~FolderLock();
  bool held() const { return static_cast<bool>(file_); }

 private:
  Descriptor file_;
};

struct FolderFile {
  std::string name;
  std::int64_t bytes = 0;
  std::int64_t used_ns = 0;  // when it was last written or read, in nanoseconds since 1970
};

class CacheFolder {
 public:
  // Makes the folder, and those above it, where they are missing (mode 0700). Refused: a symbolic link, a folder of
  // another user, one that others may write to.
  static Result<CacheFolder> open(const std::string& path);

  const std::string& path() const { return path_; }
  bool writable() const;
  // Nothing larger is read: a file may say that it is of terabytes, and take none of them.
  Result<std::string> peek(const std::string& name, std::int64_t most_bytes) const;
  Result<std::string> read(const std::string& name, std::int64_t most_bytes) const;  // and note that it was used
  std::vector<FolderFile> files() const;
  bool remove(const std::string& name) const;

  // All of it under that name, or nothing: written beside and renamed.
  Status write(const std::string& name, const std::string& bytes) const;
  // What writers that died left behind: their locks are gone.
  void remove_abandoned() const;

  // Excludes everybody who asks for the same slot. One file holds a lock for every number, so there are no lock files
  // to tidy away. Not held: somebody else has it. An error: the folder knows no locks (it is read-only, say).
  Result<FolderLock> try_lock(std::uint64_t slot) const;

 private:
  CacheFolder(std::string path, Descriptor folder) : path_(std::move(path)), folder_(std::move(folder)) {}
  std::string path_;
  Descriptor folder_;
};

}  // namespace trireme

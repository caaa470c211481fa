// Cache entries in a folder: found by key, checked when read, bounded in number and size.
#pragma once
#include <memory>
#include <mutex>
#include <optional>

#include "devices/cache/entry.hpp"
#include "devices/cache/folder.hpp"
#include "devices/cache/key.hpp"

namespace trireme {

struct DiskLimits {
  std::int64_t bytes = std::int64_t{256} << 20;
  std::int64_t entries = 2048;
  std::int64_t entry_bytes() const { return bytes / 2; }  // a larger one would push out all others
};

class DiskCache {
 public:
  static Result<std::unique_ptr<DiskCache>> open(const std::string& path, DiskLimits limits);

  const CacheFolder& folder() const { return folder_; }
  std::optional<std::string> read(const CacheKey& key) const;  // nothing where there is no entry or it is broken
  Status write(const CacheKey& key, const std::string& artifact);
  void remove(const CacheKey& key) const;
  Result<FolderLock> try_lock(const CacheKey& key) const;

  struct Listed {
    FolderFile file;
    std::string title;
    std::string broken;  // why; empty if it is whole
  };
  std::vector<Listed> list() const;  // reads and checks every entry; last used first
  std::int64_t clear() const;        // the number of entries removed

 private:
  DiskCache(CacheFolder folder, DiskLimits limits) : folder_(std::move(folder)), limits_(limits) {}
  void trim();

  CacheFolder folder_;
  DiskLimits limits_;
  std::mutex mutex_;
  std::int64_t unseen_entries_ = -1, unseen_bytes_ = 0;  // written since the folder was last looked through; -1: never
};

}  // namespace trireme

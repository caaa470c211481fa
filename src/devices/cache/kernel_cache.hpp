// Compiled artifacts, kept in memory and on disk: what was made once is not made again, by any thread or process.
// It knows keys and bytes, and nothing of what they are for.
//
//   Result<Cached> cubin = KernelCache::process().get_or_make(key, [&] { return device.assemble(ptx); });
//
// The disk is a help, never a condition: where it cannot be used (`off_reason`), is full or read-only, everything works
// and is made in each process; TRIREME_VERBOSE=1 says so once.
#pragma once
#include <chrono>
#include <functional>
#include <map>
#include <memory>

#include "devices/cache/disk_cache.hpp"

namespace trireme {

struct Cached {
  enum class From { Memory, Disk, Made };
  std::shared_ptr<const std::string> bytes;
  From from = From::Made;
};

class KernelCache {
 public:
  using Make = std::function<Result<std::string>()>;

  struct Options {
    std::string folder;      // empty: no disk, for `off_reason`
    std::string off_reason;  // set where there is no folder
    DiskLimits disk = {};
    std::int64_t memory_bytes = std::int64_t{32} << 20;
    // How long to wait for another process that makes the same; then it is made here as well. A compiler of C++ may
    // take seconds; a process may be stopped for ever.
    std::chrono::milliseconds patience = std::chrono::seconds(20);
  };
  // TRIREME_CACHE names the folder, or is "off"; else $XDG_CACHE_HOME/trireme, else $HOME/.cache/trireme.
  static Options from_environment();
  static KernelCache& process();  // one for all, by the environment

  explicit KernelCache(Options options);
  KernelCache(const KernelCache&) = delete;
  ~KernelCache();

  // An error is make's own; it is not kept.
  Result<Cached> get_or_make(const CacheKey& key, const Make& make);
  // Keeps it in place of what was there. An error says why it is not on disk.
  Status put(const CacheKey& key, const std::string& bytes);
  // What is there already; nothing is made, locked or waited for.
  std::optional<std::string> find(const CacheKey& key);
  // For an entry that is whole but refused by whom it was made for; the next one to ask makes it again.
  void forget(const CacheKey& key);

  const DiskCache* disk() const { return disk_.get(); }
  const std::string& off_reason() const { return off_reason_; }  // why there is no disk; empty if there is

 private:
  struct Making;
  class Maker;
  struct InMemory {
    std::shared_ptr<const std::string> bytes;
    std::uint64_t used;  // when, as a count of uses
  };
  Result<Cached> from_disk_or_make(const CacheKey& key, const Make& make);
  void keep(const Hash128& hash, std::shared_ptr<const std::string> bytes);  // under the mutex
  void say_once(const std::string& trouble);
  void after_fork();

  std::chrono::milliseconds patience_;
  std::int64_t memory_limit_bytes_;
  std::string off_reason_;
  std::unique_ptr<DiskCache> disk_;

  std::mutex mutex_;  // of what follows
  std::map<Hash128, InMemory> memory_;
  std::map<Hash128, std::shared_ptr<Making>> under_way_;
  std::int64_t memory_bytes_ = 0;
  std::uint64_t uses_ = 0;
  bool said_ = false;
};

}  // namespace trireme

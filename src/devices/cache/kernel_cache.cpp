#include "devices/cache/kernel_cache.hpp"

#include <pthread.h>

#include <algorithm>
#include <condition_variable>
#include <cstdio>
#include <thread>

#include "support/environment.hpp"

namespace trireme {

// What one thread makes and others wait for. Over without a result: its maker got no further, and others may try.
struct KernelCache::Making {
  std::condition_variable done;
  bool over = false;
  std::optional<Result<Cached>> result;
};

// Ends it, however the maker leaves.
class KernelCache::Maker {
 public:
  Maker(KernelCache& cache, const Hash128& hash, std::shared_ptr<Making> making)
      : cache_(cache), hash_(hash), making_(std::move(making)) {}
  Maker(const Maker&) = delete;
  ~Maker() {
    if (!making_) return;
    std::lock_guard lock(cache_.mutex_);
    making_->over = true;
    making_->done.notify_all();
    auto at = cache_.under_way_.find(hash_);
    if (at != cache_.under_way_.end() && at->second == making_) cache_.under_way_.erase(at);
  }

 private:
  KernelCache& cache_;
  const Hash128 hash_;
  std::shared_ptr<Making> making_;
};

KernelCache::Options KernelCache::from_environment() {
  using environment::variable;
  Result<environment::CachePlace> place = environment::cache();
  if (!place) return {.off_reason = place.error().message};
  if (place->off) return {.off_reason = "TRIREME_CACHE=" + variable("TRIREME_CACHE")};
  if (!place->folder.empty()) return {.folder = place->folder};
  const std::string home = variable("HOME"), cache_home = variable("XDG_CACHE_HOME");
  if (cache_home.starts_with('/')) return {.folder = cache_home + "/trireme"};
  if (home.starts_with('/')) return {.folder = home + "/.cache/trireme"};
  return {.off_reason = "HOME is not set; TRIREME_CACHE can name a folder"};
}

KernelCache& KernelCache::process() {
  // Never destroyed: threads may still use it while the process ends.
  static KernelCache* const cache = [] {
    static KernelCache* made = new KernelCache(from_environment());
    // A child has no other threads: what they were making is never finished there.
    pthread_atfork([] { made->mutex_.lock(); }, [] { made->mutex_.unlock(); }, [] { made->after_fork(); });
    return made;
  }();
  return *cache;
}

KernelCache::KernelCache(Options options)
    : patience_(options.patience), memory_limit_bytes_(options.memory_bytes), off_reason_(options.off_reason) {
  if (options.folder.empty()) {
    if (off_reason_.empty()) off_reason_ = "no folder is given";
    return;
  }
  Result<std::unique_ptr<DiskCache>> opened = DiskCache::open(options.folder, options.disk);
  if (opened) disk_ = std::move(*opened);
  else off_reason_ = opened.error().message;
}

KernelCache::~KernelCache() = default;

void KernelCache::after_fork() {
  under_way_.clear();
  mutex_.unlock();
}

Result<Cached> KernelCache::get_or_make(const CacheKey& key, const Make& make) {
  const Hash128 hash = key.hash();
  std::shared_ptr<Making> mine;
  {
    std::unique_lock lock(mutex_);
    if (auto found = memory_.find(hash); found != memory_.end()) {
      found->second.used = ++uses_;
      return Cached{found->second.bytes, Cached::From::Memory};
    }
    if (auto found = under_way_.find(hash); found != under_way_.end()) {
      std::shared_ptr<Making> other = found->second;
      other->done.wait_for(lock, patience_, [&] { return other->over; });
      if (other->result) {
        Result<Cached> result = *other->result;
        if (result) result->from = Cached::From::Memory;
        return result;
      }
    } else {
      mine = std::make_shared<Making>();
      under_way_.emplace(hash, mine);
    }
  }
  Maker maker(*this, hash, mine);
  Result<Cached> result = from_disk_or_make(key, make);
  std::lock_guard lock(mutex_);
  if (result) keep(hash, result->bytes);
  if (mine) mine->result = result;
  return result;
}

Result<Cached> KernelCache::from_disk_or_make(const CacheKey& key, const Make& make) {
  auto found = [](std::string bytes) {
    return Cached{std::make_shared<const std::string>(std::move(bytes)), Cached::From::Disk};
  };
  FolderLock lock;
  if (!disk_) {
    say_once(off_reason_);
  } else {
    // Whoever has the lock makes it; the others look for the entry meanwhile. A lock ends with its holder, however that
    // ends, and is held by nobody while the entry is there.
    auto until = std::chrono::steady_clock::now() + patience_;
    for (auto pause = std::chrono::microseconds(500);; pause = std::min(pause * 2, std::chrono::microseconds(8000))) {
      if (std::optional<std::string> bytes = disk_->read(key)) return found(std::move(*bytes));
      if (lock.held()) break;
      Result<FolderLock> got = disk_->try_lock(key);
      if (!got || std::chrono::steady_clock::now() > until) break;
      lock = std::move(*got);
      if (!lock.held()) std::this_thread::sleep_for(pause);
    }
  }
  TRIREME_TRY(made, make());
  if (disk_)
    if (Status kept = disk_->write(key, made); !kept) say_once(kept.error().message);
  return Cached{std::make_shared<const std::string>(std::move(made)), Cached::From::Made};
}

void KernelCache::keep(const Hash128& hash, std::shared_ptr<const std::string> bytes) {
  InMemory& place = memory_[hash];
  memory_bytes_ += static_cast<std::int64_t>(bytes->size());
  if (place.bytes) memory_bytes_ -= static_cast<std::int64_t>(place.bytes->size());
  place = {std::move(bytes), ++uses_};
  while (memory_bytes_ > memory_limit_bytes_) {
    auto oldest = std::min_element(memory_.begin(), memory_.end(),
                                   [](const auto& a, const auto& b) { return a.second.used < b.second.used; });
    memory_bytes_ -= static_cast<std::int64_t>(oldest->second.bytes->size());
    memory_.erase(oldest);
  }
}

Status KernelCache::put(const CacheKey& key, const std::string& bytes) {
  if (!disk_) return Error{Code::Unsupported, off_reason_};
  TRIREME_CHECK(disk_->write(key, bytes));
  auto shared = std::make_shared<const std::string>(bytes);
  std::lock_guard lock(mutex_);
  keep(key.hash(), std::move(shared));
  return Done{};
}

std::optional<std::string> KernelCache::find(const CacheKey& key) {
  {
    std::lock_guard lock(mutex_);
    if (auto found = memory_.find(key.hash()); found != memory_.end()) return *found->second.bytes;
  }
  return disk_ ? disk_->read(key) : std::nullopt;
}

void KernelCache::forget(const CacheKey& key) {
  if (disk_) disk_->remove(key);
  std::lock_guard lock(mutex_);
  auto found = memory_.find(key.hash());
  if (found == memory_.end()) return;
  memory_bytes_ -= static_cast<std::int64_t>(found->second.bytes->size());
  memory_.erase(found);
}

void KernelCache::say_once(const std::string& trouble) {
  std::lock_guard lock(mutex_);
  if (std::exchange(said_, true)) return;
  if (Result<bool> verbose = environment::verbose(); !verbose || !*verbose) return;
  std::fprintf(stderr, "trireme: compiled kernels are not kept on disk: %s\n", trouble.c_str());
}

}  // namespace trireme

// From PTX to code on a device. The driver's compiler takes tens of milliseconds a kernel, so its result is kept:
// loaded modules as long as somebody uses them, compiled ones in the kernel cache.
#pragma once
#include <map>
#include <mutex>
#include <optional>

#include "devices/cache/kernel_cache.hpp"
#include "devices/cuda/driver.hpp"

namespace trireme::cuda {

class Modules {
 public:
  Modules(const Device& device, KernelCache& cache) : device_(device), cache_(cache) {}

  Result<Module> load(const std::string& ptx);

  // What another compiler makes, through the same cache. `image_of` finds the cubin or PTX in the artifact.
  struct Loaded {
    Module module;
    std::shared_ptr<const std::string> artifact;
    Cached::From from;
  };
  using ImageOf = std::function<Result<std::string>(const std::string& artifact)>;
  Result<Loaded> load_made(const CacheKey& key, const KernelCache::Make& make, const ImageOf& image_of);

  Result<Module> load_image(const std::string& image) const;  // PTX or cubin, as it is
  Result<std::string> link(const std::string& ptx) const;     // a cubin, by the driver's linker
  bool linked_is_as_good();                                   // as what load_image(ptx) makes of it
  KernelCache& cache() const { return cache_; }

 private:
  // Whoever loads a module holds the slot's mutex; others who want the same wait, those who want another do not.
  struct Slot {
    std::mutex mutex;
    std::weak_ptr<const Owned<ModuleHandle>> loaded;
  };
  std::shared_ptr<Slot> slot_of(const Hash128& hash);
  template <typename Load>
  Result<Module> shared(const CacheKey& key, Load&& load);
  Result<Loaded> fetch(const CacheKey& key, const KernelCache::Make& make, const ImageOf& image_of);
  Result<Module> load_as_it_is(const CacheKey& cubin, const std::string& ptx);
  CacheKey with_device(CacheKey key) const;
  Error with_log(Error error, std::string log, const std::string& image) const;

  const Device& device_;
  KernelCache& cache_;
  std::mutex mutex_;  // of what follows
  std::map<Hash128, std::shared_ptr<Slot>> slots_;
  std::optional<bool> linked_is_as_good_;
};

}  // namespace trireme::cuda

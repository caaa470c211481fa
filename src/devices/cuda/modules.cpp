#include "devices/cuda/modules.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "devices/cuda/current.hpp"

namespace trireme::cuda {
namespace {

// A buffer for the compiler's complaints, and the options that say so.
struct Log {
  std::string text = std::string(8192, '\0');
  int options[2] = {ErrorLogBuffer, ErrorLogBufferSizeBytes};
  void* values[2] = {text.data(), reinterpret_cast<void*>(text.size())};
};

// The first entry's name, for people who list the cache.
std::string title_of(const std::string& ptx, int capability) {
  constexpr std::string_view word = ".entry ";
  std::size_t at = ptx.find(word);
  std::string name = "module";
  if (at != std::string::npos) {
    at += word.size();
    name = ptx.substr(at, std::min(ptx.find_first_of("( \n\t", at), at + 80) - at);
  }
  return fmt::format("{}, sm_{}", name, capability);
}

// Twenty-four divisions whose values all live at once. Whole programs branch to the slow case of a division, and need
// about 39 registers; relocatable code calls it, and needs 44 and more.
std::string probe() {
  constexpr int count = 24;
  std::string text =
      ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry probe(.param .u64 x)\n{\n.reg .u64 %x;\n";
  text += fmt::format(".reg .f32 %f<{}>;\nld.param.u64 %x, [x];\n", count);
  for (int k = 0; k < count; ++k) text += fmt::format("ld.global.f32 %f{}, [%x+{}];\n", k, 4 * k);
  for (int k = 0; k < count; ++k) text += fmt::format("div.rn.f32 %f{0}, %f{0}, %f{1};\n", k, (k + 1) % count);
  for (int k = 0; k < count; ++k) text += fmt::format("st.global.f32 [%x+{1}], %f{0};\n", k, 4 * k);
  return text + "ret;\n}\n";
}

}  // namespace

CacheKey Modules::with_device(CacheKey key) const {
  return key.with("architecture", device_.facts().capability).with("driver", device_.driver_version_);
}

std::shared_ptr<Modules::Slot> Modules::slot_of(const Hash128& hash) {
  std::lock_guard lock(mutex_);
  std::erase_if(slots_, [](const auto& each) { return each.second.use_count() == 1 && each.second->loaded.expired(); });
  std::shared_ptr<Slot>& slot = slots_[hash];
  if (!slot) slot = std::make_shared<Slot>();
  return slot;
}

template <typename Load>
Result<Module> Modules::shared(const CacheKey& key, Load&& load) {
  std::shared_ptr<Slot> slot = slot_of(key.hash());
  std::lock_guard lock(slot->mutex);
  Module module;
  module.owned_ = slot->loaded.lock();
  if (module.owned_) return module;
  TRIREME_TRY(loaded, load());
  slot->loaded = loaded.owned_;
  return loaded;
}

Result<Module> Modules::load(const std::string& ptx) {
  CacheKey key = with_device(CacheKey("cubin", title_of(ptx, device_.facts().capability)).with("ptx", ptx));
  if (!linked_is_as_good()) return shared(key, [&] { return load_as_it_is(key, ptx); });
  return shared(key, [&]() -> Result<Module> {
    TRIREME_TRY(loaded, fetch(
                            key, [&] { return link(ptx); }, [](const std::string& cubin) { return cubin; }));
    return loaded.module;
  });
}

Result<Modules::Loaded> Modules::load_made(const CacheKey& key, const KernelCache::Make& make,
                                           const ImageOf& image_of) {
  // The artifact says more than the module does, so it is asked for even where the module is loaded.
  TRIREME_TRY(cached, cache_.get_or_make(key, make));
  Loaded result{{}, cached.bytes, cached.from};
  TRIREME_TRY(module, shared(key, [&]() -> Result<Module> {
                TRIREME_TRY(loaded, fetch(key, make, image_of));
                result.artifact = loaded.artifact;
                if (loaded.from == Cached::From::Made) result.from = loaded.from;
                return loaded.module;
              }));
  result.module = module;
  return result;
}

Result<Modules::Loaded> Modules::fetch(const CacheKey& key, const KernelCache::Make& make, const ImageOf& image_of) {
  auto attempt = [&](const Cached& cached) -> Result<Loaded> {
    TRIREME_TRY(image, image_of(*cached.bytes));
    TRIREME_TRY(module, load_image(image));
    return Loaded{module, cached.bytes, cached.from};
  };
  TRIREME_TRY(cached, cache_.get_or_make(key, make));
  Result<Loaded> loaded = attempt(cached);
  if (loaded || cached.from == Cached::From::Made) return loaded;
  // Whole, yet refused: of a driver that calls itself by the same number, say.
  cache_.forget(key);
  TRIREME_TRY(again, cache_.get_or_make(key, make));
  return attempt(again);
}

// The driver keeps what it compiles on disk, but lets every process that asks meanwhile compile as well. An entry of
// ours that says only that it is done makes them wait for the first.
Result<Module> Modules::load_as_it_is(const CacheKey& cubin, const std::string& ptx) {
  if (!cache_.disk()) return load_image(ptx);
  CacheKey key("compiled", "by the driver: " + cubin.title());
  Module module;
  auto compile = [&]() -> Result<std::string> {
    TRIREME_TRY(loaded, load_image(ptx));
    module = loaded;
    return std::string("in the driver's own cache");
  };
  TRIREME_CHECK(cache_.get_or_make(key.with("cubin", hex(cubin.hash())), compile));
  if (module.get()) return module;
  return load_image(ptx);
}

// The only way to get at the driver's compiled code is its linker, which by NVIDIA's documentation compiles "similar"
// to relocatable code. rms_norm at 4096 columns then has 82 registers instead of 56 (nvJitLink 13, ptxas 13), and fewer
// rows run at once. So a probe is compiled both ways, once for each driver and architecture. Where its linked form
// needs more, PTX goes to the driver as it is, and the driver's own cache (~/.nv/ComputeCache) stands in for ours.
bool Modules::linked_is_as_good() {
  std::lock_guard lock(mutex_);
  if (linked_is_as_good_) return *linked_is_as_good_;
  if (!cache_.disk()) return false;  // then linking gains nothing
  const std::string text = probe();
  auto facts_of = [&](const std::string& image) -> Result<FunctionFacts> {
    TRIREME_TRY(module, load_image(image));
    TRIREME_TRY(function, device_.function(module, "probe"));
    return device_.function_facts(function);
  };
  auto verdict = [&]() -> Result<std::string> {
    TRIREME_TRY(cubin, link(text));
    TRIREME_TRY(linked, facts_of(cubin));
    TRIREME_TRY(loaded, facts_of(text));
    bool as_good = linked.registers <= loaded.registers && linked.local_bytes <= loaded.local_bytes;
    return fmt::format("{}: {} registers linked, {} loaded", as_good ? "yes" : "no", linked.registers,
                       loaded.registers);
  };
  CacheKey key = with_device(CacheKey("verdict", "is linked code as good?").with("probe", text));
  Result<Cached> said = cache_.get_or_make(key, verdict);
  linked_is_as_good_ = said && said->bytes->starts_with("yes");
  return *linked_is_as_good_;
}

Result<Module> Modules::load_image(const std::string& image) const {
  Current current(device_);
  Log log;
  ModuleHandle module = nullptr;
  Status loaded =
      current(device_.cu_.module_load, &module, static_cast<const void*>(image.c_str()), 2u, log.options, log.values);
  if (!loaded) return with_log(loaded.error(), log.text, image);
  return Module(&device_, module);
}

Result<std::string> Modules::link(const std::string& ptx) const {
  Current current(device_);
  const Functions& cu = device_.cu_;
  Log log;
  LinkState* state = nullptr;
  TRIREME_CHECK(current(cu.link_create, 2u, log.options, log.values, &state));
  std::string text = ptx;  // the driver's interface wants it writable
  void* cubin = nullptr;
  std::size_t size = 0;
  Status done = current(cu.link_add, state, InputPtx, static_cast<void*>(text.data()), text.size() + 1, "trireme.ptx",
                        0u, nullptr, nullptr);
  if (done) done = current(cu.link_complete, state, &cubin, &size);
  std::string made = done ? std::string(static_cast<const char*>(cubin), size) : std::string();  // state owns the cubin
  (void)current(cu.link_destroy, state);
  if (!done) return with_log(done.error(), log.text, ptx);
  return made;
}

Error Modules::with_log(Error error, std::string log, const std::string& image) const {
  log.resize(std::min(log.size(), log.find('\0')));
  while (!log.empty() && log.back() == '\n') log.pop_back();
  if (!log.empty()) error.message += "\n" + log;
  if (error.code == Code::Unsupported)
    error.message += "\nthe driver is that of " + spelled(device_.driver_version_) +
                     " and knows no later PTX; the module begins " + image.substr(0, image.find('\n'));
  return error;
}

}  // namespace trireme::cuda

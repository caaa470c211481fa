// trireme cache: the compiled kernels that are kept on disk.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <ctime>
#include <limits>
#include <memory>

#include "devices/cache/kernel_cache.hpp"
#include "verbs.hpp"

namespace trireme::cli {
namespace {

std::string spelled_bytes(std::int64_t bytes) {
  if (bytes < 10'000) return fmt::format("{} B", bytes);
  if (bytes < 10'000'000) return fmt::format("{:.1f} kB", static_cast<double>(bytes) * 1e-3);
  return fmt::format("{:.1f} MB", static_cast<double>(bytes) * 1e-6);
}

std::string plural(std::size_t count) { return fmt::format("{} {}", count, count == 1 ? "entry" : "entries"); }

Result<int> cache(const std::string& what) {
  KernelCache cache(KernelCache::from_environment());
  if (!cache.disk()) {
    fmt::print("off: {}\n", cache.off_reason());
    return what.empty() || what == "list" ? fine : check_failed;
  }
  const DiskCache& disk = *cache.disk();
  const std::string& folder = disk.folder().path();
  if (what == "clear") {
    fmt::print("{}: {} removed\n", folder, plural(static_cast<std::size_t>(disk.clear())));
    return fine;
  }
  std::vector<DiskCache::Listed> entries = disk.list();
  std::int64_t bytes = 0, broken = 0;
  for (const DiskCache::Listed& each : entries) {
    if (__builtin_add_overflow(bytes, each.file.bytes, &bytes)) bytes = std::numeric_limits<std::int64_t>::max();
    broken += !each.broken.empty();
    if (what == "list")
      fmt::print("{}  {:%F %T}  {:>9}  {}\n", each.file.name.substr(0, 32),
                 fmt::localtime(each.file.used_ns / 1'000'000'000), spelled_bytes(each.file.bytes),
                 each.broken.empty() ? each.title : "broken: " + each.broken);
    if (what == "verify" && !each.broken.empty())
      fmt::print("{}  broken: {}; it is made again when it is next needed\n", each.file.name, each.broken);
  }
  fmt::print("{}: {}, {}{}{}\n", folder, plural(entries.size()), spelled_bytes(bytes),
             broken             ? fmt::format(", {} broken", broken)
             : what == "verify" ? ", all whole"
                                : "",
             disk.folder().writable() ? "" : "; read-only");
  return what == "verify" && broken ? check_failed : fine;
}

}  // namespace

Command cache_verb() {
  auto what = std::make_shared<std::string>();
  Command verb{.name = "cache", .summary = "The compiled kernels kept on disk: where, which, whether they are whole"};
  verb.option("WHAT", *what, "list: entry, last use, size, title. verify: reads every entry. clear: removes them",
              {.choices = {"list", "verify", "clear"}});
  verb.footer =
      "TRIREME_CACHE names the folder, or is 'off'; else $XDG_CACHE_HOME/trireme, else ~/.cache/trireme.\n"
      "verify exits with 1 if an entry is broken.";
  verb.run = [what] { return cache(*what); };
  return verb;
}

}  // namespace trireme::cli

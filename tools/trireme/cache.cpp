// trireme cache: the compiled kernels that are kept on disk.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <limits>
#include <memory>

#include "devices/cache/kernel_cache.hpp"
#include "reports.hpp"
#include "verbs.hpp"

namespace trireme::cli {
namespace {

std::string spelled_bytes(std::int64_t bytes) {
  if (bytes < 10'000) return fmt::format("{} B", bytes);
  if (bytes < 10'000'000) return fmt::format("{:.1f} kB", static_cast<double>(bytes) * 1e-3);
  return fmt::format("{:.1f} MB", static_cast<double>(bytes) * 1e-6);
}

std::string plural(std::size_t count) { return fmt::format("{} {}", count, count == 1 ? "entry" : "entries"); }

struct CacheOptions {
  std::string what;
  bool json = false;
};

CacheReport look_at_cache(const std::string& what) {
  KernelCache cache(KernelCache::from_environment());
  if (!cache.disk()) return {.off_reason = cache.off_reason()};
  const DiskCache& disk = *cache.disk();
  CacheReport report{.folder = disk.folder().path(), .writable = disk.folder().writable()};
  if (what == "clear") report.removed = disk.clear();
  else report.entries = disk.list();
  return report;
}

void print_entries(const CacheReport& report, const std::string& what) {
  for (const DiskCache::Listed& each : report.entries) {
    if (what == "list")
      fmt::print("{}  {:%F %T}  {:>9}  {}\n", each.file.name.substr(0, 32),
                 fmt::localtime(each.file.used_ns / 1'000'000'000), spelled_bytes(each.file.bytes),
                 each.broken.empty() ? each.title : "broken: " + each.broken);
    if (what == "verify" && !each.broken.empty())
      fmt::print("{}  broken: {}; it is made again when it is next needed\n", each.file.name, each.broken);
  }
  fmt::print("{}: {}, {}{}{}\n", report.folder, plural(report.entries.size()), spelled_bytes(report.bytes()),
             report.broken()    ? fmt::format(", {} broken", report.broken())
             : what == "verify" ? ", all whole"
                                : "",
             report.writable ? "" : "; read-only");
}

Result<int> cache(const CacheOptions& options) {
  const CacheReport report = look_at_cache(options.what);
  if (options.json) fmt::print("{}", as_json(report));
  else if (report.folder.empty()) fmt::print("off: {}\n", report.off_reason);
  else if (report.removed)
    fmt::print("{}: {} removed\n", report.folder, plural(static_cast<std::size_t>(*report.removed)));
  else print_entries(report, options.what);
  if (report.folder.empty()) return options.what.empty() || options.what == "list" ? fine : check_failed;
  return options.what == "verify" && report.broken() ? check_failed : fine;
}

}  // namespace

std::int64_t CacheReport::bytes() const {
  std::int64_t sum = 0;
  for (const DiskCache::Listed& each : entries)
    if (__builtin_add_overflow(sum, each.file.bytes, &sum)) sum = std::numeric_limits<std::int64_t>::max();
  return sum;
}

std::int64_t CacheReport::broken() const {
  return std::count_if(entries.begin(), entries.end(), [](const auto& each) { return !each.broken.empty(); });
}

Command cache_verb() {
  auto options = std::make_shared<CacheOptions>();
  Command verb{.name = "cache", .summary = "The compiled kernels kept on disk: where, which, whether they are whole"};
  verb.option("WHAT", options->what,
              "list: entry, last use, size, title. verify: reads every entry. clear: removes them",
              {.choices = {"list", "verify", "clear"}});
  verb.footer =
      "TRIREME_CACHE names the folder, or is 'off'; else $XDG_CACHE_HOME/trireme, else ~/.cache/trireme.\n"
      "verify exits with 1 if an entry is broken.";
  verb.option("--json", options->json, "JSON instead of lines (docs/json.md)");
  verb.run = [options] { return cache(*options); };
  return verb;
}

}  // namespace trireme::cli

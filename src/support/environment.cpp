#include "support/environment.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <vector>

namespace trireme::environment {
namespace {

constexpr char threads_name[] = "TRIREME_THREADS", isa_name[] = "TRIREME_ISA", hide_name[] = "TRIREME_HIDE",
               cache_name[] = "TRIREME_CACHE", verbose_name[] = "TRIREME_VERBOSE", perf_name[] = "TRIREME_PERF",
               nvrtc_name[] = "TRIREME_NVRTC", wasmtime_name[] = "TRIREME_WASMTIME";

std::string lower(std::string text) {
  for (char& each : text)
    if (each >= 'A' && each <= 'Z') each += 'a' - 'A';
  return text;
}

std::optional<bool> on_or_off(const std::string& text) {
  constexpr std::string_view on[] = {"on", "1", "yes", "true"}, off[] = {"off", "0", "no", "false"};
  const std::string word = lower(text);
  if (std::ranges::find(on, word) != std::end(on)) return true;
  if (std::ranges::find(off, word) != std::end(off)) return false;
  return std::nullopt;
}

Result<std::string> path(const char* name) {
  std::string text = variable(name);
  if (!text.starts_with('~')) return text;
  if (text.size() > 1 && text[1] != '/')
    return wrong(name, "a path, and of its beginnings with ~ only ~/, the home of the caller, is understood");
  const std::string home = variable("HOME");
  if (home.empty()) return wrong(name, "a path, and HOME, which ~ stands for, is not set");
  return home + text.substr(1);
}

std::vector<std::string> between_commas(std::string_view text) {
  std::vector<std::string> parts;
  for (bool more = !text.empty(); more;) {
    const std::size_t end = text.find(',');
    std::string part(text.substr(0, end));
    part.erase(0, part.find_first_not_of(' '));
    part.erase(part.find_last_not_of(' ') + 1);
    parts.push_back(std::move(part));
    more = end != std::string_view::npos;
    if (more) text.remove_prefix(end + 1);
  }
  return parts;
}

bool is_word(std::string_view text) {
  return !text.empty() &&
         std::ranges::all_of(text, [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; });
}

template <auto read>
Status checked() {
  if (auto result = read(); !result) return result.error();
  return Done{};
}

constexpr Setting table[] = {
    {threads_name, "N", "threads on CPUs, 1 to 4096, where a plan or verb is not told; else one per core",
     checked<threads>},
    {isa_name, "NAME", "what 'cpu' runs on, as avx2 of cpu:avx2; else the widest there is", checked<isa>},
    {hide_name, "SETS", "instruction sets taken not to be there, and those beyond them: avx512_bf16, avx512, avx2",
     checked<hidden>},
    {cache_name, "DIR", "where compiled kernels are kept, or off; else ~/.cache/trireme", checked<cache>},
    {verbose_name, "on", "says on standard error why kernels are not kept on disk", checked<verbose>},
    {perf_name, "map", "writes /tmp/perf-PID.map, from which perf names kernels", checked<perf_map>},
    {nvrtc_name, "FILE", "NVRTC's library, which compiles CUDA C++; else searched for", checked<nvrtc>},
    {wasmtime_name, "FILE", "wasmtime's library, which runs WebAssembly; else searched for", checked<wasmtime>},
};

}  // namespace

std::span<const Setting> settings() { return table; }

Error wrong(const char* name, const std::string& takes) {
  return {Code::InvalidArgument, std::string(name) + " is " + takes + ", not '" + variable(name) + "'"};
}

Status check() {
  for (const Setting& each : table) TRIREME_CHECK(each.check());
  return Done{};
}

std::string variable(const char* name) {
#if defined(__GLIBC__)
  const char* value = ::secure_getenv(name);
#else
  const char* value = std::getenv(name);
#endif
  return value ? value : "";
}

Result<std::optional<int>> threads() {
  const std::string text = variable(threads_name);
  if (text.empty()) return std::optional<int>();
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 1 || number > most_threads)
    return wrong(threads_name, "a number from 1 to " + std::to_string(most_threads));
  return std::optional(number);
}

Result<std::string> isa() {
  const std::string name = lower(variable(isa_name));
  if (!name.empty() && !is_word(name)) return wrong(isa_name, "the name of an instruction set");
  return name;
}

Result<std::vector<std::string>> hidden() {
  std::vector<std::string> names = between_commas(lower(variable(hide_name)));
  for (const std::string& each : names)
    if (!is_word(each)) return wrong(hide_name, "a list of instruction sets, between commas");
  return names;
}

Result<CachePlace> cache() {
  const std::string text = variable(cache_name);
  if (const std::optional<bool> on = on_or_off(text)) return CachePlace{.off = !*on};
  TRIREME_TRY(folder, path(cache_name));
  // A word without a slash is more likely a switch that is spelt otherwise than a folder of that name right here.
  if (!folder.empty() && folder.find('/') == std::string::npos)
    return wrong(cache_name, "a folder (with a slash: ./here), on or off");
  return CachePlace{.folder = folder};
}

Result<bool> verbose() {
  const std::string text = variable(verbose_name);
  if (text.empty()) return false;
  if (const std::optional<bool> on = on_or_off(text)) return *on;
  return wrong(verbose_name, "on or off");
}

Result<bool> perf_map() {
  const std::string text = variable(perf_name);
  if (text.empty()) return false;
  if (lower(text) == "map") return true;
  if (const std::optional<bool> on = on_or_off(text); on && !*on) return false;
  return wrong(perf_name, "map or off");
}

Result<std::string> nvrtc() { return path(nvrtc_name); }
Result<std::string> wasmtime() { return path(wasmtime_name); }

}  // namespace trireme::environment

#include "support/environment.hpp"

#include <algorithm>
#include <cstdlib>

namespace trireme::environment {
namespace {

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& each : result)
    if (each >= 'A' && each <= 'Z') each += 'a' - 'A';
  return result;
}

Error wrong(const char* name, const std::string& takes) {
  return {Code::InvalidArgument, std::string(name) + " is " + takes + ", not '" + variable(name) + "'"};
}

template <typename T>
Status status_of(const Result<T>& result) {
  if (!result) return result.error();
  return Done{};
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

constexpr char hide[] = "TRIREME_HIDE";

constexpr Setting table[] = {
    {hide, "avx512", "instruction sets taken not to be there: avx512_bf16, avx512, avx2 (hides all)",
     [] { return status_of(first_hidden()); }},
};

}  // namespace

std::span<const Setting> settings() { return table; }

std::string variable(const char* name) {
#if defined(__GLIBC__)
  const char* value = ::secure_getenv(name);
#else
  const char* value = std::getenv(name);
#endif
  return value ? value : "";
}

Result<std::optional<std::size_t>> first_hidden() {
  std::optional<std::size_t> first;
  for (const std::string& each : between_commas(variable(hide))) {
    const auto found = std::ranges::find(instruction_sets, lower(each));
    const auto index = static_cast<std::size_t>(found - std::begin(instruction_sets));
    if (index == std::size(instruction_sets)) return wrong(hide, "a list of avx2, avx512, avx512_bf16");
    first = std::min(first.value_or(index), index);
  }
  return first;
}

}  // namespace trireme::environment

#include "targets/listing.hpp"

#include <algorithm>

namespace trireme {

std::string comment_of(const Instr& instr, const Kernel& kernel) {
  switch (instr.code) {
    case Do::Note:
    case Do::Name: return print(instr, kernel).substr(2);
    case Do::PointerSlot:
    case Do::PointerAdd:
    case Do::While:
    case Do::If:
    case Do::Load:
    case Do::LoadOne:
    case Do::Store:
    case Do::StoreOne: return print(instr, kernel);
    default: return {};
  }
}

std::string laid_out(const Kernel& kernel, std::string_view log) {
  Kernel head = kernel;
  head.body.clear();
  std::string text;
  text.reserve(log.size() + log.size() / 2);
  auto lines = [](std::string_view all, auto&& each) {
    for (; !all.empty(); all.remove_prefix(std::min(all.find('\n') + 1, all.size())))
      each(all.substr(0, all.find('\n')));
  };
  lines(print(head), [&](std::string_view line) { text.append("; ").append(line) += '\n'; });
  int depth = 0;
  lines(log, [&](std::string_view line) {
    const bool comment = line.starts_with("; ");
    if (comment && line.starts_with("; }")) --depth;
    text.append(static_cast<std::size_t>(2 * depth + (comment || line.ends_with(':') ? 0 : 4)), ' ').append(line) +=
        '\n';
    if (comment && line.ends_with('{')) ++depth;
  });
  return text;
}

}  // namespace trireme

#include "targets/listing.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace trireme {

std::string comment_of(const Instr& instr, const Kernel& kernel) {
  switch (instr.code) {
    case Do::Note: return kernel.notes[instr.imm];
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
  auto lines = [](std::string_view all, auto&& each) {
    for (; !all.empty(); all.remove_prefix(std::min(all.find('\n') + 1, all.size())))
      each(all.substr(0, all.find('\n')));
  };
  lines(print(head), [&](std::string_view line) { text += fmt::format("; {}\n", line); });
  int depth = 0;
  lines(log, [&](std::string_view line) {
    const bool comment = line.starts_with("; ");
    if (comment && line.starts_with("; }")) --depth;
    text += fmt::format("{:{}}{}\n", "", 2 * depth + (comment || line.ends_with(':') ? 0 : 4), line);
    if (comment && line.ends_with('{')) ++depth;
  });
  return text;
}

}  // namespace trireme

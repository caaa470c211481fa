// How far long work has come.
#pragma once
#include <fmt/format.h>
#include <unistd.h>

#include <string>
#include <utility>

#include "output.hpp"

namespace trireme::cli {

// One line on a terminal that rewrites itself; nothing elsewhere.
class Progress {
 public:
  explicit Progress(std::string what) : what_(std::move(what)), shown_(isatty(STDERR_FILENO)) { show("checking"); }
  ~Progress() {
    if (shown_) complain("\r\033[K");
  }
  Progress(const Progress&) = delete;
  void at(double part, const char* doing = "timing") {
    if (int percent = static_cast<int>(part * 100); percent != last_)
      last_ = percent, show(fmt::format("{} {} %", doing, percent));
  }

 private:
  void show(const std::string& state) const {
    if (shown_) complain(fmt::format("\r\033[K{}: {}", what_, state));
  }
  std::string what_;
  bool shown_;
  int last_ = -1;
};

}  // namespace trireme::cli

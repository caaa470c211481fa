// ptxas, where it is installed, judges what the builder writes.
#pragma once
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>

namespace trireme::ptx {

// Runs ptxas on a module; false with its words when it refuses.
inline testing::AssertionResult assembles(const std::string& text, std::string_view arch) {
  std::filesystem::path folder = std::filesystem::temp_directory_path() / ("trireme_ptx_" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "a.ptx") << text;
  std::string command = "ptxas -arch=" + std::string(arch) + " -o /dev/null " + (folder / "a.ptx").string() + " > " +
                        (folder / "log").string() + " 2>&1";
  bool accepted = std::system(command.c_str()) == 0;
  std::stringstream log;
  log << std::ifstream(folder / "log").rdbuf();
  std::filesystem::remove_all(folder);
  return accepted ? testing::AssertionSuccess() : testing::AssertionFailure() << arch << ": " << log.str() << text;
}
inline bool has_ptxas() {
  static const bool has = std::system("ptxas --version > /dev/null 2>&1") == 0;
  return has;
}

}  // namespace trireme::ptx

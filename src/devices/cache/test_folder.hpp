// A folder for one test, and what the tests of the cache share.
#pragma once
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "devices/cache/kernel_cache.hpp"

namespace trireme {

class CacheTest : public testing::Test {
 protected:
  CacheTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "trireme_cache_XXXXXX").string();
    root = ::mkdtemp(pattern.data());
    folder = root / "cache";
  }
  ~CacheTest() override {
    std::error_code ignored;
    std::filesystem::remove_all(root, ignored);
  }

  KernelCache::Options options() const { return {.folder = folder.string()}; }

  // Leaves a mark that all processes see.
  KernelCache::Make making(std::string artifact) const {
    return [this, artifact]() -> Result<std::string> {
      std::ofstream(root / "made", std::ios::app) << "x" << std::flush;
      return artifact;
    };
  }
  std::size_t times_made() const {
    std::error_code none;
    auto size = std::filesystem::file_size(root / "made", none);
    return none ? 0 : size;
  }
  std::vector<std::filesystem::path> files(std::string_view ending) const {
    std::vector<std::filesystem::path> found;
    for (const auto& each : std::filesystem::directory_iterator(folder))
      if (each.path().string().ends_with(ending)) found.push_back(each.path());
    return found;
  }

  std::filesystem::path root, folder;
  CacheKey key = CacheKey("test", "artifact").with("number", 1);
};

// Runs in a process of its own; its exit code is what `work` returns.
template <typename Work>
pid_t in_child(Work&& work) {
  pid_t child = ::fork();
  if (child == 0) ::_exit(work());
  return child;
}
inline int exit_code(pid_t child) {
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 256 + WTERMSIG(status);
}

inline std::string content(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}
inline void put(const std::filesystem::path& file, std::string_view bytes) {
  std::ofstream(file, std::ios::binary | std::ios::trunc) << bytes;
}

}  // namespace trireme

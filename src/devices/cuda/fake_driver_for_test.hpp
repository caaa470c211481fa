// Builds fake_driver.c with the flags a test asks for, and asks it what it counted.
#pragma once
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "devices/cache/kernel_cache.hpp"
#include "devices/cuda/driver.hpp"

namespace trireme::cuda {

class FakeDriver : public testing::Test {
 protected:
  FakeDriver() {
    std::string pattern = (std::filesystem::temp_directory_path() / "trireme_cuda_XXXXXX").string();
    folder = ::mkdtemp(pattern.data());
  }
  ~FakeDriver() override {
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);
  }

  // Empty when there is no compiler.
  std::string fake(const std::string& flags) {
    std::string library = (folder / ("libfake" + std::to_string(count_++) + ".so")).string();
    std::string command = "cc -shared -fPIC -O1 " + flags + " -o " + library +
                          " " TRIREME_SOURCE_DIR "/src/devices/cuda/fake_driver.c 2> /dev/null";
    return std::system(command.c_str()) == 0 ? library : "";
  }

  std::filesystem::path folder;
  KernelCache cache{{}};  // memory only

 private:
  int count_ = 0;
};

class FakeCounts {
 public:
  explicit FakeCounts(const std::string& library) : handle_(dlopen(library.c_str(), RTLD_NOW)) {}
  ~FakeCounts() { dlclose(handle_); }
  FakeCounts(const FakeCounts&) = delete;
  int of(const char* counter) const { return reinterpret_cast<int (*)()>(dlsym(handle_, counter))(); }

 private:
  void* handle_;
};

}  // namespace trireme::cuda

// Processes whose libcuda.so.1 is fake_driver.c: what they launch is written down, and runs nothing. The driver is
// opened once a process, so each test has one of its own.
#pragma once
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "trireme/result.hpp"

namespace trireme {

struct FakeLaunch {
  char name[48];
  unsigned grid[3], block[3], shared_bytes;
  void* stream;
  std::int64_t first, last, total;
};

class Fake {
 public:
  // Takes the place of libcuda.so.1 in this process: who opens that name gets what is already open under it.
  explicit Fake(const std::string& library) : handle_(dlopen(library.c_str(), RTLD_NOW | RTLD_GLOBAL)) {}
  template <typename Signature>
  Signature* get(const char* name) const {
    return reinterpret_cast<Signature*>(dlsym(handle_, name));
  }
  std::vector<FakeLaunch> launches() const {
    auto* first = reinterpret_cast<const FakeLaunch*>(get<const void*()>("fake_launches")());
    std::vector<FakeLaunch> all(first, first + get<int()>("fake_launch_count")());
    get<void()>("fake_forget")();
    return all;
  }
  int modules() const { return get<int()>("fake_loads")(); }
  int depth() const { return get<int()>("fake_depth")(); }

 private:
  void* handle_;
};

inline int failures = 0;  // of this process
inline void expect(bool right, const std::string& what) {
  if (right) return;
  ++failures;
  fprintf(stderr, "FAILED %s\n", what.c_str());
}
template <typename T>
void expect_refused(const Result<T>& result, Code code, const std::string& part) {
  if (result) return expect(false, "not refused: " + part);
  expect(result.error().code == code && result.error().message.find(part) != std::string::npos,
         std::string(name(result.error().code)) + ": " + result.error().message + "\n   wanted: " + part);
}

// Runs `body` in a new process whose driver is the fake; "right" is what it says in the end.
class FakeProcess : public testing::Test {
 protected:
  void run(const std::string& flags, const std::function<void(const Fake&)>& body) {
    testing::GTEST_FLAG(death_test_style) = "threadsafe";
    std::string library = folder() + "/libcuda" + flags + ".so";
    if (!std::filesystem::exists(library)) {
      std::string command = "cc -shared -fPIC -Wl,-soname,libcuda.so.1 " + flags + " -o " + library +
                            " " TRIREME_SOURCE_DIR "/src/devices/cuda/fake_driver.c 2> /dev/null";
      if (std::system(command.c_str()) != 0) GTEST_SKIP() << "no C compiler to build the fake driver";
    }
    EXPECT_EXIT(
        {
          setenv("TRIREME_CACHE", "off", 1);
          Fake fake(library);
          body(fake);
          fprintf(stderr, failures ? "wrong" : "right");
          _exit(failures != 0);
        },
        testing::ExitedWithCode(0), "right");
  }

  // The test's processes share one folder, and the first of them removes it.
  static std::string folder() {
    if (const char* made = std::getenv(variable)) return made;
    auto path = std::filesystem::temp_directory_path() / ("trireme_fake_" + std::to_string(getpid()));
    std::filesystem::create_directories(path);
    setenv(variable, path.c_str(), 1);
    owner_ = getpid();
    return path;
  }
  static void TearDownTestSuite() {
    std::error_code ignored;
    if (owner_ == getpid()) std::filesystem::remove_all(folder(), ignored), unsetenv(variable);
  }

 private:
  static constexpr const char* variable = "TRIREME_TEST_FAKES";
  static inline pid_t owner_ = 0;
};

}  // namespace trireme

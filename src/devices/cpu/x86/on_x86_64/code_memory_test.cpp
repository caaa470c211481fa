// Executable memory given and refused.
#include "devices/cpu/code_memory.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <fstream>
#include <string>
#include <vector>

#include "devices/cpu/deny_for_test.hpp"

namespace trireme::cpu {
namespace {

// mov eax, 42; ret
const std::vector<std::uint8_t> returns_42 = {0xB8, 42, 0, 0, 0, 0xC3}, returns_7 = {0xB8, 7, 0, 0, 0, 0xC3};

TEST(CodeMemory, RunsAndIsNeverWritable) {
  Result<CodeMemory> made = CodeMemory::create({{returns_42}, {returns_7}});
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(made->entry<int()>()(), 42);
  CodeMemory moved = std::move(*made);
  EXPECT_EQ(moved.size(), 2u);
  EXPECT_EQ(moved.entry<int()>()(), 42);
  EXPECT_EQ(moved.entry<int()>(1)(), 7);
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) EXPECT_EQ(line.find(" rwxp"), std::string::npos) << line;
}

TEST(CodeMemory, NoMemoryIsAnErrorOfItsOwn) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const rlimit none = {0, 0};
    if (setrlimit(RLIMIT_AS, &none) != 0) _exit(2);
    Result<CodeMemory> made = CodeMemory::create({{returns_42}});
    _exit(!made && made.error().code == Code::OutOfMemory ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

// In a child whose system calls refuse mprotect with PROT_EXEC, as SELinux and MemoryDenyWriteExecute do.
TEST(CodeMemory, fault_27_DeniedMemoryIsAClearError) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    if (!deny_executable_memory()) _exit(2);
    Result<CodeMemory> made = CodeMemory::create({{returns_42}});
    _exit(!made && made.error().code == Code::Driver &&
                  made.error().message.find("Permission denied") != std::string::npos
              ? 0
              : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 2) GTEST_SKIP() << "seccomp is not allowed here";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace trireme::cpu

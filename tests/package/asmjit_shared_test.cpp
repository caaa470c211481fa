// asmjit works from inside a shared library that is loaded at run time.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdint>

namespace {

class AsmjitShared : public testing::Test {
 protected:
  void SetUp() override {
    library_ = dlopen(ASMJIT_SHARED_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library_, nullptr) << dlerror();
  }
  template <typename Function>
  Function* find(const char* name) {
    return reinterpret_cast<Function*>(dlsym(library_, name));
  }
  void* library_ = nullptr;
};

TEST_F(AsmjitShared, CompilesAndCalls) {
  auto* compile_and_call = find<int64_t(int64_t, int64_t)>("compile_and_call");
  ASSERT_NE(compile_and_call, nullptr);
  EXPECT_EQ(compile_and_call(20, 2), 42);
  EXPECT_EQ(compile_and_call(-1, 5), 3);
}

TEST_F(AsmjitShared, WritesToTheRealStderr) {
  auto* complain_and_abort = find<void()>("complain_and_abort");
  ASSERT_NE(complain_and_abort, nullptr);
  EXPECT_DEATH(complain_and_abort(), "redirected");
}

}  // namespace

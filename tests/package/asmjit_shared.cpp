// A shared library that compiles a function with asmjit and calls it: asmjit_shared_test.cpp loads it.
#include <asmjit/asmjit.h>

#include <cstdint>
#include <cstdio>

// Returns a * 2 + b, computed by code made at run time; -1 if it could not be made.
extern "C" __attribute__((visibility("default"))) int64_t compile_and_call(int64_t a, int64_t b) {
  using namespace asmjit;
  JitRuntime runtime;
  CodeHolder code;
  code.init(runtime.environment());
  x86::Compiler compiler(&code);
  FuncNode* function = compiler.addFunc(FuncSignatureT<int64_t, int64_t, int64_t>());
  x86::Gp x = compiler.newInt64(), y = compiler.newInt64();
  function->setArg(0, x);
  function->setArg(1, y);
  compiler.lea(x, x86::ptr(y, x, 1));
  compiler.ret(x);
  compiler.endFunc();
  if (compiler.finalize() != kErrorOk) return -1;
  int64_t (*compiled)(int64_t, int64_t) = nullptr;
  if (runtime.add(&compiled, &code) != kErrorOk) return -1;
  int64_t result = compiled(a, b);
  runtime.release(compiled);
  return result;
}

// asmjit's one use of stderr, which the build redirects.
extern "C" __attribute__((visibility("default"))) void complain_and_abort() {
  asmjit::DebugUtils::assertionFailed("asmjit_shared.cpp", 1, "redirected");
}

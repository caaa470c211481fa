// What shrink leaves of a function, as bytes between the declaration of its locals and the end.
#include "targets/wasm/shrink.hpp"

#include <gtest/gtest.h>

namespace trireme::wasm {
namespace {

// The names of what is left.
template <typename Write>
std::string shrunk(Write&& write) {
  Function f("f", Type::I32);
  const auto a = f.parameter<I32>("a"), b = f.parameter<I32>("b");
  write(f, a, b);
  const Body body = shrink(f.finish().value());
  EXPECT_TRUE(check(body));
  std::string names;
  for (const Body::Item& item : body.items) {
    names += (names.empty() ? "" : " ") + std::string(item.instruction->name);
    if (item.instruction->immediate == Immediate::Local) names += " " + body.locals[item.a].name;
    if (item.instruction->immediate == Immediate::Const)
      names += " " + std::to_string(static_cast<std::int32_t>(item.a));
  }
  return names;
}

TEST(Shrink, WhatIsReadOnceStaysOnTheStack) {
  EXPECT_EQ(shrunk([](Function& f, auto a, auto b) {
              const auto t = f.local<I32>("t");
              f.get(a), f.get(b), f.op("i32.sub"), f.set(t), f.get(t);
            }),
            "local.get a local.get b i32.sub");
  EXPECT_EQ(shrunk([](Function& f, auto a, auto b) {
              const auto t = f.local<I32>("t");
              f.get(a), f.get(b), f.op("i32.sub"), f.set(t), f.get(b), f.get(t), f.op("i32.add");
            }),
            "local.get a local.get b i32.sub local.get b i32.add");
}

TEST(Shrink, OrderThatMattersStays) {
  EXPECT_EQ(shrunk([](Function& f, auto a, auto b) {
              const auto t = f.local<I32>("t");
              f.get(a), f.op("i32.eqz"), f.set(t), f.get(b), f.get(t), f.op("i32.sub");
            }),
            "local.get a i32.eqz local.set t local.get b local.get t i32.sub");
}

TEST(Shrink, ReadTwiceItIsSetAndKept) {
  EXPECT_EQ(shrunk([](Function& f, auto a, auto) {
              const auto t = f.local<I32>("t");
              f.get(a), f.op("i32.eqz"), f.set(t), f.get(t), f.get(t), f.op("i32.mul");
            }),
            "local.get a i32.eqz local.tee t local.get t i32.mul");
}

TEST(Shrink, ConstantsAndCopies) {
  EXPECT_EQ(shrunk([](Function& f, auto a, auto) {
              const auto t = f.local<I32>("t"), u = f.local<I32>("u");
              f.i32_const(7), f.set(t), f.get(a), f.set(u);
              f.get(u), f.get(t), f.op("i32.sub"), f.get(t), f.op("i32.sub");
            }),
            "local.get a i32.const 7 i32.sub i32.const 7 i32.sub");
  EXPECT_EQ(shrunk([](Function& f, auto a, auto) {
              const auto zero = f.local<I64>("zero");
              f.i64_const(0), f.set(zero), f.get(a), f.get(zero), f.op("i32.wrap_i64"), f.op("i32.add");
            }),
            "local.get a");
}

// A local that a branch may have left at zero, one that changes, and a copy of one that changes later.
TEST(Shrink, WhatMayBeAnotherValueStays) {
  EXPECT_EQ(shrunk([](Function& f, auto a, auto) {
              const auto t = f.local<I32>("t");
              f.get(a);
              const Label taken = f.if_();
              f.i32_const(7), f.set(t), f.end(taken), f.get(t);
            }),
            "local.get a if i32.const 7 local.set t end local.get t");
  EXPECT_EQ(
      shrunk([](Function& f, auto a, auto) {
        const auto t = f.local<I32>("t"), u = f.local<I32>("u");
        f.get(a), f.op("i32.eqz"), f.set(t), f.get(t), f.set(u);
        f.get(u), f.i32_const(1), f.op("i32.sub"), f.set(t), f.get(u), f.get(t), f.op("i32.sub");
      }),
      "local.get a i32.eqz local.tee t local.tee u i32.const 1 i32.sub local.set t local.get u local.get t i32.sub");
}

}  // namespace
}  // namespace trireme::wasm

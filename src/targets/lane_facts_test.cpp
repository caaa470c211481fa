#include "targets/lane_facts.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "schedule/kernel_builder.hpp"

namespace trireme {
namespace {

struct Made {
  Kernel kernel;
  KernelBuilder b{kernel};
  Reg load(Type type) {
    const Reg value = b.fresh(Bank::Lane);
    b.emit({.code = Do::Load, .type = type, .a = b.pointer_to(0), .values = {value}});
    return value;
  }
  Reg rounded(Reg value, Type type) {
    return b.into(Bank::Lane, {.code = Do::Primitive, .op = Op::RoundTo, .type = type, .a = value});
  }
};

TEST(LaneFacts, ExactIsWhatIsLoadedAsATypeOrRoundedToIt) {
  Made made;
  const Reg x = made.load(Type::BF16), y = made.load(Type::F32), rounded = made.rounded(y, Type::BF16);
  const Reg sum = made.b.primitive(Op::Add, {x, rounded}), infinite = made.load(Type::F8E5M2);
  const LaneFacts facts(made.kernel);
  EXPECT_TRUE(facts.exact(x, Type::BF16));
  EXPECT_FALSE(facts.exact(x, Type::F16));
  EXPECT_FALSE(facts.exact(y, Type::BF16));
  EXPECT_TRUE(facts.exact(rounded, Type::BF16));
  EXPECT_FALSE(facts.exact(rounded, Type::F16));
  EXPECT_FALSE(facts.exact(sum, Type::BF16));
  EXPECT_FALSE(facts.exact(infinite, Type::F8E5M2));  // is stored as the largest number
  EXPECT_FALSE(facts.exact({}, Type::BF16));
  EXPECT_FALSE(facts.exact({Bank::Lane, 1000}, Type::BF16));
}

TEST(LaneFacts, NothingIsKnownOfWhatIsWrittenTwice) {
  Made made;
  const Reg rounded = made.rounded(made.load(Type::F32), Type::BF16), one = made.b.number(1);
  const LaneFacts before(made.kernel);
  EXPECT_TRUE(before.exact(rounded, Type::BF16));
  EXPECT_EQ(before.constant(one), 1);
  made.b.repeat_while_less(made.b.copy(made.b.index(0)), made.b.index(2), [&] {
    made.b.assign(rounded, one);
    made.b.assign(one, rounded);
  });
  const LaneFacts after(made.kernel);
  EXPECT_FALSE(after.exact(rounded, Type::BF16));
  EXPECT_EQ(after.constant(one), std::nullopt);
}

TEST(LaneFacts, PlainConstantsAreNeitherZeroNorNan) {
  Made made;
  const Reg one = made.b.number(-1), zero = made.b.number(-0.0), nan = made.b.number(std::nan(""));
  const LaneFacts facts(made.kernel);
  EXPECT_TRUE(facts.plain_constant(one));
  EXPECT_FALSE(facts.plain_constant(zero));
  EXPECT_FALSE(facts.plain_constant(nan));
  EXPECT_FALSE(facts.plain_constant(made.load(Type::F32)));
}

}  // namespace
}  // namespace trireme

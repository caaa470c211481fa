#include "schedule/verify_kernel.hpp"

#include <gtest/gtest.h>

#include <bit>

#include "schedule/registers_for_test.hpp"

namespace trireme {
namespace {

Status verified(Instr instr, bool simd = false) {
  Kernel kernel{.name = "k", .simd = simd, .launch = {.lanes = 8}, .slots = {{Slot::What::Columns}}};
  kernel.lane_count = kernel.mask_count = kernel.index_count = kernel.pointer_count = 4;
  kernel.body = {{.code = Do::While, .a = x(0), .imm = 1, .body = std::vector{instr}}};
  return verify(kernel);
}

void accept(Instr instr, bool simd = false) {
  Status status = verified(instr, simd);
  EXPECT_TRUE(status) << status.error().message;
}

void refuse(Instr instr, const std::string& why, bool simd = false) {
  Status status = verified(instr, simd);
  ASSERT_FALSE(status) << why;
  EXPECT_EQ(status.error().code, Code::Internal);
  EXPECT_NE(status.error().message.find(why), std::string::npos) << status.error().message;
}

TEST(verify_kernel, registers) {
  accept({.code = Do::IndexAdd, .dst = x(0), .a = x(1), .b = x(2)});
  accept({.code = Do::IndexAdd, .dst = x(0), .a = x(1), .imm = 2});
  accept({.code = Do::IndexMove, .dst = p(0), .a = p(1)});
  refuse({.code = Do::IndexAdd, .dst = x(4), .a = x(1)}, "x4 = x1 + 0: dst must be x");
  refuse({.code = Do::IndexAdd, .dst = x(0), .a = f(1)}, "x0 = f1 + 0: a must be x");
  refuse({.code = Do::IndexAdd, .dst = x(0)}, "a must be x");
  refuse({.code = Do::IndexMove, .dst = p(0), .a = x(1)}, "a must be p");
  refuse({.code = Do::Barrier, .a = x(0)}, "a must be absent");
  accept({.code = Do::Primitive, .op = Op::Less, .dst = m(0), .a = f(1), .b = f(1)});
  accept({.code = Do::Primitive, .op = Op::Select, .dst = f(0), .a = m(1), .b = f(1), .c = f(2)});
  accept({.code = Do::Primitive, .op = Op::Not, .dst = m(0), .a = m(1)});
  refuse({.code = Do::Primitive, .op = Op::Sum, .dst = f(0), .a = f(1)}, "not a primitive");
  refuse({.code = Do::Primitive, .op = Op::Fma, .dst = f(0), .a = f(1), .b = f(1)}, "c must be f");
  refuse({.code = Do::Primitive, .op = Op::Less, .dst = f(0), .a = f(1), .b = f(1)}, "dst must be m");
}

TEST(verify_kernel, memory) {
  accept({.code = Do::Load, .a = p(0), .b = x(0), .c = m(0), .values = {f(0), f(1)}});
  accept({.code = Do::Load, .space = Space::Scratch, .values = {f(0)}});
  accept({.code = Do::Load, .a = p(0), .values = {f(0)}}, true);
  refuse({.code = Do::Load, .space = Space::Global, .values = {f(0)}}, "a must be p");
  refuse({.code = Do::Load, .space = Space::Scratch, .a = p(0), .values = {f(0)}}, "a must be x?");
  refuse({.code = Do::Load, .a = p(0)}, "0 values");
  refuse({.code = Do::Load, .a = p(0), .values = {f(0), f(1)}}, "2 values", true);
  refuse({.code = Do::StoreOne, .a = p(0), .values = {f(0), f(1)}}, "2 values");
  refuse({.code = Do::Store, .a = p(0), .values = {f(7)}}, "values must be f");
  accept({.code = Do::Load, .backwards = true, .a = p(0), .values = {f(0)}}, true);
  accept({.code = Do::Store, .backwards = true, .a = p(0), .values = {f(0), f(1)}}, true);
  refuse({.code = Do::Load, .backwards = true, .a = p(0), .values = {f(0)}}, "go backwards");
  refuse({.code = Do::Load, .space = Space::Scratch, .backwards = true, .values = {f(0)}}, "go backwards", true);
  refuse({.code = Do::LoadOne, .backwards = true, .dst = f(0), .a = p(0)}, "go backwards", true);
}

TEST(verify_kernel, numbers) {
  accept({.code = Do::IndexSlot, .dst = x(0), .imm = 0});
  refuse({.code = Do::IndexSlot, .dst = x(0), .imm = 1}, "1 is not below 1");
  refuse({.code = Do::IndexArgument, .dst = x(0), .imm = 3}, "3 is not below 3");
  refuse({.code = Do::ShuffleXor, .dst = f(0), .a = f(0), .imm = 8}, "8 is not below 8");
  refuse({.code = Do::Primitive, .op = Op::BitsShiftLeft, .dst = f(0), .a = f(0), .imm = 32}, "32 is not below 32");
  accept({.code = Do::LaneConstant, .dst = f(0), .imm = std::bit_cast<std::int64_t>(0.5)});
  refuse({.code = Do::LaneConstant, .dst = f(0), .imm = std::bit_cast<std::int64_t>(0.1)}, "not exact");
}

TEST(verify_kernel, machines) {
  accept({.code = Do::ThreadLane, .dst = x(0)});
  refuse({.code = Do::ThreadLane, .dst = x(0)}, "only thread machines", true);
  refuse({.code = Do::Barrier}, "only thread machines", true);
  EXPECT_FALSE(verify({.name = "k", .simd = false, .launch = {.lanes = 24}}));
  EXPECT_FALSE(verify({.name = "k", .simd = false, .launch = {.lanes = 32, .groups = 64}}));
  EXPECT_FALSE(verify({.name = "k", .compute = Type::BF16}));
}

}  // namespace
}  // namespace trireme

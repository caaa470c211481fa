#include <gtest/gtest.h>

#include "schedule/kernel_builder.hpp"
#include "schedule/registers_for_test.hpp"

namespace trireme {
namespace {

void check(const Instr& instr, std::string_view expected, bool simd = false) {
  EXPECT_EQ(print(instr, Kernel{.simd = simd}), expected);
}

TEST(print_kernel, index) {
  check({.code = Do::IndexConstant, .dst = x(0), .imm = -5}, "x0 = -5");
  check({.code = Do::IndexSlot, .dst = x(1), .imm = 3}, "x1 = args[3]");
  check({.code = Do::IndexArgument, .dst = x(1), .imm = 0}, "x1 = first");
  check({.code = Do::IndexArgument, .dst = x(1), .imm = 2}, "x1 = total");
  check({.code = Do::ThreadLane, .dst = x(1)}, "x1 = lane");
  check({.code = Do::ThreadGroup, .dst = x(1)}, "x1 = group");
  check({.code = Do::ThreadTeam, .dst = x(1)}, "x1 = team");
  check({.code = Do::BlockIndex, .dst = x(1)}, "x1 = block");
  check({.code = Do::BlockRank, .dst = x(1)}, "x1 = rank");
  check({.code = Do::IndexMove, .dst = x(1), .a = x(2)}, "x1 = x2");
  check({.code = Do::IndexAdd, .dst = x(1), .a = x(2), .b = x(3)}, "x1 = x2 + x3");
  check({.code = Do::IndexSub, .dst = x(1), .a = x(2), .imm = 4}, "x1 = x2 - 4");
  check({.code = Do::IndexMul, .dst = x(1), .a = x(2), .imm = 4}, "x1 = x2 * 4");
  check({.code = Do::IndexMin, .dst = x(7), .a = x(2), .b = x(5)}, "x7 = min(x2, x5)");
  check({.code = Do::IndexAnd, .dst = x(1), .a = x(2), .imm = 31}, "x1 = x2 & 31");
  check({.code = Do::IndexShiftRight, .dst = x(1), .a = x(2), .imm = 8}, "x1 = x2 >> 8");
  check({.code = Do::IndexDivide, .dst = x(1), .a = x(2), .b = x(3)}, "x1 = x2 / x3");
  check({.code = Do::IndexRemainder, .dst = x(1), .a = x(2), .b = x(3)}, "x1 = x2 % x3");
  check({.code = Do::PointerSlot, .dst = p(0), .imm = 1}, "p0 = args[1]");
  check({.code = Do::PointerAdd, .dst = p(1), .a = p(0), .b = x(2), .imm = 2}, "p1 = p0 + x2*2");
}

TEST(print_kernel, memory) {
  Values eight;
  for (int k = 0; k < 8; ++k) eight.push_back(f(k));
  check({.code = Do::Load, .type = Type::BF16, .a = p(1), .b = x(3), .c = m(1), .imm = 32, .values = eight},
        "f0 .. f7 = load bf16 global [p1 + x3*2 + 32] if m1");
  check({.code = Do::Load, .space = Space::Scratch, .a = x(3), .imm = -4, .values = {f(1), f(2)}},
        "f1, f2 = load f32 scratch [x3 - 4]");
  check({.code = Do::Load, .space = Space::Scratch, .imm = 64, .values = {f(1), f(4), f(5), f(6)}},
        "f1, f4 .. f6 = load f32 scratch [64]");
  check({.code = Do::LoadOne, .type = Type::F8E4M3, .dst = f(2), .a = p(1), .b = x(3)},
        "f2 = load one f8e4m3 global [p1 + x3]");
  check({.code = Do::Store, .type = Type::F16, .hint = Hint::Streaming, .a = p(1), .c = m(2), .values = {f(9)}},
        "store f16 global streaming [p1] = f9 if m2");
  check({.code = Do::Store, .backwards = true, .a = p(1), .b = x(2), .imm = -64, .values = {f(9)}},
        "store f32 global backwards [p1 + x2*4 - 64] = f9");
  check({.code = Do::StoreOne, .space = Space::Scratch, .b = x(2), .values = {f(9)}},
        "store one f32 scratch [x2*4] = f9");
  check({.code = Do::CopyAsync,
         .type = Type::BF16,
         .a = p(1),
         .b = x(3),
         .c = m(0),
         .d = x(4),
         .imm = 16,
         .imm2 = 64,
         .count = 8},
        "copy_async 8 bf16 scratch [x4 + 64] = global [p1 + x3*2 + 16] if m0");
  check({.code = Do::CopyCommit}, "copy_commit");
  check({.code = Do::OpenMailbox, .imm2 = 64}, "open_mailbox scratch [64]");
  check({.code = Do::Send,
         .space = Space::Cluster,
         .a = x(1),
         .b = x(2),
         .c = m(0),
         .d = x(3),
         .imm = 8,
         .imm2 = 64,
         .values = {f(4)}},
        "send f32 block x3 [x1 + x2*4 + 8] = f4, mailbox [x1 + 64] if m0");
  check({.code = Do::Receive, .b = x(2), .imm2 = 64, .count = 16}, "receive 16 f32, mailbox [64], turn x2");
  check({.code = Do::CopyWait, .imm = 1}, "copy_wait 1");
  check({.code = Do::Barrier}, "barrier");
}

TEST(print_kernel, lanes) {
  check({.code = Do::LaneConstant, .dst = f(0), .imm = std::bit_cast<std::int64_t>(0.1)}, "f0 = 0.1");
  check({.code = Do::LaneConstant, .dst = f(0), .imm = std::bit_cast<std::int64_t>(-0.0)}, "f0 = -0");
  check({.code = Do::LaneSlot, .dst = f(0), .imm = 2}, "f0 = args[2]");
  check({.code = Do::LaneFromIndex, .dst = f(0), .a = x(2)}, "f0 = float(x2)");
  check({.code = Do::LaneColumn, .dst = f(0), .a = x(2), .imm = 16}, "f0 = float(x2 + 16)");
  check({.code = Do::LaneColumn, .dst = f(0), .a = x(2), .imm = 16}, "f0 = float(x2 + 16 + lane)", true);
  check({.code = Do::LaneMove, .dst = f(0), .a = f(2)}, "f0 = f2");
  check({.code = Do::ShuffleXor, .dst = f(0), .a = f(2), .imm = 16}, "f0 = shuffle_xor(f2, 16)");
  check({.code = Do::LaneBit, .dst = m(0), .imm = 16}, "m0 = (lane & 16) != 0");
  check({.code = Do::MaskBelow, .dst = m(0), .a = x(1), .b = x(2)}, "m0 = x1 < x2");
  check({.code = Do::MaskBelow, .dst = m(0), .a = x(1), .b = x(2), .imm = 3}, "m0 = x1 + 3 + lane < x2", true);
  check({.code = Do::MaskEqual, .dst = m(0), .a = x(1), .b = x(2), .imm = 3}, "m0 = x1 + 3 == x2", true);
  check({.code = Do::LaneColumn, .dst = f(0), .imm = 3}, "f0 = float(3 + lane)", true);
}

TEST(print_kernel, primitives) {
  auto check_op = [](Op op, std::string_view expected) {
    Reg dst = is_condition(op) ? m(3) : f(3);
    check({.code = Do::Primitive, .op = op, .type = Type::BF16, .dst = dst, .a = f(1), .b = f(2), .c = f(4), .imm = 23},
          expected);
  };
  check_op(Op::Add, "f3 = f1 + f2");
  check_op(Op::Sub, "f3 = f1 - f2");
  check_op(Op::Mul, "f3 = f1 * f2");
  check_op(Op::Div, "f3 = f1 / f2");
  check_op(Op::Neg, "f3 = -f1");
  check_op(Op::Abs, "f3 = abs(f1)");
  check_op(Op::Sqrt, "f3 = sqrt(f1)");
  check_op(Op::Fma, "f3 = fma(f1, f2, f4)");
  check_op(Op::Min, "f3 = min(f1, f2)");
  check_op(Op::Less, "m3 = f1 < f2");
  check_op(Op::LessEqual, "m3 = f1 <= f2");
  check_op(Op::Equal, "m3 = f1 == f2");
  check_op(Op::BitsAdd, "f3 = bits_add(f1, f2)");
  check_op(Op::BitsShiftLeft, "f3 = bits_shift_left(f1, 23)");
  check_op(Op::RoundTo, "f3 = round_to(f1, bf16)");
  check({.code = Do::Primitive, .op = Op::And, .dst = m(0), .a = m(1), .b = m(2)}, "m0 = m1 and m2");
  check({.code = Do::Primitive, .op = Op::Not, .dst = m(0), .a = m(1)}, "m0 = not m1");
  check({.code = Do::Primitive, .op = Op::Select, .dst = f(0), .a = m(1), .b = f(2), .c = f(3)},
        "f0 = select(m1, f2, f3)");
}

TEST(print_kernel, listing) {
  Kernel kernel{
      .name = "double_rows", .simd = false, .launch = {.lanes = 32, .groups = 2, .teams = 1}, .scratch_bytes = 64};
  KernelBuilder code(kernel);
  code.note("each row in turn");
  Reg row = code.argument(0), last = code.argument(1);
  Reg base = code.pointer({Slot::What::Pointer, 0});
  Reg stride = code.slot({Slot::What::Stride, 0});
  code.repeat_while_less(row, last, [&] {
    Reg at = code.pointer(base, stride, 4);
    code.when_less(
        row, stride, [&] { code.assign(row, stride); }, [&] { code.emit({.code = Do::Barrier}); });
    code.assign(base, at);
    code.increase(row, 1);
  });
  EXPECT_EQ(print(kernel),
            "kernel double_rows threads f32\n"
            "  launch 32 lanes, 2 groups, 1 team\n"
            "  scratch 64 bytes + 0 a stripe\n"
            "  args[0] pointer to result 0\n"
            "  args[1] row stride of result 0\n"
            "  # each row in turn\n"
            "  x0 = first\n"
            "  x1 = last\n"
            "  p0 = args[0]\n"
            "  x2 = args[1]\n"
            "  while x0 < x1 {\n"
            "    p1 = p0 + x2*4\n"
            "    if x0 < x2 {\n"
            "      x0 = x2\n"
            "    } else {\n"
            "      barrier\n"
            "    }\n"
            "    p0 = p1\n"
            "    x0 = x0 + 1\n"
            "  }\n");
}

}  // namespace
}  // namespace trireme

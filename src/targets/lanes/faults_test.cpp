// Each fault that the interpreter must find, planted in a small kernel, beside the same kernel without it.
// Faults of asynchronous copies: copies_test.cpp.
#include "targets/lanes/plant.hpp"

namespace trireme::lanes {
namespace {

// Every thread hands its number to the next group.
void exchange(Plant& k, bool first_barrier, bool second_barrier) {
  k.store(k.as_lane(k.thread), k.thread);
  if (first_barrier) k.barrier();
  k.give(k.load(k.neighbour()));
  if (second_barrier) k.barrier();
  k.store(k.code.number(7), k.thread);
}

TEST(faults, none) {
  Plant k;
  exchange(k, true, true);
  k.runs();
  for (int t = 0; t < threads; ++t) EXPECT_EQ(k.y[t], (t + 4) % threads);
}

TEST(faults, read_after_write_without_barrier) {
  Plant k;
  exchange(k, false, true);
  k.fails("f = load f32 scratch [x*4]",
          "reads byte 16 of scratch, written by thread 4 of another group with no barrier between");
}

TEST(faults, write_after_read_without_barrier) {
  Plant k;
  exchange(k, true, false);
  k.fails("store f32 scratch [x*4] = f", "writes byte 0 of scratch, read by group 3 with no barrier between");
}

TEST(faults, write_after_write_without_barrier) {
  Plant k;
  k.store(k.code.number(1), k.thread);
  k.store(k.code.number(1), k.neighbour());
  k.fails("store f32 scratch [x*4] = f", "writes byte 16 of scratch, written by thread 4, with no barrier between");
}

TEST(faults, groups_need_no_barrier_of_their_own) {
  Plant k;
  k.store(k.as_lane(k.thread), k.thread);
  Reg mirrored = k.code.index(Do::IndexSub, k.code.add(k.code.mul(k.group, 8), 3), k.thread);
  k.give(k.load(mirrored));
  k.store(k.code.number(7), mirrored);
  k.runs();
  for (int t = 0; t < threads; ++t) EXPECT_EQ(k.y[t], t / 4 * 4 + 3 - t % 4);
}

TEST(faults, different_values_at_once) {
  for (bool different : {false, true}) {
    Plant k;
    k.store(k.as_lane(different ? k.thread : k.group), k.group);
    if (!different) k.runs();
    else
      k.fails("store f32 scratch [x*4] = f",
              "writes byte 2 of scratch at the same time as thread 0, with another value", 1);
  }
}

TEST(faults, never_written) {
  Plant k;
  Reg on = k.code.below(k.thread, 0, k.code.index(9));
  k.store(k.code.number(1), k.thread, 0, on);
  k.give(k.load(k.thread, 0, on));  // absent lanes read nothing
  k.runs();
  k.give(k.load(k.thread));
  k.fails("f = load f32 scratch [x*4]", "reads byte 36 of scratch, which was never written", 9);
}

TEST(faults, blocks_do_not_share_scratch) {
  Plant k;
  Reg block = k.code.special(Do::BlockIndex);
  k.code.when_less(block, k.code.index(1), [&] { k.store(k.code.number(1), k.thread); });
  k.give(k.load(k.thread));
  k.fails("f = load f32 scratch [x*4]", "reads byte 0 of scratch, which was never written", 0, 1);
}

TEST(faults, outside_scratch) {
  Plant k;
  k.store(k.code.number(1), k.thread, 192);
  k.runs();
  k.barrier();
  k.store(k.code.number(1), k.thread, 196);
  k.fails("store f32 scratch [x*4 + 196] = f", "touches 4 bytes at byte 256 of scratch, which has 256", 15);
}

TEST(faults, before_scratch) {
  Plant k;
  k.store(k.code.number(1), k.thread, -4);
  k.fails("store f32 scratch [x*4 - 4] = f", "touches 4 bytes at byte -4 of scratch, which has 256");
}

TEST(faults, misaligned_scratch) {
  Plant k;
  Reg one = k.code.number(1);
  k.code.emit({.code = Do::Store, .space = Space::Scratch, .a = k.code.mul(k.thread, 8), .values = {one, one}});
  k.runs();
  k.code.emit(
      {.code = Do::Store, .space = Space::Scratch, .a = k.code.mul(k.thread, 8), .imm = 4, .values = {one, one}});
  k.fails("store f32 scratch [x + 4] = f, f", "touches byte 4 of scratch, where a multiple of 8 is needed");
}

TEST(faults, barrier_not_met_by_all) {
  Plant k;
  k.code.when_less(k.thread, k.code.index(9), [&] { k.barrier(); });
  k.fails("if x < x {", "threads 8 and 9 part, but there is a barrier inside", 9);
  Plant loop;
  Reg turn = loop.code.copy(loop.thread);
  loop.code.repeat_while_less(turn, loop.code.index(16), [&] {
    loop.code.when_less(loop.code.index(0), loop.code.index(1), [&] { loop.barrier(); });
    loop.code.increase(turn, 1);
  });
  loop.fails("while x < x {", "threads 14 and 15 part, but there is a barrier inside", 15);
  Plant uniform;
  uniform.code.when_less(uniform.code.index(3), uniform.code.index(9), [&] { uniform.barrier(); });
  uniform.runs();
}

TEST(faults, shuffle_without_its_lanes) {
  for (int limit : {0, 8, 10, 32, 33}) {
    Plant k;
    k.kernel.launch.groups = 16;  // two warps
    Reg value = k.as_lane(k.thread);
    k.code.when_less(k.thread, k.code.index(limit), [&] { k.code.shuffle_xor(value, 1); });
    if (limit % 32 == 0) k.runs();
    else
      k.fails("if x < x {", fmt::format("threads {} and {} part, but there is a shuffle inside", limit - 1, limit),
              limit);
  }
}

TEST(faults, register_never_set) {
  Plant k;
  k.give(k.code.fresh(Bank::Lane));
  k.fails("store f32 global [p + x*4] = f", "reads f, which was never set");
}

TEST(faults, division) {
  Plant k;
  k.code.index(Do::IndexDivide, k.thread, k.code.index(0));
  k.fails("x = x / x", "divides 0 by 0");
  Plant negative;
  negative.code.index(Do::IndexRemainder, negative.code.add(negative.thread, -1), 3);
  negative.fails("x = x % 3", "divides -1 by 3");
}

TEST(faults, global_ranges) {
  Plant beyond;
  beyond.code.emit(
      {.code = Do::Store, .a = beyond.out, .b = beyond.thread, .imm = 4, .values = {beyond.code.number(1)}});
  std::string fault = beyond.fault();
  EXPECT_NE(fault.find("store f32 global [p1 + x3*4 + 4] = f0: writes 4 bytes at 0x"), std::string::npos) << fault;
  EXPECT_NE(fault.find("which is in no writable range"), std::string::npos) << fault;
  EXPECT_NE(fault.find("block 0, thread 15"), std::string::npos) << fault;

  Plant read_only;
  read_only.code.emit(
      {.code = Do::Store, .a = read_only.in, .b = read_only.thread, .values = {read_only.code.number(1)}});
  EXPECT_NE(read_only.fault().find("(byte 0 of range 0, which has 1024); block 0, thread 0"), std::string::npos);

  Plant copied;
  copied.copy(copied.code.index(256), copied.thread);
  EXPECT_NE(copied.fault().find("reads 4 bytes at 0x"), std::string::npos);

  Plant misaligned;
  Reg value = misaligned.code.fresh(Bank::Lane), other = misaligned.code.fresh(Bank::Lane);
  misaligned.code.emit({.code = Do::Load, .a = misaligned.in, .b = misaligned.thread, .values = {value, other}});
  EXPECT_NE(misaligned.fault().find("is not a multiple of 8; block 0, thread 1"), std::string::npos);
}

TEST(faults, malformed_calls) {
  Plant k;
  Status status = interpret(k.kernel, {}, 0, 1, 1, 1);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::InvalidArgument);
  k.code.emit({.code = Do::LaneMove, .dst = {Bank::Lane, 99}, .a = {Bank::Lane, 0}});
  EXPECT_NE(k.fault().find("f99 = f0: dst must be f"), std::string::npos);
}

TEST(faults, simd_scratch) {
  Kernel kernel{.name = "simd", .launch = {.lanes = 4}, .scratch_bytes = 32};
  KernelBuilder code(kernel);
  code.slot_number({Slot::What::Pointer, scratch_array});
  Reg one = code.number(1), back = code.fresh(Bank::Lane);
  code.emit({.code = Do::Store, .space = Space::Scratch, .imm = 8, .values = {one}});
  float scratch[8];
  std::uint64_t args[] = {reinterpret_cast<std::uintptr_t>(scratch)};
  EXPECT_TRUE(interpret(kernel, args, 0, 1, 1, 1));
  code.emit({.code = Do::Load, .space = Space::Scratch, .imm = 16, .values = {back}});
  Status status = interpret(kernel, args, 0, 1, 1, 1);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().message,
            "kernel simd: f1 = load f32 scratch [16]: reads byte 24 of scratch, which was never written");
}

}  // namespace
}  // namespace trireme::lanes

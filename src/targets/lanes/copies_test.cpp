// Asynchronous copies into scratch: a ring that is right, and each way to get it wrong.
#include "targets/lanes/plant.hpp"

namespace trireme::lanes {
namespace {

// A ring of two rows of 16: every thread copies its own element of rows 0 to 3, and reads its neighbour's.
struct Ring {
  int waiting_for = 1;  // batches that may be under way when a row is used
  bool waits = true, barrier = true, barrier_before_refill = true, commits = true;
  int neighbour = 4;

  void build(Plant& k) const {
    auto fill = [&](int row) {
      k.copy(k.code.add(k.thread, 16 * row), k.thread, 1, row % 2 * 64);
      if (commits) k.commit();
    };
    fill(0);
    fill(1);
    Reg sum = k.code.number(0);
    for (int row = 0; row < 4; ++row) {
      if (waits) k.wait(waiting_for);
      if (barrier) k.barrier();
      k.code.assign(sum, k.code.primitive(Op::Add, {sum, k.load(k.neighbour(neighbour), row % 2 * 64)}));
      if (barrier_before_refill) k.barrier();
      if (row + 2 < 4) fill(row + 2);
      else k.commit();  // an empty batch keeps the count
    }
    k.give(sum);
  }
  void runs() const {
    Plant k;
    build(k);
    k.runs();
    for (int t = 0; t < threads; ++t) EXPECT_EQ(k.y[t], 96 + 4 * ((t + neighbour) % threads));
  }
  void fails(const std::string& message) const {
    Plant k;
    build(k);
    k.fails("f = load f32 scratch [x*4]", message);
  }
};

TEST(copies, ring_without_fault) {
  Ring{}.runs();
  Ring{.waiting_for = 0}.runs();
  Ring{.neighbour = 1}.runs();
  Ring{.barrier = false, .barrier_before_refill = false, .neighbour = 0}.runs();
}

TEST(copies, not_waited_for) {
  std::string message = "reads byte 16 of scratch, whose copy by thread 4 was not waited for";
  Ring{.waits = false}.fails(message);
  Ring{.waiting_for = 2}.fails(message);
  Ring{.commits = false}.fails(message);
  Ring{.waits = false, .neighbour = 0}.fails("reads byte 0 of scratch, whose copy by thread 0 was not waited for");
}

TEST(copies, of_another_thread_without_barrier) {
  Ring{.barrier = false}.fails("reads byte 16 of scratch, copied by thread 4, with no barrier since it waited");
  Ring{.barrier = false, .neighbour = 1}.fails(  // also inside a group
      "reads byte 4 of scratch, copied by thread 1, with no barrier since it waited");
}

TEST(copies, refill_while_others_read) {
  Plant k;
  Ring{.barrier_before_refill = false}.build(k);
  k.fails("copy_async 1 f32 scratch [x] = global [p + x*4]",
          "writes byte 0 of scratch, read by group 3 with no barrier between");
}

TEST(copies, onto_copy) {
  Plant k;
  k.copy(k.thread, k.thread);
  k.copy(k.thread, k.thread);
  k.fails("copy_async 1 f32 scratch [x] = global [p + x*4]",
          "writes byte 0 of scratch, whose copy by thread 0 was not waited for");
}

TEST(copies, whose_source_changes) {
  Plant k;
  k.give(k.code.number(0));
  k.code.emit({.code = Do::CopyAsync, .a = k.out, .b = k.thread, .d = k.code.mul(k.thread, 4), .count = 1});
  k.give(k.code.number(1));
  k.commit();
  k.wait(0);
  k.fails("copy_wait 0",
          "what was copied to byte 0 of scratch changed in global memory before the copy was waited for");
}

TEST(copies, sizes) {
  for (int count : {1, 2, 4}) {
    Plant k;
    Reg first = k.code.below(k.thread, 0, k.code.index(1));
    k.copy(k.thread, k.thread, count, 0, first);
    k.runs();
  }
  for (int count : {3, 8}) {
    Plant k;
    k.copy(k.code.index(0), k.code.index(0), count);
    k.fails(fmt::format("copy_async {} f32 scratch [x] = global [p + x*4]", count),
            fmt::format("copies {} bytes, where 4, 8 or 16 are possible", 4 * count));
  }
}

TEST(copies, misaligned) {
  Plant to;
  to.copy(to.code.index(0), to.code.index(1), 2);
  to.fails("copy_async 2 f32 scratch [x] = global [p + x*4]",
           "touches byte 4 of scratch, where a multiple of 8 is needed");
  Plant from;
  from.copy(from.code.index(1), from.code.index(0), 2);
  EXPECT_NE(from.fault().find("is not a multiple of 8"), std::string::npos);
}

}  // namespace
}  // namespace trireme::lanes

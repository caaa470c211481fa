// Mailboxes between the blocks of a cluster: what a GPU would do differently from run to run is found here.
#include "targets/lanes/plant.hpp"

namespace trireme::lanes {
namespace {

// Two blocks; every group sends its number to both, and each block waits for what it is told to wait for.
struct Exchange : Plant {
  static constexpr std::int64_t box = 64;
  Reg rank = code.special(Do::BlockRank);

  Exchange() { kernel.launch.cluster = 2; }
  void open() { code.emit({.code = Do::OpenMailbox, .imm2 = box}); }
  void meet() { code.emit({.code = Do::ClusterBarrier}); }
  void send(int blocks = 2) {
    code.emit({.code = Do::Send,
               .space = Space::Cluster,
               .b = code.add(code.mul(rank, 4), group),
               .c = code.below(lane, 0, code.index(blocks)),
               .d = lane,
               .imm2 = box,
               .values = {as_lane(group)}});
  }
  void receive(int count, std::int64_t turn = 0) {
    code.emit({.code = Do::Receive, .b = code.index(turn), .imm2 = box, .count = count});
  }
};

TEST(mailbox, every_block_gets_all_numbers) {
  Exchange k;
  k.open();
  k.meet();
  k.send();
  k.receive(8);
  k.give(k.load(k.lane));
  k.runs();
  for (int t = 0; t < threads; ++t) EXPECT_EQ(k.y[t], t % 4);
}

TEST(mailbox, a_second_turn_needs_the_other_parity) {
  for (std::int64_t turn : {0, 1}) {
    Exchange k;
    k.open();
    k.meet();
    k.send();
    k.receive(8);
    k.send();
    k.receive(8, turn);
    if (turn) k.runs();
    else k.fails("receive 8 f32, mailbox [64], turn x", "the mailbox at byte 64 is at another turn than 0");
  }
}

TEST(mailbox, too_few_numbers) {
  Exchange k;
  k.open();
  k.meet();
  k.send(1);  // the second block gets none
  k.receive(8);
  EXPECT_NE(k.fault().find("the mailbox at byte 320 got 0 bytes and waits for 32"), std::string::npos) << k.fault();
}

TEST(mailbox, never_opened) {
  Exchange k;
  k.send();
  k.fails("send f32 block x [x*4] = f, mailbox [64] if m", "byte 64 of scratch is no open mailbox");
}

// Scratch that was written, not sent: neither the cluster's barrier nor a mailbox brings it to other groups.
TEST(mailbox, what_was_not_sent_is_not_seen) {
  for (bool receives : {false, true}) {
    Exchange k;
    k.open();
    k.store(k.as_lane(k.thread), k.thread, 128);
    k.meet();
    if (receives) k.send(), k.receive(8);
    k.give(k.load(k.neighbour(), 128));
    EXPECT_NE(k.fault().find(receives ? "which a mailbox does not bring" : "with no barrier between"),
              std::string::npos)
        << k.fault();
  }
}

TEST(mailbox, numbers_that_were_not_waited_for) {
  Exchange k;
  k.open();
  k.meet();
  k.send();
  k.give(k.load(k.code.add(k.lane, 4)));
  EXPECT_NE(k.fault().find("with no barrier between"), std::string::npos) << k.fault();
}

}  // namespace
}  // namespace trireme::lanes

// A block's scratch, with a record beside every byte of who touched it last: what a GPU would do differently from run
// to run is an error here. Threads of one group run in lockstep; between groups only a barrier makes order. A copy's
// bytes arrive as late as they may: when their thread waits for them.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

namespace trireme::lanes {

class Scratch {
 public:
  // `memory` holds `bytes`; null: the scratch has its own.
  Scratch(int threads, int threads_a_group, std::int64_t bytes, std::byte* memory);

  void begin_block();        // everything counts as never written
  void begin_instruction();  // what threads do from here on, they do at once
  void barrier();

  // Each says by null or false that the access is wrong; `fault` then says how. `alignment` is in bytes.
  const std::byte* read(int thread, std::int64_t offset, int bytes, int alignment);
  bool write(int thread, std::int64_t offset, int bytes, int alignment, const std::byte* data);
  bool copy(int thread, std::int64_t offset, int bytes, const std::byte* source);
  void commit(int thread);
  bool wait(int thread, std::int64_t batches);

  // Mailboxes count what was sent since the last turn, and turns. Whoever receives knows that all have sent, and so
  // have read what they read before; of what others wrote it sees what was sent, and nothing else.
  void open_mailbox(std::int64_t offset) { mailboxes_[offset] = {}; }
  bool send(std::int64_t box, std::int64_t offset, int bytes);  // after `write` to `offset`
  bool receive(std::int64_t box, std::int64_t bytes, std::int64_t turn);
  void received() { ++epoch_; }  // by all blocks

  const std::string& fault() const { return fault_; }

 private:
  // Epochs are counted by barriers and turns of mailboxes and go on from block to block, so that no block has to clear
  // the records.
  struct Record {
    std::uint32_t write_epoch = 0, read_epoch = 0, write_instruction = 0;
    std::int16_t writer = -1;        // thread
    std::int16_t reader_group = -1;  // many_groups: more than one since the last barrier
    bool copied = false;             // by an asynchronous copy, which only its own thread sees before a barrier
    bool sent = false;               // into a mailbox: who has received may read it
    bool under_way = false;          // a copy that was not waited for
  };
  struct Copy {
    std::int64_t batch, offset;
    int bytes;
    const std::byte* source;
    std::array<std::byte, 16> at_issue;
  };
  struct Copies {
    std::deque<Copy> under_way;
    std::int64_t committed = 0;  // batches
  };
  static constexpr std::int16_t many_groups = -2;

  int group(int thread) const { return thread / threads_a_group_; }
  bool in_range(std::int64_t offset, int bytes, int alignment);
  bool may_write(const Record& record, int thread, std::int64_t offset);
  bool refuse(std::string message);

  std::int64_t bytes_;
  int threads_a_group_;
  std::vector<std::byte> own_memory_;
  std::byte* memory_;
  std::vector<Record> records_;
  std::vector<Copies> copies_;  // by thread
  std::uint32_t epoch_ = 0, block_epoch_ = 0, barrier_epoch_ = 0, instruction_ = 0;
  struct Mailbox {
    std::int64_t bytes = 0, turns = 0;
  };
  std::map<std::int64_t, Mailbox> mailboxes_;
  std::string fault_;
};

}  // namespace trireme::lanes

#include "targets/lanes/scratch.hpp"

#include <fmt/format.h>

#include <cstring>

namespace trireme::lanes {

Scratch::Scratch(int threads, int threads_a_group, std::int64_t bytes, std::byte* memory)
    : bytes_(bytes),
      threads_a_group_(threads_a_group),
      own_memory_(memory ? 0 : static_cast<std::size_t>(bytes)),
      memory_(memory ? memory : own_memory_.data()),
      records_(static_cast<std::size_t>(bytes)),
      copies_(static_cast<std::size_t>(threads)) {}

void Scratch::begin_block() {
  for (Copies& copies : copies_) {
    for (const Copy& copy : copies.under_way)
      for (int k = 0; k < copy.bytes; ++k) records_[copy.offset + k].under_way = false;
    copies.under_way.clear();
    copies.committed = 0;
  }
  mailboxes_.clear();
  block_epoch_ = barrier_epoch_ = ++epoch_;
}

void Scratch::begin_instruction() { ++instruction_; }
void Scratch::barrier() { barrier_epoch_ = ++epoch_; }

const std::byte* Scratch::read(int thread, std::int64_t offset, int bytes, int alignment) {
  if (!in_range(offset, bytes, alignment)) return nullptr;
  for (std::int64_t at = offset; at < offset + bytes; ++at) {
    Record& record = records_[at];
    if (record.under_way)
      return refuse(fmt::format("reads byte {} of scratch, whose copy by thread {} was not waited for", at,
                                record.writer)),
             nullptr;
    if (record.write_epoch < block_epoch_)
      return refuse(fmt::format("reads byte {} of scratch, which was never written", at)), nullptr;
    if (record.write_epoch == epoch_ && record.writer != thread) {
      if (record.copied)
        return refuse(fmt::format("reads byte {} of scratch, copied by thread {}, with no barrier since it waited", at,
                                  record.writer)),
               nullptr;
      if (group(record.writer) != group(thread))
        return refuse(fmt::format("reads byte {} of scratch, written by thread {} of another group with no barrier "
                                  "between",
                                  at, record.writer)),
               nullptr;
    }
    if (record.write_epoch >= barrier_epoch_ && !record.sent && group(record.writer) != group(thread))
      return refuse(fmt::format(
                 "reads byte {} of scratch, written by thread {} of another group, which a mailbox does not "
                 "bring",
                 at, record.writer)),
             nullptr;
    std::int16_t reader = static_cast<std::int16_t>(group(thread));
    if (record.read_epoch != epoch_) record.reader_group = reader;
    else if (record.reader_group != reader) record.reader_group = many_groups;
    record.read_epoch = epoch_;
  }
  return memory_ + offset;
}

bool Scratch::may_write(const Record& record, int thread, std::int64_t offset) {
  if (record.under_way)
    return refuse(
        fmt::format("writes byte {} of scratch, whose copy by thread {} was not waited for", offset, record.writer));
  if (record.write_epoch == epoch_ && record.writer != thread &&
      (record.copied || group(record.writer) != group(thread)))
    return refuse(fmt::format("writes byte {} of scratch, {} by thread {}, with no barrier between", offset,
                              record.copied ? "copied" : "written", record.writer));
  if (record.read_epoch == epoch_ && record.reader_group != group(thread))
    return refuse(fmt::format("writes byte {} of scratch, read by {} with no barrier between", offset,
                              record.reader_group == many_groups ? std::string("several groups")
                                                                 : fmt::format("group {}", record.reader_group)));
  return true;
}

bool Scratch::write(int thread, std::int64_t offset, int bytes, int alignment, const std::byte* data) {
  if (!in_range(offset, bytes, alignment)) return false;
  for (int k = 0; k < bytes; ++k) {
    Record& record = records_[offset + k];
    if (!may_write(record, thread, offset + k)) return false;
    if (record.write_instruction == instruction_ && record.writer != thread && memory_[offset + k] != data[k])
      return refuse(fmt::format("writes byte {} of scratch at the same time as thread {}, with another value",
                                offset + k, record.writer));
    record.write_epoch = epoch_;
    record.write_instruction = instruction_;
    record.writer = static_cast<std::int16_t>(thread);
    record.copied = record.sent = false;
  }
  std::memcpy(memory_ + offset, data, static_cast<std::size_t>(bytes));
  return true;
}

bool Scratch::copy(int thread, std::int64_t offset, int bytes, const std::byte* source) {
  if (bytes != 4 && bytes != 8 && bytes != 16)
    return refuse(fmt::format("copies {} bytes, where 4, 8 or 16 are possible", bytes));
  if (reinterpret_cast<std::uintptr_t>(source) % static_cast<unsigned>(bytes) != 0)
    return refuse(fmt::format("copies {} bytes from an address that is not a multiple of {}", bytes, bytes));
  if (!in_range(offset, bytes, bytes)) return false;
  for (int k = 0; k < bytes; ++k) {
    Record& record = records_[offset + k];
    if (!may_write(record, thread, offset + k)) return false;
    record.writer = static_cast<std::int16_t>(thread);
    record.under_way = true;
  }
  Copies& copies = copies_[thread];
  copies.under_way.push_back({copies.committed, offset, bytes, source, {}});
  std::memcpy(copies.under_way.back().at_issue.data(), source, static_cast<std::size_t>(bytes));
  return true;
}

void Scratch::commit(int thread) { ++copies_[thread].committed; }

bool Scratch::wait(int thread, std::int64_t batches) {
  Copies& copies = copies_[thread];
  while (!copies.under_way.empty() && copies.under_way.front().batch < copies.committed - batches) {
    const Copy& copy = copies.under_way.front();
    if (std::memcmp(copy.at_issue.data(), copy.source, static_cast<std::size_t>(copy.bytes)) != 0)
      return refuse(
          fmt::format("what was copied to byte {} of scratch changed in global memory before the copy was "
                      "waited for",
                      copy.offset));
    std::memcpy(memory_ + copy.offset, copy.source, static_cast<std::size_t>(copy.bytes));
    for (int k = 0; k < copy.bytes; ++k) {
      Record& record = records_[copy.offset + k];
      record.write_epoch = epoch_;
      record.copied = true;
      record.sent = false;
      record.under_way = false;
    }
    copies.under_way.pop_front();
  }
  return true;
}

bool Scratch::send(std::int64_t box, std::int64_t offset, int bytes) {
  auto found = mailboxes_.find(box);
  if (found == mailboxes_.end()) return refuse(fmt::format("byte {} of scratch is no open mailbox", box));
  found->second.bytes += bytes;
  for (int k = 0; k < bytes; ++k) records_[offset + k].sent = true;
  return true;
}

bool Scratch::receive(std::int64_t box, std::int64_t bytes, std::int64_t turn) {
  auto found = mailboxes_.find(box);
  if (found == mailboxes_.end()) return refuse(fmt::format("byte {} of scratch is no open mailbox", box));
  Mailbox& mailbox = found->second;
  if (mailbox.bytes != bytes)
    return refuse(fmt::format("the mailbox at byte {} got {} bytes and waits for {}", box, mailbox.bytes, bytes));
  if (mailbox.turns++ % 2 != turn)
    return refuse(fmt::format("the mailbox at byte {} is at another turn than {}", box, turn));
  mailbox.bytes = 0;
  return true;
}

bool Scratch::in_range(std::int64_t offset, int bytes, int alignment) {
  if (offset < 0 || offset > bytes_ - bytes)
    return refuse(fmt::format("touches {} bytes at byte {} of scratch, which has {}", bytes, offset, bytes_));
  if (offset % alignment != 0)
    return refuse(fmt::format("touches byte {} of scratch, where a multiple of {} is needed", offset, alignment));
  return true;
}

bool Scratch::refuse(std::string message) {
  fault_ = std::move(message);
  return false;
}

}  // namespace trireme::lanes

// The state of one block and what instructions do to it. Registers are arrays over threads (simd kernels: over lanes;
// their Index and Pointer registers have one entry). All active threads execute an instruction before the next.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "schedule/kernel.hpp"
#include "targets/lanes/interpret.hpp"
#include "targets/lanes/scratch.hpp"
#include "trireme/result.hpp"

namespace trireme::lanes {

// What a kernel is called with.
struct Call {
  std::span<const std::uint64_t> args;
  std::int64_t arguments[3];  // first, last, total
  std::span<const Range> memory;
};

// The threads that execute an instruction.
struct Active {
  bool all = true;
  std::vector<int> threads;  // in order, where not all
};

// T: the compute type. The kernel is well formed (schedule/verify_kernel.hpp).
template <typename T>
class Machine {
 public:
  Machine(const Kernel& kernel, const Call& call, std::int64_t scratch_bytes, std::byte* scratch);

  Status run_block(std::int64_t block);

 private:
  // All return false after a fault, which `fault_` then holds.
  bool run(const std::vector<Instr>& body, const Active& active);
  bool step(const Instr& instr, const Active& active);

  bool repeat(const Instr& instr, const Active& active);
  bool choose(const Instr& instr, const Active& active);
  bool may_part(const Instr& instr, const Active& active, const Active& taken);
  Active select(const Instr& instr, const Active& active, bool wanted);

  bool index(const Instr& instr, const Active& active);
  void primitive(const Instr& instr, const Active& active);
  void shuffle(const Instr& instr, const Active& active);

  bool load(const Instr& instr, const Active& active);
  bool load_index(const Instr& instr, const Active& active);
  bool load_vector(const Instr& instr);
  bool store(const Instr& instr, const Active& active);
  bool store_vector(const Instr& instr);
  bool copy(const Instr& instr, const Active& active);
  std::uint64_t address(const Instr& instr, int thread) const;
  bool send(const Instr& instr, const Active& active);
  bool receive(const Instr& instr);
  template <typename Body>
  void each_block(Body&& body) const {  // of the cluster: where its scratch begins
    for (int block = 0; block < kernel_.launch.cluster; ++block) body(block * block_scratch_bytes_);
  }
  std::int64_t scratch_of(int thread) const { return thread / kernel_.launch.threads() * block_scratch_bytes_; }
  const std::byte* read(const Instr& instr, int thread, std::uint64_t address, int bytes);
  bool write(const Instr& instr, int thread, std::uint64_t address, int bytes, const std::byte* data);
  bool reaches(const Instr& instr, int thread, std::uint64_t address, int bytes, bool to_write);
  T widen(Type type, const std::byte* element) const;
  void narrow(Type type, std::byte* element, T value) const;

  bool registers_set(const Instr& instr, const Active& active);
  void mark_set(const Instr& instr);
  bool refuse(const Instr& instr, int thread, const std::string& message);

  T* lanes(Reg reg) { return lanes_.data() + static_cast<std::ptrdiff_t>(reg.id) * lane_width_; }
  std::uint8_t* mask(Reg reg) { return masks_.data() + static_cast<std::ptrdiff_t>(reg.id) * lane_width_; }
  std::int64_t* indices(Reg reg) { return indices_.data() + static_cast<std::ptrdiff_t>(reg.id) * index_width_; }
  std::uint64_t* pointers(Reg reg) { return pointers_.data() + static_cast<std::ptrdiff_t>(reg.id) * index_width_; }
  const std::int64_t* indices(Reg reg) const { return const_cast<Machine*>(this)->indices(reg); }
  const std::uint64_t* pointers(Reg reg) const { return const_cast<Machine*>(this)->pointers(reg); }
  std::uint8_t& is_set(Reg reg) { return set_[static_cast<std::size_t>(first_of_bank_[int(reg.bank)] + reg.id)]; }

  // Lanes and masks, and indices and pointers, of the active threads; on simd machines of all lanes, and the one.
  template <typename Body>
  void each_lane(const Active& active, Body&& body) const {
    each(active, lane_width_, body);
  }
  template <typename Body>
  void each_index(const Active& active, Body&& body) const {
    each(active, index_width_, body);
  }
  template <typename Body>
  static void each(const Active& active, int width, Body& body) {
    if (active.all)
      for (int t = 0; t < width; ++t) body(t);
    else
      for (int t : active.threads) body(t);
  }
  // As each_index; ends with false as soon as the body does.
  template <typename Body>
  bool while_each(const Active& active, Body&& body) const {
    int count = active.all ? index_width_ : static_cast<int>(active.threads.size());
    for (int k = 0; k < count; ++k)
      if (!body(active.all ? k : active.threads[k])) return false;
    return true;
  }

  const Kernel& kernel_;
  const Call& call_;
  const int lane_width_, index_width_;
  std::vector<T> lanes_, shuffled_;
  std::vector<std::uint8_t> masks_;
  std::vector<std::int64_t> indices_;
  std::vector<std::uint64_t> pointers_;
  int first_of_bank_[4];
  std::vector<std::uint8_t> set_;  // by register: some thread has set it
  const std::int64_t block_scratch_bytes_;
  Scratch scratch_;             // of all blocks of a cluster, one after the other
  std::size_t last_range_ = 0;  // of call_.memory; most accesses hit it again
  std::int64_t block_ = 0;
  std::string fault_;
};

extern template class Machine<float>;
extern template class Machine<double>;

}  // namespace trireme::lanes

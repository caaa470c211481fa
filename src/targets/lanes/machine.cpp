#include "targets/lanes/machine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "ir/philox.hpp"
#include "targets/lanes/machine_memory.hpp"
#include "targets/lanes/machine_primitives.hpp"

namespace trireme::lanes {
namespace {

constexpr int warp = 32;

bool contains(const std::vector<Instr>& body, Do code) {
  return std::any_of(body.begin(), body.end(), [&](const Instr& instr) {
    return instr.code == code || contains(instr.body, code) || contains(instr.other, code);
  });
}

bool contains(const Instr& instr, Do code) { return contains(instr.body, code) || contains(instr.other, code); }

std::uint64_t bits(std::int64_t value) { return static_cast<std::uint64_t>(value); }

}  // namespace

template <typename T>
Machine<T>::Machine(const Kernel& kernel, const Call& call, std::int64_t scratch_bytes, std::byte* scratch)
    : kernel_(kernel),
      call_(call),
      lane_width_(kernel.simd ? kernel.launch.lanes : kernel.launch.threads() * kernel.launch.cluster),
      index_width_(kernel.simd ? 1 : lane_width_),
      lanes_(static_cast<std::size_t>(kernel.lane_count) * lane_width_),
      shuffled_(lane_width_),
      masks_(static_cast<std::size_t>(kernel.mask_count) * lane_width_),
      indices_(static_cast<std::size_t>(kernel.index_count) * index_width_),
      pointers_(static_cast<std::size_t>(kernel.pointer_count) * index_width_),
      first_of_bank_{0, kernel.lane_count, kernel.lane_count + kernel.mask_count,
                     kernel.lane_count + kernel.mask_count + kernel.index_count},
      set_(static_cast<std::size_t>(first_of_bank_[3]) + kernel.pointer_count),
      block_scratch_bytes_(scratch_bytes),
      scratch_(index_width_, kernel.simd ? 1 : kernel.launch.lanes, scratch_bytes * kernel.launch.cluster, scratch) {}

template <typename T>
Status Machine<T>::run_block(std::int64_t block) {
  block_ = block;
  std::fill(set_.begin(), set_.end(), 0);
  scratch_.begin_block();
  if (!run(kernel_.body, {})) return Error{Code::Internal, fault_};
  return Done{};
}

template <typename T>
bool Machine<T>::run(const std::vector<Instr>& body, const Active& active) {
  for (const Instr& instr : body)
    if (!step(instr, active)) return false;
  return true;
}

template <typename T>
bool Machine<T>::step(const Instr& instr, const Active& active) {
  if (!registers_set(instr, active)) return false;
  mark_set(instr);
  scratch_.begin_instruction();
  auto set_lanes = [&](auto&& value) {
    T* dst = lanes(instr.dst);
    each_lane(active, [&](int t) { dst[t] = value(t); });
  };
  auto set_mask = [&](auto&& value) {
    std::uint8_t* dst = mask(instr.dst);
    each_lane(active, [&](int t) { dst[t] = value(t); });
  };
  // A simd machine's index is the same for all lanes, and a place in a row moves on with the lane.
  auto column = [&](int t) {
    const std::int64_t first = instr.a ? indices(instr.a)[kernel_.simd ? 0 : t] : 0;
    return first + instr.imm + (kernel_.simd ? t : 0);
  };
  const int lane_bits = kernel_.launch.lanes - 1;

  switch (instr.code) {
    case Do::IndexConstant:
    case Do::IndexSlot:
    case Do::IndexArgument:
    case Do::ThreadLane:
    case Do::ThreadGroup:
    case Do::ThreadTeam:
    case Do::BlockIndex:
    case Do::BlockRank:
    case Do::IndexMove:
    case Do::IndexAdd:
    case Do::IndexSub:
    case Do::IndexMul:
    case Do::IndexMin:
    case Do::IndexMax:
    case Do::IndexAnd:
    case Do::IndexShiftRight:
    case Do::IndexDivide:
    case Do::IndexRemainder:
    case Do::PointerSlot:
    case Do::PointerAdd: return index(instr, active);

    case Do::IndexLoad: return load_index(instr, active);
    case Do::Load:
    case Do::LoadOne: return kernel_.simd ? load_vector(instr) : load(instr, active);
    case Do::Store:
    case Do::StoreOne: return kernel_.simd ? store_vector(instr) : store(instr, active);

    case Do::LaneConstant: {
      T value = static_cast<T>(std::bit_cast<double>(instr.imm));
      return set_lanes([&](int) { return value; }), true;
    }
    case Do::LaneSlot: {
      T value;
      std::memcpy(&value, &call_.args[instr.imm], sizeof value);  // little-endian: f32 is the lower half
      return set_lanes([&](int) { return value; }), true;
    }
    case Do::LaneFromIndex:
      return set_lanes([&](int t) { return static_cast<T>(indices(instr.a)[kernel_.simd ? 0 : t]); }), true;
    case Do::LaneColumn: return set_lanes([&](int t) { return static_cast<T>(column(t)); }), true;
    case Do::Random:
      return set_lanes([&](int t) {
               const int at = kernel_.simd ? 0 : t;
               const std::int64_t column_here = instr.count == 1 ? indices(instr.a)[at] + instr.imm : column(t);
               return static_cast<T>(philox::uniform(indices(instr.d)[at], indices(instr.b)[at], column_here,
                                                     static_cast<std::uint32_t>(instr.imm2)));
             }),
             true;
    case Do::LaneMove: return set_lanes([a = lanes(instr.a)](int t) { return a[t]; }), true;
    case Do::Primitive: return primitive(instr, active), true;
    case Do::ShuffleXor: return shuffle(instr, active), true;
    case Do::LaneBit: return set_mask([&](int t) { return (t & lane_bits & instr.imm) != 0; }), true;
    case Do::MaskBelow:
      return set_mask([&](int t) { return column(t) < indices(instr.b)[kernel_.simd ? 0 : t]; }), true;
    case Do::MaskEqual:
      return set_mask([&](int t) {
               const int at = kernel_.simd ? 0 : t;
               return indices(instr.a)[at] + instr.imm == indices(instr.b)[at];
             }),
             true;

    case Do::Barrier: return scratch_.barrier(), true;  // may_part has seen to it that all threads are here
    case Do::ClusterBarrier: return true;               // orders mailboxes, and no scratch
    case Do::OpenMailbox: return each_block([&](std::int64_t at) { scratch_.open_mailbox(at + instr.imm2); }), true;
    case Do::Send: return send(instr, active);
    case Do::Receive: return receive(instr);
    case Do::CopyAsync: return copy(instr, active);
    case Do::CopyCommit: return each_index(active, [&](int t) { scratch_.commit(t); }), true;
    case Do::CopyWait:
      return while_each(active,
                        [&](int t) { return scratch_.wait(t, instr.imm) || refuse(instr, t, scratch_.fault()); });
    case Do::While: return repeat(instr, active);
    case Do::If: return choose(instr, active);
    case Do::Prefetch:
    case Do::Note:
    case Do::Name: return true;
  }
  return true;
}

template <typename T>
Active Machine<T>::select(const Instr& instr, const Active& active, bool wanted) {
  Active taken{.all = false, .threads = {}};
  const std::int64_t *a = indices(instr.a), *b = instr.b ? indices(instr.b) : nullptr;
  each_index(active, [&](int t) {
    if ((a[t] < (b ? b[t] : instr.imm)) == wanted) taken.threads.push_back(t);
  });
  if (static_cast<int>(taken.threads.size()) == index_width_) taken = {};
  return taken;
}

template <typename T>
bool Machine<T>::repeat(const Instr& instr, const Active& active) {
  Active inside = active;
  while (true) {
    Active taken = select(instr, inside, true);
    if (!taken.all && taken.threads.empty()) return true;
    if (!may_part(instr, inside, taken)) return false;
    inside = std::move(taken);
    if (!run(instr.body, inside)) return false;
  }
}

template <typename T>
bool Machine<T>::choose(const Instr& instr, const Active& active) {
  Active taken = select(instr, active, true), rest = select(instr, active, false);
  if (!taken.all && !rest.all && !taken.threads.empty() && !may_part(instr, active, taken)) return false;
  if ((taken.all || !taken.threads.empty()) && !run(instr.body, taken)) return false;
  return (!rest.all && rest.threads.empty()) || run(instr.other, rest);
}

// Threads part where only some go on: never around a barrier, and around a shuffle only warp by warp. A group of
// fewer lanes than a warp shuffles by an instruction that waits for the whole warp.
template <typename T>
bool Machine<T>::may_part(const Instr& instr, const Active& active, const Active& taken) {
  if (taken.all) return true;
  if (!active.all && active.threads.size() == taken.threads.size()) return true;
  bool barrier = contains(instr, Do::Barrier) || contains(instr, Do::ClusterBarrier) || contains(instr, Do::Receive),
       shuffle = contains(instr, Do::ShuffleXor);
  if (!barrier && !shuffle) return true;
  auto part = [&](int thread) { return barrier ? 0 : thread / warp; };
  std::vector<int> in(index_width_, -1), out(index_width_, -1);  // a thread by warp
  std::size_t next = 0;
  return while_each(active, [&](int t) {
    bool goes_on = next < taken.threads.size() && taken.threads[next] == t;
    next += goes_on;
    (goes_on ? in : out)[part(t)] = t;
    if (in[part(t)] < 0 || out[part(t)] < 0) return true;
    return refuse(instr, t,
                  fmt::format("threads {} and {} part, but there is a {} inside", in[part(t)], out[part(t)],
                              barrier ? "barrier" : "shuffle"));
  });
}

// may_part has seen to it that all lanes of a warp are here, or none.
template <typename T>
void Machine<T>::shuffle(const Instr& instr, const Active& active) {
  const T* a = lanes(instr.a);
  T* dst = lanes(instr.dst);
  std::copy(a, a + lane_width_, shuffled_.begin());
  each_lane(active, [&](int t) { dst[t] = shuffled_[t ^ static_cast<int>(instr.imm)]; });
}

template <typename T>
bool Machine<T>::index(const Instr& instr, const Active& active) {
  if (instr.dst.bank == Bank::Pointer) {
    std::uint64_t* dst = pointers(instr.dst);
    if (instr.code == Do::PointerSlot) each_index(active, [&](int t) { dst[t] = call_.args[instr.imm]; });
    else if (instr.code == Do::IndexMove) each_index(active, [&, a = pointers(instr.a)](int t) { dst[t] = a[t]; });
    else
      each_index(active, [&, a = pointers(instr.a), b = indices(instr.b)](int t) {
        dst[t] = a[t] + bits(b[t]) * bits(instr.imm);
      });
    return true;
  }
  std::int64_t* dst = indices(instr.dst);
  const std::int64_t* a = instr.a ? indices(instr.a) : nullptr;
  auto set = [&](auto&& value) {
    each_index(active, [&](int t) { dst[t] = static_cast<std::int64_t>(value(t)); });
    return true;
  };
  auto combine = [&](auto&& value) {
    if (instr.b) return set([&, b = indices(instr.b)](int t) { return value(a[t], b[t]); });
    return set([&, b = instr.imm](int t) { return value(a[t], b); });
  };
  const Launch& launch = kernel_.launch;
  using I = std::int64_t;
  switch (instr.code) {
    case Do::IndexConstant: return set([&](int) { return instr.imm; });
    case Do::IndexSlot: return set([&](int) { return call_.args[instr.imm]; });
    case Do::IndexArgument: return set([&](int) { return call_.arguments[instr.imm]; });
    case Do::ThreadLane: return set([&](int t) { return t % launch.lanes; });
    case Do::ThreadGroup: return set([&](int t) { return t / launch.lanes % launch.groups; });
    case Do::ThreadTeam: return set([&](int t) { return t / (launch.lanes * launch.groups) % launch.teams; });
    case Do::BlockIndex: return set([&](int) { return block_; });
    case Do::BlockRank: return set([&](int t) { return t / launch.threads(); });
    case Do::IndexMove: return set([&](int t) { return a[t]; });
    case Do::IndexAdd: return combine([](I x, I y) { return bits(x) + bits(y); });
    case Do::IndexSub: return combine([](I x, I y) { return bits(x) - bits(y); });
    case Do::IndexMul: return combine([](I x, I y) { return bits(x) * bits(y); });
    case Do::IndexMax: return combine([](I x, I y) { return std::max(x, y); });
    case Do::IndexMin: return combine([](I x, I y) { return std::min(x, y); });
    case Do::IndexAnd: return combine([](I x, I y) { return x & y; });
    default: break;
  }
  // The rest is defined where a >= 0 and b > 0: targets shift and divide as they please elsewhere.
  bool shift = instr.code == Do::IndexShiftRight;
  bool defined = while_each(active, [&](int t) {
    I divisor = shift ? 1 : instr.b ? indices(instr.b)[t] : instr.imm;
    return (a[t] >= 0 && divisor > 0) || refuse(instr, t, fmt::format("divides {} by {}", a[t], divisor));
  });
  if (!defined) return false;
  if (shift) return set([&](int t) { return a[t] >> instr.imm; });
  if (instr.code == Do::IndexDivide) return combine([](I x, I y) { return x / y; });
  return combine([](I x, I y) { return x % y; });
}

template <typename T>
bool Machine<T>::registers_set(const Instr& instr, const Active& active) {
  auto set = [&](Reg reg) {
    if (!reg || is_set(reg)) return true;
    return refuse(instr, active.all ? 0 : active.threads[0],
                  fmt::format("reads {}{}, which was never set", "fmxp"[static_cast<int>(reg.bank)], reg.id));
  };
  if (!set(instr.a) || !set(instr.b) || !set(instr.c) || !set(instr.d)) return false;
  return instr.code == Do::Load || std::all_of(instr.values.begin(), instr.values.end(), set);
}

template <typename T>
void Machine<T>::mark_set(const Instr& instr) {
  if (instr.dst) is_set(instr.dst) = 1;
  if (instr.code == Do::Load)
    for (Reg value : instr.values) is_set(value) = 1;
}

template <typename T>
bool Machine<T>::refuse(const Instr& instr, int thread, const std::string& message) {
  const Launch& launch = kernel_.launch;
  fault_ = fmt::format("kernel {}: {}: {}", kernel_.name, print(instr, kernel_), message);
  if (!kernel_.simd)
    fault_ += fmt::format("; block {}, thread {} (team {}, group {}, lane {})", block_, thread,
                          thread / (launch.lanes * launch.groups), thread / launch.lanes % launch.groups,
                          thread % launch.lanes);
  return false;
}

template class Machine<float>;
template class Machine<double>;

}  // namespace trireme::lanes

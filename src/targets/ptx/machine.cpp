#include "targets/ptx/machine.hpp"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <limits>

namespace trireme::ptx {

template <typename R>
using BitsOf = std::conditional_t<std::same_as<R, F32>, U32, U64>;

template <typename R>
Machine<R>::Machine(const trireme::Kernel& form, Kernel& k, int arch, bool with_names)
    : form_(form), k_(k), arch_(arch), with_names_(with_names) {
  args_ = k_.param_bytes("args", static_cast<std::uint32_t>(8 * form.slots.size()));
  bounds_[0] = k_.param<U64>("first");
  bounds_[1] = k_.param<U64>("last");
  bounds_[2] = k_.param<U64>("total");
  for (int n = 0; n < form.lane_count; ++n) lanes_.push_back(k_.reg<R>());
  for (int n = 0; n < form.mask_count; ++n) masks_.push_back(k_.reg<Pred>());
  for (int n = 0; n < form.index_count; ++n) indices_.push_back(k_.reg<U64>());
  for (int n = 0; n < form.pointer_count; ++n) pointers_.push_back(k_.reg<U64>());
  constants_.assign(form.lane_count, std::numeric_limits<double>::quiet_NaN());
}

template <typename R>
void Machine<R>::find_constants(const std::vector<Instr>& body, std::vector<int>& writes) {
  for (const Instr& instr : body) {
    if (instr.dst && instr.dst.bank == Bank::Lane) {
      bool first = writes[instr.dst.id]++ == 0;
      constants_[instr.dst.id] = first && instr.code == Do::LaneConstant ? std::bit_cast<double>(instr.imm)
                                                                         : std::numeric_limits<double>::quiet_NaN();
    }
    if (instr.code == Do::Load)
      for (Reg value : instr.values) {
        writes[value.id]++;
        constants_[value.id] = std::numeric_limits<double>::quiet_NaN();
      }
    find_constants(instr.body, writes);
    find_constants(instr.other, writes);
  }
}

template <typename R>
Status Machine<R>::run() {
  std::vector<int> writes(form_.lane_count);
  find_constants(form_.body, writes);
  if (form_.scratch_bytes) scratch_ = k_.dynamic_shared(static_cast<std::uint32_t>(form_.scratch_bytes));
  U32 tid = k_.read(Special::TidX);
  lane_in_group_ = k_.and_(tid, form_.launch.lanes - 1);
  group_number_ = k_.shr_u(tid, std::countr_zero(static_cast<unsigned>(form_.launch.lanes)));
  // The column sums' kernel is launched while the last rows are under way, and waits for them here.
  if (arch_ >= 90 && form_.launch.columns_covered) k_.griddepcontrol_wait();
  if (arch_ >= 90 && form_.slot({Slot::What::Pointer, partials_array(0)}) >= 0 && !form_.launch.columns_covered)
    k_.griddepcontrol_launch_dependents();
  block(form_.body);
  k_.ret();
  if (!refused_.empty()) return Error{Code::Internal, fmt::format("{}: {}", form_.name, refused_)};
  return Done{};
}

template <typename R>
void Machine<R>::block(const std::vector<Instr>& body) {
  for (const Instr& instr : body) instruction(instr);
}

template <typename R>
void Machine<R>::instruction(const Instr& instr) {
  auto condition = [&] { return k_.setp(IntCompare::Lt, index(instr.a), second(instr)); };
  if (instr.code != Do::Random && instr.code != Do::Name) drawn_.reset();
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
    case Do::IndexRemainder: index(instr); break;
    case Do::IndexLoad: {
      Global from = global(instr);
      if (instr.type == Type::I64) {
        U64 whole = k_.constant<U64>(0);
        guarded(instr.c, [&] { k_.load(std::span<const U64>(&whole, 1), from); });
        k_.assign(index(instr.dst), whole);
        break;
      }
      U32 whole = k_.constant<U32>(0);
      Access access;
      if (instr.type == Type::U8) access.as = Narrow::U8;
      guarded(instr.c, [&] { k_.load(std::span<const U32>(&whole, 1), from, access); });
      k_.cvt_s<U64>(whole, into(index(instr.dst)));
      break;
    }
    case Do::PointerSlot:
      k_.load<U64>(args_, static_cast<std::uint32_t>(8 * instr.imm), into(pointer(instr.dst)));
      break;
    case Do::PointerAdd:
      if (instr.imm == 1) k_.add(pointer(instr.a), index(instr.b), into(pointer(instr.dst)));
      else k_.mad(index(instr.b), instr.imm, pointer(instr.a), into(pointer(instr.dst)));
      break;
    case Do::Load:
    case Do::LoadOne: load(instr); break;
    case Do::Store:
    case Do::StoreOne: store(instr); break;
    case Do::LaneConstant:
      k_.assign(lane(instr.dst), static_cast<typename R::Literal>(std::bit_cast<double>(instr.imm)));
      break;
    case Do::LaneSlot: k_.load<R>(args_, static_cast<std::uint32_t>(8 * instr.imm), into(lane(instr.dst))); break;
    case Do::LaneFromIndex: k_.template cvt_s<R>(index(instr.a), into(lane(instr.dst))); break;
    case Do::Random: random(instr); break;
    case Do::LaneColumn:
      if (instr.a) k_.template cvt_s<R>(k_.add(index(instr.a), instr.imm), into(lane(instr.dst)));
      else k_.assign(lane(instr.dst), static_cast<typename R::Literal>(instr.imm));
      break;
    case Do::LaneMove: k_.assign(lane(instr.dst), lane(instr.a)); break;
    case Do::Primitive: primitive(instr); break;
    case Do::ShuffleXor:
      k_.shfl(Shuffle::Bfly, lane(instr.a), instr.imm, static_cast<std::uint32_t>(form_.launch.lanes),
              into(lane(instr.dst)));
      break;
    case Do::LaneBit: k_.setp(IntCompare::Ne, k_.and_(lane_in_group_, instr.imm), 0, into(mask(instr.dst))); break;
    case Do::MaskBelow:
    case Do::MaskEqual: {
      U64 at = instr.imm ? k_.add(index(instr.a), instr.imm) : index(instr.a);
      const IntCompare how = instr.code == Do::MaskBelow ? IntCompare::Lt : IntCompare::Eq;
      k_.setp(how, at, index(instr.b), into(mask(instr.dst)));
      break;
    }
    case Do::Prefetch: break;  // of simd machines
    case Do::Barrier: k_.bar_sync(); break;
    case Do::ClusterBarrier:
      k_.cluster_arrive(Order::Relaxed);  // mailboxes have a fence of their own; results need not be there yet
      k_.cluster_wait();
      break;
    case Do::OpenMailbox:
      k_.if_(k_.setp(IntCompare::Eq, k_.read(Special::TidX), 0), [&] {
        k_.mbarrier_init(scratch({}, {}, 1, instr.imm2), 1);
        k_.fence(Fence::MbarrierInit);
      });
      break;
    case Do::Send: {
      Shared to = scratch(instr.a, instr.b, static_cast<std::int64_t>(bytes(instr.type)), instr.imm);
      Shared box = scratch(instr.a, {}, 1, instr.imm2);
      U32 block = k_.cvt_u<U32>(index(instr.d));
      auto remote = [&](Shared own) {
        return k_.mapa(Shared{own.offset ? k_.add(own.base, own.offset) : own.base}, block);
      };
      Remote there = remote(to), box_there = remote(box);
      guarded(instr.c, [&] { k_.store_async(there, lane(instr.values[0]), box_there); });
      break;
    }
    case Do::Receive: {
      Shared box = scratch(instr.a, {}, 1, instr.imm2);
      U32 sent = k_.constant<U32>(instr.count * static_cast<std::int64_t>(bytes(instr.type)));
      k_.when(k_.setp(IntCompare::Eq, k_.read(Special::TidX), 0), [&] { k_.mbarrier_arrive_expect_tx(box, sent); });
      k_.mbarrier_wait(box, k_.cvt_u<U32>(index(instr.b)));
      break;
    }
    case Do::CopyAsync: {
      std::int64_t size = static_cast<std::int64_t>(bytes(instr.type));
      Global from = global(instr);
      Shared to = scratch(instr.d, {}, 1, instr.imm2);
      guarded(instr.c, [&] { k_.cp_async(to, from, static_cast<std::uint32_t>(instr.count * size)); });
      break;
    }
    case Do::CopyCommit: k_.cp_async_commit(); break;
    case Do::CopyWait: k_.cp_async_wait(static_cast<std::uint32_t>(instr.imm)); break;
    case Do::While:
      k_.while_(
          condition, [&] { block(instr.body); }, Flow::Uniform);
      break;
    case Do::If:
      if (instr.other.empty()) {
        k_.if_(
            condition(), [&] { block(instr.body); }, Flow::Uniform);
      } else {
        k_.if_else(
            condition(), [&] { block(instr.body); }, [&] { block(instr.other); }, Flow::Uniform);
      }
      break;
    case Do::Note: k_.comment(form_.notes[instr.imm]); break;
    case Do::Name: say_name(form_.names[instr.imm]); break;
  }
}

template <typename R>
void Machine<R>::say_name(const trireme::Kernel::Named& named) {
  if (!with_names_) return;
  std::string text = named.name + ":";
  const std::string_view prefix = std::same_as<R, F32> ? "%f" : "%fd";
  for (Reg each : named.registers)
    text += each.bank == Bank::Mask ? fmt::format(" %p{}", mask(each).value.id)
                                    : fmt::format(" {}{}", prefix, lane(each).value.id);
  k_.comment(text);
}

// Blocks that share a row are the machine's cluster if they meet, else neighbours in the grid.
template <typename R>
U32 Machine<R>::block_number(bool rank) {
  std::int64_t cluster = form_.launch.cluster;
  if (form_.launch.meets) return k_.read(rank ? Special::ClusterCtarank : Special::ClusteridX);
  U32 block = k_.read(Special::CtaidX);
  if (cluster == 1) return rank ? k_.constant<U32>(0) : block;
  U32 row = k_.div_u(block, cluster);
  return rank ? k_.sub(block, k_.mul(row, cluster)) : row;
}

template <typename R>
void Machine<R>::index(const Instr& instr) {
  U64 d = index(instr.dst);
  const Launch& launch = form_.launch;
  switch (instr.code) {
    case Do::IndexConstant: k_.assign(d, instr.imm); break;
    case Do::IndexSlot: k_.load<U64>(args_, static_cast<std::uint32_t>(8 * instr.imm), into(d)); break;
    case Do::IndexArgument: k_.load(bounds_[instr.imm], into(d)); break;
    case Do::ThreadLane: k_.cvt_u<U64>(lane_in_group_, into(d)); break;
    // Several teams have one group each, several groups are of one team.
    case Do::ThreadGroup:
      if (launch.teams > 1 || launch.groups == 1) k_.assign(d, 0);
      else k_.cvt_u<U64>(group_number_, into(d));
      break;
    case Do::ThreadTeam:
      if (launch.teams == 1) k_.assign(d, 0);
      else k_.cvt_u<U64>(group_number_, into(d));
      break;
    case Do::BlockIndex:
    case Do::BlockRank: k_.cvt_u<U64>(block_number(instr.code == Do::BlockRank), into(d)); break;
    case Do::IndexMove: k_.assign(d, index(instr.a)); break;
    case Do::IndexAdd: k_.add(index(instr.a), second(instr), into(d)); break;
    case Do::IndexSub: k_.sub(index(instr.a), second(instr), into(d)); break;
    case Do::IndexMul: k_.mul(index(instr.a), second(instr), into(d)); break;
    case Do::IndexMax: k_.max_s(index(instr.a), second(instr), into(d)); break;
    case Do::IndexMin: k_.min_s(index(instr.a), second(instr), into(d)); break;
    case Do::IndexAnd: k_.and_(index(instr.a), second(instr), into(d)); break;
    case Do::IndexShiftRight: k_.shr_u(index(instr.a), instr.imm, into(d)); break;
    case Do::IndexDivide:
    case Do::IndexRemainder: divide(instr, d); break;
    default: refused_ = "not an index instruction"; break;
  }
}

// By a number below 2^32 a division takes 3 instructions, a wide one about 20.
template <typename R>
void Machine<R>::divide(const Instr& instr, U64 d) {
  const bool quotient = instr.code == Do::IndexDivide;
  if (!instr.narrow || instr.b) {
    quotient ? k_.div_u(index(instr.a), second(instr), into(d)) : k_.rem_u(index(instr.a), second(instr), into(d));
    return;
  }
  const U32 low = k_.template cvt_u<U32>(index(instr.a));
  const U32 made = quotient ? k_.div_u(low, instr.imm) : k_.rem_u(low, instr.imm);
  k_.template cvt_u<U64>(made, into(d));
}

// What rcp.rn does for divisors whose reciprocals are normal, without its test and its call for the others, which cut
// the code into pieces that loads cannot leave. An infinite divisor gives 0: the limit keeps 0 * infinity away.
template <typename R>
void Machine<R>::reciprocal_from_one(R divisor, R d) {
  if constexpr (std::same_as<R, F32>) {
    F32 guess = k_.template other<F32>("rcp.approx.ftz.f32", {}, divisor);
    F32 finite = k_.min(divisor, 0x1p127f);
    F32 error = k_.fma(k_.neg(finite), guess, 1.0f);
    k_.fma(guess, error, guess, into(d));
  } else {
    k_.rcp(divisor, into(d));
  }
}

// The quotient in f64, which is the same rounded to f32 and has no slow path to call: a guess by the reciprocal is off
// by a bit or two, the remainder (exact) mends it, and two more bits than twice f32's precision leave no room for a
// second rounding. A quotient that needs no mending keeps its sign of zero, its infinity, its NaN.
template <typename R>
void Machine<R>::divide_by(R a, double divisor, R d) {
  if constexpr (std::same_as<R, F32>) {
    F64 dividend = k_.widen(a), reciprocal = k_.constant<F64>(1 / divisor);
    F64 guess = k_.mul(dividend, reciprocal);
    F64 remainder = k_.fma(guess, -divisor, dividend);
    F64 mended = k_.fma(remainder, reciprocal, guess);
    Pred wants = k_.setp(FloatCompare::Ne, remainder, 0.0);
    k_.narrow(k_.selp(mended, guess, wants), Round::Even, into(d));
  } else {
    k_.div(a, divisor, into(d));
  }
}

template <typename R>
void Machine<R>::primitive(const Instr& instr) {
  using Bits = BitsOf<R>;
  bool condition = is_condition(instr.op);
  R d = condition ? R{} : lane(instr.dst);
  auto a = [&] { return lane(instr.a); };
  auto b = [&] { return lane(instr.b); };
  auto on_bits = [&](auto&& body) { k_.template bitcast<R>(body(k_.template bitcast<Bits>(a())), into(d)); };
  auto bits_of_b = [&] { return k_.template bitcast<Bits>(b()); };
  // f64 has no form in which NaN wins.
  auto extreme = [&](bool smallest) {
    if constexpr (std::same_as<R, F32>) {
      smallest ? k_.min_nan(a(), b(), into(d)) : k_.max_nan(a(), b(), into(d));
    } else {
      Pred nan = k_.setp(FloatCompare::Nan, a(), b());
      R value = smallest ? k_.min(a(), b()) : k_.max(a(), b());
      k_.selp(k_.constant<R>(std::numeric_limits<double>::quiet_NaN()), value, nan, into(d));
    }
  };
  switch (instr.op) {
    case Op::Add: k_.add(a(), b(), into(d)); break;
    case Op::Sub: k_.sub(a(), b(), into(d)); break;
    case Op::Mul: k_.mul(a(), b(), into(d)); break;
    case Op::Div:
      if (instr.imm == 1) reciprocal_from_one(b(), d);
      else if (constant(instr.a) == 1) k_.rcp(b(), into(d));
      else if (double by = constant(instr.b); std::isnormal(by) && std::abs(by) >= 1 && std::abs(by) <= 0x1p24)
        divide_by(a(), by, d);
      else k_.div(a(), b(), into(d));
      break;
    case Op::Neg: k_.neg(a(), into(d)); break;
    case Op::Abs: k_.abs(a(), into(d)); break;
    case Op::Sqrt: k_.sqrt(a(), into(d)); break;
    case Op::Fma: k_.fma(a(), b(), lane(instr.c), into(d)); break;
    case Op::Min: extreme(true); break;
    case Op::Max: extreme(false); break;
    case Op::Floor: k_.round(a(), Round::Down, into(d)); break;
    case Op::Round: k_.round(a(), Round::Even, into(d)); break;
    case Op::Less: k_.setp(FloatCompare::Lt, a(), b(), into(mask(instr.dst))); break;
    case Op::LessEqual: k_.setp(FloatCompare::Le, a(), b(), into(mask(instr.dst))); break;
    case Op::Equal: k_.setp(FloatCompare::Eq, a(), b(), into(mask(instr.dst))); break;
    case Op::And: k_.and_(mask(instr.a), mask(instr.b), into(mask(instr.dst))); break;
    case Op::Or: k_.or_(mask(instr.a), mask(instr.b), into(mask(instr.dst))); break;
    case Op::Not: k_.not_(mask(instr.a), into(mask(instr.dst))); break;
    case Op::Select: k_.selp(b(), lane(instr.c), mask(instr.a), into(d)); break;
    case Op::BitsAdd: on_bits([&](Bits x) { return k_.add(x, bits_of_b()); }); break;
    case Op::BitsAnd: on_bits([&](Bits x) { return k_.and_(x, bits_of_b()); }); break;
    case Op::BitsOr: on_bits([&](Bits x) { return k_.or_(x, bits_of_b()); }); break;
    case Op::BitsShiftLeft: on_bits([&](Bits x) { return k_.shl(x, instr.imm); }); break;
    case Op::BitsShiftRight: on_bits([&](Bits x) { return k_.shr_u(x, instr.imm); }); break;
    case Op::RoundTo: k_.assign(d, round_to(instr.type, a())); break;
    default: refused_ = fmt::format("{} is no primitive", facts(instr.op).name); break;
  }
}

template class Machine<F32>;
template class Machine<F64>;

}  // namespace trireme::ptx

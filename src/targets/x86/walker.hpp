// Walks a kernel: control and addresses here, what is known of registers in Registers, everything else in the machine.
#pragma once
#include <fmt/format.h>

#include <optional>

#include "targets/lane_facts.hpp"
#include "targets/listing.hpp"
#include "targets/x86/registers.hpp"

namespace trireme::x86 {

class Walker {
 public:
  Walker(Compiler& compiler, const Kernel& kernel, Isa isa, bool with_notes)
      : cc_(compiler),
        kernel_(kernel),
        machine_(compiler, isa, kernel.compute),
        registers_(kernel, machine_),
        facts_(kernel),
        with_notes_(with_notes) {}

  void walk() {
    args_ = machine_.new_gp();
    for (Gp& each : arguments_) each = machine_.new_gp();
    cc_.enter({args_, arguments_[0], arguments_[1], arguments_[2]});
    Mem callers_mxcsr = cc_.newStack(4, 4);
    cc_.stmxcsr(callers_mxcsr);
    cc_.ldmxcsr(cc_.newConst(&mxcsr, sizeof mxcsr));
    machine_.begin();
    if (int slot = kernel_.slot({Slot::What::Pointer, scratch_array}); slot >= 0)
      cc_.mov(scratch_ = machine_.new_gp(), asmjit::x86::ptr(args_, slot * 8));
    block(kernel_.body);
    if (machine_.streamed()) cc_.sfence();
    cc_.ldmxcsr(callers_mxcsr);
    cc_.leave();
  }

  std::optional<std::string> fault() const {
    if (fault_) return fault_;
    if (registers_.wrong())
      return fmt::format("register {} of bank {} is not declared or stands in the wrong place", registers_.wrong()->id,
                         static_cast<int>(registers_.wrong()->bank));
    return std::nullopt;
  }

 private:
  using Label = asmjit::Label;
  static constexpr std::uint32_t mxcsr = 0x1F80;  // round to nearest even, keep subnormals, no traps

  static bool fits32(std::int64_t value) { return value == static_cast<std::int32_t>(value); }
  void complain(std::string what) {
    if (!fault_) fault_ = std::move(what);
  }
  Vec lane(Reg r) { return registers_.lane(r); }
  Mask mask(Reg r) { return registers_.mask(r); }
  Gp index(Reg r) { return registers_.index(r); }
  Gp pointer(Reg r) { return registers_.pointer(r); }
  Gp index_or_none(Reg r) { return r ? index(r) : Gp(); }

  std::int32_t imm32(const Instr& i) {
    if (!fits32(i.imm)) complain(fmt::format("an immediate of {}", i.imm));
    return static_cast<std::int32_t>(i.imm);
  }
  Mem slot(const Instr& i) {
    if (i.imm < 0 || i.imm >= static_cast<std::int64_t>(kernel_.slots.size())) complain(fmt::format("slot {}", i.imm));
    return asmjit::x86::ptr(args_, static_cast<std::int32_t>(i.imm * 8));
  }
  Vec value(const Instr& i) {
    if (i.values.size() == 1) return lane(i.values[0]);
    complain("a simd load or store has one register");
    return machine_.new_lane();
  }

  void load(const Instr& i) {
    const Mask mask = registers_.mask_or_none(i.c);
    if (i.backwards) machine_.load_backwards(value(i), address(i), i.type, mask);
    else machine_.load(value(i), address(i), i.type, mask);
  }

  void store(const Instr& i) {
    const Mask mask = registers_.mask_or_none(i.c);
    const bool two = i.values.size() == 2;
    if (i.values.empty() || i.values.size() > 2 || (two && mask.isValid()))
      return complain("a simd store has one register, or two without a mask");
    const bool exact = facts_.exact(i.values[0], i.type) && (!two || facts_.exact(i.values[1], i.type));
    if (!two && i.backwards)
      return machine_.store_backwards(address(i), lane(i.values[0]), i.type, mask, i.hint, exact);
    if (!two) return machine_.store(address(i), lane(i.values[0]), i.type, mask, i.hint, exact);
    const Vec low = lane(i.values[0]), high = lane(i.values[1]);
    if (registers_.wrong()) return;
    if (i.backwards) machine_.store_two_backwards(address(i), low, high, i.type, i.hint, exact);
    else machine_.store_two(address(i), low, high, i.type, i.hint, exact);
  }

  Mem address(const Instr& i) {
    Gp base = scratch_;
    if (i.space == Space::Global) {
      base = pointer(i.a);
    } else if (!scratch_.isValid()) {
      complain("scratch without a slot for it");
      base = args_;
    } else if (i.a) {
      cc_.lea(base = machine_.new_gp(), asmjit::x86::ptr(scratch_, index(i.a)));
    }
    std::int64_t offset = i.imm;
    if (!fits32(offset)) {
      Gp far = machine_.in_register(offset);
      cc_.add(far, base);
      base = far;
      offset = 0;
    }
    if (i.b)
      return asmjit::x86::ptr(base, index(i.b), std::countr_zero(bytes(i.type)), static_cast<std::int32_t>(offset));
    return asmjit::x86::ptr(base, static_cast<std::int32_t>(offset));
  }

  void say(const std::string& text) {
    const std::string line = "; " + text;
    if (with_notes_) cc_.comment(line.data(), line.size());
  }

  void say_places(const Instr& name) {
    std::vector<std::uint32_t> ids;
    for (Reg each : kernel_.names[name.imm].registers)
      if (const auto made = registers_.made(each); made.isValid()) ids.push_back(made.id());
    cc_.comment_with_places("; " + comment_of(name, kernel_), std::move(ids));
  }

  void block(const std::vector<Instr>& instructions) {
    for (const Instr& each : instructions) {
      if (with_notes_ && each.code == Do::Name) say_places(each);
      else if (std::string text = with_notes_ ? comment_of(each, kernel_) : ""; !text.empty()) say(text);
      instruction(each);
    }
  }

  void compare(const Instr& i) {
    cc_.emit(Inst::kIdCmp, index(i.a), machine_.index_operand(index_or_none(i.b), i.imm));
  }

  void loop(const Instr& i) {
    Label again = cc_.newLabel(), done = cc_.newLabel();
    compare(i);
    cc_.jge(done);
    cc_.bind(again);
    block(i.body);
    say("}");
    compare(i);
    cc_.jl(again);
    cc_.bind(done);
  }

  void branch(const Instr& i) {
    Label otherwise = cc_.newLabel(), done = cc_.newLabel();
    compare(i);
    cc_.jge(otherwise);
    block(i.body);
    if (!i.other.empty()) {
      cc_.jmp(done);
      say("} else {");
    }
    cc_.bind(otherwise);
    block(i.other);
    say("}");
    cc_.bind(done);
  }

  void min_max(const Instr& i) {
    const Vec dst = lane(i.dst), a = lane(i.a), b = lane(i.b);
    if (registers_.wrong()) return;
    if (facts_.plain_constant(i.a)) return machine_.min_max_raw(i.op, dst, a, b);
    if (facts_.plain_constant(i.b)) return machine_.min_max_raw(i.op, dst, b, a);
    machine_.min_max(i.op, dst, a, b);
  }

  void fma(const Instr& i) {
    const Vec dst = lane(i.dst);
    Vec a = lane(i.a), b = lane(i.b), c = lane(i.c);
    if (registers_.wrong()) return;
    if (dst != a && dst != b && dst != c) {  // it overwrites an argument anyway: best one that nobody reads again
      const Vec over = registers_.dies(i.c, i) ? c : registers_.dies(i.b, i) ? b : a;
      machine_.move(dst, over);
      for (Vec* each : {&a, &b, &c})
        if (*each == over) *each = dst;
    }
    machine_.fma(dst, a, b, c);
  }

  void primitive(const Instr& i) {
    switch (i.op) {
      case Op::Neg:
      case Op::Abs:
      case Op::Sqrt:
      case Op::Floor:
      case Op::Round: return machine_.arithmetic(i.op, lane(i.dst), lane(i.a), lane(i.a));
      case Op::Add:
      case Op::Sub:
      case Op::Mul:
      case Op::Div:
      case Op::BitsAdd:
      case Op::BitsAnd:
      case Op::BitsOr: return machine_.arithmetic(i.op, lane(i.dst), lane(i.a), lane(i.b));
      case Op::Fma: return fma(i);
      case Op::Min:
      case Op::Max: return min_max(i);
      case Op::Less:
      case Op::LessEqual:
      case Op::Equal: return machine_.compare(i.op, mask(i.dst), lane(i.a), lane(i.b));
      case Op::And:
      case Op::Or: return machine_.logic(i.op, mask(i.dst), mask(i.a), mask(i.b));
      case Op::Not: return machine_.logic(i.op, mask(i.dst), mask(i.a), mask(i.a));
      case Op::Select: return machine_.select(lane(i.dst), mask(i.a), lane(i.b), lane(i.c));
      case Op::BitsShiftLeft:
      case Op::BitsShiftRight: return machine_.shift(i.op, lane(i.dst), lane(i.a), imm32(i));
      case Op::RoundTo: return machine_.round_to(i.type, lane(i.dst), lane(i.a));
      default: return complain(fmt::format("{} is no primitive", facts(i.op).name));
    }
  }

  void instruction(const Instr& i) {
    switch (i.code) {
      case Do::IndexConstant: return void(cc_.mov(index(i.dst), i.imm));
      case Do::IndexSlot: return void(cc_.mov(index(i.dst), slot(i)));
      case Do::IndexArgument:
        if (i.imm < 0 || i.imm > 2) return complain(fmt::format("argument {}", i.imm));
        return void(cc_.mov(index(i.dst), arguments_[i.imm]));
      case Do::IndexMove: return void(cc_.mov(index(i.dst), index(i.a)));
      case Do::IndexAdd:
      case Do::IndexSub:
      case Do::IndexMul:
      case Do::IndexMin:
      case Do::IndexMax:
      case Do::IndexAnd:
      case Do::IndexShiftRight:
      case Do::IndexDivide:
      case Do::IndexRemainder:
        if (i.narrow && !i.b && i.imm > 1)
          return machine_.divide_narrow(i.code == Do::IndexDivide, index(i.dst), index(i.a), i.imm);
        return machine_.index(i.code, index(i.dst), index(i.a), index_or_none(i.b), i.imm);
      case Do::IndexLoad: return machine_.index_load(index(i.dst), address(i), i.type, registers_.mask_or_none(i.c));
      case Do::PointerSlot: return void(cc_.mov(pointer(i.dst), slot(i)));
      case Do::PointerAdd: return machine_.pointer_add(pointer(i.dst), pointer(i.a), index(i.b), i.imm);

      case Do::Load: return load(i);
      case Do::LoadOne: return machine_.load_one(lane(i.dst), address(i), i.type, registers_.mask_or_none(i.c));
      case Do::Store: return store(i);
      case Do::Prefetch: return void(cc_.prefetcht1(address(i)));  // L1 is full of the row at hand
      case Do::StoreOne: return machine_.store_one(address(i), value(i), i.type, registers_.mask_or_none(i.c));

      case Do::LaneConstant: return machine_.constant(lane(i.dst), std::bit_cast<double>(i.imm));
      case Do::LaneSlot: return machine_.slot(lane(i.dst), slot(i));
      case Do::LaneFromIndex: return machine_.from_index(lane(i.dst), index(i.a));
      case Do::Random:
        return machine_.random(lane(i.dst), index(i.a), imm32(i), index(i.b), index(i.d),
                               static_cast<std::uint32_t>(i.imm2), i.count == 1);
      case Do::LaneColumn: return machine_.column(lane(i.dst), index_or_none(i.a), imm32(i));
      case Do::LaneMove:
        if (i.dst.bank == Bank::Mask) return machine_.move(mask(i.dst), mask(i.a));
        return machine_.move(lane(i.dst), lane(i.a));
      case Do::Primitive: return primitive(i);
      case Do::ShuffleXor:
        if (i.imm < 0 || i.imm >= machine_.lanes()) return complain(fmt::format("a shuffle by {}", i.imm));
        return machine_.shuffle_xor(lane(i.dst), lane(i.a), static_cast<int>(i.imm));
      case Do::MaskBelow: return machine_.mask_below(mask(i.dst), index(i.a), imm32(i), index(i.b));
      case Do::MaskEqual: return machine_.mask_equal(mask(i.dst), index(i.a), imm32(i), index(i.b));

      case Do::While: return loop(i);
      case Do::If: return branch(i);
      case Do::Note:
      case Do::Name: return;

      case Do::ThreadLane:
      case Do::ThreadGroup:
      case Do::ThreadTeam:
      case Do::BlockIndex:
      case Do::BlockRank:
      case Do::LaneBit:
      case Do::Barrier:
      case Do::ClusterBarrier:
      case Do::OpenMailbox:
      case Do::Send:
      case Do::Receive:
      case Do::CopyAsync:
      case Do::CopyCommit:
      case Do::CopyWait: return complain(fmt::format("code {} belongs to thread machines", static_cast<int>(i.code)));
    }
  }

  Compiler& cc_;
  const Kernel& kernel_;
  Machine machine_;
  Registers registers_;
  LaneFacts facts_;
  bool with_notes_;
  Gp args_, arguments_[3], scratch_;
  std::optional<std::string> fault_;
};

}  // namespace trireme::x86

// Walks a kernel: control, registers and addresses here, everything else in the machine.
#include "targets/aarch64/emit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <optional>

#include "targets/aarch64/machine.hpp"
#include "targets/lane_facts.hpp"
#include "targets/listing.hpp"

namespace trireme::aarch64 {

namespace {

class Walker {
 public:
  Walker(Assembler& assembler, const Kernel& kernel, Isa isa, bool with_notes)
      : as_(assembler),
        kernel_(kernel),
        machine_(assembler, isa, kernel.compute),
        facts_(kernel),
        with_notes_(with_notes) {
    auto fill = [](auto& registers, int count, auto make) {
      for (int k = 0; k < count; ++k) registers.push_back(make());
    };
    fill(lanes_, kernel.lane_count, [&] { return as_.new_vec(); });
    fill(masks_, kernel.mask_count, [&] { return as_.new_vec(); });
    fill(indices_, kernel.index_count, [&] { return as_.new_gp(); });
    fill(pointers_, kernel.pointer_count, [&] { return as_.new_gp(); });
  }

  void walk() {
    for (Gp& each : arguments_) each = as_.new_gp();
    as_.enter(arguments_);
    const Gp callers_state = as_.new_gp();
    as_.put(form::read_fpcr, {callers_state});
    as_.put(form::clear_fpcr, {});  // round to nearest even, keep subnormals, no traps
    if (const int slot = kernel_.slot({Slot::What::Pointer, scratch_array}); slot >= 0) {
      scratch_ = as_.new_gp();
      machine_.load_slot(scratch_, args(), slot);
    }
    block(kernel_.body);
    as_.put(form::write_fpcr, {callers_state});
    as_.leave();
  }

  const std::optional<std::string>& fault() const { return fault_; }

 private:
  void complain(std::string what) {
    if (!fault_) fault_ = std::move(what);
  }
  template <typename Bank, typename Made>
  auto find(Reg r, trireme::Bank bank, const Bank& registers, Made make) {
    if (r.bank == bank && r.id >= 0 && r.id < static_cast<int>(registers.size()))
      return registers[static_cast<std::size_t>(r.id)];
    complain(fmt::format("register {} of bank {} is not declared or stands in the wrong place", r.id,
                         static_cast<int>(r.bank)));
    return make();
  }
  Vec lane(Reg r) {
    return find(r, Bank::Lane, lanes_, [&] { return as_.new_vec(); });
  }
  Vec mask(Reg r) {
    return find(r, Bank::Mask, masks_, [&] { return as_.new_vec(); });
  }
  Gp index(Reg r) {
    return find(r, Bank::Index, indices_, [&] { return as_.new_gp(); });
  }
  Gp pointer(Reg r) {
    return find(r, Bank::Pointer, pointers_, [&] { return as_.new_gp(); });
  }
  Vec mask_or_none(Reg r) { return r ? mask(r) : Vec{}; }
  Gp index_or_none(Reg r) { return r ? index(r) : Gp{}; }
  Gp args() const { return arguments_[0]; }

  std::int64_t slot(const Instr& i) {
    if (i.imm < 0 || i.imm >= static_cast<std::int64_t>(kernel_.slots.size())) complain(fmt::format("slot {}", i.imm));
    return i.imm;
  }
  Vec value(const Instr& i) {
    if (i.values.size() == 1) return lane(i.values[0]);
    complain("a simd load or store has one register");
    return as_.new_vec();
  }

  // Vectors side by side share the sum of base and index.
  struct Sum {
    Reg a, b;
    int shift = 0;
    Gp made;
  };
  Address address(const Instr& i) {
    Gp base = scratch_;
    if (i.space == Space::Global) base = pointer(i.a);
    else if (!scratch_.valid()) complain("scratch without a slot for it"), base = args();
    const int shift = std::countr_zero(static_cast<unsigned>(bytes(i.type)));
    const bool has_sum = i.b || (i.space != Space::Global && i.a);
    if (!has_sum) return {base, i.imm};
    if (sum_.made.valid() && sum_.a == i.a && sum_.b == i.b && sum_.shift == shift && space_ == i.space)
      return {sum_.made, i.imm};
    Gp made = as_.new_gp();
    if (i.space != Space::Global && i.a) {
      as_.put(form::add_x, {made, base, index(i.a)});
      base = made;
    }
    if (i.b) machine_.pointer_add(made, base, index(i.b), std::int64_t{1} << shift);
    sum_ = {i.a, i.b, shift, made};
    space_ = i.space;
    return {made, i.imm};
  }
  void forget_sums() { sum_ = {}; }

  void say(const std::string& text) {
    if (with_notes_) as_.comment("; " + text);
  }

  void say_places(const Instr& name) {
    std::vector<Register> registers;
    for (Reg each : kernel_.names[static_cast<std::size_t>(name.imm)].registers) {
      if (each.bank == Bank::Lane) registers.push_back(lane(each));
      else if (each.bank == Bank::Mask) registers.push_back(mask(each));
      else registers.push_back(each.bank == Bank::Index ? index(each) : pointer(each));
    }
    as_.comment_with_places("; " + comment_of(name, kernel_), std::move(registers));
  }

  void block(const std::vector<Instr>& instructions) {
    forget_sums();
    for (const Instr& each : instructions) {
      if (with_notes_ && each.code == Do::Name) say_places(each);
      else if (std::string text = with_notes_ ? comment_of(each, kernel_) : ""; !text.empty()) say(text);
      instruction(each);
      if (each.dst && (each.dst == sum_.a || each.dst == sum_.b)) forget_sums();
    }
    forget_sums();
  }

  void compare(const Instr& i) { machine_.compare(index(i.a), index_or_none(i.b), i.imm); }

  void loop(const Instr& i) {
    const Label again = as_.new_label(), done = as_.new_label();
    compare(i);
    as_.put(form::b_ge, {}, {.label = done});
    as_.bind(again);
    block(i.body);
    say("}");
    compare(i);
    as_.put(form::b_lt, {}, {.label = again});
    as_.bind(done);
  }

  void branch(const Instr& i) {
    const Label otherwise = as_.new_label(), done = as_.new_label();
    compare(i);
    as_.put(form::b_ge, {}, {.label = otherwise});
    block(i.body);
    if (!i.other.empty()) {
      as_.put(form::b, {}, {.label = done});
      say("} else {");
    }
    as_.bind(otherwise);
    block(i.other);
    say("}");
    as_.bind(done);
  }

  void load(const Instr& i) {
    const Vec dst = value(i), only = mask_or_none(i.c);
    const Address at = address(i);
    if (i.backwards) machine_.load_backwards(dst, at, i.type, only);
    else machine_.load(dst, at, i.type, only);
  }

  void store(const Instr& i) {
    const Vec only = mask_or_none(i.c);
    if (i.values.empty() || i.values.size() > 2 || (i.values.size() == 2 && only.valid()))
      return complain("a simd store has one register, or two without a mask");
    const bool exact = std::ranges::all_of(i.values, [&](Reg each) { return facts_.exact(each, i.type); });
    Address at = address(i);
    if (i.values.size() == 2 && !i.backwards)
      return machine_.store_two(at, lane(i.values[0]), lane(i.values[1]), i.type, exact);
    for (Reg each : i.values) {
      if (i.backwards) machine_.store_backwards(at, lane(each), i.type, only, exact);
      else machine_.store(at, lane(each), i.type, only, exact);
      at.offset -= machine_.raw_bytes(i.type);
    }
  }

  void primitive(const Instr& i) {
    switch (i.op) {
      case Op::Neg:
      case Op::Abs:
      case Op::Sqrt:
      case Op::Floor:
      case Op::Round: return machine_.arithmetic(i.op, lane(i.dst), lane(i.a), {});
      case Op::Add:
      case Op::Sub:
      case Op::Mul:
      case Op::Div:
      case Op::Min:
      case Op::Max:
      case Op::BitsAdd:
      case Op::BitsAnd:
      case Op::BitsOr: return machine_.arithmetic(i.op, lane(i.dst), lane(i.a), lane(i.b));
      case Op::Fma: return machine_.fma(lane(i.dst), lane(i.a), lane(i.b), lane(i.c));
      case Op::Less:
      case Op::LessEqual:
      case Op::Equal: return machine_.compare(i.op, mask(i.dst), lane(i.a), lane(i.b));
      case Op::And:
      case Op::Or: return machine_.arithmetic(i.op, mask(i.dst), mask(i.a), mask(i.b));
      case Op::Not: return machine_.arithmetic(i.op, mask(i.dst), mask(i.a), {});
      case Op::Select: return machine_.select(lane(i.dst), mask(i.a), lane(i.b), lane(i.c));
      case Op::BitsShiftLeft:
      case Op::BitsShiftRight: return machine_.shift(i.op, lane(i.dst), lane(i.a), static_cast<int>(i.imm));
      case Op::RoundTo: return machine_.round_to(i.type, lane(i.dst), lane(i.a));
      default: return complain(fmt::format("{} is no primitive", facts(i.op).name));
    }
  }

  void instruction(const Instr& i) {
    switch (i.code) {
      case Do::IndexConstant: return machine_.set(index(i.dst), i.imm);
      case Do::IndexSlot: return machine_.load_slot(index(i.dst), args(), slot(i));
      case Do::IndexArgument:
        if (i.imm < 0 || i.imm > 2) return complain(fmt::format("argument {}", i.imm));
        return as_.put(form::mov_x, {index(i.dst), arguments_[static_cast<std::size_t>(i.imm) + 1]});
      case Do::IndexMove: return as_.put(form::mov_x, {index(i.dst), index(i.a)});
      case Do::IndexAdd:
      case Do::IndexSub:
      case Do::IndexMul:
      case Do::IndexMin:
      case Do::IndexMax:
      case Do::IndexAnd:
      case Do::IndexShiftRight:
      case Do::IndexDivide:
      case Do::IndexRemainder: return machine_.index(i.code, index(i.dst), index(i.a), index_or_none(i.b), i.imm);
      case Do::IndexLoad: {
        const Address at = address(i);
        return machine_.index_load(index(i.dst), at, i.type, mask_or_none(i.c));
      }
      case Do::PointerSlot: return machine_.load_slot(pointer(i.dst), args(), slot(i));
      case Do::PointerAdd: return machine_.pointer_add(pointer(i.dst), pointer(i.a), index(i.b), i.imm);

      case Do::Load: return load(i);
      case Do::LoadOne: {
        const Address at = address(i);
        return machine_.load_one(lane(i.dst), at, i.type, mask_or_none(i.c));
      }
      case Do::Store: return store(i);
      case Do::Prefetch: return machine_.prefetch(address(i));
      case Do::StoreOne: {
        const Address at = address(i);
        return machine_.store_one(at, value(i), i.type, mask_or_none(i.c));
      }

      case Do::LaneConstant: return machine_.constant(lane(i.dst), std::bit_cast<double>(i.imm));
      case Do::LaneSlot: return machine_.slot(lane(i.dst), {args(), 8 * slot(i)});
      case Do::LaneFromIndex: return machine_.from_index(lane(i.dst), index(i.a));
      case Do::Random:
        return machine_.random(lane(i.dst), index(i.a), i.imm, index(i.b), index(i.d),
                               static_cast<std::uint32_t>(i.imm2), i.count == 1);
      case Do::LaneColumn: return machine_.column(lane(i.dst), index_or_none(i.a), i.imm);
      case Do::LaneMove:
        if (i.dst.bank == Bank::Mask) return machine_.move(mask(i.dst), mask(i.a));
        return machine_.move(lane(i.dst), lane(i.a));
      case Do::Primitive: return primitive(i);
      case Do::ShuffleXor:
        if (i.imm < 0 || i.imm >= machine_.lanes()) return complain(fmt::format("a shuffle by {}", i.imm));
        return machine_.shuffle_xor(lane(i.dst), lane(i.a), static_cast<int>(i.imm));
      case Do::MaskBelow: return machine_.mask_below(mask(i.dst), index(i.a), i.imm, index(i.b));
      case Do::MaskEqual: return machine_.mask_equal(mask(i.dst), index(i.a), i.imm, index(i.b));

      case Do::While: return loop(i);
      case Do::If: return branch(i);
      case Do::Note:
      case Do::Name: return;
      default: return complain(fmt::format("code {} belongs to thread machines", static_cast<int>(i.code)));
    }
  }

  Assembler& as_;
  const Kernel& kernel_;
  Machine machine_;
  LaneFacts facts_;
  bool with_notes_;
  std::vector<Vec> lanes_, masks_;
  std::vector<Gp> indices_, pointers_;
  std::array<Gp, 4> arguments_;
  Gp scratch_;
  Sum sum_;
  Space space_ = Space::Global;
  std::optional<std::string> fault_;
};

}  // namespace

Result<MachineCode> emit(const Kernel& kernel, Isa isa, bool with_listing) {
  auto internal = [&](std::string_view what) {
    return Error{trireme::Code::Internal, fmt::format("aarch64: {}: {}", kernel.name, what)};
  };
  if (!kernel.simd || (kernel.compute != Type::F32 && kernel.compute != Type::F64) ||
      kernel.launch.lanes * static_cast<int>(bytes(kernel.compute)) != register_bytes)
    return internal("not a simd kernel whose lanes fill 16 bytes");
  Assembler assembler;
  Walker walker(assembler, kernel, isa, with_listing);
  walker.walk();
  if (walker.fault()) return internal(*walker.fault());
  std::optional<MachineCode> made = assembler.finish(with_listing);
  if (!made) return internal("the code outgrows what branches and the stack reach");
  return MachineCode{std::move(made->bytes), with_listing ? laid_out(kernel, made->listing) : std::string()};
}

}  // namespace trireme::aarch64

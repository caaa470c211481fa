#include "targets/x86/emit.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <optional>

#include "targets/x86/machine.hpp"

namespace trireme::x86 {

namespace {

using asmjit::Label;
using asmjit::x86::ptr;

constexpr std::uint32_t mxcsr = 0x1F80;  // round to nearest even, keep subnormals, no traps

Error internal(std::string what) { return {trireme::Code::Internal, "x86: " + std::move(what)}; }

bool fits32(std::int64_t value) { return value == static_cast<std::int32_t>(value); }

// Remembers the first complaint; the emitter then goes on into the void.
class Complaints : public asmjit::ErrorHandler {
 public:
  void handleError(asmjit::Error, const char* message, asmjit::BaseEmitter*) override {
    if (!first) first = message;
  }
  std::optional<std::string> first;
};

// Walks a kernel: control, addresses and Index registers here, lanes in the machine.
class Walker {
 public:
  Walker(Compiler& compiler, const Kernel& kernel, Isa isa, bool with_notes)
      : cc_(compiler), kernel_(kernel), machine_(compiler, isa, kernel.compute), with_notes_(with_notes) {}

  std::optional<Error> walk() {
    lanes_.resize(kernel_.lane_count);
    masks_.resize(kernel_.mask_count);
    indices_.resize(kernel_.index_count);
    pointers_.resize(kernel_.pointer_count);
    constants_.resize(kernel_.lane_count);
    note_constants(kernel_.body);

    args_ = machine_.new_gp();
    for (Gp& argument : arguments_) argument = machine_.new_gp();
    asmjit::FuncNode* function =
        cc_.addFunc(asmjit::FuncSignatureT<void, const void*, std::int64_t, std::int64_t, std::int64_t>(
            asmjit::CallConvId::kX64SystemV));
    function->frame().setAvxEnabled();
    function->frame().setAvxCleanup();
    if (machine_.isa() == Isa::Avx512) function->frame().setAvx512Enabled();
    function->setArg(0, args_);
    for (std::uint32_t k = 0; k < 3; ++k) function->setArg(k + 1, arguments_[k]);

    Mem callers_mxcsr = cc_.newStack(4, 4);
    cc_.stmxcsr(callers_mxcsr);
    cc_.ldmxcsr(cc_.newUInt32Const(asmjit::ConstPoolScope::kLocal, mxcsr));
    if (int slot = kernel_.slot({Slot::Kind::Scratch}); slot >= 0) {
      scratch_ = machine_.new_gp();
      cc_.mov(scratch_, ptr(args_, slot * 8));
    }
    block(kernel_.body);
    if (machine_.streamed()) cc_.sfence();
    cc_.ldmxcsr(callers_mxcsr);
    cc_.ret();
    cc_.endFunc();
    return error_;
  }

 private:
  // Registers that only ever hold one LaneConstant: their value is known wherever they are read.
  struct Constant {
    int definitions = 0;
    double value = 0;
  };

  void note_constants(const std::vector<Instr>& instructions) {
    for (const Instr& i : instructions) {
      if (i.code == Do::Load)
        for (Reg r : i.values) define(r, i);
      define(i.dst, i);
      note_constants(i.body);
      note_constants(i.other);
    }
  }

  void define(Reg r, const Instr& i) {
    if (r.bank != Bank::Lane || r.id < 0 || r.id >= kernel_.lane_count) return;
    Constant& known = constants_[r.id];
    ++known.definitions;
    known.value = i.code == Do::LaneConstant ? std::bit_cast<double>(i.imm) : 0;
  }

  bool constant_not_zero_nor_nan(Reg r) {
    const Constant& known = constants_[r.id];
    return known.definitions == 1 && known.value != 0 && !std::isnan(known.value);
  }

  void fault(std::string what) {
    if (!error_) error_ = internal(fmt::format("{}: {}", kernel_.name, what));
  }

  template <typename R, typename Make>
  R& find(std::vector<R>& bank, Reg r, Bank wanted, Make make) {
    if (r.bank != wanted || r.id < 0 || r.id >= static_cast<int>(bank.size())) {
      fault(fmt::format("register {} of bank {} where one of bank {} is needed", r.id, static_cast<int>(r.bank),
                        static_cast<int>(wanted)));
      static thread_local R nowhere;
      return nowhere = make();
    }
    if (!bank[r.id].isValid()) bank[r.id] = make();
    return bank[r.id];
  }
  Vec lane(Reg r) {
    return find(lanes_, r, Bank::Lane, [&] { return machine_.new_lane(); });
  }
  Mask mask(Reg r) {
    return find(masks_, r, Bank::Mask, [&] { return machine_.new_mask(); });
  }
  Mask mask_or_none(Reg r) { return r ? mask(r) : Mask(); }
  Gp index(Reg r) {
    return find(indices_, r, Bank::Index, [&] { return machine_.new_gp(); });
  }
  Gp pointer(Reg r) {
    return find(pointers_, r, Bank::Pointer, [&] { return machine_.new_gp(); });
  }

  Gp in_register(std::int64_t value) {
    Gp r = machine_.new_gp();
    cc_.mov(r, value);
    return r;
  }
  Gp b_in_register(const Instr& i) { return i.b ? index(i.b) : in_register(i.imm); }
  asmjit::Operand b_or_imm(const Instr& i) {
    if (!i.b && fits32(i.imm)) return asmjit::Imm(i.imm);
    return b_in_register(i);
  }
  std::int32_t imm32(const Instr& i) {
    if (!fits32(i.imm)) fault(fmt::format("an immediate of {}", i.imm));
    return static_cast<std::int32_t>(i.imm);
  }
  Mem slot(const Instr& i) {
    if (i.imm < 0 || i.imm >= static_cast<std::int64_t>(kernel_.slots.size())) fault(fmt::format("slot {}", i.imm));
    return ptr(args_, static_cast<std::int32_t>(i.imm * 8));
  }

  Mem address(const Instr& i) {
    Gp base;
    if (i.space == Space::Global) {
      base = pointer(i.a);
    } else {
      if (!scratch_.isValid()) {
        fault("scratch without a slot for it");
        scratch_ = machine_.new_gp();
      }
      base = scratch_;
      if (i.a && i.b) {
        base = machine_.new_gp();
        cc_.lea(base, ptr(scratch_, index(i.a)));
      }
    }
    std::int64_t displacement = i.imm;
    if (!fits32(displacement)) {
      Gp moved = in_register(displacement);
      cc_.add(moved, base);
      base = moved;
      displacement = 0;
    }
    const auto offset = static_cast<std::int32_t>(displacement);
    if (i.b) return ptr(base, index(i.b), std::countr_zero(bytes(i.type)), offset);
    if (i.space == Space::Scratch && i.a) return ptr(base, index(i.a), 0, offset);
    return ptr(base, offset);
  }

  void block(const std::vector<Instr>& instructions) {
    for (const Instr& each : instructions) {
      if (error_) return;
      instruction(each);
    }
  }

  void jump_unless(const Instr& i, const Label& target) {
    cc_.emit(Inst::kIdCmp, index(i.a), b_or_imm(i));
    cc_.jge(target);
  }

  void loop(const Instr& i) {
    Label again = cc_.newLabel(), done = cc_.newLabel();
    jump_unless(i, done);
    cc_.bind(again);
    block(i.body);
    cc_.emit(Inst::kIdCmp, index(i.a), b_or_imm(i));
    cc_.jl(again);
    cc_.bind(done);
  }

  void branch(const Instr& i) {
    Label otherwise = cc_.newLabel(), done = cc_.newLabel();
    jump_unless(i, otherwise);
    block(i.body);
    if (!i.other.empty()) cc_.jmp(done);
    cc_.bind(otherwise);
    block(i.other);
    if (!i.other.empty()) cc_.bind(done);
  }

  // dst = a - b and the like, where the machine writes its first operand.
  void two_operand(asmjit::InstId id, const Instr& i) {
    const Gp dst = index(i.dst), a = index(i.a);
    const asmjit::Operand b = b_or_imm(i);
    const Gp out = b == dst && dst != a ? machine_.new_gp() : dst;
    if (out != a) cc_.mov(out, a);
    cc_.emit(id, out, b);
    if (out != dst) cc_.mov(dst, out);
  }

  void divide(const Instr& i) {
    const bool quotient = i.code == Do::IndexDivide;
    const Gp dst = index(i.dst), a = index(i.a);
    if (!i.b && i.imm > 0 && std::has_single_bit(static_cast<std::uint64_t>(i.imm)) && fits32(i.imm)) {
      if (dst != a) cc_.mov(dst, a);
      if (quotient) cc_.shr(dst, std::countr_zero(static_cast<std::uint64_t>(i.imm)));
      else cc_.and_(dst, i.imm - 1);
      return;
    }
    Gp low = machine_.new_gp(), high = machine_.new_gp(), divisor = b_in_register(i);
    cc_.mov(low, a);
    cc_.xor_(high.r32(), high.r32());
    cc_.div(high, low, divisor);
    cc_.mov(dst, quotient ? low : high);
  }

  void least(const Instr& i) {
    const Gp dst = index(i.dst), a = index(i.a), b = b_in_register(i);
    Gp out = dst == a || dst == b ? machine_.new_gp() : dst;
    cc_.mov(out, b);
    cc_.cmp(a, out);
    cc_.cmovl(out, a);
    if (out != dst) cc_.mov(dst, out);
  }

  void pointer_add(const Instr& i) {
    const Gp dst = pointer(i.dst), a = pointer(i.a);
    if (!i.b) return void(cc_.lea(dst, ptr(a, imm32(i))));
    if (i.imm == 1 || i.imm == 2 || i.imm == 4 || i.imm == 8)
      return void(cc_.lea(dst, ptr(a, index(i.b), std::countr_zero(static_cast<std::uint64_t>(i.imm)))));
    Gp scaled = machine_.new_gp();
    if (fits32(i.imm)) {
      cc_.imul(scaled, index(i.b), i.imm);
    } else {
      cc_.mov(scaled, i.imm);
      cc_.imul(scaled, index(i.b));
    }
    cc_.lea(dst, ptr(a, scaled));
  }

  void primitive(const Instr& i) {
    switch (i.op) {
      case Op::Neg:
      case Op::Abs:
      case Op::Sqrt:
      case Op::Floor:
      case Op::Round: return machine_.unary(i.op, lane(i.dst), lane(i.a));
      case Op::Add:
      case Op::Sub:
      case Op::Mul:
      case Op::Div:
      case Op::BitsAdd:
      case Op::BitsAnd:
      case Op::BitsOr: return machine_.binary(i.op, lane(i.dst), lane(i.a), lane(i.b));
      case Op::Fma: return machine_.fma(lane(i.dst), lane(i.a), lane(i.b), lane(i.c));
      case Op::Min:
      case Op::Max: {
        const Vec dst = lane(i.dst), a = lane(i.a), b = lane(i.b);
        if (error_) return;
        if (constant_not_zero_nor_nan(i.a)) return machine_.min_max_constant(i.op, dst, a, b);
        if (constant_not_zero_nor_nan(i.b)) return machine_.min_max_constant(i.op, dst, b, a);
        return machine_.min_max(i.op, dst, a, b);
      }
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
      default: return fault(fmt::format("{} is no primitive", facts(i.op).name));
    }
  }

  void instruction(const Instr& i) {
    switch (i.code) {
      case Do::IndexConstant:
        if (i.imm == 0) cc_.xor_(index(i.dst).r32(), index(i.dst).r32());
        else cc_.mov(index(i.dst), i.imm);
        return;
      case Do::IndexSlot: return void(cc_.mov(index(i.dst), slot(i)));
      case Do::IndexArgument:
        if (i.imm < 0 || i.imm > 2) return fault(fmt::format("argument {}", i.imm));
        return void(cc_.mov(index(i.dst), arguments_[i.imm]));
      case Do::IndexMove: return void(cc_.mov(index(i.dst), index(i.a)));
      case Do::IndexAdd:
        if (i.b) return void(cc_.lea(index(i.dst), ptr(index(i.a), index(i.b))));
        if (fits32(i.imm) && i.dst != i.a) return void(cc_.lea(index(i.dst), ptr(index(i.a), imm32(i))));
        return two_operand(Inst::kIdAdd, i);
      case Do::IndexSub: return two_operand(Inst::kIdSub, i);
      case Do::IndexMul:
        if (!i.b && fits32(i.imm)) return void(cc_.imul(index(i.dst), index(i.a), i.imm));
        return two_operand(Inst::kIdImul, i);
      case Do::IndexAnd: return two_operand(Inst::kIdAnd, i);
      case Do::IndexShiftRight: {
        const Gp dst = index(i.dst), a = index(i.a);
        if (dst != a) cc_.mov(dst, a);
        return void(cc_.shr(dst, i.imm));
      }
      case Do::IndexMin: return least(i);
      case Do::IndexDivide:
      case Do::IndexRemainder: return divide(i);
      case Do::PointerSlot: return void(cc_.mov(pointer(i.dst), slot(i)));
      case Do::PointerAdd: return pointer_add(i);

      case Do::Load:
        if (i.values.size() != 1) return fault("a simd load fills one register");
        return machine_.load(lane(i.values[0]), address(i), i.type, mask_or_none(i.c));
      case Do::LoadOne: return machine_.load_one(lane(i.dst), address(i), i.type, mask_or_none(i.c));
      case Do::Store:
        if (i.values.size() != 1) return fault("a simd store takes one register");
        return machine_.store(address(i), lane(i.values[0]), i.type, mask_or_none(i.c), i.hint);
      case Do::StoreOne:
        if (i.values.size() != 1) return fault("a simd store takes one register");
        return machine_.store_one(address(i), lane(i.values[0]), i.type, mask_or_none(i.c));

      case Do::LaneConstant: return machine_.constant(lane(i.dst), std::bit_cast<double>(i.imm));
      case Do::LaneSlot: return machine_.slot(lane(i.dst), slot(i));
      case Do::LaneFromIndex: return machine_.from_index(lane(i.dst), index(i.a));
      case Do::LaneColumn: return machine_.column(lane(i.dst), index(i.a), imm32(i));
      case Do::LaneMove:
        if (i.dst.bank == Bank::Mask) return machine_.move(mask(i.dst), mask(i.a));
        return machine_.move(lane(i.dst), lane(i.a));
      case Do::Primitive: return primitive(i);
      case Do::ShuffleXor:
        if (i.imm < 0 || i.imm >= machine_.lanes()) return fault(fmt::format("a shuffle by {}", i.imm));
        return machine_.shuffle_xor(lane(i.dst), lane(i.a), static_cast<int>(i.imm));
      case Do::MaskBelow: return machine_.mask_below(mask(i.dst), index(i.a), imm32(i), index(i.b));

      case Do::While: return loop(i);
      case Do::If: return branch(i);
      case Do::Note:
        if (with_notes_) cc_.comment(i.text.data(), i.text.size());
        return;

      case Do::ThreadLane:
      case Do::ThreadGroup:
      case Do::ThreadTeam:
      case Do::BlockIndex:
      case Do::LaneBit:
      case Do::Barrier:
      case Do::CopyAsync:
      case Do::CopyCommit:
      case Do::CopyWait: return fault(fmt::format("code {} belongs to thread machines", static_cast<int>(i.code)));
    }
  }

  Compiler& cc_;
  const Kernel& kernel_;
  Machine machine_;
  bool with_notes_;
  std::vector<Vec> lanes_;
  std::vector<Mask> masks_;
  std::vector<Gp> indices_, pointers_;
  std::vector<Constant> constants_;
  Gp args_, arguments_[3], scratch_;
  std::optional<Error> error_;
};

}  // namespace

Result<Code> emit(const Kernel& kernel, Isa isa, bool with_listing) {
  if (!kernel.simd || (kernel.compute != Type::F32 && kernel.compute != Type::F64) ||
      kernel.launch.lanes != lanes(isa, kernel.compute))
    return internal(fmt::format("{}: not a simd kernel of {} lanes", kernel.name, lanes(isa, kernel.compute)));

  Complaints complaints;
  asmjit::StringLogger logger;
  asmjit::CodeHolder holder;
  holder.init(asmjit::Environment(asmjit::Arch::kX64));
  holder.setErrorHandler(&complaints);
  if (with_listing) holder.setLogger(&logger);
  Compiler compiler(&holder);
  Walker walker(compiler, kernel, isa, with_listing);
  if (std::optional<Error> error = walker.walk()) return *error;
  if (!complaints.first) compiler.finalize();
  if (!complaints.first) holder.flatten();
  if (!complaints.first) holder.resolveUnresolvedLinks();
  if (complaints.first) return internal(fmt::format("{}: asmjit: {}", kernel.name, *complaints.first));
  if (holder.hasUnresolvedLinks() || holder.hasRelocEntries())
    return internal(kernel.name + ": the code is not position independent");

  Code code;
  code.bytes.resize(holder.codeSize());
  if (holder.copyFlattenedData(code.bytes.data(), code.bytes.size()) != asmjit::kErrorOk)
    return internal(kernel.name + ": the code could not be copied");
  if (with_listing) code.listing.assign(logger.data(), logger.dataSize());
  return code;
}

}  // namespace trireme::x86

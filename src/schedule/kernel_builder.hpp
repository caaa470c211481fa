// Writes a kernel's instructions one after the other; `repeat` and `when` nest.
// Where two arguments of a call both emit, name one of them first: C++ does not say which comes first, and a kernel
// must not depend on the compiler that built this (plan/pinned_kernels_test.cpp sees it).
#pragma once
#include <bit>
#include <concepts>
#include <initializer_list>
#include <string>
#include <utility>

#include "schedule/kernel.hpp"

namespace trireme {

class KernelBuilder {
 public:
  explicit KernelBuilder(Kernel& kernel) : kernel_(kernel), out_(&kernel.body) {}
  Kernel& kernel() { return kernel_; }

  Reg fresh(Bank bank) {
    switch (bank) {
      case Bank::Lane: return {bank, kernel_.lane_count++};
      case Bank::Mask: return {bank, kernel_.mask_count++};
      case Bank::Index: return {bank, kernel_.index_count++};
      case Bank::Pointer: return {bank, kernel_.pointer_count++};
    }
    return {};
  }
  void emit(Instr instr) { out_->push_back(std::move(instr)); }
  Reg into(Bank bank, Instr instr) {
    Reg dst = instr.dst = fresh(bank);
    emit(std::move(instr));
    return dst;
  }
  // What `body` emits, without emitting it.
  template <typename Body>
  std::vector<Instr> recorded(Body&& body) {
    std::vector<Instr> instructions;
    std::vector<Instr>* outer = std::exchange(out_, &instructions);
    body();
    out_ = outer;
    return instructions;
  }
  void note(std::string text) {
    emit({.code = Do::Note, .imm = static_cast<std::int64_t>(kernel_.notes.size())});
    kernel_.notes.push_back(std::move(text));
  }
  void name(const std::string& name, const Values& registers) {
    if (!kernel_.with_names) return;
    emit({.code = Do::Name, .imm = static_cast<std::int64_t>(kernel_.names.size())});
    kernel_.names.push_back({name, registers});
  }

  // Index arithmetic. The second argument is a register or a number.
  Reg index(std::int64_t value) { return into(Bank::Index, {.code = Do::IndexConstant, .imm = value}); }
  Reg index(Do code, Reg a, Reg b) { return into(Bank::Index, {.code = code, .a = a, .b = b}); }
  Reg index(Do code, Reg a, std::int64_t b) { return into(Bank::Index, {.code = code, .a = a, .imm = b}); }
  Reg add(Reg a, Reg b) { return index(Do::IndexAdd, a, b); }
  Reg add(Reg a, std::int64_t b) { return b == 0 ? a : index(Do::IndexAdd, a, b); }
  Reg mul(Reg a, std::int64_t b) { return b == 1 ? a : index(Do::IndexMul, a, b); }
  // Of what is not negative; powers of two take no division. `narrow`: below 2^32, and so is the number.
  Reg divide(Reg a, std::int64_t by, bool narrow = false) {
    const auto bits = static_cast<std::uint64_t>(by);
    if (std::has_single_bit(bits)) return by == 1 ? a : index(Do::IndexShiftRight, a, std::countr_zero(bits));
    return into(Bank::Index, {.code = Do::IndexDivide, .narrow = narrow, .a = a, .imm = by});
  }
  Reg remainder(Reg a, std::int64_t by, bool narrow = false) {
    if (std::has_single_bit(static_cast<std::uint64_t>(by))) return index(Do::IndexAnd, a, by - 1);
    return into(Bank::Index, {.code = Do::IndexRemainder, .narrow = narrow, .a = a, .imm = by});
  }
  Reg special(Do code) { return into(Bank::Index, {.code = code}); }
  Reg argument(int which) { return into(Bank::Index, {.code = Do::IndexArgument, .imm = which}); }
  Reg copy(Reg a) { return into(Bank::Index, {.code = Do::IndexMove, .a = a}); }
  void assign(Reg dst, Reg a) {
    emit({.code = dst.bank == Bank::Lane ? Do::LaneMove : Do::IndexMove, .dst = dst, .a = a});
  }
  void assign(Reg dst, std::int64_t value) { emit({.code = Do::IndexConstant, .dst = dst, .imm = value}); }
  void increase(Reg dst, std::int64_t by) { emit({.code = Do::IndexAdd, .dst = dst, .a = dst, .imm = by}); }
  Reg slot(Slot wanted) { return into(Bank::Index, {.code = Do::IndexSlot, .imm = slot_number(wanted)}); }

  Reg slot(SumNumber wanted, int sums) { return slot({Slot::What::SumNumber, sums, static_cast<int>(wanted)}); }

  // Of an array.
  template <std::integral Number>
  Reg slot_of(Number array, Slot::What what, int which = 0) {
    return slot({what, static_cast<int>(array), which});
  }
  template <std::integral Number>
  Reg pointer_to(Number array) {
    return pointer({Slot::What::Pointer, static_cast<int>(array)});
  }

  Reg pointer(Slot wanted) { return into(Bank::Pointer, {.code = Do::PointerSlot, .imm = slot_number(wanted)}); }
  Reg pointer(Reg base, Reg elements, std::int64_t scale) {
    return into(Bank::Pointer, {.code = Do::PointerAdd, .a = base, .b = elements, .imm = scale});
  }

  // Lanes and masks
  Reg number(double value) {
    return into(Bank::Lane, {.code = Do::LaneConstant, .imm = std::bit_cast<std::int64_t>(value)});
  }
  Reg primitive(Op op, std::initializer_list<Reg> args) {
    Instr instr{.code = Do::Primitive, .op = op};
    Reg* into_args[] = {&instr.a, &instr.b, &instr.c};
    int k = 0;
    for (Reg arg : args) *into_args[k++] = arg;
    return into(is_condition(op) ? Bank::Mask : Bank::Lane, std::move(instr));
  }
  Reg shuffle_xor(Reg a, int lanes) { return into(Bank::Lane, {.code = Do::ShuffleXor, .a = a, .imm = lanes}); }
  Reg lane_bit(int bit) { return into(Bank::Mask, {.code = Do::LaneBit, .imm = bit}); }
  Reg below(Reg a, std::int64_t offset, Reg limit) {
    return into(Bank::Mask, {.code = Do::MaskBelow, .a = a, .b = limit, .imm = offset});
  }
  Reg equal(Reg a, std::int64_t offset, Reg b) {
    return into(Bank::Mask, {.code = Do::MaskEqual, .a = a, .b = b, .imm = offset});
  }
  // lane_bit() of a simd machine with so many lanes.
  Reg lane_bit(int bit, int lanes, Reg zero) {
    auto below_lane = [&](int lane) { return below(zero, 0, index(lane)); };
    Reg found;
    for (int first = bit; first < lanes; first += 2 * bit) {
      const Reg end = below_lane(first + bit), from = primitive(Op::Not, {below_lane(first)});
      const Reg some = primitive(Op::And, {from, end});
      found = found ? primitive(Op::Or, {found, some}) : some;
    }
    return found;
  }

  // A vector in scratch; `a`: bytes, `b`: entries further on.
  Reg load_scratch(Type type, std::int64_t at, Reg a = {}, Reg b = {}) {
    const Reg value = fresh(Bank::Lane);
    emit({.code = Do::Load, .type = type, .space = Space::Scratch, .a = a, .b = b, .imm = at, .values = {value}});
    return value;
  }
  // One entry, in all lanes.
  Reg load_one_scratch(Type type, std::int64_t at, Reg a = {}, Reg b = {}) {
    return into(Bank::Lane, {.code = Do::LoadOne, .type = type, .space = Space::Scratch, .a = a, .b = b, .imm = at});
  }
  void store_scratch(Type type, std::int64_t at, Reg value, Reg a = {}, Reg b = {}) {
    emit({.code = Do::Store, .type = type, .space = Space::Scratch, .a = a, .b = b, .imm = at, .values = {value}});
  }

  // Control
  template <typename Body>
  void repeat_while_less(Reg a, Reg b, Body&& body) {
    nest({.code = Do::While, .a = a, .b = b}, std::forward<Body>(body), [] {});
  }
  template <typename Body>
  void when_less(Reg a, Reg b, Body&& body) {
    nest({.code = Do::If, .a = a, .b = b}, std::forward<Body>(body), [] {});
  }
  // `body` takes from, from + step, ... that are less than the end.
  template <typename Body>
  void count(Reg from, Reg end, std::int64_t step, Body&& body) {
    const Reg at = copy(from);
    repeat_while_less(at, end, [&] {
      body(at);
      increase(at, step);
    });
  }
  template <typename Body, typename Else>
  void when_less(Reg a, Reg b, Body&& body, Else&& other) {
    nest({.code = Do::If, .a = a, .b = b}, std::forward<Body>(body), std::forward<Else>(other));
  }

  int slot_number(Slot wanted) {
    if (int k = kernel_.slot(wanted); k >= 0) return k;
    kernel_.slots.push_back(wanted);
    return static_cast<int>(kernel_.slots.size()) - 1;
  }

 private:
  template <typename Body, typename Else>
  void nest(Instr instr, Body&& body, Else&& other) {
    instr.body = recorded(std::forward<Body>(body));
    instr.other = recorded(std::forward<Else>(other));
    emit(std::move(instr));
  }

  Kernel& kernel_;
  std::vector<Instr>* out_;
};

}  // namespace trireme

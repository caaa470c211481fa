// Runs of arithmetic with fma by emulation, f32. The fast form of a run goes through f64: a product is exact there, a
// sum rounded, and rounded once more to f32; operands that are results of the run's own fma need no conversion. In the
// rare case that some sum's second rounding may be wrong, the whole run is made again by calls of the exact function.
#include <algorithm>
#include <cmath>

#include "targets/wasm/machine.hpp"

namespace trireme::wasm {
namespace {

bool is_fma(const Instr& instr) { return instr.code == Do::Primitive && instr.op == Primitive::Fma; }

// Nothing but registers in and one out; or for readers.
bool is_pure(const Instr& instr) {
  if (instr.code == Do::Name) return true;
  return (instr.code == Do::Primitive || instr.code == Do::LaneConstant || instr.code == Do::LaneMove) && instr.dst;
}

}  // namespace

// The longest run from `first` on that contains an fma and can be made twice: no register that it reads from outside is
// written in it.
std::size_t Machine::run_at(const std::vector<Instr>& body, std::size_t first) const {
  if (f64_ || !entry_.fma || entry_.compact) return first;
  std::size_t end = first, last_fma = first;
  std::vector<Reg> read, written;
  const auto contains = [](const std::vector<Reg>& list, Reg reg) {
    return std::ranges::find(list, reg) != list.end();
  };
  for (; end < body.size() && is_pure(body[end]); ++end) {
    const Instr& instr = body[end];
    if (instr.code == Do::Name) continue;
    for (Reg operand : {instr.a, instr.b, instr.c})
      if (operand && !contains(written, operand)) read.push_back(operand);
    if (contains(read, instr.dst)) break;
    written.push_back(instr.dst);
    if (is_fma(instr)) last_fma = end + 1;
  }
  return last_fma;
}

Status Machine::emulated_run(std::span<const Instr> run) {
  wide_.clear();
  powers_.clear();
  wide_used_ = 0;
  writer_->release();
  writer_->assign(doubt_, writer_->constant<I32x4>(0));
  for (const Instr& instr : run) {
    writer_->release();
    if (is_fma(instr)) {
      fast_fma(instr);
    } else if (instr.code == Do::Name) {
      TRIREME_CHECK(step(instr));
    } else {
      wide_.erase(instr.dst.id), powers_.erase(instr.dst.id);
      if (instr.op == Primitive::BitsShiftLeft && instr.imm >= 23) powers_.insert(instr.dst.id);  // no mantissa is left
      TRIREME_CHECK(step(instr));
    }
  }
  f().get(doubt_), f().op("v128.any_true");
  const Label again = f().if_();
  for (const Instr& instr : run) {
    writer_->release();
    TRIREME_CHECK(step(instr));
  }
  f().end(again);
  return Done{};
}

Halves Machine::wide(Reg reg) {
  if (const auto constant = facts_.constant(reg)) {
    const auto both = writer_->constant<F64x2>(static_cast<float>(*constant));
    return {both, both};
  }
  if (const auto known = wide_.find(reg.id); known != wide_.end())
    return {writer_->value<F64x2>(known->second.low), writer_->value<F64x2>(known->second.high)};
  if (wide_used_ == wide_pool_.size()) wide_pool_.push_back({f().local<V128>(), f().local<V128>()});
  const WideLocals locals = wide_pool_[wide_used_++];
  const Halves value = halves(writer_->value<F32x4>(lane(reg)));
  writer_->assign(locals.high, value.high);
  writer_->assign(locals.low, value.low);
  wide_.emplace(reg.id, locals);
  return {writer_->value<F64x2>(locals.low), writer_->value<F64x2>(locals.high)};
}

void Machine::fast_fma(const Instr& instr) {
  const Halves a = wide(instr.a), b = wide(instr.b), c = wide(instr.c);
  const auto low_product = a.low * b.low;
  const auto low = low_product + c.low;
  const auto high_product = a.high * b.high;
  const auto high = high_product + c.high;
  // Times a power of two it is the sum of two f32, and 53 bits are enough to round that twice (Figueroa, When is double
  // rounding innocuous?, 1995).
  if (!is_power(instr.a) && !is_power(instr.b)) {
    // A sum with |c| >= 2^-70 is zero or at least 2^-119: where a * b cancels most of c, it is above 2^-72, and so a
    // multiple of 2^-119 as c is.
    const auto addend = facts_.constant(instr.c);
    const auto wrong = may_be_wrong(low, high, !addend || !(std::abs(*addend) >= 0x1p-70));
    writer_->assign(doubt_, writer_->value<I32x4>(doubt_) | wrong);
  }
  const auto low_rounded = rounded(low), high_rounded = rounded(high);

  // An engine drops what nothing uses: the joined value, or the two in f64.
  if (wide_used_ == wide_pool_.size()) wide_pool_.push_back({f().local<V128>(), f().local<V128>()});
  const WideLocals locals = wide_pool_[wide_used_++];
  writer_->assign(locals.low, promoted(low_rounded));
  writer_->assign(locals.high, promoted(high_rounded));
  wide_.insert_or_assign(instr.dst.id, locals);
  writer_->assign(lane(instr.dst), joined({low_rounded, high_rounded}));
}

}  // namespace trireme::wasm

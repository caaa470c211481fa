// kernel_forward and kernel_backward: every size and offset is checked in 64 bits before anything is touched.
#include "kernel_abi/entry.hpp"

#include "ir/contract.hpp"
#include "targets/wasm/values.hpp"

namespace trireme::abi {
namespace {

using wasm::I32;
using wasm::I64;
using wasm::Label;
using wasm::Local;
using wasm::PlainOp;
using wasm::Value;

using Int = Value<I64>;
using Truth = Value<I32>;

struct MemoryRange {  // bytes 0 where absent
  Int at, bytes;
  AbiArray array;
};

class EntryWriter {
 public:
  EntryWriter(const EntryParts& parts, wasm::Function& function, wasm::Constants& constants)
      : parts_(parts),
        entry_(parts.backward ? parts.abi.backward : parts.abi.forward),
        function_(function),
        desc_(function.parameter<I32>("desc")),
        w_(function, constants),
        memory_{memory_bytes()} {}

  void run() {
    const Truth desc = w_.value<I32>(desc_);
    fail_if(more_unsigned(extended(desc) + 40, memory_), invalid_params);
    const Pair a = pair(desc, 0), b = pair(desc, 8), output = pair(desc, 16), scratch = pair(desc, 24);
    const Pair params = pair(desc, 32);
    fail_if(equal(a.bytes, 0), invalid_input);
    if (parts_.abi.sizes_agree) {
      fail_if(equal(b.bytes, 0), invalid_input);
      fail_if(differ(b.bytes, a.bytes), invalid_input);
    }
    fail_if(equal(output.bytes, 0), invalid_output);
    if (parts_.abi.sizes_agree) fail_if(differ(output.bytes, a.bytes), invalid_output);
    fail_if(less_unsigned(params.bytes, v1_params_bytes), invalid_params);
    fail_if(outside(params), invalid_params);
    read_params(params);
    fail_if(equal(columns_, 0), invalid_params);
    if (parts_.scratch.bytes_per_stripe) fail_if(more_unsigned(columns_, max_columns), invalid_params);
    without_rows();

    // A product of two 32-bit numbers fits 64 bits; multiplied by 4 it might not, so sizes are divided instead.
    elements_ = kept(rows_ * columns_);
    take(a, entry_.a, invalid_input);
    take(b, entry_.b, invalid_input);
    take(output, entry_.output, invalid_output);
    const MemoryRange to = places_.back();
    fail_if(clash(to, places_[0]), invalid_output);
    fail_if(clash(to, places_[1]), invalid_output);
    fail_if(outside(scratch), invalid_params);
    for (std::size_t k = 0; k < optional_.size(); ++k) take_optional(k);
    take_scratch(scratch);
    choose_window();
    leave_globals();
    w_.raw().get(global("window")), w_.raw().get(global("window_bytes")), w_.raw().call(parts_.borrow);
    w_.raw().i32_const(0);
  }

 private:
  struct Pair {
    Int at, bytes;
  };

  Int memory_bytes() {
    w_.raw().op("memory.size"), w_.raw().op("i64.extend_i32_u");
    return kept(w_.pop<I64>() << 16);
  }
  Int extended(Truth value) { return w_.apply<I64>("i64.extend_i32_u", value); }
  Truth wrapped(Int value) { return w_.apply<I32>("i32.wrap_i64", value); }
  Int quotient(Int a, Int b) { return w_.apply<I64>("i64.div_u", a, b); }
  Int number(std::uint64_t value) { return kept(w_.constant<I64>(value)); }
  Int smaller(Int a, Int b) {
    const Truth first = less_unsigned(a, b);
    return kept(choose<I64>(first, a, b));
  }
  Int larger(Int a, Int b) {
    const Truth second = less_unsigned(a, b);
    return kept(choose<I64>(second, b, a));
  }
  // In its local from here on, whichever way control goes.
  Int kept(Int value) { return w_.raw(), value; }
  Truth kept(Truth value) { return w_.raw(), value; }
  // A local of its own: the temporary may be set again in a loop or on one side of a condition only.
  Int variable() { return w_.value<I64>(function_.local<I64>()); }

  template <typename Body>
  void when(Truth condition, Body&& body) {
    w_.push(condition);
    const Label taken = w_.raw().if_();
    body();
    w_.raw().end(taken);
  }
  void leave(int code) { w_.raw().i32_const(code), w_.raw().ret(); }
  void fail_if(Truth condition, int code) {
    when(condition, [&] { leave(code); });
  }

  Int word(Truth base, std::uint32_t offset) {
    w_.push(base);
    w_.raw().memory("i64.load32_u", {.offset = offset, .align_log2 = 0});
    return kept(w_.pop<I64>());
  }
  Pair pair(Truth base, std::uint32_t offset) {
    const Int at = word(base, offset);
    return {at, word(base, offset + 4)};
  }
  template <typename Region>
  Truth outside(const Region& region) {
    const Truth present = kept(differ(region.bytes, 0));
    return kept(more_unsigned(region.at + region.bytes, memory_) & present);
  }
  Truth overlap(const MemoryRange& a, const MemoryRange& b) {
    w_.push(a.at), w_.push(a.bytes), w_.push(b.at), w_.push(b.bytes);
    w_.raw().call(parts_.overlap);
    return kept(w_.pop<I32>());
  }
  // A result may stand exactly on an operand, element on element; any other overlap is refused.
  Truth clash(const MemoryRange& result, const MemoryRange& other) {
    const Truth overlapping = overlap(result, other);
    const bool by_rows = result.array.extent == AbiArray::Extent::Rows || other.array.extent == AbiArray::Extent::Rows;
    if (by_rows || other.array.is_result) return overlapping;
    const Truth elsewhere = kept(differ(result.at, other.at));
    const Truth longer = kept(differ(result.bytes, other.bytes));
    const Truth differs = kept(elsewhere | longer);
    return kept(overlapping & differs);
  }

  void read_params(const Pair& params) {
    const Truth at = wrapped(params.at);
    rows_ = word(at, parts_.abi.rows_at);
    columns_ = word(at, parts_.abi.columns_at);
    if (!parts_.abi.value.empty()) {
      w_.push(at), w_.raw().memory("i32.load", {.offset = parts_.abi.value_at, .align_log2 = 0});
      w_.raw().set(global("value"));
    }
    if (entry_.optional.empty()) return;
    for (const AbiArray& array : entry_.optional) optional_.push_back({variable(), variable(), array});
    when(less_unsigned(number(parts_.abi.full_params_bytes() - 1), params.bytes), [&] {
      fail_if(differ(word(at, reserved_at), 0), invalid_params);
      for (std::size_t k = 0; k < optional_.size(); ++k) {
        const Pair found = pair(at, reserved_at + 4 + 8 * static_cast<std::uint32_t>(k));
        w_.assign(optional_[k].at.local, found.at), w_.assign(optional_[k].bytes.local, found.bytes);
      }
    });
  }

  // Sums over no rows are +0.0; nothing else is written.
  void without_rows() {
    when(equal(rows_, 0), [&] {
      for (const MemoryRange& place : optional_) {
        if (!place.array.is_result || place.array.extent != AbiArray::Extent::Columns) continue;
        when(differ(place.bytes, 0), [&] {
          fail_if(outside(place), invalid_params);
          fail_if(more_unsigned(columns_, place.bytes >> 2), invalid_params);
          clear(place.at);
        });
      }
      leave(0);
    });
  }

  // A value a column, and there is one. Engines of the first version have no memory.fill.
  void clear(Int at) {
    const Truth place = w_.value<I32>(function_.local<I32>()), end = w_.value<I32>(function_.local<I32>());
    w_.assign(place.local, wrapped(at)), w_.assign(end.local, wrapped(at + (columns_ << 2)));
    const Label again = w_.raw().loop();
    w_.push(place), w_.raw().i32_const(0), w_.raw().memory("i32.store", {.align_log2 = 0});
    w_.assign(place.local, place + 4);
    w_.push(differ(place, end)), w_.raw().br_if(again);
    w_.raw().end(again);
  }

  Int count_of(AbiArray::Extent extent) const {
    switch (extent) {
      case AbiArray::Extent::Elements: return *elements_;
      case AbiArray::Extent::Rows: return rows_;
      case AbiArray::Extent::Columns: return columns_;
    }
    return rows_;
  }
  void take(const Pair& given, const AbiArray& array, int code) {
    const Int count = count_of(array.extent);
    fail_if(more_unsigned(count, given.bytes >> 2), code);
    fail_if(outside(given), code);
    places_.push_back({given.at, kept(count << 2), array});
  }
  void take_optional(std::size_t k) {
    MemoryRange& place = optional_[k];
    when(differ(place.bytes, 0), [&] {
      fail_if(outside(place), invalid_params);
      const Int count = count_of(place.array.extent);
      fail_if(more_unsigned(count, place.bytes >> 2), invalid_params);
      w_.assign(place.bytes.local, count << 2);
    });
    for (const MemoryRange& other : places_) {
      if (place.array.is_result) fail_if(clash(place, other), invalid_params);
      else if (other.array.is_result)
        fail_if(clash(other, place), other.array.name == entry_.output.name ? invalid_output : invalid_params);
    }
    places_.push_back(place);
  }

  void take_scratch(const Pair& scratch) {
    scratch_.emplace(MemoryRange{scratch.at, variable(), {"scratch", AbiArray::Extent::Rows, true}});
    if (!entry_.in_scratch.empty()) {
      const Truth fits = kept(more_unsigned((scratch.bytes >> 2) + 1, rows_));
      when(fits, [&] { w_.assign(scratch_->bytes.local, rows_ << 2); });
    }
    for (const MemoryRange& place : optional_) {
      if (!place.array.is_result || place.array.extent != AbiArray::Extent::Columns) continue;
      when(differ(place.bytes, 0), [&] { cut_rows(scratch); });
    }
    for (const MemoryRange& place : places_) fail_if(overlap(*scratch_, place), invalid_params);
  }
  // contract::row_block, and the workspace of one column sum.
  void cut_rows(const Pair& scratch) {
    const auto rounded_up = [&](Int a, Int b) { return kept(quotient(kept((a + b) - 1), b)); };
    const Int few = larger(number(8), smaller(number(120), kept(quotient(number(15 << 17), columns_))));
    const Int near = smaller(number(8192), kept(quotient(number(1 << 20), columns_)));
    Int many = number(1);  // the largest power of two that is not above
    for (std::uint64_t power = 2; power <= 8192; power *= 2)
      many = kept(choose<I64>(kept(less_unsigned(near, power)), many, number(power)));
    const Truth is_short = kept(less_unsigned(columns_, 8193));
    const Int most = kept(choose<I64>(is_short, many, few));
    const Int least = smaller(number(16), rounded_up(rows_, number(128)));
    const Int block = larger(rounded_up(rows_, most), least);
    const Int blocks = rounded_up(rows_, block);
    const Int stride = kept(((columns_ + 63) >> 6) << 6);
    w_.assign(scratch_->bytes.local, kept((blocks * stride) << 2));
    fail_if(more_unsigned(scratch_->bytes, scratch.bytes), invalid_params);
    set(global("row_block"), block), set(global("blocks"), blocks), set(global("partial_stride"), stride);
  }

  // At the end of memory, or in the first gap: at its start, or behind one of the arrays.
  // Only a host that filled its memory to the last byte sees it grow.
  void choose_window() {
    places_.push_back(*scratch_);
    const std::uint64_t step = borrowed_step(parts_.compact);
    const Int stripes = (columns_ + (contract::stripe - 1)) >> 8;
    const Int needed = (stripes * static_cast<std::uint64_t>(parts_.scratch.bytes_per_stripe)) +
                       static_cast<std::uint64_t>(scratch_at + parts_.scratch.bytes + step - 1);
    const Int bytes = kept(needed & ~(step - 1));
    for (std::size_t k = 0; k < places_.size(); ++k) {
      set(global(place_name(k)), places_[k].at);
      set(global(place_bytes_name(k)), places_[k].bytes);
    }
    for (std::size_t k = places_.size(); k < parts_.places; ++k)  // of an earlier call
      w_.raw().i32_const(0), w_.raw().set(global(place_bytes_name(k)));
    const Int at = variable(), clash = variable();
    const Label found = w_.raw().block(), nowhere = w_.raw().block();
    const auto leave_where_free = [&] {
      w_.push(at), w_.push(bytes), w_.raw().call(parts_.clash_end), w_.assign(clash.local, w_.pop<I64>());
      w_.push(equal(clash, 0)), w_.raw().br_if(found);
    };
    w_.push(more_unsigned(bytes, memory_)), w_.raw().br_if(nowhere);
    w_.assign(at.local, (memory_ - bytes) & ~std::uint64_t{15});
    leave_where_free();
    w_.assign(at.local, w_.constant<I64>(0));
    const Label again = w_.raw().loop();
    w_.push(more_unsigned(at + bytes, memory_)), w_.raw().br_if(nowhere);
    leave_where_free();
    w_.assign(at.local, (clash + 15) & ~std::uint64_t{15});
    w_.raw().br(again), w_.raw().end(again);
    w_.raw().end(nowhere);
    w_.push(wrapped((bytes + 65535) >> 16)), w_.raw().op("memory.grow");
    const Truth pages = kept(w_.pop<I32>());
    fail_if(equal(pages, 0xffffffff), out_of_memory);
    w_.assign(at.local, extended(pages) << 16);
    w_.raw().end(found);
    set(global("window"), at), set(global("window_bytes"), bytes);
  }

  void leave_globals() {
    set(global("columns"), columns_), set(global("rows"), rows_);
    set(global("scratch"), scratch_->at);
    if (!entry_.in_scratch.empty()) {
      const Truth wanted = kept(differ(scratch_->bytes, 0));
      w_.push(wanted), w_.raw().set(global("scratch_stride"));
      when(equal(wanted, 0), [&] {
        w_.raw().get(global("window")), w_.raw().i32_const(unwanted_rms_at), w_.raw().op("i32.add");
        w_.raw().set(global("scratch"));
      });
    }
    int variant = parts_.first_variant;
    for (std::size_t k = 0; parts_.compact && k < optional_.size(); ++k)
      if (stands_in(entry_, optional_[k].array)) variant += 1 << k;
    w_.raw().i32_const(variant), w_.raw().set(global("variant"));
    for (std::size_t k = 0; k < optional_.size(); ++k) {
      const MemoryRange& place = optional_[k];
      Truth present = kept(differ(place.bytes, 0));
      if (parts_.compact && stands_in(entry_, place.array)) {
        w_.push(present), w_.raw().set(global(there_name(place.array.name)));
        when(equal(place.bytes, 0),
             [&] { set(global(global_name(parts_.backward, place.array.name)), places_[0].at); });
        continue;
      }
      for (const MemoryRange& other : optional_) {
        if (other.array.name == place.array.needs) {
          const Truth missing = kept(equal(other.bytes, 0));
          fail_if(present & missing, invalid_params);
        }
        if (other.array.needs == place.array.name) {
          const Truth used = kept(differ(other.bytes, 0));
          present = kept(present & used);
        }
      }
      w_.raw().get(global("variant")), w_.push(present), w_.raw().i32_const(static_cast<int>(k));
      w_.raw().op("i32.shl"), w_.raw().op("i32.add"), w_.raw().set(global("variant"));
    }
  }

  const wasm::Global& global(std::string_view name) const { return parts_.globals.find(name)->second; }
  void set(const wasm::Global& global, Int value) { w_.push(wrapped(value)), w_.raw().set(global); }

  const EntryParts& parts_;
  const AbiEntry& entry_;
  wasm::Function& function_;
  const Local<I32> desc_;
  wasm::Writer w_;
  const Int memory_;
  Int rows_{}, columns_{};
  std::optional<Int> elements_;
  std::vector<MemoryRange> places_, optional_;  // all that a call touches; the optional ones among them
  std::optional<MemoryRange> scratch_;
};

}  // namespace

Result<wasm::Body> write_entry(const EntryParts& parts) {
  return wasm::write_twice(
      parts.backward ? "kernel_backward" : "kernel_forward", wasm::Type::I32,
      [&](wasm::Function& function, wasm::Constants& constants) { EntryWriter(parts, function, constants).run(); });
}

}  // namespace trireme::abi

// Loads and stores: elements travel in accesses of up to 16 bytes and are unpacked or packed in registers.
#include <algorithm>

#include "targets/ptx/machine.hpp"

namespace trireme::ptx {

template <typename R>
Global Machine<R>::global(const Instr& instr) {
  U64 base = pointer(instr.a);
  if (instr.b) base = k_.mad(index(instr.b), static_cast<std::int64_t>(bytes(instr.type)), base);
  return {base, instr.imm};
}

template <typename R>
Shared Machine<R>::scratch(Reg offset, Reg scaled, std::int64_t scale, std::int64_t imm) {
  U32 base = scratch_.base;
  if (offset) base = k_.add(k_.cvt_u<U32>(index(offset)), base);
  if (scaled) base = k_.mad(k_.cvt_u<U32>(index(scaled)), scale, base);
  return {base, scratch_.offset + imm};
}

namespace {

template <typename Where>
Where further(Where where, std::int64_t bytes) {
  where.offset += bytes;
  return where;
}

}  // namespace

template <typename R>
template <typename Where>
void Machine<R>::load_at(const Instr& instr, const Where& where, std::span<const R> to) {
  std::int64_t size = static_cast<std::int64_t>(bytes(instr.type)), count = static_cast<std::int64_t>(to.size());
  Access access;
  if (instr.hint == Hint::Streaming) access.cache = Cache::Cs;

  // `pieces` registers of `each` bytes, at most 16 bytes an access; absent elements are 0.
  auto fetch = [&]<typename Raw>(std::vector<Raw>& pieces, std::int64_t each) {
    if (instr.c)
      for (Raw& piece : pieces) k_.assign(piece, typename Raw::Literal{0});
    std::size_t together = std::min<std::size_t>(pieces.size(), static_cast<std::size_t>(16 / each));
    for (std::size_t n = 0; n < pieces.size(); n += together)
      guarded(instr.c, [&] {
        k_.load(std::span<const Raw>(&pieces[n], together), further(where, static_cast<std::int64_t>(n) * each),
                access);
      });
  };
  auto fresh = [&]<typename Raw>(std::vector<Raw>& pieces, std::int64_t n) {
    for (std::int64_t m = 0; m < n; ++m) pieces.push_back(k_.template reg<Raw>());
  };

  if (instr.type == Type::I64) {
    std::vector<U64> raw;
    fresh(raw, count);
    fetch(raw, 8);
    for (std::size_t n = 0; n < raw.size(); ++n) k_.template cvt_s<R>(raw[n], into(to[n]));
    return;
  }
  if (size == 8) {
    std::vector<F64> raw;
    if constexpr (std::same_as<R, F64>) raw.assign(to.begin(), to.end());
    else fresh(raw, count);
    fetch(raw, 8);
    if constexpr (std::same_as<R, F32>) refused_ = "f64 storage with f32 arithmetic";
    return;
  }
  if (instr.type == Type::F32) {
    std::vector<F32> raw;
    if constexpr (std::same_as<R, F32>) raw.assign(to.begin(), to.end());
    else fresh(raw, count);
    fetch(raw, 4);
    if constexpr (std::same_as<R, F64>)
      for (std::size_t n = 0; n < raw.size(); ++n) k_.widen(raw[n], into(to[n]));
    return;
  }
  if (instr.type == Type::I32) {
    std::vector<U32> raw;
    fresh(raw, count);
    fetch(raw, 4);
    for (std::size_t n = 0; n < raw.size(); ++n) k_.template cvt_s<R>(raw[n], into(to[n]));
    return;
  }
  // One- and two-byte elements, a word at a time.
  std::int64_t total = size * count;
  std::vector<U32> words;
  fresh(words, std::max<std::int64_t>(1, total / 4));
  if (total >= 4) {
    fetch(words, 4);
  } else {
    access.as = total == 2 ? Narrow::U16 : Narrow::U8;
    if (instr.c) k_.assign(words[0], 0);
    guarded(instr.c, [&] { k_.load(std::span<const U32>(words.data(), 1), where, access); });
  }
  for (std::int64_t n = 0; n < count; ++n)
    widen_bits(instr.type, words[n * size / 4], static_cast<int>(n % (4 / size)), to[n]);
  if (instr.c && instr.type == Type::F8E8M0)  // none of whose bits are 0
    for (R each : to) k_.selp(each, k_.template constant<R>(typename R::Literal{0}), mask(instr.c), into(each));
}

template <typename R>
template <typename Where>
void Machine<R>::store_at(const Instr& instr, const Where& where, std::span<const R> from) {
  std::int64_t size = static_cast<std::int64_t>(bytes(instr.type)), count = static_cast<std::int64_t>(from.size());
  Access access;
  if (instr.hint == Hint::Streaming) access.cache = Cache::Cs;
  auto put = [&]<typename Raw>(const std::vector<Raw>& pieces, std::int64_t each) {
    std::size_t together = std::min<std::size_t>(pieces.size(), static_cast<std::size_t>(16 / each));
    for (std::size_t n = 0; n < pieces.size(); n += together)
      guarded(instr.c, [&] {
        k_.store(further(where, static_cast<std::int64_t>(n) * each), std::span<const Raw>(&pieces[n], together),
                 access);
      });
  };
  if (instr.type == Type::I64) {
    std::vector<U64> raw;
    for (R value : from) raw.push_back(to_i64(value));
    put(raw, 8);
    return;
  }
  if (size == 8) {
    if constexpr (std::same_as<R, F64>) put(std::vector<F64>(from.begin(), from.end()), 8);
    else refused_ = "f64 storage with f32 arithmetic";
    return;
  }
  if (instr.type == Type::F32) {
    std::vector<F32> raw;
    for (R value : from) raw.push_back(to_f32_even(value));
    put(raw, 4);
    return;
  }
  if (instr.type == Type::I32) {
    std::vector<U32> raw;
    for (R value : from) raw.push_back(to_integer(instr.type, value));
    put(raw, 4);
    return;
  }
  std::int64_t total = size * count;
  std::vector<U32> words;
  std::size_t each = static_cast<std::size_t>(4 / size);
  for (std::size_t n = 0; n < from.size(); n += each)
    words.push_back(pack_word(instr.type, from.subspan(n, std::min(each, from.size() - n))));
  if (total >= 4) {
    put(words, 4);
  } else {
    access.as = total == 2 ? Narrow::U16 : Narrow::U8;
    guarded(instr.c, [&] { k_.store(where, std::span<const U32>(words.data(), 1), access); });
  }
}

template <typename R>
void Machine<R>::load(const Instr& instr) {
  std::vector<R> to;
  if (instr.code == Do::LoadOne) to.push_back(lane(instr.dst));
  for (Reg value : instr.values) to.push_back(lane(value));
  if (instr.space == Space::Global) {
    load_at(instr, global(instr), std::span<const R>(to));
    return;
  }
  load_at(instr, scratch(instr.a, instr.b, static_cast<std::int64_t>(bytes(instr.type)), instr.imm),
          std::span<const R>(to));
}

template <typename R>
void Machine<R>::store(const Instr& instr) {
  std::vector<R> from;
  for (Reg value : instr.values) from.push_back(lane(value));
  if (instr.space == Space::Global) store_at(instr, global(instr), std::span<const R>(from));
  else
    store_at(instr, scratch(instr.a, instr.b, static_cast<std::int64_t>(bytes(instr.type)), instr.imm),
             std::span<const R>(from));
}

#define TRIREME_INSTANTIATE(R)                      \
  template void Machine<R>::load(const Instr&);     \
  template void Machine<R>::store(const Instr&);    \
  template Global Machine<R>::global(const Instr&); \
  template Shared Machine<R>::scratch(Reg, Reg, std::int64_t, std::int64_t);
TRIREME_INSTANTIATE(F32)
TRIREME_INSTANTIATE(F64)
#undef TRIREME_INSTANTIATE

}  // namespace trireme::ptx

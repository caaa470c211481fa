// Loads, stores and copies: addresses, ranges, conversions. Part of machine.cpp.
#pragma once
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "support/float_types.hpp"
#include "targets/lanes/machine.hpp"

namespace trireme::lanes {

// One thread's access, or one simd vector: at most 64 elements of 8 bytes.
using Packed = std::array<std::byte, 512>;

// Thread machines access up to 16 bytes at once, at multiples of what they access; simd machines any element.
inline int alignment(bool simd, Type type, int bytes_in_all) {
  if (simd) return static_cast<int>(bytes(type));
  return std::min(16, bytes_in_all & -bytes_in_all);
}

template <typename T>
T Machine<T>::widen(Type type, const std::byte* element) const {
  if (type == kernel_.compute) {
    T value;
    std::memcpy(&value, element, sizeof value);
    return value;
  }
  if constexpr (sizeof(T) == 4) return load_f32(type, element);
  else return load_f64(type, element);
}

template <typename T>
void Machine<T>::narrow(Type type, std::byte* element, T value) const {
  if (type == kernel_.compute) std::memcpy(element, &value, sizeof value);
  else store_f64(type, element, value);
}

// Scratch: the offset.
template <typename T>
std::uint64_t Machine<T>::address(const Instr& instr, int thread) const {
  std::uint64_t base = static_cast<std::uint64_t>(instr.imm);
  if (instr.space == Space::Cluster)
    base += static_cast<std::uint64_t>(indices(instr.d)[thread] * block_scratch_bytes_);
  else if (instr.space == Space::Scratch && !kernel_.simd) base += static_cast<std::uint64_t>(scratch_of(thread));
  if (instr.b) base += static_cast<std::uint64_t>(indices(instr.b)[thread]) * bytes(instr.type);
  if (!instr.a) return base;
  if (instr.a.bank == Bank::Pointer) return base + pointers(instr.a)[thread];
  return base + static_cast<std::uint64_t>(indices(instr.a)[thread]);
}

template <typename T>
bool Machine<T>::reaches(const Instr& instr, int thread, std::uint64_t address, int bytes, bool to_write) {
  if (int needed = alignment(kernel_.simd, instr.type, bytes); !kernel_.simd && address % needed != 0)
    return refuse(instr, thread, fmt::format("address {:#x} is not a multiple of {}", address, needed));
  if (call_.memory.empty()) return true;
  auto holds = [&](const Range& range) {
    std::uint64_t offset = address - reinterpret_cast<std::uintptr_t>(range.data);
    return offset <= range.bytes && range.bytes - offset >= static_cast<std::size_t>(bytes) &&
           (range.writable || !to_write);
  };
  if (holds(call_.memory[last_range_])) return true;
  for (std::size_t k = 0; k < call_.memory.size(); ++k)
    if (holds(call_.memory[k])) return last_range_ = k, true;
  // The nearest range that begins at or below the address says most about what went wrong.
  const Range* nearest = nullptr;
  for (const Range& range : call_.memory) {
    auto begin = reinterpret_cast<std::uintptr_t>(range.data);
    if (begin <= address && (!nearest || begin > reinterpret_cast<std::uintptr_t>(nearest->data))) nearest = &range;
  }
  std::string where = fmt::format("{} {} bytes at {:#x}, which is in no {}range", to_write ? "writes" : "reads", bytes,
                                  address, to_write ? "writable " : "");
  if (nearest)
    where +=
        fmt::format(" (byte {} of range {}, which has {})", address - reinterpret_cast<std::uintptr_t>(nearest->data),
                    nearest - call_.memory.data(), nearest->bytes);
  return refuse(instr, thread, where);
}

template <typename T>
const std::byte* Machine<T>::read(const Instr& instr, int thread, std::uint64_t address, int bytes) {
  if (instr.space == Space::Global)
    return reaches(instr, thread, address, bytes, false) ? reinterpret_cast<const std::byte*>(address) : nullptr;
  const std::byte* data =
      scratch_.read(thread, static_cast<std::int64_t>(address), bytes, alignment(kernel_.simd, instr.type, bytes));
  if (!data) refuse(instr, thread, scratch_.fault());
  return data;
}

template <typename T>
bool Machine<T>::write(const Instr& instr, int thread, std::uint64_t address, int bytes, const std::byte* data) {
  if (instr.space == Space::Global) {
    if (!reaches(instr, thread, address, bytes, true)) return false;
    std::memcpy(reinterpret_cast<void*>(address), data, static_cast<std::size_t>(bytes));
    return true;
  }
  return scratch_.write(thread, static_cast<std::int64_t>(address), bytes, alignment(kernel_.simd, instr.type, bytes),
                        data) ||
         refuse(instr, thread, scratch_.fault());
}

template <typename T>
bool Machine<T>::load(const Instr& instr, const Active& active) {
  const int size = static_cast<int>(bytes(instr.type));
  const std::span<const Reg> values = instr.code == Do::LoadOne ? std::span(&instr.dst, 1) : std::span(instr.values);
  const std::uint8_t* on = instr.c ? mask(instr.c) : nullptr;
  return while_each(active, [&](int t) {
    if (on && !on[t]) {
      for (Reg value : values) lanes(value)[t] = 0;
      return true;
    }
    const std::byte* data = read(instr, t, address(instr, t), size * static_cast<int>(values.size()));
    if (!data) return false;
    for (Reg value : values) lanes(value)[t] = widen(instr.type, data), data += size;
    return true;
  });
}

template <typename T>
bool Machine<T>::load_index(const Instr& instr, const Active& active) {
  std::int64_t* dst = indices(instr.dst);
  const std::uint8_t* on = instr.c ? mask(instr.c) : nullptr;
  return while_each(active, [&](int t) {
    std::int64_t value = 0;
    if (!on || on[t]) {
      const std::byte* data = read(instr, t, address(instr, t), static_cast<int>(bytes(instr.type)));
      if (!data) return false;
      value = load_integer(instr.type, data);
    }
    dst[t] = value;  // last: the address may stand in it
    return true;
  });
}

template <typename T>
bool Machine<T>::store(const Instr& instr, const Active& active) {
  const int size = static_cast<int>(bytes(instr.type));
  const std::uint8_t* on = instr.c ? mask(instr.c) : nullptr;
  Packed packed;
  return while_each(active, [&](int t) {
    if (on && !on[t]) return true;
    std::byte* end = packed.data();
    for (Reg value : instr.values) narrow(instr.type, end, lanes(value)[t]), end += size;
    return write(instr, t, address(instr, t), static_cast<int>(end - packed.data()), packed.data());
  });
}

template <typename T>
bool Machine<T>::load_vector(const Instr& instr) {
  const int size = static_cast<int>(bytes(instr.type));
  const std::uint64_t at = address(instr, 0);
  const std::uint8_t* on = instr.c ? mask(instr.c) : nullptr;
  if (instr.code == Do::LoadOne) {
    T* dst = lanes(instr.dst);
    T value = 0;
    if (!on || std::any_of(on, on + lane_width_, [](std::uint8_t lane) { return lane != 0; })) {
      const std::byte* data = read(instr, 0, at, size);
      if (!data) return false;
      value = widen(instr.type, data);
    }
    for (int t = 0; t < lane_width_; ++t) dst[t] = !on || on[t] ? value : T{0};
    return true;
  }
  T* dst = lanes(instr.values[0]);
  for (int t = 0; t < lane_width_; ++t) {
    dst[t] = 0;
    if (on && !on[t]) continue;
    const std::byte* data = read(instr, 0, at + static_cast<std::uint64_t>(t) * size, size);
    if (!data) return false;
    dst[t] = widen(instr.type, data);
  }
  return true;
}

template <typename T>
bool Machine<T>::store_vector(const Instr& instr) {
  const int size = static_cast<int>(bytes(instr.type));
  const std::uint64_t at = address(instr, 0);
  const std::uint8_t* on = instr.c ? mask(instr.c) : nullptr;
  std::byte element[8];
  const int vectors = static_cast<int>(instr.values.size());
  for (int t = 0; t < (instr.code == Do::StoreOne ? 1 : vectors * lane_width_); ++t) {
    if (on && !on[t]) continue;
    narrow(instr.type, element, lanes(instr.values[t / lane_width_])[t % lane_width_]);
    if (!write(instr, 0, at + static_cast<std::uint64_t>(t) * size, size, element)) return false;
  }
  return true;
}

template <typename T>
bool Machine<T>::send(const Instr& instr, const Active& active) {
  const std::uint8_t* on = instr.c ? mask(instr.c) : nullptr;
  std::byte value[8];
  return while_each(active, [&](int t) {
    if (on && !on[t]) return true;
    std::int64_t box = indices(instr.d)[t] * block_scratch_bytes_ + instr.imm2 + (instr.a ? indices(instr.a)[t] : 0);
    int size = static_cast<int>(bytes(instr.type));
    narrow(instr.type, value, lanes(instr.values[0])[t]);
    std::uint64_t to = address(instr, t);
    return write(instr, t, to, size, value) &&
           (scratch_.send(box, static_cast<std::int64_t>(to), size) || refuse(instr, t, scratch_.fault()));
  });
}

template <typename T>
bool Machine<T>::receive(const Instr& instr) {
  bool received = true;
  each_block([&](std::int64_t at) {
    int t = static_cast<int>(at / block_scratch_bytes_) * kernel_.launch.threads();
    std::int64_t box = at + instr.imm2 + (instr.a ? indices(instr.a)[t] : 0);
    received = received && (scratch_.receive(box, instr.count * static_cast<std::int64_t>(bytes(instr.type)),
                                             indices(instr.b)[t]) ||
                            refuse(instr, t, scratch_.fault()));
  });
  scratch_.received();
  return received;
}

template <typename T>
bool Machine<T>::copy(const Instr& instr, const Active& active) {
  const int size = static_cast<int>(bytes(instr.type)) * instr.count;
  const std::uint8_t* on = instr.c ? mask(instr.c) : nullptr;
  return while_each(active, [&](int t) {
    if (on && !on[t]) return true;
    const std::uint64_t source = address(instr, t);
    const std::int64_t offset = scratch_of(t) + instr.imm2 + (instr.d ? indices(instr.d)[t] : 0);
    if (!reaches(instr, t, source, size, false)) return false;
    return scratch_.copy(t, offset, size, reinterpret_cast<const std::byte*>(source)) ||
           refuse(instr, t, scratch_.fault());
  });
}

}  // namespace trireme::lanes

// Reads the bytes of a WebAssembly module from front to back: numbers, names, vectors, and lengths that must be right.
#pragma once
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "trireme/result.hpp"

namespace trireme::wasm {

// The first thing that is wrong is kept; from then on there is nothing more to read, and what is read is 0.
class ModuleCursor {
 public:
  explicit ModuleCursor(std::span<const std::uint8_t> bytes) : bytes_(bytes), end_(bytes.size()) {}

  bool more() const { return at_ < end_; }
  bool is_fine() const { return !error_; }
  const std::optional<Error>& error() const { return error_; }

  void refuse(std::string message) {
    if (!error_) error_ = Error{Code::InvalidProgram, std::move(message)};
    at_ = end_ = 0;
  }
  void wrong(std::string_view what) { refuse(fmt::format("not a valid WebAssembly module: byte {}: {}", at_, what)); }

  void skip(std::uint64_t count) {
    if (count > end_ - at_) return wrong("it ends in the middle of something");
    at_ += count;
  }
  std::uint8_t byte() {
    skip(1);
    return is_fine() ? bytes_[at_ - 1] : 0;
  }
  std::uint32_t number() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 35; shift += 7) {
      const std::uint8_t next = byte();
      value |= std::uint64_t{next & 0x7fu} << shift;
      if (next < 0x80 && value <= UINT32_MAX) return static_cast<std::uint32_t>(value);
    }
    wrong("a number of more than 32 bits");
    return 0;
  }
  void skip_number(int most_bytes) {
    for (int k = 0; k < most_bytes; ++k)
      if (byte() < 0x80) return;
    wrong("a number that does not end");
  }
  std::string name() {
    const std::uint32_t length = number();
    const std::size_t start = at_;
    skip(length);
    if (!is_fine()) return {};
    std::string text(reinterpret_cast<const char*>(bytes_.data()) + start, std::min<std::size_t>(length, 64));
    std::ranges::replace_if(
        text, [](char each) { return each < ' ' || each > '~'; }, '?');
    return text;
  }

  // What `read` reads is the next `count` bytes, all of them.
  template <typename Read>
  void within(std::uint32_t count, Read&& read) {
    if (count > end_ - at_) return wrong("a length beyond the end");
    const std::size_t outer_end = end_;
    end_ = at_ + count;
    read();
    if (!is_fine()) return;
    if (at_ != end_) return wrong("a length that does not fit the content");
    end_ = outer_end;
  }
  // As often as the number that comes first says, which is returned.
  template <typename Read>
  std::int64_t each(Read&& read) {
    const std::uint32_t count = number();
    for (std::uint32_t k = 0; k < count && is_fine(); ++k) read();
    return count;
  }

 private:
  std::span<const std::uint8_t> bytes_;
  std::size_t at_ = 0, end_;
  std::optional<Error> error_;
};

}  // namespace trireme::wasm

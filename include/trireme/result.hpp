// Result<T>: a value or an Error. The names are std::expected's.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "trireme/export.hpp"

namespace trireme {

enum class Code : std::uint8_t {
  InvalidProgram,   // the text or graph of a program is wrong
  InvalidArgument,  // a shape, type, constant or pointer does not fit the program
  Unsupported,      // right, but not done by this device or version
  BufferTooSmall,   // the message says how many bytes are needed
  NoDevice,
  Driver,  // a device's own library refused
  OutOfMemory,
  Internal,  // a fault of Trireme's own; a test that sees one fails
};

constexpr std::string_view name(Code code) {
  constexpr std::string_view names[] = {"InvalidProgram", "InvalidArgument", "Unsupported", "BufferTooSmall",
                                        "NoDevice",       "Driver",          "OutOfMemory", "Internal"};
  return names[static_cast<std::size_t>(code)];
}

struct Error {
  Code code;
  std::string message;               // what, where, and what would be accepted
  std::int64_t needed = 0, got = 0;  // bytes, of BufferTooSmall
};

// Throws std::runtime_error. A program compiled without exceptions, which cannot catch it, ends with its message.
[[noreturn]] TRIREME_API void fail(const Error& error);

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool has_value() const { return state_.index() == 0; }
  explicit operator bool() const { return has_value(); }
  const Error& error() const { return std::get<1>(state_); }

  T& value() & { return check(), *std::get_if<0>(&state_); }
  const T& value() const& { return check(), *std::get_if<0>(&state_); }
  T&& value() && { return check(), std::move(*std::get_if<0>(&state_)); }
  T& operator*() { return *std::get_if<0>(&state_); }
  const T& operator*() const { return *std::get_if<0>(&state_); }
  T* operator->() { return std::get_if<0>(&state_); }
  const T* operator->() const { return std::get_if<0>(&state_); }

 private:
  void check() const {
    if (!has_value()) fail(error());
  }
  std::variant<T, Error> state_;
};

struct Done {};
using Status = Result<Done>;  // success carries nothing

}  // namespace trireme

// Evaluates a Result; on an error returns it from the enclosing function.
#define TRIREME_TRY(name, expression)               \
  auto name##_result = (expression);                \
  if (!name##_result) return name##_result.error(); \
  auto& name = *name##_result
#define TRIREME_CHECK(expression)                                                        \
  do {                                                                                   \
    if (auto status_result = (expression); !status_result) return status_result.error(); \
  } while (false)

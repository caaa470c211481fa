// A value, or the end of the program with its error.
#pragma once
#include <fmt/format.h>

#include <cstdlib>

#include "trireme/result.hpp"

namespace trireme::bench {

template <typename T>
T must(Result<T> result) {
  if (!result) {
    fmt::print(stderr, "{}: {}\n", name(result.error().code), result.error().message);
    std::exit(1);
  }
  return std::move(*result);
}

}  // namespace trireme::bench

// For tests: a program of a text that must be right.
#pragma once
#include <gtest/gtest.h>

#include "language/parse.hpp"

namespace trireme {

inline Program parsed(std::string_view text) {
  Result<Program> program = parse(text);
  EXPECT_TRUE(program) << program.error().message;
  return std::move(*program);
}

}  // namespace trireme

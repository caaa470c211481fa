// For tests: a program's problem line on every device that runs here, against the reference.
#pragma once
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "devices/arguments.hpp"
#include "plan/check.hpp"
#include "plan/devices_for_test.hpp"
#include "reference/reference.hpp"

namespace trireme {

inline std::string reference_digest(const std::string& text, const std::string& line) {
  Prepared prepared = prepare_problem(parse_problem(line).value(), text).value();
  run_reference(prepared.program, prepared.view()).value();
  return digest_of(prepared);
}

inline void expect_same_bits(const std::string& text, const std::string& line, RunOptions options = {}) {
  SCOPED_TRACE(fmt::format("{} threads, chunks of {}: {}\n{}", options.threads, options.chunk_rows, line, text));
  const std::string wanted = reference_digest(text, line);
  for (const DeviceEntry* device : devices_here(30)) {
    const std::string& name = device->name;
    Prepared got = prepare_problem(parse_problem(line).value(), text).value();
    auto executable = device->compile(got.program, facts_of(got.program, got.view()));
    ASSERT_TRUE(executable) << name << ": " << executable.error().message;
    Status status = executable.value()->run(got.view(), options);
    ASSERT_TRUE(status) << name << ": " << status.error().message;
    EXPECT_EQ(digest_of(got), wanted) << name;
  }
}

}  // namespace trireme

#include "support/npy.hpp"

#include <gtest/gtest.h>

namespace trireme {
namespace {

std::span<const std::byte> bytes(const std::string& text) { return std::as_bytes(std::span(text)); }
std::string said(const std::string& file) {
  const auto parsed = parse_npy(bytes(file));
  return parsed ? "ok" : parsed.error().message;
}

TEST(Npy, WhatIsWrittenIsRead) {
  for (const std::vector<std::int64_t>& shape : {std::vector<std::int64_t>{}, {3}, {2, 5}, {1, 0, 7}}) {
    const NpyHead head{.type = "<f4", .shape = shape};
    const std::string file = npy_head(head) + std::string(4 * head.count(), 'x');
    EXPECT_EQ(npy_head(head).size() % 64, 0u);
    const auto parsed = parse_npy(bytes(file));
    ASSERT_TRUE(parsed) << parsed.error().message;
    EXPECT_EQ(parsed->head.type, "<f4");
    EXPECT_EQ(parsed->head.shape, shape);
    EXPECT_FALSE(parsed->head.fortran_order);
    EXPECT_EQ(parsed->values.size(), 4u * head.count());
  }
}

TEST(Npy, ReadsVersion2AndFortranOrder) {
  const std::string head = "{'descr': '<i2', 'fortran_order': True, 'shape': (2,), }\n";
  const std::string file =
      std::string("\x93NUMPY\2\0", 8) + static_cast<char>(head.size()) + std::string(3, '\0') + head;
  const auto parsed = parse_npy(bytes(file + "abcd"));
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_TRUE(parsed->head.fortran_order);
  EXPECT_EQ(parsed->values.size(), 4u);
}

TEST(Npy, RefusesTheRest) {
  const std::string good = npy_head({.type = "<f4", .shape = {2}}) + "12345678";
  EXPECT_EQ(said(good), "ok");
  EXPECT_EQ(said(""), "not a .npy file: it does not begin with \\x93NUMPY");
  EXPECT_EQ(said("PK\3\4............"), "not a .npy file: it does not begin with \\x93NUMPY");
  EXPECT_EQ(said(good.substr(0, 70)), "not a .npy file: its head is cut short");
  EXPECT_EQ(said(good.substr(0, good.size() - 1)), "not a .npy file: it has 7 bytes of values, its head says 8");
  const auto with = [](const std::string& head) {
    return std::string("\x93NUMPY\1\0", 8) + static_cast<char>(head.size()) + '\0' + head;
  };
  EXPECT_NE(said(with("{'descr': '<f4', 'shape': (1,)}")).find("lacks"), std::string::npos);
  EXPECT_NE(said(with("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (0,)}")).find("several parts"),
            std::string::npos);
  EXPECT_NE(said(with("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}")).find("shape"), std::string::npos);
  EXPECT_NE(said(with("{'descr': '<f4', 'fortran_order': False, 'shape': (9999999999, 9999999999)}")).find("shape"),
            std::string::npos);
  EXPECT_NE(said(with("{'descr': '|O', 'fortran_order': False, 'shape': (1,)}")).find("type '|O'"), std::string::npos);
}

}  // namespace
}  // namespace trireme

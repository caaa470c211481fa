#include "support/npy.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

namespace trireme {
namespace {

std::string file_with(const std::string& text, int version = 1) {
  std::string file = "\x93NUMPY";
  file += {static_cast<char>(version), 0};
  for (int k = 0; k < (version == 1 ? 2 : 4); ++k) file += static_cast<char>(text.size() >> (8 * k));
  return file + text;
}

std::string message_of(const std::string& file) {
  Result<NpyHeader> header = read_npy_header(file);
  return header ? "read" : header.error().message;
}

std::string told(const std::string& dictionary) { return message_of(file_with(dictionary)); }

TEST(Npy, reads_what_numpy_writes) {
  for (int version : {1, 2, 3}) {
    std::string text = "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }            \n";
    NpyHeader header = read_npy_header(file_with(text, version) + "data").value();
    EXPECT_EQ(header.type.name, "float32");
    EXPECT_EQ(header.shape, (std::vector<std::int64_t>{3, 4}));
    EXPECT_EQ(header.data_bytes(), 48);
    EXPECT_EQ(header.data_offset, file_with(text, version).size());
  }
  auto shape = [](const std::string& dims) {
    return read_npy_header(file_with("{\"shape\": " + dims + ", 'fortran_order': False, 'descr': '|i1'}")).value();
  };
  EXPECT_EQ(shape("()").elements, 1);
  EXPECT_EQ(shape("(5,)").elements, 5);
  EXPECT_EQ(shape("(5L, 2L)").elements, 10);
  EXPECT_EQ(shape("(0, 7)").elements, 0);
  EXPECT_EQ(shape("(1,1,1,1,1,1,1,2)").elements, 2);
}

TEST(Npy, headers_read_back) {
  for (const TypeFacts& each : type_facts)
    for (const std::vector<std::int64_t>& shape :
         std::vector<std::vector<std::int64_t>>{{}, {0}, {7}, {3, 4}, {std::int64_t{1} << 40, 2, 3}}) {
      std::string text = npy_header(npy_type_for(each.type), shape);
      EXPECT_EQ(text.size() % 64, 0u);
      NpyHeader header = read_npy_header(text).value();
      EXPECT_EQ(header.shape, shape);
      EXPECT_EQ(header.type.descr, npy_type_for(each.type).descr);
      EXPECT_TRUE(check_holds(header.type, each.type)) << each.name;
    }
}

TEST(Npy, types_of_elements) {
  auto type = [](const std::string& descr) {
    return read_npy_header(file_with("{'descr': '" + descr + "', 'fortran_order': False, 'shape': ()}")).value().type;
  };
  EXPECT_EQ(storage_type_of(type("<f8")).value(), Type::F64);
  EXPECT_EQ(storage_type_of(type("<f2")).value(), Type::F16);
  EXPECT_EQ(storage_type_of(type("|i1")).value(), Type::I8);
  EXPECT_EQ(storage_type_of(type("=i4")).value(), Type::I32);
  EXPECT_EQ(storage_type_of(type("<u2")).error().message,
            "it holds uint16; say what that stands for, as in --type NAME=bf16");
  EXPECT_EQ(storage_type_of(type("|u1")).value(), Type::U8);
  EXPECT_EQ(storage_type_of(type("|b1")).value(), Type::U8);
  EXPECT_EQ(storage_type_of(type("<i8")).value(), Type::I64);
  EXPECT_TRUE(check_holds(type("|b1"), Type::U8));
  EXPECT_TRUE(check_holds(type("|u1"), Type::F8E8M0));
  EXPECT_EQ(check_holds(type("|b1"), Type::F8E4M3).error().message, "it holds bool, and f8e4m3 travels as uint8");
  EXPECT_TRUE(check_holds(type("<V2"), Type::BF16));
  EXPECT_TRUE(check_holds(type("|V1"), Type::F8E5M2));
  EXPECT_EQ(check_holds(type("<f2"), Type::BF16).error().message, "it holds float16, and bf16 travels as uint16");
  EXPECT_EQ(check_holds(type("<V2"), Type::F16).error().message, "it holds a 2-byte type, and f16 travels as float16");
}

TEST(Npy, refuses_with_a_reason) {
  EXPECT_EQ(message_of(""), "it does not begin as an .npy file does; numpy.save writes such");
  EXPECT_EQ(message_of("PK\x03\x04"), "it does not begin as an .npy file does; numpy.save writes such");
  EXPECT_EQ(message_of("\x93NUMPY"), "it ends within its header");
  EXPECT_EQ(message_of(std::string("\x93NUMPY\x01\x00\x76", 9)), "it ends within its header");
  EXPECT_EQ(message_of(std::string("\x93NUMPY\x04\x00\x76\x00", 10)), "its format version is 4, not 1, 2 or 3");
  EXPECT_EQ(message_of(std::string("\x93NUMPY\x02\x00\xff\xff\xff\xff", 12)),
            "its header has 4294967295 bytes; at most 16372 are read");
  EXPECT_EQ(message_of(std::string("\x93NUMPY\x01\x00\x76\x00{", 11)), "it ends within its header");
  EXPECT_EQ(told("{'descr': '<f4', 'fortran_order': True, 'shape': (3, 4)}"),
            "it is in Fortran order; save numpy.ascontiguousarray(array)");
  EXPECT_EQ(told("{'descr': '>f4', 'fortran_order': False, 'shape': (3, 4)}"),
            "it is big-endian ('>f4'); save array.astype(array.dtype.newbyteorder('<'))");
  EXPECT_EQ(told("{'descr': '<c8', 'fortran_order': False, 'shape': (3, 4)}"),
            "its elements are '<c8'; float64, float32, float16, int8, int32, int64, uint8 and bool are read, bf16 as "
            "uint16 and f8 as uint8");
  EXPECT_EQ(told("{'descr': '', 'fortran_order': False, 'shape': (3, 4)}").substr(0, 19), "its elements are ''");
  EXPECT_EQ(told("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (3,)}"),
            "it holds records; only arrays of numbers are read");
  EXPECT_EQ(told("{'descr': '<f8', 'fortran_order': False, 'shape': (4294967296, 4294967296)}"),
            "its shape has more elements than 64 bits can count");
  EXPECT_EQ(told("{'descr': '<f8', 'fortran_order': False, 'shape': (4294967296, 0, 4294967296)}"),
            "its shape has more elements than 64 bits can count");
  EXPECT_EQ(told("{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999999999999,)}"),
            "an extent of its shape does not fit into 64 bits");
  EXPECT_EQ(told("{'descr': '<f8', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1)}"), "it has more than 8 axes");
  EXPECT_EQ(told("{'descr': '<f8', 'fortran_order': False, 'shape': (-1,)}"),
            "its header is not NumPy's: expected an extent at byte 51 of it");
  EXPECT_EQ(told("{'descr': '<f8', 'fortran_order': 0, 'shape': (1,)}"),
            "its header is not NumPy's: expected True or False at byte 34 of it");
  EXPECT_EQ(told("{'descr': '<f8', 'shape': (1,)}"),
            "its header is not NumPy's: expected 'descr', 'fortran_order' and 'shape' at byte 31 of it");
  EXPECT_EQ(told("{'descr': '<f8', 'descr': '<f8'}"),
            "its header is not NumPy's: expected 'descr', 'fortran_order' and 'shape', each once at byte 25 of it");
  EXPECT_EQ(told("{'descr': '<f8', 'fortran_order': False, 'shape': (1,)} x"),
            "its header is not NumPy's: expected nothing behind '}' at byte 56 of it");
  EXPECT_EQ(told("{'descr"), "its header is not NumPy's: expected a string at byte 1 of it");
}

// Whatever the bytes, an answer; and what is read is counted right.
TEST(Npy, random_files) {
  const std::string good = file_with("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }       \n");
  const std::string pieces[] = {"'",
                                "\"",
                                "{",
                                "}",
                                "(",
                                ")",
                                ",",
                                ":",
                                "<f4",
                                "|V2",
                                ">",
                                "True",
                                "99999999",
                                "0",
                                "descr",
                                "shape",
                                "fortran_order",
                                std::string(1, '\0'),
                                "\xff",
                                "[",
                                "L",
                                " "};
  int read = 0;
  for (int seed = 0; seed < (std::getenv("LONG") ? 5000000 : 50000); ++seed) {
    std::mt19937 dice(static_cast<unsigned>(seed));
    std::string file = good;
    for (unsigned k = 1 + dice() % 4; k > 0; --k) {
      std::size_t at = dice() % file.size();
      switch (dice() % 5) {
        case 0: file[at] = static_cast<char>(dice()); break;
        case 1: file.erase(at, 1 + dice() % 4); break;
        case 2: file.resize(at); break;
        default: file.insert(at, pieces[dice() % std::size(pieces)]);
      }
      if (file.empty()) break;
    }
    Result<NpyHeader> header = read_npy_header(file);
    if (!header) {
      ASSERT_EQ(header.error().code, Code::InvalidArgument);
      continue;
    }
    ++read;
    ASSERT_LE(header->data_offset, file.size());
    ASSERT_LE(header->shape.size(), 8u);
    ASSERT_GE(header->data_bytes(), 0);
  }
  EXPECT_GT(read, 100);
}

}  // namespace
}  // namespace trireme

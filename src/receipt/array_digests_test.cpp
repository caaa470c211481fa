#include "receipt/array_digests.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>

#include "receipt/view_rows.hpp"

namespace trireme::receipts {
namespace {

std::string digest_of(Hash hash, const std::string& text) { return digest_of(hash, text.data(), text.size()); }

// FIPS 180-4's examples; the lengths around a block's end from Python's hashlib.
TEST(Digests, KnownValues) {
  EXPECT_EQ(digest_of(Hash::Sha256, "abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(digest_of(Hash::Sha256, ""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(digest_of(Hash::Sha256, "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(digest_of(Hash::Sha256, std::string(1000000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  EXPECT_EQ(digest_of(Hash::Sha256, std::string(55, 'a')),
            "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318");
  EXPECT_EQ(digest_of(Hash::Sha256, std::string(64, 'a')),
            "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb");
  EXPECT_EQ(digest_of(Hash::Xxh3, ""), "99aa06d3014798d86001c324468d497f");
}

TEST(Digests, AtMost1024BlocksOfAPowerOfTwo) {
  for (const auto& [rows, block] :
       {std::pair<int, int>{0, 1}, {1, 1}, {1024, 1}, {1025, 2}, {2048, 2}, {2049, 4}, {1 << 20, 1024}})
    EXPECT_EQ(block_rows(rows), block) << rows;
}

TEST(Digests, AnOddNodeMovesUp) {
  auto joined = [](const std::string& a, const std::string& b) {
    std::string bytes;
    for (const std::string& each : {a, b})
      for (std::size_t k = 0; k < each.size(); k += 2)
        bytes += static_cast<char>(std::stoi(each.substr(k, 2), nullptr, 16));
    return digest_of(Hash::Sha256, bytes);
  };
  std::vector<std::string> leaves;
  for (const char* text : {"a", "b", "c"}) leaves.push_back(digest_of(Hash::Sha256, text));
  EXPECT_EQ(root_of(Hash::Sha256, leaves), joined(joined(leaves[0], leaves[1]), leaves[2]));
  leaves.pop_back(), leaves.pop_back();
  EXPECT_EQ(root_of(Hash::Sha256, leaves), leaves[0]);
}

TEST(Digests, NaNsAreOne) {
  auto with = [](Type type, std::uint64_t bits) {
    std::vector<std::byte> memory(2 * bytes(type));
    std::memcpy(memory.data() + bytes(type), &bits, bytes(type));
    return digest_rows(Hash::Xxh3, type, memory);
  };
  for (const TypeFacts& each : type_facts) {
    if (is_integer(each.type) || is_packed(each.type)) continue;
    const FloatFormat& format = each.format;
    const std::uint64_t sign = format.is_signed ? std::uint64_t{1} << (each.bits - 1) : 0;
    EXPECT_EQ(with(each.type, format.nan() | sign), with(each.type, format.nan())) << each.name;
    if (format.infinities) {
      EXPECT_EQ(with(each.type, format.infinity() + 1), with(each.type, format.nan())) << each.name;
      EXPECT_NE(with(each.type, format.infinity()), with(each.type, format.nan())) << each.name;
    }
    EXPECT_NE(with(each.type, format.largest_finite()), with(each.type, format.nan())) << each.name;
  }
  EXPECT_NE(with(Type::I32, 0x7fc00001), with(Type::I32, 0x7fc00000));
}

Result<ArrayDigests> digests_of(const View& view, int axes) {
  TRIREME_TRY(rows, rows_of(view, axes));
  ArrayDigests made{.type = rows.type, .rows = rows.rows, .columns = rows.columns};
  TRIREME_CHECK(take_digests(Hash::Xxh3, made, rows.read));
  return made;
}

// Strides of every kind against the same entries side by side.
TEST(ViewRows, WhereverTheEntriesLie) {
  std::vector<float> from(1000);
  std::iota(from.begin(), from.end(), 1.0f);
  const Dims shape = {3, 5, 7};
  for (const Dims& strides :
       {Dims{35, 7, 1}, {1, 3, 15}, {40, 8, 1}, {0, 7, 1}, {-35, 7, 1}, {35, -7, 2}, {70, 14, 2}, {0, 0, 0}}) {
    const float* first = from.data() + 200;
    std::vector<float> entries;
    for (int a = 0; a < 3; ++a)
      for (int b = 0; b < 5; ++b)
        for (int c = 0; c < 7; ++c) entries.push_back(first[a * strides[0] + b * strides[1] + c * strides[2]]);
    for (int axes = 0; axes <= 3; ++axes) {
      const auto got = digests_of({.data = first, .type = Type::F32, .shape = shape, .strides = strides}, axes);
      const auto want = digests_of({.data = entries.data(), .type = Type::F32, .shape = shape}, axes);
      EXPECT_EQ(got.value().leaves, want.value().leaves) << axes;
      EXPECT_EQ(got->digest, want->digest);
      EXPECT_EQ(got->rows * got->columns, 105);
    }
  }
}

TEST(ViewRows, PackedAndEmptyAndRefused) {
  const std::uint8_t halves[] = {0x21, 0x43, 0x65, 0x87};
  const auto packed = digests_of({.data = halves, .type = Type::F4E2M1, .shape = {2, 4}}, 1);
  EXPECT_EQ(packed.value().leaves[1], digest_of(Hash::Xxh3, halves + 2, 2));
  EXPECT_EQ(packed->columns, 4);
  EXPECT_FALSE(rows_of({.data = halves, .type = Type::F4E2M1, .shape = {2, 3}}, 1));
  EXPECT_FALSE(rows_of({.data = halves, .type = Type::F4E2M1, .shape = {2, 2}, .strides = {3, 1}}, 1));
  EXPECT_EQ(digests_of({.type = Type::F32, .shape = {0, 4}}, 1).value().leaves.size(), 0u);
  EXPECT_EQ(digests_of({.type = Type::F32, .shape = {4, 0}}, 1).value().leaves.size(), 4u);
  EXPECT_EQ(digests_of({.data = halves, .type = Type::F32}, 1).value().leaves.size(), 1u);
  EXPECT_FALSE(rows_of({.type = Type::F32, .shape = {1}}, 1));
  EXPECT_FALSE(rows_of({.data = halves, .type = Type::F32, .shape = {2}, .bytes = 7}, 1));
  EXPECT_FALSE(rows_of({.data = halves, .type = Type::F32, .shape = {1 << 30, 1 << 30}}, 1));
  EXPECT_FALSE(rows_of({.data = halves, .type = Type::F32, .shape = {2}, .strides = {std::int64_t{1} << 62}}, 1));
}

}  // namespace
}  // namespace trireme::receipts

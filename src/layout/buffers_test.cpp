#include "layout/buffers.hpp"

#include <gtest/gtest.h>

namespace trireme {
namespace {

Program weighted() {
  Program program;
  program.name = "weighted";
  program.compute = Type::F32;
  Spread element{{true}, {true}}, column{{}, {true}};
  program.operands = {{.name = "x", .spread = element, .type = Type::F32},
                      {.name = "w", .spread = column, .type = Type::BF16}};
  program.results = {{.name = "y", .spread = element, .type = Type::F32},
                     {.name = "dw", .spread = column, .type = Type::F32}};
  return program;
}

// What a compiler asks of arrays does not need their memory.
TEST(Buffers, fault_46_layouts_take_no_memory) {
  const Program program = weighted();
  for (std::int64_t columns : {std::int64_t{1}, std::int64_t{300}, std::int64_t{1} << 50}) {
    Buffers buffers = make_buffers(program, {0, columns}, 1, {}, Backing::None).value();
    for (const std::vector<Buffer>* each : {&buffers.operands, &buffers.results})
      for (const Buffer& buffer : *each) {
        EXPECT_TRUE(buffer.memory.empty());
        EXPECT_EQ(buffer.column_extent, columns);
        EXPECT_EQ(buffer.array.column_stride, 1);
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.array.data) % 64, 0u);
      }
    if (columns > 300) continue;
    Buffers backed = make_buffers(program, {0, columns}).value();
    for (std::size_t k = 0; k < 2; ++k) {
      EXPECT_EQ(buffers.operands[k].array.row_stride, backed.operands[k].array.row_stride);
      EXPECT_EQ(buffers.operands[k].array.data == nullptr, backed.operands[k].array.data == nullptr);
    }
  }
}

TEST(Buffers, layouts_know_offsets_and_refuse_what_overlaps) {
  const Program program = weighted();
  Buffers buffers = make_buffers(program, {4, 8}, 1, {{"w", {.offset = 3}}}, Backing::None).value();
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffers.operands[1].array.data) % 64, 6u);
  EXPECT_FALSE(make_buffers(program, {4, 8}, 1, {{"y", {.strides = {1, 1}}}}, Backing::None));
}

}  // namespace
}  // namespace trireme

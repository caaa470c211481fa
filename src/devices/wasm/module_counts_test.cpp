// The reader that judges modules before they are compiled: what it counts, what it knows, and that no bytes harm it.
#include "devices/wasm/module_counts.hpp"

#include <gtest/gtest.h>

#include "targets/wasm/encoder.hpp"

namespace trireme::wasm {
namespace {

using Bytes = std::vector<std::uint8_t>;

// Adds one local up in a loop, with another that no other basic block sees.
Bytes counted_module() {
  Function f("f", Type::I32);
  const auto n = f.parameter<I32>("n");
  const auto sum = f.local<I32>("sum"), own = f.local<I32>("own");
  const Label done = f.block(), again = f.loop();
  f.get(n), f.op("i32.eqz"), f.br_if(done);
  f.get(n), f.i32_const(3), f.op("i32.mul"), f.set(own);
  f.get(sum), f.get(own), f.op("i32.add"), f.set(sum);
  f.get(n), f.i32_const(1), f.op("i32.sub"), f.set(n), f.br(again);
  f.end(again), f.end(done), f.get(sum);
  Module module({});
  module.global({.name = "g", .is_exported = true});
  module.add(f.finish().value(), "f");
  module.data(16, Bytes(3));
  return module.encode();
}

TEST(ModuleCounts, CountsWhatIsThere) {
  const ModuleCounts counts = count_module(counted_module(), {}).value();
  EXPECT_EQ(counts.declarations, 3);  // exports: memory, g, f
  EXPECT_EQ(counts.parameters, 1);
  EXPECT_EQ(counts.functions, 1);
  EXPECT_EQ(counts.locals, 3);
  EXPECT_EQ(counts.nesting, 2);
  EXPECT_EQ(counts.branches, 4);       // block, loop, br_if, br
  EXPECT_EQ(counts.crossings, 4 * 2);  // n and sum
  // Both may be written where the loop begins and where the block ends; two ways lead to each.
  EXPECT_EQ(counts.merges, 2 * 2 + 2 * 2);
  EXPECT_EQ(counts.function_merges, counts.merges);
  EXPECT_GT(counts.code_bytes, 30);
}

// A body with `code` in it, in a function of two i32 locals.
Bytes module_with(const Bytes& code) {
  Bytes body = {1, 2, 0x7f};
  body.insert(body.end(), code.begin(), code.end());
  body.push_back(0x0b);
  Bytes module = {0, 'a', 's', 'm', 1, 0, 0, 0, 1, 4, 1, 0x60, 0, 0, 3, 2, 1, 0, 10};
  module.push_back(static_cast<std::uint8_t>(body.size() + 2));
  module.push_back(1);
  module.push_back(static_cast<std::uint8_t>(body.size()));
  module.insert(module.end(), body.begin(), body.end());
  return module;
}

void number(Bytes& bytes, std::uint32_t value) {
  for (; value >= 0x80; value >>= 7) bytes.push_back(static_cast<std::uint8_t>(value | 0x80));
  bytes.push_back(static_cast<std::uint8_t>(value));
}

Bytes bytes_of(const Instruction& instruction) {
  Bytes bytes;
  if (instruction.prefix()) bytes.push_back(instruction.prefix());
  number(bytes, instruction.number());
  if (!instruction.prefix()) bytes = {static_cast<std::uint8_t>(instruction.code)};
  const auto add = [&](Bytes more) { bytes.insert(bytes.end(), more.begin(), more.end()); };
  switch (instruction.immediate) {
    case Immediate::None: add(Bytes(instruction.argument)); break;
    case Immediate::Memory: add({0, 0x85, 1}); break;
    case Immediate::MemoryLane: add({0, 5, 0}); break;
    case Immediate::Lane:
    case Immediate::Local:
    case Immediate::Global:
    case Immediate::Branch:
    case Immediate::Call: add({0}); break;
    case Immediate::Shuffle: add(Bytes(16, 0x0b)); break;
    case Immediate::Const:
      add(instruction.name == "v128.const"  ? Bytes(16, 0x0b)
          : instruction.name == "f32.const" ? Bytes(4, 0x0b)
          : instruction.name == "f64.const" ? Bytes(8, 0x0b)
                                            : Bytes{0x8b, 0x0b});
      break;
    case Immediate::Block: add({0x40, 0x0b}); break;
    case Immediate::Else:
    case Immediate::End:
    case Immediate::Return: break;
  }
  return bytes;
}

// Were one of them longer or shorter than the reader thinks, the body would not end where it says.
TEST(ModuleCounts, KnowsEveryInstructionThatWeWrite) {
  for (const Instruction& instruction : instructions) {
    if (instruction.immediate == Immediate::End) continue;
    const auto counts = count_module(module_with(bytes_of(instruction)), {});
    EXPECT_TRUE(counts) << instruction.name << ": " << counts.error().message;
  }
}

// Those that other compilers write.
TEST(ModuleCounts, KnowsOthers) {
  const Bytes known[] = {
      {0x41, 0, 0x0e, 2, 0, 0, 0},                    // br_table
      {0x41, 0, 0x11, 0, 0x80, 0x80, 0x80, 0x80, 0},  // call_indirect, as linkers leave room for it
      {0x1c, 1, 0x7f},                                // select of a type
      {0x25, 0},
      {0x26, 0},
      {0xd0, 0x70},
      {0xd1},
      {0xd2, 0},
      {0xfc, 8, 0, 0},
      {0xfc, 9, 0},
      {0xfc, 12, 0, 0},
      {0xfc, 13, 0},
      {0xfc, 14, 0, 0},
      {0xfc, 15, 0},
      {0xfc, 16, 0},
      {0xfc, 17, 0},
      {0xfd, 84, 0, 0, 3},
      {0xfd, 92, 2, 0},
      {0xfd, 0x93, 2},
      {0x42, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 0},  // i64.const of ten bytes
  };
  for (const Bytes& code : known) {
    const auto counts = count_module(module_with(code), {});
    EXPECT_TRUE(counts) << std::hex << int{code[0]} << " " << counts.error().message;
  }
}

TEST(ModuleCounts, RefusesWhatIsSwitchedOff) {
  const auto said = [](const Bytes& module) {
    const auto counts = count_module(module, {});
    return counts ? "fine" : counts.error().message;
  };
  const auto head = [](Bytes sections) {
    sections.insert(sections.begin(), {0, 'a', 's', 'm', 1, 0, 0, 0});
    return sections;
  };
  for (const Bytes& code :
       {Bytes{0x12, 0}, {0x06, 0x40, 0x0b}, {0x1f, 0x40, 0, 0x0b}, {0xfe, 0x10, 2, 0}, {0xfb, 0, 0}})
    EXPECT_NE(said(module_with(code)).find("is no instruction here"), std::string::npos) << said(module_with(code));
  EXPECT_NE(said(module_with({0x02, 0, 0x0b})).find("one result goes"), std::string::npos);
  EXPECT_NE(said(module_with({0x28, 0x42, 1, 0})).find("another memory"), std::string::npos);
  EXPECT_NE(said(module_with({0x20, 2})).find("a local that is not there"), std::string::npos);
  EXPECT_EQ(said(head({1, 6, 1, 0x60, 0, 2, 0x7f, 0x7f})), "a function has 2 results; one goes");
  EXPECT_EQ(said(head({5, 5, 2, 0, 1, 0, 1})), "the module has 2 memories; one goes");
  EXPECT_EQ(said(head({4, 7, 2, 0x70, 0, 1, 0x70, 0, 1})), "the module has 2 tables; one goes");
  EXPECT_NE(said(head({5, 4, 1, 3, 1, 1})).find("shared"), std::string::npos);
  EXPECT_NE(said(head({5, 3, 1, 4, 1})).find("64-bit"), std::string::npos);
  EXPECT_NE(said(head({1, 3, 1, 0x5f, 0})).find("a type that is not a function's"), std::string::npos);
  EXPECT_NE(said(head({13, 1, 0})).find("section 13 is unknown"), std::string::npos);
  EXPECT_NE(said(head({5, 1, 0, 5, 1, 0})).find("section 5"), std::string::npos);  // twice
  EXPECT_NE(said(head({5, 1, 0, 3, 1, 0})).find("section 3"), std::string::npos);  // too late
  EXPECT_NE(said(head({1, 5, 0xff, 0xff, 0xff, 0xff, 0x0f})).find("it ends in the middle"), std::string::npos);
  EXPECT_NE(said(head({1, 6, 0xff, 0xff, 0xff, 0xff, 0xff, 0})).find("more than 32 bits"), std::string::npos);
  EXPECT_NE(said({0, 'a', 's', 'm', 13, 0, 1, 0}).find("it does not begin as modules do"), std::string::npos);
}

TEST(ModuleCounts, NoBytesHarmIt) {
  const Bytes module = counted_module();
  std::vector<std::size_t> ends;  // of sections
  for (std::size_t length = 0; length < module.size(); ++length)
    if (count_module(std::span(module).first(length), {})) ends.push_back(length);
  EXPECT_EQ(ends.size(), 7u);
  std::uint32_t state = 1;
  const auto random = [&](std::size_t below) { return ((state = state * 1664525 + 1013904223) >> 8) % below; };
  int refused = 0;
  for (int round = 0; round < 20000; ++round) {
    Bytes changed = module;
    for (std::size_t k = 0; k <= random(3); ++k)
      changed[random(changed.size())] = static_cast<std::uint8_t>(random(256));
    if (random(4) == 0) changed.resize(random(changed.size()));
    refused += !count_module(changed, {});
  }
  EXPECT_GT(refused, 10000);
}

}  // namespace
}  // namespace trireme::wasm

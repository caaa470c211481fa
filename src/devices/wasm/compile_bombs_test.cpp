// Fault 36: modules that would keep a compiler busy for seconds or minutes, or take its memory. Each has too much of
// one thing, and is refused before it is compiled.
#include <gtest/gtest.h>

#include <chrono>
#include <functional>

#include "trireme/wasm_host.hpp"

namespace trireme {
namespace {

using BombBytes = std::vector<std::uint8_t>;

BombBytes leb(std::uint64_t value) {
  BombBytes bytes;
  for (; value >= 0x80; value >>= 7) bytes.push_back(static_cast<std::uint8_t>(value | 0x80));
  bytes.push_back(static_cast<std::uint8_t>(value));
  return bytes;
}
BombBytes join(std::initializer_list<BombBytes> parts) {
  BombBytes all;
  for (const BombBytes& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}
BombBytes times(std::size_t count, const std::function<BombBytes(std::size_t)>& part) {
  BombBytes all;
  for (std::size_t k = 0; k < count; ++k) {
    const BombBytes next = part(k);
    all.insert(all.end(), next.begin(), next.end());
  }
  return all;
}
BombBytes times(std::size_t count, const BombBytes& part) {
  return times(count, [&](std::size_t) { return part; });
}
BombBytes sized(const BombBytes& content) { return join({leb(content.size()), content}); }
BombBytes section(std::uint8_t id, std::size_t count, const BombBytes& content) {
  return join({{id}, sized(join({leb(count), content}))});
}

// What a bomb changes of an empty module; `body`: without the locals and the last end.
struct Bomb {
  const char* name;
  const char* limit;  // that stops it
  std::size_t functions = 1, locals = 0;
  BombBytes body = {};
  BombBytes type = {0x60, 0, 0};
  std::size_t types = 1;
  BombBytes behind_functions = {}, at_the_end = {};  // sections

  BombBytes module() const {
    const BombBytes code = join({{1}, leb(locals), {0x7f}, body, {0x0b}});
    return join({{0, 'a', 's', 'm', 1, 0, 0, 0},
                 section(1, types, times(types, type)),
                 section(3, functions, BombBytes(functions)),
                 behind_functions,
                 section(10, functions, times(functions, sized(code))),
                 at_the_end});
  }
};

constexpr std::uint8_t get = 0x20, set = 0x21, loop = 0x03, end = 0x0b, i32_const = 0x41, none = 0x40;

BombBytes local(std::uint8_t code, std::size_t index) { return join({{code}, leb(index)}); }
// Every local becomes another one: all of them are carried round every loop about it.
BombBytes rotate(std::size_t locals) {
  return times(locals, [=](std::size_t k) { return join({local(get, (7 * k + 3) % locals), local(set, k)}); });
}

std::vector<Bomb> bombs() {
  std::vector<Bomb> all;
  all.push_back({"1000 functions of 50 000 locals: 8 kB, 5 s", "function_locals", 1000, 50000});
  all.push_back({"one function of 50 000 locals", "function_locals", 1, 50000});
  all.push_back({"20 functions of 1000 locals", "locals", 20, 1000});
  all.push_back({"many functions", "functions", 20000});
  all.push_back({"one long body", "function_bytes", 1, 2, times(20000, {get, 0, get, 1, 0x6d, set, 0})});
  all.push_back({"many long bodies", "code_bytes", 60, 2, times(8000, {get, 0, get, 1, 0x6d, set, 0})});
  all.push_back({"ifs", "function_branches", 1, 2, times(1000, {get, 0, 0x04, none, end})});
  all.push_back({"ifs in many functions", "branches", 20, 2, times(500, {get, 0, 0x04, none, end})});
  all.push_back({"br_table: 40 kB, 5 s", "function_branches", 1, 300,
                 join({{loop, none}, rotate(300), {get, 0, 0x0e}, leb(38000), BombBytes(38001), {end}})});
  all.push_back({"calls through a table",
                 "function_branches",
                 1,
                 1,
                 times(2000, {get, 0, 0x11, 0, 0}),
                 {0x60, 0, 0},
                 1,
                 section(4, 1, {0x70, 0, 10})});
  all.push_back({"memory.grow", "function_branches", 1, 1, times(2000, {get, 0, 0x40, 0, 0x1a})});
  all.push_back({"loops in loops", "nesting", 1, 1, join({times(400, {loop, none}), BombBytes(400, end)})});
  all.push_back({"nested loops that rotate 1000 locals: 37 kB, 45 s", "function_merges", 1, 1000,
                 join({times(250, {loop, none}), rotate(1000), times(250, {get, 1, 0x0d, 0, end})})});
  all.push_back(
      {"a br_table to nested loops: 15 kB, 89 s", "function_merges", 1, 1000,
       join({times(200, {loop, none}), rotate(1000), {get, 0, 0x0e}, leb(300), BombBytes(301), BombBytes(200, end)})});
  all.push_back({"smaller ones, many times", "merges", 30, 100,
                 join({times(30, {loop, none}), rotate(100), times(30, {get, 1, 0x0d, 0, end})})});
  all.push_back({"1000 locals over 250 loops: 22 kB, 0.8 s", "crossings", 3, 1000,
                 join({rotate(1000), times(250, {loop, none, get, 1, 0x0d, 0, end}), rotate(1000)})});
  all.push_back({"blocks of 1000 values: 40 kB, all memory",
                 "parameters",
                 1,
                 0,
                 {},
                 join({{0x60}, sized(BombBytes(1000, 0x7f)), {0}})});
  all.push_back({"functions of 1000 results", nullptr, 1, 0, {}, join({{0x60, 0}, sized(BombBytes(1000, 0x7f))})});
  all.push_back({"types", "declarations", 1, 0, {}, {0x60, 1, 0x7f, 0}, 100000});
  all.push_back({"globals",
                 "declarations",
                 1,
                 0,
                 {},
                 {0x60, 0, 0},
                 1,
                 section(6, 50000, times(50000, {0x7f, 0, i32_const, 0, end}))});
  all.push_back(
      {"exports", "declarations", 1, 0, {}, {0x60, 0, 0}, 1, section(7, 50000, times(50000, {1, 'f', 0, 0}))});
  all.push_back({"tables", nullptr, 1, 0, {}, {0x60, 0, 0}, 1, section(4, 1000, times(1000, {0x70, 0, 1}))});
  all.push_back(
      {"a long table", "table_elements", 1, 0, {}, {0x60, 0, 0}, 1, section(4, 1, join({{0x70, 0}, leb(10000000)}))});
  all.push_back({"element segments",
                 "declarations",
                 1,
                 0,
                 {},
                 {0x60, 0, 0},
                 1,
                 join({section(4, 1, {0x70, 0, 1}), section(9, 50000, times(50000, {0, i32_const, 0, end, 1, 0}))})});
  all.push_back({"data segments",
                 "declarations",
                 1,
                 0,
                 {},
                 {0x60, 0, 0},
                 1,
                 section(5, 1, {0, 1}),
                 section(11, 50000, times(50000, {0, i32_const, 0, end, 1, 'x'}))});
  // Not of the compiler's time, but of the call's: nothing stops one that has begun, and there is no loop.
  all.push_back({"memory.fill of everything, in a row", "function_bulk_operations", 1, 1,
                 times(100, {get, 0, get, 0, get, 0, 0xfc, 11, 0})});
  return all;
}

TEST(CompileBombs, fault_36_AreRefusedAtOnce) {
  const Result<WasmHost> host = WasmHost::open();
  if (!host) GTEST_SKIP() << host.error().message;
  for (const Bomb& bomb : bombs()) {
    SCOPED_TRACE(bomb.name);
    const BombBytes module = bomb.module();
    const auto start = std::chrono::steady_clock::now();
    const auto kernel = host->load(module);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    ASSERT_FALSE(kernel);
    EXPECT_EQ(kernel.error().code, Code::InvalidProgram);
    const std::string wanted = bomb.limit ? "(WasmLimits::" + std::string(bomb.limit) + ")" : "one goes";
    EXPECT_NE(kernel.error().message.find(wanted), std::string::npos) << kernel.error().message;
    EXPECT_LT(seconds, 0.5) << module.size() << " bytes";  // milliseconds, on a machine that does nothing else
  }
}

// A limit is the caller's to raise: what it stopped is then compiled, and refused for what it lacks.
TEST(CompileBombs, fault_36_LimitsCanBeRaised) {
  const Result<WasmHost> host = WasmHost::open();
  if (!host) GTEST_SKIP() << host.error().message;
  const Bomb ifs{"ifs", "function_branches", 1, 2, times(1000, {get, 0, 0x04, none, end})};
  const auto kernel = host->load(ifs.module(), {.function_branches = 2000});
  ASSERT_FALSE(kernel);
  EXPECT_EQ(kernel.error().message, "the module exports no memory named memory");
}

}  // namespace
}  // namespace trireme

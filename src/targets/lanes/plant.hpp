// A small thread kernel for tests to plant faults in.
#pragma once
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cctype>
#include <numeric>
#include <string>
#include <vector>

#include "schedule/kernel_builder.hpp"
#include "targets/lanes/interpret.hpp"

namespace trireme::lanes {

inline constexpr Slot operand{Slot::What::Pointer, 0}, result{Slot::What::Pointer, 1};
inline constexpr std::int64_t threads = 16;

// "x12 + f3" becomes "x + f"; f32 and other types stay.
inline std::string without_numbers(const std::string& message) {
  std::string text;
  for (std::size_t k = 0; k < message.size(); ++k) {
    text += message[k];
    bool starts = k == 0 || !std::isalnum(static_cast<unsigned char>(message[k - 1]));
    if (!starts || std::string_view("fmxp").find(message[k]) == std::string_view::npos) continue;
    std::size_t end = message.find_first_not_of("0123456789", k + 1);
    if (!type_named(message.substr(k, end - k))) k = end - 1;
  }
  return text;
}

// One block of 4 groups of 4 lanes with 256 bytes of scratch; 256 floats to read, 16 to write.
struct Plant {
  Kernel kernel{.name = "plant", .simd = false, .launch = {.lanes = 4, .groups = 4, .teams = 1}, .scratch_bytes = 256};
  KernelBuilder code{kernel};
  Reg lane = code.special(Do::ThreadLane), group = code.special(Do::ThreadGroup);
  Reg thread = code.add(code.mul(group, 4), lane);
  Reg in = code.pointer(operand), out = code.pointer(result);
  std::vector<float> x = std::vector<float>(256), y = std::vector<float>(threads);

  Plant() { std::iota(x.begin(), x.end(), 0.0f); }

  void store(Reg value, Reg element, std::int64_t imm = 0, Reg on = {}) {
    code.emit({.code = Do::Store, .space = Space::Scratch, .b = element, .c = on, .imm = imm, .values = {value}});
  }
  Reg load(Reg element, std::int64_t imm = 0, Reg on = {}) {
    Reg value = code.fresh(Bank::Lane);
    code.emit({.code = Do::Load, .space = Space::Scratch, .b = element, .c = on, .imm = imm, .values = {value}});
    return value;
  }
  void give(Reg value) { code.emit({.code = Do::Store, .a = out, .b = thread, .values = {value}}); }
  void barrier() { code.emit({.code = Do::Barrier}); }
  // From x[element …] to byte 4 * `to` + imm2.
  void copy(Reg element, Reg to, int count = 1, std::int64_t imm2 = 0, Reg on = {}) {
    code.emit(
        {.code = Do::CopyAsync, .a = in, .b = element, .c = on, .d = code.mul(to, 4), .imm2 = imm2, .count = count});
  }
  void commit() { code.emit({.code = Do::CopyCommit}); }
  void wait(int batches) { code.emit({.code = Do::CopyWait, .imm = batches}); }
  Reg as_lane(Reg index) { return code.into(Bank::Lane, {.code = Do::LaneFromIndex, .a = index}); }
  Reg neighbour(std::int64_t by = 4) { return code.index(Do::IndexAnd, code.add(thread, by), threads - 1); }

  Status run() {
    std::uint64_t args[] = {reinterpret_cast<std::uintptr_t>(x.data()), reinterpret_cast<std::uintptr_t>(y.data())};
    Range ranges[] = {{x.data(), x.size() * 4, false}, {y.data(), y.size() * 4, true}};
    return interpret(kernel, args, 0, 1, 1, 2, ranges);
  }
  std::string fault() {
    Status status = run();
    return status ? "" : status.error().message;
  }
  void runs() {
    Status status = run();
    EXPECT_TRUE(status) << status.error().message << "\n" << print(kernel);
  }
  // `instr` as it prints, but for the numbers of registers.
  void fails(const std::string& instr, const std::string& message, int at_thread = 0, int at_block = 0) {
    Status status = run();
    ASSERT_FALSE(status) << "not found: " << message << "\n" << print(kernel);
    EXPECT_EQ(status.error().code, Code::Internal);
    std::string where = fmt::format("; block {}, thread {} (team 0, group {}, lane {})", at_block, at_thread,
                                    at_thread / 4, at_thread % 4);
    EXPECT_EQ(without_numbers(status.error().message), "kernel plant: " + instr + ": " + message + where);
  }
};

}  // namespace trireme::lanes

// What instructions compute. What the interpreter finds wrong: faults_test.cpp.
#include "targets/lanes/interpret.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "schedule/kernel_builder.hpp"
#include "support/float_types.hpp"
#include "targets/lanes/plant.hpp"

namespace trireme::lanes {
namespace {

void load(KernelBuilder& code, Reg value, Type type, Reg base, Reg element, Reg on = {}) {
  code.emit({.code = Do::Load, .type = type, .a = base, .b = element, .c = on, .values = {value}});
}
void store(KernelBuilder& code, Reg value, Type type, Reg base, Reg element, Reg on = {}) {
  code.emit({.code = Do::Store, .type = type, .a = base, .b = element, .c = on, .values = {value}});
}
Reg to_lane(KernelBuilder& code, Reg index) { return code.into(Bank::Lane, {.code = Do::LaneFromIndex, .a = index}); }

// Two blocks of 2 teams of 2 groups of 4 lanes: what each of the 32 threads makes of its number in the grid.
std::vector<double> by_thread(const std::function<Reg(KernelBuilder&, Reg)>& make, Type compute = Type::F64) {
  Kernel kernel{
      .name = "by_thread", .simd = false, .compute = compute, .launch = {.lanes = 4, .groups = 2, .teams = 2}};
  KernelBuilder code(kernel);
  Reg in_group = code.special(Do::ThreadLane), group = code.special(Do::ThreadGroup);
  Reg team = code.special(Do::ThreadTeam), block = code.special(Do::BlockIndex);
  Reg thread = code.add(code.add(code.mul(block, 16), code.mul(team, 8)), code.add(code.mul(group, 4), in_group));
  Reg out = code.pointer(result);
  Reg value = make(code, thread);
  store(code, value.bank == Bank::Lane ? value : to_lane(code, value), Type::F64, out, thread);
  std::vector<double> results(32, -1);
  std::vector<std::uint64_t> args(kernel.slots.size());
  args[kernel.slot(result)] = reinterpret_cast<std::uintptr_t>(results.data());
  if (int columns = kernel.slot({Slot::What::Columns}); columns >= 0) args[columns] = 1000;
  Range range{results.data(), results.size() * sizeof(double), true};
  Status status = interpret(kernel, args, 100, 200, 300, 2, {&range, 1});
  EXPECT_TRUE(status) << status.error().message << "\n" << print(kernel);
  return results;
}

void check_index(const std::function<Reg(KernelBuilder&, Reg)>& make, const std::function<double(int)>& expected) {
  std::vector<double> got = by_thread(make);
  for (int t = 0; t < 32; ++t) EXPECT_EQ(got[t], expected(t)) << "thread " << t;
}

TEST(interpret, index) {
  using B = KernelBuilder;
  check_index([](B&, Reg t) { return t; }, [](int t) { return t; });
  check_index([](B& c, Reg) { return c.special(Do::ThreadLane); }, [](int t) { return t % 4; });
  check_index([](B& c, Reg) { return c.special(Do::ThreadGroup); }, [](int t) { return t / 4 % 2; });
  check_index([](B& c, Reg) { return c.special(Do::ThreadTeam); }, [](int t) { return t / 8 % 2; });
  check_index([](B& c, Reg) { return c.special(Do::BlockIndex); }, [](int t) { return t / 16; });
  check_index([](B& c, Reg) { return c.index(-7); }, [](int) { return -7; });
  check_index([](B& c, Reg) { return c.slot({Slot::What::Columns}); }, [](int) { return 1000; });
  check_index([](B& c, Reg) { return c.argument(0); }, [](int) { return 100; });
  check_index([](B& c, Reg) { return c.argument(1); }, [](int) { return 200; });
  check_index([](B& c, Reg) { return c.argument(2); }, [](int) { return 300; });
  check_index([](B& c, Reg t) { return c.copy(t); }, [](int t) { return t; });
  check_index([](B& c, Reg t) { return c.add(t, t); }, [](int t) { return 2 * t; });
  check_index([](B& c, Reg t) { return c.add(t, -9); }, [](int t) { return t - 9; });
  check_index([](B& c, Reg t) { return c.index(Do::IndexSub, c.index(5), t); }, [](int t) { return 5 - t; });
  check_index([](B& c, Reg t) { return c.index(Do::IndexMul, t, t); }, [](int t) { return t * t; });
  check_index([](B& c, Reg t) { return c.index(Do::IndexMin, t, 6); }, [](int t) { return std::min(t, 6); });
  check_index([](B& c, Reg t) { return c.index(Do::IndexAnd, t, 6); }, [](int t) { return t & 6; });
  check_index([](B& c, Reg t) { return c.index(Do::IndexShiftRight, t, 2); }, [](int t) { return t >> 2; });
  check_index([](B& c, Reg t) { return c.index(Do::IndexDivide, t, 3); }, [](int t) { return t / 3; });
  check_index([](B& c, Reg t) { return c.index(Do::IndexRemainder, t, c.index(5)); }, [](int t) { return t % 5; });
  check_index([](B& c, Reg t) { return c.into(Bank::Lane, {.code = Do::LaneColumn, .a = t, .imm = 3}); },
              [](int t) { return t + 3; });
  check_index(
      [](B& c, Reg t) {
        Reg on = c.below(t, 1, c.index(9));
        return c.primitive(Op::Select, {on, c.number(1), c.number(0)});
      },
      [](int t) { return t + 1 < 9; });
  check_index(
      [](B& c, Reg t) {
        Reg on = c.equal(t, 1, c.index(9));
        return c.primitive(Op::Select, {on, c.number(1), c.number(0)});
      },
      [](int t) { return t + 1 == 9; });
  check_index(
      [](B& c, Reg) {
        return c.primitive(Op::Select, {c.lane_bit(2), c.number(1), c.number(0)});
      },
      [](int t) { return t % 4 >= 2; });
  check_index([](B& c, Reg t) { return c.shuffle_xor(to_lane(c, t), 3); }, [](int t) { return t ^ 3; });
}

TEST(interpret, rounds_indices_once) {
  std::vector<double> got = by_thread([](KernelBuilder& c, Reg) { return to_lane(c, c.index(16777217)); }, Type::F32);
  EXPECT_EQ(got[0], 16777216);
}

TEST(interpret, control) {
  using B = KernelBuilder;
  // Each thread turns as often as its number says: 0 + 1 + … + (t - 1).
  check_index(
      [](B& c, Reg t) {
        Reg k = c.copy(c.index(0)), sum = c.copy(c.index(0));
        c.repeat_while_less(k, t, [&] {
          c.emit({.code = Do::IndexAdd, .dst = sum, .a = sum, .b = k});
          c.increase(k, 1);
        });
        return sum;
      },
      [](int t) { return t * (t - 1) / 2; });
  check_index(
      [](B& c, Reg t) {
        Reg value = c.copy(t);
        c.when_less(
            t, c.index(7), [&] { c.assign(value, 70); },
            [&] { c.when_less(c.index(9), t, [&] { c.assign(value, 90); }); });
        return value;
      },
      [](int t) { return t < 7   ? 70
                         : t > 9 ? 90
                                 : t; });
}

constexpr double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();

void check(Op op, std::vector<double> args, double expected, Type compute = Type::F32, std::int64_t imm = 0) {
  bool condition = is_condition(op);
  auto make = [&](KernelBuilder& c, Reg) {
    Instr instr{.code = Do::Primitive, .op = op, .type = Type::BF16, .imm = imm};
    Reg* regs[] = {&instr.a, &instr.b, &instr.c};
    bool conditions = op == Op::And || op == Op::Or || op == Op::Not;
    for (std::size_t k = 0; k < args.size(); ++k) {
      *regs[k] = c.number(args[k]);
      if (conditions || (op == Op::Select && k == 0)) *regs[k] = c.primitive(Op::Less, {c.number(0), *regs[k]});
    }
    Reg dst = c.into(condition ? Bank::Mask : Bank::Lane, instr);
    return condition ? c.primitive(Op::Select, {dst, c.number(1), c.number(0)}) : dst;
  };
  double got = by_thread(make, compute)[17];
  if (std::isnan(expected)) EXPECT_TRUE(std::isnan(got)) << facts(op).name << " gives " << got;
  else
    EXPECT_EQ(std::bit_cast<std::uint64_t>(got), std::bit_cast<std::uint64_t>(expected))
        << facts(op).name << " gives " << got << ", not " << expected;
}

TEST(interpret, primitives) {
  check(Op::Add, {1, 0x1p-24}, 1);
  check(Op::Add, {1, 0x1.8p-23}, 0x1.000004p0);
  check(Op::Add, {1, 0x1p-24}, 1 + 0x1p-24, Type::F64);
  check(Op::Add, {-0.0, -0.0}, -0.0);
  check(Op::Sub, {0x1p-126, 0x1.8p-126}, -0x1p-127);  // subnormals are kept
  check(Op::Mul, {0x1.000002p0, 0x1.000002p0}, 0x1.000004p0);
  check(Op::Div, {1, 3}, 1.0f / 3);
  check(Op::Div, {1, 3}, 1.0 / 3, Type::F64);
  check(Op::Div, {1, -0.0}, -inf);
  check(Op::Neg, {0}, -0.0);
  check(Op::Abs, {-3}, 3);
  check(Op::Sqrt, {2}, std::sqrt(2.0f));
  check(Op::Sqrt, {-1}, nan);
  check(Op::Fma, {0x1.000002p0, 0x1.000002p0, -0x1.000004p0}, 0x1p-46);  // the product is not rounded
  check(Op::Fma, {0x1.0000000000001p0, 0x1.0000000000001p0, -0x1.0000000000002p0}, 0x1p-104, Type::F64);
  check(Op::Min, {1, 2}, 1);
  check(Op::Min, {nan, 2}, nan);
  check(Op::Min, {2, nan}, nan);
  check(Op::Min, {0, -0.0}, -0.0);
  check(Op::Min, {-0.0, 0}, -0.0);
  check(Op::Max, {1, 2}, 2);
  check(Op::Max, {nan, 2}, nan);
  check(Op::Max, {2, nan}, nan);
  check(Op::Max, {0, -0.0}, 0);
  check(Op::Max, {-0.0, 0}, 0);
  check(Op::Floor, {-0.5}, -1);
  check(Op::Round, {2.5}, 2);
  check(Op::Round, {3.5}, 4);
  check(Op::Round, {-0.25}, -0.0);
  check(Op::Less, {1, 2}, 1);
  check(Op::Less, {-0.0, 0}, 0);
  check(Op::Less, {nan, 2}, 0);
  check(Op::LessEqual, {2, 2}, 1);
  check(Op::LessEqual, {nan, nan}, 0);
  check(Op::Equal, {0, -0.0}, 1);
  check(Op::Equal, {nan, nan}, 0);
  check(Op::And, {1, 1}, 1);
  check(Op::And, {1, 0}, 0);
  check(Op::Or, {0, 1}, 1);
  check(Op::Or, {0, 0}, 0);
  check(Op::Not, {0}, 1);
  check(Op::Not, {1}, 0);
  check(Op::Select, {1, 5, 6}, 5);
  check(Op::Select, {0, 5, 6}, 6);
  check(Op::BitsAdd, {1, 0x1p-149}, 0x1.000002p0);
  check(Op::BitsAdd, {1, 0x1p-1074}, 0x1.0000000000001p0, Type::F64);
  check(Op::BitsAnd, {-1.5, 2}, 0);  // 0xBFC00000 & 0x40000000
  check(Op::BitsOr, {1, 0x1p-149}, 0x1.000002p0);
  check(Op::BitsShiftLeft, {0x1p-149}, 0x1p-126, Type::F32, 23);
  check(Op::BitsShiftRight, {-2}, 0x1.8p-148, Type::F32, 30);  // 0xC0000000: zeros come in
  check(Op::RoundTo, {0x1.01p0}, 1);                           // bf16 has 7 bits: a tie, to even
  check(Op::RoundTo, {0x1.03p0}, 0x1.04p0);
}

TEST(interpret, storage_types) {
  struct Case {
    Type type;
    double value, stored;
  };
  for (auto [type, value, stored] : std::vector<Case>{{Type::F64, 0.5, 0.5},
                                                      {Type::F32, 0x1.000001p0, 1},
                                                      {Type::F16, 1e6, inf},
                                                      {Type::F16, 0x1.004p0, 0x1.004p0},
                                                      {Type::BF16, 0x1.03p0, 0x1.04p0},
                                                      {Type::F8E4M3, -inf, -448},
                                                      {Type::F8E5M2, 1e9, 57344},
                                                      {Type::I8, -1000, -128},
                                                      {Type::I8, 2.5, 2},
                                                      {Type::I32, 1e10, 2147483647},
                                                      {Type::I32, nan, 0},
                                                      {Type::I64, 1e30, 0x1p63},
                                                      {Type::U8, -1, 0},
                                                      {Type::F8E8M0, 0.75, 1}}) {
    // A thread stores the value twice, side by side, and reads the second back.
    Kernel kernel{.name = "types", .simd = false, .compute = Type::F64, .launch = {.lanes = 1}};
    KernelBuilder code(kernel);
    Reg out = code.pointer(result), in = code.number(value), first = code.fresh(Bank::Lane);
    Reg second = code.fresh(Bank::Lane), zero = code.index(0);
    code.emit({.code = Do::Store, .type = type, .a = out, .values = {in, in}});
    code.emit({.code = Do::Load, .type = type, .a = out, .b = zero, .values = {first, second}});
    store(code, second, Type::F64, out, code.index(2));
    double memory[3] = {};
    std::uint64_t args[] = {reinterpret_cast<std::uintptr_t>(memory)};
    Status status = interpret(kernel, args, 0, 1, 1, 1);
    ASSERT_TRUE(status) << status.error().message;
    EXPECT_EQ(memory[2], stored) << name(type) << " of " << value;
    EXPECT_EQ(load_f64(type, memory), stored) << name(type) << " of " << value;
  }
}

// y[j] = x[j] + j where j < 11, eight lanes at a time; the 12th entry takes lane 0 of the last sum.
TEST(interpret, simd) {
  Kernel kernel{.name = "simd", .launch = {.lanes = 8}};
  KernelBuilder code(kernel);
  Reg in = code.pointer(operand), out = code.pointer(result), n = code.index(11), at = code.copy(code.index(0));
  Reg x = code.fresh(Bank::Lane), one = code.fresh(Bank::Lane);
  code.repeat_while_less(at, n, [&] {
    Reg on = code.below(at, 0, n);
    load(code, x, Type::BF16, in, at, on);
    Reg y = code.primitive(Op::Add, {x, code.into(Bank::Lane, {.code = Do::LaneColumn, .a = at})});
    store(code, y, Type::F32, out, at, on);
    code.emit({.code = Do::StoreOne, .a = out, .imm = 44, .values = {y}});
    code.increase(at, 8);
  });
  // Then: all lanes hold x[1], swapped with the index of the lane beyond.
  code.emit({.code = Do::LoadOne, .type = Type::BF16, .dst = one, .a = in, .imm = 2});
  Reg lane = code.into(Bank::Lane, {.code = Do::LaneColumn});
  Reg mixed = code.primitive(Op::Select, {code.below(code.index(0), 0, code.index(4)), one, code.shuffle_xor(lane, 4)});
  store(code, mixed, Type::F32, out, code.index(12));

  std::vector<std::uint16_t> x_memory(11);
  for (int j = 0; j < 11; ++j) store_f32(Type::BF16, &x_memory[j], static_cast<float>(10 * j));
  std::vector<float> y_memory(20, -1);
  std::uint64_t args[] = {reinterpret_cast<std::uintptr_t>(x_memory.data()),
                          reinterpret_cast<std::uintptr_t>(y_memory.data())};
  Range ranges[] = {{x_memory.data(), 22, false}, {y_memory.data(), 80, true}};
  Status status = interpret(kernel, args, 0, 1, 1, 1, ranges);
  ASSERT_TRUE(status) << status.error().message;
  for (int j = 0; j < 11; ++j) EXPECT_EQ(y_memory[j], 11 * j);
  EXPECT_EQ(y_memory[11], 88);
  for (int k = 0; k < 8; ++k) EXPECT_EQ(y_memory[12 + k], k < 4 ? 10 : k - 4);
}

TEST(interpret, simd_scratch_grows_with_columns) {
  Kernel kernel{.name = "scratch", .launch = {.lanes = 4}, .scratch_bytes = 16, .scratch_bytes_per_stripe = 16};
  KernelBuilder code(kernel);
  code.slot_number({Slot::What::Columns});
  code.slot_number({Slot::What::Pointer, scratch_array});
  Reg value = code.number(3), back = code.fresh(Bank::Lane), out = code.pointer(result);
  code.emit({.code = Do::Store, .space = Space::Scratch, .imm = 32, .values = {value}});
  code.emit({.code = Do::Load, .space = Space::Scratch, .b = code.index(8), .values = {back}});
  store(code, back, Type::F32, out, code.index(0));
  float scratch[12] = {}, y[4] = {};
  auto run = [&](std::uint64_t columns) {
    std::uint64_t args[] = {columns, reinterpret_cast<std::uintptr_t>(scratch), reinterpret_cast<std::uintptr_t>(y)};
    return interpret(kernel, args, 0, 1, 1, 1);
  };
  ASSERT_TRUE(run(257));
  EXPECT_EQ(scratch[8], 3);
  EXPECT_EQ(y[3], 3);
  EXPECT_FALSE(run(256));  // one stripe: 32 bytes
}

TEST(interpret, loads_indices) {
  Kernel kernel{.name = "chain", .simd = false, .launch = {.lanes = 4}};
  KernelBuilder code(kernel);
  Reg in = code.pointer(operand), out = code.pointer(result), thread = code.special(Do::ThreadLane);
  Reg at = code.copy(thread), on = code.below(thread, 0, code.index(3));
  for (int step = 0; step < 2; ++step)  // the address is read before it is overwritten
    code.emit({.code = Do::IndexLoad, .type = Type::I32, .dst = at, .a = in, .b = at, .c = on});
  store(code, to_lane(code, at), Type::F32, out, thread);
  std::int32_t links[] = {2, 0, 1, -5};
  float y[4] = {};
  std::uint64_t args[] = {reinterpret_cast<std::uintptr_t>(links), reinterpret_cast<std::uintptr_t>(y)};
  Range ranges[] = {{links, sizeof links, false}, {y, sizeof y, true}};
  Status status = interpret(kernel, args, 0, 1, 1, 1, ranges);
  ASSERT_TRUE(status) << status.error().message;
  EXPECT_EQ(std::vector(y, y + 4), (std::vector<float>{1, 2, 0, 0}));
}

TEST(interpret, lane_slots) {
  for (Type compute : {Type::F32, Type::F64}) {
    Kernel kernel{.name = "constant", .simd = false, .compute = compute, .launch = {.lanes = 2}};
    KernelBuilder code(kernel);
    Reg out = code.pointer(result);
    int slot = code.slot_number({Slot::What::Value, 3});
    Reg value = code.into(Bank::Lane, {.code = Do::LaneSlot, .imm = slot});
    code.emit({.code = Do::StoreOne, .type = compute, .a = out, .values = {value}});
    double memory = 0;
    std::uint64_t bits =
        compute == Type::F32 ? std::bit_cast<std::uint32_t>(0.25f) : std::bit_cast<std::uint64_t>(0.25);
    std::uint64_t args[] = {reinterpret_cast<std::uintptr_t>(&memory), bits};
    ASSERT_TRUE(interpret(kernel, args, 0, 1, 1, 1));
    EXPECT_EQ(load_f64(compute, &memory), 0.25);
  }
}

}  // namespace
}  // namespace trireme::lanes

// Lane movement, masks, addresses, scratch, spills, listings and refusals.
#include "targets/x86/emit_test.hpp"

namespace trireme::x86 {
namespace {

// Stores one lane register of `build` and reads it back as numbers.
std::vector<double> lanes_of(Isa isa, Type compute, const std::function<Reg(Builder&)>& build,
                             std::vector<std::uint64_t> more_args = {}) {
  Builder b(isa, compute, 1 + static_cast<int>(more_args.size()));
  Reg value = build(b);
  b.store(compute, value, b.pointer_slot(0));
  Guarded out(b.width() * bytes(compute), Guarded::Edge::End);
  std::vector<std::uint64_t> args = {slot_of(out.data())};
  args.insert(args.end(), more_args.begin(), more_args.end());
  run(b.kernel, isa, args);
  std::vector<double> values;
  for (int k = 0; k < b.width(); ++k) values.push_back(element_value(out.data() + k * bytes(compute), compute));
  return values;
}

TEST(Emit, ShufflesByEveryDistance) {
  on_each([](Isa isa, Type compute) {
    for (int distance = 0; distance < lanes(isa, compute); ++distance)
      for (bool in_place : {false, true}) {
        auto got = lanes_of(isa, compute, [&](Builder& b) {
          Reg column = b.add({.code = Do::LaneColumn, .dst = b.lane(), .a = b.index_constant(0)});
          return b.add({.code = Do::ShuffleXor, .dst = in_place ? column : b.lane(), .a = column, .imm = distance});
        });
        for (int k = 0; k < lanes(isa, compute); ++k) ASSERT_EQ(got[k], k ^ distance) << distance;
      }
  });
}

TEST(Emit, NumbersFromIndicesAndSlots) {
  on_each([](Isa isa, Type compute) {
    const std::int64_t column = 2147483000;
    auto got = lanes_of(isa, compute, [&](Builder& b) {
      return b.add({.code = Do::LaneColumn, .dst = b.lane(), .a = b.index_constant(column), .imm = 100});
    });
    for (int k = 0; k < lanes(isa, compute); ++k) EXPECT_EQ(got[k], rounded(double(column + 100 + k), compute));
    for (std::int64_t value : {std::int64_t{0}, std::int64_t{-1}, std::int64_t{16777217}, std::int64_t{16777219},
                               std::int64_t{9007199254740993}, std::int64_t{9007199791611905}}) {
      got = lanes_of(isa, compute, [&](Builder& b) {
        return b.add({.code = Do::LaneFromIndex, .dst = b.lane(), .a = b.index_constant(value)});
      });
      const double want = compute == Type::F32 ? double(static_cast<float>(value)) : static_cast<double>(value);
      for (double each : got) EXPECT_EQ(each, want);
    }
    const std::uint64_t bits =
        compute == Type::F32 ? std::bit_cast<std::uint32_t>(0.1f) | 0xDEADull << 40 : std::bit_cast<std::uint64_t>(0.1);
    got = lanes_of(isa, compute, [&](Builder& b) { return b.add({.code = Do::LaneSlot, .dst = b.lane(), .imm = 1}); },
                   {bits});
    for (double each : got) EXPECT_EQ(each, rounded(0.1, compute));
    for (double value : {0.0, -0.0, 1.5, double(-INFINITY)}) {
      got = lanes_of(isa, compute, [&](Builder& b) { return b.constant(value); });
      for (double each : got) EXPECT_TRUE(same(each, value));
    }
  });
}

TEST(Emit, MasksBelow) {
  on_each([](Isa isa, Type compute) {
    const int n = lanes(isa, compute);
    for (std::int64_t first : {std::int64_t{0}, std::int64_t{1} << 40})
      for (std::int64_t more : {0, 3, -3, (1 << 23) - 1, 1 << 23, 1 << 30})
        for (std::int64_t end : {std::int64_t{-1000000}, std::int64_t{-1}, std::int64_t{0}, std::int64_t{1},
                                 std::int64_t{2}, std::int64_t{n - 1}, std::int64_t{n}, std::int64_t{n + 1},
                                 std::int64_t{256}, std::int64_t{257}, std::int64_t{1} << 33}) {
          auto got = lanes_of(isa, compute, [&](Builder& b) {
            Reg mask = b.mask_below(b.index_constant(first), b.index_constant(first + more + end), more);
            return b.primitive(Op::Select, mask, b.constant(1), b.constant(2));
          });
          for (int k = 0; k < n; ++k) ASSERT_EQ(got[k], k < end ? 1 : 2) << first << " " << more << " " << end;
        }
  });
}

// Whatever distances round to: neighbours beyond 2^53 are told apart.
TEST(Emit, MasksOfEqualIndices) {
  on_each([](Isa isa, Type compute) {
    constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max(), least = -most - 1;
    for (std::int64_t a : {std::int64_t{0}, std::int64_t{1} << 24, std::int64_t{1} << 60, most, least})
      for (std::int64_t more : {0, 5, -5})
        for (std::int64_t off : {0, 1, -1, 1 << 30}) {
          const auto wrapped = [](std::int64_t x, std::int64_t y) {
            return static_cast<std::int64_t>(static_cast<std::uint64_t>(x) + static_cast<std::uint64_t>(y));
          };
          const std::int64_t b = wrapped(wrapped(a, more), off);
          auto got = lanes_of(isa, compute, [&](Builder& builder) {
            Reg mask = builder.add({.code = Do::MaskEqual,
                                    .dst = builder.mask(),
                                    .a = builder.index_constant(a),
                                    .b = builder.index_constant(b),
                                    .imm = more});
            return builder.primitive(Op::Select, mask, builder.constant(1), builder.constant(2));
          });
          for (double each : got) ASSERT_EQ(each, off == 0 ? 1 : 2) << a << " " << more << " " << off;
        }
  });
}

TEST(Emit, ConstantColumns) {
  on_each([](Isa isa, Type compute) {
    for (std::int64_t first : {0, 7, (1 << 23) - 64}) {
      auto got = lanes_of(isa, compute,
                          [&](Builder& b) { return b.add({.code = Do::LaneColumn, .dst = b.lane(), .imm = first}); });
      for (int k = 0; k < lanes(isa, compute); ++k) EXPECT_EQ(got[k], first + k);
    }
  });
}

TEST(Emit, AddressesGlobalAndScratch) {
  on_each([](Isa isa, Type compute) {
    const int n = lanes(isa, compute);
    const auto size = static_cast<std::int64_t>(bytes(compute));
    Builder b(isa, compute, 2);
    b.kernel.slots.push_back({Slot::What::Pointer, scratch_array});
    Reg in = b.pointer_slot(0), none = {};
    // A pointer moved by rows of an odd size and back again, element index, byte displacement.
    Reg three = b.index_constant(3), two = b.index_constant(2), offset = b.index_constant(2 * size);
    Reg moved = b.add({.code = Do::PointerAdd, .dst = b.pointer(), .a = in, .b = three, .imm = 7 * size});
    moved = b.add({.code = Do::PointerAdd, .dst = moved, .a = moved, .b = three, .imm = -5 * size});
    moved = b.add({.code = Do::PointerAdd, .dst = moved, .a = moved, .b = two, .imm = 8});  // + 16 bytes
    Reg far = b.add({.code = Do::PointerAdd, .dst = b.pointer(), .a = in, .b = two, .imm = -(std::int64_t{1} << 40)});
    Reg one = b.load(compute, moved, two, none, 3 * size - 16);  // elements 6 + 2 + 3
    Reg other = b.load(compute, far, none, none, std::int64_t{2} << 40);
    // Scratch: every way of giving an address names the same place in the end.
    auto scratch = [&](Do code, Reg value, Reg a, Reg index, std::int64_t imm) {
      b.add(
          {.code = code, .type = compute, .space = Space::Scratch, .a = a, .b = index, .imm = imm, .values = {value}});
    };
    scratch(Do::Store, one, none, none, 7 * size);
    Reg w = b.lane(), x = b.lane(), y = b.lane(), z = b.lane();
    scratch(Do::Load, w, none, none, 7 * size);
    scratch(Do::Load, x, offset, none, 5 * size);
    scratch(Do::Load, y, offset, two, 3 * size);
    scratch(Do::Load, z, none, three, 4 * size);
    Reg sum = b.primitive(Op::Add, b.primitive(Op::Add, w, x), b.primitive(Op::Add, y, z));
    b.store(compute, b.primitive(Op::Add, sum, other), b.pointer_slot(1));
    Guarded from((11 + n) * bytes(compute), Guarded::Edge::End), to(n * bytes(compute), Guarded::Edge::End),
        memory((7 + n) * bytes(compute), Guarded::Edge::End);
    for (int k = 0; k < 11 + n; ++k) {
      if (compute == Type::F32) from.as<float>()[k] = static_cast<float>(k * k);
      else from.as<double>()[k] = k * k;
    }
    run(b.kernel, isa, {slot_of(from.data()), slot_of(to.data()), slot_of(memory.data())});
    for (int k = 0; k < n; ++k)
      EXPECT_EQ(element_value(to.data() + k * bytes(compute), compute), 4 * (k + 11) * (k + 11) + k * k);
  });
}

// More live values than registers, in every bank.
TEST(Emit, SpillsKeepValues) {
  on_each([](Isa isa, Type compute) {
    constexpr int live = 48;
    auto got =
        lanes_of(isa, compute,
                 [&](Builder& b) {
                   std::vector<Reg> values, masks, indices;
                   for (int k = 0; k < live; ++k) {
                     indices.push_back(b.index_slot(1));
                     b.add({.code = Do::IndexAdd, .dst = indices[k], .a = indices[k], .imm = k});
                   }
                   for (int k = 0; k < live; ++k)
                     values.push_back(b.add({.code = Do::LaneColumn, .dst = b.lane(), .a = indices[k], .imm = 0}));
                   for (int k = 0; k < live; ++k)
                     masks.push_back(b.primitive(Op::Less, values[k], values[(k * 5 + 3) % live]));
                   Reg sum = b.constant(0), zero = b.constant(0), j = b.index_constant(0);
                   b.inside({.code = Do::While, .a = j, .imm = 2}, [&] {
                     for (int k = 0; k < live; ++k) {
                       Reg chosen = b.primitive(Op::Select, masks[(k * 7) % live], values[k], zero);
                       b.add({.code = Do::Primitive, .op = Op::Add, .dst = sum, .a = sum, .b = chosen});
                     }
                     b.add({.code = Do::IndexAdd, .dst = j, .a = j, .imm = 1});
                   });
                   return sum;
                 },
                 {1000});
    for (int lane = 0; lane < lanes(isa, compute); ++lane) {
      double want = 0;
      for (int k = 0; k < live; ++k) {
        const int m = (k * 7) % live;
        if (m < (m * 5 + 3) % live) want += 2 * (1000 + k + lane);
      }
      EXPECT_EQ(got[lane], want);
    }
  });
}

TEST(Emit, ListingReadsLikeTheKernel) {
  for (Isa isa : {Isa::Avx2, Isa::Avx512}) {
    Builder b(isa, Type::F32, 2);
    b.kernel.notes = {"stripe 0"};
    b.add({.code = Do::Note, .imm = 0});
    Reg x = b.load(Type::F32, b.pointer_slot(0));
    Reg sum = b.primitive(Op::Add, b.primitive(Op::Mul, x, x), x);
    b.store(Type::F32, sum, b.pointer_slot(1), {}, {}, 0, Hint::Streaming);
    Result<MachineCode> code = emit(b.kernel, isa, true);
    ASSERT_TRUE(code);
    const std::string& listing = code->listing;
    for (const char* wanted : {"stripe 0", "vmulps", "vaddps", "vmovntps", "sfence", "ldmxcsr", "vzeroupper"})
      EXPECT_NE(listing.find(wanted), std::string::npos) << wanted << "\n" << listing;
    EXPECT_EQ(listing.find("fmadd"), std::string::npos);  // nothing is contracted
    EXPECT_TRUE(emit(b.kernel, isa)->listing.empty());
    EXPECT_EQ(emit(b.kernel, isa)->bytes, code->bytes);
  }
}

TEST(Emit, RefusesWhatIsNoSimdKernel) {
  auto refused = [](Builder b, Isa isa) {
    Result<MachineCode> code = emit(b.kernel, isa);
    return !code && code.error().code == trireme::Code::Internal;
  };
  for (Isa isa : {Isa::Avx2, Isa::Avx512}) {
    Builder b(isa, Type::F32, 1);
    EXPECT_FALSE(refused(b, isa));
    Builder other = b;
    other.kernel.launch.lanes = 5;
    EXPECT_TRUE(refused(other, isa));
    for (Do code : {Do::ThreadLane, Do::ThreadGroup, Do::ThreadTeam, Do::BlockIndex, Do::BlockRank, Do::LaneBit,
                    Do::Barrier, Do::CopyAsync, Do::CopyCommit, Do::CopyWait}) {
      Builder thread(isa, Type::F32, 1);
      thread.add({.code = code, .dst = {Bank::Index, 0}});
      EXPECT_TRUE(refused(thread, isa));
    }
    Builder wrong(isa, Type::F32, 1);
    wrong.add(
        {.code = Do::Primitive, .op = Op::Add, .dst = {Bank::Lane, 0}, .a = {Bank::Lane, 3}, .b = {Bank::Mask, 0}});
    EXPECT_TRUE(refused(wrong, isa));
    Builder sum(isa, Type::F32, 1);
    sum.add({.code = Do::Primitive, .op = Op::Sum, .dst = sum.lane(), .a = sum.lane()});
    EXPECT_TRUE(refused(sum, isa));
    Builder scratch(isa, Type::F32, 1);
    scratch.add({.code = Do::Load, .space = Space::Scratch, .values = {scratch.lane()}});
    EXPECT_TRUE(refused(scratch, isa));
    Builder wide(isa, Type::F32, 1);
    wide.load(Type::F64, wide.pointer_slot(0));
    EXPECT_TRUE(refused(wide, isa));
  }
}

}  // namespace
}  // namespace trireme::x86

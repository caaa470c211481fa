// Index registers and control flow.
#include "targets/x86/emit_test.hpp"

namespace trireme::x86 {
namespace {

// What a kernel leaves in Index registers. They travel through LaneFromIndex, so they must be below 2^24.
std::vector<std::int64_t> answers(Isa isa, Type compute, const std::function<std::vector<Reg>(Builder&)>& build,
                                  std::vector<std::uint64_t> more_args = {}) {
  Builder b(isa, compute, 1 + static_cast<int>(more_args.size()));
  Reg to = b.pointer_slot(0);
  std::vector<Reg> results = build(b);
  for (std::size_t k = 0; k < results.size(); ++k) {
    Reg value = b.add({.code = Do::LaneFromIndex, .dst = b.lane(), .a = results[k]});
    b.add(
        {.code = Do::StoreOne, .type = Type::I32, .a = to, .imm = static_cast<std::int64_t>(k) * 4, .values = {value}});
  }
  std::vector<std::int32_t> out(results.size());
  std::vector<std::uint64_t> args = {slot_of(out.data())};
  args.insert(args.end(), more_args.begin(), more_args.end());
  run(b.kernel, isa, args, 5, 1000, 77777);
  return {out.begin(), out.end()};
}

TEST(Index, IndexRegisters) {
  on_each([](Isa isa, Type compute) {
    const std::int64_t big = std::int64_t{1} << 40;
    auto got = answers(isa, compute,
                       [&](Builder& b) {
                         Reg first = b.add({.code = Do::IndexArgument, .dst = b.index(), .imm = 0});
                         Reg last = b.add({.code = Do::IndexArgument, .dst = b.index(), .imm = 1});
                         Reg total = b.add({.code = Do::IndexArgument, .dst = b.index(), .imm = 2});
                         Reg n = b.index_slot(1), none = {};
                         Reg huge = b.index_constant(big);
                         Reg moved = b.add({.code = Do::IndexMove, .dst = b.index(), .a = n});
                         // dst over an argument
                         Reg over_b = b.index_constant(10), over_a = b.index_constant(10);
                         b.add({.code = Do::IndexSub, .dst = over_b, .a = last, .b = over_b});
                         b.add({.code = Do::IndexMin, .dst = over_a, .a = over_a, .b = first});
                         return std::vector<Reg>{
                             first,
                             last,
                             total,
                             n,
                             moved,
                             over_b,
                             over_a,
                             b.index_op(Do::IndexAdd, first, last),
                             b.index_op(Do::IndexAdd, first, none, -7),
                             b.index_op(Do::IndexSub, b.index_op(Do::IndexAdd, huge, first), huge),
                             b.index_op(Do::IndexSub, b.index_op(Do::IndexAdd, first, none, big), none, big),
                             b.index_op(Do::IndexMul, first, last),
                             b.index_op(Do::IndexMul, first, none, -3),
                             b.index_op(Do::IndexMin, first, last),
                             b.index_op(Do::IndexMin, last, none, 9),
                             b.index_op(Do::IndexMin, b.index_constant(-4), none, 9),
                             b.index_op(Do::IndexAnd, total, none, -16),
                             b.index_op(Do::IndexAnd, total, last),
                             b.index_op(Do::IndexShiftRight, huge, none, 30),
                             b.index_op(Do::IndexDivide, total, first),
                             b.index_op(Do::IndexRemainder, total, last),
                             b.index_op(Do::IndexDivide, total, none, 7),
                             b.index_op(Do::IndexRemainder, total, none, 7),
                             b.index_op(Do::IndexDivide, total, none, 64),
                             b.index_op(Do::IndexRemainder, total, none, 64),
                             b.index_op(Do::IndexDivide, huge, none, 1 << 20)};
                       },
                       {123456});
    EXPECT_EQ(got, (std::vector<std::int64_t>{5,    1000,  77777, 123456, 123456, 990,  5,  1005,   -2,
                                              5,    5,     5000,  -15,    5,      9,    -4, 77776,  77777 & 1000,
                                              1024, 15555, 777,   11111,  0,      1215, 17, 1 << 20}));
  });
}

TEST(Index, IndicesFromMemory) {
  on_each([](Isa isa, Type compute) {
    Guarded numbers(12, Guarded::Edge::End);
    const std::int32_t values[3] = {7, -5, 123};
    std::memcpy(numbers.data(), values, 12);
    auto got = answers(
        isa, compute,
        [](Builder& b) {
          Reg at = b.pointer_slot(1), one = b.index_constant(1), zero = b.index_constant(0), none = {};
          Reg all = b.mask_below(zero, one), nothing = b.mask_below(one, one);
          Reg over = b.index_constant(2);  // the index itself becomes the number
          b.add({.code = Do::IndexLoad, .dst = over, .a = at, .b = over, .c = all});
          auto load = [&](Reg index, Reg mask, std::int64_t more) {
            return b.add({.code = Do::IndexLoad, .dst = b.index(), .a = at, .b = index, .c = mask, .imm = more});
          };
          return std::vector<Reg>{load(none, none, 0), load(one, none, 0), load(one, all, 4), over,
                                  load(one, nothing, 1 << 20)};
        },
        {slot_of(numbers.data())});
    EXPECT_EQ(got, (std::vector<std::int64_t>{7, -5, 123, 123, 0}));
  });
}

TEST(Index, ControlFlow) {
  on_each([](Isa isa, Type compute) {
    auto got = answers(isa, compute, [&](Builder& b) {
      // Sum of j below 10 where j < 5 adds j, else 100; then a loop that never runs.
      Reg sum = b.index_constant(0), j = b.index_constant(0), never = b.index_constant(0);
      b.inside({.code = Do::While, .a = j, .imm = 10}, [&] {
        Instr branch{.code = Do::If, .a = j, .b = b.index_constant(5)};
        branch.other = std::vector<Instr>{{.code = Do::IndexAdd, .dst = sum, .a = sum, .imm = 100}};
        b.inside(branch, [&] { b.add({.code = Do::IndexAdd, .dst = sum, .a = sum, .b = j}); });
        b.add({.code = Do::IndexAdd, .dst = j, .a = j, .imm = 1});
      });
      b.inside({.code = Do::While, .a = j, .b = j},
               [&] { b.add({.code = Do::IndexAdd, .dst = never, .a = never, .imm = 1}); });
      b.inside({.code = Do::If, .a = sum, .imm = 3},
               [&] { b.add({.code = Do::IndexAdd, .dst = never, .a = never, .imm = 1}); });
      return std::vector<Reg>{sum, j, never};
    });
    EXPECT_EQ(got, (std::vector<std::int64_t>{510, 10, 0}));
  });
}

}  // namespace
}  // namespace trireme::x86

// Random kernels against a scalar interpretation: loops, branches, more values than registers, short lives and long.
// LONG=1 runs many more.
#include <cstdlib>
#include <random>

#include "targets/x86/emit_test.hpp"

namespace trireme::x86 {
namespace {

constexpr int global_lanes = 24, global_masks = 10, global_indices = 12;

struct Random {
  std::mt19937_64 state;
  int below(int n) { return static_cast<int>(state() % static_cast<std::uint64_t>(n)); }
  template <typename T>
  const T& of(const std::vector<T>& all) {
    return all[below(static_cast<int>(all.size()))];
  }
};

// Makes blocks of instructions. What is visible: the global registers, and those of the block so far.
struct Generator {
  Builder& b;
  Random& random;
  std::vector<Reg> lanes, masks, indices;

  Reg result(std::vector<Reg>& bank, Reg (Builder::*fresh)()) {
    if (random.below(3) == 0) return random.of(bank);  // over an older value
    bank.push_back((b.*fresh)());
    return bank.back();
  }

  void instruction() {
    static const std::vector<Op> arithmetic = {Op::Add, Op::Sub, Op::Mul,   Op::Div,   Op::Neg,    Op::Abs,
                                               Op::Min, Op::Max, Op::Floor, Op::Round, Op::Select, Op::Fma};
    static const std::vector<Op> conditions = {Op::Less, Op::LessEqual, Op::Equal, Op::And, Op::Or, Op::Not};
    switch (random.below(10)) {
      default: {
        const Op op = random.of(arithmetic);
        const Reg first = op == Op::Select ? random.of(masks) : random.of(lanes);
        Instr i{.code = Do::Primitive, .op = op, .a = first};
        if (facts(op).arity > 1) i.b = random.of(lanes);
        if (facts(op).arity > 2) i.c = random.of(lanes);
        i.dst = result(lanes, &Builder::lane);
        return void(b.add(i));
      }
      case 0: {
        const Op op = random.of(conditions);
        const bool logic = op == Op::And || op == Op::Or || op == Op::Not;
        Instr i{.code = Do::Primitive, .op = op, .a = random.of(logic ? masks : lanes)};
        if (op != Op::Not) i.b = random.of(logic ? masks : lanes);
        i.dst = result(masks, &Builder::mask);
        return void(b.add(i));
      }
      case 1: {
        Instr i{.code = Do::Primitive, .op = Op::RoundTo, .a = random.of(lanes)};
        i.type = type_facts[1 + random.below(7)].type;
        i.dst = result(lanes, &Builder::lane);
        return void(b.add(i));
      }
      case 2: {
        Instr i{.code = Do::ShuffleXor, .a = random.of(lanes), .imm = random.below(b.width())};
        i.dst = result(lanes, &Builder::lane);
        return void(b.add(i));
      }
      case 3: {
        const Do code = random.below(3) ? Do::MaskBelow : Do::MaskEqual;
        Instr i{.code = code, .a = random.of(indices), .b = random.of(indices), .imm = random.below(9) - 4};
        i.dst = result(masks, &Builder::mask);
        return void(b.add(i));
      }
      case 4: {
        Instr i{.code = random.below(2) ? Do::LaneFromIndex : Do::LaneColumn, .a = random.of(indices)};
        i.dst = result(lanes, &Builder::lane);
        return void(b.add(i));
      }
      case 5: {
        static const std::vector<Do> codes = {Do::IndexAdd, Do::IndexSub, Do::IndexMin, Do::IndexMove};
        Instr i{.code = random.of(codes), .a = random.of(indices), .imm = random.below(7)};
        if (i.code != Do::IndexMove && random.below(2)) i.b = random.of(indices);
        i.dst = result(indices, &Builder::index);
        b.add(i);
        return void(b.add({.code = Do::IndexAnd, .dst = i.dst, .a = i.dst, .imm = 63}));  // keeps it small
      }
    }
  }

  void block(int length, int depth) {
    const auto outer = std::tuple(lanes, masks, indices);
    for (int k = 0; k < length; ++k) {
      if (depth > 0 && random.below(12) == 0) {
        Instr control{.code = Do::If, .a = random.of(indices), .imm = 20};
        Reg counter;
        if (random.below(2)) {
          control.code = Do::While;
          control.a = counter = b.index_constant(0);
          control.imm = random.below(4);
        } else {
          std::vector<Instr> other;
          b.open.push_back(&other);
          block(random.below(8), depth - 1);
          b.open.pop_back();
          control.other = other;
        }
        b.inside(control, [&] {
          block(3 + random.below(20), depth - 1);
          if (counter) b.add({.code = Do::IndexAdd, .dst = counter, .a = counter, .imm = 1});
        });
      } else {
        instruction();
      }
    }
    std::tie(lanes, masks, indices) = outer;  // what was made here is not seen outside
  }
};

// The same, one lane at a time.
template <typename F>
struct Scalar {
  const Kernel& kernel;
  int width = kernel.launch.lanes;
  std::vector<std::vector<F>> lanes{static_cast<std::size_t>(kernel.lane_count), std::vector<F>(width)};
  std::vector<std::vector<bool>> masks{static_cast<std::size_t>(kernel.mask_count), std::vector<bool>(width)};
  std::vector<std::int64_t> indices = std::vector<std::int64_t>(kernel.index_count);

  static F least(F a, F b) {
    if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<F>::quiet_NaN();
    return a == b ? (std::signbit(a) ? a : b) : a < b ? a : b;
  }
  F arithmetic(const Instr& i, int t) {
    auto x = [&](Reg r) { return lanes[r.id][t]; };
    switch (i.op) {
      case Op::Add: return x(i.a) + x(i.b);
      case Op::Sub: return x(i.a) - x(i.b);
      case Op::Mul: return x(i.a) * x(i.b);
      case Op::Div: return x(i.a) / x(i.b);
      case Op::Neg: return -x(i.a);
      case Op::Abs: return std::fabs(x(i.a));
      case Op::Min: return least(x(i.a), x(i.b));
      case Op::Max: return -least(-x(i.a), -x(i.b));
      case Op::Floor: return std::floor(x(i.a));
      case Op::Round: return std::nearbyint(x(i.a));
      case Op::Select: return masks[i.a.id][t] ? x(i.b) : x(i.c);
      case Op::Fma: return std::fma(x(i.a), x(i.b), x(i.c));
      default: return static_cast<F>(rounded(rounded(x(i.a), i.type), kernel.compute));
    }
  }
  bool condition(const Instr& i, int t) {
    switch (i.op) {
      case Op::Less: return lanes[i.a.id][t] < lanes[i.b.id][t];
      case Op::LessEqual: return lanes[i.a.id][t] <= lanes[i.b.id][t];
      case Op::Equal: return lanes[i.a.id][t] == lanes[i.b.id][t];
      case Op::And: return masks[i.a.id][t] && masks[i.b.id][t];
      case Op::Or: return masks[i.a.id][t] || masks[i.b.id][t];
      default: return !masks[i.a.id][t];
    }
  }
  void step(const Instr& i) {
    auto b = [&] { return i.b ? indices[i.b.id] : i.imm; };
    if (i.code == Do::While)
      while (indices[i.a.id] < b()) block(i.body);
    if (i.code == Do::If) block(indices[i.a.id] < b() ? i.body : i.other);
    if (i.dst.bank == Bank::Index && i.dst) {
      std::int64_t& dst = indices[i.dst.id];
      if (i.code == Do::IndexConstant) dst = i.imm;
      if (i.code == Do::IndexMove) dst = indices[i.a.id];
      if (i.code == Do::IndexAdd) dst = indices[i.a.id] + b();
      if (i.code == Do::IndexSub) dst = indices[i.a.id] - b();
      if (i.code == Do::IndexMin) dst = std::min(indices[i.a.id], b());
      if (i.code == Do::IndexAnd) dst = indices[i.a.id] & b();
    }
    std::vector<F> lane(width);
    std::vector<bool> mask(width);
    for (int t = 0; t < width; ++t) {
      if (i.code == Do::Primitive && i.dst.bank == Bank::Lane) lane[t] = arithmetic(i, t);
      if (i.code == Do::Primitive && i.dst.bank == Bank::Mask) mask[t] = condition(i, t);
      if (i.code == Do::ShuffleXor) lane[t] = lanes[i.a.id][t ^ i.imm];
      if (i.code == Do::LaneFromIndex) lane[t] = static_cast<F>(indices[i.a.id]);
      if (i.code == Do::LaneColumn) lane[t] = static_cast<F>(indices[i.a.id] + i.imm + t);
      if (i.code == Do::LaneConstant) lane[t] = static_cast<F>(std::bit_cast<double>(i.imm));
      if (i.code == Do::MaskEqual) mask[t] = indices[i.a.id] + i.imm == indices[i.b.id];
      if (i.code == Do::MaskBelow) mask[t] = indices[i.a.id] + i.imm + t < indices[i.b.id];
    }
    if (i.dst && i.dst.bank == Bank::Lane) lanes[i.dst.id] = lane;
    if (i.dst && i.dst.bank == Bank::Mask) masks[i.dst.id] = mask;
  }
  void block(const std::vector<Instr>& instructions) {
    for (const Instr& each : instructions) step(each);
  }
};

template <typename F>
void check_one(Isa isa, std::uint64_t seed) {
  constexpr Type type = sizeof(F) == 8 ? Type::F64 : Type::F32;
  Random random{std::mt19937_64(seed)};
  Builder b(isa, type, 1);
  Generator make{b, random, {}, {}, {}};
  for (int k = 0; k < global_indices; ++k) make.indices.push_back(b.index_constant(random.below(40)));
  for (int k = 0; k < global_lanes; ++k) {
    const double value = random.below(2) ? random.of(special_values()) : random.below(1000) * 0.37;
    make.lanes.push_back(k % 2 ? b.constant(rounded(value, type))
                               : b.add({.code = Do::LaneColumn, .dst = b.lane(), .a = make.indices[k / 2]}));
  }
  for (int k = 0; k < global_masks; ++k)
    make.masks.push_back(b.primitive(Op::Less, random.of(make.lanes), random.of(make.lanes)));
  const std::vector<Reg> lanes = make.lanes, masks = make.masks;
  make.block(60, 3);

  Reg to = b.pointer_slot(0), one = b.constant(1), zero = b.constant(0);
  const Kernel computing = b.kernel;  // the scalar run ends here
  std::vector<Reg> results = lanes;
  for (Reg m : masks) results.push_back(b.primitive(Op::Select, m, one, zero));
  const auto vector_bytes = static_cast<std::int64_t>(b.width() * sizeof(F));
  for (std::size_t k = 0; k < results.size(); ++k)
    b.store(type, results[k], to, {}, {}, static_cast<std::int64_t>(k) * vector_bytes);

  Guarded out(results.size() * vector_bytes, Guarded::Edge::End);
  run(b.kernel, isa, {slot_of(out.data())});
  Scalar<F> scalar{computing};
  scalar.block(computing.body);
  for (std::size_t k = 0; k < results.size(); ++k)
    for (int t = 0; t < b.width(); ++t) {
      const F got = out.as<F>()[k * b.width() + t];
      const F want = k < lanes.size() ? scalar.lanes[lanes[k].id][t] : F(scalar.masks[masks[k - lanes.size()].id][t]);
      ASSERT_TRUE(same(got, want)) << "seed " << seed << " register " << k << " lane " << t << " got " << got
                                   << " want " << want;
    }
}

TEST(Fuzz, RandomKernelsEqualScalarCode) {
  const std::uint64_t count = std::getenv("LONG") ? 20000 : 150;
  on_each([&](Isa isa, Type compute) {
    for (std::uint64_t seed = 0; seed < count && !testing::Test::HasFatalFailure(); ++seed)
      compute == Type::F32 ? check_one<float>(isa, seed) : check_one<double>(isa, seed);
  });
}

}  // namespace
}  // namespace trireme::x86

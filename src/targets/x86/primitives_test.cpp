// Every primitive on every pair of special values, bit for bit against scalar code.
#include "targets/x86/emit_test.hpp"

namespace trireme::x86 {
namespace {

// All triples would be many; the third argument runs through the values against the grain.
template <typename F>
struct Operands {
  std::vector<F> a, b, c;
  Operands() {
    std::vector<F> values;
    for (double x : special_values()) values.push_back(static_cast<F>(x));
    for (F x : {F(1) / 3, -F(2) / 3, std::numeric_limits<F>::denorm_min(), std::numeric_limits<F>::max(),
                -std::numeric_limits<F>::min(), F(8388609.5), F(-4503599627370497.5)})
      values.push_back(x);
    for (std::size_t i = 0; i < values.size(); ++i)
      for (std::size_t j = 0; j < values.size(); ++j) {
        a.push_back(values[i]);
        b.push_back(values[j]);
        c.push_back(values[(i * 7 + j * 3) % values.size()]);
      }
  }
};

template <typename F>
void check(Isa isa, const Body& body, const std::function<F(F, F, F)>& want, const std::string& what) {
  constexpr Type type = sizeof(F) == 8 ? Type::F64 : Type::F32;
  static const Operands<F> in;
  const std::size_t n = in.a.size();
  Guarded a(n * sizeof(F), Guarded::Edge::End), b(n * sizeof(F), Guarded::Edge::End),
      c(n * sizeof(F), Guarded::Edge::End), out(n * sizeof(F), Guarded::Edge::End);
  std::memcpy(a.data(), in.a.data(), a.bytes());
  std::memcpy(b.data(), in.b.data(), b.bytes());
  std::memcpy(c.data(), in.c.data(), c.bytes());
  run(elementwise(isa, type, {type, type, type}, type, body), isa,
      {n, slot_of(a.data()), slot_of(b.data()), slot_of(c.data()), slot_of(out.data())});
  for (std::size_t k = 0; k < n; ++k)
    ASSERT_TRUE(same(out.as<F>()[k], want(in.a[k], in.b[k], in.c[k])))
        << what << "(" << in.a[k] << ", " << in.b[k] << ", " << in.c[k] << ") got " << out.as<F>()[k] << " want "
        << want(in.a[k], in.b[k], in.c[k]);
}

template <typename F>
F contract_min(F a, F b) {
  if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<F>::quiet_NaN();
  if (a == b) return std::signbit(a) ? a : b;
  return a < b ? a : b;
}
template <typename F>
F contract_max(F a, F b) {
  return -contract_min(-a, -b);
}

template <typename F>
void check_all(Isa isa) {
  using U = std::conditional_t<sizeof(F) == 8, std::uint64_t, std::uint32_t>;
  auto bits = [](F x) { return std::bit_cast<U>(x); };
  auto from = [](U x) { return std::bit_cast<F>(x); };
  auto simple = [&](Op op, const std::function<F(F, F, F)>& want) {
    const int arity = facts(op).arity;
    const std::string what(facts(op).name);
    // Into a fresh register, then over each argument.
    for (int over = -1; over < arity; ++over)
      check<F>(
          isa,
          [&](Builder& k, const std::vector<Reg>& x) {
            Reg dst = over < 0 ? k.lane() : x[over];
            return k.add({.code = Do::Primitive,
                          .op = op,
                          .dst = dst,
                          .a = x[0],
                          .b = arity > 1 ? x[1] : Reg{},
                          .c = arity > 2 ? x[2] : Reg{}});
          },
          want, what);
  };
  simple(Op::Add, [](F a, F b, F) { return a + b; });
  simple(Op::Sub, [](F a, F b, F) { return a - b; });
  simple(Op::Mul, [](F a, F b, F) { return a * b; });
  simple(Op::Div, [](F a, F b, F) { return a / b; });
  simple(Op::Neg, [](F a, F, F) { return -a; });
  simple(Op::Abs, [](F a, F, F) { return std::fabs(a); });
  simple(Op::Sqrt, [](F a, F, F) { return std::sqrt(a); });
  simple(Op::Fma, [](F a, F b, F c) { return std::fma(a, b, c); });
  simple(Op::Min, [](F a, F b, F) { return contract_min(a, b); });
  simple(Op::Max, [](F a, F b, F) { return contract_max(a, b); });
  simple(Op::Floor, [](F a, F, F) { return std::floor(a); });
  simple(Op::Round, [](F a, F, F) { return std::nearbyint(a); });
  simple(Op::BitsAdd, [&](F a, F b, F) { return from(bits(a) + bits(b)); });
  simple(Op::BitsAnd, [&](F a, F b, F) { return from(bits(a) & bits(b)); });
  simple(Op::BitsOr, [&](F a, F b, F) { return from(bits(a) | bits(b)); });
  for (int by : {0, 1, 20, 23, 31}) {
    auto shift = [&](Op op) -> Body {
      return [op, by](Builder& k, const std::vector<Reg>& x) { return k.primitive(op, x[0], {}, {}, by); };
    };
    check<F>(
        isa, shift(Op::BitsShiftLeft), [&](F a, F, F) { return from(bits(a) << by); }, "shift left");
    check<F>(
        isa, shift(Op::BitsShiftRight), [&](F a, F, F) { return from(bits(a) >> by); }, "shift right");
  }

  // Conditions, seen through a selection of b or c.
  auto condition = [&](const std::function<Reg(Builder&, const std::vector<Reg>&)>& made,
                       const std::function<bool(F, F, F)>& want, const char* what) {
    check<F>(
        isa, [&](Builder& k, const std::vector<Reg>& x) { return k.primitive(Op::Select, made(k, x), x[1], x[2]); },
        [&](F a, F b, F c) { return want(a, b, c) ? b : c; }, what);
  };
  auto compare = [](Op op) {
    return [op](Builder& k, const std::vector<Reg>& x) { return k.primitive(op, x[0], x[1]); };
  };
  condition(
      compare(Op::Less), [](F a, F b, F) { return a < b; }, "<");
  condition(
      compare(Op::LessEqual), [](F a, F b, F) { return a <= b; }, "<=");
  condition(
      compare(Op::Equal), [](F a, F b, F) { return a == b; }, "==");
  auto both = [](Op op) {
    return [op](Builder& k, const std::vector<Reg>& x) {
      return k.primitive(op, k.primitive(Op::Less, x[0], x[1]), k.primitive(Op::Less, x[1], x[2]));
    };
  };
  condition(
      both(Op::And), [](F a, F b, F c) { return a < b && b < c; }, "and");
  condition(
      both(Op::Or), [](F a, F b, F c) { return a < b || b < c; }, "or");
  condition(
      [](Builder& k, const std::vector<Reg>& x) {
        Reg moved = k.add({.code = Do::LaneMove, .dst = k.mask(), .a = k.primitive(Op::Less, x[0], x[1])});
        return k.primitive(Op::Not, moved);
      },
      [](F a, F b, F) { return !(a < b); }, "not");

  // One side a constant: one instruction, the same answer.
  for (double value :
       {1.0, -2.5, 0.0, -0.0, double(std::numeric_limits<F>::quiet_NaN()), -std::numeric_limits<double>::infinity()})
    for (Op op : {Op::Min, Op::Max})
      for (bool first : {false, true})
        check<F>(
            isa,
            [&](Builder& k, const std::vector<Reg>& x) {
              Reg c = k.constant(value);
              return first ? k.primitive(op, c, x[0]) : k.primitive(op, x[0], c);
            },
            [&](F a, F, F) { return op == Op::Min ? contract_min(a, F(value)) : contract_max(a, F(value)); },
            std::string(facts(op).name) + " with a constant");
}

TEST(Primitives, EqualScalarCode) {
  on_each([](Isa isa, Type compute) {
    if (compute == Type::F32) check_all<float>(isa);
    else check_all<double>(isa);
  });
}

// The caller's rounding, flushing and traps change no bit, and come back as they were.
TEST(Primitives, fault_27_CallerChangedMxcsr) {
  on_each([](Isa isa, Type compute) {
    auto get = [] {
      std::uint32_t value;
      __asm__ volatile("stmxcsr %0" : "=m"(value));
      return value;
    };
    auto set = [](std::uint32_t value) { __asm__ volatile("ldmxcsr %0" ::"m"(value)); };
    const std::uint32_t flush_and_down = 0x9FC0 | 1u << 13;
    Builder b(isa, compute, 2);
    Reg x = b.load(compute, b.pointer_slot(0));
    Reg third = b.primitive(Op::Div, x, b.constant(3));
    b.store(compute, third, b.pointer_slot(1));
    const int n = lanes(isa, compute);
    std::vector<double> in64(n), out64(n);
    std::vector<float> in32(n), out32(n);
    for (int k = 0; k < n; ++k) {
      in64[k] = (k % 2 ? std::numeric_limits<double>::denorm_min() : 1.0) * (1 + 7 * k);
      in32[k] = (k % 2 ? std::numeric_limits<float>::denorm_min() : 1.0f) * static_cast<float>(1 + 7 * k);
    }
    const bool wide = compute == Type::F64;
    Result<MachineCode> code = emit(b.kernel, isa);
    ASSERT_TRUE(code);
    Result<cpu::CodeMemory> executable = cpu::CodeMemory::create({{code->bytes}});
    ASSERT_TRUE(executable);
    const std::uint64_t args[] = {wide ? slot_of(in64.data()) : slot_of(in32.data()),
                                  wide ? slot_of(out64.data()) : slot_of(out32.data())};
    const std::uint32_t before = get();
    set(flush_and_down);
    executable->entry<Entry>()(args, 0, 0, 0);
    const std::uint32_t after = get();
    set(before);
    EXPECT_EQ(after, flush_and_down);
    for (int k = 0; k < n; ++k) {
      if (wide) EXPECT_EQ(out64[k], in64[k] / 3);
      else EXPECT_EQ(out32[k], in32[k] / 3);
    }
  });
}

}  // namespace
}  // namespace trireme::x86

// Every primitive, run in node and compared bit for bit with what C++ computes; what is fused, and what validates.
#include <numeric>

#include "devices/wasm/test_cases.hpp"
#include "targets/wasm/emit.hpp"

namespace trireme::wasm {
namespace {

int count(std::string_view text, std::string_view what) {
  int result = 0;
  for (std::size_t at = text.find(what); at != text.npos; at = text.find(what, at + 1)) ++result;
  return result;
}

// ---- Primitives -----------------------------------------------------------------------------------------------------

template <typename T>
T least(T a, T b) {  // the contract's: NaN goes through, -0 is below +0
  if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<T>::quiet_NaN();
  return a < b || (a == b && std::signbit(a)) ? a : b;
}
template <typename T>
T on_bits(T a, T b, auto&& f) {
  return std::bit_cast<T>(static_cast<Word<T>>(f(std::bit_cast<Word<T>>(a), std::bit_cast<Word<T>>(b))));
}
// A condition as a value: select(condition, a, b).
Evaluate pick(const Evaluate& condition) {
  return [=](KernelBuilder& b, const std::vector<Reg>& x) {
    return b.primitive(Primitive::Select, {condition(b, x), x[0], x[1]});
  };
}
Evaluate test(Primitive op) {
  return [=](KernelBuilder& b, const std::vector<Reg>& x) { return b.primitive(op, {x[0], x[1]}); };
}
Evaluate both(Primitive op) {  // of a < b and a == b; for Not, the first alone
  return [=](KernelBuilder& b, const std::vector<Reg>& x) {
    const Reg less = b.primitive(Primitive::Less, {x[0], x[1]}), same = b.primitive(Primitive::Equal, {x[0], x[1]});
    return op == Primitive::Not ? b.primitive(op, {less}) : b.primitive(op, {less, same});
  };
}
Evaluate first_only(Primitive op, int shift = 0) {
  return [=](KernelBuilder& b, const std::vector<Reg>& x) { return apply(op, shift)(b, {x[0]}); };
}
Evaluate with_constant(Primitive op, double constant, bool constant_first) {
  return [=](KernelBuilder& b, const std::vector<Reg>& x) {
    const Reg c = b.number(constant);
    return constant_first ? b.primitive(op, {c, x[0]}) : b.primitive(op, {x[0], c});
  };
}

template <typename T>
struct PrimitiveRow {
  std::string name;
  Evaluate evaluate;
  T (*want)(T, T);
};

template <typename T>
std::vector<PrimitiveRow<T>> primitive_rows() {
  using P = Primitive;
  return {
      {"add", apply(P::Add), [](T a, T b) { return a + b; }},
      {"sub", apply(P::Sub), [](T a, T b) { return a - b; }},
      {"mul", apply(P::Mul), [](T a, T b) { return a * b; }},
      {"div", apply(P::Div), [](T a, T b) { return a / b; }},
      {"min", apply(P::Min), [](T a, T b) { return least(a, b); }},
      {"max", apply(P::Max), [](T a, T b) { return -least(-a, -b); }},
      {"neg", first_only(P::Neg), [](T a, T) { return -a; }},
      {"abs", first_only(P::Abs), [](T a, T) { return std::fabs(a); }},
      {"sqrt", first_only(P::Sqrt), [](T a, T) { return std::sqrt(a); }},
      {"floor", first_only(P::Floor), [](T a, T) { return std::floor(a); }},
      {"round", first_only(P::Round), [](T a, T) { return std::nearbyint(a); }},
      {"less", pick(test(P::Less)), [](T a, T b) { return a < b ? a : b; }},
      {"less or equal", pick(test(P::LessEqual)), [](T a, T b) { return a <= b ? a : b; }},
      {"equal", pick(test(P::Equal)), [](T a, T b) { return a == b ? a : b; }},
      {"and", pick(both(P::And)), [](T a, T b) { return a < b && a == b ? a : b; }},
      {"or", pick(both(P::Or)), [](T a, T b) { return a < b || a == b ? a : b; }},
      {"not", pick(both(P::Not)), [](T a, T b) { return !(a < b) ? a : b; }},
      {"bits add", apply(P::BitsAdd), [](T a, T b) { return on_bits(a, b, [](auto x, auto y) { return x + y; }); }},
      {"bits and", apply(P::BitsAnd), [](T a, T b) { return on_bits(a, b, [](auto x, auto y) { return x & y; }); }},
      {"bits or", apply(P::BitsOr), [](T a, T b) { return on_bits(a, b, [](auto x, auto y) { return x | y; }); }},
      {"bits left", first_only(P::BitsShiftLeft, 23),
       [](T a, T b) { return on_bits(a, b, [](auto x, auto) { return x << 23; }); }},
      {"bits right", first_only(P::BitsShiftRight, 20),
       [](T a, T b) { return on_bits(a, b, [](auto x, auto) { return x >> 20; }); }},
      {"min with 1", with_constant(P::Min, 1, false), [](T a, T) { return least(a, T(1)); }},
      {"min of 1 and", with_constant(P::Min, 1, true), [](T a, T) { return least(T(1), a); }},
      {"max with -2", with_constant(P::Max, -2, false), [](T a, T) { return -least(-a, T(2)); }},
      {"max of -2 and", with_constant(P::Max, -2, true), [](T a, T) { return -least(-a, T(2)); }},
      {"max with 0", with_constant(P::Max, 0, false), [](T a, T) { return -least(-a, -T(0)); }},
      {"min with -0", with_constant(P::Min, -0.0, false), [](T a, T) { return least(a, -T(0)); }},
      {"max with inf", with_constant(P::Max, INFINITY, true), [](T a, T) { return -least(-a, T(-INFINITY)); }},
      {"min with nan", with_constant(P::Min, NAN, false), [](T, T) { return T(NAN); }},
  };
}

template <typename T>
void add_primitives(std::vector<Case>& cases) {
  std::vector<T> a, b;
  for (T x : specials<T>)
    for (T y : specials<T>) a.push_back(x), b.push_back(y);
  a.push_back(1), b.push_back(2), a.push_back(3), b.push_back(4), a.push_back(5), b.push_back(6);  // a tail
  for (const PrimitiveRow<T>& row : primitive_rows<T>()) {
    std::vector<T> want;
    for (std::size_t k = 0; k < a.size(); ++k) want.push_back(row.want(a[k], b[k]));
    cases.push_back({.name = row.name + " " + std::string(name(storage_of<T>)),
                     .kernels = map_kernel(storage_of<T>, {storage_of<T>, storage_of<T>}, storage_of<T>, row.evaluate),
                     .buffers = {bytes_of(a), bytes_of(b), Bytes(a.size() * sizeof(T))},
                     .columns = static_cast<std::int64_t>(a.size()),
                     .check = [=](const Case& done) {
                       expect_same<T>(values_of<T>(done.buffers[2]), want, [&](std::size_t k) {
                         return std::to_string(a[k]) + ", " + std::to_string(b[k]);
                       });
                     }});
  }
}

TEST(WasmEmit, Primitives) {
  TRIREME_SKIP_WITHOUT_NODE();
  std::vector<Case> cases;
  add_primitives<float>(cases);
  add_primitives<double>(cases);
  run(std::move(cases));
}

TEST(WasmEmit, ClampsTakeTheShortInstruction) {
  const auto text = [](double constant) {
    return listing(
               map_kernel(Storage::F32, {Storage::F32}, Storage::F32, with_constant(Primitive::Max, constant, true)))
        .value();
  };
  EXPECT_EQ(count(text(-88), "f32x4.pmax"), 2);
  EXPECT_EQ(count(text(0), "f32x4.pmax"), 0);
  EXPECT_EQ(count(text(0), "f32x4.max"), 2);
  EXPECT_EQ(count(text(NAN), "f32x4.max"), 2);
}

TEST(WasmEmit, ARegisterThatChangesIsNoConstant) {
  Kernels kernels{.rows = new_kernel(Storage::F32)};
  KernelBuilder b(kernels.rows);
  const Reg c = b.number(1), x = b.number(2);
  b.primitive(Primitive::Min, {x, c});
  EXPECT_EQ(count(listing(kernels).value(), "f32x4.pmin"), 1);
  b.assign(c, x), b.assign(x, c);
  EXPECT_EQ(count(listing(kernels).value(), "f32x4.pmin"), 0);
}

TEST(WasmEmit, FusesOnlyWhatTheKernelFuses) {
  const Evaluate expression = [](KernelBuilder& b, const std::vector<Reg>& x) {
    const Reg product = b.primitive(Primitive::Mul, {x[0], x[0]});
    return b.primitive(Primitive::Fma, {x[0], b.primitive(Primitive::Add, {product, x[0]}), product});
  };
  for (Storage type : {Storage::F32, Storage::F64}) {
    const Kernels kernels = map_kernel(type, {type}, type, expression);
    EXPECT_EQ(count(listing(kernels).value(), "relaxed"), 0);
    EXPECT_EQ(count(listing(kernels, {.relaxed = true}).value(), "relaxed_madd"), 2);
    EXPECT_EQ(count(listing(kernels, {.relaxed = true}).value(), "relaxed"), 2);
    EXPECT_TRUE(uses_relaxed(kernels, {.relaxed = true}));
    EXPECT_FALSE(uses_relaxed(kernels, {}));
  }
}

TEST(WasmEmit, fault_64_ModulesWithoutFmaNeedNothingRelaxed) {
  for (Storage type : {Storage::F32, Storage::F64}) {
    const Kernels kernels = map_kernel(type, {type, type}, type, apply(Primitive::Mul));
    EXPECT_FALSE(uses_relaxed(kernels, {.relaxed = true}));
    EXPECT_EQ(emit(kernels, {.relaxed = true}).value(), emit(kernels).value());
  }
}

// Every other test validates its modules too, where there is a validator.
TEST(WasmEmit, Validates) {
  if (!have_validator()) GTEST_SKIP() << "wasm-validate is not installed";
  for (Storage compute : {Storage::F32, Storage::F64})
    for (bool relaxed : {false, true}) {
      Case fma{.name = "fma",
               .kernels =
                   map_kernel(compute, {compute, Storage::BF16, Storage::F8E4M3}, Storage::F16, apply(Primitive::Fma)),
               .relaxed = relaxed};
      validate(fma, emit(fma.kernels, {.relaxed = relaxed}).value());
    }
}

// ---- Masks and memory -----------------------------------------------------------------------------------------------

}  // namespace
}  // namespace trireme::wasm

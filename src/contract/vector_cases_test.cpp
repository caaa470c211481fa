// The cases of contract/vectors, but for operators: operator_cases_test.cpp.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "contract/telling_inputs_for_test.hpp"
#include "contract/vector_for_test.hpp"
#include "language/parse.hpp"
#include "math/functions.hpp"
#include "support/float_types.hpp"

namespace trireme::vectors {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

// What has bits of its own, as bits of f32 or f64.
Rule specials(Type type) {
  Bits bits;
  const double smallest = type == Type::F64 ? 0x1p-1074 : 0x1p-149, normal = type == Type::F64 ? 0x1p-1022 : 0x1p-126;
  for (const double value : {0.0,           1.0,
                             0.5,           3.0,
                             2.5,           0x1p-40,
                             smallest,      normal - smallest,
                             normal,        facts(type).largest,
                             0x1p23,        0x1p24 + 2,
                             88.5,          87.25,
                             103.75,        709.5,
                             745.0,         1e-6,
                             0x1.fffffep-1, 0x1.6a09e6p0,
                             infinity})
    for (const double each : {value, -value}) bits.push_back(round_to_bits(type, each));
  bits.push_back(round_to_bits(type, std::nan("")));
  return bits;
}

}  // namespace

std::map<std::string, Type> all(const std::string& text, Type type, std::map<std::string, Type> others) {
  const Program program = parse(text).value();
  for (std::size_t k = 0; k < program.array_count(); ++k)
    if (const Program::Array array = program.array(k); array.result || !program.operands[k].constant)
      others.emplace(array.name, type);
  return others;
}

std::vector<Case> function_cases(Type compute) {
  std::vector<Case> cases;
  for (const Function& each : functions()) {
    const std::string name(each.name);
    const bool three = each.arity == 3;
    const std::string text =
        three ? fmt::format("f(x[i,j], low[i,j], high[i,j]) -> (y[i,j])\n    y = {}(x, low, high)\n", name)
              : fmt::format(
                    "f(a[i,j], b[i,j], c[i,j]) -> (x[i,j], y[i,j], z[i,j])\n    x = {0}(a)\n    y = {0}(b)\n"
                    "    z = {0}(c)\n",
                    name);
    Case made{.name = name, .program = text, .rows = 1, .columns = 129, .types = all(text, compute)};
    made.rules = {{"a", range(-12, 12)}, {"x", specials(compute)}, {"b", specials(compute)}};
    if (three) made.rules["low"] = range(-2, 1);
    made.rules["c"] = Count{compute == Type::F64 ? 0x3E00000000000000u : 0x38000000u,
                            compute == Type::F64 ? 0x01017A3B1B9F6D35u : 0x011A8F35u};
    cases.push_back(made);
    // More of them: f64's take Python some microseconds each.
    made.name += ", more";
    made.columns = compute == Type::F64 ? 512 : 2048;
    made.rules["a"] = range(-4, 4);
    const auto telling = std::find_if(telling_inputs.begin(), telling_inputs.end(), [&](const TellingInputs& inputs) {
      return inputs.compute == compute && inputs.function == each.name;
    });
    if (telling != telling_inputs.end()) made.rules["b"] = telling->bits;
    cases.push_back(std::move(made));
  }
  return cases;
}

std::vector<Case> type_cases() {
  std::vector<Case> cases;
  for (const TypeFacts& type : type_facts) {
    const std::string name(type.name), load = "f(x[i,j]) -> (y[i,j])\n    y = x\n";
    const int bits = type.bits;
    if (type.type == Type::F64 || type.type == Type::F32) continue;
    const std::uint64_t step = bits <= 8 ? 1 : bits == 16 ? 0x0107 : bits == 32 ? 0x01F3A5C7u : 0x01D3A5C7F14B6E93u;
    for (Type compute : {Type::F32, Type::F64})
      cases.push_back({.name = fmt::format("load {} in {}", name, trireme::name(compute)),
                       .program = load,
                       .rows = 1,
                       .columns = bits <= 4 ? 16 : 256,
                       .types = {{"x", type.type}, {"y", compute}},
                       .rules = {{"x", Count{0, step}}}});
    // Halfway between neighbours where those are few, patterns of all sizes, moderate numbers.
    const std::string store = "f(x[i,j]) -> (q[i,j], y[i,j])\n    q = x\n    y = cast(x, q) * 3\n";
    for (Type compute : {Type::F32, Type::F64}) {
      Bits halfway;
      for (std::uint64_t k = 0; bits <= 8 && k + 1 < std::uint64_t{1} << (bits - 1); ++k) {
        const double middle = (widen(type.type, k) + widen(type.type, k + 1)) / 2;
        if (std::isfinite(middle)) halfway.push_back(round_to_bits(compute, k % 2 ? -middle : middle));
      }
      if (halfway.size() % 2) halfway.push_back(0);
      const bool wide = compute == Type::F64;
      std::map<std::string, Rule> inputs = {
          {"specials", specials(compute)},
          {"patterns", wide ? Count{0x3000000000000000u, 0x00A5080000001000u} : Count{0x30000000u, 0x00A58000u}},
          {"close to halfway",
           wide ? Count{0x3FF0040000000000u, 0x0004004000000001u} : Count{0x3F802000u, 0x00402001u}},
          {"samples", range(-10, 10)}};
      if (!halfway.empty()) inputs["halfway"] = halfway;
      for (const auto& [kind, rule] : inputs) {
        const Bits* list = std::get_if<Bits>(&rule);
        const auto count = list ? static_cast<std::int64_t>(list->size() + list->size() % 2) : 128;
        cases.push_back({.name = fmt::format("store {} from {}: {}", name, trireme::name(compute), kind),
                         .program = store,
                         .rows = 1,
                         .columns = count,
                         .types = {{"x", compute}, {"q", type.type}, {"y", compute}},
                         .rules = {{"x", rule}}});
      }
    }
  }
  return cases;
}

std::vector<Case> special_cases() {
  std::vector<Case> cases;
  const std::string text =
      "f(x[i,j], y[i]) -> (a[i,j], b[i,j], c[i,j], d[i,j], e[i,j], f[i,j], g[i,j], h[i,j], k[i,j], l[i,j], m[i,j])\n"
      "    a = x + y\n    b = x - y\n    c = x * y\n    d = x / y\n    e = min(x, y)\n    f = max(x, y)\n"
      "    g = fma(x, y, rotate(x, 3))\n    h = select(x < y, floor(x), round(x))\n"
      "    k = select(or(x <= y, x != x), sqrt(x), abs(x))\n    l = select(x == y, -x, 1 / x)\n    m = -(x - y)\n";
  for (Type compute : {Type::F32, Type::F64})
    cases.push_back({.name = fmt::format("operations in {}", name(compute)),
                     .program = text,
                     .rows = 43,
                     .columns = 43,
                     .types = all(text, compute),
                     .rules = {{"x", specials(compute)}, {"y", specials(compute)}}});
  const std::string conditions =
      "f(x[i,j], y[i]) -> (a[i,j], b[i,j], c[i,j])\n    a = select(and(x <= y, x == x), x, y)\n"
      "    b = select(and(not(x < y), or(x != y, y >= 0)), 1, -0)\n    c = select(and(and(x > 0, x < inf), y < x), y, "
      "x)\n";
  for (Type compute : {Type::F32, Type::F64})
    cases.push_back({.name = fmt::format("conditions in {}", name(compute)),
                     .program = conditions,
                     .rows = 43,
                     .columns = 43,
                     .types = all(conditions, compute),
                     .rules = {{"x", specials(compute)}, {"y", specials(compute)}}});
  const std::string zeros =
      "f(x[i,j], w[i,j] = 0, c = 0, d = 1) -> (y[i,j], z[i,j], v[i,j], u[i,j], t[i,j], s[i,j])\n"
      "    y = 1 / (x + 0)\n    z = 1 / (w + x - c)\n    v = 1 / (x + c * d)\n    u = 1 / (0 - x)\n"
      "    t = x / (0 - c)\n    s = 1 / (x + (-0 - w))\n";
  std::map<std::string, Type> types = all(zeros, Type::F32);
  types.erase("w");
  cases.push_back({.name = "sums with zero", .program = zeros, .rows = 1, .columns = 43, .types = types});
  cases.back().rules["x"] = specials(Type::F32);
  cases.push_back(cases.back());
  cases.back().name = "sums with zeros in memory", cases.back().types["w"] = Type::F32;
  cases.back().rules["w"] = Bits{0, 0x80000000u};
  const std::string reduced =
      "f(x[i,j]) -> (s[i], a[i], b[i], p[i])\n    s = sum(x)\n    a = amax(x)\n    b = amin(x)\n"
      "    p = sum(-0 * abs(x))\n";
  for (std::int64_t columns : {1, 2, 3, 21})
    cases.push_back({.name = fmt::format("specials along {} columns", columns),
                     .program = reduced,
                     .rows = 43,
                     .columns = columns,
                     .types = all(reduced, Type::F32),
                     .rules = {{"x", specials(Type::F32)}}});
  const std::string numbers =
      "f(x[i,j], eps = 1e-6, scale = 3, one = 1) -> (y[i,j], q[i,j])\n"
      "    y = x * 0.1 + eps * (scale + 0x1.8p-3) * one\n"
      "    q = select(x < inf, x / 3 - .5, nan) + largest(q) * 1e-3\n";
  for (Type type : {Type::F32, Type::BF16, Type::F64, Type::F8E4M3})
    cases.push_back({.name = fmt::format("numbers in {}", name(type)),
                     .program = numbers,
                     .rows = 2,
                     .columns = 9,
                     .types = all(numbers, type),
                     .constants = {{"eps", 1e-5}, {"scale", 0.1}}});
  return cases;
}

std::vector<Case> sum_cases() {
  std::vector<Case> cases;
  const std::string text =
      "f(x[i,j]) -> (s[i], m[i], a[i], b[i], w[i])\n    s = sum(x)\n    m = mean(x * x)\n"
      "    a = amax(x)\n    b = amin(x)\n    w = sum(s)\n";
  for (std::int64_t columns : {1, 2, 7, 128, 255, 256, 257, 513, 1300, 4097})
    for (Type type : {Type::F32, Type::F64, Type::F16}) {
      if (type == Type::F16 && columns % 2) continue;
      cases.push_back({.name = fmt::format("{} columns of {}", columns, name(type)),
                       .program = text,
                       .rows = 2,
                       .columns = columns,
                       .types = all(text, type)});
    }
  return cases;
}

std::vector<Case> group_cases() {
  std::vector<Case> cases;
  const std::string text =
      "f(x[i,j], g = 4) -> (a[i,j / g], b[i,j % g], c[i,j / g], y[i,j], s[i], t[i], m[i])\n"
      "    a = sum(x, j / g)\n    b = amax(x, j % g)\n    c = mean(x, j / g)\n"
      "    y = x - mean(x, j % g) + rotate(a, 1) * amin(x * a, j / g)\n    s = sum(entries(a))\n"
      "    t = amax(entries(b)) + sum(a)\n    m = mean(entries(x * 0 + 1, j / g)) + mean(entries(b))\n";
  std::string fixed = text;  // entries of a value that differs inside its groups are refused
  fixed.replace(fixed.find("entries(x * 0 + 1, j / g)"), 25, "entries(s, j / g)");
  for (std::int64_t columns : {1, 3, 10, 257})
    for (double g : {1.0, 4.0, 7.0, 300.0})
      cases.push_back({.name = fmt::format("groups of {} in {} columns", g, columns),
                       .program = fixed,
                       .rows = 2,
                       .columns = columns,
                       .types = all(fixed, Type::F32),
                       .constants = {{"g", g}}});
  const std::string others =
      "f(x[i,j], g = 4) -> (a[i,j % g], b[i,j / g], c[i,j % g], y[i,j], s[i], t[i])\n    a = sum(x, j % g)\n"
      "    b = amax(x, j / g)\n    c = amin(x, j % g)\n    y = (x - a) * b + amin(c * x, j / g)\n"
      "    s = sum(entries(a)) + amin(entries(b))\n    t = amax(entries(c)) + mean(entries(c))\n";
  for (const auto& [which, text_of_them] : {std::pair("", fixed), std::pair("other ", others)})
    for (std::int64_t columns : {1, 10, 257})
      for (double g : {4.0, 7.0, 300.0})
        for (Type type : {Type::F32, Type::F64}) {
          if (type == Type::F32 && text_of_them == fixed) continue;
          cases.push_back({.name = fmt::format("{}groups of {} in {} columns of {}", which, g, columns, name(type)),
                           .program = text_of_them,
                           .rows = 2,
                           .columns = columns,
                           .types = all(text_of_them, type),
                           .constants = {{"g", g}}});
        }
  return cases;
}

// The totals of the folds, as `compose` and `split` write them. Weights are one a column, one a row, or a number, and
// an element is one a row, too.
void add_total_cases(std::vector<Case>& cases) {
  const std::string results = " -> (s[i], q[i], t[i], u[i], p[i], v[i], o[i], k[i])\n",
                    totals =
                        "    s = variance_sum(x)\n    q = variance_squares(x)\n    t = logsumexp_top(x)\n"
                        "    u = logsumexp_sum(x)\n    p = logsumexp_weighted_top(x, w)\n"
                        "    v = logsumexp_weighted(x, w)\n    o = logsumexp_weighted(x, r)\n"
                        "    k = logsumexp_weighted(r, x) - logsumexp_weighted(x * w, 0.1)\n";
  const std::string text = "f(x[i,j], w[j], r[i])" + results + totals;
  for (std::int64_t columns : {1, 255, 257, 1000})
    for (Type type : {Type::F32, Type::F64})
      cases.push_back({.name = fmt::format("totals of {} columns of {}", columns, name(type)),
                       .program = text,
                       .rows = columns == 1000 ? 1 : 2,
                       .columns = columns,
                       .types = all(text, type),
                       .rules = {{"x", range(-6, 6)}, {"w", range(-2, 3)}}});
  // -inf along a row, f32's largest, -100, -0, 2^-149, 10, inf, 1.5, NaN: 13, so that each row begins at another one.
  const Bits in_f32 = {0xFF800000u, 0xFF800000u, 0xFF800000u, 0xFF800000u, 0xFF800000u, 0x7F7FFFFFu, 0xC2C80000u,
                       0x80000000u, 0x00000001u, 0x41200000u, 0x7F800000u, 0x3FC00000u, 0x7FC00000u};
  Bits in_f64;
  for (std::uint64_t bits : in_f32) in_f64.push_back(round_to_bits(Type::F64, widen(Type::F32, bits)));
  for (Type type : {Type::F32, Type::F64}) {
    const Bits& bits = type == Type::F32 ? in_f32 : in_f64;
    const Bits backwards(bits.rbegin(), bits.rend());
    cases.push_back({.name = fmt::format("totals of specials in {}", name(type)),
                     .program = text,
                     .rows = 13,
                     .columns = 5,
                     .types = all(text, type),
                     .rules = {{"x", bits}, {"w", backwards}, {"r", backwards}}});
  }
  // Each of -inf, inf, NaN, f32's largest and -100 in one stripe, beside each of -inf, inf, -0 and 1.5 in the next.
  const std::string stripes = "f(a[i], b[i], w[j], r[i])" + results + "    x = select(j < 256, a, b)\n" + totals;
  cases.push_back({.name = "totals of two stripes of specials",
                   .program = stripes,
                   .rows = 20,
                   .columns = 259,
                   .types = all(stripes, Type::F32),
                   .rules = {{"a", Bits{0xFF800000u, 0x7F800000u, 0x7FC00000u, 0x7F7FFFFFu, 0xC2C80000u}},
                             {"b", Bits{0xFF800000u, 0x7F800000u, 0x80000000u, 0x3FC00000u}},
                             {"r", Bits{0x7F800000u, 0xBF800000u, 0x00000000u}}}});
}

std::vector<Case> fold_cases() {
  std::vector<Case> cases;
  const std::string text =
      "f(x[i,j]) -> (v[i], l[i], y[i,j], m[i])\n    v = variance(x)\n    l = logsumexp(x)\n"
      "    y = softmax(x)\n    m = mean(x)\n";
  for (std::int64_t columns : {1, 2, 7, 256, 257, 600, 1281})
    for (Type type : {Type::F32, Type::F64}) {
      if (type == Type::F64 && columns > 600) continue;
      cases.push_back({.name = fmt::format("{} columns of {}", columns, name(type)),
                       .program = text,
                       .rows = 2,
                       .columns = columns,
                       .types = all(text, type),
                       .rules = {{"x", range(-6, 6)}}});
    }
  for (std::int64_t columns : {1, 5, 260})
    cases.push_back({.name = fmt::format("specials along {} columns", columns),
                     .program = text,
                     .rows = 9,
                     .columns = columns,
                     .types = all(text, Type::F32),
                     .rules = {{"x", Bits{0xFF800000u, 0xFF800000u, 0xFF800000u, 0x7F7FFFFFu, 0xFF800000u, 0xC2C80000u,
                                          0x7F800000u, 0x80000000u, 0x7FC00000u, 0x00000001u, 0x41200000u}}}});
  add_total_cases(cases);
  return cases;
}

std::vector<Case> column_cases() {
  std::vector<Case> cases;
  const std::string texts[] = {
      "f(x[i,j], a = 3) -> (y[j], total[], ra[i / a, j], top[j], all[])\n"
      "    y = colsum(x * x)\n    total = colsum(x)\n    ra = colsum(x)\n    top = colmax(x)\n    all = colmax(-x)\n",
      "f(x[i,j], b = 4) -> (rb[i % b, j], g[j / 2], w[j % 5], v[(i / 2) % b])\n"
      "    rb = colsum(x)\n    g = colsum(x)\n    w = colsum(x)\n    v = colsum(i)\n",
      "f(x[i,j], a = 3, b = 4) -> (u[i % a, j / 2], p[i,j / 2], q[i,j % 5], rows[i / b])\n"
      "    u = colsum(x)\n    p = colsum(x)\n    q = colmax(x)\n    rows = colmax(x)\n"};
  const std::int64_t shapes[][2] = {{0, 3}, {1, 7}, {5, 4}, {130, 3}, {700, 3}, {2100, 2}, {20, 300}};
  for (const std::string& text : texts)
    for (const auto& [rows, columns] : shapes) {
      if (rows > 1000 && &text != texts) continue;
      cases.push_back({.name = fmt::format("{} rows of {} columns", rows, columns),
                       .program = text,
                       .rows = rows,
                       .columns = columns,
                       .types = all(text, Type::F32)});
    }
  cases.push_back({.name = "bf16 in, f64 out",
                   .program = texts[0],
                   .rows = 300,
                   .columns = 3,
                   .types = all(texts[0], Type::F64, {{"x", Type::BF16}})});
  for (const std::string& text : texts)
    for (const Type type : {Type::F32, Type::BF16, Type::F64}) {
      cases.push_back({.name = fmt::format("accumulated in {}", name(type)),
                       .program = text,
                       .rows = 130,
                       .columns = 7,
                       .types = all(text, type)});
      const Program program = parse(text).value();
      for (const Output& result : program.results)
        if (sums_over_rows(program, result)) cases.back().before[result.name] = range(-3, 3);
    }
  // A whole number that f32 does not hold is rounded once where it is loaded, and then the sum is added.
  Case whole_numbers{.name = "accumulated in i32",
                     .program = "f(x[i,j]) -> (s[j], m[j])\n    s = colsum(x)\n    m = colmax(x)\n",
                     .rows = 5,
                     .columns = 4,
                     .types = {{"x", Type::F32}, {"s", Type::I32}, {"m", Type::I32}}};
  whole_numbers.before["s"] = whole_numbers.before["m"] = Bits{16777217, 16777219, 0xFEFFFFFFu, 5};
  whole_numbers.rules["x"] = whole(1, 1);
  cases.push_back(std::move(whole_numbers));
  for (const std::string& text : texts)
    for (const std::int64_t block : {100, 512})
      cases.push_back({.name = fmt::format("blocks of {} rows", block),
                       .program = text,
                       .rows = 700,
                       .columns = 3,
                       .types = all(text, Type::F32),
                       .row_block = block});
  return cases;
}

std::vector<Case> place_cases() {
  std::vector<Case> cases;
  auto add = [&](std::string name, std::string text, std::int64_t rows, std::int64_t columns, Type type,
                 std::map<std::string, Type> others = {}) -> Case& {
    std::map<std::string, Type> types = all(text, type, std::move(others));
    cases.push_back({.name = std::move(name), .program = std::move(text), .rows = rows, .columns = columns});
    cases.back().types = std::move(types);
    return cases.back();
  };
  add("rotations",
      "f(x[i,j], k = 2) -> (y[i,j], z[i,j])\n    y = rotate(x, n / 2) - rotate(x, -k)\n"
      "    z = rotate(x * rotate(j, 3 * n + 1), n - 1) * rotate(amax(x), 1)\n",
      2, 12, Type::F32);
  add("divided and wrapped",
      "f(x[i,j], a[i / m, j], b[i % m], c[(i / 2) % m, j % (n / 2)], d[j / (n / 2)], e[], m) -> (y[i,j])\n"
      "    y = x * a + b * c - d * e + m * i / (j + n)\n",
      7, 10, Type::F32)
      .constants["m"] = 3;
  Case& picked = add("rows picked",
                     "f(x[i,j], at[i / 2], table[at, j % (n / 2)], slot[i]) -> (y[i,j], cache[slot, j])\n"
                     "    y = x * table + select(table == 0, 1, 0)\n    cache = y\n",
                     6, 8, Type::F32, {{"at", Type::I32}, {"slot", Type::I64}});
  picked.rules = {{"at", Bits{1, 0xFFFFFFFFu, 4}}, {"slot", Bits{3, 0, ~std::uint64_t{0}, 7, 4, 1}}};
  picked.table_rows = {{"table", 4}, {"cache", 5}};
  Case& beyond =
      add("rows picked beyond the table",
          "f(at[i], table[at, j], whole[at, j]) -> (y[i,j], z[i,j], w[i,j])\n    y = -table\n    z = -whole\n"
          "    w = 1 / min(table, -table)\n",
          4, 3, Type::F32, {{"at", Type::I32}, {"whole", Type::I32}});
  beyond.rules = {{"at", Bits{0, 7, 1, 0xFFFFFFFFu}}, {"whole", whole(-9, 9)}};
  beyond.table_rows = {{"table", 2}, {"whole", 2}};
  Case& integers = add("comparisons in integers",
                       "f(t[i,j], u[i,j], s[i,j], c) -> (y[i,j], z[i,j], v[i,j], w[i,j])\n"
                       "    y = select(t < u, 1, 0) + select(t == u, 2, 0) + select(t <= 16777217, 4, 0)\n"
                       "    z = select(t * 1 < u, 1, 0) + select(t * 1 == u * 1, 2, 0) + select(t == c, 4, 0)\n"
                       "    v = select(rotate(u, 1) == t, 1, 0) + select(s < j, 2, 0) + select(i == j, 4, 0)\n"
                       "    w = t - u\n",
                       3, 8, Type::F32, {{"t", Type::I64}, {"u", Type::I32}, {"s", Type::U8}});
  integers.constants["c"] = 16777217;
  integers.rules["t"] = Bits{16777217, 16777216, 16777218, 5, ~std::uint64_t{0}, 0x7FFFFFFFFFFFFFFFu, 2147483647};
  integers.rules["u"] = Bits{16777216, 16777217, 16777217, 5, 0x80000000u, 0x7FFFFFFFu};
  integers.rules["s"] = whole(0, 9);
  Case& absent = add("absent operands",
                     "f(x[i,j], w[j] = 0.3, r[i] = ..., d[i,j] = 0, k = 1) -> (y[i,j], z[i,j])\n"
                     "    r = rsqrt(mean(x * x) + 1e-6)\n    y = cast(x * r, y) * w + d\n"
                     "    z = cast(y, z) * k + cast(x, w)\n",
                     3, 9, Type::F32, {{"y", Type::BF16}});
  for (const char* name : {"w", "r", "d"}) absent.types.erase(name);
  return cases;
}

std::vector<Case> random_cases() {
  std::vector<Case> cases;
  const std::string uniform =
      "f(x[i,j], seed[]) -> (y[i,j], z[i,j])\n    y = random(seed, 0)\n"
      "    z = select(random(seed, 4294967295) < 0.5, 0, x * 2)\n";
  for (Type type : {Type::F32, Type::F64})
    cases.push_back({.name = fmt::format("random in {}", name(type)),
                     .program = uniform,
                     .rows = 5,
                     .columns = 13,
                     .types = all(uniform, type, {{"seed", Type::I64}}),
                     .rules = {{"seed", Bits{0xFEDCBA9876543210u}}}});
  const std::string part =
      "f(seed[], x[i,j], first = 4294967294, column = 6) -> (y[i,j], z[i,j], w[i,j])\n"
      "    y = random(seed, 2, first, column)\n    z = random(seed, 2, 0, 1073741823 - column) + x\n"
      "    w = rotate(random(seed, 7, 3 * first, column / 2), 2)\n";
  for (Type type : {Type::F32, Type::F64})
    cases.push_back({.name = fmt::format("random numbers of a part in {}", name(type)),
                     .program = part,
                     .rows = 5,
                     .columns = 13,
                     .types = all(part, type, {{"seed", Type::I64}}),
                     .rules = {{"seed", Bits{0xFEDCBA9876543210u}}}});
  const std::string rounded = "f(x[i,j], seed[]) -> (q[i,j])\n    q = cast_stochastic(x, q, random(seed, 3))\n";
  for (const TypeFacts& type : type_facts)
    for (Type compute : {Type::F32, Type::F64}) {
      cases.push_back({.name = fmt::format("cast_stochastic from {} to {}", name(compute), type.name),
                       .program = rounded,
                       .rows = 2,
                       .columns = 44,
                       .types = {{"x", compute}, {"seed", Type::I64}, {"q", type.type}},
                       .rules = {{"seed", Bits{77}}, {"x", range(-9, 9)}}});
      cases.push_back(cases.back());
      cases.back().name += ": specials", cases.back().rules["x"] = specials(compute);
    }
  return cases;
}

}  // namespace trireme::vectors

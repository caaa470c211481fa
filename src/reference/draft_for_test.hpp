// Bound programs built by hand, with memory to run them on. Tests only.
#pragma once
#include <gtest/gtest.h>

#include <cmath>

#include "ir/build.hpp"
#include "layout/buffers.hpp"
#include "reference/reference.hpp"
#include "support/float_types.hpp"

namespace trireme {

inline Spread spread(bool row, bool column) {
  Spread made;
  made.row.present = row;
  made.column.present = column;
  return made;
}
inline const Spread per_element = spread(true, true), per_row = spread(true, false), per_column = spread(false, true),
                    one_value = spread(false, false);

// A bound program under construction. Not to be moved: its expressions point to it.
struct Draft {
  Program program;
  std::vector<double> constants;
  explicit Draft(Type compute = Type::F32) { program.compute = compute; }
  Draft(const Draft&) = delete;

  Formula operand(std::string name, Spread spread, Type type = Type::F32) {
    program.operands.push_back({.name = std::move(name), .spread = spread, .type = type});
    constants.push_back(0);
    return {&program, program.add(Op::Operand, {}, static_cast<std::int64_t>(program.operands.size()) - 1)};
  }
  Formula constant(std::string name, double value) {
    program.operands.push_back({.name = std::move(name), .constant = true});
    constants.push_back(value);
    return {&program, program.add(Op::Constant, {}, static_cast<std::int64_t>(program.operands.size()) - 1)};
  }
  Formula leaf(Op op) { return {&program, program.add(op)}; }
  Formula number(double value) { return {&program, program.number(value)}; }
  Axis axis(double divide, double wrap) {  // 0: none
    return {true, divide ? program.number(divide) : no_node, wrap ? program.number(wrap) : no_node};
  }
  void result(std::string name, Spread spread, Formula value, Type type = Type::F32) {
    program.results.push_back({.name = std::move(name), .spread = spread, .value = value.id, .type = type});
  }
};

// A draft with memory for one shape. Operands are filled by value(i, j) of their entries.
struct Trial {
  const Draft& draft;
  std::int64_t rows, columns;
  Buffers buffers;

  Trial(const Draft& draft, std::int64_t rows, std::int64_t columns)
      : draft(draft), rows(rows), columns(columns), buffers(make_buffers(draft.program, {rows, columns}).value()) {}

  template <typename Value>
  Trial& fill(std::string_view name, Value&& value) {
    Buffer& buffer = buffers.operands[draft.program.find_operand(name).value()];
    for (std::int64_t r = 0; r < buffer.row_extent; ++r)
      for (std::int64_t c = 0; c < buffer.column_extent; ++c)
        store_f64(buffer.array.type, buffer.array.entry(r, c), value(r, c));
    return *this;
  }
  Trial& run() {
    // Every byte must be written: what is not, is seen.
    for (Buffer& result : buffers.results) std::fill(result.memory.begin(), result.memory.end(), std::byte{0xA5});
    std::vector<Array> arrays = buffers.arrays();
    Status status = run_reference(draft.program, {rows, columns, draft.constants, arrays});
    EXPECT_TRUE(status.has_value()) << (status ? "" : status.error().message);
    return *this;
  }
  double operator()(std::string_view name, std::int64_t r, std::int64_t c = 0) const {
    const Buffer& buffer = buffers.results[draft.program.find_result(name).value()];
    EXPECT_LT(r, buffer.row_extent);
    EXPECT_LT(c, buffer.column_extent);
    return load_f64(buffer.array.type, buffer.array.entry(r, c));
  }
};

inline Formula mean(Draft& draft, Formula e) { return sum(e) / draft.leaf(Op::ColumnCount); }
inline Formula rsqrt(Formula e) { return 1.0 / sqrt(e); }
inline Formula amax(Formula e) { return e.with(Op::Amax, {e.id}); }
inline Formula amin(Formula e) { return e.with(Op::Amin, {e.id}); }
inline Formula round_to(Formula e, Type type) { return e.with(Op::RoundTo, {e.id}, static_cast<std::int64_t>(type)); }

struct RmsNorm : Draft {
  explicit RmsNorm(Type storage = Type::F32, double eps_value = 1e-6, Type compute = Type::F32) : Draft(compute) {
    Formula x = operand("x", per_element, storage), gamma = operand("gamma", per_column, storage);
    Formula eps = constant("eps", eps_value);
    Formula rstd = rsqrt(mean(*this, x * x) + eps);
    result("y", per_element, x * rstd * gamma, storage);
    result("rstd", per_row, rstd, compute);
  }
};

// Values whose sums depend on the order of addition: signs, magnitudes and last bits all vary.
inline double rough(std::int64_t i, std::int64_t j) {
  std::uint64_t h = static_cast<std::uint64_t>(i * 1000003 + j + 1) * 0x9E3779B97F4A7C15u;
  h ^= h >> 29;
  h *= 0xBF58476D1CE4E5B9u;
  double unit = static_cast<double>(h >> 40) * 0x1p-23 - 1;
  return std::ldexp(unit, static_cast<int>((h >> 8) % 24) - 12);
}

}  // namespace trireme

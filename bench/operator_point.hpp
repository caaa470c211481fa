// A point of the tables: an operator in one direction, one storage type, one width.
#pragma once
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "language/parse.hpp"
#include "passes/passes.hpp"
#include "plan/ops.hpp"
#include "plan/remarks.hpp"
#include "plan/resolve.hpp"
#include "schedule/config.hpp"
#include "targets/targets.hpp"

namespace trireme::bench {

template <typename T>
T must(Result<T> result) {
  if (!result) {
    fmt::print(stderr, "{}: {}\n", name(result.error().code), result.error().message);
    std::exit(1);
  }
  return std::move(*result);
}

inline bool is_element(const Spread& spread) { return spread.row.present && spread.column.present; }

inline const OperatorText* operator_text(std::string_view name) {
  for (const OperatorText& each : operator_texts())
    if (each.name == name) return &each;
  fmt::print(stderr, "there is no operator {}\n", name);
  std::exit(2);
}

struct Point {
  const OperatorText* op;
  bool backward;
  Type type;
  std::int64_t columns;

  std::string name() const {
    return fmt::format("{} {} {} {}", op->name, backward ? "backward" : "forward", trireme::name(type), columns);
  }

  // As the operator's first '#: try' line has it, which gives the constants and types that it needs; arrays of so many
  // bytes.
  Result<Problem> problem(std::int64_t bytes_an_array) const {
    TRIREME_TRY(remarks, parse_remarks(op->text));
    TRIREME_TRY(problem, parse_problem(fmt::format("{} {}", op->name, remarks.tries.at(0))));
    TRIREME_TRY(forward, parse(op->text));
    problem.shape = {facts(bytes_an_array).rows, columns};
    problem.axes = 1;
    problem.backward = backward;
    problem.absent.clear();
    for (const Operand& operand : forward.operands)
      if (is_element(operand.spread)) {
        problem.types[operand.name] = type;
        break;
      }
    return problem;
  }

  Result<Program> program() const {
    TRIREME_TRY(problem, this->problem(std::int64_t{1} << 28));
    TRIREME_TRY(resolved, resolve(problem, op->text));
    return std::move(resolved.expanded);
  }

  // Arrays begin at multiples of 16 bytes.
  Facts facts(std::int64_t bytes_an_array) const {
    return {.rows = bytes_an_array / static_cast<std::int64_t>(bytes(type)) / columns,
            .columns = columns,
            .alignment = std::min<std::int64_t>(16, columns & -columns)};
  }
};

}  // namespace trireme::bench

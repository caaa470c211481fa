#include "plan/manifest.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ir/contract.hpp"
#include "layout/indexing.hpp"

namespace trireme {
namespace {

const char* kind_name(Slot::Kind kind) {
  switch (kind) {
    case Slot::Kind::Columns: return "columns";
    case Slot::Kind::OperandPointer: return "operand";
    case Slot::Kind::OperandStride: return "operandStride";
    case Slot::Kind::OperandColumnStride: return "operandColumnStride";
    case Slot::Kind::OperandEvery: return "operandEvery";
    case Slot::Kind::OperandJump: return "operandJump";
    case Slot::Kind::ResultEvery: return "resultEvery";
    case Slot::Kind::ResultJump: return "resultJump";
    case Slot::Kind::ResultPointer: return "result";
    case Slot::Kind::ResultStride: return "resultStride";
    case Slot::Kind::ResultColumnStride: return "resultColumnStride";
    case Slot::Kind::Constant: return "constant";
    case Slot::Kind::RowBlock: return "rowBlock";
    case Slot::Kind::Blocks: return "blocks";
    case Slot::Kind::Partials: return "partials";
    case Slot::Kind::PartialStride: return "partialStride";
    case Slot::Kind::SumNumber: return "sum";
    case Slot::Kind::Scratch: return "scratch";
    case Slot::Kind::Terms: return "terms";
  }
  return "";
}

// Names are identifiers and need no escapes.
std::string axis(const AxisIndexing& axis) {
  if (!axis.present) return "null";
  return fmt::format(R"({{"divide":{},"wrap":{}}})", axis.divide, axis.wrap);
}

std::string number(double value) {  // JSON has no names for these
  if (std::isnan(value)) return "\"NaN\"";
  if (std::isinf(value)) return value > 0 ? "\"Infinity\"" : "\"-Infinity\"";
  return fmt::format("{}", value);
}

template <typename Range, typename Print>
std::string list(const Range& range, Print&& print) {
  std::string text;
  for (const auto& each : range) text += (text.empty() ? "" : ",") + print(each);
  return "[" + text + "]";
}

}  // namespace

Result<std::string> manifest_of(const Program& program, const Kernels& kernels, const Config& config,
                                const ManifestOptions& options) {
  bool fixed = config.columns != 0 || has(program, Op::Rotate);  // which bind has made a number of columns
  std::vector<std::string> operands, results;
  for (std::size_t k = 0; k < program.operands.size(); ++k) {
    const Operand& operand = program.operands[k];
    if (operand.constant) {
      operands.push_back(fmt::format(R"({{"name":"{}","constant":{}}})", operand.name, number(options.constants[k])));
      continue;
    }
    TRIREME_TRY(where, indexing(program, operand.spread, options.columns, options.constants));
    fixed = fixed || !operand.spread.plain();
    operands.push_back(fmt::format(R"({{"name":"{}","type":"{}","row":{},"column":{}}})", operand.name,
                                   name(*operand.type), axis(where.row), axis(where.column)));
  }
  for (const Output& result : program.results) {
    TRIREME_TRY(where, indexing(program, result.spread, options.columns, options.constants));
    fixed = fixed || !result.spread.plain();
    results.push_back(fmt::format(R"({{"name":"{}","type":"{}","row":{},"column":{}}})", result.name,
                                  name(*result.type), axis(where.row), axis(where.column)));
  }
  std::int64_t scratch = kernels.rows.scratch_bytes, per_stripe = kernels.rows.scratch_bytes_per_stripe;
  for (const Kernel& kernel : kernels.columns) {
    scratch = std::max(scratch, kernel.scratch_bytes);
    per_stripe = std::max(per_stripe, kernel.scratch_bytes_per_stripe);
  }
  const auto same = [](const std::string& text) { return text; };
  return fmt::format(
      R"({{"format":2,"contract":{},"program":"{}","compute":"{}",{}"columns":{},"operands":{},"results":{},)"
      R"("slots":{},"scratch":{{"bytes":{},"bytesPerStripe":{}}},"sums":{}}})",
      contract::version, program.name, name(*program.compute), options.of_target, fixed ? options.columns : 0,
      list(operands, same), list(results, same),
      list(kernels.rows.slots,
           [](const Slot& slot) {
             if (slot.kind != Slot::Kind::SumNumber)
               return fmt::format(R"(["{}",{}])", kind_name(slot.kind), slot.index);
             return fmt::format(R"(["{}",{},"{}"])", kind_name(slot.kind), slot.index, sum_number_names[slot.jump]);
           }),
      scratch, per_stripe, list(kernels.sums, [](const SumClass& sums) {
        return fmt::format(R"({{"row":{},"column":{},"results":{}}})", axis(sums.where.row), axis(sums.where.column),
                           sums.results.size());
      }));
}

}  // namespace trireme

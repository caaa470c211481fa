#include "plan/manifest.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ir/contract.hpp"
#include "layout/indexing.hpp"

namespace trireme {
namespace {

// What a loader fills a slot with: a name, and which operand, result or class of sums it is of.
std::string text_of(const Slot& slot, const Program& program) {
  const auto operands = static_cast<int>(program.operands.size());
  const auto entry = [](std::string_view name, int number) { return fmt::format(R"(["{}",{}])", name, number); };
  const auto of_array = [&](std::string_view what) {
    const bool result = slot.array >= operands;
    return entry(fmt::format("{}{}", result ? "result" : "operand", what), slot.array - (result ? operands : 0));
  };
  switch (slot.what) {
    case Slot::What::Pointer:
      if (slot.array == scratch_array) return entry("scratch", 0);
      if (slot.array == terms_array) return entry("terms", 0);
      return slot.array < 0 ? entry("partials", class_of_partials(slot.array)) : of_array("");
    case Slot::What::Stride:
      return slot.array < 0 ? entry("partialStride", class_of_partials(slot.array)) : of_array("Stride");
    case Slot::What::ColumnStride: return of_array("ColumnStride");
    case Slot::What::Every: return of_array("Every");
    case Slot::What::Jump: return of_array("Jump");
    case Slot::What::Rows: return of_array("Rows");
    case Slot::What::Value: return entry("constant", slot.array);
    case Slot::What::Columns: return entry("columns", 0);
    case Slot::What::RowBlock: return entry("rowBlock", slot.array);
    case Slot::What::Blocks: return entry("blocks", slot.array);
    case Slot::What::SumNumber: return fmt::format(R"(["sum",{},"{}"])", slot.array, sum_number_names[slot.which]);
  }
  return "";
}

// Names are identifiers and need no escapes.
std::string axis(const AxisIndexing& axis) {
  if (!axis.present) return "null";
  if (axis.picked) return R"({"picked":true})";
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
  for (std::size_t k = 0; k < program.array_count(); ++k) {
    const Program::Array what = program.array(k);
    std::vector<std::string>& texts = what.result ? results : operands;
    if (!what.in_memory) {
      texts.push_back(fmt::format(R"({{"name":"{}","constant":{}}})", what.name, number(options.constants[k])));
      continue;
    }
    TRIREME_TRY(where, indexing(program, what.spread, options.columns, options.constants));
    fixed = fixed || !what.spread.plain();
    const Type type = *(options.bound ? *options.bound : program).array(k).type;
    texts.push_back(fmt::format(R"({{"name":"{}","type":"{}","row":{},"column":{}}})", what.name, name(type),
                                axis(where.row), axis(where.column)));
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
      list(kernels.rows.slots, [&](const Slot& slot) { return text_of(slot, program); }), scratch, per_stripe,
      list(kernels.sums, [](const SumClass& sums) {
        return fmt::format(R"({{"row":{},"column":{},"results":{}}})", axis(sums.where.row), axis(sums.where.column),
                           sums.results.size());
      }));
}

}  // namespace trireme

#include "receipt/from_views.hpp"

#include <algorithm>

#include "language/parse.hpp"
#include "problem/problem_shape.hpp"
#include "receipt/view_rows.hpp"

namespace trireme::receipts {
namespace {

Error misfit(const std::string& what) { return {Code::InvalidArgument, "receipt: " + what}; }

Dims without_ones(const Dims& shape) {
  Dims kept;
  for (const std::int64_t extent : shape)
    if (extent != 1) kept.push_back(extent);
  return kept;
}

}  // namespace

Result<Receipt> receipt_of(std::string_view text, const std::map<std::string, View>& arrays,
                           const ReceiptOptions& options) {
  TRIREME_TRY(program, parse(text));
  Problem problem{.program = program.name, .axes = options.axes, .constants = options.constants};
  for (const auto& [name, view] : arrays) {
    bool known = false;
    for (std::size_t k = 0; k < program.array_count(); ++k)
      known = known || (program.array(k).in_memory && program.array(k).name == name);
    if (!known) return misfit(program.name + " has no array '" + name + "'");
    problem.types[name] = view.type;
  }
  std::vector<const Dims*> shapes;
  for (std::size_t k = 0; k < program.array_count(); ++k) {
    const Program::Array array = program.array(k);
    const auto given = arrays.find(array.name);
    shapes.push_back(given == arrays.end() ? nullptr : &given->second.shape);
    if (!array.in_memory) continue;
    if (given == arrays.end()) {
      if (!array.result && program.operands[k].fallback == no_node)
        return misfit(program.name + " needs the operand '" + array.name + "'");
      problem.absent.insert(array.name);
    } else if (array.spread.row.picked() && !given->second.shape.empty()) {
      problem.placements[array.name].rows = given->second.shape[0];
    }
  }
  TRIREME_TRY(shape, problem_shape(
                         program, [&](std::size_t k) { return shapes[k]; }, last(options.axes), options.constants));
  problem.shape.assign(shape.begin(), shape.end());
  TRIREME_CHECK(parse_problem(trireme::print(problem)));  // the limits of shapes
  TRIREME_TRY(laid, prepare_problem(problem, text, Fill::NoMemory));
  return make_receipt(laid, text, options.hash, [&](std::size_t k) -> Result<ReadRows> {
    const Program::Array array = laid.bound.array(k);
    const View& view = arrays.at(array.name);
    const Buffer& buffer = laid.buffer(k);
    TRIREME_TRY(index, indexing(laid.bound, array.spread, problem.columns()));
    const Dims wanted =
        axes_of(index, shape, options.axes, array.spread.row.picked() ? problem.placements[array.name].rows : -1).all();
    if (without_ones(view.shape) != without_ones(wanted))
      return misfit("'" + array.name + "' has the shape " + trireme::print(view.shape) + ", and " +
                    trireme::print(wanted) + " is expected");
    return reader_of(view, {array.name, *array.type, buffer.row_extent, buffer.column_extent});
  });
}

Result<std::map<std::string, ReadRows>> readers_of(const Receipt& receipt, const std::map<std::string, View>& arrays) {
  std::map<std::string, ReadRows> readers;
  for (const auto& [name, view] : arrays) {
    const ArrayDigests* found = nullptr;
    for (const auto* list : {&receipt.operands, &receipt.results})
      for (const ArrayDigests& each : *list)
        if (each.name == name) found = &each;
    if (!found) return misfit("it has no array '" + name + "'");
    TRIREME_TRY(read, reader_of(view, *found));
    readers.emplace(name, read);
  }
  return readers;
}

}  // namespace trireme::receipts

// What a call's views must be.
#include <algorithm>

#include "layout/elements.hpp"
#include "layout/flatten.hpp"
#include "plan/plan_state.hpp"

namespace trireme {
namespace {

std::span<const std::int64_t> part(const Dims& dims, std::size_t first, std::size_t count) {
  return {dims.begin() + first, count};
}

bool equal(std::span<const std::int64_t> a, const Dims& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

bool all_ones(std::span<const std::int64_t> extents) {
  return std::all_of(extents.begin(), extents.end(), [](std::int64_t extent) { return extent == 1; });
}

// How many axes of `shape` belong to rows; nothing where the shape is not one of this array's.
std::optional<std::size_t> row_axes(const PlanState& plan, const PlanArray& array, const Dims& shape) {
  std::size_t rank = shape.size(), outer = plan.shape.size() - static_cast<std::size_t>(plan.axes);
  if (array.indexing.row.picked)  // a table has rows of its own
    return rank == 1 + array.axes.columns.size() && equal(part(shape, 1, rank - 1), array.axes.columns)
               ? std::optional<std::size_t>(1)
               : std::nullopt;
  if (shape == array.shape()) return array.axes.rows.size();
  auto fits = [](std::span<const std::int64_t> given, const AxisIndexing& axis, const Dims& wanted) {
    return axis.present ? axis.plain() && equal(given, wanted) : all_ones(given);
  };
  if (rank == plan.shape.size() && fits(part(shape, 0, outer), array.indexing.row, array.axes.rows) &&
      fits(part(shape, outer, rank - outer), array.indexing.column, array.axes.columns))
    return outer;
  bool scalar = !array.indexing.row.present && !array.indexing.column.present;
  if (scalar && rank == 1 && shape[0] == 1) return 0;
  return std::nullopt;
}

std::string expected_shape(const PlanArray& array) {
  if (!array.indexing.row.picked) return print(array.shape());
  return "any number of rows, then " + print(array.axes.columns);
}

std::string with_ones(const PlanState& plan, const PlanArray& array) {
  if (!array.indexing.row.plain() || !array.indexing.column.plain()) return "";
  Dims full = plan.shape;
  std::size_t outer = full.size() - static_cast<std::size_t>(plan.axes);
  for (std::size_t k = 0; k < full.size(); ++k)
    if (k < outer ? !array.indexing.row.present : !array.indexing.column.present) full[k] = 1;
  return full == array.shape() ? "" : " or " + print(full);
}

Status check_view(const PlanState& plan, const PlanArray& array, const View& view, Extent& extent) {
  auto wrong = [&](Code code, const std::string& what) { return plan.wrong(code, array.name + ": " + what); };
  extent = {.array = {.data = view.data.writable(), .type = in_bytes({.type = array.type}).type},
            .rows = array.rows,
            .columns = array.columns};
  bool empty = array.rows == 0 || array.columns == 0;
  if (!view.data && !array.needed) {
    extent.rows = 0;
    extent.array.column_stride = 1;  // as compiled code expects of arrays that it does not read, too
    return Done{};
  }
  if (!view.data && !empty)
    return wrong(Code::InvalidArgument,
                 array.result
                     ? "a null pointer for a result that the plan stores; list the results to store in .results"
                     : "a null pointer for an operand; one that has a default may be listed in .absent");
  if (array.result && view.data.is_const())
    return wrong(Code::InvalidArgument, "the view is of const data, and a result is written");
  if (view.type != array.type && !(empty && !view.data))
    return wrong(Code::InvalidArgument, "the view is " + std::string(name(view.type)) + ", the plan was made for " +
                                            std::string(name(array.type)));
  if (reinterpret_cast<std::uintptr_t>(view.data.get()) % bytes(array.type) != 0)
    return wrong(Code::InvalidArgument,
                 "the address is no multiple of the " + std::to_string(bytes(array.type)) + " bytes of an element");
  Result<Array> flat = flattened(plan, array, view);
  if (!flat) return flat.error();
  ArrayLayout layout = layout_of(*flat, array.columns);
  if (!array.layout.covers(layout))
    return wrong(Code::Unsupported,
                 std::string(layout.strided ? "the columns do not lie side by side"
                                            : "the rows have strides of their own that do not make one") +
                     ", and the plan was made for others; give these strides in .strides when the plan is made");
  extent.array = *flat;
  if (array.indexing.row.picked) {
    extent.rows = flat->table_rows;
    if (extent.rows < 1) return wrong(Code::InvalidArgument, "a table has at least one row to pick");
  }
  std::optional<ByteRange> range = checked_byte_range(extent);
  if (!range) return wrong(Code::InvalidArgument, "the strides reach beyond 2^61 bytes");
  if (view.bytes != unknown_bytes && static_cast<std::uint64_t>(range->high) > view.bytes) {
    Error error = wrong(Code::BufferTooSmall, std::to_string(range->high) + " bytes are needed, and the buffer has " +
                                                  std::to_string(view.bytes));
    error.needed = range->high;
    error.got = static_cast<std::int64_t>(view.bytes);
    return error;
  }
  if (array.result && overlaps_itself(extent))
    return wrong(Code::InvalidArgument, "entries of a result share memory; a result has a place for each of them");
  return Done{};
}

Status check_memory(const PlanState& plan, const PlanArray& array, const void* data, const void*& known) {
  if (!data || data == known) return Done{};
  known = nullptr;
  if (Status status = plan.direct->check_memory(data); !status)
    return plan.wrong(status.error().code, array.name + ": " + status.error().message);
  known = data;
  return Done{};
}

Status check_overlap(const PlanState& plan, const std::vector<Extent>& extents, std::size_t result, std::size_t other) {
  const PlanArray &to = plan.arrays[result], &from = plan.arrays[other];
  Overlap found = overlap(extents[result], extents[other]);
  if (found == Overlap::None) return Done{};
  bool declared = to.in_place == other;
  if (found == Overlap::Identical && declared) return Done{};
  std::string what = to.name + " and " + from.name + ": ";
  if (found == Overlap::Unknown)
    return plan.wrong(Code::Unsupported, what +
                                             "they lie among each other in too many pieces to be judged; use "
                                             "memory of its own for " +
                                             to.name);
  if (from.result) return plan.wrong(Code::InvalidArgument, what + "two results share memory");
  if (found == Overlap::Identical)
    return plan.wrong(Code::InvalidArgument, what +
                                                 "the result lies on the operand; say so when the plan is made: "
                                                 ".in_place = {{\"" +
                                                 to.name + "\", \"" + from.name + "\"}}");
  return plan.wrong(Code::InvalidArgument, what + "the result overlaps the operand in part; they may be " +
                                               (declared ? "identical or " : "") + "disjoint");
}

}  // namespace

Result<Array> flattened(const PlanState& plan, const PlanArray& array, const View& view) {
  auto wrong = [&](Code code, const std::string& what) { return plan.wrong(code, array.name + ": " + what); };
  if (view.shape.size() > max_rank || view.strides.size() > max_rank)
    return wrong(Code::InvalidArgument,
                 "a view has at most 8 axes, not " + std::to_string(std::max(view.shape.size(), view.strides.size())));
  // A view without a shape has the expected one; one that has strides, too, may give both in full.
  bool unsaid = view.shape.empty() && (view.strides.empty() || !array.shape().empty());
  const Dims shape = unsaid ? array.shape() : view.shape;
  std::optional<std::size_t> outer = row_axes(plan, array, shape);
  if (!outer)
    return wrong(Code::InvalidArgument, "the view has the shape " + print(shape) + ", expected " +
                                            expected_shape(array) + with_ones(plan, array));
  Dims strides = view.strides;
  if (strides.empty()) strides = shape == array.shape() ? array.strides : contiguous_strides(shape);
  if (strides.size() != shape.size())
    return wrong(Code::InvalidArgument,
                 "the strides " + print_strides(strides) + " are not those of the shape " + print(shape));
  std::size_t inner = shape.size() - *outer;
  ArrayAxes axes{Dims(part(shape, 0, *outer)), Dims(part(shape, *outer, inner))};
  Array flat = placed(array.type, array.indexing, axes, strides);
  flat.data = view.data.writable();
  const std::int64_t rows = array.indexing.row.picked ? flat.table_rows : array.rows;
  if (const auto why = why_not_in_bytes(flat, rows, 2 * array.columns))
    return wrong(Code::InvalidArgument, std::string(*why));
  return in_bytes(flat);
}

Status check_arguments(ArgsState& args) {
  const PlanState& plan = *args.plan;
  args.checked = false;
  args.workspace = nullptr;
  if (!args.unknown.empty()) return plan.unknown(args.unknown);
  for (std::size_t k = 0; k < plan.arrays.size(); ++k) {
    TRIREME_CHECK(check_view(plan, plan.arrays[k], args.views[k], args.extents[k]));
    args.arrays[plan.arrays[k].number] = args.extents[k].array;
    TRIREME_CHECK(check_memory(plan, plan.arrays[k], args.views[k].data.get(), args.known[k]));
  }
  for (std::size_t k = 0; k < plan.arrays.size(); ++k)
    for (std::size_t other = 0; plan.arrays[k].result && other < plan.arrays.size(); ++other)
      if (!plan.arrays[other].result || other > k) TRIREME_CHECK(check_overlap(plan, args.extents, k, other));
  args.checked = true;
  return Done{};
}

// By the bytes between an array's first and last: what lies in the gaps of strided arrays is refused, too.
Status check_workspace(ArgsState& args, std::span<std::byte> workspace) {
  const PlanState& plan = *args.plan;
  const auto begin = reinterpret_cast<std::uintptr_t>(workspace.data());
  const std::uintptr_t end = begin + static_cast<std::uintptr_t>(plan.memory.workspace);
  for (std::size_t k = 0; k < plan.arrays.size(); ++k) {
    const ByteRange range = byte_range(args.extents[k]);
    const auto data = reinterpret_cast<std::uintptr_t>(args.extents[k].array.data);
    if (range.low == range.high || data + static_cast<std::uintptr_t>(range.high) <= begin ||
        data + static_cast<std::uintptr_t>(range.low) >= end)
      continue;
    return plan.wrong(Code::InvalidArgument, "the workspace and " + plan.arrays[k].name + " share memory");
  }
  args.workspace = workspace.data();
  return Done{};
}

}  // namespace trireme

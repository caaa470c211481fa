// Column sums as kernels see them; a column maximum is one whose values are not added: the larger one is kept.
//
// What lands on one entry is summed along the row first, where several of its columns do, and then over rows. Row
// blocks depend on which rows share an entry and on how many entries there are: results that agree in both, and in
// what becomes of two values, are a class, walked together. A result [] has the sums of the rows, added up as one row:
// whoever walks them.
#pragma once
#include <optional>
#include <vector>

#include "ir/program.hpp"
#include "schedule/kernel.hpp"

namespace trireme {

// Column sums whose columns share one entry take the row's sum, a value per row, as their argument from here on,
// with payload `of_row_values`. Others stay as they are.
inline constexpr std::int64_t of_row_values = 1;
// Where there are none, the program itself; else `made` holds what is returned.
const Program& with_row_sums(const Program& program, std::optional<Program>& made);

// An axis whose divisors are numbers, or numbers by n; Unsupported where they are not yet: 0 columns are not known.
Result<AxisIndexing> fixed_axis(const Program& program, const Axis& axis, std::int64_t columns);

// What a thread block keeps of groups' terms in its scratch, at most; terms of longer rows lie in the workspace.
inline constexpr std::int64_t most_group_bytes = 1 << 16;

// Is it a column sum into entries of each row's own? Those are the row's results, and no class's.
bool sums_own_row(const Program& program, const Output& result);

// The classes of a program's column sums; those over everything last. Unsupported where a divisor is not yet a number.
Result<std::vector<SumClass>> sum_classes(const Program& program, std::int64_t columns);

// Thread machines: the class whose row blocks the kernel `rows` walks, that of most results; none where no sums go by
// blocks.
std::optional<std::size_t> walked_class(const std::vector<SumClass>& classes);

// Where that class sums over rows i / d: its entries, each of which one team may take.
struct EntrySums {
  std::int64_t rows = 0;  // d; 0: there are none
  int results = 0;
  std::int64_t row_block = 0;  // as in SumClass
  int levels = 0;              // of pair sums, enough for the blocks of an entry but its last
};
EntrySums entry_sums(const SumClass& sums, std::int64_t columns);
EntrySums entry_sums(const Program& program, std::int64_t columns);

// Are kernels made for one number of columns? How sums are cut depends on divisors, and so on n where those do; and
// groups of columns are a matter of n.
bool fixes_columns(const Program& program);

// The program with the results of one class alone, or without those of some; the others keep their places.
Program keep_only(const Program& program, const SumClass& wanted);
Program leave_out(const Program& program, const SumClass& unwanted);

}  // namespace trireme

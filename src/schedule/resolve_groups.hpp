// Reductions inside groups of columns as kernels see them, the number of columns being known.
#pragma once
#include <optional>
#include <vector>

#include "schedule/config.hpp"
#include "schedule/stages.hpp"

namespace trireme {

// What groups are divided or wrapped by becomes a number of at most `columns`. Groups of one column are their values,
// one group of all columns is the row, and counts of columns that are the same in all groups are numbers. Where there
// are none, the program itself; else `made` holds what is returned.
const Program& resolve_groups(const Program& program, std::int64_t columns, std::optional<Program>& made);

// Of a program with its row sums (with_row_sums): the columns of a group that kernels take in place of rule 4's stripe,
// on thread machines, so that shuffles reach all of it. That is where the columns are no power of two and the row
// itself is not reduced; and where columns are wrapped, of which a thread then has the same few remainders throughout
// (wrapped_groups.hpp). Else 0.
std::int64_t group_of_stripes(const Program& program, std::int64_t columns);

// The reductions inside groups that a value is made of at its own columns, themselves not what they are made of.
std::vector<NodeId> groups_below(const Program& program, NodeId root);

// By node of a resolved program: does a chunk of columns hold all of a group, as lanes and elements that differ in some
// bits of their number? Or, of j % g on simd machines, do a short row's unrolled chunks? Such a reduction is made of
// shuffles, and is known at once.
std::vector<bool> groups_in_chunks(const Program& program, const Config& config);

// On simd machines: is it little code to make the terms of all groups that no chunk holds where they are added up?
bool are_rematerialised(const Program& program, const Config& config, const std::vector<bool>& in_chunk);

// The stages of a program as every schedule of a machine for so many columns has them: groups of neighbours inside a
// stripe are in the registers of a thread machine's warps, whatever the schedule.
Stages stages_on(const Machine& machine, const Program& given, const Facts& facts);

// How many chunks of `lanes` columns stand beside each other so that a loop over a row has groups in registers; 1 where
// there are none of several.
int chunks_of_groups(const Program& program, std::int64_t columns, int lanes);

}  // namespace trireme

// Groups of columns written in C++: `sum(x, build.j() / 32)` and `sum(entries(e, build.j() / 32))`.
#include <algorithm>

#include "ir/groups.hpp"
#include "language/builder_state.hpp"

namespace trireme {

// Of `entries`, op is Op::Group: a part of the reduction that takes it.
Expr BuilderState::reduction(Op op, std::span<const Expr> args, const std::string& shown) {
  std::vector<std::uint32_t> taken;
  for (const Expr& arg : args) {
    auto id = take(arg, shown);
    if (!id) return wrong();
    taken.push_back(*id);
  }
  const WrittenNode given = nodes[taken[0]];
  const bool over_entries = given.index && given.op == Op::Group && op != Op::Group && taken.size() == 1;
  if (over_entries) {
    GroupReduction kind = group_of(given.payload);
    kind.op = op;
    return add({.op = Op::Group, .args = given.args, .payload = payload_of(kind)});
  }
  if (!check_argument(op == Op::Group ? Op::Sum : op, 0, taken[0], shown)) return wrong();
  if (taken.size() == 1) {
    if (op != Op::Group) return add({.op = op, .args = taken});
    fail(shown + " needs the groups whose entries are meant, build.j() / 32 or build.j() % 4");
    return wrong();
  }
  const WrittenNode by = nodes[taken[1]];
  const bool divides = by.op == Op::Div && !by.index, wraps = by.index && by.op == Op::Div;
  if ((!divides && !wraps) || nodes[by.args[0]].op != Op::ColumnIndex) {
    fail(shown + " takes a group of columns as its second argument, build.j() / 32 or build.j() % 4");
    return wrong();
  }
  const bool entries = op == Op::Group;
  return add({.op = Op::Group,
              .args = {taken[0], by.args[1]},
              .payload = payload_of({entries ? Op::Sum : op, wraps, entries}),
              .index = entries});
}

}  // namespace trireme

#include "schedule/groups_apart.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "ir/contract.hpp"
#include "ir/groups.hpp"
#include "schedule/resolve_groups.hpp"
#include "schedule/row_lowering.hpp"
#include "schedule/shape.hpp"

namespace trireme {
namespace {

struct Grouped {
  NodeId id;
  std::int64_t by;
};

// Those of up to 256 columns that neither a chunk nor the stripes hold.
std::vector<Grouped> left_over(const Program& program, const std::vector<bool>& in_chunk,
                               const WrappedGroups& wrapped) {
  const std::vector<bool> used = reachable(program);
  std::vector<Grouped> left;
  for (NodeId id = 0; id < program.size(); ++id) {
    if (!used[id] || program[id].op != Op::Group || in_chunk[id] || group_of(program[id]).entries) continue;
    const auto by = static_cast<std::int64_t>(as_number(program, program[id].args[1]).value_or(0));
    const bool held = std::any_of(wrapped.groups.begin(), wrapped.groups.end(),
                                  [&](const WrappedGroups::Group& each) { return each.id == id; });
    if (!held && by >= 2 && by <= contract::stripe) left.push_back({id, by});
  }
  return left;
}

// Can a value be made at any column? Not where some group of it is known to a chunk's own threads alone.
bool is_known_anywhere(const Program& program, NodeId root, const std::vector<bool>& in_chunk,
                       const WrappedGroups& wrapped) {
  const std::vector<NodeId> groups = groups_below(program, root);
  return std::none_of(groups.begin(), groups.end(), [&](NodeId id) {
    const bool held = std::any_of(wrapped.groups.begin(), wrapped.groups.end(),
                                  [&](const WrappedGroups::Group& each) { return each.id == id; });
    return held || in_chunk[id];
  });
}

// A layout whose stripes are such groups.
Config layout_of(const Config& config, std::int64_t by, bool wraps) {
  Config own = config;
  own.group =
      wraps && std::has_single_bit(static_cast<std::uint64_t>(by)) ? std::max<std::int64_t>(by, config.vector) : by;
  own.vector = static_cast<int>(std::min<std::int64_t>(config.vector, own.group & -own.group));
  own.ring = 0;
  own.hoist = own.reload = own.stage = false;
  const std::int64_t stripes = (own.stripes_of_row() + own.groups - 1) / own.groups;
  own.stripes = static_cast<int>(next_power(stripes));
  return own;
}

}  // namespace

GroupsApart groups_apart(const Program& program, const Config& config, const WrappedGroups& wrapped) {
  constexpr std::int64_t most_elements = 128;  // of a thread: they are unrolled
  GroupsApart apart;
  if (!has(program, Op::Group)) return apart;
  const std::vector<bool> in_chunk = groups_in_chunks(program, config);
  if (config.simd) {
    if (!are_rematerialised(program, config, in_chunk)) return apart;
    for (const Grouped& each : left_over(program, in_chunk, wrapped))
      if (!is_rotated(program, each.id) && is_known_anywhere(program, program[each.id].args[0], in_chunk, wrapped))
        apart.groups.push_back({.id = each.id, .by = each.by});
    return apart;
  }
  if (!config.stripes || config.cluster > 1) return apart;
  const auto value_bytes = static_cast<std::int64_t>(bytes(*program.compute));
  std::int64_t sent = wrapped.bytes;
  for (const Grouped& each : left_over(program, in_chunk, wrapped)) {
    if (!is_known_anywhere(program, program[each.id].args[0], in_chunk, wrapped)) continue;
    const bool wraps = group_of(program[each.id]).wraps;
    GroupsApart::Group group{
        .id = each.id, .by = each.by, .config = layout_of(config, each.by, wraps), .at = apart.bytes};
    if (std::int64_t{group.config.stripes} * chunks_of(group.config) * group.config.vector > most_elements) continue;
    if (wraps) {
      std::optional<WrappedGroups> how = wrapped_group(each.id, each.by, group.config, *program.compute);
      if (!how) continue;
      group.wrapped = std::move(*how);
      for (WrappedGroups::Group& one : group.wrapped.groups) one.at += sent;
      sent += group.wrapped.bytes;
    }
    constexpr std::int64_t line_values = 64;
    const std::int64_t values =
        wraps ? std::max(each.by, group.config.group) : group_count(config.columns, each.by, false);
    apart.bytes += (values + line_values - 1) / line_values * line_values * value_bytes;
    if (apart.bytes * config.teams + sent > most_group_bytes * 3 / 4) {
      apart.bytes = group.at;
      sent -= group.wrapped.bytes;
      continue;
    }
    apart.groups.push_back(std::move(group));
  }
  return apart;
}

TermsReach terms_reach(const Program& program, const Config& config) {
  const WrappedGroups wrapped = wrapped_groups(program, config);
  const std::size_t left = left_over(program, groups_in_chunks(program, config), wrapped).size();
  if (left == 0) return TermsReach::Registers;
  return groups_apart(program, config, wrapped).groups.size() == left ? TermsReach::ValuesInScratch
                                                                      : TermsReach::Scratch;
}

const GroupsApart::Group* RowLowering::apart(NodeId id) const {
  const auto found = std::find_if(apart_.groups.begin(), apart_.groups.end(),
                                  [&](const GroupsApart::Group& each) { return each.id == id; });
  return found == apart_.groups.end() ? nullptr : &*found;
}

// Before the first row: where each layout's columns lie.
void RowLowering::locate_apart() {
  if (config_.simd) return;
  for (const GroupsApart::Group& each : apart_.groups) {
    Elsewhere& there = elsewhere_.emplace_back(Elsewhere{.config = each.config});
    there.wrapped.interleaved = each.wrapped.interleaved;
    swap_layout(there);
    locate_columns();
    swap_layout(there);
    there.column_shift = b_.index(Do::IndexSub, there.thread_column, thread_column_);
  }
  if (!apart_.groups.empty() && config_.teams > 1) apart_team_ = b_.mul(team_, apart_.bytes);
}

void RowLowering::swap_layout(Elsewhere& there) {
  std::swap(config_, there.config);
  std::swap(wrapped_, there.wrapped);
  std::swap(thread_column_, there.thread_column);
  std::swap(column_of_group_, there.column_of_group);
  std::swap(in_stripe_, there.in_stripe);
  std::swap(distances_, there.distances);
  std::swap(column_shift_, there.column_shift);
}

Instr RowLowering::value_apart(Do code, const GroupsApart::Group& group, Reg entry, Reg mask) const {
  return {.code = code,
          .type = *program_.compute,
          .space = Space::Scratch,
          .a = apart_team_,
          .b = entry,
          .c = mask,
          .imm = apart_at_ + group.at};
}

// After sweep `k`.
void RowLowering::sum_apart(std::size_t k) {
  if (config_.simd) return;
  std::vector<std::size_t> at_hand;
  bool sends = false;
  for (std::size_t g = 0; g < apart_.groups.size(); ++g) {
    const std::vector<NodeId>& finished = stages_.sweeps[k].groups;
    if (std::find(finished.begin(), finished.end(), apart_.groups[g].id) == finished.end()) continue;
    at_hand.push_back(g);
    sends = sends || (!apart_.groups[g].wrapped.groups.empty() && config_.groups > 1);
  }
  if (at_hand.empty()) return;
  b_.note("groups apart");
  if (!one_row_a_team()) b_.emit({.code = Do::Barrier});  // who reads the last row's values has them
  std::vector<PartsOfStripe> parts(apart_.groups.size());
  for (std::size_t g : at_hand) {
    swap_layout(elsewhere_[g]);
    terms_apart(apart_.groups[g]);
    if (apart_.groups[g].wrapped.groups.empty()) {
      neighbours_apart(apart_.groups[g]);
    } else {
      parts[g] = add_own_stripes(apart_.groups[g].wrapped.groups[0]);
      if (config_.groups > 1) send_parts(apart_.groups[g].wrapped.groups[0], parts[g]);
    }
    wrapped_terms_.clear();
    swap_layout(elsewhere_[g]);
  }
  if (sends) b_.emit({.code = Do::Barrier});
  for (std::size_t g : at_hand) {
    if (apart_.groups[g].wrapped.groups.empty()) continue;
    swap_layout(elsewhere_[g]);
    if (config_.groups > 1) parts[g] = add_sent_parts(apart_.groups[g].wrapped.groups[0], parts[g]);
    remainders_apart(apart_.groups[g], parts[g]);
    swap_layout(elsewhere_[g]);
  }
  b_.emit({.code = Do::Barrier});
}

// By stripe and chunk.
void RowLowering::terms_apart(const GroupsApart::Group& group) {
  const Op op = group_of(program_[group.id]).op;
  std::vector<std::optional<Values>>& terms = wrapped_terms_[group.id];
  terms.resize(static_cast<std::size_t>(config_.stripes * chunks()));
  for (int stripe = 0; stripe < config_.stripes; ++stripe)
    for (int c = 0; c < chunks(); ++c) {
      Leaf leaf = unrolled_leaf(stripe, c, state_apart());
      if (leaf.id < 0) continue;
      const auto place = static_cast<std::size_t>(std::exchange(leaf.id, -1));
      terms[place] = present(value_of_part(program_[group.id].args[0], leaf), op, leaf);
    }
}

RowState RowLowering::state_apart() {
  RowState state = state_;
  state.limit =
      state.exists ? b_.index(Do::IndexMin, columns_, b_.index(Do::IndexMul, state.left, columns_)) : columns_;
  return state;
}

// Groups of neighbours: one in several chunks, or several in one.
void RowLowering::neighbours_apart(const GroupsApart::Group& group) {
  const Op op = group_of(program_[group.id]).op;
  const std::vector<std::optional<Values>>& terms = wrapped_terms_.at(group.id);
  const std::int64_t lanes = std::min<std::int64_t>(next_power(group.by) / config_.vector, config_.lanes);
  const Reg limit = state_apart().limit, first_lane = b_.below(column_of_group_, 0, one_index_);
  for (int stripe = 0; stripe < config_.stripes; ++stripe) {
    std::vector<PartsOfStripe> chunks_of_group;
    for (int c = 0; c < chunks(); ++c) chunks_of_group.push_back({terms[stripe * chunks() + c]});
    const std::optional<Values> sum = add_halves(op, std::move(chunks_of_group))[0];
    if (!sum) continue;
    const Reg total = across_lanes(op, {*sum}, static_cast<int>(lanes));
    const std::int64_t offset = stripe * stripe_step();
    const Reg inside = both(b_.below(thread_column_, offset, limit), first_lane);
    const Reg entry = b_.divide(b_.add(thread_column_, offset), group.by, columns_are_narrow());
    Instr store = value_apart(Do::StoreOne, group, entry, inside);
    store.values = {total};
    b_.emit(std::move(store));
  }
}

// Groups of remainders: the first group of lanes has all of them, in the first places of a stripe.
void RowLowering::remainders_apart(const GroupsApart::Group& group, const PartsOfStripe& parts) {
  const Reg place = b_.mul(lane_, config_.vector), beyond = b_.mul(group_, contract::stripe * 2);
  const Reg place_of_first = b_.add(place, beyond), end = b_.index(group.by);
  for (std::size_t c = 0; c < parts.size(); ++c) {
    const std::int64_t offset = static_cast<std::int64_t>(c) * chunk_columns();
    if (!parts[c] || offset >= group.by) continue;
    const Reg inside = b_.below(place_of_first, offset, end);
    Instr store = value_apart(Do::Store, group, place, inside);
    store.imm += offset * value_bytes();
    store.values = *parts[c];
    b_.emit(std::move(store));
  }
}

}  // namespace trireme

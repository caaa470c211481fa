#include "schedule/wrapped_groups.hpp"

#include <algorithm>
#include <bit>
#include <optional>
#include <utility>

#include "ir/contract.hpp"
#include "ir/groups.hpp"
#include "schedule/row_lowering.hpp"
#include "schedule/shape.hpp"

namespace trireme {
namespace {

bool is_power(std::int64_t value) { return std::has_single_bit(static_cast<std::uint64_t>(value)); }

struct Wrapped {
  NodeId id;
  std::int64_t by;
  bool rotated = false;
};

// Those up to 256 that no chunk holds.
std::vector<Wrapped> all_wrapped(const Program& program, const Config& config) {
  const std::vector<bool> used = reachable(program), in_chunk = groups_in_chunks(program, config);
  std::vector<Wrapped> all;
  for (NodeId id = 0; id < program.size(); ++id) {
    if (!used[id] || program[id].op != Op::Group || in_chunk[id]) continue;
    const GroupReduction kind = group_of(program[id]);
    const auto by = static_cast<std::int64_t>(as_number(program, program[id].args[1]).value_or(0));
    if (!kind.wraps || kind.entries || by < 2 || by > contract::stripe) continue;
    all.push_back({id, by, is_rotated(program, id)});
  }
  return all;
}

std::int64_t places_of_stripe(const Config& config) {
  return chunks_of(config) * std::int64_t{config.lanes} * config.vector;
}

// 0 where remainders do not come again after a power of two of places.
std::int64_t period_of(const Config& config, std::int64_t by) {
  if (by == config.group) return next_power(by);
  const std::int64_t columns = config.group ? config.group : contract::stripe;  // those that begin anew
  return is_power(by) && is_power(columns) && columns % by == 0 ? by : 0;
}

// How many runs of 256 columns of a group a thread's stripes are; 0 where rule 4 adds up bits in another order than
// that in which they lie.
int runs_of(const Config& config, std::int64_t by, int interleaved) {
  constexpr std::int64_t stripe = contract::stripe;
  const std::int64_t period = period_of(config, by);
  if (!period) return 0;
  const std::int64_t together = places_of_stripe(config) / period * interleaved * config.stripes;
  if (interleaved == 1 && together % stripe == 0) return static_cast<int>(together / stripe);
  const bool one_run = (config.columns + by - 1) / by <= stripe;
  return together == stripe || (interleaved == config.groups && (together < stripe || one_run));
}

// Of groups of lanes that share a row; at most most_group_bytes / 2 in all.
WrappedGroups laid_out(const std::vector<Wrapped>& all, const Config& config, Type compute) {
  WrappedGroups found;
  if (config.simd || !config.stripes || config.cluster > 1 || !is_power(config.groups)) return found;
  auto fits = [&](int interleaved) {
    return std::all_of(all.begin(), all.end(),
                       [&](const Wrapped& each) { return each.rotated || runs_of(config, each.by, interleaved); });
  };
  // Rule 4's own stripes follow each other.
  for (int interleaved = config.groups; interleaved > 1 && config.group && found.interleaved == 1 && !all.empty();
       interleaved /= 2)
    if (fits(interleaved)) found.interleaved = interleaved;
  const auto sent =
      config.groups == 1 ? 0 : config.groups * places_of_stripe(config) * static_cast<std::int64_t>(bytes(compute));
  for (const Wrapped& each : all) {
    const int runs = runs_of(config, each.by, found.interleaved);
    if (each.rotated || !runs || found.bytes + sent > most_group_bytes / 2) continue;
    found.groups.push_back({.id = each.id, .period = period_of(config, each.by), .runs = runs, .at = found.bytes});
    found.bytes += sent;
  }
  return found;
}

}  // namespace

bool is_rotated(const Program& program, NodeId group) {
  const std::vector<bool> used = reachable(program);
  for (NodeId user = group + 1; user < program.size(); ++user)
    if (used[user] && program[user].op == Op::Rotate && program[user].args[0] == group) return true;
  return false;
}

WrappedGroups wrapped_groups(const Program& program, const Config& config) {
  if (config.simd || !has(program, Op::Group)) return {};
  return laid_out(all_wrapped(program, config), config, *program.compute);
}

std::optional<WrappedGroups> wrapped_group(NodeId id, std::int64_t by, const Config& config, Type compute) {
  WrappedGroups found = laid_out({{.id = id, .by = by}}, config, compute);
  return found.groups.empty() ? std::nullopt : std::optional(std::move(found));
}

const WrappedGroups::Group* RowLowering::wrapped(NodeId id) const {
  const auto found = std::find_if(wrapped_.groups.begin(), wrapped_.groups.end(),
                                  [&](const WrappedGroups::Group& each) { return each.id == id; });
  return found == wrapped_.groups.end() ? nullptr : &*found;
}

// A chunk's terms of the groups that sweep `k` finishes.
void RowLowering::keep_wrapped(std::size_t k, const Leaf& leaf) {
  for (NodeId id : stages_.sweeps[k].groups) {
    if (!wrapped(id)) continue;
    std::vector<std::optional<Values>>& terms = wrapped_terms_[id];
    terms.resize(row_leaves_.size());
    terms[leaf.id] = present(chunk(program_[id].args[0], leaf), group_of(program_[id]).op, leaf);
  }
}

// Adds up the places of a stripe, chunk by chunk, that stand on the same remainder.
void RowLowering::add_places(Op op, PartsOfStripe& parts, std::int64_t period) {
  for (std::int64_t bit = chunks() * chunk_columns() / 2; bit >= period; bit /= 2) {
    if (const std::int64_t step = bit / chunk_columns(); step > 0) {
      for (std::size_t c = 0; c < parts.size(); ++c)
        if (!(c & step)) parts[c] = parts[c + step] = fold(op, parts[c], parts[c + step]);
      continue;
    }
    for (std::optional<Values>& each : parts)
      if (each) each = add_bit(op, *each, bit);
  }
}

// Of neighbours, level by level.
RowLowering::PartsOfStripe RowLowering::add_pairs(Op op, std::vector<PartsOfStripe> runs) {
  while (runs.size() > 1) {
    std::vector<PartsOfStripe> next;
    for (std::size_t k = 0; k < runs.size(); k += 2) {
      next.push_back(runs[k]);
      for (std::size_t c = 0; k + 1 < runs.size() && c < runs[k].size(); ++c)
        next.back()[c] = fold(op, runs[k][c], runs[k + 1][c]);
    }
    runs = std::move(next);
  }
  return std::move(runs[0]);
}

// Upper half to lower half.
RowLowering::PartsOfStripe RowLowering::add_halves(Op op, std::vector<PartsOfStripe> parts) {
  for (std::size_t half = parts.size() / 2; half >= 1; half /= 2)
    for (std::size_t k = 0; k < half; ++k)
      for (std::size_t c = 0; c < parts[k].size(); ++c) parts[k][c] = fold(op, parts[k][c], parts[k + half][c]);
  return std::move(parts[0]);
}

void RowLowering::sum_wrapped(std::size_t k) {
  std::vector<std::pair<const WrappedGroups::Group*, PartsOfStripe>> sums;
  for (NodeId id : stages_.sweeps[k].groups)
    if (const WrappedGroups::Group* group = wrapped(id)) sums.emplace_back(group, add_own_stripes(*group));
  if (sums.empty()) return;
  if (config_.groups > 1) {
    for (const auto& [group, parts] : sums) send_parts(*group, parts);
    b_.emit({.code = Do::Barrier});
    for (auto& [group, parts] : sums) parts = add_sent_parts(*group, parts);
    if (!one_row_a_team()) b_.emit({.code = Do::Barrier});  // the next row's take the same place
  }
  for (auto& [group, parts] : sums) wrapped_sums_[group->id] = std::move(parts);
}

// What a thread has of a group's terms.
RowLowering::PartsOfStripe RowLowering::add_own_stripes(const WrappedGroups::Group& group) {
  const Op op = group_of(program_[group.id]).op;
  const std::vector<std::optional<Values>>& terms = wrapped_terms_.at(group.id);
  const int each = config_.stripes / group.runs;
  std::vector<PartsOfStripe> runs;
  for (int run = 0; run < group.runs; ++run) {
    std::vector<PartsOfStripe> stripes;
    for (int s = run * each; s < (run + 1) * each; ++s) {
      const auto first = terms.begin() + std::ptrdiff_t{s} * chunks();
      stripes.emplace_back(first, first + chunks());
    }
    runs.push_back(add_halves(op, std::move(stripes)));
    if (wrapped_.interleaved == 1) add_places(op, runs.back(), group.period);
  }
  return add_pairs(op, std::move(runs));
}

void RowLowering::send_parts(const WrappedGroups::Group& group, const PartsOfStripe& parts) {
  const Reg chunk = b_.mul(group_, chunk_columns()), inside = b_.mul(lane_, config_.vector);
  const Reg place = b_.add(chunk, inside);
  for (std::size_t c = 0; c < parts.size(); ++c)
    if (parts[c]) b_.emit(sent_part(Do::Store, group, c, place, 0, *parts[c]));
}

// Of all groups of lanes.
RowLowering::PartsOfStripe RowLowering::add_sent_parts(const WrappedGroups::Group& group, const PartsOfStripe& own) {
  const Op op = group_of(program_[group.id]).op;
  const Reg place = b_.mul(lane_, config_.vector);
  std::vector<PartsOfStripe> runs;
  for (int first = 0; first < config_.groups; first += wrapped_.interleaved) {
    std::vector<PartsOfStripe> turns;
    for (int turn = first; turn < first + wrapped_.interleaved; ++turn) {
      turns.emplace_back(own.size());
      for (std::size_t c = 0; c < own.size(); ++c) {
        if (!own[c]) continue;
        turns.back()[c] = fresh_values();
        b_.emit(sent_part(Do::Load, group, c, place, turn, *turns.back()[c]));
      }
    }
    runs.push_back(add_halves(op, std::move(turns)));
    if (wrapped_.interleaved > 1) add_places(op, runs.back(), group.period);
  }
  return add_pairs(op, std::move(runs));
}

// Chunk c's numbers; `place` is an element's, `sender` groups of lanes further on.
Instr RowLowering::sent_part(Do code, const WrappedGroups::Group& group, std::size_t c, Reg place, int sender,
                             Values values) const {
  const std::int64_t chunk = static_cast<std::int64_t>(c) * config_.groups + sender;
  return {.code = code,
          .type = *program_.compute,
          .space = Space::Scratch,
          .b = place,
          .imm = wrapped_at_ + group.at + chunk * chunk_columns() * value_bytes(),
          .values = std::move(values)};
}

}  // namespace trireme

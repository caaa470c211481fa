#include "drift/compare.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "drift/align.hpp"
#include "support/hash.hpp"

namespace trireme::drift {
namespace {

using Kind = Event::Kind;

Error misuse(const std::string& what) { return {Code::InvalidArgument, what}; }

std::string shape_text(const std::vector<std::int64_t>& shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

// How many rows most outputs of modules have.
std::int64_t usual_rows(const std::vector<const Event*>& events) {
  std::map<std::int64_t, std::size_t> counts;
  for (const Event* each : events)
    if (each->kind == Kind::Module)
      for (const TracedArray& array : each->out) ++counts[array.rows()];
  const auto most =
      std::max_element(counts.begin(), counts.end(), [](const auto& x, const auto& y) { return x.second < y.second; });
  return most == counts.end() ? 0 : most->first;
}

class Comparison {
 public:
  Comparison(const Trace& a, const Trace& b, const CompareOptions& options) : traces_{&a, &b}, options_(options) {}

  Result<CompareReport> run() {
    for (const int side : {0, 1}) {
      report_.events[side] = traces_[side]->events().size();
      for (const Event& each : traces_[side]->events())
        if (!options_.calls[side] || each.call == *options_.calls[side] || each.kind == Kind::State)
          events_[side].push_back(&each);
      report_.looked_at[side] = events_[side].size();
    }
    TRIREME_CHECK(choose_rows());
    TRIREME_TRY(pairs, aligned());
    report_.aligned = pairs.size();
    for (const int side : {0, 1}) aligned_[side].resize(report_.events[side]);
    for (const auto& [i, j] : pairs)
      aligned_[0][static_cast<std::size_t>(events_[0][i]->number)] = true,
      aligned_[1][static_cast<std::size_t>(events_[1][j]->number)] = true;
    for (std::size_t k = 0; k < pairs.size(); ++k) {
      if (k % 1024 == 0) options_.progress(0.5 + 0.5 * static_cast<double>(k) / static_cast<double>(pairs.size()));
      TRIREME_CHECK(look_at(*events_[0][pairs[k].first], *events_[1][pairs[k].second]));
    }
    return std::move(report_);
  }

 private:
  Status choose_rows() {
    if (!options_.rows[0]) return Done{};
    for (const int side : {0, 1}) {
      const Rows& rows = *options_.rows[side];
      report_.rows_of[side] = rows.of ? *rows.of : usual_rows(events_[side]);
      if (rows.first < 0 || rows.first >= rows.last || rows.last > report_.rows_of[side])
        return misuse(fmt::format("rows {}:{} of {}, whose arrays have {}", rows.first, rows.last,
                                  traces_[side]->folder(), report_.rows_of[side]));
    }
    if (options_.rows[0]->last - options_.rows[0]->first != options_.rows[1]->last - options_.rows[1]->first)
      return misuse("as many rows of one as of the other");
    return Done{};
  }

  bool by_rows(const TracedArray& array, int side) const {
    return options_.rows[side] && array.rows() == report_.rows_of[side];
  }

  // The digests of an array that are compared; none where that cannot be.
  Result<std::optional<std::vector<std::uint64_t>>> digests(const TracedArray& array, int side, bool some_rows) const {
    using Found = std::optional<std::vector<std::uint64_t>>;
    if (!array.digests) return Found();
    std::int64_t first = 0, last = array.rows();
    if (some_rows) first = options_.rows[side]->first, last = options_.rows[side]->last;
    const std::int64_t block = array.block();
    if (first % block || (last % block && last != array.rows())) return Found();
    TRIREME_TRY(found, traces_[side]->digests(array, first / block, (last + block - 1) / block - first / block));
    return Found(std::move(found));
  }

  // ---- aligning ----

  struct Prints {
    std::uint64_t in = 0, out = 0;
  };
  Result<Prints> prints_of(const Event& event, int side) const {
    Prints made;
    for (const bool out : {false, true}) {
      Hasher hasher;
      for (const TracedArray& array : out ? event.out : event.in) {
        hasher.add(array.type);
        TRIREME_TRY(found, digests(array, side, by_rows(array, side)));
        if (found && !(out && array.unset)) hasher.add(found->data(), 8 * found->size());
      }
      const Hash128 value = hasher.value();
      for (int k = 0; k < 8; ++k) (out ? made.out : made.in) = (out ? made.out : made.in) << 8 | value[k];
    }
    return made;
  }

  Result<std::vector<Pair>> aligned() {
    std::map<std::string, int> keys;
    Steps steps[2];
    std::vector<Prints> prints[2];
    std::size_t done = 0;
    for (const int side : {0, 1})
      for (const Event* each : events_[side]) {
        if (++done % 1024 == 0)
          options_.progress(0.5 * static_cast<double>(done) /
                            static_cast<double>(events_[0].size() + events_[1].size()));
        // A module is its path: its class may be another one.
        const std::string key = fmt::format("{}\n{}\n{}\n{}", static_cast<int>(each->kind), each->phase, each->path,
                                            each->kind == Kind::Module ? "" : each->name);
        steps[side].keys.push_back(keys.try_emplace(key, static_cast<int>(keys.size())).first->second);
        steps[side].anchors.push_back(each->kind != Kind::Operator);
        TRIREME_TRY(made, prints_of(*each, side));
        steps[side].values.push_back(made.out);
        prints[side].push_back(made);
      }
    return align(
        steps[0], steps[1],
        [&](std::size_t i, std::size_t j) {
          return 1 + 2 * (prints[0][i].out == prints[1][j].out) + (prints[0][i].in == prints[1][j].in);
        },
        4);
  }

  // ---- comparing ----

  struct Compared {
    Likeness likeness = Likeness::Unknown;
    ArrayDifference difference;
  };

  Result<Compared> compared(const TracedArray& a, const TracedArray& b) const {
    Compared made;
    made.difference.name = a.name, made.difference.a = &a, made.difference.b = &b;
    auto differs = [&](std::string reason) {
      made.likeness = Likeness::Different, made.difference.reason = std::move(reason);
      return made;
    };
    const bool some_rows = by_rows(a, 0) && by_rows(b, 1);
    // Of other rows, or a mask or a table that is as wide as the tokens at hand.
    if (options_.rows[0] && (a.columns() != b.columns() || (!some_rows && a.rows() != b.rows()))) return made;
    if (a.type != b.type) return differs(fmt::format("{} against {}", a.type, b.type));
    if (a.columns() != b.columns() || (!some_rows && a.rows() != b.rows()))
      return differs(fmt::format("{} against {}", shape_text(a.shape), shape_text(b.shape)));
    TRIREME_TRY(x, digests(a, 0, some_rows));
    TRIREME_TRY(y, digests(b, 1, some_rows));
    std::int64_t first_a = 0, first_b = 0, rows = a.rows();
    if (some_rows) {
      first_a = options_.rows[0]->first, first_b = options_.rows[1]->first;
      rows = options_.rows[0]->last - first_a;
    }
    // Blocks of the two may have other rows; elements, where they are kept, need none.
    const bool by_blocks = x && y && a.block() == b.block();
    if (!by_blocks && !(a.elements && b.elements)) return made;
    if (by_blocks) {
      if (*x == *y) {
        made.likeness = Likeness::Same;
        return made;
      }
      const auto first = static_cast<std::int64_t>(std::mismatch(x->begin(), x->end(), y->begin()).first - x->begin());
      made.difference.of_blocks = static_cast<std::int64_t>(x->size());
      for (std::size_t k = 0; k < x->size(); ++k) made.difference.blocks += (*x)[k] != (*y)[k];
      made.difference.first_row = first_a + first * a.block();
      made.difference.last_row = std::min(made.difference.first_row + a.block(), a.rows());
      made.difference.first_row_b = first_b + first * a.block();
    }
    if (a.elements && b.elements) {
      TRIREME_TRY(found, element_differences(*traces_[0], a, first_a, *traces_[1], b, first_b, rows));
      made.likeness = found ? Likeness::Different : Likeness::Same;
      if (found) {
        made.difference.first_row = found->row, made.difference.last_row = found->row + 1;
        made.difference.first_row_b = found->row - first_a + first_b;
      }
      made.difference.elements = std::move(found);
    } else {
      made.likeness = Likeness::Different;
    }
    return made;
  }

  // Those that differ; `counts` of all by likeness. Of outputs, some rows stand alone: what has others (a weight's
  // gradient, a mask) is of all rows.
  Result<std::vector<ArrayDifference>> differences(const std::vector<TracedArray>& a, const std::vector<TracedArray>& b,
                                                   bool outputs, std::size_t (&counts)[3]) const {
    auto stands_out = [&](const TracedArray& x, const TracedArray& y) {
      return outputs && options_.rows[0] && !(by_rows(x, 0) && by_rows(y, 1));
    };
    std::vector<ArrayDifference> made;
    if (a.size() != b.size() && !(outputs && options_.rows[0])) {
      made.push_back(
          {.name = outputs ? "outputs" : "inputs", .reason = fmt::format("{} against {}", a.size(), b.size())});
      ++counts[static_cast<int>(Likeness::Different)];
    }
    for (std::size_t k = 0; k < std::min(a.size(), b.size()); ++k) {
      Compared each;
      if (!stands_out(a[k], b[k]) && !(outputs && (a[k].unset || b[k].unset))) {
        TRIREME_TRY(found, compared(a[k], b[k]));
        each = std::move(found);
      }
      ++counts[static_cast<int>(each.likeness)];
      if (each.likeness == Likeness::Different) made.push_back(std::move(each.difference));
    }
    return made;
  }

  Source source_of(const TracedArray& array, int side) const {
    if (!array.from || *array.from >= static_cast<std::int64_t>(report_.events[side])) return {};
    const auto number = static_cast<std::size_t>(*array.from);
    return {&traces_[side]->events()[number], aligned_[side][number]};
  }

  bool parted_inside(const std::string& path) const {
    if (path.empty()) return !parted_.empty();
    const auto child = parted_.lower_bound(path + ".");
    return parted_.contains(path) || (child != parted_.end() && child->starts_with(path + "."));
  }

  Status look_at(const Event& a, const Event& b) {
    std::size_t out[3] = {}, in[3] = {};
    TRIREME_TRY(outputs, differences(a.out, b.out, a.kind != Kind::State, out));
    if (outputs.empty()) {
      ++(out[static_cast<int>(Likeness::Same)] ? report_.same : report_.unknown);
      if (!report_.different && out[static_cast<int>(Likeness::Same)]) report_.last_same = &a;
      return Done{};
    }
    TRIREME_TRY(inputs, differences(a.in, b.in, false, in));
    Parting parting{.a = &a, .b = &b, .unknown_inputs = in[static_cast<int>(Likeness::Unknown)]};
    parting.blame = a.kind == Kind::State        ? Blame::Parameter
                    : !inputs.empty()            ? Blame::Input
                    : a.arguments != b.arguments ? Blame::Arguments
                    : a.random || b.random       ? Blame::Random
                    : a.kind != Kind::Module     ? Blame::Operator
                    : parted_inside(a.path)      ? Blame::Inside
                                                 : Blame::Module;
    parted_.insert(a.path);
    report_.by_operators += parting.blame == Blame::Operator || parting.blame == Blame::Random;
    if (report_.different++ >= options_.limit) return Done{};
    for (ArrayDifference& each : inputs)
      if (each.a) each.from[0] = source_of(*each.a, 0), each.from[1] = source_of(*each.b, 1);
    parting.outputs = std::move(outputs), parting.inputs = std::move(inputs);
    report_.partings.push_back(std::move(parting));
    return Done{};
  }

  const Trace* traces_[2];
  const CompareOptions& options_;
  std::vector<const Event*> events_[2];
  std::vector<bool> aligned_[2];  // by the event's number
  std::set<std::string> parted_;  // paths
  CompareReport report_;
};

}  // namespace

const char* name(Blame blame) {
  switch (blame) {
    case Blame::Parameter: return "parameter";
    case Blame::Input: return "input";
    case Blame::Arguments: return "arguments";
    case Blame::Random: return "random";
    case Blame::Operator: return "operator";
    case Blame::Module: return "module";
    case Blame::Inside: return "inside";
  }
  return "";
}

const char* name(Kind kind) {
  switch (kind) {
    case Kind::State: return "state";
    case Kind::Operator: return "operator";
    case Kind::Module: return "module";
  }
  return "";
}

Result<CompareReport> compare(const Trace& a, const Trace& b, const CompareOptions& options) {
  return Comparison(a, b, options).run();
}

}  // namespace trireme::drift

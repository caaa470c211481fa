#include "receipt/check.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "devices/arguments.hpp"
#include "ir/integers.hpp"
#include "layout/elements.hpp"
#include "plan/difference.hpp"
#include "problem/digest.hpp"
#include "support/float_types.hpp"

namespace trireme::receipts {
namespace {

using State = CheckedArray::State;

// A problem beyond takes hours on any device, and a hostile receipt could ask for it without a byte of data.
constexpr std::int64_t most_elements = std::int64_t{1} << 36;

Error refused(const std::string& what) { return {Code::InvalidArgument, "check: " + what}; }

// The blocks of an array that hold `rows` of it, against their leaves.
Result<CheckedArray> check_blocks(Hash hash, const ArrayDigests& array, const std::set<std::int64_t>& blocks,
                                  const ReadRows& read) {
  CheckedArray checked{.name = array.name};
  std::vector<std::byte> memory;
  for (const std::int64_t block : blocks) {
    const std::int64_t first = block * array.block(), last = array.block_end(first);
    memory.resize(static_cast<std::size_t>((last - first) * array.row_bytes()));
    TRIREME_CHECK(read(first, memory));
    if (digest_rows(hash, array.type, memory) == array.leaves[static_cast<std::size_t>(block)]) continue;
    checked.state = State::Different, checked.first_row = first, checked.last_row = last;
    break;
  }
  return checked;
}

std::set<std::int64_t> blocks_of_rows(const ArrayDigests& array, std::int64_t first, std::int64_t last) {
  std::set<std::int64_t> blocks;
  last = std::min(last, array.rows);
  for (std::int64_t block = first / array.block(); block * array.block() < last; ++block) blocks.insert(block);
  return blocks;
}

// Where a run may begin so that every array's rows fall as in the whole problem: a multiple of all periods; row 0 where
// the program reads the row's number.
Result<std::int64_t> start_of(const Program& bound, std::int64_t columns, std::int64_t first) {
  if (has(bound, Op::RowIndex) || has(bound, Op::Random)) return 0;
  std::int64_t period = 1;
  for (std::size_t k = 0; k < bound.array_count(); ++k) {
    const Program::Array array = bound.array(k);
    if (!array.in_memory || !array.type || !array.spread.row.present) continue;
    TRIREME_TRY(index, indexing(bound, array.spread, columns));
    std::int64_t own = index.row.divide;
    if (index.row.wrap && __builtin_mul_overflow(own, index.row.wrap, &own)) return 0;
    const std::int64_t part = own / std::gcd(period, own);
    if (__builtin_mul_overflow(period, part, &period) || period > first) return 0;
  }
  return first / period * period;
}

std::string bits_text(Type type, std::uint64_t value) { return fmt::format("0x{:0{}X}", value, bits(type) / 4); }

class Checker {
 public:
  Checker(const Receipt& receipt, const std::map<std::string, ReadRows>& arrays, const DeviceEntry& device,
          const CheckOptions& options, Prepared whole)
      : receipt_(receipt), arrays_(arrays), device_(device), options_(options), whole_(std::move(whole)) {}

  Result<CheckReport> run() {
    TRIREME_CHECK(choose_rows());
    TRIREME_CHECK(prepare());
    TRIREME_CHECK(take_operands());
    if (!report_.passed()) return std::move(report_);
    for (std::size_t k = 0; k < part_->bound.results.size(); ++k)  // rows that nobody picks hold 0
      if (part_->bound.results[k].spread.row.picked()) {
        auto& memory = part_->before.emplace(k, part_->buffers.results[k].memory).first->second;
        std::fill(memory.begin(), memory.end(), std::byte{0});
      }
    TRIREME_TRY(executable, device_.compile(part_->program, facts_of(part_->program, part_->view())));
    poison_results(*part_);
    TRIREME_CHECK(executable->run(part_->view(), options_.run));
    for (std::size_t k = 0; k < part_->bound.results.size(); ++k) TRIREME_CHECK(compare(k));
    return std::move(report_);
  }

 private:
  const ArrayDigests& said(const std::vector<ArrayDigests>& list, const std::string& name) const {
    return *std::find_if(list.begin(), list.end(), [&](const ArrayDigests& each) { return each.name == name; });
  }

  Status choose_rows() {
    const std::int64_t rows = whole_.problem.rows();
    report_.last_row = rows;
    if (!options_.rows) return Done{};
    auto [first, last] = *options_.rows;
    if (first < 0 || first >= last || last > rows)
      return refused(fmt::format("rows {}:{} of a problem that has {}", first, last, rows));
    const std::int64_t block = block_rows(rows);
    report_.first_row = first / block * block;
    report_.last_row = std::min((last + block - 1) / block * block, rows);
    return Done{};
  }

  // The part of the problem that is computed again, its memory made.
  Status prepare() {
    Problem problem = whole_.problem;
    if (options_.rows) {
      for (const Output& each : whole_.bound.results) {
        const char* reason = sums_over_rows(whole_.bound, each) ? "it runs over all rows"
                             : each.spread.row.picked()         ? "any row may write any of its rows"
                             : !each.spread.row.plain() || !each.spread.row.present ? "it has not a row for each"
                                                                                    : nullptr;
        if (!reason) continue;
        report_.results.push_back({.name = each.name, .state = State::LeftOut, .reason = reason});
        problem.absent.insert(each.name);
      }
      if (report_.results.size() == whole_.bound.results.size())
        return refused("none of the results can be checked by some rows; leave out the rows");
      TRIREME_TRY(start, start_of(whole_.bound, whole_.problem.columns(), report_.first_row));
      start_ = start;
      problem.shape = {report_.last_row - start_, whole_.problem.columns()};
      problem.axes = 1;
    }
    if (problem.rows() > most_elements / problem.columns())
      return refused("more than 2^36 elements would be computed; check fewer rows");
    TRIREME_TRY(layout, prepare_problem(problem, receipt_.text, Fill::NoMemory));
    double needed = 0;
    for (const auto* list : {&layout.buffers.operands, &layout.buffers.results})
      for (const Buffer& each : *list)
        needed += static_cast<double>(each.entries()) * static_cast<double>(bits(each.array.type)) / 8;
    const double there = static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
    if (needed > there)
      return Error{Code::OutOfMemory, fmt::format("check: {:.0f} bytes are needed, and this machine has {:.0f}; check "
                                                  "fewer rows",
                                                  needed, there)};
    TRIREME_TRY(made, prepare_problem(problem, receipt_.text, Fill::Nothing));
    part_ = std::move(made);
    return Done{};
  }

  // The rows of an operand's array that rows start_ .. last of the problem read.
  Result<std::set<std::int64_t>> needed_blocks(std::size_t k, const ArrayDigests& array) {
    if (!options_.rows) return blocks_of_rows(array, 0, array.rows);
    const Operand& operand = part_->bound.operands[k];
    const std::int64_t rows = report_.last_row - start_;
    if (!operand.spread.row.picked()) {
      const std::int64_t first = offset_of(k);
      return blocks_of_rows(array, first, first + part_->buffers.operands[k].row_extent);
    }
    const std::size_t by = static_cast<std::size_t>(part_->bound[operand.spread.row.pick].payload);
    const Array& picker = part_->buffers.operands[by].array;
    TRIREME_TRY(index, indexing(part_->bound, part_->bound.operands[by].spread, part_->problem.columns()));
    std::set<std::int64_t> blocks;
    for (std::int64_t i = 0; i < rows; ++i) {
      const std::int64_t row = load_integer(picker.type, picker.entry(index.row.entry(i), 0));
      if (row >= 0 && row < array.rows) blocks.insert(row / array.block());
    }
    return blocks;
  }

  // Where the part's rows of an operand begin in its array.
  std::int64_t offset_of(std::size_t k) {
    const Spread& spread = part_->bound.operands[k].spread;
    if (!spread.row.present || spread.row.picked()) return 0;
    return indexing(part_->bound, spread, part_->problem.columns()).value().row.entry(start_);
  }

  Status take_operands() {
    for (std::size_t k = 0; k < part_->bound.operands.size(); ++k) {
      const Operand& operand = part_->bound.operands[k];
      if (operand.constant || !operand.type) continue;
      const ArrayDigests& array = said(receipt_.operands, operand.name);
      const auto reader = arrays_.find(operand.name);
      if (reader == arrays_.end()) return refused(fmt::format("the operand '{}' is needed", operand.name));
      TRIREME_TRY(blocks, needed_blocks(k, array));
      TRIREME_TRY(checked, check_blocks(receipt_.hash, array, blocks, reader->second));
      report_.operands.push_back(checked);
      if (checked.state != State::Same) return Done{};
      Buffer& buffer = part_->buffers.operands[k];
      if (!operand.spread.row.picked()) {
        TRIREME_CHECK(reader->second(offset_of(k), buffer.memory));
        continue;
      }
      for (const std::int64_t block : blocks) {
        const std::int64_t first = block * array.block(), last = array.block_end(first);
        TRIREME_CHECK(
            reader->second(first, std::span<std::byte>(buffer.memory)
                                      .subspan(static_cast<std::size_t>(first * array.row_bytes()),
                                               static_cast<std::size_t>((last - first) * array.row_bytes()))));
      }
    }
    return Done{};
  }

  Status compare(std::size_t k) {
    const Buffer& buffer = part_->buffers.results[k];
    const ArrayDigests& array = said(receipt_.results, part_->bound.results[k].name);
    const std::int64_t from = options_.rows ? report_.first_row : 0, to = options_.rows ? report_.last_row : array.rows;
    const std::int64_t start = options_.rows ? start_ : 0;
    const ReadRows computed = [&](std::int64_t first, std::span<std::byte> rows) -> Status {
      std::copy_n(buffer.memory.data() + (first - start) * array.row_bytes(), rows.size(), rows.data());
      return Done{};
    };
    const std::set<std::int64_t> blocks = blocks_of_rows(array, from, to);
    TRIREME_TRY(found, check_blocks(receipt_.hash, array, blocks, computed));
    if (const auto given = arrays_.find(array.name); given != arrays_.end()) {
      TRIREME_TRY(theirs, check_blocks(receipt_.hash, array, blocks, given->second));
      report_.given.push_back(theirs);
      TRIREME_CHECK(find_element(k, array, from, to, start, given->second, found));
    }
    report_.results.push_back(found);
    return Done{};
  }

  // The first element of a given array that is not the computed one.
  Status find_element(std::size_t k, const ArrayDigests& array, std::int64_t from, std::int64_t to, std::int64_t start,
                      const ReadRows& read, CheckedArray& found) {
    const Array& mine = part_->buffers.results[k].array;
    std::vector<std::byte> row(static_cast<std::size_t>(array.row_bytes()));
    Array theirs{.data = row.data(), .type = array.type, .column_stride = 1};
    for (std::int64_t r = from; r < to; ++r) {
      TRIREME_CHECK(read(r, row));
      for (std::int64_t c = 0; c < array.columns; ++c) {
        const std::uint64_t got = bits_at(theirs, 0, c), want = bits_at(mine, r - start, c);
        if (canonical_bits(array.type, got) == canonical_bits(array.type, want)) continue;
        found.state = State::Different;
        found.first_row = r, found.last_row = r + 1;
        found.element = element_name(part_->bound.results[k], r, c);
        found.got = bits_text(array.type, got), found.want = bits_text(array.type, want);
        return Done{};
      }
    }
    return Done{};
  }

  const Receipt& receipt_;
  const std::map<std::string, ReadRows>& arrays_;
  const DeviceEntry& device_;
  const CheckOptions& options_;
  Prepared whole_;
  std::optional<Prepared> part_;
  std::int64_t start_ = 0;
  CheckReport report_;
};

}  // namespace

bool CheckReport::passed() const {
  for (const auto* list : {&operands, &given, &results})
    for (const CheckedArray& each : *list)
      if (each.state == State::Different) return false;
  return true;
}

Result<CheckReport> check_receipt(const Receipt& receipt, const std::map<std::string, ReadRows>& arrays,
                                  const DeviceEntry& device, const CheckOptions& options) {
  TRIREME_TRY(whole, layout_of(receipt));
  return Checker(receipt, arrays, device, options, std::move(whole)).run();
}

}  // namespace trireme::receipts

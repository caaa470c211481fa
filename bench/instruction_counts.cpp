// Machine instructions an element takes on each SIMD target: every operator, both directions, f32 and bf16, rows of
// 4096 columns. Emitted code is counted block by block, and how often each block runs is told by the kernel's own
// indices: no machine runs, so that counts of instruction sets that this one lacks stand beside those it has. What
// skips lanes at the end of a row counts as if none were skipped.
//
//   instruction_counts [OPERATOR...]
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "devices/arguments.hpp"
#include "plan/check.hpp"
#include "plan/operator_points.hpp"
#include "targets/targets.hpp"

namespace {

using namespace trireme;

constexpr std::int64_t columns = 4096, rows = 16;

// How often each block of a kernel runs: its body, then what each While and If encloses, in the order of their text.
class Visits {
 public:
  explicit Visits(const Kernel& kernel) : kernel_(kernel), indices_(kernel.index_count) {
    number(kernel.body);
    visits_.resize(numbers_.size());
    run(kernel.body);
  }
  std::int64_t of(std::size_t block) const { return visits_[block]; }

 private:
  void number(const std::vector<Instr>& block) {
    numbers_.emplace(&block, numbers_.size());
    for (const Instr& each : block) {
      if (each.code != Do::While && each.code != Do::If) continue;
      number(each.body);
      if (!each.other.empty()) number(each.other);
    }
  }
  std::int64_t& index(Reg reg) { return indices_[static_cast<std::size_t>(reg.id)]; }
  bool less(const Instr& i) { return index(i.a) < (i.b ? index(i.b) : i.imm); }
  std::int64_t slot(const Instr& i) const {
    const Slot& slot = kernel_.slots[static_cast<std::size_t>(i.imm)];
    return slot.what == Slot::What::Columns ? columns : slot.what == Slot::What::RowBlock ? rows : 1;
  }
  std::int64_t result(const Instr& i) {
    const std::int64_t a = i.a && i.a.bank == Bank::Index ? index(i.a) : 0, b = i.b ? index(i.b) : i.imm;
    switch (i.code) {
      case Do::IndexConstant: return i.imm;
      case Do::IndexSlot: return slot(i);
      case Do::IndexArgument: return i.imm == 0 ? 0 : rows;
      case Do::IndexMove: return a;
      case Do::IndexAdd: return a + b;
      case Do::IndexSub: return a - b;
      case Do::IndexMul: return a * b;
      case Do::IndexMin: return std::min(a, b);
      case Do::IndexMax: return std::max(a, b);
      case Do::IndexAnd: return a & b;
      case Do::IndexShiftRight: return a >> i.imm;
      case Do::IndexDivide: return b ? a / b : 0;
      case Do::IndexRemainder: return b ? a % b : 0;
      default: return 0;
    }
  }
  void run(const std::vector<Instr>& block) {
    ++visits_[numbers_.at(&block)];
    for (const Instr& each : block) {
      if (each.code == Do::While)
        while (less(each)) run(each.body);
      else if (each.code == Do::If && less(each)) run(each.body);
      else if (each.code == Do::If && !each.other.empty()) run(each.other);
      else if (each.dst && each.dst.bank == Bank::Index) index(each.dst) = result(each);
    }
  }

  const Kernel& kernel_;
  std::vector<std::int64_t> indices_, visits_;
  std::map<const std::vector<Instr>*, std::size_t> numbers_;
};

// Listings name blocks by their braces, in comments; labels and data are no instructions.
std::int64_t executed(const std::string& listing, const Visits& visits) {
  std::int64_t count = 0;
  std::vector<std::size_t> open = {0};
  std::size_t next = 1;
  std::istringstream text(listing);
  for (std::string line; std::getline(text, line);) {
    line.erase(0, line.find_first_not_of(' '));
    if (line.empty()) continue;
    if (line.starts_with("; ")) {
      if (line.starts_with("; }") && open.size() > 1) open.pop_back();
      if (line.ends_with('{')) open.push_back(next++);
    } else if (!line.starts_with('.') && !line.ends_with(':')) {
      count += visits.of(open.back());
    }
  }
  return count;
}

std::string cell(const Program& program, const Facts& facts, const Target& target, std::string_view arch) {
  const Machine machine = target.machine(arch).value();
  if (!machine.simd) return "";
  Result<Kernels> kernels = lower(program, choose_config(program, machine, facts));
  if (!kernels) return "refused";
  kernels->columns.clear();
  Result<std::string> listing = target.listing(*kernels, arch);
  if (!listing) return "refused";
  const std::int64_t count = executed(*listing, Visits(kernels->rows));
  return fmt::format("{:.2f}", static_cast<double>(count) / (rows * columns));
}

}  // namespace

int main(int argc, char** argv) {
  struct Column {
    const Target* target;
    std::string_view arch;
  };
  std::vector<Column> shown;
  for (const Target* target : targets())
    if (target->form == Target::Form::Code)
      for (std::string_view arch : target->common_archs) shown.push_back({target, arch});
  fmt::print("{:40}", "instructions an element");
  for (const Column& each : shown) fmt::print("{:>13}", each.arch);
  fmt::print("\n");
  for (const OperatorText& op : operator_texts()) {
    if (argc > 1 && std::none_of(argv + 1, argv + argc, [&](const char* each) { return op.name == std::string(each); }))
      continue;
    for (bool backward : {false, true})
      for (Type type : {Type::F32, Type::BF16}) {
        const OperatorPoint point{&op, backward, type, columns};
        Result<Prepared> prepared = prepare_problem(point.problem(rows).value(), {}, Fill::NoMemory);
        if (!prepared) continue;
        const Facts facts = facts_of(prepared->program, prepared->view());
        fmt::print("{:40}", point.name());
        for (const Column& each : shown) fmt::print("{:>13}", cell(prepared->program, facts, *each.target, each.arch));
        fmt::print("\n");
      }
  }
}

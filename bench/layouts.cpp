// What a layout costs on the CPU: each problem with all its element arrays laid out some way, in turn with the same
// problem contiguous, best of both. Gaps between columns are lines that must move as well: there the same operator with
// as many more rows, contiguous, touches the same lines, and takes its turn too. The factors of docs/performance.md,
// "Layouts".
//
//   layouts [--device cpu:avx512] [--threads 1] [--seconds 0.05] [--only TEXT]... [--over FACTOR] [--all]
//
// Prints the worst layouts of each shape: contiguous, contiguous with the same lines, laid out (ms), by the first, by
// the second. With --all every problem, with --over those whose last factor is larger, with --only those whose line has
// all the texts. Bits are conformance_test.cpp's.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <map>

#include "devices/arguments.hpp"
#include "plan/check.hpp"
#include "plan/devices.hpp"
#include "problem/problem.hpp"

namespace {

using namespace trireme;

struct Shape {
  std::int64_t outer, rows, columns;  // rows in all: outer * rows
  const char* where;
};

const Shape shapes[] = {{1, 16, 1024, "in L1 and L2"},  {1, 64, 1024, "in L2"},        {32, 64, 128, "in L2"},
                        {1, 512, 4096, "in L3"},        {512, 32, 128, "in L3"},       {1, 4096, 4096, "from memory"},
                        {2048, 32, 128, "from memory"}, {1, 128, 65536, "from memory"}};

// The same for operands and results, but for those that lie over each other.
struct Layout {
  const char* name;
  Placement (*operand)(const Shape&);
  Placement (*result)(const Shape&);
  bool in_place = false;
  int apart = 1;  // from a column to the next one: so many times the lines
};

using P = Placement;
Placement dense(const Shape&) { return {}; }
Placement unaligned(const Shape&) { return P{.offset = 1}; }
Placement odd_rows(const Shape& s) { return P{.strides = {s.rows * (s.columns + 1), s.columns + 1, 1}}; }
Placement among_others(const Shape& s) { return P{.strides = {3 * s.rows * s.columns, s.columns, 1}}; }
Placement wider_rows(const Shape& s) { return P{.strides = {4 * s.rows * s.columns, 4 * s.columns, 1}}; }
Placement expanded_rows(const Shape&) { return P{.strides = {0, 0, 1}}; }
Placement expanded_columns(const Shape& s) { return P{.strides = {s.rows, 1, 0}}; }
Placement rows_backwards(const Shape& s) { return P{.strides = {-s.rows * s.columns, -s.columns, 1}}; }
Placement backwards(const Shape& s) { return P{.strides = {s.rows * s.columns, s.columns, -1}}; }
template <int apart>
Placement columns_apart(const Shape& s) {
  return P{.strides = {apart * s.rows * s.columns, apart * s.columns, apart}};
}
Placement transposed(const Shape& s) { return P{.strides = {s.rows, 1, s.outer * s.rows}}; }
Placement axes_swapped(const Shape& s) { return P{.strides = {s.columns, s.outer * s.columns, 1}}; }
Placement heads_transposed(const Shape& s) { return P{.strides = {s.rows * s.columns, 1, s.rows}}; }

const Layout layouts[] = {
    {"unaligned", unaligned, unaligned},
    {"rows one element longer", odd_rows, odd_rows},
    {"a third of each outer row (q inside qkv)", among_others, among_others},
    {"a fourth of each row", wider_rows, wider_rows},
    {"outer axes swapped", axes_swapped, axes_swapped},
    {"operands expanded over rows", expanded_rows, dense},
    {"operands expanded over columns", expanded_columns, dense},
    {"rows backwards", rows_backwards, rows_backwards},
    {"columns backwards", backwards, backwards},
    {"every second column", columns_apart<2>, columns_apart<2>, false, 2},
    {"every third column", columns_apart<3>, columns_apart<3>, false, 3},
    {"transposed", transposed, transposed},
    {"operands transposed", transposed, dense},
    {"results transposed", dense, transposed},
    {"inner axes transposed", heads_transposed, heads_transposed},
    {"in place", dense, dense, true},
};

// A prepared problem, compiled, with the memory that its runs borrow.
struct Ready {
  Prepared prepared;
  std::unique_ptr<Executable> executable;
  std::shared_ptr<std::byte> memory;
  RunOptions options;
  Lent lent;
  double best = std::numeric_limits<double>::infinity();

  double seconds(int times) {
    auto start = std::chrono::steady_clock::now();
    for (int k = 0; k < times; ++k) executable->direct()->run_in(prepared.view(), options, lent).value();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / times;
  }
};

Ready make_ready(const Problem& problem, bool in_place, const DeviceEntry& device, int threads) {
  Ready ready{.prepared = prepare_problem(problem, {}, Fill::Nothing).value(), .options = {.threads = threads}};
  Prepared& prepared = ready.prepared;
  for (Buffer& each : prepared.buffers.operands)  // a plain number in every type; samples take far longer than runs
    std::fill(each.memory.begin(), each.memory.end(), decltype(each.memory)::value_type{0x3c});
  auto by_element = [](const auto& named) { return named.spread.row.present && named.spread.column.present; };
  if (in_place)  // each element result over an operand of its own type
    for (std::size_t r = 0, k = 0; r < prepared.results().size(); ++r) {
      while (k < prepared.operands().size() && !by_element(prepared.program.operands[k])) ++k;
      if (k < prepared.operands().size() && by_element(prepared.program.results[r]))
        prepared.results()[r].data = prepared.operands()[k++].data;
    }
  ready.executable = device.compile(prepared.program, facts_of(prepared.program, prepared.view())).value();
  const DirectExecutable& direct = *ready.executable->direct();
  auto bytes = direct.memory_bytes(problem.rows(), problem.columns(), ready.options);
  ready.memory = direct.allocate(whole_lines(bytes.workspace) + bytes.own).value();
  ready.lent = {.workspace = ready.memory.get(), .own = ready.memory.get() + whole_lines(bytes.workspace)};
  return ready;
}

struct Settings {
  const DeviceEntry* device = nullptr;
  int threads = 1;
  double seconds = 0.05;
  std::vector<std::string> only;
  double over = std::numeric_limits<double>::infinity();
};

struct Cell {
  std::string line;
  double contiguous, same_lines, laid_out;  // seconds
  double factor() const { return laid_out / same_lines; }
  std::string print() const {
    return fmt::format("{:.4f} | {:.4f} | {:.4f} | {:.2f} | {:.2f}", contiguous * 1e3, same_lines * 1e3, laid_out * 1e3,
                       laid_out / contiguous, factor());
  }
};

// `same_lines` may be `contiguous`.
Cell compare(Ready& contiguous, Ready& same_lines, const Problem& problem, const Layout& layout,
             const Settings& settings) {
  Ready there = make_ready(problem, layout.in_place, *settings.device, settings.threads);
  contiguous.best = same_lines.best = std::numeric_limits<double>::infinity();
  contiguous.seconds(1);
  int times = std::max(1, static_cast<int>(2e-4 / std::max(there.seconds(1), 1e-7)));
  double spent = 0;
  for (int turn = 0; turn < 5 || spent < settings.seconds; ++turn)
    for (Ready* each : {&contiguous, layout.apart == 1 ? nullptr : &same_lines, &there}) {
      if (!each) continue;
      each->seconds(3);  // what fits a cache is there again: not all of it comes back at once
      double took = each->seconds(times);
      each->best = std::min(each->best, took);
      spent += took * times;
    }
  return {print(problem), contiguous.best, same_lines.best, there.best};
}

void table(const std::string& name, const Shape& shape, const char* type, bool backward, const Settings& settings,
           std::vector<Cell>& worst) {
  auto line_of = [&](std::int64_t rows) {
    return fmt::format("{} {}x{}x{} x={}{}", name, shape.outer, rows, shape.columns, type, backward ? " backward" : "");
  };
  const std::string line = line_of(shape.rows);
  auto wanted = [&](const Layout& layout) {
    std::string full = fmt::format("{} | {}", line, layout.name);
    return std::all_of(settings.only.begin(), settings.only.end(),
                       [&](const std::string& text) { return full.find(text) != std::string::npos; });
  };
  if (std::none_of(std::begin(layouts), std::end(layouts), wanted)) return;
  const Problem plain = parse_problem(line).value();
  std::map<int, Ready> contiguous;  // by how many times the rows
  auto with_rows = [&](int times) -> Ready& {
    auto found = contiguous.find(times);
    if (found == contiguous.end()) {
      Problem more = parse_problem(line_of(times * shape.rows)).value();
      found = contiguous.emplace(times, make_ready(more, false, *settings.device, settings.threads)).first;
    }
    return found->second;
  };
  for (const Layout& layout : layouts) {
    if (!wanted(layout)) continue;
    Problem problem = plain;
    const Program& program = with_rows(1).prepared.program;
    for (const Operand& each : program.operands)
      if (!each.constant && each.spread.row.present && each.spread.column.present)
        problem.placements[each.name] = layout.operand(shape);
    for (const Output& each : program.results)
      if (each.spread.row.present && each.spread.column.present) problem.placements[each.name] = layout.result(shape);
    Cell cell = compare(with_rows(1), with_rows(layout.apart), problem, layout, settings);
    if (cell.factor() > settings.over) fmt::print("{} | {} | {} |\n", line, layout.name, cell.print());
    std::size_t k = static_cast<std::size_t>(&layout - layouts);
    if (worst.size() <= k) worst.resize(k + 1);
    if (cell.factor() > worst[k].factor() || worst[k].line.empty()) worst[k] = cell;
    std::fflush(stdout);
  }
}

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  std::string device = "cpu:avx512";
  for (int k = 1; k < argc; ++k) {
    auto is = [&](const char* name) { return std::strcmp(argv[k], name) == 0 && k + 1 < argc; };
    if (is("--device")) device = argv[++k];
    else if (is("--threads")) settings.threads = std::atoi(argv[++k]);
    else if (is("--seconds")) settings.seconds = std::atof(argv[++k]);
    else if (is("--only")) settings.only.emplace_back(argv[++k]);
    else if (is("--over")) settings.over = std::atof(argv[++k]);
    else settings.over = 0;
  }
  settings.device = find_device(device);
  if (!settings.device || !settings.device->missing().empty()) return fmt::print("no {} here\n", device), 2;
  for (const Shape& shape : shapes) {
    std::vector<Cell> worst;
    for (const char* name : {"rms_norm", "layer_norm", "softmax", "swiglu"})
      for (const char* type : {"f32", "bf16", "f16"})
        for (bool backward : {false, true}) table(name, shape, type, backward, settings, worst);
    for (const Cell& cell : worst)
      if (!cell.line.empty())
        fmt::print("| {} | {} | {} | `{}` |\n", shape.where, layouts[&cell - worst.data()].name, cell.print(),
                   cell.line);
    std::fflush(stdout);
  }
}

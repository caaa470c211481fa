#include "plan/operators_page.hpp"

#include <algorithm>
#include <map>
#include <vector>

#include "language/parse.hpp"
#include "language/print.hpp"
#include "passes/passes.hpp"
#include "plan/ops.hpp"
#include "problem/remarks.hpp"

namespace trireme {
namespace {

bool is_element(const Spread& spread) {
  return spread.row.present && spread.column.present && spread.column.plain() && !spread.row.divided();
}

// The [i,j] arrays, and tables that a row is picked of for each, that a program moves when all its operands are given.
struct Moved {
  std::vector<std::string> read, written;
  std::size_t count() const { return read.size() + written.size(); }
};

Moved moved_by(const Program& program) {
  std::vector<bool> wanted(program.size());
  for (const Output& result : program.results) wanted[result.value] = true;
  for (NodeId id = static_cast<NodeId>(program.size()); id-- > 0;)
    if (wanted[id])
      for (NodeId arg : program[id]) wanted[arg] = true;
  std::vector<bool> reads(program.operands.size());
  for (NodeId id = 0; id < program.size(); ++id)
    if (wanted[id] && program[id].op == Op::Operand) reads[program[id].payload] = true;
  Moved moved;
  for (std::size_t k = 0; k < program.operands.size(); ++k)
    if (reads[k] && is_element(program.operands[k].spread)) moved.read.push_back(program.operands[k].name);
  for (const Output& result : program.results)
    if (is_element(result.spread)) moved.written.push_back(result.name);
  return moved;
}

std::string listed(const std::vector<std::string>& names) {
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : " ") + name;
  return list.empty() ? "-" : list;
}

std::string arrow(const Moved& moved) { return listed(moved.read) + " → " + listed(moved.written); }

// The comment at the head of a file, its lines joined, and the text below it without `#:` remarks.
struct Parts {
  std::string comment, program;
};

Parts parts_of(std::string_view text) {
  Parts parts;
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (line.starts_with("#:")) continue;
    if (parts.program.empty() && line.starts_with("# "))
      parts.comment += (parts.comment.empty() ? "" : "\n") + std::string(line.substr(2));
    else parts.program += std::string(line) + "\n";
  }
  return parts;
}

constexpr std::string_view head = R"(# The operators

Each is one file of `ops/`: a program of a few lines, from which the backward is derived. This page is generated from them
(`trireme list --markdown`); a test keeps it so.

The table counts the `[i,j]` arrays that travel between memory and the chip, reads → writes, when everything optional is
given, and tables of which each row picks one: at the speed of memory they are the cost. Operands and results per row and per
column are small beside them. A result that is not asked for is not written, a gradient that does not arrive is not read.

)";

// In the order of a model's layers; uses that are not here come behind, as the operators do.
constexpr std::string_view uses[] = {"norms", "positions", "attention", "gates", "losses", "quantising", "training"};
constexpr std::string_view table_head = "| operator | forward | backward | arrays |\n|---|---|---|---|\n";

}  // namespace

Result<std::string> operators_markdown() {
  std::vector<std::string> order(std::begin(uses), std::end(uses));
  std::map<std::string, std::string> tables;  // by use
  std::string sections;
  for (const OperatorText& each : operator_texts()) {
    TRIREME_TRY(remarks, parse_remarks(each.text));
    if (std::find(order.begin(), order.end(), remarks.use) == order.end()) order.push_back(remarks.use);
    std::string& table = tables[remarks.use];
    TRIREME_TRY(forward, parse(each.text));
    TRIREME_TRY(backward, differentiate(forward));
    Parts parts = parts_of(each.text);
    Moved there = moved_by(forward), back = moved_by(backward);
    std::string name(each.name);
    table += "| [`" + name + "`](#" + name + ") | " + arrow(there) + " | " + arrow(back) + " | " +
             std::to_string(there.count()) + " + " + std::to_string(back.count()) + " |\n";
    sections += "\n## " + name + "\n\n" + parts.comment + "\n\n```row\n" + parts.program + "```\n\n```row\n" +
                print(backward) + "```\n";
  }
  std::string page(head);
  for (const std::string& use : order)
    if (auto found = tables.find(use); found != tables.end())
      page += "\n### " + use + "\n\n" + std::string(table_head) + found->second;
  return page + sections;
}

}  // namespace trireme

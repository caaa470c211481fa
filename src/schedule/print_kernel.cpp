#include <fmt/format.h>

#include <bit>

#include "schedule/kernel.hpp"

namespace trireme {
namespace {

std::string text(Reg reg) {
  if (!reg) return "?";
  return fmt::format("{}{}", "fmxp"[static_cast<int>(reg.bank)], reg.id);
}

// Runs of three and more neighbours are shortened: f0 .. f7.
std::string text(const Values& regs) {
  std::string list;
  for (std::size_t k = 0; k < regs.size(); ++k) {
    std::size_t end = k + 1;
    while (end < regs.size() && regs[end].bank == regs[k].bank && regs[end].id == regs[end - 1].id + 1) ++end;
    if (!list.empty()) list += ", ";
    list += text(regs[k]);
    if (end - k < 3) continue;
    list += " .. " + text(regs[end - 1]);
    k = end - 1;
  }
  return list.empty() ? "?" : list;
}

std::string b_or_imm(const Instr& instr) { return instr.b ? text(instr.b) : fmt::format("{}", instr.imm); }

std::string sum(std::string list, std::int64_t constant) {
  if (list.empty()) return fmt::format("{}", constant);
  auto size = static_cast<std::uint64_t>(constant);  // the smallest number has no negative of its own
  if (constant != 0) list += fmt::format(" {} {}", constant < 0 ? '-' : '+', constant < 0 ? 0 - size : size);
  return list;
}

std::string address(const Instr& instr) {
  std::string list = instr.a ? text(instr.a) : "";
  if (instr.b) {
    if (!list.empty()) list += " + ";
    list += text(instr.b);
    if (bytes(instr.type) != 1) list += fmt::format("*{}", bytes(instr.type));
  }
  return "[" + sum(list, instr.imm) + "]";
}

std::string access(const Instr& instr) {
  return fmt::format("{} {}{}{} {}", name(instr.type),
                     instr.space == Space::Global    ? "global"
                     : instr.space == Space::Scratch ? "scratch"
                                                     : "scratch of block " + text(instr.d),
                     instr.hint == Hint::Streaming ? " streaming" : "", instr.backwards ? " backwards" : "",
                     address(instr));
}

std::string condition(const Instr& instr) { return instr.c ? " if " + text(instr.c) : ""; }

std::string primitive(const Instr& instr) {
  std::string_view op = facts(instr.op).name;
  std::string a = text(instr.a), b = text(instr.b), c = text(instr.c);
  switch (instr.op) {
    case Op::Neg: return "-" + a;
    case Op::Not: return "not " + a;
    case Op::BitsShiftLeft:
    case Op::BitsShiftRight: return fmt::format("{}({}, {})", op, a, instr.imm);
    case Op::RoundTo: return fmt::format("{}({}, {})", op, a, name(instr.type));
    case Op::Add:
    case Op::Sub:
    case Op::Mul:
    case Op::Div:
    case Op::Less:
    case Op::LessEqual:
    case Op::Equal:
    case Op::And:
    case Op::Or: return fmt::format("{} {} {}", a, op, b);
    default: break;  // written as a call, and so is what has no place in a kernel
  }
  switch (facts(instr.op).arity) {
    case 1: return fmt::format("{}({})", op, a);
    case 2: return fmt::format("{}({}, {})", op, a, b);
    default: return fmt::format("{}({}, {}, {})", op, a, b, c);
  }
}

std::string argument(std::int64_t which) {
  constexpr std::string_view names[] = {"first", "last", "total"};
  return which >= 0 && which < 3 ? std::string(names[which]) : "?";
}

std::string meaning(const Slot& slot, const Kernel& kernel) {
  const bool columns = slot.which >= first_column_jump;
  const std::string number =
      fmt::format("{} jump {}", columns ? "column" : "row", columns ? slot.which - first_column_jump : slot.which);
  const auto of_class = [](std::string_view text, int sums) {
    return fmt::format("{}{}", text, sums ? fmt::format(" of class {}", sums) : "");
  };
  const std::string array = slot.array < kernel.operands ? fmt::format("operand {}", slot.array)
                                                         : fmt::format("result {}", slot.array - kernel.operands);
  switch (slot.what) {
    case Slot::What::Pointer:
      if (slot.array == scratch_array) return "scratch";
      if (slot.array == terms_array) return "terms";
      if (is_partials(slot.array)) return of_class("partial column sums", class_of_partials(slot.array));
      return "pointer to " + array;
    case Slot::What::Stride:
      if (is_partials(slot.array)) return of_class("stride of partial column sums", class_of_partials(slot.array));
      return "row stride of " + array;
    case Slot::What::ColumnStride: return "column stride of " + array;
    case Slot::What::Every: return fmt::format("entries between {} of {}", number, array);
    case Slot::What::Jump: return fmt::format("{} of {}", number, array);
    case Slot::What::Rows: return "rows of " + array;
    case Slot::What::Value: return "constant " + array;
    case Slot::What::Columns: return "columns";
    case Slot::What::RowBlock: return of_class("rows a block", slot.array);
    case Slot::What::Blocks: return of_class("row blocks", slot.array);
    case Slot::What::SumNumber: return of_class(sum_number_names[slot.which], slot.array);
  }
  return "?";
}

std::string count(int number, std::string_view what) { return fmt::format("{} {}{}", number, what, &"s"[number == 1]); }

void list(const std::vector<Instr>& body, const Kernel& kernel, int depth, std::string& out) {
  for (const Instr& instr : body) {
    std::string indent(2 * depth, ' ');
    out += indent + print(instr, kernel) + "\n";
    if (instr.code != Do::While && instr.code != Do::If) continue;
    list(instr.body, kernel, depth + 1, out);
    if (!instr.other.empty()) {
      out += indent + "} else {\n";
      list(instr.other, kernel, depth + 1, out);
    }
    out += indent + "}\n";
  }
}

}  // namespace

std::string print(const Instr& instr, const Kernel& kernel) {
  auto is = [&](const std::string& value) { return text(instr.dst) + " = " + value; };
  auto infix = [&](std::string_view op) { return is(fmt::format("{} {} {}", text(instr.a), op, b_or_imm(instr))); };
  std::string here = sum(instr.a ? text(instr.a) : "", instr.imm) + (kernel.simd ? " + lane" : "");
  switch (instr.code) {
    case Do::IndexConstant: return is(fmt::format("{}", instr.imm));
    case Do::IndexSlot:
    case Do::PointerSlot:
    case Do::LaneSlot: return is(fmt::format("args[{}]", instr.imm));
    case Do::IndexArgument: return is(argument(instr.imm));
    case Do::ThreadLane: return is("lane");
    case Do::ThreadGroup: return is("group");
    case Do::ThreadTeam: return is("team");
    case Do::BlockIndex: return is("block");
    case Do::BlockRank: return is("rank");
    case Do::IndexMove:
    case Do::LaneMove: return is(text(instr.a));
    case Do::IndexAdd: return infix("+");
    case Do::IndexSub: return infix("-");
    case Do::IndexMul: return infix("*");
    case Do::IndexMax: return is(fmt::format("max({}, {})", text(instr.a), b_or_imm(instr)));
    case Do::IndexMin: return is(fmt::format("min({}, {})", text(instr.a), b_or_imm(instr)));
    case Do::IndexAnd: return infix("&");
    case Do::IndexShiftRight: return infix(">>");
    case Do::IndexDivide: return infix("/");
    case Do::IndexRemainder: return infix("%");
    case Do::IndexLoad: return is(fmt::format("load one {}{}", access(instr), condition(instr)));
    case Do::PointerAdd: return is(fmt::format("{} + {}*{}", text(instr.a), text(instr.b), instr.imm));
    case Do::Load: return fmt::format("{} = load {}{}", text(instr.values), access(instr), condition(instr));
    case Do::LoadOne: return is(fmt::format("load one {}{}", access(instr), condition(instr)));
    case Do::Store: return fmt::format("store {} = {}{}", access(instr), text(instr.values), condition(instr));
    case Do::StoreOne: return fmt::format("store one {} = {}{}", access(instr), text(instr.values), condition(instr));
    case Do::LaneConstant: return is(fmt::format("{}", std::bit_cast<double>(instr.imm)));
    case Do::LaneFromIndex: return is(fmt::format("float({})", text(instr.a)));
    case Do::Random:
      return is(fmt::format("random({}, {}, {}, {})", text(instr.d), text(instr.b),
                            instr.count == 1 ? text(instr.a) : here, instr.imm2));
    case Do::LaneColumn: return is(fmt::format("float({})", here));
    case Do::Primitive: return is(primitive(instr));
    case Do::ShuffleXor: return is(fmt::format("shuffle_xor({}, {})", text(instr.a), instr.imm));
    case Do::LaneBit: return is(fmt::format("(lane & {}) != 0", instr.imm));
    case Do::MaskBelow: return is(fmt::format("{} < {}", here, text(instr.b)));
    case Do::MaskEqual: return is(fmt::format("{} == {}", sum(text(instr.a), instr.imm), text(instr.b)));
    case Do::Prefetch: return "prefetch " + access(instr);
    case Do::Barrier: return "barrier";
    case Do::ClusterBarrier: return "cluster_barrier";
    case Do::OpenMailbox: return fmt::format("open_mailbox scratch [{}]", instr.imm2);
    case Do::Send:
      return fmt::format("send {} block {} {} = {}, mailbox [{}]{}", name(instr.type), text(instr.d), address(instr),
                         text(instr.values[0]), sum(instr.a ? text(instr.a) : "", instr.imm2), condition(instr));
    case Do::Receive:
      return fmt::format("receive {} {}, mailbox [{}], turn {}", instr.count, name(instr.type),
                         sum(instr.a ? text(instr.a) : "", instr.imm2), text(instr.b));
    case Do::CopyAsync:
      return fmt::format("copy_async {} {} scratch [{}] = global {}{}", instr.count, name(instr.type),
                         sum(instr.d ? text(instr.d) : "", instr.imm2), address(instr), condition(instr));
    case Do::CopyCommit: return "copy_commit";
    case Do::CopyWait: return fmt::format("copy_wait {}", instr.imm);
    case Do::While: return fmt::format("while {} < {} {{", text(instr.a), b_or_imm(instr));
    case Do::If: return fmt::format("if {} < {} {{", text(instr.a), b_or_imm(instr));
    case Do::Note: return "# " + kernel.notes[instr.imm];
    case Do::Name:
      return fmt::format("# {}: {}", kernel.names[instr.imm].name, text(kernel.names[instr.imm].registers));
  }
  return "?";
}

std::string print(const Kernel& kernel) {
  const Launch& launch = kernel.launch;
  std::string out =
      fmt::format("kernel {} {} {}\n", kernel.name, kernel.simd ? "simd" : "threads", name(kernel.compute));
  out += fmt::format("  launch {}", count(launch.lanes, "lane"));
  if (!kernel.simd) out += fmt::format(", {}, {}", count(launch.groups, "group"), count(launch.teams, "team"));
  if (launch.columns_covered != 0) out += fmt::format(", {} columns a block", launch.columns_covered);
  out += "\n";
  if (kernel.scratch_bytes != 0 || kernel.scratch_bytes_per_stripe != 0)
    out += fmt::format("  scratch {} bytes + {} a stripe\n", kernel.scratch_bytes, kernel.scratch_bytes_per_stripe);
  for (std::size_t k = 0; k < kernel.slots.size(); ++k)
    out += fmt::format("  args[{}] {}\n", k, meaning(kernel.slots[k], kernel));
  list(kernel.body, kernel, 1, out);
  return out;
}

}  // namespace trireme

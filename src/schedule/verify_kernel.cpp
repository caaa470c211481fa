#include "schedule/verify_kernel.hpp"

#include <fmt/format.h>

#include <array>
#include <bit>

namespace trireme {
namespace {

// The banks an instruction's registers must have: f, m, x, p as in listings; "x?" may be absent, "" must be.
struct Form {
  Do code;
  std::string_view dst, a, b, c, d;
  bool threads_only = false;
};

constexpr std::array<Form, 49> forms = {{
    {Do::IndexConstant, "x", "", "", "", ""},
    {Do::IndexSlot, "x", "", "", "", ""},
    {Do::IndexArgument, "x", "", "", "", ""},
    {Do::ThreadLane, "x", "", "", "", "", true},
    {Do::ThreadGroup, "x", "", "", "", "", true},
    {Do::ThreadTeam, "x", "", "", "", "", true},
    {Do::BlockIndex, "x", "", "", "", "", true},
    {Do::BlockRank, "x", "", "", "", "", true},
    {Do::IndexMove, "x", "x", "", "", ""},  // or both Pointers
    {Do::IndexAdd, "x", "x", "x?", "", ""},
    {Do::IndexSub, "x", "x", "x?", "", ""},
    {Do::IndexMul, "x", "x", "x?", "", ""},
    {Do::IndexMin, "x", "x", "x?", "", ""},
    {Do::IndexMax, "x", "x", "x?", "", ""},
    {Do::IndexAnd, "x", "x", "x?", "", ""},
    {Do::IndexShiftRight, "x", "x", "", "", ""},
    {Do::IndexDivide, "x", "x", "x?", "", ""},
    {Do::IndexRemainder, "x", "x", "x?", "", ""},
    {Do::IndexLoad, "x", "p", "x?", "m?", ""},
    {Do::PointerSlot, "p", "", "", "", ""},
    {Do::PointerAdd, "p", "p", "x", "", ""},
    {Do::Load, "", "p", "x?", "m?", ""},  // scratch: a is "x?"
    {Do::LoadOne, "f", "p", "x?", "m?", ""},
    {Do::Store, "", "p", "x?", "m?", ""},
    {Do::Prefetch, "", "p", "x?", "", ""},
    {Do::StoreOne, "", "p", "x?", "m?", ""},
    {Do::LaneConstant, "f", "", "", "", ""},
    {Do::LaneSlot, "f", "", "", "", ""},
    {Do::LaneFromIndex, "f", "x", "", "", ""},
    {Do::LaneColumn, "f", "x?", "", "", ""},
    {Do::Random, "f", "x", "x", "", "x"},
    {Do::LaneMove, "f", "f", "", "", ""},
    {Do::Primitive, "f", "f", "f", "f", ""},  // see primitive_form
    {Do::ShuffleXor, "f", "f", "", "", ""},
    {Do::LaneBit, "m", "", "", "", "", true},
    {Do::MaskBelow, "m", "x", "x", "", ""},
    {Do::MaskEqual, "m", "x", "x", "", ""},
    {Do::Barrier, "", "", "", "", "", true},
    {Do::ClusterBarrier, "", "", "", "", "", true},
    {Do::OpenMailbox, "", "", "", "", "", true},
    {Do::Send, "", "x?", "x?", "m?", "x", true},
    {Do::Receive, "", "x?", "x", "", "", true},
    {Do::CopyAsync, "", "p", "x?", "m?", "x?", true},
    {Do::CopyCommit, "", "", "", "", "", true},
    {Do::CopyWait, "", "", "", "", "", true},
    {Do::While, "", "x", "x?", "", ""},
    {Do::If, "", "x", "x?", "", ""},
    {Do::Note, "", "", "", "", ""},
    {Do::Name, "", "", "", "", ""},
}};

Form primitive_form(Op op) {
  bool of_conditions = op == Op::And || op == Op::Or || op == Op::Not;
  std::string_view result = is_condition(op) ? "m" : "f", arg = of_conditions ? "m" : "f";
  int arity = facts(op).arity;
  if (op == Op::Select) return {Do::Primitive, "f", "m", "f", "f", ""};
  return {Do::Primitive, result, arg, arity > 1 ? arg : "", arity > 2 ? arg : "", ""};
}

bool is_memory(Do code) { return code == Do::Load || code == Do::LoadOne || code == Do::Store || code == Do::StoreOne; }

class Verifier {
 public:
  explicit Verifier(const Kernel& kernel) : kernel_(kernel) {}

  Status kernel() {
    const Launch& launch = kernel_.launch;
    if (kernel_.compute != Type::F32 && kernel_.compute != Type::F64) return refuse("the compute type is f32 or f64");
    if (launch.lanes < 1 || launch.lanes > (kernel_.simd ? 64 : 32) || !std::has_single_bit(unsigned(launch.lanes)))
      return refuse(fmt::format("{} lanes: a power of two up to {}", launch.lanes, kernel_.simd ? 64 : 32));
    if (launch.groups < 1 || launch.teams < 1 || launch.threads() > 1024)
      return refuse(fmt::format("{} groups and {} teams: at most 1024 threads a block", launch.groups, launch.teams));
    return body(kernel_.body);
  }

 private:
  Status body(const std::vector<Instr>& instrs) {
    for (const Instr& each : instrs) {
      std::string wrong = instr(each);
      if (!wrong.empty()) return refuse(print(each, kernel_) + ": " + wrong);
      TRIREME_CHECK(body(each.body));
      TRIREME_CHECK(body(each.other));
    }
    return Done{};
  }

  std::string instr(const Instr& instr) {
    Form form = forms[static_cast<std::size_t>(instr.code)];
    if (form.threads_only && kernel_.simd) return "only thread machines have it";
    if (instr.code == Do::Primitive) {
      if (instr.op < Op::Add || instr.op > Op::RoundTo) return "not a primitive";
      form = primitive_form(instr.op);
    }
    if (is_packed(instr.type)) return "kernels see packed arrays as bytes";
    if (instr.code == Do::IndexMove && instr.dst.bank == Bank::Pointer) form.dst = form.a = "p";
    if (is_memory(instr.code) && instr.space != Space::Global) form.a = "x?";
    if ((instr.space == Space::Cluster) != (instr.code == Do::Send)) return "another block's scratch is only sent to";
    const bool vectors = instr.code == Do::Load || instr.code == Do::Store;
    if (instr.backwards && (!kernel_.simd || !vectors || instr.space != Space::Global))
      return "only vectors of a simd machine go backwards, in global memory";
    if (instr.code == Do::Send && kernel_.launch.cluster == 1) return "there is no other block to send to";
    if (instr.code == Do::Barrier && kernel_.launch.cluster > 1) return "the blocks of a cluster meet all together";
    for (auto [reg, wanted, part] : {std::tuple{instr.dst, form.dst, "dst"},
                                     {instr.a, form.a, "a"},
                                     {instr.b, form.b, "b"},
                                     {instr.c, form.c, "c"},
                                     {instr.d, form.d, "d"}})
      if (!fits(reg, wanted)) return fmt::format("{} must be {}", part, wanted.empty() ? "absent" : wanted);
    if (std::string wrong = values(instr); !wrong.empty()) return wrong;
    return numbers(instr);
  }

  bool fits(Reg reg, std::string_view wanted) const {
    if (!reg) return wanted.empty() || wanted.ends_with('?');
    const int counts[] = {kernel_.lane_count, kernel_.mask_count, kernel_.index_count, kernel_.pointer_count};
    int bank = static_cast<int>(reg.bank);
    return !wanted.empty() && "fmxp"[bank] == wanted[0] && reg.id < counts[bank];
  }

  std::string values(const Instr& instr) const {
    std::size_t least = 1, most = 1;
    if (instr.code == Do::Send)
      return instr.values.size() == 1 && fits(instr.values[0], "f") ? "" : "one value is sent";
    if (!is_memory(instr.code) || instr.code == Do::LoadOne) least = most = 0;
    else if (instr.code != Do::StoreOne && !kernel_.simd) most = 64;
    else if (instr.code == Do::Store && !instr.c) most = 2;
    if (instr.values.size() < least || instr.values.size() > most)
      return fmt::format("{} values, where {} to {} are right", instr.values.size(), least, most);
    for (Reg value : instr.values)
      if (!fits(value, "f")) return "values must be f";
    return "";
  }

  std::string numbers(const Instr& instr) const {
    auto within = [&](std::int64_t end) {
      return instr.imm >= 0 && instr.imm < end ? "" : fmt::format("{} is not below {}", instr.imm, end);
    };
    switch (instr.code) {
      case Do::IndexSlot:
      case Do::PointerSlot:
      case Do::LaneSlot: return within(static_cast<std::int64_t>(kernel_.slots.size()));
      case Do::IndexArgument: return within(3);
      case Do::IndexShiftRight: return within(64);
      case Do::ShuffleXor: return within(kernel_.launch.lanes);
      case Do::Primitive:
        if (instr.op != Op::BitsShiftLeft && instr.op != Op::BitsShiftRight) return "";
        return within(static_cast<std::int64_t>(8 * bytes(kernel_.compute)));
      case Do::LaneConstant: {
        double value = std::bit_cast<double>(instr.imm);
        bool exact = kernel_.compute == Type::F64 || !(static_cast<double>(static_cast<float>(value)) != value);
        return exact || value != value ? "" : "not exact in the compute type";
      }
      default: return "";
    }
  }

  Error refuse(const std::string& message) const {
    return {Code::Internal, fmt::format("kernel {}: {}", kernel_.name, message)};
  }

  const Kernel& kernel_;
};

constexpr bool in_order() {
  for (std::size_t k = 0; k <= static_cast<std::size_t>(Do::Name); ++k)
    if (forms[k].code != static_cast<Do>(k)) return false;
  return true;
}
static_assert(in_order());

}  // namespace

Status verify(const Kernel& kernel) { return Verifier(kernel).kernel(); }

}  // namespace trireme

// Operands, kernels and modules to text, and the checks that refuse what is ill-formed.
#include "targets/ptx/kernel_state.hpp"

#include <algorithm>
#include <charconv>

#include "support/out_of_memory.hpp"

namespace trireme::ptx {
namespace {

// What an instruction needs beyond sm_70 and PTX 6.3, by a fragment of its text: the "Target ISA Notes" of the PTX ISA.
struct Need {
  std::string_view fragment;
  unsigned sm, ptx;
};
// clang-format off
constexpr Need known_needs[] = {
    {".NaN", 80, 70},             {"bf16", 80, 70},              {"f16x2.f32", 80, 70},
    {"e4m3x2", 89, 81},           {"e5m2x2", 89, 81},            {"redux.sync", 80, 70},
    {"cp.async", 80, 70},         {"cp.async.bulk", 90, 80},     {"st.async", 90, 81},
    {"L1::no_allocate", 70, 74},  {"L2::cache_hint", 80, 74},    {"createpolicy", 80, 74},
    {".v8.", 100, 88},            {".v4.b64", 100, 88},          {".v4.f64", 100, 88},
    {"mbarrier", 80, 70},         {"mbarrier.try_wait", 90, 78}, {"mbarrier.arrive.release", 90, 80},
    {"expect_tx", 90, 80},        {"shared::cluster", 90, 78},   {"mapa", 90, 78},
    {"barrier.cluster", 90, 78},  {"arrive.relaxed", 90, 80},    {"%cluster", 90, 78},
    {"%nclusterid", 90, 78},      {".explicitcluster", 90, 78},  {".reqnctapercluster", 90, 78},
    {"acq_rel.cluster", 90, 78},  {"mbarrier_init", 90, 80},     {"fence.proxy.async", 90, 80},
    {"griddepcontrol", 90, 78},
};
constexpr Architecture architectures[] = {
    {70, 63, 96 << 10},   {75, 63, 64 << 10},   {80, 70, 163 << 10}, {86, 71, 99 << 10},  {87, 74, 163 << 10},
    {88, 90, 99 << 10},   {89, 78, 99 << 10},   {90, 78, 227 << 10}, {100, 86, 227 << 10}, {101, 86, 227 << 10},
    {103, 88, 227 << 10}, {110, 90, 227 << 10}, {120, 87, 99 << 10}, {121, 88, 99 << 10},
};
// clang-format on
constexpr std::uint32_t static_shared_limit = 48 << 10;

std::string hex(std::uint64_t value, std::size_t digits) {
  char buffer[16];
  std::string text(buffer, std::to_chars(buffer, buffer + 16, value, 16).ptr);
  for (char& c : text)
    if (c >= 'a') c -= 'a' - 'A';
  return std::string(digits - std::min(digits, text.size()), '0') + text;
}

struct Number {
  std::string text;
  bool fits;
};
Number integer(const Value& value, unsigned bits) {
  if (value.negative) return {join("-", decimal(-value.bits)), value.bits >= ~std::uint64_t{0} << (bits - 1)};
  return {value.bits >> 31 ? join("0x", hex(value.bits, 0)) : decimal(value.bits), bits == 64 || !(value.bits >> bits)};
}

std::string register_name(const Value& value) { return join(facts(value.type).prefix, decimal(value.id)); }

struct Chip {
  unsigned sm;
  unsigned ptx;
  Architecture architecture;
};
std::optional<Chip> chip_of(std::string_view arch) {
  unsigned sm = 0;
  if (!arch.starts_with("sm_")) return {};
  const char* end = arch.data() + arch.size();
  auto [rest, error] = std::from_chars(arch.data() + 3, end, sm);
  std::string_view suffix(rest, static_cast<std::size_t>(end - rest));
  if (error != std::errc() || sm < 70 || (suffix != "" && suffix != "a" && suffix != "f")) return {};
  Architecture architecture = architectures[0];  // one we do not know is taken for the last one before it
  for (const Architecture& each : architectures)
    if (each.sm <= sm) architecture = each;
  return Chip{sm, std::max(architecture.ptx, suffix == "f" ? 88u : suffix == "a" ? 80u : 0u), architecture};
}

}  // namespace

std::string type_name(Class type, char integer) {
  if (type == Class::Pred) return ".pred";
  return join(".", std::string(1, facts(type).is_float ? 'f' : integer), decimal(facts(type).bits));
}

bool is_identifier(std::string_view name) {
  auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  if (name.empty() || !letter(name[0]) || name == "_") return false;
  return std::all_of(name.begin(), name.end(), [&](char c) { return letter(c) || (c >= '0' && c <= '9'); });
}

std::string commented(std::string_view text, std::string_view indent) {
  std::string lines;
  while (!text.empty()) {
    std::string_view first = text.substr(0, text.find_first_of("\r\n"));
    lines += join(indent, "// ", first, "\n");
    text.remove_prefix(std::min(text.size(), first.size() + 1));
  }
  return lines;
}

void Needs::add(std::string_view text) {
  for (const Need& need : known_needs) {
    if (text.find(need.fragment) == text.npos) continue;
    ptx = std::max(ptx, need.ptx);
    if (need.sm > sm) sm = need.sm, reason = text.substr(0, text.find(' '));
  }
}

std::string Kernel::State::use(const Value& value, std::string_view by) {
  if (value.kind == Value::Kind::Immediate) {
    if (value.type == Class::F32) return join("0f", hex(value.bits, 8));
    if (value.type == Class::F64) return join("0d", hex(value.bits, 16));
    unsigned bits = facts(value.type).bits;
    auto [text, fits] = integer(value, bits);
    if (!fits) refuse(join(text, " does not fit ", decimal(bits), " bits (", by, ")"));
    return text;
  }
  std::string name = register_name(value);
  const std::vector<bool>& known = registers(value.type);
  if (value.id == 0 || value.id > known.size())
    refuse(join("a register that this kernel did not make is read (", by, ")"));
  else if (!known[value.id - 1]) refuse(join("register ", name, " is read before any assignment (", by, ")"));
  if (value.kind == Value::Kind::Register) return name;
  if (value.bits == 0) return join("[", name, "]");
  auto [offset, fits] = integer(value, value.negative ? 32 : 31);
  if (!fits) refuse(join("the offset ", offset, " of an address does not fit 32 bits (", by, ")"));
  return join("[", name, "+", offset, "]");
}

std::string Kernel::State::define(const Value& value, std::string_view by) {
  std::vector<bool>& known = registers(value.type);
  if (value.id == 0 || value.id > known.size())
    refuse(join("a register that this kernel did not make is written (", by, ")"));
  else known[value.id - 1] = true;
  return register_name(value);
}

void Kernel::State::line(std::string_view spelling, std::string_view operands) {
  if (spelling != last_spelling) needs.add(spelling), last_spelling = spelling;
  body.append("  ").append(guard).append(spelling);
  if (!operands.empty()) body.append(" ").append(operands);
  body += ";\n";
}

std::string Kernel::State::flaw(const Architecture& architecture) const {
  if (!fault.empty()) return fault;
  if (!is_identifier(name)) return join("'", name, "' is no name for a kernel");
  for (const LabelState& each : labels)
    if (each.used && !each.placed) return join("label ", each.name, " is never placed");

  const auto& [x, y, z] = options.reqntid;
  std::uint64_t threads = std::uint64_t{x} * std::max(1u, y) * std::max(1u, z);
  if (threads > 1024 || options.maxntid > 1024) return "a block has at most 1024 threads";
  if (!x && (y || z)) return "reqntid states y or z without x";
  if (threads && options.maxntid) return "reqntid and maxntid exclude each other";
  if (options.minnctapersm && !threads && !options.maxntid) return "minnctapersm needs reqntid or maxntid";
  if (options.maxnreg > 255) return "a thread has at most 255 registers";
  if (options.reqnctapercluster > 16) return "a cluster has at most 16 blocks";

  std::uint64_t param_bytes = 0;
  for (const Param& each : params) {
    std::uint32_t bytes = each.bytes ? each.bytes : facts(each.type).bits / 8, align = each.bytes ? each.align : bytes;
    param_bytes = (param_bytes + align - 1) / align * align + bytes;
  }
  if (param_bytes > 4096) return join("parameters of ", decimal(param_bytes), " bytes; at most 4096 are taken");
  if (static_shared > static_shared_limit)
    return join("static shared memory of ", decimal(static_shared), " bytes; at most ", decimal(static_shared_limit),
                " are allowed, more as dynamic_shared");
  std::uint64_t shared = static_shared + dynamic_shared.value_or(0);
  if (shared > architecture.shared_bytes)
    return join("shared memory of ", decimal(shared), " bytes; a block of sm_", decimal(architecture.sm),
                " has at most ", decimal(architecture.shared_bytes));
  return "";
}

std::string Kernel::State::head() const {
  std::string text = commented(options.comment, "");
  if (dynamic_shared) text += join("// Dynamic shared memory: ", decimal(*dynamic_shared), " bytes.\n");
  text += join(".visible .entry ", name, "(");
  for (const Param& each : params) {
    text += &each == params.data() ? "\n  .param " : ",\n  .param ";
    text += each.bytes ? join(".align ", decimal(each.align), " .b8 ", each.name, "[", decimal(each.bytes), "]")
                       : join(type_name(each.type, 'u'), " ", each.name);
  }
  text += params.empty() ? ")\n" : "\n)\n";
  auto directive = [&](std::string_view name, std::uint32_t value) {
    if (value) text += join(name, " ", decimal(value), "\n");
  };
  const auto& [x, y, z] = options.reqntid;
  if (x) text += join(".reqntid ", decimal(x), ", ", decimal(std::max(1u, y)), ", ", decimal(std::max(1u, z)), "\n");
  directive(".maxntid", options.maxntid);
  directive(".minnctapersm", options.minnctapersm);
  directive(".maxnreg", options.maxnreg);
  if (options.explicitcluster) text += ".explicitcluster\n";
  directive(".reqnctapercluster", options.reqnctapercluster);
  return text;
}

std::string Kernel::State::text() const {
  std::string declarations;
  for (std::size_t i = 0; i < class_facts.size(); ++i)
    if (std::size_t count = assigned[i].size())
      declarations +=
          join("  .reg ", class_facts[i].declared, " ", class_facts[i].prefix, "<", decimal(count + 1), ">;\n");
  declarations += shared_declarations;
  return join(head(), "{\n", declarations, declarations.empty() ? "" : "\n", body, "  ret;\n}\n");
}

Kernel& Module::kernel(std::string_view name, const KernelOptions& options) {
  return *kernels_.emplace_back(std::make_unique<Kernel>(name, options));
}

Result<std::string> Module::text() const {
  return or_out_of_memory([&]() -> Result<std::string> {
    std::optional<Chip> chip = chip_of(arch_);
    if (!chip) return Error{Code::InvalidArgument, join("'", arch_, "' is no architecture; sm_80 or sm_90a is")};
    unsigned ptx = chip->ptx;
    bool dynamic_shared = false;
    std::vector<std::string_view> names;
    for (const auto& kernel : kernels_) {
      const Kernel::State& state = *kernel->state_;
      auto refused = [&](Code code, std::string_view why) {
        return Error{code, join("kernel ", state.name, ": ", why)};
      };
      if (std::string flaw = state.flaw(chip->architecture); !flaw.empty()) return refused(Code::InvalidArgument, flaw);
      if (std::find(names.begin(), names.end(), state.name) != names.end())
        return refused(Code::InvalidArgument, "another kernel has this name");
      names.push_back(state.name);

      Needs needs = state.needs;
      if (state.options.explicitcluster) needs.add(".explicitcluster");
      if (state.options.reqnctapercluster) needs.add(".reqnctapercluster");
      if (needs.sm > chip->sm)
        return refused(Code::Unsupported,
                       join(needs.reason, " needs sm_", decimal(needs.sm), "; the module is for ", arch_));
      ptx = std::max(ptx, needs.ptx);
      dynamic_shared |= state.dynamic_shared.has_value();
    }

    std::string text =
        join(".version ", decimal(ptx / 10), ".", decimal(ptx % 10), "\n.target ", arch_, "\n.address_size 64\n");
    if (dynamic_shared) text += "\n.extern .shared .align 128 .b8 $dynamic_shared[];\n";
    for (const auto& kernel : kernels_) text += "\n" + kernel->state_->text();
    return text;
  });
}

}  // namespace trireme::ptx

// The instructions of the PTX builder that need more than a template, and the spelling of all.
#include "targets/ptx/kernel_state.hpp"

namespace trireme::ptx {
namespace {

// clang-format off
constexpr std::string_view float_compares[] = {"eq",  "ne",  "lt",  "le",  "gt",  "ge",  "equ",
                                               "neu", "ltu", "leu", "gtu", "geu", "num", "nan"};
constexpr std::string_view int_compares[] = {"eq", "ne", "lt", "le", "gt", "ge", "lo", "ls", "hi", "hs"};
constexpr std::string_view rounds[] = {".rn", ".rz", ".rm", ".rp"};
constexpr std::string_view halves[] = {"f16", "bf16"};
constexpr std::string_view fp8s[] = {"e4m3x2", "e5m2x2"};
constexpr std::string_view shuffles[] = {"up", "down", "bfly", "idx"};
constexpr std::string_view votes[] = {"all", "any", "uni"};
constexpr std::string_view reduxes[] = {"add.s32", "min.s32", "max.s32", "min.u32",
                                        "max.u32", "and.b32", "or.b32",  "xor.b32"};
constexpr std::string_view fences[] = {"fence.acq_rel.cta",
                                       "fence.acq_rel.cluster",
                                       "fence.acq_rel.gpu",
                                       "fence.acq_rel.sys",
                                       "fence.mbarrier_init.release.cluster",
                                       "fence.proxy.async"};
constexpr std::string_view evicts[] = {"first", "normal", "last"};
constexpr std::string_view specials[] = {
    "%tid.x",       "%tid.y",       "%tid.z",        "%ntid.x",          "%ntid.y",          "%ntid.z", "%ctaid.x",
    "%ctaid.y",     "%ctaid.z",     "%nctaid.x",     "%nctaid.y",        "%nctaid.z",        "%laneid", "%clusterid.x",
    "%clusterid.y", "%clusterid.z", "%nclusterid.x", "%cluster_ctarank", "%cluster_nctarank"};
constexpr std::string_view caches[] = {"", ".ca", ".cg", ".cs", ".L1::no_allocate", ".nc", ".nc.L1::no_allocate"};
constexpr std::string_view narrows[] = {"", ".u8", ".s8", ".u16", ".s16"};
// clang-format on

template <typename E>
std::string_view name_in(std::span<const std::string_view> names, E which) {
  return names[static_cast<std::size_t>(which)];
}

}  // namespace

std::string Kernel::spell(std::string_view name, Class type, char integer) {
  return join(name, type_name(type, integer));
}
std::string Kernel::spell(FloatCompare how, Class type) {
  return join("setp.", name_in(float_compares, how), type_name(type, 'f'));
}
std::string Kernel::spell(IntCompare how, Class type) {
  bool sign = how >= IntCompare::Lt && how <= IntCompare::Ge;
  return join("setp.", name_in(int_compares, how), type_name(type, sign ? 's' : how >= IntCompare::Lo ? 'u' : 'b'));
}
std::string Kernel::spell(Shuffle how) { return join("shfl.sync.", name_in(shuffles, how), ".b32"); }

// PTX wants a rounding exactly where one can happen; `i` marks rounding to a whole number.
std::string Kernel::cvt(Class to, Class from, char integer, std::optional<Round> mode) {
  bool whole = facts(from).is_float && (to == from || !facts(to).is_float);
  std::string rounding;
  if (mode) rounding = join(name_in(rounds, *mode), whole ? "i" : "");
  else if (facts(to).is_float) rounding = ".rn";
  return join("cvt", rounding, type_name(to, integer), type_name(from, integer));
}

Kernel::Kernel(std::string_view name, const KernelOptions& options) : state_(std::make_unique<State>()) {
  state_->name = name;
  state_->options = options;
}
Kernel::~Kernel() = default;
Kernel::Kernel(Kernel&&) noexcept = default;

std::uint32_t Kernel::new_register(Class type) {
  std::vector<bool>& known = state_->registers(type);
  known.push_back(false);
  return static_cast<std::uint32_t>(known.size());
}

std::uint32_t Kernel::declare_param(std::string_view name, Class type, std::uint32_t bytes, std::uint32_t align) {
  if (!is_identifier(name)) state_->refuse(join("'", name, "' is no name for a parameter"));
  for (const State::Param& each : state_->params)
    if (each.name == name) state_->refuse(join("two parameters are named ", name));
  state_->params.push_back({std::string(name), type, bytes, align});
  return static_cast<std::uint32_t>(state_->params.size() - 1);
}

void Kernel::put_param_load(Value to, std::uint32_t index, std::uint32_t offset) {
  if (index >= state_->params.size()) return state_->refuse("a parameter that this kernel did not declare is read");
  const State::Param& param = state_->params[index];
  std::uint32_t bytes = facts(to.type).bits / 8;
  if (param.bytes && (offset % bytes || offset + bytes > param.bytes))
    state_->refuse(join("parameter ", param.name, " has ", decimal(param.bytes), " bytes; ", decimal(bytes), " at ",
                        decimal(offset), " are outside it or not aligned"));
  std::string spelling = spell("ld.param", to.type);
  std::string at = offset ? join("+", decimal(offset)) : "";
  state_->line(spelling, join(state_->define(to, spelling), ", [", param.name, at, "]"));
}

Shared Kernel::shared(std::uint32_t bytes, std::uint32_t align) {
  std::string area = join("$shared", decimal(state_->shared_areas++));
  state_->shared_declarations += join("  .shared .align ", decimal(align), " .b8 ", area, "[", decimal(bytes), "];\n");
  state_->static_shared = (state_->static_shared + align - 1) / align * align + bytes;
  U32 base = reg<U32>();
  state_->line("mov.b32", join(state_->define(base.value, "mov.b32"), ", ", area));
  return {base};
}
Shared Kernel::dynamic_shared(std::uint32_t bytes) {
  if (state_->dynamic_shared) state_->refuse("dynamic shared memory is one area, asked for twice");
  state_->dynamic_shared = bytes;
  U32 base = reg<U32>();
  state_->line("mov.b32", join(state_->define(base.value, "mov.b32"), ", $dynamic_shared"));
  return {base};
}
U32 Kernel::read(Special which, Into<U32> d) {
  U32 to = fresh(d);
  std::string_view name = name_in(specials, which);
  state_->needs.add(name);
  state_->line("mov.u32", join(state_->define(to.value, "mov.u32"), ", ", name));
  return to;
}

void Kernel::put(std::string_view spelling, std::span<const Value> writes, std::span<const Value> reads,
                 Braces braces) {
  std::vector<std::string> operands(writes.size());
  for (const Value& each : reads) operands.push_back(state_->use(each, spelling));  // before the writes: a = a + b
  for (std::size_t i = 0; i < writes.size(); ++i) operands[i] = state_->define(writes[i], spelling);
  std::string text;
  std::size_t open = braces == Braces::Writes ? 0 : writes.size();
  std::size_t close = braces == Braces::Writes ? writes.size() : operands.size();
  for (std::size_t i = 0; i < operands.size(); ++i)
    text += join(i ? ", " : "", braces != Braces::None && i == open ? "{" : "", operands[i],
                 braces != Braces::None && i + 1 == close ? "}" : "");
  state_->line(spelling, text);
}

void Kernel::transfer(bool load, char space, Value address, const Access& access, const std::vector<Value>& values) {
  std::size_t count = values.size();
  if (count != 1 && count != 2 && count != 4 && count != 8)
    return state_->refuse("a vector has 1, 2, 4 or 8 registers");
  Class type = values[0].type;
  bool narrow = access.as != Narrow::No;
  unsigned bits = !narrow ? facts(type).bits : access.as <= Narrow::S8 ? 8 : 16;
  if (narrow && type != Class::B16 && type != Class::B32)
    state_->refuse("only B16 and U32 registers take narrower memory");
  if (count * bits > (space == 'g' && bits >= 32 ? 256u : 128u) || (count == 8 && bits != 32))
    state_->refuse(join("a vector of ", decimal(count), " times ", decimal(bits), " bits is too wide"));
  if (space != 'g' && (access.cache != Cache::Default || access.policy.value.id))
    state_->refuse("cache hints are for global memory");
  if (!load && (access.cache == Cache::Ca || access.cache >= Cache::Nc))
    state_->refuse(join("a store has no cache hint ", name_in(caches, access.cache)));

  std::string spelling = join(load ? "ld" : "st",
                              space == 'g'   ? ".global"
                              : space == 's' ? ".shared"
                                             : ".shared::cluster",
                              name_in(caches, access.cache), access.policy.value.id ? ".L2::cache_hint" : "",
                              count > 1 ? join(".v", decimal(count)) : "",
                              narrow ? std::string(name_in(narrows, access.as)) : type_name(type, 'b'));
  std::string at = state_->use(address, spelling);
  std::string policy = access.policy.value.id ? join(", ", state_->use(access.policy.value, spelling)) : "";
  std::string list;
  for (const Value& each : values)
    list += join(list.empty() ? "" : ", ", load ? state_->define(each, spelling) : state_->use(each, spelling));
  if (count > 1) list = join("{", list, "}");
  state_->line(spelling, load ? join(list, ", ", at, policy) : join(at, ", ", list, policy));
}

B16 Kernel::to_half(Half format, Operand<F32> a, Into<B16> d) {
  return make(d, join("cvt.rn.", name_in(halves, format), ".f32"), a);
}
U32 Kernel::to_half_pair(Half format, Operand<F32> low, Operand<F32> high, Into<U32> d) {
  return make(d, join("cvt.rn.", name_in(halves, format), "x2.f32"), high, low);  // PTX names the high half first
}
B16 Kernel::to_fp8_pair(Fp8 format, Operand<F32> low, Operand<F32> high, Into<B16> d) {
  return make(d, join("cvt.rn.satfinite.", name_in(fp8s, format), ".f32"), high, low);
}
U32 Kernel::widen_fp8_pair(Fp8 format, B16 pair, Into<U32> d) {
  return make(d, join("cvt.rn.f16x2.", name_in(fp8s, format)), pair);
}
U64 Kernel::l2_policy(Evict evict, Into<U64> d) {
  return make(d, join("createpolicy.fractional.L2::evict_", name_in(evicts, evict), ".b64"));
}
Pred Kernel::vote(Vote how, Pred a, Into<Pred> d) {
  return make(d, join("vote.sync.", name_in(votes, how), ".pred"), a, Operand<U32>(~0u));
}
U32 Kernel::redux(Redux how, U32 a, Into<U32> d) {
  return make(d, join("redux.sync.", name_in(reduxes, how)), a, Operand<U32>(~0u));
}
void Kernel::fence(Fence what) { emit(name_in(fences, what)); }
void Kernel::cluster_arrive(Order order) {
  emit(order == Order::Relaxed ? "barrier.cluster.arrive.relaxed.aligned" : "barrier.cluster.arrive.aligned");
}
Remote Kernel::mapa(Shared own, Operand<U32> rank) {
  return {make(Into<U32>{}, "mapa.shared::cluster.u32", own.base, rank), own.offset};
}

void Kernel::cp_async(Shared to, Global from, std::uint32_t bytes, std::optional<Operand<U32>> source_bytes) {
  if (bytes != 4 && bytes != 8 && bytes != 16) state_->refuse("cp.async copies 4, 8 or 16 bytes");
  std::string_view spelling = bytes == 16 ? "cp.async.cg.shared.global" : "cp.async.ca.shared.global";
  if (source_bytes) emit(spelling, to, from, Operand<U32>(bytes), *source_bytes);
  else emit(spelling, to, from, Operand<U32>(bytes));
}
void Kernel::mbarrier_wait(Shared barrier, Operand<U32> parity) {
  Label again = label("wait");
  place(again);
  branch_unless(mbarrier_try_wait(barrier, parity), again);
}

void Kernel::open_guard(Pred p, bool negated) {
  if (!state_->guard.empty()) state_->refuse("when and unless do not nest: combine the predicates");
  state_->guard = join(negated ? "@!" : "@", state_->use(p.value, "a guard"), " ");
}
void Kernel::close_guard() { state_->guard.clear(); }

Label Kernel::label(std::string_view name) {
  if (!is_identifier(name)) state_->refuse(join("'", name, "' is no name for a label"));
  auto id = static_cast<std::uint32_t>(state_->labels.size());
  state_->labels.push_back({join("$", name, "_", decimal(id))});
  return {id};
}
void Kernel::place(Label label) {
  if (label.id >= state_->labels.size()) return state_->refuse("a label that this kernel did not make is placed");
  State::LabelState& it = state_->labels[label.id];
  if (it.placed) state_->refuse(join("label ", it.name, " is placed twice"));
  if (!state_->guard.empty()) state_->refuse(join("label ", it.name, " is placed inside when or unless"));
  it.placed = true;
  state_->body += join(it.name, ":\n");
}
void Kernel::branch(Label to, Flow flow) {
  if (to.id >= state_->labels.size())
    return state_->refuse("a label that this kernel did not make is a branch's target");
  state_->labels[to.id].used = true;
  state_->line(flow == Flow::Uniform ? "bra.uni" : "bra", state_->labels[to.id].name);
}
void Kernel::comment(std::string_view text) { state_->body += commented(text, "  "); }

}  // namespace trireme::ptx

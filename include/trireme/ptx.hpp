// A typed builder of PTX text, for kernels of any kind: it knows instructions, not what they are for.
//
//   ptx::Module module;                                             // sm_80, and the lowest PTX version that serves
//   ptx::Kernel& k = module.kernel("twice", {.reqntid = {128}});
//   ptx::U64 x = k.load(k.param<ptx::U64>("x"));
//   ptx::U64 at = k.mad_wide_u(k.read(ptx::Special::TidX), 4, x);   // x + 4 * tid.x
//   ptx::F32 v = k.load<ptx::F32>(ptx::Global{at});
//   k.add(v, v, into(v));                                           // a result is a fresh register, or goes `into` one
//   k.store(ptx::Global{at}, v);
//   Result<std::string> text = module.text();                       // or why the kernel is ill-formed
//
// F32, F64, B16, U32, U64 and Pred are different C++ types, so ill-typed code does not compile. Integers are bits:
// where signs matter the name says so (min_s, min_u). Arithmetic on floats always rounds explicitly, to nearest even.
// Registers are mutable. C++ does not order the calls inside k.add(k.mul(a, b), k.mul(c, d)); where the text must not
// depend on the compiler, give each its own statement. Every construct with its text: src/targets/ptx/builder_test.cpp.
#pragma once
#include <array>
#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "trireme/result.hpp"

namespace trireme::ptx {

// What an instruction reads or writes, without its C++ type: a register, an immediate, or an address [base+offset].
enum class Class : std::uint8_t { Pred, B16, B32, B64, F32, F64 };
struct Value {
  enum class Kind : std::uint8_t { Register, Immediate, Address };
  Class type;
  Kind kind;
  bool negative;       // of an integer immediate
  std::uint32_t id;    // of a register or an address's base; 0 is none
  std::uint64_t bits;  // of an immediate, or an address's offset
};

template <typename T, typename... Ts>
concept AnyOf = (std::same_as<T, Ts> || ...);
template <typename R, typename T>
concept LiteralOf = AnyOf<T, typename R::Literal> ||
    (AnyOf<typename R::Literal, std::uint64_t>&& std::integral<T> && !AnyOf<T, bool>);

// A register or an immediate. A float literal has the register's own type: k.mul(x, 2.0f).
template <typename R>
struct Operand {
  Value value;
  template <typename T>
  requires LiteralOf<R, T>
  constexpr Operand(T literal) : value{R::type, Value::Kind::Immediate, literal < T{}, 0, bits(literal)} {}

 protected:
  constexpr explicit Operand(Value v) : value(v) {}

 private:
  static constexpr std::uint64_t bits(float f) { return __builtin_bit_cast(std::uint32_t, f); }
  static constexpr std::uint64_t bits(double d) { return __builtin_bit_cast(std::uint64_t, d); }
  static constexpr std::uint64_t bits(std::integral auto i) { return static_cast<std::uint64_t>(i); }
};

template <Class C, typename L>
struct Register : Operand<Register<C, L>> {
  static constexpr Class type = C;
  using Literal = L;
  constexpr Register() : Register(0) {}  // none yet: reading it is refused
  constexpr explicit Register(std::uint32_t id) : Operand<Register>(Value{C, Value::Kind::Register, false, id, 0}) {}
};
using Pred = Register<Class::Pred, bool>;
using B16 = Register<Class::B16, std::uint64_t>;
using U32 = Register<Class::B32, std::uint64_t>;
using U64 = Register<Class::B64, std::uint64_t>;
using F32 = Register<Class::F32, float>;
using F64 = Register<Class::F64, double>;

// clang-format off
template <typename R> concept Float = AnyOf<R, F32, F64>;
template <typename R> concept Integer = AnyOf<R, U32, U64>;
template <typename R> concept Number = Float<R> || Integer<R>;
template <typename R> concept Bits = AnyOf<R, Pred, B16, U32, U64>;
template <typename R> concept Data = Number<R> || AnyOf<R, B16>;
template <typename R> concept Any = Data<R> || AnyOf<R, Pred>;
template <typename R> concept Word = AnyOf<R, U32, F32>;  // 32 bits

template <typename R> using In = std::type_identity_t<Operand<R>>;  // an operand whose type another one decides
template <Any R> struct Into { R destination; };                    // where a result goes; by default a fresh register
template <typename R> using To = std::type_identity_t<Into<R>>;
template <Any R> Into<R> into(R destination) { return {destination}; }
template <Data R> using HalfOf = std::conditional_t<Word<R>, B16, U32>;

// Addresses; the type is the state space. Remote is another block's shared memory in the same cluster, by `mapa`.
struct Global { U64 base; std::int64_t offset = 0; };
struct Shared { U32 base; std::int64_t offset = 0; };
struct Remote { U32 base; std::int64_t offset = 0; };
template <typename A> concept Address = AnyOf<A, Global, Shared, Remote>;

template <Data R> struct Parameter { std::uint32_t index; };
struct ParameterBytes { std::uint32_t index; };
struct Label { std::uint32_t id; };

enum class FloatCompare : std::uint8_t { Eq, Ne, Lt, Le, Gt, Ge, Equ, Neu, Ltu, Leu, Gtu, Geu, Num, Nan };
enum class IntCompare : std::uint8_t { Eq, Ne, Lt, Le, Gt, Ge, Lo, Ls, Hi, Hs };  // the last four are unsigned
enum class Round : std::uint8_t { Even, Zero, Down, Up };
enum class Half : std::uint8_t { F16, BF16 };
enum class Fp8 : std::uint8_t { E4M3, E5M2 };  // conversions saturate to finite values
enum class Shuffle : std::uint8_t { Up, Down, Bfly, Idx };
enum class Vote : std::uint8_t { All, Any, Uni };
enum class Redux : std::uint8_t { Add, MinS, MaxS, MinU, MaxU, And, Or, Xor };
enum class Fence : std::uint8_t { Block, Cluster, Device, System, MbarrierInit, ProxyAsync };
enum class Flow : std::uint8_t { Divergent, Uniform };  // Uniform: all threads of a warp go the same way
enum class Order : std::uint8_t { Release, Relaxed };   // of earlier writes, at a cluster's arrival
enum class Evict : std::uint8_t { First, Normal, Last };
enum class Special : std::uint8_t { TidX, TidY, TidZ, NtidX, NtidY, NtidZ, CtaidX, CtaidY, CtaidZ, NctaidX, NctaidY,
  NctaidZ, LaneId, ClusteridX, ClusteridY, ClusteridZ, NclusteridX, ClusterCtarank, ClusterNctarank };
// Cs streams; NoAllocate leaves L1 alone; Nc is the read-only path, for memory that no thread writes meanwhile.
enum class Cache : std::uint8_t { Default, Ca, Cg, Cs, NoAllocate, Nc, NcNoAllocate };
enum class Narrow : std::uint8_t { No, U8, S8, U16, S16 };  // memory narrower than its register (B16, U32)
// clang-format on

struct Access {
  Cache cache = Cache::Default;
  Narrow as = Narrow::No;
  U64 policy = {};  // of the L2 cache, by l2_policy
};

struct KernelOptions {
  std::string comment = {};                // stands above the entry
  std::array<std::uint32_t, 3> reqntid{};  // threads a block, exactly
  std::uint32_t maxntid = 0;               // or at most
  std::uint32_t minnctapersm = 0, maxnreg = 0;
  std::uint32_t reqnctapercluster = 0;  // blocks a cluster, along x
  bool explicitcluster = false;         // every launch states its cluster
};

class Kernel {
 public:
  // Parameters in the order of these calls; shared memory; registers.
  // clang-format off
  template <Data R> Parameter<R> param(std::string_view name) { return {declare_param(name, R::type, 0, 0)}; }
  ParameterBytes param_bytes(std::string_view name, std::uint32_t bytes, std::uint32_t align = 8) { return {declare_param(name, Class::B32, bytes, align)}; }
  template <Data R> R load(Parameter<R> from, To<R> d = {}) { return load_param(d, from.index, 0); }
  template <Data R> R load(ParameterBytes from, std::uint32_t offset, To<R> d = {}) { return load_param(d, from.index, offset); }
  Shared shared(std::uint32_t bytes, std::uint32_t align = 16);
  Shared dynamic_shared(std::uint32_t bytes);  // one area a kernel; the launch gives it, the bytes are stated to be checked
  template <Any R> R reg() { return R(new_register(R::type)); }
  template <Any R> void assign(R d, In<R> a) { typed(into(d), "mov", a); }
  template <Any R> R constant(In<R> literal, To<R> d = {}) { return typed(d, "mov", literal); }
  U32 read(Special which, Into<U32> d = {});

  // Arithmetic. 's', 'u', 'b': the type of an integer form is signed, unsigned, bits.
  template <Number R> R add(Operand<R> a, In<R> b, To<R> d = {}) { return number(d, "add.rn", "add", a, b); }
  template <Number R> R sub(Operand<R> a, In<R> b, To<R> d = {}) { return number(d, "sub.rn", "sub", a, b); }
  template <Number R> R mul(Operand<R> a, In<R> b, To<R> d = {}) { return number(d, "mul.rn", "mul.lo", a, b); }
  template <Number R> R neg(Operand<R> a, To<R> d = {}) { return number(d, "neg", "neg", a); }
  template <Number R> R abs(Operand<R> a, To<R> d = {}) { return number(d, "abs", "abs", a); }
  template <Float R> R div(Operand<R> a, In<R> b, To<R> d = {}) { return typed(d, "div.rn", a, b); }
  template <Float R> R fma(Operand<R> a, In<R> b, In<R> c, To<R> d = {}) { return typed(d, "fma.rn", a, b, c); }
  template <Float R> R rcp(Operand<R> a, To<R> d = {}) { return typed(d, "rcp.rn", a); }
  template <Float R> R sqrt(Operand<R> a, To<R> d = {}) { return typed(d, "sqrt.rn", a); }
  template <Float R> R min(Operand<R> a, In<R> b, To<R> d = {}) { return typed(d, "min", a, b); }  // NaN loses
  template <Float R> R max(Operand<R> a, In<R> b, To<R> d = {}) { return typed(d, "max", a, b); }
  F32 min_nan(Operand<F32> a, Operand<F32> b, Into<F32> d = {}) { return make(d, "min.NaN.f32", a, b); }  // NaN wins; no f64
  F32 max_nan(Operand<F32> a, Operand<F32> b, Into<F32> d = {}) { return make(d, "max.NaN.f32", a, b); }
  template <Integer R> R mad(Operand<R> a, In<R> b, In<R> c, To<R> d = {}) { return typed<'s'>(d, "mad.lo", a, b, c); }
  template <Integer R> R mul_hi_u(Operand<R> a, In<R> b, To<R> d = {}) { return typed<'u'>(d, "mul.hi", a, b); }
  template <Integer R> R div_s(Operand<R> a, In<R> b, To<R> d = {}) { return typed<'s'>(d, "div", a, b); }
  template <Integer R> R div_u(Operand<R> a, In<R> b, To<R> d = {}) { return typed<'u'>(d, "div", a, b); }
  template <Integer R> R rem_s(Operand<R> a, In<R> b, To<R> d = {}) { return typed<'s'>(d, "rem", a, b); }
  template <Integer R> R rem_u(Operand<R> a, In<R> b, To<R> d = {}) { return typed<'u'>(d, "rem", a, b); }
  template <Integer R> R min_s(Operand<R> a, In<R> b, To<R> d = {}) { return typed<'s'>(d, "min", a, b); }
  template <Integer R> R min_u(Operand<R> a, In<R> b, To<R> d = {}) { return typed<'u'>(d, "min", a, b); }
  template <Integer R> R max_s(Operand<R> a, In<R> b, To<R> d = {}) { return typed<'s'>(d, "max", a, b); }
  template <Integer R> R max_u(Operand<R> a, In<R> b, To<R> d = {}) { return typed<'u'>(d, "max", a, b); }
  U64 mul_wide_s(Operand<U32> a, Operand<U32> b, Into<U64> d = {}) { return make(d, "mul.wide.s32", a, b); }
  U64 mul_wide_u(Operand<U32> a, Operand<U32> b, Into<U64> d = {}) { return make(d, "mul.wide.u32", a, b); }
  U64 mad_wide_s(Operand<U32> a, Operand<U32> b, Operand<U64> c, Into<U64> d = {}) { return make(d, "mad.wide.s32", a, b, c); }
  U64 mad_wide_u(Operand<U32> a, Operand<U32> b, Operand<U64> c, Into<U64> d = {}) { return make(d, "mad.wide.u32", a, b, c); }

  // Bits, predicates, choice.
  template <Bits R> R and_(Operand<R> a, In<R> b, To<R> d = {}) { return typed(d, "and", a, b); }
  template <Bits R> R or_(Operand<R> a, In<R> b, To<R> d = {}) { return typed(d, "or", a, b); }
  template <Bits R> R xor_(Operand<R> a, In<R> b, To<R> d = {}) { return typed(d, "xor", a, b); }
  template <Bits R> R not_(Operand<R> a, To<R> d = {}) { return typed(d, "not", a); }
  template <Integer R> R shl(Operand<R> a, Operand<U32> by, To<R> d = {}) { return typed(d, "shl", a, by); }
  template <Integer R> R shr_s(Operand<R> a, Operand<U32> by, To<R> d = {}) { return typed<'s'>(d, "shr", a, by); }
  template <Integer R> R shr_u(Operand<R> a, Operand<U32> by, To<R> d = {}) { return typed<'u'>(d, "shr", a, by); }
  U32 prmt(Operand<U32> a, Operand<U32> b, Operand<U32> selector, Into<U32> d = {}) { return make(d, "prmt.b32", a, b, selector); }
  U32 bfe_s(Operand<U32> a, Operand<U32> first, Operand<U32> bits, Into<U32> d = {}) { return make(d, "bfe.s32", a, first, bits); }
  U32 bfe_u(Operand<U32> a, Operand<U32> first, Operand<U32> bits, Into<U32> d = {}) { return make(d, "bfe.u32", a, first, bits); }
  template <Float R> Pred setp(FloatCompare how, Operand<R> a, In<R> b, Into<Pred> d = {}) { return make(d, spell(how, R::type), a, b); }
  template <Integer R> Pred setp(IntCompare how, Operand<R> a, In<R> b, Into<Pred> d = {}) { return make(d, spell(how, R::type), a, b); }
  template <Data R> R selp(Operand<R> a, In<R> b, Pred p, To<R> d = {}) { return typed(d, "selp", a, b, p); }  // p ? a : b

  // Conversions. cvt: between integer widths, and from integers to floats to nearest even; with a Round from floats to
  // integers, saturating. round: to a whole number. bitcast: the same bits in another class.
  template <Number R, AnyOf<B16, U32, U64> A> requires(!AnyOf<A, R>) R cvt_s(A a, To<R> d = {}) { return make(d, cvt(R::type, A::type, 's'), a); }
  template <Number R, AnyOf<B16, U32, U64> A> requires(!AnyOf<A, R>) R cvt_u(A a, To<R> d = {}) { return make(d, cvt(R::type, A::type, 'u'), a); }
  template <Integer R, Float A> R cvt_s(A a, Round mode, To<R> d = {}) { return make(d, cvt(R::type, A::type, 's', mode), a); }
  template <Integer R, Float A> R cvt_u(A a, Round mode, To<R> d = {}) { return make(d, cvt(R::type, A::type, 'u', mode), a); }
  B16 low_half(U32 a, Into<B16> d = {}) { return make(d, "cvt.u16.u32", a); }
  F64 widen(F32 a, Into<F64> d = {}) { return make(d, "cvt.f64.f32", a); }
  F32 narrow(F64 a, Round mode, Into<F32> d = {}) { return make(d, cvt(Class::F32, Class::F64, 'f', mode), a); }
  template <Float R> R round(Operand<R> a, Round mode, To<R> d = {}) { return make(d, cvt(R::type, R::type, 'f', mode), a); }
  template <Number R, Number A> requires(Word<R> == Word<A>) R bitcast(A a, To<R> d = {}) { return make(d, Word<R> ? "mov.b32" : "mov.b64", a); }
  template <Number R> R pack(HalfOf<R> low, HalfOf<R> high, To<R> d = {});
  template <Number R> std::pair<HalfOf<R>, HalfOf<R>> unpack(R a, To<HalfOf<R>> low = {}, To<HalfOf<R>> high = {});
  F32 widen_f16(B16 a, Into<F32> d = {}) { return make(d, "cvt.f32.f16", a); }
  B16 to_half(Half format, Operand<F32> a, Into<B16> d = {});
  U32 to_half_pair(Half format, Operand<F32> low, Operand<F32> high, Into<U32> d = {});
  B16 to_fp8_pair(Fp8 format, Operand<F32> low, Operand<F32> high, Into<B16> d = {});
  U32 widen_fp8_pair(Fp8 format, B16 pair, Into<U32> d = {});  // to two f16

  // Memory. A vector has 1, 2 or 4 registers of at most 16 bytes in all (32 bytes of global memory from sm_100 on).
  template <Data R, Address A> R load(const A& from, const Access& access = {}, To<R> d = {});
  template <Data R, Address A> void load(std::span<const R> to, const A& from, const Access& access = {}) { transfer(true, space(from), at(from), access, values(to)); }
  template <Data R, Address A> void store(const A& to, Operand<R> a, const Access& access = {}) { transfer(false, space(to), at(to), access, {a.value}); }
  template <Data R, Address A> void store(const A& to, std::span<const R> from, const Access& access = {}) { transfer(false, space(to), at(to), access, values(from)); }
  U64 l2_policy(Evict evict, Into<U64> d = {});
  U64 to_global(U64 generic, Into<U64> d = {}) { return make(d, "cvta.to.global.u64", generic); }
  // 4, 8 or 16 bytes, copied behind the thread's back; only source_bytes of them are read, the rest become zeros.
  void cp_async(Shared to, Global from, std::uint32_t bytes, std::optional<Operand<U32>> source_bytes = {});
  void cp_async_commit() { emit("cp.async.commit_group"); }
  void cp_async_wait(std::uint32_t groups_left) { emit("cp.async.wait_group", Operand<U32>(groups_left)); }

  // Between the threads of a warp (all 32 take part), a block, a cluster. 64 bits shuffle as two words.
  template <Number R> R shfl(Shuffle how, R a, Operand<U32> lane, std::uint32_t width = 32, To<R> d = {});
  Pred vote(Vote how, Pred a, Into<Pred> d = {});
  U32 ballot(Pred a, Into<U32> d = {}) { return make(d, "vote.sync.ballot.b32", a, Operand<U32>(~0u)); }
  U32 redux(Redux how, U32 a, Into<U32> d = {});
  void bar_warp_sync(Operand<U32> lanes = ~0u) { emit("bar.warp.sync", lanes); }
  void bar_sync(Operand<U32> barrier = 0) { emit("bar.sync", barrier); }
  void bar_sync(Operand<U32> barrier, Operand<U32> threads) { emit("bar.sync", barrier, threads); }
  void bar_arrive(Operand<U32> barrier, Operand<U32> threads) { emit("bar.arrive", barrier, threads); }
  Remote mapa(Shared own, Operand<U32> rank);  // the same place in the cluster's block `rank`
  void cluster_arrive(Order order = Order::Release);
  void cluster_wait() { emit("barrier.cluster.wait.aligned"); }
  void fence(Fence what);
  void griddepcontrol_wait() { emit("griddepcontrol.wait"); }
  void griddepcontrol_launch_dependents() { emit("griddepcontrol.launch_dependents"); }

  // Barriers in shared memory, 8 bytes each; bulk copies of 16 aligned bytes, 32, … that one thread starts.
  void mbarrier_init(Shared barrier, Operand<U32> count) { emit("mbarrier.init.shared.b64", barrier, count); }
  U64 mbarrier_arrive(Shared barrier, Into<U64> d = {}) { return make(d, "mbarrier.arrive.shared.b64", barrier); }
  void mbarrier_arrive(Remote barrier) { emit("mbarrier.arrive.release.cluster.shared::cluster.b64 _,", barrier); }
  void mbarrier_arrive_expect_tx(Shared barrier, Operand<U32> bytes) { emit("mbarrier.arrive.expect_tx.shared.b64 _,", barrier, bytes); }
  Pred mbarrier_try_wait(Shared barrier, Operand<U32> parity, Into<Pred> d = {}) { return make(d, "mbarrier.try_wait.parity.shared.b64", barrier, parity); }
  void mbarrier_wait(Shared barrier, Operand<U32> parity);  // tries until that phase is over
  void bulk_load(Shared to, Global from, Operand<U32> bytes, Shared barrier) { emit("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes", to, from, bytes, barrier); }
  void bulk_store(Global to, Shared from, Operand<U32> bytes) { emit("cp.async.bulk.global.shared::cta.bulk_group", to, from, bytes); }
  void bulk_commit() { emit("cp.async.bulk.commit_group"); }
  void bulk_wait(std::uint32_t groups_left) { emit("cp.async.bulk.wait_group", Operand<U32>(groups_left)); }
  void bulk_wait_read(std::uint32_t groups_left) { emit("cp.async.bulk.wait_group.read", Operand<U32>(groups_left)); }
  template <Number R> void store_async(Remote to, Operand<R> a, Remote barrier) { emit(spell("st.async.shared::cluster.mbarrier::complete_tx::bytes", R::type), to, a, barrier); }

  // Control. Inside `when` and `unless` every instruction carries the predicate (@%p1, @!%p1); they do not nest.
  template <typename Body> void when(Pred p, Body&& body) { open_guard(p, false), body(), close_guard(); }
  template <typename Body> void unless(Pred p, Body&& body) { open_guard(p, true), body(), close_guard(); }
  Label label(std::string_view name = "label");
  void place(Label label);
  void branch(Label to, Flow flow = Flow::Divergent);
  void branch_if(Pred p, Label to, Flow flow = Flow::Divergent) { when(p, [&] { branch(to, flow); }); }
  void branch_unless(Pred p, Label to, Flow flow = Flow::Divergent) { unless(p, [&] { branch(to, flow); }); }
  void ret() { emit("ret"); }
  void nounroll() { emit(".pragma \"nounroll\""); }  // right before a loop
  void comment(std::string_view text);
  // clang-format on
  template <typename Then>
  void if_(Pred p, Then&& then, Flow flow = Flow::Divergent) {
    Label end = label("endif");
    branch_unless(p, end, flow), then(), place(end);
  }
  template <typename Then, typename Else>
  void if_else(Pred p, Then&& then, Else&& otherwise, Flow flow = Flow::Divergent) {
    Label other = label("else"), end = label("endif");
    branch_unless(p, other, flow), then(), branch(end), place(other), otherwise(), place(end);
  }
  template <typename Condition, typename Body>
  void while_(Condition&& condition, Body&& body, Flow flow = Flow::Divergent) {
    Label top = label("while"), end = label("endwhile");
    place(top), branch_unless(condition(), end, flow), body(), branch(top), place(end);
  }
  template <Integer R, typename Body>
  void while_less(R counter, In<R> limit, Body&& body, Flow flow = Flow::Divergent) {  // unsigned; the body counts
    while_([&] { return setp(IntCompare::Lo, counter, limit); }, body, flow);
  }

  // Any other instruction, spelled out; ptxas judges it. k.other<F32>("ex2.approx.f32", {}, x)
  template <Any R, typename... Sources>
  R other(std::string_view spelling, Into<R> d, const Sources&... sources) {
    return make(d, spelling, sources...);
  }

  Kernel(std::string_view name, const KernelOptions& options);
  ~Kernel();
  Kernel(Kernel&&) noexcept;

 private:
  friend class Module;
  struct State;
  enum class Braces : std::uint8_t { None, Writes, Reads };  // which operands form a vector

  template <Address A>
  static constexpr char space(const A&) {
    return AnyOf<A, Global> ? 'g' : AnyOf<A, Shared> ? 's' : 'r';
  }
  template <Address A>
  static Value at(const A& a) {
    return {a.base.type, Value::Kind::Address, a.offset < 0, a.base.value.id, static_cast<std::uint64_t>(a.offset)};
  }
  template <Address A>
  static Value source(const A& a) {
    return at(a);
  }
  template <typename R>
  static Value source(const Operand<R>& a) {
    return a.value;
  }
  template <typename R>
  static std::vector<Value> values(std::span<const R> registers) {
    std::vector<Value> result;
    for (const R& each : registers) result.push_back(each.value);
    return result;
  }
  template <Any R>
  R fresh(Into<R> d) {
    return d.destination.value.id ? d.destination : reg<R>();
  }
  template <typename... Sources>
  void emit(std::string_view spelling, const Sources&... sources) {
    put(spelling, {}, std::array<Value, sizeof...(Sources)>{source(sources)...});
  }
  template <Any R, typename... Sources>
  R make(Into<R> d, std::string_view spelling, const Sources&... sources) {
    R to = fresh(d);
    put(spelling, {&to.value, 1}, std::array<Value, sizeof...(Sources)>{source(sources)...});
    return to;
  }
  template <char IntegerLetter = 'b', Any R, typename... Sources>
  R typed(Into<R> d, std::string_view name, const Sources&... sources) {
    return make(d, spell(name, R::type, IntegerLetter), sources...);
  }
  template <Number R, typename... Sources>
  R number(Into<R> d, std::string_view floats, std::string_view integers, const Sources&... sources) {
    return typed<'s'>(d, Float<R> ? floats : integers, sources...);
  }
  template <Data R>
  R load_param(Into<R> d, std::uint32_t index, std::uint32_t offset) {
    R to = fresh(d);
    put_param_load(to.value, index, offset);
    return to;
  }

  static std::string spell(std::string_view name, Class type, char integer = 'b');  // add + F32: add.f32
  static std::string spell(FloatCompare how, Class type);
  static std::string spell(IntCompare how, Class type);
  static std::string spell(Shuffle how);
  static std::string cvt(Class to, Class from, char integer, std::optional<Round> mode = {});
  std::uint32_t new_register(Class type);
  std::uint32_t declare_param(std::string_view name, Class type, std::uint32_t bytes, std::uint32_t align);
  void put_param_load(Value to, std::uint32_t index, std::uint32_t offset);
  void transfer(bool load, char space, Value address, const Access& access, const std::vector<Value>& values);
  void put(std::string_view spelling, std::span<const Value> writes, std::span<const Value> reads,
           Braces braces = Braces::None);
  void open_guard(Pred p, bool negated);
  void close_guard();

  std::unique_ptr<State> state_;
};

class Module {
 public:
  explicit Module(std::string_view arch = "sm_80") : arch_(arch) {}
  Kernel& kernel(std::string_view name, const KernelOptions& options = {});  // lives as long as the module
  // The text, or the first reason why some kernel is ill-formed.
  Result<std::string> text() const;

 private:
  std::string arch_;
  std::vector<std::unique_ptr<Kernel>> kernels_;
};

template <Number R>
R Kernel::pack(HalfOf<R> low, HalfOf<R> high, To<R> d) {
  R to = fresh(Into<R>(d));
  put(Word<R> ? "mov.b32" : "mov.b64", {&to.value, 1}, std::array{low.value, high.value}, Braces::Reads);
  return to;
}
template <Number R>
std::pair<HalfOf<R>, HalfOf<R>> Kernel::unpack(R a, To<HalfOf<R>> low, To<HalfOf<R>> high) {
  std::pair<HalfOf<R>, HalfOf<R>> to = {fresh(low), fresh(high)};
  put(Word<R> ? "mov.b32" : "mov.b64", std::array{to.first.value, to.second.value}, {&a.value, 1}, Braces::Writes);
  return to;
}
template <Data R, Address A>
R Kernel::load(const A& from, const Access& access, To<R> d) {
  R to = fresh(Into<R>(d));
  load(std::span<const R>(&to, 1), from, access);
  return to;
}
template <Number R>
R Kernel::shfl(Shuffle how, R a, Operand<U32> lane, std::uint32_t width, To<R> d) {
  if constexpr (Word<R>) {  // the clamp: lanes of a segment in bits 8 and up, the last (for Up the first) lane below
    Operand<U32> clamp = (32 - width) << 8 | (how == Shuffle::Up ? 0u : 31u);
    return make(d, spell(how), a, lane, clamp, Operand<U32>(~0u));
  } else {
    auto [low, high] = unpack(a);
    low = shfl(how, low, lane, width);
    high = shfl(how, high, lane, width);
    return pack<R>(low, high, d);
  }
}

}  // namespace trireme::ptx

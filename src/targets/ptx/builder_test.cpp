// Every construct of the PTX builder beside its text; ptxas judges them all.
#include <limits>
#include <map>
#include <sstream>

#include "targets/ptx/ptxas_for_test.hpp"
#include "trireme/ptx.hpp"

namespace trireme::ptx {
namespace {

// Some registers of each class to build with: %f1 %f2 %f3, %fd1 %fd2, %r1 %r2, %rd1 %rd2, %rs1 %rs2, %p1 %p2.
// %r1 is the address of shared memory.
struct Regs {
  F32 f, g, h;
  F64 d, e;
  U32 i, j;
  U64 x, y;
  B16 s, t;
  Pred p, q;
  explicit Regs(Kernel& k) {
    x = k.load(k.param<U64>("x")), y = k.load(k.param<U64>("y"));
    f = k.load(k.param<F32>("f")), g = k.constant<F32>(2.0f), h = k.constant<F32>(3.0f);
    d = k.load(k.param<F64>("d")), e = k.constant<F64>(2.0);
    i = k.shared(64).base, j = k.load(k.param<U32>("j"));
    std::tie(s, t) = k.unpack(j);
    p = k.setp(IntCompare::Eq, j, 1), q = k.setp(IntCompare::Eq, j, 2);
    k.comment("begin");
  }
};

struct Case {
  std::string_view arch;  // the lowest
  void (*build)(Kernel& k, Regs r);
  std::string_view text;  // one instruction a line
};

using R = Regs;
using K = Kernel;
// clang-format off
const Case cases[] = {
    // Constants print their bits.
    {"sm_80", [](K& k, R) { k.constant<F32>(1.0f); }, "mov.f32 %f4, 0f3F800000;"},
    {"sm_80", [](K& k, R) { k.constant<F32>(-0.0f); }, "mov.f32 %f4, 0f80000000;"},
    {"sm_80", [](K& k, R) { k.constant<F32>(0x1p-149f); }, "mov.f32 %f4, 0f00000001;"},
    {"sm_80", [](K& k, R) { k.constant<F32>(std::numeric_limits<float>::infinity()); }, "mov.f32 %f4, 0f7F800000;"},
    {"sm_80", [](K& k, R) { k.constant<F64>(0.1); }, "mov.f64 %fd3, 0d3FB999999999999A;"},
    {"sm_80", [](K& k, R) { k.constant<U32>(-7); }, "mov.b32 %r3, -7;"},
    {"sm_80", [](K& k, R) { k.constant<U32>(0xffffffffu); }, "mov.b32 %r3, 0xFFFFFFFF;"},
    {"sm_80", [](K& k, R) { k.constant<U64>(std::int64_t{1} << 40); }, "mov.b64 %rd3, 0x10000000000;"},
    {"sm_80", [](K& k, R) { k.constant<U64>(std::numeric_limits<std::int64_t>::min()); },
     "mov.b64 %rd3, -9223372036854775808;"},
    {"sm_80", [](K& k, R) { k.constant<B16>(65535); }, "mov.b16 %rs3, 65535;"},
    {"sm_80", [](K& k, R) { k.constant<Pred>(true); }, "mov.pred %p3, 1;"},

    // Results are fresh or go into a register; registers are mutable.
    {"sm_80", [](K& k, R r) { k.add(r.f, r.g, into(r.f)); }, "add.rn.f32 %f1, %f1, %f2;"},
    {"sm_80", [](K& k, R r) { k.assign(r.f, r.g); }, "mov.f32 %f1, %f2;"},
    {"sm_80", [](K& k, R r) { k.assign(r.f, 0.0f); }, "mov.f32 %f1, 0f00000000;"},
    {"sm_80", [](K& k, R r) { k.assign(r.i, r.j); }, "mov.b32 %r1, %r2;"},
    {"sm_80", [](K& k, R r) { k.assign(r.p, r.q); }, "mov.pred %p1, %p2;"},
    {"sm_80", [](K& k, R) { k.assign(k.reg<F64>(), 0.0); }, "mov.f64 %fd3, 0d0000000000000000;"},

    // Arithmetic on floats.
    {"sm_80", [](K& k, R r) { k.add(r.f, r.g); }, "add.rn.f32 %f4, %f1, %f2;"},
    {"sm_80", [](K& k, R r) { k.add(r.d, r.e); }, "add.rn.f64 %fd3, %fd1, %fd2;"},
    {"sm_80", [](K& k, R r) { k.add(r.f, 0.5f); }, "add.rn.f32 %f4, %f1, 0f3F000000;"},
    {"sm_80", [](K& k, R r) { k.sub(r.f, r.g); }, "sub.rn.f32 %f4, %f1, %f2;"},
    {"sm_80", [](K& k, R r) { k.sub(Operand<F32>(1.0f), r.g); }, "sub.rn.f32 %f4, 0f3F800000, %f2;"},
    {"sm_80", [](K& k, R r) { k.mul(r.f, r.g); }, "mul.rn.f32 %f4, %f1, %f2;"},
    {"sm_80", [](K& k, R r) { k.mul(r.d, r.e); }, "mul.rn.f64 %fd3, %fd1, %fd2;"},
    {"sm_80", [](K& k, R r) { k.div(r.f, r.g); }, "div.rn.f32 %f4, %f1, %f2;"},
    {"sm_80", [](K& k, R r) { k.div(r.d, r.e); }, "div.rn.f64 %fd3, %fd1, %fd2;"},
    {"sm_80", [](K& k, R r) { k.fma(r.f, r.g, r.h); }, "fma.rn.f32 %f4, %f1, %f2, %f3;"},
    {"sm_80", [](K& k, R r) { k.fma(r.d, r.e, 1.0); }, "fma.rn.f64 %fd3, %fd1, %fd2, 0d3FF0000000000000;"},
    {"sm_80", [](K& k, R r) { k.rcp(r.f); }, "rcp.rn.f32 %f4, %f1;"},
    {"sm_80", [](K& k, R r) { k.rcp(r.d); }, "rcp.rn.f64 %fd3, %fd1;"},
    {"sm_80", [](K& k, R r) { k.sqrt(r.f); }, "sqrt.rn.f32 %f4, %f1;"},
    {"sm_80", [](K& k, R r) { k.sqrt(r.d); }, "sqrt.rn.f64 %fd3, %fd1;"},
    {"sm_80", [](K& k, R r) { k.neg(r.f); }, "neg.f32 %f4, %f1;"},
    {"sm_80", [](K& k, R r) { k.abs(r.d); }, "abs.f64 %fd3, %fd1;"},
    {"sm_80", [](K& k, R r) { k.min(r.f, r.g); }, "min.f32 %f4, %f1, %f2;"},
    {"sm_80", [](K& k, R r) { k.max(r.d, r.e); }, "max.f64 %fd3, %fd1, %fd2;"},
    {"sm_80", [](K& k, R r) { k.min_nan(r.f, r.g); }, "min.NaN.f32 %f4, %f1, %f2;"},
    {"sm_80", [](K& k, R r) { k.max_nan(r.f, -87.0f); }, "max.NaN.f32 %f4, %f1, 0fC2AE0000;"},
    {"sm_80", [](K& k, R r) { k.round(r.f, Round::Even); }, "cvt.rni.f32.f32 %f4, %f1;"},
    {"sm_80", [](K& k, R r) { k.round(r.d, Round::Down); }, "cvt.rmi.f64.f64 %fd3, %fd1;"},

    // Arithmetic on integers.
    {"sm_80", [](K& k, R r) { k.add(r.i, 4); }, "add.s32 %r3, %r1, 4;"},
    {"sm_80", [](K& k, R r) { k.add(r.x, r.y); }, "add.s64 %rd3, %rd1, %rd2;"},
    {"sm_80", [](K& k, R r) { k.sub(r.x, -1); }, "sub.s64 %rd3, %rd1, -1;"},
    {"sm_80", [](K& k, R r) { k.mul(r.i, r.j); }, "mul.lo.s32 %r3, %r1, %r2;"},
    {"sm_80", [](K& k, R r) { k.mad(r.i, r.j, 8); }, "mad.lo.s32 %r3, %r1, %r2, 8;"},
    {"sm_80", [](K& k, R r) { k.mad(r.x, r.y, r.x); }, "mad.lo.s64 %rd3, %rd1, %rd2, %rd1;"},
    {"sm_80", [](K& k, R r) { k.mul_hi_u(r.i, r.j); }, "mul.hi.u32 %r3, %r1, %r2;"},
    {"sm_80", [](K& k, R r) { k.mul_wide_s(r.i, r.j); }, "mul.wide.s32 %rd3, %r1, %r2;"},
    {"sm_80", [](K& k, R r) { k.mul_wide_u(r.i, 4); }, "mul.wide.u32 %rd3, %r1, 4;"},
    {"sm_80", [](K& k, R r) { k.mad_wide_s(r.i, r.j, r.x); }, "mad.wide.s32 %rd3, %r1, %r2, %rd1;"},
    {"sm_80", [](K& k, R r) { k.mad_wide_u(r.i, 4, r.x); }, "mad.wide.u32 %rd3, %r1, 4, %rd1;"},
    {"sm_80", [](K& k, R r) { k.div_s(r.i, r.j); }, "div.s32 %r3, %r1, %r2;"},
    {"sm_80", [](K& k, R r) { k.div_u(r.x, r.y); }, "div.u64 %rd3, %rd1, %rd2;"},
    {"sm_80", [](K& k, R r) { k.rem_s(r.x, r.y); }, "rem.s64 %rd3, %rd1, %rd2;"},
    {"sm_80", [](K& k, R r) { k.rem_u(r.i, 7); }, "rem.u32 %r3, %r1, 7;"},
    {"sm_80", [](K& k, R r) { k.min_s(r.i, r.j); }, "min.s32 %r3, %r1, %r2;"},
    {"sm_80", [](K& k, R r) { k.min_u(r.x, r.y); }, "min.u64 %rd3, %rd1, %rd2;"},
    {"sm_80", [](K& k, R r) { k.max_s(r.x, r.y); }, "max.s64 %rd3, %rd1, %rd2;"},
    {"sm_80", [](K& k, R r) { k.max_u(r.i, r.j); }, "max.u32 %r3, %r1, %r2;"},
    {"sm_80", [](K& k, R r) { k.neg(r.i); }, "neg.s32 %r3, %r1;"},
    {"sm_80", [](K& k, R r) { k.abs(r.x); }, "abs.s64 %rd3, %rd1;"},

    // Bits, predicates, comparisons.
    {"sm_80", [](K& k, R r) { k.and_(r.i, 31); }, "and.b32 %r3, %r1, 31;"},
    {"sm_80", [](K& k, R r) { k.or_(r.x, r.y); }, "or.b64 %rd3, %rd1, %rd2;"},
    {"sm_80", [](K& k, R r) { k.xor_(r.s, r.t); }, "xor.b16 %rs3, %rs1, %rs2;"},
    {"sm_80", [](K& k, R r) { k.not_(r.i); }, "not.b32 %r3, %r1;"},
    {"sm_80", [](K& k, R r) { k.and_(r.p, r.q); }, "and.pred %p3, %p1, %p2;"},
    {"sm_80", [](K& k, R r) { k.or_(r.p, r.q, into(r.p)); }, "or.pred %p1, %p1, %p2;"},
    {"sm_80", [](K& k, R r) { k.not_(r.p); }, "not.pred %p3, %p1;"},
    {"sm_80", [](K& k, R r) { k.shl(r.i, 16); }, "shl.b32 %r3, %r1, 16;"},
    {"sm_80", [](K& k, R r) { k.shl(r.x, r.j); }, "shl.b64 %rd3, %rd1, %r2;"},
    {"sm_80", [](K& k, R r) { k.shr_u(r.i, 5); }, "shr.u32 %r3, %r1, 5;"},
    {"sm_80", [](K& k, R r) { k.shr_s(r.x, 5); }, "shr.s64 %rd3, %rd1, 5;"},
    {"sm_80", [](K& k, R r) { k.prmt(r.i, r.j, 0x5410); }, "prmt.b32 %r3, %r1, %r2, 21520;"},
    {"sm_80", [](K& k, R r) { k.bfe_s(r.i, 8, 8); }, "bfe.s32 %r3, %r1, 8, 8;"},
    {"sm_80", [](K& k, R r) { k.bfe_u(r.i, r.j, 8); }, "bfe.u32 %r3, %r1, %r2, 8;"},
    {"sm_80", [](K& k, R r) { k.setp(FloatCompare::Lt, r.f, r.g); }, "setp.lt.f32 %p3, %f1, %f2;"},
    {"sm_80", [](K& k, R r) { k.setp(FloatCompare::Neu, r.d, 0.0); }, "setp.neu.f64 %p3, %fd1, 0d0000000000000000;"},
    {"sm_80", [](K& k, R r) { k.setp(FloatCompare::Geu, r.f, r.g); }, "setp.geu.f32 %p3, %f1, %f2;"},
    {"sm_80", [](K& k, R r) { k.setp(FloatCompare::Num, r.f, r.f); }, "setp.num.f32 %p3, %f1, %f1;"},
    {"sm_80", [](K& k, R r) { k.setp(FloatCompare::Nan, r.f, r.g); }, "setp.nan.f32 %p3, %f1, %f2;"},
    {"sm_80", [](K& k, R r) { k.setp(IntCompare::Eq, r.i, 0); }, "setp.eq.b32 %p3, %r1, 0;"},
    {"sm_80", [](K& k, R r) { k.setp(IntCompare::Ge, r.x, r.y, into(r.p)); }, "setp.ge.s64 %p1, %rd1, %rd2;"},
    {"sm_80", [](K& k, R r) { k.setp(IntCompare::Hi, r.i, r.j); }, "setp.hi.u32 %p3, %r1, %r2;"},
    {"sm_80", [](K& k, R r) { k.selp(r.f, 0.0f, r.p); }, "selp.f32 %f4, %f1, 0f00000000, %p1;"},
    {"sm_80", [](K& k, R r) { k.selp(r.i, r.j, r.p); }, "selp.b32 %r3, %r1, %r2, %p1;"},

    // Conversions.
    {"sm_80", [](K& k, R r) { k.cvt_u<U64>(r.i); }, "cvt.u64.u32 %rd3, %r1;"},
    {"sm_80", [](K& k, R r) { k.cvt_s<U64>(r.i); }, "cvt.s64.s32 %rd3, %r1;"},
    {"sm_80", [](K& k, R r) { k.cvt_u<U32>(r.x); }, "cvt.u32.u64 %r3, %rd1;"},
    {"sm_80", [](K& k, R r) { k.cvt_u<U32>(r.s); }, "cvt.u32.u16 %r3, %rs1;"},
    {"sm_80", [](K& k, R r) { k.low_half(r.i); }, "cvt.u16.u32 %rs3, %r1;"},
    {"sm_80", [](K& k, R r) { k.cvt_s<F32>(r.i); }, "cvt.rn.f32.s32 %f4, %r1;"},
    {"sm_80", [](K& k, R r) { k.cvt_u<F64>(r.x); }, "cvt.rn.f64.u64 %fd3, %rd1;"},
    {"sm_80", [](K& k, R r) { k.cvt_s<U32>(r.f, Round::Even); }, "cvt.rni.s32.f32 %r3, %f1;"},
    {"sm_80", [](K& k, R r) { k.cvt_u<U64>(r.d, Round::Zero); }, "cvt.rzi.u64.f64 %rd3, %fd1;"},
    {"sm_80", [](K& k, R r) { k.widen(r.f); }, "cvt.f64.f32 %fd3, %f1;"},
    {"sm_80", [](K& k, R r) { k.narrow(r.d, Round::Even); }, "cvt.rn.f32.f64 %f4, %fd1;"},
    {"sm_80", [](K& k, R r) { k.narrow(r.d, Round::Zero); }, "cvt.rz.f32.f64 %f4, %fd1;"},
    {"sm_80", [](K& k, R r) { k.bitcast<U32>(r.f); }, "mov.b32 %r3, %f1;"},
    {"sm_80", [](K& k, R r) { k.bitcast<F32>(r.i); }, "mov.b32 %f4, %r1;"},
    {"sm_80", [](K& k, R r) { k.bitcast<F64>(r.x); }, "mov.b64 %fd3, %rd1;"},
    {"sm_80", [](K& k, R r) { k.pack<U32>(r.s, r.t); }, "mov.b32 %r3, {%rs1, %rs2};"},
    {"sm_80", [](K& k, R r) { k.pack<F64>(r.i, r.j); }, "mov.b64 %fd3, {%r1, %r2};"},
    {"sm_80", [](K& k, R r) { k.unpack(r.i); }, "mov.b32 {%rs3, %rs4}, %r1;"},
    {"sm_80", [](K& k, R r) { k.unpack(r.x, into(r.i), into(r.j)); }, "mov.b64 {%r1, %r2}, %rd1;"},
    {"sm_80", [](K& k, R r) { k.widen_f16(r.s); }, "cvt.f32.f16 %f4, %rs1;"},
    {"sm_80", [](K& k, R r) { k.to_half(Half::F16, r.f); }, "cvt.rn.f16.f32 %rs3, %f1;"},
    {"sm_80", [](K& k, R r) { k.to_half(Half::BF16, r.f); }, "cvt.rn.bf16.f32 %rs3, %f1;"},
    {"sm_80", [](K& k, R r) { k.to_half_pair(Half::F16, r.f, r.g); }, "cvt.rn.f16x2.f32 %r3, %f2, %f1;"},
    {"sm_80", [](K& k, R r) { k.to_half_pair(Half::BF16, r.f, r.g); }, "cvt.rn.bf16x2.f32 %r3, %f2, %f1;"},
    {"sm_89", [](K& k, R r) { k.to_fp8_pair(Fp8::E4M3, r.f, r.g); }, "cvt.rn.satfinite.e4m3x2.f32 %rs3, %f2, %f1;"},
    {"sm_89", [](K& k, R r) { k.to_fp8_pair(Fp8::E5M2, r.f, r.g); }, "cvt.rn.satfinite.e5m2x2.f32 %rs3, %f2, %f1;"},
    {"sm_89", [](K& k, R r) { k.widen_fp8_pair(Fp8::E4M3, r.s); }, "cvt.rn.f16x2.e4m3x2 %r3, %rs1;"},
    {"sm_89", [](K& k, R r) { k.widen_fp8_pair(Fp8::E5M2, r.s); }, "cvt.rn.f16x2.e5m2x2 %r3, %rs1;"},

    // Memory.
    {"sm_80", [](K& k, R r) { k.load<F32>(Global{r.x}); }, "ld.global.f32 %f4, [%rd1];"},
    {"sm_80", [](K& k, R r) { k.load<F64>(Global{r.x, 8}); }, "ld.global.f64 %fd3, [%rd1+8];"},
    {"sm_80", [](K& k, R r) { k.load<U32>(Global{r.x, -4}, {.cache = Cache::Cs}); }, "ld.global.cs.b32 %r3, [%rd1+-4];"},
    {"sm_80", [](K& k, R r) { k.load<B16>(Global{r.x}, {.cache = Cache::Nc}); }, "ld.global.nc.b16 %rs3, [%rd1];"},
    {"sm_80", [](K& k, R r) { k.load<U32>(Global{r.x}, {.as = Narrow::S8}); }, "ld.global.s8 %r3, [%rd1];"},
    {"sm_80", [](K& k, R r) { k.load<B16>(Global{r.x}, {.as = Narrow::U8}); }, "ld.global.u8 %rs3, [%rd1];"},
    {"sm_80", [](K& k, R r) { k.load<U32>(Global{r.x}, {.as = Narrow::U16}); }, "ld.global.u16 %r3, [%rd1];"},
    {"sm_80", [](K& k, R r) { k.load<U32>(Global{r.x}, {}, into(r.i)); }, "ld.global.b32 %r1, [%rd1];"},
    {"sm_80", [](K& k, R r) { k.load<F32>(std::array{r.f, r.g}, Global{r.x}, {.cache = Cache::Cg}); },
     "ld.global.cg.v2.f32 {%f1, %f2}, [%rd1];"},
    {"sm_80", [](K& k, R r) { k.load<U32>(std::array{r.i, r.j, k.reg<U32>(), k.reg<U32>()}, Global{r.x, 16}, {.cache = Cache::NcNoAllocate}); },
     "ld.global.nc.L1::no_allocate.v4.b32 {%r1, %r2, %r3, %r4}, [%rd1+16];"},
    {"sm_80", [](K& k, R r) { k.load<U64>(std::array{r.x, r.y}, Global{r.x}, {.cache = Cache::NoAllocate}); },
     "ld.global.L1::no_allocate.v2.b64 {%rd1, %rd2}, [%rd1];"},
    {"sm_80", [](K& k, R r) { k.load<F32>(Global{r.x}, {.policy = k.l2_policy(Evict::Last)}); },
     "createpolicy.fractional.L2::evict_last.b64 %rd3;\nld.global.L2::cache_hint.f32 %f4, [%rd1], %rd3;"},
    {"sm_100", [](K& k, R r) { k.load<F32>(std::array{r.f, r.g, r.h, r.f, r.f, r.f, r.f, r.f}, Global{r.x}); },
     "ld.global.v8.f32 {%f1, %f2, %f3, %f1, %f1, %f1, %f1, %f1}, [%rd1];"},
    {"sm_80", [](K& k, R r) { k.store(Global{r.x}, r.f); }, "st.global.f32 [%rd1], %f1;"},
    {"sm_80", [](K& k, R r) { k.store(Global{r.x}, Operand<F32>(0.0f)); }, "st.global.f32 [%rd1], 0f00000000;"},
    {"sm_80", [](K& k, R r) { k.store(Global{r.x}, r.i, {.as = Narrow::U8}); }, "st.global.u8 [%rd1], %r1;"},
    {"sm_80", [](K& k, R r) { k.store<U32>(Global{r.x, 16}, std::array{r.i, r.j, r.i, r.j}, {.cache = Cache::Cs}); },
     "st.global.cs.v4.b32 [%rd1+16], {%r1, %r2, %r1, %r2};"},
    {"sm_80", [](K& k, R r) { k.store<B16>(Global{r.x}, std::array{r.s, r.t}, {.cache = Cache::NoAllocate}); },
     "st.global.L1::no_allocate.v2.b16 [%rd1], {%rs1, %rs2};"},
    {"sm_80", [](K& k, R r) { k.store<F64>(Global{r.x}, std::array{r.d, r.e}, {.policy = k.l2_policy(Evict::First)}); },
     "createpolicy.fractional.L2::evict_first.b64 %rd3;\n"
     "st.global.L2::cache_hint.v2.f64 [%rd1], {%fd1, %fd2}, %rd3;"},
    {"sm_80", [](K& k, R r) { k.load<F32>(Shared{r.i, 4}); }, "ld.shared.f32 %f4, [%r1+4];"},
    {"sm_80", [](K& k, R r) { k.store<F32>(Shared{r.i}, std::array{r.f, r.g, r.h, r.f}); },
     "st.shared.v4.f32 [%r1], {%f1, %f2, %f3, %f1};"},
    {"sm_80", [](K& k, R r) { k.to_global(r.x); }, "cvta.to.global.u64 %rd3, %rd1;"},
    {"sm_80", [](K& k, R r) { k.cp_async({r.i}, {r.x}, 4); }, "cp.async.ca.shared.global [%r1], [%rd1], 4;"},
    {"sm_80", [](K& k, R r) { k.cp_async({r.i}, {r.x, 8}, 8, r.j); }, "cp.async.ca.shared.global [%r1], [%rd1+8], 8, %r2;"},
    {"sm_80", [](K& k, R r) { k.when(r.p, [&] { k.cp_async({r.i, 16}, {r.x}, 16); }); },
     "@%p1 cp.async.cg.shared.global [%r1+16], [%rd1], 16;"},
    {"sm_80", [](K& k, R) { k.cp_async_commit(), k.cp_async_wait(2); }, "cp.async.commit_group;\ncp.async.wait_group 2;"},

    // Threads together.
    {"sm_80", [](K& k, R) { k.read(Special::TidX); }, "mov.u32 %r3, %tid.x;"},
    {"sm_80", [](K& k, R) { k.read(Special::NctaidY); }, "mov.u32 %r3, %nctaid.y;"},
    {"sm_80", [](K& k, R) { k.read(Special::LaneId); }, "mov.u32 %r3, %laneid;"},
    {"sm_90", [](K& k, R) { k.read(Special::ClusterCtarank); }, "mov.u32 %r3, %cluster_ctarank;"},
    {"sm_90", [](K& k, R) { k.read(Special::ClusteridX); }, "mov.u32 %r3, %clusterid.x;"},
    {"sm_90", [](K& k, R) { k.read(Special::NclusteridX); }, "mov.u32 %r3, %nclusterid.x;"},
    {"sm_90", [](K& k, R) { k.read(Special::ClusterNctarank); }, "mov.u32 %r3, %cluster_nctarank;"},
    {"sm_80", [](K& k, R r) { k.shfl(Shuffle::Bfly, r.f, 16); }, "shfl.sync.bfly.b32 %f4, %f1, 16, 31, 0xFFFFFFFF;"},
    {"sm_80", [](K& k, R r) { k.shfl(Shuffle::Idx, r.i, r.j); }, "shfl.sync.idx.b32 %r3, %r1, %r2, 31, 0xFFFFFFFF;"},
    {"sm_80", [](K& k, R r) { k.shfl(Shuffle::Down, r.f, 4, 8); }, "shfl.sync.down.b32 %f4, %f1, 4, 6175, 0xFFFFFFFF;"},
    {"sm_80", [](K& k, R r) { k.shfl(Shuffle::Up, r.f, 1); }, "shfl.sync.up.b32 %f4, %f1, 1, 0, 0xFFFFFFFF;"},
    {"sm_80", [](K& k, R r) { k.shfl(Shuffle::Bfly, r.d, 1, 32, into(r.e)); },
     "mov.b64 {%r3, %r4}, %fd1;\n"
     "shfl.sync.bfly.b32 %r5, %r3, 1, 31, 0xFFFFFFFF;\n"
     "shfl.sync.bfly.b32 %r6, %r4, 1, 31, 0xFFFFFFFF;\n"
     "mov.b64 %fd2, {%r5, %r6};"},
    {"sm_80", [](K& k, R r) { k.vote(Vote::Any, r.p); }, "vote.sync.any.pred %p3, %p1, 0xFFFFFFFF;"},
    {"sm_80", [](K& k, R r) { k.ballot(r.p); }, "vote.sync.ballot.b32 %r3, %p1, 0xFFFFFFFF;"},
    {"sm_80", [](K& k, R r) { k.redux(Redux::MaxU, r.i); }, "redux.sync.max.u32 %r3, %r1, 0xFFFFFFFF;"},
    {"sm_80", [](K& k, R r) { k.redux(Redux::Or, r.i); }, "redux.sync.or.b32 %r3, %r1, 0xFFFFFFFF;"},
    {"sm_80", [](K& k, R) { k.bar_sync(); }, "bar.sync 0;"},
    {"sm_80", [](K& k, R r) { k.bar_sync(r.j, 128), k.bar_arrive(1, 64); }, "bar.sync %r2, 128;\nbar.arrive 1, 64;"},
    {"sm_80", [](K& k, R) { k.bar_warp_sync(); }, "bar.warp.sync 0xFFFFFFFF;"},
    {"sm_80", [](K& k, R) { k.fence(Fence::Block), k.fence(Fence::Device), k.fence(Fence::System); },
     "fence.acq_rel.cta;\nfence.acq_rel.gpu;\nfence.acq_rel.sys;"},
    {"sm_90", [](K& k, R) { k.fence(Fence::Cluster); }, "fence.acq_rel.cluster;"},
    {"sm_90", [](K& k, R) { k.fence(Fence::MbarrierInit), k.fence(Fence::ProxyAsync); },
     "fence.mbarrier_init.release.cluster;\nfence.proxy.async;"},
    {"sm_90", [](K& k, R) { k.griddepcontrol_wait(), k.griddepcontrol_launch_dependents(); },
     "griddepcontrol.wait;\ngriddepcontrol.launch_dependents;"},

    // Clusters, barriers in memory, bulk copies.
    {"sm_90", [](K& k, R) { k.cluster_arrive(), k.cluster_wait(); },
     "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;"},
    {"sm_90", [](K& k, R) { k.cluster_arrive(Order::Relaxed); }, "barrier.cluster.arrive.relaxed.aligned;"},
    {"sm_90", [](K& k, R r) { k.store(k.mapa({r.i, 8}, r.j), r.f); },
     "mapa.shared::cluster.u32 %r3, %r1, %r2;\nst.shared::cluster.f32 [%r3+8], %f1;"},
    {"sm_90", [](K& k, R r) { k.load<F32>(k.mapa({r.i}, 0)); },
     "mapa.shared::cluster.u32 %r3, %r1, 0;\nld.shared::cluster.f32 %f4, [%r3];"},
    {"sm_80", [](K& k, R r) { k.mbarrier_init({r.i}, 1), k.mbarrier_arrive(Shared{r.i}); },
     "mbarrier.init.shared.b64 [%r1], 1;\nmbarrier.arrive.shared.b64 %rd3, [%r1];"},
    {"sm_90", [](K& k, R r) { k.mbarrier_arrive_expect_tx({r.i}, 1024); },
     "mbarrier.arrive.expect_tx.shared.b64 _, [%r1], 1024;"},
    {"sm_90", [](K& k, R r) { k.mbarrier_arrive(Remote{r.i}); },
     "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r1];"},
    {"sm_90", [](K& k, R r) { k.mbarrier_try_wait({r.i}, r.j); }, "mbarrier.try_wait.parity.shared.b64 %p3, [%r1], %r2;"},
    {"sm_90", [](K& k, R r) { k.mbarrier_wait({r.i, 8}, 0); },
     "$wait_0:\nmbarrier.try_wait.parity.shared.b64 %p3, [%r1+8], 0;\n@!%p3 bra $wait_0;"},
    {"sm_90", [](K& k, R r) { k.bulk_load({r.i, 16}, {r.x}, 32, {r.i}); },
     "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1+16], [%rd1], 32, [%r1];"},
    {"sm_90", [](K& k, R r) { k.bulk_store({r.x}, {r.i}, r.j), k.bulk_commit(), k.bulk_wait(0), k.bulk_wait_read(1); },
     "cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r1], %r2;\ncp.async.bulk.commit_group;\n"
     "cp.async.bulk.wait_group 0;\ncp.async.bulk.wait_group.read 1;"},
    {"sm_90", [](K& k, R r) { k.store_async({r.i}, r.f, {r.j}); },
     "st.async.shared::cluster.mbarrier::complete_tx::bytes.f32 [%r1], %f1, [%r2];"},

    // Control.
    {"sm_80", [](K& k, R r) { k.when(r.p, [&] { k.store(Global{r.x}, k.add(r.f, r.g)); }); },
     "@%p1 add.rn.f32 %f4, %f1, %f2;\n@%p1 st.global.f32 [%rd1], %f4;"},
    {"sm_80", [](K& k, R r) { k.unless(r.p, [&] { k.assign(r.f, 1.0f); }); }, "@!%p1 mov.f32 %f1, 0f3F800000;"},
    {"sm_80", [](K& k, R r) { Label l = k.label("out"); k.branch_if(r.p, l), k.ret(), k.place(l); },
     "@%p1 bra $out_0;\nret;\n$out_0:"},
    {"sm_80", [](K& k, R r) { k.if_(r.p, [&] { k.bar_sync(); }, Flow::Uniform); },
     "@!%p1 bra.uni $endif_0;\nbar.sync 0;\n$endif_0:"},
    {"sm_80", [](K& k, R r) { k.if_else(r.p, [&] { k.assign(r.f, r.g); }, [&] { k.assign(r.f, r.h); }); },
     "@!%p1 bra $else_0;\nmov.f32 %f1, %f2;\nbra $endif_1;\n$else_0:\nmov.f32 %f1, %f3;\n$endif_1:"},
    {"sm_80", [](K& k, R r) { k.nounroll(), k.while_less(r.i, r.j, [&] { k.add(r.i, 1, into(r.i)); }); },
     ".pragma \"nounroll\";\n$while_0:\nsetp.lo.u32 %p3, %r1, %r2;\n@!%p3 bra $endwhile_1;\nadd.s32 %r1, %r1, 1;\n"
     "bra $while_0;\n$endwhile_1:"},
    {"sm_80", [](K& k, R) { k.comment("two\nlines"); }, "// two\n// lines"},
    {"sm_80", [](K& k, R r) { k.other<F32>("ex2.approx.f32", {}, r.f); }, "ex2.approx.f32 %f4, %f1;"},
};
// clang-format on

void build(Module& module, const Case& it, int number) {
  Kernel& k = module.kernel("case" + std::to_string(number));
  it.build(k, Regs(k));
}

// The lines between the fixture's last comment and the closing `ret`, without indentation.
std::string body(const std::string& text) {
  std::istringstream lines(text.substr(text.find("// begin\n") + 9));
  std::string result;
  for (std::string line; std::getline(lines, line) && line != "}";)
    result += line.substr(line.find_first_not_of(' ')) + "\n";
  return result.substr(0, result.rfind("\nret;"));
}

TEST(PtxBuilder, EveryConstructBesideItsText) {
  for (const Case& each : cases) {
    Module module(each.arch);
    build(module, each, 0);
    Result<std::string> text = module.text();
    ASSERT_TRUE(text) << each.text << ": " << text.error().message;
    EXPECT_EQ(body(*text), each.text);
  }
}

// Cases that come out with the same target and version share a module, so each is judged at the version it asked for.
TEST(PtxBuilder, PtxasAcceptsEveryConstructAtItsLowestVersion) {
  if (!has_ptxas()) GTEST_SKIP() << "no ptxas in PATH";
  std::map<std::string, std::vector<int>> by_head;
  for (int i = 0; i < static_cast<int>(std::size(cases)); ++i) {
    Module module(cases[i].arch);
    build(module, cases[i], i);
    std::string text = module.text().value();
    by_head[text.substr(0, text.find(".address_size"))].push_back(i);
  }
  EXPECT_GE(by_head.size(), 6u);
  for (const auto& [head, members] : by_head) {
    Module module(cases[members[0]].arch);
    for (int i : members) build(module, cases[i], i);
    EXPECT_TRUE(assembles(module.text().value(), cases[members[0]].arch));
  }
}

TEST(PtxBuilder, VersionIsTheLowestThatServes) {
  auto version = [](std::string_view arch, void (*build)(Kernel&)) {
    Module module(arch);
    build(module.kernel("k"));
    std::string text = module.text().value();
    return text.substr(0, text.find(".address_size"));
  };
  auto nothing = [](Kernel&) {};
  EXPECT_EQ(version("sm_80", nothing), ".version 7.0\n.target sm_80\n");
  EXPECT_EQ(version("sm_90", nothing), ".version 7.8\n.target sm_90\n");
  EXPECT_EQ(version("sm_90a", nothing), ".version 8.0\n.target sm_90a\n");
  EXPECT_EQ(version("sm_120", nothing), ".version 8.7\n.target sm_120\n");
  EXPECT_EQ(version("sm_103f", nothing), ".version 8.8\n.target sm_103f\n");
  EXPECT_EQ(version("sm_90", [](Kernel& k) { k.bulk_commit(); }), ".version 8.0\n.target sm_90\n");
}

struct Refused {
  std::string_view arch;
  KernelOptions options;
  void (*build)(Kernel& k);
  std::string_view why;
};
// clang-format off
const Refused refusals[] = {
    {"sm_80", {}, [](K& k) { k.branch(k.label("out")); }, "label $out_0 is never placed"},
    {"sm_80", {}, [](K& k) { Label l = k.label(); k.place(l), k.place(l); }, "label $label_0 is placed twice"},
    {"sm_80", {}, [](K& k) { k.branch(Label{3}); }, "a label that this kernel did not make is a branch's target"},
    {"sm_80", {}, [](K& k) { k.when(k.constant<Pred>(true), [&] { k.place(k.label()); }); },
     "label $label_0 is placed inside when or unless"},
    {"sm_80", {}, [](K& k) { Pred p = k.constant<Pred>(true); k.when(p, [&] { k.when(p, [] {}); }); },
     "when and unless do not nest: combine the predicates"},
    {"sm_80", {}, [](K& k) { k.neg(k.reg<F32>()); }, "register %f1 is read before any assignment (neg.f32)"},
    {"sm_80", {}, [](K& k) { F32 a = k.reg<F32>(); k.add(a, 1.0f, into(a)); },
     "register %f1 is read before any assignment (add.rn.f32)"},
    {"sm_80", {}, [](K& k) { k.store(Global{k.reg<U64>()}, Operand<F32>(0.0f)); },
     "register %rd1 is read before any assignment (st.global.f32)"},
    {"sm_80", {}, [](K& k) { k.neg(F32()); }, "a register that this kernel did not make is read (neg.f32)"},
    {"sm_80", {}, [](K& k) { k.neg(F32(7)); }, "a register that this kernel did not make is read (neg.f32)"},
    {"sm_80", {}, [](K& k) { k.constant<U32>(std::int64_t{1} << 32); }, "0x100000000 does not fit 32 bits (mov.b32)"},
    {"sm_80", {}, [](K& k) { k.constant<B16>(-32769); }, "-32769 does not fit 16 bits (mov.b16)"},
    {"sm_80", {}, [](K& k) { k.load<F32>(Global{k.constant<U64>(0), std::int64_t{1} << 31}); },
     "the offset 0x80000000 of an address does not fit 32 bits (ld.global.f32)"},
    {"sm_80", {}, [](K& k) { k.shared(49153); },
     "static shared memory of 49153 bytes; at most 49152 are allowed, more as dynamic_shared"},
    {"sm_80", {}, [](K& k) { k.shared(1024), k.dynamic_shared(163 << 10); },
     "shared memory of 167936 bytes; a block of sm_80 has at most 166912"},
    {"sm_120", {}, [](K& k) { k.dynamic_shared(100 << 10); },
     "shared memory of 102400 bytes; a block of sm_120 has at most 101376"},
    {"sm_80", {}, [](K& k) { k.dynamic_shared(16), k.dynamic_shared(16); },
     "dynamic shared memory is one area, asked for twice"},
    {"sm_80", {}, [](K& k) { k.param<U64>("a b"); }, "'a b' is no name for a parameter"},
    {"sm_80", {}, [](K& k) { k.param<U64>("a"), k.param<F32>("a"); }, "two parameters are named a"},
    {"sm_80", {}, [](K& k) { k.load<U64>(k.param_bytes("args", 16), 16); },
     "parameter args has 16 bytes; 8 at 16 are outside it or not aligned"},
    {"sm_80", {}, [](K& k) { k.param_bytes("args", 5000); }, "parameters of 5000 bytes; at most 4096 are taken"},
    {"sm_80", {}, [](K& k) { k.cp_async(k.shared(16), {k.constant<U64>(0)}, 12); }, "cp.async copies 4, 8 or 16 bytes"},
    {"sm_80", {}, [](K& k) { k.store(k.shared(16), Operand<F32>(0.0f), {.cache = Cache::Cs}); },
     "cache hints are for global memory"},
    {"sm_80", {}, [](K& k) { k.store(Global{k.constant<U64>(0)}, Operand<F32>(0.0f), {.cache = Cache::Nc}); },
     "a store has no cache hint .nc"},
    {"sm_80", {}, [](K& k) { F32 v = k.constant<F32>(0.0f); k.store<F32>(k.shared(16), std::array{v, v, v}); },
     "a vector has 1, 2, 4 or 8 registers"},
    {"sm_80", {}, [](K& k) { F64 v = k.constant<F64>(0.0); k.store<F64>(k.shared(32), std::array{v, v, v, v}); },
     "a vector of 4 times 64 bits is too wide"},
    {"sm_80", {.reqntid = {2048}}, [](K&) {}, "a block has at most 1024 threads"},
    {"sm_80", {.reqntid = {32}, .maxntid = 64}, [](K&) {}, "reqntid and maxntid exclude each other"},
    {"sm_80", {.minnctapersm = 2}, [](K&) {}, "minnctapersm needs reqntid or maxntid"},
    {"sm_80", {.maxnreg = 256}, [](K&) {}, "a thread has at most 255 registers"},
    {"sm_90", {.reqnctapercluster = 32}, [](K&) {}, "a cluster has at most 16 blocks"},
    {"sm_80", {.explicitcluster = true}, [](K&) {}, ".explicitcluster needs sm_90; the module is for sm_80"},
    {"sm_80", {}, [](K& k) { k.bulk_commit(); }, "cp.async.bulk.commit_group needs sm_90; the module is for sm_80"},
    {"sm_80", {}, [](K& k) { k.read(Special::ClusterCtarank); }, "%cluster_ctarank needs sm_90; the module is for sm_80"},
    {"sm_86", {}, [](K& k) { k.to_fp8_pair(Fp8::E4M3, 1.0f, 2.0f); },
     "cvt.rn.satfinite.e4m3x2.f32 needs sm_89; the module is for sm_86"},
    {"sm_80", {}, [](K& k) { k.mbarrier_arrive_expect_tx(k.shared(8), 16); },
     "mbarrier.arrive.expect_tx.shared.b64 needs sm_90; the module is for sm_80"},
    {"sm_75", {}, [](K& k) { k.cp_async_commit(); }, "cp.async.commit_group needs sm_80; the module is for sm_75"},
};
// clang-format on

TEST(PtxBuilder, IllFormedKernelsAreRefusedWithAReason) {
  for (const Refused& each : refusals) {
    Module module(each.arch);
    each.build(module.kernel("k", each.options));
    Result<std::string> text = module.text();
    ASSERT_FALSE(text) << "accepted, though " << each.why;
    EXPECT_EQ(text.error().message, "kernel k: " + std::string(each.why));
  }
}

TEST(PtxBuilder, ModulesAreChecked) {
  for (std::string_view arch : {"", "sm_", "sm_8x", "compute_80", "sm_60", "sm_90b"}) {
    Result<std::string> text = Module(arch).text();
    ASSERT_FALSE(text);
    EXPECT_EQ(text.error().message, "'" + std::string(arch) + "' is no architecture; sm_80 or sm_90a is");
  }
  Module module;
  module.kernel("k"), module.kernel("k");
  EXPECT_EQ(module.text().error().message, "kernel k: another kernel has this name");
  Module unnamed;
  unnamed.kernel("2k");
  EXPECT_EQ(unnamed.text().error().message, "kernel 2k: '2k' is no name for a kernel");
}

// Ill-typed code does not compile.
template <typename A, typename B>
concept CanAdd = requires(Kernel k, A a, B b) {
  k.add(a, b);
};
template <typename A>
concept CanDivide = requires(Kernel k, A a) {
  k.div(a, a);
};
template <typename A>
concept CanMinNan = requires(Kernel k, A a) {
  k.min_nan(a, a);
};
template <typename To, typename From>
concept CanCast = requires(Kernel k, From a) {
  k.template bitcast<To>(a);
};
template <typename A>
concept CanLoadFrom = requires(Kernel k, A a) {
  k.template load<F32>(Global{a});
};
static_assert(CanAdd<F32, F32> && CanAdd<F32, float> && CanAdd<F64, double> && CanAdd<U32, int> && CanAdd<U64, U64>);
static_assert(!CanAdd<F32, F64> && !CanAdd<F32, double> && !CanAdd<F32, int> && !CanAdd<U32, U64> && !CanAdd<U32, F32>);
static_assert(!CanAdd<Pred, Pred> && !CanAdd<B16, B16> && !CanAdd<U32, float>);
static_assert(CanDivide<F32> && CanDivide<F64> && !CanDivide<U32> && CanMinNan<F32> && !CanMinNan<F64>);
static_assert(CanCast<U32, F32> && CanCast<F64, U64> && !CanCast<F32, U64> && !CanCast<F32, Pred>);
static_assert(CanLoadFrom<U64> && !CanLoadFrom<U32>);

}  // namespace
}  // namespace trireme::ptx

// Whole kernels by the PTX builder: how they read, and what ptxas says.
#include "targets/ptx/ptxas_for_test.hpp"
#include "trireme/ptx.hpp"

namespace trireme::ptx {
namespace {

// A whole kernel: rows of x scaled by 1 / sqrt(mean of squares), one warp a row.
void norm(Module& module) {
  Kernel& k = module.kernel("norm", {.comment = "norm: one warp normalises one row of x in place.\nGrid: rows blocks.",
                                     .reqntid = {32},
                                     .minnctapersm = 16,
                                     .maxnreg = 64});
  ParameterBytes args = k.param_bytes("args", 16);
  U64 x = k.load<U64>(args, 0);
  U32 columns = k.load<U32>(args, 8);
  F32 eps = k.load<F32>(args, 12);
  U32 lane = k.read(Special::LaneId);
  U32 row = k.read(Special::CtaidX);
  U64 first = k.mul_wide_u(row, columns);
  U64 base = k.add(x, k.shl(first, 2));
  F32 sum = k.constant<F32>(-0.0f);
  U32 j = k.reg<U32>();
  k.comment("The sum of squares.");
  k.assign(j, lane);
  k.while_less(j, columns, [&] {
    F32 v = k.load<F32>(Global{k.mad_wide_u(j, 4, base)});
    k.add(sum, k.mul(v, v), into(sum));
    k.add(j, 32, into(j));
  });
  for (unsigned s = 16; s; s /= 2) k.add(sum, k.shfl(Shuffle::Bfly, sum, s), into(sum));
  F32 mean = k.div(sum, k.cvt_u<F32>(columns));
  F32 scale = k.rcp(k.sqrt(k.add(mean, eps)));
  k.comment("The row, scaled.");
  k.assign(j, lane);
  k.while_less(j, columns, [&] {
    U64 at = k.mad_wide_u(j, 4, base);
    F32 v = k.load<F32>(Global{at});
    k.store(Global{at}, k.mul(v, scale), {.cache = Cache::Cs});
    k.add(j, 32, into(j));
  });
}

TEST(PtxBuilder, WholeKernelReadsWell) {
  Module module;
  norm(module);
  EXPECT_EQ(module.text().value(), R"(.version 7.0
.target sm_80
.address_size 64

// norm: one warp normalises one row of x in place.
// Grid: rows blocks.
.visible .entry norm(
  .param .align 8 .b8 args[16]
)
.reqntid 32, 1, 1
.minnctapersm 16
.maxnreg 64
{
  .reg .pred %p<3>;
  .reg .b32 %r<5>;
  .reg .b64 %rd<7>;
  .reg .f32 %f<17>;

  ld.param.b64 %rd1, [args];
  ld.param.b32 %r1, [args+8];
  ld.param.f32 %f1, [args+12];
  mov.u32 %r2, %laneid;
  mov.u32 %r3, %ctaid.x;
  mul.wide.u32 %rd2, %r3, %r1;
  shl.b64 %rd3, %rd2, 2;
  add.s64 %rd4, %rd1, %rd3;
  mov.f32 %f2, 0f80000000;
  // The sum of squares.
  mov.b32 %r4, %r2;
$while_0:
  setp.lo.u32 %p1, %r4, %r1;
  @!%p1 bra $endwhile_1;
  mad.wide.u32 %rd5, %r4, 4, %rd4;
  ld.global.f32 %f3, [%rd5];
  mul.rn.f32 %f4, %f3, %f3;
  add.rn.f32 %f2, %f2, %f4;
  add.s32 %r4, %r4, 32;
  bra $while_0;
$endwhile_1:
  shfl.sync.bfly.b32 %f5, %f2, 16, 31, 0xFFFFFFFF;
  add.rn.f32 %f2, %f2, %f5;
  shfl.sync.bfly.b32 %f6, %f2, 8, 31, 0xFFFFFFFF;
  add.rn.f32 %f2, %f2, %f6;
  shfl.sync.bfly.b32 %f7, %f2, 4, 31, 0xFFFFFFFF;
  add.rn.f32 %f2, %f2, %f7;
  shfl.sync.bfly.b32 %f8, %f2, 2, 31, 0xFFFFFFFF;
  add.rn.f32 %f2, %f2, %f8;
  shfl.sync.bfly.b32 %f9, %f2, 1, 31, 0xFFFFFFFF;
  add.rn.f32 %f2, %f2, %f9;
  cvt.rn.f32.u32 %f10, %r1;
  div.rn.f32 %f11, %f2, %f10;
  add.rn.f32 %f12, %f11, %f1;
  sqrt.rn.f32 %f13, %f12;
  rcp.rn.f32 %f14, %f13;
  // The row, scaled.
  mov.b32 %r4, %r2;
$while_2:
  setp.lo.u32 %p2, %r4, %r1;
  @!%p2 bra $endwhile_3;
  mad.wide.u32 %rd6, %r4, 4, %rd4;
  ld.global.f32 %f15, [%rd6];
  mul.rn.f32 %f16, %f15, %f14;
  st.global.cs.f32 [%rd6], %f16;
  add.s32 %r4, %r4, 32;
  bra $while_2;
$endwhile_3:
  ret;
}
)");
}

// The kernel with a ring of asynchronous copies, dynamic shared memory and a cluster, where the chip has them.
void exchange(Module& module, bool cluster) {
  Kernel& k = module.kernel("exchange", {.comment = "exchange: each block adds up what the others of its cluster hold.",
                                         .maxntid = 128,
                                         .reqnctapercluster = cluster ? 4u : 0u,
                                         .explicitcluster = cluster});
  U64 x = k.load(k.param<U64>("x"));
  Shared sums = k.shared(16);
  Shared ring = k.dynamic_shared(4096);
  U32 tid = k.read(Special::TidX);
  Shared own{k.mad(tid, 16, ring.base)};
  Global from{k.mad_wide_u(tid, 16, x)};
  k.cp_async(own, from, 16);
  k.cp_async_commit();
  k.cp_async_wait(0);
  std::array<F32, 4> v = {k.reg<F32>(), k.reg<F32>(), k.reg<F32>(), k.reg<F32>()};
  k.load<F32>(v, own);
  F32 sum = k.add(k.add(v[0], v[1]), k.add(v[2], v[3]));
  k.if_(k.setp(IntCompare::Eq, tid, 0), [&] { k.store(sums, sum); });
  k.bar_sync();
  if (cluster) {
    k.cluster_arrive();
    k.cluster_wait();
    for (unsigned rank = 0; rank < 4; ++rank) k.add(sum, k.load<F32>(k.mapa(sums, rank)), into(sum));
    k.cluster_arrive();
    k.cluster_wait();
  }
  k.store(from, sum);
}

TEST(PtxBuilder, PtxasAcceptsWholeKernels) {
  if (!has_ptxas()) GTEST_SKIP() << "no ptxas in PATH";
  for (std::string_view arch : {"sm_80", "sm_90", "sm_100", "sm_120"}) {
    Module module(arch);
    norm(module);
    exchange(module, arch != "sm_80");
    EXPECT_TRUE(assembles(module.text().value(), arch));
  }
  Module oldest;  // what is built for sm_80 runs on every later chip
  norm(oldest);
  exchange(oldest, false);
  for (std::string_view arch : {"sm_80", "sm_90", "sm_100", "sm_120"})
    EXPECT_TRUE(assembles(oldest.text().value(), arch));
}

}  // namespace
}  // namespace trireme::ptx

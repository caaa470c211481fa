// The A64 instructions that kernels use, each as assemblers print it and as its bits.
//
// %0 to %3 are registers, the letter before says which kind and how much of it; %t is 4s or 2d, by the compute type;
// %i is an immediate, %l a label. Register k fills the field of `fields` with its number: d at bit 0, n at 5, m at 16,
// a at 10, b at both n and m.
#pragma once
#include <cstdint>
#include <string_view>

namespace trireme::aarch64 {

struct Form {
  std::string_view text;
  std::uint32_t bits;
  std::string_view uses = "wrrr";    // of each register: w written, r read, x both
  std::string_view fields = "dnma";  // where each stands
};

constexpr std::uint32_t bit_of_2d = 1u << 22;  // what makes an instruction on 4s lanes one on 2d lanes

namespace form {

// Lanes of the compute type
inline constexpr Form fadd = {"fadd v%0.%t, v%1.%t, v%2.%t", 0x4E20D400};
inline constexpr Form fsub = {"fsub v%0.%t, v%1.%t, v%2.%t", 0x4EA0D400};
inline constexpr Form fmul = {"fmul v%0.%t, v%1.%t, v%2.%t", 0x6E20DC00};
inline constexpr Form fdiv = {"fdiv v%0.%t, v%1.%t, v%2.%t", 0x6E20FC00};
inline constexpr Form fmla = {"fmla v%0.%t, v%1.%t, v%2.%t", 0x4E20CC00, "xrr"};
inline constexpr Form fmax = {"fmax v%0.%t, v%1.%t, v%2.%t", 0x4E20F400};
inline constexpr Form fmin = {"fmin v%0.%t, v%1.%t, v%2.%t", 0x4EA0F400};
inline constexpr Form fcmeq = {"fcmeq v%0.%t, v%1.%t, v%2.%t", 0x4E20E400};
inline constexpr Form fcmge = {"fcmge v%0.%t, v%1.%t, v%2.%t", 0x6E20E400};
inline constexpr Form fcmgt = {"fcmgt v%0.%t, v%1.%t, v%2.%t", 0x6EA0E400};
inline constexpr Form fneg = {"fneg v%0.%t, v%1.%t", 0x6EA0F800};
inline constexpr Form fabs = {"fabs v%0.%t, v%1.%t", 0x4EA0F800};
inline constexpr Form fsqrt = {"fsqrt v%0.%t, v%1.%t", 0x6EA1F800};
inline constexpr Form frintm = {"frintm v%0.%t, v%1.%t", 0x4E219800};
inline constexpr Form frintn = {"frintn v%0.%t, v%1.%t", 0x4E218800};
inline constexpr Form scvtf = {"scvtf v%0.%t, v%1.%t", 0x4E21D800};
inline constexpr Form fcvtns = {"fcvtns v%0.%t, v%1.%t", 0x4E21A800};
inline constexpr Form add = {"add v%0.%t, v%1.%t, v%2.%t", 0x4EA08400};

// Lanes of 32 bits
inline constexpr Form fadd_4s = {"fadd v%0.4s, v%1.4s, v%2.4s", 0x4E20D400};
inline constexpr Form fmul_4s = {"fmul v%0.4s, v%1.4s, v%2.4s", 0x6E20DC00};
inline constexpr Form fmin_4s = {"fmin v%0.4s, v%1.4s, v%2.4s", 0x4EA0F400};
inline constexpr Form fabs_4s = {"fabs v%0.4s, v%1.4s", 0x4EA0F800};
inline constexpr Form fcmeq_4s = {"fcmeq v%0.4s, v%1.4s, v%2.4s", 0x4E20E400};
inline constexpr Form add_4s = {"add v%0.4s, v%1.4s, v%2.4s", 0x4EA08400};
inline constexpr Form sub_4s = {"sub v%0.4s, v%1.4s, v%2.4s", 0x6EA08400};
inline constexpr Form smax_4s = {"smax v%0.4s, v%1.4s, v%2.4s", 0x4EA06400};
inline constexpr Form smin_4s = {"smin v%0.4s, v%1.4s, v%2.4s", 0x4EA06C00};
inline constexpr Form cmeq_4s = {"cmeq v%0.4s, v%1.4s, v%2.4s", 0x6EA08C00};
inline constexpr Form cmeq_0_4s = {"cmeq v%0.4s, v%1.4s, #0", 0x4EA09800};
inline constexpr Form shl_4s = {"shl v%0.4s, v%1.4s, #%i", 0x4F005400};
inline constexpr Form ushr_4s = {"ushr v%0.4s, v%1.4s, #%i", 0x6F000400};
inline constexpr Form mul_4s = {"mul v%0.4s, v%1.4s, v%2.4s", 0x4EA09C00};
inline constexpr Form uzp2_4s = {"uzp2 v%0.4s, v%1.4s, v%2.4s", 0x4E805800};
inline constexpr Form usra_4s = {"usra v%0.4s, v%1.4s, #%i", 0x6F001400, "xr"};
inline constexpr Form uzp1_4s = {"uzp1 v%0.4s, v%1.4s, v%2.4s", 0x4E801800};
inline constexpr Form rev64_4s = {"rev64 v%0.4s, v%1.4s", 0x4EA00800};

// Of 16 and 64
inline constexpr Form shl_8h = {"shl v%0.8h, v%1.8h, #%i", 0x4F005400};
inline constexpr Form sshr_8h = {"sshr v%0.8h, v%1.8h, #%i", 0x4F000400};
inline constexpr Form uzp2_8h = {"uzp2 v%0.8h, v%1.8h, v%2.8h", 0x4E405800};
inline constexpr Form shl_2d = {"shl v%0.2d, v%1.2d, #%i", 0x4F005400};
inline constexpr Form ushr_2d = {"ushr v%0.2d, v%1.2d, #%i", 0x6F000400};
inline constexpr Form umull_2d = {"umull v%0.2d, v%1.2s, v%2.2s", 0x2EA0C000};
inline constexpr Form umull2_2d = {"umull2 v%0.2d, v%1.4s, v%2.4s", 0x6EA0C000};
inline constexpr Form cmgt_2d = {"cmgt v%0.2d, v%1.2d, v%2.2d", 0x4EE03400};

// All bits
inline constexpr Form and_ = {"and v%0.16b, v%1.16b, v%2.16b", 0x4E201C00};
inline constexpr Form orr = {"orr v%0.16b, v%1.16b, v%2.16b", 0x4EA01C00};
inline constexpr Form orn = {"orn v%0.16b, v%1.16b, v%2.16b", 0x4EE01C00};
inline constexpr Form eor = {"eor v%0.16b, v%1.16b, v%2.16b", 0x6E201C00};
inline constexpr Form mvn = {"mvn v%0.16b, v%1.16b", 0x6E205800};
inline constexpr Form bsl = {"bsl v%0.16b, v%1.16b, v%2.16b", 0x6E601C00, "xrr"};
inline constexpr Form bit = {"bit v%0.16b, v%1.16b, v%2.16b", 0x6EA01C00, "xrr"};
inline constexpr Form bif = {"bif v%0.16b, v%1.16b, v%2.16b", 0x6EE01C00, "xrr"};
inline constexpr Form mov_v = {"mov v%0.16b, v%1.16b", 0x4EA01C00, "wr", "db"};
inline constexpr Form movi_0 = {"movi v%0.2d, #0", 0x6F00E400};
inline constexpr Form ext_8 = {"ext v%0.16b, v%1.16b, v%1.16b, #8", 0x6E004000, "wr", "db"};

// Between lanes and general registers; %i is the lane
inline constexpr Form dup_w = {"dup v%0.4s, w%1", 0x4E040C00};
inline constexpr Form dup_x = {"dup v%0.2d, x%1", 0x4E080C00};
inline constexpr Form dup_s = {"dup v%0.4s, v%1.s[0]", 0x4E040400};
inline constexpr Form dup_d = {"dup v%0.2d, v%1.d[0]", 0x4E080400};
inline constexpr Form mov_to_s = {"mov v%0.s[%i], v%1.s[0]", 0x6E040400, "xr"};
inline constexpr Form mov_to_d = {"mov v%0.d[%i], v%1.d[0]", 0x6E080400, "xr"};
inline constexpr Form mov_from_s = {"mov s%0, v%1.s[%i]", 0x5E040400};
inline constexpr Form mov_from_d = {"mov d%0, v%1.d[%i]", 0x5E080400};
inline constexpr Form fmov_x_d = {"fmov x%0, d%1", 0x9E660000};
inline constexpr Form scvtf_s_x = {"scvtf s%0, x%1", 0x9E220000};
inline constexpr Form scvtf_d_x = {"scvtf d%0, x%1", 0x9E620000};
inline constexpr Form fcvtns_x_s = {"fcvtns x%0, s%1", 0x9E200000};
inline constexpr Form fcvtns_x_d = {"fcvtns x%0, d%1", 0x9E600000};

// Between widths
inline constexpr Form xtn_4h = {"xtn v%0.4h, v%1.4s", 0x0E612800};
inline constexpr Form xtn_2s = {"xtn v%0.2s, v%1.2d", 0x0EA12800};
inline constexpr Form xtn_8b = {"xtn v%0.8b, v%1.8h", 0x0E212800};
inline constexpr Form shrn_4h_16 = {"shrn v%0.4h, v%1.4s, #16", 0x0F108400};
inline constexpr Form sqxtn_8b = {"sqxtn v%0.8b, v%1.8h", 0x0E214800};
inline constexpr Form sqxtn_4h = {"sqxtn v%0.4h, v%1.4s", 0x0E614800};
inline constexpr Form sqxtn_2s = {"sqxtn v%0.2s, v%1.2d", 0x0EA14800};
inline constexpr Form sqxtun_4h = {"sqxtun v%0.4h, v%1.4s", 0x2E612800};
inline constexpr Form sqxtun_2s = {"sqxtun v%0.2s, v%1.2d", 0x2EA12800};
inline constexpr Form uqxtn_8b = {"uqxtn v%0.8b, v%1.8h", 0x2E214800};
inline constexpr Form uqxtn_4h = {"uqxtn v%0.4h, v%1.4s", 0x2E614800};
inline constexpr Form sxtl_8h = {"sxtl v%0.8h, v%1.8b", 0x0F08A400};
inline constexpr Form sxtl_4s = {"sxtl v%0.4s, v%1.4h", 0x0F10A400};
inline constexpr Form sxtl_2d = {"sxtl v%0.2d, v%1.2s", 0x0F20A400};
inline constexpr Form uxtl_8h = {"uxtl v%0.8h, v%1.8b", 0x2F08A400};
inline constexpr Form uxtl_4s = {"uxtl v%0.4s, v%1.4h", 0x2F10A400};
inline constexpr Form shll_4s_16 = {"shll v%0.4s, v%1.4h, #16", 0x2E613800};
inline constexpr Form fcvtl_4s = {"fcvtl v%0.4s, v%1.4h", 0x0E217800};
inline constexpr Form fcvtl_2d = {"fcvtl v%0.2d, v%1.2s", 0x0E617800};
inline constexpr Form fcvtn_4h = {"fcvtn v%0.4h, v%1.4s", 0x0E216800};
inline constexpr Form fcvtn_2s = {"fcvtn v%0.2s, v%1.2d", 0x0E616800};
inline constexpr Form fcvtn2_8h = {"fcvtn2 v%0.8h, v%1.4s", 0x4E216800, "xr"};
inline constexpr Form fcvtn2_4s = {"fcvtn2 v%0.4s, v%1.2d", 0x4E616800, "xr"};
inline constexpr Form fcvtxn_2s = {"fcvtxn v%0.2s, v%1.2d", 0x2E616800};  // rounds to odd
inline constexpr Form bfcvtn_4h = {"bfcvtn v%0.4h, v%1.4s", 0x0EA16800};  // FEAT_BF16
inline constexpr Form bfcvtn2_8h = {"bfcvtn2 v%0.8h, v%1.4s", 0x4EA16800, "xr"};

// Memory; by log2 of the bytes
inline constexpr Form load_v[] = {{"ldr b%0, [x%1, #%i]", 0x3D400000},
                                  {"ldr h%0, [x%1, #%i]", 0x7D400000},
                                  {"ldr s%0, [x%1, #%i]", 0xBD400000},
                                  {"ldr d%0, [x%1, #%i]", 0xFD400000},
                                  {"ldr q%0, [x%1, #%i]", 0x3DC00000}};
inline constexpr Form store_v[] = {{"str b%0, [x%1, #%i]", 0x3D000000, "rr"},
                                   {"str h%0, [x%1, #%i]", 0x7D000000, "rr"},
                                   {"str s%0, [x%1, #%i]", 0xBD000000, "rr"},
                                   {"str d%0, [x%1, #%i]", 0xFD000000, "rr"},
                                   {"str q%0, [x%1, #%i]", 0x3D800000, "rr"}};
inline constexpr Form load_lane[] = {{"ld1 {v%0.b}[%i], [x%1]", 0x0D400000, "xr"},
                                     {"ld1 {v%0.h}[%i], [x%1]", 0x0D404000, "xr"},
                                     {"ld1 {v%0.s}[%i], [x%1]", 0x0D408000, "xr"},
                                     {"ld1 {v%0.d}[%i], [x%1]", 0x0D408400, "xr"}};
inline constexpr Form store_lane[] = {{"st1 {v%0.b}[%i], [x%1]", 0x0D000000, "rr"},
                                      {"st1 {v%0.h}[%i], [x%1]", 0x0D004000, "rr"},
                                      {"st1 {v%0.s}[%i], [x%1]", 0x0D008000, "rr"},
                                      {"st1 {v%0.d}[%i], [x%1]", 0x0D008400, "rr"}};
inline constexpr Form ldr_literal = {"ldr q%0, %l", 0x9C000000};
inline constexpr Form ldr_x = {"ldr x%0, [x%1, #%i]", 0xF9400000};
inline constexpr Form str_x = {"str x%0, [x%1, #%i]", 0xF9000000, "rr"};
inline constexpr Form ldrsw = {"ldrsw x%0, [x%1, #%i]", 0xB9800000};
inline constexpr Form ldrb = {"ldrb w%0, [x%1, #%i]", 0x39400000};
inline constexpr Form prfm = {"prfm pldl2keep, [x%0]", 0xF9800002, "r", "n"};  // L1 is full of the row at hand

// Integers
inline constexpr Form add_x = {"add x%0, x%1, x%2", 0x8B000000};
inline constexpr Form add_shifted = {"add x%0, x%1, x%2, lsl #%i", 0x8B000000};
inline constexpr Form add_i = {"add x%0, x%1, #%i", 0x91000000};
inline constexpr Form sub_x = {"sub x%0, x%1, x%2", 0xCB000000};
inline constexpr Form sub_i = {"sub x%0, x%1, #%i", 0xD1000000};
inline constexpr Form and_x = {"and x%0, x%1, x%2", 0x8A000000};
inline constexpr Form lsr_i = {"lsr x%0, x%1, #%i", 0xD340FC00};
inline constexpr Form mul = {"mul x%0, x%1, x%2", 0x9B007C00};
inline constexpr Form madd = {"madd x%0, x%1, x%2, x%3", 0x9B000000};
inline constexpr Form msub = {"msub x%0, x%1, x%2, x%3", 0x9B008000};
inline constexpr Form udiv = {"udiv x%0, x%1, x%2", 0x9AC00800};
inline constexpr Form mov_x = {"mov x%0, x%1", 0xAA0003E0, "wr", "dm"};
inline constexpr Form mov_i = {"mov x%0, #%i", 0xD2800000};
inline constexpr Form movk[] = {{"movk x%0, #%i", 0xF2800000, "x"},
                                {"movk x%0, #%i, lsl #16", 0xF2A00000, "x"},
                                {"movk x%0, #%i, lsl #32", 0xF2C00000, "x"},
                                {"movk x%0, #%i, lsl #48", 0xF2E00000, "x"}};
inline constexpr Form cmp_x = {"cmp x%0, x%1", 0xEB00001F, "rr", "nm"};
inline constexpr Form cmp_i = {"cmp x%0, #%i", 0xF100001F, "r", "n"};
inline constexpr Form cmn_1 = {"cmn x%0, #1", 0xB100041F, "r", "n"};
inline constexpr Form csel_lt = {"csel x%0, x%1, x%2, lt", 0x9A80B000};
inline constexpr Form csel_gt = {"csel x%0, x%1, x%2, gt", 0x9A80C000};

// Control
inline constexpr Form b = {"b %l", 0x14000000};
inline constexpr Form b_eq = {"b.eq %l", 0x54000000};
inline constexpr Form b_ge = {"b.ge %l", 0x5400000A};
inline constexpr Form b_lt = {"b.lt %l", 0x5400000B};
inline constexpr Form tbz_w = {"tbz w%0, #%i, %l", 0x36000000, "r"};
inline constexpr Form tbz_x = {"tbz x%0, #%i, %l", 0xB6000000, "r"};
inline constexpr Form cbz = {"cbz x%0, %l", 0xB4000000, "r"};
inline constexpr Form ret = {"ret", 0xD65F03C0};
inline constexpr Form read_fpcr = {"mrs x%0, fpcr", 0xD53B4400};
inline constexpr Form write_fpcr = {"msr fpcr, x%0", 0xD51B4400, "r"};
inline constexpr Form clear_fpcr = {"msr fpcr, xzr", 0xD51B441F};

// The frame
inline constexpr Form sub_sp = {"sub sp, sp, #%i", 0xD10003FF};
inline constexpr Form add_sp = {"add sp, sp, #%i", 0x910003FF};
inline constexpr Form sub_sp_pages = {"sub sp, sp, #%i, lsl #12", 0xD14003FF};
inline constexpr Form add_sp_pages = {"add sp, sp, #%i, lsl #12", 0x914003FF};
inline constexpr Form load_x_sp = {"ldr x%0, [sp, #%i]", 0xF94003E0};
inline constexpr Form store_x_sp = {"str x%0, [sp, #%i]", 0xF90003E0, "r"};
inline constexpr Form load_d_sp = {"ldr d%0, [sp, #%i]", 0xFD4003E0};
inline constexpr Form store_d_sp = {"str d%0, [sp, #%i]", 0xFD0003E0, "r"};
inline constexpr Form load_q_sp = {"ldr q%0, [sp, #%i]", 0x3DC003E0};
inline constexpr Form store_q_sp = {"str q%0, [sp, #%i]", 0x3D8003E0, "r"};

}  // namespace form
}  // namespace trireme::aarch64

// What a cubin says, beside what ptxas said when it made it.
#include "devices/cuda/cubin.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace trireme::cuda {
namespace {

// A kernel with parameters of many sizes, 96 bytes of shared memory, and too many values for 24 registers.
constexpr std::string_view spilling = R"(.version 7.0
.target sm_80
.address_size 64
.visible .entry other(.param .u64 x) { ret; }
.visible .entry spilling(.param .u64 x, .param .f32 scale, .param .align 1 .b8 flag[1], .param .align 8 .b8 both[24])
.maxnreg 24
{
  .reg .u64 %x;
  .reg .f32 %f<64>;
  .shared .align 4 .b8 staged[96];
  ld.param.u64 %x, [x];
)";

std::string text() {
  std::string ptx(spilling);
  for (int k = 0; k < 64; ++k)
    ptx += "ld.volatile.global.f32 %f" + std::to_string(k) + ", [%x+" + std::to_string(4 * k) + "];\n";
  ptx += "st.volatile.shared.f32 [staged+92], %f0;\nbar.sync 0;\n";
  for (int k = 63; k >= 0; --k)
    ptx += "st.volatile.global.f32 [%x+" + std::to_string(4 * k) + "], %f" + std::to_string(k) + ";\n";
  return ptx + "ret;\n}\n";
}

std::string content(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The number before `words` in what ptxas says of the kernel.
int number_before(std::string log, const std::string& words) {
  const std::string heading = "Compiling entry function '";
  log.erase(0, log.find(heading + "spilling") + heading.size());
  log.resize(std::min(log.size(), log.find(heading)));
  std::size_t at = log.find(words);
  if (at == std::string::npos) return 0;
  std::size_t begin = log.find_last_not_of("0123456789", at - 1) + 1;
  return std::atoi(log.c_str() + begin);
}

TEST(Cubin, SaysWhatPtxasSaid) {
  if (std::system("ptxas --version > /dev/null 2>&1") != 0) GTEST_SKIP() << "ptxas is not on PATH";
  std::string pattern = (std::filesystem::temp_directory_path() / "trireme_cubin_XXXXXX").string();
  std::filesystem::path folder = ::mkdtemp(pattern.data());
  std::ofstream(folder / "a.ptx") << text();
  for (std::string arch : {"sm_80", "sm_90", "sm_100", "sm_120"}) {
    std::string command = "cd " + folder.string() + " && ptxas -v -arch=" + arch + " a.ptx -o a.cubin > log 2>&1";
    ASSERT_EQ(std::system(command.c_str()), 0) << content(folder / "log");
    std::string log = content(folder / "log"), cubin = content(folder / "a.cubin");
    jit::Facts facts = read_cubin(cubin, "spilling").value();
    EXPECT_EQ(facts.registers, number_before(log, " registers")) << arch << log;
    EXPECT_GE(facts.registers, 16);
    EXPECT_EQ(facts.local_bytes, number_before(log, " bytes stack frame")) << arch << log;
    EXPECT_GT(facts.local_bytes, 0);
    EXPECT_EQ(facts.shared_bytes, 96) << arch << log;
    EXPECT_TRUE(facts.knows_parameters);
    EXPECT_EQ(facts.parameter_bytes, (std::vector<int>{8, 4, 1, 24})) << arch;

    jit::Facts other = read_cubin(cubin, "other").value();
    EXPECT_EQ(other.shared_bytes, 0);
    EXPECT_EQ(other.local_bytes, 0);
    EXPECT_EQ(other.parameter_bytes, std::vector<int>{8});
    EXPECT_EQ(read_cubin(cubin, "missing").error().message, "the cubin has no code of 'missing'");

    // Torn or changed, it says less or nothing, and reads nothing beyond its end.
    for (std::size_t length = 0; length < cubin.size(); length += 13) {
      std::string torn(cubin, 0, length);
      torn.shrink_to_fit();
      (void)read_cubin(torn, "spilling");
    }
    for (std::size_t at = 0; at < cubin.size(); at += 3) {
      std::string changed = cubin;
      changed[at] = static_cast<char>(changed[at] ^ 0xff);
      (void)read_cubin(changed, "spilling");
    }
  }
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace trireme::cuda

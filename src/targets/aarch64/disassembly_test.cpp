// What binutils read in the code is what the listing says: every instruction of every operator, over types and widths.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "devices/arguments.hpp"
#include "plan/check.hpp"
#include "plan/operator_points.hpp"
#include "targets/aarch64/emit.hpp"
#include "targets/targets.hpp"

namespace trireme::aarch64 {
namespace {

using Lines = std::vector<std::string>;

// One spelling of each: no comments, single blanks, numbers as decimals, and of a branch or a literal not where it
// goes.
std::string normal(std::string line) {
  if (std::size_t at = line.find("//"); at != std::string::npos) line.resize(at);
  std::string text;
  for (std::size_t at = 0; at < line.size();) {
    const char c = line[at];
    if (c == '\t' || c == ' ') {
      if (!text.empty() && text.back() != ' ') text += ' ';
      ++at;
    } else if (c == '#') {
      std::size_t used = 0;
      text += fmt::format("#{}", std::stoll(line.substr(at + 1), &used, 0));
      at += 1 + used;
    } else {
      text += c;
      ++at;
    }
  }
  while (!text.empty() && text.back() == ' ') text.pop_back();
  if (const bool no_offset = text.ends_with(", #0]"); no_offset) text = text.substr(0, text.size() - 5) + "]";
  const std::string name = text.substr(0, text.find(' '));
  const bool jumps = name == "b" || name.starts_with("b.") || name == "tbz" || name == "cbz";
  const bool literal = name == "ldr" && text.find('[') == std::string::npos;
  if (jumps || literal) text.resize(text.rfind(' '));
  return text;
}

Lines read_by_objdump(const std::vector<std::uint8_t>& bytes, std::size_t instructions) {
  const std::filesystem::path file =
      std::filesystem::temp_directory_path() / fmt::format("trireme_aarch64_{}", getpid());
  std::ofstream(file, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  const std::string command =
      fmt::format("aarch64-linux-gnu-objdump -D -b binary -m aarch64 --no-show-raw-insn {}", file.string());
  std::FILE* pipe = popen(command.c_str(), "r");
  Lines lines;
  char buffer[512];
  while (pipe && std::fgets(buffer, sizeof buffer, pipe) && lines.size() < instructions) {
    std::string line = buffer;
    const std::size_t colon = line.find(":\t");
    if (colon == std::string::npos) continue;
    if (!line.empty() && line.back() == '\n') line.pop_back();
    lines.push_back(normal(line.substr(colon + 2)));
  }
  if (pipe) pclose(pipe);
  std::filesystem::remove(file);
  return lines;
}

Lines instructions_of(const std::string& listing) {
  Lines lines;
  std::istringstream text(listing);
  for (std::string line; std::getline(text, line);) {
    line.erase(0, line.find_first_not_of(' '));
    if (line.empty() || line.starts_with(';') || line.starts_with('.')) continue;
    lines.push_back(normal(line));
  }
  return lines;
}

void agree(const std::string& problem, Isa isa) {
  const Result<Prepared> made = prepare_problem(parse_problem(problem).value(), {}, Fill::NoMemory);
  if (!made) return;  // the operator does not take this width
  const Prepared& prepared = *made;
  const Machine machine = target.machine(arch_name(isa)).value();
  const Config config = choose_config(prepared.program, machine, facts_of(prepared.program, prepared.view()));
  const Kernels kernels = lower(prepared.program, config).value();
  std::vector<const Kernel*> all = {&kernels.rows};
  for (const Kernel& each : kernels.columns) all.push_back(&each);
  for (const Kernel* kernel : all) {
    const MachineCode code = emit(*kernel, isa, true).value();
    EXPECT_EQ(emit(*kernel, isa)->bytes, code.bytes) << problem << ": a listing changes the code";
    const Lines said = instructions_of(code.listing), read = read_by_objdump(code.bytes, said.size());
    ASSERT_EQ(said.size(), read.size()) << problem;
    for (std::size_t k = 0; k < said.size(); ++k) ASSERT_EQ(said[k], read[k]) << problem << ", instruction " << k;
  }
}

TEST(AArch64, BinutilsReadWhatTheListingSays) {
  ASSERT_EQ(std::system("aarch64-linux-gnu-objdump --version > /dev/null 2>&1"), 0)
      << "binutils-aarch64-linux-gnu is missing: tools/setup.sh tests installs it";
  for (const TypeFacts& each : type_facts)
    for (const char* shape : {"5x64", "3x259", "3x1021"}) {
      if (is_packed(each.type)) continue;
      if (each.least < 0)
        for (const char* way : {"", " backward"})
          agree(fmt::format("rms_norm {} x={} gamma=f64{}", shape, each.name, way), Isa::Neon);
      agree(fmt::format("swiglu {} y={}", shape, each.name), Isa::NeonBf16);
    }
  for (const OperatorText& op : operator_texts())
    for (bool backward : {false, true})
      for (std::int64_t columns : {64, 1026}) {
        const OperatorPoint point{&op, backward, columns == 64 ? Type::BF16 : Type::F32, columns};
        agree(print(point.problem(7).value()), columns == 64 ? Isa::NeonBf16 : Isa::Neon);
      }
  agree("rms_norm 64x128 x=f32:1,64", Isa::Neon);
  agree("softmax 64x128 x=bf16:128,-1 backward", Isa::Neon);
}

}  // namespace
}  // namespace trireme::aarch64

// Which schedule is chosen, and which kernels come of it: every operator, both directions, over storage types, widths
// and machines, against tests/golden/kernels. Nothing here says that a choice is good; it says that a change of it is
// seen. BLESS=1 rewrites the files, and their diff is what a reviewer reads. Compilers must agree on them too (fault
// 66).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "devices/arguments.hpp"
#include "plan/check.hpp"
#include "plan/operator_points.hpp"
#include "targets/targets.hpp"

namespace trireme {
namespace {

struct PinnedMachine {
  std::string_view target, arch;
};
constexpr PinnedMachine pinned_machines[] = {{"x86", "avx2"},  {"x86", "avx512"}, {"aarch64", "neon"},
                                             {"ptx", "sm_80"}, {"ptx", "sm_90"},  {"wasm", "simd128"}};

std::int64_t instructions_in(const std::vector<Instr>& code) {
  std::int64_t count = 0;
  for (const Instr& each : code) count += 1 + instructions_in(each.body) + instructions_in(each.other);
  return count;
}

// Instructions, hash of what is emitted, schedule.
std::string pin(const Program& program, const Facts& facts, const PinnedMachine& on) {
  const Target& target = *find_target(on.target).value();
  const Machine machine = target.machine(on.arch).value();
  const Config config = choose_config(program, machine, facts);
  const Result<Compiled> made = compile(program, config, target, on.arch);
  if (!made) return "refused: " + made.error().message;
  std::int64_t instructions = instructions_in(made->kernels.rows.body);
  for (const Kernel& kernel : made->kernels.columns) instructions += instructions_in(kernel.body);
  return fmt::format("{:6} {:.8}  {}", instructions, made->artifact.hash(), print(config));
}

std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// Operators whose speed a table records are pinned at every width. Of the others a type has a third of the widths,
// each type another third, and which is which turns with the name: a change of the schedule still meets every width in
// every type, in a third of the time and of the lines.
bool is_pinned(const OperatorText& op, bool backward, int type, int width) {
  static const std::string measured = text_of(std::filesystem::path(TRIREME_SOURCE_DIR) / "tuned/sm_90.txt");
  if (measured.find(fmt::format("# {} ", op.name)) != measured.npos) return true;
  int letters = backward;
  for (char letter : op.name) letters += letter;
  return (letters + type + width) % 3 == 0;
}

// The operator as its first '#: try' line has it, at another width and type.
std::string pins_of(const OperatorText& op) {
  constexpr std::int64_t widths[] = {64, 128, 257, 896, 1024, 2880, 4096, 5120, 11008, 32000, 65536, 131072};
  constexpr Type types[] = {Type::F32, Type::BF16, Type::F16};
  std::string text;
  for (bool backward : {false, true})
    for (int t = 0; t < 3; ++t)
      for (int w = 0; w < 12; ++w) {
        if (!is_pinned(op, backward, t, w)) continue;
        const Type type = types[t];
        const std::int64_t width = widths[w];
        const Problem problem = OperatorPoint{&op, backward, type, width}.problem(16384).value();
        const std::string head = fmt::format("{} {:4} {:6} ", backward ? "bwd" : "fwd", name(type), width);
        Result<Prepared> prepared = prepare_problem(problem, {}, Fill::NoMemory);
        if (!prepared) {
          text += head + "refused: " + prepared.error().message + "\n";
          continue;
        }
        const Facts facts = facts_of(prepared->program, prepared->view());
        for (const PinnedMachine& each : pinned_machines)
          text += fmt::format("{} {:7} {}\n", head, each.arch, pin(prepared->program, facts, each));
      }
  return text;
}

// The first line that differs, and how many do.
std::string first_change(const std::string& wanted, const std::string& got) {
  std::istringstream want(wanted), have(got);
  std::string first, a, b;
  int changed = 0;
  while (true) {
    const bool more_wanted = static_cast<bool>(std::getline(want, a)), more = static_cast<bool>(std::getline(have, b));
    if (!more_wanted) a.clear();
    if (!more) b.clear();
    if (!more_wanted && !more) break;
    if (a != b && changed++ == 0) first = fmt::format("- {}\n+ {}", a, b);
  }
  return fmt::format("{} lines differ, the first:\n{}", changed, first);
}

TEST(PinnedKernels, fault_66_EveryOperator) {
  const std::filesystem::path folder = std::filesystem::path(TRIREME_SOURCE_DIR) / "tests/golden/kernels";
  for (const OperatorText& op : operator_texts()) {
    const std::filesystem::path path = folder / fmt::format("{}.txt", op.name);
    const std::string got =
        "# direction, type of the first operand, columns, machine, instructions, hash, schedule\n" + pins_of(op);
    if (std::getenv("BLESS")) {
      std::filesystem::create_directories(folder);
      std::ofstream(path) << got;
    } else if (const std::string wanted = text_of(path); wanted != got) {
      ADD_FAILURE() << path << " (BLESS=1 rewrites it): " << first_change(wanted, got);
    }
  }
}

}  // namespace
}  // namespace trireme

// The schedule `entries`, where a team takes all rows of an entry of a sum over rows i / d: the reference's bits for
// programs, shapes, types, layouts and schedules drawn at random, between guard pages.
#include "devices/lanes/lanes_device.hpp"
#include "random_layouts_for_test.hpp"
#include "schedule/candidates.hpp"
#include "schedule/lower.hpp"

namespace trireme {
namespace {

const std::vector<std::string> programs = {
    "p(x[i,j], w[i], d) -> (s[i / d, j])\n    s = colsum(x * w)\n",
    "p(x[i,j], w[i / d, j], d) -> (s[i / d, j], t[i / d, j], y[i,j], m[i])\n"
    "    m = mean(x)\n    y = (x - m) * w\n    s = colsum(y)\n    t = colsum(x * y)\n",
    "p(x[i,j], w[j], d) -> (s[i / d, j], c[j], y[i,j])\n    y = x * w\n    s = colsum(y)\n    c = colsum(x)\n",
    "p(x[i,j], v[i / 3, j], d) -> (s[i / d], u[i / 3, j], t[i / d], r[])\n"
    "    s = colsum(x * v)\n    t = colsum(amax(x))\n    u = colsum(x)\n    r = colsum(x)\n",
    "p(x[i,j], d) -> (s[i / d, j], y[i,j])\n    y = x / sum(x * x)\n    s = colmax(y)\n",
};

TEST(Entries, ProgramsTypesShapesAndSchedules) {
  const std::vector<Type> types = {Type::F32, Type::F32, Type::BF16, Type::F16, Type::F64};
  std::map<std::string, int> taken;
  Random random{std::mt19937_64(5)};
  for (int round = 0; round < (std::getenv("LONG") ? 4000 : 150) && !HasFailure(); ++round) {
    const std::int64_t d = random.of(std::vector<std::int64_t>{2, 2, 3, 4, 5, 7, 8, 13, 64, 129, 300, 1000});
    const std::int64_t rows = random.below(4) ? random.below(4) * d + random.below(d) : random.below(3);
    const std::int64_t columns =
        random.of(std::vector<std::int64_t>{1, 3, 16, 31, 64, 100, 128, 255, 256, 512, 700, 1024, 1300, 2048, 4100});
    const std::int64_t columns_here = rows * columns < 600'000 ? columns : 256;
    std::string line = fmt::format("p {}x{} d={}", rows, columns_here, d);
    const std::string& text = random.of(programs);
    auto has = [&](const std::string& name) { return text.find(name + "[") != std::string::npos; };
    for (const char* name : {"x", "w", "y", "t", "s"}) {
      if (!has(name)) continue;
      line += fmt::format(" {}={}", name, type_facts[static_cast<std::size_t>(random.of(types))].name);
      const bool is_s = name == std::string("s") && text.find("s[i / d, j]") != std::string::npos;
      if (is_s && random.below(3) == 0) line += random.below(2) ? ":3,5000" : ":20000,-4";
    }
    if (has("s") && random.below(4) == 0) line += " accumulate=s";
    SCOPED_TRACE(line + "\n" + text);
    Prepared problem = prepare_problem(parse_problem(line).value(), text).value();
    const std::vector<double> constants = problem.constants;
    GuardedProblem guarded(problem.program, rows, columns_here, constants, std::move(problem.buffers));
    ASSERT_TRUE(guarded.run_reference());
    const DeviceEntry* device = find_device("lanes");
    DeviceEntry changed = *device;
    std::string with = "none";
    changed.compile = [&](const Program& program, const Facts& facts) {
      std::vector<Config> configs = candidate_configs(program, machine_of(*device).value(), facts);
      std::erase_if(configs, [](const Config& each) { return !each.entries; });
      Facts given = facts;
      if (!configs.empty()) given.config = random.of(configs), with = print(*given.config);
      taken[configs.empty()             ? "none"
            : given.config->teams > 1   ? "teams"
            : given.config->cluster > 1 ? "cluster"
                                        : "one"]++;
      return device->compile(program, given);
    };
    const RunOptions options{.chunk_rows = random.below(3) * random.below(5)};
    EXPECT_EQ(guarded.compare(changed, options, random.below(2) ? Guarded::Edge::End : Guarded::Edge::Begin), "")
        << with;
  }
  EXPECT_GT(taken["teams"], 20);
  EXPECT_GT(taken["cluster"], 3);
  EXPECT_GT(taken["one"], 20);
}

}  // namespace
}  // namespace trireme

// Kernels that take a tile of rows at a time (schedule/tiles.hpp): the reference's bits for programs, shapes, types and
// schedules of many kinds, between guard pages.
#include "schedule/tiles.hpp"

#include "random_layouts_for_test.hpp"
#include "schedule/valid.hpp"

namespace trireme {
namespace {

const std::vector<std::string> programs = {
    "p(x[i / m, j], w[i % m, j], m) -> (y[i])\n    y = sum(x * w)\n",
    // Other rows around it.
    "p(x[i / m, j], w[i % m, j], s[i / m], b[i % m], g[j], r[i], one[], m) -> (y[i], z[i])\n"
    "    t = sum((x * w + 1) * g)\n    y = select(t < r, t * s, b + i)\n    z = t * one\n",
    "p(x[i / m, j], w[i % m, j], m) -> (y[i])\n    y = sum(x * w) * rsqrt(sum(x * x) * sum(w * w) + 1)\n",
    "p(x[i / m, j], w[i % m, j], one[], m) -> (d[i], top[i], n_[i])\n"
    "    e = abs(x - w) * one + j\n    d = mean(e)\n    top = amax(e * (j + 1))\n    n_ = sum(one)\n",
    "p(x[i / m, j], w[i % m, j], v[i % m, j], c[i / m, j], q[i / 3], m) -> (y[i])\n"
    "    y = sum(select(x < w, v, c * x)) / n + q\n",
};

// A tile's sums end in lanes of their own.
bool has_tiles(const DeviceEntry& device) {
  const Machine machine = machine_of(device).value();
  return !machine.simd || machine.lanes(Type::F64) > 1;
}

Config random_tile(const Machine& machine, const Prepared& problem, const Facts& facts, Random& random) {
  Config config{.simd = machine.simd, .columns = facts.columns};
  config.lanes = machine.simd ? machine.lanes(*problem.program.compute) : 32 >> (random.below(2) * random.below(5));
  config.tile = 2 << random.below(std::countr_zero(unsigned(config.lanes)));
  if (machine.simd) {
    config.unroll = 1 << random.below(5);
    return config;
  }
  config.vector = 1 << random.below(3);
  if (config.lanes == 32) config.groups = static_cast<int>(1 + random.below(4));
  config.rows = static_cast<int>(1 + random.below(200));
  return config;
}

TEST(Tiles, ProgramsTypesShapesAndSchedules) {
  const std::vector<Type> types = {Type::F32, Type::F32, Type::F32, Type::BF16, Type::F16, Type::F64, Type::I8};
  std::map<std::string, int> taken;
  Random random{std::mt19937_64(11)};
  for (int round = 0; round < (std::getenv("LONG") ? 4000 : 120) && !HasFailure(); ++round) {
    const std::int64_t m = random.of(std::vector<std::int64_t>{2, 3, 4, 5, 7, 8, 16, 17, 33});
    const std::int64_t rows =
        random.below(4) ? m * random.below(9) + random.below(3) * random.below(m) : random.below(70);
    const std::int64_t columns =
        random.of(std::vector<std::int64_t>{1, 3, 16, 31, 64, 100, 128, 200, 255, 256, 257, 320, 512, 700, 1030, 1300});
    std::string line = fmt::format("p {}x{} m={}", rows, columns, m);
    const std::string& text = random.of(programs);
    for (const char* name : {"x", "w", "y"})
      if (text.find(std::string(name) + "[") != std::string::npos)
        line += fmt::format(" {}={}", name, type_facts[static_cast<std::size_t>(random.of(types))].name);
    SCOPED_TRACE(line + "\n" + text);
    Prepared problem = prepare_problem(parse_problem(line).value(), text).value();
    const std::vector<double> constants = problem.constants;
    GuardedProblem guarded(problem.program, rows, columns, constants, std::move(problem.buffers));
    ASSERT_TRUE(guarded.run_reference());
    RunOptions options{.threads = static_cast<int>(1 + random.below(3)),
                       .chunk_rows = random.below(3) * random.below(40)};
    for (const DeviceEntry* device : devices_here(30)) {
      DeviceEntry changed = *device;
      const std::uint64_t seed = random.state();
      std::string with;
      changed.compile = [&](const Program& program, const Facts& facts) {
        Random own{std::mt19937_64(seed)};
        Facts given = facts;
        const Machine machine = machine_of(*device).value();
        for (int tries = 0; tries < 8 && !given.config && has_tiles(*device); ++tries)
          if (const Config config = random_tile(machine, problem, facts, own); valid(program, config, machine, facts))
            given.config = config;
        with = given.config ? print(*given.config) : "chosen";
        taken[device->name] += given.config.has_value();
        return device->compile(program, given);
      };
      EXPECT_EQ(guarded.compare(changed, options, random.below(2) ? Guarded::Edge::End : Guarded::Edge::Begin), "")
          << device->name << ": " << with;
    }
  }
  for (const DeviceEntry* device : devices_here(30))
    if (has_tiles(*device)) EXPECT_GT(taken[device->name], 80) << device->name;
}

}  // namespace
}  // namespace trireme

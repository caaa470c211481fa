// Every way to lay a program over a machine gives the reference's bits, and no thread oversteps: programs of all shapes
// under configs drawn at random, simd and threads, interpreted.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <cstdlib>
#include <optional>
#include <random>

#include "devices/arguments.hpp"
#include "devices/lanes/lanes_device.hpp"
#include "plan/check.hpp"
#include "reference/reference.hpp"
#include "schedule/resolve_groups.hpp"
#include "schedule/sum_classes.hpp"

namespace trireme {
namespace {

constexpr std::string_view programs[] = {
    // one sum
    "p(x[i,j], gamma[j] = 1, eps = 1e-6) -> (y[i,j], rstd[i])\n"
    "  rstd = rsqrt(mean(x * x) + eps)\n  y = x * rstd * gamma\n",
    // two sums, one after the other
    "p(x[i,j], gamma[j], beta[j]) -> (y[i,j], mu[i], rstd[i])\n"
    "  mu = mean(x)\n  rstd = rsqrt(mean(square(x - mu)) + 1e-5)\n  y = (x - mu) * rstd * gamma + beta\n",
    // two sums side by side, then a maximum
    "p(x[i,j], h[i,j]) -> (y[i,j], m[i])\n"
    "  a = sum(x)\n  b = sum(x * h)\n  m = amax(x * a - b)\n  y = x + m\n",
    // a maximum, then a sum
    "p(x[i,j], scale[] = 1) -> (y[i,j])\n"
    "  e = exp((x - amax(x)) * scale)\n  y = e / sum(e)\n",
    // nothing per element is read
    "p(t[i], x[j]) -> (y[i,j])\n  y = t * x / (sum(x * x) + 1)\n",
    // no reduction
    "p(x[i,j], gate[i,j]) -> (y[i,j])\n  y = x * silu(gate)\n",
    // indices as numbers, a row operand, no element result
    "p(x[i,j], t[i]) -> (loss[i])\n  loss = log(sum(exp(x))) - sum(select(j == t, x, 0)) + i\n",
    // groups beside the row's sum
    "p(x[i,j]) -> (y[i,j], s[i, j / 64])\n"
    "  h = x * rsqrt(mean(x * x) + 1)\n  s = amax(abs(h), j / 64)\n  y = h / (s + 1)\n",
    // groups of several sizes, of operands and results too, and the row's sum
    "p(x[i,j], w[j / 8], v[i, j / 32]) -> (y[i,j], a[i, j / 8], b[i, j / 4], c[i, j / 32])\n"
    "  a = amax(x, j / 8)\n  b = sum(x * v, j / 4)\n  c = sum(a, j / 32)\n  y = (x * w + a) * b + c * sum(x)\n",
    // groups that no power of two holds, with groups inside them and across them
    "p(x[i,j], gamma[j], w[j / 40]) -> (y[i,j], r[i, j / 40])\n"
    "  r = rsqrt(mean(x * x, j / 40) + 1)\n  y = x * r * gamma * w + sum(x, j / 8) + amax(x, j / 16)\n",
    // every so many columns, twice, with groups of neighbours inside
    "p(x[i,j], gamma[j % 64]) -> (y[i,j], s[i, j % 64])\n"
    "  s = rsqrt(mean(x * x, j % 64) + 1)\n  h = x * s * gamma\n  y = h - amax(h, j % 64) + sum(h, j / 16)\n",
    "p(x[i,j], v[i, j % 2]) -> (y[i,j], s[i, j % 2])\n"
    "  s = sum(x * v, j % 2)\n  y = x * s + amin(x - s, j % 2)\n",
    "p(x[i,j], w[j]) -> (y[i,j], s[i, j % 128], m[i, j % 8])\n"
    "  s = sum(x, j % 128)\n  m = sum(x * s, j % 8)\n  y = (x - s) * w + m\n",
    // no power of two, with the neighbours of as many
    "p(x[i,j]) -> (y[i,j], s[i, j % 24])\n"
    "  s = sum(x, j % 24)\n  y = x - s * amax(x, j / 8)\n",
    "p(x[i,j]) -> (y[i,j], s[i, j % 7])\n"
    "  s = sum(x, j % 7)\n  y = x - s + amax(x * s, j / 7) * mean(x, j % 7)\n",
    "p(x[i,j]) -> (y[i,j])\n  y = x - mean(x, j % 200)\n",
    // beside the row's sum
    "p(x[i,j]) -> (y[i,j], r[i])\n"
    "  r = sum(x)\n  a = sum(x * r, j % 32)\n  y = x - a * amax(a + x, j % 16)\n",
    "p(x[i,j]) -> (y[i,j], a[i, j / 96], b[i, j % 40])\n"
    "  h = x * rsqrt(mean(x * x) + 1)\n  a = amax(h, j / 96)\n  b = sum(h - a, j % 40)\n  y = h * a + b\n",
};

struct Draw {
  std::mt19937 random;
  template <typename T>
  T one_of(std::initializer_list<T> values) {
    return values.begin()[random() % values.size()];
  }
};

// A config that lowers for so many columns, whose rows begin at multiples of `alignment` elements.
Config draw_config(Draw& draw, const Program& given, std::int64_t columns, std::int64_t alignment) {
  std::optional<Program> made;
  const Program& program = with_row_sums(given, made);
  Config config{.simd = draw.one_of({true, false, false}), .columns = columns};
  config.group = config.simd ? 0 : group_of_stripes(program, columns);
  if (config.group) alignment = std::min(alignment, config.group & -config.group);
  config.hoist = draw.one_of({true, false});
  config.reload = draw.one_of({true, false});
  config.streaming = draw.one_of({true, false});
  if (config.simd) {
    config.lanes = draw.one_of({2, 4, 8, 16});
    config.unroll = draw.one_of({1, 2, 4, 16});
    config.prefetch = draw.one_of({true, false});
    const std::int64_t stripes = config.stripes_of_row();
    // What goes lane by lane is not unrolled (valid.cpp).
    if (stripes <= 4 && !goes_lane_by_lane(program, {}, columns, config.lanes) && draw.one_of({true, false}))
      config.stripes = static_cast<int>(std::bit_ceil(static_cast<std::uint64_t>(stripes)));
    else if (!fixes_columns(program)) config.columns = 0;
    if (config.stripes) config.unroll = 16, config.rows = draw.one_of({1, 2});
    else config.hoist = config.reload = false, config.overlap = draw.one_of({true, false});
    return config;
  }
  const int widest = *program.compute == Type::F64 ? 2 : 8;
  config.vector = static_cast<int>(std::min<std::int64_t>(alignment, draw.one_of({1, 2, 4, widest})));
  config.lanes = draw.one_of({4, 8, 16, 32, 32});
  const std::int64_t stripes = config.stripes_of_row();
  if (draw.one_of({true, true, true, false})) {
    config.stripes = draw.one_of({1, 2, 4});
    config.cluster = draw.one_of({1, 1, 2, 3, 4, 5, 8});
    std::int64_t each = config.stripes * config.cluster;
    config.groups = static_cast<int>((stripes + each - 1) / each);
    if (config.cluster > 1) config.groups = static_cast<int>(std::bit_ceil(static_cast<unsigned>(config.groups)));
    config.ring = draw.one_of({0, 2, 3, 4});
  }
  if (!config.stripes || config.groups > config.lanes) {
    config.stripes = config.ring = 0;
    config.cluster = 1;
    config.groups = draw.one_of({1, 2, 3, 4, 8});
  }
  if (config.groups == 1 && config.cluster == 1 && config.stripes) config.teams = draw.one_of({1, 2, 4, 8});
  config.stage = config.ring && config.teams == 1 && !config.hoist && draw.one_of({true, false});
  if (!config.stripes) config.hoist = config.reload = false;
  return config;
}

// False where there is no such kernel.
bool check(std::string_view text, const std::string& line, const Config& config, int row_block) {
  SCOPED_TRACE(fmt::format("{}   {} row_block={}\n{}", line, print(config), row_block, text));
  auto prepare = [&] { return prepare_problem(parse_problem(line).value(), text); };
  Result<Prepared> wanted = prepare(), got = prepare();
  Status status = run_reference(wanted.value().program, wanted->view());
  EXPECT_TRUE(status) << status.error().message;
  Result<std::unique_ptr<Executable>> executable = lanes::compile_with(got->program, config, row_block);
  if (!executable) {
    EXPECT_NE(executable.error().code, Code::Internal) << executable.error().message;
    return false;
  }
  status = executable.value()->run(got->view(), {});
  EXPECT_TRUE(status) << status.error().message;
  EXPECT_EQ(digest_of(*got), digest_of(*wanted));
  return true;
}

TEST(Configs, give_the_bits_of_the_reference) {
  const char* long_runs = std::getenv("LONG");
  const int turns = long_runs && std::string_view(long_runs) == "1" ? 5000 : 200;
  Draw draw{std::mt19937(1)};
  int compared = 0;
  for (int turn = 0; turn < turns; ++turn) {
    const std::size_t which = draw.random() % std::size(programs);
    std::string_view text = programs[which];
    std::int64_t columns = draw.one_of({1, 7, 32, 64, 255, 256, 257, 512, 768, 1000, 1024, 2048, 2049, 4104});
    // 400 rows make blocks of 4 where there are column sums, the other numbers blocks of 1.
    int rows = columns <= 257 ? draw.one_of({1, 3, 65, 400}) : draw.one_of({1, 3, 20, columns <= 1024 ? 400 : 65});
    const char* type = draw.one_of({"f32", "bf16", "f16", "f64", "f8e4m3", "f8e5m2", "i8"});
    bool backward = draw.one_of({true, false});
    std::string line = fmt::format("p {}x{} x={}{}", rows, columns, type, backward ? " backward" : "");
    std::int64_t alignment = std::min<std::int64_t>(16, columns & -columns);
    const Prepared drawn = prepare_problem(parse_problem(line).value(), text).value();
    Config config = draw_config(draw, drawn.program, columns, alignment);
    const int row_block = draw.one_of({1, 2, 3, 7});
    if (!config.simd) config.rows = row_block;
    compared += check(text, line, config, row_block);
    if (HasFailure()) FAIL() << "in turn " << turn;
  }
  EXPECT_GT(compared, turns / 2);
}

// What choose_config takes on a large GPU for large batches, on a few rows: every branch of it lowers, fits the
// machine, and gives the bits.
TEST(Configs, chosen_for_large_batches) {
  const Machine machine{.simd = false, .shared_bytes = 232448, .clusters = true, .processors = 132};
  int clusters = 0, rings = 0, staged = 0;
  for (std::size_t p : {0, 1, 2, 3, 4, 5, 7, 8, 9, 10, 13})
    for (const char* backward : {"", " backward"})
      for (std::int64_t columns : {96, 512, 2880, 5120, 7168, 12288, 18432, 32768, 131072}) {
        if (columns > 20000 && (p + *backward) % 2) continue;  // slow here
        const char* type = columns % 3 ? "bf16" : "f32";
        std::string line = fmt::format("p 3x{} x={}{}", columns, type, backward);
        Prepared prepared = prepare_problem(parse_problem(line).value(), programs[p]).value();
        Facts facts = facts_of(prepared.program, prepared.view());
        facts.rows = (std::int64_t{1} << 28) / columns;
        facts.config = choose_config(prepared.program, machine, facts);
        Result<Config> config = config_for(prepared.program, machine, facts);
        ASSERT_TRUE(config) << line << ": " << config.error().message << " in " << print(*facts.config);
        clusters += config->cluster > 1;
        rings += config->ring > 0;
        staged += config->stage;
        EXPECT_TRUE(check(programs[p], line, *config, config->rows)) << line << " " << print(*config);
      }
  EXPECT_GT(clusters, 10);
  EXPECT_GT(rings, 10);
  EXPECT_GE(staged, 2);
}

}  // namespace
}  // namespace trireme

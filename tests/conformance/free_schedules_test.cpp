// Schedules whose words are drawn freely, sense and nonsense, for operators and random programs, on the interpreter of
// threads, on CPUs and in wasm. What is valid lowers to a kernel of bounded size and gives the reference's bits,
// between guard pages; what is not is refused with a reason that names one of the schedule's words.
#include "random_layouts_for_test.hpp"
#include "schedule/candidates.hpp"
#include "schedule/lower.hpp"
#include "schedule/options.hpp"
#include "schedule/sum_classes.hpp"

namespace trireme {
namespace {

// Beside operators and random programs: what schedules of one kind want of a program.
const std::vector<std::string> texts = {
    "p(x[i,j]) -> (y[i,j])\n  y = exp(x - amax(x)) / sum(exp(x - amax(x)))\n",
    "p(x[i,j], d = 3) -> (y[i,j], c[i / d, j])\n  y = x + sum(x)\n  c = colsum(x)\n",
    "p(x[i,j], d = 7) -> (c[i / d, j], m[i / d, j])\n  c = colsum(x * x)\n  m = colsum(x)\n",
    "p(x[i,j], d = 5) -> (c[i % d, j])\n  c = colmax(x)\n",
    "p(x[i,j]) -> (y[i,j], c[])\n  y = x * sum(x, j / 4)\n  c = colsum(x)\n",
    "p(x[i,j]) -> (y[i,j], s[i, j % 8])\n  s = sum(x, j % 8)\n  y = x - s\n",
    "p(x[i,j]) -> (y[i,j])\n  y = x - mean(x, j / 300)\n",
    "p(x[i,j], g[j]) -> (y[i,j], r[i])\n  y = rotate(x, 3) * g\n  r = variance(x)\n",
    "p(x[i,j], g[j]) -> (y[i,j], r[i])\n  y = softmax(x * g)\n  r = logsumexp(x)\n",
    "p(x[i,j], t[i]) -> (y[i,j])\n  y = select(j <= t, x, 0) - sum(select(j == t, x, 0))\n",
    "p(x[i / m, j], w[i % m, j], m = 10) -> (y[i])\n  y = sum(x * w)\n",
    "p(x[i / m, j], w[i % m, j], b[i % m], m = 16) -> (y[i], z[i])\n  y = amax(x - w) * b\n  z = mean(x * w)\n",
};

struct Case {
  std::string what;  // how to see it again
  Program program;
  std::int64_t rows, columns;
  std::vector<double> constants;
  Buffers buffers;
};

std::int64_t some_columns(Random& random) {
  return random.of(
      std::vector<std::int64_t>{1, 3, 8, 32, 64, 100, 128, 255, 256, 257, 300, 520, 768, 1000, 1024, 2048, 2050, 4100});
}
std::int64_t some_rows(Random& random, std::int64_t columns) {
  const std::int64_t rows = random.of(std::vector<std::int64_t>{0, 1, 2, 5, 13, 33, 70, 129});
  return std::min(rows, std::max<std::int64_t>(1, 20'000 / columns));
}

std::optional<Case> draw_problem(Problem problem, const std::string& text) {
  Result<Prepared> prepared = prepare_problem(problem, text);
  if (!prepared) return std::nullopt;  // as of odd columns and n / 2
  return Case{print(problem) + "\n" + text, prepared->program,           problem.rows(), problem.columns(),
              prepared->constants,          std::move(prepared->buffers)};
}

std::optional<Case> draw_case(Random& random) {
  const std::int64_t columns = some_columns(random), rows = some_rows(random, columns);
  const std::vector<Type> types = {Type::F32, Type::F32, Type::F32, Type::BF16, Type::F16, Type::F64, Type::I8};
  const std::int64_t kind = random.below(3);
  if (kind == 0) {
    const std::string text = random.of(texts);
    Problem problem = parse_problem(fmt::format("p {}x{}", rows, columns)).value();
    problem.types["x"] = random.of(types);
    return draw_problem(problem, text);
  }
  if (kind == 1) {
    const std::vector<OperatorText> operators(operator_texts().begin(), operator_texts().end());
    const OperatorText& op = random.of(operators);
    const Remarks remarks = parse_remarks(op.text).value();
    Problem problem = parse_problem(std::string(op.name) + " " + random.of(remarks.tries)).value();
    problem.backward = random.below(2);
    if (random.below(2) && problem.rows() * problem.columns() > 20'000) return std::nullopt;
    if (random.below(2)) problem.shape = {rows, columns}, problem.axes = 1, problem.placements.clear();
    if (problem.rows() * problem.columns() > 100'000) return std::nullopt;
    return draw_problem(problem, {});
  }
  RandomProgram options{.seed = random.state(), .size = static_cast<int>(4 + random.below(30))};
  options.columns_multiple = static_cast<int>(std::gcd(columns, 60));
  options.special_numbers = random.below(3) == 0;
  const Program program = random_program(options);
  Binding binding{.columns = columns};
  for (const Operand& operand : program.operands) {
    if (operand.constant && operand.fallback == no_node) binding.constants[operand.name] = 0.75;
    if (!operand.constant) binding.types[operand.name] = random.of(storage_types);
  }
  for (const Output& result : program.results) binding.types[result.name] = random.of(storage_types);
  auto prepared = prepare(program, binding);
  if (!prepared) return std::nullopt;
  auto& [bound, expanded, constants] = *prepared;
  Result<Buffers> buffers = make_buffers(bound, {rows, columns}, 1, {});
  if (!buffers) return std::nullopt;
  for (std::size_t k = 0; k < buffers->operands.size(); ++k) {
    const Buffer& buffer = buffers->operands[k];
    fill_samples(buffer.array, buffer.row_extent, buffer.column_extent, static_cast<std::uint32_t>(options.seed),
                 bound.operands[k].name, default_range(buffer.array.type));
  }
  return Case{fmt::format("{}x{}\n{}", rows, columns, print(expanded)),
              expanded,
              rows,
              columns,
              constants,
              std::move(*buffers)};
}

// ---- schedules ----

std::string some_number(const Option& option, Random& random) {
  static const std::vector<int> small = {0, 1, 2, 2, 3, 4, 4, 5, 7, 8, 8, 16, 16, 32, 32, 64, 100, 1000};
  return fmt::format("{}={}", option.name, random.of(small));
}

std::string some_word(const Machine& machine, std::int64_t columns, Random& random) {
  switch (random.below(24)) {
    case 0: return fmt::format("columns={}", some_columns(random));
    case 1:
      return random.of(std::vector<std::string>{"lanes", "stripes=", "vector=-1", "ring=two", "fast", "in_place",
                                                "hoist=1", "columns=0", "tile=99999999999", "simd", "threads"});
    case 2:
    case 3: return fmt::format("columns={}", columns);
    default: break;
  }
  const unsigned kinds = random.below(4) ? (machine.simd ? any_simd : any_threads) : any_simd | any_threads;
  std::vector<Option> options(std::begin(schedule_options), std::end(schedule_options));
  std::erase_if(options, [&](const Option& each) { return !(each.kinds & kinds); });
  const Option& option = random.of(options);
  return option.flag ? std::string(option.name) : some_number(option, random);
}

// A word takes the place of the one that says the same option.
void put(std::vector<std::string>& words, const std::string& word) {
  const std::string name = word.substr(0, word.find('='));
  std::erase_if(words, [&](const std::string& each) { return each.substr(0, each.find('=')) == name; });
  words.push_back(word);
}

std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> words;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    if (end > at) words.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

// All words are drawn, or a few beside those of a schedule that is worth trying, or of none but its kind and lanes.
std::string draw_schedule(const Program& program, const Machine& machine, const Facts& facts, Random& random) {
  std::vector<std::string> words;
  if (random.below(3)) {
    const std::vector<Config> candidates = candidate_configs(program, machine, facts);
    words = words_of(
        print(candidates.empty() || !random.below(3) ? choose_config(program, machine, facts) : random.of(candidates)));
  } else {
    const int lanes =
        machine.simd ? machine.register_bytes / static_cast<int>(bytes(*program.compute)) : 1 << random.below(6);
    words = {machine.simd == (random.below(30) != 0) ? "simd" : "threads", fmt::format("lanes={}", lanes)};
    if (!machine.simd || random.below(2)) words.push_back(fmt::format("columns={}", facts.columns));
    if (random.below(3)) put(words, fmt::format("stripes={}", 1 << random.below(6)));
  }
  for (std::int64_t k = random.below(5); k > 0; --k) put(words, some_word(machine, facts.columns, random));
  std::string text;
  for (const std::string& each : words) text += (text.empty() ? "" : " ") + each;
  return text;
}

bool names_an_option(std::string_view reason) {
  auto named = [&](std::string_view name) { return reason.find(name) != reason.npos; };
  return named("columns") || named("simd") || named("threads") ||
         std::any_of(std::begin(schedule_options), std::end(schedule_options),
                     [&](const Option& each) { return named(each.name); });
}

std::int64_t instructions_in(const std::vector<Instr>& code) {
  std::int64_t count = 0;
  for (const Instr& each : code) count += 1 + instructions_in(each.body) + instructions_in(each.other);
  return count;
}

std::int64_t instructions_in(const Kernels& kernels) {
  std::int64_t count = instructions_in(kernels.rows.body);
  for (const auto* list : {&kernels.before, &kernels.columns})
    for (const Kernel& each : *list) count += instructions_in(each.body);
  return count;
}

// SEED=N draws others.
TEST(FreeSchedules, ValidOnesGiveTheBitsAndOthersSayWhyNot) {
  const bool is_long = std::getenv("LONG");
  const char* seed = std::getenv("SEED");
  const std::uint64_t first = seed ? std::strtoull(seed, nullptr, 10) * 1'000'000 : 0;
  struct Counts {
    int valid = 0, refused = 0;
  };
  std::map<std::string, Counts> counts;
  std::int64_t largest = 0;
  for (std::uint64_t round = 0; round < (is_long ? 10'000 : 250) && !HasFailure(); ++round) {
    Random random{std::mt19937_64(first + round)};
    std::optional<Case> drawn = draw_case(random);
    if (!drawn) continue;
    GuardedProblem guarded(drawn->program, drawn->rows, drawn->columns, drawn->constants, std::move(drawn->buffers));
    ASSERT_TRUE(guarded.run_reference());
    const RunOptions options{.threads = static_cast<int>(1 + random.below(3)),
                             .chunk_rows = random.below(3) * random.below(40)};
    for (const DeviceEntry* device : devices_here(30)) {
      const Machine machine = machine_of(*device).value();
      for (int schedule = 0; schedule < 3; ++schedule) {
        std::string text;
        DeviceEntry changed = *device;
        changed.compile = [&](const Program& program, const Facts& facts) -> Result<std::unique_ptr<Executable>> {
          text = draw_schedule(program, machine, facts, random);
          if (std::getenv("SAY"))
            fmt::print(stderr, "{} {} {} {}\n", round, device->name, drawn->what.substr(0, drawn->what.find('\n')),
                       text);
          Facts given = facts;
          TRIREME_TRY(config, parse_config(text));
          given.config = config;
          Result<std::unique_ptr<Executable>> made = device->compile(program, given);
          if (!made) return made;
          config.layout = facts.layout;
          if (!config.across && fixes_columns(program)) config.columns = facts.columns;
          if (const Result<Kernels> kernels = lower(program, config))
            largest = std::max(largest, instructions_in(*kernels));
          return made;
        };
        const std::string wrong =
            guarded.compare(changed, options, random.below(2) ? Guarded::Edge::End : Guarded::Edge::Begin);
        constexpr std::string_view refusal = "not compiled: config: ";
        if (wrong.starts_with(refusal)) {
          ++counts[device->name].refused;
          EXPECT_TRUE(names_an_option(wrong.substr(refusal.size()))) << text << ": " << wrong;
          continue;
        }
        ++counts[device->name].valid;
        ASSERT_EQ(wrong, "") << "SEED=" << (seed ? seed : "0") << " round " << round << " on " << device->name << ", "
                             << text << "\n"
                             << drawn->what;
      }
    }
  }
  EXPECT_LT(largest, 1 << 20);
  for (const auto& [name, of] : counts) {
    EXPECT_GT(of.valid, is_long ? 4000 : 100) << name;
    EXPECT_GT(of.refused, is_long ? 4000 : 100) << name;
    fmt::print("{}: {} valid, {} refused\n", name, of.valid, of.refused);
  }
  fmt::print("at most {} instructions\n", largest);
}

}  // namespace
}  // namespace trireme

// Share of a device copy of the same bytes that operators reach on a GPU, with the schedules they get by themselves:
// every operator, both directions, three storage types, rows of 128 to 262144 columns. A seeded sample of these points,
// as many as the time allows; then the median and the worst twenty.
//
//   gpu_table [--seconds S] [--megabytes M] [--seed N] [--operator NAME] ...
//
// Arrays have M MiB (512), ten times what a cache of this generation holds, so that nothing is found in it again. A
// line is `share operator direction type columns  schedule`, and two such tables are compared by bench/against.py.
#include <atomic>
#include <chrono>
#include <random>
#include <thread>

#include "bench/gpu_problem.hpp"
#include "language/parse.hpp"
#include "plan/ops.hpp"
#include "plan/remarks.hpp"
#include "plan/resolve.hpp"

using namespace trireme;
using namespace trireme::bench;

namespace {

struct Options {
  double seconds = 240;
  std::int64_t megabytes = 512;
  std::uint64_t seed = 1;
  std::vector<std::string_view> operators;

  Options(int argc, char** argv) {
    for (int k = 1; k + 1 < argc; k += 2) {
      const std::string_view option = argv[k];
      if (option == "--seconds") seconds = std::atof(argv[k + 1]);
      else if (option == "--megabytes") megabytes = std::atoll(argv[k + 1]);
      else if (option == "--seed") seed = static_cast<std::uint64_t>(std::atoll(argv[k + 1]));
      else if (option == "--operator") operators.emplace_back(argv[k + 1]);
      else fmt::print(stderr, "{}: no such option\n", option), std::exit(2);
    }
  }
  bool wants(std::string_view name) const {
    return operators.empty() || std::find(operators.begin(), operators.end(), name) != operators.end();
  }
};

struct Point {
  const OperatorText* op;
  bool backward;
  Type type;
  std::int64_t columns;

  std::string name() const {
    return fmt::format("{} {} {} {}", op->name, backward ? "backward" : "forward", trireme::name(type), columns);
  }

  // As the operator's first '#: try' line has it, which gives the constants and types that it needs.
  Result<Program> program() const {
    TRIREME_TRY(remarks, parse_remarks(op->text));
    TRIREME_TRY(problem, parse_problem(fmt::format("{} {}", op->name, remarks.tries.at(0))));
    problem.absent.clear();
    TRIREME_TRY(forward, parse(op->text));
    for (const Operand& operand : forward.operands)
      if (is_element(operand.spread)) {
        problem.types[operand.name] = type;
        break;
      }
    Program source = forward;
    if (backward) {
      TRIREME_TRY(derived, differentiate(forward));
      source = std::move(derived);
    }
    TRIREME_TRY(binding, binding_of(problem, forward, source));
    return prepare(source, binding);
  }
};

struct Compiled {
  Program program;
  std::int64_t rows = 0;
  std::unique_ptr<cuda::CudaExecutable> executable;
  std::string trouble;
};

Result<Compiled> compile(const cuda::Device& device, const Point& point, std::int64_t bytes_an_array) {
  TRIREME_TRY(program, point.program());
  const std::int64_t rows = bytes_an_array / static_cast<std::int64_t>(bytes(point.type)) / point.columns;
  const std::int64_t alignment = std::min<std::int64_t>(16, point.columns & -point.columns);
  TRIREME_TRY(made, cuda::CudaExecutable::create(device, program, Facts{rows, point.columns, alignment}));
  return Compiled{std::move(program), rows, std::move(made), {}};
}

// The driver compiles on all cores.
std::vector<Compiled> compile_all(const cuda::Device& device, std::span<const Point> points, std::int64_t bytes) {
  std::vector<Compiled> all(points.size());
  std::atomic<std::size_t> next = 0;
  std::vector<std::jthread> workers;
  for (unsigned k = 0; k < std::max(1u, std::thread::hardware_concurrency()); ++k)
    workers.emplace_back([&] {
      for (std::size_t p; (p = next++) < points.size();) {
        Result<Compiled> made = compile(device, points[p], bytes);
        if (made) all[p] = std::move(*made);
        else all[p].trouble = made.error().message;
      }
    });
  workers.clear();  // joined
  return all;
}

double share_of(const cuda::Device& device, cuda::StreamHandle stream, const Compiled& made, std::int64_t columns) {
  GpuProblem gpu(device, made.program, made.rows, columns);
  const auto needed = made.executable->memory_bytes(made.rows, columns, {});
  const auto workspace = must(made.executable->allocate(std::max<std::int64_t>(needed.workspace, 256)));
  std::vector<std::byte, CacheLineAllocator<std::byte>> own(static_cast<std::size_t>(needed.own));
  must(made.executable->prepare());
  return Beside(device, stream, gpu.element_bytes()).share([&] {
    must(made.executable->run_in(gpu.problem(), {}, {workspace.get(), own.data(), stream}));
  });
}

}  // namespace

int main(int argc, char** argv) {
  const auto began = std::chrono::steady_clock::now();
  auto seconds = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count(); };
  const Options options(argc, argv);
  const cuda::Device& device = *must(must(cuda::Driver::instance())->device(0));
  cuda::Stream stream = must(device.stream());

  std::vector<Point> points;
  for (const OperatorText& op : operator_texts())
    if (options.wants(op.name))
      for (bool backward : {false, true})
        for (Type type : {Type::BF16, Type::F16, Type::F32})
          for (std::int64_t columns : {128,   256,   512,   896,   1024,   1152,   2048,   2880,   3584,  4096,
                                       5120,  7168,  8192,  11008, 12288,  14336,  16384,  18432,  18944, 28672,
                                       32000, 32768, 50304, 65536, 128256, 131072, 151936, 256000, 262144})
            points.push_back({&op, backward, type, columns});
  std::shuffle(points.begin(), points.end(), std::mt19937_64(options.seed));

  std::vector<std::pair<double, std::string>> shares;
  constexpr std::size_t at_once = 64;
  std::size_t done = 0;
  for (; done < points.size() && seconds() < options.seconds; done += at_once) {
    const auto some = std::span(points).subspan(done, std::min(at_once, points.size() - done));
    const std::vector<Compiled> made = compile_all(device, some, options.megabytes << 20);
    for (std::size_t k = 0; k < some.size(); ++k) {
      if (!made[k].executable) {
        fmt::print("none  {}  {}\n", some[k].name(), made[k].trouble);
        continue;
      }
      const double share = share_of(device, stream.get(), made[k], some[k].columns);
      shares.emplace_back(share, some[k].name());
      fmt::print("{:.3f} {}  {}\n", share, some[k].name(), made[k].executable->identity().config);
      std::fflush(stdout);
    }
  }
  if (shares.empty()) return 1;
  std::sort(shares.begin(), shares.end());
  fmt::print("# {} of {} points in {:.0f} s; median {:.2f}, worst twenty:\n", shares.size(), points.size(), seconds(),
             shares[shares.size() / 2].first);
  for (std::size_t k = 0; k < std::min<std::size_t>(20, shares.size()); ++k)
    fmt::print("#   {:.2f}  {}\n", shares[k].first, shares[k].second);
}

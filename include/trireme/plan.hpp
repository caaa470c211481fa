// Plans: a program made ready for one shape, one set of types and one device, to be run many times.
//
//   Plan plan = Plan::create(Device::cpu().value(), {.program = RowProgram::named("rms_norm").value(),
//                                                    .shape = {8, 2048, 4096},
//                                                    .types = {{"x", Type::BF16}},
//                                                    .constants = {{"eps", 1e-6}}}).value();
//   Args args = plan.args();
//   args["x"] = x, args["gamma"] = gamma, args["y"] = y, args["rstd"] = rstd;
//   plan.run(args).value();
//
// docs/plans.md has the rules. A plan is immutable, and threads may share it; an Args belongs to one thread at a time.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/device.hpp"
#include "trireme/export.hpp"
#include "trireme/parallel.hpp"
#include "trireme/program.hpp"
#include "trireme/result.hpp"
#include "trireme/type.hpp"
#include "trireme/view.hpp"

namespace trireme {

// The normalised axes, those that make a row: the last ones of the shape.
struct Axes {
  int count = 1;
};
constexpr Axes last(int count) { return {count}; }

struct PlanOptions {
  RowProgram program = {};
  Dims shape = {};  // of [i,j] operands: rank 1 to 8; problem_shape() finds it in the arrays of a call
  Axes axes = last(1);
  // Operands that are not named have the first element operand's type (f32), and so have [i,j] results; other results
  // have the compute type. Without an element operand, the first with a value for each column stands in: a table.
  std::map<std::string, Type> types = {};
  std::map<std::string, double> constants = {};
  std::set<std::string> absent = {};                  // operands that are not given: their defaults take their place
  std::optional<std::set<std::string>> results = {};  // those that are stored; all unless said
  std::map<std::string, std::string> in_place = {};   // result -> the operand whose memory it may take
  // Results that sum over rows ("dgamma") whose sum is added, in the compute type, to what stands in their memory.
  std::set<std::string> accumulate = {};
  // Rows of a block of those sums (docs/numerics.md). 0: the contract's. A part of a larger problem says the larger
  // one's, so that its sums are nodes of that one's (docs/distributed.md).
  std::int64_t row_block = 0;
  std::map<std::string, Dims> strides = {};  // in elements; contiguous unless said
  int threads = 1;                           // 0: TRIREME_THREADS, or one per core
  ParallelFor parallel_for = {};             // the host's threads; our own, shared by all plans, unless given
  std::optional<std::int64_t> max_workspace_bytes = {};  // refuse a plan that needs more
  std::string config = {};  // how the program is laid over the machine, as sku().config says it; chosen unless given
};

// What may be relied on. Everything follows from the program and the contract.
struct Guarantee {
  Type compute = Type::F32, accumulator = Type::F32;
  int contract = 0;          // version
  bool run_to_run = true;    // the same bits every time
  bool across_batch = true;  // a row's results do not depend on other rows; false where a result sums over rows
  bool across_threads = true;
  bool across_targets = true;
};

// What exactly runs.
struct Sku {
  std::string program;
  std::string direction;  // "forward" or "backward"
  int contract = 0;
  std::string types;   // "x=bf16 gamma=bf16 y=bf16 rstd=f32"
  std::string layout;  // "columns side by side" or which have strides of their own
  std::string device;
  std::string arch, isa, config;  // "x86-64", "avx512", "simd lanes=16 …"; these are empty for the reference
  std::string kernel_hash;
};
TRIREME_API std::string print(const Sku& sku);

struct PlanState;
struct ArgsState;

// The arrays of a call.
class TRIREME_API Args {
 public:
  class TRIREME_API Slot {
   public:
    Slot& operator=(const View& view);

   private:
    friend class Args;
    Slot(ArgsState* args, std::size_t index) : args_(args), index_(index) {}
    ArgsState* args_;  // null: of arguments that were moved away
    std::size_t index_;
  };

  // A name that the plan does not have is reported by check() and run().
  Slot operator[](std::string_view name);
  Result<Slot> slot(std::string_view name);
  Result<Slot> slot(std::size_t index);  // as Plan::arrays

  Args(Args&&) noexcept;
  Args& operator=(Args&&) noexcept;
  ~Args();

 private:
  friend class Plan;
  explicit Args(std::unique_ptr<ArgsState> state);
  std::unique_ptr<ArgsState> state_;
};

// A queue of the device's: a CUstream or cudaStream_t, null for the legacy default stream; none on a CPU.
struct Stream {
  void* handle = nullptr;
};

// Memory fit to be a workspace: the host's, or by Plan::make_workspace() that of the plan's device. Copies share it.
class TRIREME_API Workspace {
 public:
  static constexpr std::size_t alignment = 256;
  explicit Workspace(std::size_t bytes);
  std::span<std::byte> span() const { return {memory_.get(), bytes_}; }

 private:
  friend class Plan;
  Workspace(std::shared_ptr<std::byte> memory, std::size_t bytes) : memory_(std::move(memory)), bytes_(bytes) {}
  std::shared_ptr<std::byte> memory_;
  std::size_t bytes_;
};

class TRIREME_API Plan {
 public:
  static Result<Plan> create(const Device& device, const PlanOptions& options);

  Plan(const Plan&) = default;  // copies share everything; a move is a copy, so that no plan is ever empty
  Plan& operator=(const Plan&) = default;

  Args args() const;

  // What run() would refuse.
  Status check(Args& args) const;

  // Allocates nothing, takes no lock, and waits for no device (the reference device allocates; a GPU's first run on
  // arrays that begin at no multiple of 16 bytes loads kernels, unless prepare() did; after a fork the child's first
  // run starts threads); what was checked once is not checked again until a slot changes. Arrays and workspace lie in
  // the device's memory.
  Status run(Args& args, Stream stream = {}, std::span<std::byte> workspace = {}) const;

  std::size_t workspace_bytes() const;  // it begins at a multiple of 256 bytes
  Result<Workspace> make_workspace() const;
  Status prepare() const;  // does now what a first run might have to do: before a graph is captured
  std::string describe() const;
  Guarantee guarantee() const;
  Sku sku() const;
  std::vector<std::string> names() const;  // of the arrays: operands, then results
  struct Array {
    std::string name;
    bool result = false;
    Type type = Type::F32;
    Dims shape = {};     // what a view is expected to have
    bool needed = true;  // false: nothing reads it, and it may be left out
  };
  std::size_t array_count() const;
  Array array(std::size_t index) const;  // as names(); a nameless one beyond their number
  const std::string& line() const;       // the problem line

 private:
  explicit Plan(std::shared_ptr<const PlanState> state) : state_(std::move(state)) {}
  std::shared_ptr<const PlanState> state_;
};

// The shape of the problem that a call's arrays make, found in theirs, by name: that of the first [i,j] array. Without
// one, its outer axes are those of the first array that has each row ([i], [i, j / 32]), its normalised axes the last
// ones of the first that has each column ([j], a table [token, j]). Where none has each row, the first that divides
// them, [i / m], says as many as fill its entries; `constants` has m where it is not its default. InvalidArgument names
// what is needed.
TRIREME_API Result<Dims> problem_shape(const RowProgram& program, const std::map<std::string, Dims>& shapes,
                                       Axes axes = last(1), const std::map<std::string, double>& constants = {});

struct RunSettings {
  std::map<std::string, double> constants = {};
  Axes axes = last(1);
  bool backward = false;
  std::optional<Device> device = {};  // the CPU unless said
  Stream stream = {};
  int threads = 1;
};

// One call, over a bounded cache of plans. Shape, types and strides come from the views, which say them in full; the
// problem's shape from theirs, by problem_shape(). Operands that are not given take their defaults, results that are
// not given are not stored. On a GPU it does not wait for the results, unless the plan needs a workspace.
TRIREME_API Status run(std::string_view program, const std::map<std::string, View>& arrays,
                       const RunSettings& settings = {});

inline constexpr std::size_t max_cached_plans = 256;
TRIREME_API std::size_t cached_plans();

}  // namespace trireme

#include "trireme/plan.hpp"

#include <fmt/format.h>

#include <new>

#include "ir/contract.hpp"
#include "layout/flatten.hpp"
#include "plan/plan_state.hpp"
#include "support/out_of_memory.hpp"

namespace trireme {

// ---- arguments ----

namespace {
Error moved_away() { return {Code::InvalidArgument, "the arguments were moved away"}; }
}  // namespace

Args::Args(std::unique_ptr<ArgsState> state) : state_(std::move(state)) {}
Args::Args(Args&&) noexcept = default;
Args& Args::operator=(Args&&) noexcept = default;
Args::~Args() = default;

Args::Slot& Args::Slot::operator=(const View& view) {
  if (args_ && index_ < args_->views.size()) {
    args_->views[index_] = view;
    args_->checked = false;
  }
  return *this;
}

Args::Slot Args::operator[](std::string_view name) {
  if (!state_) return Slot(nullptr, PlanArray::none);
  std::optional<std::size_t> k = state_->plan->find(name);
  if (!k) state_->unknown = name, state_->checked = false;
  return Slot(state_.get(), k.value_or(PlanArray::none));
}

Result<Args::Slot> Args::slot(std::string_view name) {
  return or_out_of_memory([&]() -> Result<Slot> {
    if (!state_) return moved_away();
    std::optional<std::size_t> k = state_->plan->find(name);
    if (!k) return state_->plan->unknown(name);
    return Slot(state_.get(), *k);
  });
}

Result<Args::Slot> Args::slot(std::size_t index) {
  return or_out_of_memory([&]() -> Result<Slot> {
    if (!state_) return moved_away();
    if (index >= state_->views.size())
      return state_->plan->wrong(Code::InvalidArgument,
                                 fmt::format("the plan has {} arrays, and none at {}", state_->views.size(), index));
    return Slot(state_.get(), index);
  });
}

Args Plan::args() const {
  auto args = std::make_unique<ArgsState>();
  args->plan = state_;
  for (const PlanArray& array : state_->arrays) args->views.push_back({.type = array.type});
  args->extents.resize(state_->arrays.size());
  args->known.resize(state_->arrays.size());
  args->arrays.resize(state_->program.array_count());
  args->own.resize(state_->memory.own);
  return Args(std::move(args));
}

// ---- running ----

Status Plan::check(Args& args) const {
  return or_out_of_memory([&]() -> Status {
    if (!args.state_) return state_->wrong(Code::InvalidArgument, moved_away().message);
    if (args.state_->plan != state_)
      return state_->wrong(Code::InvalidArgument, "the arguments belong to another plan");
    return check_arguments(*args.state_);
  });
}

Status Plan::run(Args& args, Stream stream, std::span<std::byte> workspace) const {
  return or_out_of_memory([&]() -> Status {
    const PlanState& plan = *state_;
    if (!args.state_ || args.state_->plan != state_ || !args.state_->checked) TRIREME_CHECK(check(args));
    if (stream.handle && !plan.direct->has_streams())
      return plan.wrong(Code::InvalidArgument, "the " + plan.device.name() + " device has no streams");
    if (workspace.size() < workspace_bytes()) {
      Error error = plan.wrong(Code::BufferTooSmall, fmt::format("a workspace of {} bytes is needed, and {} were given",
                                                                 workspace_bytes(), workspace.size()));
      error.needed = static_cast<std::int64_t>(workspace_bytes());
      error.got = static_cast<std::int64_t>(workspace.size());
      return error;
    }
    if (workspace_bytes() && reinterpret_cast<std::uintptr_t>(workspace.data()) % Workspace::alignment != 0)
      return plan.wrong(Code::InvalidArgument, "a workspace begins at a multiple of 256 bytes");
    ArgsState& state = *args.state_;
    if (workspace_bytes() && workspace.data() != state.workspace) TRIREME_CHECK(check_workspace(state, workspace));
    Problem2d problem{.rows = plan.rows, .columns = plan.columns, .constants = plan.constants, .arrays = state.arrays};
    return plan.direct->run_in(problem, plan.options,
                               {.workspace = workspace.data(), .own = state.own.data(), .stream = stream.handle});
  });
}

Status Plan::prepare() const {
  return or_out_of_memory([&]() -> Status { return state_->direct->prepare(); });
}

std::size_t Plan::workspace_bytes() const { return static_cast<std::size_t>(state_->memory.workspace); }

Workspace::Workspace(std::size_t bytes)
    : memory_(static_cast<std::byte*>(::operator new(bytes, std::align_val_t(alignment))),
              [](std::byte* memory) { ::operator delete(memory, std::align_val_t(alignment)); }),
      bytes_(bytes) {}

Result<Workspace> Plan::make_workspace() const {
  return or_out_of_memory([&]() -> Result<Workspace> {
    std::size_t bytes = workspace_bytes();
    if (bytes == 0) return Workspace(nullptr, 0);
    TRIREME_TRY(memory, state_->direct->allocate(static_cast<std::int64_t>(bytes)));
    return Workspace(memory, bytes);
  });
}

// ---- what it says of itself ----

std::vector<std::string> Plan::names() const {
  std::vector<std::string> names;
  for (const PlanArray& array : state_->arrays) names.push_back(array.name);
  return names;
}

Guarantee Plan::guarantee() const {
  Guarantee guarantee{
      .compute = *state_->program.compute, .accumulator = *state_->program.compute, .contract = contract::version};
  for (const Output& result : state_->program.results)
    if (sums_over_rows(state_->program, result)) guarantee.across_batch = false;
  return guarantee;
}

std::size_t Plan::array_count() const { return state_->arrays.size(); }

Plan::Array Plan::array(std::size_t index) const {
  if (index >= state_->arrays.size()) return {};
  const PlanArray& array = state_->arrays[index];
  return {array.name, array.result, array.type, array.shape(), array.needed};
}

const std::string& Plan::line() const { return state_->line; }

namespace {

// The class of layouts a kernel serves: "columns side by side, rows with 2 strides".
std::string layout_class(const ArrayLayout& layout) {
  std::string text = layout.strided ? "columns apart" : "columns side by side";
  if (layout.column_jumps) text += fmt::format(" with {} strides", layout.column_jumps + 1);
  if (layout.row_jumps) text += fmt::format(", rows with {} strides", layout.row_jumps + 1);
  return text;
}

}  // namespace

Sku Plan::sku() const {
  Sku sku{.program = state_->source_name,
          .direction = state_->backward ? "backward" : "forward",
          .contract = contract::version,
          .device = state_->device.name(),
          .kernel_hash = state_->executable->kernel_hash()};
  Executable::Identity identity = state_->executable->identity();
  sku.arch = identity.arch, sku.isa = identity.isa, sku.config = identity.config;
  for (const PlanArray& array : state_->arrays) {
    sku.types += fmt::format("{}{}={}", sku.types.empty() ? "" : " ", array.name, name(array.type));
    if (array.layout != ArrayLayout{})
      sku.layout += fmt::format("{}{}: {}", sku.layout.empty() ? "" : ", ", array.name, layout_class(array.layout));
  }
  if (sku.layout.empty()) sku.layout = "columns side by side";
  return sku;
}

std::string print(const Sku& sku) {
  std::string text = fmt::format("{} {} contract={} {}; {}; {}", sku.program, sku.direction, sku.contract, sku.types,
                                 sku.layout, sku.device);
  if (!sku.kernel_hash.empty())
    text += fmt::format(": {} {}, {}; kernel {}", sku.arch, sku.isa, sku.config, sku.kernel_hash);
  return text;
}

std::string Plan::describe() const {
  const PlanState& plan = *state_;
  std::string why = plan.device.why().empty() ? "" : " (" + plan.device.why() + ")";
  std::string text = fmt::format("{}\n{} rows of {} columns on {}{}: {}\n", plan.line, plan.rows, plan.columns,
                                 plan.device.name(), why, plan.executable->describe());
  for (const PlanArray& array : plan.arrays) {
    text +=
        fmt::format("  {} {} {} {}", array.result ? "->" : "<-", array.name, name(array.type), print(array.shape()));
    if (array.in_place != PlanArray::none) text += ", may lie on " + plan.arrays[array.in_place].name;
    if (array.layout != ArrayLayout{}) text += ", " + layout_class(array.layout);
    if (array.layout.strided) text += " (slower than side by side)";
    if (!array.needed) text += ", not read";
    if (array.result && plan.program.results[array.number - plan.program.operands.size()].accumulate)
      text += ", added to what is there";
    text += '\n';
  }
  return text + fmt::format("workspace: {} bytes; threads: {}; computed in {}\n", workspace_bytes(),
                            plan.options.threads, name(*plan.program.compute));
}

}  // namespace trireme

#include "made_plan.hpp"

#include <cstdlib>

#include "errors.hpp"

namespace trireme::python {
namespace {

// Handing Python's lock over takes about 0.1 µs, as long as moving so many bytes within a cache.
constexpr std::int64_t bytes_worth_unlocking = 16 << 10;
constexpr std::size_t most_spare = 8;
constexpr std::size_t most_kept_workspace = 16 << 20;

// The thread's own; kept between calls unless it is large.
class HostWorkspace {
 public:
  ~HostWorkspace() { std::free(memory_); }
  void* get(std::size_t bytes) {
    if (bytes <= bytes_) return memory_;
    std::free(memory_);
    bytes_ = (bytes + 255) / 256 * 256;
    memory_ = std::aligned_alloc(256, bytes_);
    if (!memory_) bytes_ = 0;
    return memory_;
  }
  void trim() {
    if (bytes_ <= most_kept_workspace) return;
    std::free(memory_);
    memory_ = nullptr, bytes_ = 0;
  }

 private:
  void* memory_ = nullptr;
  std::size_t bytes_ = 0;
};
thread_local HostWorkspace host_workspace;

}  // namespace

std::shared_ptr<MadePlan> MadePlan::make(const std::string& device, const trireme_program* program,
                                         const trireme_plan_options& options) {
  std::shared_ptr<MadePlan> made(new MadePlan);
  if (!fine(trireme_plan_create(device.c_str(), program, &options, &made->plan_))) return nullptr;
  if (!fine(trireme_plan_workspace_bytes(made->plan_, &made->workspace_bytes_))) return nullptr;
  return made->read_arrays() ? made : nullptr;
}

MadePlan::~MadePlan() {
  for (trireme_args* args : spare_) trireme_args_destroy(args);
  trireme_plan_destroy(plan_);
}

bool MadePlan::read_arrays() {
  std::size_t count = 0;
  if (!fine(trireme_plan_array_count(plan_, &count))) return false;
  for (std::size_t k = 0; k < count; ++k) {
    trireme_plan_array from = {};
    from.struct_size = sizeof from;
    if (!fine(trireme_plan_array_at(plan_, k, &from))) return false;
    PlanArray array{.name = from.name,
                    .result = from.kind == TRIREME_RESULT,
                    .needed = from.needed != 0,
                    .type = from.type,
                    .rank = from.rank};
    array.shape_tuple = Ref(PyTuple_New(from.rank));
    if (!array.shape_tuple) return false;
    std::int64_t bytes = type_bytes(from.type);
    for (int axis = 0; axis < from.rank; ++axis) {
      const bool is_pairs = from.type == TRIREME_F4E2M1 && axis == from.rank - 1;  // of columns, a byte each
      array.shape[axis] = from.shape[axis] / (is_pairs ? 2 : 1);
      bytes *= array.shape[axis];
      PyObject* extent = PyLong_FromLongLong(array.shape[axis]);
      if (!extent || PyTuple_SetItem(array.shape_tuple.get(), axis, extent) < 0) return false;
    }
    bytes_moved_ += bytes;
    arrays_.push_back(std::move(array));
  }
  return true;
}

bool MadePlan::run(const Run& run) {
  trireme_args* args = nullptr;
  if (!spare_.empty()) {
    args = spare_.back();
    spare_.pop_back();
  } else if (!fine(trireme_args_create(plan_, &args))) {
    return false;
  }
  trireme_status status = TRIREME_OK;
  for (std::size_t k = 0; k < arrays_.size() && status == TRIREME_OK; ++k)
    status = trireme_args_set_at(args, k, &run.views[k]);
  if (status == TRIREME_OK) {
    void* workspace = run.cuda ? run.workspace : host_workspace.get(workspace_bytes_);
    bool unlock = !run.cuda && bytes_moved_ >= bytes_worth_unlocking;
    PyThreadState* state = unlock ? PyEval_SaveThread() : nullptr;
    status = trireme_plan_run(plan_, args, run.stream, workspace, workspace_bytes_);
    if (unlock) PyEval_RestoreThread(state);
    if (!run.cuda) host_workspace.trim();
  }
  bool done = fine(status);  // before anything else can change the thread's last error
  if (spare_.size() < most_spare) spare_.push_back(args);
  else trireme_args_destroy(args);
  return done;
}

}  // namespace trireme::python

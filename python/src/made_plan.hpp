// A plan as calls use it: made once, its arrays known by their places, arguments kept ready.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "arrays.hpp"

namespace trireme::python {

struct PlanArray {
  std::string name;
  bool result = false, needed = true;
  std::int32_t type = 0, rank = 0;
  std::int64_t shape[max_rank] = {};
  Ref shape_tuple;
};

class MadePlan {
 public:
  // Null with a Python error.
  static std::shared_ptr<MadePlan> make(const std::string& device, const trireme_program* program,
                                        const trireme_plan_options& options);
  ~MadePlan();

  const std::vector<PlanArray>& arrays() const { return arrays_; }
  const trireme_plan* handle() const { return plan_; }
  std::size_t workspace_bytes() const { return workspace_bytes_; }
  std::int64_t bytes_moved() const { return bytes_moved_; }

  struct Run {
    const trireme_view* views;  // as arrays()
    bool cuda = false;
    void* stream = nullptr;
    void* workspace = nullptr;  // on CUDA; the host's is our own
  };
  // False with a Python error. Lets other threads of Python run where that pays.
  bool run(const Run& run);

 private:
  MadePlan() = default;
  bool read_arrays();

  trireme_plan* plan_ = nullptr;
  std::vector<PlanArray> arrays_;
  std::vector<trireme_args*> spare_;  // an argument list belongs to one thread at a time; Python's lock guards this
  std::size_t workspace_bytes_ = 0;
  std::int64_t bytes_moved_ = 0;
};

}  // namespace trireme::python

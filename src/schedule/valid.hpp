// Which schedules there are: every rule once, with the reason of a refusal.
#pragma once
#include "schedule/config.hpp"
#include "schedule/shape.hpp"
#include "schedule/stages.hpp"

namespace trireme {

// Does such a kernel exist? Unsupported: the program has something that is not lowered yet. InvalidArgument: the
// schedule contradicts itself.
Status lowerable(const Program& program, const Config& config, const Stages& stages);

// The same, on this machine and for this problem: a schedule that is valid lowers, and runs.
Status valid(const Program& program, const Config& config, const Machine& machine, const Facts& facts);

// For many schedules of one problem.
class Validity {
 public:
  Validity(const Program& program, const Machine& machine, const Facts& facts);
  Status operator()(const Config& config) const;

 private:
  Status fits_simd(const Config& config) const;
  Status fits_threads(const Config& config) const;

  const Program& program_;
  const Machine& machine_;
  const Facts& facts_;
  Stages stages_;
  Shape shape_;
  int instructions_;  // of a vector of elements
  std::int64_t group_;
  bool lane_by_lane_, across_, tiled_, entries_;
  Status lowered_;
};

}  // namespace trireme

#include "devices/device_sums.hpp"

#include <algorithm>

namespace trireme {

Result<DeviceSums> DeviceSums::create(const Program& program, const std::vector<std::size_t>& summed,
                                      const Facts& facts) {
  DeviceSums made;
  made.compute_ = *program.compute;
  made.columns_ = facts.columns;
  for (std::size_t r : summed) {
    const Output& result = program.results[r];
    TRIREME_TRY(where, indexing(program, result.spread, facts.columns));
    made.sums_.push_back({r, result.name,
                          SpreadSum(where, facts.columns, *program.compute, *result.type, facts.layout.result(r),
                                    program.name + "_" + result.name)});
  }
  return made;
}

std::vector<Kernel> DeviceSums::kernels() const {
  std::vector<Kernel> all;
  for (const Sum& each : sums_) all.insert(all.end(), each.sum.kernels().begin(), each.sum.kernels().end());
  return all;
}

std::int64_t DeviceSums::terms_bytes(std::int64_t rows) const {
  return (rows * columns_ * static_cast<std::int64_t>(bytes(compute_)) + 255) / 256 * 256;
}

std::int64_t DeviceSums::workspace_bytes(std::int64_t rows) const {
  std::int64_t most = 0;  // one after the other, in the same place
  for (const Sum& each : sums_) most = std::max(most, each.sum.workspace_bytes(rows));
  return static_cast<std::int64_t>(sums_.size()) * terms_bytes(rows) + most;
}

std::string DeviceSums::describe() const {
  std::string text;
  for (const Sum& each : sums_) text += "; " + each.name + " summed by kernels of its own, from terms in the workspace";
  return text;
}

Problem2d DeviceSums::place_terms(const Problem2d& problem, std::byte* workspace, std::span<Array> results) const {
  std::copy(problem.results.begin(), problem.results.end(), results.begin());
  for (std::size_t q = 0; q < sums_.size(); ++q)
    results[sums_[q].result] = {workspace + static_cast<std::int64_t>(q) * terms_bytes(problem.rows), compute_,
                                columns_, 1};
  Problem2d inner = problem;
  inner.results = results;
  return inner;
}

}  // namespace trireme

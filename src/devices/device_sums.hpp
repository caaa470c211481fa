// Column sums into divided, wrapped and scalar results by kernels of the device. The program's own kernels, those of
// without_sums(), write the terms into the workspace; these sum them.
#pragma once
#include "devices/compose.hpp"
#include "schedule/spread_sums.hpp"

namespace trireme {

class DeviceSums {
 public:
  static Result<DeviceSums> create(const Program& program, const std::vector<std::size_t>& summed, const Facts& facts);

  bool empty() const { return sums_.empty(); }
  std::vector<Kernel> kernels() const;  // SumLaunch::kernel counts through them
  std::int64_t workspace_bytes(std::int64_t rows) const;
  std::string describe() const;  // "; dgamma summed by kernels of its own"

  // The problem that the program's own kernels run: terms in the place of what is summed. `results` has an entry per
  // result of the problem.
  Problem2d place_terms(const Problem2d& problem, std::byte* workspace, std::span<Array> results) const;

  // launch(const SumLaunch&) -> Status
  template <typename Launch>
  Status run(const Problem2d& problem, std::byte* workspace, Launch&& launch) const {
    auto address = [](const std::byte* memory) { return reinterpret_cast<std::uint64_t>(memory); };
    std::byte* rest = workspace + static_cast<std::int64_t>(sums_.size()) * terms_bytes(problem.rows);
    std::size_t kernels_before = 0;
    for (std::size_t q = 0; q < sums_.size(); ++q) {
      std::byte* terms = workspace + static_cast<std::int64_t>(q) * terms_bytes(problem.rows);
      TRIREME_CHECK(sums_[q].sum.run(problem.rows, address(terms), problem.results[sums_[q].result], address(rest),
                                     [&](SumLaunch each) {
                                       each.kernel += kernels_before;
                                       return launch(each);
                                     }));
      kernels_before += sums_[q].sum.kernels().size();
    }
    return Done{};
  }

 private:
  struct Sum {
    std::size_t result;
    std::string name;
    SpreadSum sum;
  };
  std::int64_t terms_bytes(std::int64_t rows) const;

  Type compute_ = Type::F32;
  std::int64_t columns_ = 0;
  std::vector<Sum> sums_;
};

}  // namespace trireme

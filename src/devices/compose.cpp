#include "devices/compose.hpp"

#include <algorithm>
#include <memory>

#include "devices/host_sum.hpp"
#include "devices/parallel.hpp"
#include "layout/buffers.hpp"

namespace trireme {
namespace {

bool kernels_sum(const Program& program, const Output& result) {
  if (program[result.value].op != Op::ColumnSum) return true;
  return result.spread.column.plain();
}

// What the kernels of without_sums() leave, and then the sums.
class Summing {
 public:
  Summing(Program program, std::vector<std::size_t> summed)
      : program_(std::move(program)), summed_(std::move(summed)) {}

  // Of the workspace: the terms, then what one sum after the other needs. Of the host's own: the kernels' results.
  std::int64_t workspace_bytes(std::int64_t rows, std::int64_t columns, int workers) const {
    std::int64_t scratch = 0;
    for (std::size_t r : summed_)
      each_type(r, rows, columns, workers, [&](const auto& sum) { scratch = std::max(scratch, sum.scratch_bytes()); });
    return terms_bytes(rows, columns) + whole_lines(scratch);
  }
  std::int64_t own_bytes() const {
    return whole_lines(static_cast<std::int64_t>(program_.results.size() * sizeof(Array)));
  }

  // `run` runs the kernels.
  template <typename Run>
  Status run(const Problem2d& problem, const RunOptions& options, int workers, std::byte* workspace, std::byte* own,
             Run&& run) const {
    std::span results(reinterpret_cast<Array*>(own), problem.results.size());
    std::uninitialized_copy(problem.results.begin(), problem.results.end(), results.begin());
    for (std::size_t q = 0; q < summed_.size(); ++q)
      results[summed_[q]] = {workspace + q * bytes_of_one(problem.rows, problem.columns), *program_.compute,
                             problem.columns, 1};
    Problem2d inner = problem;
    inner.results = results;
    TRIREME_CHECK(run(inner));
    std::byte* scratch = workspace + terms_bytes(problem.rows, problem.columns);
    for (std::size_t r : summed_)
      each_type(r, problem.rows, problem.columns, workers, [&]<typename T>(const HostSum<T>& sum) {
        const Array& result = problem.results[r];
        auto* memory = reinterpret_cast<T*>(scratch);
        in_parallel(options.parallel_for, sum.workers(),
                    [&](int worker) { sum.work(static_cast<const T*>(results[r].data), result, memory, worker); });
        sum.finish(result, memory);
      });
    return Done{};
  }

  std::string describe(const Executable& kernels) const {
    std::string text = kernels.describe();
    for (std::size_t r : summed_) text += "; " + program_.results[r].name + " summed from terms in the workspace";
    return text;
  }

 private:
  template <typename Use>
  void each_type(std::size_t result, std::int64_t rows, std::int64_t columns, int workers, Use&& use) const {
    Indexing where = indexing(program_, program_.results[result].spread, columns).value();  // bound, and so checked
    if (*program_.compute == Type::F32) use(HostSum<float>(where, rows, columns, workers));
    else use(HostSum<double>(where, rows, columns, workers));
  }
  std::int64_t bytes_of_one(std::int64_t rows, std::int64_t columns) const {
    return whole_lines(rows * columns * static_cast<std::int64_t>(bytes(*program_.compute)));
  }
  std::int64_t terms_bytes(std::int64_t rows, std::int64_t columns) const {
    return static_cast<std::int64_t>(summed_.size()) * bytes_of_one(rows, columns);
  }

  Program program_;
  std::vector<std::size_t> summed_;
};

class ComposedExecutable : public Executable {
 public:
  ComposedExecutable(Summing summing, std::unique_ptr<Executable> kernels)
      : summing_(std::move(summing)), kernels_(std::move(kernels)) {}

  Status run(const Problem2d& problem, const RunOptions& options) override {
    using Memory = std::vector<std::byte, CacheLineAllocator<std::byte>>;
    Memory workspace(summing_.workspace_bytes(problem.rows, problem.columns, 1)), own(summing_.own_bytes());
    return summing_.run(problem, options, 1, workspace.data(), own.data(),
                        [&](const Problem2d& inner) { return kernels_->run(inner, options); });
  }
  std::string describe() const override { return summing_.describe(*kernels_); }
  std::string kernel_hash() const override { return kernels_->kernel_hash(); }
  Identity identity() const override { return kernels_->identity(); }

 private:
  Summing summing_;
  std::unique_ptr<Executable> kernels_;
};

class ComposedHostExecutable : public HostExecutable {
 public:
  ComposedHostExecutable(Summing summing, std::unique_ptr<Executable> kernels)
      : summing_(std::move(summing)), kernels_(std::move(kernels)) {}

  MemoryBytes memory_bytes(std::int64_t rows, std::int64_t columns, const RunOptions& options) const override {
    MemoryBytes bytes = kernels_->direct()->memory_bytes(rows, columns, options);
    return {bytes.workspace + summing_.workspace_bytes(rows, columns, workers(rows, columns, options)),
            bytes.own + summing_.own_bytes()};
  }
  int workers(std::int64_t rows, std::int64_t columns, const RunOptions& options) const override {
    return kernels_->direct()->workers(rows, columns, options);
  }
  Status run_in(const Problem2d& problem, const RunOptions& options, const Lent& lent) const override {
    int workers = this->workers(problem.rows, problem.columns, options);
    Lent rest = lent;
    rest.workspace += summing_.workspace_bytes(problem.rows, problem.columns, workers);
    rest.own += summing_.own_bytes();
    return summing_.run(problem, options, workers, lent.workspace, lent.own,
                        [&](const Problem2d& inner) { return kernels_->direct()->run_in(inner, options, rest); });
  }
  std::string describe() const override { return summing_.describe(*kernels_); }
  std::string kernel_hash() const override { return kernels_->kernel_hash(); }
  Identity identity() const override { return kernels_->identity(); }

 private:
  Summing summing_;
  std::unique_ptr<Executable> kernels_;
};

}  // namespace

WithoutSums without_sums(const Program& program, const Facts& facts) {
  WithoutSums inner{program, facts, {}};
  for (std::size_t r = 0; r < program.results.size(); ++r) {
    if (kernels_sum(program, program.results[r])) continue;
    inner.summed.push_back(r);
    Output& result = inner.program.results[r];
    result.value = program[result.value].args[0];
    result.spread = {.row = {.present = true}, .column = {.present = true}};
    result.type = *program.compute;
    if (r < inner.facts.layout.results.size()) inner.facts.layout.results[r] = {};
  }
  return inner;
}

Result<std::unique_ptr<Executable>> compose(const Program& program, const Facts& facts, const Compile& compile) {
  WithoutSums inner = without_sums(program, facts);
  if (inner.summed.empty()) return compile(program, facts);
  TRIREME_TRY(kernels, compile(inner.program, inner.facts));
  Summing summing(program, std::move(inner.summed));
  std::unique_ptr<Executable> composed;
  bool on_host = dynamic_cast<const HostExecutable*>(kernels.get()) != nullptr;
  if (on_host) composed = std::make_unique<ComposedHostExecutable>(std::move(summing), std::move(kernels));
  else composed = std::make_unique<ComposedExecutable>(std::move(summing), std::move(kernels));
  return composed;
}

}  // namespace trireme

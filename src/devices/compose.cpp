#include "devices/compose.hpp"

#include <cstring>

#include "layout/buffers.hpp"
#include "layout/indexing.hpp"
#include "reference/column_sum.hpp"
#include "support/float_types.hpp"
#include "support/mxcsr.hpp"

namespace trireme {
namespace {

bool kernels_sum(const Program& program, const Output& result) {
  if (program[result.value].op != Op::ColumnSum) return true;
  return result.spread.plain() && result.spread.column.present && !result.spread.row.present;
}

// The kernels' results, those that are summed here as elements, and then the sums.
class Summing {
 public:
  Summing(Program program, std::vector<std::size_t> summed)
      : program_(std::move(program)), summed_(std::move(summed)) {}

  std::int64_t terms_bytes(std::int64_t rows, std::int64_t columns) const {
    return static_cast<std::int64_t>(summed_.size()) * bytes_of_one(rows, columns);
  }

  // `run` runs the kernels; `terms` holds terms_bytes().
  template <typename Run>
  Status run(const Problem2d& problem, std::byte* terms, Run&& run) const {
    Type compute = *program_.compute;
    std::vector<Array> results(problem.results.begin(), problem.results.end());
    for (std::size_t q = 0; q < summed_.size(); ++q)
      results[summed_[q]] = {terms + q * bytes_of_one(problem.rows, problem.columns), compute, problem.columns, 1};
    Problem2d inner = problem;
    inner.results = results;
    TRIREME_CHECK(run(inner));
    for (std::size_t r : summed_) {
      TRIREME_TRY(where, indexing(program_, program_.results[r].spread, problem.columns, problem.constants));
      if (compute == Type::F32) sum<float>(where, problem, results[r], problem.results[r]);
      else sum<double>(where, problem, results[r], problem.results[r]);
    }
    return Done{};
  }

  std::string describe(const Executable& kernels) const {
    std::string text = kernels.describe();
    for (std::size_t r : summed_) text += "; " + program_.results[r].name + " summed by the reference";
    return text;
  }

 private:
  std::int64_t bytes_of_one(std::int64_t rows, std::int64_t columns) const {
    return whole_lines(rows * columns * static_cast<std::int64_t>(bytes(*program_.compute)));
  }

  template <typename T>
  static void sum(const Indexing& where, const Problem2d& problem, const Array& terms, const Array& result) {
    ContractArithmetic arithmetic;
    ColumnSum<T> sums(where, problem.rows, problem.columns);
    for (std::int64_t i = 0; i < problem.rows; ++i)
      sums.add_row(i, {static_cast<const T*>(terms.entry(i, 0)), static_cast<std::size_t>(problem.columns)});
    std::vector<T> entries = sums.entries();
    std::int64_t wide = where.column.extent(problem.columns);
    for (std::size_t k = 0; k < entries.size(); ++k) {
      void* to = result.entry(static_cast<std::int64_t>(k) / wide, static_cast<std::int64_t>(k) % wide);
      if constexpr (std::is_same_v<T, float>) store_f32(result.type, to, entries[k]);
      else store_f64(result.type, to, entries[k]);
    }
  }

  Program program_;
  std::vector<std::size_t> summed_;
};

class ComposedExecutable : public Executable {
 public:
  ComposedExecutable(Summing summing, std::unique_ptr<Executable> kernels)
      : summing_(std::move(summing)), kernels_(std::move(kernels)) {}

  Status run(const Problem2d& problem, const RunOptions& options) override {
    std::vector<std::byte, CacheLineAllocator<std::byte>> terms(summing_.terms_bytes(problem.rows, problem.columns));
    return summing_.run(problem, terms.data(), [&](const Problem2d& inner) { return kernels_->run(inner, options); });
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
    bytes.workspace += summing_.terms_bytes(rows, columns);
    return bytes;
  }
  Status run_in(const Problem2d& problem, const RunOptions& options, const Lent& lent) const override {
    Lent rest = lent;
    rest.workspace += summing_.terms_bytes(problem.rows, problem.columns);
    return summing_.run(problem, lent.workspace,
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

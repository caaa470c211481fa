#include "devices/compose.hpp"

#include <cstring>

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

class ComposedExecutable : public Executable {
 public:
  ComposedExecutable(Program program, std::vector<std::size_t> summed, std::unique_ptr<Executable> kernels)
      : program_(std::move(program)), summed_(std::move(summed)), kernels_(std::move(kernels)) {}

  Status run(const Problem2d& problem, const RunOptions& options) override {
    Type compute = *program_.compute;
    std::int64_t elements = problem.rows * problem.columns;
    std::vector<std::vector<std::byte>> terms(summed_.size());
    std::vector<Array> results(problem.results.begin(), problem.results.end());
    for (std::size_t q = 0; q < summed_.size(); ++q) {
      terms[q].resize(elements * bytes(compute) + 64);
      auto address = (reinterpret_cast<std::uintptr_t>(terms[q].data()) + 63) / 64 * 64;
      results[summed_[q]] = {reinterpret_cast<void*>(address), compute, problem.columns, 1};
    }
    Problem2d inner = problem;
    inner.results = results;
    TRIREME_CHECK(kernels_->run(inner, options));
    for (std::size_t r : summed_) {
      TRIREME_TRY(where, indexing(program_, program_.results[r].spread, problem.columns, problem.constants));
      if (compute == Type::F32) sum<float>(where, problem, results[r], problem.results[r]);
      else sum<double>(where, problem, results[r], problem.results[r]);
    }
    return Done{};
  }

  std::string describe() const override {
    std::string text = kernels_->describe();
    for (std::size_t r : summed_) text += "; " + program_.results[r].name + " summed by the reference";
    return text;
  }

 private:
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
  std::unique_ptr<Executable> kernels_;
};

}  // namespace

Result<std::unique_ptr<Executable>> compose(const Program& program, const Facts& facts, Compile* compile) {
  std::vector<std::size_t> summed;
  for (std::size_t r = 0; r < program.results.size(); ++r)
    if (!kernels_sum(program, program.results[r])) summed.push_back(r);
  if (summed.empty()) return compile(program, facts);
  Program inner = program;
  Facts inner_facts = facts;
  for (std::size_t r : summed) {
    Output& result = inner.results[r];
    result.value = program[result.value].args[0];
    result.spread = {.row = {.present = true}, .column = {.present = true}};
    result.type = *program.compute;
    if (r < inner_facts.layout.strided_results.size()) inner_facts.layout.strided_results[r] = false;
  }
  TRIREME_TRY(kernels, compile(inner, inner_facts));
  return std::unique_ptr<Executable>(std::make_unique<ComposedExecutable>(program, summed, std::move(kernels)));
}

}  // namespace trireme

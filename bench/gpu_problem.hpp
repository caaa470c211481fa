// A problem in device memory, filled with noise, and how its kernels are timed: shared by the GPU measurements.
#pragma once
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "devices/cuda/cuda_device.hpp"
#include "passes/passes.hpp"

namespace trireme::bench {

template <typename T>
T must(Result<T> result) {
  if (!result) {
    fmt::print(stderr, "{}: {}\n", name(result.error().code), result.error().message);
    std::exit(1);
  }
  return std::move(*result);
}

inline bool is_element(const Spread& spread) { return spread.row.present && spread.column.present; }

// Element arrays and weights in `type`, statistics and column sums in f32.
inline Program bound(const Program& program, Type type) {
  Binding binding;
  for (const Operand& operand : program.operands)
    if (!operand.constant) {
      bool saved = operand.fallback != no_node && program[operand.fallback].op != Op::Number;
      binding.types[operand.name] = saved && !is_element(operand.spread) ? Type::F32 : type;
    }
  for (const Output& result : program.results)
    binding.types[result.name] = is_element(result.spread) ? type : Type::F32;
  return must(prepare(program, binding));
}

class GpuProblem {
 public:
  GpuProblem(const cuda::Device& device, const Program& program, std::int64_t rows, std::int64_t columns)
      : device_(device), constants_(program.operands.size(), 1e-6) {
    std::vector<std::uint8_t> noise(std::size_t{1} << 22);
    for (std::size_t k = 0; k < noise.size(); k += 2) {  // bf16 values near 1, f32 values near 1 in their upper halves
      std::uint16_t bits = static_cast<std::uint16_t>((k & 2 ? 0x3F00 : 0x3F80) + (k * 2654435761u >> 26));
      std::memcpy(&noise[k], &bits, 2);
    }
    auto array = [&](const Spread& spread, Type type) {
      std::int64_t r = spread.row.present ? rows : 1, c = spread.column.present ? columns : 1;
      std::int64_t size = r * c * static_cast<std::int64_t>(bytes(type));
      memory_.push_back(must(device.allocate(size)));
      for (std::int64_t at = 0; at < size; at += static_cast<std::int64_t>(noise.size()))
        must(device.copy(static_cast<char*>(memory_.back().get()) + at, noise.data(),
                         std::min<std::int64_t>(noise.size(), size - at)));
      if (is_element(spread)) element_bytes_ += size;
      return Array{memory_.back().get(), type, spread.row.present ? c : 0, spread.column.present ? 1 : 0};
    };
    for (const Operand& operand : program.operands)
      operands_.push_back(operand.constant ? Array{} : array(operand.spread, *operand.type));
    for (const Output& result : program.results) results_.push_back(array(result.spread, *result.type));
    problem_ = {rows, columns, constants_, operands_, results_};
  }
  GpuProblem(const GpuProblem&) = delete;

  const Problem2d& problem() const { return problem_; }
  std::int64_t element_bytes() const { return element_bytes_; }

 private:
  const cuda::Device& device_;
  std::vector<double> constants_;
  std::vector<Array> operands_, results_;
  std::vector<cuda::Memory> memory_;
  std::int64_t element_bytes_ = 0;
  Problem2d problem_;
};

template <typename Work>
double median_seconds(const cuda::Device& device, cuda::StreamHandle stream, Work&& work) {
  std::vector<double> seconds;
  cuda::Event start = must(device.event()), stop = must(device.event());
  for (int k = 0; k < 13; ++k) {
    must(device.record(start, stream));
    work();
    must(device.record(stop, stream));
    must(device.synchronize(stop));
    if (k >= 2) seconds.push_back(must(device.milliseconds(start, stop)) * 1e-3);
  }
  std::sort(seconds.begin(), seconds.end());
  return seconds[seconds.size() / 2];
}

// Seconds of a device copy that moves `bytes` bytes, reads and writes counted.
inline double copy_seconds(const cuda::Device& device, cuda::StreamHandle stream, std::int64_t bytes) {
  cuda::Memory from = must(device.allocate(bytes / 2)), to = must(device.allocate(bytes / 2));
  must(device.fill(from.get(), 1, bytes / 2));
  return median_seconds(device, stream, [&] { must(device.copy_async(to.get(), from.get(), bytes / 2, stream)); });
}

}  // namespace trireme::bench

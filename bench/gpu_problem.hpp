// A problem in device memory, filled with noise, and how its kernels are timed: shared by the GPU measurements.
#pragma once
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "bench/must.hpp"
#include "devices/cuda/cuda_device.hpp"
#include "language/parse.hpp"
#include "passes/passes.hpp"
#include "plan/ops.hpp"
#include "schedule/sum_classes.hpp"

namespace trireme::bench {

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
  return must(prepare(program, binding)).expanded;
}

class GpuProblem {
 public:
  GpuProblem(const cuda::Device& device, const Program& program, std::int64_t rows, std::int64_t columns)
      : constants_(program.operands.size(), 1e-6) {
    std::vector<std::uint8_t> noise(std::size_t{1} << 22);
    for (std::size_t k = 0; k < noise.size(); k += 2) {  // bf16 values near 1, f32 values near 1 in their upper halves
      std::uint16_t bits = static_cast<std::uint16_t>((k & 2 ? 0x3F00 : 0x3F80) + (k * 2654435761u >> 26));
      std::memcpy(&noise[k], &bits, 2);
    }
    // Rows that tokens pick, targets: anywhere in the smaller of both extents.
    std::vector<std::uint8_t> indices(noise.size());
    auto fill_with_indices = [&]<typename T>(T) {
      for (std::size_t k = 0; k < indices.size(); k += sizeof(T)) {
        const T index = static_cast<T>(k * 2654435761u % static_cast<std::uint64_t>(std::min(rows, columns)));
        std::memcpy(&indices[k], &index, sizeof(T));
      }
    };
    auto extent = [&](const Axis& axis, std::int64_t count) {
      if (!axis.present || axis.picked()) return axis.present ? rows : 1;
      return must(fixed_axis(program, axis, columns)).extent(count);
    };
    std::vector<bool> read = read_operands(program);
    auto array = [&](const Spread& spread, Type type, bool moved) {
      const std::int64_t r = extent(spread.row, rows), c = extent(spread.column, columns);
      const std::int64_t size = r * c * static_cast<std::int64_t>(bytes(type));
      memory_.push_back(must(device.allocate(size)));
      if (type == Type::I32) fill_with_indices(std::int32_t{});
      if (type == Type::I64) fill_with_indices(std::int64_t{});
      const auto& content = type == Type::I32 || type == Type::I64 ? indices : noise;
      for (std::int64_t at = 0; at < size; at += static_cast<std::int64_t>(content.size()))
        must(device.copy(static_cast<char*>(memory_.back().get()) + at, at ? memory_.back().get() : content.data(),
                         std::min<std::int64_t>(content.size(), size - at)));
      if (moved) moved_bytes_ += size;
      Array made{memory_.back().get(), type, spread.row.present ? c : 0, spread.column.present ? 1 : 0};
      if (spread.row.picked()) made.table_rows = r;
      return made;
    };
    for (std::size_t k = 0; k < program.array_count(); ++k) {
      const Program::Array what = program.array(k);
      arrays_.push_back(what.in_memory ? array(what.spread, *what.type, what.result || read[k]) : Array{});
    }
    problem_ = {rows, columns, constants_, arrays_};
  }
  GpuProblem(const GpuProblem&) = delete;

  const Problem2d& problem() const { return problem_; }
  std::int64_t moved_bytes() const { return moved_bytes_; }  // each array once

 private:
  std::vector<double> constants_;
  std::vector<Array> arrays_;
  std::vector<cuda::Memory> memory_;
  std::int64_t moved_bytes_ = 0;
  Problem2d problem_;
};

// Work beside copies of as many bytes, in turn, so that both see the same clocks; medians. A GPU that has just waited
// for a compiler is slow at first: the first rounds do not count. Each round begins with a copy that is not timed,
// while the host puts everything else into the stream: what is timed is the device's work alone.
class Beside {
 public:
  Beside(const cuda::Device& device, cuda::StreamHandle stream, std::int64_t bytes)
      : device_(device),
        stream_(stream),
        bytes_(bytes / 2),
        from_(must(device.allocate(bytes_))),
        to_(must(device.allocate(bytes_))) {
    must(device.fill(from_.get(), 1, bytes_));
  }

  // The copy's time by the work's.
  template <typename Work>
  double share(Work&& work, int rounds = 11, int warm_up = 6) {
    std::vector<double> work_times, copy_times;
    for (int k = 0; k < rounds + warm_up; ++k) {
      copy();
      must(device_.record(start_, stream_));
      work();
      must(device_.record(between_, stream_));
      copy();
      must(device_.record(stop_, stream_));
      must(device_.synchronize(stop_));
      if (k < warm_up) continue;
      work_times.push_back(must(device_.milliseconds(start_, between_)));
      copy_times.push_back(must(device_.milliseconds(between_, stop_)));
    }
    return median(copy_times) / median(work_times);
  }

 private:
  void copy() { must(device_.copy_async(to_.get(), from_.get(), bytes_, stream_)); }
  static double median(std::vector<double>& values) {
    std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
    return values[values.size() / 2];
  }

  const cuda::Device& device_;
  cuda::StreamHandle stream_;
  std::int64_t bytes_;
  cuda::Memory from_, to_;
  cuda::Event start_ = must(device_.event()), between_ = must(device_.event()), stop_ = must(device_.event());
};

// An operator by name, forward or backward, as the measurements name it: OPERATOR[:backward][:f32|:f16].
struct Wanted {
  std::string_view operator_name;
  bool backward;
  Type type;

  explicit Wanted(std::string_view text)
      : operator_name(text.substr(0, text.find(':'))),
        backward(text.find(":backward") != text.npos),
        type(text.find(":f32") != text.npos   ? Type::F32
             : text.find(":f16") != text.npos ? Type::F16
                                              : Type::BF16) {}

  Program program() const {
    for (const OperatorText& each : operator_texts()) {
      if (each.name != operator_name) continue;
      Program source = must(parse(each.text));
      return bound(backward ? must(differentiate(source)) : source, type);
    }
    fmt::print(stderr, "there is no operator {}\n", operator_name);
    std::exit(2);
  }
  std::int64_t rows(std::int64_t tensor_bytes, std::int64_t columns) const {
    return tensor_bytes / static_cast<std::int64_t>(bytes(type)) / columns;
  }
};

}  // namespace trireme::bench

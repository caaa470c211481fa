// Enough of CUDA C++ to run simple kernels on a CPU: a block is that many threads, __syncthreads a barrier between
// them,
// __shared__ a static variable, because one block runs at a time.
#pragma once
#include <barrier>
#include <bit>
#include <cmath>
#include <memory>
#include <thread>
#include <vector>

#define __global__
#define __device__
#define __shared__ static
#define __syncthreads() cuda_on_a_cpu::meeting->arrive_and_wait()

namespace cuda_on_a_cpu {
struct Index {
  unsigned x = 0;
};
inline std::unique_ptr<std::barrier<>> meeting;

template <typename Work>
void launch(unsigned grid, unsigned block, const Work& work);
}  // namespace cuda_on_a_cpu

inline thread_local cuda_on_a_cpu::Index threadIdx, blockIdx, blockDim, gridDim;
inline float __uint_as_float(unsigned bits) { return std::bit_cast<float>(bits); }
inline unsigned __float_as_uint(float value) { return std::bit_cast<unsigned>(value); }

template <typename Work>
void cuda_on_a_cpu::launch(unsigned grid, unsigned block, const Work& work) {
  meeting = std::make_unique<std::barrier<>>(block);
  std::vector<std::thread> threads;
  for (unsigned k = 0; k < block; ++k)
    threads.emplace_back([&, k] {
      threadIdx = {k}, blockDim = {block}, gridDim = {grid};
      for (unsigned b = 0; b < grid; ++b) {
        blockIdx = {b};
        work();
        meeting->arrive_and_wait();  // blocks share what is __shared__
      }
    });
  for (std::thread& each : threads) each.join();
}

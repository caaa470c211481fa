#include "targets/lanes/interpret.hpp"

#include <fmt/format.h>

#include "ir/contract.hpp"
#include "schedule/verify_kernel.hpp"
#include "support/contract_arithmetic.hpp"
#include "targets/lanes/machine.hpp"

namespace trireme::lanes {
namespace {

template <typename T>
Status run(const Kernel& kernel, const Call& call, std::int64_t blocks, std::int64_t scratch_bytes,
           std::byte* scratch) {
  Machine<T> machine(kernel, call, scratch_bytes, scratch);
  for (std::int64_t block = 0; block < blocks; ++block) TRIREME_CHECK(machine.run_block(block));
  return Done{};
}

}  // namespace

Status interpret(const Kernel& kernel, std::span<const std::uint64_t> args, std::int64_t first, std::int64_t last,
                 std::int64_t total, std::int64_t blocks, std::span<const Range> memory) {
  TRIREME_CHECK(verify(kernel));
  if (args.size() < kernel.slots.size())
    return Error{Code::InvalidArgument,
                 fmt::format("kernel {} has {} slots, args {}", kernel.name, kernel.slots.size(), args.size())};

  std::int64_t scratch_bytes = kernel.scratch_bytes;
  if (kernel.scratch_bytes_per_stripe != 0) {
    int columns = kernel.slot({Slot::What::Columns});
    if (columns < 0)
      return Error{Code::Internal,
                   fmt::format("kernel {}: scratch grows with the columns, but no slot holds them", kernel.name)};
    scratch_bytes += kernel.scratch_bytes_per_stripe * contract::stripes(static_cast<std::int64_t>(args[columns]));
  }
  std::byte* scratch = nullptr;
  if (kernel.simd && scratch_bytes != 0) {
    int slot = kernel.slot({Slot::What::Pointer, scratch_array});
    if (slot < 0) return Error{Code::Internal, fmt::format("kernel {}: no slot holds its scratch", kernel.name)};
    scratch = reinterpret_cast<std::byte*>(args[slot]);
  }

  ContractArithmetic arithmetic;
  Call call{args, {first, last, total}, memory};
  blocks = kernel.simd ? 1 : blocks / kernel.launch.cluster;  // a cluster's blocks run side by side
  if (kernel.compute == Type::F64) return run<double>(kernel, call, blocks, scratch_bytes, scratch);
  return run<float>(kernel, call, blocks, scratch_bytes, scratch);
}

}  // namespace trireme::lanes

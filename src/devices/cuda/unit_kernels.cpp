#include "devices/cuda/unit_kernels.hpp"

#include <algorithm>

#include "support/hash.hpp"
#include "targets/ptx/emit.hpp"

namespace trireme::cuda {

Result<UnitKernels> UnitKernels::create(const Device& device, std::vector<Kernel> kernels, std::string_view arch) {
  UnitKernels made;
  made.device_ = &device;
  made.kernels_ = std::move(kernels);
  TRIREME_TRY(text, ptx::emit(made.kernels_, arch));
  made.hash_ = short_hex(Hasher().add(text));
  TRIREME_TRY(module, device.load(text));
  made.module_ = std::move(module);
  for (const Kernel& kernel : made.kernels_) {
    TRIREME_TRY(function, device.function(made.module_, kernel.name.c_str()));
    TRIREME_CHECK(device.function_facts(function));  // loads it
    made.functions_.push_back(function);
  }
  return made;
}

Status UnitKernels::launch(const SumLaunch& what, StreamHandle stream) const {
  constexpr std::int64_t most_blocks = (std::int64_t{1} << 31) - 1;
  const trireme::Launch& form = kernels_[what.kernel].launch;
  std::int64_t step = most_blocks * form.columns_covered, total = what.units;
  for (std::int64_t first = 0; first < total; first += step) {
    std::int64_t last = std::min(first + step, total);
    auto* args = const_cast<std::uint64_t*>(what.args.data());
    void* params[] = {args, &first, &last, &total};
    std::int64_t blocks = (last - first + form.columns_covered - 1) / form.columns_covered;
    TRIREME_CHECK(device_->launch(functions_[what.kernel],
                                  {.grid = {static_cast<std::uint32_t>(blocks)},
                                   .block = {static_cast<std::uint32_t>(form.threads())},
                                   .stream = stream},
                                  params));
  }
  return Done{};
}

}  // namespace trireme::cuda

#include "kernel_abi/call.hpp"

#include <fmt/format.h>

#include <cstring>
#include <limits>

#include "ir/contract.hpp"
#include "kernel_abi/entry.hpp"

namespace trireme {
namespace {

std::string names_of(const AbiEntry& entry, bool results) {
  std::string names;
  for (const KernelAbiArray& each : arrays_of(entry))
    if (each.array.is_result == results)
      names += fmt::format("{}{}{}", names.empty() ? "" : ", ", each.array.name, each.optional ? " (optional)" : "");
  return names;
}

// Every array is there, has its size, and no other is given.
template <typename Given>
Status check_arrays(const AbiEntry& entry, const KernelAbiCall& call, const Given& given, bool results) {
  const char* kind = results ? "result" : "operand";
  std::size_t known = 0;
  for (const KernelAbiArray& each : arrays_of(entry)) {
    if (each.array.is_result != results) continue;
    const auto found = given.find(each.array.name);
    if (found == given.end()) {
      if (each.optional) continue;
      return Error{Code::InvalidArgument,
                   fmt::format("the {} {} is missing; there are: {}", kind, each.array.name, names_of(entry, results))};
    }
    ++known;
    const std::int64_t wanted = count_of(each.array, call.rows, call.columns);
    if (static_cast<std::int64_t>(found->second.size()) != wanted)
      return Error{Code::InvalidArgument,
                   fmt::format("{} has {} values; {} rows of {} columns want {}", each.array.name, found->second.size(),
                               call.rows, call.columns, wanted)};
  }
  if (known == given.size()) return Done{};
  for (const auto& [name, values] : given) {
    bool is_known = false;
    for (const KernelAbiArray& each : arrays_of(entry))
      is_known |= each.array.is_result == results && each.array.name == name;
    if (!is_known)
      return Error{Code::InvalidArgument,
                   fmt::format("no {} '{}'; there are: {}", kind, name, names_of(entry, results))};
  }
  return Done{};
}

}  // namespace

const KernelAbi* find_kernel_abi(std::string_view name) {
  for (const KernelAbi& abi : kernel_abis())
    if (abi.name == name) return &abi;
  return nullptr;
}

std::int64_t count_of(const AbiArray& array, std::int64_t rows, std::int64_t columns) {
  switch (array.extent) {
    case AbiArray::Extent::Elements: return rows * columns;
    case AbiArray::Extent::Rows: return rows;
    case AbiArray::Extent::Columns: return columns;
  }
  return 0;
}

std::vector<KernelAbiArray> arrays_of(const AbiEntry& entry) {
  std::vector<KernelAbiArray> all = {{entry.a, false}, {entry.b, false}, {entry.output, false}};
  if (!entry.in_scratch.empty()) all.push_back({{entry.in_scratch, AbiArray::Extent::Rows, true}, true});
  for (const AbiArray& array : entry.optional) all.push_back({array, true});
  return all;
}

Status call_kernel(WasmKernel& kernel, const KernelAbi& abi, const KernelAbiCall& call) {
  const AbiEntry& entry = call.backward ? abi.backward : abi.forward;
  constexpr std::int64_t most = std::numeric_limits<std::uint32_t>::max();
  if (call.rows < 0 || call.rows > most || call.columns < 1 || call.columns > most)
    return Error{Code::InvalidArgument,
                 fmt::format("{} rows of {} columns: the kernel ABI has 32 bits for each", call.rows, call.columns)};
  TRIREME_CHECK(check_arrays(entry, call, call.inputs, false));
  TRIREME_CHECK(check_arrays(entry, call, call.outputs, true));

  const auto input = [&](std::string_view name) { return std::as_bytes(call.inputs.find(name)->second); };
  WasmKernelCall made{.a = input(entry.a.name),
                      .b = input(entry.b.name),
                      .output = std::as_writable_bytes(call.outputs.find(entry.output.name)->second)};
  std::byte nothing[4] = {};
  if (call.rows == 0) {  // version 1 takes arrays without bytes for a mistake, before it looks at the rows
    made.a = made.output = nothing;
    if (made.b.empty()) made.b = nothing;
  }
  std::vector<std::byte> params(abi::v1_params_bytes), workspace;
  for (std::size_t k = 0; k < entry.optional.size(); ++k) {
    const AbiArray& array = entry.optional[k];
    WasmKernelCall::Region region{.params_at = 16 + 8 * k};
    if (const auto found = call.inputs.find(array.name); !array.is_result && found != call.inputs.end())
      region.input = std::as_bytes(found->second);
    if (const auto found = call.outputs.find(array.name); array.is_result && found != call.outputs.end()) {
      region.output = std::as_writable_bytes(found->second);
      if (array.extent == AbiArray::Extent::Columns) {
        const std::int64_t lines = (call.columns + 63) / 64;
        workspace.resize(static_cast<std::size_t>(256 * lines * contract::row_blocks(call.rows, call.columns)));
      }
    }
    if (region.input.empty() && region.output.empty()) continue;
    params.resize(abi.full_params_bytes());
    made.regions.push_back(region);
  }
  const auto store = [&](std::uint32_t at, auto value) { std::memcpy(params.data() + at, &value, sizeof value); };
  store(abi.rows_at, static_cast<std::uint32_t>(call.rows));
  store(abi.columns_at, static_cast<std::uint32_t>(call.columns));
  if (!abi.value.empty()) store(abi.value_at, call.value);
  made.params = params;
  made.scratch = workspace;
  if (const auto found = call.outputs.find(entry.in_scratch); !entry.in_scratch.empty() && found != call.outputs.end())
    made.scratch = std::as_writable_bytes(found->second);
  return call.backward ? kernel.backward(made) : kernel.forward(made);
}

}  // namespace trireme

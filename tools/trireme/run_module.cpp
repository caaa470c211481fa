#include "run_module.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cstring>

#include "files.hpp"
#include "plan/kernel_abi_call.hpp"
#include "sources.hpp"

namespace trireme::cli {
namespace {

Result<const KernelAbi*> abi_of(const RunModuleOptions& options, const WasmKernel& kernel) {
  const std::string& name = options.as.empty() ? kernel.info().name : options.as;
  if (const KernelAbi* abi = find_kernel_abi(name)) return abi;
  std::string known;
  for (const KernelAbi& abi : kernel_abis()) known += fmt::format("{}{}", known.empty() ? "" : ", ", abi.name);
  return Error{Code::InvalidArgument,
               fmt::format("{}: the kernel is called '{}'; known are {}; --as NAME says which of them it works like",
                           options.module, name, known)};
}

// What --set gives, or the operator's own default.
Result<float> value_for(const RunModuleOptions& options, const KernelAbi& abi) {
  TRIREME_TRY(program, load_program(std::string(abi.program), false));
  double value = 0;
  for (const Operand& operand : program.operands)
    if (operand.name == abi.value && operand.fallback != no_node) value = *as_number(program, operand.fallback);
  for (const std::string& text : options.constants) {
    const std::string prefix = std::string(abi.value) + "=";
    if (abi.value.empty() || !text.starts_with(prefix))
      return Error{Code::InvalidArgument,
                   fmt::format("--set {}: {} has {}", text, abi.name,
                               abi.value.empty() ? "no constant" : fmt::format("the constant {} alone", abi.value))};
    const auto [end, error] = std::from_chars(text.data() + prefix.size(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size())
      return Error{Code::InvalidArgument, fmt::format("--set {}: expected a number", text)};
  }
  return static_cast<float>(value);
}

struct Arrays {
  std::map<std::string, std::vector<float>, std::less<>> inputs, outputs;
  std::vector<std::int64_t> shape;  // of the elements
};

Result<Arrays> read_arrays(const RunModuleOptions& options, const AbiEntry& entry) {
  Arrays arrays;
  for (const std::string& text : options.inputs) {
    TRIREME_TRY(file, parse_named_file("--in", text));
    TRIREME_TRY(array, read_npy(file.path));
    if (array.head.type != "<f4" || (array.head.fortran_order && array.head.shape.size() > 1))
      return Error{Code::InvalidArgument,
                   fmt::format("{}: values of type {}{}; the kernel ABI takes float32, C order", file.path,
                               array.head.type, array.head.fortran_order ? " in Fortran order" : "")};
    std::vector<float>& values = arrays.inputs[file.name];
    values.resize(array.values.size() / sizeof(float));
    std::memcpy(values.data(), array.values.data(), array.values.size());
    if (file.name == entry.a.name) arrays.shape = array.head.shape;
  }
  if (!arrays.inputs.contains(entry.a.name))
    return Error{Code::InvalidArgument, fmt::format("--in {}=FILE.npy is missing", entry.a.name)};
  if (arrays.shape.empty())
    return Error{Code::InvalidArgument, fmt::format("{} has no axes; its last one is a row", entry.a.name)};
  return arrays;
}

std::vector<std::int64_t> shape_of(const AbiArray& array, const std::vector<std::int64_t>& elements) {
  switch (array.extent) {
    case AbiArray::Extent::Elements: return elements;
    case AbiArray::Extent::Rows: return {elements.begin(), elements.end() - 1};
    case AbiArray::Extent::Columns: return {elements.back()};
  }
  return {};
}

}  // namespace

Result<int> run_module(const RunModuleOptions& options) {
  TRIREME_TRY(bytes, read_file(options.module));
  TRIREME_TRY(host, WasmHost::open(options.library));
  const WasmLimits limits{.memory_bytes = static_cast<std::int64_t>(options.memory_mib * (1 << 20)),
                          .seconds = options.seconds};
  const auto named = [&](const Error& error) { return Error{error.code, options.module + ": " + error.message}; };
  auto kernel = host.load({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()}, limits);
  if (!kernel) return named(kernel.error());
  TRIREME_TRY(abi, abi_of(options, *kernel));
  const AbiEntry& entry = options.backward ? abi->backward : abi->forward;
  TRIREME_TRY(arrays, read_arrays(options, entry));
  TRIREME_TRY(value, value_for(options, *abi));

  const std::int64_t columns = arrays.shape.back();
  NpyHead outer{.shape = {arrays.shape.begin(), arrays.shape.end() - 1}};
  KernelAbiCall call{.backward = options.backward, .rows = outer.count(), .columns = columns, .value = value};
  for (const auto& [name, values] : arrays.inputs) call.inputs[name] = values;
  std::vector<NamedFile> files;
  const std::vector<KernelAbiArray> known = arrays_of(entry);
  const auto find = [&](std::string_view name) {
    return std::ranges::find_if(known,
                                [&](const auto& each) { return each.array.name == name && each.array.is_result; });
  };
  for (const std::string& text : options.outputs) {
    TRIREME_TRY(file, parse_named_file("--out", text));
    files.push_back(file);
    std::vector<float>& values = arrays.outputs[file.name];
    if (const auto found = find(file.name); found != known.end())
      values.resize(static_cast<std::size_t>(count_of(found->array, call.rows, columns)));
  }
  arrays.outputs[std::string(entry.output.name)].resize(static_cast<std::size_t>(call.rows * columns));
  for (auto& [name, values] : arrays.outputs) call.outputs[name] = values;
  if (const Status status = call_kernel(*kernel, *abi, call); !status) return named(status.error());

  for (const NamedFile& file : files)
    TRIREME_CHECK(write_npy(file.path, {.type = "<f4", .shape = shape_of(find(file.name)->array, arrays.shape)},
                            std::as_bytes(std::span(arrays.outputs[file.name]))));
  const auto& [name, version, backward] = kernel->info();
  fmt::print("{} {}.{}.{}{}: {} rows of {} columns, in wasmtime {}\n", name, version[0], version[1], version[2],
             options.backward ? " backward" : "", call.rows, columns, host.version());
  return fine;
}

}  // namespace trireme::cli

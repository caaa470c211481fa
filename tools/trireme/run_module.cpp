#include "run_module.hpp"

#include <fmt/format.h>

#include <charconv>
#include <numeric>

#include "command_line.hpp"
#include "files.hpp"
#include "kernel_abi/call.hpp"
#include "npy_file.hpp"
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
  TRIREME_TRY(program, load_program(std::string(abi.program)));
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
  TRIREME_TRY(files, values_by_name("--in", options.inputs, "NAME=FILE, as in x=x.npy"));
  for (const auto& [name, path] : files) {
    TRIREME_TRY(file, NpyFile::open(path));
    if (Status fits = check_holds(file.header().type, Type::F32); !fits)
      return Error{Code::InvalidArgument, fmt::format("{}: {}; the kernel ABI takes f32", path, fits.error().message)};
    std::vector<float>& values = arrays.inputs[name];
    values.resize(static_cast<std::size_t>(file.header().elements));
    TRIREME_CHECK(file.read(std::as_writable_bytes(std::span(values))));
    if (name == entry.a.name) arrays.shape = file.header().shape;
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
  const std::int64_t rows =
      std::accumulate(arrays.shape.begin(), arrays.shape.end() - 1, std::int64_t{1}, std::multiplies<>());
  KernelAbiCall call{.backward = options.backward, .rows = rows, .columns = columns, .value = value};
  for (const auto& [name, values] : arrays.inputs) call.inputs[name] = values;
  TRIREME_TRY(files, values_by_name("--out", options.outputs, "NAME=FILE, as in y=y.npy"));
  TRIREME_CHECK(check_distinct(files));
  const std::vector<KernelAbiArray> known = arrays_of(entry);
  const auto find = [&](std::string_view name) {
    return std::ranges::find_if(known,
                                [&](const auto& each) { return each.array.name == name && each.array.is_result; });
  };
  for (const auto& [name, path] : files) {
    std::vector<float>& values = arrays.outputs[name];
    if (const auto found = find(name); found != known.end())
      values.resize(static_cast<std::size_t>(count_of(found->array, call.rows, columns)));
  }
  arrays.outputs[std::string(entry.output.name)].resize(static_cast<std::size_t>(call.rows * columns));
  for (auto& [name, values] : arrays.outputs) call.outputs[name] = values;
  if (const Status status = call_kernel(*kernel, *abi, call); !status) return named(status.error());

  std::vector<NewFile> written;
  for (const auto& [name, path] : files) {
    TRIREME_TRY(file, write_npy(path, npy_type_for(Type::F32), shape_of(find(name)->array, arrays.shape),
                                std::as_bytes(std::span(arrays.outputs[name]))));
    written.push_back(std::move(file));
  }
  for (NewFile& file : written) TRIREME_CHECK(file.commit());
  const auto& [name, version, backward] = kernel->info();
  fmt::print("{} {}.{}.{}{}: {} rows of {} columns, in wasmtime {}\n", name, version[0], version[1], version[2],
             options.backward ? " backward" : "", call.rows, columns, host.version());
  return fine;
}

}  // namespace trireme::cli

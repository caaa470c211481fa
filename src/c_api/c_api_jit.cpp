// The part of the C ABI for kernels of the caller's own: trireme/jit.hpp in C.
#include "c_api/guard.hpp"
#include "trireme/jit.hpp"

namespace trireme::c_api {
namespace {

struct CodeObject {
  jit::Compiled compiled;
  std::string description;
};
struct KernelObject {
  jit::Kernel kernel;
  std::string description;
};
using JitCodes = Handles<CodeObject>;
using JitKernels = Handles<KernelObject>;

static_assert(sizeof(int) == sizeof(int32_t));

std::string text_or(const char* text, const char* otherwise) { return text ? text : otherwise; }

Result<jit::Options> jit_options_of(const trireme_jit_options* given_options) {
  if (!given_options) return jit::Options{};
  TRIREME_TRY(from, versioned(given_options, "options", sizeof(trireme_jit_options)));
  jit::Options to{.device = from.device,
                  .arch = text_or(from.arch, ""),
                  .file = text_or(from.file, "kernel.cu"),
                  .nvrtc = text_or(from.nvrtc, "")};
  TRIREME_CHECK(each_of(from.flags, from.flag_count, "flags", [&](const char* flag) -> Status {
    TRIREME_CHECK(given(flag, "a flag"));
    to.flags.emplace_back(flag);
    return Done{};
  }));
  TRIREME_CHECK(each_of(from.headers, from.header_count, "headers", [&](const trireme_jit_header& header) -> Status {
    TRIREME_CHECK(given(header.name, "a name in headers"));
    TRIREME_CHECK(given(header.text, "a text in headers"));
    to.headers.push_back({header.name, header.text});
    return Done{};
  }));
  return to;
}

// A source, a name and options, as three functions take them.
struct Request {
  std::string_view text, name;
  jit::Options options;
};
Result<Request> request_of(const char* text, std::size_t bytes, const char* name, const trireme_jit_options* options) {
  if (bytes > 0) TRIREME_CHECK(given(text, "text"));
  TRIREME_CHECK(given(name, "name"));
  TRIREME_TRY(converted, jit_options_of(options));
  return Request{{text, bytes}, name, std::move(converted)};
}

Status give_kernel(Result<jit::Kernel> kernel, trireme_jit_kernel** out) {
  if (!kernel) return kernel.error();
  auto object = std::make_unique<KernelObject>(KernelObject{*kernel, kernel->describe()});
  *out = static_cast<trireme_jit_kernel*>(JitKernels::add(std::move(object)));
  return Done{};
}

Status give_facts(const jit::Facts& from, trireme_jit_facts* facts) {
  TRIREME_CHECK(versioned(facts, "facts", sizeof(trireme_jit_facts)));
  facts->registers = from.registers;
  facts->local_bytes = from.local_bytes;
  facts->spill_stores = from.spill_stores;
  facts->spill_loads = from.spill_loads;
  facts->shared_bytes = from.shared_bytes;
  facts->parameter_count = from.knows_parameters ? static_cast<int32_t>(from.parameter_bytes.size()) : -1;
  facts->parameter_bytes = from.parameter_bytes.data();
  return Done{};
}

jit::Extent extent_of(const int64_t (&sizes)[3]) {
  return {sizes[0], sizes[1] ? sizes[1] : 1, sizes[2] ? sizes[2] : 1};
}

}  // namespace
}  // namespace trireme::c_api

using namespace trireme;
using namespace trireme::c_api;

trireme_status trireme_jit_compile(const char* source, size_t bytes, const char* name,
                                   const trireme_jit_options* options, trireme_jit_code** code) {
  return guarded([&]() -> Status {
    TRIREME_CHECK(given(code, "code"));
    TRIREME_TRY(request, request_of(source, bytes, name, options));
    TRIREME_TRY(compiled, jit::compile(request.text, request.name, request.options));
    std::string description = describe(compiled);
    auto object = std::make_unique<CodeObject>(CodeObject{std::move(compiled), std::move(description)});
    *code = static_cast<trireme_jit_code*>(JitCodes::add(std::move(object)));
    return Done{};
  });
}

trireme_status trireme_jit_code_compiled(const trireme_jit_code* code, trireme_jit_compiled* compiled) {
  return guarded([&]() -> Status {
    TRIREME_TRY(object, JitCodes::get(code, "code"));
    TRIREME_CHECK(versioned(compiled, "compiled", sizeof(trireme_jit_compiled)));
    const jit::Compiled& from = object->compiled;
    compiled->name = from.name.c_str();
    compiled->arch = from.arch.c_str();
    compiled->ptx = from.ptx.c_str();
    compiled->cubin = from.cubin.empty() ? nullptr : from.cubin.data();
    compiled->cubin_bytes = from.cubin.size();
    compiled->log = from.log.c_str();
    compiled->not_kept = from.not_kept.c_str();
    compiled->from_cache = from.from_cache;
    return Done{};
  });
}

trireme_status trireme_jit_code_facts(const trireme_jit_code* code, trireme_jit_facts* facts) {
  return guarded([&]() -> Status {
    TRIREME_TRY(object, JitCodes::get(code, "code"));
    return give_facts(object->compiled.facts, facts);
  });
}

trireme_status trireme_jit_code_describe(const trireme_jit_code* code, const char** text) {
  return guarded([&]() -> Status {
    TRIREME_TRY(object, JitCodes::get(code, "code"));
    TRIREME_CHECK(given(text, "text"));
    *text = object->description.c_str();
    return Done{};
  });
}

trireme_status trireme_jit_code_destroy(trireme_jit_code* code) {
  return guarded([&] { return JitCodes::remove(code, "code"); });
}

trireme_status trireme_jit_compile_cached(const char* source, size_t bytes, const char* name,
                                          const trireme_jit_options* options, trireme_jit_kernel** kernel) {
  return guarded([&]() -> Status {
    TRIREME_CHECK(given(kernel, "kernel"));
    TRIREME_TRY(request, request_of(source, bytes, name, options));
    return give_kernel(jit::compile_cached(request.text, request.name, request.options), kernel);
  });
}

trireme_status trireme_jit_from_ptx(const char* text, size_t bytes, const char* name,
                                    const trireme_jit_options* options, trireme_jit_kernel** kernel) {
  return guarded([&]() -> Status {
    TRIREME_CHECK(given(kernel, "kernel"));
    TRIREME_TRY(request, request_of(text, bytes, name, options));
    return give_kernel(jit::from_ptx(std::string(request.text), request.name, request.options), kernel);
  });
}

trireme_status trireme_jit_kernel_facts(const trireme_jit_kernel* kernel, trireme_jit_facts* facts) {
  return guarded([&]() -> Status {
    TRIREME_TRY(object, JitKernels::get(kernel, "kernel"));
    return give_facts(object->kernel.facts(), facts);
  });
}

trireme_status trireme_jit_kernel_describe(const trireme_jit_kernel* kernel, const char** text) {
  return guarded([&]() -> Status {
    TRIREME_TRY(object, JitKernels::get(kernel, "kernel"));
    TRIREME_CHECK(given(text, "text"));
    *text = object->description.c_str();
    return Done{};
  });
}

trireme_status trireme_jit_kernel_blocks(const trireme_jit_kernel* kernel, uint32_t block_threads,
                                         uint32_t shared_bytes, int32_t* blocks_per_multiprocessor) {
  return guarded([&]() -> Status {
    TRIREME_TRY(object, JitKernels::get(kernel, "kernel"));
    TRIREME_CHECK(given(blocks_per_multiprocessor, "blocks_per_multiprocessor"));
    TRIREME_TRY(blocks, object->kernel.blocks_per_multiprocessor(block_threads, shared_bytes));
    *blocks_per_multiprocessor = blocks;
    return Done{};
  });
}

trireme_status trireme_jit_kernel_launch(const trireme_jit_kernel* kernel, const trireme_jit_launch* launch,
                                         const trireme_jit_argument* arguments, size_t argument_count) {
  return guarded([&]() -> Status {
    TRIREME_TRY(object, JitKernels::get(kernel, "kernel"));
    TRIREME_TRY(how, versioned(launch, "launch", sizeof(trireme_jit_launch)));
    std::vector<jit::Argument> list;
    list.reserve(argument_count);
    TRIREME_CHECK(each_of(arguments, argument_count, "arguments", [&](const trireme_jit_argument& each) -> Status {
      TRIREME_CHECK(given(each.data, "an argument's data"));
      list.push_back({each.data, each.bytes});
      return Done{};
    }));
    return object->kernel.launch_packed(extent_of(how.grid), extent_of(how.block), how.shared_bytes, how.stream, list);
  });
}

trireme_status trireme_jit_kernel_destroy(trireme_jit_kernel* kernel) {
  return guarded([&] { return JitKernels::remove(kernel, "kernel"); });
}

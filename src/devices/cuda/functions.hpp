// The entry points of libcuda that we call, declared here so that no CUDA header is needed.
// Names carry the ABI version (_v2) that cuda.h maps them to; numbers are cuda.h's, which never change.
#pragma once
#include <dlfcn.h>

#include "devices/cuda/driver.hpp"

namespace trireme::cuda {

enum : int {
  Success = 0,
  ErrorOutOfMemory = 2,
  ErrorNotInitialized = 3,
  ErrorNoDevice = 100,
  ErrorUnsupportedPtxVersion = 222
};
enum DeviceAttribute : int {
  MultiprocessorCount = 16,
  L2CacheSize = 38,
  MaxThreadsPerMultiprocessor = 39,
  CapabilityMajor = 75,
  CapabilityMinor = 76,
  MaxSharedPerMultiprocessor = 81,
  MaxRegistersPerMultiprocessor = 82,
  MaxSharedPerBlockOptin = 97,
  ClusterLaunch = 120,
};
enum FunctionAttribute : int {
  MaxThreadsPerBlock = 0,
  SharedSizeBytes = 1,
  LocalSizeBytes = 3,
  NumRegs = 4,
  MaxDynamicSharedSizeBytes = 8,
  NonPortableClusterSizeAllowed = 14,
};
enum LinkInput : int { InputPtx = 1 };
enum JitOption : int { InfoLogBuffer = 3, InfoLogBufferSizeBytes = 4, ErrorLogBuffer = 5, ErrorLogBufferSizeBytes = 6 };
enum LaunchAttributeId : int { ClusterDimension = 4, ProgrammaticStreamSerialization = 6 };
inline constexpr int pointer_device_ordinal = 9;
inline constexpr unsigned stream_non_blocking = 1;
inline constexpr int capture_thread_local = 1;

struct LaunchAttribute {
  LaunchAttributeId id;
  char pad[4];
  union {
    char bytes[64];
    unsigned cluster[3];
    int flag;
  };
};
struct LaunchConfig {
  unsigned grid[3], block[3], shared_bytes;
  StreamHandle stream;
  LaunchAttribute* attributes;
  unsigned attribute_count;
};
static_assert(sizeof(LaunchAttribute) == 72 && sizeof(LaunchConfig) == 56, "as in cuda.h");

struct Library {
  void* handle;
  const char* missing = nullptr;  // the first function it does not have
};

enum class Needed { Always, WhereThere };  // what only later drivers have may be missing: `call` is null

template <typename Signature>
struct Entry {
  const char* name;
  Signature* call;
  Entry(Library& library, const char* name, Needed needed = Needed::Always)
      : name(name), call(reinterpret_cast<Signature*>(dlsym(library.handle, name))) {
    if (!call && needed == Needed::Always && !library.missing) library.missing = name;
  }
};

using Address = std::uint64_t;
struct LinkState;      // the driver's linker at work
struct RecordedGraph;  // what a capture gives, before it is instantiated

struct Functions {
  Library library;
  explicit Functions(Library library) : library(library) {}

  // clang-format off
  Entry<int(unsigned)> init{library, "cuInit"};
  Entry<int(int, const char**)> error_name{library, "cuGetErrorName"};
  Entry<int(int, const char**)> error_string{library, "cuGetErrorString"};
  Entry<int(int*)> device_count{library, "cuDeviceGetCount"};
  Entry<int(int*, int)> device_get{library, "cuDeviceGet"};
  Entry<int(char*, int, int)> device_name{library, "cuDeviceGetName"};
  Entry<int(int*, int, int)> device_attribute{library, "cuDeviceGetAttribute"};
  Entry<int(std::size_t*, int)> device_memory{library, "cuDeviceTotalMem_v2"};
  Entry<int(ContextHandle*, int)> context_retain{library, "cuDevicePrimaryCtxRetain"};
  Entry<int(ContextHandle*)> context_get{library, "cuCtxGetCurrent"};
  Entry<int(ContextHandle)> context_push{library, "cuCtxPushCurrent_v2"};
  Entry<int(ContextHandle*)> context_pop{library, "cuCtxPopCurrent_v2"};
  Entry<int()> context_synchronize{library, "cuCtxSynchronize"};
  Entry<int(ModuleHandle*, const void*, unsigned, int*, void**)> module_load{library, "cuModuleLoadDataEx"};
  Entry<int(unsigned, int*, void**, LinkState**)> link_create{library, "cuLinkCreate_v2"};
  Entry<int(LinkState*, int, void*, std::size_t, const char*, unsigned, int*, void**)> link_add{library, "cuLinkAddData_v2"};
  Entry<int(LinkState*, void**, std::size_t*)> link_complete{library, "cuLinkComplete"};
  Entry<int(LinkState*)> link_destroy{library, "cuLinkDestroy"};
  Entry<int(ModuleHandle)> module_unload{library, "cuModuleUnload"};
  Entry<int(Function*, ModuleHandle, const char*)> module_function{library, "cuModuleGetFunction"};
  Entry<int(Function, std::size_t, std::size_t*, std::size_t*)> function_parameter{library, "cuFuncGetParamInfo", Needed::WhereThere};
  Entry<int(int*, int, Function)> function_get{library, "cuFuncGetAttribute"};
  Entry<int(Function, int, int)> function_set{library, "cuFuncSetAttribute"};
  Entry<int(int*, Function, int, std::size_t)> occupancy{library, "cuOccupancyMaxActiveBlocksPerMultiprocessor"};
  Entry<int(const LaunchConfig*, Function, void**, void**)> launch{library, "cuLaunchKernelEx"};
  Entry<int(Address*, std::size_t)> memory_allocate{library, "cuMemAlloc_v2"};
  Entry<int(Address)> memory_free{library, "cuMemFree_v2"};
  Entry<int(Address, Address, std::size_t)> copy{library, "cuMemcpy"};
  Entry<int(Address, Address, std::size_t, StreamHandle)> copy_async{library, "cuMemcpyAsync"};
  Entry<int(Address, unsigned char, std::size_t)> fill{library, "cuMemsetD8_v2"};
  Entry<int(Address, unsigned char, std::size_t, StreamHandle)> fill_async{library, "cuMemsetD8Async"};
  Entry<int(void*, int, Address)> pointer_attribute{library, "cuPointerGetAttribute"};
  Entry<int(StreamHandle*, unsigned)> stream_create{library, "cuStreamCreate"};
  Entry<int(StreamHandle)> stream_destroy{library, "cuStreamDestroy_v2"};
  Entry<int(StreamHandle, int*)> stream_capturing{library, "cuStreamIsCapturing"};
  Entry<int(StreamHandle)> stream_synchronize{library, "cuStreamSynchronize"};
  Entry<int(EventHandle*, unsigned)> event_create{library, "cuEventCreate"};
  Entry<int(EventHandle)> event_destroy{library, "cuEventDestroy_v2"};
  Entry<int(EventHandle, StreamHandle)> event_record{library, "cuEventRecord"};
  Entry<int(EventHandle)> event_synchronize{library, "cuEventSynchronize"};
  Entry<int(float*, EventHandle, EventHandle)> event_elapsed{library, "cuEventElapsedTime"};
  Entry<int(StreamHandle, int)> capture_begin{library, "cuStreamBeginCapture_v2"};
  Entry<int(StreamHandle, RecordedGraph**)> capture_end{library, "cuStreamEndCapture"};
  Entry<int(GraphHandle*, RecordedGraph*, std::uint64_t)> graph_instantiate{library, "cuGraphInstantiateWithFlags"};
  Entry<int(RecordedGraph*)> recorded_destroy{library, "cuGraphDestroy"};
  Entry<int(GraphHandle, StreamHandle)> graph_launch{library, "cuGraphLaunch"};
  Entry<int(GraphHandle)> graph_destroy{library, "cuGraphExecDestroy"};
  // clang-format on

  Error failure(const char* function, int code) const;

  // Calls one of the above; an error names it.
  template <typename... Parameters, typename... Arguments>
  Status operator()(const Entry<int(Parameters...)>& entry, Arguments... arguments) const {
    if (int code = entry.call(arguments...); code != Success) return failure(entry.name, code);
    return Done{};
  }
};

}  // namespace trireme::cuda

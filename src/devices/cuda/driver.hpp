// The CUDA driver, opened at run time: nothing of CUDA is needed to build, and only libcuda.so.1 to run.
//
//   const cuda::Driver* driver = cuda::Driver::instance().value();
//   const cuda::Device& device = *driver->device(0).value();
//   cuda::Module module = device.load(ptx_text).value();
//   cuda::Function function = device.function(module, "rows").value();
//   void* params[] = {&pointer, &count};
//   device.launch(function, {.grid = {1024}, .block = {128}, .stream = stream}, params).value();
//
// Every call makes the device's primary context current for its own duration, so any thread may call at any time and a
// caller's own context is left as it was. `launch` and the asynchronous calls neither allocate nor lock nor wait.
// Messages name the function, the error and its number: "cuMemAlloc_v2: CUDA_ERROR_OUT_OF_MEMORY (2): out of memory".
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trireme/result.hpp"

namespace trireme {
class KernelCache;
}

namespace trireme::cuda {

// The driver's own pointers under names of ours: a CUstream or a cudaStream_t is a StreamHandle by reinterpret_cast.
using ContextHandle = struct ContextTag*;
using ModuleHandle = struct ModuleTag*;
using Function = struct FunctionTag*;    // lives as long as its module
using StreamHandle = struct StreamTag*;  // null: the default stream
using EventHandle = struct EventTag*;
using GraphHandle = struct GraphTag*;  // instantiated

class Device;
void release(const Device& device, ModuleHandle);
void release(const Device& device, StreamHandle);
void release(const Device& device, EventHandle);
void release(const Device& device, GraphHandle);
void release(const Device& device, void* memory);

template <typename Handle>
class Owned {
 public:
  Owned() = default;
  Owned(const Device* device, Handle handle) : device_(device), handle_(handle) {}
  Owned(Owned&& other) noexcept : device_(other.device_), handle_(std::exchange(other.handle_, nullptr)) {}
  Owned& operator=(Owned&& other) noexcept {
    std::swap(device_, other.device_), std::swap(handle_, other.handle_);
    return *this;
  }
  ~Owned() {
    if (handle_) release(*device_, handle_);
  }
  Handle get() const { return handle_; }

 private:
  const Device* device_ = nullptr;
  Handle handle_ = nullptr;
};
using Stream = Owned<StreamHandle>;
using Event = Owned<EventHandle>;
using Graph = Owned<GraphHandle>;
using Memory = Owned<void*>;

// Code on a device. Copies share it, and the last one unloads it.
class Module {
 public:
  Module() = default;
  Module(const Device* device, ModuleHandle handle)
      : owned_(std::make_shared<const Owned<ModuleHandle>>(device, handle)) {}
  ModuleHandle get() const { return owned_ ? owned_->get() : nullptr; }

 private:
  friend class Modules;
  std::shared_ptr<const Owned<ModuleHandle>> owned_;
};

struct DeviceFacts {
  int ordinal = 0;
  std::string name;
  int capability = 0;  // 10 * major + minor: 90 for an H200
  int multiprocessors = 0;
  int threads_per_multiprocessor = 0;
  int registers_per_multiprocessor = 0;
  int shared_bytes_per_multiprocessor = 0;
  int shared_bytes_per_block = 0;  // with the opt-in that `allow_shared` makes
  int l2_bytes = 0;
  bool clusters = false;
  std::size_t memory_bytes = 0;
};

struct FunctionFacts {
  int registers = 0;    // a thread
  int local_bytes = 0;  // a thread: spills and arrays
  int static_shared_bytes = 0;
  int max_dynamic_shared_bytes = 0;  // what a launch may ask for now
  int max_threads = 0;               // a block
};

struct Launch {
  std::array<std::uint32_t, 3> grid{}, block{};  // 0 counts as 1
  std::uint32_t shared_bytes = 0;                // dynamic
  std::uint32_t cluster = 0;                     // blocks along x; 0: none stated
  bool overlap_previous = false;  // may start before the stream's previous kernel ends (griddepcontrol.wait awaits it)
  StreamHandle stream = nullptr;
};

struct Functions;  // the driver's entry points
class Modules;
std::string spelled(int version);  // "CUDA 12.8"

class Driver {
 public:
  // The process's driver. An error is NoDevice (no library, or no GPU), Unsupported (too old) or Driver.
  static Result<const Driver*> instance();
  static Result<std::unique_ptr<const Driver>> load(const char* library, KernelCache& cache);
  ~Driver();

  int version() const { return version_; }  // 12080: CUDA 12.8
  int device_count() const { return static_cast<int>(devices_.size()); }
  Result<const Device*> device(int ordinal) const;

 private:
  Driver();
  friend class Device;
  std::unique_ptr<Functions> functions_;
  int version_ = 0;
  std::vector<std::unique_ptr<Device>> devices_;
};

class Device {
 public:
  const DeviceFacts& facts() const { return facts_; }

  ~Device();

  // Code. PTX comes through the kernel cache (modules.hpp), and is shared with everybody who loaded the same text. A
  // refusal carries the compiler's log.
  Result<Module> load(const std::string& ptx) const;
  Modules& modules() const { return *modules_; }
  Result<Function> function(const Module& module, const char* name) const;
  Result<FunctionFacts> function_facts(Function function) const;  // forces loading, so that capture may follow
  std::optional<std::vector<int>> parameter_bytes(Function function) const;  // where the driver can tell: from 12.4 on
  Status allow_shared(Function function, std::uint32_t bytes) const;         // dynamic shared memory beyond 48 KiB
  Status allow_large_clusters(Function function) const;                      // of 16 blocks
  Result<int> blocks_per_multiprocessor(Function function, std::uint32_t threads, std::uint32_t shared_bytes) const;
  Status launch(Function function, const Launch& how, void** params) const;

  // Memory. Either side of a copy may be the host's; fill writes bytes. `copy` and `fill` are done when they return.
  Result<Memory> allocate(std::size_t bytes) const;
  Status copy(void* to, const void* from, std::size_t bytes) const;
  Status copy_async(void* to, const void* from, std::size_t bytes, StreamHandle stream) const;
  Status fill(void* memory, std::uint8_t byte, std::size_t bytes) const;
  Status fill_async(void* memory, std::uint8_t byte, std::size_t bytes, StreamHandle stream) const;
  Result<int> device_of(const void* memory) const;  // the ordinal; an error for memory the driver does not know

  // Order and time.
  Result<Stream> stream() const;  // it does not wait for the default stream, nor that for it
  Result<bool> is_capturing(StreamHandle stream) const;
  Status synchronize(StreamHandle stream) const;
  Status synchronize() const;  // everything on this device
  Result<Event> event() const;
  Status record(const Event& event, StreamHandle stream) const;
  Status synchronize(const Event& event) const;
  Result<float> milliseconds(const Event& from, const Event& to) const;

  // Graphs. `capture` records what `work` (returning Status) puts on the stream, instead of running it.
  template <typename Work>
  Result<Graph> capture(StreamHandle stream, Work&& work) const {
    TRIREME_CHECK(begin_capture(stream));
    Status done = work();
    Result<Graph> graph = end_capture(stream);  // also after a failure: the stream must leave capture mode
    if (!done) return done.error();
    return graph;
  }
  Status launch(const Graph& graph, StreamHandle stream) const;

 private:
  friend class Driver;
  friend class Current;
  friend class Modules;
  friend void release(const Device&, ModuleHandle);
  friend void release(const Device&, StreamHandle);
  friend void release(const Device&, EventHandle);
  friend void release(const Device&, GraphHandle);
  friend void release(const Device&, void*);
  Device(const Functions& functions, int driver_version, KernelCache& cache);
  Status open(int ordinal);
  Status begin_capture(StreamHandle stream) const;
  Result<Graph> end_capture(StreamHandle stream) const;

  const Functions& cu_;
  int driver_version_;
  ContextHandle context_ = nullptr;
  DeviceFacts facts_;
  std::unique_ptr<Modules> modules_;
};

}  // namespace trireme::cuda

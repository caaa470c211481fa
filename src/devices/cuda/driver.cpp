// Calls into libcuda, each inside the device's own context.
#include "devices/cuda/driver.hpp"

#include <pthread.h>

#include <algorithm>
#include <mutex>

#include "devices/cuda/current.hpp"
#include "devices/cuda/modules.hpp"

namespace trireme::cuda {
namespace {

// cuLaunchKernelEx came with CUDA 11.8 (driver 520); everything else we call is older.
constexpr int oldest_version = 11080;

Address address(const void* pointer) { return reinterpret_cast<Address>(pointer); }

// What the device answers to everything from then on, once a kernel has gone wrong.
bool is_sticky(int code) {
  return code == 214 || code == 220 || code == 700 || code == 702 || (code >= 710 && code <= 720);
}

}  // namespace

bool in_forked_child = false;

std::string spelled(int version) {
  return "CUDA " + std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

Error Functions::failure(const char* function, int code) const {
  if (in_forked_child)
    return {Code::Driver,
            std::string(function) +
                ": this process was forked from one that had used CUDA, which does not work in the child; use CUDA "
                "after the fork only, or start a new process (spawn)"};
  const char *name = nullptr, *meaning = nullptr;
  error_name.call(code, &name);
  error_string.call(code, &meaning);
  std::string message =
      std::string(function) + ": " + (name ? name : "unknown error") + " (" + std::to_string(code) + ")";
  if (meaning) message += std::string(": ") + meaning;
  if (code == ErrorNotInitialized) message += "; a process that forked after using CUDA cannot use it in the child";
  if (is_sticky(code))
    message +=
        "; a kernel that ran earlier, perhaps another library's, broke this process's CUDA context: only a new "
        "process can use the GPU again";
  Code kind = code == ErrorOutOfMemory             ? Code::OutOfMemory
              : code == ErrorNoDevice              ? Code::NoDevice
              : code == ErrorUnsupportedPtxVersion ? Code::Unsupported
                                                   : Code::Driver;
  return {kind, std::move(message)};
}

Driver::Driver() = default;
Driver::~Driver() = default;  // the library and its contexts stay: others in this process may use them

Result<const Driver*> Driver::instance() {
  // Never destroyed: what a static object owns is released after us.
  static const auto* loaded = new Result<std::unique_ptr<const Driver>>(load("libcuda.so.1", KernelCache::process()));
  if (!*loaded) return loaded->error();
  return (*loaded)->get();
}

Result<std::unique_ptr<const Driver>> Driver::load(const char* library, KernelCache& cache) {
  void* handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    const char* why = dlerror();
    return Error{Code::NoDevice, std::string("the CUDA driver's library is missing: ") + (why ? why : library)};
  }
  // The version first: an old driver is called old, not incomplete.
  Library opened{handle};
  Entry<int(int*)> get_version(opened, "cuDriverGetVersion");
  std::unique_ptr<Driver> driver(new Driver);
  if (!get_version.call || get_version.call(&driver->version_) != Success)
    return Error{Code::Driver,
                 std::string(library) + " is not the CUDA driver: cuDriverGetVersion is missing or fails"};
  if (driver->version_ < oldest_version)
    return Error{Code::Unsupported, std::string(library) + " is the driver of " + spelled(driver->version_) +
                                        "; at least " + spelled(oldest_version) + " (driver 520) is needed"};
  driver->functions_ = std::make_unique<Functions>(opened);
  const Functions& cu = *driver->functions_;
  if (cu.library.missing)
    return Error{Code::Driver,
                 std::string(library) + " (" + spelled(driver->version_) + ") has no " + cu.library.missing};
  TRIREME_CHECK(cu(cu.init, 0u));
  int count = 0;
  TRIREME_CHECK(cu(cu.device_count, &count));
  if (count == 0) return Error{Code::NoDevice, std::string(library) + " sees no GPU"};
  driver->devices_.resize(static_cast<std::size_t>(count));
  for (auto& device : driver->devices_) device.reset(new Device(cu, driver->version_, cache));
  static std::once_flag once;
  std::call_once(once, [] { pthread_atfork(nullptr, nullptr, [] { in_forked_child = true; }); });
  return std::unique_ptr<const Driver>(std::move(driver));
}

Result<const Device*> Driver::device(int ordinal) const {
  if (ordinal < 0 || ordinal >= device_count())
    return Error{Code::NoDevice, "there is no CUDA device " + std::to_string(ordinal) + "; they are numbered 0 to " +
                                     std::to_string(device_count() - 1)};
  if (in_forked_child) return functions_->failure("cuInit", ErrorNotInitialized);
  static std::mutex mutex;
  std::lock_guard lock(mutex);
  Device& device = *devices_[static_cast<std::size_t>(ordinal)];
  if (!device.context_) TRIREME_CHECK(device.open(ordinal));
  return &device;
}

Device::Device(const Functions& functions, int driver_version, KernelCache& cache)
    : cu_(functions), driver_version_(driver_version), modules_(std::make_unique<Modules>(*this, cache)) {}
Device::~Device() = default;
Result<Module> Device::load(const std::string& ptx) const { return modules_->load(ptx); }

// Reads the facts, then retains the primary context for the life of the process: the one that the CUDA runtime, and so
// every framework, uses.
Status Device::open(int ordinal) {
  int device = 0, major = 0, minor = 0, clusters = 0;
  TRIREME_CHECK(cu_(cu_.device_get, &device, ordinal));
  char name[256] = {};
  TRIREME_CHECK(cu_(cu_.device_name, name, static_cast<int>(sizeof name), device));
  const std::pair<DeviceAttribute, int*> attributes[] = {
      {CapabilityMajor, &major},
      {CapabilityMinor, &minor},
      {MultiprocessorCount, &facts_.multiprocessors},
      {MaxThreadsPerMultiprocessor, &facts_.threads_per_multiprocessor},
      {MaxRegistersPerMultiprocessor, &facts_.registers_per_multiprocessor},
      {MaxSharedPerMultiprocessor, &facts_.shared_bytes_per_multiprocessor},
      {MaxSharedPerBlockOptin, &facts_.shared_bytes_per_block},
      {L2CacheSize, &facts_.l2_bytes},
      {ClusterLaunch, &clusters},
  };
  for (const auto& [attribute, value] : attributes) TRIREME_CHECK(cu_(cu_.device_attribute, value, attribute, device));
  TRIREME_CHECK(cu_(cu_.device_memory, &facts_.memory_bytes, device));
  facts_.ordinal = ordinal;
  facts_.name = name;
  facts_.capability = 10 * major + minor;
  facts_.clusters = clusters != 0;
  return cu_(cu_.context_retain, &context_, device);
}

Result<Function> Device::function(const Module& module, const char* name) const {
  Current current(*this);
  Function function = nullptr;
  Status found = current(cu_.module_function, &function, module.get(), name);
  if (!found) return Error{found.error().code, found.error().message + " ('" + name + "')"};
  return function;
}

Result<FunctionFacts> Device::function_facts(Function function) const {
  Current current(*this);
  FunctionFacts facts;
  const std::pair<FunctionAttribute, int*> attributes[] = {{NumRegs, &facts.registers},
                                                           {LocalSizeBytes, &facts.local_bytes},
                                                           {SharedSizeBytes, &facts.static_shared_bytes},
                                                           {MaxDynamicSharedSizeBytes, &facts.max_dynamic_shared_bytes},
                                                           {MaxThreadsPerBlock, &facts.max_threads}};
  for (const auto& [attribute, value] : attributes)
    TRIREME_CHECK(current(cu_.function_get, value, attribute, function));
  return facts;
}

std::optional<std::vector<int>> Device::parameter_bytes(Function function) const {
  if (!cu_.function_parameter.call) return {};
  Current current(*this);
  std::vector<int> sizes;
  std::size_t offset = 0, size = 0;
  while (current(cu_.function_parameter, function, sizes.size(), &offset, &size))
    sizes.push_back(static_cast<int>(size));
  return sizes;  // the first number that is refused is one too many
}

// Functions are shared: what one user needs, another one's smaller need must not take away.
Status Device::allow_shared(Function function, std::uint32_t bytes) const {
  static std::mutex mutex;
  std::lock_guard lock(mutex);
  Current current(*this);
  int allowed = 0, wanted = static_cast<int>(bytes);
  TRIREME_CHECK(current(cu_.function_get, &allowed, MaxDynamicSharedSizeBytes, function));
  if (allowed >= wanted) return Done{};
  return current(cu_.function_set, function, MaxDynamicSharedSizeBytes, wanted);
}
Status Device::allow_large_clusters(Function function) const {
  return Current(*this)(cu_.function_set, function, NonPortableClusterSizeAllowed, 1);
}
Result<int> Device::blocks_per_multiprocessor(Function function, std::uint32_t threads,
                                              std::uint32_t shared_bytes) const {
  int blocks = 0;
  TRIREME_CHECK(Current(*this)(cu_.occupancy, &blocks, function, static_cast<int>(threads), std::size_t{shared_bytes}));
  return blocks;
}

Status Device::launch(Function function, const Launch& how, void** params) const {
  LaunchAttribute attributes[2];
  LaunchConfig config = {.shared_bytes = how.shared_bytes, .stream = how.stream, .attributes = attributes};
  for (int axis = 0; axis < 3; ++axis) {
    config.grid[axis] = std::max(1u, how.grid[axis]);
    config.block[axis] = std::max(1u, how.block[axis]);
  }
  if (how.cluster) attributes[config.attribute_count++] = {.id = ClusterDimension, .cluster = {how.cluster, 1, 1}};
  if (how.overlap_previous) attributes[config.attribute_count++] = {.id = ProgrammaticStreamSerialization, .flag = 1};
  return Current(*this)(cu_.launch, &config, function, params, nullptr);
}

Result<Memory> Device::allocate(std::size_t bytes) const {
  Address memory = 0;
  // The driver refuses 0 bytes; an empty tensor still wants an address.
  Status done = Current(*this)(cu_.memory_allocate, &memory, std::max<std::size_t>(bytes, 1));
  if (!done) return Error{done.error().code, done.error().message + " (" + std::to_string(bytes) + " bytes)"};
  return Memory(this, reinterpret_cast<void*>(memory));
}
// The driver stages small copies from pageable memory, and fills, and returns before they are done; a stream that does
// not wait for the default stream would overtake them.
Status Device::copy(void* to, const void* from, std::size_t bytes) const {
  TRIREME_CHECK(Current(*this)(cu_.copy, address(to), address(from), bytes));
  return synchronize(nullptr);
}
Status Device::copy_async(void* to, const void* from, std::size_t bytes, StreamHandle stream) const {
  return Current(*this)(cu_.copy_async, address(to), address(from), bytes, stream);
}
Status Device::fill(void* memory, std::uint8_t byte, std::size_t bytes) const {
  TRIREME_CHECK(Current(*this)(cu_.fill, address(memory), byte, bytes));
  return synchronize(nullptr);
}
Status Device::fill_async(void* memory, std::uint8_t byte, std::size_t bytes, StreamHandle stream) const {
  return Current(*this)(cu_.fill_async, address(memory), byte, bytes, stream);
}
Result<int> Device::device_of(const void* memory) const {
  int ordinal = 0;
  TRIREME_CHECK(
      Current(*this)(cu_.pointer_attribute, static_cast<void*>(&ordinal), pointer_device_ordinal, address(memory)));
  return ordinal;
}

Result<Stream> Device::stream() const {
  StreamHandle stream = nullptr;
  TRIREME_CHECK(Current(*this)(cu_.stream_create, &stream, stream_non_blocking));
  return Stream(this, stream);
}
Result<bool> Device::is_capturing(StreamHandle stream) const {
  int status = 0;
  TRIREME_CHECK(Current(*this)(cu_.stream_capturing, stream, &status));
  return status != 0;
}
Status Device::synchronize(StreamHandle stream) const { return Current(*this)(cu_.stream_synchronize, stream); }
Status Device::synchronize() const { return Current(*this)(cu_.context_synchronize); }
Result<Event> Device::event() const {
  EventHandle event = nullptr;
  TRIREME_CHECK(Current(*this)(cu_.event_create, &event, 0u));
  return Event(this, event);
}
Status Device::record(const Event& event, StreamHandle stream) const {
  return Current(*this)(cu_.event_record, event.get(), stream);
}
Status Device::synchronize(const Event& event) const { return Current(*this)(cu_.event_synchronize, event.get()); }
Result<float> Device::milliseconds(const Event& from, const Event& to) const {
  float result = 0;
  TRIREME_CHECK(Current(*this)(cu_.event_elapsed, &result, from.get(), to.get()));
  return result;
}

Status Device::begin_capture(StreamHandle stream) const {
  return Current(*this)(cu_.capture_begin, stream, capture_thread_local);
}
Result<Graph> Device::end_capture(StreamHandle stream) const {
  Current current(*this);
  RecordedGraph* recorded = nullptr;
  TRIREME_CHECK(current(cu_.capture_end, stream, &recorded));
  GraphHandle graph = nullptr;
  Status done = current(cu_.graph_instantiate, &graph, recorded, std::uint64_t{0});
  cu_.recorded_destroy.call(recorded);
  if (!done) return done.error();
  return Graph(this, graph);
}
Status Device::launch(const Graph& graph, StreamHandle stream) const {
  return Current(*this)(cu_.graph_launch, graph.get(), stream);
}

// At the end of a process the driver may be gone before us; nobody can act on its refusal.
void release(const Device& device, ModuleHandle module) { (void)Current(device)(device.cu_.module_unload, module); }
void release(const Device& device, StreamHandle stream) { (void)Current(device)(device.cu_.stream_destroy, stream); }
void release(const Device& device, EventHandle event) { (void)Current(device)(device.cu_.event_destroy, event); }
void release(const Device& device, GraphHandle graph) { (void)Current(device)(device.cu_.graph_destroy, graph); }
void release(const Device& device, void* memory) { (void)Current(device)(device.cu_.memory_free, address(memory)); }

}  // namespace trireme::cuda

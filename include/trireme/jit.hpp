// Kernels of your own, in CUDA C++ or PTX, beside Trireme's: compiled once, kept in memory and on disk, launched with
// arguments that are checked.
//
//   jit::Kernel scale = jit::compile_cached(source, "scale<float>").value();
//   scale.launch({blocks}, {256}, 0, stream, x, 2.0f, count).value();
//
// NVRTC is opened at run time, and only where CUDA C++ is compiled; docs/jit.md says where it is looked for. Kernels
// may be shared by threads, and copies share the code.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "trireme/export.hpp"
#include "trireme/result.hpp"

namespace trireme::ptx {
class Module;
}

namespace trireme::jit {

struct Header {
  std::string name, text;  // for #include <name>
};

struct Options {
  int device = 0;                       // the GPU that the kernel is for
  std::string arch = {};                // "sm_90"; the device's unless said
  std::vector<std::string> flags = {};  // NVRTC's: "-DWIDTH=4", "-I/a/folder", "--use_fast_math"
  std::vector<Header> headers = {};
  std::string file = "kernel.cu";  // what messages call the source; #include "…" looks beside it
  std::string nvrtc = {};          // the library's path; searched for unless given
};

// What the compiler made of a kernel. -1: not known.
struct Facts {
  int registers = -1;     // a thread
  int local_bytes = -1;   // a thread: spills and arrays that found no registers
  int spill_stores = -1;  // bytes, as the compiler counts them
  int spill_loads = -1;
  int shared_bytes = -1;  // static
  bool knows_parameters = false;
  std::vector<int> parameter_bytes = {};
};

struct Compiled {
  std::string name;  // as the code has it: mangled where it is C++'s
  std::string arch;
  std::string ptx;
  std::string cubin;  // empty where the architecture is newer than NVRTC: the driver compiles the PTX
  std::string log;    // warnings
  Facts facts = {};
  bool from_cache = false;
  std::string not_kept =
      {};  // why the cache does not keep it, such as an #include that a macro names; empty if it does
};

// Compiles without a GPU where `options.arch` is said. A name is an extern "C" one, or any C++ name of a __global__
// function, as one would write it: "normalise<float, 4>", "mine::kernel". An error has the compiler's log, with lines.
TRIREME_API Result<Compiled> compile(std::string_view source, std::string_view name, const Options& options = {});
TRIREME_API std::string describe(const Compiled& compiled);

struct Extent {
  std::int64_t x = 1, y = 1, z = 1;
};

struct Argument {
  const void* data;
  std::size_t bytes;
};

class TRIREME_API Kernel {
 public:
  Kernel(const Kernel&) = default;  // copies share everything; a move is a copy, so that no kernel is ever empty
  Kernel& operator=(const Kernel&) = default;

  // Puts the kernel on the stream (null: the default one; a cudaStream_t or CUstream) and does not wait. Arguments are
  // taken by value, and must have their parameters' number and sizes: a pointer is 8 bytes, an int 4.
  template <typename... Arguments>
  Status launch(Extent grid, Extent block, std::uint32_t shared_bytes, void* stream,
                const Arguments&... arguments) const {
    static_assert((std::is_trivially_copyable_v<Arguments> && ...), "arguments are copied to the device as they are");
    const Argument list[] = {{&arguments, sizeof arguments}..., {nullptr, 0}};
    return launch_packed(grid, block, shared_bytes, stream, std::span(list, sizeof...(arguments)));
  }
  // The same for arguments that are known only at run time.
  Status launch_packed(Extent grid, Extent block, std::uint32_t shared_bytes, void* stream,
                       std::span<const Argument> arguments) const;

  const std::string& name() const;
  const Facts& facts() const;
  Result<int> blocks_per_multiprocessor(std::uint32_t block_threads, std::uint32_t shared_bytes) const;
  std::string describe() const;  // registers, spills, shared memory, occupancy

 private:
  friend struct Maker;
  struct State;
  explicit Kernel(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  std::shared_ptr<const State> state_;
};

TRIREME_API Result<Kernel> compile_cached(std::string_view source, std::string_view name, const Options& options = {});
TRIREME_API Result<Kernel> from_ptx(const std::string& text, std::string_view name, const Options& options = {});
Result<Kernel> from_builder(const ptx::Module& module, std::string_view name, const Options& options = {});

}  // namespace trireme::jit

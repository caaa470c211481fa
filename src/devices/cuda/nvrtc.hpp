// NVIDIA's compiler of CUDA C++ as a library, opened at run time.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "trireme/jit.hpp"

namespace trireme::cuda {

struct NvrtcFunctions;

class Nvrtc {
 public:
  // The library at `path`; if that is empty, TRIREME_NVRTC's; if that is not set, the first one found in this order:
  // already loaded or on the system's library path, CUDA_HOME and CUDA_PATH, /usr/local/cuda, Python's packages
  // (devices/wheels.hpp).
  static Result<const Nvrtc*> open(const std::string& path);
  ~Nvrtc();

  const std::string& path() const { return path_; }
  int version() const { return version_; }                          // 13040: NVRTC 13.4
  std::string name() const;                                         // "NVRTC 13.4"
  std::int64_t file_bytes() const { return file_bytes_; }           // tells builds of one version apart
  const std::vector<int>& architectures() const { return archs_; }  // 80, 86, 90 …

  struct Output {
    std::string lowered_name, ptx, cubin, log;
  };
  // `arch` is sm_NN, or compute_NN: then there is no cubin.
  Result<Output> compile(const std::string& source, const std::string& name, const std::string& arch,
                         const jit::Options& options) const;

 private:
  Nvrtc();
  static Result<std::unique_ptr<Nvrtc>> load(const std::string& path);
  std::unique_ptr<NvrtcFunctions> functions_;
  std::string path_;
  int version_ = 0;
  std::int64_t file_bytes_ = 0;
  std::vector<int> archs_;
};

// Where wheels and toolkits would have it, whether or not they do; for tests and messages.
std::vector<std::string> nvrtc_candidates();

}  // namespace trireme::cuda

// CUDA C++ to code: the steps behind trireme/jit.hpp that need no GPU.
#pragma once
#include "devices/cache/kernel_cache.hpp"
#include "devices/cuda/nvrtc.hpp"

namespace trireme::cuda {

struct JitRequest {
  std::string source, name, arch;  // arch: sm_NN or compute_NN
  jit::Options options;
};

// Everything the code depends on: also the files that the source includes. Where it may depend on more, `unsure` says
// why, and the key is worth nothing.
struct JitKey {
  CacheKey key;
  std::string unsure;
};
Result<JitKey> jit_key(const Nvrtc& nvrtc, const JitRequest& request);

// The artifact, through the cache that `get_or_make` asks; compiled anew where its key cannot be told.
struct JitArtifact {
  std::shared_ptr<const std::string> bytes;
  Cached::From from;
  std::string not_kept;  // why; empty if it is
};
using GetOrMake = std::function<Result<Cached>(const CacheKey& key, const KernelCache::Make& make)>;
Result<JitArtifact> artifact_of(const Nvrtc& nvrtc, const JitRequest& request, const GetOrMake& get_or_make);

// What is kept: names, PTX, cubin, log and facts, in one.
Result<std::string> make_artifact(const Nvrtc& nvrtc, const JitRequest& request);
Result<jit::Compiled> read_artifact(const std::string& artifact);

Result<jit::Compiled> compile_in(KernelCache& cache, const JitRequest& request);

// What NVRTC should be asked for on a device: its own architecture, or PTX of the last one that NVRTC knows.
Result<std::string> arch_for(const Nvrtc& nvrtc, int capability);
std::vector<std::string> entries_of(std::string_view ptx);

}  // namespace trireme::cuda

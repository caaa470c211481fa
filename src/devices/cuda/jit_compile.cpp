#include "devices/cuda/jit_compile.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <sstream>

#include "devices/cuda/cubin.hpp"
#include "devices/cuda/jit_includes.hpp"

namespace trireme::cuda {
namespace {

void put(std::string& to, std::string_view text) {
  std::uint64_t size = text.size();
  to.append(reinterpret_cast<const char*>(&size), sizeof size).append(text);
}
bool take(std::string_view& from, std::string& text) {
  std::uint64_t size = 0;
  if (from.size() < sizeof size) return false;
  std::memcpy(&size, from.data(), sizeof size);
  from.remove_prefix(sizeof size);
  if (from.size() < size) return false;
  text = from.substr(0, size);
  from.remove_prefix(size);
  return true;
}

// ptxas tells of each kernel what it used:
//   ptxas info    : Function properties for NAME
//   ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
// Takes those lines out of the log, which leaves warnings, and returns the kernel's.
std::pair<int, int> take_spills(std::string& log, const std::string& kernel) {
  std::istringstream lines(log);
  std::string rest;
  std::pair<int, int> spills = {-1, -1};
  bool ours = false;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("ptxas ")) {
      rest += line + "\n";
      continue;
    }
    if (line.find("Function properties for ") != std::string::npos) ours = line.ends_with(" " + kernel);
    std::size_t frame = line.find(" bytes stack frame, ");
    if (ours && frame != std::string::npos)
      std::sscanf(line.c_str() + frame, " bytes stack frame, %d bytes spill stores, %d bytes spill loads",
                  &spills.first, &spills.second);
    if (line.find("warning") != std::string::npos) rest += line + "\n";
  }
  while (!rest.empty() && rest.back() == '\n') rest.pop_back();
  log = rest;
  return spills;
}

}  // namespace

std::vector<std::string> entries_of(std::string_view ptx) {
  std::vector<std::string> names;
  constexpr std::string_view word = ".entry ";
  for (std::size_t at = ptx.find(word); at != std::string_view::npos; at = ptx.find(word, at)) {
    at += word.size();
    names.emplace_back(ptx.substr(at, ptx.find_first_of("( \t\n{", at) - at));
  }
  return names;
}

Result<JitKey> jit_key(const Nvrtc& nvrtc, const JitRequest& request) {
  CacheKey key("cuda", fmt::format("{}, {}, {}", request.name, request.arch, nvrtc.name()));
  key.with("source", request.source).with("name", request.name).with("arch", request.arch);
  key.with("file", request.options.file).with("nvrtc", nvrtc.version()).with("nvrtc bytes", nvrtc.file_bytes());
  for (const std::string& flag : request.options.flags) key.with("flag", flag);
  for (const jit::Header& header : request.options.headers) key.with("header", header.name).with("text", header.text);
  TRIREME_TRY(included, included_by(request.source, request.options));
  for (const auto& [path, text] : included.files) key.with("included", path).with("text", text);
  return JitKey{key, included.unsure};
}

Result<JitArtifact> artifact_of(const Nvrtc& nvrtc, const JitRequest& request, const GetOrMake& get_or_make) {
  const std::string changed = request.options.file + ": a file that it includes changed while it was compiled";
  for (int attempt = 1;; ++attempt) {
    TRIREME_TRY(key, jit_key(nvrtc, request));
    if (!key.unsure.empty()) {
      TRIREME_TRY(made, make_artifact(nvrtc, request));
      return JitArtifact{std::make_shared<const std::string>(std::move(made)), Cached::From::Made, key.unsure};
    }
    // What was made of other files than the key says is not kept: an error never is.
    auto make = [&]() -> Result<std::string> {
      TRIREME_TRY(made, make_artifact(nvrtc, request));
      TRIREME_TRY(after, jit_key(nvrtc, request));
      if (after.key.hash() != key.key.hash()) return Error{Code::InvalidArgument, changed};
      return made;
    };
    Result<Cached> got = get_or_make(key.key, make);
    if (got) return JitArtifact{got->bytes, got->from, ""};
    if (got.error().message != changed || attempt == 3) return got.error();
  }
}

Result<std::string> make_artifact(const Nvrtc& nvrtc, const JitRequest& request) {
  TRIREME_TRY(made, nvrtc.compile(request.source, request.name, request.arch, request.options));
  std::vector<std::string> kernels = entries_of(made.ptx);
  if (std::find(kernels.begin(), kernels.end(), made.lowered_name) == kernels.end())
    return Error{Code::InvalidArgument, fmt::format("'{}' is no kernel: {} does not define it as a __global__ function",
                                                    request.name, request.options.file)};
  std::pair<int, int> spills = take_spills(made.log, made.lowered_name);
  std::string artifact;
  for (const std::string& part : {made.lowered_name, request.arch, made.ptx, made.cubin, made.log,
                                  std::to_string(spills.first), std::to_string(spills.second)})
    put(artifact, part);
  return artifact;
}

Result<jit::Compiled> read_artifact(const std::string& artifact) {
  jit::Compiled compiled;
  std::string spill_stores, spill_loads;
  std::string_view rest = artifact;
  for (std::string* part :
       {&compiled.name, &compiled.arch, &compiled.ptx, &compiled.cubin, &compiled.log, &spill_stores, &spill_loads})
    if (!take(rest, *part)) return Error{Code::Internal, "an artifact of the JIT does not read"};
  if (!compiled.cubin.empty()) {
    TRIREME_TRY(facts, read_cubin(compiled.cubin, compiled.name));
    compiled.facts = facts;
  }
  compiled.facts.spill_stores = std::atoi(spill_stores.c_str());
  compiled.facts.spill_loads = std::atoi(spill_loads.c_str());
  return compiled;
}

Result<jit::Compiled> compile_in(KernelCache& cache, const JitRequest& request) {
  TRIREME_TRY(nvrtc, Nvrtc::open(request.options.nvrtc));
  TRIREME_TRY(artifact, artifact_of(*nvrtc, request, [&](const CacheKey& key, const KernelCache::Make& make) {
                return cache.get_or_make(key, make);
              }));
  TRIREME_TRY(compiled, read_artifact(*artifact.bytes));
  compiled.from_cache = artifact.from != Cached::From::Made;
  compiled.not_kept = artifact.not_kept;
  return compiled;
}

Result<std::string> arch_for(const Nvrtc& nvrtc, int capability) {
  int best = 0;
  for (int arch : nvrtc.architectures())
    if (arch <= capability) best = std::max(best, arch);
  if (best == 0)
    return Error{Code::Unsupported, fmt::format("{} knows no architecture up to sm_{}", nvrtc.name(), capability)};
  return fmt::format("{}_{}", best == capability ? "sm" : "compute", best);
}

}  // namespace trireme::cuda

#include "devices/cuda/nvrtc.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>
#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <mutex>

#include "devices/cuda/functions.hpp"
#include "devices/wheels.hpp"
#include "support/environment.hpp"

namespace trireme::cuda {

struct NvrtcProgram;

struct NvrtcFunctions {
  Library library;
  // clang-format off
  Entry<int(int*, int*)> version{library, "nvrtcVersion"};
  Entry<const char*(int)> error_string{library, "nvrtcGetErrorString"};
  Entry<int(int*)> arch_count{library, "nvrtcGetNumSupportedArchs"};
  Entry<int(int*)> archs{library, "nvrtcGetSupportedArchs"};
  Entry<int(NvrtcProgram**, const char*, const char*, int, const char* const*, const char* const*)> create{library, "nvrtcCreateProgram"};
  Entry<int(NvrtcProgram**)> destroy{library, "nvrtcDestroyProgram"};
  Entry<int(NvrtcProgram*, const char*)> add_name{library, "nvrtcAddNameExpression"};
  Entry<int(NvrtcProgram*, const char*, const char**)> lowered_name{library, "nvrtcGetLoweredName"};
  Entry<int(NvrtcProgram*, int, const char* const*)> compile{library, "nvrtcCompileProgram"};
  Entry<int(NvrtcProgram*, std::size_t*)> log_size{library, "nvrtcGetProgramLogSize"};
  Entry<int(NvrtcProgram*, char*)> log{library, "nvrtcGetProgramLog"};
  Entry<int(NvrtcProgram*, std::size_t*)> ptx_size{library, "nvrtcGetPTXSize"};
  Entry<int(NvrtcProgram*, char*)> ptx{library, "nvrtcGetPTX"};
  Entry<int(NvrtcProgram*, std::size_t*)> cubin_size{library, "nvrtcGetCUBINSize"};
  Entry<int(NvrtcProgram*, char*)> cubin{library, "nvrtcGetCUBIN"};
  // clang-format on

  Error failure(const char* function, int code) const {
    return {Code::Driver, fmt::format("{}: {} ({})", function, error_string.call(code), code)};
  }
};

namespace {

constexpr int compilation_failed = 6;
constexpr const char* file_names[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2", "libnvrtc.so"};

std::string where_loaded(void* handle, const std::string& otherwise) {
  link_map* map = nullptr;
  return ::dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map && *map->l_name ? map->l_name : otherwise;
}

template <typename Size, typename Get>
std::string text_of(const Size& size, const Get& get, NvrtcProgram* program) {
  std::size_t bytes = 0;
  if (size.call(program, &bytes) != Success || bytes == 0) return {};
  std::string text(bytes, '\0');
  return get.call(program, text.data()) == Success ? text : std::string();
}

std::string without_nul(std::string text) {
  text.resize(std::min(text.size(), text.find('\0')));
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

// The name is looked up as if it stood in a file of its own, behind the source.
bool first_error_is_the_name(std::string_view log) {
  std::size_t error = log.find(": error");
  if (error == std::string_view::npos) return false;
  std::size_t line = log.rfind('\n', error);
  return log.substr(line == std::string_view::npos ? 0 : line + 1).starts_with("__nv_name_map");
}

}  // namespace

std::vector<std::string> nvrtc_candidates() {
  std::vector<std::string> folders, found;
  for (const char* toolkit : {"CUDA_HOME", "CUDA_PATH"})
    if (std::string home = environment::variable(toolkit); !home.empty()) folders.push_back(home);
  folders.push_back("/usr/local/cuda");
  for (const std::string& home : folders)
    for (const char* part : {"/lib64/libnvrtc.so.*", "/lib/libnvrtc.so.*", "/targets/*/lib/libnvrtc.so.*"})
      for (std::string& path : matching_files(home + part)) found.push_back(std::move(path));
  for (std::string& path : find_in_pythons("nvidia/*/lib/libnvrtc.so.*", "libnvrtc.so.*"))
    found.push_back(std::move(path));
  return found;
}

Nvrtc::Nvrtc() = default;
Nvrtc::~Nvrtc() = default;

std::string Nvrtc::name() const { return fmt::format("NVRTC {}.{}", version_ / 1000, version_ % 1000 / 10); }

Result<std::unique_ptr<Nvrtc>> Nvrtc::load(const std::string& path) {
  void* handle = ::dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL);
  if (!handle) return Error{Code::Unsupported, ::dlerror()};
  std::unique_ptr<Nvrtc> made(new Nvrtc);
  made->functions_.reset(new NvrtcFunctions{.library = {handle}});
  const NvrtcFunctions& rtc = *made->functions_;
  if (rtc.library.missing)  // which of them says how old it is; cubins came with 11.1
    return Error{Code::Unsupported,
                 fmt::format("{} has no {}; NVRTC 11.2 or later is needed", path, rtc.library.missing)};
  made->path_ = where_loaded(handle, path);
  if (struct stat about = {}; ::stat(made->path_.c_str(), &about) == 0) made->file_bytes_ = about.st_size;
  int major = 0, minor = 0, count = 0;
  rtc.version.call(&major, &minor);
  made->version_ = 1000 * major + 10 * minor;
  // NVRTC opens its other half by name, and finds it by a search path of its own; not so where a sanitizer's dlopen,
  // which has another, stands in between. What is open already is found in any case.
  std::string folder = made->path_.substr(0, made->path_.rfind('/') + 1);
  ::dlopen(fmt::format("{}libnvrtc-builtins.so.{}.{}", folder, major, minor).c_str(), RTLD_LAZY | RTLD_LOCAL);
  rtc.arch_count.call(&count);
  made->archs_.resize(static_cast<std::size_t>(std::max(count, 0)));
  if (count > 0) rtc.archs.call(made->archs_.data());
  return made;
}

Result<const Nvrtc*> Nvrtc::open(const std::string& path) {
  static std::mutex mutex;
  static auto* opened = new std::map<std::string, std::unique_ptr<Nvrtc>>;  // never closed: it has threads of its own
  std::lock_guard lock(mutex);
  TRIREME_TRY(said, environment::nvrtc());
  const std::string wanted = path.empty() ? said : path;
  if (auto found = opened->find(wanted); found != opened->end()) return found->second.get();
  auto keep = [&](std::unique_ptr<Nvrtc> library) { return ((*opened)[wanted] = std::move(library)).get(); };
  if (!wanted.empty()) {
    Result<std::unique_ptr<Nvrtc>> named = load(wanted);
    if (!named)
      return Error{Code::Unsupported,
                   fmt::format("NVRTC, as {} names it, cannot be used: {}",
                               path.empty() ? "TRIREME_NVRTC" : "the option", named.error().message)};
    return keep(std::move(*named));
  }
  std::vector<std::string> candidates(std::begin(file_names), std::end(file_names));
  for (std::string& each : nvrtc_candidates()) candidates.push_back(std::move(each));
  std::string refused;
  for (const std::string& each : candidates) {
    Result<std::unique_ptr<Nvrtc>> library = load(each);
    if (library) return keep(std::move(*library));
    if (each.front() == '/') refused += "\n" + library.error().message;  // a file that is there
  }
  return Error{
      Code::Unsupported,
      "NVRTC, which compiles CUDA C++, was not found on the library path, in CUDA_HOME, CUDA_PATH or "
      "/usr/local/cuda, nor in Python's packages; 'pip install nvidia-cuda-nvrtc' or a CUDA toolkit brings it, and "
      "TRIREME_NVRTC=/path/to/libnvrtc.so names it" +
          refused};
}

Result<Nvrtc::Output> Nvrtc::compile(const std::string& source, const std::string& name, const std::string& arch,
                                     const jit::Options& options) const {
  const NvrtcFunctions& rtc = *functions_;
  std::vector<const char*> names, texts, flags;
  for (const jit::Header& each : options.headers)
    names.push_back(each.name.c_str()), texts.push_back(each.text.c_str());
  std::string arch_flag = "-arch=" + arch;
  flags.push_back(arch_flag.c_str());
  if (version_ >= 12000) flags.push_back("--ptxas-options=-v");  // says what is spilled
  for (const std::string& each : options.flags) flags.push_back(each.c_str());

  NvrtcProgram* program = nullptr;
  if (int code = rtc.create.call(&program, source.c_str(), options.file.c_str(), static_cast<int>(names.size()),
                                 texts.data(), names.data()))
    return rtc.failure(rtc.create.name, code);
  auto destroy = [&rtc](NvrtcProgram* made) { rtc.destroy.call(&made); };
  std::unique_ptr<NvrtcProgram, decltype(destroy)> owner(program, destroy);
  if (int code = rtc.add_name.call(program, name.c_str())) return rtc.failure(rtc.add_name.name, code);
  int code = rtc.compile.call(program, static_cast<int>(flags.size()), flags.data());
  Output output;
  output.log = without_nul(text_of(rtc.log_size, rtc.log, program));
  if (code != Success) {
    if (first_error_is_the_name(output.log))
      return Error{
          Code::InvalidArgument,
          fmt::format("{} has no kernel '{}'; extern \"C\" names are given as they are, C++ names as one writes "
                      "them, such as scale<float>",
                      options.file, name)};
    if (code != compilation_failed && output.log.empty()) return rtc.failure(rtc.compile.name, code);
    return Error{code == compilation_failed ? Code::InvalidProgram : Code::InvalidArgument,
                 fmt::format("{} does not compile for {} by {}:\n{}", options.file, arch, this->name(), output.log)};
  }
  const char* lowered = nullptr;
  if (int failed = rtc.lowered_name.call(program, name.c_str(), &lowered))
    return rtc.failure(rtc.lowered_name.name, failed);
  output.lowered_name = lowered;
  output.ptx = without_nul(text_of(rtc.ptx_size, rtc.ptx, program));
  output.cubin = text_of(rtc.cubin_size, rtc.cubin, program);
  return output;
}

}  // namespace trireme::cuda

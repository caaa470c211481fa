#include "devices/cuda/jit_includes.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <set>
#include <string_view>

#include "devices/cache/folder.hpp"
#include "devices/cuda/include_scan.hpp"

namespace trireme::cuda {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t most_bytes = 64 << 20;  // of all files together; CUDA's own headers are 10 MB

// Flags of NVRTC 11 to 13 that name no file, nor anything else that is not in the cache's key. One that stands in none
// of these lists may, so that what it makes is not kept.
constexpr std::string_view plain_flags[] = {
    // clang-format off
    "--gpu-architecture", "-arch", "--device-c", "-dc", "--device-w", "-dw", "--relocatable-device-code", "-rdc",
    "--extensible-whole-program", "-ewp", "--device-debug", "-G", "--generate-line-info", "-lineinfo", "--dopt", "-dopt",
    "--Ofast-compile", "-Ofc", "--ptxas-options", "-Xptxas", "--maxrregcount", "-maxrregcount", "--ftz", "-ftz",
    "--prec-sqrt", "-prec-sqrt", "--prec-div", "-prec-div", "--fmad", "-fmad", "--use_fast_math", "-use_fast_math",
    "--extra-device-vectorization", "-extra-device-vectorization", "--modify-stack-limit", "-modify-stack-limit",
    "--dlink-time-opt", "-dlto", "--gen-opt-lto", "-gen-opt-lto", "--define-macro", "-D", "--undefine-macro", "-U",
    "--no-source-include", "-no-source-include", "--std", "-std", "--builtin-move-forward", "-builtin-move-forward",
    "--builtin-initializer-list", "-builtin-initializer-list", "--disable-warnings", "-w", "--restrict", "-restrict",
    "--device-as-default-execution-space", "-default-device", "--device-int128", "-device-int128",
    "--device-float128", "-device-float128", "--optimization-info", "-opt-info", "--display-error-number", "-err-no",
    "--no-display-error-number", "-no-err-no", "--diag-error", "-diag-error", "--diag-suppress", "-diag-suppress",
    "--diag-warn", "-diag-warn", "--brief-diagnostics", "-brief-diag", "--split-compile", "-split-compile",
    "--fdevice-syntax-only", "-fdevice-syntax-only", "--minimal", "-minimal", "--device-stack-protector",
    "-device-stack-protector", "--frandom-seed", "-frandom-seed", "--jump-table-density", "-jtd", "--no-cache",
    "-no-cache", "--version-ident", "-version-ident", "--fmax-errors", "-fmax-errors",
    // clang-format on
};

std::string trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t"), last = text.find_last_not_of(" \t");
  return first == std::string_view::npos ? "" : std::string(text.substr(first, last - first + 1));
}

struct Flags {
  std::vector<std::string> folders, before;  // --include-path, --pre-include
  std::string unsure;
};

Flags read_flags(const std::vector<std::string>& flags) {
  Flags found;
  for (std::size_t k = 0; k < flags.size(); ++k) {
    const std::string flag = trimmed(flags[k]);
    if (!flag.starts_with('-')) continue;  // the value of the one before
    const std::size_t equals = std::min(flag.find('='), flag.size());
    const std::string name = flag.substr(0, equals);
    auto value = [&] {
      if (equals < flag.size()) return trimmed(flag.substr(equals + 1));
      return k + 1 < flags.size() ? trimmed(flags[++k]) : std::string();
    };
    if (name == "--include-path" || name == "-I") found.folders.push_back(value());
    else if (name == "--pre-include" || name == "-include") found.before.push_back(value());
    else if (flag.starts_with("-I")) found.folders.push_back(trimmed(flag.substr(2)));
    else if ((name == "--std" || name == "-std") && (flag.ends_with("c++03") || flag.ends_with("c++98")))
      found.unsure = "C++03 reads its text otherwise";  // trigraphs, no raw strings
    else if (!flag.starts_with("-D") && !flag.starts_with("-U") &&
             std::ranges::find(plain_flags, name) == std::end(plain_flags))
      found.unsure = "what " + name + " reads is not known";
  }
  return found;
}

class Collector {
 public:
  explicit Collector(const jit::Options& options) : flags_(read_flags(options.flags)) { found_.unsure = flags_.unsure; }

  Result<Included> collect(const std::string& source, const jit::Options& options) {
    TRIREME_CHECK(follow(source, fs::path(options.file).parent_path()));
    for (const std::string& name : flags_.before) TRIREME_CHECK(look_for({name, true}, {}));
    for (const jit::Header& header : options.headers)
      TRIREME_CHECK(follow(header.text, fs::path(header.name).parent_path()));
    while (!waiting_.empty()) {
      const std::string path = std::move(waiting_.back());
      waiting_.pop_back();
      TRIREME_CHECK(follow(found_.files.at(path), fs::path(path).parent_path()));
    }
    if (found_.unsure.empty()) found_.unsure = unsure_of(scans_);
    return std::move(found_);
  }

 private:
  Status follow(const std::string& text, const fs::path& beside) {
    IncludeScan scan = scan_includes(text);
    for (const IncludeScan::Name& name : scan.names) TRIREME_CHECK(look_for(name, beside));
    scans_.push_back(std::move(scan));
    return Done{};
  }

  // In every folder, not the first that has it: #include_next and __has_include may mean the others.
  Status look_for(const IncludeScan::Name& name, const fs::path& beside) {
    if (name.text.empty()) return Done{};
    if (fs::path(name.text).is_absolute()) return add(name.text);
    if (name.quoted) TRIREME_CHECK(add(beside / name.text));
    for (const std::string& folder : flags_.folders) TRIREME_CHECK(add(fs::path(folder) / name.text));
    return Done{};
  }

  Status add(const fs::path& path) {
    // A pipe would wait for its writer, so nothing is opened before it is known to be a file.
    struct stat about = {};
    if (::stat(path.c_str(), &about) != 0) return absent(path);
    if (S_ISDIR(about.st_mode)) return Done{};  // passed over by compilers too
    if (!S_ISREG(about.st_mode))
      return Error{Code::InvalidArgument, "'" + path.string() + "', which is included, is not a regular file"};
    std::error_code none;
    const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
    if (!seen_.insert(fs::canonical(folder, none) / path.filename()).second) return Done{};
    return read(path);
  }

  Status read(const fs::path& path) {
    Descriptor file(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    if (!file) return absent(path);
    std::string text;
    char part[1 << 16];
    for (;;) {
      const ssize_t count = ::read(file.get(), part, sizeof part);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return doubt(path.string() + ": " + std::strerror(errno));
      if (count == 0) break;
      bytes_ += static_cast<std::size_t>(count);
      if (bytes_ > most_bytes) return doubt("it includes more than 64 MiB");
      text.append(part, static_cast<std::size_t>(count));
    }
    found_.files.emplace(path.string(), std::move(text));
    waiting_.push_back(path.string());
    return Done{};
  }

  // What is not there, or not for us, is not there for the compiler either.
  Status absent(const fs::path& path) {
    for (int usual : {ENOENT, ENOTDIR, EACCES, ELOOP, ENAMETOOLONG})
      if (errno == usual) return Done{};
    return doubt(path.string() + ": " + std::strerror(errno));
  }

  Status doubt(std::string why) {
    if (found_.unsure.empty()) found_.unsure = std::move(why);
    return Done{};
  }

  Flags flags_;
  Included found_;
  std::vector<IncludeScan> scans_;
  std::vector<std::string> waiting_;  // paths in found_.files whose own includes are not followed yet
  std::set<std::string> seen_;        // with the folder's own name, whatever way led there
  std::size_t bytes_ = 0;
};

}  // namespace

Result<Included> included_by(const std::string& source, const jit::Options& options) {
  return Collector(options).collect(source, options);
}

}  // namespace trireme::cuda

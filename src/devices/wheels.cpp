#include "devices/wheels.hpp"

#include <dlfcn.h>
#include <glob.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "devices/find_on_path.hpp"
#include "support/environment.hpp"

namespace trireme {
namespace {

namespace fs = std::filesystem;

// The nearest folder above that has one of the names; empty if there is none.
fs::path above(const fs::path& file, std::initializer_list<const char*> names) {
  for (fs::path folder = file.parent_path(); folder != folder.root_path(); folder = folder.parent_path())
    if (std::ranges::find(names, folder.filename()) != names.end()) return folder;
  return {};
}

// Nobody else can put a library there.
bool is_ours(const fs::path& folder) {
  struct stat facts = {};
  return ::stat(folder.c_str(), &facts) == 0 && (facts.st_uid == ::geteuid() || facts.st_uid == 0) &&
         (facts.st_mode & S_IWOTH) == 0;
}

}  // namespace

std::vector<std::string> matching_files(const std::string& pattern) {
  glob_t found = {};
  std::vector<std::string> paths;
  if (::glob(pattern.c_str(), GLOB_NOSORT, nullptr, &found) == 0)
    paths.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  ::globfree(&found);
  auto file_name = [](const std::string& path) { return path.c_str() + path.rfind('/') + 1; };
  std::ranges::sort(paths, [&](const std::string& a, const std::string& b) {
    const int names = ::strverscmp(file_name(a), file_name(b));
    return names != 0 ? names > 0 : ::strverscmp(a.c_str(), b.c_str()) > 0;
  });
  return paths;
}

std::vector<std::string> own_files() {
  std::vector<std::string> files;
  std::error_code none;
  Dl_info info = {};
  if (dladdr(reinterpret_cast<const void*>(&own_files), &info) && info.dli_fname)
    if (fs::path file = fs::canonical(info.dli_fname, none); !none) files.push_back(file);
  if (fs::path file = fs::canonical("/proc/self/exe", none); !none) files.push_back(file);
  return files;
}

std::vector<std::string> python_prefixes(const std::vector<std::string>& own_files) {
  std::vector<fs::path> prefixes;
  for (const std::string& file : own_files)  // PREFIX/lib/python3.11/site-packages
    if (fs::path packages = above(file, {"site-packages", "dist-packages"}); !packages.empty())
      prefixes.push_back(packages.parent_path().parent_path().parent_path());
  for (const char* active : {"VIRTUAL_ENV", "CONDA_PREFIX"})
    if (std::string prefix = environment::variable(active); !prefix.empty()) prefixes.emplace_back(prefix);
  if (const auto python = find_on_path("python3")) {
    prefixes.push_back(fs::path(*python).parent_path().parent_path());
    std::error_code none;
    if (fs::path file = fs::canonical(*python, none); !none) prefixes.push_back(file.parent_path().parent_path());
  }
  for (const std::string& file : own_files)  // TREE/build/release/trireme
    if (fs::path build = above(file, {"build"}); !build.empty())
      for (const char* made : {".venv", ".nvrtc"})
        if (fs::path prefix = build.parent_path() / made; is_ours(build.parent_path()) && is_ours(prefix))
          prefixes.push_back(std::move(prefix));
  if (std::string home = environment::variable("HOME"); !home.empty()) prefixes.push_back(fs::path(home) / ".local");
  prefixes.insert(prefixes.end(), {"/usr/local", "/usr"});
  std::vector<std::string> each_once;
  for (const fs::path& prefix : prefixes)
    if (std::ranges::find(each_once, prefix.string()) == each_once.end()) each_once.push_back(prefix.string());
  return each_once;
}

std::vector<std::string> find_in_pythons(const std::string& in_packages, const std::string& in_lib) {
  std::vector<std::string> found;
  auto add = [&](const std::string& pattern) {
    for (std::string& path : matching_files(pattern)) found.push_back(std::move(path));
  };
  for (const std::string& prefix : python_prefixes(own_files())) {
    for (const std::string& python : matching_files(prefix + "/lib/python3*"))
      for (const char* packages : {"/site-packages/", "/dist-packages/"}) add(python + packages + in_packages);
    if (!in_lib.empty()) add(prefix + "/lib/" + in_lib);
  }
  return found;
}

}  // namespace trireme

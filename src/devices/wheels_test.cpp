#include "devices/wheels.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "devices/cache/test_folder.hpp"
#include "support/environment_for_test.hpp"

namespace trireme {
namespace {

namespace fs = std::filesystem;

class Wheels : public CacheTest {
 protected:
  std::string place(const std::string& path) {
    fs::create_directories((root / path).parent_path());
    std::ofstream(root / path) << "";
    return (root / path).string();
  }
  std::vector<std::string> only_ours(std::vector<std::string> found) {
    std::erase_if(found, [&](const std::string& path) { return !path.starts_with(root.string()); });
    return found;
  }
};

TEST_F(Wheels, fault_50_OneOrderOfPlaces) {
  const std::string in_venv = place("venv/lib/python3.9/site-packages/it/libit.so.2"),
                    newer_python = place("venv/lib/python3.11/site-packages/it/libit.so.1"),
                    in_conda = place("conda/lib/libit.so.7"),
                    on_path = place("python/lib/python3.12/dist-packages/it/libit.so.3"),
                    at_home = place("home/.local/lib/python3.9/site-packages/it/libit.so.12"),
                    older = place("home/.local/lib/python3.9/site-packages/it/libit.so.9");
  fs::permissions(place("python/bin/python3"), fs::perms::all);
  Environment venv("VIRTUAL_ENV", root / "venv"), conda("CONDA_PREFIX", root / "conda"),
      path("PATH", root / "python/bin"), home("HOME", root / "home");
  EXPECT_EQ(only_ours(find_in_pythons("it/libit.so.*", "libit.so.*")),
            (std::vector{newer_python, in_venv, in_conda, on_path, at_home, older}));
}

TEST_F(Wheels, VersionsAreNumbers) {
  place("libit.so.9"), place("libit.so.13"), place("libit.so.11.2");
  std::vector<std::string> names;
  for (const std::string& each : matching_files((root / "libit.so.*").string()))
    names.push_back(fs::path(each).filename());
  EXPECT_EQ(names, (std::vector<std::string>{"libit.so.13", "libit.so.11.2", "libit.so.9"}));
}

// What `make` puts beside the build is found by what it builds, wherever that is called from; and what is installed
// beside the package is found by it, whether or not its environment is active.
TEST_F(Wheels, fault_50_BesideItself) {
  place("tree/.nvrtc/lib/python3.11/site-packages/nvidia/cu13/lib/libnvrtc.so.13");
  place("tree/.venv/bin/python");
  const std::string tool = place("tree/build/release/trireme");
  const std::string package = place("env/lib/python3.12/site-packages/trireme/_core.abi3.so");
  Environment none("VIRTUAL_ENV", std::nullopt);
  auto prefixes = [&](const std::string& own) { return only_ours(python_prefixes({own})); };
  EXPECT_EQ(prefixes(tool), (std::vector<std::string>{root / "tree/.venv", root / "tree/.nvrtc"}));
  EXPECT_EQ(prefixes(package), (std::vector<std::string>{root / "env"}));
  fs::permissions(root / "tree/.venv", fs::perms::all);  // where anybody may put something
  EXPECT_EQ(prefixes(tool), (std::vector<std::string>{root / "tree/.nvrtc"}));
}

}  // namespace
}  // namespace trireme

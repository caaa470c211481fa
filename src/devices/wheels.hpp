// Libraries that come in wheels of Python, such as NVRTC's and wasmtime's: one list of places for all of them.
#pragma once
#include <string>
#include <vector>

namespace trireme {

// The prefixes under which Pythons keep packages, in the order in which they are looked at: of the Python that this
// library is installed in, $VIRTUAL_ENV, $CONDA_PREFIX, the python3 on PATH, .venv and .nvrtc of the tree it was built
// in (tools/setup.sh and tools/test.sh make them), ~/.local, /usr/local, /usr.
std::vector<std::string> python_prefixes(const std::vector<std::string>& own_files);
std::vector<std::string> own_files();  // the library that this code is in, and the program

// The files that match `in_packages` (such as "nvidia/*/lib/libnvrtc.so.*") in the folders of packages of those
// prefixes, and `in_lib` in their lib folders; prefix by prefix, in each the later versions first.
std::vector<std::string> find_in_pythons(const std::string& in_packages, const std::string& in_lib = "");

// What matches, later versions first.
std::vector<std::string> matching_files(const std::string& pattern);

}  // namespace trireme

// trireme run --module: a kernel module that nobody trusts, on arrays from files.
#pragma once
#include <string>
#include <vector>

#include "trireme/wasm_host.hpp"

namespace trireme::cli {

struct RunModuleOptions {
  std::string module, as, library;
  bool backward = false;
  std::vector<std::string> inputs, outputs, constants;  // NAME=FILE.npy, NAME=NUMBER
  double memory_mib = 1024, seconds = 10;
};

Result<int> run_module(const RunModuleOptions& options);

}  // namespace trireme::cli

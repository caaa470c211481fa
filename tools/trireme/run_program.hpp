// trireme run OP|FILE: a program on arrays of .npy files, on any device.
#pragma once
#include <string>
#include <vector>

#include "trireme/result.hpp"

namespace trireme::cli {

struct RunProgramOptions {
  std::string program, target = "cpu", receipt, hash, sign;
  bool backward = false;
  std::string gradients;                                       // of results, in the backward; "loss,lse"
  std::vector<std::string> inputs, outputs, types, constants;  // NAME=FILE.npy, NAME=TYPE, NAME=NUMBER
  std::vector<std::string> absent;                             // of the forward, where its backward is run
  int axes = 1, threads = 1;
};

Result<int> run_program(const RunProgramOptions& options);

}  // namespace trireme::cli

// The files that CUDA C++ includes, found as NVRTC finds them: "name" beside the file that includes it, then in the
// folders of -I; <name> in those folders; what --pre-include names as well. NVRTC has no way to list them itself.
#pragma once
#include <map>
#include <string>

#include "trireme/jit.hpp"

namespace trireme::cuda {

struct Included {
  std::map<std::string, std::string> files;  // path as NVRTC spells it, and contents; those of branches not taken too
  std::string unsure;                        // why others may matter as well; empty if none can
};

// An error where a file of such a name is none that can be read to an end: a pipe, a device.
Result<Included> included_by(const std::string& source, const jit::Options& options);

}  // namespace trireme::cuda

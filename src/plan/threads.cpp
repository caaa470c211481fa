#include "plan/threads.hpp"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <thread>

namespace trireme {

Result<int> threads_asked(int threads) {
  if (threads < 0) return Error{Code::InvalidArgument, "the number of threads is negative"};
  if (threads > 0) return threads;
  const char* said = std::getenv("TRIREME_THREADS");
  if (!said || !*said) return static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  char* end = nullptr;
  long asked = std::strtol(said, &end, 10);
  if (*end || asked < 1 || asked > 4096)
    return Error{Code::InvalidArgument, "TRIREME_THREADS is a number from 1 to 4096, not '" + std::string(said) + "'"};
  return static_cast<int>(asked);
}

}  // namespace trireme

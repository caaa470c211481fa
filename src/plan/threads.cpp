#include "plan/threads.hpp"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <thread>

#include "devices/parallel.hpp"

namespace trireme {

Result<int> threads_asked(int threads) {
  if (threads < 0 || threads > max_parts)
    return Error{Code::InvalidArgument, "the number of threads is 0 (TRIREME_THREADS, or one per core) to 4096, not " +
                                            std::to_string(threads)};
  if (threads > 0) return threads;
  const char* said = std::getenv("TRIREME_THREADS");
  if (!said || !*said) return std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, max_parts);
  char* end = nullptr;
  long asked = std::strtol(said, &end, 10);
  if (*end || asked < 1 || asked > max_parts)
    return Error{Code::InvalidArgument, "TRIREME_THREADS is a number from 1 to 4096, not '" + std::string(said) + "'"};
  return static_cast<int>(asked);
}

}  // namespace trireme

#include "plan/threads.hpp"

#include <algorithm>
#include <string>
#include <thread>

#include "devices/parallel.hpp"
#include "support/environment.hpp"

namespace trireme {

Result<int> threads_asked(int threads) {
  if (threads < 0 || threads > max_parts)
    return Error{Code::InvalidArgument, "the number of threads is 0 (TRIREME_THREADS, or one per core) to 4096, not " +
                                            std::to_string(threads)};
  if (threads > 0) return threads;
  static_assert(environment::most_threads == max_parts);
  TRIREME_TRY(said, environment::threads());
  return said.value_or(std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, max_parts));
}

}  // namespace trireme

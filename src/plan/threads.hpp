// How many threads a caller means.
#pragma once
#include "trireme/result.hpp"

namespace trireme {

// 0 stands for TRIREME_THREADS, or one per core.
Result<int> threads_asked(int threads);

}  // namespace trireme

// Debian 12's static libstdc++ (std::random_device) asks for arc4random, which came with glibc 2.36.
// With one of our own, what TRIREME_STATIC links also runs on glibc 2.35 (Ubuntu 22.04).
#include <sys/random.h>

#include <cstdint>
#include <cstdlib>

extern "C" __attribute__((visibility("hidden"))) uint32_t arc4random() noexcept {
  uint32_t value;
  if (getrandom(&value, sizeof value, 0) != sizeof value) abort();  // Four bytes are never cut short.
  return value;
}

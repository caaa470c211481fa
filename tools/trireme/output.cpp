#include "output.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <system_error>

namespace trireme::cli {

void open_standard_streams() {
  for (int number : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(number, F_GETFD) == -1 && errno == EBADF)
      (void)!open("/dev/null", number == STDIN_FILENO ? O_WRONLY : O_RDONLY);  // using it fails as before
}

void flush_output() {
  if (std::fflush(stdout) != 0) throw std::system_error(errno, std::generic_category());
}

void complain(const std::string& text) { std::fputs(text.c_str(), stderr); }

}  // namespace trireme::cli

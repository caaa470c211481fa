// The standard streams. What a verb prints arrives, or the tool fails: fmt::print and flush_output() throw
// std::system_error, and main() says why.
#pragma once
#include <string>

namespace trireme::cli {

void open_standard_streams();  // before any file, which would take the number of a stream that is closed
void flush_output();
void complain(
    const std::string& text);  // to standard error; where that cannot be written either, the exit code is left

}  // namespace trireme::cli

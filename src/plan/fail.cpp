#include <stdexcept>
#include <string>

#include "trireme/result.hpp"

namespace trireme {

void fail(const Error& error) { throw std::runtime_error(std::string(name(error.code)) + ": " + error.message); }

}  // namespace trireme

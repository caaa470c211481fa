// For tests: a variable of the environment set, or not there, for as long as this lives.
#pragma once
#include <cstdlib>
#include <optional>
#include <string>

namespace trireme {

class Environment {
 public:
  Environment(const char* name, std::optional<std::string> value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    set(value);
  }
  ~Environment() { set(before_); }
  Environment(const Environment&) = delete;

 private:
  void set(const std::optional<std::string>& value) { value ? setenv(name_, value->c_str(), 1) : unsetenv(name_); }

  const char* name_;
  std::optional<std::string> before_;
};

}  // namespace trireme

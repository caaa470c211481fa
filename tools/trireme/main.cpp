// trireme: the compiler on the command line, one file a verb.
#include <fmt/core.h>

#include <cstdio>
#include <exception>
#include <new>
#include <system_error>

#include "output.hpp"
#include "verbs.hpp"

namespace trireme::cli {
namespace {

int report(const Error& error) {
  // A fault of our own is no fault of the input.
  complain(fmt::format("trireme: {}{}\n", error.code == Code::Internal ? "internal error: " : "", error.message));
  return error.code == Code::Internal ? check_failed : wrong_usage;
}

CommandLine command_line() {
  return {
      .name = "trireme",
      .summary = "Compiles row programs: one text, its derived backward, the same bits on every device.",
      .version = TRIREME_VERSION,
      .exit_codes = {{fine, "fine"}, {check_failed, "a check failed"}, {wrong_usage, "wrong usage or input"}},
      .verbs = {list_verb(), show_verb(), emit_verb(), run_verb(), check_verb(), drift_verb(), verify_verb(),
                bench_verb(), tune_verb(), jit_verb(), cache_verb(), doctor_verb()},
  };
}

}  // namespace
}  // namespace trireme::cli

int main(int argc, char** argv) {
  using namespace trireme::cli;
  open_standard_streams();
  try {
    CommandLine line = command_line();
    line.verbs.push_back(completion_verb(line));
    line.verbs.push_back(man_verb(line));
    trireme::Result<int> result = line.run(argc, argv);
    const int code = result ? *result : report(result.error());
    flush_output();
    return code;
  } catch (const std::bad_alloc&) {
    complain("trireme: out of memory\n");
    return wrong_usage;
  } catch (const std::system_error& error) {
    if (!std::ferror(stdout)) return report({trireme::Code::Internal, error.what()});
    return report({trireme::Code::InvalidArgument, "standard output: " + error.code().message()});
  } catch (const std::exception& error) {
    return report({trireme::Code::Internal, error.what()});
  }
}

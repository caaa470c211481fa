// trireme: the compiler on the command line, one file a verb.
#include <fmt/core.h>

#include <cstdio>
#include <exception>
#include <new>

#include "support/environment.hpp"
#include "verbs.hpp"

namespace trireme::cli {
namespace {

int report(const Error& error) {
  // A fault of our own is no fault of the input.
  fmt::print(stderr, "trireme: {}{}\n", error.code == Code::Internal ? "internal error: " : "", error.message);
  return error.code == Code::Internal ? check_failed : wrong_usage;
}

<<<<<<< HEAD
CommandLine command_line() {
  return {
      .name = "trireme",
      .summary = "Compiles row programs: one text, its derived backward, the same bits on every device.",
      .version = TRIREME_VERSION,
      .footer =
          "Environment:\n"
          "  TRIREME_THREADS=N   threads on CPUs where a verb is not told; else one per core\n"
          "  TRIREME_ISA=NAME    what 'cpu' runs on: avx512 or avx2; else the widest there is\n"
          "  TRIREME_CACHE=DIR   where compiled kernels are kept, or 'off'; else ~/.cache/trireme\n"
          "  TRIREME_VERBOSE=1   says on standard error why kernels are not kept on disk\n\n"
          "Exit codes: 0 fine, 1 a check failed, 2 wrong usage or input.\n'trireme VERB --help' says more.",
      .verbs = {list_verb(), show_verb(), emit_verb(), run_verb(), verify_verb(), bench_verb(), tune_verb(), jit_verb(),
                cache_verb(), doctor_verb()},
  };
=======
std::string usage_message(const CLI::App* app, const CLI::Error& error) {
  std::string what = error.what();
  if (const std::vector<std::string> rest = app->remaining(); !rest.empty() && app->get_subcommands().empty())
    what = fmt::format("no verb '{}'", rest.front());
  if (app->get_subcommands().empty() && app->remaining().empty()) what = "which verb?";
  return fmt::format("trireme: {}\n'trireme --help' lists the verbs, 'trireme VERB --help' says more\n", what);
}

std::string environment_help() {
  std::string text = "Environment:\n";
  for (const environment::Setting& each : environment::settings())
    text += fmt::format("  {:<21} {}\n", std::string(each.name) + "=" + each.values, each.meaning);
  return text;
}

int run(int argc, char** argv) {
  CLI::App app("Compiles row programs: one text, its derived backward, the same bits on every device.", "trireme");
  app.footer(environment_help() +
             "\nExit codes: 0 fine, 1 a check failed, 2 wrong usage or input.\n'trireme VERB --help' says more.");
  app.set_version_flag("--version", TRIREME_VERSION);
  app.require_subcommand(1);
  app.failure_message(usage_message);
  const Verb verbs[] = {add_list(app),  add_show(app), add_emit(app), add_run(app),   add_verify(app),
                        add_bench(app), add_tune(app), add_jit(app),  add_cache(app), add_doctor(app)};
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& stop) {  // --help and --version too
    return app.exit(stop) == 0 ? fine : wrong_usage;
  }
  for (const Verb& verb : verbs) {
    if (!verb.app->parsed()) continue;
    if (verb.app->get_name() != "doctor")  // which shows them all
      if (Status settings = environment::check(); !settings) return report(settings.error());
    Result<int> code = verb.run();
    return code ? *code : report(code.error());
  }
  return wrong_usage;
>>>>>>> e36a806 (cpu: hide instruction sets by TRIREME_HIDE)
}

}  // namespace
}  // namespace trireme::cli

int main(int argc, char** argv) {
  try {
    trireme::Result<int> code = trireme::cli::command_line().run(argc, argv);
    return code ? *code : trireme::cli::report(code.error());
  } catch (const std::bad_alloc&) {
    fmt::print(stderr, "trireme: out of memory\n");
    return trireme::cli::wrong_usage;
  } catch (const std::exception& error) {
    fmt::print(stderr, "trireme: internal error: {}\n", error.what());
    return trireme::cli::check_failed;
  }
}

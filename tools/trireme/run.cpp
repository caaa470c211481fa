// trireme run: runs kernels on arrays from files.
#include "run_module.hpp"

namespace trireme::cli {

Verb add_run(CLI::App& app) {
  CLI::App* verb = app.add_subcommand("run", "Runs a kernel module on arrays from .npy files");
  auto options = std::make_shared<RunModuleOptions>();
  verb->add_option("--module", options->module, "A module of the kernel ABI (docs/kernel-abi.md), trusted or not")
      ->type_name("FILE")
      ->required();
  verb->add_flag("--backward", options->backward, "kernel_backward instead of kernel_forward");
  auto several = [&](const char* name, std::vector<std::string>& values, const char* help, const char* form) {
    verb->add_option(name, values, help)->type_name(form)->take_all()->expected(1)->allow_extra_args(false);
  };
  several("--in", options->inputs, "An operand, from a .npy file of float32; repeatable", "NAME=FILE");
  several("--out", options->outputs, "A result, to a .npy file; repeatable", "NAME=FILE");
  several("--set", options->constants, "A constant's value", "NAME=NUMBER");
  verb->add_option("--as", options->as, "The kernel it works like, where it has another name")->type_name("NAME");
  verb->add_option("--library", options->library, "wasmtime's library, if not where TRIREME_WASMTIME or python has it")
      ->type_name("FILE");
  verb->add_option("--memory", options->memory_mib, "The most memory it may have, in MiB")
      ->type_name("MIB")
      ->capture_default_str();
  verb->add_option("--seconds", options->seconds, "The longest a call may take")->type_name("S")->capture_default_str();
  verb->footer(
      "Whatever the module does wrong is an error; nothing is written then.\n"
      "  trireme run --module rmsnorm_f32.wasm --in x=x.npy --in weight=w.npy --out y=y.npy --set eps=1e-5");
  return {verb, [options] { return run_module(*options); }};
}

}  // namespace trireme::cli

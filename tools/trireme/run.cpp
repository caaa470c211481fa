// trireme run: a program, or a kernel module that nobody trusts, on arrays from files.
#include <memory>

#include "device_choice.hpp"
#include "program_options.hpp"
#include "run_module.hpp"
#include "run_program.hpp"
#include "trireme/program.hpp"
#include "verbs.hpp"

namespace trireme::cli {

Command run_verb() {
  auto options = std::make_shared<RunProgramOptions>();
  auto module = std::make_shared<RunModuleOptions>();
  Command verb{.name = "run", .summary = "Runs a program, or a kernel module, on arrays of .npy files"};
  verb.option("program", options->program, "An operator ('trireme list' names them), or the path of a .row file",
              {.type = "OP|FILE", .words = RowProgram::names});
  verb.option("--module", module->module, "Instead of a program: a module of the kernel ABI, trusted or not",
              {.type = "FILE"});
  verb.option("--backward", options->backward, "The derived backward instead of the program itself");
  verb.option("--gradients", options->gradients, gradients_help, {.type = "NAMES"});
  verb.option("--in", options->inputs, "An operand; repeatable. Those with a default may be left out",
              {.type = "NAME=FILE"});
  verb.option("--absent", options->absent,
              "With --backward: an operand that the forward went without, and that this backward does not read; "
              "repeatable",
              {.type = "NAME", .excludes = "--module"});
  verb.option("--out", options->outputs, "A result to store; repeatable", {.type = "NAME=FILE"});
  verb.option("--set", options->constants, "A constant's value; repeatable", {.type = "NAME=NUMBER"});
  verb.option(
      "--type", options->types,
      "Storage type: of a result, or of an operand that travels as uint16 (bf16) or uint8 (f8e4m3, f8e5m2, f8e8m0); "
      "repeatable",
      {.type = "NAME=TYPE", .excludes = "--module", .words = type_words});
  verb.option("--axes", options->axes, "The last K axes make a row",
              {.type = "K", .show_default = true, .whole = at_least(1), .excludes = "--module"});
  verb.option("--target", options->target, "A device: cpu, cuda, wasm, reference, or a name that 'doctor' lists",
              {.type = "NAME", .show_default = true, .excludes = "--module", .words = device_words});
  verb.option("--receipt", options->receipt, "Writes what was computed, and digests of all arrays, for 'trireme check'",
              {.type = "FILE", .excludes = "--module"});
  verb.option("--hash", options->hash, "The receipt's digests: xxh3-128 (unless it is signed) or sha256",
              {.type = "NAME", .excludes = "--module", .needs = "--receipt"});
  verb.option("--sign", options->sign,
              "Signs the receipt by Ed25519: a private key in PEM ('openssl genpkey -algorithm ed25519')",
              {.type = "FILE", .excludes = "--module", .needs = "--receipt"});
  add_threads(verb, options->threads, "Threads on CPUs; the bits do not depend on it");
  verb.options.back().details.excludes = "--module";
  verb.option("--as", module->as, "Of a module: the kernel it works like, where it has another name",
              {.type = "NAME", .needs = "--module"});
  verb.option("--library", module->library, "wasmtime's library, if not where TRIREME_WASMTIME or python has it",
              {.type = "FILE", .needs = "--module"});
  verb.option("--memory", module->memory_mib, "The most memory a module may have, in MiB",
              {.type = "MIB", .show_default = true, .real = Bounds<double>{0, 4096}, .needs = "--module"});
  verb.option("--seconds", module->seconds, "The longest a module's call may take",
              {.type = "S", .show_default = true, .needs = "--module"});
  verb.footer =
      "Shapes come from the arrays: the first [i,j] operand has the problem's, else an [i] operand and a table or [j]\n"
      "operand have it together. Element results take its type, row and column results the compute type, unless "
      "--type\n"
      "says otherwise. Whatever a module (docs/kernel-abi.md) does wrong is an error; nothing is written then.\n"
      "  trireme run rms_norm --in x=x.npy --in gamma=g.npy --out y=y.npy --out rstd=r.npy --set eps=1e-5\n"
      "  trireme run rms_norm --backward --in dy=dy.npy --in x=x.npy --out dx=dx.npy --type dx=f32\n"
      "  trireme run --module rmsnorm_f32.wasm --in x=x.npy --in weight=w.npy --out y=y.npy --set eps=1e-5";
  verb.run = [options, module]() -> Result<int> {
    if (options->program.empty() == module->module.empty())
      return Error{Code::InvalidArgument, "run: give a program, such as rms_norm, or --module FILE"};
    if (module->module.empty()) return run_program(*options);
    module->backward = options->backward;
    module->inputs = options->inputs, module->outputs = options->outputs;
    module->constants = options->constants;
    return run_module(*module);
  };
  return verb;
}

}  // namespace trireme::cli

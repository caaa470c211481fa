// trireme emit: writes a program's kernels as PTX text, raw x86 code or a WebAssembly module.
#include <fmt/format.h>

#include <memory>
#include <span>

#include "files.hpp"
#include "kernel_abi/module.hpp"
#include "plan/emission.hpp"
#include "program_options.hpp"
#include "targets.hpp"
#include "verbs.hpp"

namespace trireme::cli {
namespace {

struct EmitOptions {
  ProgramOptions program;
  std::string target, arch, abi, file;
  bool c_header = false;
};

std::string as_comments(const std::string& text) {
  std::string all;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = text.find('\n', at);
    all += "// " + text.substr(at, end - at) + "\n";
    at = end + 1;
  }
  return all;
}

// A module for hosts of the kernel ABI: the program's name says all.
Result<int> emit_for_hosts(const EmitOptions& options, const Target& target) {
  const ProgramOptions& program = options.program;
  if (options.abi != "kernel")
    return Error{Code::InvalidArgument, fmt::format("--abi: '{}' is not known; there is kernel", options.abi)};
  if (&target != &kernel_abi_target())
    return Error{Code::InvalidArgument, fmt::format("--abi kernel is for --target {}", kernel_abi_target().name)};
  if (options.c_header) return Error{Code::InvalidArgument, "--c-header does not go with --abi kernel"};
  if (program.backward || !program.types.empty() || !program.constants.empty() || !program.absent.empty() ||
      !program.config.empty())
    return Error{Code::InvalidArgument,
                 "--abi kernel: a module has both directions, is in f32, and reads its constants from the host's "
                 "params; leave out --backward, --type, --set, --absent and --config"};
  TRIREME_TRY(bytes, emit_kernel_abi(program.program, options.arch));
  TRIREME_CHECK(write_file(options.file, {}, std::as_bytes(std::span(bytes))));
  if (options.file != "-") fmt::print("{}: {} bytes, kernel ABI 1.1\n", options.file, bytes.size());
  return fine;
}

Result<int> emit(const EmitOptions& options) {
  TRIREME_TRY(found, find_target(options.target));
  const Target& target = *found;
  if (!options.abi.empty()) return emit_for_hosts(options, target);
  TRIREME_TRY(bound, bind_program(options.program));
  TRIREME_TRY(emission, trireme::emit(bound.prepared, bound.facts, target, options.arch));
  const std::string head = options.c_header                    ? c_header(emission)
                           : target.form == Target::Form::Text ? as_comments(emission.description)
                                                               : "";
  std::span<const std::uint8_t> bytes(emission.bytes);
  if (options.c_header) bytes = {};  // they stand in it
  TRIREME_CHECK(write_file(options.file, std::as_bytes(std::span(head)), std::as_bytes(bytes)));
  if (options.file != "-") fmt::print("{}{}: {} bytes\n", emission.description, options.file, emission.bytes.size());
  return fine;
}

}  // namespace

Command emit_verb() {
  auto options = std::make_shared<EmitOptions>();
  Command verb{.name = "emit", .summary = "Writes a program's kernels as PTX, x86 code or a WebAssembly module"};
  add_program_options(verb, options->program);
  verb.option("--target", options->target, target_help(), {.type = "TARGET", .required = true, .words = target_words});
  verb.option("--arch", options->arch, arch_help(), {.type = "ARCH", .words = arch_words});
  verb.option("--abi", options->abi, "kernel: a module with the entries of docs/kernel-abi.md (wasm only)",
              {.type = "NAME", .words = [] { return std::vector<std::string>{"kernel"}; }});
  verb.option("--c-header", options->c_header,
              "A C header instead: the artifact as an array, its arguments and sizes as constants");
  verb.option("-o", options->file, "Where it is written; - is the standard output", {.type = "FILE", .required = true});
  verb.footer =
      "Says what a caller needs: entries, arguments, grid, scratch and workspace; in PTX also as comments.\n"
      "  trireme emit rms_norm --target ptx --type x=bf16 --arch sm_90 -o rms_norm.ptx\n"
      "  trireme emit rms_norm --target x86 --cols 1024 --c-header -o rms_norm.h\n"
      "  trireme emit rms_norm --target wasm --abi kernel -o rmsnorm_f32.wasm";
  verb.run = [options] { return emit(*options); };
  return verb;
}

}  // namespace trireme::cli

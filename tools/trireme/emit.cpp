// trireme emit: writes a program's kernels as PTX text, raw x86 code or a WebAssembly module.
#include <fmt/format.h>

#include "devices/arguments.hpp"
#include "files.hpp"
#include "ir/contract.hpp"
#include "plan/kernel_abi.hpp"
#include "plan/wasm_manifest.hpp"
#include "program_options.hpp"
#include "sources.hpp"
#include "targets.hpp"
#include "verbs.hpp"

namespace trireme::cli {
namespace {

struct Options {
  ProgramOptions program;
  std::string target, arch, abi, file;
};

std::string describe_slot(const Slot& slot, const Program& program) {
  const auto operand = [&] { return program.operands[slot.index].name; };
  const auto result = [&] { return program.results[slot.index].name; };
  switch (slot.kind) {
    case Slot::Kind::Columns: return "the number of columns";
    case Slot::Kind::OperandPointer: return fmt::format("address of {}", operand());
    case Slot::Kind::OperandStride: return fmt::format("elements from row to row of {}", operand());
    case Slot::Kind::OperandColumnStride: return fmt::format("elements from column to column of {}", operand());
    case Slot::Kind::OperandEvery: return fmt::format("rows between two jumps of {}", operand());
    case Slot::Kind::OperandJump: return fmt::format("elements more at a jump of {}", operand());
    case Slot::Kind::ResultEvery: return fmt::format("rows between two jumps of {}", result());
    case Slot::Kind::ResultJump: return fmt::format("elements more at a jump of {}", result());
    case Slot::Kind::ResultPointer: return fmt::format("address of {}", result());
    case Slot::Kind::ResultStride: return fmt::format("elements from row to row of {}", result());
    case Slot::Kind::ResultColumnStride: return fmt::format("elements from column to column of {}", result());
    case Slot::Kind::Constant: return fmt::format("{}, as {} in the low bytes", operand(), name(*program.compute));
    case Slot::Kind::RowBlock: return "rows of a row block";
    case Slot::Kind::Blocks: return "row blocks in all";
    case Slot::Kind::Partials: return "address of the workspace";
    case Slot::Kind::PartialStride: return "workspace: values from one block's partial sums to the next's";
    case Slot::Kind::Number: return "a number of the sum's own";
    case Slot::Kind::Scratch: return "address of memory for this thread alone";
  }
  return {};
}

std::string entries(const Lowered& lowered, const Artifact& artifact) {
  const Kernels& kernels = lowered.kernels;
  const std::string columns = kernels.columns.empty() ? "" : kernels.columns[0].name;
  std::string text;
  switch (lowered.target) {
    case Target::Ptx:
      text = fmt::format("entry {}(args, first, last, total): {} threads a block, grid ceil(row blocks / {})\n",
                         kernels.rows.name, kernels.rows.launch.threads(), kernels.rows.launch.teams);
      if (!columns.empty())
        text +=
            fmt::format("entry {}(args, first, last, total), afterwards: {} threads a block, grid ceil(columns / {})\n",
                        columns, kernels.columns[0].launch.threads(), kernels.columns[0].launch.columns_covered);
      return text;
    case Target::X86:
      text = "entry at byte 0: void rows(const uint64_t* args, int64_t first, int64_t last, int64_t total), System V\n";
      if (!columns.empty())
        text +=
            fmt::format("entry at byte {}: columns, the same way, once all rows are done\n", artifact.columns_entry);
      return text;
    case Target::Wasm:
      text = "exports memory, rows(args: i32, first: i64, last: i64, total: i64)\n";
      if (!columns.empty()) text += "exports columns(args: i32, first: i64, last: i64), once all rows are done\n";
      return text;
  }
  return text;
}

// What a caller has to know, a line each.
std::string describe(const Options& options, const BoundProgram& bound, const Lowered& lowered,
                     const Artifact& artifact) {
  const Program& program = bound.prepared.program;
  const Kernels& kernels = lowered.kernels;
  std::string text = signature_of(program) + "\n";
  text += fmt::format("{} columns, contract version {}, {}: {}\n", options.program.columns, contract::version,
                      lowered.arch, print(lowered.config));
  text += entries(lowered, artifact);
  for (std::size_t k = 0; k < kernels.rows.slots.size(); ++k)
    text += fmt::format("args[{}]: {}\n", k, describe_slot(kernels.rows.slots[k], program));
  if (std::int64_t scratch = scratch_bytes(kernels, options.program.columns))
    text += fmt::format("scratch: {} bytes{}\n", scratch,
                        lowered.target == Target::Ptx ? " of dynamic shared memory a block" : "");
  Blocks blocks = cut_rows(kernels, options.program.rows, options.program.columns);
  text += fmt::format("for {} rows: row blocks of {}, {} bytes of workspace\n", options.program.rows, blocks.row_block,
                      blocks.workspace_bytes);
  return text;
}

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
Result<int> emit_for_hosts(const Options& options, Target target) {
  const ProgramOptions& program = options.program;
  if (options.abi != "kernel")
    return Error{Code::InvalidArgument, fmt::format("--abi: '{}' is not known; there is kernel", options.abi)};
  if (target != Target::Wasm) return Error{Code::InvalidArgument, "--abi kernel is for --target wasm"};
  if (program.backward || !program.types.empty() || !program.constants.empty() || !program.absent.empty())
    return Error{Code::InvalidArgument,
                 "--abi kernel: a module has both directions, is in f32, and reads its constants from the host's "
                 "params; leave out --backward, --type, --set and --absent"};
  TRIREME_TRY(wasm, wasm_options(options.arch.empty() ? "simd128" : options.arch));
  TRIREME_TRY(bytes, emit_kernel_abi(program.program, wasm));
  TRIREME_CHECK(write_file(options.file, {}, std::as_bytes(std::span(bytes))));
  if (options.file != "-") fmt::print("{}: {} bytes, kernel ABI 1.1\n", options.file, bytes.size());
  return fine;
}

Result<int> emit(const Options& options) {
  TRIREME_TRY(target, one_of(target_names, "--target", options.target));
  if (!options.abi.empty()) return emit_for_hosts(options, target);
  TRIREME_TRY(bound, bind_program(options.program));
  TRIREME_TRY(lowered, lower_for(bound, target, options.arch));
  std::string manifest;
  if (target == Target::Wasm) {
    TRIREME_TRY(text, wasm_manifest(bound.prepared.program, lowered.kernels, lowered.config,
                                    {.columns = options.program.columns,
                                     .constants = bound.prepared.constants,
                                     .relaxed = lowered.arch == "relaxed"}));
    manifest = text;
  }
  TRIREME_TRY(artifact, make_artifact(lowered, manifest));
  std::string text = describe(options, bound, lowered, artifact);
  const std::string head = target == Target::Ptx ? as_comments(text) : "";
  TRIREME_CHECK(write_file(options.file, std::as_bytes(std::span(head)), std::as_bytes(std::span(artifact.bytes))));
  if (options.file != "-") fmt::print("{}{}: {} bytes\n", text, options.file, artifact.bytes.size());
  return fine;
}

}  // namespace

Verb add_emit(CLI::App& app) {
  CLI::App* verb = app.add_subcommand("emit", "Writes a program's kernels as PTX, x86 code or a WebAssembly module");
  auto options = std::make_shared<Options>();
  add_program_options(*verb, options->program);
  verb->add_option("--target", options->target, "ptx, x86 or wasm")->type_name("TARGET")->required();
  verb->add_option("--arch", options->arch, arch_help)->type_name("ARCH");
  verb->add_option("--abi", options->abi, "kernel: a module with the entries of docs/kernel-abi.md (wasm only)")
      ->type_name("NAME");
  verb->add_option("-o", options->file, "Where it is written; - is the standard output")->type_name("FILE")->required();
  verb->footer(
      "Says what a caller needs: entries, arguments, grid, scratch and workspace; in PTX also as comments.\n"
      "  trireme emit rms_norm --target ptx --type x=bf16 --arch sm_90 -o rms_norm.ptx\n"
      "  trireme emit rms_norm --target wasm --abi kernel -o rmsnorm_f32.wasm");
  return {verb, [options] { return emit(*options); }};
}

}  // namespace trireme::cli
